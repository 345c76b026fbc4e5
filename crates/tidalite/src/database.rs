//! The database: one folder, opened once.

use crate::backup::{self, BackupReport};
use crate::check::{self, CheckReport, GoOn};
use crate::copy::{Copy, CopyIn};
use crate::folder;
use crate::jobs::Jobs;
use crate::load::Loader;
use crate::metrics::Metric;
use crate::row_sink::RowSink;
use crate::session::{Host, RefreshNote, Sessions, read_only_database};
use crate::shared::{DatabaseState, ManifestState, Shared, lock};
use crate::transaction::TransactionHost;
use crate::views::{self, ViewJob};
use crate::writer::{Committed, Requests, RowChange, RowsMode, TransactionChange, Work, Writer, closed, submit};
use crate::{
    Activity, DatabaseConfig, Described, Error, ErrorKind, Isolation, Metrics, QueryOptions, Response, Result,
    Transaction,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fs::File;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tidalite_ingest::recover::{Recovered, recover};
use tidalite_query::engine::spill;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::os::OsFs;
use tidalite_storage::manifest::Manifest;
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::{TableSnapshot, Tables};
use tidalite_types::command::CreateTable;
use tidalite_types::pg_type::PgType;
use tidalite_types::{Batch, Command, TableId, TableSchema, TimeChange, Txn};

/// A handle of a database; clones share the database. Dropping the last one closes it like [`Database::close`].
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Inner>,
}

/// Closes the database when it is dropped.
#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held as long as the folder is in use.
    _lock: Option<File>,
}

/// State for statements and for the database's own threads, which must not keep the database open.
#[derive(Debug)]
struct Core {
    shared: Arc<Shared>,
    /// Created at the first statement: a database without statements needs no query engine.
    sessions: OnceLock<Sessions>,
    /// `None` after the database was closed.
    requests: Mutex<Option<Requests>>,
    jobs: Arc<Mutex<Jobs>>,
}

impl std::ops::Deref for Inner {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

/// Limit of staged bytes: a merge takes all staged rows of a table, up to twice the limit; a text column must stay
/// below 2 GiB.
const STAGING_BYTES_MAX: usize = 900 << 20;
/// Interval between checks of timed views.
const VIEWS_TICK: Duration = Duration::from_millis(250);

impl Database {
    /// Opens or creates the folder, replays the log and starts the background threads. Blocks.
    pub fn open(config: DatabaseConfig) -> Result<Database> {
        let lock = folder::create_and_lock(&config.data)?;
        // A killed process may leave spill files.
        config.spill_folder().iter().for_each(|folder| spill::clean(folder));
        let fs = OsFs::new(&config.data);
        Database::open_on(Arc::new(fs), config, Some(lock))
    }

    /// Opens a database on other files than the operating system's; `config.data` is ignored.
    pub fn open_on(fs: Arc<dyn Fs>, mut config: DatabaseConfig, lock: Option<File>) -> Result<Database> {
        config.staging_bytes = config.staging_bytes.min(STAGING_BYTES_MAX);
        tidalite_memory::set_budget(config.memory_bytes);
        let store = SegmentStore::with_open_files(fs.clone(), config.cache_bytes, config.segment_files);
        let (manifest, _) = Manifest::open(fs.clone())?;
        let Recovered { catalog, versions, mut log, txn, persisted, replayed, next_segment, times } =
            recover(&fs, &store, &manifest, config.log_file_bytes)?;
        log.bypass_cache(config.log_bypasses_cache());
        let staged = versions.staged();
        tracing::info!(commits = replayed, staged_rows = staged.rows, last = txn.0, "opened the data folder");
        let manifest = ManifestState { manifest, persisted };
        let shared = Shared::new(config, fs, store, versions.into(), manifest, times, log.mark().clone());
        shared.next_segment.fetch_max(next_segment.0, SeqCst);
        let shared = Arc::new(shared);
        let log_bytes = log.byte_count();
        let (sender, requests) = mpsc::channel();
        let sender: Requests = Arc::new(sender);
        let writer = Writer::new(shared.clone(), requests, &sender, catalog, log, txn);
        let jobs = Arc::new(Mutex::new(Jobs::new(shared.clone(), sender.clone(), log_bytes)));
        let mut threads = vec![spawn("tidalite-log", move || writer.run())?];
        if shared.config.has_background_jobs {
            let (jobs, shared) = (jobs.clone(), shared.clone());
            threads.insert(0, spawn("tidalite-jobs", move || Jobs::run(&jobs, &shared))?);
        }
        let core = Core { shared, sessions: OnceLock::new(), requests: Mutex::new(Some(sender)), jobs };
        let core = Arc::new(core);
        if core.shared.config.has_background_jobs && !core.shared.config.is_read_only {
            let core = core.clone();
            threads.insert(0, spawn("tidalite-views", move || core.refresh_views())?);
        }
        Ok(Database { inner: Arc::new(Inner { core, threads: Mutex::new(threads), _lock: lock }) })
    }

