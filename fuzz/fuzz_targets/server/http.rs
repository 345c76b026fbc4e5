//! Any bytes as what a request of HTTP says beside its lines: parameters of a URL, of a form and of JSON, or the parts
//! of an upload with their heads. No panic; the data of an upload lie in its body, and decoded parameters are the
//! same after they were encoded again.
//!
//! The first byte of an input says which of them the rest is. Before an upload stands a line with its content type.
#![no_main]
#![allow(dead_code, reason = "the files of the server have more than is called here")]

extern crate self as tidalite;

mod request;
pub mod import;

pub use tidalite_storage::error::{Error, Result};
pub use tidalite_types as types;
pub use tidalite_types::ErrorKind;

mod logging {
    pub fn cut(text: &str) -> &str {
        text
    }
}

use request::form::{Form, boundary, charset};
use request::params::Params;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [what, bytes @ ..] = input else { return };
    if what & 1 == 0 {
        upload(bytes);
    } else if let Ok(text) = std::str::from_utf8(bytes) {
        parameters(text, what & 2 > 0);
    }
});

fn upload(bytes: &[u8]) {
    let Some((head, body)) = bytes.iter().position(|b| *b == b'\n').map(|at| (&bytes[..at], &bytes[at + 1..])) else {
        return;
    };
    let Ok(content_type) = std::str::from_utf8(head) else { return };
    let _ = charset(content_type);
    let Some(boundary) = boundary(content_type) else { return };
    if let Ok(form) = Form::parse(body, &boundary) {
        assert!(form.data.start <= form.data.end && form.data.end <= body.len());
        let mark = format!("\r\n--{boundary}");
        assert!(body[form.data.end..].starts_with(mark.as_bytes()));
        form.content_type.as_deref().map(charset);
    }
}

fn parameters(text: &str, is_json: bool) {
    let mut params = Params::default();
    let read = if is_json { params.add_json(text) } else { params.add(text) };
    if read.is_err() {
        return;
    }
    let hex = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let encoded: Vec<String> = params.iter().map(|(name, value)| format!("{}={}", hex(name), hex(value))).collect();
    let again = Params::parse(&encoded.join("&")).expect("what was encoded is decoded");
    assert!(params.iter().eq(again.iter()));
    params.iter().for_each(|(name, _)| assert!(again.get(name).is_some() && again.is_on(name) == params.is_on(name)));
}
