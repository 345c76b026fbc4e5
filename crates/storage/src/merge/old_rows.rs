//! The rows of rewritten segments, in their order.

use super::pieces::{Piece, push};
use super::threads::{ORDERED_ROWS_MIN, Threads, for_each};
use crate::segment::EncodedBlock;
use crate::{Block, BlockData, Bounds, Error, Mask, Result, Segment, TableSnapshot};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, ColumnId, SegmentId, Values, ViewsRef, match_values};

#[derive(Debug, Default)]
pub(super) struct OldRows {
    segments: Vec<OldSegment>,
    pub rows: usize,
    designated: Option<ColumnId>,
}

#[derive(Debug)]
struct OldSegment {
    segment: Arc<Segment>,
    /// Number of rows of the previous segments.
    start: usize,
    columns: Vec<ColumnId>,
}

/// The rows of one block of a segment.
#[derive(Clone, Copy, Debug)]
struct BlockAt<'a> {
    segment: &'a OldSegment,
    block: usize,
    /// Number of rows of all previous blocks.
    start: usize,
    rows: usize,
}

impl OldRows {
    pub fn new(segments: &[Arc<Segment>], table: &TableSnapshot) -> Result<OldRows> {
        let mut old = OldRows { segments: Vec::new(), rows: 0, designated: table.schema.designated };
        for segment in segments {
            let columns = segment.columns()?;
            old.segments.push(OldSegment { segment: segment.clone(), start: old.rows, columns });
            old.rows += segment.rows() as usize;
        }
        if u32::try_from(old.rows).is_err() {
            let message = format!("{} rows of segments to be written again at once", old.rows);
            return Err(Error::new(tidalite_types::ErrorKind::Internal, message));
        }
        Ok(old)
    }

    pub fn has(&self, id: ColumnId) -> bool {
        self.segments.iter().any(|s| s.columns.contains(&id))
    }

    pub fn source_has(&self, source: usize, id: ColumnId) -> bool {
        self.segments[source].columns.contains(&id)
    }

    /// Returns the number of rows of the previous segments.
    pub fn start_of(&self, source: usize) -> usize {
        self.segments[source].start
    }

    /// Returns the number of rows of a segment with timestamps before `ts`.
    pub fn rows_before(&self, source: usize, ts: i64) -> Result<usize> {
        let (segment, Some(designated)) = (&self.segments[source], self.designated) else { return Ok(0) };
        for block in 0..segment.segment.block_count() {
            let at = segment.block(block);
            if at.time_range(designated)?.1 >= ts {
                let before = at.timestamps(designated)?.partition_point(|&own| own < ts);
                return Ok(at.start - segment.start + before);
            }
        }
        Ok(segment.segment.rows() as usize)
    }

