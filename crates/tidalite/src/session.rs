//! Statements: connects the read side and the write side.
//!
//! Input: the text of one statement. Output: rows as a stream, or the result of a change. Queries are passed to the
//! query engine, which returns batches; INSERT and DDL are sent to the writer here, in [`write`]; [`upkeep`] maintains
//! files. Everything runs on the engine's threads, not on the caller's, except for a few rows of a repeated query.
//! Running statements are listed in [`running`] until their rows are read to the end or dropped.

mod change;
mod compound;
mod conflict;
pub(crate) mod copy;
mod copy_text;
mod deadlines;
mod notices;
mod refresh;
mod returning;
mod running;
mod statistics;
mod upkeep;
mod views;
mod write;

use crate::backup::BackupReport;
use crate::check::{CheckReport, GoOn};
use crate::copy::{Copy, CopyIn};
use crate::load::Loader;
use crate::transaction::{Memory, TransactionHost, not_in_transaction};
use crate::writer::{RowChange, TransactionChange};
use crate::{Database, DatabaseConfig, Error, ErrorKind, Result, SqlState};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
pub(crate) use change::{ATTEMPTS, Changing, HOLD_FROM, all_rows};
use deadlines::{Deadline, Deadlines, Keeper};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
pub(crate) use refresh::RefreshNote;
use running::{Entry, Running};
use statistics::Statistics;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidalite_query::statement::{Compound, CreateTableAs, Query, RefreshScope, Step};
use tidalite_query::{
    ActivityEntry, AdmissionCounts, CancelToken, Catalog, Engine, EngineConfig, FileAccess, FrontEndCounts, Lifted,
    Notice, OverView, QueryResult, Statement, StatementStatistics, TableMetrics, ViewMetrics,
};

pub use tidalite_query::{Frame, Parameter, PgColumn, SessionContext};
use tidalite_storage::TableSnapshot;
use tidalite_types::pg_type::PgType;
use tidalite_types::schema::same_name;
use tidalite_types::{Batch, Command, TableId, TimeChange, Txn};

#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Timeout of the statement; `None` uses the database's setting.
    pub timeout: Option<Duration>,
    /// The client, for [`Activity`]: a user, an address.
    pub client: String,
    /// The values of `$1`, `$2`, …
    pub parameters: Vec<Parameter>,
    /// Rows in memory that the statement may use as tables.
    pub frames: Vec<Frame>,
    /// Statements that write are rejected (SQLSTATE 25006).
    pub is_read_only: bool,
    /// The session of the statement; `None` for the database owner's, with all settings at their defaults.
    pub session: Option<Arc<SessionContext>>,
}

/// The parameters and the result of a statement.
#[derive(Clone, Debug)]
pub struct Described {
    /// The types of `$1`, `$2`, …, as far as the statement determines them; others are constants typed by their
    /// position.
    pub parameters: Vec<Option<PgType>>,
    /// `None` if the statement returns no rows.
    pub columns: Option<(Vec<OutputColumn>, SchemaRef)>,
}

/// The response of a statement.
pub enum Response {
    Rows(Rows),
    /// A statement without rows: `tag` is its PostgreSQL command tag ("CREATE TABLE", "INSERT", …),
    /// `rows` the number of rows that it wrote or removed.
    Done {
        tag: &'static str,
        rows: u64,
    },
}

/// The rows of a query. Dropping them stops the query.
pub struct Rows {
    pub columns: Vec<OutputColumn>,
    pub schema: SchemaRef,
    /// Index of the designated timestamp of the rows, if it is selected unchanged.
    pub timestamp: Option<usize>,
    /// Time spent before the first row could be computed: parse, plan, optimise.
    pub compile_time: Duration,
    pub stream: BoxStream<'static, Result<RecordBatch>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputColumn {
    pub name: String,
    /// SQL name of the type, as in `SHOW COLUMNS`.
    pub type_name: String,
    /// Type information for PostgreSQL clients.
    pub pg: PgColumn,
    /// The values in the name that sub-queries of a PIVOT returned during planning. A prepared statement may have other
    /// columns when they change.
    pub pivot_values: Option<String>,
}

