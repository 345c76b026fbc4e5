//! Values in their memory layout, compared in place.

use super::EncodedBlock;
use super::interval::{Interval, Wanted, each_in};
use super::mask::{of_vector, put};
use crate::segment::buffer::values_in;
use tidalite_kernels::{Comparable, f64_in_range, values_in_range};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

pub(super) fn rows_in(values: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    match (block.physical, wanted.interval.of_i64()) {
        (Physical::Bit, Some((lo, hi))) => {
            let (has_false, has_true) = (lo <= 0 && hi >= 0, lo <= 1 && hi >= 1);
            for (mask, word) in mask.iter_mut().zip(values_in::<u64>(values).iter().copied()) {
                *mask = if has_true { word } else { 0 } | if has_false { !word } else { 0 };
            }
        }
        (Physical::I8, Some((lo, hi))) => vectors::<i8>(values, lo, hi, wanted, mask),
        (Physical::I16, Some((lo, hi))) => vectors::<i16>(values, lo, hi, wanted, mask),
        (Physical::I32, Some((lo, hi))) => vectors::<i32>(values, lo, hi, wanted, mask),
        (Physical::U32, Some((lo, hi))) => vectors::<u32>(values, lo, hi, wanted, mask),
        (Physical::I64, Some((lo, hi))) => vectors::<i64>(values, lo, hi, wanted, mask),
        (Physical::F64, _) => doubles(values, wanted, mask)?,
        _ => {
            let rows = each_in(values, block.physical, wanted.interval)?;
            rows.into_iter().enumerate().for_each(|(row, is_inside)| put(mask, row, is_inside));
        }
    }
    Some(())
}

fn vectors<T: Limited>(values: &[u8], lo: i64, hi: i64, wanted: &Wanted<'_>, mask: &mut [u64]) {
    for vector in wanted.vectors() {
        let at = vector * VECTOR_ROWS * size_of::<T>();
        let end = values.len().min(at + VECTOR_ROWS * size_of::<T>());
        in_vector(&values_in::<T>(&values[at..end]), lo, hi, of_vector(mask, vector));
    }
}

fn doubles(values: &[u8], wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let Interval::Floats(lo, hi) = wanted.interval else { return None };
    for vector in wanted.vectors() {
        let at = vector * VECTOR_ROWS * 8;
        let values = values_in::<f64>(&values[at..values.len().min(at + VECTOR_ROWS * 8)]);
        let mask = of_vector(mask, vector);
        mask.copy_from_slice(&f64_in_range(&values, lo, hi)[..mask.len()]);
    }
    Some(())
}

/// An integer type with its smallest and greatest value.
pub(super) trait Limited: Comparable + bytemuck::Pod {
    const MIN: i64;
    const MAX: i64;
    /// Converts a value in the range of the type.
    fn limited(value: i64) -> Self;
}

macro_rules! limited {
    ($($int:ty)*) => { $(
        impl Limited for $int {
            const MIN: i64 = <$int>::MIN as i64;
            const MAX: i64 = <$int>::MAX as i64;
            fn limited(value: i64) -> $int {
                value.clamp(<$int as Limited>::MIN, <$int as Limited>::MAX) as $int
            }
        }
    )* };
}

limited! { i8 i16 i32 i64 u32 }

/// Selects the rows of one vector with values in `lo..=hi`.
pub(super) fn in_vector<T: Limited>(values: &[T], lo: i64, hi: i64, mask: &mut [u64]) {
    if lo > hi || lo > T::MAX || hi < T::MIN {
        return mask.fill(0);
    }
    let words = values_in_range(values, T::limited(lo), T::limited(hi));
    mask.copy_from_slice(&words[..mask.len()]);
}
