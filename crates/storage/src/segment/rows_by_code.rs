//! Which rows of a block have which code.
//!
//! ```text
//! count  u32 as two of 16 bits, the lower half first: how many codes
//! ends   as many of the like: where the rows of each end
//! rows   u16 each, those of a code in order
//! ```

use std::ops::Range;

/// Codes from this on are not told apart.
pub(super) const CODES_MAX: usize = 1 << 16;

/// Of a block of at most 65,536 rows, each at most once. Nothing where codes are too many to be told apart.
pub(super) fn encode(codes: &[(usize, usize)]) -> Vec<u16> {
    let count = codes.iter().map(|(_, code)| code + 1).max().unwrap_or(0);
    if count > CODES_MAX {
        return Vec::new();
    }
    // Where the rows of each code begin; when they are dealt out, where they end.
    let mut ends = vec![0_u32; count];
    codes.iter().for_each(|(_, code)| ends[*code] += 1);
    let mut at = 0;
    ends.iter_mut().for_each(|end| at += std::mem::replace(end, at));
    let mut known = vec![0; 2 * count + 2 + codes.len()];
    let (head, rows) = known.split_at_mut(2 * count + 2);
    for (row, code) in codes {
        let at = &mut ends[*code];
        rows[*at as usize] = *row as u16;
        *at += 1;
    }
    for (halves, word) in head.chunks_exact_mut(2).zip(std::iter::once(count as u32).chain(ends)) {
        halves.copy_from_slice(&[word as u16, (word >> 16) as u16]);
    }
    known
}

/// What [`encode`] gave.
#[derive(Clone, Copy)]
pub(super) struct RowsByCode<'a> {
    ends: &'a [u16],
    rows: &'a [u16],
}

impl RowsByCode<'_> {
    pub fn of(known: &[u16]) -> Option<RowsByCode<'_>> {
        let (count, known) = known.split_at_checked(2)?;
        let (ends, rows) = known.split_at_checked(2 * word(count, 0)?)?;
        Some(RowsByCode { ends, rows })
    }

    /// The rows of some codes, by code.
    pub fn of_codes(&self, codes: Range<usize>) -> &[u16] {
        let end = codes.end.min(self.ends.len() / 2);
        if codes.start >= end {
            return &[];
        }
        let from = if codes.start == 0 { Some(0) } else { word(self.ends, codes.start - 1) };
        let range = from.zip(word(self.ends, end - 1));
        range.and_then(|(from, to)| self.rows.get(from..to)).unwrap_or_default()
    }
}

fn word(halves: &[u16], at: usize) -> Option<usize> {
    Some(usize::from(*halves.get(2 * at)?) | usize::from(*halves.get(2 * at + 1)?) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_codes() {
        let mut random = fastrand::Rng::with_seed(12);
        for (rows, codes) in [(0, 1), (1, 1), (5_000, 65_536), (65_536, 3), (65_536, 5_000)] {
            let of: Vec<(usize, usize)> =
                (0..rows).filter(|row| row % 9 > 0).map(|row| (row, random.usize(0..codes))).collect();
            let known = encode(&of);
            let known = RowsByCode::of(&known).unwrap();
            for (first, end) in (0..50).map(|_| (random.usize(0..codes), random.usize(0..codes + 2))) {
                let mut expected: Vec<u16> =
                    of.iter().filter(|(_, code)| (first..end).contains(code)).map(|(row, _)| *row as u16).collect();
                let mut found = known.of_codes(first..end).to_vec();
                assert!(end != first + 1 || found == expected, "those of one code are in order");
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "{rows} rows, codes {first} to {end} of {codes}");
            }
            assert_eq!(known.of_codes(codes..usize::MAX), [0_u16; 0], "of no code");
        }
        assert!(RowsByCode::of(&encode(&[(0, CODES_MAX), (1, 2)])).is_none(), "too many to be told apart");
    }
}
