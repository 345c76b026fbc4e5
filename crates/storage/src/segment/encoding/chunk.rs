//! The sections of a chunk: written in sequence, located by the footer entry.

use super::choice::Payload;
use super::encoded_block::EncodedBlock;
use crate::segment::format::{Encoding, Entry, aligned};
use crate::{Bounds, Sum, Zone};
use bytes::Bytes;
use std::ops::Range;
use tidalite_kernels::{LINE_BYTES, line_count};
use tidalite_types::column_type::Physical;
use tidalite_types::{Bitmap, VECTOR_ROWS};

/// A chunk that is being written: bounds first, then its payload.
pub(super) struct Chunk {
    pub rows: usize,
    /// `None` if no row is NULL.
    pub validity: Option<Bitmap>,
    /// True if the payload may be compressed.
    pub compresses: bool,
    null_count: usize,
    bounds: Bounds,
    sum: Option<Sum>,
    zones: Vec<u64>,
    encoding: Encoding,
    parameter: u32,
    data_bytes: u32,
    bytes: Vec<u8>,
}

impl Chunk {
    pub fn new(rows: usize, validity: Option<Bitmap>, null_count: usize, compresses: bool) -> Chunk {
        Chunk {
            rows,
            validity,
            compresses,
            null_count,
            bounds: Bounds::None,
            sum: None,
            zones: Vec::new(),
            encoding: Encoding::Plain,
            parameter: 0,
            data_bytes: 0,
            bytes: Vec::new(),
        }
    }

    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    pub fn set_sum(&mut self, sum: Option<Sum>) {
        self.sum = sum;
    }

    /// Sets the smallest and the greatest value of each vector, in the layout of [`zones`](super::zones).
    pub fn set_zones(&mut self, zones: Vec<u64>) {
        self.zones = zones;
    }

    /// Returns true if the vector has a row that is not NULL. [`Chunk::validity`] has the rows.
    pub fn has_values(&self, vector: usize) -> bool {
        let words = VECTOR_ROWS / 64;
        self.validity.as_ref().is_none_or(|v| v.words().iter().skip(vector * words).take(words).any(|w| *w != 0))
    }

    /// Writes everything but the footer entry. Bounds and zones must be set before.
    pub fn write(&mut self, payload: &Payload<'_>) {
        (self.encoding, self.parameter, self.data_bytes) = (payload.encoding, payload.parameter, payload.data_bytes);
        let (zones, validity) = (std::mem::take(&mut self.zones), self.validity.take());
        self.section(bytemuck::cast_slice(&zones));
        if let Some(validity) = &validity {
            self.section(bytemuck::cast_slice(validity.words()));
        }
        (self.zones, self.validity) = (zones, validity);
        payload.sections.iter().for_each(|section| self.section(section));
    }

    fn section(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let start = aligned(self.bytes.len());
            self.bytes.reserve_exact(start - self.bytes.len() + bytes.len());
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub fn finish(self, physical: Physical) -> EncodedBlock {
        let entry = Entry {
            offset: 0,
            bytes: u32::try_from(self.bytes.len()).expect("views and data of a block stay below 4 GiB"),
            crc: crc32c::crc32c(&self.bytes),
            encoding: self.encoding,
            has_validity: self.validity.is_some(),
            has_zones: !self.zones.is_empty(),
            zone: Zone { null_count: self.null_count as u32, bounds: self.bounds },
            sum: self.sum,
            parameter: self.parameter,
            data_bytes: self.data_bytes,
        };
        EncodedBlock { rows: self.rows, physical, entry, bytes: Bytes::from(self.bytes) }
    }
}

/// Positions of the sections of a chunk. `first` contains values, distinct values or the smallest value.
#[derive(Debug)]
pub struct Layout {
    zones: Range<usize>,
    validity: Range<usize>,
    first: Range<usize>,
    data: Range<usize>,
    codes: Range<usize>,
    payload: Range<usize>,
    /// Bytes of a code or distance.
    pub code_bytes: usize,
    /// Length of the chunk.
    pub bytes: usize,
}

impl Layout {
    /// Returns the layout that the entry describes, without reading the chunk.
    pub fn of(entry: &Entry, physical: Physical, rows: usize) -> Result<Layout, String> {
        let parts = SectionBytes::of(entry, physical, rows)?;
        let mut end = 0usize;
        let mut place = |bytes: usize| {
            let start = if bytes == 0 { end } else { aligned(end) };
            end = start + bytes;
            start..end
        };
        let zones = place(if entry.has_zones { zones_bytes(rows) } else { 0 });
        let validity = place(if entry.has_validity { rows.div_ceil(64) * 8 } else { 0 });
        let first = place(parts.first);
        let data = place(parts.data);
        let codes = place(parts.codes);
        let start = aligned(codes.end);
        let payload = match entry.encoding {
            // The length is in the entry; the payload describes its own structure.
            Encoding::Constant
            | Encoding::Packed
            | Encoding::Delta
            | Encoding::Runs
            | Encoding::Alp
            | Encoding::AlpRd
            | Encoding::Fsst
            | Encoding::FsstDict
            | Encoding::TextDict
            | Encoding::Planes
            | Encoding::Compressed => place((entry.bytes as usize).saturating_sub(start)),
            Encoding::Nulls
            | Encoding::Plain
            | Encoding::Dict
            | Encoding::Narrow
            | Encoding::PackedDict
            | Encoding::Text => place(0),
        };
        Ok(Layout { zones, validity, first, data, codes, payload, code_bytes: parts.code_bytes, bytes: end })
    }

