//! Value index of a block: finds the rows with numbers in a narrow range without comparing all rows.
//!
//! The range of most numbers is divided into slots of equal width; outliers are in the first and last slots. Rows in
//! the slots between those of a range's bounds are inside the range; rows in these two slots are compared. Built for
//! blocks with repeated lookups of few rows.

use super::asked;
use super::buffer::{share, values_in};
use super::encoding::EncodedBlock;
use super::reader::Segment;
use super::rows_by_code::{self, RowsByCode};
use super::set_lookup::ValueRange;
use crate::{Block, BlockData, Result, ValueSet};
use tidalite_types::ColumnId;
use tidalite_types::column_type::Physical;

/// Number of slots: about a dozen rows of a block must be compared, and the slots take less memory than the rows.
const SLOTS: usize = 1 << 13;
/// Number of sampled rows that determine the range; one in `RARE` of them is an outlier.
const SAMPLE_ROWS: usize = 1024;
const RARE: usize = 256;
/// Number of 16-bit words of the header: the start of the slots and their scale.
const HEAD: usize = 8;

impl Segment {
    /// Clears the rows of `mask` that are in no range of `set`, including NULL rows.
    ///
    /// Returns false, without changes, if comparing all rows is as fast.
    pub(super) fn retain_values(
        &self,
        column: ColumnId,
        block: usize,
        encoded: &EncodedBlock,
        (set, ranges): (&ValueSet, &[ValueRange]),
        mask: &mut [u64],
    ) -> Result<bool> {
        let damaged = |problem: String| self.damaged(column, block, encoded.entry.offset, &problem);
        let known = self.store().cached(self.key_of_made(column, block), || {
            Ok(share(rows_by_value(&encoded.decode().map_err(damaged)?)))
        })?;
        let known = values_in::<u16>(&known);
        let Some(known) = RowsByValue::of(&known) else { return Ok(false) };
        let places: Vec<Place> = ranges.iter().map(|range| known.place(*range)).collect();
        let rows: usize = places.iter().map(|place| known.rows.of_codes(place.first..place.last + 1).len()).sum();
        if !asked::are_few(rows, encoded.rows) {
            return Ok(false);
        }
        let (mut inside, mut open) = (vec![0; mask.len()], vec![0; mask.len()]);
        for Place { first, last, from_first, to_last } in places {
            let whole = first + usize::from(!from_first)..last + usize::from(to_last);
            set_rows(known.rows.of_codes(whole), mask, &mut inside);
            let ends = [(from_first, first), (to_last, last)].into_iter().filter(|(is_whole, _)| !is_whole);
            ends.for_each(|(_, slot)| set_rows(known.rows.of_codes(slot..slot + 1), mask, &mut open));
        }
        encoded.retain(set, false, &mut open).map_err(damaged)?;
        mask.iter_mut().zip(inside.iter().zip(&open)).for_each(|(word, (inside, open))| *word = inside | open);
        Ok(true)
    }
}

/// Sets the bits of `rows` that are wanted.
fn set_rows(rows: &[u16], wanted: &[u64], mask: &mut [u64]) {
    for row in rows {
        let word = usize::from(*row) / 64;
        mask[word] |= wanted[word] & 1 << (row % 64);
    }
}

/// Returns the index; empty if the slots cannot distinguish the values.
fn rows_by_value(block: &Block) -> Vec<u16> {
    let BlockData::Fixed(values) = &block.data else { return Vec::new() };
    match block.physical {
        Physical::I32 => by_slot(block, &values_in::<i32>(values), |v| f64::from(*v)),
        Physical::I64 => by_slot(block, &values_in::<i64>(values), |v| *v as f64),
        Physical::F64 => by_slot(block, &values_in::<f64>(values), |v| *v),
        _ => Vec::new(),
    }
}

fn by_slot<T>(block: &Block, values: &[T], wide: impl Fn(&T) -> f64) -> Vec<u16> {
    let step = values.len().div_ceil(SAMPLE_ROWS).max(1);
    let mut sample: Vec<f64> = values.iter().step_by(step).map(&wide).collect();
    sample.sort_unstable_by(f64::total_cmp);
    // Otherwise one outlier would leave few slots for all other values.
    let rare = sample.len() / RARE;
    let ends = sample.get(rare).zip(sample.get(sample.len().wrapping_sub(1 + rare)));
    let Some(slots) = ends.and_then(|(first, last)| Slots::between(*first, *last)) else { return Vec::new() };
    let codes: Vec<u16> = values.iter().map(|value| slots.of(wide(value))).collect();
    let mut known = bytemuck::cast::<_, [u16; HEAD]>([slots.from, slots.scale]).to_vec();
    match block.validity {
        None => rows_by_code::encode(&codes, |_| true, &mut known),
        Some(_) => rows_by_code::encode(&codes, |row| block.is_valid(row), &mut known),
    }
    known
}

#[derive(Clone, Copy)]
struct Slots {
    from: f64,
    /// Number of slots per unit of value.
    scale: f64,
}

impl Slots {
    fn between(first: f64, last: f64) -> Option<Slots> {
        let slots = Slots { from: first, scale: (SLOTS - 2) as f64 / (last - first) };
        (first.is_finite() && slots.scale.is_normal() && slots.scale > 0.0).then_some(slots)
    }

    /// Returns the slot of a value. Slots never decrease as values grow: rounding keeps the order.
    #[inline(always)]
    fn of(self, value: f64) -> u16 {
        const LAST: f64 = (SLOTS - 1) as f64;
        /// Added to a small number, the lowest bits of the sum are its integer part.
        const WHOLE: f64 = (1_u64 << 52) as f64;
        // The first slot has values below the range, the last slot values above the range, and NaN.
        let at = (value - self.from) * self.scale + 1.0;
        let at = if at < LAST { at } else { LAST };
        let at = if at > 0.0 { at } else { 0.0 };
        (at + WHOLE).to_bits() as u16
    }
}

