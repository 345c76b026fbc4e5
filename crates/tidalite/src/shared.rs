//! State shared by the threads of a database, and their wake-ups.

use crate::metrics::{Counters, Metric};
use crate::{DatabaseConfig, Metrics};
use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tidalite_ingest::recover::Persisted;
use tidalite_ingest::times::ChangedTimes;
use tidalite_ingest::wal::mark::Mark;
use tidalite_query::{MergeWork, TableMetrics};
use tidalite_storage::fs::Fs;
use tidalite_storage::late::late_of;
use tidalite_storage::manifest::Manifest;
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::tables::Staged;
use tidalite_storage::{TableSnapshot, Tables};
use tidalite_types::{SegmentId, TableId, Txn};

/// State shared by the threads of a database.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: DatabaseConfig,
    pub fs: Arc<dyn Fs>,
    pub store: Arc<SegmentStore>,
    pub tables: Arc<Tables>,
    pub counters: Counters,
    /// Held from the decision which rows are deleted until readers see it, and while a merge is published. Locked
    /// before `manifest`.
    deletes: Mutex<()>,
    /// Locked before the lock of `tables`, never while holding it.
    manifest: Mutex<ManifestState>,
    /// True if an edit for a merge failed, so that the manifest may contain it. Changed while `deletes` is held.
    pub is_merge_in_doubt: AtomicBool,
    pub is_closing: AtomicBool,
    /// The mark of the log.
    pub log_mark: Arc<Mark>,
    /// True if the next log file does not exist yet.
    pub log_wants_spare: AtomicBool,
    /// The id of the next segment.
    pub next_segment: AtomicU64,
    /// The number of the last checkpoint file written, published or not.
    pub checkpoint_files: AtomicU64,
    /// Work of merges for each table since the database was opened.
    merge_work: Mutex<HashMap<TableId, MergeWork>>,
    merge: Mutex<MergeSignal>,
    wished: Condvar,
    /// Changes that materialized views have not processed. Recorded before the changes are visible.
    times: Mutex<ChangedTimes>,
    /// True if a base table of a view changed since the views were last checked.
    followed_changed: Mutex<bool>,
    views_wished: Condvar,
    /// States of refreshes of materialized views.
    refreshes: Mutex<HashMap<TableId, RefreshKnown>>,
    /// Number of backups that copy log files: none may be removed.
    pub log_readers: AtomicUsize,
    /// The last failure of the log.
    log_state: Mutex<LogState>,
    /// Number of loads that wait for a merge. While there is one, compactions and seals stop early.
    pub waiting_loads: AtomicUsize,
    /// True after a close, when loads may no longer touch files. Held for reading while a load writes or removes files.
    loads_ended: RwLock<bool>,
}

#[derive(Debug, Default)]
struct LogState {
    /// The reason why the log refuses commits until the database is opened again.
    failure: Option<String>,
    /// The bytes that the disk had no space for, and the error of the system.
    full: Option<(u64, String)>,
}

/// The reasons why a database does not work or refuses commits.
#[derive(Clone, Debug, Default)]
pub struct DatabaseState {
    /// The thread of commits has ended.
    pub is_over: bool,
    /// Why commits are refused.
    pub not_writable: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ManifestState {
    pub manifest: Manifest,
    /// Number of symbols of each column in the table's symbol file.
    pub persisted: Persisted,
}

/// State of the refreshes of a view since the database was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefreshKnown {
    /// In microseconds since 1970.
    pub started: Option<i64>,
    pub is_running: bool,
    pub error: Option<String>,
}

#[derive(Debug, Default)]
struct MergeSignal {
    is_wanted: bool,
    failure: Option<String>,
}

impl Shared {
    pub(crate) fn new(
        config: DatabaseConfig,
        fs: Arc<dyn Fs>,
        store: Arc<SegmentStore>,
        tables: Tables,
        manifest: ManifestState,
        times: ChangedTimes,
        log_mark: Arc<Mark>,
    ) -> Shared {
        Shared {
            config,
            fs,
            store,
            tables: Arc::new(tables),
            counters: Counters::default(),
            next_segment: AtomicU64::new(manifest.manifest.state().next_segment.0.max(1)),
            checkpoint_files: AtomicU64::new(manifest.manifest.state().checkpoint.file),
            deletes: Mutex::default(),
            manifest: Mutex::new(manifest),
            is_merge_in_doubt: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            log_mark,
            log_wants_spare: AtomicBool::new(true),
            merge_work: Mutex::default(),
            merge: Mutex::default(),
            wished: Condvar::new(),
            times: Mutex::new(times),
            followed_changed: Mutex::new(true),
            views_wished: Condvar::new(),
            refreshes: Mutex::default(),
            log_readers: AtomicUsize::new(0),
            log_state: Mutex::default(),
            waiting_loads: AtomicUsize::new(0),
            loads_ended: RwLock::new(false),
        }
    }

