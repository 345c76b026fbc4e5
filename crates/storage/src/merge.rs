//! Weaves staged rows into the partitions of a table.
//!
//! In: a version of a table whose runs stay as they are. Out: new segments beside the old ones, synced, their names
//! too; which old ones they replace. Nothing is visible until the manifest and `tables` say so.
//!
//! The rows are brought into time order (equal timestamps in order of arrival) and cut at partition borders. In a
//! partition, segments that no new row falls into stay untouched; the others are written again together with the rows that
//! do, where whole blocks before and after the overlap are copied as they are.
//! So that segments do not stay small, a small last one before the new rows is taken in, too, in size tiers.
//!
//! Always: segments of one partition do not overlap afterwards, equal timestamps keep the order of arrival.
//! Crash: at any point; files that no manifest names are removed at the next open.

use crate::segment::reader::SegmentMeta;
use crate::segment::store::SEGMENTS_FOLDER;
use crate::segment::{BlockSource, EncodedBlock, SegmentStore, SegmentWriter, to_column};
use crate::{Block, BlockData, Error, Result, Run, Segment, TableSnapshot};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tidalite_kernels::{Stretch, gather, is_sorted, merge_columns, sort_permutation};
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnType, SegmentId, Values};

/// Text of one column that a block may have: what views can point into, with room for nothing to go wrong.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Segments are not made longer than this: the most rows that one late row makes a merge write again.
pub const SEGMENT_ROWS_MAX: usize = 16 * BLOCK_ROWS;

#[derive(Debug, Default)]
pub struct Merged {
    pub added: Vec<Arc<Segment>>,
    pub removed: Vec<Arc<Segment>>,
    pub staged_rows: u64,
    /// Rows of `removed`, written again.
    pub rewritten_rows: u64,
    pub written_bytes: u64,
}

/// Merges all runs of `table`. `next_segment` gives ids never used before. On an error nothing was changed; files
/// written so far are removed as far as possible.
pub fn merge(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    let mut merged = Merged::default();
    let mut job = Job { store, table, new: NewRows::of(table)?, next_segment, merged: &mut merged };
    let result = job.run();
    if result.is_err() {
        for segment in &merged.added {
            store.forget(segment.meta().id);
            let _ = store.fs().remove(&segment.path());
        }
    }
    result.map(|()| merged)
}

struct Job<'a> {
    store: &'a Arc<SegmentStore>,
    table: &'a TableSnapshot,
    new: NewRows,
    next_segment: &'a mut dyn FnMut() -> SegmentId,
    merged: &'a mut Merged,
}

