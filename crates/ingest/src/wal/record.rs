//! Encodes a commit: its number and its operations.
//!
//! Operations contain only ids and physical values, so that a replay makes no decisions.

use super::columns::{decode_column, encode_column};
use std::sync::Arc;
use tidalite_storage::codec::{Decoder, Encoder, Malformed};
use tidalite_storage::manifest::{decode_segment, encode_segment};
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::symbol_file::{Entries, decode_entries, encode_entries};
use tidalite_storage::{DeadRows, Run};
use tidalite_types::column_type::Physical;
use tidalite_types::{ColumnId, TableId, TableSchema, TimeChange, TimeChangeKind, Txn};

#[derive(Clone, Debug)]
pub enum Op {
    CreateTable {
        table: TableId,
        schema: Arc<TableSchema>,
    },
    DropTable {
        table: TableId,
    },
    /// A column was added, dropped or renamed, or the table was renamed; contains the new schema.
    SetSchema {
        table: TableId,
        schema: Arc<TableSchema>,
    },
    Truncate {
        table: TableId,
    },
    /// The intervals `[lo, hi)` of the removed partitions.
    DropPartitions {
        table: TableId,
        partitions: Vec<(i64, i64)>,
    },
    /// Strings that got ids in this commit.
    Symbols {
        table: TableId,
        entries: Arc<Entries>,
    },
    Rows {
        table: TableId,
        run: Run,
    },
    /// Rows that are deleted, or replaced by following rows of this commit.
    Delete {
        table: TableId,
        dead: Arc<DeadRows>,
    },
    /// Changed times of a base table of a materialized view, if other operations of the commit do not imply them.
    ///
    /// In a checkpoint: all changes of commits after `since` that views have not processed.
    Times {
        table: TableId,
        since: Txn,
        changes: Vec<TimeChange>,
    },
    /// The segments of a load become segments of the table. Their files were synced before the commit was logged.
    Attach {
        table: TableId,
        segments: Arc<Vec<SegmentMeta>>,
    },
}

impl Op {
    /// Returns the rows of the operation, if it has any.
    #[must_use]
    pub fn into_run(self) -> Option<Run> {
        match self {
            Op::Rows { run, .. } => Some(run),
            _ => None,
        }
    }

    #[must_use]
    pub fn table(&self) -> TableId {
        match self {
            Op::CreateTable { table, .. }
            | Op::DropTable { table }
            | Op::SetSchema { table, .. }
            | Op::Truncate { table }
            | Op::DropPartitions { table, .. }
            | Op::Symbols { table, .. }
            | Op::Rows { table, .. }
            | Op::Delete { table, .. }
            | Op::Times { table, .. }
            | Op::Attach { table, .. } => *table,
        }
    }
}

/// Appends one operation: tag u8, table u32, then the fields of the tag.
pub fn encode_op(op: &Op, e: &mut Encoder) {
    e.u8(match op {
        Op::CreateTable { .. } => 1,
        Op::DropTable { .. } => 2,
        Op::SetSchema { .. } => 3,
        Op::Truncate { .. } => 4,
        Op::DropPartitions { .. } => 5,
        Op::Symbols { .. } => 6,
        Op::Rows { .. } => 7,
        Op::Delete { .. } => 8,
        Op::Times { .. } => 9,
        Op::Attach { .. } => 10,
    });
    e.u32(op.table().0);
    match op {
        Op::CreateTable { schema, .. } | Op::SetSchema { schema, .. } => e.schema(schema),
        Op::DropTable { .. } | Op::Truncate { .. } => {}
        Op::DropPartitions { partitions, .. } => {
            e.u32(partitions.len() as u32);
            for (lo, hi) in partitions {
                e.i64(*lo);
                e.i64(*hi);
            }
        }
        Op::Symbols { entries, .. } => encode_entries(entries, e),
        Op::Rows { run, .. } => encode_run(run, e),
        Op::Delete { dead, .. } => dead.encode(e),
        Op::Times { since, changes, .. } => encode_times(*since, changes, e),
        Op::Attach { segments, .. } => {
            e.u32(segments.len() as u32);
            for meta in segments.iter() {
                encode_segment(meta, e);
                e.u8(u8::from(meta.is_late));
            }
        }
    }
}

pub fn decode_op(d: &mut Decoder<'_>) -> Result<Op, Malformed> {
    decode_front(d)?.whole(d)
}

/// The front of an operation: the columns of rows follow separately, so that a reader may decode them in any way.
#[derive(Debug)]
pub enum Front {
    Op(Op),
    Rows(TableId, RunHead),
}

impl Front {
    /// Completes the operation with the columns of rows from the front of `d`.
    pub fn whole(self, d: &mut Decoder<'_>) -> Result<Op, Malformed> {
        Ok(match self {
            Front::Op(op) => op,
            Front::Rows(table, head) => Op::Rows { table, run: head.decode(d)? },
        })
    }
}

