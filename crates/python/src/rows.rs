//! The answer of a query: as it is computed ([`Rows`]), and as a whole ([`Table`]).

use crate::wait::until;
use crate::{capsule, errors, values};
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use futures::StreamExt;
use futures::stream::BoxStream;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyCapsule, PyList};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;
use std::thread::{self, ThreadId};
use tidalite::{Error, OutputColumn};

type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

/// Rows that are computed as they are read.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Rows {
    columns: Vec<OutputColumn>,
    schema: SchemaRef,
    sql: String,
    /// Beside the mutex, which a thread that reads holds: it has to hear of it.
    is_closed: AtomicBool,
    state: Mutex<State>,
    /// The thread that holds the mutex. What it waits with may run handlers of signals, which may come here again.
    reader: Mutex<Option<ThreadId>>,
}

#[derive(Default)]
struct State {
    /// Gone when the rows were read to the end, or closed.
    stream: Option<Batches>,
    /// Read, but not yet taken.
    ahead: VecDeque<RecordBatch>,
}

/// The right to read.
struct Reading<'a> {
    rows: &'a Rows,
    state: MutexGuard<'a, State>,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        *locked(&self.rows.reader) = None;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rows {
    pub fn new(rows: tidalite::Rows, sql: String) -> Rows {
        let tidalite::Rows { columns, schema, stream, .. } = rows;
        let state = Mutex::new(State { stream: Some(stream), ahead: VecDeque::new() });
        Rows { columns, schema, sql, is_closed: AtomicBool::new(false), state, reader: Mutex::new(None) }
    }

    fn reading(&self, py: Python<'_>) -> PyResult<Reading<'_>> {
        let own = thread::current().id();
        if *locked(&self.reader) == Some(own) {
            return Err(errors::of_kind(py, "interface", "the result is being read"));
        }
        // Another thread may be reading, and want the interpreter's lock to look for signals: it is not held meanwhile.
        let state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        *locked(&self.reader) = Some(own);
        Ok(Reading { rows: self, state })
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let mut reading = self.reading(py)?;
        match reading.state.ahead.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => reading.pull(py),
        }
    }
}

enum Pulled {
    Closed,
    Next(Option<Result<RecordBatch, Error>>),
}

impl Reading<'_> {
    /// Reads until at least `count` rows are there, if there are so many.
    fn ahead(&mut self, py: Python<'_>, count: usize) -> PyResult<()> {
        while self.state.ahead.iter().map(RecordBatch::num_rows).sum::<usize>() < count {
            let Some(batch) = self.pull(py)? else { break };
            self.state.ahead.push_back(batch);
        }
        Ok(())
    }

    /// Reads one batch more; `None` at the end. After an error there is none.
    fn pull(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let rows = self.rows;
        // Dropping it, as when interrupted, stops the query.
        let mut stream = self.state.stream.take();
        let pulled = until(py, |context| {
            if rows.is_closed.load(Ordering::Relaxed) {
                return Poll::Ready(Pulled::Closed);
            }
            match &mut stream {
                Some(stream) => stream.poll_next_unpin(context).map(Pulled::Next),
                None => Poll::Ready(Pulled::Next(None)),
            }
        });
        match pulled? {
            Pulled::Next(Some(Ok(batch))) => {
                self.state.stream = stream;
                Ok(Some(batch))
            }
            Pulled::Next(Some(Err(error))) => Err(errors::of_database(py, &error, Some(&rows.sql))),
            Pulled::Next(None) => Ok(None),
            Pulled::Closed => {
                self.state.ahead.clear();
                Err(errors::of_kind(py, "interface", "the result is closed"))
            }
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
        let mut reading = self.reading(py)?;
        let mut batches: Vec<RecordBatch> = reading.state.ahead.drain(..).collect();
        while let Some(batch) = reading.pull(py)? {
            batches.push(batch);
        }
        Ok(Table { schema: self.schema.clone(), batches })
    }

    /// The first rows, which stay: at least `count` if there are so many.
    fn peek(&self, py: Python<'_>, count: usize) -> PyResult<Table> {
        let mut reading = self.reading(py)?;
        reading.ahead(py, count)?;
        Ok(Table { schema: self.schema.clone(), batches: reading.state.ahead.iter().cloned().collect() })
    }

    /// Stops the query. A thread that is reading, this one even, sees it within a moment.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        match self.state.try_lock() {
            Ok(mut state) => *state = State::default(),
            Err(TryLockError::Poisoned(state)) => *state.into_inner() = State::default(),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// The rows as an Arrow stream that computes them as it is read. The first are waited for here, where Ctrl-C and errors
    /// are exceptions as always: a stream has only text for them, see [`told`].
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let py = slf.py();
        let schema = target(slf.get().schema.clone(), requested_schema)?;
        slf.get().reading(py)?.ahead(py, 1)?;
        let rows = slf.clone().unbind();
        let next = move |py: Python<'_>| Ok(Rows::next(rows.get(), py)?.into_iter().collect());
        capsule::stream(py, Box::new(LazyReader { next, ahead: VecDeque::new(), schema }))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.schema)
    }
}

