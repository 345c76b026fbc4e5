//! Floating-point aggregates over moving frames: two stacks of states.
//!
//! A row that left the frame must have no effect, and floating-point addition cannot be undone: after 1e17 is added and
//! subtracted, 1 is lost, and a NaN stays. Therefore rows that enter are added to a state at the back, and rows leave
//! from a stack at the front. The entry of a row on that stack is the state of the row and all later rows of the stack.
//! When the front is empty, all rows of the back move there. A row is added to a state at most twice, for any frame
//! length.

use super::means::neumaier;
use super::{Formula, NUMBERS, Numbers, each_row};
use arrow::array::ArrayRef;

/// Maximum number of arguments of a formula.
const ARGUMENTS_MAX: usize = 2;

pub static SUM: Formula = COMPENSATED;
pub static MEAN: Formula =
    Formula { name: "avg", value: |s| (s[2] > 0.0).then_some((s[0] + s[1]) / s[2]), ..COMPENSATED };

/// The compensated sum (with the rounding error kept apart) and the count.
const COMPENSATED: Formula = Formula {
    name: "sum",
    aliases: &[],
    arguments: 1,
    add_rows: None,
    add_columns: None,
    add: |s, v| {
        neumaier(&mut s[..2], v[0]);
        s[2] += 1.0;
    },
    merge: |s, o| {
        neumaier(&mut s[..2], o[0]);
        neumaier(&mut s[..2], o[1]);
        s[2] += o[2];
    },
    value: |s| (s[2] > 0.0).then_some(s[0] + s[1]),
};

/// Error for removing a row that is not in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeverEntered;

/// A formula over a frame: rows enter at its end and leave at its start.
#[derive(Debug)]
pub struct TwoStacks {
    of: &'static Formula,
    /// The states of each suffix of the older rows, the state of all of them last.
    front: Vec<Numbers>,
    /// The newer rows and their state.
    rows: Vec<[f64; ARGUMENTS_MAX]>,
    back: Numbers,
}

impl TwoStacks {
    #[must_use]
    pub fn new(of: &'static Formula) -> TwoStacks {
        TwoStacks { of, front: Vec::new(), rows: Vec::new(), back: [0.0; NUMBERS] }
    }

    fn push(&mut self, values: &[f64]) {
        let mut row = [0.0; ARGUMENTS_MAX];
        row[..values.len()].copy_from_slice(values);
        self.rows.push(row);
        (self.of.add)(&mut self.back, values);
    }

    /// Removes the oldest row; `None` for an empty frame.
    fn pop(&mut self) -> Option<()> {
        if self.front.is_empty() {
            let mut state = [0.0; NUMBERS];
            for row in self.rows.drain(..).rev() {
                (self.of.add)(&mut state, &row[..self.of.arguments]);
                self.front.push(state);
            }
            self.back = [0.0; NUMBERS];
        }
        self.front.pop().map(|_| ())
    }

    /// Adds rows at the end of the frame.
    pub fn enter(&mut self, columns: &[ArrayRef]) {
        each_row(columns, |_, values| self.push(values));
    }

    /// Removes rows from the start of the frame, one for each row of `columns`.
    ///
    /// # Errors
    /// Fails if the frame has fewer rows.
    pub fn leave(&mut self, columns: &[ArrayRef]) -> Result<(), NeverEntered> {
        let mut leaving = 0;
        each_row(columns, |_, _| leaving += 1);
        (0..leaving).try_for_each(|_| self.pop()).ok_or(NeverEntered)
    }

    /// Returns the result of the frame; `None` for NULL.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        (self.of.value)(&self.state_of_frame())
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.front.capacity() * size_of::<Numbers>()
            + self.rows.capacity() * size_of::<[f64; ARGUMENTS_MAX]>()
    }

    #[must_use]
    pub fn state_of_frame(&self) -> Numbers {
        let mut state = self.front.last().copied().unwrap_or([0.0; NUMBERS]);
        match self.rows.is_empty() {
            true => {}
            false if self.front.is_empty() => state = self.back,
            false => (self.of.merge)(&mut state, &self.back),
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: sums and means of the rows of each frame alone.
    #[test]
    fn what_left_the_frame_leaves_no_trace() {
        let values = [1e17, 1.0, 2.0, f64::NAN, 4.0, 5.0, f64::INFINITY, 7.0, 8.0, -0.25, 1e308, 1e308, 3.0, 0.5];
        for width in 1..values.len() {
            let (mut sum, mut mean) = (TwoStacks::new(&SUM), TwoStacks::new(&MEAN));
            for (at, value) in values.iter().enumerate() {
                for stacks in [&mut sum, &mut mean] {
                    stacks.push(&[*value]);
                    if at >= width {
                        stacks.pop().expect("a row");
                    }
                }
                let frame = &values[(at + 1).saturating_sub(width)..=at];
                let expected: f64 = frame.iter().sum();
                let found = [&sum, &mean].map(|s| (s.of.value)(&s.state_of_frame()).expect("a value"));
                let expected = [expected, expected / frame.len() as f64];
                for (found, expected) in found.into_iter().zip(expected) {
                    let is_same = found == expected
                        || found.is_nan() && expected.is_nan()
                        || (found - expected).abs() <= 1e-15 * expected.abs().max(1e17 * f64::EPSILON);
                    assert!(is_same, "{frame:?}: {found} {expected}");
                }
            }
        }
    }
}
