//! Admission of heavy statements: a limited number runs at a time, and the others wait in the order of their arrival.
//!
//! In: statements that may take long, each before its operators start. Out: a [`Ticket`] for each, which waits until a
//! running slot is free. Small statements and statements about the database itself take no ticket.
//!
//! Invariants: a statement waits only before its first row, and a waiting statement holds no slot. A statement whose
//! reader does not read gives its slot back (it is paused) and goes on without waiting once the reader reads again, so
//! that the number of running statements can exceed the limit by the paused ones. Therefore statements that wait for
//! each other (a sub-statement, a cursor, `INSERT … SELECT`) cannot deadlock on slots. Dropping a ticket at any moment
//! takes the statement out of the queue, or passes its slot on.

use crate::exec::wide_pieces::HeldPieces;
use crate::{CancelToken, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidalite_types::{ErrorKind, SqlState};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time without a read after which a statement gives its slot back. Readers over a network pause for less between two
/// batches.
const PAUSED_AFTER: Duration = Duration::from_millis(200);
/// Time of a pause after which a statement drops wide pieces of tables; reading a piece again takes up to half a second.
const RELEASED_AFTER: Duration = Duration::from_secs(1);
/// Interval at which the first statement of the queue checks the memory again.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);

/// Heavy statements wait above this share of the process's memory budget, in percent.
const MEMORY_PERCENT: usize = 75;

/// The running slots and the queue for them.
#[derive(Debug)]
pub(super) struct Gate {
    running_max: usize,
    queued_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// Statements with a slot.
    running: usize,
    /// Waiting statements in the order of arrival; the sender wakes the statement.
    queue: BTreeMap<u64, oneshot::Sender<()>>,
    /// Statements that had to wait, and statements that the full queue refused, since the start.
    queued_total: u64,
    refused_total: u64,
}

/// The state of admission at one moment, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCounts {
    /// Heavy statements that run.
    pub running: usize,
    /// Heavy statements that wait for a slot.
    pub queued: usize,
    /// Statements that had to wait since the start.
    pub queued_total: u64,
    /// Statements that the full queue refused since the start.
    pub refused_total: u64,
}

/// The place of a statement: in the queue, running, or paused. Dropping it gives the place up.
#[derive(Debug)]
pub(super) struct Ticket {
    gate: Arc<Gate>,
    id: u64,
    /// Ready once the statement has a slot; `None` afterwards.
    wake: Option<oneshot::Receiver<()>>,
    is_paused: bool,
}

impl Gate {
    /// A gate with `running_max` slots, at least one, and a queue for `queued_max` statements.
    pub fn new(running_max: usize, queued_max: usize) -> Arc<Gate> {
        Arc::new(Gate { running_max: running_max.max(1), queued_max, state: Mutex::default() })
    }

    /// Takes a slot, or a place in the queue.
    ///
    /// # Errors
    /// The queue is full.
    pub fn enter(self: &Arc<Gate>) -> Result<Ticket> {
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        if state.queue.is_empty() && self.admits(&state) {
            state.running += 1;
            return Ok(Ticket { gate: self.clone(), id, wake: None, is_paused: false });
        }
        if state.queue.len() >= self.queued_max {
            state.refused_total += 1;
            return Err(self.is_full());
        }
        state.queued_total += 1;
        let (waker, wake) = oneshot::channel();
        state.queue.insert(id, waker);
        Ok(Ticket { gate: self.clone(), id, wake: Some(wake), is_paused: false })
    }

    pub fn counts(&self) -> AdmissionCounts {
        let state = self.lock();
        AdmissionCounts {
            running: state.running,
            queued: state.queue.len(),
            queued_total: state.queued_total,
            refused_total: state.refused_total,
        }
    }

    /// Returns true if running statements leave enough of the process's memory for one more.
    fn has_memory() -> bool {
        tidalite_memory::used() < tidalite_memory::budget() / 100 * MEMORY_PERCENT
    }

    /// Returns true if one more statement may run. Without a running statement the memory does not decide: no other
    /// statement would free any.
    fn admits(&self, state: &State) -> bool {
        state.running < self.running_max && (state.running == 0 || Gate::has_memory())
    }

    /// Gives free slots to the first statements of the queue.
    fn admit_waiting(&self, state: &mut State) {
        while self.admits(state) {
            let Some((_, waker)) = state.queue.pop_first() else { return };
            state.running += 1;
            // A ticket that is dropped at this moment finds itself out of the queue, and gives the slot back.
            let _ = waker.send(());
        }
    }

