//! Rows of any width on their way to the client: projections computed for a slice of rows at a time, wide pieces of tables
//! handed out in small batches ([`super::wide_pieces`]), filters that gather fewer rows.
//!
//! In: batches. Out: the projected rows, in order, in batches of about [`SLICE_BYTES`]. The stock operator computes a
//! whole batch: 8,192 rows of `repeat('y', 20000)` are 160 MB, which a query holds while its client does not read.
//!
//! Always: the number of rows of a slice follows from the measured width of the rows before. A slice that comes out far
//! too large is dropped and computed again with fewer rows, so that no more than one of these exists for each thread.
//! Rows of few bytes stay in the batches in which they come, except the first ones of a query.

use super::in_order::InOrder;
use super::paced::is_paced;
use super::wide_pieces::batch_bytes;
use super::width::bytes_of_rows;
use super::{BATCH_ROWS, timed};
use crate::scan::exec::ScanExec;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream::try_unfold;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// As EXPLAIN and the cost estimate know it.
pub(crate) const NAME: &str = "SlicedProjectionExec";

/// Bytes of a slice. An evaluation and a batch cost some microseconds, a quarter of a mebibyte of text about a hundred.
const SLICE_BYTES: usize = 256 << 10;
/// Bytes of a slice where several streams wait in one channel.
const SLICE_BYTES_MIN: usize = 16 << 10;
/// A larger slice is computed again in smaller ones.
const SLICE_BYTES_MAX: usize = 4 * SLICE_BYTES;
/// Bytes of rows that an operator gathers to a batch.
const GATHERED_BYTES: usize = 1 << 20;
/// Rows of the first slice, whose width is not known.
const ROWS_FIRST: usize = 64;
/// A slice has at most so many times the rows of the one before: wide rows often follow the first ones.
const GROWTH: usize = 4;

type Plan = Arc<dyn ExecutionPlan>;

/// Puts [`SlicedProjectionExec`] in place of stock projections whose rows are not collected by an operator above, and has
/// scans below such operators hand out wide pieces in small batches.
#[derive(Debug)]
pub(crate) struct SliceWideRows;

impl PhysicalOptimizerRule for SliceWideRows {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        sliced(plan, 1)
    }

    fn name(&self) -> &'static str {
        "SliceWideRows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `streams` are those of the operators above that wait for the same client.
fn sliced(plan: Plan, streams: usize) -> Result<Plan> {
    let streams = streams.max(plan.output_partitioning().partition_count());
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(if scan.gives_rows() { Arc::new(scan.handing_out(batch_bytes(streams))) } else { plan });
    }
    if let Some(pieces) = plan.downcast_ref::<InOrder>() {
        return Ok(Arc::new(pieces.handing_out(batch_bytes(streams))));
    }
    let Some(streamed) = streamed_input(&plan) else { return Ok(plan) };
    let inputs = plan.children().into_iter().cloned().enumerate();
    let is_streamed = |at: usize| streamed.is_none_or(|only| only == at);
    let inputs = inputs.map(|(at, input)| if is_streamed(at) { sliced(input, streams) } else { Ok(input) });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    if let (Some(projection), [input]) = (plan.downcast_ref::<ProjectionExec>(), inputs.as_slice())
        && is_wide(projection)
    {
        return Ok(Arc::new(SlicedProjectionExec::try_new(projection.clone(), input.clone())?));
    }
    if let (Some(filter), [input]) = (plan.downcast_ref::<FilterExec>(), inputs.as_slice())
        && let Some(rows) = batch_rows(input)
    {
        let filter = replace_children_if_necessary(Arc::new(filter.with_batch_size(rows)?), vec![input.clone()])?;
        return Ok(filter);
    }
    replace_children_if_necessary(plan, inputs)
}

/// The inputs whose rows an operator passes on as they come: one, or all where that is `None`. `None` of an operator that
/// collects its rows.
#[expect(clippy::option_option, reason = "no input, all inputs or one")]
fn streamed_input(plan: &Plan) -> Option<Option<usize>> {
    let is_join = plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<CrossJoinExec>().is_some();
    if is_join {
        // The left side is collected.
        return Some(Some(1));
    }
    let is_passed = plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<FilterExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<SortPreservingMergeExec>().is_some()
        || plan.downcast_ref::<UnnestExec>().is_some()
        || plan.downcast_ref::<GlobalLimitExec>().is_some()
        || plan.downcast_ref::<LocalLimitExec>().is_some()
        || plan.downcast_ref::<UnionExec>().is_some()
        || is_paced(plan);
    is_passed.then_some(None)
}

