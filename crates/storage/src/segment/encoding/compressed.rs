//! Compresses the sections of another encoding as a whole with zstd, for sealed rows, if it saves enough.
//!
//! ```text
//! inner  u8: tag of the other encoding
//! zeros  3
//! bytes  u32: of its sections
//! frame  one frame of zstd, which says as many bytes
//! ```
//!
//! All other fields of the entry belong to the other encoding. Zones and validity are not compressed, so that bounds
//! and numbers of NULLs are available without decompression. A block is decompressed as a whole: reading one row costs
//! all rows of its block.

use super::EncodedBlock;
use super::choice::Payload;
use crate::segment::buffer::AlignedBuffer;
use crate::segment::format::{Encoding, Entry, aligned, u32_at};
use tidalite_types::column_type::Physical;
use tidalite_types::views::DATA_BYTES_MAX;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, get_frame_content_size};

const HEAD_BYTES: usize = 8;
/// zstd level for numbers; all levels decompress at the same speed. The result is 5 to 10 % smaller than with level 9,
/// for twice the work; higher levels save hardly more.
const LEVEL: i32 = 13;
/// zstd level for text. Titles and addresses are 15 % smaller than with level 6, for three times the work; level 16
/// would save another 12 % for six times the work.
const TEXT_LEVEL: i32 = 12;
/// zstd level for comparing candidates.
const GUESS_LEVEL: i32 = 1;
/// zstd level for comparing candidates of text, whose repetitions are far apart.
const TEXT_GUESS_LEVEL: i32 = 3;
/// Strings repeat anywhere in a block, so the window is the block, up to 64 MiB.
const WINDOW_LOG_MAX: u32 = 26;
const WINDOW_LOG_MIN: u32 = 10;
/// Cost of a byte of numbers in percent: they are opened when they enter the block cache ([`super::opened`]), where
/// they can be compared in packed form, and cannot be read in part before.
const WEIGHT: usize = 110;
/// zstd compresses 128 KiB of one byte value to at least 4 bytes.
const RATIO_MAX: usize = (128 << 10) / 4;

/// Compresses text; `None` if it does not become smaller.
pub(super) fn text(inner: &Payload<'_>) -> Option<Payload<'static>> {
    payload(inner, TEXT_LEVEL)
}

/// Estimates the size of compressed text in bytes.
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

/// Returns the sections as they are stored in a chunk.
fn concatenated(payload: &Payload<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.bytes());
    for section in payload.sections.iter().filter(|section| !section.is_empty()) {
        bytes.resize(aligned(bytes.len()), 0);
        bytes.extend_from_slice(section);
    }
    bytes
}

/// Returns `bare`, or the smallest of it and `others` in compressed form if that is clearly smaller.
pub(super) fn smaller<'a>(bare: Payload<'a>, others: &[Payload<'_>]) -> Payload<'a> {
    let limit = bare.bytes() * 100 / WEIGHT;
    // Blocks of a few lines stay uncompressed: the padding would exceed the gain.
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

/// Returns the tag of the other encoding, the size of its sections in bytes, and the frame.
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

/// Returns an upper bound of the bytes of the sections of any encoding of these rows.
fn bytes_max(block: &EncodedBlock) -> usize {
    let data = if block.physical == Physical::Views { DATA_BYTES_MAX } else { 0 };
    // Values of sixteen bytes, one more word per row, headers and padding.
    data + block.rows * 24 + 4096
}

/// Returns the encoding inside, if `block` is compressed.
pub(super) fn inner(block: &EncodedBlock) -> Option<Encoding> {
    let layout = block.check_length().ok().filter(|_| block.entry.encoding == Encoding::Compressed)?;
    parse(layout.payload(&block.bytes), block).ok().map(|(inner, ..)| inner)
}

/// Checks the header. [`inflate`] checks the content of the frame.
pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    parse(payload, block).map(|_| ())
}

/// Returns the block in the other encoding. The block is checked here or by its decoder.
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

/// Returns the block for comparison in the other encoding; `None` if that encoding must be decoded first.
pub(super) fn comparable(block: &EncodedBlock) -> Option<EncodedBlock> {
    match inner(block)? {
        Encoding::Planes | Encoding::Dict | Encoding::Narrow => None,
        _ => inflate(block).ok(),
    }
}

#[cfg(test)]
mod tests;
