//! The engine in this process.

use crate::rows::Rows;
use crate::wait::wait;
use crate::{capsule, errors, parameters};
use arrow::array::RecordBatchReader;
use arrow::ffi_stream::ArrowArrayStreamReader;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidalite::config::Durability;
use tidalite::types::{Batch, Command, PartitionBy, TableSchema, Txn};
use tidalite::{DatabaseConfig, Error, ErrorKind, Frame, Isolation, QueryOptions, Response};
use tidalite_frames::{Pieces, RowOptions, RowPlan, Symbols};

/// Rows that are converted at a time: signals are looked at in between, and commits begun.
const ROWS_AT_ONCE: usize = 1 << 20;

#[pyclass(frozen, module = "tidalite._native")]
pub struct Database {
    /// Gone once it is closed.
    open: Mutex<Option<tidalite::Database>>,
    /// What names stand for in statements, besides tables.
    frames: Mutex<Vec<Frame>>,
}

impl Database {
    fn get(&self, py: Python<'_>) -> PyResult<tidalite::Database> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| errors::of_kind(py, "interface", "the database is closed"))
    }

    fn frames(&self) -> std::sync::MutexGuard<'_, Vec<Frame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self, py: Python<'_>, parameters: &Bound<'_, PyList>, timeout: Option<f64>) -> PyResult<QueryOptions> {
        Ok(QueryOptions {
            timeout: seconds(py, timeout)?,
            client: "python".to_owned(),
            parameters: parameters::parameters(parameters)?,
            frames: self.frames().clone(),
            is_read_only: false,
            session: None,
        })
    }

    /// To be dropped without the lock: its memory is Python's, which may do anything when it is released.
    fn take_frame(&self, name: &str) -> Option<Frame> {
        let mut frames = self.frames();
        let at = frames.iter().position(|f| tidalite::types::schema::same_name(&f.name, name))?;
        Some(frames.remove(at))
    }
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (path, *, threads=None, memory_bytes=None, cache_bytes=None, durability="sync", timeout=None))]
    fn new(
        py: Python<'_>,
        path: std::path::PathBuf,
        threads: Option<usize>,
        memory_bytes: Option<usize>,
        cache_bytes: Option<usize>,
        durability: &str,
        timeout: Option<f64>,
    ) -> PyResult<Database> {
        let mut config = DatabaseConfig::new(path);
        if let Some(threads) = threads {
            (config.query_threads, config.merge_threads) = (threads.max(1), threads.max(1));
        }
        config.query_memory_bytes = memory_bytes.unwrap_or(config.query_memory_bytes);
        config.cache_bytes = cache_bytes.unwrap_or(config.cache_bytes);
        config.query_timeout = seconds(py, timeout)?.unwrap_or(Duration::ZERO);
        config.durability = match durability {
            "sync" => Durability::Sync,
            "interval" => Durability::Interval(Duration::from_secs(1)),
            "os" => Durability::Os,
            other => {
                let message = format!("durability {other:?} is not one of sync, interval, os");
                return Err(errors::of_kind(py, "invalid", &message));
            }
        };
        let opened = py.detach(|| tidalite::Database::open(config));
        let open = opened.map_err(|mut error| {
            // In use by another process: not wrong, only not now.
            if error.kind == ErrorKind::Conflict {
                error.kind = ErrorKind::Unavailable;
            }
            errors::of_database(py, &error, None)
        })?;
        Ok(Database { open: Mutex::new(Some(open)), frames: Mutex::default() })
    }

    /// Runs one statement. Gives rows, or its tag and how many rows it changed.
    #[pyo3(signature = (sql, parameters, timeout=None))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        sql: &str,
        parameters: &Bound<'py, PyList>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(py, parameters, timeout)?;
        let running = self.get(py)?.execute(sql, options);
        answered(py, sql, running)
    }

    /// Begins a transaction.
    fn begin(slf: Bound<'_, Database>, isolation: &str) -> PyResult<Transaction> {
        let py = slf.py();
        let isolation = match isolation {
            "read committed" => Isolation::ReadCommitted,
            "repeatable read" => Isolation::RepeatableRead,
            "serializable" => Isolation::Serializable,
            other => {
                let message =
                    format!("isolation {other:?} is not one of read committed, repeatable read, serializable");
                return Err(errors::of_kind(py, "invalid", &message));
            }
        };
        let open = slf.get().get(py)?.begin(isolation);
        Ok(Transaction { open, database: slf.unbind() })
    }

    /// Writes the rows of an Arrow stream; gives how many. Durable and visible on return.
    #[pyo3(signature = (table, frame, at=None, symbols=None, partition_by="DAY", atomic=false))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of a Python function, by name")]
    fn write(
        &self,
        py: Python<'_>,
        table: &str,
        frame: &Bound<'_, PyAny>,
        at: Option<String>,
        symbols: Option<&Bound<'_, PyAny>>,
        partition_by: &str,
        atomic: bool,
    ) -> PyResult<u64> {
        let target = Target::Database(self.get(py)?);
        write(py, target, table, frame, at, symbols, partition_by, atomic)
    }

    /// Makes the rows of an Arrow stream a table of statements.
    #[pyo3(signature = (name, frame, at=None))]
    fn register(&self, py: Python<'_>, name: &str, frame: &Bound<'_, PyAny>, at: Option<&str>) -> PyResult<()> {
        let reader = capsule::reader(frame)?;
        let schema = reader.schema();
        let designated = at.map(|at| {
            let missing = || errors::of_kind(py, "data", &format!("column \"{at}\": the frame does not have it"));
            schema.index_of(at).map_err(|_| missing())
        });
        let designated = designated.transpose()?;
        let made = py.detach(|| {
            let batches = reader.collect::<Result<Vec<_>, _>>();
            batches.map(|batches| Frame::new(name, &schema, &batches, designated))
        });
        let made = made.map_err(|e| errors::of_arrow(py, &e))?;
        let frame = made.map_err(|e| errors::of_database(py, &Error::from(e), None))?;
        let before = self.take_frame(name);
        self.frames().push(frame);
        drop(before);
        Ok(())
    }

    /// Forgets a registered frame; says whether there was one.
    fn unregister(&self, name: &str) -> bool {
        self.take_frame(name).is_some()
    }

    /// Merges what is staged into segments and writes a checkpoint.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let database = self.get(py)?;
        py.detach(|| database.settle()).map_err(|e| errors::of_database(py, &e, None))
    }

    /// Leaves it as it is: its threads are those of the process that this one was forked from.
    fn forget(&self) {
        if let Ok(mut open) = self.open.try_lock() {
            std::mem::forget(open.take());
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(database) = open else { return Ok(()) };
        py.detach(|| database.close()).map_err(|e| errors::of_database(py, &e, None))
    }
}

