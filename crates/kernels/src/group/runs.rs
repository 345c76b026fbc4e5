//! Runs of adjacent rows with the same place.

use crate::dispatch;
use std::ops::Range;

/// Places that are compared without a branch for each.
const BLOCK: usize = 64;

/// Returns each run of equal places: the place and its rows.
pub(super) fn runs(places: &[u32]) -> impl Iterator<Item = (u32, Range<usize>)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let place = *places.get(from)?;
        let rows = from..from + first_run(&places[from..]);
        from = rows.end;
        Some((place, rows))
    })
}

dispatch! {
    /// Returns the number of places at the start that are equal to the first place.
    fn first_run(places: &[u32]) -> usize {
        let Some(first) = places.first() else { return 0 };
        let is_equal = |block: &&[u32; BLOCK]| block.iter().fold(0, |bits, place| bits | (place ^ first)) == 0;
        let equal = places.as_chunks::<BLOCK>().0.iter().take_while(is_equal).count() * BLOCK;
        equal + places[equal..].iter().take_while(|place| *place == first).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_all_lengths() {
        let mut random = fastrand::Rng::with_seed(5);
        for longest in [1, 3, 63, 64, 65, 500] {
            let places: Vec<u32> =
                (0..40).flat_map(|n| std::iter::repeat_n(n % 2, random.usize(1..=longest))).collect();
            let expected: Vec<&[u32]> = places.chunk_by(|a, b| a == b).collect();
            let found: Vec<&[u32]> = runs(&places).map(|(_, rows)| &places[rows]).collect();
            assert_eq!(found, expected);
            assert!(runs(&places).all(|(place, rows)| places[rows.start] == place));
        }
        assert_eq!(runs(&[]).count(), 0);
    }
}