    /// Returns the masks of the segments as one mask; `None` if no segment has a mask.
    pub fn mask<'a>(&self, of: impl Fn(&Segment) -> Option<&'a Mask>) -> Option<Mask> {
        let mut all = Mask::default();
        for old in &self.segments {
            for (from, count) in of(&old.segment).map(Mask::ranges).unwrap_or_default() {
                all.kill_range(old.start + from, count);
            }
        }
        (all.dead() > 0).then_some(all)
    }

    fn blocks(&self) -> impl Iterator<Item = BlockAt<'_>> {
        self.segments.iter().flat_map(|s| (0..s.segment.block_count()).map(|block| s.block(block)))
    }

    /// Returns the block of a row.
    fn find(&self, row: usize) -> BlockAt<'_> {
        let old = &self.segments[self.segments.partition_point(|s| s.start <= row) - 1];
        old.block((row - old.start) / BLOCK_ROWS)
    }

    /// Returns the first start of a block at or after `row`.
    pub fn block_start(&self, row: usize) -> usize {
        if row >= self.rows {
            return row;
        }
        let at = self.find(row);
        if at.start == row { row } else { at.start + at.rows }
    }

    /// Returns the merge order of these rows and the rows `new` of `timestamps`; of equal timestamps old rows come
    /// first.
    ///
    /// Reads only blocks that new rows fall into.
    pub fn weave(&self, timestamps: &[i64], new: Range<usize>, threads: Threads<'_>) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let Some(designated) = self.designated else {
            // Without timestamps the order is the order of arrival: existing rows first.
            push(&mut pieces, false, 0..self.rows);
            push(&mut pieces, true, new);
            return Ok(pieces);
        };
        // Find the new rows before each block and the new rows that fall into it.
        let (mut parts, mut at) = (Vec::new(), new.start);
        for block in self.blocks() {
            let (lo, hi) = block.time_range(designated)?;
            let before = at + timestamps[at..new.end].partition_point(|&ts| ts < lo);
            // Rows with the block's last timestamp arrived later: they follow the block and rows of this timestamp in
            // the next block.
            let within = before + timestamps[before..new.end].partition_point(|&ts| ts < hi);
            parts.push((block, at..before, before..within));
            at = within;
        }
        let woven: Vec<usize> = (0..parts.len()).filter(|part| !parts[*part].2.is_empty()).collect();
        let threads = threads.at_most(new.len() / ORDERED_ROWS_MIN);
        let stretches = for_each(woven.len(), threads, |at| {
            let (block, _, within) = &parts[woven[at]];
            Ok(tidalite_kernels::merge(&block.timestamps(designated)?, &timestamps[within.clone()]))
        })?;
        let mut stretches = stretches.into_iter();
        for (block, before, within) in parts {
            push(&mut pieces, true, before);
            if within.is_empty() {
                push(&mut pieces, false, block.start..block.start + block.rows);
                continue;
            }
            for stretch in stretches.next().unwrap_or_default() {
                let start = stretch.from as usize + if stretch.is_right { within.start } else { block.start };
                push(&mut pieces, stretch.is_right, start..start + stretch.count as usize);
            }
        }
        push(&mut pieces, true, at..new.end);
        Ok(pieces)
    }

    /// Returns the designated timestamp of a row; 0 in a table without one.
    pub fn timestamp(&self, row: usize) -> Result<i64> {
        let Some(designated) = self.designated else { return Ok(0) };
        let block = self.find(row);
        let (lo, hi) = block.time_range(designated)?;
        match row - block.start {
            0 => Ok(lo),
            at if at + 1 == block.rows => Ok(hi),
            at => Ok(block.timestamps(designated)?[at]),
        }
    }

    /// Returns the unchanged encoded block if it consists of exactly these rows.
    pub fn whole_block(&self, id: ColumnId, piece: Piece) -> Result<Option<EncodedBlock>> {
        let at = self.find(piece.from as usize);
        if at.start != piece.from as usize || at.rows != piece.rows as usize {
            return Ok(None);
        }
        at.segment.segment.read_encoded(id, at.block)
    }

    /// Returns the text bytes of a column in the old rows of `pieces`.
    pub fn text_bytes(&self, id: ColumnId, pieces: &[Piece]) -> Result<usize> {
        let mut bytes = 0;
        for piece in pieces.iter().filter(|p| !p.is_new) {
            let (mut from, end) = (piece.range().start, piece.range().end);
            while from < end {
                let at = self.find(from);
                let count = (at.start + at.rows).min(end) - from;
                if let Some(Block { data: BlockData::Views { views, .. }, .. }) =
                    at.segment.segment.read(id, at.block)?
                {
                    // The first four bytes of a view are the length.
                    let lengths = views.chunks_exact(16).skip(from - at.start).take(count);
                    bytes += lengths.map(|v| u32::from_le_bytes([v[0], v[1], v[2], v[3]]) as usize).sum::<usize>();
                }
                from += count;
            }
        }
        Ok(bytes)
    }

    /// Appends the rows of a piece.
    pub fn append(&self, id: ColumnId, piece: Piece, last: &mut LastBlock, out: &mut Column) -> Result<()> {
        let (mut from, end) = (piece.range().start, piece.range().end);
        while from < end {
            let at = self.find(from);
            let count = (at.start + at.rows).min(end) - from;
            match last.read(&at.segment.segment, id, at.block)? {
                Some(block) => block.append(from - at.start, count, out),
                None => out.extend_null(count),
            }
            from += count;
        }
        Ok(())
    }
}

impl OldSegment {
    fn block(&self, block: usize) -> BlockAt<'_> {
        let start = self.start + block * BLOCK_ROWS;
        BlockAt { segment: self, block, start, rows: self.segment.block_rows(block) }
    }
}

