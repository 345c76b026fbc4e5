//! Loads: a statement with many rows becomes one commit, of any size, in bounded memory.
//!
//! Input: the rows of a statement, in parts. Each part is sorted and written to segment files in the folder of the
//! table, which nothing names. Output: one commit that attaches all these segments to the table
//! ([`Op::Attach`](tidalite_ingest::wal::record::Op::Attach)): readers see no row before it and all rows after it. The
//! rows are neither staged nor logged.
//!
//! Invariants: files are synced before the commit is logged. The strings of symbols are logged before the segments that
//! refer to them; ids of a load that does not commit are unused. The rows of a load follow the rows of equal timestamps
//! that were committed before it began: these are merged first, and the load takes greater segment numbers when they are
//! rewritten ([`is_outnumbered`](tidalite_storage::late::is_outnumbered)). A load removes its files if it ends
//! before it requests the commit, or if the commit thread rejects the request.
//!
//! Crash: without the commit in the log, nothing names the files and the next open removes them.

use crate::jobs::{Jobs, threads_of};
use crate::session::{Host, read_only_database};
use crate::shared::{Shared, lock};
use crate::writer::{Committed, TransactionChange, Work, closed, dropped, symbol_bytes};
use crate::{Error, ErrorKind, Result};
use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;
use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt, SinkExt, StreamExt};
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex};
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::new_schema;
use tidalite_ingest::commit::commit_batches;
use tidalite_query::CancelToken;
use tidalite_storage::merge::{MergeOptions, merge};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::tables::SymbolMaps;
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::command::CreateTable;
use tidalite_types::{Batch, ColumnType, Command, TableId, TableSchema, Txn};

/// Number of times that a load tries to merge earlier rows, and to commit with new segment numbers.
const ATTEMPTS_MAX: usize = 16;
/// Limit in bytes of the strings of the symbols of a new table, which are one record of the log with its load.
const NEW_SYMBOL_BYTES_MAX: usize = 512 << 20;

/// Access of a load to the database.
pub(crate) struct Loader {
    pub shared: Arc<Shared>,
    pub jobs: Arc<Mutex<Jobs>>,
    /// Sends a request to the commit thread.
    pub submit: Box<dyn Fn(Work) -> BoxFuture<'static, Result<Committed>> + Send + Sync>,
}

/// The table of a load.
pub(crate) enum LoadTable {
    Existing {
        id: TableId,
        schema: Arc<TableSchema>,
    },
    /// The commit of the load creates the table. With `replaces` it drops a table of the same name.
    New {
        create: CreateTable,
        replaces: bool,
    },
}

/// The rows of a statement for one table, which become one commit: in memory if they are less than one part, as a load
/// otherwise. Dropped before [`StatementRows::finish`], no row is stored.
pub(crate) struct StatementRows {
    host: Arc<dyn Host>,
    cancel: CancelToken,
    held: Vec<Batch>,
    bytes: usize,
    part_bytes: usize,
    state: LoadState,
}

enum LoadState {
    /// The rows are fewer than a part.
    Held(Loader, LoadTable),
    Running(Load),
    /// The load did not begin.
    Failed,
}

/// A running load. Dropped before its end, the load ends without a commit.
pub(crate) struct Load {
    parts: mpsc::Sender<Part>,
    done: oneshot::Receiver<Result<Txn>>,
}

enum Part {
    Rows(Vec<Batch>),
    End,
}

/// Rows of a load for conversion by the commit thread.
#[derive(Debug)]
pub(crate) struct PartOfLoad {
    pub table: TableId,
    pub schema: Arc<TableSchema>,
    pub batches: Vec<Batch>,
}

/// The request that makes the segments of a load part of their table.
#[derive(Debug)]
pub(crate) struct AttachRequest {
    pub table: TableId,
    pub segments: Vec<SegmentMeta>,
    pub schema: Arc<TableSchema>,
    /// `None` for an existing table.
    pub created: Option<CreatedTable>,
    pub decision: Arc<Decision>,
}

/// The decision of the commit thread on an [`AttachRequest`], beside its reply.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// The segments belong to the table, also if the commit fails afterwards: its record may be in the log.
    pub is_accepted: AtomicBool,
    /// The load has to take new segment numbers.
    pub is_outnumbered: AtomicBool,
}

