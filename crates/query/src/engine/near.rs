//! Estimates of a plan's work. The rows of very small plans are computed where they were planned: to hand them from thread
//! to thread takes longer. Small plans run at once; all others need a running slot ([`super::admission`]).

use crate::exec::group;
use crate::exec::latest_on::LatestOn;
use crate::exec::latest_scan::LatestScan;
use crate::exec::operator::{Operation, Operator};
use crate::exec::series::MadeExec;
use crate::exec::sliced;
use crate::exec::turned::Turned;
use crate::scan::exec::{ROWS_NEAR, ScanExec};
use datafusion::common::stats::Precision;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use std::sync::Arc;

/// Operators that make about as many rows as they take, at most: no joins, and nothing that fills gaps.
const NARROW: &[&str] = &[
    "ProjectionExec",
    "FilterExec",
    "CoalescePartitionsExec",
    "SortExec",
    "SortPreservingMergeExec",
    "RepartitionExec",
    "AggregateExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "PlaceholderRowExec",
    "EmptyExec",
    "PacedExec",
    group::NAME,
    sliced::NAME,
    LatestOn::NAME,
    Turned::NAME,
];

/// Rows of all operators of a small plan together.
const SMALL_ROWS: usize = ROWS_NEAR;
/// Rows of a plan over the system catalog that runs at once: tools join a dozen tables of it, and a product without a
/// condition is no question about the catalog.
const CATALOG_ROWS: usize = 10_000_000;

/// Returns true if the plan may run without a running slot. `is_about_system` is true if it reads only the system catalog
/// and the state of the database.
pub(super) fn is_small(plan: &Arc<dyn ExecutionPlan>, is_about_system: bool) -> bool {
    if is_about_system { !has_large_product(plan) } else { rows_max(plan).is_some_and(|rows| rows <= SMALL_ROWS) }
}

/// An upper bound of the rows that come out of the operators of a plan; `None` if an operator has no bound.
fn rows_max(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.work());
    }
    if let Some(latest) = plan.downcast_ref::<LatestScan>() {
        return latest.rows_max();
    }
    if let Some(series) = plan.downcast_ref::<Operator<MadeExec>>() {
        return Some(series.operation().rows_max());
    }
    if plan.downcast_ref::<DataSourceExec>().is_some() {
        return exact_rows(plan);
    }
    let inputs = plan.children().into_iter().map(rows_max).collect::<Option<Vec<usize>>>()?;
    if is_product(plan) || plan.is::<HashJoinExec>() || plan.is::<SortMergeJoinExec>() {
        // A join makes at most the product of its inputs. An outer join keeps the rows of an input beside an empty one.
        return inputs.iter().try_fold(1, |product: usize, rows| product.checked_mul((*rows).max(1)));
    }
    let effect = plan.cardinality_effect();
    let is_narrow = NARROW.contains(&plan.name())
        || matches!(effect, CardinalityEffect::Equal | CardinalityEffect::LowerEqual)
        || plan.is::<UnionExec>()
        || plan.is::<InterleaveExec>();
    is_narrow.then(|| inputs.into_iter().fold(0, usize::saturating_add))
}

/// The rows of a source that knows them: batches in memory.
fn exact_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    match statistics.num_rows {
        Precision::Exact(rows) => Some(rows),
        _ => None,
    }
}

/// Returns true if a join without equal keys can make more than [`CATALOG_ROWS`].
fn has_large_product(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_large = is_product(plan) && leaf_rows(plan).is_none_or(|rows| rows > CATALOG_ROWS);
    is_large || plan.children().into_iter().any(has_large_product)
}

/// The product of the rows of all joined sources below a product; equal keys keep the larger input.
fn leaf_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let inputs = plan.children().into_iter().map(leaf_rows).collect::<Option<Vec<usize>>>()?;
    if is_product(plan) {
        return inputs.iter().try_fold(1, |product: usize, rows| product.checked_mul((*rows).max(1)));
    }
    if plan.is::<DataSourceExec>() { exact_rows(plan) } else { Some(inputs.into_iter().max().unwrap_or(1)) }
}

/// Returns true for a join without equal keys.
fn is_product(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>()
}

/// The work of a plan's scans, in rows that come out; `None` when there are other operators, which may make any number of
/// a row.
pub(super) fn work(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.work());
    }
    // A few blocks mostly; it lets others go first when they are more.
    if let Some(latest) = plan.downcast_ref::<LatestScan>() {
        return latest.rows_max();
    }
    if !NARROW.contains(&plan.name()) {
        return None;
    }
    plan.children().into_iter().map(work).try_fold(0, |sum: usize, rows| sum.checked_add(rows?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::Schema;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::limit::GlobalLimitExec;

    fn in_memory(rows: i64) -> Arc<dyn ExecutionPlan> {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
        MemorySourceConfig::try_new_exec(&[vec![batch.clone()]], batch.schema(), None).unwrap()
    }

    #[test]
    fn small_plans() {
        let product = |a, b| Arc::new(CrossJoinExec::new(in_memory(a), in_memory(b))) as Arc<dyn ExecutionPlan>;
        assert!(is_small(&in_memory(1000), false));
        assert_eq!(rows_max(&product(200, 300)), Some(60_000));
        assert!(is_small(&product(200, 300), false) && !is_small(&product(300, 300), false));
        assert!(is_small(&product(0, 300), false));
        assert!(is_small(&product(3000, 3000), true), "a product within the catalog");
        assert!(!is_small(&product(10_000, 10_000), true));
        let above: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(product(10_000, 10_000), 0, Some(1)));
        assert!(!is_small(&above, true), "below, too");
    }

    #[test]
    fn what_may_make_many_rows_of_few_is_not_small() {
        let empty = || Arc::new(EmptyExec::new(Arc::new(Schema::empty()))) as Arc<dyn ExecutionPlan>;
        assert_eq!(work(&empty()), Some(0));
        let limited: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(empty(), 0, Some(3)));
        assert_eq!(work(&limited), Some(0));
        let joined: Arc<dyn ExecutionPlan> = Arc::new(CrossJoinExec::new(empty(), limited));
        assert_eq!(work(&joined), None);
        let above: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(joined, 0, Some(3)));
        assert_eq!(work(&above), None, "below, too");
    }
}
