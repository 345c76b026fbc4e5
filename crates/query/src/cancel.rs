//! How a query is told to stop, and says how far it has come.

use crate::Error;
use crate::error::operation;
use crate::exec::wide_pieces::HeldPieces;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tidalite_memory::{Stop, Tracker};
use tidalite_types::{ErrorKind, SqlState};

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
    /// The memory of the statement.
    memory: Tracker,
    /// The setting's value, for the error.
    memory_limit: AtomicUsize,
    is_registered: AtomicBool,
    /// The plan that runs, for the names of its operators.
    plan: OnceLock<Weak<dyn ExecutionPlan>>,
    /// Queries of the statement that wait for a running slot.
    queued: AtomicUsize,
    /// Pieces of wide rows that scans hand out.
    pieces: HeldPieces,
}

/// Statements below this many bytes are not stopped for the memory of others.
const SMALL_BYTES: usize = 1 << 20;
/// The margin above the memory limit is at least this large: batches in flight, plans, decoded blocks.
const MARGIN_BYTES: usize = 32 << 20;

impl State {
    fn stop(&self, reason: Error) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.is_cancelled.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }
}

impl Stop for State {
    fn bytes(&self) -> usize {
        self.memory.used()
    }

    fn stop(&self, budget: usize) {
        let text = format!("the server needs more than {budget} bytes of memory, the setting memory.bytes");
        State::stop(self, out_of_memory(text, self.plan.get()));
    }
}

/// Returns the error of a statement that stops for its memory; it names the operations that hold rows.
fn out_of_memory(mut text: String, plan: Option<&Weak<dyn ExecutionPlan>>) -> Error {
    let mut names = Vec::new();
    if let Some(plan) = plan.and_then(Weak::upgrade) {
        blocking_operations(&plan, &mut names);
    }
    if !names.is_empty() {
        text.push_str(&format!(" (operations that hold rows: {})", names.join(", ")));
    }
    Error::new(ErrorKind::Unavailable, text).with_code(SqlState::OUT_OF_MEMORY)
}

/// Adds the operations of operators that emit rows only after they have read their whole input.
///
/// Operators that pass rows on have the emission type of their input.
fn blocking_operations(plan: &Arc<dyn ExecutionPlan>, names: &mut Vec<&'static str>) {
    let emits_at_end = |plan: &Arc<dyn ExecutionPlan>| plan.properties().emission_type == EmissionType::Final;
    let passes_on = plan.children().into_iter().any(emits_at_end);
    if let Some(operation) = operation(plan.name()).filter(|operation| !names.contains(operation))
        && emits_at_end(plan)
        && !passes_on
    {
        names.push(operation);
    }
    for input in plan.children() {
        blocking_operations(input, names);
    }
}

/// Marks a statement as queued while it lives.
#[derive(Debug)]
pub(crate) struct Queued<'a>(&'a CancelToken);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.0.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CancelToken {
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// The first reason given is the one the client sees.
    pub fn cancel(&self, reason: Error) {
        self.0.stop(reason);
    }

    /// Returns true if the statement has to stop. Loops of operators call this, so memory limits are enforced here.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.enforce_memory();
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Stops the statement if it is over its memory limit, and the largest statement if the process is over its budget.
    pub(crate) fn enforce_memory(&self) {
        if self.0.memory.is_exceeded() {
            self.stop_over_limit();
        }
        if tidalite_memory::is_over_budget() {
            tidalite_memory::stop_largest();
        }
    }

    /// Returns the memory of the statement.
    pub(crate) fn memory(&self) -> &Tracker {
        &self.0.memory
    }

    /// Returns the pieces of wide rows that the statement holds.
    pub(crate) fn pieces(&self) -> &HeldPieces {
        &self.0.pieces
    }

    /// Returns the memory limit of the statement in bytes; `usize::MAX` without one.
    pub(crate) fn memory_limit(&self) -> usize {
        self.0.memory_limit.load(Ordering::Relaxed)
    }

    /// Sets the memory limit: the statement stops above `bytes` and a margin for what operators cannot foresee.
    pub(crate) fn limit_memory(&self, bytes: usize) {
        self.0.memory_limit.store(bytes, Ordering::Relaxed);
        self.0.memory.set_limit(bytes.saturating_add((bytes / 8).max(MARGIN_BYTES)));
    }

    /// Keeps the plan for error texts.
    pub(crate) fn runs(&self, plan: &Arc<dyn ExecutionPlan>) {
        self.0.plan.get_or_init(|| Arc::downgrade(plan));
    }

    /// Makes the statement one that others can stop, once it uses much memory.
    pub(crate) fn register_memory(&self) {
        if self.0.memory.used() >= SMALL_BYTES && !self.0.is_registered.swap(true, Ordering::Relaxed) {
            let statement: Arc<dyn Stop> = self.0.clone();
            tidalite_memory::register_stop(Arc::downgrade(&statement));
        }
    }

    #[cold]
    fn stop_over_limit(&self) {
        if self.0.is_cancelled.load(Ordering::Acquire) {
            return;
        }
        let limit = self.0.memory_limit.load(Ordering::Relaxed);
        let text = format!("the statement needs more than {limit} bytes of memory, the setting query.memory_bytes");
        self.0.stop(out_of_memory(text, self.0.plan.get()));
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

    /// Marks the statement as queued until the result is dropped.
    pub(crate) fn queued(&self) -> Queued<'_> {
        self.0.queued.fetch_add(1, Ordering::Relaxed);
        Queued(self)
    }

    /// Returns true if the statement waits for a running slot.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.0.queued.load(Ordering::Relaxed) > 0
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
