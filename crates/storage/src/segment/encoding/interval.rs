//! An interval of values, and the vectors that must be compared with the interval.

use super::value::raw;
use crate::Bounds;
use tidalite_types::column_type::Physical;

/// A closed interval of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// Empty if the first value is greater than the second.
    Ints(i128, i128),
    /// A NaN as upper bound includes NaN; a NaN as lower bound selects only NaN.
    Floats(f64, f64),
}

impl Interval {
    pub(super) fn has_int(self, value: i128) -> bool {
        matches!(self, Interval::Ints(lo, hi) if (lo..=hi).contains(&value))
    }

    pub(super) fn has_float(self, value: f64) -> bool {
        matches!(self, Interval::Floats(lo, hi) if at_most(lo, value) && at_most(value, hi))
    }

    /// Returns the bounds for values of 64 bits; the first is greater than the second if no such value is inside.
    pub(super) fn of_i64(self) -> Option<(i64, i64)> {
        let Interval::Ints(lo, hi) = self else { return None };
        if lo > hi || lo > i128::from(i64::MAX) || hi < i128::from(i64::MIN) {
            return Some((1, 0));
        }
        Some((i64::try_from(lo).unwrap_or(i64::MIN), i64::try_from(hi).unwrap_or(i64::MAX)))
    }

    /// Returns true if all values of a zone are inside, false if none is, `None` if unknown.
    pub(super) fn decide(self, bounds: Bounds) -> Option<bool> {
        let (is_inside, is_apart) = match (self, bounds) {
            (Interval::Ints(lo, hi), Bounds::Int(min, max)) => {
                let (min, max) = (i128::from(min), i128::from(max));
                (lo <= min && max <= hi, max < lo || hi < min)
            }
            (Interval::Floats(lo, hi), Bounds::Float(min, max)) => {
                (at_most(lo, min) && at_most(max, hi), !at_most(lo, max) || !at_most(min, hi))
            }
            _ => (false, false),
        };
        if is_inside { Some(true) } else { is_apart.then_some(false) }
    }
}

fn at_most(a: f64, b: f64) -> bool {
    b.is_nan() || a <= b
}

/// The interval to compare with, and the vectors that must be examined.
pub(super) struct Wanted<'a> {
    pub interval: Interval,
    /// For each vector, the result if it is known without examining the vector.
    pub decided: &'a [Option<bool>],
}

impl Wanted<'_> {
    /// Returns true if every vector must be examined.
    pub fn are_all(&self) -> bool {
        self.decided.iter().all(Option::is_none)
    }

    pub fn vectors(&self) -> impl Iterator<Item = usize> {
        self.decided.iter().enumerate().filter(|(_, decided)| decided.is_none()).map(|(vector, _)| vector)
    }
}

pub(super) fn fits(physical: Physical, interval: Interval) -> bool {
    match physical {
        Physical::F32 | Physical::F64 => matches!(interval, Interval::Floats(..)),
        Physical::B16 | Physical::Views => false,
        _ => matches!(interval, Interval::Ints(..)),
    }
}

/// Returns true for each of the consecutive values in `interval`; `None` for types without comparison.
pub(super) fn each_in(values: &[u8], physical: Physical, interval: Interval) -> Option<Vec<bool>> {
    let width = physical.width()?;
    let test: fn(&[u8], Interval) -> bool = match physical {
        Physical::I8 => |v, interval| interval.has_int(raw::<i8>(v).into()),
        Physical::I16 => |v, interval| interval.has_int(raw::<i16>(v).into()),
        Physical::I32 => |v, interval| interval.has_int(raw::<i32>(v).into()),
        Physical::I64 => |v, interval| interval.has_int(raw::<i64>(v).into()),
        Physical::I128 => |v, interval| interval.has_int(raw::<i128>(v)),
        Physical::U32 => |v, interval| interval.has_int(raw::<u32>(v).into()),
        Physical::F32 => |v, interval| interval.has_float(raw::<f32>(v).into()),
        Physical::F64 => |v, interval| interval.has_float(raw::<f64>(v)),
        Physical::Bit | Physical::B16 | Physical::Views => return None,
    };
    Some(values.chunks_exact(width).map(|value| test(value, interval)).collect())
}
