//! Reads one piece of a table into a record batch.

use super::prune::Piece;
use super::spec::Order;
use crate::door::arrays::{Raw, dictionary_array};
use crate::{Error, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array,
    new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::arrow::compute::{FilterBuilder, take};
use datafusion::arrow::datatypes::SchemaRef;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, Bitmap, ColumnId, ColumnSchema, ColumnType};

/// The hidden column of a row's place in the snapshot: the index of its segment, or of its run behind all segments,
/// and in the lower 32 bits its row there. No column of a table can have the name.
pub(crate) const ADDRESS: &str = "+row";
pub(crate) const ADDRESS_COLUMN: ColumnId = ColumnId(u32::MAX);

/// The columns of a scan and what it takes to read them. Shared by the threads of a query.
#[derive(Debug)]
pub(crate) struct Reader {
    pub snapshot: Arc<TableSnapshot>,
    pub schema: SchemaRef,
    columns: Vec<ColumnSchema>,
    /// Dictionaries as arrays, made at the first need.
    dictionaries: HashMap<ColumnId, OnceLock<StringViewArray>>,
    /// For an unsorted run, the order of its rows by time, made at the first need.
    orders: Vec<OnceLock<UInt32Array>>,
    order: Order,
}

impl Reader {
    /// `schema` has the fields of `columns`, in their order.
    pub fn new(snapshot: Arc<TableSnapshot>, columns: Vec<ColumnSchema>, schema: SchemaRef, order: Order) -> Reader {
        let symbols = columns.iter().filter(|c| c.column_type == ColumnType::Symbol);
        let dictionaries = symbols.map(|c| (c.id, OnceLock::new())).collect();
        let orders = snapshot.runs.iter().map(|_| OnceLock::new()).collect();
        Reader { snapshot, schema, columns, dictionaries, orders, order }
    }

