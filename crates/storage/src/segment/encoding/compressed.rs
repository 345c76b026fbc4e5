//! The sections of another encoding, compressed as a whole by zstd: for rows that stay, where it saves enough.
//!
//! ```text
//! inner  u8: tag of the other encoding
//! zeros  3
//! bytes  u32: of its sections
//! frame  one frame of zstd, which says as many bytes
//! ```
//!
//! What else the entry says is the other encoding's. Zones and validity stay outside, so that bounds and numbers of
//! NULLs are known without decompressing. A block is decompressed as a whole: reading one row costs all rows of its
//! block.

use super::EncodedBlock;
use super::choice::Payload;
use crate::segment::buffer::AlignedBuffer;
use crate::segment::format::{Encoding, Entry, aligned, u32_at};
use tidalite_types::column_type::Physical;
use tidalite_types::views::DATA_BYTES_MAX;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, get_frame_content_size};

const HEAD_BYTES: usize = 8;
/// How hard zstd tries: levels decompress alike. Of numbers this takes 5 to 10 % less than 9, for twice the work; they
/// get hardly smaller past it.
const LEVEL: i32 = 13;
/// Of titles and addresses this takes 15 % less than 6, for three times the work; 16 takes 12 % less than this, for six
/// times the work.
const TEXT_LEVEL: i32 = 12;
/// Tells candidates apart.
const GUESS_LEVEL: i32 = 1;
/// The same of text, whose repetitions lie far apart.
const TEXT_GUESS_LEVEL: i32 = 3;
/// Strings repeat anywhere in a block, so the window is the block, up to 64 MiB.
const WINDOW_LOG_MAX: u32 = 26;
const WINDOW_LOG_MIN: u32 = 10;
/// What a byte of numbers counts, in percent: they are opened when they enter the block cache ([`super::opened`]), where
/// they can be compared in their bits again, and until then cannot be read in part.
const WEIGHT: usize = 110;
/// 128 KiB of one byte take 4 bytes at least.
const RATIO_MAX: usize = (128 << 10) / 4;

