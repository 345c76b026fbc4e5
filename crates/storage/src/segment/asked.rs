//! What is made of blocks that are asked the same way again and again, to answer faster from then on.
//!
//! It is kept in the block cache beside the block, from where it goes when other blocks need its place.

use super::reader::Segment;
use crate::cache::{BlockKey, Made};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidalite_types::ColumnId;

/// Something is made at the ask that follows so many: making it takes as long as a few asks, or a dozen.
const ASKS_BEFORE: u32 = 2;
/// Where more than one row in so many is wanted, comparing all is as fast as looking them up.
const ROWS_A_HIT: usize = 32;
/// The place in the cache of what was made of a block; segments have fewer blocks.
const MADE: u32 = 1 << 31;

/// Whether so few of the rows that are asked are wanted that they are better looked up.
pub(super) fn are_few(wanted: usize, asked: usize) -> bool {
    wanted * ROWS_A_HIT <= asked
}

/// How often a block was asked for few of its rows.
#[derive(Default)]
pub(super) struct Asks(AtomicU32);

impl Asks {
    pub fn of(made: &Made) -> Arc<Asks> {
        made.get_or_make(|| Ok::<_, Infallible>(Asks::default())).unwrap_or_else(|never| match never {})
    }

    /// That comparing found so many of the rows that were asked.
    pub fn note(&self, found: usize, asked: usize) {
        // Only counted until it is enough.
        if are_few(found, asked) && !self.are_enough() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn are_enough(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ASKS_BEFORE
    }
}

impl Segment {
    /// Of columns of one type there is only one thing to make.
    pub(super) fn key_of_made(&self, column: ColumnId, block: usize) -> BlockKey {
        BlockKey { segment: self.meta().id, column, block: block as u32 | MADE }
    }
}
