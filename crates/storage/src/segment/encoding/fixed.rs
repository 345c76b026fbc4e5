//! Values of fixed width: which encoding a block gets, and the way back.

use super::chunk::{Chunk, Layout};
use super::{EncodedBlock, dict, narrow, nulls, zones};
use crate::BlockData;
use crate::segment::buffer::{collect, share};
use crate::segment::format::{ALIGNMENT, Encoding};
use bytemuck::Pod;
use tidalite_kernels::{min_max, min_max_f32, min_max_f64};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// A value that a dictionary can hold. Two values are the same when their bits are: −0 is not 0, and each NaN is
/// only itself.
pub(super) trait Fixed: Pod + Send {
    type Bits: Copy + Ord + Default;
    fn bits(self) -> Self::Bits;
    fn hash(bits: Self::Bits) -> u64;
    /// Orders a dictionary: integers by value, floating point by IEEE 754's total order, 16 bytes as bytes.
    fn sort_key(self) -> Self::Bits;
}

/// An integer whose distance from another one can be stored instead of itself.
pub(super) trait Integer: Fixed + Ord {
    /// `self − lo`, when it is known to be non-negative and fits.
    fn distance(self, lo: Self) -> Option<u32>;
    /// As `distance`, known to fit.
    fn distance_wrapping(self, lo: Self) -> u32;
    fn plus(self, distance: u32) -> Self;
    fn to_i64(self) -> Option<i64>;
}

/// Spreads bits that differ anywhere over the top of the product: 2^64 divided by the golden ratio.
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

