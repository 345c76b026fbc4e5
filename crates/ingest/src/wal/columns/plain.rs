//! Plain values of a column, and the tags of encodings.

/// Bytes that are not an encoded column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged column: {0}")]
pub struct BadColumn(pub(super) &'static str);

pub(super) const PLAIN: u8 = 0;
pub(super) const FRAME: u8 = 1;
pub(super) const STEP: u8 = 2;
pub(super) const DELTA: u8 = 3;
pub(super) const TEXT: u8 = 4;
pub(super) const LONG: u8 = 5;

pub(super) fn encode_plain<T: bytemuck::NoUninit>(values: &[T], out: &mut Vec<u8>) {
    out.push(PLAIN);
    out.extend_from_slice(bytemuck::cast_slice(values));
}

/// Number of values sampled before all are tried.
pub(super) const SAMPLE: usize = 64;

pub(super) const TOO_SHORT: BadColumn = BadColumn("too few bytes");

pub(super) fn take<'a>(input: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], BadColumn> {
    input.split_off(..bytes).ok_or(TOO_SHORT)
}

pub(super) fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], BadColumn> {
    let (array, rest) = input.split_first_chunk().ok_or(TOO_SHORT)?;
    *input = rest;
    Ok(*array)
}

pub(super) fn take_u8(input: &mut &[u8]) -> Result<u8, BadColumn> {
    Ok(u8::from_le_bytes(take_array(input)?))
}

pub(super) fn take_plain<T: bytemuck::Pod>(input: &mut &[u8], n: usize) -> Result<Vec<T>, BadColumn> {
    let bytes = take(input, n.checked_mul(size_of::<T>()).ok_or(TOO_SHORT)?)?;
    let mut values = vec![T::zeroed(); n];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    Ok(values)
}
