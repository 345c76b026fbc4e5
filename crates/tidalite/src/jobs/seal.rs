//! Rewrites quiet partitions for size.
//!
//! A partition is quiet if none of its segments was written for a while and it is not the newest of its table, or if
//! its table had no commits for that long. Its segments are joined, encoded with more effort, compared with their
//! sources, and replaced by an ordinary edit of the manifest. Late rows cause merges to rewrite sealed segments like
//! any other; the partition is sealed again when it is quiet again.
//!
//! Runs only without due merges, in steps of about a segment. A step is cancelled when rows accumulate or the database
//! closes, and started again later.

use super::observations::{Partition, Seals};
use super::{Due, Jobs, TICK, threads_of};
use crate::writer::Work;
use crate::{Error, Result};
use futures::executor::block_on;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};
use tidalite_storage::late::{late_of, tied_end};
use tidalite_storage::merge::{SEGMENT_ROWS_MAX, seal};
use tidalite_storage::{Segment, TableSnapshot};
use tidalite_types::{SegmentId, TableId};

/// Pause of a partition that could not be sealed.
const PAUSE: Duration = Duration::from_secs(60);

impl Jobs {
    /// Seals a step if a partition is due.
    pub(super) fn seal_some(&mut self, now: Instant) {
        let quiet = self.shared.config.seal_after;
        // Checking many partitions takes a while.
        let pause = (quiet / 8).clamp(TICK, Duration::from_secs(10));
        if quiet.is_zero() || self.seals.looked.is_some_and(|at| now - at < pause) {
            return;
        }
        self.seals.looked = Some(now);
        let (_, tables) = self.shared.tables.all();
        self.seals.partitions.retain(|(id, _), _| tables.binary_search_by_key(id, |t| t.id).is_ok());
        for table in &tables {
            let is_table_quiet = self.watch.is_quiet(table.id, quiet, now);
            let newest = table.segments.iter().map(|s| s.meta().partition).max();
            for partition in self.seals.due(table, quiet, now) {
                let may_grow = Some(partition) == newest && !is_table_quiet;
                if may_grow || self.shared.is_closing.load(SeqCst) {
                    continue;
                }
                match self.seal_partition(table.id, partition, true) {
                    Ok(true) => self.note_sealed(table.id, partition),
                    // Rows arrived in the meantime: the partition is checked again.
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(table = table.schema.name, %error, "a partition could not be sealed");
                        self.seals.note(table.id, partition, |p| p.paused_until = Some(now + PAUSE));
                    }
                }
                if self.is_busy() {
                    return;
                }
            }
        }
    }

    fn note_sealed(&mut self, table: TableId, partition: i64) {
        let Some(version) = self.shared.tables.read().get(table).cloned() else { return };
        let of_partition = version.segments.iter().map(|s| s.meta()).filter(|m| m.partition == partition);
        let newest = of_partition.map(|m| m.id).max();
        self.seals.note(table, partition, |p| {
            p.is_sealed = true;
            p.newest = newest.unwrap_or(p.newest);
        });
    }

    /// Merges the staged rows of a table and seals all of its partitions.
    pub(crate) fn seal_table(&mut self, table: TableId) -> Result<()> {
        self.round(&[Due { id: table, keeps: false }])?;
        self.compact_table(table)?;
        let Some(version) = self.shared.tables.read().get(table).cloned() else { return Ok(()) };
        let mut partitions: Vec<i64> = version.segments.iter().map(|s| s.meta().partition).collect();
        partitions.dedup();
        for partition in partitions {
            self.seal_partition(table, partition, false)?;
        }
        self.purge();
        Ok(())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.shared.is_closing.load(SeqCst)
            || self.shared.waiting_loads.load(SeqCst) > 0
            || self.shared.tables.read().staged().bytes > self.shared.config.staging_bytes / 8
    }

    /// Seals the unsealed segments of a partition; returns false if it was cancelled.
    fn seal_partition(&mut self, table: TableId, partition: i64, gives_way: bool) -> Result<bool> {
        let mut failed_at = None;
        loop {
            // The caller waits for the seal; writers need not.
            if !gives_way && self.is_busy() {
                let due = self.due();
                self.round(&due)?;
            }
            let Some(input) = self.shared.tables.read().begin_seal(table) else { return Ok(true) };
            let Some(group) = next_group(&input.version, partition)? else { return Ok(true) };
            if failed_at == Some(group[0].meta().id) {
                return Ok(false);
            }
            failed_at = Some(group[0].meta().id);
            let is_cancelled = || self.shared.is_closing.load(SeqCst) || gives_way && self.is_busy();
            if is_cancelled() {
                return Ok(false);
            }
            // The manifest must not refer to a schema that the log could still lose.
            block_on(self.ask(Work::Sync))?;
            let threads = if gives_way { 1 } else { self.shared.config.merge_threads };
            let mut next_segment = || self.next_segment();
            let sealed =
                seal(&self.shared.store, &input.version, &group, threads_of(threads), &is_cancelled, &mut next_segment);
            let sealed = match sealed {
                Err(_) if is_cancelled() => return Ok(false),
                sealed => sealed?,
            };
            let rows = sealed.rewritten_rows;
            if !self.replace(&input, sealed)? {
                return Ok(false);
            }
            self.shared.counters.sealed_rows.fetch_add(rows, Relaxed);
            self.shared.counters.seals.fetch_add(1, Relaxed);
        }
    }
}