    pub fn read(&self, piece: Piece) -> Result<RecordBatch> {
        let (arrays, rows) = match piece {
            Piece::Block { segment: index, block } => {
                let segment = &self.snapshot.segments[index];
                let rows = segment.block_rows(block);
                let arrays = self.columns.iter().map(|column| {
                    match segment.read(column.id, block).map_err(|e| self.snapshot.named(e))? {
                        None if column.id == ADDRESS_COLUMN => Ok(addresses(index, block * BLOCK_ROWS, rows)),
                        Some(block) => self.array(Raw::of_block(block), column),
                        None => Ok(nulls(column, rows)),
                    }
                });
                (arrays.collect::<Result<Vec<_>>>()?, rows)
            }
            Piece::Run { run, from, rows } => {
                let arrays = self.columns.iter().map(|column| self.run_column(run, column, from, rows));
                (arrays.collect::<Result<Vec<_>>>()?, rows)
            }
        };
        let (arrays, rows) = match self.alive(piece) {
            Some(alive) => filtered(arrays, &alive)?,
            None => (arrays, rows),
        };
        let arrays = if self.order == Order::Descending { reversed(arrays, rows)? } else { arrays };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|e| {
            Error::new(tidalite_types::ErrorKind::Corrupt, format!("stored columns do not fit their table: {e}"))
        })
    }

    fn run_column(&self, index: usize, column: &ColumnSchema, from: usize, rows: usize) -> Result<ArrayRef> {
        let run = &self.snapshot.runs[index];
        if column.id == ADDRESS_COLUMN {
            let all = addresses(self.snapshot.segments.len() + index, 0, run.rows);
            return self.run_rows(index, &all, from, rows);
        }
        let Some(values) = run.column(column.id) else { return Ok(nulls(column, rows)) };
        let array = self.array(Raw::of_column(values), column)?;
        self.run_rows(index, &array, from, rows)
    }

    /// Rows of a column of a run, in the order wanted.
    fn run_rows(&self, index: usize, array: &ArrayRef, from: usize, rows: usize) -> Result<ArrayRef> {
        match self.run_order(index) {
            None => Ok(array.slice(from, rows)),
            Some(order) => take(array, &order.slice(from, rows), None).map_err(|e| Error::internal(e.to_string())),
        }
    }

    /// The order in which a run is read, if that is not the one it has.
    fn run_order(&self, index: usize) -> Option<&UInt32Array> {
        let run = &self.snapshot.runs[index];
        if self.order == Order::Free || run.is_sorted || self.snapshot.schema.designated.is_none() {
            return None;
        }
        Some(self.orders[index].get_or_init(|| self.order(run)))
    }

    /// Which rows of a piece are alive; `None` when all are.
    fn alive(&self, piece: Piece) -> Option<BooleanArray> {
        match piece {
            Piece::Block { segment, block } => {
                let segment = &self.snapshot.segments[segment];
                let dead = self.snapshot.mask(segment)?.block(block)?;
                Some(inverted(dead, segment.block_rows(block)))
            }
            Piece::Run { run: index, from, rows } => {
                let mask = self.snapshot.runs[index].dead.as_ref()?;
                match self.run_order(index) {
                    None => Some(inverted(mask.block(from / BLOCK_ROWS)?, rows)),
                    Some(order) => {
                        let rows = order.slice(from, rows);
                        Some(rows.values().iter().map(|row| Some(!mask.is_dead(*row as usize))).collect())
                    }
                }
            }
        }
    }

    /// Row numbers in order of time; rows of the same time in order of arrival.
    fn order(&self, run: &Run) -> UInt32Array {
        let times = self.snapshot.schema.designated.map_or(&[][..], |id| run.timestamps(id));
        let mut order: Vec<u32> = (0..run.rows as u32).collect();
        order.sort_by_key(|row| times.get(*row as usize).copied().unwrap_or(0));
        UInt32Array::from(order)
    }

    fn array(&self, raw: Raw, column: &ColumnSchema) -> Result<ArrayRef> {
        let dictionary = match self.dictionaries.get(&column.id) {
            Some(cell) => Some(self.dictionary(cell, column.id)?),
            None => None,
        };
        raw.into_array(column.column_type, dictionary)
    }

    fn dictionary<'a>(&self, cell: &'a OnceLock<StringViewArray>, column: ColumnId) -> Result<&'a StringViewArray> {
        if let Some(array) = cell.get() {
            return Ok(array);
        }
        let symbols = self
            .snapshot
            .symbols
            .get(&column)
            .ok_or_else(|| Error::internal("a symbol column without a dictionary"))?;
        let array = dictionary_array(symbols.strings())?;
        Ok(cell.get_or_init(|| array))
    }
}

fn addresses(source: usize, from: usize, rows: usize) -> ArrayRef {
    let first = ((source as i64) << 32) + from as i64;
    Arc::new(Int64Array::from_iter_values(first..first + rows as i64))
}

/// The clear ones of the first `rows` bits.
fn inverted(dead: &Bitmap, rows: usize) -> BooleanArray {
    let words: Vec<u64> = dead.words().iter().map(|word| !word).collect();
    BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows), None)
}

fn filtered(arrays: Vec<ArrayRef>, alive: &BooleanArray) -> Result<(Vec<ArrayRef>, usize)> {
    let kept = FilterBuilder::new(alive).optimize().build();
    let arrays = arrays.iter().map(|array| kept.filter(array)).collect::<Result<_, _>>();
    Ok((arrays.map_err(|e| Error::internal(e.to_string()))?, kept.count()))
}

fn reversed(arrays: Vec<ArrayRef>, rows: usize) -> Result<Vec<ArrayRef>> {
    let backwards = UInt32Array::from_iter_values((0..rows as u32).rev());
    let reversed = arrays.iter().map(|array| take(array, &backwards, None));
    reversed.collect::<Result<_, _>>().map_err(|e| Error::internal(e.to_string()))
}

fn nulls(column: &ColumnSchema, rows: usize) -> ArrayRef {
    new_null_array(&crate::door::arrow_type(column.column_type), rows)
}
