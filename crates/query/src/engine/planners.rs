//! Where statements are understood and planned: on threads of their own, a bounded number, which whoever waits can leave.
//!
//! Planning cannot be stopped in the middle of a step of the planner. So a statement waits for it elsewhere, and is told
//! at once when it is cancelled or its time is over; between two steps ([`Stops`]) the planner then gives up. What a
//! statement may ask of one is bounded before ([`plan::size`](crate::plan)).

use super::memory::Accounted;
use super::{Abort, Engine};
use crate::statement::Query;
use crate::{CancelToken, Error, Parameter, Result, Statement, dialect, functions, plan};
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result as DFResult};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use std::any::Any;
use std::sync::Arc;
use tidalite_types::ErrorKind;

/// A shorter text is understood in less time than it takes to hand it over.
const SHORT_BYTES: usize = 4 << 10;
/// A text of at most this length is planned on the threads for short statements. The statements of people and of dashboards
/// are mostly shorter; planning one takes a few milliseconds.
const SHORT_PLAN_BYTES: usize = 256;
/// The same for queries about the system catalog, which tools write at length.
const SHORT_CATALOG_BYTES: usize = 8 << 10;

/// The expected time of planning, by the text of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Long,
}

impl Length {
    pub fn of(query: &Query) -> Length {
        let sql = &query.words.sql;
        // The length decides for most texts, without a visit of the tree.
        let is_short = Length::of_text(sql) == Length::Short
            || sql.len() <= SHORT_CATALOG_BYTES && query.ast.as_deref().is_some_and(functions::is_about_system);
        if is_short { Length::Short } else { Length::Long }
    }

    pub fn of_text(sql: &str) -> Length {
        if sql.len() <= SHORT_PLAN_BYTES { Length::Short } else { Length::Long }
    }
}

impl Engine {
    /// Understands one statement, with values for `$1`, `$2`, …
    ///
    /// # Errors
    /// As [`crate::parse_bound`], and when it is cancelled.
    pub fn parse<'a>(
        &'a self,
        sql: &str,
        values: &[Parameter],
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Statement>> {
        if sql.len() < SHORT_BYTES {
            return futures::future::ready(dialect::parse_bound(sql, values)).boxed();
        }
        let (sql, values) = (sql.to_owned(), values.to_vec());
        self.planned(Length::Long, cancel, async move { dialect::parse_bound(&sql, &values) }.boxed())
    }

    /// Does what plans; ready at once when it is cancelled.
    pub(super) fn planned<'a, T: Send + 'static>(
        &self,
        length: Length,
        cancel: &'a CancelToken,
        work: BoxFuture<'static, Result<T>>,
    ) -> BoxFuture<'a, Result<T>> {
        let planning = match length {
            Length::Short => &self.planning_short,
            Length::Long => &self.planning,
        };
        let Some(planning) = planning else {
            return futures::future::ready(Err(Error::new(ErrorKind::Unavailable, "the database is closed"))).boxed();
        };
        cancel.limit_memory(self.query_memory_bytes);
        let task = Abort(planning.spawn(Accounted::new(cancel.clone(), work)));
        async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(cancel.reason()),
                done = task.result().and_then(futures::future::ready) => done,
            }
        }
        .boxed()
    }
}

/// The token of the statement that is planned, where rules of the optimizer find it.
#[derive(Clone, Debug, Default)]
struct Planning(CancelToken);

impl ConfigExtension for Planning {
    const PREFIX: &'static str = "tidalite_planning";
}

impl ExtensionOptions for Planning {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> DFResult<()> {
        Err(DataFusionError::Configuration(format!("there is no setting {key}")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Has planning stop when the statement is cancelled.
pub(super) fn told(state: &mut SessionState, cancel: &CancelToken) {
    state.config_mut().options_mut().extensions.insert(Planning(cancel.clone()));
}

/// The token of the statement that is planned.
pub(crate) fn planning_of(config: &ConfigOptions) -> Option<CancelToken> {
    Some(config.extensions.get::<Planning>()?.0.clone())
}

/// A rule that changes nothing and fails once the statement is cancelled.
#[derive(Debug)]
struct Stops;

impl OptimizerRule for Stops {
    fn name(&self) -> &'static str {
        "stops_when_cancelled"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DFResult<Transformed<LogicalPlan>> {
        if let Some(cancel) = planning_of(&config.options()) {
            cancel.check()?;
        }
        Ok(Transformed::no(plan))
    }
}

/// A stock rule that gives up what it cannot make a plan of. The one that drops keys which hang on other keys names two
/// columns alike where one key is a cast of another, `GROUP BY d, CAST(d AS VARCHAR)`.
#[derive(Debug)]
struct Forgiven(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Forgiven {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DFResult<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        Ok(self.0.rewrite(plan.clone(), config).unwrap_or_else(|_| Transformed::no(plan)))
    }
}

/// The stock rule that makes two aggregations of one that counts distinct values, where our operator does not count them, or
/// several of it.
#[derive(Debug)]
struct LeavesDistinct(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for LeavesDistinct {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DFResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        if plan::counts_distinct(aggregate) {
            return Ok(Transformed::no(plan));
        }
        match plan::counts_apart(aggregate)? {
            Some(apart) => Ok(Transformed::yes(apart)),
            None => self.0.rewrite(plan, config),
        }
    }
}

/// The stock rules, with a look at the token before each, and ours; those for our operators where these are `fast`.
pub(super) fn optimizer_rules(fast: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    type Rule = Arc<dyn OptimizerRule + Send + Sync>;
    let each = |rule: Rule| {
        let before = match rule.name() {
            "decorrelate_lateral_join" => Some(Arc::new(plan::Unmarked) as Rule),
            "eliminate_cross_join" => Some(Arc::new(plan::FilterSpanningKeys) as Rule),
            "replace_distinct_aggregate" => Some(Arc::new(plan::DistinctGroups) as Rule),
            _ => None,
        };
        let rule = match rule.name() {
            "eliminate_group_by_constant" => Arc::new(Forgiven(rule)) as Rule,
            "push_down_filter" => Arc::new(plan::RemoveFalseFilters(rule)),
            "single_distinct_aggregation_to_group_by" if fast => Arc::new(LeavesDistinct(rule)),
            _ => rule,
        };
        before.into_iter().chain([Arc::new(Stops) as Rule, rule])
    };
    let last = [
        Arc::new(plan::NamedOnce) as Rule,
        Arc::new(plan::NameJoinKeys),
        Arc::new(crate::functions::stoppable::StopWindowAggregates),
    ];
    Optimizer::new().rules.into_iter().flat_map(each).chain(last).collect()
}
