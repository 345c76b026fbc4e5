//! Escapes names and text for lines.

pub use tidalite_types::schema::name_problem;

/// Bytes that are escaped by a backslash in a name.
const SPECIAL: [u8; 6] = *b" ,=\n\r\\";

/// Appends a name, or the value of a tag.
#[inline]
pub fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    push(out, text, SPECIAL);
}

/// Returns true if names of these bytes need no escapes.
pub(super) fn is_unescaped(bytes: &[u8]) -> bool {
    // Without an early exit, so that the loop is vectorized.
    !bytes.iter().fold(false, |any, byte| any | SPECIAL.contains(byte))
}

/// Appends bytes that need no escapes, like [`push_escaped`].
#[inline]
pub(super) fn push_unescaped(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() <= SHORT {
        push_short(out, text.len(), short_words(text));
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends a copy of fixed size: two moves instead of a call.
#[inline(always)]
fn push_short(out: &mut Vec<u8>, len: usize, words: [u64; 2]) {
    let end = out.len() + len;
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    out.truncate(end);
}

/// Appends the inside of a quoted string.
#[inline]
pub fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    push(out, text, *b"\"\n\r\\");
}

/// Appends text with a backslash before each byte in `special`.
#[inline(always)]
fn push<const N: usize>(out: &mut Vec<u8>, text: &[u8], special: [u8; N]) {
    if text.len() <= SHORT {
        let words = short_words(text);
        if !words.iter().any(|word| has_one(*word, special)) {
            return push_short(out, text.len(), words);
        }
    } else if !text.chunks(8).any(|chunk| has_one(short_words(chunk)[0], special)) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        if special.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

const SHORT: usize = 16;

/// Returns up to [`SHORT`] bytes, the first in the lowest byte, padded with zeros.
#[inline(always)]
fn short_words(text: &[u8]) -> [u64; 2] {
    let len = text.len();
    // Two loads that may overlap: the common bytes are equal.
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        let last = u64::from_le_bytes(*last).checked_shr(8 * (SHORT - len) as u32);
        return [u64::from_le_bytes(*first), last.unwrap_or(0)];
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        return [first | last << (8 * (len - 4)), 0];
    }
    let byte = |at: usize| text.get(at).map_or(0, |byte| u64::from(*byte) << (8 * at));
    [byte(0) | byte(1) | byte(2), 0]
}

/// Returns true if one of eight bytes is in `special`.
#[inline(always)]
fn has_one<const N: usize>(word: u64, special: [u8; N]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Sets the high bit of each zero byte, and possibly of bytes above it.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    special.iter().fold(0, |any, byte| any | zero(word ^ (ONES * u64::from(*byte)))) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_comes_before_what_is_special_at_every_place_of_every_length() {
        for len in 0..=40 {
            for at in 0..len {
                for byte in 0..=255 {
                    let mut text = vec![b'x'; len];
                    text[at] = byte;
                    for (push, special) in
                        [(push_escaped as fn(&mut Vec<u8>, &[u8]), &b" ,=\n\r\\"[..]), (push_quoted, b"\"\n\r\\")]
                    {
                        let mut out = b"before".to_vec();
                        push(&mut out, &text);
                        let mut wanted = b"before".to_vec();
                        for b in &text {
                            wanted.extend(special.contains(b).then_some(b'\\'));
                            wanted.push(*b);
                        }
                        assert_eq!(out, wanted, "{text:?}");
                    }
                    let mut escaped = Vec::new();
                    push_escaped(&mut escaped, &text);
                    assert_eq!(is_unescaped(&text), escaped == text, "{text:?}");
                    let mut out = b"before".to_vec();
                    push_unescaped(&mut out, &text);
                    assert_eq!(out, [&b"before"[..], &text].concat());
                }
            }
        }
    }
}
