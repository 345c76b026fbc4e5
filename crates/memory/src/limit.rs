//! The number of live bytes that the process may use.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static BUDGET: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the number of live bytes that the process may use.
pub fn set_budget(bytes: usize) {
    BUDGET.store(bytes, Relaxed);
}

/// Returns the number of live bytes that the process may use.
#[must_use]
pub fn budget() -> usize {
    BUDGET.load(Relaxed)
}
