//! Which rows of a packed vector lie between two bounds, without making values of them.
//!
//! Every comparison with a constant is such a range or the opposite of one: the caller translates its constant into
//! distances.

use crate::bitpack::{Line, Unpacker, VECTOR, line_count, unpack_u16, unpack_u32, unpack_u64, word_bits};
use crate::dispatch;

/// A bit for each row of a vector, least significant first.
pub type Mask = [u64; VECTOR / 64];

/// The rows whose distance is at least `lo` and at most `hi`; bits behind the last row are clear.
///
/// # Panics
/// With more than [`VECTOR`] rows, a width above 64, or fewer than [`line_count`] lines.
#[must_use]
pub fn packed_in_range(unpacker: &mut Unpacker, lines: &[Line], width: u32, rows: usize, lo: u64, hi: u64) -> Mask {
    assert!(rows <= VECTOR && width <= 64 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
    let mut mask = [0; VECTOR / 64];
    let hi = hi.min(crate::bitpack::width_mask(width));
    if lo <= hi {
        match word_bits(width) {
            _ if width == 0 => mask.fill(u64::MAX),
            16 => compare_u16(unpacker, lines, width, rows, lo as u16, hi as u16, &mut mask),
            32 => compare_u32(unpacker, lines, width, rows, lo as u32, hi as u32, &mut mask),
            _ => compare_u64(unpacker, lines, width, rows, lo, hi, &mut mask),
        }
    }
    clear_behind(&mut mask, rows);
    mask
}

/// Clears the bits from row `rows` on.
pub fn clear_behind(mask: &mut Mask, rows: usize) {
    for (i, word) in mask.iter_mut().enumerate() {
        match rows.saturating_sub(i * 64) {
            0 => *word = 0,
            left @ 1..64 => *word &= u64::MAX >> (64 - left),
            _ => {}
        }
    }
}

macro_rules! compare {
    ($compare:ident, $words:ident, $unpack:ident, $bits:ident, $word:ty) => {
        dispatch! {
            fn $compare(
                unpacker: &mut Unpacker,
                lines: &[Line],
                width: u32,
                rows: usize,
                lo: $word,
                hi: $word,
                mask: &mut Mask,
            ) {
                let words = &mut unpacker.words().$words;
                $unpack(lines, width, rows, words);
                let sixty_fours = words.as_chunks::<64>().0;
                for (mask, words) in mask.iter_mut().zip(sixty_fours).take(rows.div_ceil(64)) {
                    *mask = $bits(words, lo, hi - lo);
                }
            }
        }

        /// Bit `i` says whether `words[i]` is at least `lo` and at most `lo + span`.
        #[inline(always)]
        fn $bits(words: &[$word; 64], lo: $word, span: $word) -> u64 {
            // Bytes of 0 and 1 first, which vector instructions do, then eight of them at once into their bits.
            let mut hits = [0u8; 64];
            for (hit, word) in hits.iter_mut().zip(words) {
                *hit = u8::from(word.wrapping_sub(lo) <= span);
            }
            let mut mask = 0;
            for (i, eight) in hits.as_chunks::<8>().0.iter().enumerate() {
                // The product brings bit 0 of byte i to bit 56 + i.
                let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                mask |= bits << (8 * i);
            }
            mask
        }
    };
}

compare!(compare_u16, u16s, unpack_u16, bits_u16, u16);
compare!(compare_u32, u32s, unpack_u32, bits_u32, u32);
compare!(compare_u64, u64s, unpack_u64, bits_u64, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitpack::{pack, unpack_plain, width_mask};

    #[test]
    fn masks_say_what_each_row_says() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut unpacker = Unpacker::new();
        for width in 0..=64 {
            for rows in [1, 63, 64, 65, 900, 1023, 1024] {
                let most = width_mask(width);
                let values: Vec<u64> = (0..rows).map(|_| rng.u64(..) & most >> rng.u32(0..64)).collect();
                let mut bytes = Vec::new();
                pack(&values, 0, width, &mut bytes);
                let lines = bytes.as_chunks().0;
                let some = values[rng.usize(..rows)];
                let other = rng.u64(..) & most;
                let ranges =
                    [(0, u64::MAX), (0, 0), (some, some), (most, most), (some, other), (1, 0), (most, u64::MAX)];
                for (lo, hi) in ranges {
                    let mask = packed_in_range(&mut unpacker, lines, width, rows, lo, hi);
                    for row in 0..VECTOR {
                        let is_hit = row < rows && (lo..=hi).contains(&unpack_plain(lines, width, row));
                        assert_eq!(
                            mask[row / 64] >> (row % 64) & 1 == 1,
                            is_hit,
                            "{width} bits, row {row}, {lo}..{hi}"
                        );
                    }
                }
            }
        }
    }
}
