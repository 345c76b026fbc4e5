//! Background jobs: merges, checkpoints, and the removal of obsolete files.
//!
//! One thread schedules the jobs, and helpers merge several tables at a time. Every step can fail and is retried: a
//! full disk stops only the affected step. The merge of a table whose rows were removed in the meantime is discarded.
//!
//! Order: the log is synced up to the merged commits before the manifest names them; segments and symbols are written
//! before the manifest, and the manifest before readers see them. Files are removed when neither the manifest nor any
//! reader uses them.

mod compact;
mod expire;
mod manifest_edits;
mod observations;
mod seal;
mod watch;

use crate::shared::Shared;
use crate::threads::on_threads;
use crate::writer::{Requests, Work, submit};
use crate::{Error, Result};
use futures::executor::block_on;
pub(crate) use manifest_edits::{reconcile, staged_ops};
use observations::{Compactions, Jumps, Seals};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidalite_ingest::wal::checkpoint::{self, CheckpointWriter};
use tidalite_ingest::wal::log::make_spare;
use tidalite_kernels::ask_for_long_turns;
use tidalite_storage::dead::ranges_of_mask;
use tidalite_storage::late::late_of;
use tidalite_storage::manifest::{Change, Checkpoint, Taken};
use tidalite_storage::merge::{MergeOptions, Merged, Threads, merge, reclaimable};
use tidalite_storage::tables::{MergeInput, Staged};
use tidalite_storage::{Segment, TableSnapshot, symbol_file};
use tidalite_types::{SegmentId, TableId, Txn};
use watch::{Due, Limits, Watch};

/// Nice level with about a tenth of the share of a thread of normal priority under contention.
const MERGE_NICENESS: i32 = 10;
/// Divisor of the staging limit; above this fill the jobs thread does not pause.
const HURRY_PART: usize = 4;
/// Interval between checks for work without a request.
const TICK: Duration = Duration::from_millis(100);
/// Interval between checks of tables with a TTL.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between writes of the mark of the log.
const MARK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a failure, unless a caller waits; doubled by each further failure.
const RETRY: Duration = Duration::from_secs(1);
/// Largest number of doublings.
const RETRY_DOUBLINGS_MAX: u32 = 4;

#[derive(Debug)]
pub(crate) struct Jobs {
    shared: Arc<Shared>,
    /// Channel to the commit thread, until the database closes.
    requests: Option<Requests>,
    watch: Watch,
    seals: Seals,
    compactions: Compactions,
    /// Replaced segments that a reader may still use.
    obsolete: Vec<Arc<Segment>>,
    /// Segments that may be removed once the manifest certainly no longer names them: segments that removals took out
    /// of tables, and those of merges that could not be published.
    doubtful: Mutex<Vec<Arc<Segment>>>,
    /// Log bytes from before this open, and log bytes written until the last checkpoint.
    log_bytes_before: u64,
    log_bytes_checkpointed: u64,
    retry_at: Option<Instant>,
    /// Number of failed rounds since the last successful one.
    failures: u32,
    /// Time of the last check of tables with a TTL.
    expired_at: Option<Instant>,
    jumps: Jumps,
    /// Time of the last write of the log's mark.
    marked_at: Option<Instant>,
    /// True if merges rewrite every segment with deleted rows, not only those for which it pays.
    reclaims_all: bool,
}

impl Jobs {
    pub(crate) fn new(shared: Arc<Shared>, requests: Requests, log_bytes_before: u64) -> Jobs {
        Jobs {
            shared,
            requests: Some(requests),
            watch: Watch::default(),
            seals: Seals::default(),
            compactions: Compactions::default(),
            obsolete: Vec::new(),
            doubtful: Mutex::default(),
            log_bytes_before,
            log_bytes_checkpointed: 0,
            retry_at: None,
            failures: 0,
            expired_at: None,
            jumps: Jumps::default(),
            marked_at: None,
            reclaims_all: false,
        }
    }