/// A running statement.
#[derive(Clone, Debug)]
pub struct Activity {
    pub id: u64,
    pub client: String,
    pub sql: String,
    pub started: SystemTime,
    /// Number of examined rows, and of rows that may be examined.
    pub rows: (u64, u64),
    /// True while the statement waits for a running slot.
    pub is_queued: bool,
}

/// The operations of statements on the database.
pub(crate) trait Host: Send + Sync {
    /// Commits rows to existing tables and columns; completes when they are durable and visible.
    fn insert(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>>;

    /// Inserts like `insert`, but skips rows whose upsert keys exist; returns the number of inserted rows.
    fn insert_new(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<u64>>;

    /// Returns the means to load many rows in one commit; `None` in a transaction.
    fn loader(&self) -> Option<Loader>;

    fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn>>;

    /// Deletes or replaces rows; returns their number, or `None` if they moved and must be located again.
    fn change(&self, change: RowChange) -> BoxFuture<'static, Result<Option<u64>>>;

    /// Commits the changes of a transaction; `None` if rows moved and must be located again.
    fn transaction(&self, change: TransactionChange) -> BoxFuture<'static, Result<Option<Txn>>>;

    /// Returns true if changes go to an open transaction, invisible to other sessions.
    fn is_transaction(&self) -> bool {
        false
    }

    /// Prevents new merges of the table during the life of the returned value.
    fn hold_merges(&self, table: TableId) -> Box<dyn Send + Sync>;

    /// Merges a table and rewrites its partitions for size.
    fn seal(&self, table: &str) -> BoxFuture<'static, Result<()>>;

    /// See [`Catalog::snapshots`].
    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>>;

    /// Returns every table in order of creation in the state of one commit, and that commit.
    fn tables(&self) -> (Txn, Vec<Arc<TableSnapshot>>);

    /// Returns tables by id in the state of one commit, and that commit.
    fn snapshots_at(&self, ids: &[TableId]) -> (Txn, Vec<Option<Arc<TableSnapshot>>>);

    /// Returns true if a materialized view depends on the table.
    fn is_followed(&self, table: TableId) -> bool;

    /// Returns the times of a table that changed after commit `seen`; `None` if they are unknown.
    fn changed_times(&self, table: TableId, seen: Txn) -> Option<Vec<TimeChange>>;

    fn note_refresh(&self, view: TableId, note: RefreshNote);

    /// Records the progress of a materialized view.
    fn refreshed(&self);

    /// See [`Catalog::view_metrics`].
    fn view_metrics(&self) -> Vec<ViewMetrics>;

    /// See [`Catalog::views_over`].
    fn views_over(&self, base: &TableSnapshot) -> Vec<OverView>;

    fn table_names(&self) -> Vec<String>;

    /// See [`crate::Database::check`].
    fn check(&self, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport>;

    /// See [`crate::Database::backup`].
    fn backup(&self, to: &str, go_on: GoOn<'_>) -> Result<BackupReport>;

    /// See [`Catalog::table_metrics`].
    fn table_metrics(&self) -> Vec<TableMetrics>;
}

/// Largest text in bytes of a cached plan: longer texts are mostly lists of values.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Client name of the database's own statements.
const OWN: &str = "tidalite";

/// The client of the server's watchdog statements, which are not listed.
pub const WATCHDOG: &str = "tidalite watchdog";

/// Runs statements. Clones share the engine and the list of running statements.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// An error if the engine could not be created: statements cannot run.
    engine: Result<Arc<Engine>>,
    running: Running,
    deadlines: Deadlines,
    _keeper: Option<Keeper>,
    timeout: Duration,
    changing: Changing,
    transactions: Memory,
    reads_files: bool,
    writes_files: bool,
    access: FileAccess,
    is_read_only: bool,
    statistics: Arc<Statistics>,
}

impl Sessions {
    pub fn new(config: &DatabaseConfig) -> Sessions {
        let engine = EngineConfig {
            threads: config.query_threads,
            query_memory_bytes: config.query_memory_bytes.min(config.memory_bytes / 2),
            reads_files: config.query_reads_files,
            access: config.file_access.clone(),
            fast_operators: config.query_fast_operators,
            compiles: config.query_compiles,
            uses_views: config.query_use_materialized_views,
            uses_binder: config.query_binder,
            spill_folder: config.spill_folder(),
            spill_bytes_max: config.spill_bytes_max,
            running_max: config.query_running_max,
            queued_max: config.query_queued_max,
        };
        let engine = check_clock(SystemTime::now()).and_then(|()| Engine::new(&engine).map_err(Error::from));
        let statistics = Arc::new(Statistics::new(config.slow_statement));
        let deadlines = Deadlines::default();
        let keeper = engine.as_ref().ok().map(|engine| deadlines.keeper(engine));
        Sessions {
            shared: Arc::new(Shared {
                engine,
                running: Running::new(statistics.clone()),
                deadlines,
                _keeper: keeper,
                timeout: config.query_timeout,
                changing: Changing::default(),
                transactions: Memory::new(config.transaction_bytes),
                reads_files: config.query_reads_files,
                writes_files: config.query_writes_files,
                access: config.file_access.clone(),
                is_read_only: config.is_read_only,
                statistics,
            }),
        }
    }

    /// Runs one statement.
    pub fn execute(
        &self,
        host: Arc<dyn Host>,
        sql: &str,
        options: QueryOptions,
    ) -> BoxFuture<'static, Result<Response>> {
        let engine = match self.engine() {
            Ok(engine) => engine,
            Err(error) => return futures::future::ready(Err(error)).boxed(),
        };
        let timeout = options.timeout.unwrap_or(self.shared.timeout);
        let entry = self.shared.running.enter(sql, options.client);
        let deadline = self.shared.deadlines.add(timeout, &entry.cancel);
        let (frames, is_read_only, session) = (options.frames.into(), options.is_read_only, options.session);
        let (shared, started) = (self.shared.clone(), Instant::now());
        let statement = Session { shared, host, started, frames, is_read_only, session };
        let (engine, sql, values) = (engine.clone(), sql.to_owned(), options.parameters);
        async move {
            let asked = Asked::new(&sql, &values, &statement.frames);
            if let Some(result) = statement.known_at_once(&asked, &sql, &entry.cancel) {
                return Ok(Response::Rows(statement.rows(result?, entry, deadline)));
            }
            engine.spawn(statement.run(sql, values, asked, entry, deadline).boxed()).await?
        }
        .boxed()
    }

    /// Returns the types of a statement's parameters and result without running it.
    ///
    /// `types` are the known types of parameters. The timeout and a cancel request end it like a statement.
    pub fn describe(
        &self,
        host: Arc<dyn Host>,
        sql: &str,
        types: Vec<Option<PgType>>,
        options: QueryOptions,
    ) -> BoxFuture<'static, Result<Described>> {
        let engine = match self.engine() {
            Ok(engine) => engine,
            Err(error) => return futures::future::ready(Err(error)).boxed(),
        };
        let frames = Vec::new().into();
        let shared = self.shared.clone();
        let entry = self.shared.running.enter(sql, options.client);
        entry.only_describes();
        let deadline = self.shared.deadlines.add(options.timeout.unwrap_or(self.shared.timeout), &entry.cancel);
        let (is_read_only, session) = (options.is_read_only, options.session);
        let session = Session { shared, host, started: Instant::now(), frames, is_read_only, session };
        let sql = sql.to_owned();
        let described = async move {
            let _deadline = deadline;
            session.describe(&sql, types, &entry.cancel).await
        };
        let described = engine.spawn(described.boxed());
        async move { described.await? }.boxed()
    }

    /// Takes the rows that a client copies to a table.
    pub fn copy_in(&self, host: Arc<dyn Host>, sql: &str, copied: Copy, options: QueryOptions) -> Result<CopyIn> {
        self.engine()?;
        if self.shared.is_read_only {
            return Err(read_only_database("COPY FROM"));
        }
        if options.is_read_only {
            return Err(read_only("COPY FROM"));
        }
        let entry = self.shared.running.enter(sql, options.client);
        let deadline = self.shared.deadlines.add(options.timeout.unwrap_or(self.shared.timeout), &entry.cancel);
        let cancel = entry.cancel.clone();
        let work = move |text: Box<dyn Read + Send>, cancel: CancelToken| {
            let _deadline = deadline;
            let rows = copy::rows_in(&host, &copied, text, &cancel);
            entry.ended(rows.as_ref().ok().copied());
            rows
        };
        CopyIn::start(work, cancel)
    }

    /// Refreshes a materialized view; returns the number of written rows.
    pub fn refresh(&self, host: Arc<dyn Host>, view: TableId, scope: RefreshScope) -> BoxFuture<'static, Result<u64>> {
        let engine = match self.engine() {
            Ok(engine) => engine,
            Err(error) => return futures::future::ready(Err(error)).boxed(),
        };
        let entry = self.shared.running.enter(&format!("refresh of materialized view {view}"), OWN.to_owned());
        let frames = Vec::new().into();
        let shared = self.shared.clone();
        let session = Session { shared, host, started: Instant::now(), frames, is_read_only: false, session: None };
        let refreshed = async move {
            let rows = refresh::refresh(&session, view, scope, &entry.cancel).await;
            entry.ended(rows.as_ref().ok().copied());
            rows
        };
        let ran = engine.spawn(refreshed.boxed());
        async move { ran.await? }.boxed()
    }