/// A table that the commit of a load creates.
#[derive(Clone, Debug)]
pub(crate) struct CreatedTable {
    pub symbols: SymbolMaps,
    /// True if a table of the same name is dropped.
    pub replaces: bool,
}

/// The segments of a load. Their files are removed on drop unless they may belong to the table.
#[derive(Debug)]
struct LoadFiles {
    shared: Arc<Shared>,
    table: TableId,
    segments: Vec<SegmentMeta>,
    is_commit_possible: bool,
}

impl Loader {
    /// Begins a load.
    pub fn begin(self, table: LoadTable) -> Result<Load> {
        if self.shared.config.is_read_only {
            return Err(read_only_database("the change"));
        }
        // One part waits while another is written.
        let (parts, received) = mpsc::channel(0);
        let (done, ended) = oneshot::channel();
        let run = move || drop(done.send(LoadWriter::run(self, table, received)));
        let started = std::thread::Builder::new().name("tidalite-load".to_owned()).spawn(run);
        started.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start a thread: {e}")))?;
        Ok(Load { parts, done: ended })
    }
}

impl StatementRows {
    /// Returns `None` in a transaction, which keeps the rows of its statements in memory.
    pub fn new(host: Arc<dyn Host>, table: LoadTable, cancel: CancelToken) -> Option<StatementRows> {
        let loader = host.loader()?;
        let part_bytes = loader.shared.config.load_bytes;
        let state = LoadState::Held(loader, table);
        Some(StatementRows { host, cancel, held: Vec::new(), bytes: 0, part_bytes, state })
    }

    /// Adds rows; waits while earlier parts are written.
    ///
    /// # Errors
    /// The load failed, or the statement is cancelled. No row is stored.
    pub async fn push(&mut self, batch: Batch) -> Result<()> {
        self.bytes += batch.byte_count();
        self.held.push(batch);
        if self.bytes < self.part_bytes {
            return Ok(());
        }
        self.bytes = 0;
        self.state = match std::mem::replace(&mut self.state, LoadState::Failed) {
            LoadState::Held(loader, table) => LoadState::Running(loader.begin(table)?),
            other => other,
        };
        match &mut self.state {
            LoadState::Running(load) => unless_cancelled(&self.cancel, load.push(std::mem::take(&mut self.held))).await,
            _ => Err(ended()),
        }
    }

    /// Commits the rows, with the table that the commit creates; they are durable and visible on return.
    ///
    /// # Errors
    /// The load failed, the statement is cancelled before the commit, or the commit is rejected.
    pub async fn finish(self) -> Result<()> {
        let StatementRows { host, cancel, held: rows, state, .. } = self;
        match state {
            LoadState::Held(_, LoadTable::New { create, replaces }) => {
                let drop = replaces.then(|| Command::DropTable { table: create.name.clone(), if_exists: true });
                let commands = drop.into_iter().chain([Command::CreateTable(create)]).collect();
                host.transaction(TransactionChange { rows, ..TransactionChange::of_commands(commands) })
                    .await
                    .map(|_| ())
            }
            LoadState::Held(..) if rows.is_empty() => Ok(()),
            LoadState::Held(..) => host.insert(rows).await.map(|_| ()),
            LoadState::Running(mut load) => {
                if !rows.is_empty() {
                    unless_cancelled(&cancel, load.push(rows)).await?;
                }
                load.finish(&cancel).await.map(|_| ())
            }
            LoadState::Failed => Err(ended()),
        }
    }
}

/// Waits for a step of a load, or fails once the statement is cancelled.
async fn unless_cancelled(cancel: &CancelToken, step: impl Future<Output = Result<()>>) -> Result<()> {
    match select(pin!(step), pin!(cancel.cancelled())).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(cancel.reason().into()),
    }
}

impl Load {
    /// Adds rows; waits while earlier parts are written.
    ///
    /// # Errors
    /// The load failed. It ends without a commit.
    pub async fn push(&mut self, batches: Vec<Batch>) -> Result<()> {
        if self.parts.send(Part::Rows(batches)).await.is_ok() {
            return Ok(());
        }
        // The load ended by its error.
        Err(self.end().await.err().unwrap_or_else(panicked))
    }