    /// Commits all batches or none; completes when they are durable (as configured) and visible.
    /// Missing tables and columns are created.
    /// Commits submitted by one caller take effect in the order of the calls, awaited or not.
    /// Back-pressure: the future waits while writers are faster than the merge.
    #[must_use]
    pub fn commit(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>> {
        self.inner.rows(batches, RowsMode::Create).map(|r| r.map(|c| c.txn)).boxed()
    }

    /// Commits the rows before the first rejected row, like [`Database::commit`].
    ///
    /// Rows of earlier lines ([`Batch::lines`]) are committed in every batch, and the error is returned with the
    /// commit.
    #[must_use]
    pub fn commit_until_refused(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<(Txn, Option<Error>)>> {
        let committed = self.inner.rows(batches, RowsMode::CreatePrefix);
        committed.map(|r| r.map(|c| (c.txn, c.refused.into_iter().next()))).boxed()
    }

    /// Commits valid rows like [`Database::commit`], and skips rejected rows.
    ///
    /// Returns the commit and the reasons in line order, each with the line of its row ([`Batch::lines`]).
    #[must_use]
    pub fn commit_valid(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<(Txn, Vec<Error>)>> {
        self.inner.rows(batches, RowsMode::CreateValid).map(|r| r.map(|c| (c.txn, c.refused))).boxed()
    }

    /// Runs one SQL statement. Rows are returned as a stream; dropping it stops the query.
    #[must_use]
    pub fn execute(&self, sql: &str, options: QueryOptions) -> BoxFuture<'static, Result<Response>> {
        self.inner.sessions().execute(self.host(), sql, options)
    }

    /// Returns a sink for rows that become one commit, of any size, into an existing table, or into the table that
    /// `create` describes; with `replaces` the commit drops a table of the same name.
    ///
    /// Returns `None` for a table with upsert keys.
    ///
    /// # Errors
    /// The table does not exist and is not created.
    pub fn row_sink(&self, table: &str, create: Option<CreateTable>, replaces: bool) -> Result<Option<RowSink>> {
        RowSink::new(self.host(), table, create, replaces, tidalite_query::CancelToken::new())
    }

    /// Starts a `COPY … FROM STDIN`, given by `sql`.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn copy_in(&self, sql: &str, copy: Copy, options: QueryOptions) -> Result<CopyIn> {
        self.inner.sessions().copy_in(self.host(), sql, copy, options)
    }

    /// Begins a transaction, which holds no resources before its first statement.
    #[must_use]
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        let sessions = self.inner.sessions().clone();
        let host = TransactionHost::new(self.host(), isolation, sessions.transaction_memory());
        Transaction::new(self.clone(), sessions, host)
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(Handle { core: self.inner.core.clone(), _open: Some(self.inner.clone()) })
    }

    /// Returns the types of a statement's parameters and result without running it.
    ///
    /// `types` are the known types of parameters, in order. The timeout and a cancel request end it like a statement.
    #[must_use]
    pub fn describe(
        &self,
        sql: &str,
        types: Vec<Option<PgType>>,
        options: QueryOptions,
    ) -> BoxFuture<'static, Result<Described>> {
        self.inner.sessions().describe(self.host(), sql, types, options)
    }

