//! Reads the wanted rows of one piece of a table into a record batch.
//!
//! First the mask of wanted rows is made, see [`super::filters`]. Then, and only when there are any, the columns of the
//! output are read: whole and in place where every row is wanted, else only the vectors that have wanted rows, of which
//! only those come out.

use super::filters::{Filter, Filters, Wanted};
use super::prune::Piece;
use super::spec::{Form, Order, ScanSpec, Total};
use super::totals;
use crate::calendar::Buckets;
use crate::door::arrays::{Raw, as_dictionary, dictionary_array, text_array, text_dictionary};
use crate::door::arrow_type;
use crate::{Error, Result, functions};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tidalite_kernels::{gather, picked};
use tidalite_storage::segment::{Selection, TextsOf};
use tidalite_storage::{Bounds, Run, Segment, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, Bitmap, ColumnId, ColumnSchema, ColumnType, Values};

/// The hidden column of a row's place in the snapshot: the index of its segment, or of its run behind all segments,
/// and in the lower 32 bits its row there. No column of a table can have the name.
pub(crate) const ADDRESS: &str = "+row";
pub(crate) const ADDRESS_COLUMN: ColumnId = ColumnId(u32::MAX);

/// The columns of a scan and what it takes to read them. Shared by the threads of a query.
#[derive(Debug)]
pub(crate) struct Reader {
    pub snapshot: Arc<TableSnapshot>,
    pub schema: SchemaRef,
    columns: Vec<Output>,
    filters: Filters,
    /// Dictionaries as arrays, made at the first need.
    dictionaries: HashMap<ColumnId, OnceLock<StringViewArray>>,
    /// For an unsorted run, its wanted rows in the order of time, made at the first need.
    orders: Vec<OnceLock<Result<Vec<u32>>>>,
    order: Order,
    /// If what comes out is not rows, but what they come to.
    totals: Option<Vec<Total>>,
    /// By column, where its expression is the start of a bucket.
    buckets: Vec<Option<Buckets>>,
}

/// A column that comes out.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub column: ColumnSchema,
    pub form: Form,
}

impl Output {
    fn buckets(&self) -> Option<Buckets> {
        let (Form::Rising(expr), ColumnType::Timestamp(unit)) = (&self.form, self.column.column_type) else {
            return None;
        };
        functions::buckets_of(expr, unit)
    }
}

/// Some rows of a run.
enum RunRows {
    /// These, as they lie.
    Range(usize, usize),
    /// These, by number.
    List(Vec<u32>),
}

impl Reader {
    /// `schema` has the fields of `columns`, in their order. Rows that do not satisfy all that `spec` says stay away.
    pub fn new(snapshot: Arc<TableSnapshot>, columns: Vec<Output>, schema: SchemaRef, spec: &ScanSpec) -> Reader {
        let symbols = columns.iter().filter(|c| c.column.column_type == ColumnType::Symbol);
        let dictionaries = symbols.map(|c| (c.column.id, OnceLock::new())).collect();
        let orders = snapshot.runs.iter().map(|_| OnceLock::new()).collect();
        let (filters, order) = (Filters::new(&snapshot, spec), spec.order);
        let buckets = columns.iter().map(Output::buckets).collect();
        Reader { snapshot, schema, columns, filters, dictionaries, orders, order, totals: None, buckets }
    }

    /// The columns, if they come as values.
    pub fn plain_columns(&self) -> Option<Vec<ColumnSchema>> {
        let plain = |output: &Output| matches!(output.form, Form::Values).then(|| output.column.clone());
        self.columns.iter().map(plain).collect::<Option<Vec<_>>>().filter(|_| self.totals.is_none())
    }

    /// The wanted rows of a piece; `None` where there are none.
    pub fn read(&self, piece: Piece) -> Result<Option<RecordBatch>> {
        self.read_some(piece, None, usize::MAX)
    }

