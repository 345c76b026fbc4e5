//! The statements under way: listed, and stopped by id.

use super::Activity;
use crate::ErrorKind;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tidalite_query::CancelToken;

/// Ids are given in order of arrival and never again.
#[derive(Clone, Debug, Default)]
pub(super) struct Running(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    entries: BTreeMap<u64, (Activity, CancelToken)>,
}

/// A statement's place in the list. Dropping it takes it off, and stops what it may still have under way: nobody waits for
/// that any more.
pub(super) struct Entry {
    id: u64,
    pub cancel: CancelToken,
    running: Running,
}

impl Running {
    pub fn enter(&self, sql: &str, client: String) -> Entry {
        let mut inner = self.lock();
        inner.last_id += 1;
        let id = inner.last_id;
        let cancel = CancelToken::new();
        let activity = Activity { id, client, sql: sql.to_owned(), started: SystemTime::now(), rows: (0, 0) };
        inner.entries.insert(id, (activity, cancel.clone()));
        Entry { id, cancel, running: self.clone() }
    }

    pub fn list(&self) -> Vec<Activity> {
        let of = |(activity, cancel): &(Activity, CancelToken)| Activity { rows: cancel.rows(), ..activity.clone() };
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.running.lock().entries.remove(&self.id);
        self.cancel.cancel(tidalite_query::Error::cancelled());
    }
}
