//! Memory of statements: the pool that operators reserve from, and the accounting of all allocations.

use crate::CancelToken;
use crate::error::{SETTING, operation};
use crate::exec::width::bytes_of_rows;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use futures::future::BoxFuture;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Reservations of this size or smaller are granted whatever the process uses: operators need some memory to spill.
const SMALL_BYTES: usize = 1 << 20;

thread_local! {
    /// The statement that this thread works for.
    static CURRENT: RefCell<Option<CancelToken>> = const { RefCell::new(None) };
}

/// The memory pool of one statement.
///
/// A reservation must fit the pool, the measured memory of the statement and the budget of the process. A refused
/// operator spills if it can.
#[derive(Debug)]
pub(super) struct StatementPool {
    pool: FairSpillPool,
    limit: usize,
    cancel: CancelToken,
}

impl StatementPool {
    pub fn new(limit: usize, cancel: CancelToken) -> StatementPool {
        StatementPool { pool: FairSpillPool::new(limit), limit, cancel }
    }
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "statement({})", self.pool)
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let operation = operation(reservation.consumer().name()).unwrap_or("statement");
        let limit = self.limit;
        if additional > SMALL_BYTES {
            if self.cancel.memory().used().saturating_add(additional) > self.limit {
                return Err(resources_datafusion_err!(
                    "the {operation} needs more than {limit} bytes{SETTING}query.memory_bytes"
                ));
            }
            if !tidalite_memory::has_room(additional) {
                let budget = tidalite_memory::budget();
                return Err(resources_datafusion_err!(
                    "the {operation} needs more than the server has left of {budget} bytes{SETTING}memory.bytes"
                ));
            }
        }
        self.pool.try_grow(reservation, additional).map_err(|_| {
            resources_datafusion_err!(
                "the {operation} needs more than its part of {limit} bytes{SETTING}query.memory_bytes"
            )
        })
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

/// A future of a statement: what its polls and its drop allocate and free counts for the statement.
pub(super) struct Accounted<T> {
    cancel: CancelToken,
    future: Option<BoxFuture<'static, T>>,
}

impl<T> Accounted<T> {
    pub fn new(cancel: CancelToken, future: BoxFuture<'static, T>) -> Accounted<T> {
        Accounted { cancel, future: Some(future) }
    }
}

/// Runs `work` for a statement: its allocations count for the statement.
pub(crate) fn accounted<T>(cancel: &CancelToken, work: impl FnOnce() -> T) -> T {
    let out = cancel.memory().count(|| {
        // Dropped at a panic, too: the thread must not go on for this statement.
        let _current = Current::set(cancel.clone());
        work()
    });
    cancel.register_memory();
    out
}

/// Fails once the statement that the thread works for is cancelled.
pub(crate) fn check_current() -> crate::Result<()> {
    CURRENT.with_borrow(|current| current.as_ref().map_or(Ok(()), CancelToken::check))
}

/// Returns the memory limit in bytes of the statement that the thread works for; `usize::MAX` without one.
pub(crate) fn current_memory_limit() -> usize {
    CURRENT.with_borrow(|current| current.as_ref().map_or(usize::MAX, CancelToken::memory_limit))
}

/// Restores the statement that the thread worked for before.
struct Current(Option<CancelToken>);

impl Current {
    fn set(cancel: CancelToken) -> Current {
        Current(CURRENT.replace(Some(cancel)))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

impl<T> Future for Accounted<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Accounted { cancel, future } = &mut *self;
        let polled = accounted(cancel, || {
            let polled = future.as_mut().map_or(Poll::Pending, |future| future.as_mut().poll(cx));
            if polled.is_ready() {
                *future = None;
            }
            polled
        });
        cancel.enforce_memory();
        polled
    }
}

impl<T> Drop for Accounted<T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            accounted(&self.cancel, || drop(future));
        }
    }
}

/// Gives up the batch that the reader of a statement received last.
///
/// The statement keeps a batch until its reader asks for the next one, so that the batch is freed on the statement's
/// account. A batch that the reader keeps belongs to the reader.
pub(super) fn discard(cancel: &CancelToken, batch: Option<RecordBatch>) {
    let Some(batch) = batch else { return };
    if batch.columns().iter().any(|column| Arc::strong_count(column) > 1) {
        cancel.memory().release(bytes_of_rows(&batch));
    } else {
        accounted(cancel, || drop(batch));
    }
}

/// Tasks that operators start count for the statement that starts them.
struct Inherit;

impl JoinSetTracer for Inherit {
    fn trace_future(&self, future: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match CURRENT.with_borrow(Clone::clone) {
            Some(cancel) => Box::pin(Accounted::new(cancel, future)),
            None => future,
        }
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match CURRENT.with_borrow(Clone::clone) {
            Some(cancel) => Box::new(move || accounted(&cancel, block)),
            None => block,
        }
    }
}

/// Makes tasks of operators inherit the accounting, once for the process.
pub(super) fn inherit_accounting() {
    // Another user of DataFusion in this process may have set a tracer; such tasks are then not part of a statement.
    let _ = set_join_set_tracer(&Inherit);
}
