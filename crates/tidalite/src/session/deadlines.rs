//! Timeouts of statements: one task for all statements, which sleeps until the first deadline.
//!
//! Nearly every statement ends long before its deadline. A separate task and timer would cost a small statement more
//! than its rows. Here it costs an entry in a list, and the task is not woken while deadlines are later than the one it
//! sleeps for.

use crate::ErrorKind;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite_query::{CancelToken, Engine, Error};
use tokio::sync::Notify;

/// Clones share the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    list: Mutex<List>,
    /// Notified if a deadline is earlier than the one the task sleeps for.
    is_earlier: Notify,
}

#[derive(Debug, Default)]
struct List {
    last_id: u64,
    /// Indexed by deadline and number.
    due: BTreeMap<(Instant, u64), (Duration, CancelToken)>,
    /// The next wake-up of the task.
    wakes: Option<Instant>,
}

/// The deadline of a statement; dropping it removes the deadline.
#[derive(Debug)]
pub(super) struct Deadline {
    key: (Instant, u64),
    all: Deadlines,
}

/// Dropping it ends the task.
pub(super) struct Keeper {
    _task: Mutex<BoxFuture<'static, tidalite_query::Result<()>>>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Deadlines {
    /// Cancels the statement at the end of its timeout; zero means no timeout.
    pub fn add(&self, timeout: Duration, cancel: &CancelToken) -> Option<Deadline> {
        if timeout.is_zero() {
            return None;
        }
        // A deadline past the end of the clock never occurs.
        let at = Instant::now().checked_add(timeout)?;
        let mut list = self.lock();
        list.last_id += 1;
        let key = (at, list.last_id);
        list.due.insert(key, (timeout, cancel.clone()));
        if list.wakes.is_none_or(|wakes| at < wakes) {
            // Other statements need not wake the task for the same deadline.
            list.wakes = Some(at);
            self.0.is_earlier.notify_one();
        }
        Some(Deadline { key, all: self.clone() })
    }

    /// Starts the task that cancels statements at their deadlines.
    pub fn keeper(&self, engine: &Engine) -> Keeper {
        Keeper { _task: Mutex::new(engine.spawn(self.clone().keep().boxed())) }
    }

    async fn keep(self) {
        loop {
            let wakes = self.cancel_due(Instant::now());
            let earlier = self.0.is_earlier.notified();
            match wakes {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {}
                    () = earlier => {}
                },
                None => earlier.await,
            }
        }
    }

    /// Cancels expired statements; returns the next deadline.
    fn cancel_due(&self, now: Instant) -> Option<Instant> {
        let mut list = self.lock();
        let later = list.due.split_off(&(now, u64::MAX));
        let over = std::mem::replace(&mut list.due, later);
        list.wakes = list.due.keys().next().map(|(at, _)| *at);
        let wakes = list.wakes;
        drop(list);
        for (timeout, cancel) in over.into_values() {
            let message = format!("canceling statement due to statement timeout of {} ms", timeout.as_millis());
            cancel.cancel(Error::new(ErrorKind::Unavailable, message));
        }
        wakes
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.all.lock().due.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn only_those_whose_time_is_over_are_cancelled() {
        let all = Deadlines::default();
        let (first, second) = (CancelToken::new(), CancelToken::new());
        let _long = all.add(2 * LIMIT, &first);
        let _short = all.add(LIMIT, &second);
        let now = Instant::now();
        let next = all.cancel_due(now).unwrap();
        assert!(next > now && next <= now + LIMIT && !second.is_cancelled());
        let next = all.cancel_due(now + LIMIT).unwrap();
        assert!(next > now + LIMIT && second.is_cancelled() && !first.is_cancelled());
        assert_eq!(second.reason().to_string(), "canceling statement due to statement timeout of 60000 ms");
    }

    #[test]
    fn who_is_done_before_is_not() {
        let all = Deadlines::default();
        let cancel = CancelToken::new();
        let limit = all.add(LIMIT, &cancel);
        assert!(limit.is_some() && all.add(Duration::ZERO, &cancel).is_none());
        assert!(all.add(Duration::MAX, &cancel).is_none(), "past the end of the clock");
        drop(limit);
        assert_eq!(all.cancel_due(Instant::now() + 2 * LIMIT), None);
        assert!(!cancel.is_cancelled());
    }

    #[test]
    fn a_limit_that_is_earlier_wakes_who_sleeps_for_a_later_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let all = Deadlines::default();
            let keeper = tokio::spawn(all.clone().keep());
            let (late, soon) = (CancelToken::new(), CancelToken::new());
            let _late = all.add(LIMIT, &late);
            tokio::task::yield_now().await;
            let _soon = all.add(Duration::from_millis(1), &soon);
            tokio::time::timeout(LIMIT / 2, soon.cancelled()).await.unwrap();
            assert!(!late.is_cancelled());
            keeper.abort();
        });
    }
}