    /// Commits one change of schema or content.
    #[must_use]
    pub fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn>> {
        self.inner.submit(Work::Command(command)).map(|r| r.map(|c| c.txn)).boxed()
    }

    /// Returns the last visible commit, and every table in its state.
    #[cfg(test)]
    pub(crate) fn all_tables(&self) -> (Txn, Vec<Arc<TableSnapshot>>) {
        self.inner.shared.tables.all()
    }

    /// Submits requests of several writers as one group of the log, in this order.
    #[cfg(test)]
    pub(crate) fn submit_together(&self, works: Vec<Work>) -> Vec<BoxFuture<'static, Result<Committed>>> {
        let (requests, answers): (Vec<_>, Vec<_>) = works
            .into_iter()
            .map(|work| {
                let (reply, answer) = futures::channel::oneshot::channel();
                let answer = async move { answer.await.unwrap_or_else(|_| Err(closed())) };
                (crate::writer::Request { work, reply }, answer.boxed())
            })
            .unzip();
        drop(self.inner.submit_any(Work::Together(requests)));
        answers
    }

    #[cfg(test)]
    pub(crate) fn loader(&self) -> Loader {
        self.inner.core.loader()
    }

    /// Returns the background jobs for single steps.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> std::sync::MutexGuard<'_, Jobs> {
        lock(&self.inner.jobs)
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Returns true if the database refuses changes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner.shared.config.is_read_only
    }

    /// Returns the reasons why the database does not work or refuses commits now. Does not wait for file operations.
    #[must_use]
    pub fn state(&self) -> DatabaseState {
        // The commit thread is the last entry.
        let is_over = lock(&self.inner.threads).last().is_some_and(JoinHandle::is_finished);
        self.inner.shared.state(is_over)
    }

    /// Returns the failed write or sync after which the log refuses commits until the database is opened again.
    #[must_use]
    pub fn log_failure(&self) -> Option<String> {
        self.inner.shared.log_failure()
    }

    /// Sends a request without changes to the commit thread; completes with the answer. Retries the reservation of log
    /// space after a full disk.
    #[must_use]
    pub fn probe_commits(&self) -> BoxFuture<'static, Result<()>> {
        self.inner.submit_any(Work::Probe).map(|r| r.map(drop)).boxed()
    }

    /// Returns the number of statements that began since the database was opened.
    #[must_use]
    pub fn statements_begun(&self) -> u64 {
        self.inner.sessions.get().map_or(0, Sessions::begun)
    }

    /// Returns the running statements.
    #[must_use]
    pub fn activity(&self) -> Vec<Activity> {
        self.inner.sessions().activity()
    }

    /// Returns the numbers of queries that each SQL front end has planned.
    #[must_use]
    pub fn front_end_counts(&self) -> tidalite_query::FrontEndCounts {
        self.inner.sessions().front_end_counts()
    }

    /// Stops the statement of [`Activity::id`]; returns false if there is none.
    pub fn cancel(&self, id: u64) -> bool {
        self.inner.sessions().cancel(id)
    }

    /// Returns the schema of a table, by case-insensitive name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.inner.shared.tables.read().by_name(name).map(|t| t.schema.clone())
    }

    /// Returns the names of tables and materialized views, in no order.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        let (_, tables) = self.inner.shared.tables.all();
        tables.iter().map(|table| table.schema.name.clone()).collect()
    }

    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.inner.shared.metrics();
        let sessions = self.inner.sessions.get();
        let counter = |name, help, value: u64| Metric { name, help, is_counter: true, value: value as f64 };
        let begun = sessions.map_or(0, Sessions::begun);
        metrics.push(counter("tidalite_statements_total", "Statements begun.", begun));
        let slow = sessions.map_or(0, Sessions::slow);
        let admission = sessions.map(Sessions::admission).unwrap_or_default();
        let gauge = |name, help, value: usize| Metric { name, help, is_counter: false, value: value as f64 };
        metrics.extend([
            gauge("tidalite_queries_running", "Heavy queries that have a running slot.", admission.running),
            gauge("tidalite_queries_queued", "Heavy queries that wait for a running slot.", admission.queued),
            counter("tidalite_queries_queued_total", "Heavy queries that had to wait.", admission.queued_total),
            counter(
                "tidalite_queries_refused_total",
                "Heavy queries that were refused because the queue was full.",
                admission.refused_total,
            ),
        ]);
        metrics.push(counter("tidalite_slow_statements_total", "Statements that were logged as slow.", slow));
        metrics
    }

    /// Verifies every block of a table, or of all tables and other files. Blocks; writes and reads continue.
    pub fn check(&self, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport> {
        check::check_online(&self.inner.shared, table, go_on)
    }

    /// Copies changes since the last backup to a folder, in the state of one commit. Blocks; writes and reads continue.
    pub fn backup(&self, to: &str, go_on: GoOn<'_>) -> Result<BackupReport> {
        backup::backup(&self.inner.shared, to, go_on)
    }

    /// Merges all commits so far into segments and writes a checkpoint. Blocks.
    pub fn settle(&self) -> Result<()> {
        lock(&self.inner.jobs).settle()
    }

    /// Merges all commits of a table so far and rewrites its partitions for size. Blocks.
    pub fn seal(&self, table: &str) -> Result<()> {
        self.inner.seal(table)
    }

    /// Rejects new commits, finishes running ones, writes a checkpoint and stops the threads. Blocks.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

impl Core {
    fn rows(&self, batches: Vec<Batch>, mode: RowsMode) -> BoxFuture<'static, Result<Committed>> {
        self.submit(Work::Rows { batches, mode })
    }

    /// Submits a change of a client; a read-only database rejects it.
    fn submit(&self, work: Work) -> BoxFuture<'static, Result<Committed>> {
        if self.shared.config.is_read_only {
            return futures::future::ready(Err(read_only_database("the change"))).boxed();
        }
        self.submit_any(work)
    }

    fn submit_any(&self, work: Work) -> BoxFuture<'static, Result<Committed>> {
        let requests = lock(&self.requests);
        match requests.as_ref() {
            Some(sender) => submit(sender, work),
            None => futures::future::ready(Err(closed())).boxed(),
        }
    }

    fn seal(&self, table: &str) -> Result<()> {
        let id = self.shared.tables.read().by_name(table).map(|t| t.id);
        let missing = || Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist"));
        lock(&self.jobs).seal_table(id.ok_or_else(missing)?)
    }

    fn loader(self: &Arc<Core>) -> Loader {
        let core = self.clone();
        let submit = Box::new(move |work| core.submit(work));
        Loader { shared: self.shared.clone(), jobs: self.jobs.clone(), submit }
    }

    fn sessions(&self) -> &Sessions {
        self.sessions.get_or_init(|| Sessions::new(&self.shared.config))
    }

    /// Refreshes materialized views until the database closes. Without views no query engine is created.
    fn refresh_views(self: &Arc<Core>) {
        let mut views = ViewJob::new();
        while !self.shared.is_closing.load(SeqCst) {
            self.shared.wait_for_refresh(views.idle(VIEWS_TICK));
            if !self.shared.is_closing.load(SeqCst) && views.has_work(&self.shared) {
                views.round(&self.shared, self.sessions(), &self.host());
            }
        }
    }

    fn host(self: &Arc<Core>) -> Arc<dyn Host> {
        Arc::new(Handle { core: self.clone(), _open: None })
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        let Some(sender) = lock(&self.requests).take() else { return Ok(()) };
        self.shared.is_closing.store(true, SeqCst);
        self.shared.end_loads();
        self.shared.ask_for_merge();
        self.shared.ask_for_refresh();
        // A running refresh would keep the threads from ending.
        if self.shared.config.has_background_jobs
            && let Some(sessions) = self.sessions.get()
        {
            sessions.cancel_refreshes();
        }
        drop(sender);
        // The commit thread started last; the previous thread, if any, stops by itself now.
        let mut threads: Vec<_> = lock(&self.threads).drain(..).collect();
        let commit_thread = threads.pop();
        // Every thread is joined, also after one that panicked.
        let mut is_well = threads.into_iter().fold(true, |is_well, thread| thread.join().is_ok() && is_well);
        let finished = lock(&self.jobs).finish();
        is_well &= commit_thread.is_none_or(|t| t.join().is_ok());
        if !is_well {
            return Err(Error::new(ErrorKind::Internal, "a background thread panicked"));
        }
        finished
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "could not close the database");
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start thread {name}: {e}")))
}

