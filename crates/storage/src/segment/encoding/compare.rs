//! Selects the rows of a block that satisfy a comparison with a constant, without decoding if the encoding allows it.
//!
//! Every comparison is converted to bounds of a range that must or must not contain the value. Vectors that the bounds
//! of the block or of the vector decide are not examined further. Packed vectors are compared in packed form,
//! dictionaries and runs once per entry. A NULL row satisfies no comparison.

use super::chunk::Layout;
use super::interval::{Interval, Wanted, fits};
use super::mask::WORDS;
use super::{EncodedBlock, alp, alp_rd, compressed, constant, delta, dict, packed, plain, runs, zones};
use crate::segment::buffer::values_in;
use crate::segment::format::Encoding;

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

mod text;

#[cfg(test)]
pub(in crate::segment::encoding) mod tests;
