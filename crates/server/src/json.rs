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
    if !has_special(bytes) {
        out.extend_from_slice(bytes);
        return out.push(b'"');
    }
    let mut from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
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

/// Whether a byte is to be escaped. All are looked at, eight at a time: there is rarely one.
fn has_special(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let mut last = [b'a'; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(special_bits(u64::from_le_bytes(last)), |any, word| any | special_bits(u64::from_le_bytes(*word)))
        != 0
}

/// Some bits, if one of the bytes is to be escaped.
pub fn special_bits(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // The highest bit of a byte below n, which is at most 128, is set by taking n away, and was not before; bytes above such
    // may be told wrongly, but then there is one.
    let below = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n)) & !word & (ONES << 7);
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
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
        for byte in 0..=255_u8 {
            for (other, at) in (0..=255_u8).flat_map(|other| [(other, 0), (other, 7), (other, 8), (other, 12)]) {
                let mut bytes = [byte; 13];
                bytes[at] = other;
                let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(has_special(&bytes), bytes.into_iter().any(is_special), "{bytes:?}");
            }
        }
        let mut out = Vec::new();
        push_string(&mut out, b"a\xffb");
        assert_eq!(out, "\"a\u{fffd}b\"".as_bytes());
    }
}
