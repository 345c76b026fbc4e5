//! Rewrites the segments of a quiet partition for size.
//!
//! Input: adjacent segments of one partition. Output: fewer segments with the same rows, encoded with more effort. Each
//! block is read again and compared with its source. Published and undone like a merge.

use super::build::Builder;
use super::clusters::Cluster;
use super::job::Job;
use super::merged::Merged;
use super::threads::{Threads, for_each};
use super::write::{SegmentPlan, Writing};
use crate::segment::{Effort, Segment, SegmentStore};
use crate::{Error, Result, TableSnapshot};
use std::sync::Arc;
use tidalite_types::SegmentId;

/// Seals `segments`, adjacent segments of one partition of `table`, whose runs stay unchanged.
///
/// `is_cancelled` is called between columns. After an error nothing has changed.
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

/// Compares the segments written by `plans` with their sources.
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
    // The blocks were read once and should not occupy the cache.
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