    /// Returns the memory that open transactions share.
    pub fn transaction_memory(&self) -> &Memory {
        &self.shared.transactions
    }

    /// Commits a transaction. `database` stays open until then.
    pub fn commit(&self, host: Arc<TransactionHost>, database: Database) -> BoxFuture<'static, Result<Option<Txn>>> {
        let engine = match &self.shared.engine {
            Ok(engine) => engine,
            Err(error) => return futures::future::ready(Err(error.clone())).boxed(),
        };
        let shared = self.shared.clone();
        let committed = async move {
            let _open = database;
            host.commit(&shared.changing).await
        };
        let committed = engine.spawn(committed.boxed());
        async move { committed.await? }.boxed()
    }

    /// Stops the refreshes started by the database itself.
    pub fn cancel_refreshes(&self) {
        let all = self.shared.running.list();
        let own = all.iter().filter(|activity| activity.client == OWN);
        own.for_each(|activity| {
            self.shared.running.cancel(activity.id);
        });
    }

    pub fn activity(&self) -> Vec<Activity> {
        self.shared.running.list()
    }

    pub fn front_end_counts(&self) -> FrontEndCounts {
        self.shared.engine.as_ref().map(|engine| engine.front_end_counts()).unwrap_or_default()
    }

    /// Returns the numbers of heavy statements that run, wait and were refused.
    pub fn admission(&self) -> AdmissionCounts {
        self.shared.engine.as_ref().map(|engine| engine.admission()).unwrap_or_default()
    }

    /// Returns the number of statements that were logged as slow.
    pub fn slow(&self) -> u64 {
        self.shared.statistics.slow_count()
    }

    /// Returns the number of statements that began.
    pub fn begun(&self) -> u64 {
        self.shared.running.begun()
    }

    /// Returns the engine.
    ///
    /// # Errors
    /// The engine could not be created, or the clock is before 1970, which would be a panic in the engine.
    fn engine(&self) -> Result<&Arc<Engine>> {
        check_clock(SystemTime::now())?;
        self.shared.engine.as_ref().map_err(Clone::clone)
    }

    /// Stops a statement; returns false if there is none with the id.
    pub fn cancel(&self, id: u64) -> bool {
        self.shared.running.cancel(id)
    }
}

