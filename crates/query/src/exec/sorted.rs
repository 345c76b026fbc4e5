//! Rows in order of columns of numbers, times and symbols.
//!
//! In: partitions, each sorted by itself. Out: as the stock operator for sorts gives it. Symbols come as codes and are
//! ordered by their texts. All rows are kept; when they are more than memory has room for, the stock operator, which
//! writes to the disk, goes on with them.

use super::BATCH_ROWS;
use super::once::Once;
use crate::Error;
use crate::cancel::CancelToken;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array};
use datafusion::arrow::compute::{
    SortColumn, SortOptions, concat_batches, lexsort_to_indices, take, take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;
use tidalite_operators::sort::{SortKey, is_sortable, sort_order};

/// As EXPLAIN shows it.
pub(crate) const NAME: &str = "TidaliteSort";

#[derive(Debug)]
pub(crate) struct Sorted {
    input: Arc<dyn ExecutionPlan>,
    what: Arc<What>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

#[derive(Debug)]
struct What {
    ordering: LexOrdering,
    /// Each key's column, and what its codes stand for.
    keys: Vec<(usize, Option<StringViewArray>)>,
}

impl Sorted {
    /// In place of `sort`, whose keys are columns, over its input with some columns as codes, whose texts are given;
    /// `None` where some key is of no type that is understood.
    pub fn of(sort: &SortExec, input: Arc<dyn ExecutionPlan>, texts: &[Option<StringViewArray>]) -> Option<Sorted> {
        let schema = input.schema();
        let mut keys = Vec::new();
        for key in sort.expr() {
            let column = key.expr.downcast_ref::<Column>()?.index();
            let texts = texts.get(column)?.clone();
            if texts.is_none() && !is_sortable(schema.field(column).data_type()) {
                return None;
            }
            keys.push((column, texts));
        }
        let ordering = sort.expr().clone();
        let equivalences = EquivalenceProperties::new_with_orderings(schema, [ordering.clone()]);
        let partitioning = sort.properties().output_partitioning().clone();
        let properties = PlanProperties::new(equivalences, partitioning, EmissionType::Final, Boundedness::Bounded);
        let (what, metrics) = (Arc::new(What { ordering, keys }), ExecutionPlanMetricsSet::new());
        Some(Sorted { input, what, properties: Arc::new(properties), metrics })
    }
}

impl ExecutionPlan for Sorted {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        for key in &self.what.ordering {
            if f(&key.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| Error::internal("a sort without rows"))?;
        let (what, properties) = (self.what.clone(), self.properties.clone());
        Ok(Arc::new(Sorted { input, what, properties, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DFResult<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let left = MetricBuilder::new(&self.metrics).counter("left_to_generic", partition);
        let (rows, what, input) =
            (self.input.execute(partition, context.clone())?, self.what.clone(), self.input.clone());
        // It has its share of what there is, as the stock operator that goes on.
        let memory = MemoryConsumer::new(NAME).with_can_spill(true).register(context.memory_pool());
        let sorted = async move {
            let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
            match collected(rows, &memory).await? {
                Collected::All(batches) => sorted(&input, batches, &what, memory, &cancel),
                Collected::Some(batches, rest) => {
                    drop(memory);
                    left.add(1);
                    what.stock(&input, batches, rest, context)
                }
            }
        };
        let rows = futures::stream::once(sorted).try_flatten();
        let rows = rows.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        let rows = super::timed(rows.boxed(), &self.metrics);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for Sorted {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}: by=[{}]", self.what.ordering)
    }
}

type Rows = BoxStream<'static, DFResult<RecordBatch>>;

enum Collected {
    All(Vec<RecordBatch>),
    /// Those that there was room for and one more, and all others.
    Some(Vec<RecordBatch>, SendableRecordBatchStream),
}

async fn collected(mut rows: SendableRecordBatchStream, memory: &MemoryReservation) -> DFResult<Collected> {
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        // As it came, beside the others, and in order.
        let room = memory.try_grow(3 * super::bytes_of(&batch));
        batches.push(batch);
        match room {
            Err(error) if super::is_want_of_memory(&error) => return Ok(Collected::Some(batches, rows)),
            room => room?,
        }
    }
    Ok(Collected::All(batches))
}

fn sorted(
    input: &Arc<dyn ExecutionPlan>,
    batches: Vec<RecordBatch>,
    what: &What,
    memory: MemoryReservation,
    cancel: &CancelToken,
) -> DFResult<Rows> {
    let all = concat_batches(&input.schema(), &batches)?;
    drop(batches);
    cancel.check()?;
    let key = |((column, texts), key): (&(usize, Option<StringViewArray>), _)| {
        let key: &PhysicalSortExpr = key;
        SortKey {
            column: all.column(*column).clone(),
            dictionary: texts.clone(),
            descending: key.options.descending,
            nulls_first: key.options.nulls_first,
        }
    };
    let keys: Vec<SortKey> = what.keys.iter().zip(&what.ordering).map(key).collect();
    let order = match sort_order(&keys, all.num_rows()) {
        Some(order) => UInt32Array::from(order),
        None => compared(&keys)?,
    };
    cancel.check()?;
    let is_in_order = order.values().iter().zip(0..).all(|(row, at)| *row == at);
    let rows = if is_in_order { all } else { take_record_batch(&all, &order)? };
    memory.try_resize(super::bytes_of(&rows))?;
    let count = rows.num_rows();
    let slices = (0..count).step_by(BATCH_ROWS).map(move |from| {
        let _held = &memory;
        Ok(rows.slice(from, BATCH_ROWS.min(count - from)))
    });
    Ok(futures::stream::iter(slices).boxed())
}

/// The order of rows whose keys are no numbers.
fn compared(keys: &[SortKey]) -> DFResult<UInt32Array> {
    let column = |key: &SortKey| {
        let values = match &key.dictionary {
            Some(texts) => take(texts, &key.column, None)?,
            None => key.column.clone(),
        };
        let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
        Ok(SortColumn { values, options: Some(options) })
    };
    let columns = keys.iter().map(column).collect::<DFResult<Vec<_>>>()?;
    Ok(lexsort_to_indices(&columns, None)?)
}

impl What {
    /// The stock operator over what came and what comes.
    fn stock(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        batches: Vec<RecordBatch>,
        rest: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> DFResult<Rows> {
        let coded: Vec<(usize, StringViewArray)> =
            self.keys.iter().filter_map(|(column, texts)| Some((*column, texts.clone()?))).collect();
        let columns = input.schema().fields().len();
        let texts = coded.iter().map(|(column, _)| Field::new(format!("text {column}"), DataType::Utf8View, true));
        let fields =
            input.schema().fields().iter().map(|field| field.as_ref().clone()).chain(texts).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new(fields));
        // Behind all columns the texts that it compares.
        let at: Vec<usize> = coded.iter().map(|(column, _)| *column).collect();
        let (with_texts, own) = (schema.clone(), coded);
        let with_texts = move |batch: RecordBatch| {
            let texts = own.iter().map(|(column, texts)| take(texts, batch.column(*column), None));
            let columns =
                batch.columns().iter().cloned().map(Ok).chain(texts).collect::<std::result::Result<_, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(with_texts.clone(), columns, &options)?)
        };
        let rows = futures::stream::iter(batches.into_iter().map(Ok)).chain(rest);
        let rows = rows.map(move |batch| batch.and_then(&with_texts));
        let rows = Once::plan(Box::pin(RecordBatchStreamAdapter::new(schema, rows)), Vec::new());
        let key = |(key, (column, _)): (&PhysicalSortExpr, &(usize, Option<StringViewArray>))| {
            let text = at.iter().position(|own| own == column).map_or(*column, |text| columns + text);
            PhysicalSortExpr::new(Arc::new(Column::new("key", text)), key.options)
        };
        let ordering = LexOrdering::new(self.ordering.iter().zip(&self.keys).map(key));
        let ordering = ordering.ok_or_else(|| Error::internal("a sort without keys"))?;
        let sorted = SortExec::new(ordering, rows).execute(0, context)?;
        let own: Vec<usize> = (0..columns).collect();
        Ok(sorted.map(move |batch| Ok(batch?.project(&own)?)).boxed())
    }
}
