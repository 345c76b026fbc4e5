//! Sets of values of a column, as described by a WHERE clause: ranges of numbers, listed strings, or strings that match
//! a pattern.
//!
//! NULL is in no set. Invariant: ranges ascend, do not overlap, and are not empty; strings ascend.

use crate::{Bounds, TextPattern};
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq)]
pub enum ValueSet {
    Nothing,
    /// Every value of any type.
    All,
    /// Closed ranges. Booleans are 0 and 1, dates and timestamps are numbers, decimals are unscaled, symbols are ids.
    Ints(Vec<(i128, i128)>),
    /// Closed ranges. NaN equals itself and is greater than every number, −0 equals 0.
    Floats(Vec<(f64, f64)>),
    /// The listed strings, or all other strings.
    Texts {
        texts: Vec<Vec<u8>>,
        is_listed: bool,
    },
    /// Strings that match, or all other strings. Cannot be combined with other sets.
    Like {
        pattern: TextPattern,
        is_matching: bool,
    },
}

/// A number that has adjacent numbers.
trait Endpoint: Copy {
    const LEAST: Self;
    const GREATEST: Self;
    fn at_most(self, other: Self) -> bool;
    fn before(self) -> Option<Self>;
    fn after(self) -> Option<Self>;
}

impl Endpoint for i128 {
    const LEAST: i128 = i128::MIN;
    const GREATEST: i128 = i128::MAX;

    fn at_most(self, other: i128) -> bool {
        self <= other
    }

    fn before(self) -> Option<i128> {
        self.checked_sub(1)
    }

    fn after(self) -> Option<i128> {
        self.checked_add(1)
    }
}

impl Endpoint for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
    const GREATEST: f64 = f64::NAN;

    fn at_most(self, other: f64) -> bool {
        other.is_nan() || self <= other
    }

    fn before(self) -> Option<f64> {
        match self {
            v if v.is_nan() => Some(f64::INFINITY),
            f64::NEG_INFINITY => None,
            v => Some(v.next_down()),
        }
    }

    fn after(self) -> Option<f64> {
        match self {
            v if v.is_nan() => None,
            f64::INFINITY => Some(f64::NAN),
            v => Some(v.next_up()),
        }
    }
}