/// Cache keys of the plans of a statement.
struct Asked {
    /// For the same values; empty if no plan is cached.
    text: String,
    /// For all values, including constants: the key, and the statement with its values extracted.
    for_all: Option<(String, Lifted)>,
}

impl Asked {
    fn new(sql: &str, values: &[Parameter], frames: &[Frame]) -> Asked {
        // A name may now be the name of a frame.
        if sql.len() > KEPT_BYTES_MAX || !frames.is_empty() {
            return Asked { text: String::new(), for_all: None };
        }
        let (text, template) = match values.is_empty() {
            true => (sql.to_owned(), tidalite_query::lifted(sql)),
            false => (format!("{sql}\0{values:?}"), Some(Lifted { sql: sql.to_owned(), values: values.to_vec() })),
        };
        let for_all = template.map(|template| (format!("{}\0", template.sql), template));
        Asked { text, for_all }
    }

    /// Returns the keys to look up, with the parameter values of each.
    fn ways(&self) -> impl Iterator<Item = (&str, &[Parameter])> {
        let for_all = self.for_all.iter().map(|(text, template)| (text.as_str(), template.values.as_slice()));
        std::iter::once((self.text.as_str(), &[][..])).chain(for_all).filter(|(text, _)| !text.is_empty())
    }
}

