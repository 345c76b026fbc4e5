//! Encodes a column for a log record or a checkpoint.
//!
//! Input: a [`Column`]. Output: bytes appended to a buffer, and the reverse. The encoding is optimized for speed, since
//! it runs on the single commit thread: integers lose unneeded bytes, nothing is packed below a byte.
//!
//! Invariant: decoded values equal the encoded values bit by bit if they are not NULL; NULL rows have the default of
//! the type. Decoding never panics and allocates no memory for values whose bytes are missing; only `rows` itself is
//! trusted. Text is not validated as UTF-8: the checksum of the record covers it.
//!
//! # Format
//! All numbers are little-endian. The physical type and the number of rows are in the enclosing record.
//!
//! ```text
//! column = nulls u8
//!            0  no row is NULL
//!            1  then words of validity, u64 each, ceil(rows / 64) of them: bit 1 is a value, least bit first
//!            2  every row is NULL; the column ends here
//!          values of the n rows that are not NULL (of all rows when they are bits)
//!
//! values = tag u8
//!   0 PLAIN  n values of the type's width; bits as u64 words, ceil(rows / 64)
//!   1 FRAME  w u8, min i64, then n × w bytes                       value = min + x
//!   2 STEP   w u8, min i64, step u64, then n × w bytes             value = min + x · step
//!   3 DELTA  w u8, first i64, min i64, step u64, (n - 1) × w bytes value = the one before + min + x · step
//!   4 TEXT   bytes u64, lengths as values of 32 bits, then the bytes of all values one after the other
//!   5 LONG   values of 64 bits, each equal to the value meant
//! ```
//! `w` is 0, 1, 2, 4 or 8, the bytes of each `x` (unsigned). PLAIN supports every type but Views, which use TEXT. FRAME
//! supports I8, I16, I32, U32 and I64; STEP and DELTA only I64; LONG only F64 and I128. Sums wrap around in the width
//! of the type.

mod integers;
mod plain;

use bytemuck::Zeroable;
use integers::{decode_integers, encode_integers, encode_longs};
pub use plain::BadColumn;
use plain::{LONG, PLAIN, SAMPLE, TEXT, TOO_SHORT, encode_plain, take, take_array, take_plain, take_u8};
use tidalite_types::column_type::Physical;
use tidalite_types::views::INLINE_BYTES;
use tidalite_types::{Bitmap, Column, Values, Views, match_values};

const NO_NULLS: u8 = 0;
const SOME_NULLS: u8 = 1;
const ALL_NULLS: u8 = 2;

pub fn encode_column(column: &Column, out: &mut Vec<u8>) {
    let validity = column.validity.as_ref().filter(|v| v.count_zeros() > 0);
    match validity {
        None => out.push(NO_NULLS),
        Some(v) if v.count_ones() == 0 => return out.push(ALL_NULLS),
        Some(v) => {
            out.push(SOME_NULLS);
            out.extend_from_slice(bytemuck::cast_slice(v.words()));
        }
    }
    match &column.values {
        Values::Bit(bits) => encode_bits(bits, validity, out),
        Values::I8(v) => with_values(v, validity, |v| encode_integers(v, out)),
        Values::I16(v) => with_values(v, validity, |v| encode_integers(v, out)),
        Values::I32(v) => with_values(v, validity, |v| encode_integers(v, out)),
        Values::U32(v) => with_values(v, validity, |v| encode_integers(v, out)),
        Values::I64(v) => with_values(v, validity, |v| encode_longs(v, out)),
        Values::I128(v) => with_values(v, validity, |v| encode_wide(v, out)),
        Values::F32(v) => with_values(v, validity, |v| encode_plain(v, out)),
        Values::F64(v) => with_values(v, validity, |v| encode_doubles(v, out)),
        Values::B16(v) => with_values(v, validity, |v| encode_plain(v, out)),
        Values::Views(v) => with_values(v.views(), validity, |views| encode_text(views, v.data(), out)),
    }
}

/// Decodes the column of `rows` rows at the front of `input`.
///
/// The caller is responsible for `rows`, which limits the allocation for a column of equal values.
///
/// # Errors
/// Fails if the bytes are not such a column. The position of `input` is then unspecified.
pub fn decode_column(input: &mut &[u8], physical: Physical, rows: usize) -> Result<Column, BadColumn> {
    let validity = match take_u8(input)? {
        NO_NULLS => None,
        SOME_NULLS => Some(take_bits(input, rows)?),
        ALL_NULLS => return Ok(Column::nulls(physical, rows)),
        _ => return Err(BadColumn("unknown kind of NULLs")),
    };
    let nulls = validity.as_ref();
    let n = nulls.map_or(rows, Bitmap::count_ones);
    let values = match physical {
        Physical::Bit => decode_bits(input, rows).map(Values::Bit),
        Physical::I8 => decode_integers(input, n).map(|v| Values::I8(spread(v, nulls))),
        Physical::I16 => decode_integers(input, n).map(|v| Values::I16(spread(v, nulls))),
        Physical::I32 => decode_integers(input, n).map(|v| Values::I32(spread(v, nulls))),
        Physical::U32 => decode_integers(input, n).map(|v| Values::U32(spread(v, nulls))),
        Physical::I64 => decode_integers(input, n).map(|v| Values::I64(spread(v, nulls))),
        Physical::I128 => decode_as_longs(input, n, i128::from).map(|v| Values::I128(spread(v, nulls))),
        Physical::F64 => decode_as_longs(input, n, |v| v as f64).map(|v| Values::F64(spread(v, nulls))),
        Physical::F32 => decode_plain(input, n).map(|v| Values::F32(spread(v, nulls))),
        Physical::B16 => decode_plain(input, n).map(|v| Values::B16(spread(v, nulls))),
        Physical::Views => decode_text(input, nulls, rows, n).map(Values::Views),
    }?;
    Ok(Column { values, validity })
}

