//! Publishes durable commits and answers their requests.

use super::{Accepted, Committed, SMALL_COMMIT_BYTES, rows_of};
use crate::shared::{Shared, lock};
use crate::{Error, Result};
use futures::channel::oneshot;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tidalite_ingest::apply::publish;
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::wal::record::Op;

type Answer = (oneshot::Sender<Result<Committed>>, Committed);

pub(super) struct Publisher {
    shared: Arc<Shared>,
    /// Answers to large commits that wait for the merge.
    held: Mutex<Vec<Answer>>,
}

impl Publisher {
    pub fn new(shared: Arc<Shared>) -> Publisher {
        Publisher { shared, held: Mutex::default() }
    }

    /// Notes a failed sync of the log.
    pub fn note_failure(&self, error: &Error) {
        self.shared.note_log_failure(&error.message);
    }

    /// Counts a sync of the log.
    pub fn count_sync(&self) {
        self.shared.counters.log_syncs.fetch_add(1, Relaxed);
    }

    /// Publishes commits in order; `catalog` includes them all.
    pub fn publish(&self, catalog: &Catalog, accepted: Vec<Accepted>) {
        let mut answers = Vec::with_capacity(accepted.len());
        let is_followed = self.note_times(catalog, &accepted);
        {
            // A merge must not be between its manifest edit and its publication while its rows are removed.
            // A load makes merges of its table invalid in the same way.
            let removes = |op: &Op| {
                let removes_rows = matches!(op, Op::Truncate { .. } | Op::DropPartitions { .. } | Op::DropTable { .. });
                removes_rows || matches!(op, Op::Attach { .. })
            };
            let _manifest = accepted.iter().flat_map(|a| &a.ops).any(removes).then(|| self.shared.lock_manifest());
            let mut versions = self.shared.tables.write();
            for Accepted { txn, ops, bytes, refused, changed, failed, runs, reply } in accepted {
                self.shared.counters.rows_committed.fetch_add(rows_of(&ops), Relaxed);
                self.shared.counters.commits.fetch_add(u64::from(!ops.is_empty()), Relaxed);
                publish(&mut versions, catalog, txn, ops);
                match failed {
                    Some(error) => drop(reply.send(Err(error))),
                    None => answers.push((bytes, reply, Committed { txn, refused, changed, runs, table: None })),
                }
            }
        }
        let is_over = self.is_over_limit();
        for (bytes, reply, committed) in answers {
            if is_over && bytes > SMALL_COMMIT_BYTES {
                lock(&self.held).push((reply, committed));
            } else {
                // The client may be gone; the commit is valid.
                let _ = reply.send(Ok(committed));
            }
        }
        if is_over {
            self.shared.ask_for_merge();
        }
        if is_followed {
            self.shared.ask_for_refresh();
        }
    }

    /// Records changes for views before the changes are visible: a refresh that sees a commit knows its times.
    fn note_times(&self, catalog: &Catalog, accepted: &[Accepted]) -> bool {
        let mut times = self.shared.lock_times();
        accepted.iter().fold(false, |is_any, a| times.note(catalog, a.txn, &a.ops) | is_any)
    }

    /// Sends the answers that waited for the merge, once it has caught up.
    pub fn answer_held(&self) {
        let mut held = lock(&self.held);
        if !held.is_empty() && (!self.is_over_limit() || self.shared.merge_is_stuck()) {
            held.drain(..).for_each(|(reply, committed)| drop(reply.send(Ok(committed))));
        }
    }

    fn is_over_limit(&self) -> bool {
        self.shared.tables.read().staged().bytes > self.shared.config.staging_bytes
    }
}

/// Answers the requests of a failed group with the error.
pub(super) fn fail(accepted: Vec<Accepted>, error: &Error) {
    accepted.into_iter().for_each(|a| drop(a.reply.send(Err(error.clone()))));
}