    /// Those of them that come first in the order of the scan, at most so many.
    pub(super) fn read_first(&self, piece: Piece, rows_max: usize) -> Result<Option<RecordBatch>> {
        self.read_some(piece, None, rows_max)
    }

    /// Those of them that satisfy one more filter.
    pub(super) fn read_within(&self, piece: Piece, within: &Filter) -> Result<Option<RecordBatch>> {
        self.read_some(piece, Some(within), usize::MAX)
    }

    fn read_some(&self, piece: Piece, within: Option<&Filter>, rows_max: usize) -> Result<Option<RecordBatch>> {
        let (arrays, rows) = match piece {
            Piece::Block { segment, block } => self.block(segment, block, within, rows_max)?,
            Piece::Run { run, from, rows } => self.run(run, from, rows, within)?,
        };
        if rows == 0 {
            return Ok(None);
        }
        let arrays = if self.order == Order::Descending { reversed(arrays, rows)? } else { arrays };
        self.batch(arrays, rows).map(Some)
    }

    fn batch(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|e| {
            Error::new(tidalite_types::ErrorKind::Corrupt, format!("stored columns do not fit their table: {e}"))
        })
    }

    /// Rows of a segment or, counted behind all segments, of a run, by number and ascending; wanted or not.
    pub fn rows(&self, source: usize, rows: &[u32]) -> Result<Vec<RecordBatch>> {
        let segments = self.snapshot.segments.len();
        if let Some(index) = source.checked_sub(segments) {
            let (run, list) = (&self.snapshot.runs[index], RunRows::List(rows.to_vec()));
            let arrays = self.columns.iter().map(|output| self.run_column(run, index, output, &list));
            return Ok(vec![self.batch(arrays.collect::<Result<_>>()?, rows.len())?]);
        }
        let of_block = |rows: &[u32]| {
            let block = rows[0] as usize / BLOCK_ROWS;
            let numbers = rows.iter().map(|row| (*row as usize % BLOCK_ROWS) as u16).collect();
            let some = Selection::of_numbers(numbers, self.snapshot.segments[source].block_rows(block));
            self.some_of_block(source, block, &some)
        };
        rows.chunk_by(|a, b| *a as usize / BLOCK_ROWS == *b as usize / BLOCK_ROWS).map(of_block).collect()
    }

    /// Which rows of a piece are wanted.
    pub fn wanted(&self, piece: Piece) -> Result<Wanted> {
        self.filters.wanted(&self.snapshot, piece, None)
    }

    /// Which of a column's symbols, so many, wanted rows may have: as bits, and whether they may have none.
    pub fn symbols_of(&self, index: usize, count: usize) -> (Vec<u64>, bool) {
        self.filters.symbols_of(self.columns[index].column.id, count)
    }

    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// A column of all rows of a piece, symbols as codes; `None` where every row is NULL.
    pub fn plain(&self, piece: Piece, column: &ColumnSchema) -> Result<Option<ArrayRef>> {
        let raw = match piece {
            Piece::Block { segment, block } => {
                let block = self.snapshot.segments[segment].read(column.id, block);
                block.map_err(|e| self.snapshot.named(e))?.map(Raw::of_block)
            }
            Piece::Run { run, from, rows } => {
                self.snapshot.runs[run].column(column.id).map(|values| Raw::of_column(values, from, rows))
            }
        };
        raw.map(|raw| match column.column_type {
            ColumnType::Symbol => raw.into_codes(),
            other => raw.into_array(other, None),
        })
        .transpose()
    }

    /// What comes out, in its order.
    pub fn column(&self, index: usize) -> &ColumnSchema {
        &self.columns[index].column
    }

    pub fn form(&self, index: usize) -> &Form {
        &self.columns[index].form
    }

    /// Rows that a piece holds, wanted or not.
    pub fn rows_of(&self, piece: Piece) -> usize {
        match piece {
            Piece::Block { segment, block } => self.snapshot.segments[segment].block_rows(block),
            Piece::Run { rows, .. } => rows,
        }
    }

    /// Returns true if a column has texts of any width.
    pub fn has_texts(&self) -> bool {
        self.columns.iter().any(|output| output.column.column_type.is_text())
    }

    /// Bytes of the texts of a piece, as they are stored; 0 where that is not known.
    pub fn bytes_of_texts(&self, piece: Piece) -> usize {
        let texts = self.columns.iter().map(|output| &output.column).filter(|column| column.column_type.is_text());
        let bytes = |column: &ColumnSchema| match piece {
            Piece::Block { segment, block } => {
                let stored = self.snapshot.segments[segment].stored(column.id, block).ok().flatten();
                stored.map_or(0, |stored| stored.logical_bytes as usize)
            }
            Piece::Run { run, rows, .. } => match self.snapshot.runs[run].column(column.id).map(|own| &own.values) {
                Some(Values::Views(views)) => views.data().len() / self.snapshot.runs[run].rows.max(1) * rows,
                _ => 0,
            },
        };
        texts.map(bytes).sum()
    }

    /// Those rows of a block.
    pub(super) fn some_of_block(&self, index: usize, block: usize, some: &Selection) -> Result<RecordBatch> {
        self.batch(self.columns_of_block(index, block, Some(some), some.rows())?, some.rows())
    }

    fn block(
        &self,
        index: usize,
        block: usize,
        within: Option<&Filter>,
        rows_max: usize,
    ) -> Result<(Vec<ArrayRef>, usize)> {
        let segment = &self.snapshot.segments[index];
        let piece = Piece::Block { segment: index, block };
        let is_descending = self.order == Order::Descending;
        let (selection, rows) = match self.filters.wanted(&self.snapshot, piece, within)? {
            Wanted::All if segment.block_rows(block) / 2 < rows_max => (None, segment.block_rows(block)),
            Wanted::All => {
                let mask = Bitmap::filled(segment.block_rows(block), true).into_words();
                (Some(Selection::new(first_of(mask, rows_max, is_descending))), rows_max)
            }
            Wanted::Some(some) if some.rows() > rows_max => {
                (Some(Selection::new(first_of(some.into_mask(), rows_max, is_descending))), rows_max)
            }
            Wanted::Some(some) => {
                let rows = some.rows();
                (Some(some), rows)
            }
        };
        if rows == 0 {
            return Ok((Vec::new(), 0));
        }
        let columns = self.columns_of_block(index, block, selection.as_ref(), rows)?;
        // Fewer, where each text comes once.
        let rows = columns.first().map_or(rows, |column| column.len());
        Ok((columns, rows))
    }

    /// Of the selected rows of a block, which are so many; without a selection of all.
    fn columns_of_block(
        &self,
        index: usize,
        block: usize,
        selection: Option<&Selection>,
        rows: usize,
    ) -> Result<Vec<ArrayRef>> {
        let segment = &self.snapshot.segments[index];
        let array = |output: &Output| {
            let column = &output.column;
            if let Form::Rising(expr) = &output.form
                && let Some(one) = self.risen(segment, block, column, expr)?
            {
                return one.to_array_of_size(rows).map_err(|e| Error::internal(e.to_string()));
            }
            if column.id == ADDRESS_COLUMN {
                let at = block * BLOCK_ROWS;
                return Ok(match selection {
                    None => addresses(index, at..at + rows),
                    Some(some) => addresses(index, picked(some.mask()).map(|row| at + row)),
                });
            }
            if column.column_type.is_text() {
                let wanted = match (selection, &output.form) {
                    (Some(selection), _) => TextsOf::Some(selection),
                    (None, Form::TextsOnce) => TextsOf::Each,
                    (None, _) => TextsOf::All,
                };
                let texts = segment.texts(column.id, block, wanted).map_err(|e| self.snapshot.named(e))?;
                return match (texts, &output.form) {
                    (Some(texts), Form::Texts | Form::TextsOnce) => text_dictionary(texts),
                    (Some(texts), _) => text_array(texts),
                    (None, _) => nulls(output, rows),
                };
            }
            let read = match selection {
                None => segment.read(column.id, block),
                Some(some) => segment.take(column.id, block, some),
            };
            match read.map_err(|e| self.snapshot.named(e))? {
                Some(block) => self.array(Raw::of_block(block), output),
                None => nulls(output, rows),
            }
        };
        self.columns.iter().map(array).collect()
    }

    pub(super) fn run(
        &self,
        index: usize,
        from: usize,
        rows: usize,
        within: Option<&Filter>,
    ) -> Result<(Vec<ArrayRef>, usize)> {
        let run = &self.snapshot.runs[index];
        let wanted = match self.run_order(index) {
            None => match self.filters.wanted(&self.snapshot, Piece::Run { run: index, from, rows }, within)? {
                Wanted::All => RunRows::Range(from, rows),
                Wanted::Some(some) => RunRows::List(picked(some.mask()).map(|row| (from + row) as u32).collect()),
            },
            // Made when the first piece was read: of these rows all are wanted.
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok(order)) => {
                RunRows::List(order.get(from..order.len().min(from + rows)).unwrap_or_default().to_vec())
            }
        };
        let rows = match &wanted {
            RunRows::Range(_, rows) => *rows,
            RunRows::List(rows) => rows.len(),
        };
        if rows == 0 {
            return Ok((Vec::new(), 0));
        }
        let arrays = self.columns.iter().map(|output| self.run_column(run, index, output, &wanted));
        Ok((arrays.collect::<Result<_>>()?, rows))
    }

    fn run_column(&self, run: &Run, index: usize, output: &Output, wanted: &RunRows) -> Result<ArrayRef> {
        let column = &output.column;
        let source = self.snapshot.segments.len() + index;
        match (run.column(column.id), wanted) {
            _ if column.id == ADDRESS_COLUMN => Ok(match wanted {
                RunRows::Range(from, rows) => addresses(source, *from..from + rows),
                RunRows::List(rows) => addresses(source, rows.iter().map(|row| *row as usize)),
            }),
            (None, RunRows::Range(_, rows)) => nulls(output, *rows),
            (None, RunRows::List(rows)) => nulls(output, rows.len()),
            (Some(values), RunRows::Range(from, rows)) => self.array(Raw::of_column(values, *from, *rows), output),
            (Some(values), RunRows::List(rows)) => {
                let some = Arc::new(gather(values, rows));
                self.array(Raw::of_column(&some, 0, rows.len()), output)
            }
        }
    }

    /// The smallest and the greatest designated timestamp of a piece, as the scan reads it; of other rows it may have, too.
    /// `None` where no row is wanted.
    pub fn time_range(&self, piece: Piece) -> Result<Option<(i64, i64)>> {
        let Some(designated) = self.snapshot.schema.designated else {
            return Err(Error::internal("times of a table that has none"));
        };
        match piece {
            Piece::Block { segment, block } => {
                let segment = &self.snapshot.segments[segment];
                let zone = segment.zone(designated, block).map_err(|e| self.snapshot.named(e))?;
                Ok(Some(match zone.map(|zone| zone.bounds) {
                    Some(Bounds::Int(min, max)) => (min, max),
                    _ => segment.time_range(),
                }))
            }
            Piece::Run { run, from, rows } => {
                let times = self.snapshot.runs[run].timestamps(designated);
                let of = |first: usize, last: usize| times.get(first).copied().zip(times.get(last).copied());
                let Some(order) = self.run_order(run) else { return Ok(of(from, (from + rows).saturating_sub(1))) };
                let order = order.as_ref().map_err(Clone::clone)?;
                let own = order.get(from..order.len().min(from + rows)).unwrap_or_default();
                Ok(own.first().zip(own.last()).and_then(|(first, last)| of(*first as usize, *last as usize)))
            }
        }
    }

    /// The wanted rows of a run in the order in which it is read, if that is not the one it has.
    fn run_order(&self, index: usize) -> Option<&Result<Vec<u32>>> {
        let run = &self.snapshot.runs[index];
        if self.order == Order::Free || run.is_sorted || self.snapshot.schema.designated.is_none() {
            return None;
        }
        Some(self.orders[index].get_or_init(|| self.order(index, run)))
    }

    /// Row numbers in order of time; rows of the same time in order of arrival.
    fn order(&self, index: usize, run: &Run) -> Result<Vec<u32>> {
        let times = self.snapshot.schema.designated.map_or(&[][..], |id| run.timestamps(id));
        let mut order: Vec<u32> = Vec::with_capacity(if self.filters.is_empty() { run.rows } else { 0 });
        for from in (0..run.rows).step_by(BLOCK_ROWS) {
            let rows = BLOCK_ROWS.min(run.rows - from);
            match self.filters.wanted(&self.snapshot, Piece::Run { run: index, from, rows }, None)? {
                Wanted::All => order.extend(from as u32..(from + rows) as u32),
                Wanted::Some(some) => order.extend(picked(some.mask()).map(|row| (from + row) as u32)),
            }
        }
        order.sort_by_key(|row| times.get(*row as usize).copied().unwrap_or(0));
        Ok(order)
    }

    fn array(&self, raw: Raw, output: &Output) -> Result<ArrayRef> {
        let column = &output.column;
        if let Form::Codes = output.form {
            return raw.into_codes();
        }
        let dictionary = match self.dictionaries.get(&column.id) {
            Some(cell) => Some(self.dictionary(cell, column.id)?),
            None => None,
        };
        let array = raw.into_array(column.column_type, dictionary)?;
        match &output.form {
            Form::Rising(expr) => computed(expr, array),
            Form::Texts | Form::TextsOnce => as_dictionary(array),
            _ => Ok(array),
        }
    }

    /// What a column's expression makes of integers, which are times.
    pub fn bucketed(&self, index: usize, times: Vec<i64>) -> Result<Int64Array> {
        let Output { column, form: Form::Rising(expr) } = &self.columns[index] else {
            return Err(Error::internal("buckets of a column that has none"));
        };
        if let Some(buckets) = &self.buckets[index] {
            return Ok(buckets.starts(&times).into());
        }
        let internal = |e: &dyn std::fmt::Display| Error::internal(e.to_string());
        let times: ArrayRef = Arc::new(Int64Array::from(times));
        let times = cast(&times, &arrow_type(column.column_type)).map_err(|e| internal(&e))?;
        let made = cast(&computed(expr, times)?, &DataType::Int64).map_err(|e| internal(&e))?;
        Ok(made.as_primitive::<Int64Type>().clone())
    }

    /// The bucket that all of a block's rows are in, if it is one and found without computing an expression.
    pub(super) fn bucket_of_block(&self, segment: &Segment, block: usize, index: usize) -> Result<Option<i64>> {
        let Some(buckets) = &self.buckets[index] else { return Ok(None) };
        let zone = segment.zone(self.columns[index].column.id, block).map_err(|e| self.snapshot.named(e))?;
        let Some(Bounds::Int(min, max)) = zone.filter(|zone| zone.null_count == 0).map(|zone| zone.bounds) else {
            return Ok(None);
        };
        let start = buckets.range(min).0;
        Ok((start == buckets.range(max).0).then_some(start))
    }

    /// Whether [`Reader::bucket_of_block`] knows of no bucket because there are several.
    pub(super) fn has_buckets(&self, index: usize) -> bool {
        self.buckets[index].is_some()
    }

    /// What an expression makes of all of a block's values, where it is one value.
    pub(super) fn risen(
        &self,
        segment: &Segment,
        block: usize,
        column: &ColumnSchema,
        expr: &Arc<dyn PhysicalExpr>,
    ) -> Result<Option<ScalarValue>> {
        let zone = segment.zone(column.id, block).map_err(|e| self.snapshot.named(e))?;
        let Some(Bounds::Int(min, max)) = zone.filter(|zone| zone.null_count == 0).map(|zone| zone.bounds) else {
            return Ok(None);
        };
        let internal = |e: &dyn std::fmt::Display| Error::internal(e.to_string());
        let ends: ArrayRef = Arc::new(Int64Array::from(vec![min, max]));
        let ends = cast(&ends, &arrow_type(column.column_type)).map_err(|e| internal(&e))?;
        // The ends may be of rows that are not wanted: what cannot be computed of them is no error.
        let Ok(made) = computed(expr, ends) else { return Ok(None) };
        let of = |row| ScalarValue::try_from_array(&made, row).map_err(|e| internal(&e));
        let (first, last) = (of(0)?, of(1)?);
        Ok((first == last).then_some(first))
    }

    /// The texts of a symbol column, by code.
    pub fn symbols(&self, column: ColumnId) -> Result<StringViewArray> {
        match self.dictionaries.get(&column) {
            Some(cell) => Ok(self.dictionary(cell, column)?.clone()),
            None => Err(Error::internal("a dictionary of a column that is no symbol")),
        }
    }

    /// Whether a condition is asked by machine code by now.
    pub fn is_compiled(&self) -> bool {
        self.filters.is_compiled()
    }

    /// The columns that come out as codes.
    pub fn in_codes(&self) -> Vec<&str> {
        let coded = self.columns.iter().filter(|output| matches!(output.form, Form::Codes));
        coded.map(|output| output.column.name.as_str()).collect()
    }

    /// Of some of its columns, and with `is_addressed` of the place of each row behind them.
    pub fn narrowed(&self, columns: &[usize], is_addressed: bool, spec: &ScanSpec) -> Reader {
        let mut outputs: Vec<Output> = columns.iter().map(|at| self.columns[*at].clone()).collect();
        let mut fields: Vec<_> = columns.iter().map(|at| self.schema.fields()[*at].clone()).collect();
        if is_addressed {
            outputs.push(Output { column: address_column(), form: Form::Values });
            fields.push(Arc::new(Field::new(ADDRESS, DataType::Int64, false)));
        }
        Reader::new(self.snapshot.clone(), outputs, Arc::new(Schema::new(fields)), spec)
    }

    /// What share of the rows is expected to satisfy the filters, if they are cheap to ask.
    pub fn expected_share(&self) -> Option<f64> {
        self.filters.expected_share()
    }

    /// Whether filters may be an error of a row.
    pub fn may_fail(&self) -> bool {
        self.filters.may_fail()
    }

    /// Pieces in the order of what their zones have of a column at its better end; those without a zone, runs, come first.
    pub fn best_first(&self, pieces: &[Piece], column: usize, descending: bool) -> Result<Vec<Piece>> {
        let id = self.columns[column].column.id;
        let mut ranked = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let zone = match *piece {
                Piece::Block { segment, block } => {
                    self.snapshot.segments[segment].zone(id, block).map_err(|e| self.snapshot.named(e))?
                }
                Piece::Run { .. } => None,
            };
            let end = zone.map_or(f64::NEG_INFINITY, |zone| match (zone.bounds, descending) {
                (Bounds::Int(min, _), false) => min as f64,
                (Bounds::Int(_, max), true) => -(max as f64),
                (Bounds::Float(min, _), false) => min,
                (Bounds::Float(_, max), true) => {
                    if max.is_nan() {
                        f64::NEG_INFINITY
                    } else {
                        -max
                    }
                }
                _ => f64::NEG_INFINITY,
            });
            ranked.push((end, *piece));
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(ranked.into_iter().map(|(_, piece)| piece).collect())
    }

    /// With another form of one of its columns.
    pub fn with_form(&self, index: usize, form: Form, schema: SchemaRef, spec: &ScanSpec) -> Reader {
        let mut columns = self.columns.clone();
        columns[index].form = form;
        Reader::new(self.snapshot.clone(), columns, schema, spec)
    }

    /// The form of the column that is all that is read, if one is.
    pub fn only_form(&self) -> Option<&Form> {
        if let [only] = self.columns.as_slice() { Some(&only.form) } else { None }
    }

    pub fn totals(&self) -> Option<&[Total]> {
        self.totals.as_deref()
    }

    /// With totals of columns instead of their rows.
    pub fn with_totals(&self, totals: Vec<Total>, spec: &ScanSpec) -> Reader {
        let schema = totals::schema(&self.schema, &totals);
        let reader = Reader::new(self.snapshot.clone(), self.columns.clone(), schema, spec);
        Reader { totals: Some(totals), ..reader }
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
        let (strings, made) = symbols.strings_and_made();
        let array = made.get_or_make(|| dictionary_array(strings))?;
        Ok(cell.get_or_init(|| StringViewArray::clone(&array)))
    }
}

