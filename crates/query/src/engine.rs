//! Plans and runs queries, on threads of its own.
//!
//! In: a parsed query and the catalog to see. Out: a stream of record batches that does its work only as it is
//! read, some hundred kilobytes ahead. Dropping the stream, or its token, stops the work within a block. A panic inside an
//! operator ends that query with an error and nothing else.

mod admission;
mod again;
mod ahead;
mod among;
mod answers;
mod bound;
mod conflicts;
mod describe;
mod explain;
mod files;
mod globs;
mod lifted;
mod logical;
mod memory;
mod near;
mod operators;
mod parquet;
mod pivot_values;
mod planners;
mod plans;
mod sampled;
pub mod spill;
mod stream;
mod views;
mod written;

pub use admission::AdmissionCounts;
pub use conflicts::Conflicting;
pub use describe::Described;
pub use lifted::{Lifted, lifted};
pub use logical::FrontEndCounts;
#[cfg(test)]
pub(crate) use memory::accounted;
pub(crate) use memory::{check_current, current_memory_limit};
pub(crate) use planners::planning_of;
pub use views::{Bucketing, MaterializedShape, Part, local_micros};

use self::memory::{Accounted, StatementPool};
use self::stream::{drive, rows};
use crate::binder::dml;
use crate::exec::in_order::ReadAhead;
use crate::exec::sliced::batch_rows;
use crate::functions::{self, partitions};
use crate::names::{Words, nearest};
use crate::scan::exec::ROWS_NEAR;
use crate::scan::several::Compiles;
use crate::scan::table::NativeTable;
use crate::statement::{Name, Partitions, Query};
use crate::tables::{CATALOG, SCHEMA};
use crate::{CancelToken, Catalog, Error, FileAccess, Result, dialect, door, plan};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tidalite_kernels::{ask_for_long_turns, lower_priority};
use tidalite_storage::TableSnapshot;
use tidalite_types::pg_type::PgType;
use tidalite_types::{ColumnType, ErrorKind};

/// At least so many; they compute the rows of small queries, see [`near`].
const CONTROL_THREADS_MIN: usize = 4;
/// At least so many statements are planned at a time.
const PLANNING_THREADS_MIN: usize = 2;
/// Half of the share of a thread of normal priority, when all want to run. Beside 16 heavy queries on two busy cores, the
/// 99th percentile of small statements fell from 59 ms to 40 ms, and their throughput rose by half.
const QUERY_NICENESS: i32 = 3;
/// Planning recurses with the depth of a statement; only touched pages of a stack cost memory.
const STACK_BYTES: usize = 64 << 20;

#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub threads: usize,
    /// Memory for one query's operators. What can spills to files past it, the rest fails the query.
    pub query_memory_bytes: usize,
    /// Whether queries may read files of this machine and URLs.
    pub reads_files: bool,
    /// Which files and URLs.
    pub access: FileAccess,
    /// Whether operators of ours take the place of the general ones where they can.
    pub fast_operators: bool,
    /// Whether long conditions over many rows become machine code; not without the operators of ours.
    pub compiles: bool,
    /// Whether materialized views answer queries on their bases, unless a statement says otherwise.
    pub uses_views: bool,
    /// True if the binder plans the queries that it supports.
    pub uses_binder: bool,
    /// Where spilled files go; `None` for the system's folder for temporary files.
    pub spill_folder: Option<PathBuf>,
    /// Bytes of spilled files of all queries.
    pub spill_bytes_max: u64,
    /// Heavy queries that run at the same time; the others wait.
    pub running_max: usize,
    /// Heavy queries that wait; the others are refused.
    pub queued_max: usize,
}