/// Writes the rows of an Arrow stream; returns the number of rows.
#[expect(clippy::too_many_arguments, reason = "the arguments of a Python function, by name")]
fn write(
    py: Python<'_>,
    target: Target,
    table: &str,
    frame: &Bound<'_, PyAny>,
    at: Option<String>,
    symbols: Option<&Bound<'_, PyAny>>,
    partition_by: &str,
    atomic: bool,
) -> PyResult<u64> {
    let symbols = symbols_of(symbols)?;
    let partition_by = PartitionBy::from_sql_name(partition_by).ok_or_else(|| {
        let message = format!("partition_by {partition_by:?} is not one of HOUR, DAY, WEEK, MONTH, YEAR, NONE");
        errors::of_kind(py, "invalid", &message)
    })?;
    let mut reader = capsule::reader(frame)?;
    let existing = target.table(table);
    let options = RowOptions { table: table.to_owned(), at, symbols };
    let plan = RowPlan::new(&reader.schema(), &options, existing.as_deref()).map_err(|e| errors::of_frame(py, &e))?;
    // The table is created only after its first rows have been validated.
    let create = existing.is_none().then(|| Command::CreateTable(plan.table(partition_by)));
    let mut commits = Commits { target, create, running: None };
    let mut pieces = Pieces::new(plan, atomic);
    let written = write_all(py, &mut reader, &mut pieces, &mut commits);
    // The running commit started earlier, so its error takes precedence over that of `write_all`.
    commits.finish_running(py)?;
    written?;
    Ok(pieces.rows())
}

/// Returns the result of a statement: rows, or the command tag and the number of changed rows.
fn answered<'py>(
    py: Python<'py>,
    sql: &str,
    running: BoxFuture<'static, Result<Response, Error>>,
) -> PyResult<Bound<'py, PyAny>> {
    match wait(py, running)?.map_err(|e| errors::of_database(py, &e, Some(sql)))? {
        Response::Rows(rows) => Ok(Bound::new(py, Rows::new(rows, sql.to_owned()))?.into_any()),
        Response::Done { tag, rows } => {
            Ok(PyTuple::new(py, [tag.into_pyobject(py)?.into_any(), rows.into_pyobject(py)?.into_any()])?.into_any())
        }
    }
}

/// An open transaction. It is rolled back when it is dropped.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Transaction {
    open: tidalite::Transaction,
    database: Py<Database>,
}

