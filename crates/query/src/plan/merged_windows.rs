//! WINDOW JOIN and the aggregation over its pairs on all threads: see [`crate::exec::merged_join`].
//!
//! Works on the finished plan: an aggregation by the numbers of left rows, over nothing but a WINDOW JOIN whose left side is
//! a table and whose bounds are constants. Windows that are computed from each row, sides whose times are of two units, and
//! aggregates that are told an order stay with the plain operators.

use super::WindowJoinColumns;
use super::merged_joins::{as_codes, as_table};
use crate::exec::group::GroupExec;
use crate::exec::merged_join::{Aggregate, MergedWindows, WindowWhat};
use crate::exec::operator::Operator;
use crate::exec::window_join::WindowJoin;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite_operators::time_join::Reach;

#[derive(Debug)]
pub(crate) struct MergedWindowJoins;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for MergedWindowJoins {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        // From below, so that a join over the rows of another one finds that done.
        plan.transform_up(|node| Ok(merged(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes))).data()
    }

    fn name(&self) -> &'static str {
        "MergedWindowJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// An aggregation, as if one thread did it.
struct Aggregation {
    by: PhysicalGroupBy,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    input: Plan,
}

fn aggregation(node: &Plan) -> Result<Option<Aggregation>> {
    if let Some((generic, input)) = node.downcast_ref::<GroupExec>().and_then(GroupExec::general) {
        if join_below(input).is_none() {
            return Ok(None);
        }
        let (functions, filters) = (generic.lowered)()?;
        return Ok(Some(Aggregation { by: generic.by.clone(), functions, filters, input: input.clone() }));
    }
    let Some(mut own) = node.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let is_free = |own: &AggregateExec| own.limit_options().is_none();
    if !is_free(own) {
        return Ok(None);
    }
    if matches!(own.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned) {
        let mut below = own.input();
        while below.downcast_ref::<RepartitionExec>().is_some()
            || below.downcast_ref::<CoalescePartitionsExec>().is_some()
        {
            below = below.children()[0];
        }
        match below.downcast_ref::<AggregateExec>() {
            Some(partial) if *partial.mode() == AggregateMode::Partial && is_free(partial) => own = partial,
            _ => return Ok(None),
        }
    } else if !matches!(own.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned) {
        return Ok(None);
    }
    Ok(Some(Aggregation {
        by: own.group_expr().clone(),
        functions: own.aggr_expr().to_vec(),
        filters: own.filter_expr().to_vec(),
        input: own.input().clone(),
    }))
}

