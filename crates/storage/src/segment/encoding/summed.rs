//! Sums of whole columns for the footer.

use crate::Sum;
use tidalite_kernels::sum::{Real, Whole};
use tidalite_kernels::{sum_floats, sum_ints};
use tidalite_types::{Column, match_values};

/// A value whose sum a block may store.
pub(in crate::segment) trait Summed: Sized {
    /// Returns the sum for the footer, of values in which NULL rows are 0; `None` if there is none.
    fn known(values: &[Self], has_nulls: bool) -> Option<Sum>;
}

macro_rules! summed {
    ($($known:ident: $($value:ty)*;)*) => { $($(
        impl Summed for $value {
            fn known(values: &[$value], has_nulls: bool) -> Option<Sum> {
                $known(values, has_nulls)
            }
        }
    )*)* };
}

summed! {
    int_sum: i8 i16 i32 i64;
    float_sum: f32 f64;
    no_sum: u32 i128 [u8; 16];
}

fn int_sum<T: Whole>(values: &[T], _: bool) -> Option<Sum> {
    i64::try_from(sum_ints(values)).ok().map(|sum| Sum::Ints(sum.into()))
}

/// The zeros of NULL rows change a sum of −0 to 0.
fn float_sum<T: Real>(values: &[T], has_nulls: bool) -> Option<Sum> {
    let sum = sum_floats(values);
    (sum != 0.0 || !has_nulls).then_some(Sum::Floats(sum))
}

fn no_sum<T>(_: &[T], _: bool) -> Option<Sum> {
    None
}

/// Returns the sum of a whole column for the footer, like [`Summed::known`].
pub(in crate::segment) fn known(column: &Column) -> Option<Sum> {
    let has_nulls = column.validity.as_ref().is_some_and(|valid| valid.count_zeros() > 0);
    match_values!(
        &column.values,
        values => Summed::known(values, has_nulls),
        Bit(_bits) => None,
        Views(_views) => None,
    )
}