impl Job<'_> {
    fn run(&mut self) -> Result<()> {
        let dir = SegmentStore::dir(self.table.id);
        if self.table.segments.is_empty() {
            self.store.fs().create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
            let parent = Path::new(SEGMENTS_FOLDER);
            self.store.fs().sync_dir(parent).map_err(|e| Error::io("sync", parent, e))?;
        }
        let mut at = 0;
        while at < self.new.rows {
            let end = self.partition_end(at);
            self.merge_partition(at, end)?;
            at = end;
        }
        self.merged.staged_rows = self.new.rows as u64;
        self.store.fs().sync_dir(&dir).map_err(|e| Error::io("sync", &dir, e))
    }

    /// The end of the new rows that lie in the same partition as row `at`.
    fn partition_end(&self, at: usize) -> usize {
        if self.table.schema.designated.is_none() {
            return self.new.rows;
        }
        let (_, hi) = self.table.schema.partition(self.new.timestamps[at]);
        if hi == i64::MAX {
            return self.new.rows;
        }
        at + self.new.timestamps[at..].partition_point(|&ts| ts < hi)
    }

    fn merge_partition(&mut self, from: usize, to: usize) -> Result<()> {
        let (partition, _) = match self.table.schema.designated {
            Some(_) => self.table.schema.partition(self.new.timestamps[from]),
            None => (i64::MIN, i64::MAX),
        };
        let segments: Vec<_> =
            self.table.segments.iter().filter(|s| s.meta().partition == partition).cloned().collect();
        for cluster in self.clusters(&segments, from, to) {
            self.merge_cluster(partition, &segments[cluster.segments], cluster.rows)?;
        }
        Ok(())
    }

    /// Which new rows are written together with which segments: those that fall into a segment with it, those
    /// between two segments with what was written before them or on their own. Segments without new rows stay.
    fn clusters(&self, segments: &[Arc<Segment>], from: usize, to: usize) -> Vec<Cluster> {
        let mut clusters: Vec<Cluster> = Vec::new();
        let mut at = from;
        let mut add = |segments: Range<usize>, rows: Range<usize>| match clusters.last_mut() {
            _ if rows.is_empty() => {}
            Some(last) if last.segments.end == segments.start && segments.is_empty() => last.rows.end = rows.end,
            Some(last) if last.segments.is_empty() && last.segments.end == segments.start => {
                (last.segments, last.rows.end) = (segments, rows.end);
            }
            _ => clusters.push(Cluster { segments, rows }),
        };
        if self.table.schema.designated.is_some() {
            for (i, segment) in segments.iter().enumerate() {
                let (lo, hi) = segment.time_range();
                let before = at + self.new.timestamps[at..to].partition_point(|&ts| ts < lo);
                // What has the segment's last timestamp arrived later: it comes after it.
                let within = before + self.new.timestamps[before..to].partition_point(|&ts| ts < hi);
                add(i..i, at..before);
                add(i..i + 1, before..within);
                at = within;
            }
        }
        add(segments.len()..segments.len(), at..to);
        let mut untouched = 0;
        for cluster in &mut clusters {
            cluster.take_in_small(segments, untouched);
            untouched = cluster.segments.end;
        }
        clusters
    }

    fn merge_cluster(&mut self, partition: i64, segments: &[Arc<Segment>], new: Range<usize>) -> Result<()> {
        let old = OldRows::new(segments.to_vec(), self.table)?;
        let mut plan = match self.table.schema.designated {
            Some(_) => weave(&old.timestamps, &self.new.timestamps, new.start, new.end),
            // Without timestamps the order is that of arrival: what is there first.
            None => {
                let old = Piece { is_new: false, from: 0, rows: old.rows };
                vec![old, Piece { is_new: true, from: new.start, rows: new.len() }]
            }
        };
        plan.retain(|p| p.rows > 0);
        for part in cut(&mut plan, old.rows + new.len()) {
            self.write_segments(partition, &old, part)?;
        }
        self.merged.rewritten_rows += old.rows as u64;
        self.merged.removed.extend(old.segments.into_iter().map(|s| s.segment));
        Ok(())
    }

    /// Writes one segment, or several when values are so long that a block of them would be too large.
    fn write_segments(&mut self, partition: i64, old: &OldRows, pieces: Vec<Piece>) -> Result<()> {
        let rows: usize = pieces.iter().map(|p| p.rows).sum();
        let mut parts = vec![pieces];
        if rows > 1 && self.has_large_block(old, &parts[0])? {
            parts = split(&parts[0], rows.div_ceil(2));
            return parts.into_iter().try_for_each(|part| self.write_segments(partition, old, part));
        }
        parts.into_iter().try_for_each(|part| self.write_segment(partition, old, &part))
    }

    /// Whether a text column has more in one block than a block can hold.
    fn has_large_block(&self, old: &OldRows, pieces: &[Piece]) -> Result<bool> {
        let columns = self.table.schema.columns.iter().filter(|c| c.column_type.physical() == Physical::Views);
        for column in columns {
            for block in blocks(pieces) {
                let new = side(&block, true);
                let (from, rows) = side(&block, false);
                if self.new.text_bytes(column.id, new.0, new.1) + old.text_bytes(column.id, from, rows)?
                    > TEXT_BYTES_MAX
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn write_segment(&mut self, partition: i64, old: &OldRows, pieces: &[Piece]) -> Result<()> {
        let id = (self.next_segment)();
        let path = SegmentStore::path(self.table.id, id);
        let written = self.write_file(&path, old, pieces);
        let (summary, time_range) = written.inspect_err(|_| drop(self.store.fs().remove(&path)))?;
        let meta = SegmentMeta { id, rows: summary.rows, bytes: summary.bytes, partition, time_range };
        self.merged.written_bytes += summary.bytes;
        self.merged.added.push(Arc::new(Segment::open(self.store.clone(), self.table.id, meta)));
        Ok(())
    }

    fn write_file(
        &self,
        path: &Path,
        old: &OldRows,
        pieces: &[Piece],
    ) -> Result<(crate::segment::SegmentSummary, (i64, i64))> {
        let columns: Vec<(ColumnId, ColumnType)> = self
            .table
            .schema
            .columns
            .iter()
            .filter(|c| old.has(c.id) || self.new.has(c.id))
            .map(|c| (c.id, c.column_type))
            .collect();
        let mut writer = SegmentWriter::create(&**self.store.fs(), path, &columns)?;
        for block in blocks(pieces) {
            let rows = block.iter().map(|p| p.rows).sum();
            let parts: Vec<Part> =
                columns.iter().map(|&(id, t)| self.part(id, t.physical(), old, &block, rows)).collect::<Result<_>>()?;
            let sources: Vec<BlockSource<'_>> = parts.iter().map(Part::source).collect();
            writer.write_block(rows, &sources)?;
        }
        let time = |piece: &Piece, row: usize| match self.table.schema.designated {
            None => 0,
            Some(_) if piece.is_new => self.new.timestamps[row],
            Some(_) => old.timestamps[row],
        };
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let time_range = (time(&first, first.from), time(&last, last.from + last.rows - 1));
        Ok((writer.finish()?, time_range))
    }

    /// One column of one block.
    fn part(&self, id: ColumnId, physical: Physical, old: &OldRows, block: &[Piece], rows: usize) -> Result<Part> {
        if let [Piece { is_new: false, from, rows }] = *block
            && let Some(encoded) = old.whole_block(id, from, rows)?
        {
            return Ok(Part::Encoded(encoded));
        }
        // Both sides are taken in order, so that each gives one range of its rows.
        let old_rows = side(block, false);
        let new_rows = side(block, true);
        let mut column = Column::with_capacity(physical, rows);
        if new_rows.1 == 0 || old_rows.1 == 0 {
            self.new.extend(id, new_rows.0, new_rows.1, &mut column);
            old.extend(id, old_rows.0, old_rows.1, &mut column)?;
            return Ok(Part::Column(column));
        }
        let mut left = Column::with_capacity(physical, old_rows.1);
        old.extend(id, old_rows.0, old_rows.1, &mut left)?;
        self.new.extend(id, new_rows.0, new_rows.1, &mut column);
        let stretches: Vec<Stretch> = block
            .iter()
            .map(|p| {
                let start = if p.is_new { new_rows.0 } else { old_rows.0 };
                Stretch { is_right: p.is_new, from: (p.from - start) as u32, count: p.rows as u32 }
            })
            .collect();
        Ok(Part::Column(merge_columns(&left, &column, &stretches)))
    }
}

/// First row and number of rows that a block takes from one side.
fn side(block: &[Piece], is_new: bool) -> (usize, usize) {
    let mut pieces = block.iter().filter(|p| p.is_new == is_new);
    let from = pieces.clone().next().map_or(0, |p| p.from);
    (from, pieces.by_ref().map(|p| p.rows).sum())
}

/// The order of old rows and of new rows `from..to`, equal timestamps old first.
fn weave(old: &[i64], new: &[i64], from: usize, to: usize) -> Vec<Piece> {
    let stretches = tidalite_kernels::merge(old, &new[from..to]);
    let piece = |s: Stretch| {
        let start = if s.is_right { from } else { 0 };
        Piece { is_new: s.is_right, from: start + s.from as usize, rows: s.count as usize }
    };
    stretches.into_iter().map(piece).collect()
}

enum Part {
    Encoded(EncodedBlock),
    Column(Column),
}

impl Part {
    fn source(&self) -> BlockSource<'_> {
        match self {
            Part::Encoded(block) => BlockSource::Encoded(block),
            Part::Column(column) => BlockSource::Rows { column, from: 0 },
        }
    }
}

/// New rows and the segments, by index in their partition, that are written again together with them.
struct Cluster {
    segments: Range<usize>,
    rows: Range<usize>,
}

impl Cluster {
    /// Takes in small segments right before it, in size tiers, but none before `untouched`.
    fn take_in_small(&mut self, all: &[Arc<Segment>], untouched: usize) {
        let mut rows = self.rows.len() + all[self.segments.clone()].iter().map(|s| s.rows() as usize).sum::<usize>();
        while self.segments.start > untouched {
            let before = all[self.segments.start - 1].rows() as usize;
            if before > 2 * rows || before > SEGMENT_ROWS_MAX / 2 {
                return;
            }
            rows += before;
            self.segments.start -= 1;
        }
    }
}

/// Adjacent rows of the old or of the new ones, in the order of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    is_new: bool,
    from: usize,
    rows: usize,
}

