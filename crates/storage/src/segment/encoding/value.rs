//! Fixed-width values as dictionaries, distances and comparisons require them.

use bytemuck::Pod;

/// A value that a dictionary can contain. Values are compared by their bits: −0 differs from 0, and a NaN equals only a
/// NaN of the same bits.
pub(super) trait Fixed: Pod + Send {
    type Bits: Copy + Ord + Default;
    fn bits(self) -> Self::Bits;
    fn hash(bits: Self::Bits) -> u64;
    /// Returns the sort key of a dictionary: integers by value, floating point in IEEE 754's total order, 16 bytes as
    /// bytes.
    fn sort_key(self) -> Self::Bits;
}

/// An integer that has bounds and can be encoded as a distance from another one.
pub(super) trait Integer: Fixed + Ord {
    fn plus(self, distance: u32) -> Self;
    fn to_i64(self) -> Option<i64>;
}

/// Hash multiplier: 2^64 divided by the golden ratio spreads differing bits over the top of the product.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

macro_rules! narrow_fixed {
    ($($value:ty, $unsigned:ty, $key:expr;)*) => { $(
        impl Fixed for $value {
            type Bits = u64;
            #[inline]
            fn bits(self) -> u64 {
                u64::from(bytemuck::cast::<$value, $unsigned>(self))
            }
            #[inline]
            fn hash(bits: u64) -> u64 {
                (bits ^ bits >> 32).wrapping_mul(SPREAD)
            }
            fn sort_key(self) -> Self::Bits {
                $key(self)
            }
        }
    )* };
}

narrow_fixed! {
    i8, u8, |v: i8| v as i64 as u64 ^ 1 << 63;
    i16, u16, |v: i16| v as i64 as u64 ^ 1 << 63;
    i32, u32, |v: i32| v as i64 as u64 ^ 1 << 63;
    i64, u64, |v: i64| v as u64 ^ 1 << 63;
    u32, u32, |v: u32| u64::from(v);
    f32, u32, |v: f32| total_order(u64::from(v.to_bits()) << 32);
    f64, u64, |v: f64| total_order(v.to_bits());
}

/// Maps floating-point bits, sign first, to IEEE 754's total order.
fn total_order(bits: u64) -> u64 {
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

macro_rules! wide_fixed {
    ($($value:ty, $bits:expr, $key:expr;)*) => { $(
        impl Fixed for $value {
            type Bits = u128;
            #[inline]
            fn bits(self) -> u128 {
                $bits(self)
            }
            #[inline]
            fn hash(bits: u128) -> u64 {
                ((bits as u64) ^ ((bits >> 64) as u64).wrapping_mul(SPREAD).rotate_left(32)).wrapping_mul(SPREAD)
            }
            fn sort_key(self) -> Self::Bits {
                $key(self)
            }
        }
    )* };
}

wide_fixed! {
    i128, |v: i128| v as u128, |v: i128| v as u128 ^ 1 << 127;
    [u8; 16], u128::from_le_bytes, u128::from_be_bytes;
}

macro_rules! integer {
    ($($value:ty)*) => { $(
        impl Integer for $value {
            #[inline]
            fn plus(self, distance: u32) -> $value {
                self.wrapping_add(distance as $value)
            }
            fn to_i64(self) -> Option<i64> {
                i64::try_from(self).ok()
            }
        }
    )* };
}

integer! { i8 i16 i32 i64 i128 u32 }

/// Reads the first value of `bytes` with any alignment.
pub(super) fn raw<T: Pod>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}