    fn is_full(&self) -> Error {
        let message = format!(
            "too many statements: {} run and {} wait for them to end (settings query.running_max and query.queued_max)",
            self.running_max, self.queued_max
        );
        Error::new(ErrorKind::Unavailable, message)
            .with_code(SqlState::TOO_MANY_CONNECTIONS)
            .with_hint("run the statement again later")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Returns true if the statement still has to wait for a slot.
    pub fn is_waiting(&self) -> bool {
        self.wake.is_some()
    }

    /// Completes once the statement has a slot. Needs a runtime with a timer.
    async fn admitted(&mut self) {
        while let Some(wake) = &mut self.wake {
            match tokio::time::timeout(MEMORY_INTERVAL, wake).await {
                // The sender is dropped only after it has sent.
                Ok(_) => self.wake = None,
                Err(_) => self.check_memory(),
            }
        }
    }

    /// Admits the first statements of the queue if memory has become free meanwhile; no end of a statement announces that.
    fn check_memory(&self) {
        let mut state = self.gate.lock();
        if state.queue.first_key_value().is_some_and(|(first, _)| *first == self.id) {
            self.gate.admit_waiting(&mut state);
        }
    }

    /// Gives the slot to another statement while the reader does not read.
    fn pause(&mut self) {
        debug_assert!(self.wake.is_none(), "a waiting statement has no slot");
        if !std::mem::replace(&mut self.is_paused, true) {
            let mut state = self.gate.lock();
            state.running -= 1;
            self.gate.admit_waiting(&mut state);
        }
    }

    /// Takes a slot again at once, even beyond the limit.
    fn resume(&mut self) {
        if std::mem::replace(&mut self.is_paused, false) {
            self.gate.lock().running += 1;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        if state.queue.remove(&self.id).is_some() || self.is_paused {
            return;
        }
        state.running -= 1;
        self.gate.admit_waiting(&mut state);
    }
}

/// Waits for the slot of a ticket; the statement is listed as queued meanwhile. `left` completes when the client leaves.
///
/// # Errors
/// The statement is cancelled, or the reader of its rows has left.
pub(super) async fn wait(ticket: &mut Ticket, cancel: &CancelToken, left: impl Future<Output = ()>) -> Result<()> {
    let _queued = cancel.queued();
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancel.reason()),
        () = left => Err(Error::cancelled()),
        () = ticket.admitted() => Ok(()),
    }
}