pub(super) fn address_column() -> ColumnSchema {
    ColumnSchema { id: ADDRESS_COLUMN, name: ADDRESS.to_owned(), column_type: ColumnType::Long }
}

/// The source and the row of an address, as [`Reader::rows`] wants them.
pub(crate) fn place_of(address: i64) -> (usize, u32) {
    ((address >> 32) as usize, address as u32)
}

fn addresses(source: usize, rows: impl Iterator<Item = usize>) -> ArrayRef {
    let first = (source as i64) << 32;
    Arc::new(Int64Array::from_iter_values(rows.map(|row| first + row as i64)))
}

/// The first so many rows of a mask, of which it has more, or the last.
fn first_of(mut mask: Vec<u64>, rows: usize, from_the_end: bool) -> Vec<u64> {
    let mut left = rows;
    let mut keep = |word: &mut u64| {
        let own = word.count_ones() as usize;
        if own <= left {
            left -= own;
            return;
        }
        let mut kept = 0;
        for _ in 0..std::mem::take(&mut left) {
            let at = if from_the_end { 63 - word.leading_zeros() } else { word.trailing_zeros() };
            kept |= 1 << at;
            *word &= !(1 << at);
        }
        *word = kept;
    };
    if from_the_end {
        mask.iter_mut().rev().for_each(&mut keep)
    } else {
        mask.iter_mut().for_each(&mut keep)
    }
    mask
}