/// Deals the pieces out to segments of at most [`SEGMENT_ROWS_MAX`] rows. Old rows behind the last new one that fill
/// blocks start a segment of their own, so that their blocks can be copied.
fn cut(plan: &mut Vec<Piece>, rows: usize) -> Vec<Vec<Piece>> {
    let suffix = plan.pop_if(|p| !p.is_new && p.rows >= BLOCK_ROWS && p.rows < rows);
    let mut segments = split(plan, SEGMENT_ROWS_MAX);
    segments.extend(suffix.map(|p| split(&[p], SEGMENT_ROWS_MAX)).into_iter().flatten());
    segments
}

fn blocks(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    split(pieces, BLOCK_ROWS)
}

fn split(pieces: &[Piece], rows_max: usize) -> Vec<Vec<Piece>> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), rows_max);
    for &piece in pieces {
        let mut rest = piece;
        while rest.rows > 0 {
            let rows = rest.rows.min(room);
            part.push(Piece { rows, ..rest });
            rest = Piece { from: rest.from + rows, rows: rest.rows - rows, ..rest };
            room -= rows;
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = rows_max;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The staged rows in the order they will have.
struct NewRows {
    rows: usize,
    /// Empty in a table without a designated timestamp.
    timestamps: Vec<i64>,
    runs: Arc<Vec<Arc<Run>>>,
    /// For each run the number of rows before it.
    starts: Vec<usize>,
    /// If the runs are not in order as they are: for each row its place in `joined`.
    order: Option<Vec<u32>>,
    joined: Vec<(ColumnId, Column)>,
}

impl NewRows {
    fn of(table: &TableSnapshot) -> Result<NewRows> {
        let runs = table.runs.clone();
        let starts: Vec<usize> = runs.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.rows))).collect();
        let rows: usize = runs.iter().map(|r| r.rows).sum();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(tidalite_types::ErrorKind::Internal, format!("a merge of {rows} rows at once")));
        }
        let mut new = NewRows { rows, timestamps: Vec::new(), runs, starts, order: None, joined: Vec::new() };
        let Some(designated) = table.schema.designated else { return Ok(new) };
        new.timestamps = new.runs.iter().flat_map(|r| r.timestamps(designated)).copied().collect();
        if !is_sorted(&new.timestamps) {
            new.order = Some(sort_permutation(&new.timestamps));
        }
        if let Some(order) = &new.order {
            new.timestamps = order.iter().map(|&row| new.timestamps[row as usize]).collect();
            let present = table.schema.columns.iter().filter(|c| new.has(c.id));
            new.joined = present.map(|c| (c.id, crate::staging::join_column(&new.runs, c.id, rows))).collect();
        }
        Ok(new)
    }

    fn has(&self, id: ColumnId) -> bool {
        self.runs.iter().any(|r| r.column(id).is_some())
    }

    /// Bytes of text of a column in these rows, or a little more.
    fn text_bytes(&self, id: ColumnId, from: usize, rows: usize) -> usize {
        let all: usize = self.runs.iter().filter_map(|r| r.column(id)).map(|c| c.byte_count()).sum();
        if all <= TEXT_BYTES_MAX / 2 {
            return if rows == 0 { 0 } else { all };
        }
        let mut column = Column::with_capacity(Physical::Views, rows);
        self.extend(id, from, rows, &mut column);
        column.byte_count()
    }

    fn extend(&self, id: ColumnId, from: usize, rows: usize, out: &mut Column) {
        if rows == 0 {
            return;
        }
        if let Some(order) = &self.order {
            match self.joined.iter().find(|(c, _)| *c == id) {
                Some((_, column)) => out.extend_from_range(&gather(column, &order[from..from + rows]), 0, rows),
                None => out.extend_null(rows),
            }
            return;
        }
        let (mut from, end) = (from, from + rows);
        let mut index = self.starts.partition_point(|&start| start <= from) - 1;
        while from < end {
            let (run, start) = (&self.runs[index], self.starts[index]);
            let count = (start + run.rows - from).min(end - from);
            match run.column(id) {
                Some(column) => out.extend_from_range(column, from - start, count),
                None => out.extend_null(count),
            }
            from += count;
            index += 1;
        }
    }
}