/// Completes a send to the reader of a statement's rows; the statement is paused while the reader does not read, and after a
/// longer time it holds no wide pieces of tables.
pub(super) async fn pausing<T>(
    sending: impl Future<Output = T>,
    ticket: &mut Option<Ticket>,
    pieces: &HeldPieces,
) -> T {
    tokio::pin!(sending);
    if let Ok(sent) = timeout(PAUSED_AFTER, &mut sending).await {
        return sent;
    }
    ticket.iter_mut().for_each(Ticket::pause);
    let held_for = if HeldPieces::are_many() { Duration::ZERO } else { RELEASED_AFTER };
    let sent = match timeout(held_for, &mut sending).await {
        Ok(sent) => sent,
        Err(_) => {
            pieces.release();
            let sent = sending.await;
            pieces.resume();
            sent
        }
    };
    ticket.iter_mut().for_each(Ticket::resume);
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::future::pending;

    fn counts(gate: &Gate) -> (usize, usize) {
        let counts = gate.counts();
        (counts.running, counts.queued)
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn has_slot(ticket: &mut Ticket) -> bool {
        ticket.admitted().now_or_never().is_some()
    }

    #[test]
    fn first_in_first_out() {
        let gate = Gate::new(2, 10);
        runtime().block_on(async {
            let mut running: Vec<Ticket> = (0..2).map(|_| gate.enter().unwrap()).collect();
            assert!(running.iter_mut().all(has_slot));
            let mut waiting: Vec<Ticket> = (0..3).map(|_| gate.enter().unwrap()).collect();
            assert!(waiting.iter().all(Ticket::is_waiting));
            assert_eq!(counts(&gate), (2, 3));
            for first in 0..3 {
                running.pop();
                let admitted: Vec<bool> = waiting.iter_mut().map(has_slot).collect();
                assert_eq!(admitted, (0..3 - first).map(|n| n == 0).collect::<Vec<_>>());
                running.insert(0, waiting.remove(0));
                assert_eq!(counts(&gate), (2, 2 - first));
            }
            drop(running);
            assert_eq!(counts(&gate), (0, 0));
            assert_eq!((gate.counts().queued_total, gate.counts().refused_total), (3, 0));
        });
    }

    /// A statement that arrives while others wait does not overtake them, even if a slot is free.
    #[test]
    fn no_overtaking() {
        let gate = Gate::new(1, 10);
        let running = gate.enter().unwrap();
        let (first, second) = (gate.enter().unwrap(), gate.enter().unwrap());
        drop(running);
        assert_eq!(counts(&gate), (1, 1), "the first has the slot, noticed or not");
        let third = gate.enter().unwrap();
        drop(first);
        assert!(third.is_waiting() && gate.lock().queue.keys().eq([&third.id]));
        drop(second);
        assert_eq!(counts(&gate), (1, 0));
        drop(third);
        assert_eq!(counts(&gate), (0, 0));
    }

    /// A ticket that was granted a slot and is dropped before its task runs passes the slot on.
    #[test]
    fn dropped_while_admitted() {
        let gate = Gate::new(1, 10);
        runtime().block_on(async {
            let running = gate.enter().unwrap();
            let (first, mut second) = (gate.enter().unwrap(), gate.enter().unwrap());
            drop(running);
            drop(first);
            assert!(has_slot(&mut second));
            drop(second);
            assert_eq!(counts(&gate), (0, 0));
        });
    }

    #[test]
    fn dropped_in_the_queue() {
        let gate = Gate::new(1, 10);
        runtime().block_on(async {
            let running = gate.enter().unwrap();
            let (first, mut second) = (gate.enter().unwrap(), gate.enter().unwrap());
            drop(first);
            assert_eq!(counts(&gate), (1, 1));
            drop(running);
            assert!(has_slot(&mut second));
        });
    }

    #[test]
    fn full_queue() {
        let gate = Gate::new(1, 1);
        let (running, waiting) = (gate.enter().unwrap(), gate.enter().unwrap());
        let refused = gate.enter().unwrap_err();
        assert_eq!((refused.kind(), refused.code), (ErrorKind::Unavailable, Some(SqlState::TOO_MANY_CONNECTIONS)));
        assert!(refused.to_string().contains("query.queued_max"), "{refused}");
        assert_eq!(gate.counts().refused_total, 1);
        drop(waiting);
        assert!(gate.enter().unwrap().is_waiting());
        drop(running);
        assert_eq!(counts(&Gate::new(0, 0)), (0, 0));
        assert!(!Gate::new(0, 0).enter().unwrap().is_waiting(), "one slot at least");
    }

    #[test]
    fn cancelled_in_the_queue() {
        let gate = Gate::new(1, 10);
        runtime().block_on(async {
            let running = gate.enter().unwrap();
            let cancel = CancelToken::new();
            let mut ticket = gate.enter().unwrap();
            {
                let waiting = wait(&mut ticket, &cancel, pending());
                futures::pin_mut!(waiting);
                assert!(futures::poll!(&mut waiting).is_pending() && cancel.is_queued());
                cancel.cancel(Error::cancelled());
                assert!(futures::poll!(&mut waiting).is_ready());
            }
            assert!(!cancel.is_queued());
            drop(ticket);
            assert_eq!(counts(&gate), (1, 0));
            let (mut ticket, cancel) = (gate.enter().unwrap(), CancelToken::new());
            assert!(wait(&mut ticket, &cancel, std::future::ready(())).await.is_err(), "the client left");
            drop(running);
            assert!(wait(&mut ticket, &cancel, pending()).await.is_ok());
        });
    }

    /// A statement whose reader does not read has no slot, and continues at once when the reader reads.
    #[test]
    fn paused_by_its_reader() {
        let gate = Gate::new(1, 10);
        runtime().block_on(async {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
            let (mut ticket, pieces) = (Some(gate.enter().unwrap()), HeldPieces::default());
            let mut second = gate.enter().unwrap();
            assert!(pausing(sender.send(1), &mut ticket, &pieces).await.is_ok());
            let begun = std::time::Instant::now();
            let reads_late = async {
                second.admitted().await;
                assert!(begun.elapsed() >= PAUSED_AFTER, "not at once");
                assert_eq!(counts(&gate), (1, 0));
                assert_eq!(receiver.recv().await, Some(1));
            };
            let (sent, ()) = tokio::join!(pausing(sender.send(2), &mut ticket, &pieces), reads_late);
            assert!(sent.is_ok());
            assert_eq!(counts(&gate), (2, 0), "beyond the limit");
            let third = gate.enter().unwrap();
            drop(second);
            assert!(third.is_waiting(), "the first still runs");
            assert_eq!(receiver.recv().await, Some(2));
            drop((ticket, third));
            assert_eq!(counts(&gate), (0, 0));
        });
    }

    #[test]
    fn dropped_while_paused() {
        let gate = Gate::new(1, 10);
        let mut ticket = gate.enter().unwrap();
        ticket.pause();
        ticket.pause();
        assert_eq!(counts(&gate), (0, 0));
        let other = gate.enter().unwrap();
        drop(ticket);
        assert_eq!(counts(&gate), (1, 0));
        drop(other);
        assert_eq!(counts(&gate), (0, 0));
    }

    /// Many threads take, wait for, pause and drop tickets: never more than the limit run, and all slots come back.
    #[test]
    fn many_threads() {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        let gate = Gate::new(3, 1000);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..400)
            .map(|n| {
                let (gate, now, most) = (gate.clone(), now.clone(), most.clone());
                runtime.spawn(async move {
                    let mut ticket = gate.enter().unwrap();
                    if n % 5 == 0 {
                        // The waiting future is dropped after one poll.
                        let _ = ticket.admitted().now_or_never();
                        return;
                    }
                    ticket.admitted().await;
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, SeqCst);
                })
            })
            .collect();
        runtime.block_on(futures::future::join_all(tasks)).into_iter().for_each(|ended| ended.unwrap());
        assert!((1..=3).contains(&most.load(SeqCst)), "{most:?}");
        assert_eq!(counts(&gate), (0, 0));
    }
}
