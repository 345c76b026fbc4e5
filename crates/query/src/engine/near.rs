//! Plans so small that their rows are computed where they were planned: to hand them from thread to thread takes longer.

use super::operators::KNOWN;
use crate::scan::exec::ScanExec;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Rows that may be looked at: a block of them. Timeouts and the like are kept on the same threads.
const ROWS_MAX: usize = 64 << 10;

/// Operators whose rows are no more than those of their input, beside [`KNOWN`].
const BESIDE: &[&str] = &["SortExec", "PlaceholderRowExec", "EmptyExec"];

/// Whether a plan looks at few rows and makes no more of them.
pub(super) fn is_small(plan: &Arc<dyn ExecutionPlan>) -> bool {
    rows(plan).is_some_and(|rows| rows <= ROWS_MAX)
}

/// The rows that its scans may look at; `None` when there are other operators, which may make any number of a row.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.rows_max());
    }
    let is_one = KNOWN.contains(&plan.name()) || BESIDE.contains(&plan.name());
    let children = plan.children().into_iter();
    is_one.then_some(())?;
    children.map(rows).try_fold(0usize, |sum, rows| Some(sum.saturating_add(rows?)))
}