fn reversed(arrays: Vec<ArrayRef>, rows: usize) -> Result<Vec<ArrayRef>> {
    let backwards = UInt32Array::from_iter_values((0..rows as u32).rev());
    let reversed = arrays.iter().map(|array| take(array, &backwards, None));
    reversed.collect::<Result<_, _>>().map_err(|e| Error::internal(e.to_string()))
}

fn nulls(output: &Output, rows: usize) -> Result<ArrayRef> {
    let plain = || new_null_array(&arrow_type(output.column.column_type), rows);
    match &output.form {
        Form::Values => Ok(plain()),
        Form::Codes => Ok(new_null_array(&DataType::UInt32, rows)),
        Form::Texts | Form::TextsOnce => as_dictionary(plain()),
        Form::Rising(expr) => computed(expr, plain()),
    }
}

/// Of one column.
fn computed(expr: &Arc<dyn PhysicalExpr>, column: ArrayRef) -> Result<ArrayRef> {
    let rows = column.len();
    let field = Field::new("", column.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]);
    let computed = batch.map_err(Into::into).and_then(|batch| expr.evaluate(&batch)?.into_array(rows));
    computed.map_err(|e: DataFusionError| Error::from(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_of_a_mask_are_those_of_lowest_or_highest_number() {
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..300 {
            let words = random.usize(1..6);
            let mask: Vec<u64> = (0..words).map(|_| random.u64(..) & random.u64(..)).collect();
            let all: Vec<usize> = picked(&mask).collect();
            if all.is_empty() {
                continue;
            }
            let rows = random.usize(0..all.len());
            let (from_the_end, first) = if round % 2 == 0 { (false, 0) } else { (true, all.len() - rows) };
            let found: Vec<usize> = picked(&first_of(mask, rows, from_the_end)).collect();
            assert_eq!(found, all[first..first + rows]);
        }
    }
}
