//! Plans so small that their rows are computed where they were planned: to hand them from thread to thread takes longer.

use crate::exec::group;
use crate::exec::latest_on::LatestOn;
use crate::exec::latest_scan::LatestScan;
use crate::exec::operator::Operation;
use crate::exec::sliced;
use crate::exec::turned::Turned;
use crate::scan::exec::ScanExec;
use datafusion::physical_plan::ExecutionPlan;
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
    group::NAME,
    sliced::NAME,
    LatestOn::NAME,
    Turned::NAME,
];

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
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::CrossJoinExec;
    use datafusion::physical_plan::limit::GlobalLimitExec;

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