/// Made once for a database.
pub struct Engine {
    /// Runs operators. One of them can keep a thread for seconds.
    runtime: Option<tokio::runtime::Runtime>,
    /// Understands and plans statements, which can keep a thread, too.
    planning: Option<tokio::runtime::Runtime>,
    /// Plans short statements, which do not wait for long ones.
    planning_short: Option<tokio::runtime::Runtime>,
    /// Runs what must not wait for either: timeouts, cancelling, looking at what runs.
    control: Option<tokio::runtime::Runtime>,
    /// Functions, rules and settings that all queries share.
    base: SessionState,
    /// The same without the names of functions, which only planning of texts looks up: copies of their lists take longer
    /// than operators are chosen in.
    bare: SessionState,
    environment: Arc<RuntimeEnv>,
    gate: Arc<admission::Gate>,
    query_memory_bytes: usize,
    reads_files: bool,
    access: FileAccess,
    fast_operators: bool,
    uses_views: bool,
    uses_binder: bool,
    front_end: logical::Counts,
    definitions: answers::Definitions,
    plans: plans::Plans,
    /// What is done to operators after the stock rules.
    last_rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    pub name: String,
    /// SQL name of the type.
    pub type_name: String,
    /// The type of ours, when values of the column can be stored.
    pub column_type: Option<ColumnType>,
    /// The column description for clients of PostgreSQL.
    pub pg: PgColumn,
    /// The values in the name that sub-queries of a PIVOT returned during planning.
    pub pivot_values: Option<String>,
}

/// The description of a column for clients of PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PgColumn {
    /// The PostgreSQL type of the values, where it differs from that of their Arrow type.
    pub pg_type: Option<PgType>,
    /// The numbers in `pg_class` and `pg_attribute`, if the value is an unchanged table column.
    pub origin: Option<(u32, i16)>,
}

pub struct QueryResult {
    pub columns: Vec<OutputColumn>,
    pub schema: SchemaRef,
    /// The designated timestamp of the table the rows come from, when it is among the columns as it is.
    pub timestamp: Option<usize>,
    pub stream: BoxStream<'static, Result<RecordBatch>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("query_memory_bytes", &self.query_memory_bytes).finish_non_exhaustive()
    }
}

/// Dropped where it must not block: queries still running are left to end on their own.
impl Drop for Engine {
    fn drop(&mut self) {
        let planning = [self.planning.take(), self.planning_short.take()];
        for runtime in [self.runtime.take(), self.control.take()].into_iter().chain(planning).flatten() {
            runtime.shutdown_background();
        }
    }
}

