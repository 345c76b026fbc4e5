//! Exact sums of integers and of decimals' digits, in more than 128 bits.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Int64Type, UInt64Type, i256};

/// A sum and the number of its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WideSum {
    low: i128,
    /// Net overflows of the 128-bit part, negative at the lower end.
    ///
    /// The counter saturates; its limits are further from 0 than any decimal.
    wraps: i128,
    pub count: i64,
}

impl WideSum {
    #[inline(always)]
    fn add(&mut self, value: i128) {
        let (low, is_over) = self.low.overflowing_add(value);
        self.low = low;
        if is_over {
            self.wrap(value);
        }
    }

    #[cold]
    fn wrap(&mut self, value: i128) {
        self.wraps += if value < 0 { -1 } else { 1 };
    }

    /// Creates a sum from a known value.
    #[must_use]
    pub fn new(sum: i256, count: i64) -> WideSum {
        let (low, high) = sum.to_parts();
        let low = low.cast_signed();
        // With the top bit set, the lower half is read as negative, which one more wrap corrects.
        let wraps = high.saturating_add(i128::from(low < 0));
        WideSum { low, wraps, count }
    }

    /// Returns the whole sum.
    #[must_use]
    pub fn sum(&self) -> i256 {
        i256::from_parts(self.low.cast_unsigned(), self.wraps.saturating_sub(i128::from(self.low < 0)))
    }

    pub fn join(&mut self, other: &WideSum) {
        self.add(other.low);
        self.wraps = self.wraps.saturating_add(other.wraps);
        self.count += other.count;
    }

    /// Adds the values of an array, or subtracts them.
    pub fn add_all(&mut self, array: &ArrayRef, is_leaving: bool) {
        each_wide(array, |_, value| self.join(&WideSum::new(if is_leaving { value.wrapping_neg() } else { value }, 0)));
        match array.as_primitive_opt::<Int64Type>() {
            Some(array) => {
                let sum = sum_of(array);
                self.add(if is_leaving { -sum } else { sum });
            }
            None => each(array, |_, value| self.add(if is_leaving { value.wrapping_neg() } else { value })),
        }
        let count = (array.len() - array.null_count()) as i64;
        self.count += if is_leaving { -count } else { count };
    }
}

/// Sums integers exactly: their upper and lower halves apart, each in 64 bits, which the compiler vectorizes.
fn sum_of(array: &Int64Array) -> i128 {
    /// The sums of this many halves of 32 bits fit 64 bits.
    const ROWS_MAX: usize = 1 << 16;
    let mut sum = 0;
    let mut from = 0;
    for values in array.values().chunks(ROWS_MAX) {
        let (mut high, mut low) = (0_i64, 0_u64);
        let mut add = |value: i64| {
            high += value >> 32;
            low += u64::from(value as u32);
        };
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => values.iter().for_each(|value| add(*value)),
            Some(nulls) => {
                let is_valid = |(row, value): (usize, &i64)| if nulls.is_valid(from + row) { *value } else { 0 };
                values.iter().enumerate().map(is_valid).for_each(add);
            }
        }
        sum += (i128::from(high) << 32) + i128::from(low);
        from += values.len();
    }
    sum
}

/// Adds rows to the sums of their groups. `filter` is true for the rows to add.
pub fn add_to_groups(sums: &mut [WideSum], groups: &[usize], array: &ArrayRef, filter: Option<&BooleanArray>) {
    let passes = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
    each_wide(array, |row, value| {
        if passes(row) {
            sums[groups[row]].join(&WideSum::new(value, 1));
        }
    });
    each(array, |row, value| {
        if passes(row) {
            let sum = &mut sums[groups[row]];
            sum.add(value);
            sum.count += 1;
        }
    });
}

/// Merges sums, each with its count, into those of their groups.
pub fn merge_to_groups(sums: &mut [WideSum], groups: &[usize], states: &[ArrayRef]) {
    let (own, counts) = (states[0].as_primitive::<Decimal256Type>(), states[1].as_primitive::<Int64Type>());
    for row in (0..own.len()).filter(|row| own.is_valid(*row)) {
        sums[groups[row]].join(&WideSum::new(own.value(row), counts.value(row)));
    }
}

/// Calls `step` with the values of a 256-bit decimal array that are not NULL.
fn each_wide(array: &ArrayRef, mut step: impl FnMut(usize, i256)) {
    if let Some(decimals) = array.as_primitive_opt::<Decimal256Type>() {
        let rows = (0..decimals.len()).filter(|row| decimals.is_valid(*row));
        rows.for_each(|row| step(row, decimals.value(row)));
    }
}

/// Calls `step` with the values of a 64-bit integer or 128-bit decimal array that are not NULL.
#[inline(always)]
fn each(array: &ArrayRef, step: impl FnMut(usize, i128)) {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    match array.data_type() {
        DataType::Int64 => each_value(array.as_primitive::<Int64Type>().values(), nulls, step),
        DataType::UInt64 => each_value(array.as_primitive::<UInt64Type>().values(), nulls, step),
        DataType::Decimal128(..) => each_value(array.as_primitive::<Decimal128Type>().values(), nulls, step),
        _ => {}
    }
}

#[inline(always)]
fn each_value<N: Copy + Into<i128>>(values: &[N], nulls: Option<&NullBuffer>, mut step: impl FnMut(usize, i128)) {
    let rows = values.iter().enumerate();
    match nulls {
        None => rows.for_each(|(row, value)| step(row, (*value).into())),
        Some(nulls) => rows.filter(|(row, _)| nulls.is_valid(*row)).for_each(|(row, value)| step(row, (*value).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Decimal128Array;
    use std::sync::Arc;

    #[test]
    fn sums_come_back_from_past_the_end() {
        let values = [i128::MAX, i128::MAX, i128::MIN, i128::MIN, 5, -7, i128::MIN, i128::MAX];
        let mut sum = WideSum::default();
        let mut expected = i256::ZERO;
        for (at, value) in values.iter().enumerate() {
            let array = Arc::new(Decimal128Array::from(vec![Some(*value), None])) as ArrayRef;
            sum.add_all(&array, false);
            expected = expected.wrapping_add(i256::from_i128(*value));
            assert_eq!((sum.sum(), sum.count), (expected, at as i64 + 1));
            assert_eq!(WideSum::new(sum.sum(), sum.count), sum);
            let mut twice = sum;
            twice.join(&sum);
            assert_eq!(twice.sum(), expected.wrapping_add(expected));
        }
    }
}
