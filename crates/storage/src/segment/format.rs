//! The bytes of a segment file, version 1. Everything is little-endian; `docs/FORMAT.md` shows it as tables.
//!
//! ```text
//! header    64 bytes   magic, version, zeros
//! chunks               one column block each, at multiples of 64, in any order
//! footer               row count, columns, one entry of 56 bytes per column and block
//! trailer   32 bytes   footer length and checksum, version, its own checksum, magic
//! ```
//!
//! Invariant: the checksum and the lengths of a [`Footer`] have been verified.

use crate::{Bounds, Sum, Zone};
use bytes::Bytes;
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId};

pub const MAGIC: [u8; 8] = *b"TIDALSEG";
pub const VERSION: u32 = 1;
/// Alignment of chunks and their sections: a cache line, and the recommendation of Arrow for buffers.
pub const ALIGNMENT: usize = 64;
pub const HEADER_BYTES: usize = 64;
pub const TRAILER_BYTES: usize = 32;
const FOOTER_HEAD_BYTES: usize = 16;
const COLUMN_BYTES: usize = 8;
const ENTRY_BYTES: usize = 56;
/// Size of entries before sums were added.
const ENTRY_BYTES_BEFORE: usize = 48;

/// Layout of the values of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Every row is NULL; the chunk has no bytes.
    Nulls = 0,
    /// The values in their memory layout.
    Plain = 1,
    /// The distinct values in order, and a code of 0, 1 or 2 bytes per row.
    Dict = 2,
    /// The smallest value, and the distance from it in 0, 1, 2 or 4 bytes per row.
    Narrow = 3,
    /// One value for all rows.
    Constant = 4,
    /// Integers as bit-packed distances from a reference of their vector.
    Packed = 5,
    /// Integers as differences from the previous row, packed like `Packed`.
    Delta = 6,
    /// Values of runs, and the last row of each run.
    Runs = 7,
    /// Like `Dict`, with bit-packed codes.
    PackedDict = 8,
    /// Floating point as bit-packed integers at a decimal scale of their vector.
    Alp = 9,
    /// Floating point as bit-packed codes of the left parts and right parts.
    AlpRd = 10,
    /// Text as codes of frequent symbols.
    Fsst = 11,
    /// Like `PackedDict`, with the distinct values as `Fsst`.
    FsstDict = 12,
    /// The sections of another encoding, compressed.
    Compressed = 13,
    /// Text, each string after its length.
    Text = 14,
    /// The distinct values as `Text`, with codes as `Planes`.
    TextDict = 15,
    /// Numbers as byte planes.
    Planes = 16,
}

impl Encoding {
    /// Indexed by tag.
    const ALL: [Encoding; 17] = {
        use Encoding::{Alp, AlpRd, Compressed, Constant, Delta, Dict, Fsst, FsstDict};
        use Encoding::{Narrow, Nulls, Packed, PackedDict, Plain, Planes, Runs, Text, TextDict};
        [
            Nulls, Plain, Dict, Narrow, Constant, Packed, Delta, Runs, PackedDict, Alp, AlpRd, Fsst, FsstDict,
            Compressed, Text, TextDict, Planes,
        ]
    };

    pub(super) fn from_tag(tag: u8) -> Option<Encoding> {
        Encoding::ALL.get(usize::from(tag)).copied()
    }
}

const _: () = {
    let mut tag = 0;
    while tag < Encoding::ALL.len() {
        assert!(Encoding::ALL[tag] as usize == tag);
        tag += 1;
    }
};

const HAS_VALIDITY: u8 = 1;
const HAS_ZONES: u8 = 2;
const HAS_INT_SUM: u8 = 4;
const HAS_FLOAT_SUM: u8 = 8;