impl Engine {
    pub fn new(config: &EngineConfig) -> Result<Arc<Engine>> {
        functions::prepare();
        dialect::prepare();
        memory::inherit_accounting();
        let runtime = threads("query", config.threads, give_way)?;
        let control = threads("query-control", config.threads.max(CONTROL_THREADS_MIN), || {})?;
        let planning = threads("query-plan", config.threads.max(PLANNING_THREADS_MIN), || {})?;
        let planning_short = threads("query-plan-short", config.threads.max(PLANNING_THREADS_MIN), || {})?;
        let folder = config.spill_folder.clone().unwrap_or_else(std::env::temp_dir);
        let spills = Arc::new(spill::Spills::new(folder, config.spill_bytes_max));
        let disk = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(spill::Factory(spills)));
        let environment = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc()?;
        let base = SessionStateBuilder::new()
            .with_config(settings(config))
            .with_runtime_env(environment.clone())
            .with_expr_planners(vec![Arc::new(plan::Subscripts), Arc::new(plan::TimeParts), Arc::new(plan::ArrayTexts)])
            .with_default_features()
            .with_type_planner(Arc::new(dialect::SqlTypes))
            .with_analyzer_rule(Arc::new(crate::plan::Settled))
            .with_optimizer_rules(planners::optimizer_rules(config.fast_operators))
            .with_query_planner(Arc::new(crate::plan::Planner))
            .with_physical_optimizer_rules(stock_rules())
            .build();
        let mut base = base;
        datafusion::execution::FunctionRegistry::register_expr_planner(&mut base, Arc::new(plan::Operators))?;
        for function in functions::scalars() {
            datafusion::execution::FunctionRegistry::register_udf(&mut base, function)?;
        }
        for function in functions::window_functions() {
            datafusion::execution::FunctionRegistry::register_udwf(&mut base, function)?;
        }
        for function in functions::aggregates() {
            datafusion::execution::FunctionRegistry::register_udaf(&mut base, function)?;
        }
        for function in functions::shifts::functions() {
            datafusion::execution::FunctionRegistry::register_udwf(&mut base, function)?;
        }
        let aggregates: Vec<_> =
            base.aggregate_functions().iter().map(|(name, of)| (name.clone(), of.clone())).collect();
        for (name, of) in aggregates {
            for function in functions::excluding::functions(&name, &of) {
                datafusion::execution::FunctionRegistry::register_udwf(&mut base, Arc::new(function))?;
            }
        }
        let bare = SessionStateBuilder::new_from_existing(base.clone())
            .with_scalar_functions(Vec::new())
            .with_aggregate_functions(Vec::new())
            .with_window_functions(Vec::new())
            .build();
        Ok(Arc::new(Engine {
            runtime: Some(runtime),
            planning: Some(planning),
            planning_short: Some(planning_short),
            control: Some(control),
            base,
            bare,
            environment,
            gate: admission::Gate::new(config.running_max, config.queued_max),
            query_memory_bytes: config.query_memory_bytes,
            reads_files: config.reads_files,
            access: config.access.clone(),
            fast_operators: config.fast_operators,
            uses_views: config.uses_views,
            uses_binder: config.uses_binder,
            front_end: logical::Counts::default(),
            definitions: answers::Definitions::default(),
            plans: plans::Plans::default(),
            last_rules: last_rules(config.fast_operators),
        }))
    }

    /// Returns the numbers of heavy queries that run, wait and were refused.
    #[must_use]
    pub fn admission(&self) -> AdmissionCounts {
        self.gate.counts()
    }

    /// Runs a statement on the engine's threads: its own part, not the operators of its query. A panic in it becomes
    /// an error.
    pub fn spawn<T: Send + 'static>(&self, future: BoxFuture<'static, T>) -> BoxFuture<'static, Result<T>> {
        let Some(control) = &self.control else {
            return futures::future::ready(Err(Error::new(ErrorKind::Unavailable, "the database is closed"))).boxed();
        };
        let task = Abort(control.spawn(future));
        async move { task.result().await }.boxed()
    }

    /// Plans a query; its rows come as the stream is read. Meant to be called on the engine's threads.
    pub fn query<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        query: Query,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        self.query_kept(catalog, query, "", cancel)
    }

    /// As `query`, and keeps the plan for [`Engine::known`], by the text of the statement with the values of its
    /// parameters; not when that is empty.
    pub fn query_kept<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        query: Query,
        text: &'a str,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let planned = self.plan(&catalog, &query, &[], text, &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }

    /// The physical plan as text, a line a row; with `is_analyze` the query is run first and its counts shown.
    pub fn explain<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        query: Query,
        is_analyze: bool,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let started = Instant::now();
            let planned = self.plan(&catalog, &query, &[], "", &cancel).await?;
            let physical = planned.physical.clone();
            if is_analyze {
                let (planned_in, started) = (started.elapsed(), Instant::now());
                let (mut rows, mut count) = (self.start(planned, &query.words, cancel)?.stream, 0);
                while let Some(batch) = rows.next().await {
                    count += batch?.num_rows();
                }
                let total = format!("total: {count} rows in {:.1?}, planned in {planned_in:.1?}", started.elapsed());
                return lines(&(explain::text(physical.as_ref(), true) + &total));
            }
            lines(&explain::text(physical.as_ref(), false))
        }
        .boxed()
    }

    /// The rows of one table that a query of ours names, each by its address in `table` (see [`crate::scan::read`]),
    /// with what else it asks for and `columns`.
    pub fn addressed<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        table: Arc<TableSnapshot>,
        name: &'a str,
        query: &'a Query,
        columns: &'a [&'a str],
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            dml::check_values(query, &|name| self.base.aggregate_functions().contains_key(name))?;
            let query = dml::with_columns(query, columns);
            let own: Arc<dyn TableProvider> = Arc::new(NativeTable::addressed(table).fast(self.fast_operators));
            let planned = self.plan(&catalog, &query, &[(name, own)], "", &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }

    /// The starts of the partitions of `table` that ALTER TABLE names.
    pub fn partitions<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        table: &'a str,
        which: &'a Partitions,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Vec<i64>>> {
        async move {
            let snapshot = catalog.snapshots(&[table]).pop().flatten().ok_or_else(|| Error::table_not_found(table))?;
            match which {
                Partitions::List(names) => names.iter().map(|name| partition_named(&snapshot, name)).collect(),
                Partitions::Where(predicate, words) => {
                    let starts = self.partitions_where(&catalog, &snapshot, predicate, words, cancel).await;
                    starts.map_err(|e| placed(e, words, &catalog))
                }
            }
        }
        .boxed()
    }

    /// Asks the predicate of a table that has one row for each partition: the designated timestamp at its start.
    async fn partitions_where(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        snapshot: &TableSnapshot,
        predicate: &ast::Expr,
        words: &Arc<crate::names::Words>,
        cancel: &CancelToken,
    ) -> Result<Vec<i64>> {
        let Some((column, unit)) = snapshot.schema.timestamp() else {
            return Err(Error::invalid(format!(
                "table \"{}\" has no designated timestamp and so no partitions to choose from",
                snapshot.schema.name
            )));
        };
        let starts: Vec<i64> = partitions(snapshot).into_keys().collect();
        let values: ArrayRef = Arc::new(datafusion::arrow::array::Int64Array::from(starts));
        let times = datafusion::arrow::compute::cast(&values, &DataType::Timestamp(door::arrow_unit(unit), None))
            .map_err(|e| Error::internal(e.to_string()))?;
        let schema = Arc::new(Schema::new(vec![
            door::named(&Field::new("", times.data_type().clone(), false), &column.name),
            Field::new("__start", DataType::Int64, false),
        ]));
        let rows =
            RecordBatch::try_new(schema.clone(), vec![times, values]).map_err(|e| Error::internal(e.to_string()))?;
        let table: Arc<dyn TableProvider> = Arc::new(MemTable::try_new(schema, vec![vec![rows]])?);
        let mut query = dialect::parse_template("SELECT __start FROM __partitions WHERE true")?;
        if let Some(parsed) = &mut query.ast
            && let ast::SetExpr::Select(select) = parsed.body.as_mut()
        {
            select.selection = Some(predicate.clone());
        }
        query.words = words.clone();
        let planned = self.plan(catalog, &query, &[("__partitions", table)], "", cancel).await?;
        let mut stream = self.start(planned, &query.words, cancel.clone())?.stream;
        let mut out = Vec::new();
        while let Some(batch) = stream.next().await {
            out.extend_from_slice(batch?.column(0).as_primitive::<Int64Type>().values());
        }
        Ok(out)
    }

    /// The shared state with what is this query's own: its memory, its clock, its functions over the catalog.
    fn state(&self, catalog: &Arc<dyn Catalog>, cancel: &CancelToken) -> SessionState {
        let mut state = stoppable(&self.base, cancel);
        functions::register_tables(&mut state, catalog);
        let now = state.execution_props().query_execution_start_time.unwrap_or_default();
        let registered = state.register_relation_planner(Arc::new(plan::TimeRelations { now }));
        debug_assert!(registered.is_ok(), "any number of planners can be registered");
        state
    }

    /// Plans a query on the threads for that. `text` is what the plan is kept by, empty if it is not.
    fn plan<'a>(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        own: &[(&str, Arc<dyn TableProvider>)],
        text: &str,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Planned>> {
        let (engine, state, length) = (self.clone(), self.state(catalog, cancel), planners::Length::of(query));
        let (catalog, query, text) = (catalog.clone(), query.clone(), text.to_owned());
        let own: Vec<(String, Arc<dyn TableProvider>)> =
            own.iter().map(|(name, table)| ((*name).to_owned(), table.clone())).collect();
        let work = async move {
            let own: Vec<_> = own.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
            let planned = engine.plan_unplaced(state, &catalog, &query, &own, &text).await;
            planned.map_err(|error| placed(error, &query.words, &catalog))
        };
        self.planned(length, cancel, work.boxed())
    }

    async fn plan_unplaced(
        self: &Arc<Self>,
        state: SessionState,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        own: &[(&str, Arc<dyn TableProvider>)],
        text: &str,
    ) -> Result<Planned> {
        let (logical, with_tables, about) = self.logical(&state, catalog, query, own).await?;
        let schema = logical.schema().clone();
        let logical = with_tables.optimize(&logical)?;
        let is_about_system = !about.names_any && query.ast.as_deref().is_some_and(functions::is_about_system);
        let logical_schema: SchemaRef = Arc::new(settled_schema(schema.as_arrow(), logical.schema().as_arrow()));
        let answered = self.answered(logical.clone(), &state, catalog, query).await?;
        let stock = self.physical(&answered, &with_tables).await?;
        if !text.is_empty() && own.is_empty() && about.names_only_tables && !is_about_system {
            self.keep(text, query, (&logical, &stock), &logical_schema);
        }
        let physical = self.finished(stock, with_tables.config_options())?;
        Ok(Planned { config: state.config().clone(), logical_schema, is_about_system, physical })
    }

    /// Settings for operators that need no more of a query than its token.
    fn config(&self, cancel: &CancelToken) -> SessionConfig {
        self.base.config().clone().with_extension(Arc::new(cancel.clone()))
    }

    /// Operators for an optimised plan, as the stock rules leave them.
    async fn physical(&self, logical: &LogicalPlan, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let hidden = plan::without_compared_truths(logical)?;
        let logical = hidden.as_ref().unwrap_or(logical);
        let planned = self.physical_once(logical, state).await;
        let Err(mut error) = planned else { return planned };
        let mut logical = logical.clone();
        let (order, rows) = ("does not satisfy order requirements", "Selectivity is out of limit");
        for (what, hidden) in [
            (rows, plan::without_bounds as fn(LogicalPlan) -> _),
            (order, plan::without_equalities),
            (order, plan::keys_as_columns),
        ] {
            if !error.to_string().contains(what) {
                continue;
            }
            let Some(again) = hidden(logical.clone())? else { continue };
            logical = again;
            match self.physical_once(&logical, state).await {
                Err(e) => error = e,
                planned => return planned,
            }
        }
        Err(error)
    }

    async fn physical_once(&self, logical: &LogicalPlan, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let grouped = if self.fast_operators { plan::grouped(logical.clone())? } else { logical.clone() };
        Ok(state.query_planner().create_physical_plan(&grouped, state).await?)
    }

    /// Our own rules, over what the stock ones leave.
    fn finished(&self, stock: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.last_rules.iter().try_fold(stock, |plan, rule| rule.optimize(plan, config))?)
    }

    fn start(&self, planned: Planned, words: &Arc<Words>, cancel: CancelToken) -> Result<QueryResult> {
        self.start_by(Caller::Engine, planned, words, cancel)
    }

    fn start_by(
        &self,
        caller: Caller,
        planned: Planned,
        words: &Arc<Words>,
        cancel: CancelToken,
    ) -> Result<QueryResult> {
        let physical = planned.physical;
        let fields = planned.logical_schema;
        let columns = distinct(fields.fields().iter().map(|field| output_column(field, words)).collect());
        let timestamp = fields.fields().iter().position(|field| door::is_designated(field));
        let schema = named_schema(&physical.schema(), &columns);
        let environment = RuntimeEnv {
            memory_pool: Arc::new(StatementPool::new(self.query_memory_bytes, cancel.clone())),
            ..RuntimeEnv::clone(&self.environment)
        };
        let is_near = near::work(&physical).is_some_and(|rows| rows <= caller.rows_near());
        let config = match batch_rows(&physical).filter(|_| !is_near) {
            Some(rows) => planned.config.with_batch_size(rows),
            None => planned.config,
        };
        let context = datafusion::execution::TaskContext::new(
            None,
            self.base.session_id().to_owned(),
            config,
            // The plan has its functions; copies of the lists by name took a tenth of a small query.
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::new(environment),
        );
        // Small queries do not wait for heavy ones.
        let is_small = is_near || near::is_small(&physical, planned.is_about_system);
        let (Some(runtime), Some(control)) = (if is_small { &self.control } else { &self.runtime }, &self.control)
        else {
            return Err(Error::new(ErrorKind::Unavailable, "the database is closed"));
        };
        cancel.limit_memory(self.query_memory_bytes);
        let mut ticket = if is_small { None } else { Some(self.gate.enter()?) };
        let (sender, receiver) = ahead::channel();
        let context = Arc::new(context);
        let drive = {
            let (schema, sender, cancel, words) = (schema.clone(), sender.clone(), cancel.clone(), words.clone());
            move |ticket| {
                let driven = drive(physical, context, schema, sender, cancel.clone(), words, ticket).map(Ok).boxed();
                Accounted::new(cancel, driven)
            }
        };
        if let Some(mut ticket) = ticket.take_if(|ticket| ticket.is_waiting()) {
            // The queue is not on the threads that running queries keep busy.
            let (runtime, cancelled) = (runtime.handle().clone(), cancel.clone());
            let waiting = async move {
                admission::wait(&mut ticket, &cancelled, sender.closed()).await?;
                drop(sender);
                Abort(runtime.spawn(drive(Some(ticket)))).result().await?
            };
            let task = Some(Abort(control.spawn(waiting)));
            return Ok(QueryResult { columns, schema, timestamp, stream: rows(receiver, task, cancel) });
        }
        drop(sender);
        let mut driven = drive(ticket);
        let is_done = is_near && {
            // What it begins besides runs where it would otherwise.
            let _entered = runtime.enter();
            (&mut driven).now_or_never().is_some()
        };
        let task = (!is_done).then(|| Abort(runtime.spawn(driven)));
        Ok(QueryResult { columns, schema, timestamp, stream: rows(receiver, task, cancel) })
    }
}