/// Rows of a batch for operators that gather rows, by the width of rows of the tables below that hand out wide pieces;
/// `None` where the usual number will do.
pub(crate) fn batch_rows(plan: &Plan) -> Option<usize> {
    fn wide_rows(plan: &Plan, hands_out: bool) -> Option<usize> {
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            return if hands_out || scan.hands_out() { scan.bytes_of_texts() } else { None };
        }
        let hands_out = hands_out || plan.downcast_ref::<InOrder>().is_some_and(InOrder::hands_out);
        plan.children().into_iter().filter_map(|input| wide_rows(input, hands_out)).max()
    }
    let rows = (GATHERED_BYTES / wide_rows(plan, false)?.max(1)).max(ROWS_FIRST);
    (rows < BATCH_ROWS).then_some(rows)
}

/// Returns true if a row can become wider than the row it is computed from.
pub(crate) fn is_wide(projection: &ProjectionExec) -> bool {
    let schema = projection.schema();
    let computed = projection.expr().iter().zip(schema.fields());
    computed
        .into_iter()
        .any(|(own, field)| own.expr.downcast_ref::<Column>().is_none() && has_any_width(field.data_type()))
}

fn has_any_width(data_type: &DataType) -> bool {
    !data_type.is_primitive() && !matches!(data_type, DataType::Boolean | DataType::Null | DataType::Dictionary(..))
}

/// The expressions of a projection.
#[derive(Clone, Debug)]
pub(crate) struct Expressions {
    exprs: Arc<[Arc<dyn PhysicalExpr>]>,
    schema: SchemaRef,
}

impl Expressions {
    pub fn new(projection: &ProjectionExec) -> Expressions {
        let exprs = projection.expr().iter().map(|own| own.expr.clone()).collect();
        Expressions { exprs, schema: projection.schema() }
    }

    pub fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = self.exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(rows));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns.collect::<Result<_>>()?, &options)?)
    }

    /// Estimates the bytes of the projected rows by the first rows.
    pub fn estimate(&self, batch: &RecordBatch) -> Result<usize> {
        let rows = batch.num_rows().min(ROWS_FIRST);
        let bytes = bytes_of_rows(&self.evaluate(&batch.slice(0, rows))?);
        Ok(bytes.saturating_mul(batch.num_rows()) / rows.max(1))
    }
}

/// Projects batches slice by slice.
#[derive(Debug)]
pub(crate) struct Slices {
    expressions: Expressions,
    slice_bytes: usize,
    /// Rows of the next slice.
    rows: usize,
    /// The current batch, and its first row that is not projected.
    batch: Option<(RecordBatch, usize)>,
}

impl Slices {
    /// `streams` are those that are read at the same time and share the bytes of a slice.
    pub fn new(expressions: Expressions, streams: usize) -> Slices {
        let slice_bytes = (SLICE_BYTES / streams.max(1)).max(SLICE_BYTES_MIN);
        Slices { expressions, slice_bytes, rows: ROWS_FIRST, batch: None }
    }

    pub fn push(&mut self, batch: RecordBatch) {
        debug_assert!(self.batch.is_none(), "the rows of the batch before are projected first");
        self.batch = Some((batch, 0));
    }

    /// Returns the next projected rows of the batch; `None` after the last.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some((batch, from)) = &mut self.batch else { return Ok(None) };
        loop {
            let rows = self.rows.min(batch.num_rows() - *from);
            let slice = if rows == batch.num_rows() { batch.clone() } else { batch.slice(*from, rows) };
            let projected = self.expressions.evaluate(&slice)?;
            let bytes = bytes_of_rows(&projected).max(1);
            self.rows = (rows.saturating_mul(self.slice_bytes) / bytes).clamp(1, rows.max(self.rows) * GROWTH);
            if bytes > SLICE_BYTES_MAX && rows > 1 {
                continue;
            }
            *from += rows;
            if *from == batch.num_rows() {
                self.batch = None;
            }
            return Ok(Some(projected));
        }
    }
}

/// A projection that is computed in slices.
#[derive(Debug)]
pub(crate) struct SlicedProjectionExec {
    projection: ProjectionExec,
    metrics: ExecutionPlanMetricsSet,
}

