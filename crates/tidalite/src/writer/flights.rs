//! In-flight syncs: groups that are written to the log and not durable yet, while the commit thread continues.
//!
//! Input: the accepted requests of a group, and the log content to sync. Output: the group is published and answered,
//! after all previous groups. A sync covers everything written before its start, so a group that is written during a
//! sync need not wait for its end: on a disk that takes milliseconds, this halves the time of a commit.
//!
//! A failed sync fails its group and all in-flight groups, because the content of the file is unknown. The kernel
//! reports a write-back error once, to one of the concurrent syncs. A group is therefore published only after every
//! sync that overlapped its own has succeeded, too.

use super::publish::{Publisher, fail};
use super::{Accepted, Requests, Work, submit};
use crate::Error;
use crate::shared::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::wal::log::{LogWriter, Unsynced};
use tidalite_kernels::ask_for_short_turns;

/// Largest number of concurrent syncs.
const FLIGHTS_MAX: usize = 4;
/// Number of them that streams may use; the others are for requests with waiting clients.
const STREAM_FLIGHTS_MAX: usize = 2;

pub(super) struct Flights {
    air: Arc<Air>,
    /// Started on demand.
    threads: Vec<JoinHandle<()>>,
    /// True if no threads could be started.
    is_grounded: bool,
}

struct Air {
    publisher: Arc<Publisher>,
    /// Delay added to every sync.
    delay: Duration,
    /// Wakes the commit thread, which ends when all senders are dropped.
    requests: Weak<mpsc::Sender<super::Request>>,
    state: Mutex<State>,
    begun: Condvar,
    landed: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order of their writes.
    flying: VecDeque<Flight>,
    /// Number of groups that are no longer in flight.
    landed: u64,
    /// The last completed sync, not yet reported to the log.
    synced: Option<Unsynced>,
    failure: Option<Error>,
    sync_time: Option<Duration>,
    /// True if the commit thread has streams that wait for a completed group.
    is_awaited: bool,
    is_closed: bool,
}

impl State {
    /// Returns true if the first in-flight group can be published.
    fn has_landed(&self) -> bool {
        let Some(Flight { stage: Stage::Ended(beside), .. }) = self.flying.front() else { return false };
        let is_syncing = |number: u64| {
            let flight = number.checked_sub(self.landed).and_then(|index| self.flying.get(index as usize));
            flight.is_some_and(|flight| matches!(flight.stage, Stage::Syncing))
        };
        !beside.iter().any(|number| is_syncing(*number))
    }
}

struct Flight {
    unsynced: Unsynced,
    accepted: Vec<Accepted>,
    has_streams: bool,
    stage: Stage,
}

enum Stage {
    Written,
    Syncing,
    /// Synced, with the numbers of the syncs that were running then.
    Ended(Vec<u64>),
}

impl Flights {
    pub fn new(publisher: Arc<Publisher>, delay: Duration, requests: &Requests) -> Flights {
        let air = Air {
            publisher,
            delay,
            requests: Arc::downgrade(requests),
            state: Mutex::default(),
            begun: Condvar::new(),
            landed: Condvar::new(),
        };
        Flights { air: Arc::new(air), threads: Vec::new(), is_grounded: false }
    }

    /// Returns true if syncs can overlap; starts the threads.
    pub fn can_fly(&mut self) -> bool {
        if self.threads.is_empty() && !self.is_grounded {
            let thread = |_| {
                let air = self.air.clone();
                std::thread::Builder::new().name("tidalite-sync".to_owned()).spawn(move || air.run())
            };
            self.threads = (0..FLIGHTS_MAX).map_while(|n| thread(n).ok()).collect();
            self.is_grounded = self.threads.is_empty();
        }
        !self.is_grounded
    }

    /// Waits until another group may be in flight.
    pub fn wait_for_room(&self) {
        let state = lock(&self.air.state);
        drop(self.air.wait_while(state, |state| state.flying.len() >= FLIGHTS_MAX));
    }