/// Of text; `None` when it does not get smaller.
pub(super) fn text(inner: &Payload<'_>) -> Option<Payload<'static>> {
    payload(inner, TEXT_LEVEL)
}

/// About the bytes of text when it is compressed.
pub(super) fn text_guess(inner: &Payload<'_>) -> Option<usize> {
    Some(compress(&concatenated(inner), TEXT_GUESS_LEVEL)?.len())
}

fn payload(inner: &Payload<'_>, level: i32) -> Option<Payload<'static>> {
    let sections = concatenated(inner);
    let frame = compress(&sections, level)?;
    let mut bytes = Vec::with_capacity(HEAD_BYTES + frame.len());
    bytes.extend([inner.encoding as u8, 0, 0, 0]);
    bytes.extend((sections.len() as u32).to_le_bytes());
    bytes.extend(frame);
    let is_smaller = bytes.len() < sections.len();
    let (parameter, data_bytes) = (inner.parameter, inner.data_bytes);
    let payload = || Payload { encoding: Encoding::Compressed, parameter, data_bytes, sections: vec![bytes.into()] };
    is_smaller.then(payload)
}

fn compress(bytes: &[u8], level: i32) -> Option<Vec<u8>> {
    let mut compressor = Compressor::new(level).ok()?;
    if level >= LEVEL {
        let window_log = usize::BITS - bytes.len().leading_zeros();
        let window_log = window_log.clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
        compressor.set_parameter(CParameter::WindowLog(window_log)).ok()?;
    }
    compressor.compress(bytes).ok()
}

/// As they follow each other in a chunk.
fn concatenated(payload: &Payload<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.bytes());
    for section in payload.sections.iter().filter(|section| !section.is_empty()) {
        bytes.resize(aligned(bytes.len()), 0);
        bytes.extend_from_slice(section);
    }
    bytes
}

/// `bare`, or the best of it and `others` compressed, if that is clearly smaller.
pub(super) fn smaller<'a>(bare: Payload<'a>, others: &[Payload<'_>]) -> Payload<'a> {
    let limit = bare.bytes() * 100 / WEIGHT;
    // A few lines: padding would eat the gain.
    if limit < 256 {
        return bare;
    }
    let guess = |payload: &Payload<'_>| Some(compress(&concatenated(payload), GUESS_LEVEL)?.len());
    let best = others.iter().chain([&bare]).filter_map(|p| Some((guess(p)?, p))).min_by_key(|(bytes, _)| *bytes);
    match best.filter(|(bytes, _)| *bytes < limit + limit / 8).and_then(|(_, best)| payload(best, LEVEL)) {
        Some(compressed) if compressed.bytes() < limit => compressed,
        _ => bare,
    }
}

/// Tag of the other encoding, bytes of its sections, and the frame.
fn parse<'a>(payload: &'a [u8], block: &EncodedBlock) -> Result<(Encoding, usize, &'a [u8]), String> {
    if payload.len() <= HEAD_BYTES {
        return Err("its compressed sections are cut off".to_owned());
    }
    let (head, frame) = payload.split_at(HEAD_BYTES);
    let inner = match Encoding::from_tag(head[0]) {
        Some(inner) if !matches!(inner, Encoding::Compressed | Encoding::Nulls) => inner,
        _ => return Err(format!("compressed sections of encoding {}", head[0])),
    };
    let bytes = u32_at(head, 4) as usize;
    if bytes > bytes_max(block) || bytes > frame.len().saturating_mul(RATIO_MAX) {
        return Err(format!("{bytes} bytes of compressed sections"));
    }
    match get_frame_content_size(frame) {
        Ok(Some(found)) if found == bytes as u64 => Ok((inner, bytes, frame)),
        _ => Err(format!("compressed sections that are not {bytes} bytes")),
    }
}

/// More than the sections of any encoding of these rows take.
fn bytes_max(block: &EncodedBlock) -> usize {
    let data = if block.physical == Physical::Views { DATA_BYTES_MAX } else { 0 };
    // Values of sixteen bytes, a word a row beside them, heads and padding.
    data + block.rows * 24 + 4096
}

/// What is compressed, if `block` is.
pub(super) fn inner(block: &EncodedBlock) -> Option<Encoding> {
    let layout = block.check_length().ok().filter(|_| block.entry.encoding == Encoding::Compressed)?;
    parse(layout.payload(&block.bytes), block).ok().map(|(inner, ..)| inner)
}

/// Checks the head; what the frame holds is checked by [`inflate`].
pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    parse(payload, block).map(|_| ())
}

/// The block as the other encoding has it. It is checked, or decoding it refuses what is wrong.
pub(super) fn inflate(block: &EncodedBlock) -> Result<EncodedBlock, String> {
    let layout = block.check_length()?;
    let payload = layout.payload(&block.bytes);
    let (encoding, bytes, frame) = parse(payload, block)?;
    let start = block.bytes.len() - payload.len();
    let mut buffer = AlignedBuffer::zeroed(start + bytes);
    let (head, sections) = buffer.as_mut_slice().split_at_mut(start);
    head.copy_from_slice(&block.bytes[..start]);
    match zstd::bulk::decompress_to_buffer(frame, sections) {
        Ok(found) if found == bytes => {}
        _ => return Err("its compressed sections are damaged".to_owned()),
    }
    let entry = Entry { encoding, bytes: (start + bytes) as u32, ..block.entry };
    let inner = EncodedBlock { rows: block.rows, physical: block.physical, entry, bytes: buffer.freeze() };
    match encoding {
        Encoding::Text | Encoding::TextDict | Encoding::Planes => {
            inner.check_length()?;
        }
        _ => inner.check()?,
    }
    Ok(inner)
}

/// The block to compare as the other encoding is compared; `None` when that is not without decoding.
pub(super) fn comparable(block: &EncodedBlock) -> Option<EncodedBlock> {
    match inner(block)? {
        Encoding::Planes | Encoding::Dict | Encoding::Narrow => None,
        _ => inflate(block).ok(),
    }
}

#[cfg(test)]
mod tests;