/// Whose thread starts a query.
#[derive(Clone, Copy, Debug)]
enum Caller {
    /// One for that.
    Engine,
    /// Any: that of a socket with other clients, or one of an application.
    Other,
}

impl Caller {
    /// The work, in rows that come out of scans, that is done on its thread: to hand it from thread to thread takes longer.
    fn rows_near(self) -> usize {
        match self {
            Caller::Engine => ROWS_NEAR,
            Caller::Other => ROWS_NEAR / 4,
        }
    }
}

struct Planned {
    config: SessionConfig,
    logical_schema: SchemaRef,
    /// Whether only the database itself is asked about: nothing to compute.
    is_about_system: bool,
    physical: Arc<dyn ExecutionPlan>,
}

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The stock rules, two of them kept to where they are sound.
fn stock_rules() -> Vec<Rule> {
    let sound = PhysicalOptimizer::new().rules.into_iter().flat_map(|rule| match rule.name() {
        "FilterPushdown" => vec![Arc::new(plan::FiltersOfFiles) as Rule],
        name if name.starts_with("FilterPushdown") => Vec::new(),
        "ProjectionPushdown" => vec![Arc::new(plan::FiltersApart) as Rule, rule],
        _ => vec![rule],
    });
    sound.collect()
}

/// Ours. They look at rows: at dictionaries, at sizes.
fn last_rules(fast_operators: bool) -> Vec<Rule> {
    let fast: [Rule; 8] = [
        Arc::new(plan::FirstRows),
        Arc::new(plan::MergedJoins),
        Arc::new(plan::MergedWindowJoins),
        Arc::new(plan::CodedKeys),
        Arc::new(plan::TotalsOfBlocks),
        Arc::new(plan::GroupsOfBlocks),
        Arc::new(plan::LatestFromEnd),
        Arc::new(plan::LimitedScans),
    ];
    let ours: [Rule; 6] = [
        Arc::new(plan::InOrderOfPieces),
        Arc::new(plan::TiesInOrder),
        Arc::new(crate::exec::held::HoldsRows),
        Arc::new(crate::exec::paced::PacesJoins),
        Arc::new(crate::exec::sliced::SliceWideRows),
        Arc::new(parquet::GuardsFiles),
    ];
    fast.into_iter().filter(|_| fast_operators).chain(ours).collect()
}