/// The join below what deals its rows out and chooses among its columns; and where they are in its schema.
fn join_below(plan: &Plan) -> Option<(&Operator<WindowJoin>, Vec<usize>)> {
    if let Some(join) = plan.downcast_ref::<Operator<WindowJoin>>() {
        return Some((join, (0..plan.schema().fields().len()).collect()));
    }
    if let Some(dealt) = plan.downcast_ref::<RepartitionExec>() {
        return join_below(dealt.input());
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let (join, below) = join_below(projection.input())?;
    let place = |expr: &Arc<dyn PhysicalExpr>| Some(below[expr.downcast_ref::<Column>()?.index()]);
    let places = projection.expr().iter().map(|own| place(&own.expr)).collect::<Option<Vec<_>>>()?;
    Some((join, places))
}

/// Whether one stream comes out of a join that was made here.
fn is_done(plan: &Plan) -> bool {
    let below = || plan.downcast_ref::<ProjectionExec>().map(|projection| projection.input());
    plan.downcast_ref::<MergedWindows>().is_some() || below().is_some_and(is_done)
}

fn merged(node: &Plan) -> Result<Option<Plan>> {
    if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>().filter(|merge| merge.fetch().is_none()) {
        return Ok(is_done(merge.input()).then(|| merge.input().clone()));
    }
    let Some(Aggregation { by, functions, filters, input }) = aggregation(node)? else { return Ok(None) };
    let Some((operator, places)) = join_below(&input) else { return Ok(None) };
    let join = operator.operation().clone();
    let &[left, right] = operator.children().as_slice() else { return Ok(None) };
    let (width, all) = (left.schema().fields().len(), join.schema.fields().len());
    let group = |(expr, _): &(Arc<dyn PhysicalExpr>, String)| {
        let column = places[expr.downcast_ref::<Column>()?.index()];
        (column < width || column == all - 2).then_some(column)
    };
    let Some(groups) = by.expr().iter().map(group).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let is_told = functions.iter().any(|function| !function.order_bys().is_empty());
    if !by.is_single() || !groups.contains(&(all - 2)) || is_told {
        return Ok(None);
    }
    let WindowJoinColumns { times, keys, .. } = join.columns.clone();
    let Some(table) = as_table(left, times.0) else { return Ok(None) };
    let Some(reach) = reach(&table, right, &join) else { return Ok(None) };
    let of_right = as_table(right, times.1);
    let is_table = of_right.is_some();
    let mut inputs = [table, of_right.unwrap_or_else(|| right.clone())];
    let codes = if is_table { as_codes(&mut inputs, &keys)? } else { None };
    let is_pair = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Column>().is_some_and(|column| places[column.index()] == all - 1)
    };
    let filters: Vec<_> = filters.into_iter().map(|filter| filter.filter(|filter| !is_pair(filter))).collect();
    let arguments: Vec<_> = functions.iter().map(|function| function.expressions()).collect();
    let looked_at = arguments.iter().flatten().chain(filters.iter().flatten());
    let looked_at = looked_at.flat_map(collect_columns).map(|column| places[column.index()]);
    let of_pairs: Vec<usize> = looked_at.collect::<BTreeSet<_>>().into_iter().collect();
    let moved = |expr: &Arc<dyn PhysicalExpr>| moved(expr, &places, &of_pairs);
    let aggregate = |((function, arguments), filter): ((_, Vec<_>), Option<_>)| {
        let arguments = arguments.iter().map(moved).collect::<Result<Vec<_>>>()?;
        Ok(Aggregate { function, arguments, filter: filter.as_ref().map(moved).transpose()? })
    };
    let aggregates = functions.into_iter().zip(arguments).zip(filters).map(aggregate).collect::<Result<Vec<_>>>()?;
    let schema = node.schema();
    let what = WindowWhat { join, reach, codes, is_table, groups, of_pairs, aggregates, schema };
    Ok(Some(Arc::new(MergedWindows::new(inputs, Arc::new(what)))))
}

/// Over the columns of pairs instead of those of the input.
fn moved(expr: &Arc<dyn PhysicalExpr>, places: &[usize], of_pairs: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = expr.clone().transform_down(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let place = of_pairs.binary_search(&places[column.index()]).unwrap_or_default();
        let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), place));
        Ok(Transformed::yes(moved))
    });
    moved.data()
}

/// How far windows reach in ticks, if that is the same for all rows, and whole.
fn reach(left: &Plan, right: &Plan, join: &WindowJoin) -> Option<Reach> {
    let WindowJoinColumns { times, bounds, .. } = &join.columns;
    let unit = |plan: &Plan, time: usize| match plan.schema().field(time).data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Some(1_000_000),
        _ => None,
    };
    let tick = unit(left, times.0)?;
    if unit(right, times.1)? != tick {
        return None;
    }
    let projection = left.downcast_ref::<ProjectionExec>()?;
    let bound = |side: usize| {
        let literal = projection.expr()[bounds[side]].expr.downcast_ref::<Literal>()?;
        let ScalarValue::Int64(Some(count)) = literal.value() else { return None };
        let nanos = i128::from(*count) * i128::from(join.spec.units[side]);
        (nanos % tick == 0).then(|| i64::try_from(nanos / tick).ok()).flatten()
    };
    let (lo, hi) = (bound(0)?, bound(1)?);
    (lo <= hi).then_some(Reach { lo, hi, includes_prevailing: join.spec.includes_prevailing })
}
