//! Late segments are woven into the segments of their times.
//!
//! While rows come that fall everywhere, merges put them beside the segments of their times. Those are woven in when the
//! table has been at rest for a moment, or when nothing was put beside them for long beside what it would take, but never
//! later than when there are many. The segments are put in the place of the others by an ordinary edit of the manifest.
//!
//! Runs between merges; at rest it is given up when rows pile up or the database closes, and begun again later.

use super::{Jobs, threads_of};
use crate::writer::Work;
use crate::{Error, Result};
use futures::executor::block_on;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};
use tidalite_storage::late::{late_groups, late_of};
use tidalite_storage::merge::compact;
use tidalite_storage::{Segment, TableSnapshot};
use tidalite_types::{SegmentId, TableId};

/// Of one group: more are woven in whatever else there is to do.
const LATE_SEGMENTS_MAX: usize = 64;
/// A table is at rest when nothing came to it for this long.
const REST: Duration = Duration::from_millis(300);
/// At rest, the pause after a compaction is so many times what that took: rows may come in bursts.
const REST_FACTOR: u32 = 4;
/// While other rows come, late segments are left alone for so many times what it would take to weave them in.
const WAIT_FACTOR: u32 = 20;
/// What weaving a row in takes, about.
const ROW_TIME: Duration = Duration::from_nanos(500);
/// How long a table is left alone where it failed or was given up.
const PAUSE: Duration = Duration::from_secs(60);

/// What is known of tables that have late segments or had them.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    tables: HashMap<TableId, Late>,
}

#[derive(Clone, Copy, Debug)]
struct Late {
    newest: SegmentId,
    /// Since it is the newest.
    since: Instant,
    paused_until: Option<Instant>,
}

/// Which groups of late segments to weave in, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// All, until something else is to be done.
    GivesWay,
    /// Those with very many late segments.
    Many,
}

impl Jobs {
    /// Weaves late segments in where it is time for it.
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

    /// Weaves all late segments of a table in, but for groups with a damaged one.
    pub(super) fn compact_table(&mut self, table: TableId) -> Result<()> {
        self.compact_late(table, Wanted::All).map(drop)
    }

    /// Weaves late segments in where there are very many.
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

    /// False when it was given up in between.
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
            // The manifest must not know of a schema that the log could still lose.
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

/// Says why; gives how long to leave the table alone.
fn could_not(table: &str, error: &Error) -> Duration {
    tracing::warn!(table, %error, "late segments could not be woven in and stay beside those of their times");
    PAUSE
}