pub fn decode_front(d: &mut Decoder<'_>) -> Result<Front, Malformed> {
    let (tag, table) = (d.u8()?, d.table()?);
    Ok(Front::Op(match tag {
        1 => Op::CreateTable { table, schema: Arc::new(d.schema()?) },
        2 => Op::DropTable { table },
        3 => Op::SetSchema { table, schema: Arc::new(d.schema()?) },
        4 => Op::Truncate { table },
        5 => {
            let mut partitions = Vec::new();
            for _ in 0..d.u32()? {
                partitions.push((d.i64()?, d.i64()?));
            }
            Op::DropPartitions { table, partitions }
        }
        6 => Op::Symbols { table, entries: Arc::new(decode_entries(d)?) },
        7 => return Ok(Front::Rows(table, RunHead::decode_head(d)?)),
        8 => Op::Delete { table, dead: Arc::new(DeadRows::decode(d)?) },
        9 => {
            let (since, changes) = decode_times(d)?;
            Op::Times { table, since, changes }
        }
        10 => {
            let mut segments = Vec::new();
            for _ in 0..d.u32()? {
                let meta = decode_segment(d)?;
                segments.push(SegmentMeta { is_late: d.u8()? != 0, ..meta });
            }
            Op::Attach { table, segments: Arc::new(segments) }
        }
        _ => return Err(Malformed("operation")),
    }))
}

fn encode_times(since: Txn, changes: &[TimeChange], e: &mut Encoder) {
    e.u64(since.0);
    e.u32(changes.len() as u32);
    for change in changes {
        e.u64(change.txn.0);
        e.i64(change.lo);
        e.i64(change.hi);
        e.u8(match change.kind {
            TimeChangeKind::Changed => 0,
            TimeChangeKind::Dropped => 1,
            TimeChangeKind::Truncated => 2,
        });
    }
}

fn decode_times(d: &mut Decoder<'_>) -> Result<(Txn, Vec<TimeChange>), Malformed> {
    let since = Txn(d.u64()?);
    let mut changes = Vec::new();
    for _ in 0..d.u32()? {
        let (txn, lo, hi) = (Txn(d.u64()?), d.i64()?, d.i64()?);
        let kind = match d.u8()? {
            0 => TimeChangeKind::Changed,
            1 => TimeChangeKind::Dropped,
            2 => TimeChangeKind::Truncated,
            _ => return Err(Malformed("change of times")),
        };
        changes.push(TimeChange { txn, lo, hi, kind });
    }
    Ok((since, changes))
}

fn encode_run(run: &Run, e: &mut Encoder) {
    e.u64(run.txns.0.0);
    e.u64(run.txns.1.0);
    e.u32(run.rows as u32);
    e.u8(u8::from(run.is_sorted));
    e.i64(run.time_range.0);
    e.i64(run.time_range.1);
    e.u32(run.columns.len() as u32);
    for (id, column) in &run.columns {
        e.u32(id.0);
        e.u8(physical_tag(column.values.physical()));
        encode_column(column, &mut e.bytes);
    }
}

/// A run without its columns, which follow in the record.
#[derive(Clone, Copy, Debug)]
pub struct RunHead {
    pub rows: usize,
    pub txns: (Txn, Txn),
    pub is_sorted: bool,
    pub time_range: (i64, i64),
    pub columns: u32,
}

impl RunHead {
    fn decode_head(d: &mut Decoder<'_>) -> Result<RunHead, Malformed> {
        let txns = (Txn(d.u64()?), Txn(d.u64()?));
        let rows = d.u32()? as usize;
        let is_sorted = d.u8()? != 0;
        let time_range = (d.i64()?, d.i64()?);
        Ok(RunHead { rows, txns, is_sorted, time_range, columns: d.u32()? })
    }

    /// Decodes the columns from the front of `d`.
    pub fn decode(self, d: &mut Decoder<'_>) -> Result<Run, Malformed> {
        let mut columns = Vec::new();
        for _ in 0..self.columns {
            let (id, physical) = decode_column_head(d)?;
            let column = decode_column(&mut d.rest, physical, self.rows).map_err(|_| Malformed("column"))?;
            columns.push((id, Arc::new(column)));
        }
        let RunHead { rows, txns, is_sorted, time_range, .. } = self;
        Ok(Run { rows, txns, time_range, is_sorted, columns, dead: None })
    }
}

/// Decodes the header of each column of a run.
pub(super) fn decode_column_head(d: &mut Decoder<'_>) -> Result<(ColumnId, Physical), Malformed> {
    Ok((ColumnId(d.u32()?), physical_of(d.u8()?)?))
}

const PHYSICALS: [Physical; 11] = [
    Physical::Bit,
    Physical::I8,
    Physical::I16,
    Physical::I32,
    Physical::I64,
    Physical::I128,
    Physical::F32,
    Physical::F64,
    Physical::U32,
    Physical::B16,
    Physical::Views,
];

fn physical_tag(physical: Physical) -> u8 {
    PHYSICALS.iter().position(|p| *p == physical).expect("every physical type is listed") as u8
}

fn physical_of(tag: u8) -> Result<Physical, Malformed> {
    PHYSICALS.get(usize::from(tag)).copied().ok_or(Malformed("physical type"))
}
