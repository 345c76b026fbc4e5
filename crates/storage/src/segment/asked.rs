//! Auxiliary indexes for hot blocks, built after repeated identical lookups.
//!
//! The indexes are stored in the block cache next to the block and are evicted like blocks.

use crate::cache::Made;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of lookups before an index is built: building takes as long as a few lookups, or a dozen.
const ASKS_BEFORE: u32 = 2;
/// If more than one in this many rows is wanted, comparing all rows is as fast as an index lookup.
const ROWS_A_HIT: usize = 32;
/// Flag of cache keys of auxiliary indexes; segments have fewer blocks.
pub(super) const MADE: u32 = 1 << 31;

/// Returns true if so few of the candidate rows are wanted that an index lookup is faster.
pub(super) fn are_few(wanted: usize, asked: usize) -> bool {
    wanted * ROWS_A_HIT <= asked
}

/// Counts lookups of few rows in a block.
#[derive(Default)]
pub(super) struct Asks(AtomicU32);

impl Asks {
    pub fn of(made: &Made) -> Arc<Asks> {
        made.get_or_make(|| Ok::<_, Infallible>(Asks::default())).unwrap_or_else(|never| match never {})
    }

    /// Records that a comparison of `asked` rows found `found` rows.
    pub fn note(&self, found: usize, asked: usize) {
        // Counted only up to the threshold.
        if are_few(found, asked) && !self.are_enough() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn are_enough(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ASKS_BEFORE
    }
}
