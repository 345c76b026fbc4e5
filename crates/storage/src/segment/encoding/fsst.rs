//! Encodes text as codes of frequent symbols, see [`tidalite_kernels::fsst`]: the strings of all rows, or the distinct
//! strings of a dictionary.
//!
//! ```text
//! text bytes   u32: of all strings together
//! code bytes   u32
//! symbols      u8: how many, then their lengths, a byte each, then their bytes
//! starts       u32 a vector of strings: where its codes begin
//! codes        of all strings one after the other
//! frames       of the lengths of the strings, u32
//! ```
//!
//! A string is located by the lengths of the previous strings of its vector. NULL is the empty string.

use super::choice::Payload;
use super::frames::{Frames, FramesWriter, plan};
use super::mask::words_of;
use super::picked::Picked;
use super::{EncodedBlock, dict, nulls};
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::encoding::chunk::Layout;
use crate::segment::format::{Encoding, u32_at};
use tidalite_kernels::fsst::decompress::SLACK_BYTES;
use tidalite_kernels::fsst::{Compressor, Decompressor, SAMPLE_BYTES, SYMBOL_BYTES_MAX, SymbolTable, train};
use tidalite_kernels::{Unpacker, min_max};
use tidalite_types::column_type::Physical;
use tidalite_types::views::{DATA_BYTES_MAX, INLINE_BYTES};
use tidalite_types::{VECTOR_ROWS, Views, ViewsRef};

/// Size in bytes of the header: text bytes and code bytes.
const HEAD_BYTES: usize = 8;
/// Size in bytes of a stored length.
const LENGTH_BYTES: usize = 4;

/// Encodes all rows; `None` if there is too much text.
pub(super) fn payload(strings: ViewsRef<'_>) -> Option<Payload<'static>> {
    Some(Payload::new(Encoding::Fsst, 0, compressed(strings)?))
}

/// Encodes a dictionary of `distinct` strings with packed codes of the rows.
pub(super) fn dictionary_payload(distinct: ViewsRef<'_>, codes: Vec<u8>) -> Option<Payload<'static>> {
    let mut payload = Payload::new(Encoding::FsstDict, distinct.views.len() as u32, codes);
    payload.sections.push(compressed(distinct)?.into());
    Some(payload)
}

fn compressed(strings: ViewsRef<'_>) -> Option<Vec<u8>> {
    let lengths: Vec<u32> = strings.views.iter().map(|view| *view as u32).collect();
    let text_bytes: usize = lengths.iter().map(|len| *len as usize).sum();
    // Views of rows must be able to address positions after the text.
    if text_bytes + SLACK_BYTES > DATA_BYTES_MAX {
        return None;
    }
    let mut text = Vec::with_capacity(text_bytes + SYMBOL_BYTES_MAX);
    (0..strings.views.len()).for_each(|row| text.extend_from_slice(strings.get(row)));
    text.resize(text_bytes + SYMBOL_BYTES_MAX, 0);
    let table = train(&sample(strings, text_bytes));
    let (codes, starts) = codes(&Compressor::new(&table), &text, &lengths);
    let mut out = Vec::with_capacity(codes.len() + lengths.len());
    out.extend((text_bytes as u32).to_le_bytes());
    out.extend((codes.len() as u32).to_le_bytes());
    out.push(table.len() as u8);
    out.extend(table.to_bytes());
    out.extend_from_slice(bytemuck::cast_slice(&starts));
    out.extend_from_slice(&codes);
    let mut writer = FramesWriter::new(lengths.len());
    for lengths in lengths.chunks(VECTOR_ROWS) {
        let (lo, hi) = min_max(lengths)?;
        writer.push(lengths, plan(lengths, lo, hi), LENGTH_BYTES);
    }
    Some(writer.finish(out))
}

/// Returns strings from the whole block, about as many as training requires.
fn sample<'a>(strings: ViewsRef<'a>, text_bytes: usize) -> Vec<&'a [u8]> {
    // An odd step, so that it does not align with data of a period of a power of two.
    let step = (text_bytes / SAMPLE_BYTES) | 1;
    // A sample of a few long strings contains their beginnings only.
    (0..strings.views.len())
        .step_by(step)
        .map(|row| strings.get(row))
        .map(|s| &s[..s.len().min(SAMPLE_BYTES / 4)])
        .collect()
}

