//! The answer of a query: as it is computed ([`Rows`]), and as a whole ([`Table`]).

use crate::wait::until;
use crate::{capsule, errors};
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use futures::StreamExt;
use futures::stream::BoxStream;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyCapsule;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::{Error, OutputColumn};

type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

/// Rows that are computed as they are read.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Rows {
    columns: Vec<OutputColumn>,
    schema: SchemaRef,
    sql: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Gone when the rows were read to the end, or closed.
    stream: Option<Batches>,
    /// Read, but not yet taken.
    ahead: VecDeque<RecordBatch>,
}

impl Rows {
    pub fn new(rows: tidalite::Rows, sql: String) -> Rows {
        let tidalite::Rows { columns, schema, stream, .. } = rows;
        Rows { columns, schema, sql, state: Mutex::new(State { stream: Some(stream), ahead: VecDeque::new() }) }
    }

    fn state(&self, py: Python<'_>) -> std::sync::MutexGuard<'_, State> {
        // Another thread may be reading, and want the interpreter's lock to look for signals: it is not held meanwhile.
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one batch more; `None` at the end.
    fn pull(&self, py: Python<'_>, state: &mut State) -> PyResult<Option<RecordBatch>> {
        let Some(stream) = &mut state.stream else { return Ok(None) };
        let next = until(py, |context| stream.poll_next_unpin(context));
        match next {
            Ok(Some(Ok(batch))) => Ok(Some(batch)),
            Ok(None) => {
                state.stream = None;
                Ok(None)
            }
            Ok(Some(Err(error))) => {
                state.stream = None;
                Err(errors::of_database(py, &error, Some(&self.sql)))
            }
            // Interrupted: dropping the stream stops the query.
            Err(interrupt) => {
                state.stream = None;
                Err(interrupt)
            }
        }
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let mut state = self.state(py);
        match state.ahead.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.pull(py, &mut state),
        }
    }
}

#[pymethods]
impl Rows {
    /// Names and SQL types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        self.columns.iter().map(|c| (c.name.clone(), c.type_name.clone())).collect()
    }

    /// The next rows as they were computed; None at the end.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let batch = Rows::next(self, py)?;
        Ok(batch.map(|batch| Table { schema: self.schema.clone(), batches: vec![batch] }))
    }

    /// All rows that were not taken yet.
    fn collect(&self, py: Python<'_>) -> PyResult<Table> {
        let mut state = self.state(py);
        let mut batches: Vec<RecordBatch> = state.ahead.drain(..).collect();
        while let Some(batch) = self.pull(py, &mut state)? {
            batches.push(batch);
        }
        Ok(Table { schema: self.schema.clone(), batches })
    }

    /// The first rows, which stay: at least `count` if there are so many.
    fn peek(&self, py: Python<'_>, count: usize) -> PyResult<Table> {
        let mut state = self.state(py);
        while state.ahead.iter().map(RecordBatch::num_rows).sum::<usize>() < count {
            let Some(batch) = self.pull(py, &mut state)? else { break };
            state.ahead.push_back(batch);
        }
        Ok(Table { schema: self.schema.clone(), batches: state.ahead.iter().cloned().collect() })
    }

    /// Stops the query.
    fn close(&self, py: Python<'_>) {
        *self.state(py) = State::default();
    }

    /// The rows as an Arrow stream that computes them as it is read.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let py = slf.py();
        let schema = target(slf.get().schema.clone(), requested_schema)?;
        let reader = LazyReader { rows: slf.clone().unbind(), schema };
        capsule::stream(py, Box::new(reader))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.schema)
    }
}

/// Reads rows for a consumer of Arrow streams, on whatever thread it asks.
struct LazyReader {
    rows: Py<Rows>,
    schema: SchemaRef,
}

impl Iterator for LazyReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::try_attach(|py| {
            let batch = Rows::next(self.rows.get(), py).map_err(|e| ArrowError::ExternalError(Box::new(e)))?;
            batch.map(|batch| cast(&batch, &self.schema)).transpose()
        });
        next.unwrap_or_else(|| Err(ArrowError::ComputeError("the interpreter has ended".to_owned()))).transpose()
    }
}