    pub(crate) fn lock_deletes(&self) -> MutexGuard<'_, ()> {
        lock(&self.deletes)
    }

    /// Makes the manifest certain after a merge whose edit failed: the edit may be on disk, and a recovery would find
    /// rows of a later delete elsewhere. Must be called while no merge can be published.
    pub(crate) fn settle_manifest(&self) -> tidalite_storage::Result<()> {
        if self.is_merge_in_doubt.load(SeqCst) {
            self.lock_manifest().manifest.mend()?;
            self.is_merge_in_doubt.store(false, SeqCst);
        }
        Ok(())
    }

    /// Returns the id of a new segment.
    pub(crate) fn take_segment_id(&self) -> SegmentId {
        SegmentId(self.next_segment.fetch_add(1, SeqCst))
    }

    /// Permits a load to write and remove files during the life of the returned value; `None` after a close.
    pub(crate) fn begin_load_files(&self) -> Option<RwLockReadGuard<'_, bool>> {
        let ended = self.loads_ended.read().unwrap_or_else(PoisonError::into_inner);
        (!*ended).then_some(ended)
    }

    /// Waits until no load writes files and prevents further writes.
    pub(crate) fn end_loads(&self) {
        *self.loads_ended.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub(crate) fn lock_manifest(&self) -> MutexGuard<'_, ManifestState> {
        lock(&self.manifest)
    }

    /// Returns the id of the next segment.
    pub(crate) fn next_segment_id(&self) -> SegmentId {
        SegmentId(self.next_segment.load(SeqCst))
    }

    /// Returns the commit up to which log files may be removed, if a recovery does not need those up to `txn`.
    pub(crate) fn releasable(&self, txn: Txn) -> Txn {
        if self.log_readers.load(SeqCst) > 0 { Txn(0) } else { txn }
    }

    pub(crate) fn lock_times(&self) -> MutexGuard<'_, ChangedTimes> {
        lock(&self.times)
    }

    pub(crate) fn note_refresh(&self, view: TableId, note: impl FnOnce(&mut RefreshKnown)) {
        note(lock(&self.refreshes).entry(view).or_default());
    }

    pub(crate) fn refresh_note(&self, view: TableId) -> RefreshKnown {
        lock(&self.refreshes).get(&view).cloned().unwrap_or_default()
    }

    /// Wakes the thread that refreshes materialized views.
    pub(crate) fn ask_for_refresh(&self) {
        *lock(&self.followed_changed) = true;
        self.views_wished.notify_all();
    }

    /// Waits until a base table of a view changed, or the timeout.
    pub(crate) fn wait_for_refresh(&self, timeout: Duration) {
        let changed = lock(&self.followed_changed);
        let waited = self.views_wished.wait_timeout_while(changed, timeout, |changed| !*changed);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Wakes the jobs thread.
    pub(crate) fn ask_for_merge(&self) {
        lock(&self.merge).is_wanted = true;
        self.wished.notify_all();
    }

    /// Waits for a request or the timeout, and clears the request.
    pub(crate) fn wait_for_wish(&self, timeout: Duration) {
        self.wait_until_wished(timeout).is_wanted = false;
    }

    /// Waits like [`Shared::wait_for_wish`] without clearing the request.
    pub(crate) fn pause(&self, timeout: Duration) {
        drop(self.wait_until_wished(timeout));
    }

    fn wait_until_wished(&self, timeout: Duration) -> MutexGuard<'_, MergeSignal> {
        let waited = self.wished.wait_timeout_while(lock(&self.merge), timeout, |s| !s.is_wanted);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Counts the work of a merge for a table.
    pub(crate) fn note_merge(&self, table: TableId, count: impl FnOnce(&mut MergeWork)) {
        count(lock(&self.merge_work).entry(table).or_default());
    }

    pub(crate) fn forget_merges(&self, is_there: impl Fn(TableId) -> bool) {
        lock(&self.merge_work).retain(|table, _| is_there(*table));
    }

    /// Returns the staged rows and the work of merges for each table.
    pub(crate) fn table_metrics(&self) -> Vec<TableMetrics> {
        let work = lock(&self.merge_work);
        let tables = self.tables.all().1;
        let of = |table: &TableSnapshot| {
            let staged = Staged::of(&table.runs);
            TableMetrics {
                table: table.schema.name.clone(),
                staged_rows: staged.rows as u64,
                staged_bytes: staged.bytes as u64,
                staged_runs: table.runs.len() as u64,
                segments: table.segments.len() as u64,
                late_rows: late_of(&table.segments).map(|s| s.rows()).sum(),
                segment_bytes: table.segments.iter().map(|s| s.meta().bytes).sum(),
                work: work.get(&table.id).copied().unwrap_or_default(),
            }
        };
        tables.iter().map(|t| of(t)).collect()
    }

    /// Records the end of a merge.
    pub(crate) fn merge_ended(&self, failure: Option<String>) {
        lock(&self.merge).failure = failure;
    }

    /// Returns the reason of the last merge's failure.
    pub(crate) fn merge_failure(&self) -> Option<String> {
        lock(&self.merge).failure.clone()
    }

    /// Returns true if waiting for the merge is pointless.
    pub(crate) fn merge_is_stuck(&self) -> bool {
        self.is_closing.load(SeqCst) || lock(&self.merge).failure.is_some()
    }

    /// Records that the log accepts no more commits.
    pub(crate) fn note_log_failure(&self, why: &str) {
        let mut state = lock(&self.log_state);
        if state.failure.is_none() {
            tracing::error!(why, "the log failed: commits are refused until the database is opened again");
            state.failure = Some(why.to_owned());
        }
    }

    pub(crate) fn log_failure(&self) -> Option<String> {
        lock(&self.log_state).failure.clone()
    }

    /// Notes a full disk, with the bytes of log that were requested; `None` after a successful reservation.
    pub(crate) fn note_log_room(&self, full: Option<(u64, String)>) {
        lock(&self.log_state).full = full;
    }

    /// Returns the bytes of the last reservation of log space, if the disk was full.
    pub(crate) fn log_room_missing(&self) -> Option<u64> {
        lock(&self.log_state).full.as_ref().map(|(bytes, _)| *bytes)
    }

    pub(crate) fn state(&self, is_over: bool) -> DatabaseState {
        let log = lock(&self.log_state);
        let failed = log.failure.as_ref().map(|why| format!("the log failed: {why}"));
        let full = log.full.as_ref().map(|(_, why)| format!("no room for the log: {why}"));
        drop(log);
        let is_over_limit = || self.tables.read().staged().bytes > self.config.staging_bytes;
        let unmerged = self.merge_failure().filter(|_| is_over_limit());
        let unmerged = unmerged.map(|why| format!("no room for more rows until they can be merged: {why}"));
        DatabaseState { is_over, not_writable: failed.or(full).or(unmerged) }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let gauge = |name, help, value: usize| Metric { name, help, is_counter: false, value: value as f64 };
        let (staged, tables) = (self.tables.read().staged(), self.tables.all().1);
        let (mut segments, mut rows, mut bytes, mut late_rows) = (0, 0, 0, 0);
        for segment in tables.iter().flat_map(|t| t.segments.iter()) {
            segments += 1;
            rows += segment.meta().rows as usize;
            late_rows += if segment.meta().is_late { segment.meta().rows as usize } else { 0 };
            bytes += segment.meta().bytes as usize;
        }
        let mut metrics = self.counters.read();
        metrics.extend([
            gauge("tidalite_tables", "Tables.", tables.len()),
            gauge("tidalite_segments", "Segments of all tables.", segments),
            gauge("tidalite_segment_rows", "Rows in segments.", rows),
            gauge("tidalite_late_rows", "Rows in segments beside those of their times, to be woven in.", late_rows),
            gauge("tidalite_segment_bytes", "Bytes of segments.", bytes),
            gauge("tidalite_staged_rows", "Committed rows that are not in segments yet.", staged.rows),
            gauge("tidalite_staged_bytes", "Memory of committed rows that are not in segments yet.", staged.bytes),
        ]);
        metrics
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
