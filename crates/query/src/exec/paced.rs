//! Joins that can make far more rows than they read: they stop soon after the statement is cancelled, let others run
//! meanwhile, and give rows on in batches of some size.
//!
//! The stock operators look for a token only where they read, and a join of two tables can read a batch and then be busy
//! with it for hours. So the condition of such a join asks the token ([`Watched`]), and so does what takes its rows
//! ([`Paced`]). While one is busy, its thread's other work goes on on another thread. A product of two tables gives a batch for each row of one side; operators above it that look at all they
//! hold for each batch would take time with the square of the rows.

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
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a join may keep others from running.
const TURN: Duration = Duration::from_millis(20);
/// Batches given on before others may run.
const BATCHES: usize = 16;

/// Puts [`Paced`] above joins and [`Watched`] around their conditions.
#[derive(Debug)]
pub(crate) struct PacesJoins;

impl PhysicalOptimizerRule for PacesJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(cancel) = planning_of(config) else { return Ok(plan) };
        let rows = config.execution.batch_size.get();
        plan.transform_up(|node| {
            let coalesces = node.downcast_ref::<CrossJoinExec>().is_some();
            let watched: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let filter = join.filter().map(|filter| watched(filter, &cancel));
                Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?)
            } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                let filter = join.filter().map(|filter| watched(filter, &cancel));
                Arc::new(join.builder().with_filter(filter).build()?)
            } else if coalesces {
                node.clone()
            } else {
                return Ok(Transformed::no(node));
            };
            let rows = coalesces.then_some(rows);
            Ok(Transformed::yes(Arc::new(Paced { input: watched, rows, cancel: cancel.clone() }) as Arc<_>))
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
}

impl Watched {
    fn new(condition: Arc<dyn PhysicalExpr>, cancel: CancelToken) -> Watched {
        Watched { condition, cancel, began: Instant::now(), let_run: AtomicU64::new(0) }
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
        let now = self.began.elapsed().as_millis() as u64;
        if now.saturating_sub(self.let_run.load(Ordering::Relaxed)) < TURN.as_millis() as u64 {
            return self.condition.evaluate(batch);
        }
        self.let_run.store(now, Ordering::Relaxed);
        tokio::task::block_in_place(|| self.condition.evaluate(batch))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(condition) => Ok(Arc::new(Watched::new(condition, self.cancel.clone()))),
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

#[derive(Debug)]
struct Paced {
    input: Arc<dyn ExecutionPlan>,
    /// Of a batch that is given on; `None` for those that come.
    rows: Option<usize>,
    cancel: CancelToken,
}

impl ExecutionPlan for Paced {
    fn name(&self) -> &'static str {
        "PacedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
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
            Some(input) => Ok(Arc::new(Paced { input, rows: self.rows, cancel: self.cancel.clone() })),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let pace = Pace {
            input: self.input.execute(partition, context)?,
            gathered: self.rows.map(|rows| BatchCoalescer::new(schema.clone(), rows)),
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
