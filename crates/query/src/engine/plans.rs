//! Plans of queries that were asked before: the same text, over tables whose columns are as they were, is not understood
//! and optimised again. With parameters, the plan is one for all their values ([`super::bound`]) where that can be, else
//! of the same values only.
//!
//! What is kept is the optimised logical plan with its tables taken out ([`Unpinned`]), so that it holds no version of a
//! table back; they are put in again as they are now, and operators are chosen for them. Queries whose plan depends on
//! more than that are not kept: on the time, on chance, on views, files, or what is asked of the database itself.

use super::bound::Parameters;
use super::operators::Operators;
use super::{Caller, Engine, Planned, QueryResult};
use crate::Parameter;
use crate::names::Words;
use crate::scan::spec::Order;
use crate::scan::table::NativeTable;
use crate::statement::Query;
use crate::{CancelToken, Catalog, Error, Result, plan};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DFResult, ScalarValue};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_storage::TableSnapshot;
use tidalite_types::{TableId, TableSchema};

/// How many plans are kept.
const PLANS_MAX: usize = 256;
/// A longer text is not worth keeping: most of them are lists of values.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Of a longer text operators are not looked after on any thread: what it says may lie deeper than its stack.
const TEXT_BYTES_AT_ONCE: usize = 1 << 10;

/// Words with which the same text may mean something else the next time, and what such words begin with.
const CHANGING: &[&str] = &[
    "now",
    "today",
    "yesterday",
    "tomorrow",
    "sysdate",
    "systimestamp",
    "localtime",
    "localtimestamp",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_catalog",
    "current_database",
    "current_setting",
    "random",
    "uuid",
    "explain",
    "pivot",
];
const CHANGING_BEGIN: &str = "rnd_";

#[derive(Debug, Default)]
pub(super) struct Plans(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    plans: HashMap<String, Entry>,
    /// Counts uses; the plan used least lately goes first.
    clock: u64,
    used: HashMap<String, u64>,
}

#[derive(Clone, Debug)]
enum Entry {
    /// A statement with parameters that was run once: the next time a plan for all values is made.
    Met,
    /// There is no such plan.
    None,
    Plan(Arc<Plan>),
}

#[derive(Debug)]
pub(super) struct Plan {
    pub query: Query,
    /// Optimised.
    pub logical: LogicalPlan,
    /// Of the rows, before it was optimised.
    pub schema: SchemaRef,
    pub parameters: Parameters,
    pub operators: Operators,
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, text: &str) -> Option<Arc<Plan>> {
        let mut kept = self.lock();
        let Entry::Plan(plan) = kept.plans.get(text)?.clone() else { return None };
        kept.clock += 1;
        let now = kept.clock;
        if let Some(used) = kept.used.get_mut(text) {
            *used = now;
        }
        Some(plan)
    }

    /// Whether a statement with parameters is met for the second time.
    pub(super) fn meet(&self, text: &str) -> bool {
        if let Some(entry) = self.lock().plans.get(text) {
            return matches!(entry, Entry::Met);
        }
        self.enter(text.to_owned(), Entry::Met);
        false
    }

    pub(super) fn put(&self, text: String, plan: Option<Plan>) {
        self.enter(text, plan.map_or(Entry::None, |plan| Entry::Plan(Arc::new(plan))));
    }

    fn enter(&self, text: String, entry: Entry) {
        let mut kept = self.lock();
        if kept.plans.len() >= PLANS_MAX && !kept.plans.contains_key(&text) {
            let oldest = kept.used.iter().min_by_key(|(_, used)| **used).map(|(text, _)| text.clone());
            if let Some(oldest) = oldest {
                kept.plans.remove(&oldest);
                kept.used.remove(&oldest);
            }
        }
        kept.clock += 1;
        let now = kept.clock;
        kept.used.insert(text.clone(), now);
        kept.plans.insert(text, entry);
    }

    fn forget(&self, text: &str) {
        let mut kept = self.lock();
        kept.plans.remove(text);
        kept.used.remove(text);
    }
}