#[pymethods]
impl Transaction {
    /// Runs one statement, as [`Database::execute`] does.
    #[pyo3(signature = (sql, parameters, timeout=None))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        sql: &str,
        parameters: &Bound<'py, PyList>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.database.get().options(py, parameters, timeout)?;
        answered(py, sql, self.open.execute(sql, options))
    }

    /// Writes the rows of an Arrow stream; gives how many. A table is created when it does not exist, a column is not.
    #[pyo3(signature = (table, frame, at=None, symbols=None, partition_by="DAY"))]
    fn write(
        &self,
        py: Python<'_>,
        table: &str,
        frame: &Bound<'_, PyAny>,
        at: Option<String>,
        symbols: Option<&Bound<'_, PyAny>>,
        partition_by: &str,
    ) -> PyResult<u64> {
        write(py, Target::Transaction(self.open.clone()), table, frame, at, symbols, partition_by, false)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.open.commit())?.map(drop).map_err(|e| errors::of_database(py, &e, None))
    }

    fn roll_back(&self) {
        self.open.roll_back();
    }

    fn savepoint(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.open.savepoint(name).map_err(|e| errors::of_database(py, &e, None))
    }

    fn roll_back_to(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.open.roll_back_to(name).map_err(|e| errors::of_database(py, &e, None))
    }

    fn release(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.open.release(name).map_err(|e| errors::of_database(py, &e, None))
    }
}

/// The destination of rows.
enum Target {
    Database(tidalite::Database),
    Transaction(tidalite::Transaction),
}

impl Target {
    fn table(&self, name: &str) -> Option<std::sync::Arc<TableSchema>> {
        match self {
            Target::Database(database) => database.table(name),
            Target::Transaction(transaction) => transaction.table(name),
        }
    }

    fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn, Error>> {
        match self {
            Target::Database(database) => database.command(command),
            Target::Transaction(transaction) => ready(transaction.command(command).map(|()| Txn(0))).boxed(),
        }
    }

    fn commit(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn, Error>> {
        match self {
            Target::Database(database) => database.commit(batches),
            Target::Transaction(transaction) => ready(transaction.insert(batches).map(|()| Txn(0))).boxed(),
        }
    }
}

/// Converts the rows and begins their commits.
fn write_all(
    py: Python<'_>,
    reader: &mut ArrowArrayStreamReader,
    pieces: &mut Pieces,
    commits: &mut Commits,
) -> PyResult<()> {
    let mut ready = Vec::new();
    // A stream of Python's own takes the lock where it needs it.
    while let Some(batch) = py.detach(|| reader.next()) {
        // Ctrl-C ends a stream of ours; Arrow's streams can only say so in words.
        py.check_signals()?;
        let batch = batch.map_err(|e| errors::of_arrow(py, &e))?;
        for at in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let rows = batch.slice(at, ROWS_AT_ONCE.min(batch.num_rows() - at));
            py.detach(|| pieces.push(rows, &mut |batches| keep(&mut ready, batches)))
                .map_err(|e| errors::of_frame(py, &e))?;
            commits.start(py, &mut ready)?;
            py.check_signals()?;
        }
    }
    py.detach(|| pieces.finish(&mut |batches| keep(&mut ready, batches))).map_err(|e| errors::of_frame(py, &e))?;
    commits.start(py, &mut ready)?;
    // A frame without rows makes its table, too.
    commits.create(py)
}

fn keep(ready: &mut Vec<Vec<Batch>>, batches: Vec<Batch>) -> tidalite_frames::Result<()> {
    ready.push(batches);
    Ok(())
}

/// Commits in order: the next rows are converted while one is on its way, but no commit begins before the last one is
/// known to be good, so that a refused one is the last.
struct Commits {
    target: Target,
    /// What makes the table, until it has.
    create: Option<Command>,
    running: Option<BoxFuture<'static, Result<Txn, Error>>>,
}

impl Commits {
    fn start(&mut self, py: Python<'_>, ready: &mut Vec<Vec<Batch>>) -> PyResult<()> {
        for batches in ready.drain(..) {
            self.create(py)?;
            self.finish_running(py)?;
            self.running = Some(self.target.commit(batches));
        }
        Ok(())
    }

    fn create(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(create) = self.create.take() else { return Ok(()) };
        wait(py, self.target.command(create))?.map(drop).map_err(|e| errors::of_write(py, &e))
    }

    fn finish_running(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(commit) = self.running.take() else { return Ok(()) };
        wait(py, commit)?.map(drop).map_err(|e| errors::of_write(py, &e))
    }
}

/// `None` and "auto", a bool, or names.
pub fn symbols_of(symbols: Option<&Bound<'_, PyAny>>) -> PyResult<Symbols> {
    let Some(symbols) = symbols.filter(|s| !s.is_none()) else { return Ok(Symbols::Auto) };
    if let Ok(all) = symbols.extract::<bool>() {
        return Ok(if all { Symbols::All } else { Symbols::None });
    }
    if let Ok(name) = symbols.extract::<String>() {
        return Ok(if name == "auto" { Symbols::Auto } else { Symbols::Named(vec![name]) });
    }
    Ok(Symbols::Named(symbols.extract()?))
}

fn seconds(py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(timeout) = timeout else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(timeout);
    duration.map(Some).map_err(|_| errors::of_kind(py, "invalid", "timeout is no number of seconds"))
}
