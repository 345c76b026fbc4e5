//! Joins that can make far more rows than they read: they stop soon after the statement is cancelled, let others run
//! meanwhile, and give rows on in batches of some size.
//!
//! The stock operators look for a token only where they read, and a join of two tables can read a batch and then be busy
//! with it for hours. So the condition of such a join asks the token ([`Watched`]), and so does what takes its rows
//! ([`Paced`]). The keys of a hash join and of a sort ([`StoppableSort`]) check the token as well: both collect their whole
//! input before they work on it. Meanwhile another thread runs the other tasks of the thread. A cross join emits a batch for
//! each row of one side; the batches are coalesced, because operators above that inspect all rows they hold for each batch
//! would take quadratic time.

use super::compact::compacted;
use crate::CancelToken;
use crate::engine::planning_of;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a join may keep others from running.
const TURN: Duration = Duration::from_millis(20);
/// The first rows of an order are found in a heap, which cannot spill. More rows than this are sorted with all others.
const TOP_ROWS_MAX: usize = 1 << 20;
/// Batches given on before others may run.
const BATCHES: usize = 16;

thread_local! {
    /// True on threads of the engine. Only there another thread can take over the other tasks of a blocked thread.
    static IS_OF_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as one of the engine.
pub(crate) fn begin_thread() {
    IS_OF_ENGINE.set(true);
}

/// Does work that may take long; the other tasks of the thread run on another thread meanwhile.
fn letting_others_run<T>(work: impl FnOnce() -> T) -> T {
    if IS_OF_ENGINE.get() { tokio::task::block_in_place(work) } else { work() }
}

/// Puts [`Paced`] above joins and [`Watched`] around their conditions.
#[derive(Debug)]
pub(crate) struct PacesJoins;

impl PhysicalOptimizerRule for PacesJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(cancel) = planning_of(config) else { return Ok(plan) };
        plan.transform_up(|node| {
            let coalesces = node.downcast_ref::<CrossJoinExec>().is_some();
            let watched: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let filter = join.filter().map(|filter| watched(filter, &cancel));
                Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?)
            } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                let filter = join.filter().map(|filter| watched(filter, &cancel));
                // All batches of the build side are hashed at once, each by these keys.
                let key = |key: &Arc<dyn PhysicalExpr>| Arc::new(Watched::new(key.clone(), cancel.clone())) as Arc<_>;
                let keys = join.on().iter().map(|(build, probe)| (key(build), probe.clone())).collect();
                Arc::new(join.builder().with_on(keys).with_filter(filter).build()?)
            } else if let Some(sort) = node.downcast_ref::<SortExec>().filter(|sort| !is_top(sort)) {
                let sorted: Arc<dyn ExecutionPlan> = Arc::new(StoppableSort::try_new(sort, sort.input(), &cancel)?);
                return Ok(Transformed::yes(match sort.fetch() {
                    Some(rows) => Arc::new(LocalLimitExec::new(sorted, rows)),
                    None => sorted,
                }));
            } else if coalesces || node.downcast_ref::<UnnestExec>().is_some() {
                node.clone()
            } else {
                return Ok(Transformed::no(node));
            };
            let properties = node.properties().clone();
            Ok(Transformed::yes(
                Arc::new(Paced { input: watched, properties, coalesces, cancel: cancel.clone() }) as Arc<_>
            ))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "PacesJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns true if a sort keeps few enough rows to hold them in a heap.
fn is_top(sort: &SortExec) -> bool {
    sort.fetch().is_some_and(|rows| rows <= TOP_ROWS_MAX)
}

fn watched(filter: &JoinFilter, cancel: &CancelToken) -> JoinFilter {
    let condition = Watched::new(filter.expression().clone(), cancel.clone());
    JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), filter.schema().clone())
}

/// A condition that fails once the statement is cancelled.
#[derive(Debug)]
struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    cancel: CancelToken,
    began: Instant,
    /// When others were let run, in milliseconds since it began.
    let_run: AtomicU64,
    /// False where others run meanwhile anyway.
    yields: bool,
}