fn order<T: Endpoint>(a: T, b: T) -> Ordering {
    match (a.at_most(b), b.at_most(a)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// Sorts ranges, removes empty ones and joins overlapping ones.
fn normal<T: Endpoint>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.retain(|(lo, hi)| lo.at_most(*hi));
    ranges.sort_by(|a, b| order(a.0, b.0));
    let mut out: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (lo, hi) in ranges {
        match out.last_mut() {
            Some((_, last)) if lo.at_most(*last) => *last = if last.at_most(hi) { hi } else { *last },
            _ => out.push((lo, hi)),
        }
    }
    out
}

fn outside<T: Endpoint>(ranges: &[(T, T)]) -> Vec<(T, T)> {
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    let mut from = Some(T::LEAST);
    for (lo, hi) in ranges {
        if let (Some(from), Some(to)) = (from, lo.before()) {
            gaps.push((from, to));
        }
        from = hi.after();
    }
    gaps.extend(from.map(|from| (from, T::GREATEST)));
    normal(gaps)
}

/// Returns the first range that does not end before `value`.
fn range_at<T: Endpoint>(ranges: &[(T, T)], value: T) -> Option<(T, T)> {
    ranges.get(ranges.partition_point(|(_, hi)| !value.at_most(*hi))).copied()
}

fn has<T: Endpoint>(ranges: &[(T, T)], value: T) -> bool {
    range_at(ranges, value).is_some_and(|(lo, _)| lo.at_most(value))
}

/// Returns true if all values in `min..=max` are inside, false if none is, `None` otherwise.
fn decide<T: Endpoint>(ranges: &[(T, T)], min: T, max: T) -> Option<bool> {
    match range_at(ranges, min) {
        None => Some(false),
        Some((lo, _)) if !lo.at_most(max) => Some(false),
        Some((lo, hi)) if lo.at_most(min) && max.at_most(hi) => Some(true),
        Some(_) => None,
    }
}

impl ValueSet {
    #[must_use]
    pub fn ints(ranges: Vec<(i128, i128)>) -> ValueSet {
        ValueSet::Ints(normal(ranges))
    }

    #[must_use]
    pub fn floats(ranges: Vec<(f64, f64)>) -> ValueSet {
        ValueSet::Floats(normal(ranges))
    }

    #[must_use]
    pub fn texts(mut texts: Vec<Vec<u8>>) -> ValueSet {
        texts.sort_unstable();
        texts.dedup();
        ValueSet::Texts { texts, is_listed: true }
    }

    /// Returns the set of all other values.
    #[must_use]
    pub fn complement(&self) -> ValueSet {
        match self {
            ValueSet::Nothing => ValueSet::All,
            ValueSet::All => ValueSet::Nothing,
            ValueSet::Ints(ranges) => ValueSet::Ints(outside(ranges)),
            ValueSet::Floats(ranges) => ValueSet::Floats(outside(ranges)),
            ValueSet::Texts { texts, is_listed } => ValueSet::Texts { texts: texts.clone(), is_listed: !is_listed },
            ValueSet::Like { pattern, is_matching } => {
                ValueSet::Like { pattern: pattern.clone(), is_matching: !is_matching }
            }
        }
    }

    /// Returns the union; `None` if the kinds differ or cannot be combined.
    #[must_use]
    pub fn union(&self, other: &ValueSet) -> Option<ValueSet> {
        Some(match (self, other) {
            (ValueSet::All, _) | (_, ValueSet::All) => ValueSet::All,
            (ValueSet::Nothing, set) | (set, ValueSet::Nothing) => set.clone(),
            (ValueSet::Ints(a), ValueSet::Ints(b)) => ValueSet::ints([a.as_slice(), b].concat()),
            (ValueSet::Floats(a), ValueSet::Floats(b)) => ValueSet::floats([a.as_slice(), b].concat()),
            (ValueSet::Texts { texts: a, is_listed: x }, ValueSet::Texts { texts: b, is_listed: y }) => {
                let without = |a: &[Vec<u8>], b: &[Vec<u8>], is_in_b: bool| {
                    a.iter().filter(|text| b.binary_search(text).is_ok() == is_in_b).cloned().collect()
                };
                match (x, y) {
                    (true, true) => ValueSet::texts([a.as_slice(), b].concat()),
                    (true, false) => ValueSet::Texts { texts: without(b, a, false), is_listed: false },
                    (false, true) => ValueSet::Texts { texts: without(a, b, false), is_listed: false },
                    (false, false) => ValueSet::Texts { texts: without(a, b, true), is_listed: false },
                }
            }
            _ => return None,
        })
    }

    /// Returns the intersection; `None` if the kinds differ or cannot be combined.
    #[must_use]
    pub fn intersection(&self, other: &ValueSet) -> Option<ValueSet> {
        Some(self.complement().union(&other.complement())?.complement())
    }

    #[must_use]
    pub fn has_int(&self, value: i128) -> bool {
        match self {
            ValueSet::All => true,
            ValueSet::Ints(ranges) => has(ranges, value),
            _ => false,
        }
    }

    #[must_use]
    pub fn has_float(&self, value: f64) -> bool {
        match self {
            ValueSet::All => true,
            ValueSet::Floats(ranges) => has(ranges, value),
            _ => false,
        }
    }

    #[must_use]
    pub fn has_text(&self, value: &[u8]) -> bool {
        match self {
            ValueSet::All => true,
            ValueSet::Texts { texts, is_listed } => {
                let is_found = match texts.as_slice() {
                    [only] => only == value,
                    texts => texts.binary_search_by(|text| text.as_slice().cmp(value)).is_ok(),
                };
                is_found == *is_listed
            }
            ValueSet::Like { pattern, is_matching } => pattern.matcher().matches(value) == *is_matching,
            _ => false,
        }
    }

    /// Returns true if all values between the bounds are in the set, false if none is, `None` if unknown.
    #[must_use]
    pub fn decide(&self, bounds: Bounds) -> Option<bool> {
        match (self, bounds) {
            (ValueSet::Nothing, _) => Some(false),
            (ValueSet::All, _) => Some(true),
            (ValueSet::Ints(ranges), Bounds::Int(min, max)) => decide(ranges, min.into(), max.into()),
            (ValueSet::Floats(ranges), Bounds::Float(min, max)) => decide(ranges, min, max),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [f64; 9] =
        [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, 7.5, f64::INFINITY, f64::NAN];

    fn random_floats(rng: &mut fastrand::Rng) -> ValueSet {
        let pick = |rng: &mut fastrand::Rng| NUMBERS[rng.usize(..NUMBERS.len())];
        ValueSet::floats((0..rng.usize(..4)).map(|_| (pick(rng), pick(rng))).collect())
    }

    fn random_ints(rng: &mut fastrand::Rng) -> ValueSet {
        let pick = |rng: &mut fastrand::Rng| match rng.u32(..6) {
            0 => i128::MIN,
            1 => i128::MAX,
            _ => rng.i128(-10..10),
        };
        ValueSet::ints((0..rng.usize(..4)).map(|_| (pick(rng), pick(rng))).collect())
    }

    fn random_texts(rng: &mut fastrand::Rng) -> ValueSet {
        let set = ValueSet::texts((0..rng.usize(..4)).map(|_| vec![rng.u8(b'a'..b'f')]).collect());
        if rng.bool() { set.complement() } else { set }
    }

    fn check(a: &ValueSet, b: &ValueSet, has: impl Fn(&ValueSet) -> bool) {
        let (union, both) = (a.union(b).expect("one kind"), a.intersection(b).expect("one kind"));
        assert_eq!(has(&a.complement()), !has(a), "{a:?}");
        assert_eq!(has(&union), has(a) || has(b), "{a:?} {b:?} {union:?}");
        assert_eq!(has(&both), has(a) && has(b), "{a:?} {b:?} {both:?}");
    }

    #[test]
    fn sets_combine_as_their_values_do() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..3_000 {
            let (a, b) = (random_floats(&mut rng), random_floats(&mut rng));
            NUMBERS.iter().for_each(|v| check(&a, &b, |set| set.has_float(*v)));
            let (a, b) = (random_ints(&mut rng), random_ints(&mut rng));
            (-12..12).chain([i128::MIN, i128::MAX]).for_each(|v| check(&a, &b, |set| set.has_int(v)));
            let (a, b) = (random_texts(&mut rng), random_texts(&mut rng));
            (b'a'..b'g').for_each(|v| check(&a, &b, |set| set.has_text(&[v])));
        }
        assert_eq!(ValueSet::ints(vec![(1, 2)]).union(&ValueSet::floats(vec![(1.0, 2.0)])), None);
    }

    #[test]
    fn bounds_decide_only_what_holds_of_every_value() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..3_000 {
            let set = random_ints(&mut rng);
            let (min, max) = (rng.i64(-12..12), rng.i64(-12..12));
            if min <= max {
                let inside = (min..=max).filter(|v| set.has_int((*v).into())).count();
                let expected = match inside {
                    0 => Some(false),
                    all if all == (max - min + 1) as usize => Some(true),
                    _ => None,
                };
                // Adjacent ranges are not joined, in which case fewer bounds are decided.
                let decided = set.decide(Bounds::Int(min, max));
                assert!(decided == expected || decided.is_none() && expected == Some(true), "{set:?} {min} {max}");
            }
            let set = random_floats(&mut rng);
            let (from, to) = (rng.usize(..NUMBERS.len()), rng.usize(..NUMBERS.len()));
            if from <= to {
                let decided = set.decide(Bounds::Float(NUMBERS[from], NUMBERS[to]));
                for v in &NUMBERS[from..=to] {
                    assert!(decided.is_none_or(|d| d == set.has_float(*v)), "{set:?} {from} {to}");
                }
            }
        }
        assert_eq!(ValueSet::All.decide(Bounds::None), Some(true));
        assert_eq!(ValueSet::ints(vec![(1, 2)]).decide(Bounds::None), None);
    }
}
