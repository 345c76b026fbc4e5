//! Texts of UUIDs.

/// Returns the bytes of a UUID.
///
/// Texts are those of PostgreSQL: 32 hexadecimal digits in any case, with or without hyphens after each group of four
/// digits, and in braces or without.
#[must_use]
pub fn parse(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let mut bytes = inner.bytes().peekable();
    let digit = |rest: &mut std::iter::Peekable<std::str::Bytes>| -> Option<u8> {
        char::from(rest.next()?).to_digit(16).map(|digit| digit as u8)
    };
    let mut out = [0; 16];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = digit(&mut bytes)? << 4 | digit(&mut bytes)?;
        if at % 2 == 1 && at < 15 {
            bytes.next_if_eq(&b'-');
        }
    }
    bytes.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// PostgreSQL 15 accepts and refuses the same texts.
    #[test]
    fn texts_are_those_of_postgresql() {
        let expected = Some(*b"\xa0\xee\xbc\x99\x9c\x0b\x4e\xf8\xbb\x6d\x6b\xb9\xbd\x38\x0a\x11");
        for text in [
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380A11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in [
            "",
            "{}",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "a0e-ebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{{a0eebc999c0b4ef8bb6d6bb9bd380a11}}",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380aé",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