impl BlockAt<'_> {
    /// Returns the smallest and the greatest timestamp.
    fn time_range(&self, designated: ColumnId) -> Result<(i64, i64)> {
        match self.segment.segment.zone(designated, self.block)?.map(|z| z.bounds) {
            Some(Bounds::Int(lo, hi)) => Ok((lo, hi)),
            _ => Err(self.no_timestamps()),
        }
    }

    fn timestamps(&self, designated: ColumnId) -> Result<Vec<i64>> {
        match self.segment.segment.read(designated, self.block)? {
            Some(Block { data: BlockData::Fixed(bytes), rows, .. }) => Ok(values::<i64>(&bytes, 0, rows).into_owned()),
            _ => Err(self.no_timestamps()),
        }
    }

    fn no_timestamps(&self) -> Error {
        self.segment.segment.damaged_file(0, "it has no timestamps")
    }
}

/// The last block read: its rows are often needed for two blocks of the result.
#[derive(Debug, Default)]
pub(super) struct LastBlock {
    key: Option<(SegmentId, ColumnId, usize)>,
    block: Option<Decoded>,
}

#[derive(Debug)]
struct Decoded {
    block: Block,
    validity: Option<Bitmap>,
    /// Values of a boolean column.
    bits: Option<Bitmap>,
}

impl LastBlock {
    /// Returns `None` if the segment does not have the column.
    fn read(&mut self, segment: &Segment, id: ColumnId, block: usize) -> Result<Option<&Decoded>> {
        let key = Some((segment.meta().id, id, block));
        if self.key != key {
            self.key = None;
            self.block = segment.read(id, block)?.map(Decoded::new);
            self.key = key;
        }
        Ok(self.block.as_ref())
    }
}

impl Decoded {
    fn new(block: Block) -> Decoded {
        let bitmap = |bytes: &[u8]| Bitmap::from_words(crate::segment::buffer::collect(bytes), block.rows);
        let validity = block.validity.as_deref().map(bitmap);
        let bits = match &block.data {
            BlockData::Fixed(bytes) if block.physical == tidalite_types::column_type::Physical::Bit => {
                Some(bitmap(bytes))
            }
            _ => None,
        };
        Decoded { block, validity, bits }
    }

    fn append(&self, from: usize, count: usize, out: &mut Column) {
        match (&mut out.validity, &self.validity) {
            (None, None) => {}
            (Some(validity), None) => validity.extend_filled(count, true),
            (validity, Some(own)) => {
                let before = out.values.len();
                validity.get_or_insert_with(|| Bitmap::filled(before, true)).extend_from_range(own, from, count);
            }
        }
        match (&mut out.values, &self.block.data) {
            (Values::Bit(out), BlockData::Fixed(_)) => {
                out.extend_from_range(self.bits.as_ref().expect("blocks of bits have them"), from, count);
            }
            (Values::Views(out), BlockData::Views { views, data }) => {
                let views = values::<u128>(views, from, count);
                out.extend_from_range(ViewsRef { views: &views, data }, 0, count);
            }
            (out, BlockData::Fixed(bytes)) => match_values!(
                out,
                v => v.extend_from_slice(&values(bytes, from, count)),
                Bit(_b) => (),
                Views(_v) => (),
            ),
            (out, BlockData::Views { .. }) => unreachable!("views for a column of {:?}", out.physical()),
        }
    }
}

/// Appends all rows of a block.
pub(super) fn append_block(segment: &Segment, id: ColumnId, block: usize, out: &mut Column) -> Result<()> {
    match segment.read(id, block)? {
        Some(read) => Decoded::new(read).append(0, segment.block_rows(block), out),
        None => out.extend_null(segment.block_rows(block)),
    }
    Ok(())
}

/// Returns rows `from..from + count`; copied only if the bytes are not aligned.
fn values<T: bytemuck::Pod>(bytes: &[u8], from: usize, count: usize) -> Cow<'_, [T]> {
    let bytes = &bytes[from * size_of::<T>()..(from + count) * size_of::<T>()];
    match bytemuck::try_cast_slice(bytes) {
        Ok(values) => Cow::Borrowed(values),
        Err(_) => Cow::Owned(crate::segment::buffer::collect(bytes)),
    }
}
