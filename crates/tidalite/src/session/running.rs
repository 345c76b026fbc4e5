//! The list of running statements, which are stopped by id.

use super::Activity;
use super::statistics::{Ended, Statistics};
use crate::ErrorKind;
use arrow::array::{Array, RecordBatch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tidalite_query::CancelToken;

/// The list. Ids are assigned in order of arrival and never reused.
#[derive(Clone, Debug)]
pub(super) struct Running {
    inner: Arc<Mutex<Inner>>,
    /// Receives every statement that ends.
    statistics: Arc<Statistics>,
}

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    entries: BTreeMap<u64, (Activity, CancelToken)>,
}

/// An entry of the list. Dropping it removes the entry and cancels remaining work, whose result is no longer needed.
pub(super) struct Entry {
    id: u64,
    pub cancel: CancelToken,
    running: Running,
    started: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// True until the statement succeeds.
    is_failed: AtomicBool,
    is_counted: AtomicBool,
}

impl Running {
    pub fn new(statistics: Arc<Statistics>) -> Running {
        Running { inner: Arc::default(), statistics }
    }

    pub fn enter(&self, sql: &str, client: String) -> Entry {
        let mut inner = self.lock();
        inner.last_id += 1;
        let id = inner.last_id;
        let cancel = CancelToken::new();
        let sql = sql.to_owned();
        let activity = Activity { id, client, sql, started: SystemTime::now(), rows: (0, 0), is_queued: false };
        inner.entries.insert(id, (activity, cancel.clone()));
        let (rows, bytes, is_failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(true));
        let is_counted = AtomicBool::new(true);
        Entry { id, cancel, running: self.clone(), started: Instant::now(), rows, bytes, is_failed, is_counted }
    }

    /// Returns the number of statements that began.
    pub fn begun(&self) -> u64 {
        self.lock().last_id
    }

    pub fn list(&self) -> Vec<Activity> {
        let of = |(activity, cancel): &(Activity, CancelToken)| Activity {
            rows: cancel.rows(),
            is_queued: cancel.is_queued(),
            ..activity.clone()
        };
        self.lock().entries.values().map(of).collect()
    }

    pub fn cancel(&self, id: u64) -> bool {
        let found = self.lock().entries.get(&id).map(|(_, cancel)| cancel.clone());
        if let Some(cancel) = &found {
            cancel
                .cancel(tidalite_query::Error::new(ErrorKind::Unavailable, "canceling statement due to user request"));
        }
        found.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Records the number of changed rows, zero at the start of returned rows; `None` for a failure.
    pub fn ended(&self, rows: Option<u64>) {
        self.rows.fetch_add(rows.unwrap_or(0), Relaxed);
        self.is_failed.store(rows.is_none(), Relaxed);
    }

    /// Excludes the statement from the statistics: a description is not a call.
    pub fn only_describes(&self) {
        self.is_counted.store(false, Relaxed);
    }

    /// Counts returned rows; `None` for a failure.
    pub fn gave(&self, rows: Option<&RecordBatch>) {
        let Some(rows) = rows else { return self.is_failed.store(true, Relaxed) };
        let bytes = |array: &dyn Array| array.to_data().get_slice_memory_size().unwrap_or(0);
        let bytes: usize = rows.columns().iter().map(|array| bytes(array.as_ref())).sum();
        self.rows.fetch_add(rows.num_rows() as u64, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let removed = self.running.lock().entries.remove(&self.id);
        self.cancel.cancel(tidalite_query::Error::cancelled());
        if let Some((activity, _)) = removed
            && self.is_counted.load(Relaxed)
        {
            let (rows, bytes) = (self.rows.load(Relaxed), self.bytes.load(Relaxed));
            let is_failed = self.is_failed.load(Relaxed);
            self.running.statistics.note(&activity, Ended { took: self.started.elapsed(), rows, bytes, is_failed });
        }
    }
}
