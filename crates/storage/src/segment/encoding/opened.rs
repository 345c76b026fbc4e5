//! The form of a block in memory if it differs from the form in the file.
//!
//! Compressed blocks and FSST dictionaries are decoded as a whole. A query that reads one row per block would decode
//! all rows again and again. The block cache therefore stores such blocks opened: in the encoding inside, or, if that
//! encoding is written only in compressed form, in one with access by row and comparison in packed form. The opened
//! form takes more memory; the size on disk is unchanged.
//!
//! ```text
//! encoding   u8: its tag
//! flags      u8: 1 has validity, 2 has zones
//! zeros      2
//! parameter  u32, as in [`Entry`]
//! data       u32: bytes of data that views point into
//! zeros      to a multiple of 64
//! chunk      of the other encoding
//! ```
//!
//! The header is stored directly before the chunk, which is read next: a separate cache line costs as much as comparing
//! a hundred rows.

use super::chunk::Layout;
use super::views::{dictionary_up_to, packed_dictionary, with_views};
use super::{Chunk, EncodedBlock, compressed, dict, encode, fsst, text, to_column};
use crate::Bounds;
use crate::segment::buffer::{AlignedBuffer, collect};
use crate::segment::format::{ALIGNMENT, Encoding, Entry, u32_at};
use crate::segment::{Effort, encoding::choice::Payload};
use bytes::Bytes;
use std::borrow::Cow;
use tidalite_types::column_type::Physical;
use tidalite_types::{Bitmap, ColumnType, TimeUnit, ViewsRef};

const HEAD_BYTES: usize = ALIGNMENT;
/// Smallest average number of rows per distinct string for which a dictionary is built.
const ROWS_SHARING: usize = 4;
const HAS_VALIDITY: u8 = 1;
const HAS_ZONES: u8 = 2;

/// Returns true if the form of this encoding in memory differs from the form in the file.
#[must_use]
pub fn is_opened(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::Compressed | Encoding::FsstDict)
}

/// Returns the opened bytes. Damaged blocks are rejected.
pub fn open(block: &EncodedBlock) -> Result<Bytes, String> {
    let inflated = match block.entry.encoding {
        Encoding::Compressed => compressed::inflate(block)?,
        _ => block.clone(),
    };
    let opened = match inflated.entry.encoding {
        Encoding::Text | Encoding::TextDict | Encoding::FsstDict => with_text(&inflated)?,
        Encoding::Planes | Encoding::Dict | Encoding::Narrow => {
            let column = to_column(&inflated.decode()?);
            encode(column_type(&inflated), &column, 0, inflated.rows, Effort::Fresh)
        }
        _ => inflated,
    };
    let Entry { encoding, parameter, data_bytes, .. } = opened.entry;
    let mut buffer = AlignedBuffer::zeroed(HEAD_BYTES + opened.bytes.len());
    let (head, chunk) = buffer.as_mut_slice().split_at_mut(HEAD_BYTES);
    chunk.copy_from_slice(&opened.bytes);
    head[0] = encoding as u8;
    head[1] =
        if opened.entry.has_validity { HAS_VALIDITY } else { 0 } | if opened.entry.has_zones { HAS_ZONES } else { 0 };
    head[4..8].copy_from_slice(&parameter.to_le_bytes());
    head[8..12].copy_from_slice(&data_bytes.to_le_bytes());
    Ok(buffer.freeze())
}

/// Returns the block for the bytes of [`open`]; `closed` is its description in the file's footer.
pub fn opened(closed: EncodedBlock, bytes: &Bytes) -> Result<EncodedBlock, String> {
    let head = bytes.get(..HEAD_BYTES).ok_or("an opened block without its beginning")?;
    let entry = Entry {
        encoding: Encoding::from_tag(head[0]).ok_or("an opened block of an unknown encoding")?,
        bytes: (bytes.len() - HEAD_BYTES) as u32,
        has_validity: head[1] & HAS_VALIDITY != 0,
        has_zones: head[1] & HAS_ZONES != 0,
        parameter: u32_at(head, 4),
        data_bytes: u32_at(head, 8),
        ..closed.entry
    };
    Ok(EncodedBlock { entry, bytes: bytes.slice(HEAD_BYTES..), ..closed })
}

/// Converts text to views, or to a dictionary of views.
fn with_text(block: &EncodedBlock) -> Result<EncodedBlock, String> {
    let layout = block.check_length()?;
    let payload = match block.entry.encoding {
        Encoding::Text => {
            let (views, data) = (text::strings(&layout, block)?, layout.data(&block.bytes));
            // In compressed form, rows with a shared string are cheap in any encoding; in memory each row costs a
            // lookup.
            match dictionary_up_to(ViewsRef { views: &views, data }, block.rows / ROWS_SHARING) {
                Some(dictionary) => packed_dictionary(&dictionary, data),
                None => with_views(Encoding::Plain, 0, views, data),
            }
        }
        Encoding::TextDict => {
            let (strings, codes) = text::dictionary(&layout, block)?;
            let codes = dict::packed(&codes, strings.len());
            with_codes(strings, layout.data(&block.bytes), codes)
        }
        _ => {
            let (distinct, data) = fsst::distinct(&layout, block).ok_or("a dictionary that is cut off")?;
            with_codes(distinct, data, layout.codes(&block.bytes))
        }
    };
    Ok(chunk_of(block, &layout, &payload))
}