/// The result of a statement that writes.
enum Changed {
    Done {
        tag: &'static str,
        rows: u64,
    },
    /// The rows of RETURNING.
    Rows(QueryResult),
}

/// One statement.
struct Session {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    started: Instant,
    frames: Arc<[Frame]>,
    is_read_only: bool,
    session: Option<Arc<SessionContext>>,
}

impl Session {
    async fn run(
        self,
        sql: String,
        values: Vec<Parameter>,
        asked: Asked,
        entry: Entry,
        deadline: Option<Deadline>,
    ) -> Result<Response> {
        let cancel = entry.cancel.clone();
        let catalog = self.catalog();
        for (text, values) in asked.ways() {
            if let Some(result) = self.known(&catalog, (text, &sql), values, &cancel).await? {
                return Ok(Response::Rows(self.rows(result, entry, deadline)));
            }
        }
        let statement = self.engine()?.parse(&sql, &values, &cancel).await?;
        self.check_allowed(&statement)?;
        match statement {
            Statement::Query(query) => {
                let planned = self.engine()?.query_kept(self.catalog(), query, &asked.text, cancel.clone());
                let result = until_cancelled(&cancel, planned).await?;
                if let Some((for_all, template)) = &asked.for_all {
                    self.engine()?.learn(&catalog, &template.sql, for_all, &cancel).await;
                }
                Ok(Response::Rows(self.rows(result, entry, deadline)))
            }
            Statement::Explain { query, is_analyze } => {
                let explained = self.engine()?.explain(self.catalog(), query, is_analyze, cancel.clone());
                let result = until_cancelled(&cancel, explained).await?;
                Ok(Response::Rows(self.rows(result, entry, deadline)))
            }
            Statement::Check { table } => {
                let report = upkeep::check(&self, table, &cancel).await.map_err(|error| placed(error, &sql))?;
                entry.ended(Some(0));
                upkeep::rows_of_check(report, self.started)
            }
            Statement::Backup { to } => {
                let report = upkeep::backup(&self, to.text, &cancel).await?;
                entry.ended(Some(0));
                upkeep::rows_of_backup(&report, self.started)
            }
            other => match self.change(other, &cancel).await.map_err(|error| placed(error, &sql))? {
                Changed::Done { tag, rows } => {
                    entry.ended(Some(rows));
                    Ok(Response::Done { tag, rows })
                }
                Changed::Rows(result) => Ok(Response::Rows(self.rows(result, entry, deadline))),
            },
        }
    }

    /// Returns the rows of a repeated query, if they take only a moment.
    fn known_at_once(&self, asked: &Asked, sql: &str, cancel: &CancelToken) -> Option<Result<QueryResult>> {
        let (engine, catalog) = (self.engine().ok()?, self.catalog());
        let known = |(text, values)| engine.known_at_once(&catalog, (text, sql), values, cancel);
        let found = asked.ways().find_map(known)?;
        Some(found.map_err(Error::from))
    }

    /// Returns the rows of a query whose plan is cached as `text`.
    async fn known(
        &self,
        catalog: &Arc<dyn Catalog>,
        text: (&str, &str),
        values: &[Parameter],
        cancel: &CancelToken,
    ) -> Result<Option<QueryResult>> {
        let known = self.engine()?.known(catalog, text, values, cancel);
        until_cancelled(cancel, async { known.await.transpose() }).await
    }