/// Whether the plan of a text may be kept. `text` is the statement and the values of its parameters.
pub(super) fn is_lasting(text: &str) -> bool {
    if text.len() > TEXT_BYTES_MAX {
        return false;
    }
    let folded = text.to_ascii_lowercase();
    let is_changing = |word: &str| CHANGING.contains(&word) || word.starts_with(CHANGING_BEGIN);
    if folded.contains('$') || folded.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_changing) {
        return false;
    }
    // Functions of nothing; what there is to count is not one.
    let mut before = "";
    for part in folded.split('(') {
        if part.trim_start().starts_with(')') && !before.trim_end().ends_with("count") {
            return false;
        }
        before = part;
    }
    true
}

impl Engine {
    /// The rows of a query `sql` whose plan is kept as `text`, if that still holds and takes these values.
    pub fn known<'a>(
        self: &'a Arc<Self>,
        catalog: &'a Arc<dyn Catalog>,
        (text, sql): (&'a str, &'a str),
        values: &'a [Parameter],
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Option<Result<QueryResult>>> {
        async move {
            let plan = self.plans.get(text)?;
            let bound = plan.parameters.constants(values)?;
            // Places of errors are those of this text.
            let words = plan.query.words.of_text(sql);
            if let Some(made) = self.operators(&plan, catalog, &bound) {
                return Some(self.started(Caller::Engine, &plan, made, (&words, catalog), cancel));
            }
            let Some(logical) = pinned(&plan.logical, catalog, &bound, self.fast_operators) else {
                self.plans.forget(text);
                return None;
            };
            if !bound.is_empty() && !super::bound::is_understood(&logical) {
                return None;
            }
            let query = Query { words: words.clone(), ..plan.query.clone() };
            let made = self.chosen(&plan, (logical, &bound), &query, catalog, cancel).await;
            Some(self.started(Caller::Engine, &plan, made, (&words, catalog), cancel))
        }
        .boxed()
    }

    /// As [`Engine::known`] on whatever thread asks, if that keeps it for a moment only: nothing is planned and no operators
    /// are chosen, and more than a few rows are left to the engine's threads. A panic is an error.
    pub fn known_at_once(
        &self,
        catalog: &Arc<dyn Catalog>,
        (text, sql): (&str, &str),
        values: &[Parameter],
        cancel: &CancelToken,
    ) -> Option<Result<QueryResult>> {
        if sql.len() > TEXT_BYTES_AT_ONCE {
            return None;
        }
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let plan = self.plans.get(text)?;
            let bound = plan.parameters.constants(values)?;
            let made = self.operators(&plan, catalog, &bound)?;
            let words = plan.query.words.of_text(sql);
            Some(self.started(Caller::Other, &plan, made, (&words, catalog), cancel))
        }));
        started.unwrap_or_else(|_| Some(Err(super::panicked())))
    }

    fn started(
        &self,
        caller: Caller,
        plan: &Plan,
        made: Result<Arc<dyn ExecutionPlan>>,
        (words, catalog): (&Arc<Words>, &Arc<dyn Catalog>),
        cancel: &CancelToken,
    ) -> Result<QueryResult> {
        let started = made.and_then(|physical| {
            let (config, logical_schema) = (self.config(cancel), plan.schema.clone());
            let planned = Planned { config, logical_schema, is_about_system: false, physical };
            self.start_by(caller, planned, words, cancel.clone())
        });
        started.map_err(|error| super::placed(error, words, catalog))
    }

    /// Chooses operators for a kept plan, with its tables and these values in it, and keeps them.
    async fn chosen(
        self: &Arc<Self>,
        plan: &Plan,
        (logical, values): (LogicalPlan, &[ScalarValue]),
        query: &Query,
        catalog: &Arc<dyn Catalog>,
        cancel: &CancelToken,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Whether a view is fresh is found out each time, and its definition may be planned for that.
        let asks_views = self.asks_views(query);
        let state = if asks_views { self.state(catalog, cancel) } else { super::stoppable(&self.bare, cancel) };
        let answered = self.answered(logical.clone(), &state, catalog, query).await?;
        let stock = self.physical(&answered, &state).await?;
        if !asks_views {
            plan.operators.keep(&plan.logical, &logical, values, &stock);
        }
        self.finished(stock, state.config_options())
    }

    /// Keeps a plan for the next time, if it can be used then, and the operators that the stock rules left of it.
    pub(super) fn keep(
        &self,
        text: &str,
        query: &Query,
        (pinned, stock): (&LogicalPlan, &Arc<dyn ExecutionPlan>),
        schema: &SchemaRef,
    ) {
        if is_lasting(text)
            && let Ok(Some(logical)) = unpinned(pinned)
        {
            let operators = Operators::default();
            if !self.asks_views(query) {
                operators.keep(&logical, pinned, &[], stock);
            }
            let (query, schema, parameters) = (query.clone(), schema.clone(), Parameters::default());
            self.plans.put(text.to_owned(), Some(Plan { query, logical, schema, parameters, operators }));
        }
    }
}

