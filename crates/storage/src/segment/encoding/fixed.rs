//! Chooses the encodings of fixed-width values, and decodes them.

use super::alp::Alp;
use super::alp_rd::AlpRd;
use super::choice::{Effort, Payload, Scheme, Source, choose};
use super::chunk::{Chunk, Layout};
use super::delta::Delta;
use super::dict::{self, Dict};
use super::packed::{Packed, PackedWide};
use super::runs::Runs;
use super::summed::Summed;
use super::value::{Fixed, Integer};
use super::{EncodedBlock, compressed, constant, narrow, nulls, planes, zones};
use crate::BlockData;
use crate::segment::buffer::{collect, share};
use crate::segment::format::Encoding;
use bytemuck::Pod;
use tidalite_kernels::{min_max, min_max_f32, min_max_f64};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// The candidate schemes of each type, with the fastest to read first.
pub(super) trait Schemes: Summed + 'static {
    fn schemes(effort: Effort) -> &'static [&'static dyn Scheme<Self>];

    /// Returns the value as a 64-bit number, for types of at most 64 bits.
    fn word(self) -> Option<u64>;
}

macro_rules! schemes {
    ($($value:ty: fresh $fresh:expr, sealed $sealed:expr, word $word:expr;)*) => { $(
        impl Schemes for $value {
            fn word(self) -> Option<u64> {
                $word(self)
            }

            fn schemes(effort: Effort) -> &'static [&'static dyn Scheme<$value>] {
                match effort {
                    Effort::Fresh => &$fresh,
                    Effort::Sealed => &$sealed,
                }
            }
        }
    )* };
}

schemes! {
    i8: fresh [&Packed, &Runs], sealed [&Packed, &Runs], word |v: i8| Some(v as i64 as u64);
    i16: fresh [&Packed, &Runs, &Dict], sealed [&Packed, &Runs, &Dict], word |v: i16| Some(v as i64 as u64);
    i32: fresh [&Packed, &Runs, &Dict], sealed [&Packed, &Runs, &Dict, &Delta(1)], word |v: i32| Some(v as i64 as u64);
    i64: fresh [&Packed, &Runs, &Dict, &Delta(1)], sealed [&Packed, &Runs, &Dict, &Delta(1), &Delta(2)], word |v: i64| Some(v as u64);
    i128: fresh [&PackedWide, &Runs, &Dict], sealed [&PackedWide, &Runs, &Dict], word |_| None;
    u32: fresh [&Packed, &Runs, &Dict], sealed [&Packed, &Runs, &Dict, &Delta(1)], word |v: u32| Some(v as i64 as u64);
    f32: fresh [&Alp, &Runs, &Dict], sealed [&Alp, &Runs, &Dict, &AlpRd], word |v: f32| Some(v.to_bits().into());
    f64: fresh [&Alp, &Runs, &Dict], sealed [&Alp, &Runs, &Dict, &AlpRd], word |v: f64| Some(v.to_bits());
    [u8; 16]: fresh [&Runs, &Dict], sealed [&Runs, &Dict], word |_| None;
}

pub(super) fn encode_ints<T: Integer + Default + Schemes>(
    chunk: &mut Chunk,
    values: &[T],
    has_bounds: bool,
    effort: Effort,
) {
    let validity = chunk.validity.clone();
    let filled = nulls::fill_with_neighbours(values, validity.as_ref());
    if has_bounds {
        let pairs: Vec<(T, T)> = filled.chunks(VECTOR_ROWS).filter_map(min_max).collect();
        zones::set_int(chunk, pairs.iter().map(|(lo, hi)| Some((lo.to_i64()?, hi.to_i64()?))));
    }
    write(chunk, &Source { given: values, values: &filled, validity: validity.as_ref(), effort });
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

pub(super) trait Float: Fixed + Schemes {
    fn pairs(values: &[Self]) -> Vec<(f64, f64)>;
}

encode_floats!(f32, min_max_f32);
encode_floats!(f64, min_max_f64);

pub(super) fn encode_floats<T: Float>(chunk: &mut Chunk, values: &[T], effort: Effort) {
    let validity = chunk.validity.clone();
    let filled = nulls::fill_with_neighbours(values, validity.as_ref());
    zones::set_float(chunk, T::pairs(&filled).into_iter());
    write(chunk, &Source { given: values, values: &filled, validity: validity.as_ref(), effort });
}

pub(super) fn encode_b16(chunk: &mut Chunk, values: &[[u8; 16]], effort: Effort) {
    let validity = chunk.validity.clone();
    let filled = nulls::fill_with_neighbours(values, validity.as_ref());
    write(chunk, &Source { given: values, values: &filled, validity: validity.as_ref(), effort });
}

fn write<T: Fixed + Schemes>(chunk: &mut Chunk, source: &Source<'_, T>) {
    let zeroed = nulls::fill_with(source.given, source.validity, T::zeroed());
    chunk.set_sum(T::known(&zeroed, source.validity.is_some()));
    if constant::is_constant(source.values) {
        return chunk.write(&constant::payload(&source.values[0]));
    }
    let plain = || Payload::new(Encoding::Plain, 0, bytemuck::cast_slice(&zeroed));
    let bare = choose(source, T::schemes(source.effort)).unwrap_or_else(plain);
    if !chunk.compresses {
        return chunk.write(&bare);
    }
    let words: Option<Vec<u64>> = source.values.iter().map(|value| value.word()).collect();
    let mut others = words.map_or_else(Vec::new, |words| planes::candidates(&words, size_of::<T>()));
    others.extend(dict::payload_in_bytes(source));
    others.push(plain());
    chunk.write(&compressed::smaller(bare, &others));
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
    // Codes are independent of the meaning of the bits.
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
    let mut values = dict::values_of(&distinct, layout, block);
    nulls::zero_nulls(&mut values, layout.validity(&block.bytes));
    BlockData::Fixed(share(values))
}
