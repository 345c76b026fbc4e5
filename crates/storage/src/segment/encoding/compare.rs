//! Selects the rows of a block that satisfy a comparison with a constant, without decoding if the encoding allows it.
//!
//! Every comparison is converted to bounds of a range that must or must not contain the value. Vectors that the bounds
//! of the block or of the vector decide are not examined further. Packed vectors are compared in packed form,
//! dictionaries and runs once per entry. A NULL row satisfies no comparison.

use super::chunk::Layout;
use super::fixed::raw;
use super::{EncodedBlock, alp, alp_rd, compressed, constant, delta, dict, packed, plain, runs, zones};
use crate::Bounds;
use crate::segment::buffer::values_in;
use crate::segment::format::Encoding;
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// Number of words of a vector's mask.
pub(super) const WORDS: usize = VECTOR_ROWS / 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A constant in the form of block bounds.
///
/// Booleans are 0 and 1, dates and timestamps are numbers, decimals are unscaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    Int(i128),
    /// A NaN equals itself and is greater than every number, and −0 equals 0.
    Float(f64),
}

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

impl Comparison {
    /// Returns the interval, and true if the values outside of it are selected; `None` if no value satisfies the
    /// comparison.
    fn interval(self, constant: Constant) -> Option<(Interval, bool)> {
        let interval = match constant {
            Constant::Int(c) => match self {
                Comparison::Equal | Comparison::NotEqual => Interval::Ints(c, c),
                Comparison::Less => Interval::Ints(i128::MIN, c.checked_sub(1)?),
                Comparison::LessOrEqual => Interval::Ints(i128::MIN, c),
                Comparison::Greater => Interval::Ints(c.checked_add(1)?, i128::MAX),
                Comparison::GreaterOrEqual => Interval::Ints(c, i128::MAX),
            },
            Constant::Float(c) => match self {
                Comparison::Equal | Comparison::NotEqual => Interval::Floats(c, c),
                Comparison::Less if c == f64::NEG_INFINITY => return None,
                Comparison::Less if c.is_nan() => Interval::Floats(f64::NEG_INFINITY, f64::INFINITY),
                Comparison::Less => Interval::Floats(f64::NEG_INFINITY, c.next_down()),
                Comparison::LessOrEqual => Interval::Floats(f64::NEG_INFINITY, c),
                Comparison::Greater if c.is_nan() => return None,
                Comparison::Greater if c == f64::INFINITY => Interval::Floats(f64::NAN, f64::NAN),
                Comparison::Greater => Interval::Floats(c.next_up(), f64::NAN),
                Comparison::GreaterOrEqual => Interval::Floats(c, f64::NAN),
            },
        };
        Some((interval, self == Comparison::NotEqual))
    }
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

impl EncodedBlock {
    /// Returns a bit per row that satisfies the comparison, least significant first; bits after the last row are clear.
    ///
    /// Returns `None` if the comparison requires decoding, or the constant is of another kind than the values.
    #[must_use]
    pub fn compare(&self, comparison: Comparison, constant: Constant) -> Option<Vec<u64>> {
        let Some((interval, is_outside)) = comparison.interval(constant) else {
            return Some(vec![0; self.rows.div_ceil(64)]);
        };
        let mut mask = self.rows_in(interval)?;
        if is_outside {
            mask.iter_mut().for_each(|word| *word = !*word);
            self.clear_nulls(&mut mask)?;
        }
        Some(mask)
    }

    /// Returns the rows whose value is in `interval`, like [`EncodedBlock::compare`].
    #[must_use]
    pub fn rows_in(&self, interval: Interval) -> Option<Vec<u64>> {
        self.rows_in_among(interval, None)
    }

    /// Returns rows like [`EncodedBlock::rows_in`], but skips vectors without a bit in `among`.
    ///
    /// The result for rows of skipped vectors is unspecified.
    pub(super) fn rows_in_among(&self, interval: Interval, among: Option<&[u64]>) -> Option<Vec<u64>> {
        if !fits(self.physical, interval) {
            return None;
        }
        let words = self.rows.div_ceil(64);
        let mut mask = vec![0; words];
        if let Some(is_inside) = interval.decide(self.entry.zone.bounds) {
            mask.fill(if is_inside { u64::MAX } else { 0 });
        } else if self.entry.encoding != Encoding::Nulls {
            self.look(interval, among, &mut mask)?;
        }
        self.clear_nulls(&mut mask)?;
        Some(mask)
    }

