//! What is left to DataFusion's operators.

use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::fmt;
use std::sync::Arc;

/// Aggregates and their conditions, as DataFusion has them.
pub(crate) type Lowered = (Vec<Arc<AggregateFunctionExpr>>, Vec<Option<Arc<dyn PhysicalExpr>>>);

/// What DataFusion would have been asked. It hardly ever is, so that only then its aggregates are made.
#[derive(Clone)]
pub(crate) struct Generic {
    pub by: PhysicalGroupBy,
    /// The argument whose distinct values are counted.
    pub counted: Option<Arc<dyn PhysicalExpr>>,
    pub lowered: Arc<dyn Fn() -> Result<Lowered> + Send + Sync>,
}

impl fmt::Debug for Generic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by.fmt(f)
    }
}

type Plan = Arc<dyn ExecutionPlan>;

/// A key that no column is named like.
const COUNTED: &str = "the counted argument";

/// The groups of an input.
pub(super) fn rows(input: &Plan, generic: &Generic, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
    let (input, lowered) = (reset_plan_states(input.clone())?, (generic.lowered)()?);
    let is_of_parts =
        |own: &Arc<AggregateFunctionExpr>| own.is_distinct() || ["sum", "min", "max"].contains(&own.fun().name());
    let groups = match &generic.counted {
        Some(counted) if lowered.0.iter().all(is_of_parts) => in_two_steps(input, &generic.by, counted, lowered)?,
        _ => grouped(input, generic.by.clone(), lowered)?,
    };
    match groups.output_partitioning().partition_count() {
        1 => groups.execute(0, context.clone()),
        _ => CoalescePartitionsExec::new(groups).execute(0, context.clone()),
    }
}

/// First groups by the counted argument as well: groups can be on the disk when there is no room for them, what an aggregate
/// keeps of a group cannot.
fn in_two_steps(
    input: Plan,
    by: &PhysicalGroupBy,
    counted: &Arc<dyn PhysicalExpr>,
    (aggregates, filters): Lowered,
) -> Result<Plan> {
    let keys = by.expr().iter().cloned().chain([(counted.clone(), COUNTED.to_owned())]).collect();
    let folded = aggregates.iter().cloned().zip(filters).filter(|(own, _)| !own.is_distinct()).unzip();
    let below = grouped(input, PhysicalGroupBy::new_single(keys), folded)?;
    let schema = below.schema();
    let column = |at: usize| Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>;
    let place_of_counted = by.expr().len();
    let mut folded = place_of_counted + 1..;
    let of_groups = |own: &Arc<AggregateFunctionExpr>| {
        let place = if own.is_distinct() { Some(place_of_counted) } else { folded.next() };
        let arguments = place.map(column).into_iter().collect();
        let again = AggregateExprBuilder::new(Arc::new(own.fun().clone()), arguments).schema(schema.clone());
        again.alias(own.name()).build().map(Arc::new)
    };
    let again = aggregates.iter().map(of_groups).collect::<Result<Vec<_>>>()?;
    let filters = vec![None; again.len()];
    let keys = by.expr().iter().enumerate().map(|(at, (_, name))| (column(at), name.clone())).collect();
    grouped(below, PhysicalGroupBy::new_single(keys), (again, filters))
}

/// In as many partitions as the input, if there are keys.
fn grouped(input: Plan, by: PhysicalGroupBy, (aggregates, filters): Lowered) -> Result<Plan> {
    let schema = input.schema();
    let threads = input.output_partitioning().partition_count();
    let aggregate = |mode, by: PhysicalGroupBy, over: Plan| -> Result<Plan> {
        Ok(Arc::new(AggregateExec::try_new(mode, by, aggregates.clone(), filters.clone(), over, schema.clone())?))
    };
    if threads == 1 {
        return aggregate(AggregateMode::Single, by, input);
    }
    let last = by.as_final();
    let partial = aggregate(AggregateMode::Partial, by, input)?;
    if last.expr().is_empty() {
        return aggregate(AggregateMode::Final, last, Arc::new(CoalescePartitionsExec::new(partial)));
    }
    let keys = last.expr().iter().map(|(expr, _)| expr.clone()).collect();
    let dealt = Arc::new(RepartitionExec::try_new(partial, Partitioning::Hash(keys, threads))?);
    aggregate(AggregateMode::FinalPartitioned, last, dealt)
}