    async fn describe(&self, sql: &str, types: Vec<Option<PgType>>, cancel: &CancelToken) -> Result<Described> {
        let found = self.engine()?.describe(self.catalog(), sql, types, cancel).await?;
        let columns = match (found.columns, found.statement) {
            (None, Statement::Check { .. }) => {
                upkeep::columns(upkeep::rows_of_check(CheckReport::default(), self.started)?)
            }
            (None, Statement::Backup { .. }) => {
                upkeep::columns(upkeep::rows_of_backup(&BackupReport::default(), self.started)?)
            }
            (columns, _) => columns.map(|(columns, schema)| (named(columns), schema)),
        };
        Ok(Described { parameters: found.parameters, columns })
    }

    /// Rejects commands that are not permitted in the context of the statement.
    fn check_allowed(&self, statement: &Statement) -> Result<()> {
        if let Some(what) = statement.writes() {
            // A backup does not change rows or schemas.
            if self.shared.is_read_only && !matches!(statement, Statement::Backup { .. }) {
                return Err(read_only_database(what));
            }
            if self.is_read_only {
                return Err(read_only(what));
            }
        }
        match statement.commits_itself().filter(|_| self.host.is_transaction()) {
            Some(what) => Err(not_in_transaction(what)),
            None => Ok(()),
        }
    }

    /// Runs statements that write.
    async fn change(&self, statement: Statement, cancel: &CancelToken) -> Result<Changed> {
        match statement {
            // All commands of a statement take effect, or none.
            Statement::Commands { tag, commands } if commands.len() > 1 && !self.host.is_transaction() => {
                let notices = commands.iter().filter_map(|command| notices::skipped(self, command));
                notices.for_each(|notice| self.notify(notice));
                self.host.transaction(TransactionChange::of_commands(commands)).await?;
                Ok(Changed::Done { tag, rows: 0 })
            }
            Statement::Commands { tag, commands } if commands.len() > 1 => {
                let single = |command| Statement::Commands { tag, commands: vec![command] };
                let steps = commands.into_iter().map(|command| Step::Counted(Box::new(single(command)))).collect();
                compound::run(self, &Compound { tag, steps }, cancel).await
            }
            Statement::Commands { tag, commands } => {
                for command in commands {
                    if let Some(notice) = notices::skipped(self, &command) {
                        self.notify(notice);
                    }
                    self.host.command(command).await?;
                }
                Ok(Changed::Done { tag, rows: 0 })
            }
            Statement::Insert(insert) => write::insert(self, insert, cancel).await,
            Statement::Copy(copied) => copy::copy(self, copied, cancel).await,
            Statement::CreateView(create) => {
                let tag = views::create(self, create, cancel).await?;
                Ok(Changed::Done { tag, rows: 0 })
            }
            Statement::SetRefresh { view, refresh } => {
                let schedule = refresh.from_now(refresh::now_micros(), false);
                self.host.command(Command::SetRefresh { view: view.text, schedule }).await?;
                Ok(Changed::Done { tag: "ALTER MATERIALIZED VIEW", rows: 0 })
            }
            Statement::RefreshView { view, scope } => {
                let rows = views::refresh_named(self, &view, scope, cancel).await?;
                Ok(Changed::Done { tag: "REFRESH MATERIALIZED VIEW", rows })
            }
            Statement::ResumeView { view } => {
                let rows = views::refresh_named(self, &view, RefreshScope::Full, cancel).await?;
                Ok(Changed::Done { tag: "ALTER MATERIALIZED VIEW", rows })
            }
            Statement::CreateTableAs(create) => {
                if create.if_not_exists && self.has(&create) {
                    self.notify(notices::present(&create.table));
                    return Ok(Changed::Done { tag: "CREATE TABLE AS", rows: 0 });
                }
                let rows = write::create_as(self, create, cancel).await?;
                Ok(Changed::Done { tag: "CREATE TABLE AS", rows })
            }
            Statement::DropPartitions { table, which } => {
                let partitions = self.engine()?.partitions(self.catalog(), &table, &which, cancel).await?;
                if !partitions.is_empty() {
                    self.host.command(Command::DropPartitions { table, partitions }).await?;
                }
                Ok(Changed::Done { tag: "ALTER TABLE", rows: 0 })
            }
            Statement::Delete(delete) => change::delete(self, delete, cancel).await,
            Statement::Update(update) => change::update(self, update, cancel).await,
            Statement::Seal { table } => {
                self.host.seal(&table).await?;
                Ok(Changed::Done { tag: "ALTER TABLE", rows: 0 })
            }
            Statement::CancelQuery(id) => {
                if !self.shared.running.cancel(id) {
                    return Err(Error::new(ErrorKind::NotFound, format!("query {id} is not running")));
                }
                Ok(Changed::Done { tag: "CANCEL QUERY", rows: 0 })
            }
            Statement::DropSchema { schema, cascades, if_exists } => {
                let is_missing = self.drop_schema(&schema.text, cascades).await? == 0;
                if if_exists && is_missing {
                    self.notify(notices::missing("schema", &schema.text));
                }
                Ok(Changed::Done { tag: "DROP SCHEMA", rows: 0 })
            }
            Statement::Compound(compound) => compound::run(self, &compound, cancel).await,
            Statement::DropIndexes { names } => {
                names.iter().for_each(|name| self.notify(notices::missing("index", name)));
                Ok(Changed::Done { tag: "DROP INDEX", rows: 0 })
            }
            Statement::Nothing { tag } => Ok(Changed::Done { tag, rows: 0 }),
            Statement::Query(_) | Statement::Explain { .. } | Statement::Check { .. } | Statement::Backup { .. } => {
                Err(Error::new(ErrorKind::Internal, "a query is no change"))
            }
        }
    }

