//! Threads that the caller of a merge provides.

use crate::Result;
use crate::cache::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Smallest number of rows for which sorting uses a thread.
pub(super) const ORDERED_ROWS_MIN: usize = 1 << 15;

/// Threads that the caller of a merge provides.
#[derive(Clone, Copy)]
pub struct Threads<'a> {
    /// Largest number of threads that may work at the same time.
    pub count: usize,
    /// Runs the work on the given number of threads, including the calling thread, and returns when all have ended.
    ///
    /// A panic in one thread panics in the caller.
    pub on: &'a (dyn Fn(usize, &(dyn Fn() + Sync)) + Sync),
}

impl Threads<'_> {
    /// The calling thread only.
    pub const ONE: Threads<'static> = Threads { count: 1, on: &|_, work| work() };

    /// Limits the number of threads to `worth`.
    pub(super) fn at_most(self, worth: usize) -> Self {
        Threads { count: self.count.min(worth), ..self }
    }

    /// Runs the work on at most `worth` threads.
    pub(super) fn run(self, worth: usize, work: &(dyn Fn() + Sync)) {
        match self.at_most(worth).count {
            0 | 1 => work(),
            count => (self.on)(count, work),
        }
    }
}

/// Returns the results of `make` for every number below `count`, in order.
pub(super) fn for_each<T: Send>(
    count: usize,
    threads: Threads<'_>,
    make: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    threads.run(count, &|| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let result = make(at);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            lock(&made).push((at, result));
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, result)| result).collect()
}
