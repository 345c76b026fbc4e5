//! Rows of a table that are wanted in its order come in one stream for each chain of its pieces, read ahead by all threads:
//! see [`crate::exec::in_order`].
//!
//! The stock rules deal the batches of a stream out to filters on several threads and merge what they leave by time, which
//! tells nothing of rows of one time; to what is computed for the answer they deal rows out as if nobody wanted an order,
//! since no operator does. Here, in the finished plan, all of these are taken out again.

use crate::exec::in_order::{InOrder, ahead_of};
use crate::exec::merged_join::{MergedJoin, MergedWindows};
use crate::scan::exec::ScanExec;
use crate::scan::spec::Order;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct InOrderOfPieces;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for InOrderOfPieces {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let plan = undealt_answer(&plan)?.unwrap_or(plan);
        all_in_order(plan, config.execution.target_partitions)
    }

    fn name(&self) -> &'static str {
        "InOrderOfPieces"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// An answer whose rows have an order, without what deals them out to what is computed of them last; `None` where there is
/// no such.
fn undealt_answer(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(dealt) = plan.downcast_ref::<RepartitionExec>() {
        let in_turns = matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_));
        let is_ordered = dealt.input().properties().output_ordering().is_some();
        return Ok((in_turns && is_ordered).then(|| dealt.input().clone()));
    }
    let is_passed = is_step(plan)
        || plan.downcast_ref::<GlobalLimitExec>().is_some()
        || plan.downcast_ref::<LocalLimitExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some();
    let Some(input) = plan.children().into_iter().next().filter(|_| is_passed) else { return Ok(None) };
    match undealt_answer(input)? {
        Some(input) => replace_children_if_necessary(plan.clone(), vec![input]).map(Some),
        None => Ok(None),
    }
}

fn all_in_order(plan: Plan, threads: usize) -> Result<Plan> {
    let changed = plan.transform_down(|node| {
        if let Some(tables) = tables_of(&node) {
            let sides = node.children().into_iter().cloned().zip(tables);
            let sides = sides.map(|(side, is_table)| if is_table { Ok(side) } else { all_in_order(side, threads) });
            let sides = sides.collect::<Result<_>>()?;
            let joined = replace_children_if_necessary(node, sides)?;
            return Ok(Transformed::new(joined, true, TreeNodeRecursion::Jump));
        }
        Ok(match in_order(&node, threads)? {
            Some(changed) => Transformed::new(changed, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    });
    changed.data()
}

/// Which sides of a join are tables that it reads by pieces itself.
fn tables_of(plan: &Plan) -> Option<[bool; 2]> {
    let joined = plan.downcast_ref::<MergedJoin>().map(MergedJoin::tables);
    joined.or_else(|| plan.downcast_ref::<MergedWindows>().map(MergedWindows::tables))
}

/// `None` if there is nothing to do.
fn in_order(node: &Plan, threads: usize) -> Result<Option<Plan>> {
    let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
        let is_one = scan_of(node, false).is_some_and(|scan| scan.partitions() == 1);
        return Ok(is_one.then(|| ahead(node, threads)).flatten());
    };
    if scan_of(merge.input(), true).is_none() {
        return Ok(None);
    }
    let plan = undealt(merge.input())?;
    let plan = ahead(&plan, threads).unwrap_or(plan);
    if merge.fetch().is_none() && plan.properties().partitioning.partition_count() == 1 {
        return Ok(Some(plan));
    }
    replace_children_if_necessary(node.clone(), vec![plan]).map(Some)
}

fn ahead(plan: &Plan, threads: usize) -> Option<Plan> {
    let limit = limit_of(plan)?;
    Some(Arc::new(InOrder::new(plan.clone(), limit, ahead_of(scan_of(plan, false)?, threads)?)))
}

/// How many rows come out of each stream, at most; `None` where that says how many go into a filter.
#[expect(clippy::option_option, reason = "there is no limit, or it is none that can be kept")]
fn limit_of(plan: &Plan) -> Option<Option<usize>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.limit());
    }
    let below = limit_of(plan.children().first()?)?;
    match (plan.downcast_ref::<FilterExec>(), below) {
        (Some(_), Some(_)) => None,
        (Some(filter), None) => Some(filter.fetch()),
        (None, below) => Some(below),
    }
}

/// The scan of a table in order, below filters and projections at most, or also below what deals rows out.
fn scan_of(plan: &Plan, is_dealt: bool) -> Option<&ScanExec> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return (scan.order() != Order::Free).then_some(scan);
    }
    let is_passed = is_step(plan) || is_dealt && plan.downcast_ref::<RepartitionExec>().is_some();
    scan_of(plan.children().into_iter().next().filter(|_| is_passed)?, is_dealt)
}

fn is_step(plan: &Plan) -> bool {
    plan.downcast_ref::<FilterExec>().is_some() || plan.downcast_ref::<ProjectionExec>().is_some()
}

/// Filters and projections without what deals rows out between them.
fn undealt(plan: &Plan) -> Result<Plan> {
    if let Some(dealt) = plan.downcast_ref::<RepartitionExec>() {
        return undealt(dealt.input());
    }
    let inputs = plan.children().into_iter().map(undealt).collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan.clone(), inputs)
}

/// A scan below filters and projections, without what deals its rows out or puts its streams together; `None` of any
/// other plan, and where not all rows come out.
pub(super) fn bare(plan: &Plan) -> Option<Plan> {
    if plan.downcast_ref::<ScanExec>().is_some() {
        return Some(plan.clone());
    }
    if plan.fetch().is_some() {
        return None;
    }
    let is_between = plan.downcast_ref::<SortPreservingMergeExec>().is_some();
    if is_between || plan.downcast_ref::<RepartitionExec>().is_some() {
        return bare(plan.children().first()?);
    }
    if !is_step(plan) {
        return None;
    }
    let input = bare(plan.children().first()?)?;
    replace_children_if_necessary(plan.clone(), vec![input]).ok()
}