/// Holds merges of a table during its life.
struct Hold {
    tables: Arc<Tables>,
    table: TableId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.tables.write().let_merge(self.table);
    }
}

/// The operations of statements on the database.
struct Handle {
    core: Arc<Core>,
    /// A running statement keeps the database open.
    _open: Option<Arc<Inner>>,
}

impl Host for Handle {
    fn insert(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>> {
        self.core.rows(batches, RowsMode::Insert).map(|r| r.map(|c| c.txn)).boxed()
    }

    fn insert_new(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<u64>> {
        self.core.rows(batches, RowsMode::InsertNew).map(|r| r.map(|c| c.changed.unwrap_or(0))).boxed()
    }

    fn loader(&self) -> Option<Loader> {
        Some(self.core.loader())
    }

    fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn>> {
        self.core.submit(Work::Command(command)).map(|r| r.map(|c| c.txn)).boxed()
    }

    fn change(&self, change: RowChange) -> BoxFuture<'static, Result<Option<u64>>> {
        self.core.submit(Work::Change(change)).map(|r| r.map(|c| c.changed)).boxed()
    }

    fn transaction(&self, change: TransactionChange) -> BoxFuture<'static, Result<Option<Txn>>> {
        let submitted = self.core.submit(Work::Transaction(change));
        submitted.map(|r| r.map(|c| c.changed.map(|_| c.txn))).boxed()
    }