/// The footer's description of one column block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    pub offset: u64,
    pub bytes: u32,
    /// CRC32C of the chunk.
    pub crc: u32,
    pub encoding: Encoding,
    pub has_validity: bool,
    pub has_zones: bool,
    pub zone: Zone,
    /// The sum, for numeric types of up to 64 bits.
    pub sum: Option<Sum>,
    /// A parameter of the encoding.
    ///
    /// `Dict`, `PackedDict`, `FsstDict`, `TextDict`: number of distinct values. `Narrow`: bytes per row. `Delta`:
    /// number of times that differences were taken. `Runs`: number of runs. `Constant` of booleans: the value.
    pub parameter: u32,
    /// For views: bytes of the data that they point to. For `Runs` of booleans: the first value.
    pub data_bytes: u32,
}

impl Entry {
    #[must_use]
    pub fn nulls(rows: usize) -> Entry {
        Entry {
            offset: 0,
            bytes: 0,
            crc: 0,
            encoding: Encoding::Nulls,
            has_validity: false,
            has_zones: false,
            zone: Zone { null_count: rows as u32, bounds: Bounds::None },
            sum: None,
            parameter: 0,
            data_bytes: 0,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (bounds_tag, lo, hi) = match self.zone.bounds {
            Bounds::None => (0, 0, 0),
            Bounds::Int(lo, hi) => (1, lo as u64, hi as u64),
            Bounds::Float(lo, hi) => (2, lo.to_bits(), hi.to_bits()),
        };
        let (sum_flag, sum) = match self.sum {
            None => (0, 0),
            Some(Sum::Ints(sum)) => i64::try_from(sum).map_or((0, 0), |sum| (HAS_INT_SUM, sum as u64)),
            Some(Sum::Floats(sum)) => (HAS_FLOAT_SUM, sum.to_bits()),
        };
        let flags =
            sum_flag | if self.has_validity { HAS_VALIDITY } else { 0 } | if self.has_zones { HAS_ZONES } else { 0 };
        out.extend(self.offset.to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
        out.extend(self.crc.to_le_bytes());
        out.extend([self.encoding as u8, bounds_tag, flags, 0]);
        out.extend(self.zone.null_count.to_le_bytes());
        out.extend(lo.to_le_bytes());
        out.extend(hi.to_le_bytes());
        out.extend(self.parameter.to_le_bytes());
        out.extend(self.data_bytes.to_le_bytes());
        out.extend(sum.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Result<Entry, String> {
        let sum = match bytes[18] & (HAS_INT_SUM | HAS_FLOAT_SUM) {
            0 => None,
            _ if bytes.len() < ENTRY_BYTES => return Err("a sum in an entry without room for it".to_owned()),
            HAS_INT_SUM => Some(Sum::Ints((u64_at(bytes, 48) as i64).into())),
            HAS_FLOAT_SUM => Some(Sum::Floats(f64::from_bits(u64_at(bytes, 48)))),
            _ => return Err("a sum of two kinds".to_owned()),
        };
        let encoding = Encoding::from_tag(bytes[16]).ok_or_else(|| format!("unknown encoding {}", bytes[16]))?;
        // Such a chunk is decoded without reading its bytes.
        if encoding == Encoding::Nulls && (u32_at(bytes, 8) > 0 || bytes[18] & (HAS_VALIDITY | HAS_ZONES) != 0) {
            return Err("a chunk of NULLs with sections".to_owned());
        }
        Ok(Entry {
            offset: u64_at(bytes, 0),
            bytes: u32_at(bytes, 8),
            crc: u32_at(bytes, 12),
            encoding,
            has_validity: bytes[18] & HAS_VALIDITY != 0,
            has_zones: bytes[18] & HAS_ZONES != 0,
            zone: read_zone(bytes)?,
            sum,
            parameter: u32_at(bytes, 40),
            data_bytes: u32_at(bytes, 44),
        })
    }
}

/// Reads the zone of an entry.
fn read_zone(bytes: &[u8]) -> Result<Zone, String> {
    let (lo, hi) = (u64_at(bytes, 24), u64_at(bytes, 32));
    let bounds = match bytes[17] {
        0 => Bounds::None,
        1 => Bounds::Int(lo as i64, hi as i64),
        2 => Bounds::Float(f64::from_bits(lo), f64::from_bits(hi)),
        tag => return Err(format!("unknown kind of bounds {tag}")),
    };
    Ok(Zone { null_count: u32_at(bytes, 20), bounds })
}

/// Physical types by their tags in the footer.
const PHYSICALS: [Physical; 11] = {
    use Physical::{B16, Bit, F32, F64, I8, I16, I32, I64, I128, U32, Views};
    [Bit, I8, I16, I32, I64, I128, F32, F64, U32, B16, Views]
};

/// Returns the tag of a physical type in the footer.
const fn physical_tag(physical: Physical) -> u8 {
    match physical {
        Physical::Bit => 0,
        Physical::I8 => 1,
        Physical::I16 => 2,
        Physical::I32 => 3,
        Physical::I64 => 4,
        Physical::I128 => 5,
        Physical::F32 => 6,
        Physical::F64 => 7,
        Physical::U32 => 8,
        Physical::B16 => 9,
        Physical::Views => 10,
    }
}

const _: () = {
    let mut tag = 0;
    while tag < PHYSICALS.len() {
        assert!(physical_tag(PHYSICALS[tag]) as usize == tag);
        tag += 1;
    }
};

fn physical_from_tag(tag: u8) -> Option<Physical> {
    PHYSICALS.get(usize::from(tag)).copied()
}

/// Returns the header of the file.
#[must_use]
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Returns footer and trailer. `entries` are sorted by column id, then by block.
#[must_use]
pub fn footer_and_trailer(
    rows: u64,
    columns: &[(ColumnId, Physical)],
    entries: &[Vec<Entry>],
    is_sealed: bool,
) -> Vec<u8> {
    let block_count = entries.first().map_or(0, Vec::len);
    let mut out = Vec::with_capacity(footer_bytes(columns.len(), block_count, ENTRY_BYTES) + TRAILER_BYTES);
    out.extend(rows.to_le_bytes());
    out.extend((columns.len() as u32).to_le_bytes());
    out.extend((block_count as u32).to_le_bytes());
    for (id, physical) in columns {
        out.extend(id.0.to_le_bytes());
        out.extend([physical_tag(*physical), 0, 0, 0]);
    }
    entries.iter().flatten().for_each(|entry| entry.write(&mut out));
    let trailer_at = out.len();
    out.extend((trailer_at as u64).to_le_bytes());
    out.extend(crc32c::crc32c(&out[..trailer_at]).to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend(u32::from(is_sealed).to_le_bytes());
    out.extend(crc32c::crc32c(&out[trailer_at..]).to_le_bytes());
    out.extend(MAGIC);
    out
}

fn footer_bytes(columns: usize, blocks: usize, entry_bytes: usize) -> usize {
    FOOTER_HEAD_BYTES + columns * (COLUMN_BYTES + blocks * entry_bytes)
}

/// Returns true if the file was encoded for size. The trailer must have been accepted by [`read_trailer`].
#[must_use]
pub fn is_sealed(trailer: &[u8; TRAILER_BYTES]) -> bool {
    u32_at(trailer, 16) & 1 == 1
}

/// Reads the last [`TRAILER_BYTES`] of a file: length and checksum of the preceding footer.
pub fn read_trailer(bytes: &[u8; TRAILER_BYTES]) -> Result<(u64, u32), String> {
    if bytes[24..] != MAGIC {
        return Err("it does not end as a segment".to_owned());
    }
    if crc32c::crc32c(&bytes[..20]) != u32_at(bytes, 20) {
        return Err("the checksum of its trailer is wrong".to_owned());
    }
    match u32_at(bytes, 12) {
        VERSION => Ok((u64_at(bytes, 0), u32_at(bytes, 8))),
        version => Err(format!("its format version is {version}, this release reads {VERSION}")),
    }
}

/// A footer with verified checksum and lengths.
///
/// Entries are parsed on demand, so that the footers of many thousand segments are as small in memory as on disk.
#[derive(Clone, Debug)]
pub struct Footer(Bytes);

impl Footer {
    /// Checks everything that later calls rely on.
    pub fn parse(bytes: Bytes, crc: u32) -> Result<Footer, String> {
        if crc32c::crc32c(&bytes) != crc {
            return Err("the checksum of its footer is wrong".to_owned());
        }
        if bytes.len() < FOOTER_HEAD_BYTES {
            return Err("its footer is too short".to_owned());
        }
        let footer = Footer(bytes);
        let blocks = (footer.rows() as usize).div_ceil(BLOCK_ROWS);
        if footer.rows() == 0 || footer.block_count() != blocks {
            return Err(format!("its footer has {} blocks for {} rows", footer.block_count(), footer.rows()));
        }
        if footer.0.len() != footer_bytes(footer.column_count(), blocks, footer.entry_bytes()) {
            return Err("the length of its footer is wrong".to_owned());
        }
        if !(1..footer.column_count()).all(|i| footer.column_id(i - 1) < footer.column_id(i)) {
            return Err("its columns are not in order".to_owned());
        }
        Ok(footer)
    }

    /// Creates a footer from the result of [`Footer::into_bytes`].
    pub(crate) fn trusted(bytes: Bytes) -> Footer {
        Footer(bytes)
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        u64_at(&self.0, 0)
    }

    #[must_use]
    pub fn column_count(&self) -> usize {
        u32_at(&self.0, 8) as usize
    }

    #[must_use]
    pub fn block_count(&self) -> usize {
        u32_at(&self.0, 12) as usize
    }

    #[must_use]
    pub fn column_id(&self, index: usize) -> ColumnId {
        ColumnId(u32_at(&self.0, FOOTER_HEAD_BYTES + index * COLUMN_BYTES))
    }

    pub fn physical(&self, index: usize) -> Result<Physical, String> {
        let tag = self.0[FOOTER_HEAD_BYTES + index * COLUMN_BYTES + 4];
        physical_from_tag(tag).ok_or_else(|| format!("unknown physical type {tag}"))
    }

    /// Returns the index of a column in the footer; `None` if the segment has no such column.
    #[must_use]
    pub fn find(&self, column: ColumnId) -> Option<usize> {
        let (mut lo, mut hi) = (0, self.column_count());
        while lo < hi {
            let middle = (lo + hi) / 2;
            if self.column_id(middle) < column { lo = middle + 1 } else { hi = middle }
        }
        (lo < self.column_count() && self.column_id(lo) == column).then_some(lo)
    }

    /// Returns the entry of a column block.
    ///
    /// # Panics
    /// Panics if the footer has no such column or block.
    pub fn entry(&self, index: usize, block: usize) -> Result<Entry, String> {
        Entry::read(self.bytes_of(index, block))
    }

    /// Returns the zone of an entry.
    ///
    /// # Panics
    /// Panics if the footer has no such column or block.
    pub fn zone(&self, index: usize, block: usize) -> Result<Zone, String> {
        read_zone(self.bytes_of(index, block))
    }

    fn bytes_of(&self, index: usize, block: usize) -> &[u8] {
        assert!(index < self.column_count() && block < self.block_count(), "block {block} of column {index}");
        let entries_at = FOOTER_HEAD_BYTES + self.column_count() * COLUMN_BYTES;
        let bytes = self.entry_bytes();
        let at = entries_at + (index * self.block_count() + block) * bytes;
        &self.0[at..at + bytes]
    }

    /// Returns the size of an entry, which follows from the length of the footer.
    fn entry_bytes(&self) -> usize {
        let (columns, blocks) = (self.column_count(), self.block_count());
        let is_now = self.0.len() == footer_bytes(columns, blocks, ENTRY_BYTES);
        if is_now { ENTRY_BYTES } else { ENTRY_BYTES_BEFORE }
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 4])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 8])
}

/// Returns the next multiple of [`ALIGNMENT`].
#[must_use]
pub fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}