/// Decodes like [`decode_column`] and appends the rows to a column of the same type.
///
/// # Errors
/// Fails if the bytes are not such a column. `input` and `column` are then unspecified.
pub fn decode_column_onto(input: &mut &[u8], rows: usize, column: &mut Column) -> Result<(), BadColumn> {
    // One row or a few, which no encoding makes smaller: the content of a log of small commits. Avoids an allocation
    // for each.
    if column.validity.is_none()
        && let Some(rest) = input.strip_prefix(&[NO_NULLS, PLAIN])
    {
        let mut values = rest;
        let is_taken = match_values!(
            &mut column.values,
            v => take_onto(&mut values, rows, v)?,
            Bit(_b) => false,
            Views(_v) => false,
        );
        if is_taken {
            *input = values;
            return Ok(());
        }
    }
    let decoded = decode_column(input, column.values.physical(), rows)?;
    column.extend_from_range(&decoded, 0, rows);
    Ok(())
}

fn take_onto<T: bytemuck::Pod>(input: &mut &[u8], n: usize, out: &mut Vec<T>) -> Result<bool, BadColumn> {
    let bytes = take(input, n.checked_mul(size_of::<T>()).ok_or(TOO_SHORT)?)?;
    out.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
    Ok(true)
}

// NULLs

