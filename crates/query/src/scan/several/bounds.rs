//! Which values a number can have in a block, from the bounds of its columns, and whether a comparison can be true of any.
//!
//! Rounding never turns the order of two results round, so that bounds are calculated as the numbers are. Where they are
//! not known, or a result may be outside of its type, nothing is said.

use super::Number;
use tidalite_kernels::program::{Arithmetic, Change, Comparison, Guarded};
use tidalite_storage::{Bounds, Zone};
use tidalite_types::ColumnId;

/// Smallest and greatest, both included, of the values that are there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Range {
    Ints(i64, i64),
    /// Finite numbers only.
    Floats(f64, f64),
}

pub(super) fn may_compare<E>(
    comparison: Comparison,
    a: &Number,
    b: &Number,
    zone: &impl Fn(ColumnId) -> Result<Option<Zone>, E>,
    rows: usize,
) -> Result<bool, E> {
    let mut columns = Vec::new();
    a.columns(&mut columns);
    b.columns(&mut columns);
    for column in columns {
        // Where a column has no value nothing is compared.
        if zone(column)?.is_none_or(|zone| zone.null_count as usize == rows) {
            // But what may be an error is asked all the same, of no row.
            return Ok(false);
        }
    }
    let (Some(a), Some(b)) = (range(a, zone)?, range(b, zone)?) else { return Ok(true) };
    Ok(match (a, b) {
        (Range::Ints(a, b), Range::Ints(c, d)) => may_be(comparison, (a, b), (c, d)),
        (Range::Floats(a, b), Range::Floats(c, d)) => may_be(comparison, (a, b), (c, d)),
        _ => true,
    })
}

fn may_be<T: PartialOrd>(comparison: Comparison, (a, b): (T, T), (c, d): (T, T)) -> bool {
    match comparison {
        Comparison::Equal => a <= d && c <= b,
        Comparison::NotEqual => !(a == b && c == d && a == c),
        Comparison::Less => a < d,
        Comparison::AtMost => a <= d,
        Comparison::Greater => b > c,
        Comparison::AtLeast => b >= c,
    }
}

fn range<E>(number: &Number, zone: &impl Fn(ColumnId) -> Result<Option<Zone>, E>) -> Result<Option<Range>, E> {
    let both = |a: &Number, b: &Number| Ok(range(a, zone)?.zip(range(b, zone)?));
    Ok(match number {
        Number::Column(column, _) => match zone(*column)?.map(|zone| zone.bounds) {
            Some(Bounds::Int(min, max)) => Some(Range::Ints(min, max)),
            Some(Bounds::Float(min, max)) => floats(min, max),
            _ => None,
        },
        Number::Int(value) => Some(Range::Ints(*value, *value)),
        Number::Float(value) => floats(*value, *value),
        Number::Calculated(with, a, b) => both(a, b)?.and_then(|(a, b)| calculated(*with, a, b)),
        Number::Changed(change, a) => range(a, zone)?.and_then(|a| changed(*change, a)),
        Number::AsFloat(a) => match range(a, zone)? {
            Some(Range::Ints(min, max)) => floats(min as f64, max as f64),
            other => other,
        },
        // A block may be skipped only if no result in it is out of range, which would be an error.
        Number::Guarded(with, a, b) => match guarded(*with) {
            Some((with, bits)) => {
                both(a, b)?.and_then(|(a, b)| calculated(with, a, b)).and_then(|of| fitting(of, bits))
            }
            None => None,
        },
        Number::Magnitude(..) => None,
    })
}

/// Returns the operator and the number of bits of a checked operation.
fn guarded(with: Guarded) -> Option<(Arithmetic, u32)> {
    match with {
        Guarded::Plus => Some((Arithmetic::Plus, 64)),
        Guarded::Minus => Some((Arithmetic::Minus, 64)),
        Guarded::Times => Some((Arithmetic::Times, 64)),
        Guarded::Narrow(with, bits) => Some((with, bits)),
        Guarded::Moved(..) | Guarded::Over(_) | Guarded::Modulo => None,
    }
}

fn fitting(of: Range, bits: u32) -> Option<Range> {
    match of {
        Range::Ints(min, max) => (i64::MIN >> (64 - bits) <= min && max <= i64::MAX >> (64 - bits)).then_some(of),
        Range::Floats(..) => None,
    }
}

fn floats(min: f64, max: f64) -> Option<Range> {
    (min.is_finite() && max.is_finite()).then_some(Range::Floats(min, max))
}

fn calculated(with: Arithmetic, a: Range, b: Range) -> Option<Range> {
    match (a, b) {
        (Range::Ints(a, b), Range::Ints(c, d)) => {
            let of = |f: fn(i64, i64) -> Option<i64>| {
                let ends = [f(a, c)?, f(a, d)?, f(b, c)?, f(b, d)?];
                Some(Range::Ints(ends.into_iter().min()?, ends.into_iter().max()?))
            };
            match with {
                Arithmetic::Plus => of(i64::checked_add),
                Arithmetic::Minus => of(i64::checked_sub),
                Arithmetic::Times => of(i64::checked_mul),
                Arithmetic::Over | Arithmetic::Modulo => None,
            }
        }
        (Range::Floats(a, b), Range::Floats(c, d)) => {
            let of = |f: fn(f64, f64) -> f64| {
                let ends = [f(a, c), f(a, d), f(b, c), f(b, d)];
                let is_finite = ends.iter().all(|end| end.is_finite());
                let least = ends.into_iter().fold(f64::INFINITY, f64::min);
                let most = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
                is_finite.then_some(Range::Floats(least, most))
            };
            match with {
                Arithmetic::Plus => of(|a, b| a + b),
                Arithmetic::Minus => of(|a, b| a - b),
                Arithmetic::Times => of(|a, b| a * b),
                // Not by what may be zero.
                Arithmetic::Over if c > 0.0 || d < 0.0 => of(|a, b| a / b),
                Arithmetic::Over | Arithmetic::Modulo => None,
            }
        }
        _ => None,
    }
}

fn changed(change: Change, of: Range) -> Option<Range> {
    match (change, of) {
        (Change::Negated, Range::Ints(min, max)) => Some(Range::Ints(max.checked_neg()?, min.checked_neg()?)),
        (Change::Negated, Range::Floats(min, max)) => Some(Range::Floats(-max, -min)),
        (Change::Magnitude, Range::Floats(min, max)) => {
            let least = if min <= 0.0 && max >= 0.0 { 0.0 } else { min.abs().min(max.abs()) };
            Some(Range::Floats(least, min.abs().max(max.abs())))
        }
        (Change::Wrapped(bits), Range::Ints(min, max)) => fitting(Range::Ints(min, max), bits),
        (Change::Single, Range::Floats(min, max)) => floats(f64::from(min as f32), f64::from(max as f32)),
        _ => None,
    }
}