/// The rows that `next` gives, which is called until it gives None, as an Arrow stream of the columns of `like`.
#[pyfunction]
#[pyo3(signature = (like, next, requested_schema=None))]
pub fn stream<'py>(
    py: Python<'py>,
    like: &Table,
    next: Py<PyAny>,
    requested_schema: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = target(like.schema.clone(), requested_schema)?;
    let next = move |py: Python<'_>| {
        // Empty pieces are not the end.
        loop {
            let table = next.bind(py).call0()?;
            if table.is_none() {
                return Ok(VecDeque::new());
            }
            let table = table.cast::<Table>()?.get();
            if !table.batches.is_empty() {
                return Ok(table.batches.iter().cloned().collect());
            }
        }
    };
    capsule::stream(py, Box::new(LazyReader { next, ahead: VecDeque::new(), schema }))
}

/// Reads rows for a consumer of Arrow streams, on whatever thread it asks.
struct LazyReader<F> {
    /// Gives none at the end.
    next: F,
    ahead: VecDeque<RecordBatch>,
    schema: SchemaRef,
}

impl<F: FnMut(Python<'_>) -> PyResult<VecDeque<RecordBatch>>> Iterator for LazyReader<F> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ahead.is_empty() {
            let next = Python::try_attach(|py| (self.next)(py).map_err(|error| told(py, error)));
            let ended = || Err(ArrowError::ComputeError("the interpreter has ended".to_owned()));
            match next.unwrap_or_else(ended) {
                Ok(batches) => self.ahead = batches,
                Err(error) => return Some(Err(error)),
            }
        }
        self.ahead.pop_front().map(|batch| cast(&batch, &self.schema))
    }
}

/// An error as text, which is all that an Arrow stream has for it. Ctrl-C shall be more than an error with a text: it is
/// raised again as soon as Python goes on.
fn told(py: Python<'_>, error: PyErr) -> ArrowError {
    // Before: to make it text runs code of Python, in which the interrupt would be lost.
    let text = error.to_string();
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        let again = PyModule::import(py, "_thread").and_then(|module| module.call_method0("interrupt_main"));
        if let Err(other) = again {
            return ArrowError::ExternalError(Box::new(other));
        }
    }
    ArrowError::ExternalError(text.into())
}

impl<F: FnMut(Python<'_>) -> PyResult<VecDeque<RecordBatch>>> RecordBatchReader for LazyReader<F> {
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

    /// The values of each column, if Python's own types have them all.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyList>>>> {
        let types: Vec<_> = self.schema.fields().iter().map(|field| field.data_type()).collect();
        values::lists(py, &types, &self.batches)
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
