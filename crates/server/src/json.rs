//! JSON strings, escaped.

/// Appends `text` in quotes. What is not UTF-8 becomes replacement characters.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    match std::str::from_utf8(text) {
        Ok(text) => push_str(out, text),
        Err(_) => push_str(out, &String::from_utf8_lossy(text)),
    }
}

pub fn push_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // All are looked at, which the compiler does many at a time: there is rarely one.
    if !bytes.iter().fold(false, |any, byte| any | is_special(*byte)) {
        out.extend_from_slice(bytes);
        return out.push(b'"');
    }
    let mut from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if !is_special(byte) {
            continue;
        }
        out.extend_from_slice(&bytes[from..i]);
        from = i + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_of_another_parser() {
        for text in ["", "plain", "\"\\\n\r\t\u{1}\u{7f}ä€😀", "ends with \"", "\u{0}"] {
            let mut out = Vec::new();
            push_str(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
        let mut out = Vec::new();
        push_string(&mut out, b"a\xffb");
        assert_eq!(out, "\"a\u{fffd}b\"".as_bytes());
    }
}