/// A copy of a state for one query.
fn stoppable(state: &SessionState, cancel: &CancelToken) -> SessionState {
    let mut state = state.clone();
    state.config_mut().set_extension(Arc::new(cancel.clone()));
    planners::told(&mut state, cancel);
    state.mark_start_execution();
    state
}

/// Threads of heavy queries let those of small queries, sockets and the log run first.
fn give_way() {
    lower_priority(QUERY_NICENESS);
    ask_for_long_turns();
}

fn threads(name: &str, count: usize, begin: fn()) -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(count.max(1)).thread_name(name).thread_stack_size(STACK_BYTES).enable_all();
    builder
        .on_thread_start(move || {
            crate::exec::paced::begin_thread();
            begin();
        })
        .build()
        .map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start the threads of queries: {e}")))
}

fn settings(config: &EngineConfig) -> SessionConfig {
    let (threads, compiles) = (config.threads, config.fast_operators && config.compiles);
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(threads.max(1));
    let options = config.options_mut();
    // Words are folded before they are parsed.
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.collect_spans = true;
    // A sub-query's order is the time of its rows to the clauses around it.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // Scans that come in order of time are merged, never sorted again.
    options.optimizer.prefer_existing_sort = true;
    // The rule names a column twice where a field of a value is selected: `SELECT id, s.a FROM read_parquet(…)`.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // It keeps groups by keys of which NaN is not equal to itself.
    options.optimizer.enable_topk_aggregation = false;
    // Fields keep the name their column was created with, which one of two ways to a type may lose.
    options.execution.skip_physical_aggregate_schema_check = true;
    let config = config.with_extension(Arc::new(ReadAhead::default()));
    if compiles { config.with_extension(Arc::new(Compiles)) } else { config }
}