    /// Tells the client of the session about a statement that has no effect.
    fn notify(&self, notice: Notice) {
        self.catalog().session().notify(notice);
    }

    /// Drops the tables of a schema; returns how many there were.
    ///
    /// A schema consists of the tables with its name as prefix: without such tables there is nothing to do.
    async fn drop_schema(&self, schema: &str, cascades: bool) -> Result<usize> {
        let names = self.host.table_names();
        let within: Vec<String> =
            names.into_iter().filter(|name| tidalite_query::in_schema(name, schema).is_some()).collect();
        if let (Some(one), false) = (within.first(), cascades) {
            let message = format!("cannot drop schema {schema} because \"{one}\" is in it");
            let mut error = Error::new(ErrorKind::Conflict, message);
            error.hint = Some(format!("DROP SCHEMA {schema} CASCADE drops what is in it"));
            return Err(error);
        }
        let count = within.len();
        for name in within {
            let found = self.host.snapshots(&[&name]).pop().flatten();
            let view = found.as_ref().and_then(|table| table.schema.view.as_ref());
            let command = match view {
                Some(view) => {
                    let is_materialized = view.materialized.is_some();
                    Command::DropView { view: name, is_materialized, if_exists: true }
                }
                None => Command::DropTable { table: name, if_exists: true },
            };
            self.host.command(command).await?;
        }
        Ok(count)
    }

    /// Returns the response of a statement that changed rows: the returned rows, if it has any.
    async fn changed(
        &self,
        tag: &'static str,
        rows: u64,
        table: &str,
        returned: Option<(&Query, Arc<TableSnapshot>)>,
        cancel: &CancelToken,
    ) -> Result<Changed> {
        let Some((query, snapshot)) = returned else { return Ok(Changed::Done { tag, rows }) };
        let result = self.engine()?.over(self.catalog(), query, table, snapshot, cancel.clone()).await?;
        Ok(Changed::Rows(result))
    }

    fn has(&self, create: &CreateTableAs) -> bool {
        self.host.snapshots(&[&create.table]).first().is_some_and(Option::is_some)
    }

    fn engine(&self) -> Result<&Arc<Engine>> {
        self.shared.engine.as_ref().map_err(Clone::clone)
    }

    fn catalog(&self) -> Arc<dyn Catalog> {
        Arc::new(SessionCatalog {
            host: self.host.clone(),
            shared: self.shared.clone(),
            frames: self.frames.clone(),
            session: self.session.clone(),
        })
    }