/// The rows of the segments to be replaced, in their order.
struct OldRows {
    segments: Vec<OldSegment>,
    rows: usize,
    /// Empty in a table without a designated timestamp.
    timestamps: Vec<i64>,
}

struct OldSegment {
    segment: Arc<Segment>,
    /// Rows of the segments before it.
    start: usize,
    columns: Vec<ColumnId>,
}

impl OldRows {
    fn new(segments: Vec<Arc<Segment>>, table: &TableSnapshot) -> Result<OldRows> {
        let mut old = OldRows { segments: Vec::with_capacity(segments.len()), rows: 0, timestamps: Vec::new() };
        for segment in segments {
            if let Some(designated) = table.schema.designated {
                for block in 0..segment.block_count() {
                    match segment.read(designated, block)?.map(|b| to_column(&b).values) {
                        Some(Values::I64(values)) => old.timestamps.extend(values),
                        _ => return Err(Error::corrupt(format!("{} has no timestamps", segment.path().display()))),
                    }
                }
            }
            let columns = segment.columns()?;
            let rows = segment.rows() as usize;
            old.segments.push(OldSegment { segment, start: old.rows, columns });
            old.rows += rows;
        }
        Ok(old)
    }

    fn has(&self, id: ColumnId) -> bool {
        self.segments.iter().any(|s| s.columns.contains(&id))
    }

