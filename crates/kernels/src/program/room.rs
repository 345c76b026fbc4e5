//! Scratch memory for the numbers and masks of a running program, small enough for the cache and reused for all spans.

use super::span::{SPAN, Span};
use super::step::Test;

#[derive(Debug, Default)]
pub struct Room {
    pub(super) ints: Vec<Vec<i64>>,
    pub(super) floats: Vec<Vec<f64>>,
    /// Indexed by step.
    pub(super) masks: Vec<Span>,
    /// Columns of the current vector that were loaded.
    pub(super) loaded: Vec<bool>,
}

impl Room {
    #[must_use]
    pub fn new() -> Room {
        Room::default()
    }

    /// Provides the given number of slots for integers and floating point, and a mask for each step.
    ///
    /// Allocates only if no previous program needed as many. Marks all columns as not loaded.
    pub(super) fn grow(&mut self, (ints, floats): (usize, usize), steps: usize, columns: usize) {
        self.loaded.clear();
        self.loaded.resize(columns, false);
        while self.ints.len() < ints {
            self.ints.push(vec![0; SPAN]);
        }
        while self.floats.len() < floats {
            self.floats.push(vec![0.0; SPAN]);
        }
        if self.masks.len() < steps {
            self.masks.resize(steps, [0; SPAN / 64]);
        }
    }

    pub(super) fn mask(&self, test: Test) -> &Span {
        &self.masks[test.0]
    }
}
