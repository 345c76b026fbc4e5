//! Plans so small that their rows are computed where they were planned: to hand them from thread to thread takes longer.

use crate::exec::group;
use crate::exec::latest_on::LatestOn;
use crate::exec::operator::Operation;
use crate::exec::turned::Turned;
use crate::scan::exec::{ROWS_NEAR, ScanExec};
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
    LatestOn::NAME,
    Turned::NAME,
];

/// Whether a plan looks at few rows and makes no more of them. Timeouts and the like are kept on the same threads.
pub(super) fn is_small(plan: &Arc<dyn ExecutionPlan>) -> bool {
    rows(plan).is_some_and(|rows| rows <= ROWS_NEAR)
}

/// The work of its scans, in rows that come out; `None` when there are other operators, which may make any number of a row.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.work());
    }
    if !NARROW.contains(&plan.name()) {
        return None;
    }
    plan.children().into_iter().map(rows).try_fold(0, |sum: usize, rows| sum.checked_add(rows?))
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
        assert!(is_small(&empty()));
        let limited: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(empty(), 0, Some(3)));
        assert!(is_small(&limited));
        let joined: Arc<dyn ExecutionPlan> = Arc::new(CrossJoinExec::new(empty(), limited));
        assert!(!is_small(&joined));
        assert!(
            !is_small(&(Arc::new(GlobalLimitExec::new(joined, 0, Some(3))) as Arc<dyn ExecutionPlan>)),
            "below, too"
        );
    }
}
