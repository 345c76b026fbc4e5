//! Where a program's numbers and masks are while it runs: memory near the processor, kept from one
//! span to the next.

use super::{SPAN, Span, Test};

#[derive(Debug, Default)]
pub struct Room {
    pub(super) ints: Vec<Vec<i64>>,
    pub(super) floats: Vec<Vec<f64>>,
    /// Of each step.
    pub(super) masks: Vec<Span>,
    /// The columns of the vector that were asked for.
    pub(super) loaded: Vec<bool>,
}

impl Room {
    #[must_use]
    pub fn new() -> Room {
        Room::default()
    }

    /// Has so many places of integers and of floating point, and a mask for each step. Takes memory only where no program
    /// before needed as many. No column is loaded.
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