    /// Commits the rows.
    ///
    /// # Errors
    /// The load failed, the statement is cancelled before the commit, or the commit is rejected.
    pub async fn finish(mut self, cancel: &CancelToken) -> Result<Txn> {
        // All rows are written when the load takes the end. If it ended by an error, `end` returns the error.
        unless_cancelled(cancel, self.parts.send(Part::End).map(|_| Ok(()))).await?;
        self.end().await
    }

    async fn end(&mut self) -> Result<Txn> {
        (&mut self.done).await.unwrap_or_else(|_| Err(panicked()))
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "a load panicked")
}

/// Error of a statement whose load could not begin.
fn ended() -> Error {
    Error::new(ErrorKind::Unavailable, "the load of these rows ended with an error")
}

/// The thread of a load.
struct LoadWriter {
    loader: Loader,
    schema: Arc<TableSchema>,
    files: LoadFiles,
    /// The table and its dictionaries, if no other statement adds to them: a new table, or a table without symbols.
    own: Option<Catalog>,
    /// True for a new table; the commit drops a table of the same name if `replaces` is true.
    is_new: bool,
    replaces: bool,
}

impl LoadWriter {
    fn run(loader: Loader, table: LoadTable, mut parts: mpsc::Receiver<Part>) -> Result<Txn> {
        let mut writer = LoadWriter::new(loader, table)?;
        while let Some(part) = block_on(parts.next()) {
            match part {
                Part::Rows(batches) => writer.write(batches)?,
                Part::End => return writer.commit(),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "the statement ended before its rows were complete"))
    }

    fn new(loader: Loader, table: LoadTable) -> Result<LoadWriter> {
        let replaces = matches!(table, LoadTable::New { replaces: true, .. });
        let mut own = None;
        let (id, schema, is_new) = match table {
            LoadTable::Existing { id, schema } => {
                merge_earlier(&loader, id)?;
                if schema.columns.iter().all(|column| column.column_type != ColumnType::Symbol) {
                    own = Some(catalog_of(id, &schema));
                }
                (id, schema, false)
            }
            LoadTable::New { create, .. } => {
                let schema = Arc::new(new_schema(create)?);
                let taken = block_on((loader.submit)(Work::TakeTableId))?;
                let id = taken.table.ok_or_else(panicked)?;
                own = Some(catalog_of(id, &schema));
                (id, schema, true)
            }
        };
        let shared = loader.shared.clone();
        let files = LoadFiles { shared, table: id, segments: Vec::new(), is_commit_possible: false };
        Ok(LoadWriter { loader, schema, files, own, is_new, replaces })
    }

    /// Writes rows to segments.
    fn write(&mut self, batches: Vec<Batch>) -> Result<()> {
        let shared = self.loader.shared.clone();
        let runs = self.runs(batches)?;
        if runs.iter().all(|run| run.rows == 0) {
            return Ok(());
        }
        let table = self.files.table;
        let runs = Arc::new(runs.into_iter().map(Arc::new).collect());
        let rows = TableSnapshot { runs, ..TableSnapshot::empty(table, self.schema.clone()) };
        let options = MergeOptions {
            threads: threads_of(shared.config.merge_threads),
            tail_from: None,
            kept_from: None,
            late_rows_min: usize::MAX,
        };
        let _files = shared.begin_load_files().ok_or_else(closed)?;
        let merged = merge(&shared.store, &rows, &[], &options, &mut || shared.take_segment_id())?;
        self.files.segments.extend(merged.added.iter().map(|segment| segment.meta().clone()));
        shared.counters.segment_written_bytes.fetch_add(merged.written_bytes, Relaxed);
        Ok(())
    }

    /// Converts rows to the columns and dictionaries of the table.
    fn runs(&mut self, batches: Vec<Batch>) -> Result<Vec<Run>> {
        let id = self.files.table;
        if !self.is_new && self.loader.shared.tables.read().get(id).is_none() {
            return Err(dropped(&self.schema.name));
        }
        let Some(catalog) = &mut self.own else {
            let part = PartOfLoad { table: self.files.table, schema: self.schema.clone(), batches };
            return Ok(block_on((self.loader.submit)(Work::LoadRows(part)))?.runs);
        };
        let ops = commit_batches(catalog, batches, false, Txn(0)).map_err(|(error, _)| error)?;
        if catalog.get(id).is_none_or(|entry| entry.schema.columns != self.schema.columns) {
            return Err(Error::new(ErrorKind::Internal, "rows of a load have other columns than its table"));
        }
        if symbol_bytes(&catalog.symbols(id)) > NEW_SYMBOL_BYTES_MAX {
            let limit = NEW_SYMBOL_BYTES_MAX >> 20;
            let message = format!("the symbols of a new table take more than the {limit} MiB that one commit may have");
            return Err(Error::new(ErrorKind::Invalid, message).with_hint("a VARCHAR has no such limit"));
        }
        Ok(ops.into_iter().filter_map(|op| op.into_run()).collect())
    }

