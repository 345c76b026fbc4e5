//! Accumulators of groups.

use crate::{dispatch, sum_floats};
use std::ops::Range;

/// One word of a group, with the rules for adding rows and merging groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The number of rows.
    Rows,
    /// The number of rows with a value.
    Present(usize),
    /// The sum of integers, modulo 2⁶⁴.
    SumInt(usize),
    SumFloat(usize),
    MinInt(usize),
    MaxInt(usize),
    /// Ordered by [`order_of_float`]; the word contains its result.
    MinFloat(usize),
    MaxFloat(usize),
    /// The time of the selected row. The next two words are [`Fold::PickedValue`] and [`Fold::PickedPresent`] of the
    /// same `Pick`.
    PickedTime(Pick),
    /// The bits of the selected row's value.
    PickedValue(Pick),
    /// 1 if the selected row has a value; 0 if it has none or there is no row.
    PickedPresent(Pick),
}

/// Selects the row of a group with the earliest or the latest time (arg_min / arg_max).
///
/// Ties are broken by the order of addition: the first row with the earliest time, the last row with the latest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pick {
    pub value: usize,
    /// Index of an input of integers. Rows without a time are skipped.
    pub time: usize,
    pub is_latest: bool,
    /// True if rows without a value are skipped.
    pub skips_null: bool,
}

/// Number of words of a [`Pick`]: time, value, presence.
pub(super) const PICKED_WORDS: usize = 3;

/// The values of one input in a batch. `present` is 1 for rows with a value and 0 for rows without a value.
///
/// Values of rows without a value are ignored.
#[derive(Clone, Copy, Debug)]
pub struct FoldInput<'a> {
    pub values: FoldValues<'a>,
    pub present: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug)]
pub enum FoldValues<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    /// Only the presence of a value is used.
    Nothing,
}

impl<'a> FoldInput<'a> {
    /// Returns a range of the rows.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> FoldInput<'a> {
        let values = match self.values {
            FoldValues::Ints(values) => FoldValues::Ints(values.get(rows.clone()).unwrap_or_default()),
            FoldValues::Floats(values) => FoldValues::Floats(values.get(rows.clone()).unwrap_or_default()),
            FoldValues::Nothing => FoldValues::Nothing,
        };
        FoldInput { values, present: self.present.map(|present| &present[rows]) }
    }
}

/// The folds of a query, in the order of the words of a group. The number in a [`Fold`] is the index of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds(Vec<Fold>);

