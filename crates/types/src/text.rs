//! Texts of values that PostgreSQL defines: items of arrays, bytes as hexadecimal digits.

/// Puts the item of an array that begins at `start` of `out` in quotes, if it would be read as something else without.
///
/// ```
/// let mut out = b"{".to_vec();
/// let start = out.len();
/// out.extend_from_slice(b"a \"b\"");
/// tidalite_types::text::quote_array_item(&mut out, start);
/// assert_eq!(out, br#"{"a \"b\"""#);
/// ```
pub fn quote_array_item(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let is_special = |b: &u8| matches!(b, b'{' | b'}' | b',' | b'"' | b'\\') || b.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case(b"null") && !text.iter().any(is_special) {
        return;
    }
    let text = text.to_vec();
    out.truncate(start);
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Returns two lower-case hexadecimal digits for each byte.
#[must_use]
pub fn hex_digits(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hex_pair(*byte)).map(char::from).collect()
}

/// Appends two lower-case hexadecimal digits for each byte.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    bytes.iter().for_each(|byte| out.extend(hex_pair(*byte)));
}

fn hex_pair(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_special_characters_are_quoted() {
        for (item, expected) in [
            ("a", "a"),
            ("", "\"\""),
            ("NULL", "\"NULL\""),
            ("null", "\"null\""),
            ("nullable", "nullable"),
            ("a b", "\"a b\""),
            ("a,b", "\"a,b\""),
            ("{}", "\"{}\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("é", "é"),
        ] {
            let mut out = format!("{{1,{item}").into_bytes();
            quote_array_item(&mut out, 3);
            assert_eq!(String::from_utf8_lossy(&out), format!("{{1,{expected}"));
        }
    }

    #[test]
    fn digits_of_bytes() {
        assert_eq!(hex_digits(&[0, 0x0f, 0xff]), "000fff");
        assert_eq!(hex_digits(&[]), "");
        let mut out = b"x".to_vec();
        push_hex(&mut out, &[0, 0x0f, 0xff]);
        assert_eq!(out, b"x000fff");
    }
}
