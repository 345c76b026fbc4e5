//! Where a program's numbers and masks are while it runs: memory near the processor, kept from one vector to the next.

use super::Test;
use crate::bitpack::VECTOR;
use crate::in_range::Mask;

#[derive(Debug, Default)]
pub struct Room {
    pub(super) ints: Vec<Vec<i64>>,
    pub(super) floats: Vec<Vec<f64>>,
    /// Of each step.
    pub(super) masks: Vec<Mask>,
}

impl Room {
    #[must_use]
    pub fn new() -> Room {
        Room::default()
    }

    /// Has so many places of integers and of floating point, and a mask for each step. Takes memory only where no program
    /// before needed as many.
    pub(super) fn grow(&mut self, (ints, floats): (usize, usize), steps: usize) {
        while self.ints.len() < ints {
            self.ints.push(vec![0; VECTOR]);
        }
        while self.floats.len() < floats {
            self.floats.push(vec![0.0; VECTOR]);
        }
        if self.masks.len() < steps {
            self.masks.resize(steps, [0; VECTOR / 64]);
        }
    }

    pub(super) fn mask(&self, test: Test) -> &Mask {
        &self.masks[test.0]
    }
}
