//! Window functions over whole partitions: `lag`, `lead`, ranks.
//!
//! In: rows in order of the partition's columns, then of the window's. Out: the same rows with a column for each function.
//! The stock operator asks a function row by row, since it may have only some of a partition's rows; functions that look
//! at no frame are faster asked once for all of them. So rows are kept until a partition is whole; one of very many rows,
//! or of more than memory has room for, is left to the stock operator, and so is all that follows, if that operator keeps
//! less.

use super::once::Once;
use crate::Error;
use crate::cancel::CancelToken;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{concat, concat_batches, partition};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DFResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// As EXPLAIN shows it.
pub(crate) const NAME: &str = "TidaliteWindow";

/// Rows that partitions are looked for in at once, at least.
const ROWS_AT_ONCE: usize = 8_192;
/// A partition of more is left to the stock operator.
const PARTITION_ROWS_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Windows {
    /// The stock operator, over the same input.
    stock: Arc<dyn ExecutionPlan>,
    keys: Arc<[usize]>,
    functions: Arc<[Arc<dyn WindowExpr>]>,
    metrics: ExecutionPlanMetricsSet,
}

/// What a stock operator for windows computes, and over which rows.
type FunctionsOver<'a> = (&'a [Arc<dyn WindowExpr>], &'a Arc<dyn ExecutionPlan>);

/// The functions of a stock operator for windows, and what it reads.
pub(crate) fn functions_of(plan: &Arc<dyn ExecutionPlan>) -> Option<FunctionsOver<'_>> {
    if let Some(bounded) = plan.downcast_ref::<BoundedWindowAggExec>() {
        return Some((bounded.window_expr(), bounded.input()));
    }
    plan.downcast_ref::<WindowAggExec>().map(|whole| (whole.window_expr(), whole.input()))
}

/// The columns that partitions are by, the same for all functions; `None` where they are none, or something else.
pub(crate) fn partition_columns(functions: &[Arc<dyn WindowExpr>]) -> Option<Vec<usize>> {
    let columns = |function: &Arc<dyn WindowExpr>| {
        let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
        function.partition_by().iter().map(column).collect::<Option<Vec<_>>>()
    };
    let first = columns(functions.first()?)?;
    let are_same = functions.iter().all(|function| columns(function).as_ref() == Some(&first));
    (are_same && !first.is_empty()).then_some(first)
}

/// Whether a function says of a whole partition at once what it says of its rows.
fn is_of_partitions(function: &Arc<dyn WindowExpr>) -> bool {
    let standard = function.as_any().downcast_ref::<StandardWindowExpr>();
    let evaluator = standard.map(|function| function.get_standard_func_expr().create_evaluator());
    evaluator.is_some_and(|evaluator| evaluator.is_ok_and(|evaluator| !evaluator.uses_window_frame()))
}