fn codes(compressor: &Compressor, text: &[u8], lengths: &[u32]) -> (Vec<u8>, Vec<u32>) {
    let (mut codes, mut starts, mut from) = (Vec::with_capacity(text.len() / 2), Vec::new(), 0);
    for lengths in lengths.chunks(VECTOR_ROWS) {
        starts.push(codes.len() as u32);
        for len in lengths {
            compressor.compress(text, from, *len as usize, &mut codes);
            from += *len as usize;
        }
    }
    (codes, starts)
}

/// Parsed compressed strings of a chunk.
struct Strings<'a> {
    text_bytes: usize,
    decompressor: Decompressor,
    starts: Vec<usize>,
    codes: &'a [u8],
    lengths: Frames<'a>,
}

impl<'a> Strings<'a> {
    fn parse(bytes: &'a [u8], count: usize) -> Result<Strings<'a>, String> {
        let cut_off = "its symbols are cut off";
        if bytes.len() <= HEAD_BYTES {
            return Err(cut_off.to_owned());
        }
        let (text_bytes, code_bytes) = (u32_at(bytes, 0) as usize, u32_at(bytes, 4) as usize);
        let symbols = usize::from(bytes[HEAD_BYTES]);
        let (table, used) = SymbolTable::from_bytes(&bytes[HEAD_BYTES + 1..], symbols).ok_or(cut_off)?;
        let starts_at = HEAD_BYTES + 1 + used;
        let codes_at = starts_at + LENGTH_BYTES * count.div_ceil(VECTOR_ROWS);
        let starts = bytes.get(starts_at..codes_at).ok_or("where its codes begin is cut off")?;
        let starts: Vec<usize> = starts.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four) as usize).collect();
        let codes = bytes.get(codes_at..codes_at + code_bytes).ok_or("its codes are cut off")?;
        if starts.first() != Some(&0) || !starts.is_sorted() || starts.last().is_some_and(|s| *s > code_bytes) {
            return Err("codes of a vector out of place".to_owned());
        }
        let lengths = Frames::parse(bytes, codes_at + code_bytes, count, LENGTH_BYTES)?;
        Ok(Strings { text_bytes, decompressor: Decompressor::new(&table), starts, codes, lengths })
    }

    /// Checks that the codes of each vector have as many text bytes as its strings.
    fn check(&self) -> Result<(), String> {
        self.lengths.check()?;
        let (mut unpacker, mut lengths, mut total) = (Unpacker::new(), Vec::new(), 0);
        for (i, start) in self.starts.iter().enumerate() {
            lengths.clear();
            self.lengths.vector::<u32>(i).unpack(&mut unpacker, &mut lengths);
            let expected: u64 = lengths.iter().map(|len| u64::from(*len)).sum();
            let end = self.starts.get(i + 1).copied().unwrap_or(self.codes.len());
            let found = self.decompressor.text_bytes(&self.codes[*start..end]).ok_or("a code without a symbol")?;
            if found as u64 != expected {
                return Err(format!("{found} bytes of text in vector {i} where {expected} belong"));
            }
            total += found;
        }
        if total == self.text_bytes && total + SLACK_BYTES <= DATA_BYTES_MAX {
            Ok(())
        } else {
            Err(format!("{total} bytes of text where {} belong", self.text_bytes))
        }
    }

    /// Returns the views of all strings and the text that they point to.
    fn views(&self, count: usize) -> (Vec<u128>, Vec<u8>) {
        let mut text = vec![0; self.text_bytes + SLACK_BYTES];
        self.decompressor.decompress(self.codes, &mut text);
        let (mut unpacker, mut lengths) = (Unpacker::new(), Vec::with_capacity(count));
        (0..self.starts.len()).for_each(|i| self.lengths.vector::<u32>(i).unpack(&mut unpacker, &mut lengths));
        let mut at = 0;
        let view = |len: u32| {
            let from = at;
            at += len as usize;
            view(&text, from, len)
        };
        (lengths.into_iter().map(view).collect(), text)
    }
}

/// Returns the view of `text[from..from + len]`; at least 16 bytes must follow `from`.
#[inline]
pub(super) fn view(text: &[u8], from: usize, len: u32) -> u128 {
    let word = u128::from_le_bytes(text[from..from + 16].try_into().expect("sixteen bytes"));
    match INLINE_MASKS.get(len as usize) {
        Some(mask) => (word & mask) << 32 | u128::from(len),
        None => u128::from(len) | u128::from(word as u32) << 32 | (from as u128) << 96,
    }
}