    /// The segment of a row.
    fn find(&self, row: usize) -> &OldSegment {
        &self.segments[self.segments.partition_point(|s| s.start <= row) - 1]
    }

    /// The block that consists of exactly these rows, as it is in its file.
    fn whole_block(&self, id: ColumnId, from: usize, rows: usize) -> Result<Option<EncodedBlock>> {
        let old = self.find(from);
        let (block, at) = ((from - old.start) / BLOCK_ROWS, (from - old.start) % BLOCK_ROWS);
        if at != 0 || old.segment.block_rows(block) != rows {
            return Ok(None);
        }
        old.segment.read_encoded(id, block)
    }

    /// Bytes of text of a column in these rows.
    fn text_bytes(&self, id: ColumnId, mut from: usize, rows: usize) -> Result<usize> {
        let (end, mut bytes) = (from + rows, 0);
        while from < end {
            let old = self.find(from);
            let (block, at) = ((from - old.start) / BLOCK_ROWS, (from - old.start) % BLOCK_ROWS);
            let count = (old.segment.block_rows(block) - at).min(end - from);
            if let Some(Block { data: BlockData::Views { views, .. }, .. }) = old.segment.read(id, block)? {
                // The first four bytes of a view are the length.
                let lengths = views.chunks_exact(16).skip(at).take(count);
                bytes += lengths.map(|v| u32::from_le_bytes([v[0], v[1], v[2], v[3]]) as usize).sum::<usize>();
            }
            from += count;
        }
        Ok(bytes)
    }

    fn extend(&self, id: ColumnId, mut from: usize, rows: usize, out: &mut Column) -> Result<()> {
        let end = from + rows;
        while from < end {
            let old = self.find(from);
            let (block, at) = ((from - old.start) / BLOCK_ROWS, (from - old.start) % BLOCK_ROWS);
            let count = (old.segment.block_rows(block) - at).min(end - from);
            match old.segment.read(id, block)? {
                Some(block) => out.extend_from_range(&to_column(&block), at, count),
                None => out.extend_null(count),
            }
            from += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
