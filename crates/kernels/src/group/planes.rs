//! Accumulates groups that are numbered beforehand, for example by symbol id, without a lookup.
//!
//! The state of a group is stored at its number, its place, in a plane per fold. Long runs of rows with one place are
//! accumulated separately, so that no addition waits for the store of the previous row. Several words per place, used
//! by rows in rotation, cost more than they save from four places on (`examples/planes_speed.rs`).

use super::digits::{DigitSums, Digits};
use super::fold::{Fold, FoldInput, FoldValues, Folds, PICKED_WORDS, floats};
use super::runs::runs;
use crate::{alp, dispatch};
use std::cell::LazyCell;

/// Average run length, in rows, from which runs are added separately.
const RUN_ROWS: usize = 24;

/// Accumulators of each place.
#[derive(Debug)]
pub struct GroupPlanes {
    folds: Folds,
    places: usize,
    /// Row counts by place, then the words of each fold by place. The word of `Fold::Present` counts rows without a
    /// value.
    planes: Vec<u64>,
    /// Sums of digits by input that are not yet in `planes`.
    digits: Vec<Option<DigitSums>>,
    /// The first input with digits, which also counts rows.
    counting: Option<usize>,
    /// The words of a place while only this place gets rows.
    scratch: Vec<u64>,
}

impl GroupPlanes {
    #[must_use]
    pub fn new(folds: Folds, places: usize) -> GroupPlanes {
        // A plane without places would be indistinguishable from the next plane.
        let places = places.max(1);
        let mut planes = vec![0; places];
        for fold in folds.as_slice() {
            planes.resize(planes.len() + places, start(*fold));
        }
        GroupPlanes { folds, places, planes, digits: Vec::new(), counting: None, scratch: Vec::new() }
    }