    /// Starts the sync of a written group.
    pub fn begin(&self, unsynced: Unsynced, accepted: Vec<Accepted>, has_streams: bool) {
        let flight = Flight { unsynced, accepted, has_streams, stage: Stage::Written };
        lock(&self.air.state).flying.push_back(flight);
        self.air.begun.notify_one();
    }

    /// Returns true if a group with streams may be in flight. Otherwise a completed group wakes the commit thread.
    pub fn have_room_for_streams(&self) -> bool {
        let mut state = lock(&self.air.state);
        let has_room = state.flying.iter().filter(|f| f.has_streams).count() < STREAM_FLIGHTS_MAX;
        state.is_awaited |= !has_room;
        has_room
    }

    /// Returns true if no group is in flight. Otherwise a completed group wakes the commit thread.
    pub fn are_down(&self) -> bool {
        let mut state = lock(&self.air.state);
        state.is_awaited |= !state.flying.is_empty();
        state.flying.is_empty()
    }

    /// Reports completed syncs to the log; returns the duration of the last sync, if there was one.
    pub fn tell(&self, log: &mut LogWriter) -> Option<Duration> {
        if self.threads.is_empty() {
            return None;
        }
        let mut state = lock(&self.air.state);
        if let Some(synced) = state.synced.take() {
            log.note_synced(&synced);
        }
        if let Some(error) = &state.failure {
            log.note_failed(&error.to_string());
        }
        state.sync_time.take()
    }

    /// Waits until no group is in flight.
    pub fn wait_for_all(&self) {
        let state = lock(&self.air.state);
        drop(self.air.wait_while(state, |state| !state.flying.is_empty()));
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        lock(&self.air.state).is_closed = true;
        self.air.begun.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Air {
    /// Syncs written groups, oldest first, until there are none left and the database closes.
    fn run(&self) {
        ask_for_short_turns();
        let mut state = lock(&self.state);
        loop {
            let Some(index) = state.flying.iter().position(|f| matches!(f.stage, Stage::Written)) else {
                if state.is_closed {
                    return;
                }
                state = self.begun.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let number = state.landed + index as u64;
            state.flying[index].stage = Stage::Syncing;
            let unsynced = state.flying[index].unsynced.clone();
            drop(state);
            let started = Instant::now();
            if !self.delay.is_zero() {
                std::thread::sleep(self.delay);
            }
            let ended = unsynced.sync();
            let took = started.elapsed();
            state = lock(&self.state);
            state.sync_time = Some(took);
            // Previous groups may have completed in the meantime; this one has not.
            let index = (number - state.landed) as usize;
            state.flying[index].stage = Stage::Ended(Vec::new());
            let beside = (state.landed..).zip(&state.flying).filter(|(_, f)| matches!(f.stage, Stage::Syncing));
            let beside = beside.map(|(number, _)| number).collect();
            state.flying[index].stage = Stage::Ended(beside);
            match ended {
                Ok(()) => self.publisher.count_sync(),
                Err(error) => {
                    let error = state.failure.get_or_insert_with(|| error.into());
                    self.publisher.note_failure(error);
                }
            }
            self.land(&mut state);
        }
    }

    /// Publishes durable groups without previous in-flight groups.
    fn land(&self, state: &mut State) {
        while state.has_landed() {
            let Some(flight) = state.flying.pop_front() else { break };
            state.landed += 1;
            match &state.failure {
                Some(error) => fail(flight.accepted, error),
                None => {
                    self.publisher.publish(&Catalog::default(), flight.accepted);
                    state.synced = Some(flight.unsynced);
                }
            }
        }
        self.landed.notify_all();
        if std::mem::take(&mut state.is_awaited)
            && let Some(requests) = self.requests.upgrade()
        {
            drop(submit(&requests, Work::Wake));
        }
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        condition: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.landed.wait_while(state, |state| condition(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}