/// A task that ends when nobody waits for it any more.
struct Abort<T>(tokio::task::JoinHandle<T>);

impl<T> Abort<T> {
    async fn result(mut self) -> Result<T> {
        (&mut self.0).await.map_err(|error| join_error(&error))
    }
}

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn join_error(error: &tokio::task::JoinError) -> Error {
    if error.is_cancelled() {
        return Error::new(ErrorKind::Unavailable, "the database is closing");
    }
    panicked()
}

fn panicked() -> Error {
    Error::internal("the query failed by a bug: it panicked; the log has the place")
}

fn output_column(field: &Field, words: &Words) -> OutputColumn {
    let name = words.spelling(field.name(), door::spelling(field)).to_owned();
    let pg = PgColumn { pg_type: door::sent_as(field), origin: door::origin(field) };
    let pivot_values = door::pivot_values(field).map(str::to_owned);
    OutputColumn { name, type_name: door::type_name(field), column_type: door::column_type(field), pg, pivot_values }
}

/// The second column of a name gets a number, as in QuestDB: `ts`, `ts1`.
fn distinct(columns: Vec<OutputColumn>) -> Vec<OutputColumn> {
    let names = plan::distinct_names(columns.iter().map(|c| c.name.as_str()));
    columns.into_iter().zip(names).map(|(column, name)| OutputColumn { name, ..column }).collect()
}