    /// Runs the jobs until the database closes.
    ///
    /// This thread and its helpers have lower priority than commits and queries; if writers wait for the merge,
    /// processors are free for it.
    pub(crate) fn run(jobs: &Mutex<Jobs>, shared: &Shared) {
        // Fails only on systems without priorities: merges then compete equally.
        let _ = rustix::process::nice(MERGE_NICENESS);
        ask_for_long_turns();
        while !shared.is_closing.load(SeqCst) {
            shared.wait_for_wish(TICK);
            let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
            if jobs.retry_at.is_none_or(|at| at <= Instant::now()) {
                let due = jobs.due();
                // Errors were recorded and are retried.
                let _ = jobs.round(&due);
                if due.is_empty() {
                    jobs.compact_some(Instant::now());
                    jobs.seal_some(Instant::now());
                }
            }
            jobs.purge();
            jobs.make_spare();
            jobs.mark_log();
            let may_expire = !shared.config.is_read_only;
            if may_expire && jobs.expired_at.is_none_or(|at| at.elapsed() >= EXPIRY_INTERVAL) {
                jobs.expire_with_care(now(), Instant::now());
            }
        }
    }

    /// Writes the mark of the log, so that commits need not write it.
    fn mark_log(&mut self) {
        if self.marked_at.is_some_and(|at| at.elapsed() < MARK_INTERVAL) {
            return;
        }
        self.marked_at = Some(Instant::now());
        if let Err(error) = self.shared.log_mark.write() {
            tracing::warn!(%error, "could not write the mark of the log; the next attempt follows");
        }
    }

    /// Makes the next log file if there is none. Without it the log continues, with slower syncs.
    fn make_spare(&self) {
        let shared = &self.shared;
        // Commits also use the disk. If many rows wait for merges, or a caller for this thread, these are more urgent.
        let pause = |took| {
            if shared.tables.read().staged().bytes < shared.config.staging_bytes / HURRY_PART {
                shared.pause(took);
            }
        };
        if shared.log_wants_spare.load(Relaxed)
            && make_spare(&*shared.fs, shared.config.log_file_bytes, shared.config.log_bypasses_cache(), pause)
                .inspect_err(|error| tracing::debug!(%error, "no spare file for the log"))
                .is_ok()
        {
            let _ = block_on(self.ask(Work::Spare));
        }
    }

