//! One side of a join, piece by piece.
//!
//! A piece is a block of a table, rows of a run, or a batch that came from elsewhere. It is read when the first stretch of
//! time needs it, and let go when the last one is done.

use super::key_numbers::KeyNumbers;
use super::slices::Earlier;
use crate::exec::latest_scan::latest_before;
use crate::exec::pieces::Pieces;
use crate::plan::{Kind, column_of_scan};
use crate::scan::prune::Piece;
use crate::{CancelToken, Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::execution::memory_pool::MemoryReservation;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What is looked at of a side's rows.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub time: usize,
    pub keys: Vec<usize>,
    /// Those that come out.
    pub output: Vec<usize>,
    /// Of its times, in nanoseconds.
    pub unit: i64,
    pub scale: Scale,
}

/// How times of one unit become those of another, so that no comparison comes out otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Same,
    Floor(i64),
    Ceil(i64),
}

impl Scale {
    /// Of both sides, into the coarser of two units of so many nanoseconds: a right time is before a left one afterwards
    /// where it was so before.
    pub fn of(left: i64, right: i64, kind: Kind) -> (Scale, Scale) {
        let is_strict = kind == Kind::Lt;
        match left.cmp(&right) {
            std::cmp::Ordering::Equal => (Scale::Same, Scale::Same),
            std::cmp::Ordering::Less if is_strict => (Scale::Ceil(right / left), Scale::Same),
            std::cmp::Ordering::Less => (Scale::Floor(right / left), Scale::Same),
            std::cmp::Ordering::Greater if is_strict => (Scale::Same, Scale::Floor(left / right)),
            std::cmp::Ordering::Greater => (Scale::Same, Scale::Ceil(left / right)),
        }
    }

    pub fn of_time(self, time: i64) -> i64 {
        match self {
            Scale::Same => time,
            Scale::Floor(factor) => time.div_euclid(factor),
            Scale::Ceil(factor) => time.div_euclid(factor) + i64::from(time.rem_euclid(factor) > 0),
        }
    }

    fn of_times(self, times: &ScalarBuffer<i64>) -> ScalarBuffer<i64> {
        match self {
            Scale::Same => times.clone(),
            scale => times.iter().map(|time| scale.of_time(*time)).collect::<Vec<i64>>().into(),
        }
    }
}

/// Nanoseconds of a type's unit.
pub(super) fn unit_of(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    }
}

/// Rows as they are joined.
#[derive(Debug)]
pub(super) struct Part {
    /// Rows without a time are behind all others.
    pub rows: usize,
    /// As they are compared, ascending, and as they are.
    pub times: ScalarBuffer<i64>,
    pub raw: ScalarBuffer<i64>,
    pub keys: Option<ScalarBuffer<u32>>,
    pub columns: Vec<ArrayRef>,
    _memory: MemoryReservation,
}

/// Which rows of a part: those of times in `[from, to)`, or these.
#[derive(Clone, Debug)]
pub(super) enum Span {
    Times(Option<i64>, Option<i64>),
    Rows(Range<usize>),
}

impl Part {
    pub fn range(&self, span: &Span) -> Range<usize> {
        match span {
            Span::Rows(rows) => rows.clone(),
            Span::Times(from, to) => {
                let before = |bound: i64| self.times.partition_point(|time| *time < bound);
                let to = to.map_or(self.times.len(), before);
                from.map_or(0, before).min(to)..to
            }
        }
    }
}

/// A piece, read once.
#[derive(Debug)]
pub(super) struct Cell {
    what: What,
    part: OnceLock<Result<Option<Arc<Part>>>>,
}

#[derive(Debug)]
enum What {
    Piece(Piece),
    Batch(RecordBatch),
}

impl Cell {
    pub fn of_piece(piece: Piece) -> Arc<Cell> {
        Arc::new(Cell { what: What::Piece(piece), part: OnceLock::new() })
    }

    pub fn of_batch(batch: RecordBatch) -> Arc<Cell> {
        Arc::new(Cell { what: What::Batch(batch), part: OnceLock::new() })
    }

    /// Of a table.
    pub fn piece(&self) -> Option<Piece> {
        match self.what {
            What::Piece(piece) => Some(piece),
            What::Batch(_) => None,
        }
    }
}

pub(super) struct Side {
    pub columns: Columns,
    pub is_left: bool,
    pub table: Option<Pieces>,
    pub keys: Arc<KeyNumbers>,
    pub memory: MemoryReservation,
}

impl Side {
    /// Whether the latest rows before a time can be found by their codes: see [`latest_before`].
    pub fn finds_earlier(&self) -> bool {
        let is_plain = self.table.as_ref().is_some_and(|table| !table.has_filters());
        is_plain && self.columns.scale == Scale::Same && self.keys.is_one_symbol()
    }

    /// Of each symbol, or only of some codes, the latest row before a time.
    pub fn earlier(&self, earlier: &Earlier, codes: Option<&[u32]>, cancel: &CancelToken) -> Result<Part> {
        let table = self.table.as_ref().ok_or_else(|| Error::internal("earlier rows of no table"))?;
        let place = |column: usize| column_of_scan(&table.plan, column).map(|(scan, place)| (scan.reader(), place));
        let (Some((reader, time)), Some((_, key))) = (place(self.columns.time), place(self.columns.keys[0])) else {
            return Err(Error::internal("a time or a key that is no column"));
        };
        let pieces =
            earlier.pieces.iter().filter(|piece| piece.min < earlier.before).map(|piece| (piece.max, piece.piece));
        let batch = latest_before(reader, pieces, (time, key), (earlier.before, codes), cancel)?;
        self.part_of(&table.stepped(batch)?, true)
    }

    /// The rows of a piece; `None` where there are none.
    pub fn part(&self, cell: &Cell) -> Result<Option<Arc<Part>>> {
        let read = || match (&cell.what, &self.table) {
            (What::Batch(batch), _) => self.part_of(batch, false).map(Some),
            (What::Piece(piece), Some(table)) => match table.read(*piece)? {
                Some(batch) => self.part_of(&batch, true).map(Some),
                None => Ok(None),
            },
            (What::Piece(_), None) => Err(Error::internal("a piece of no table")),
        };
        cell.part.get_or_init(|| Ok(read()?.map(Arc::new))).clone()
    }

    pub fn part_of(&self, batch: &RecordBatch, is_new: bool) -> Result<Part> {
        let Columns { time, keys, output, scale, .. } = &self.columns;
        let memory = self.memory.new_empty();
        let of = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
        let bytes = if is_new { batch.columns().iter().map(of).sum() } else { 0 };
        memory.try_grow(bytes + batch.num_rows() * 20)?;
        let times = cast(batch.column(*time), &DataType::Int64).map_err(|e| Error::internal(e.to_string()))?;
        let times = times.as_primitive::<Int64Type>();
        let raw = times.values().slice(0, times.len() - times.null_count());
        let keys: Vec<ArrayRef> = keys.iter().map(|key| batch.column(*key).clone()).collect();
        let keys = self.keys.of(&keys, batch.num_rows(), self.is_left)?;
        let columns = output.iter().map(|column| batch.column(*column).clone()).collect();
        Ok(Part { rows: batch.num_rows(), times: scale.of_times(&raw), raw, keys, columns, _memory: memory })
    }
}