/// Masks of the bytes of an inline string in its view, by length.
const INLINE_MASKS: [u128; INLINE_BYTES + 1] = {
    let (mut masks, mut len) = ([0; INLINE_BYTES + 1], 0);
    while len <= INLINE_BYTES {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

fn count(block: &EncodedBlock) -> Result<usize, String> {
    match (block.entry.encoding, block.physical) {
        (Encoding::Fsst, Physical::Views) => Ok(block.rows),
        (_, Physical::Views) => Ok(block.entry.parameter as usize),
        (_, physical) => Err(format!("symbols of {physical:?}")),
    }
}

pub(super) fn check(layout: &Layout, block: &EncodedBlock) -> Result<(), String> {
    let count = count(block)?;
    Strings::parse(layout.payload(&block.bytes), count)?.check()?;
    match block.entry.encoding {
        Encoding::Fsst => Ok(()),
        _ => dict::check_packed(layout.codes(&block.bytes), block.entry.parameter, block.rows),
    }
}

pub(super) fn decode(layout: &Layout, block: &EncodedBlock) -> Result<BlockData, String> {
    let (views, mut text) = {
        let strings = Strings::parse(layout.payload(&block.bytes), count(block)?)?;
        strings.views(count(block)?)
    };
    let mut views = match block.entry.encoding {
        Encoding::Fsst => views,
        _ => dict::look_up_packed(&views, layout.codes(&block.bytes), block.rows),
    };
    nulls::zero_nulls(&mut views, layout.validity(&block.bytes));
    text.truncate(text.len() - SLACK_BYTES);
    Ok(BlockData::Views { views: share(views), data: share(text) })
}

/// Returns the distinct strings of a dictionary: views and their data.
pub(super) fn distinct(layout: &Layout, block: &EncodedBlock) -> Option<(Vec<u128>, Vec<u8>)> {
    let count = count(block).ok()?;
    Some(Strings::parse(layout.payload(&block.bytes), count).ok()?.views(count))
}

/// Returns the rows of [`Encoding::Fsst`] equal to `wanted`, in vectors that have a row in `among`.
pub(super) fn rows_equal(
    layout: &Layout,
    block: &EncodedBlock,
    wanted: &[u8],
    among: Option<&[u64]>,
    mask: &mut [u64],
) -> Option<()> {
    let strings = Strings::parse(layout.payload(&block.bytes), block.rows).ok()?;
    let (mut unpacker, mut lengths, mut text) = (Unpacker::new(), Vec::new(), Vec::new());
    for (i, start) in strings.starts.iter().enumerate() {
        if among.is_some_and(|mask| words_of(mask, i).iter().all(|word| *word == 0)) {
            continue;
        }
        lengths.clear();
        strings.lengths.vector::<u32>(i).unpack(&mut unpacker, &mut lengths);
        if !lengths.iter().any(|len| *len as usize == wanted.len()) {
            continue;
        }
        let end = strings.starts.get(i + 1).copied().unwrap_or(strings.codes.len());
        text.resize(lengths.iter().map(|len| *len as usize).sum::<usize>() + SLACK_BYTES, 0);
        strings.decompressor.decompress(&strings.codes[*start..end], &mut text);
        let mut rest = text.as_slice();
        for (row, len) in lengths.iter().enumerate() {
            let string;
            (string, rest) = rest.split_at(*len as usize);
            mask[i * (VECTOR_ROWS / 64) + row / 64] |= u64::from(string == wanted) << (row % 64);
        }
    }
    Some(())
}

/// Returns the text of each selected row in sequence, with the lengths.
pub(super) fn take(layout: &Layout, block: &EncodedBlock, picked: &Picked<'_>) -> Result<Views, String> {
    let strings = Strings::parse(layout.payload(&block.bytes), block.rows)?;
    let (mut unpacker, mut lengths, mut text) = (Unpacker::new(), Vec::new(), Vec::new());
    let mut out = Views::with_capacity(picked.rows());
    for (i, words) in picked.vectors() {
        lengths.clear();
        strings.lengths.vector::<u32>(i).unpack(&mut unpacker, &mut lengths);
        let (from, end) = (strings.starts[i], strings.starts.get(i + 1).copied().unwrap_or(strings.codes.len()));
        text.resize(lengths.iter().map(|len| *len as usize).sum::<usize>() + SLACK_BYTES, 0);
        strings.decompressor.decompress(&strings.codes[from..end], &mut text);
        let (mut row, mut at) = (0, 0);
        for wanted in tidalite_kernels::picked(words) {
            at += lengths[row..wanted].iter().map(|len| *len as usize).sum::<usize>();
            let len = lengths[wanted] as usize;
            out.push(&text[at..at + len]);
            (row, at) = (wanted + 1, at + len);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
