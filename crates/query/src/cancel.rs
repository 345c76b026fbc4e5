//! How a query is told to stop, and says how far it has come.

use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share the state. Scans ask it before every block; cancelling also wakes whoever waits for rows.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cancelled: AtomicBool,
    /// Why, for the client; set before `is_cancelled`.
    reason: Mutex<Option<Error>>,
    wake: tokio::sync::Notify,
    rows_total: AtomicU64,
    rows_read: AtomicU64,
}

impl CancelToken {
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// The first reason given is the one the client sees.
    pub fn cancel(&self, reason: Error) {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.wake.notify_waiters();
    }

    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// The reason, once cancelled.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(self.reason()) } else { Ok(()) }
    }

    #[must_use]
    pub fn reason(&self) -> Error {
        let reason = self.0.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_else(Error::cancelled)
    }

    /// A scan begins that may read so many rows.
    pub(crate) fn begins(&self, rows: usize) {
        self.0.rows_total.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// So many of them have been looked at.
    pub(crate) fn has_read(&self, rows: usize) {
        self.0.rows_read.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Rows that scans have looked at, and those that the scans begun so far may look at; the former may stay less, as
    /// under a LIMIT.
    #[must_use]
    pub fn rows(&self) -> (u64, u64) {
        (self.0.rows_read.load(Ordering::Relaxed), self.0.rows_total.load(Ordering::Relaxed))
    }

    /// Ready once cancelled.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.0.wake.notified();
            tokio::pin!(notified);
            // Registered before the flag is read, so that a cancel between the two is not missed.
            notified.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }
}