    /// Returns the allocated bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.planes.capacity() * 8 + self.digits.iter().flatten().map(DigitSums::bytes).sum::<usize>()
    }

    /// Returns the number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Adds places after the existing ones.
    pub fn grow(&mut self, places: usize) {
        if places <= self.places {
            return;
        }
        (0..self.digits.len()).for_each(|input| self.settle(input));
        self.digits.clear();
        let mut planes = Vec::with_capacity(places * (1 + self.folds.as_slice().len()));
        let starts = std::iter::once(0).chain(self.folds.as_slice().iter().map(|fold| start(*fold)));
        for (plane, start) in self.planes.chunks_exact(self.places).zip(starts) {
            planes.extend_from_slice(plane);
            planes.resize(planes.len() + places - self.places, start);
        }
        (self.planes, self.places) = (planes, places);
    }

    /// Adds rows to their places.
    ///
    /// # Panics
    /// Panics if a place does not exist.
    pub fn add(&mut self, places: &[u32], inputs: &[FoldInput<'_>]) {
        if are_runs(places) {
            return self.add_runs(places, inputs);
        }
        let (rows, planes) = self.planes.split_at_mut(self.places);
        let mut is_counted = false;
        for (at, fold) in self.folds.as_slice().iter().enumerate() {
            let planes = &mut planes[at * self.places..];
            if let Fold::PickedTime(pick) = fold {
                pick.add(planes, [1, self.places], places.iter().copied(), inputs);
                continue;
            }
            let plane = &mut planes[..self.places];
            match *fold {
                Fold::Rows => {}
                Fold::Present(input) => {
                    for (place, present) in places.iter().zip(inputs[input].present.unwrap_or_default()) {
                        plane[*place as usize] += u64::from(1 - present);
                    }
                }
                Fold::SumFloat(input) => match floats(&inputs[input]) {
                    // Summed together with the row count, which is at another address.
                    (values, None) if !is_counted && values.len() == places.len() => {
                        count_and_sum(rows, plane, places, values);
                        is_counted = true;
                    }
                    _ => fold.add(plane, 1, 0, places, inputs),
                },
                fold => fold.add(plane, 1, 0, places, inputs),
            }
        }
        if !is_counted {
            places.iter().for_each(|place| rows[*place as usize] += 1);
        }
    }

    /// Adds the rows of a vector if inputs are only summed or counted and every row has a value of each.
    ///
    /// `digits` has the summed inputs, the same at each call and at least one. Other inputs are `None`.
    ///
    /// # Panics
    /// Panics if a place does not exist.
    pub fn add_digits(&mut self, places: &[u32], digits: &[Option<Digits<'_>>]) {
        let are_runs = LazyCell::new(|| are_runs(places));
        self.digits.resize_with(digits.len().max(self.digits.len()), || None);
        self.counting = digits.iter().position(Option::is_some);
        for (input, digits) in digits.iter().enumerate().filter_map(|(input, own)| Some((input, own.as_ref()?))) {
            if self.digits[input].as_ref().is_some_and(|sums| !sums.has_room(digits)) {
                self.settle(input);
            }
            let sums = self.digits[input].get_or_insert_with(|| DigitSums::new(self.places));
            sums.add(places, || *are_runs, digits);
            if !digits.others.is_empty() {
                self.add_others(input, places, digits);
            }
        }
    }

    /// Adds the rows whose number is not in the digits.
    fn add_others(&mut self, input: usize, places: &[u32], digits: &Digits<'_>) {
        let own: Vec<u32> = digits.others.iter().map(|row| places[*row as usize]).collect();
        let (rows, planes) = self.planes.split_at_mut(self.places);
        if self.counting == Some(input) {
            own.iter().for_each(|place| rows[*place as usize] += 1);
        }
        let nothing = FoldInput { values: FoldValues::Nothing, present: None };
        let mut inputs = vec![nothing; input];
        inputs.push(FoldInput { values: digits.numbers, present: None });
        for (fold, plane) in self.folds.as_slice().iter().zip(planes.chunks_exact_mut(self.places)) {
            if matches!(fold, Fold::SumInt(of) | Fold::SumFloat(of) if *of == input) {
                fold.add(plane, 1, 0, &own, &inputs);
            }
        }
    }

    /// Moves the sums of digits into the planes.
    fn settle(&mut self, input: usize) {
        let Some(sums) = &mut self.digits[input] else { return };
        let (rows, planes) = self.planes.split_at_mut(self.places);
        let (folds, places, is_counting) = (self.folds.as_slice(), self.places, self.counting == Some(input));
        sums.take(|place, count, sum, scale| {
            if is_counting {
                rows[place] += count;
            }
            for (fold, plane) in folds.iter().zip(planes.chunks_exact_mut(places)) {
                let own = match *fold {
                    Fold::SumInt(of) if of == input => sum.cast_unsigned(),
                    Fold::SumFloat(of) if of == input => alp::value::<f64>(sum, scale).to_bits(),
                    _ => continue,
                };
                plane[place] = fold.joined(plane[place], own);
            }
        });
    }

    fn add_runs(&mut self, places: &[u32], inputs: &[FoldInput<'_>]) {
        let mut own = Vec::with_capacity(inputs.len());
        for (place, rows) in runs(places) {
            own.clear();
            own.extend(inputs.iter().map(|input| input.part(rows.clone())));
            self.add_all(place, rows.len(), &own);
        }
    }

    /// Adds rows to one place.
    ///
    /// # Panics
    /// Panics if the place does not exist.
    pub fn add_all(&mut self, place: u32, rows: usize, inputs: &[FoldInput<'_>]) {
        let at = place as usize;
        let mut state = std::mem::take(&mut self.scratch);
        state.clear();
        state.extend(self.folds.start());
        self.folds.add_all(&mut state, rows, inputs);
        let (counts, planes) = self.planes.split_at_mut(self.places);
        counts[at] += rows as u64;
        for (number, fold) in self.folds.as_slice().iter().enumerate() {
            let word = |number: usize| number * self.places + at;
            let own = state[number];
            match fold {
                Fold::Rows => {}
                Fold::Present(_) => planes[word(number)] += rows as u64 - own,
                Fold::PickedTime(pick) => {
                    let words: [usize; PICKED_WORDS] = std::array::from_fn(|behind| word(number + behind));
                    let mut known = words.map(|word| planes[word]);
                    pick.join(&mut known, &state[number..number + PICKED_WORDS]);
                    words.iter().zip(known).for_each(|(word, known)| planes[*word] = known);
                }
                fold => planes[word(number)] = fold.joined(planes[word(number)], own),
            }
        }
        self.scratch = state;
    }

    /// Appends the places that have rows and their words in sequence, and clears all places.
    pub fn take(&mut self, places: &mut Vec<u32>, states: &mut Vec<u64>) {
        (0..self.digits.len()).for_each(|input| self.settle(input));
        let folds = self.folds.as_slice();
        let (rows, planes) = self.planes.split_at_mut(self.places);
        for (place, rows) in rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            places.push(place as u32);
            for (fold, plane) in folds.iter().zip(planes.chunks_exact(self.places)) {
                states.push(match fold {
                    Fold::Rows => *rows,
                    Fold::Present(_) => rows - plane[place],
                    _ => plane[place],
                });
            }
        }
        rows.fill(0);
        for (fold, plane) in folds.iter().zip(planes.chunks_exact_mut(self.places)) {
            plane.fill(start(*fold));
        }
    }
}

/// Returns the start value of a plane.
fn start(fold: Fold) -> u64 {
    if matches!(fold, Fold::Present(_)) { 0 } else { fold.start() }
}

fn count_and_sum(rows: &mut [u64], sums: &mut [u64], places: &[u32], values: &[f64]) {
    // Equal lengths require only one bounds check.
    let sums = &mut sums[..rows.len()];
    for (place, value) in places.iter().zip(values) {
        let at = *place as usize;
        rows[at] += 1;
        sums[at] = (f64::from_bits(sums[at]) + value).to_bits();
    }
}

/// Returns true if rows of one place are mostly adjacent.
fn are_runs(places: &[u32]) -> bool {
    changes(places) * RUN_ROWS < places.len()
}

dispatch! {
    /// Counts the rows whose place differs from the previous row's place.
    fn changes(places: &[u32]) -> usize {
        let Some(behind) = places.get(1..) else { return 0 };
        // Chunks of 1,024 rows are summed in 32 bits.
        let count = |(a, b): (&[u32], &[u32])| a.iter().zip(b).map(|(a, b)| u32::from(a != b)).sum::<u32>() as usize;
        places[..behind.len()].chunks(1024).zip(behind.chunks(1024)).map(count).sum()
    }
}

dispatch! {
    /// Writes the end of each run of equal values to `ends`.
    pub fn run_ends(values: &[i64], ends: &mut Vec<usize>) {
        ends.clear();
        let Some(first) = values.first() else { return };
        // A single run is the common case.
        if values.iter().fold(0, |bits, value| bits | (value ^ first)) != 0 {
            for (at, pair) in values.windows(2).enumerate() {
                if pair[0] != pair[1] {
                    ends.push(at + 1);
                }
            }
        }
        ends.push(values.len());
    }
}

dispatch! {
    /// Adds `(code + 1) · stride` to the places of rows that have a code; place 0 is the place of NULL.
    ///
    /// If `is_first` is true, the old values of `places` count as 0. Returns the greatest code, or `None` if no row has
    /// one.
    ///
    /// # Panics
    /// Panics if there are fewer codes than places.
    #[must_use]
    pub fn add_codes(
        codes: &[u32],
        present: Option<&[u8]>,
        stride: u32,
        is_first: bool,
        places: &mut [u32],
    ) -> Option<u32> {
        let codes = &codes[..places.len()];
        let (mut greatest, mut any) = (0, u8::from(present.is_none() && !places.is_empty()));
        if is_first && present.is_some() {
            places.fill(0);
        }
        match present {
            None => {
                let kept = u32::from(is_first).wrapping_sub(1);
                for (place, code) in places.iter_mut().zip(codes) {
                    greatest = greatest.max(*code);
                    *place = (*place & kept).wrapping_add(code.wrapping_add(1).wrapping_mul(stride));
                }
            }
            Some(present) => {
                for ((place, code), present) in places.iter_mut().zip(codes).zip(present) {
                    let code = *code * u32::from(*present);
                    greatest = greatest.max(code);
                    any |= present;
                    *place = place.wrapping_add(code.wrapping_add(u32::from(*present)).wrapping_mul(stride));
                }
            }
        }
        (any != 0).then_some(greatest)
    }
}

dispatch! {
    /// Appends a byte for each of the first `rows` bits.
    pub fn extend_bytes(words: &[u64], rows: usize, out: &mut Vec<u8>) {
        for (at, word) in words.iter().enumerate().take(rows.div_ceil(64)) {
            let mut bytes = [0_u8; 64];
            for (bit, byte) in bytes.iter_mut().enumerate() {
                *byte = (word >> bit & 1) as u8;
            }
            out.extend_from_slice(&bytes[..64.min(rows - at * 64)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold::{FoldValues, Pick};
    use super::*;

    const LAST: Pick = Pick { value: 0, time: 1, is_latest: true, skips_null: false };
    const FIRST: Pick = Pick { is_latest: false, skips_null: true, ..LAST };
    const FOLDS: [Fold; 14] = [
        Fold::PickedTime(LAST),
        Fold::PickedValue(LAST),
        Fold::PickedPresent(LAST),
        Fold::Rows,
        Fold::SumFloat(0),
        Fold::Present(0),
        Fold::Present(1),
        Fold::SumInt(1),
        Fold::MinInt(1),
        Fold::MaxInt(1),
        Fold::PickedTime(FIRST),
        Fold::PickedValue(FIRST),
        Fold::PickedPresent(FIRST),
        Fold::MaxFloat(0),
    ];

    /// Reference implementation, row by row.
    fn plainly(places: &[u32], count: usize, inputs: &[FoldInput<'_>]) -> (Vec<u32>, Vec<u64>) {
        let folds = Folds::new(FOLDS.to_vec());
        let (mut kept, mut states) = (Vec::new(), Vec::new());
        for place in 0..count as u32 {
            let rows: Vec<usize> = (0..places.len()).filter(|row| places[*row] == place).collect();
            if !rows.is_empty() {
                kept.push(place);
                let mut own: Vec<u64> = folds.start().collect();
                rows.iter().for_each(|row| {
                    folds.add_all(&mut own, 1, &inputs.iter().map(|i| i.part(*row..*row + 1)).collect::<Vec<_>>())
                });
                states.extend(own);
            }
        }
        (kept, states)
    }

    #[test]
    fn planes_hold_what_rows_of_each_place_say() {
        let mut random = fastrand::Rng::with_seed(6);
        for (rows, count, run) in [
            (0, 3, 1),
            (1, 1, 1),
            (999, 1, 1),
            (1024, 5, 1),
            (1024, 5, 300),
            (1024, 256, 1),
            (1024, 257, 2),
            (3000, 9000, 1),
            (700, 700, 90),
        ] {
            let mut planes = GroupPlanes::new(Folds::new(FOLDS.to_vec()), count);
            // The planes are reused after they were emptied.
            for round in 0..3 {
                let mut places: Vec<u32> = Vec::new();
                while places.len() < rows {
                    let place = random.u32(..count as u32);
                    places.resize((places.len() + random.usize(1..=run)).min(rows), place);
                }
                // Quarters are added exactly.
                let floats: Vec<f64> = (0..rows).map(|_| f64::from(random.i32(-900..900)) / 4.0).collect();
                let ints: Vec<i64> = (0..rows).map(|_| random.i64(-900..900)).collect();
                let present: Vec<u8> = (0..rows).map(|_| random.u8(0..2)).collect();
                let inputs = [
                    FoldInput { values: FoldValues::Floats(&floats), present: (round == 1).then_some(&present) },
                    FoldInput { values: FoldValues::Ints(&ints), present: (round > 0).then_some(&present) },
                ];
                let expected = plainly(&places, count, &inputs);
                planes.add(&places, &inputs);
                let (mut kept, mut states) = (Vec::new(), Vec::new());
                planes.take(&mut kept, &mut states);
                assert_eq!((kept, states), expected, "{rows} rows of {count} places");
            }
        }
    }

    #[test]
    fn sums_keep_minus_zero_and_what_is_no_number() {
        let folds = Folds::new(vec![Fold::SumFloat(0), Fold::MinFloat(0)]);
        let values = [-0.0, f64::NAN, -0.0, f64::INFINITY, -0.0, 1.0];
        let inputs = [FoldInput { values: FoldValues::Floats(&values), present: None }];
        let mut planes = GroupPlanes::new(folds, 3);
        planes.add(&[0, 1, 0, 2, 0, 2], &inputs);
        let (mut places, mut states) = (Vec::new(), Vec::new());
        planes.take(&mut places, &mut states);
        let sums: Vec<f64> = states.iter().step_by(2).map(|bits| f64::from_bits(*bits)).collect();
        assert!(
            sums[0] == 0.0 && sums[0].is_sign_negative() && sums[1].is_nan() && sums[2] == f64::INFINITY,
            "{sums:?}"
        );
    }

    #[test]
    fn places_of_codes() {
        let mut places = vec![7; 4];
        assert_eq!(add_codes(&[0, 5, 2, 1], None, 10, false, &mut places), Some(5));
        assert_eq!(places, [17, 67, 37, 27]);
        // Codes of rows without a code are ignored.
        assert_eq!(add_codes(&[u32::MAX, 4, 9, 0], Some(&[0, 1, 0, 1]), 1, false, &mut places), Some(4));
        assert_eq!(places, [17, 72, 37, 28]);
        assert_eq!(add_codes(&[9; 4], Some(&[0; 4]), 1, false, &mut places), None);
        // The previous places are discarded.
        assert_eq!(add_codes(&[0, 5, 2, 1], None, 10, true, &mut places), Some(5));
        assert_eq!(places, [10, 60, 30, 20]);
        assert_eq!(add_codes(&[9, 4, 9, 0], Some(&[0, 1, 0, 1]), 2, true, &mut places), Some(4));
        assert_eq!(places, [0, 10, 0, 2]);
    }

    #[test]
    fn ends_of_runs() {
        let ends = |values: &[i64]| {
            let mut ends = vec![9];
            run_ends(values, &mut ends);
            ends
        };
        assert!(ends(&[]).is_empty());
        assert_eq!(ends(&[5]), [1]);
        assert_eq!(ends(&[5; 70]), [70]);
        assert_eq!(ends(&[1, 1, i64::MIN, 1, 2, 2]), [2, 3, 4, 6]);
    }

    #[test]
    fn bytes_of_bits() {
        let mut random = fastrand::Rng::with_seed(7);
        for rows in [0, 1, 63, 64, 65, 1000] {
            let words: Vec<u64> = (0..16).map(|_| random.u64(..)).collect();
            let mut bytes = Vec::new();
            extend_bytes(&words, rows, &mut bytes);
            let expected: Vec<u8> = (0..rows).map(|row| (words[row / 64] >> (row % 64) & 1) as u8).collect();
            assert_eq!(bytes, expected);
        }
    }
}