fn with_codes<'a>(distinct: Vec<u128>, data: impl Into<Cow<'a, [u8]>>, codes: impl Into<Cow<'a, [u8]>>) -> Payload<'a> {
    let count = distinct.len() as u32;
    let mut payload = with_views(Encoding::PackedDict, count, distinct, data);
    payload.sections.push(codes.into());
    payload
}

/// Builds a block with the NULLs and bounds of `block`.
fn chunk_of(block: &EncodedBlock, layout: &Layout, payload: &Payload<'_>) -> EncodedBlock {
    let validity = layout.validity(&block.bytes);
    let validity = (!validity.is_empty()).then(|| Bitmap::from_words(collect(validity), block.rows));
    let mut chunk = Chunk::new(block.rows, validity, block.entry.zone.null_count as usize, false);
    chunk.set_bounds(block.entry.zone.bounds);
    chunk.write(payload);
    chunk.finish(block.physical)
}

/// Returns a type with the same memory layout. The bounds tell if the values have an order.
fn column_type(block: &EncodedBlock) -> ColumnType {
    match block.physical {
        Physical::Bit => ColumnType::Boolean,
        Physical::I8 => ColumnType::Byte,
        Physical::I16 => ColumnType::Short,
        Physical::I32 => ColumnType::Int,
        Physical::I64 => ColumnType::Timestamp(TimeUnit::Micros),
        Physical::I128 => ColumnType::Decimal { precision: 38, scale: 0 },
        Physical::F32 => ColumnType::Float,
        Physical::F64 => ColumnType::Double,
        Physical::U32 if block.entry.zone.bounds == Bounds::None => ColumnType::Symbol,
        Physical::U32 => ColumnType::Ipv4,
        Physical::B16 => ColumnType::Uuid,
        Physical::Views => ColumnType::Varchar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::encoding::tests::{TYPES, random_column, shapes};
    use tidalite_types::{Column, Values};

    fn check(column_type: ColumnType, column: &Column, seen: &mut Vec<Encoding>) {
        let block = encode(column_type, column, 0, column.len(), Effort::Sealed);
        if !is_opened(block.entry.encoding) {
            return;
        }
        let bytes = open(&block).unwrap();
        let opened = opened(block.clone(), &bytes).unwrap();
        opened.check().unwrap();
        assert!(!is_opened(opened.entry.encoding), "{:?}", opened.entry.encoding);
        // Compared as text, because NaN as a missing upper bound is not equal to itself.
        assert_eq!(format!("{:?}", opened.entry.zone), format!("{:?}", block.entry.zone));
        let (found, expected) = (to_column(&opened.decode().unwrap()), to_column(&block.decode().unwrap()));
        let rows = 0..column.len();
        assert!(rows.clone().all(|row| found.is_valid(row) == expected.is_valid(row)));
        match (&found.values, &expected.values) {
            (Values::F64(a), Values::F64(b)) => assert!(rows.clone().all(|row| a[row].to_bits() == b[row].to_bits())),
            (Values::F32(a), Values::F32(b)) => assert!(rows.clone().all(|row| a[row].to_bits() == b[row].to_bits())),
            (Values::Views(a), Values::Views(b)) => assert!(rows.clone().all(|row| a.get(row) == b.get(row))),
            (a, b) => assert_eq!(a, b),
        }
        seen.push(opened.entry.encoding);
    }

    #[test]
    fn opened_blocks_have_the_same_rows_and_are_read_row_by_row() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut seen = Vec::new();
        for round in 0..20 {
            for column_type in TYPES {
                check(column_type, &random_column(&mut rng, column_type, [70, 3_000, 20_000][round % 3]), &mut seen);
            }
        }
        for (_, column_type, column) in shapes(&mut rng, 40_000) {
            check(column_type, &column, &mut seen);
        }
        assert!(seen.contains(&Encoding::PackedDict) && seen.contains(&Encoding::Plain), "{seen:?}");
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let mut rng = fastrand::Rng::with_seed(6);
        let mut refused = 0;
        for (_, column_type, column) in shapes(&mut rng, 5_000) {
            let block = encode(column_type, &column, 0, column.len(), Effort::Sealed);
            for _ in 0..if is_opened(block.entry.encoding) { 20 } else { 0 } {
                let mut bytes = block.bytes.to_vec();
                let at = rng.usize(..bytes.len());
                bytes[at] ^= 1 << rng.u8(..8);
                refused += usize::from(open(&EncodedBlock { bytes: bytes.into(), ..block.clone() }).is_err());
            }
        }
        assert!(refused > 0);
    }
}