    /// Drops partitions older than a TTL, merges all staged rows, then writes a checkpoint.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if !self.shared.config.is_read_only {
            self.expire(now());
        }
        self.merge_all()
    }

    /// Merges all staged rows, then writes a checkpoint.
    pub(crate) fn merge_all(&mut self) -> Result<()> {
        let tables = self.shared.tables.all().1;
        let with_work = tables.iter().filter(|t| !t.runs.is_empty() || !t.dead.is_empty());
        let all: Vec<Due> = with_work.map(|t| Due { id: t.id, keeps: false }).collect();
        self.reclaims_all = true;
        let merged = self.round(&all).and_then(|()| self.compact_all());
        self.reclaims_all = false;
        merged?;
        self.checkpoint()?;
        self.purge();
        Ok(())
    }

    /// Compacts all late segments, except for groups with a damaged one.
    fn compact_all(&mut self) -> Result<()> {
        let with_late = |t: &&Arc<TableSnapshot>| late_of(&t.segments).next().is_some();
        let tables: Vec<TableId> = self.shared.tables.all().1.iter().filter(with_late).map(|t| t.id).collect();
        for &table in &tables {
            self.compact_table(table)?;
        }
        // Segments with deleted rows that had late segments.
        let left: Vec<Due> = tables.into_iter().map(|id| Due { id, keeps: false }).collect();
        self.round(&left)
    }

    /// The last step of a close: writes staged rows to a checkpoint, and ends the requests to the commit thread.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let result = self.checkpoint();
        self.purge();
        self.requests = None;
        result
    }

    fn round(&mut self, tables: &[Due]) -> Result<()> {
        let threads = self.shared.config.merge_threads.max(1);
        let mut failure = None;
        for some in tables.chunks(threads) {
            some.iter().for_each(|due| self.note_lateness(due.id));
            let threads = threads / some.len();
            let results: Vec<_> = std::thread::scope(|scope| {
                let jobs = &*self;
                let spawned: Vec<_> =
                    some.iter().map(|&due| scope.spawn(move || jobs.merge_due(due, threads))).collect();
                spawned.into_iter().map(|s| s.join().unwrap_or_else(|_| Err(panicked()))).collect()
            });
            for (due, result) in some.iter().zip(results) {
                match result {
                    Ok(replaced) => {
                        self.obsolete.extend(replaced);
                        self.compact_many(due.id);
                    }
                    Err(error) => failure = Some(self.merge_failed(due.id, error)),
                }
                self.watch.merged(due.id, self.left_staged(due.id), Instant::now());
            }
            self.shared.merge_ended(failure.as_ref().map(Error::to_string));
            // Not awaited, because the commit thread may be waiting for the next merge.
            drop(self.ask(Work::Wake));
        }
        if (self.is_log_long() || self.shared.tables.read().has_removed())
            && let Err(error) = self.checkpoint()
        {
            tracing::error!(%error, "could not write a checkpoint and will try again; the log grows meanwhile");
            failure = Some(error);
        }
        self.retry_at =
            failure.is_some().then(|| Instant::now() + RETRY * (1 << self.failures.min(RETRY_DOUBLINGS_MAX)));
        self.failures = if failure.is_some() { self.failures.saturating_add(1) } else { 0 };
        failure.map_or(Ok(()), Err)
    }

    /// Merges one table without a due checkpoint; every second call merges only rows older than the middle of the
    /// staged times.
    #[cfg(test)]
    pub(crate) fn merge_now(&mut self, table: TableId) -> Result<()> {
        let middle = |version: &TableSnapshot| {
            let ranges = version.runs.iter().map(|run| run.time_range);
            let (lo, hi) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
            (version.schema.designated.is_some() && version.txn.0 % 2 == 1).then(|| lo.midpoint(hi))
        };
        let replaced = self.merge_table(table, self.shared.config.merge_threads, middle)?;
        self.obsolete.extend(replaced);
        self.purge();
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn compact_now(&mut self, table: TableId) -> Result<()> {
        self.compact_table(table)?;
        self.purge();
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn checkpoint_now(&mut self) -> Result<()> {
        self.checkpoint()?;
        self.purge();
        Ok(())
    }

    /// Merges the staged rows of one table.
    pub(crate) fn merge_staged(&mut self, table: TableId) -> Result<()> {
        self.round(&[Due { id: table, keeps: false }])?;
        self.purge();
        Ok(())
    }

    fn note_lateness(&mut self, table: TableId) {
        if let Some(version) = self.shared.tables.read().get(table).cloned() {
            self.watch.note_lateness(&version, self.shared.config.merge_lag_max);
        }
    }

    fn merge_failed(&self, table: TableId, error: Error) -> Error {
        self.shared.counters.merge_failures.fetch_add(1, Relaxed);
        let name = self.shared.tables.read().get(table).map_or_else(String::new, |t| t.schema.name.clone());
        tracing::error!(table = name, %error, "a merge failed and will be tried again; its rows are in the log");
        error
    }

    /// Returns the tables to merge now.
    fn due(&mut self) -> Vec<Due> {
        let (_, tables) = self.shared.tables.all();
        let limits = self.limits();
        self.shared.forget_merges(|id| tables.binary_search_by_key(&id, |t| t.id).is_ok());
        self.watch.due(&tables, limits, Instant::now())
    }

    fn limits(&self) -> Limits {
        let config = &self.shared.config;
        Limits {
            staging_bytes: config.staging_bytes,
            staged_bytes: self.shared.tables.read().staged().bytes,
            is_log_long: self.is_log_long(),
        }
    }

    /// Returns true if a recovery would have to read more than the limit.
    fn is_log_long(&self) -> bool {
        let written = self.shared.counters.log_written_bytes.load(Relaxed);
        self.log_bytes_before + written - self.log_bytes_checkpointed > self.shared.config.log_bytes
    }

    fn merge_due(&self, due: Due, threads: usize) -> Result<Vec<Arc<Segment>>> {
        let staging_bytes = self.shared.config.staging_bytes;
        let kept_from = |version: &TableSnapshot| self.watch.kept_from(version, staging_bytes).filter(|_| due.keeps);
        self.merge_table(due.id, threads, kept_from)
    }

    /// Merges the staged rows of a table, except rows from the time of `kept_from` on; returns the replaced segments.
    fn merge_table(
        &self,
        table: TableId,
        threads: usize,
        kept_from: impl Fn(&TableSnapshot) -> Option<i64>,
    ) -> Result<Vec<Arc<Segment>>> {
        let Some(mut input) = self.shared.tables.write().begin_merge(table) else { return Ok(Vec::new()) };
        input.kept_from = kept_from(&input.version).map(|from| from.max(self.taken_before(table)));
        let reclaim = reclaimable(&input.version, self.reclaims_all);
        if input.version.runs.is_empty() && reclaim.is_empty() {
            return Ok(Vec::new());
        }
        let started = Instant::now();
        // The manifest must not refer to commits that the log could still lose: neither to rows nor to the schema.
        block_on(self.ask(Work::Sync))?;
        let mut next_segment = || self.next_segment();
        let options = MergeOptions {
            threads: threads_of(threads),
            tail_from: self.watch.tail_from(&input.version),
            kept_from: input.kept_from,
            late_rows_min: self.shared.config.late_rows_min,
        };
        let merged = merge(&self.shared.store, &input.version, &reclaim, &options, &mut next_segment)?;
        for error in &merged.damaged {
            tracing::error!(%error, "a damaged segment was left alone by a merge; new rows are in segments beside it");
        }
        // A failed edit may have reached the disk: the files may be removed after the next successful edit.
        let is_shown = self.publish(&input, &merged).inspect_err(|_| self.doubt(&merged.added))?;
        let counters = &self.shared.counters;
        counters.segment_written_bytes.fetch_add(merged.written_bytes, Relaxed);
        if !is_shown {
            return Ok(merged.added);
        }
        counters.merges.fetch_add(1, Relaxed);
        counters.merged_rows.fetch_add(merged.staged_rows, Relaxed);
        self.shared.note_merge(table, |work| {
            work.merges += 1;
            work.merged_rows += merged.staged_rows;
            work.merged_bytes += Staged::of(&input.version.runs).bytes as u64;
            work.rewritten_rows += merged.rewritten_rows;
            work.written_bytes += merged.written_bytes;
            work.last_merge = Some(std::time::SystemTime::now());
            work.last_merge_time = started.elapsed();
        });
        counters.rewritten_rows.fetch_add(merged.rewritten_rows, Relaxed);
        tracing::debug!(
            table = input.version.schema.name,
            rows = merged.staged_rows,
            rewritten = merged.rewritten_rows,
            segments = merged.added.len(),
            millis = started.elapsed().as_millis() as u64,
            "merged"
        );
        Ok(merged.removed)
    }

    /// Returns the size of the rows that the last merge of a table left staged, excluding later rows.
    fn left_staged(&self, table: TableId) -> Staged {
        let manifest = self.shared.lock_manifest();
        let known = manifest.manifest.state().tables.get(&table);
        let upto = known.and_then(|t| t.taken).map_or(Txn(0), |taken| taken.upto);
        drop(manifest);
        let version = self.shared.tables.read().get(table).cloned();
        let runs = version.iter().flat_map(|t| t.runs.iter()).take_while(|run| run.txns.1 <= upto);
        Staged::of(&runs.cloned().collect::<Vec<_>>())
    }

    /// Returns the time before which some staged commits have no rows left.
    ///
    /// A merge must not leave older rows of other commits, because the manifest has one time for all.
    fn taken_before(&self, table: TableId) -> i64 {
        let manifest = self.shared.lock_manifest();
        let known = manifest.manifest.state().tables.get(&table);
        let taken = known.and_then(|t| t.taken.filter(|taken| taken.upto > t.merged));
        taken.map_or(i64::MIN, |taken| taken.before)
    }

    /// Records segments of a failed edit, which may have reached the disk: they may be removed after the next
    /// successful edit.
    fn doubt(&self, added: &[Arc<Segment>]) {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner).extend(added.iter().cloned());
    }

    fn next_segment(&self) -> SegmentId {
        self.shared.take_segment_id()
    }

    /// Replaces segments by segments written from them; returns false if a change of the table invalidated them.
    fn replace(&mut self, input: &MergeInput, merged: Merged) -> Result<bool> {
        self.shared.counters.segment_written_bytes.fetch_add(merged.written_bytes, Relaxed);
        let is_shown = self.publish(input, &merged).inspect_err(|_| self.doubt(&merged.added))?;
        self.obsolete.extend(if is_shown { merged.removed } else { merged.added });
        Ok(is_shown)
    }

    /// Writes a merge to the manifest, then publishes it; returns false if a change of the table invalidated it.
    fn publish(&self, input: &MergeInput, merged: &Merged) -> Result<bool> {
        let (id, version) = (input.version.id, &input.version);
        // Deletions of rows hold this lock until their publication, so the deleted rows are known.
        let _deletes = self.shared.lock_deletes();
        // Removals of rows also take this lock, so the current version stays current until the end.
        let mut manifest = self.shared.lock_manifest();
        if !self.shared.tables.read().is_current(input) {
            return Ok(false);
        }
        let died = self.shared.tables.read().died_since(input);
        let dead = if died.is_empty() { Vec::new() } else { merged.moved(version, &died)? };
        // After a failed edit, the state on disk is determined before the next edit.
        manifest.manifest.mend()?;
        // There is one merge of a table at a time, and an attached load would have ended it above.
        let mut after: Vec<Arc<Segment>> = input.version.segments.to_vec();
        after.retain(|s| !merged.removed.iter().any(|r| r.meta().id == s.meta().id));
        after.extend(merged.added.iter().cloned());
        let persisted = manifest.persisted.entry(id).or_default().clone();
        let pending = symbol_file::pending(&version.symbols, &persisted);
        let written = manifest.manifest.state().tables.get(&id).map_or(0, |t| t.symbol_bytes);
        let symbol_bytes = symbol_file::append(&*self.shared.fs, id, written, &pending)?;
        let mut changes = reconcile(self.shared.next_segment_id(), manifest.manifest.state(), version, &after);
        changes.push(Change::Content {
            table: id,
            add: Vec::new(),
            remove: Vec::new(),
            merged: input.merged_txn(),
            symbol_bytes,
        });
        if let (Some(before), Some(last)) = (input.kept_from, version.runs.last()) {
            changes.push(Change::Taken { table: id, taken: Taken { upto: last.txns.1, before } });
        }
        // The deletions refer to segments and runs that recovery will not find.
        let masks = dead.iter().map(|(segment, mask)| (*segment, ranges_of_mask(mask)));
        changes.extend(masks.map(|(segment, rows)| Change::Dead { table: id, segment, rows }));
        self.shared.is_merge_in_doubt.store(true, SeqCst);
        manifest.manifest.edit(&changes)?;
        self.shared.is_merge_in_doubt.store(false, SeqCst);
        let counts = pending.iter().map(|e| (e.column, e.first + e.strings.len() as u32));
        manifest.persisted.entry(id).or_default().extend(counts);
        self.shared.tables.write().end_merge(input, merged.added.clone(), &merged.removed, dead);
        Ok(true)
    }

    /// Writes the staged rows of all tables to one file, so that the log before it can be removed.
    fn checkpoint(&mut self) -> Result<()> {
        block_on(self.ask(Work::Sync))?;
        let mut manifest = self.shared.lock_manifest();
        manifest.manifest.mend()?;
        let written = self.shared.counters.log_written_bytes.load(Relaxed);
        let (txn, tables) = self.shared.tables.all();
        let removed = self.shared.tables.write().take_removed();
        let state = manifest.manifest.state().clone();
        if txn == state.checkpoint.txn && removed.is_empty() {
            drop(manifest);
            return block_on(self.ask(Work::Release(self.shared.releasable(txn))));
        }
        self.doubtful.get_mut().unwrap_or_else(PoisonError::into_inner).extend(removed);
        let mut changes: Vec<Change> =
            state.tables.keys().filter(|id| !tables.iter().any(|t| t.id == **id)).map(|id| Change::Drop(*id)).collect();
        let number = state.checkpoint.file.max(self.shared.checkpoint_files.load(SeqCst)) + 1;
        self.shared.checkpoint_files.store(number, SeqCst);
        let mut writer = CheckpointWriter::create(&*self.shared.fs, number)?;
        for table in &tables {
            changes.extend(reconcile(self.shared.next_segment_id(), &state, table, &table.segments));
            let persisted = manifest.persisted.get(&table.id).cloned().unwrap_or_default();
            staged_ops(table, &persisted).try_for_each(|op| writer.write(&op))?;
            let times = self.shared.lock_times().op(table.id);
            times.into_iter().try_for_each(|op| writer.write(&op))?;
        }
        writer.finish(&*self.shared.fs)?;
        changes.push(Change::Checkpoint(Checkpoint { txn, file: number }));
        manifest.manifest.edit(&changes)?;
        drop(manifest);
        (self.log_bytes_before, self.log_bytes_checkpointed) = (0, written);
        self.obsolete.append(self.doubtful.get_mut().unwrap_or_else(PoisonError::into_inner));
        // The following steps only remove files: after a failure the next open removes them.
        if state.checkpoint.file != 0 {
            let _ = self.shared.fs.remove(&checkpoint::path_of(state.checkpoint.file));
        }
        for change in &changes {
            if let Change::Drop(table) = change {
                let _ = self.shared.fs.remove(&symbol_file::path_of(*table));
            }
        }
        block_on(self.ask(Work::Release(self.shared.releasable(txn))))?;
        self.shared.counters.checkpoints.fetch_add(1, Relaxed);
        tracing::info!(txn = txn.0, "checkpoint");
        Ok(())
    }

    /// Removes the files of segments that no version and no reader uses. The manifest no longer names them.
    fn purge(&mut self) {
        let (fs, store) = (&self.shared.fs, &self.shared.store);
        self.obsolete.retain(|segment| {
            if Arc::strong_count(segment) > 1 {
                return true;
            }
            store.forget(segment.meta().id);
            let _ = fs.remove(&segment.path());
            false
        });
    }

    fn ask(&self, work: Work) -> impl Future<Output = Result<()>> + use<> {
        let answer = self.requests.as_ref().map(|requests| submit(requests, work));
        async move {
            match answer {
                Some(answer) => answer.await.map(drop),
                None => Err(Error::new(crate::ErrorKind::Unavailable, "the database is closed")),
            }
        }
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

pub(crate) fn threads_of(count: usize) -> Threads<'static> {
    Threads { count, on: &on_threads }
}

fn panicked() -> Error {
    Error::new(crate::ErrorKind::Internal, "a merge panicked")
}
