//! Merges late segments into the segments of their times.
//!
//! If rows arrive for all times, merges write them to late segments. The late segments are compacted when the table has
//! been idle for a moment, or when no late segment was added for long compared with the cost, but at the latest when
//! there are many. The segments are replaced by an ordinary edit of the manifest.
//!
//! Runs between merges. At idle times it is cancelled when rows accumulate or the database closes, and started again
//! later.

use super::observations::{Compactions, Late};
use super::{Jobs, threads_of};
use crate::writer::Work;
use crate::{Error, Result};
use futures::executor::block_on;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};
use tidalite_storage::late::{late_groups, late_of};
use tidalite_storage::merge::compact;
use tidalite_storage::{Segment, TableSnapshot};
use tidalite_types::{SegmentId, TableId};

/// Number of late segments of one group above which it is compacted regardless of other work.
const LATE_SEGMENTS_MAX: usize = 64;
/// Time without commits after which a table is idle.
const REST: Duration = Duration::from_millis(300);
/// Factor of the pause after a compaction of an idle table, relative to its duration: rows may arrive in bursts.
const REST_FACTOR: u32 = 4;
/// Factor of the wait before a compaction while other rows arrive, relative to its cost.
const WAIT_FACTOR: u32 = 20;
/// Approximate time of compacting a row.
const ROW_TIME: Duration = Duration::from_nanos(500);
/// Pause of a table after a failed or cancelled compaction.
const PAUSE: Duration = Duration::from_secs(60);

/// The groups of late segments to compact, and the reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// All groups, until other work is due.
    GivesWay,
    /// Groups with very many late segments.
    Many,
}

impl Jobs {
    /// Compacts late segments that are due.
    pub(super) fn compact_some(&mut self, now: Instant) {
        let (_, tables) = self.shared.tables.all();
        self.compactions.tables.retain(|id, _| tables.binary_search_by_key(id, |t| t.id).is_ok());
        for table in &tables {
            let is_at_rest = self.watch.is_quiet(table.id, REST, now);
            if !self.compactions.is_due(table, is_at_rest, now) {
                continue;
            }
            let pause = match self.compact_late(table.id, Wanted::GivesWay) {
                Ok(true) => now.elapsed() * REST_FACTOR,
                Ok(false) => REST * REST_FACTOR,
                Err(error) => could_not(&table.schema.name, &error),
            };
            self.compactions.pause(table.id, pause);
            if self.is_busy() {
                return;
            }
        }
    }

    /// Compacts all late segments of a table, except for groups with a damaged one.
    pub(super) fn compact_table(&mut self, table: TableId) -> Result<()> {
        self.compact_late(table, Wanted::All).map(drop)
    }

    /// Compacts groups with very many late segments.
    pub(super) fn compact_many(&mut self, table: TableId) {
        let Some(version) = self.shared.tables.read().get(table).cloned() else { return };
        let now = Instant::now();
        let is_paused = self.compactions.of(table, now).paused_until.is_some_and(|until| now < until);
        if !is_paused
            && late_of(&version.segments).count() > LATE_SEGMENTS_MAX
            && let Err(error) = self.compact_late(table, Wanted::Many)
        {
            self.compactions.pause(table, could_not(&version.schema.name, &error));
        }
    }

    /// Returns false if it was cancelled.
    fn compact_late(&mut self, table: TableId, wanted: Wanted) -> Result<bool> {
        let mut left_alone: Vec<SegmentId> = Vec::new();
        loop {
            let Some(input) = self.shared.tables.read().begin_seal(table) else { return Ok(true) };
            let is_wanted = |group: &Vec<Arc<Segment>>| {
                let is_large = wanted != Wanted::Many || late_of(group).count() > LATE_SEGMENTS_MAX;
                is_large && !left_alone.contains(&group[0].meta().id)
            };
            let Some(group) = late_groups(&input.version).into_iter().find(is_wanted) else { return Ok(true) };
            let gives_way = wanted == Wanted::GivesWay;
            let is_cancelled = || self.shared.is_closing.load(SeqCst) || gives_way && self.is_busy();
            if is_cancelled() {
                return Ok(false);
            }
            let started = Instant::now();
            // The manifest must not refer to a schema that the log could still lose.
            block_on(self.ask(Work::Sync))?;
            let threads = threads_of(self.shared.config.merge_threads);
            let mut next_segment = || self.next_segment();
            let compacted =
                compact(&self.shared.store, &input.version, &group, threads, &is_cancelled, &mut next_segment);
            let compacted = match compacted {
                Err(_) if is_cancelled() => return Ok(false),
                Err(error) if wanted == Wanted::All && error.damage().is_some() => {
                    could_not(&input.version.schema.name, &input.version.named(error).into());
                    left_alone.push(group[0].meta().id);
                    continue;
                }
                compacted => compacted.map_err(|error| input.version.named(error))?,
            };
            let (rows, written) = (compacted.rewritten_rows, compacted.written_bytes);
            if !self.replace(&input, compacted)? {
                return Ok(false);
            }
            let counters = &self.shared.counters;
            counters.compactions.fetch_add(1, Relaxed);
            counters.rewritten_rows.fetch_add(rows, Relaxed);
            self.shared.note_merge(table, |work| {
                work.rewritten_rows += rows;
                work.written_bytes += written;
            });
            let (table, millis) = (&input.version.schema.name, started.elapsed().as_millis() as u64);
            tracing::debug!(table, rows, segments = group.len(), millis, "late segments woven in");
        }
    }
}

impl Compactions {
    fn is_due(&mut self, table: &TableSnapshot, is_at_rest: bool, now: Instant) -> bool {
        let Some(newest) = late_of(&table.segments).map(|s| s.meta().id).max() else { return false };
        let late = self.of(table.id, now);
        if late.newest != newest {
            (late.newest, late.since) = (newest, now);
        }
        let since = late.since;
        if late.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        is_at_rest || {
            let rows: u64 = late_groups(table).iter().flatten().map(|s| s.rows()).sum();
            let wait = ROW_TIME.saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX)) * WAIT_FACTOR;
            now - since >= wait.max(REST)
        }
    }

    fn of(&mut self, table: TableId, now: Instant) -> &mut Late {
        self.tables.entry(table).or_insert(Late { newest: SegmentId(0), since: now, paused_until: None })
    }

    fn pause(&mut self, table: TableId, pause: Duration) {
        let now = Instant::now();
        self.of(table, now).paused_until = Some(now + pause);
    }
}

/// Logs the reason, and returns the pause of the table.
fn could_not(table: &str, error: &Error) -> Duration {
    tracing::warn!(table, %error, "late segments could not be woven in and stay beside those of their times");
    PAUSE
}
