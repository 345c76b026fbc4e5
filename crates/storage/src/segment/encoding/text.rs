//! Stores each string after its length: for all rows, or for the distinct strings of a dictionary. Written only in
//! compressed form: zstd finds lengths together with repeated strings.
//!
//! ```text
//! strings  of each: its length in bits of 7, least first, the highest bit of a byte set if another follows; its bytes
//! codes    of a dictionary: [`planes`] of the code of each row
//! ```
//!
//! NULL is the empty string. Views of decoded rows point between the lengths.

use super::choice::Payload;
use super::chunk::{Layout, code_bits};
use super::mask::put;
use super::planes::{self, Form};
use super::{EncodedBlock, fsst, nulls};
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_types::ViewsRef;
use tidalite_types::column_type::Physical;
use tidalite_types::views::{DATA_BYTES_MAX, INLINE_BYTES, inline_view, outline_view};

/// Bytes of the greatest length.
const LENGTH_BYTES_MAX: usize = 5;

/// Encodes all rows; `None` if there is too much text.
pub(super) fn payload(strings: ViewsRef<'_>) -> Option<Payload<'static>> {
    let strings = written(strings)?;
    let data_bytes = strings.len() as u32;
    Some(Payload { encoding: Encoding::Text, parameter: 0, data_bytes, sections: vec![strings.into()] })
}

/// Encodes a dictionary of `distinct` strings and a code per row.
pub(super) fn dictionary_payload(distinct: ViewsRef<'_>, codes: &[u16]) -> Option<Payload<'static>> {
    code_bits(distinct.views.len())?;
    let codes: Vec<u64> = codes.iter().map(|code| u64::from(*code)).collect();
    let codes = planes::written(&codes, if planes::has_runs(&codes) { Form::Runs } else { Form::Values });
    let parameter = distinct.views.len() as u32;
    let strings = written(distinct)?;
    let data_bytes = strings.len() as u32;
    Some(Payload { encoding: Encoding::TextDict, parameter, data_bytes, sections: vec![strings.into(), codes.into()] })
}

fn written(strings: ViewsRef<'_>) -> Option<Vec<u8>> {
    let lengths = || strings.views.iter().map(|view| *view as u32 as usize);
    if lengths().map(|len| len + LENGTH_BYTES_MAX).sum::<usize>() > DATA_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(lengths().map(|len| len + 2).sum());
    for (row, mut len) in lengths().enumerate() {
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend_from_slice(strings.get(row));
    }
    Some(out)
}

/// Returns views of the `count` strings that fill `text`.
fn views(text: &[u8], count: usize) -> Result<Vec<u128>, String> {
    let cut_off = || "its text is cut off".to_owned();
    let (mut views, mut at) = (Vec::with_capacity(count), 0);
    for _ in 0..count {
        let first = *text.get(at).ok_or_else(cut_off)?;
        at += 1;
        let len =
            if first < 0x80 { usize::from(first) } else { long_length(text, first, &mut at).ok_or_else(cut_off)? };
        let end = at + len;
        views.push(if at + 16 <= text.len() && end <= text.len() {
            fsst::view(text, at, len as u32)
        } else {
            let string = text.get(at..end).ok_or_else(cut_off)?;
            if len <= INLINE_BYTES { inline_view(string) } else { outline_view(string, at) }
        });
        at = end;
    }
    if at == text.len() { Ok(views) } else { Err(format!("{at} bytes of text where {} belong", text.len())) }
}

/// Reads the rest of a length whose first byte was read.
#[cold]
fn long_length(text: &[u8], first: u8, at: &mut usize) -> Option<usize> {
    let mut len = u64::from(first & 0x7f);
    for shift in 1..LENGTH_BYTES_MAX {
        let byte = *text.get(*at)?;
        *at += 1;
        len |= u64::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            return usize::try_from(len).ok();
        }
    }
    None
}

/// Returns views of the strings of a decompressed block.
pub(super) fn strings(layout: &Layout, block: &EncodedBlock) -> Result<Vec<u128>, String> {
    let count = match (block.entry.encoding, block.physical) {
        (Encoding::Text, Physical::Views) => block.rows,
        (_, Physical::Views) => block.entry.parameter as usize,
        (_, physical) => return Err(format!("text of {physical:?}")),
    };
    let text = layout.data(&block.bytes);
    if text.len() > DATA_BYTES_MAX {
        return Err(format!("{} bytes of text", text.len()));
    }
    views(text, count)
}

pub(super) fn check(layout: &Layout, block: &EncodedBlock) -> Result<(), String> {
    decode(layout, block).map(|_| ())
}

/// Checks the sections during decoding.
pub(super) fn decode(layout: &Layout, block: &EncodedBlock) -> Result<BlockData, String> {
    let strings = strings(layout, block)?;
    let mut views = match block.entry.encoding {
        Encoding::Text => strings,
        _ => codes(layout, block)?.into_iter().map(|code| strings[usize::from(code)]).collect(),
    };
    nulls::zero_nulls(&mut views, layout.validity(&block.bytes));
    Ok(BlockData::Views { views: share(views), data: layout.data_bytes(&block.bytes) })
}

/// Returns views of the distinct strings of a dictionary, and the code of each row.
pub(super) fn dictionary(layout: &Layout, block: &EncodedBlock) -> Result<(Vec<u128>, Vec<u16>), String> {
    Ok((strings(layout, block)?, codes(layout, block)?))
}

/// Returns the codes after checking that they are below the number of distinct strings.
fn codes(layout: &Layout, block: &EncodedBlock) -> Result<Vec<u16>, String> {
    let codes = planes::read(layout.payload(&block.bytes), block.rows)?;
    let code = |code: u64| u16::try_from(code).ok().filter(|code| u32::from(*code) < block.entry.parameter);
    Ok(codes.into_iter().map(code).collect::<Option<_>>().ok_or("a code past its dictionary")?)
}

/// Selects the rows of a dictionary whose string satisfies `is_wanted`.
pub(super) fn rows_of_dictionary(
    layout: &Layout,
    block: &EncodedBlock,
    is_wanted: impl Fn(&u128) -> bool,
    mask: &mut [u64],
) -> Option<()> {
    let strings = strings(layout, block).ok()?;
    if let Some(wanted) = strings.iter().position(is_wanted) {
        let codes = planes::read(layout.payload(&block.bytes), block.rows).ok()?;
        codes.iter().enumerate().for_each(|(row, code)| put(mask, row, *code == wanted as u64));
    }
    Some(())
}
