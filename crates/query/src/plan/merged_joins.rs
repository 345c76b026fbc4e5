//! ASOF and LT JOIN on all threads: see [`crate::exec::merged_join`].
//!
//! Works on the finished plan. Sides that are tables, below filters and projections, are read by pieces, and keys that
//! are symbols of both come as codes. Columns that nobody looks at above do not come out; where rows are dealt out to
//! threads, or added up, they need no order and come in several streams.

use super::coded_keys::{column_of_scan, symbol_as_codes, symbol_of};
use super::in_order::bare;
use super::{Kind, TimeJoinColumns};
use crate::exec::group::GroupExec;
use crate::exec::merged_join::{CodePair, MergedJoin, What};
use crate::exec::operator::Operator;
use crate::exec::time_join::TimeJoin;
use crate::scan::spec::Order;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{Partitioning, PhysicalExpr, projection::ProjectionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct MergedJoins;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for MergedJoins {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let threads = config.execution.target_partitions;
        plan.transform_down(|node| Ok(merged(&node, threads)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .data()
    }

    fn name(&self) -> &'static str {
        "MergedJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A node whose rows come from a join, with that in the fast form; `None` if there is nothing to do.
fn merged(node: &Plan, threads: usize) -> Result<Option<Plan>> {
    // With all columns they stay where they are.
    if let Some(group) = node.downcast_ref::<GroupExec>() {
        let joined = above_join(group.input(), None, Some(threads))?;
        return joined.map(|joined| replace_children_if_necessary(node.clone(), vec![joined.plan])).transpose();
    }
    Ok(above_join(node, None, None)?.map(|joined| joined.plan))
}

/// A plan with the join in it, and where its columns are now, if not where they were.
struct Joined {
    plan: Plan,
    places: Option<Vec<usize>>,
}

impl Joined {
    fn moved(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(places) = &self.places else { return Ok(expr.clone()) };
        let moved = expr.clone().transform_down(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
            let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), places[column.index()]));
            Ok(Transformed::yes(moved))
        });
        moved.data()
    }
}

/// `wanted` are the columns that are looked at above; `None` for all, which then stay where they are.
fn above_join(node: &Plan, wanted: Option<BTreeSet<usize>>, streams: Option<usize>) -> Result<Option<Joined>> {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let wanted = columns_of(projection.expr().iter().map(|own| &own.expr));
        let Some(joined) = above_join(projection.input(), Some(wanted), streams)? else { return Ok(None) };
        let expr =
            |own: &ProjectionExpr| Ok(ProjectionExpr { expr: joined.moved(&own.expr)?, alias: own.alias.clone() });
        let exprs = projection.expr().iter().map(expr).collect::<Result<Vec<_>>>()?;
        let plan = Arc::new(ProjectionExec::try_new(exprs, joined.plan)?);
        return Ok(Some(Joined { plan, places: None }));
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none()) {
        let of_predicate = columns_of(std::iter::once(filter.predicate()));
        let wanted = match (filter.projection(), wanted) {
            (Some(columns), _) => Some(columns.iter().copied().chain(of_predicate).collect()),
            (None, wanted) => wanted.map(|wanted| &wanted | &of_predicate),
        };
        let Some(joined) = above_join(filter.input(), wanted, streams)? else { return Ok(None) };
        let (predicate, input) = (joined.moved(filter.predicate())?, joined.plan.clone());
        let place = |column: &usize| joined.places.as_ref().map_or(*column, |places| places[*column]);
        let projection = filter.projection().as_ref().map(|columns| columns.iter().map(place).collect::<Vec<_>>());
        let is_moved = projection.is_none();
        let plan = FilterExecBuilder::new(predicate, input).apply_projection(projection)?.build()?;
        return Ok(Some(Joined { plan: Arc::new(plan), places: joined.places.filter(|_| is_moved) }));
    }
    // Rows that are dealt out in turns are so already.
    if let Some(dealt) = node.downcast_ref::<RepartitionExec>().filter(|dealt| !dealt.preserve_order())
        && let Partitioning::RoundRobinBatch(streams) = dealt.partitioning()
    {
        return above_join(dealt.input(), wanted, Some(*streams));
    }
    let Some(join) = node.downcast_ref::<Operator<TimeJoin>>() else { return Ok(None) };
    of_join(join, wanted, streams)
}

fn columns_of<'a>(exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>) -> BTreeSet<usize> {
    exprs.flat_map(|expr| collect_columns(expr).into_iter().map(|column| column.index())).collect()
}

fn of_join(
    join: &Operator<TimeJoin>,
    wanted: Option<BTreeSet<usize>>,
    streams: Option<usize>,
) -> Result<Option<Joined>> {
    let own = join.operation();
    let &[left, right] = join.children().as_slice() else { return Ok(None) };
    if own.spec.kind == Kind::Splice {
        return Ok(None);
    }
    let TimeJoinColumns { times, keys } = &own.columns;
    let tables = [(left, times.0), (right, times.1)].map(|(plan, time)| as_table(plan, time));
    let are_tables = tables.each_ref().map(Option::is_some);
    let mut inputs = [left, right].map(Clone::clone);
    for (input, table) in inputs.iter_mut().zip(tables) {
        *input = table.unwrap_or_else(|| input.clone());
    }
    let codes = if are_tables == [true, true] { as_codes(&mut inputs, keys)? } else { None };
    let width = own.schema.fields().len();
    let output: Vec<usize> = match &wanted {
        Some(wanted) => wanted.iter().copied().collect(),
        None => (0..width).collect(),
    };
    let places = wanted.filter(|wanted| wanted.len() < width).map(|_| {
        let place = |column: usize| output.binary_search(&column).unwrap_or_default();
        (0..width).map(place).collect()
    });
    let what = What { join: own.clone(), codes, are_tables, output, streams };
    Ok(Some(Joined { plan: Arc::new(MergedJoin::new(inputs, Arc::new(what))), places }))
}

/// The plan without what puts its streams together, if it is a table in order of its own time, below filters and
/// projections at most.
pub(super) fn as_table(plan: &Plan, time: usize) -> Option<Plan> {
    let plan = bare(plan)?;
    let (scan, column) = column_of_scan(&plan, time)?;
    let is_fit = scan.is_designated(column) && scan.order() == Order::Ascending && scan.pieces().is_some();
    is_fit.then_some(plan)
}

/// Both sides with their keys as codes, if all of them are symbols.
pub(super) fn as_codes(inputs: &mut [Plan; 2], keys: &[(usize, usize)]) -> Result<Option<Vec<CodePair>>> {
    let mut coded = inputs.clone();
    let mut pairs = Vec::new();
    for (left, right) in keys {
        let symbols = |plan: &Plan, column: usize| {
            symbol_of(plan, column).and_then(|(scan, column)| scan.symbol_map(column).cloned())
        };
        let (Some(of_left), Some(of_right)) = (symbols(&coded[0], *left), symbols(&coded[1], *right)) else {
            return Ok(None);
        };
        let Some(pair) = CodePair::new(&of_left, &of_right) else { return Ok(None) };
        for (plan, column) in coded.iter_mut().zip([*left, *right]) {
            let Some(with) = symbol_as_codes(plan, column)? else { return Ok(None) };
            *plan = with;
        }
        pairs.push(pair);
    }
    if pairs.is_empty() || !CodePair::are_few(&pairs) {
        return Ok(None);
    }
    *inputs = coded;
    Ok(Some(pairs))
}