    fn tables(&self) -> (Txn, Vec<Arc<TableSnapshot>>) {
        self.core.shared.tables.all()
    }

    fn hold_merges(&self, table: TableId) -> Box<dyn Send + Sync> {
        self.core.shared.tables.write().hold_merges(table);
        Box::new(Hold { tables: self.core.shared.tables.clone(), table })
    }

    fn seal(&self, table: &str) -> BoxFuture<'static, Result<()>> {
        let (core, table) = (self.core.clone(), table.to_owned());
        let (done, sealed) = futures::channel::oneshot::channel();
        // A seal takes seconds, which the query threads must not wait for.
        let started = spawn("tidalite-seal", move || drop(done.send(core.seal(&table))));
        async move {
            started?;
            sealed.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the seal panicked")))
        }
        .boxed()
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        self.core.shared.tables.snapshots(names)
    }

    fn check(&self, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport> {
        check::check_online(&self.core.shared, table, go_on)
    }

    fn backup(&self, to: &str, go_on: GoOn<'_>) -> Result<BackupReport> {
        backup::backup(&self.core.shared, to, go_on)
    }

    fn table_metrics(&self) -> Vec<tidalite_query::TableMetrics> {
        self.core.shared.table_metrics()
    }

    fn snapshots_at(&self, ids: &[TableId]) -> (Txn, Vec<Option<Arc<TableSnapshot>>>) {
        let versions = self.core.shared.tables.read();
        (versions.txn(), ids.iter().map(|id| versions.get(*id).cloned()).collect())
    }

    fn is_followed(&self, table: TableId) -> bool {
        self.core.shared.lock_times().follows(table)
    }

    fn changed_times(&self, table: TableId, seen: Txn) -> Option<Vec<TimeChange>> {
        self.core.shared.lock_times().after(table, seen)
    }

    fn refreshed(&self) {
        views::forget_seen(&self.core.shared);
    }

    fn views_over(&self, base: &TableSnapshot) -> Vec<tidalite_query::OverView> {
        views::over(&self.core.shared, base)
    }

    fn view_metrics(&self) -> Vec<tidalite_query::ViewMetrics> {
        views::metrics(&self.core.shared)
    }

    fn note_refresh(&self, view: TableId, refresh: RefreshNote) {
        views::note(&self.core.shared, view, refresh);
    }

    fn table_names(&self) -> Vec<String> {
        self.core.shared.tables.all().1.iter().map(|table| table.schema.name.clone()).collect()
    }
}
