//! One value for all rows: the value is the complete payload. A boolean is in the entry's parameter, without a payload.

use super::EncodedBlock;
use super::choice::Payload;
use super::interval::{Wanted, each_in};
use super::value::{Fixed, raw};
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_types::column_type::Physical;

/// Returns true if all values have the same bits.
pub(super) fn is_constant<T: Fixed>(values: &[T]) -> bool {
    let bits = values[0].bits();
    // In slices without an exit inside, so that comparisons are vectorized.
    values.chunks(256).all(|slice| slice.iter().fold(true, |same, v| same & (v.bits() == bits)))
}

pub(super) fn payload<T: Fixed>(value: &T) -> Payload<'static> {
    Payload::new(Encoding::Constant, 0, bytemuck::bytes_of(value).to_vec())
}

pub(super) fn bit_payload(bit: bool) -> Payload<'static> {
    Payload { encoding: Encoding::Constant, parameter: u32::from(bit), data_bytes: 0, sections: Vec::new() }
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    let expected = match block.physical {
        Physical::Views => return Err("text that is constant".to_owned()),
        Physical::Bit => 0,
        physical => physical.width().unwrap_or(16),
    };
    if payload.len() != expected { Err(format!("a value of {} bytes", payload.len())) } else { Ok(()) }
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> BlockData {
    BlockData::Fixed(match block.physical.width() {
        None => bits(block, validity),
        Some(1) => share(values::<u8>(payload, validity, block.rows)),
        Some(2) => share(values::<u16>(payload, validity, block.rows)),
        Some(4) => share(values::<u32>(payload, validity, block.rows)),
        Some(8) => share(values::<u64>(payload, validity, block.rows)),
        Some(_) => share(values::<u128>(payload, validity, block.rows)),
    })
}

fn values<T: bytemuck::Pod>(payload: &[u8], validity: &[u8], rows: usize) -> Vec<T> {
    let mut values = vec![raw::<T>(payload); rows];
    super::nulls::zero_nulls(&mut values, validity);
    values
}

/// Returns bits that are the constant in all rows with a value; bits after the last row are unspecified.
fn bits(block: &EncodedBlock, validity: &[u8]) -> bytes::Bytes {
    let mut words = vec![0u64; block.rows.div_ceil(64)];
    if block.entry.parameter != 0 {
        words = tidalite_types::Bitmap::filled(block.rows, true).words().to_vec();
        let valid: Vec<u64> = crate::segment::buffer::collect(validity);
        words.iter_mut().zip(valid).for_each(|(word, valid)| *word &= valid);
    }
    share(words)
}

pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let is_inside = match block.physical {
        Physical::Bit => wanted.interval.has_int(block.entry.parameter.into()),
        physical => each_in(payload, physical, wanted.interval)?[0],
    };
    mask.fill(if is_inside { u64::MAX } else { 0 });
    Some(())
}