impl SlicedProjectionExec {
    fn try_new(projection: ProjectionExec, input: Plan) -> Result<SlicedProjectionExec> {
        let plan = replace_children_if_necessary(Arc::new(projection), vec![input])?;
        match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) => {
                Ok(SlicedProjectionExec { projection: projection.clone(), metrics: ExecutionPlanMetricsSet::new() })
            }
            None => Err(crate::Error::internal("a projection is none with another input").into()),
        }
    }
}

impl ExecutionPlan for SlicedProjectionExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.projection.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![self.projection.input()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.projection.apply_expressions(f)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Plan>) -> Result<Plan> {
        let input = children.pop().unwrap_or_else(|| self.projection.input().clone());
        Ok(Arc::new(SlicedProjectionExec::try_new(self.projection.clone(), input)?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.projection.input().execute(partition, context)?;
        let streams = self.properties().partitioning.partition_count();
        let slices = Slices::new(Expressions::new(&self.projection), streams);
        let rows = try_unfold((slices, input), |(mut slices, mut input)| async move {
            loop {
                if let Some(projected) = slices.next()? {
                    return Ok::<_, DataFusionError>(Some((projected, (slices, input))));
                }
                let Some(batch) = input.next().await.transpose()? else { return Ok(None) };
                slices.push(batch);
            }
        });
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = rows.inspect_ok(move |batch: &RecordBatch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), timed(rows.boxed(), &self.metrics))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for SlicedProjectionExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.projection.fmt_as(t, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, AsArray, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Int64Type, Schema};
    use datafusion::logical_expr::ColumnarValue;
    use datafusion::physical_plan::empty::EmptyExec;

    /// As many letters as a number says.
    #[derive(Debug, Eq, Hash, PartialEq)]
    struct Letters;

    impl fmt::Display for Letters {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("letters")
        }
    }

    impl PhysicalExpr for Letters {
        fn data_type(&self, _: &Schema) -> Result<DataType> {
            Ok(DataType::Utf8)
        }

        fn nullable(&self, _: &Schema) -> Result<bool> {
            Ok(false)
        }

        fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
            let counts = batch.column(0).as_primitive::<Int64Type>();
            let texts = counts.values().iter().map(|count| Some("y".repeat(*count as usize)));
            Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringArray>())))
        }

        fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
            Vec::new()
        }

        fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
            Ok(self)
        }

        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("letters")
        }
    }

    fn rows(counts: Vec<i64>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(counts))]).unwrap()
    }

    fn projection(expr: Arc<dyn PhysicalExpr>) -> ProjectionExec {
        let input: Plan = Arc::new(EmptyExec::new(rows(Vec::new()).schema()));
        ProjectionExec::try_new(vec![(expr, "out".to_owned())], input).unwrap()
    }

    /// Projects batches of counts; returns the lengths of the texts of each slice.
    fn projected(batches: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let mut slices = Slices::new(Expressions::new(&projection(Arc::new(Letters))), 1);
        let mut out = Vec::new();
        for counts in batches {
            slices.push(rows(counts.clone()));
            while let Some(batch) = slices.next().unwrap() {
                let texts = batch.column(0).as_string::<i32>();
                assert!(texts.get_array_memory_size() <= SLICE_BYTES_MAX + 4096 || texts.len() == 1);
                out.push(texts.iter().map(|text| text.unwrap().len() as i64).collect());
            }
        }
        out
    }

    #[test]
    fn narrow_rows_stay_in_their_batches() {
        let out = projected(&[vec![3; 8192], vec![3; 8192]]);
        assert_eq!(out.iter().map(Vec::len).collect::<Vec<_>>(), [64, 256, 1024, 4096, 2752, 8192]);
    }

    #[test]
    fn wide_rows_come_in_small_slices() {
        let counts: Vec<i64> = (0..8192).map(|row| 20_000 + row % 7).collect();
        let out = projected(&[counts.clone()]);
        assert!(out.iter().skip(1).all(|slice| slice.len() <= 14), "a quarter of a mebibyte");
        assert_eq!(out.concat(), counts);
    }

    #[test]
    fn rows_that_become_wide_are_computed_again() {
        let mut counts = vec![1; 8192];
        counts.extend([30_000; 100]);
        counts.extend([3_000_000, 2]);
        let out = projected(&[counts.clone(), counts.clone()]);
        assert_eq!(out.concat(), [counts.clone(), counts].concat());
    }

    #[test]
    fn columns_that_are_passed_on_are_not_wide() {
        let schema = rows(Vec::new()).schema();
        let column = datafusion::physical_expr::expressions::col("n", &schema).unwrap();
        assert!(!is_wide(&projection(column)) && is_wide(&projection(Arc::new(Letters))));
    }
}