/// Calls `encode` with the values of the rows that are not NULL.
fn with_values<T: Copy>(values: &[T], validity: Option<&Bitmap>, encode: impl FnOnce(&[T])) {
    let Some(validity) = validity else { return encode(values) };
    let mut present = Vec::with_capacity(values.len());
    for (chunk, &word) in values.chunks(64).zip(validity.words()) {
        let mut bits = word;
        if bits == u64::MAX {
            present.extend_from_slice(chunk);
        }
        while bits != 0 && bits != u64::MAX {
            present.push(chunk[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
    }
    encode(&present);
}

/// The inverse: `values` at the set bits, defaults elsewhere.
fn spread<T: Copy + Zeroable>(values: Vec<T>, validity: Option<&Bitmap>) -> Vec<T> {
    let Some(validity) = validity else { return values };
    let mut rows = vec![T::zeroed(); validity.len()];
    let mut next = values.iter();
    for (chunk, &word) in rows.chunks_mut(64).zip(validity.words()) {
        let mut bits = word;
        while bits != 0
            && let Some(value) = next.next()
        {
            chunk[bits.trailing_zeros() as usize] = *value;
            bits &= bits - 1;
        }
    }
    rows
}

// Bits and plain values

fn encode_bits(bits: &Bitmap, validity: Option<&Bitmap>, out: &mut Vec<u8>) {
    out.push(PLAIN);
    match validity {
        None => out.extend_from_slice(bytemuck::cast_slice(bits.words())),
        Some(v) => out.extend(bits.words().iter().zip(v.words()).flat_map(|(b, v)| (b & v).to_le_bytes())),
    }
}

fn decode_bits(input: &mut &[u8], rows: usize) -> Result<Bitmap, BadColumn> {
    match take_u8(input)? {
        PLAIN => take_bits(input, rows),
        _ => Err(BadColumn("unknown encoding of bits")),
    }
}

fn decode_plain<T: bytemuck::Pod>(input: &mut &[u8], n: usize) -> Result<Vec<T>, BadColumn> {
    match take_u8(input)? {
        PLAIN => take_plain(input, n),
        _ => Err(BadColumn("unknown encoding of plain values")),
    }
}

// Doubles and 128-bit integers that may be integers of 64 bits

/// 1.5 · 2^52: added to a double of less than 2^51, the low bits of the sum are its integer part.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
const ROUNDED_MAX: i64 = 1 << 51;

fn encode_doubles(values: &[f64], out: &mut Vec<u8>) {
    let sample_is_whole = values.iter().step_by(values.len() / SAMPLE + 1).all(|&v| is_whole(v));
    match sample_is_whole.then(|| whole_range(values)).flatten() {
        Some((min, max)) if 1 + integers::frame_bytes(values.len(), min, max) < size_of_val(values) => {
            out.push(LONG);
            integers::put_frame(values, min, max, |v| whole(v).wrapping_sub(min) as u64, out);
        }
        _ => encode_plain(values, out),
    }
}

#[inline]
fn whole(value: f64) -> i64 {
    (value + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i64
}

/// Returns true if `value` is an integer of less than 2^51 that is reproduced bit by bit: not −0 and NaN.
#[inline]
fn is_whole(value: f64) -> bool {
    let long = whole(value);
    (long as f64).to_bits() == value.to_bits() && long.unsigned_abs() < ROUNDED_MAX as u64
}

/// Returns the smallest and the greatest value if all values are whole; `None` if one is not or there are none.
fn whole_range(values: &[f64]) -> Option<(i64, i64)> {
    // Lanes, because the compiler may not reorder comparisons of doubles.
    const LANES: usize = 8;
    let mut least = [f64::INFINITY; LANES];
    let mut greatest = [f64::NEG_INFINITY; LANES];
    let mut differing = [0; LANES];
    let mut look = |lane: usize, v: f64| {
        let back = (v + ROUNDER) - ROUNDER;
        // NaN and numbers out of range may be reproduced bit by bit; NaN is checked here, the range afterwards.
        differing[lane] |= (back.to_bits() ^ v.to_bits()) | u64::from(v.is_nan());
        least[lane] = if v < least[lane] { v } else { least[lane] };
        greatest[lane] = if v > greatest[lane] { v } else { greatest[lane] };
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        (0..LANES).for_each(|lane| look(lane, chunk[lane]));
    }
    rest.iter().enumerate().for_each(|(lane, &v)| look(lane, v));
    let (min, max) =
        (least.into_iter().fold(f64::INFINITY, f64::min), greatest.into_iter().fold(f64::NEG_INFINITY, f64::max));
    let limit = ROUNDED_MAX as f64;
    let all_come_back = differing == [0; LANES] && -limit < min && min <= max && max < limit;
    all_come_back.then_some((min as i64, max as i64))
}

fn encode_wide(values: &[i128], out: &mut Vec<u8>) {
    let longs: Option<Vec<i64>> = values.iter().map(|&v| i64::try_from(v).ok()).collect();
    match longs {
        Some(longs) if !longs.is_empty() => {
            out.push(LONG);
            encode_longs(&longs, out);
        }
        _ => encode_plain(values, out),
    }
}

fn decode_as_longs<T: bytemuck::Pod>(input: &mut &[u8], n: usize, from: fn(i64) -> T) -> Result<Vec<T>, BadColumn> {
    match take_u8(input)? {
        PLAIN => take_plain(input, n),
        LONG => Ok(decode_integers(input, n)?.into_iter().map(from).collect()),
        _ => Err(BadColumn("unknown encoding of wide values")),
    }
}

// Text

fn encode_text(views: &[u128], data: &[u8], out: &mut Vec<u8>) {
    let lengths: Vec<u32> = views.iter().map(|&v| v as u32).collect();
    let total: usize = lengths.iter().map(|&l| l as usize).sum();
    out.push(TEXT);
    out.extend_from_slice(&(total as u64).to_le_bytes());
    encode_integers(&lengths, out);
    let mut at = out.len();
    // An inline value is written as 12 bytes and overwritten from its end on: space for the last one.
    out.resize(at + total + INLINE_BYTES, 0);
    for (&view, &len) in views.iter().zip(&lengths) {
        let len = len as usize;
        if len <= INLINE_BYTES {
            out[at..at + INLINE_BYTES].copy_from_slice(&view.to_le_bytes()[4..]);
        } else {
            let offset = (view >> 96) as usize;
            out[at..at + len].copy_from_slice(&data[offset..offset + len]);
        }
        at += len;
    }
    out.truncate(at);
}

fn decode_text(input: &mut &[u8], validity: Option<&Bitmap>, rows: usize, n: usize) -> Result<Views, BadColumn> {
    if take_u8(input)? != TEXT {
        return Err(BadColumn("unknown encoding of text"));
    }
    let total = u64::from_le_bytes(take_array(input)?);
    let lengths: Vec<u32> = decode_integers(input, n)?;
    if lengths.iter().map(|&l| u64::from(l)).sum::<u64>() != total {
        return Err(BadColumn("lengths do not add up"));
    }
    let mut bytes = take(input, usize::try_from(total).map_err(|_| TOO_SHORT)?)?;
    let mut views = Views::with_capacity(rows);
    let mut lengths = lengths.into_iter();
    for row in 0..rows {
        let length = if validity.is_none_or(|v| v.get(row)) { lengths.next() } else { None };
        let Some(length) = length else {
            views.push_empty(1);
            continue;
        };
        let (value, rest) = bytes.split_at_checked(length as usize).ok_or(TOO_SHORT)?;
        bytes = rest;
        if !views.has_room(value.len()) {
            return Err(BadColumn("more than 2 GiB of text"));
        }
        views.push(value);
    }
    Ok(views)
}

fn take_bits(input: &mut &[u8], rows: usize) -> Result<Bitmap, BadColumn> {
    Ok(Bitmap::from_words(take_plain(input, rows.div_ceil(64))?, rows))
}

#[cfg(test)]
mod tests;
