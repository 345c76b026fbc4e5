//! Inverted index of a block: the rows of each code.
//!
//! ```text
//! count  u32 as two of 16 bits, the lower half first: how many codes
//! ends   as many of the like: where the rows of each end
//! rows   u16 each, those of a code in order
//! ```

use std::ops::Range;

/// Appends the index of a block of at most 65,536 rows to `out`. Rows for which `is_there` is false have no code.
pub(super) fn encode(codes: &[u16], is_there: impl Fn(usize) -> bool, out: &mut Vec<u16>) {
    let coded =
        || codes.iter().enumerate().filter(|(row, _)| is_there(*row)).map(|(row, code)| (row, usize::from(*code)));
    let count = coded().map(|(_, code)| code + 1).max().unwrap_or(0);
    // First the starts of the rows of each code; after the distribution their ends.
    let mut ends = vec![0_u32; count];
    coded().for_each(|(_, code)| ends[code] += 1);
    let mut all = 0;
    ends.iter_mut().for_each(|end| all += std::mem::replace(end, all));
    let head = out.len();
    out.resize(head + 2 + 2 * count + all as usize, 0);
    let (head, rows) = out[head..].split_at_mut(2 + 2 * count);
    for (row, code) in coded() {
        let at = &mut ends[code];
        rows[*at as usize] = row as u16;
        *at += 1;
    }
    for (halves, word) in head.chunks_exact_mut(2).zip(std::iter::once(count as u32).chain(ends)) {
        halves.copy_from_slice(&[word as u16, (word >> 16) as u16]);
    }
}

/// An index built by [`encode`].
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

    /// Returns the rows of some codes, in order of code.
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
            let of: Vec<u16> = (0..rows).map(|_| random.usize(0..codes) as u16).collect();
            let is_there = |row: usize| !row.is_multiple_of(9);
            let mut known = vec![7; 5];
            encode(&of, is_there, &mut known);
            assert_eq!(known[..5], [7; 5], "what was there stays");
            let known = RowsByCode::of(&known[5..]).unwrap();
            for (first, end) in (0..50).map(|_| (random.usize(0..codes), random.usize(0..codes + 2))) {
                let has = |row: &usize| is_there(*row) && (first..end).contains(&usize::from(of[*row]));
                let mut expected: Vec<u16> = (0..rows).filter(has).map(|row| row as u16).collect();
                let mut found = known.of_codes(first..end).to_vec();
                assert!(end != first + 1 || found == expected, "those of one code are in order");
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "{rows} rows, codes {first} to {end} of {codes}");
            }
            assert_eq!(known.of_codes(codes..usize::MAX), [0_u16; 0], "of no code");
        }
    }
}