/// Converts floating point to an integer with the order of SQL: all NaNs are equal and greatest.
///
/// −0 sorts before 0, so that [`float_of_order`] restores both.
#[inline(always)]
#[must_use]
pub fn order_of_float(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Returns the number from which [`order_of_float`] computed `order`.
#[inline]
#[must_use]
pub fn float_of_order(order: i64) -> f64 {
    if order == i64::MAX {
        return f64::NAN;
    }
    f64::from_bits((order ^ ((order >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
}

impl Fold {
    /// Returns the word of a group without rows.
    #[must_use]
    pub fn start(self) -> u64 {
        match self {
            Fold::Rows | Fold::Present(_) | Fold::SumInt(_) | Fold::PickedValue(_) | Fold::PickedPresent(_) => 0,
            Fold::PickedTime(pick) if pick.is_latest => i64::MIN.cast_unsigned(),
            Fold::PickedTime(_) => i64::MAX.cast_unsigned(),
            // −0 is the neutral element: it does not change the sum of −0 alone.
            Fold::SumFloat(_) => (-0.0_f64).to_bits(),
            Fold::MinInt(_) | Fold::MinFloat(_) => i64::MAX.cast_unsigned(),
            Fold::MaxInt(_) | Fold::MaxFloat(_) => i64::MIN.cast_unsigned(),
        }
    }

    /// Adds each row to its group, whose word is `states[group * words + at]`.
    ///
    /// Folds that count rows add only the rows of batches with missing values.
    #[inline]
    pub(super) fn add(self, states: &mut [u64], words: usize, at: usize, groups: &[u32], inputs: &[FoldInput<'_>]) {
        let places = Places { states, groups, words, at };
        match self {
            Fold::Rows => {}
            Fold::Present(input) => {
                if let Some(present) = inputs[input].present {
                    places.each(present, None, |n, p| n + u64::from(p));
                }
            }
            Fold::SumInt(input) => {
                let (values, present) = ints(&inputs[input]);
                places.each(values, present, |sum, v| sum.wrapping_add(v.cast_unsigned()));
            }
            Fold::SumFloat(input) => {
                let (values, present) = floats(&inputs[input]);
                places.each(values, present, |sum, v| (f64::from_bits(sum) + v).to_bits());
            }
            Fold::MinInt(input) => {
                let (values, present) = ints(&inputs[input]);
                places.each(values, present, |least, v| least.cast_signed().min(v).cast_unsigned());
            }
            Fold::MaxInt(input) => {
                let (values, present) = ints(&inputs[input]);
                places.each(values, present, |most, v| most.cast_signed().max(v).cast_unsigned());
            }
            Fold::MinFloat(input) => {
                let (values, present) = floats(&inputs[input]);
                places.each(values, present, |least, v| least.cast_signed().min(order_of_float(v)).cast_unsigned());
            }
            Fold::MaxFloat(input) => {
                let (values, present) = floats(&inputs[input]);
                places.each(values, present, |most, v| most.cast_signed().max(order_of_float(v)).cast_unsigned());
            }
            Fold::PickedTime(pick) => pick.add(&mut states[at..], [words, 1], groups.iter().copied(), inputs),
            Fold::PickedValue(_) | Fold::PickedPresent(_) => {}
        }
    }

    /// Merges the words of two groups. Words of a [`Pick`] cannot be merged one by one; see [`Folds::join`].
    #[inline]
    #[must_use]
    pub fn joined(self, a: u64, b: u64) -> u64 {
        match self {
            Fold::Rows | Fold::Present(_) | Fold::SumInt(_) => a.wrapping_add(b),
            Fold::SumFloat(_) => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
            Fold::MinInt(_) | Fold::MinFloat(_) => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
            Fold::MaxInt(_) | Fold::MaxFloat(_) => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
            Fold::PickedTime(_) | Fold::PickedValue(_) | Fold::PickedPresent(_) => a,
        }
    }
}

impl Pick {
    /// Returns the folds of the three words, in their order.
    #[must_use]
    pub fn folds(self) -> [Fold; PICKED_WORDS] {
        [Fold::PickedTime(self), Fold::PickedValue(self), Fold::PickedPresent(self)]
    }

    /// Adds each row to its group. `words` starts with the time of the first group.
    ///
    /// `strides` are the distances from one group to the next and from one word to the next.
    pub(super) fn add(
        self,
        words: &mut [u64],
        strides: [usize; 2],
        groups: impl Iterator<Item = u32>,
        inputs: &[FoldInput<'_>],
    ) {
        let (times, timed) = ints(&inputs[self.time]);
        let FoldInput { values, present } = inputs[self.value];
        let rows = Rows { times, timed, values, present, skips_null: self.skips_null };
        if self.is_latest {
            rows.offer(groups, words, strides, |time, known| time >= known);
        } else {
            rows.offer(groups, words, strides, |time, known| time < known);
        }
    }

    /// Merges two groups; the rows of `other` were added later.
    #[inline]
    pub(super) fn join(self, state: &mut [u64], other: &[u64]) {
        let (known, time) = (state[0].cast_signed(), other[0].cast_signed());
        // The start value of the time is beyond every row's time, so a group without rows does not win.
        let is_better = if self.is_latest { time >= known && other != self.start() } else { time < known };
        if is_better {
            state.copy_from_slice(other);
        }
    }

    fn start(self) -> [u64; PICKED_WORDS] {
        self.folds().map(Fold::start)
    }
}

/// The rows of a batch, as candidates of a [`Pick`].
#[derive(Clone, Copy)]
struct Rows<'a> {
    times: &'a [i64],
    timed: Option<&'a [u8]>,
    values: FoldValues<'a>,
    present: Option<&'a [u8]>,
    skips_null: bool,
}

impl Rows<'_> {
    #[inline]
    fn offer(
        self,
        groups: impl Iterator<Item = u32>,
        words: &mut [u64],
        [of_group, of_word]: [usize; 2],
        is_better: impl Fn(i64, i64) -> bool,
    ) {
        let Rows { times, timed, values, present, skips_null } = self;
        let bits = |row: usize| match values {
            FoldValues::Ints(values) => values[row].cast_unsigned(),
            FoldValues::Floats(values) => values[row].to_bits(),
            FoldValues::Nothing => 0,
        };
        let mut offer = |row: usize, group: u32, time: i64, present: u64| {
            let at = group as usize * of_group;
            if is_better(time, words[at].cast_signed()) {
                words[at] = time.cast_unsigned();
                words[at + of_word] = bits(row);
                words[at + 2 * of_word] = present;
            }
        };
        let rows = groups.zip(times).enumerate();
        if timed.is_none() && present.is_none() {
            rows.for_each(|(row, (group, time))| offer(row, group, *time, 1));
            return;
        }
        for (row, (group, time)) in rows {
            let present = present.map_or(1, |present| u64::from(present[row]));
            if timed.is_none_or(|timed| timed[row] != 0) && (present != 0 || !skips_null) {
                offer(row, group, *time, present);
            }
        }
    }
}

impl Folds {
    #[must_use]
    pub fn new(folds: Vec<Fold>) -> Folds {
        Folds(folds)
    }

    #[must_use]
    pub fn as_slice(&self) -> &[Fold] {
        &self.0
    }

    /// Returns the number of words of a group.
    #[must_use]
    pub fn words(&self) -> usize {
        self.0.len()
    }

    /// Returns the words of a group without rows.
    pub fn start(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|fold| fold.start())
    }

    /// Adds each row to its group, whose words are `states[group * words..][..words]`.
    pub fn add(&self, states: &mut [u64], groups: &[u32], inputs: &[FoldInput<'_>]) {
        self.add_rows(states, groups, inputs);
        for (at, fold) in self.0.iter().enumerate() {
            fold.add(states, self.words(), at, groups, inputs);
        }
    }

    /// Adds rows to all folds that count every row of this batch, in one loop.
    fn add_rows(&self, states: &mut [u64], groups: &[u32], inputs: &[FoldInput<'_>]) {
        let words = self.words();
        let counts = |fold: &Fold| match *fold {
            Fold::Rows => true,
            Fold::Present(input) => inputs[input].present.is_none(),
            _ => false,
        };
        let ats: Vec<usize> = (0..words).filter(|at| counts(&self.0[*at])).collect();
        match *ats.as_slice() {
            [] => {}
            [at] => groups.iter().for_each(|group| states[*group as usize * words + at] += 1),
            [a, b] => groups.iter().for_each(|group| {
                let state = &mut states[*group as usize * words..][..words];
                state[a] += 1;
                state[b] += 1;
            }),
            ref many => groups.iter().for_each(|group| {
                let state = &mut states[*group as usize * words..][..words];
                many.iter().for_each(|at| state[*at] += 1);
            }),
        }
    }

    /// Adds all `rows` rows to one group with the words `state`.
    pub fn add_all(&self, state: &mut [u64], rows: usize, inputs: &[FoldInput<'_>]) {
        for (at, fold) in self.0.iter().enumerate() {
            let own = match *fold {
                Fold::PickedTime(pick) => {
                    pick.add(&mut state[at..], [0, 1], std::iter::repeat_n(0, rows), inputs);
                    continue;
                }
                Fold::PickedValue(_) | Fold::PickedPresent(_) => continue,
                Fold::Rows => rows as u64,
                Fold::Present(input) => match inputs[input].present {
                    Some(present) => present.iter().map(|p| u64::from(*p)).sum(),
                    None => rows as u64,
                },
                Fold::SumInt(input) => {
                    let (values, present) = ints(&inputs[input]);
                    all(values, present, 0_i64, i64::wrapping_add, i64::wrapping_add).cast_unsigned()
                }
                Fold::SumFloat(input) => {
                    let (values, present) = floats(&inputs[input]);
                    let sum = match present {
                        None => sum_floats(values),
                        Some(_) => all(values, present, -0.0_f64, |sum, v| sum + v, |a, b| a + b),
                    };
                    sum.to_bits()
                }
                Fold::MinInt(input) => match ints(&inputs[input]) {
                    (values, None) => least_int(values),
                    (values, present) => all(values, present, i64::MAX, i64::min, i64::min),
                }
                .cast_unsigned(),
                Fold::MaxInt(input) => match ints(&inputs[input]) {
                    (values, None) => greatest_int(values),
                    (values, present) => all(values, present, i64::MIN, i64::max, i64::max),
                }
                .cast_unsigned(),
                Fold::MinFloat(input) => match floats(&inputs[input]) {
                    (values, None) => least_float(values),
                    (values, present) => all(values, present, i64::MAX, |a, v| a.min(order_of_float(v)), i64::min),
                }
                .cast_unsigned(),
                Fold::MaxFloat(input) => match floats(&inputs[input]) {
                    (values, None) => greatest_float(values),
                    (values, present) => all(values, present, i64::MIN, |a, v| a.max(order_of_float(v)), i64::max),
                }
                .cast_unsigned(),
            };
            state[at] = fold.joined(state[at], own);
        }
    }

    /// Merges the words of one group into another group.
    #[inline]
    pub fn join(&self, state: &mut [u64], other: &[u64]) {
        for (at, fold) in self.0.iter().enumerate() {
            match fold {
                Fold::PickedTime(pick) => pick.join(&mut state[at..at + PICKED_WORDS], &other[at..at + PICKED_WORDS]),
                Fold::PickedValue(_) | Fold::PickedPresent(_) => {}
                fold => state[at] = fold.joined(state[at], other[at]),
            }
        }
    }
}

fn ints<'a>(input: &FoldInput<'a>) -> (&'a [i64], Option<&'a [u8]>) {
    match input.values {
        FoldValues::Ints(values) => (values, input.present),
        _ => (&[], input.present),
    }
}

pub(super) fn floats<'a>(input: &FoldInput<'a>) -> (&'a [f64], Option<&'a [u8]>) {
    match input.values {
        FoldValues::Floats(values) => (values, input.present),
        _ => (&[], input.present),
    }
}

/// The words of one fold.
struct Places<'a> {
    states: &'a mut [u64],
    groups: &'a [u32],
    words: usize,
    at: usize,
}

impl Places<'_> {
    #[inline]
    fn each<T: Copy>(self, values: &[T], present: Option<&[u8]>, step: impl Fn(u64, T) -> u64) {
        let Places { states, groups, words, at } = self;
        match present {
            None => {
                for (group, value) in groups.iter().zip(values) {
                    let word = &mut states[*group as usize * words + at];
                    *word = step(*word, *value);
                }
            }
            Some(present) => {
                for ((group, value), present) in groups.iter().zip(values).zip(present) {
                    if *present != 0 {
                        let word = &mut states[*group as usize * words + at];
                        *word = step(*word, *value);
                    }
                }
            }
        }
    }
}

/// Independent lanes of a fold, so that it is not limited by the latency of each step.
const LANES: usize = 16;

/// Folds the values of rows that have one.
#[inline]
fn all<T: Copy, A: Copy>(
    values: &[T],
    present: Option<&[u8]>,
    start: A,
    step: impl Fn(A, T) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let Some(present) = present else { return in_lanes(values, start, step, join) };
    let present = values.iter().zip(present).filter(|(_, present)| **present != 0);
    present.fold(start, |sum, (value, _)| step(sum, *value))
}

#[inline(always)]
fn in_lanes<T: Copy, A: Copy>(values: &[T], start: A, step: impl Fn(A, T) -> A, join: impl Fn(A, A) -> A) -> A {
    let mut lanes = [start; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, *value);
    }
    lanes.into_iter().fold(start, join)
}

dispatch! {
    wide
    fn least_int(values: &[i64]) -> i64 {
        in_lanes(values, i64::MAX, i64::min, i64::min)
    }
}

dispatch! {
    wide
    fn greatest_int(values: &[i64]) -> i64 {
        in_lanes(values, i64::MIN, i64::max, i64::max)
    }
}

dispatch! {
    wide
    fn least_float(values: &[f64]) -> i64 {
        in_lanes(values, i64::MAX, |least, v| least.min(order_of_float(v)), i64::min)
    }
}

dispatch! {
    wide
    fn greatest_float(values: &[f64]) -> i64 {
        in_lanes(values, i64::MIN, |most, v| most.max(order_of_float(v)), i64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Pick = Pick { value: 1, time: 0, is_latest: false, skips_null: false };
    const LAST: Pick = Pick { is_latest: true, ..FIRST };

    #[test]
    fn a_row_is_picked_by_its_time_with_or_without_a_value() {
        let picks = [FIRST, LAST, Pick { skips_null: true, ..FIRST }, Pick { skips_null: true, ..LAST }];
        let folds = Folds::new(picks.iter().flat_map(|pick| pick.folds()).collect());
        let mut random = fastrand::Rng::with_seed(2);
        for round in 0..200 {
            let rows = random.usize(0..40);
            let few = if round % 2 == 0 { 6 } else { 1_000_000 };
            let times: Vec<i64> = (0..rows).map(|_| random.i64(-few..few)).collect();
            let floats: Vec<f64> = (0..rows).map(|row| row as f64).collect();
            let present: Vec<u8> = (0..rows).map(|_| random.u8(0..2)).collect();
            let timed: Vec<u8> = (0..rows).map(|_| u8::from(random.u8(0..5) > 0)).collect();
            let groups: Vec<u32> = (0..rows).map(|_| random.u32(0..3)).collect();
            let inputs = [
                FoldInput { values: FoldValues::Ints(&times), present: (round % 3 == 0).then_some(&timed[..]) },
                FoldInput { values: FoldValues::Floats(&floats), present: (round % 5 < 3).then_some(&present[..]) },
            ];
            // Rows are added at once, and in two parts that are merged.
            let start: Vec<u64> = folds.start().collect();
            let (mut states, mut parts) = (start.repeat(3), [start.repeat(3), start.repeat(3)]);
            folds.add(&mut states, &groups, &inputs);
            let cut = random.usize(0..=rows);
            for (part, range) in parts.iter_mut().zip([0..cut, cut..rows]) {
                folds.add(part, &groups[range.clone()], &inputs.map(|input| input.part(range.clone())));
            }
            let [mut joined, other] = parts;
            let words = folds.words();
            for (state, other) in joined.chunks_mut(words).zip(other.chunks(words)) {
                folds.join(state, other);
            }
            assert_eq!(joined, states);
            for (group, state) in states.chunks(words).enumerate() {
                for (at, pick) in picks.iter().enumerate() {
                    let is_there = |row: &usize| inputs[1].present.is_none_or(|p| p[*row] == 1);
                    let own = (0..rows).filter(|row| groups[*row] as usize == group);
                    let own = own.filter(|row| inputs[0].present.is_none_or(|p| p[*row] == 1));
                    let own = own.filter(|row| !pick.skips_null || is_there(row));
                    let picked = match pick.is_latest {
                        // The last of several equal candidates.
                        true => own.max_by_key(|row| times[*row]),
                        false => own.rev().min_by_key(|row| times[*row]).and_then(|least| {
                            (0..=least).find(|row| {
                                groups[*row] as usize == group
                                    && times[*row] == times[least]
                                    && inputs[0].present.is_none_or(|p| p[*row] == 1)
                                    && (!pick.skips_null || is_there(row))
                            })
                        }),
                    };
                    let value = picked.filter(is_there).map(|row| floats[row]);
                    let state = &state[at * PICKED_WORDS..][..PICKED_WORDS];
                    assert_eq!((state[2] == 1).then(|| f64::from_bits(state[1])), value, "{pick:?}");
                }
            }
            // All rows belong to one group.
            let (mut one, mut all) = (start.clone(), start.clone());
            folds.add_all(&mut one, rows, &inputs);
            folds.add(&mut all, &vec![0; rows], &inputs);
            assert_eq!(one, all);
        }
    }

    const ALL: [Fold; 9] = [
        Fold::Rows,
        Fold::Present(1),
        Fold::SumInt(0),
        Fold::SumFloat(1),
        Fold::MinInt(0),
        Fold::MaxInt(0),
        Fold::MinFloat(1),
        Fold::MaxFloat(1),
        Fold::Present(0),
    ];

    #[test]
    fn floats_keep_their_order() {
        let ordered =
            [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY, f64::NAN];
        for pair in ordered.windows(2) {
            assert!(order_of_float(pair[0]) < order_of_float(pair[1]), "{pair:?}");
        }
        assert!(order_of_float(-0.0) < order_of_float(0.0));
        assert!(float_of_order(order_of_float(-0.0)).is_sign_negative());
        assert_eq!(order_of_float(-f64::NAN), order_of_float(f64::NAN));
        for value in ordered.iter().filter(|v| !v.is_nan()) {
            assert_eq!(float_of_order(order_of_float(*value)), *value);
        }
        assert!(float_of_order(order_of_float(f64::NAN)).is_nan());
    }

    #[test]
    fn least_and_greatest_of_slices_of_all_lengths() {
        let mut random = fastrand::Rng::with_seed(4);
        for rows in (0..70).chain([1000, 1003]) {
            let ints: Vec<i64> = (0..rows).map(|_| random.i64(..)).collect();
            assert_eq!(least_int(&ints), ints.iter().copied().min().unwrap_or(i64::MAX));
            assert_eq!(greatest_int(&ints), ints.iter().copied().max().unwrap_or(i64::MIN));
            let odd = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY];
            let float = |random: &mut fastrand::Rng| match random.usize(..rows + 7) {
                n if n < odd.len() => odd[n],
                _ => random.f64() - 0.5,
            };
            let floats: Vec<f64> = (0..rows).map(|_| float(&mut random)).collect();
            let orders: Vec<i64> = floats.iter().map(|value| order_of_float(*value)).collect();
            assert_eq!(least_float(&floats), orders.iter().copied().min().unwrap_or(i64::MAX));
            assert_eq!(greatest_float(&floats), orders.iter().copied().max().unwrap_or(i64::MIN));
        }
    }

    #[test]
    fn groups_hold_what_their_rows_say() {
        let mut random = fastrand::Rng::with_seed(1);
        for rows in [0, 1, 7, 8, 9, 1000] {
            let ints: Vec<i64> = (0..rows).map(|_| random.i64(-50..50)).collect();
            let floats: Vec<f64> = (0..rows).map(|_| f64::from(random.i32(-50..50)) / 4.0).collect();
            let present: Vec<u8> = (0..rows).map(|_| random.u8(0..2)).collect();
            let groups: Vec<u32> = (0..rows).map(|_| random.u32(0..3)).collect();
            let inputs = [
                FoldInput { values: FoldValues::Ints(&ints), present: None },
                FoldInput { values: FoldValues::Floats(&floats), present: Some(&present) },
            ];
            let folds = Folds::new(ALL.to_vec());
            let start: Vec<u64> = folds.start().collect();
            let mut states = start.repeat(3);
            folds.add(&mut states, &groups, &inputs);
            let mut one = start.clone();
            folds.add_all(&mut one, rows, &inputs);
            let mut joined = start.clone();
            for group in 0..3_u32 {
                let state = &states[group as usize * ALL.len()..][..ALL.len()];
                folds.join(&mut joined, state);
                let own: Vec<usize> = (0..rows).filter(|r| groups[*r] == group).collect();
                let own_floats: Vec<f64> = own.iter().filter(|r| present[**r] == 1).map(|r| floats[*r]).collect();
                assert_eq!(state[0], own.len() as u64);
                assert_eq!(state[1], own_floats.len() as u64);
                assert_eq!(state[2].cast_signed(), own.iter().map(|r| ints[*r]).sum::<i64>());
                // Quarters are added exactly.
                assert_eq!(f64::from_bits(state[3]), own_floats.iter().sum::<f64>());
                assert_eq!(state[4].cast_signed(), own.iter().map(|r| ints[*r]).min().unwrap_or(i64::MAX));
                assert_eq!(state[5].cast_signed(), own.iter().map(|r| ints[*r]).max().unwrap_or(i64::MIN));
                let least = own_floats.iter().map(|v| order_of_float(*v)).min().unwrap_or(i64::MAX);
                assert_eq!(state[6].cast_signed(), least);
                let most = own_floats.iter().map(|v| order_of_float(*v)).max().unwrap_or(i64::MIN);
                assert_eq!(state[7].cast_signed(), most);
                assert_eq!(state[8], own.len() as u64);
            }
            assert_eq!(joined, one);
        }
    }
}