/// Returns adjacent segments of a partition to seal together: at most about the rows of one segment, at least one
/// unsealed.
fn next_group(table: &TableSnapshot, partition: i64) -> Result<Option<Vec<Arc<Segment>>>> {
    let is_here = |s: &&Arc<Segment>| s.meta().partition == partition && !s.meta().is_late;
    let segments: Vec<_> = table.segments.iter().filter(is_here).cloned().collect();
    let mut is_open = Vec::with_capacity(segments.len());
    for segment in &segments {
        is_open.push(!segment.is_sealed().map_err(Error::from)?);
    }
    let Some(first) = is_open.iter().position(|open| *open) else { return Ok(None) };
    // Without timestamps the order of segments is their number, so segments after a rewritten one are rewritten, too.
    if table.schema.designated.is_none() {
        return Ok(Some(segments[first..].to_vec()));
    }
    let rows_of = |at: usize| segments[at].rows() as usize;
    let (mut from, mut end, mut rows) = (first, first + 1, rows_of(first));
    while end < segments.len() && rows + rows_of(end) <= SEGMENT_ROWS_MAX {
        rows += rows_of(end);
        end += 1;
    }
    if from > 0 && rows + rows_of(from - 1) <= SEGMENT_ROWS_MAX {
        from -= 1;
    }
    Ok(Some(segments[from..tied_end(&segments, end)].to_vec()))
}

impl Seals {
    /// Returns partitions of a table that have been quiet for `quiet` and are not known to be sealed.
    fn due(&mut self, table: &TableSnapshot, quiet: Duration, now: Instant) -> Vec<i64> {
        let mut newest: HashMap<i64, SegmentId> = HashMap::new();
        for meta in table.segments.iter().map(|s| s.meta()) {
            let id = newest.entry(meta.partition).or_insert(meta.id);
            *id = (*id).max(meta.id);
        }
        // Partitions with late segments are compacted before.
        newest.retain(|partition, _| !late_of(&table.segments).any(|s| s.meta().partition == *partition));
        let mut due = Vec::new();
        for (partition, newest) in newest {
            let new = Partition { newest, changed: now, is_sealed: false, paused_until: None };
            let known = self.partitions.entry((table.id, partition)).or_insert(new);
            if known.newest != newest {
                *known = new;
            }
            let is_paused = known.paused_until.is_some_and(|until| now < until);
            if !known.is_sealed && !is_paused && now - known.changed >= quiet {
                due.push(partition);
            }
        }
        due.sort_unstable();
        due
    }

    fn note(&mut self, table: TableId, partition: i64, change: impl FnOnce(&mut Partition)) {
        if let Some(known) = self.partitions.get_mut(&(table, partition)) {
            change(known);
        }
    }
}
