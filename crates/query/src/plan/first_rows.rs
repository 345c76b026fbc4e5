//! ORDER BY … LIMIT n over a table looks at the columns of the order alone, and at no row behind the last of the n that
//! it has; the other columns are read of the n rows that come out.
//!
//! Works on the finished plan: a sort that keeps its first rows, over a scan or over what only passes its columns on.

use crate::exec::late_rows::LateRows;
use crate::scan::bound::{Bound, is_column};
use crate::scan::exec::ScanExec;
use crate::scan::spec::Order;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;
use tidalite_types::BLOCK_ROWS;

#[derive(Debug)]
pub(crate) struct FirstRows;

type Plan = Arc<dyn ExecutionPlan>;

/// Of more rows than one in so many, all columns are read as they lie.
const ROWS_A_FIRST: usize = 64;

impl PhysicalOptimizerRule for FirstRows {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_down(|node| {
            Ok(match first_rows(&node)? {
                Some(plan) => Transformed::new(plan, true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "FirstRows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn first_rows(node: &Plan) -> Result<Option<Plan>> {
    let merge = node.downcast_ref::<SortPreservingMergeExec>();
    let Some((sort, out)) = passed_on::<SortExec>(merge.map_or(node, |merge| merge.input())) else { return Ok(None) };
    let Some((scan, passed)) = passed_on::<ScanExec>(sort.input()) else { return Ok(None) };
    let Some(fetch) = sort.fetch() else { return Ok(None) };
    let rows = scan.rows_max();
    let is_plain = scan.order() == Order::Free && scan.reads_rows() && scan.pieces().is_some();
    // Between the sort and a merge there may be a choice of columns; a sort by itself is looked at when it is the node.
    let is_one = merge.is_some() || scan.partitions() == 1 && node.downcast_ref::<SortExec>().is_some();
    if !is_plain || !is_one || rows <= BLOCK_ROWS || fetch > rows / ROWS_A_FIRST {
        return Ok(None);
    }
    let mut wanted = Vec::new();
    let keys = sort.expr().iter().map(|key| {
        let expr = over_wanted(&key.expr, scan, &passed, &mut wanted)?;
        Ok(PhysicalSortExpr::new(expr, key.options))
    });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let condition = Arc::new(DynamicFilterPhysicalExpr::new(keys.iter().map(|k| k.expr.clone()).collect(), lit(true)));
    let mut narrow = scan.narrowed(&wanted, true);
    // The first key's column is the first that was wanted, if it is a column. Filters that may be an error of a row are asked of
    // every row.
    if is_column(&keys[0].expr, 0) && !scan.reader().may_fail() {
        let bound = Bound::new(condition.clone(), scan.reader().column(wanted[0]).clone(), 0);
        narrow = narrow.bounded(bound, 0, keys[0].options.descending)?;
    }
    let Some(order) = LexOrdering::new(keys) else { return Ok(None) };
    let first = SortExec::new(order.clone(), Arc::new(narrow))
        .with_fetch(Some(fetch))
        .with_preserve_partitioning(sort.preserve_partitioning())
        .with_dynamic_filter_expr(condition)?;
    let first: Plan = match merge {
        Some(merge) => Arc::new(SortPreservingMergeExec::new(order, Arc::new(first)).with_fetch(merge.fetch())),
        None => Arc::new(first),
    };
    let columns = out.into_iter().map(|at| passed[at]).collect();
    let order = merge.map_or(sort.expr(), |merge| merge.expr());
    Ok(Some(Arc::new(LateRows::new(first, scan.reader().clone(), columns, node.schema(), order.clone()))))
}

/// The operator below what only passes its columns on, and which of them each column is.
fn passed_on<T: ExecutionPlan>(plan: &Plan) -> Option<(&T, Vec<usize>)> {
    if let Some(found) = plan.downcast_ref::<T>() {
        return Some((found, (0..plan.schema().fields().len()).collect()));
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let (found, below) = passed_on(projection.input())?;
    let columns = projection.expr().iter().map(|out| Some(below[out.expr.downcast_ref::<Column>()?.index()]));
    Some((found, columns.collect::<Option<_>>()?))
}

/// A key over the columns of the scan that are wanted, to which its own are added.
fn over_wanted(
    key: &Arc<dyn PhysicalExpr>,
    scan: &ScanExec,
    passed: &[usize],
    wanted: &mut Vec<usize>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let mapped = key.clone().transform(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let of_scan = passed[column.index()];
        let at = wanted.iter().position(|known| *known == of_scan).unwrap_or_else(|| {
            wanted.push(of_scan);
            wanted.len() - 1
        });
        let name = scan.schema().field(of_scan).name().clone();
        Ok(Transformed::new(Arc::new(Column::new(&name, at)) as Arc<dyn PhysicalExpr>, true, TreeNodeRecursion::Jump))
    });
    mapped.data()
}