impl RecordBatchReader for LazyReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The metadata key under which a server says what a column is in SQL.
const SQL_TYPE: &str = "tidalite.sql_type";

/// Rows in memory.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.schema.fields().len()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// Names and SQL types of the columns, as a server of ours wrote them.
    fn sql_types(&self) -> Vec<(String, String)> {
        let named = |field: &Arc<Field>| {
            let sql = field.metadata().get(SQL_TYPE).cloned();
            (field.name().clone(), sql.unwrap_or_else(|| field.data_type().to_string().to_uppercase()))
        };
        self.schema.fields().iter().map(named).collect()
    }

    /// The rows of other tables of the same columns, as one.
    fn joined(&self, tables: Vec<PyRef<'_, Table>>) -> Table {
        let batches = tables.iter().flat_map(|table| table.batches.iter().cloned()).collect();
        Table { schema: self.schema.clone(), batches }
    }

    /// The first rows.
    fn head(&self, count: usize) -> Table {
        let mut left = count;
        let mut batches = Vec::new();
        for batch in &self.batches {
            let rows = batch.num_rows().min(left);
            if rows > 0 {
                batches.push(batch.slice(0, rows));
            }
            left -= rows;
        }
        Table { schema: self.schema.clone(), batches }
    }

    /// One text for each value, NULL as None: what is shown where no library is there to show it.
    fn texts(&self, py: Python<'_>) -> PyResult<Vec<Vec<Option<String>>>> {
        let mut rows = Vec::new();
        for batch in &self.batches {
            let options = arrow::util::display::FormatOptions::default();
            let format = |column| arrow::util::display::ArrayFormatter::try_new(column, &options);
            let columns: Result<Vec<_>, _> = batch.columns().iter().map(|c| format(c.as_ref())).collect();
            let columns = columns.map_err(|e| errors::of_arrow(py, &e))?;
            let text =
                |(i, row): (usize, usize)| is_value(batch.column(i), row).then(|| columns[i].value(row).to_string());
            rows.extend((0..batch.num_rows()).map(|row| (0..columns.len()).map(|i| text((i, row))).collect()));
        }
        Ok(rows)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = target(self.schema.clone(), requested_schema)?;
        let (batches, to) = (self.batches.clone(), schema.clone());
        let batches = batches.into_iter().map(move |batch| cast(&batch, &to));
        capsule::stream(py, Box::new(RecordBatchIterator::new(batches, schema)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.schema)
    }
}

/// NULL of no type is not marked as such.
fn is_value(column: &ArrayRef, row: usize) -> bool {
    column.is_valid(row) && *column.data_type() != DataType::Null
}

/// The schema to give: the one asked for when it has as many columns, as text of another layout; else our own. The
/// interface lets a producer ignore what it is asked for.
fn target(own: SchemaRef, requested: Option<&Bound<'_, PyAny>>) -> PyResult<SchemaRef> {
    let Some(requested) = requested.filter(|r| !r.is_none()) else { return Ok(own) };
    let requested = capsule::requested(requested)?;
    let fits = requested.fields().len() == own.fields().len()
        && requested.fields().iter().zip(own.fields()).all(|(to, from)| {
            to.data_type() == from.data_type() || arrow::compute::can_cast_types(from.data_type(), to.data_type())
        });
    if !fits {
        return Ok(own);
    }
    let fields = own.fields().iter().zip(requested.fields());
    let fields: Vec<_> =
        fields.map(|(from, to)| from.as_ref().clone().with_data_type(to.data_type().clone())).collect();
    Ok(Arc::new(Schema::new(fields)))
}

fn cast(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: Result<Vec<_>, _> =
        columns.map(|(column, field)| cast_with_options(column, field.data_type(), &strict)).collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns?, &options)
}
