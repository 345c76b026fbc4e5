//! Arrays and binary values in text: `{1,2}` and `[1.0, 2.0]`, nested lists, `\x01ff`.

use tidalite_types::views::NULL_ELEMENT_BITS;

/// Returns an array in its stored form: the lengths of its dimensions, then its numbers.
///
/// A NULL element is [`NULL_ELEMENT_BITS`]. Returns `None` if the text does not have `dims` dimensions or is not rectangular.
pub(super) fn array(text: &str, dims: u8) -> Option<Vec<u8>> {
    let mut reader =
        NestedReader { rest: text.trim().as_bytes(), lengths: vec![None; usize::from(dims)], numbers: Vec::new() };
    reader.list(0)?;
    if !reader.rest.is_empty() {
        return None;
    }
    // Dimensions within an empty dimension have length 0.
    let lengths = reader.lengths.iter().map(|length| length.unwrap_or(0).to_le_bytes());
    let mut out: Vec<u8> = lengths.flatten().collect();
    out.extend(reader.numbers.iter().flat_map(|number| number.to_le_bytes()));
    Some(out)
}

struct NestedReader<'a> {
    rest: &'a [u8],
    /// Length of each dimension, once known.
    lengths: Vec<Option<u32>>,
    numbers: Vec<f64>,
}

impl NestedReader<'_> {
    fn take(&mut self, of: &[u8]) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        let (first, rest) = self.rest.split_first()?;
        of.contains(first).then(|| {
            self.rest = rest.trim_ascii_start();
            *first
        })
    }

    fn list(&mut self, dim: usize) -> Option<()> {
        let end = if self.take(b"{[")? == b'{' { b"}" } else { b"]" };
        let mut length = 0_u32;
        if self.take(end).is_none() {
            loop {
                if dim + 1 < self.lengths.len() {
                    self.list(dim + 1)?;
                } else {
                    self.number()?;
                }
                length = length.checked_add(1)?;
                if self.take(b",").is_none() {
                    self.take(end)?;
                    break;
                }
            }
        }
        (*self.lengths[dim].get_or_insert(length) == length).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|b| matches!(b, b',' | b'}' | b']'))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let text = std::str::from_utf8(text.trim_ascii()).ok()?;
        let null = f64::from_bits(NULL_ELEMENT_BITS);
        self.numbers.push(if text.eq_ignore_ascii_case("null") { null } else { text.parse().ok()? });
        Some(())
    }
}

/// Parses PostgreSQL's text of binary values, or only its digits.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x").unwrap_or(text).as_bytes();
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(lengths: &[u32], numbers: &[f64]) -> Option<Vec<u8>> {
        let lengths = lengths.iter().flat_map(|n| n.to_le_bytes());
        Some(lengths.chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect())
    }

    #[test]
    fn arrays_are_read_as_postgresql_and_python_write_them() {
        assert_eq!(array("{1,-2.5e1}", 1), stored(&[2], &[1.0, -25.0]));
        assert_eq!(array(" [ 1.0 , 2 ] ", 1), stored(&[2], &[1.0, 2.0]));
        assert_eq!(array("{{1,2,3},{4,5,6}}", 2), stored(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(
            [array("{}", 1), array("{}", 2), array("{{}}", 2)],
            [stored(&[0], &[]), stored(&[0, 0], &[]), stored(&[1, 0], &[])]
        );
        let null = f64::from_bits(NULL_ELEMENT_BITS);
        assert_eq!(array("{NULL,NaN,null}", 1), stored(&[3], &[null, f64::NAN, null]));
        for bad in ["", "1", "{1", "{1]", "{1}}", "{1,}", "{,1}", "{a}", "{{1}}", "{1,{2}}", "{1} 2"] {
            assert_eq!(array(bad, 1), None, "{bad}");
        }
        for bad in ["{1}", "{{1},{2,3}}", "{{1},{}}", "{{1},2}"] {
            assert_eq!(array(bad, 2), None, "{bad}");
        }
        assert_eq!(array(&"{".repeat(100_000), 1), None);
    }

    #[test]
    fn bytes_are_hexadecimal() {
        assert_eq!(bytes("\\x01fF"), Some(vec![1, 255]));
        assert_eq!([bytes("0"), bytes("\\xzz"), bytes("é")], [None, None, None]);
        assert_eq!(bytes("\\x"), Some(Vec::new()));
    }
}