/// An index built by [`rows_by_value`].
struct RowsByValue<'a> {
    slots: Slots,
    rows: RowsByCode<'a>,
}

/// The slots of a range.
struct Place {
    first: usize,
    last: usize,
    /// True if all values of the first slot are inside; `to_last` is the same for the last slot.
    from_first: bool,
    to_last: bool,
}

impl RowsByValue<'_> {
    fn of(known: &[u16]) -> Option<RowsByValue<'_>> {
        let (head, known) = known.split_at_checked(HEAD)?;
        let [from, scale] = bytemuck::cast(<[u16; HEAD]>::try_from(head).ok()?);
        Some(RowsByValue { slots: Slots { from, scale }, rows: RowsByCode::of(known)? })
    }

    fn place(&self, (lo, hi): ValueRange) -> Place {
        let (from_first, to_last) = (lo == f64::NEG_INFINITY, hi.is_nan());
        Place { first: self.slots.of(lo).into(), last: self.slots.of(hi).into(), from_first, to_last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use tidalite_types::Bitmap;

    /// Checks the result for a range: the selected rows and the rows to compare include all matching rows, and rows
    /// that are not compared match.
    fn check(
        physical: Physical,
        values: Bytes,
        valid: &[bool],
        range: ValueRange,
        is_inside: impl Fn(usize) -> bool,
    ) -> usize {
        let rows = valid.len();
        let null_count = valid.iter().filter(|valid| !**valid).count();
        let validity = (null_count > 0).then(|| share(valid.iter().copied().collect::<Bitmap>().into_words()));
        let known = rows_by_value(&Block { rows, physical, null_count, validity, data: BlockData::Fixed(values) });
        let known = RowsByValue::of(&known).expect("values that are told apart");
        let Place { first, last, from_first, to_last } = known.place(range);
        let mut found = vec![0; rows.div_ceil(64)];
        let all = vec![u64::MAX; rows.div_ceil(64)];
        set_rows(known.rows.of_codes(first..last + 1), &all, &mut found);
        let has = |mask: &[u64], row: usize| mask[row / 64] >> (row % 64) & 1 == 1;
        assert!((0..rows).all(|row| has(&found, row) || !valid[row] || !is_inside(row)), "{range:?} misses rows");
        let mut whole = vec![0; found.len()];
        let slots = first + usize::from(!from_first)..last + usize::from(to_last);
        set_rows(known.rows.of_codes(slots), &all, &mut whole);
        assert!((0..rows).all(|row| !has(&whole, row) || valid[row] && is_inside(row)), "{range:?} has others");
        tidalite_kernels::count_picked(&found) - tidalite_kernels::count_picked(&whole)
    }

    #[test]
    fn slots_keep_the_order_of_numbers() {
        let mut random = fastrand::Rng::with_seed(31);
        for round in 0..120 {
            let rows = [700, 5_000, 65_536][round % 3];
            let far = |random: &mut fastrand::Rng| f64::from_bits(random.u64(..));
            let values: Vec<f64> = (0..rows)
                .map(|_| match round / 3 % 4 {
                    0 => random.f64() * 180.0 - 90.0,
                    1 => (random.f64() * 20.0).exp(),
                    2 if random.u32(..500) == 0 => far(&mut random),
                    _ => f64::from(random.i32(-900..900)) / 8.0,
                })
                .collect();
            let valid: Vec<bool> = values.iter().map(|_| round % 2 == 0 || random.u32(..5) > 0).collect();
            let end = |random: &mut fastrand::Rng| match random.u32(..6) {
                0 => f64::NAN,
                1 => [f64::NEG_INFINITY, f64::INFINITY, -0.0][random.usize(..3)],
                _ => values[random.usize(..rows)],
            };
            for _ in 0..10 {
                let ends = (end(&mut random), end(&mut random));
                let ValueSet::Floats(ranges) = ValueSet::floats(vec![ends]) else { unreachable!() };
                for range in ranges {
                    let set = ValueSet::floats(vec![range]);
                    check(Physical::F64, share(values.clone()), &valid, range, |row| set.has_float(values[row]));
                }
            }
        }
    }

    #[test]
    fn integers_that_floats_round() {
        let mut random = fastrand::Rng::with_seed(32);
        for (from, spread) in [(0, 1_000), (i64::MIN, u64::MAX), (1_717_200_000_000_000_000, 100_000), (1 << 53, 40)] {
            let values: Vec<i64> = (0..20_000).map(|_| from.wrapping_add_unsigned(random.u64(..spread))).collect();
            let valid = vec![true; values.len()];
            for _ in 0..200 {
                let (a, b) = (values[random.usize(..values.len())], values[random.usize(..values.len())]);
                let (lo, hi) = (a.min(b), a.max(b));
                check(Physical::I64, share(values.clone()), &valid, (lo as f64, hi as f64), |row| {
                    (lo..=hi).contains(&values[row])
                });
            }
        }
    }

    #[test]
    fn a_dozen_rows_are_asked_for_their_value() {
        let mut random = fastrand::Rng::with_seed(33);
        // Outliers do not reduce the slots of the other values.
        let far = |random: &mut fastrand::Rng| if random.u32(..400) == 0 { 1e300 } else { random.f64() };
        let values: Vec<f64> = (0..65_536).map(|_| far(&mut random)).collect();
        let is_inside = |row: usize| (0.25..=0.26).contains(&values[row]);
        let asked = check(Physical::F64, share(values.clone()), &[true; 65_536], (0.25, 0.26), is_inside);
        assert!(asked < 60, "{asked}");
    }
}