impl Windows {
    /// In place of a stock operator whose functions are understood.
    pub fn of(stock: Arc<dyn ExecutionPlan>) -> Option<Windows> {
        let (functions, _) = functions_of(&stock)?;
        let keys = partition_columns(functions)?.into();
        if !functions.iter().all(is_of_partitions) {
            return None;
        }
        let functions = functions.into();
        Some(Windows { stock, keys, functions, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// What its functions look at, but for what partitions are by.
    pub fn looked_at(functions: &[Arc<dyn WindowExpr>]) -> impl Iterator<Item = Arc<dyn PhysicalExpr>> {
        functions.iter().flat_map(|function| {
            let all = function.all_expressions();
            all.args.into_iter().chain(all.order_by_exprs)
        })
    }
}

impl ExecutionPlan for Windows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.stock.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.stock.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        self.stock.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DFResult<Arc<dyn ExecutionPlan>> {
        let stock = replace_children_if_necessary(self.stock.clone(), children)?;
        let (keys, functions) = (self.keys.clone(), self.functions.clone());
        Ok(Arc::new(Windows { stock, keys, functions, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DFResult<SendableRecordBatchStream> {
        let (_, input) = functions_of(&self.stock).ok_or_else(|| Error::internal("windows without functions"))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let pending = Pending {
            rows: input.execute(partition, context.clone())?,
            stock: self.stock.clone(),
            keys: self.keys.clone(),
            functions: self.functions.clone(),
            memory: MemoryConsumer::new(NAME).register(context.memory_pool()),
            context,
            cancel,
            batches: Vec::new(),
            count: 0,
            look_at: ROWS_AT_ONCE,
        };
        let rows = pending.run().inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        let rows = super::timed(rows.boxed(), &self.metrics);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for Windows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions.iter().map(|function| function.name()).collect();
        write!(f, "{NAME}: {}", names.join(", "))
    }
}

/// What one partition of the input has.
struct Pending {
    rows: SendableRecordBatchStream,
    stock: Arc<dyn ExecutionPlan>,
    keys: Arc<[usize]>,
    functions: Arc<[Arc<dyn WindowExpr>]>,
    memory: MemoryReservation,
    context: Arc<TaskContext>,
    cancel: Arc<CancelToken>,
    /// Rows from the beginning of a partition on, and how many they are.
    batches: Vec<RecordBatch>,
    count: usize,
    /// With so many a partition may have ended.
    look_at: usize,
}

/// What comes next.
enum Step {
    Rows(RecordBatch, Pending),
    Rest(SendableRecordBatchStream),
    End,
}

impl Pending {
    fn run(self) -> BoxStream<'static, DFResult<RecordBatch>> {
        let steps = futures::stream::try_unfold(Some(self), |pending: Option<Pending>| async move {
            let Some(pending) = pending else { return Ok(None) };
            let step = match pending.step().await? {
                Step::Rows(batch, pending) => Some((futures::stream::iter([Ok(batch)]).boxed(), Some(pending))),
                Step::Rest(rest) => Some((rest.boxed(), None)),
                Step::End => None,
            };
            Ok::<_, DataFusionError>(step)
        });
        steps.try_flatten().boxed()
    }

    async fn step(mut self) -> DFResult<Step> {
        while let Some(batch) = self.rows.next().await {
            let batch = batch?;
            self.cancel.check()?;
            // As they came, beside one another, and with what comes out.
            let room = self.memory.try_grow(3 * super::bytes_of(&batch));
            self.count += batch.num_rows();
            self.batches.push(batch);
            match room {
                Err(error) if super::is_want_of_memory(&error) && self.stock_keeps_less() => {
                    return self.rest().map(Step::Rest);
                }
                room => room?,
            }
            if self.count < self.look_at {
                continue;
            }
            let all = self.joined()?;
            let ranges = self.ranges(&all)?;
            let whole = ranges.last().map_or(0, |last| last.start);
            self.keep(&all, whole);
            if self.count > PARTITION_ROWS_MAX && whole == 0 && self.stock_keeps_less() {
                return self.rest().map(Step::Rest);
            }
            if whole > 0 {
                let done = self.computed(&all.slice(0, whole), &ranges[..ranges.len() - 1])?;
                return Ok(Step::Rows(done, self));
            }
        }
        if self.count == 0 {
            return Ok(Step::End);
        }
        let all = self.joined()?;
        let ranges = self.ranges(&all)?;
        let done = self.computed(&all, &ranges)?;
        self.keep(&all, all.num_rows());
        Ok(Step::Rows(done, self))
    }

    fn joined(&self) -> DFResult<RecordBatch> {
        Ok(match self.batches.as_slice() {
            [only] => only.clone(),
            all => concat_batches(&self.rows.schema(), all)?,
        })
    }

    /// Only the rows from one on are waited for to be complete.
    fn keep(&mut self, all: &RecordBatch, from: usize) {
        self.count = all.num_rows() - from;
        self.batches = if self.count > 0 { vec![all.slice(from, self.count)] } else { Vec::new() };
        self.look_at = ROWS_AT_ONCE.max(2 * self.count);
        if from > 0 {
            // What is kept was counted as part of more.
            let share = self.memory.size() / all.num_rows().max(1) * self.count;
            self.memory.shrink(self.memory.size() - share);
        }
    }

    fn ranges(&self, all: &RecordBatch) -> DFResult<Vec<Range<usize>>> {
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| all.column(*key).clone()).collect();
        Ok(partition(&keys)?.ranges())
    }

    /// Whole partitions with what the functions say of them.
    fn computed(&self, rows: &RecordBatch, partitions: &[Range<usize>]) -> DFResult<RecordBatch> {
        let mut found: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(partitions.len()); self.functions.len()];
        for range in partitions {
            self.cancel.check()?;
            let own = rows.slice(range.start, range.len());
            for (function, found) in self.functions.iter().zip(&mut found) {
                found.push(function.evaluate(&own)?);
            }
        }
        let mut columns = rows.columns().to_vec();
        for found in found {
            let parts: Vec<_> = found.iter().map(AsRef::as_ref).collect();
            columns.push(if let [only] = found.as_slice() { only.clone() } else { concat(&parts)? });
        }
        Ok(RecordBatch::try_new(self.stock.schema(), columns)?)
    }

    /// Of two stock operators one keeps all rows, too, and takes their memory from no budget.
    fn stock_keeps_less(&self) -> bool {
        self.stock.downcast_ref::<BoundedWindowAggExec>().is_some()
    }

    /// What is left, by the stock operator.
    fn rest(self) -> DFResult<SendableRecordBatchStream> {
        let (_, input) = functions_of(&self.stock).ok_or_else(|| Error::internal("windows without functions"))?;
        let orders = input.output_ordering().cloned().into_iter().collect();
        let schema = self.rows.schema();
        let rows = futures::stream::iter(self.batches.into_iter().map(Ok)).chain(self.rows);
        let once = Once::plan(Box::pin(RecordBatchStreamAdapter::new(schema, rows)), orders);
        replace_children_if_necessary(self.stock, vec![once])?.execute(0, self.context)
    }
}