    fn commit(self) -> Result<Txn> {
        let LoadWriter { loader, schema, mut files, own, is_new, replaces } = self;
        let created =
            own.filter(|_| is_new).map(|catalog| CreatedTable { symbols: catalog.symbols(files.table), replaces });
        let mut attempts = 1;
        loop {
            let decision = Arc::new(Decision::default());
            let request = AttachRequest {
                table: files.table,
                segments: files.segments.clone(),
                schema: schema.clone(),
                created: created.clone(),
                decision: decision.clone(),
            };
            files.is_commit_possible = true;
            let reply = block_on((loader.submit)(Work::Attach(request)));
            files.is_commit_possible = reply.is_ok() || decision.is_accepted.load(SeqCst);
            match reply {
                Err(_) if decision.is_outnumbered.load(SeqCst) && attempts < ATTEMPTS_MAX => files.renumber()?,
                reply => return Ok(reply?.txn),
            }
            attempts += 1;
        }
    }
}

/// Returns a catalog of one table without strings.
fn catalog_of(id: TableId, schema: &Arc<TableSchema>) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.put(id, schema.clone());
    catalog
}

/// Merges the rows that were committed before, which precede the rows of the load also where times are equal.
///
/// # Errors
/// The rows cannot be merged. A load after them would change the order of equal timestamps.
fn merge_earlier(loader: &Loader, table: TableId) -> Result<()> {
    let version = || loader.shared.tables.read().get(table).cloned();
    let Some(before) = version().map(|version| version.txn) else { return Ok(()) };
    for _ in 0..ATTEMPTS_MAX {
        let is_staged = version().and_then(|now| Some(now.runs.first()?.txns.0 <= before)).unwrap_or(false);
        if !is_staged {
            return Ok(());
        }
        let _waits = WaitingLoad::of(&loader.shared);
        let mut jobs = lock(&loader.jobs);
        // After a close, no load writes files.
        let _files = loader.shared.begin_load_files().ok_or_else(closed)?;
        jobs.merge_staged(table)?;
    }
    Ok(())
}

/// Counts a load in [`Shared::waiting_loads`] while it exists.
struct WaitingLoad<'a>(&'a Shared);

impl WaitingLoad<'_> {
    fn of(shared: &Shared) -> WaitingLoad<'_> {
        shared.waiting_loads.fetch_add(1, SeqCst);
        WaitingLoad(shared)
    }
}

impl Drop for WaitingLoad<'_> {
    fn drop(&mut self) {
        self.0.waiting_loads.fetch_sub(1, SeqCst);
    }
}

impl LoadFiles {
    /// Renames the files to new numbers, in the same order.
    fn renumber(&mut self) -> Result<()> {
        let _files = self.shared.begin_load_files().ok_or_else(closed)?;
        for meta in &mut self.segments {
            let (from, id) = (SegmentStore::path(self.table, meta.id), self.shared.take_segment_id());
            let to = SegmentStore::path(self.table, id);
            self.shared.fs.rename(&from, &to).map_err(|e| tidalite_storage::Error::io("rename", &from, e))?;
            self.shared.store.forget(meta.id);
            meta.id = id;
        }
        let folder = SegmentStore::dir(self.table);
        Ok(self.shared.fs.sync_dir(&folder).map_err(|e| tidalite_storage::Error::io("sync", &folder, e))?)
    }
}

impl Drop for LoadFiles {
    fn drop(&mut self) {
        if self.segments.is_empty() || self.is_commit_possible {
            return;
        }
        // After a close, the next open removes the files.
        let Some(_files) = self.shared.begin_load_files() else { return };
        for meta in &self.segments {
            self.shared.store.forget(meta.id);
            let _ = self.shared.fs.remove(&SegmentStore::path(self.table, meta.id));
        }
    }
}
