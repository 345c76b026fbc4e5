//! Sets of values that an index of a block can look up: a few symbols, a few ranges of numbers.

use super::encoding::EncodedBlock;
use crate::ValueSet;
use tidalite_types::column_type::Physical;

/// Codes from this one on are not distinguished: their bits would take more memory than they save reads.
pub const CODES_MAX: usize = 1 << 16;

/// More codes than this select more than a few rows.
const WANTED_MAX: i128 = 16;

/// Returns the codes of a set of symbols if they are few.
#[must_use]
pub fn few_codes(set: &ValueSet) -> Option<impl Iterator<Item = usize>> {
    let ValueSet::Ints(ranges) = set else { return None };
    // Checked before the count, because a set may range from the smallest to the greatest integer.
    let is_code = |(lo, hi): &(i128, i128)| *lo >= 0 && *hi < CODES_MAX as i128;
    let are_few = || ranges.iter().map(|(lo, hi)| hi - lo + 1).sum::<i128>() <= WANTED_MAX;
    (ranges.iter().all(is_code) && are_few()).then(|| ranges.iter().flat_map(|(lo, hi)| *lo as usize..=*hi as usize))
}

/// Smallest size of a block in bytes per row; smaller blocks are compared as fast.
const BYTES_MIN: usize = 2;

/// Largest number of ranges in a set. More ranges select many rows or are looked up as fast.
const RANGES_MAX: usize = 16;

/// A closed range; −∞ and NaN are bounds that no value has.
pub(super) type ValueRange = (f64, f64);

/// Returns the ranges of a set if a value index pays for the block.
pub(super) fn ranges(block: &EncodedBlock, set: &ValueSet) -> Option<Vec<ValueRange>> {
    if !block.has_numbers_by_row() || (block.entry.bytes as usize) < BYTES_MIN * block.rows {
        return None;
    }
    match (block.physical, set) {
        (Physical::F64, ValueSet::Floats(ranges)) if ranges.len() <= RANGES_MAX => Some(ranges.clone()),
        (Physical::I32 | Physical::I64, ValueSet::Ints(ranges)) if ranges.len() <= RANGES_MAX => {
            let lowest = |lo: i128| if lo <= i64::MIN.into() { f64::NEG_INFINITY } else { lo as f64 };
            let highest = |hi: i128| if hi >= i64::MAX.into() { f64::NAN } else { hi as f64 };
            Some(ranges.iter().map(|(lo, hi)| (lowest(*lo), highest(*hi))).collect())
        }
        _ => None,
    }
}
