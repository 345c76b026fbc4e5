//! How many characters texts have.

use arrow::array::{Array, Int32Array, StringViewArray};

/// The longest text that a view holds itself.
const INLINE_BYTES: u32 = 12;

/// Of eight bytes.
const HIGHEST: u64 = u64::MAX / 255 << 7;

/// Bytes, but for those that continue a character.
#[must_use]
pub fn char_lengths(texts: &StringViewArray) -> Int32Array {
    let length = |(row, view): (usize, &u128)| match *view as u32 {
        length @ ..=INLINE_BYTES => length as i32 - continuing_inline(*view >> 32),
        length => length as i32 - continuing(texts.value(row).as_bytes()),
    };
    let lengths: Vec<i32> = texts.views().iter().enumerate().map(length).collect();
    Int32Array::new(lengths.into(), texts.nulls().cloned())
}

/// Such a byte has its highest bit set and the one below it not. Most texts have no byte with the highest bit.
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
}
