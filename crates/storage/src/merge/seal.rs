//! Writes the segments of a quiet partition again, for size.
//!
//! In: adjacent segments of one partition. Out: fewer of them with the same rows, encoded with more effort, each block
//! read again and compared with its source. Published and undone as a merge is.

use super::build::Builder;
use super::write::{SegmentPlan, Threads, for_each};
use super::{Cluster, Job, Merged, Writing};
use crate::segment::{Effort, Segment, SegmentStore};
use crate::{Error, Result, TableSnapshot};
use std::sync::Arc;
use tidalite_types::SegmentId;

/// Seals `segments`, adjacent ones of one partition of `table`, whose runs are left alone. `is_cancelled` is asked
/// between columns. On an error nothing was changed.
pub fn seal(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    segments: &[Arc<Segment>],
    threads: Threads<'_>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    let Some(first) = segments.first() else { return Ok(Merged::default()) };
    let version = TableSnapshot { runs: Arc::default(), ..table.clone() };
    let clusters = vec![Cluster {
        partition: first.meta().partition,
        segments: segments.to_vec(),
        rows: 0..0,
        is_last: true,
        is_late: false,
    }];
    let writing = Writing { store, threads, effort: Effort::Sealed, is_cancelled };
    let job = Job::of(&version, threads)?;
    job.run(clusters, &writing, next_segment)
}

/// Compares segments written by `plans` with what they were written from.
pub(super) fn verify(
    plans: &[SegmentPlan<'_>],
    written: &[Segment],
    job: &Job<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let tasks: Vec<(usize, usize)> =
        plans.iter().enumerate().flat_map(|(at, plan)| (0..plan.columns.len()).map(move |c| (at, c))).collect();
    for_each(tasks.len(), writing.threads, |task| {
        let (at, column) = tasks[task];
        writing.check_cancelled()?;
        verify_column(&plans[at], &written[at], column, job)
    })?;
    // They were read once and are not wanted in the cache for that.
    written.iter().for_each(|segment| writing.store.forget(segment.meta().id));
    Ok(())
}

fn verify_column(plan: &SegmentPlan<'_>, written: &Segment, column: usize, job: &Job<'_>) -> Result<()> {
    let (id, column_type) = plan.columns[column];
    let mut builder = Builder::default();
    for (at, block) in plan.blocks.iter().enumerate() {
        let source = builder.rows((id, column_type), plan.old, &job.new, (block, None))?;
        if !builder.is_same(written, id, at, &source)? {
            let message = format!("{}: column {id} block {at} is not what was written", written.path().display());
            return Err(Error::corrupt(message));
        }
        builder.put_back(source);
    }
    Ok(())
}
