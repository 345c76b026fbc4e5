//! Copies the intact blocks of a damaged segment to a new one.
//!
//! Input: a segment and its intact blocks, see [`super::verify`]. Output: a segment with exactly these blocks, copied
//! and synced; the caller syncs the folder and publishes the segment. Rows keep their order. Crash: possible at any
//! point; a file that no manifest names is removed at the next open.

use super::encoding::to_column;
use super::reader::{Segment, SegmentMeta};
use super::store::SegmentStore;
use super::{BlockSource, EncodedBlock, SegmentWriter};
use crate::fs::Fs;
use crate::{Error, Result};
use tidalite_types::{ColumnId, ColumnType, SegmentId, TableSchema, Values};

/// Copies `blocks`, which must not be empty, to a new segment without columns that the schema no longer has.
pub fn salvage(
    segment: &Segment,
    schema: &TableSchema,
    blocks: &[usize],
    id: SegmentId,
    fs: &dyn Fs,
) -> Result<SegmentMeta> {
    let present = segment.columns()?;
    let columns: Vec<(ColumnId, ColumnType)> =
        schema.columns.iter().filter(|c| present.contains(&c.id)).map(|c| (c.id, c.column_type)).collect();
    let path = SegmentStore::path(segment.table(), id);
    let mut writer = SegmentWriter::create(fs, &path, &columns)?;
    for &block in blocks {
        let rows = segment.block_rows(block);
        let nulls = |t: ColumnType| EncodedBlock::nulls(t.physical(), rows);
        let encoded: Vec<EncodedBlock> = columns
            .iter()
            .map(|&(column, t)| Ok(segment.read_encoded(column, block)?.unwrap_or_else(|| nulls(t))))
            .collect::<Result<_>>()?;
        let sources: Vec<_> = encoded.iter().map(BlockSource::Encoded).collect();
        writer.write_block(rows, &sources)?;
    }
    let summary = writer.finish()?;
    let time_range = match (schema.designated, blocks.first(), blocks.last()) {
        (Some(designated), Some(&first), Some(&last)) => {
            (times(segment, designated, first)?.0, times(segment, designated, last)?.1)
        }
        _ => (0, 0),
    };
    Ok(SegmentMeta { id, rows: summary.rows, bytes: summary.bytes, time_range, ..segment.meta().clone() })
}

/// Returns the first and the last timestamp of a block.
fn times(segment: &Segment, designated: ColumnId, block: usize) -> Result<(i64, i64)> {
    let values = segment.read(designated, block)?.map(|b| to_column(&b).values);
    match values {
        Some(Values::I64(values)) if !values.is_empty() => Ok((values[0], values[values.len() - 1])),
        _ => Err(Error::corrupt("a block without timestamps")),
    }
}