fn named_schema(schema: &SchemaRef, columns: &Vec<OutputColumn>) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| Arc::new(field.as_ref().clone().with_name(&column.name).with_nullable(true)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The fields as they were planned, with numbers of the types that they have come to: `CASE` of an INT and a LONG is a
/// LONG, which is known only once casts were put in.
fn settled_schema(planned: &Schema, settled: &Schema) -> Schema {
    let fields = planned.fields().iter().enumerate().map(|(at, field)| {
        let found = settled.fields().get(at).map(|field| field.data_type());
        match found.filter(|found| found.is_numeric() && field.data_type().is_numeric() && *found != field.data_type())
        {
            Some(found) => Arc::new(field.as_ref().clone().with_data_type(found.clone())),
            None => field.clone(),
        }
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// One text column, `QUERY PLAN`, of the lines of `text`.
fn lines(text: &str) -> Result<QueryResult> {
    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(text.lines()));
    let schema = Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8View, true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).map_err(|e| Error::internal(e.to_string()))?;
    let columns = vec![OutputColumn {
        name: "QUERY PLAN".to_owned(),
        type_name: "VARCHAR".to_owned(),
        column_type: Some(ColumnType::Varchar),
        pg: PgColumn::default(),
        pivot_values: None,
    }];
    Ok(QueryResult { columns, schema, timestamp: None, stream: futures::stream::iter([Ok(batch)]).boxed() })
}

/// The partition of a name as `SHOW PARTITIONS` lists it.
fn partition_named(snapshot: &TableSnapshot, name: &Name) -> Result<i64> {
    let schema = &snapshot.schema;
    let unit = schema.timestamp().map_or(tidalite_types::TimeUnit::Micros, |(_, unit)| unit);
    let found = partitions(snapshot)
        .into_keys()
        .find(|lo| schema.partition_by.name(*lo, unit).eq_ignore_ascii_case(name.text.trim()));
    found.ok_or_else(|| {
        let message = format!("partition '{}' of table \"{}\" does not exist", name.text, schema.name);
        Error::new(ErrorKind::NotFound, message)
            .at(name.position)
            .with_hint("SHOW PARTITIONS FROM the table lists their names")
    })
}

/// Gives an error the place of what it is about, and the name that may have been meant.
fn placed(error: Error, words: &Words, catalog: &Arc<dyn Catalog>) -> Error {
    let mut error = placed_late(error, words);
    if error.hint.is_none()
        && error.kind() == ErrorKind::NotFound
        && error.to_string().starts_with("table ")
        && let Some(subject) = &error.subject
    {
        let names = catalog.table_names();
        if let Some(name) = nearest(subject, names.iter().map(String::as_str)) {
            error.hint = Some(format!("perhaps you meant \"{name}\""));
        }
    }
    error
}

fn placed_late(mut error: Error, words: &Words) -> Error {
    if error.position.is_none() {
        error.position = words.place_of_error(&error);
    }
    match words.quoted_at(error.position) {
        Some(written) => error.of_quoted_column(written),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_statements_error() {
        let config = EngineConfig {
            threads: 1,
            query_memory_bytes: 1 << 20,
            reads_files: false,
            fast_operators: true,
            compiles: true,
            uses_views: false,
            uses_binder: true,
            access: FileAccess::unrestricted(),
            spill_folder: None,
            spill_bytes_max: 100 << 30,
            running_max: 1,
            queued_max: 1,
        };
        let engine = Engine::new(&config).expect("threads start");
        let panicked = futures::executor::block_on(engine.spawn(async { panic!("a bug") }.boxed()));
        let () = match panicked {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Internal),
            Ok(()) => panic!("the panic was lost"),
        };
        assert_eq!(futures::executor::block_on(engine.spawn(async { 1 }.boxed())).expect("the engine goes on"), 1);
    }
}