    fn look(&self, interval: Interval, among: Option<&[u64]>, mask: &mut [u64]) -> Option<()> {
        let layout = Layout::of(&self.entry, self.physical, self.rows).ok()?;
        let zones = zones::each_vector(self, &layout);
        let mut decided: Vec<Option<bool>> = zones.map(|zone| interval.decide(zone.bounds)).collect();
        for (decided, among) in decided.iter_mut().zip(among.into_iter().flat_map(|mask| mask.chunks(WORDS))) {
            if among.iter().all(|word| *word == 0) {
                *decided = Some(false);
            }
        }
        let wanted = Wanted { interval, decided: &decided };
        let payload = layout.payload(&self.bytes);
        match self.entry.encoding {
            Encoding::Nulls => {}
            Encoding::Plain => plain::rows_in(layout.first(&self.bytes), self, &wanted, mask)?,
            Encoding::Constant => constant::rows_in(payload, self, &wanted, mask)?,
            Encoding::Packed => packed::rows_in(payload, self, &wanted, mask)?,
            Encoding::Delta => delta::rows_in(payload, self, &wanted, mask)?,
            Encoding::Runs => runs::rows_in(payload, self, &wanted, mask)?,
            Encoding::PackedDict => {
                dict::rows_in(layout.first(&self.bytes), layout.codes(&self.bytes), self, &wanted, mask)?;
            }
            Encoding::Alp => alp::rows_in(payload, self, &wanted, mask)?,
            Encoding::AlpRd => alp_rd::rows_in(payload, self, &wanted, mask)?,
            // Written only in compressed form, whose decompression costs more than decoding; the others have no order.
            Encoding::Dict | Encoding::Narrow | Encoding::Planes | Encoding::Fsst | Encoding::FsstDict => return None,
            Encoding::Text | Encoding::TextDict => return None,
            Encoding::Compressed => return compressed::comparable(self)?.look(interval, among, mask),
        }
        for (words, decided) in mask.chunks_mut(WORDS).zip(decided) {
            if let Some(is_inside) = decided {
                words.fill(if is_inside { u64::MAX } else { 0 });
            }
        }
        Some(())
    }

    /// Clears the bits of NULL rows and the bits after the last row.
    pub(super) fn clear_nulls(&self, mask: &mut [u64]) -> Option<()> {
        if self.entry.encoding == Encoding::Nulls {
            mask.fill(0);
        } else if self.entry.has_validity {
            let layout = Layout::of(&self.entry, self.physical, self.rows).ok()?;
            let valid = values_in::<u64>(layout.validity(&self.bytes));
            mask.iter_mut().zip(valid.iter()).for_each(|(word, valid)| *word &= valid);
        } else if !self.rows.is_multiple_of(64)
            && let Some(last) = mask.last_mut()
        {
            *last &= u64::MAX >> (64 - self.rows % 64);
        }
        Some(())
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

/// Sets the bits of rows `from..to`.
pub(super) fn set(mask: &mut [u64], from: usize, to: usize) {
    let (first, last) = (from / 64, to / 64);
    let (head, tail) = (u64::MAX << (from % 64), (1u64 << (to % 64)) - 1);
    if first == last {
        return mask[first] |= head & tail;
    }
    mask[first] |= head;
    mask[first + 1..last].fill(u64::MAX);
    if tail != 0 {
        mask[last] |= tail;
    }
}

/// Sets or clears the bit of a row.
pub(super) fn put(mask: &mut [u64], row: usize, is_inside: bool) {
    let bit = 1 << (row % 64);
    mask[row / 64] = mask[row / 64] & !bit | if is_inside { bit } else { 0 };
}

/// Returns the words of one vector for reading, like [`of_vector`].
pub(super) fn words_of(mask: &[u64], vector: usize) -> &[u64] {
    &mask[vector * WORDS..mask.len().min((vector + 1) * WORDS)]
}

/// Returns the words of one vector; the last vector may have fewer than [`WORDS`].
pub(super) fn of_vector(mask: &mut [u64], vector: usize) -> &mut [u64] {
    let end = mask.len().min((vector + 1) * WORDS);
    &mut mask[vector * WORDS..end]
}

mod text;

#[cfg(test)]
pub(in crate::segment::encoding) mod tests;