    pub fn zones<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.zones.clone()]
    }

    /// Returns the validity bits; empty if no row is NULL.
    pub fn validity<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.validity.clone()]
    }

    pub fn first<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.first.clone()]
    }

    pub fn data<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.data.clone()]
    }

    pub fn codes<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.codes.clone()]
    }

    /// Returns the payload of an [`Encoding`] that describes its own structure.
    pub fn payload<'a>(&self, chunk: &'a [u8]) -> &'a [u8] {
        &chunk[self.payload.clone()]
    }

    pub fn validity_bytes(&self, chunk: &Bytes) -> Bytes {
        chunk.slice(self.validity.clone())
    }

    pub fn first_bytes(&self, chunk: &Bytes) -> Bytes {
        chunk.slice(self.first.clone())
    }

    pub fn data_bytes(&self, chunk: &Bytes) -> Bytes {
        chunk.slice(self.data.clone())
    }
}

/// Lengths of the sections that the entry determines.
#[derive(Default)]
struct SectionBytes {
    first: usize,
    data: usize,
    codes: usize,
    code_bytes: usize,
}

impl SectionBytes {
    fn of(entry: &Entry, physical: Physical, rows: usize) -> Result<SectionBytes, String> {
        let is_bits = physical == Physical::Bit;
        let width = physical.width().unwrap_or(16);
        let data = if physical == Physical::Views { entry.data_bytes as usize } else { 0 };
        let distinct = entry.parameter as usize;
        let impossible = "an impossible number of distinct values";
        Ok(match entry.encoding {
            Encoding::Plain if is_bits => SectionBytes { first: rows.div_ceil(64) * 8, ..SectionBytes::default() },
            Encoding::Plain => SectionBytes { first: rows * width, data, ..SectionBytes::default() },
            Encoding::Dict | Encoding::Narrow | Encoding::PackedDict | Encoding::FsstDict if is_bits => {
                return Err("bits that are not plain".to_owned());
            }
            Encoding::Dict => {
                let code_bytes = code_bytes(distinct).ok_or(impossible)?;
                SectionBytes { first: distinct * width, data, codes: rows * code_bytes, code_bytes }
            }
            Encoding::PackedDict => {
                let codes = packed_code_bytes(distinct, rows).ok_or(impossible)?;
                SectionBytes { first: distinct * width, data, codes, code_bytes: 0 }
            }
            Encoding::Narrow if matches!(entry.parameter, 0 | 1 | 2 | 4) => {
                let code_bytes = entry.parameter as usize;
                SectionBytes { first: width, data, codes: rows * code_bytes, code_bytes }
            }
            Encoding::Narrow => return Err(format!("distances of {} bytes", entry.parameter)),
            Encoding::Nulls
            | Encoding::Constant
            | Encoding::Packed
            | Encoding::Delta
            | Encoding::Runs
            | Encoding::Alp
            | Encoding::AlpRd
            | Encoding::Fsst
            | Encoding::Planes
            | Encoding::Compressed => SectionBytes::default(),
            Encoding::TextDict if code_bits(distinct).is_none() => return Err(impossible.to_owned()),
            Encoding::Text | Encoding::TextDict => SectionBytes { data, ..SectionBytes::default() },
            Encoding::FsstDict => {
                SectionBytes { codes: packed_code_bytes(distinct, rows).ok_or(impossible)?, ..SectionBytes::default() }
            }
        })
    }
}

/// Returns the bits of a dictionary's codes; `None` if no dictionary has that size.
#[must_use]
pub fn code_bits(distinct: usize) -> Option<u32> {
    matches!(distinct, 1..=65_536).then(|| usize::BITS - (distinct - 1).leading_zeros())
}

/// Returns the bytes of the codes of all rows, packed by vector.
fn packed_code_bytes(distinct: usize, rows: usize) -> Option<usize> {
    let bits = code_bits(distinct)?;
    let lines = rows / VECTOR_ROWS * line_count(bits, VECTOR_ROWS) + line_count(bits, rows % VECTOR_ROWS);
    Some(lines * LINE_BYTES)
}

/// Returns the bytes of a code of a dictionary whose codes are not packed; `None` if no dictionary has that size.
#[must_use]
pub fn code_bytes(distinct: usize) -> Option<usize> {
    match distinct {
        1 => Some(0),
        2..=256 => Some(1),
        257..=65_536 => Some(2),
        _ => None,
    }
}

/// Returns the bytes of the bounds of the vectors, see [`zones`](super::zones).
fn zones_bytes(rows: usize) -> usize {
    rows.div_ceil(VECTOR_ROWS) * 16
}