    fn rows(&self, result: QueryResult, entry: Entry, deadline: Option<Deadline>) -> Rows {
        let QueryResult { columns, schema, timestamp, stream } = result;
        let columns = named(columns);
        // The entry and the deadline live as long as the stream.
        entry.ended(Some(0));
        let stream = stream.map(move |batch| {
            let _ = &deadline;
            entry.gave(batch.as_ref().ok());
            batch.map_err(Error::from)
        });
        Rows { columns, schema, timestamp, compile_time: self.started.elapsed(), stream: stream.boxed() }
    }
}

/// The error of a statement that writes in a read-only context.
fn read_only(what: &str) -> Error {
    let message = format!("cannot execute {what} in a read-only transaction");
    Error::new(ErrorKind::Invalid, message).with_code(SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// Returns the error of a change of a read-only database.
pub(crate) fn read_only_database(what: &str) -> Error {
    let message = format!("cannot execute {what}: the server is read-only (setting read_only)");
    Error::new(ErrorKind::Invalid, message).with_code(SqlState::READ_ONLY_SQL_TRANSACTION)
}

fn check_clock(now: SystemTime) -> Result<()> {
    if now.duration_since(UNIX_EPOCH).is_ok() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Unavailable, "the system clock is before 1970");
    Err(error.with_hint("set the clock of the machine"))
}

fn named(columns: Vec<tidalite_query::OutputColumn>) -> Vec<OutputColumn> {
    let named = |column: tidalite_query::OutputColumn| OutputColumn {
        name: column.name,
        type_name: column.type_name,
        pg: column.pg,
        pivot_values: column.pivot_values,
    };
    columns.into_iter().map(named).collect()
}

async fn until_cancelled<T>(cancel: &CancelToken, work: impl Future<Output = tidalite_query::Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancel.reason().into()),
        done = work => Ok(done?),
    }
}

/// The tables of the database, and the concurrently running statements.
struct SessionCatalog {
    host: Arc<dyn Host>,
    shared: Arc<Shared>,
    frames: Arc<[Frame]>,
    session: Option<Arc<SessionContext>>,
}

impl std::fmt::Debug for SessionCatalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionCatalog").finish_non_exhaustive()
    }
}

impl Catalog for SessionCatalog {
    fn table_names(&self) -> Vec<String> {
        self.host.table_names()
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        self.host.snapshots(names)
    }

    fn table_metrics(&self) -> Vec<TableMetrics> {
        self.host.table_metrics()
    }

    fn view_metrics(&self) -> Vec<ViewMetrics> {
        self.host.view_metrics()
    }

    fn views_over(&self, base: &TableSnapshot) -> Vec<OverView> {
        self.host.views_over(base)
    }

    fn session(&self) -> Arc<SessionContext> {
        self.session.clone().unwrap_or_default()
    }

    fn statement_statistics(&self) -> Vec<StatementStatistics> {
        self.shared.statistics.read()
    }

    fn frame(&self, name: &str) -> Option<Frame> {
        self.frames.iter().find(|frame| same_name(&frame.name, name)).cloned()
    }

    fn activity(&self) -> Vec<ActivityEntry> {
        let running = self.shared.running.list().into_iter();
        running
            .filter(|a| a.client != WATCHDOG)
            .map(|a| ActivityEntry {
                id: a.id,
                client: a.client,
                sql: a.sql,
                started: a.started,
                rows: a.rows,
                is_queued: a.is_queued,
            })
            .collect()
    }
}

impl From<tidalite_query::Error> for Error {
    fn from(error: tidalite_query::Error) -> Error {
        let mut out = Error::new(error.kind(), error.to_string());
        out.position = error.position;
        out.hint = error.hint;
        out.code = error.code;
        out
    }
}

/// Adds a position to an error of the writer, which knows only names: the first quoted name of its message.
fn placed(mut error: Error, sql: &str) -> Error {
    if error.position.is_none()
        && let Some(name) = error.message.split('"').nth(1).filter(|name| !name.is_empty())
    {
        error.position = tidalite_query::position_of_name(sql, name);
    }
    error
}