impl Watched {
    fn new(condition: Arc<dyn PhysicalExpr>, cancel: CancelToken) -> Watched {
        Watched { condition, cancel, began: Instant::now(), let_run: AtomicU64::new(0), yields: true }
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancel.check()?;
        if !self.yields {
            return self.condition.evaluate(batch);
        }
        let now = self.began.elapsed().as_millis() as u64;
        if now.saturating_sub(self.let_run.load(Ordering::Relaxed)) < TURN.as_millis() as u64 {
            return self.condition.evaluate(batch);
        }
        self.let_run.store(now, Ordering::Relaxed);
        letting_others_run(|| self.condition.evaluate(batch))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(condition) => {
                Ok(Arc::new(Watched { yields: self.yields, ..Watched::new(condition, self.cancel.clone()) }))
            }
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

#[derive(Clone, Debug)]
struct Paced {
    input: Arc<dyn ExecutionPlan>,
    /// Properties of the join before its expressions were replaced; the plan was made by them.
    properties: Arc<PlanProperties>,
    /// True if small batches are coalesced to the batch size of the session.
    coalesces: bool,
    cancel: CancelToken,
}

/// Returns true for the operator that stands above joins.
pub(crate) fn is_paced(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<Paced>().is_some()
}

impl ExecutionPlan for Paced {
    fn name(&self) -> &'static str {
        "PacedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(Paced { input, ..self.as_ref().clone() })),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (schema, rows) = (self.schema(), context.session_config().batch_size());
        let pace = Pace {
            input: self.input.execute(partition, context)?,
            gathered: self.coalesces.then(|| BatchCoalescer::new(schema.clone(), rows)),
            cancel: self.cancel.clone(),
            batches: 0,
            has_ended: false,
        };
        let rows = futures::stream::try_unfold(pace, |mut pace| async move {
            let batch = pace.next().await?;
            Ok(batch.map(|batch| (batch, pace)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl DisplayAs for Paced {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacedExec")
    }
}

/// A sort that stops when the statement is cancelled. The stock sort starts a task for each part of its input, thousands of
/// them, and a cancelled statement would wait for all of them. Each sorts by expressions that fail then.
#[derive(Debug)]
struct StoppableSort {
    /// The planned sort, for properties and EXPLAIN; it is not run.
    planned: SortExec,
    run: SortExec,
    cancel: CancelToken,
}

impl StoppableSort {
    fn try_new(sort: &SortExec, input: &Arc<dyn ExecutionPlan>, cancel: &CancelToken) -> Result<StoppableSort> {
        let key = |key: &PhysicalSortExpr| {
            let expr = Arc::new(Watched { yields: false, ..Watched::new(key.expr.clone(), cancel.clone()) });
            PhysicalSortExpr::new(expr, key.options)
        };
        let keys = LexOrdering::new(sort.expr().iter().map(key));
        let keys = keys.ok_or_else(|| crate::Error::internal("a sort without keys"))?;
        let by = |keys: LexOrdering| {
            SortExec::new(keys, input.clone()).with_preserve_partitioning(sort.preserve_partitioning())
        };
        Ok(StoppableSort { planned: by(sort.expr().clone()), run: by(keys), cancel: cancel.clone() })
    }
}

impl ExecutionPlan for StoppableSort {
    fn name(&self) -> &'static str {
        "SortExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.planned.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.planned.children()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(StoppableSort::try_new(&self.planned, &input, &self.cancel)?)),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let sorted = self.run.execute(partition, context)?;
        let schema = sorted.schema();
        let sorted = sorted.map(|batch| batch.map(compacted));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.run.metrics()
    }
}

impl DisplayAs for StoppableSort {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.planned.fmt_as(form, f)
    }
}

struct Pace {
    input: SendableRecordBatchStream,
    gathered: Option<BatchCoalescer>,
    cancel: CancelToken,
    batches: usize,
    has_ended: bool,
}

impl Pace {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(whole) = self.gathered.as_mut().and_then(BatchCoalescer::next_completed_batch) {
                return Ok(Some(whole));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.cancel.check()?;
            self.batches += 1;
            if self.batches.is_multiple_of(BATCHES) {
                tokio::task::yield_now().await;
            }
            let batch = self.input.next().await.transpose()?;
            self.has_ended = batch.is_none();
            match (batch, &mut self.gathered) {
                (Some(batch), None) => return Ok(Some(batch)),
                (Some(batch), Some(gathered)) => gathered.push_batch(batch)?,
                (None, Some(gathered)) => gathered.finish_buffered_batch()?,
                (None, None) => return Ok(None),
            }
        }
    }
}