/// IEEE 754's order of floating point whose sign is the first of `bits`.
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
    ($($value:ty, $unsigned:ty;)*) => { $(
        impl Integer for $value {
            #[inline]
            fn distance(self, lo: $value) -> Option<u32> {
                u32::try_from(self.wrapping_sub(lo) as $unsigned).ok()
            }
            #[inline]
            fn distance_wrapping(self, lo: $value) -> u32 {
                self.wrapping_sub(lo) as $unsigned as u32
            }
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

integer! { i8, u8; i16, u16; i32, u32; i64, u64; i128, u128; u32, u32; }

pub(super) fn encode_ints<T: Integer + Default>(chunk: &mut Chunk, values: &[T], has_bounds: bool) {
    let filled = nulls::fill_with_neighbours(values, chunk.validity.as_ref());
    let pairs: Vec<(T, T)> = filled.chunks(VECTOR_ROWS).filter_map(min_max).collect();
    if has_bounds {
        zones::set_int(chunk, pairs.iter().map(|(lo, hi)| Some((lo.to_i64()?, hi.to_i64()?))));
    }
    let lo = pairs.iter().map(|p| p.0).min().unwrap_or_default();
    let hi = pairs.iter().map(|p| p.1).max().unwrap_or_default();
    let distance_bytes = hi.distance(lo).map(narrow::distance_bytes).filter(|bytes| *bytes < size_of::<T>());
    let best = chunk.rows * distance_bytes.unwrap_or(size_of::<T>());
    match (dictionary(&filled, best), distance_bytes) {
        (Some(dictionary), _) => write_dict(chunk, &dictionary),
        (None, Some(bytes)) if is_worth_it::<T>(chunk.rows) => narrow::write(chunk, &filled, lo, bytes),
        (None, _) => write_plain(chunk, values),
    }
}

macro_rules! encode_floats {
    ($float:ty, $min_max:ident) => {
        impl Float for $float {
            fn pairs(values: &[$float]) -> Vec<(f64, f64)> {
                let pair = |vector| $min_max(vector).map(|(lo, hi)| (f64::from(lo), f64::from(hi)));
                values.chunks(VECTOR_ROWS).filter_map(pair).collect()
            }
        }
    };
}

pub(super) trait Float: Fixed {
    fn pairs(values: &[Self]) -> Vec<(f64, f64)>;
}

encode_floats!(f32, min_max_f32);
encode_floats!(f64, min_max_f64);

pub(super) fn encode_floats<T: Float>(chunk: &mut Chunk, values: &[T]) {
    let filled = nulls::fill_with_neighbours(values, chunk.validity.as_ref());
    zones::set_float(chunk, T::pairs(&filled).into_iter());
    write_dict_or_plain(chunk, values, &filled);
}

pub(super) fn encode_b16(chunk: &mut Chunk, values: &[[u8; 16]]) {
    let filled = nulls::fill_with_neighbours(values, chunk.validity.as_ref());
    write_dict_or_plain(chunk, values, &filled);
}

fn write_dict_or_plain<T: Fixed>(chunk: &mut Chunk, values: &[T], filled: &[T]) {
    match dictionary(filled, size_of_val(values)) {
        Some(dictionary) => write_dict(chunk, &dictionary),
        None => write_plain(chunk, values),
    }
}

/// Blocks of a few lines stay plain: the padding would eat the gain.
fn is_worth_it<T>(rows: usize) -> bool {
    rows * size_of::<T>() > 4 * ALIGNMENT
}

/// The dictionary of `values` if it is clearly smaller than `best` bytes.
fn dictionary<T: Fixed>(values: &[T], best: usize) -> Option<dict::Dictionary<T>> {
    if !is_worth_it::<T>(values.len()) {
        return None;
    }
    let limit = dict::distinct_max(values.len(), size_of::<T>(), best);
    dict::build(values, limit, dict::sample(values, limit)?)
}

fn write_plain<T: Fixed>(chunk: &mut Chunk, values: &[T]) {
    chunk.begin(Encoding::Plain, 0, 0);
    let zeroed = nulls::fill_with(values, chunk.validity.as_ref(), T::zeroed());
    chunk.section(bytemuck::cast_slice(&zeroed));
}

fn write_dict<T: Fixed>(chunk: &mut Chunk, dictionary: &dict::Dictionary<T>) {
    chunk.begin(Encoding::Dict, dictionary.values.len() as u32, 0);
    chunk.section(bytemuck::cast_slice(&dictionary.values));
    dictionary.codes.write(chunk);
}

pub(super) fn decode_narrow(block: &EncodedBlock, layout: &Layout) -> Result<BlockData, String> {
    Ok(match block.physical {
        Physical::I8 => narrow_as::<i8>(block, layout),
        Physical::I16 => narrow_as::<i16>(block, layout),
        Physical::I32 => narrow_as::<i32>(block, layout),
        Physical::I64 => narrow_as::<i64>(block, layout),
        Physical::I128 => narrow_as::<i128>(block, layout),
        Physical::U32 => narrow_as::<u32>(block, layout),
        physical => return Err(format!("distances between values of {physical:?}")),
    })
}

fn narrow_as<T: Integer>(block: &EncodedBlock, layout: &Layout) -> BlockData {
    let lo: T = bytemuck::pod_read_unaligned(layout.first(&block.bytes));
    let mut values = narrow::widen(lo, layout.codes(&block.bytes), layout.code_bytes, block.rows);
    nulls::zero_nulls(&mut values, layout.validity(&block.bytes));
    BlockData::Fixed(share(values))
}

pub(super) fn decode_dict(block: &EncodedBlock, layout: &Layout) -> BlockData {
    // The codes do not care what the bits mean.
    match block.physical.width() {
        Some(1) => dict_as::<u8>(block, layout),
        Some(2) => dict_as::<u16>(block, layout),
        Some(4) => dict_as::<u32>(block, layout),
        Some(8) => dict_as::<u64>(block, layout),
        _ => dict_as::<u128>(block, layout),
    }
}

fn dict_as<T: Pod + Send>(block: &EncodedBlock, layout: &Layout) -> BlockData {
    let distinct: Vec<T> = collect(layout.first(&block.bytes));
    let mut values = dict::look_up(&distinct, layout.codes(&block.bytes), layout.code_bytes, block.rows);
    nulls::zero_nulls(&mut values, layout.validity(&block.bytes));
    BlockData::Fixed(share(values))
}
