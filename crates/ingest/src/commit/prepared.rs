//! What can be made of rows before their commit, by the thread that brought them: their bytes in the log and the ids of
//! symbols that are known. The one commit thread then only copies.
//!
//! In: a batch, and its table as readers see it. Out: columns as the commit would make them if nothing changes until then.
//! Always: a table and a column never get the id of another, and a string keeps its id as long as its column exists; so what
//! was prepared for a column of a table holds whenever the commit finds these. All else is made at the commit.

use super::{are_ids, column_near, put_ids};
use crate::wal::columns::{encode_column, encode_times};
use crate::wal::record::Encoded;
use std::ops::Range;
use tidalite_storage::TableSnapshot;
use tidalite_storage::tables::Tables;
use tidalite_types::{Batch, BatchColumn, Column, ColumnId, ColumnSchema, ColumnType, TableId, Values};

/// Below this a batch costs the commit thread less than the look at its table costs.
const BYTES_MIN: usize = 64 << 10;

#[derive(Debug)]
pub struct Prepared {
    table: TableId,
    rows: usize,
    bytes: Vec<u8>,
    timestamps: Option<(ColumnId, Range<usize>)>,
    /// As the batch has them.
    columns: Vec<Option<Ready>>,
}

#[derive(Debug)]
struct Ready {
    id: ColumnId,
    /// The ids of its symbols, where the batch's codes are others.
    ids: Option<Column>,
    bytes: Range<usize>,
}

/// For each batch what could be prepared.
#[must_use]
pub fn prepare(batches: &[Batch], tables: &Tables) -> Vec<Option<Prepared>> {
    let one = |batch: &Batch| {
        let table = (batch.byte_count() >= BYTES_MIN).then(|| tables.read().by_name(&batch.table).cloned())??;
        // Of upserts not all rows may come into the log.
        table.schema.dedup.is_empty().then(|| Prepared::of(batch, &table))
    };
    batches.iter().map(one).collect()
}

impl Prepared {
    fn of(batch: &Batch, table: &TableSnapshot) -> Prepared {
        let columns = Vec::with_capacity(batch.columns.len());
        let mut prepared = Prepared { table: table.id, rows: batch.rows, bytes: Vec::new(), timestamps: None, columns };
        if let (Some(timestamps), Some((column, unit))) = (&batch.timestamps, table.schema.timestamp())
            && timestamps.unit == unit
        {
            let bytes = prepared.encoded(|bytes| encode_times(&timestamps.values, bytes));
            prepared.timestamps = Some((column.id, bytes));
        }
        for (at, column) in batch.columns.iter().enumerate() {
            let ready =
                column_near(&table.schema, at, &column.name).and_then(|target| prepared.ready(column, target, table));
            prepared.columns.push(ready);
        }
        prepared
    }

    fn ready(&mut self, column: &BatchColumn, target: &ColumnSchema, table: &TableSnapshot) -> Option<Ready> {
        if column.column_type != target.column_type {
            return None;
        }
        let ids = match &column.column.values {
            Values::U32(codes) if target.column_type == ColumnType::Symbol => {
                let known = table.symbols.get(&target.id)?.known(column.dictionary.iter())?;
                (!are_ids(codes, &known)).then(|| {
                    let mut ids = codes.clone();
                    put_ids(&mut ids, &known);
                    Column { values: Values::U32(ids), validity: column.column.validity.clone() }
                })
            }
            _ => None,
        };
        let bytes = self.encoded(|bytes| encode_column(ids.as_ref().unwrap_or(&column.column), bytes));
        Some(Ready { id: target.id, ids, bytes })
    }

    fn encoded(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        start..self.bytes.len()
    }

    /// Whether the rows go to the table that it was prepared for, and are as many: the caller's word that they are the same.
    pub(super) fn is_for(&self, table: TableId, batch: &Batch) -> bool {
        self.table == table && self.rows == batch.rows
    }

    /// Where the bytes of the timestamps are, if they go to this column as they are.
    pub(super) fn timestamps(&self, id: ColumnId) -> Option<Range<usize>> {
        self.timestamps.clone().filter(|(column, _)| *column == id).map(|(_, bytes)| bytes)
    }

    /// Of the batch's column `at`, which goes to this one as it is: where its bytes are; puts its symbols' ids in.
    pub(super) fn take(&mut self, at: usize, id: ColumnId, column: &mut Column) -> Option<Range<usize>> {
        let Ready { ids, bytes, .. } = self.columns.get_mut(at)?.take_if(|ready| ready.id == id)?;
        if let Some(ids) = ids {
            *column = ids;
        }
        Some(bytes)
    }

    /// With where the bytes of each column of the run are.
    pub(super) fn into_encoded(self, columns: Vec<Option<Range<usize>>>) -> Encoded {
        Encoded { bytes: self.bytes, columns }
    }
}
