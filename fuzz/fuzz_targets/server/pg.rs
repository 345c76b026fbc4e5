//! Any bytes of a PostgreSQL client: no panic, no memory for claims, and messages and rows do not depend on
//! how the bytes are cut.
//!
//! The first byte of an input is the size of chunks. The second says what the rest is: a startup packet and messages,
//! whose Bind messages are decoded by the types of the Parse message before, or rows in the binary format of COPY.
#![no_main]
#![allow(dead_code, reason = "the files of the server have more than is called here")]

extern crate self as tidalite;

#[path = "../../../crates/server/src/digits.rs"]
mod digits;
mod pgwire;
mod stubs;

pub use stubs::Parameter;
pub use tidalite_types as types;

mod accept {
    pub use crate::stubs::in_time;
}
mod budget {
    pub use crate::stubs::Share;
}
/// Without a limit of time, a timed socket is the socket.
mod slow_reader {
    pub type Timed<S> = S;
}
mod socket {
    pub use crate::stubs::Socket;
}

use libfuzzer_sys::fuzz_target;
use pgwire::copy_binary::Incoming;
use pgwire::message::{Bind, Input, Malformed, Message};
use pgwire::parameters::decode;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use stubs::{Share, Socket};
use types::pg_type::{self, PgType};

const MESSAGE_BYTES_MAX: usize = 1 << 20;
const ALLOWED: usize = 4 << 20;

fuzz_target!(|input: &[u8]| {
    let [chunk, what, bytes @ ..] = input else { return };
    let (chunk, whole) = (usize::from(*chunk) + 1, bytes.len().max(1));
    tidalite_fuzz::memory::within(ALLOWED, || {
        if what & 1 == 0 {
            assert_eq!(messages(bytes, whole), messages(bytes, chunk), "the cuts");
        } else {
            assert_eq!(copied(bytes, *what, whole), copied(bytes, *what, chunk), "the cuts");
        }
    });
});

/// The startup packet and the messages as text, with the values of Bind messages.
fn messages(bytes: &[u8], chunk: usize) -> Vec<String> {
    let socket = Socket { bytes: bytes.to_vec(), at: 0, chunk };
    let (reader, _writer) = tokio::io::split(socket);
    let mut input = Input::new(reader, &[], Share);
    // The socket is always ready.
    match pin!(read(&mut input)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => unreachable!("the socket is always ready"),
    }
}

async fn read(input: &mut Input) -> Vec<String> {
    let mut out = vec![format!("{:?}", input.startup().await.map_err(reason))];
    let mut types = Vec::new();
    loop {
        let message = match input.next().await {
            Ok(Some(message)) => message,
            Ok(None) => return out,
            Err(error) => {
                let can_go_on = matches!(error, Malformed::Message(_));
                out.push(reason(error));
                if can_go_on {
                    continue;
                }
                return out;
            }
        };
        out.push(format!("{message:?}"));
        match message {
            Message::Parse { types: given, .. } => types = given,
            Message::Bind(bind) => out.push(parameters(&bind, &types)),
            // The client was let in.
            Message::Password(_) => input.admit(MESSAGE_BYTES_MAX),
            _ => {}
        }
    }
}

fn reason(error: Malformed) -> String {
    match error {
        Malformed::Fatal(text) | Malformed::Message(text) | Malformed::Memory(text) => text,
        Malformed::Io(error) => error.to_string(),
    }
}

fn parameters(bind: &Bind, types: &[u32]) -> String {
    let mut out = String::new();
    for (i, value) in bind.values.iter().enumerate() {
        let is_binary = match bind.formats.as_slice() {
            [one] => *one == 1,
            formats => formats.get(i) == Some(&1),
        };
        let value = decode(i + 1, types.get(i).copied().unwrap_or_default(), is_binary, value.as_deref());
        out += &format!("{:?}", value.map_err(|report| report.message));
    }
    out
}

/// The rows as CSV, or the error.
fn copied(bytes: &[u8], what: u8, chunk: usize) -> Result<Vec<u8>, String> {
    let types: [&[PgType]; 4] = [
        &[pg_type::INT8, pg_type::TEXT, pg_type::FLOAT8S],
        &[pg_type::NUMERIC, pg_type::TIMESTAMP, pg_type::BOOL, pg_type::DATE],
        &[pg_type::INTERVAL, pg_type::TIME, pg_type::UUID, pg_type::BYTEA, pg_type::JSONB],
        &[pg_type::INT2, pg_type::INT4, pg_type::FLOAT4, pg_type::FLOAT8],
    ];
    let types = types[usize::from(what >> 1) % types.len()];
    let columns = types.iter().enumerate().map(|(i, pg_type)| (format!("c{i}"), *pg_type)).collect();
    let (mut incoming, mut out) = (Incoming::new(columns), Vec::new());
    for piece in bytes.chunks(chunk) {
        out.extend(incoming.text_of(piece).map_err(|report| report.message)?);
    }
    incoming.finish().map(|()| out).map_err(|report| report.message)
}
