//! Computes the lengths of strings in characters.

use crate::INLINE_BYTES;
use arrow::array::{Array, Int32Array, StringViewArray};

/// The highest bit of each of eight bytes.
const HIGHEST: u64 = (u64::MAX / 255) << 7;

/// Counts the bytes of each string, except continuation bytes.
#[must_use]
pub fn char_lengths(texts: &StringViewArray) -> Int32Array {
    if is_plain(texts) {
        let lengths: Vec<i32> = texts.views().iter().map(|view| *view as u32 as i32).collect();
        return Int32Array::new(lengths.into(), texts.nulls().cloned());
    }
    let length = |(row, view): (usize, &u128)| match *view as u32 {
        length @ ..=INLINE_BYTES => length as i32 - continuing_inline(*view >> 32),
        length => length as i32 - continuing(texts.value(row).as_bytes()),
    };
    let lengths: Vec<i32> = texts.views().iter().enumerate().map(length).collect();
    Int32Array::new(lengths.into(), texts.nulls().cloned())
}

/// Returns true if every byte is a character and this can be checked on whole buffers, faster than string by string.
///
/// Strings may have any position in the buffers, and rows may share them.
fn is_plain(texts: &StringViewArray) -> bool {
    let (mut long, mut inline) = (0, 0);
    for view in texts.views() {
        match *view as u32 {
            ..=INLINE_BYTES => inline |= *view >> 32,
            length => long += length as usize,
        }
    }
    let held: usize = texts.data_buffers().iter().map(|buffer| buffer.len()).sum();
    inline & (u128::from(HIGHEST) << 64 | u128::from(HIGHEST)) == 0
        && held <= long
        && texts.data_buffers().iter().all(|buffer| buffer.is_ascii())
}

/// Counts continuation bytes: bytes whose highest bit is set and whose next bit is not. Most strings have no byte with
/// the highest bit.
#[inline]
fn continuing_inline(bytes: u128) -> i32 {
    const LOWEST: u128 = u128::MAX / 255;
    match bytes & LOWEST << 7 {
        0 => 0,
        _ => ((bytes >> 7) & !(bytes >> 6) & LOWEST).count_ones() as i32,
    }
}

#[inline]
fn continuing(bytes: &[u8]) -> i32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().fold(0, |all, word| all | u64::from_le_bytes(*word));
    let is_plain = all & HIGHEST == 0 && rest.is_ascii();
    if !is_plain { bytes.iter().map(|byte| i32::from(byte.cast_signed() < -64)).sum() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_their_characters() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut text =
            |length: usize| (0..length).map(|_| ['a', 'é', '日', '🦀'][random.usize(..4)]).collect::<String>();
        let texts: Vec<Option<String>> = (0..200).map(|length| (length % 9 > 0).then(|| text(length))).collect();
        let expected: Int32Array = texts.iter().map(|t| t.as_ref().map(|t| t.chars().count() as i32)).collect();
        assert_eq!(char_lengths(&texts.into_iter().collect()), expected);
    }

    #[test]
    fn lengths_of_plain_texts_are_their_bytes() {
        let text = |length: usize| (!length.is_multiple_of(7)).then(|| "x".repeat(length));
        let plain: StringViewArray = (0..100).map(text).collect();
        assert!(is_plain(&plain));
        let expected: Int32Array = (0..100).map(|length| text(length).map(|_| length as i32)).collect();
        assert_eq!(char_lengths(&plain), expected);
        for other in ["é", "a text that is not plain: é"] {
            let texts: StringViewArray = (0..100).map(text).chain([Some(other.to_owned())]).collect();
            assert!(!is_plain(&texts));
            assert_eq!(char_lengths(&texts).value(100), other.chars().count() as i32);
        }
        // A few strings of large buffers.
        let few = plain.slice(30, 3);
        assert_eq!((is_plain(&few), char_lengths(&few)), (false, expected.slice(30, 3)));
    }
}