/// A table's place in a plan that is kept.
#[derive(Debug)]
pub(super) struct Unpinned {
    id: TableId,
    table: Arc<TableSchema>,
    schema: SchemaRef,
    order: Order,
}

impl Unpinned {
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Whether a table is the one that was planned for, with the same columns.
    pub fn is_of(&self, now: &TableSnapshot) -> bool {
        now.id == self.id && now.schema.columns == self.table.columns && now.schema.designated == self.table.designated
    }
}

#[async_trait]
impl TableProvider for Unpinned {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DFResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal(format!("table \"{}\" of a kept plan was not put in again", self.table.name)).into())
    }
}

/// Returns true if every function of a plan gives the same result for the same arguments at any time. A plan with a clock
/// or with chance in it must not be reused: the optimizer has put the value of the first run into it.
pub(super) fn is_immutable(plan: &LogicalPlan) -> DFResult<bool> {
    let mut is_immutable = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                let Expr::ScalarFunction(call) = expr else { return Ok(TreeNodeRecursion::Continue) };
                let is_stable = call.func.signature().volatility != Volatility::Immutable;
                if is_stable && !plan::is_fixed_interval(call) {
                    is_immutable = false;
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(is_immutable)
}

/// The plan without its tables; `None` when there is more in it than our tables and what is computed of them.
pub(super) fn unpinned(plan: &LogicalPlan) -> DFResult<Option<LogicalPlan>> {
    let mut is_ours = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            is_ours &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let done = plan.clone().transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let provider = source_as_provider(&scan.source)?;
        let Some(table) = provider.downcast_ref::<NativeTable>().filter(|table| table.is_plain()) else {
            is_ours = false;
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = provider_as_source(Arc::new(Unpinned {
            id: table.snapshot.id,
            table: table.snapshot.schema.clone(),
            schema: table.schema(),
            order: table.order(),
        }));
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok(is_ours.then_some(done.data))
}

/// The plan with its tables as they are now, all of one instant, and values for its parameters; `None` when a table is
/// another than it was.
fn pinned(
    plan: &LogicalPlan,
    catalog: &Arc<dyn Catalog>,
    values: &[ScalarValue],
    is_fast: bool,
) -> Option<LogicalPlan> {
    let mut names: Vec<String> = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = source_as_provider(&scan.source)?.downcast_ref::<Unpinned>()
        {
            names.push(table.table.name.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.ok()?;
    names.sort();
    names.dedup();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let found: HashMap<&str, _> = wanted.iter().copied().zip(catalog.snapshots(&wanted)).collect();
    let mut is_same = true;
    let done = plan.clone().transform_up_with_subqueries(|node| {
        let node = if values.is_empty() { node } else { super::bound::with_values(node, values)? };
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::yes(node)) };
        let provider = source_as_provider(&scan.source)?;
        let table = provider.downcast_ref::<Unpinned>();
        let now = table.and_then(|table| found.get(table.table.name.as_str()).cloned().flatten());
        let (Some(table), Some(now)) = (table, now) else {
            is_same = false;
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        is_same &= table.is_of(&now);
        scan.source = provider_as_source(Arc::new(NativeTable::new(now).ordered(table.order).fast(is_fast)));
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    done.ok().filter(|_| is_same).map(|done| done.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_is_not_kept() {
        for text in [
            "select * from t where ts > now()",
            "select count() from tables( )",
            "select rnd_int(1, 2, 0) from t",
            "select * from t where ts in '$today'",
            "select * from t where ts > 'Now'",
            "select CURRENT_DATE - ts from t",
        ] {
            assert!(!is_lasting(text), "{text}");
        }
        for text in [
            "SELECT count() FROM t WHERE ts IN '2024'",
            "select current_load, known, device_version from t where name = 'snow' and uuid4 = 'a'",
            "select f(x), count ( ) from t",
        ] {
            assert!(is_lasting(text), "{text}");
        }
    }
}
