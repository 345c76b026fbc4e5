//! Buffer for rows of a part, collected until a batch is large enough to load the part's table into the cache.

use super::keys::Word;
use tidalite_kernels::{FoldInput, FoldValues};

/// Largest number of rows that are collected.
const ROWS_MAX: usize = 1 << 12;

/// Keys, and the values of each input.
pub(super) struct Rows<W> {
    pub keys: Vec<W>,
    inputs: Vec<Input>,
}

/// The values of an input and their validity, which is empty while no value is missing.
struct Input {
    /// True for floating point; `None` if there are no values.
    is_float: Option<bool>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    present: Vec<u8>,
}

impl<W: Word> Rows<W> {
    /// Creates a buffer. `inputs` is true for floating point, false for integers, `None` for inputs without values.
    ///
    /// Memory for [`ROWS_MAX`] rows is allocated with the first row.
    pub fn new(inputs: &[Option<bool>]) -> Rows<W> {
        Rows { keys: Vec::new(), inputs: inputs.iter().map(|is_float| Input::new(*is_float)).collect() }
    }

    /// Returns the allocated bytes.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<W>() + self.inputs.iter().map(Input::bytes).sum::<usize>()
    }

    /// Returns true if `more` rows do not fit.
    pub fn are_full_with(&self, more: usize) -> bool {
        self.keys.len() + more > ROWS_MAX
    }

    /// Adds some rows of a batch.
    pub fn extend(&mut self, rows: &[u32], words: &[W], inputs: &[FoldInput<'_>]) {
        let before = self.keys.len();
        if before == 0 && !rows.is_empty() {
            self.keys.reserve_exact(ROWS_MAX);
            self.inputs.iter_mut().for_each(Input::make_room);
        }
        self.keys.extend(rows.iter().map(|row| words[*row as usize]));
        for (own, input) in self.inputs.iter_mut().zip(inputs) {
            own.extend(before, rows, input);
        }
    }

    /// Returns the inputs in the form of the kernels.
    pub fn folded(&self) -> Vec<FoldInput<'_>> {
        self.inputs.iter().map(Input::folded).collect()
    }
}

impl Input {
    fn new(is_float: Option<bool>) -> Input {
        Input { is_float, ints: Vec::new(), floats: Vec::new(), present: Vec::new() }
    }

    fn make_room(&mut self) {
        match self.is_float {
            Some(false) => self.ints.reserve_exact(ROWS_MAX),
            Some(true) => self.floats.reserve_exact(ROWS_MAX),
            None => {}
        }
    }

    fn bytes(&self) -> usize {
        (self.ints.capacity() + self.floats.capacity()) * size_of::<u64>() + self.present.capacity()
    }

    /// Adds the values of some rows after those of `before` rows.
    fn extend(&mut self, before: usize, rows: &[u32], input: &FoldInput<'_>) {
        match input.values {
            FoldValues::Ints(values) => self.ints.extend(rows.iter().map(|row| values[*row as usize])),
            FoldValues::Floats(values) => self.floats.extend(rows.iter().map(|row| values[*row as usize])),
            FoldValues::Nothing => {}
        }
        match input.present {
            Some(present) => {
                self.present.resize(before, 1);
                self.present.extend(rows.iter().map(|row| present[*row as usize]));
            }
            None if self.present.is_empty() => {}
            None => self.present.resize(before + rows.len(), 1),
        }
    }

    fn folded(&self) -> FoldInput<'_> {
        let values = match self.is_float {
            Some(false) => FoldValues::Ints(&self.ints),
            Some(true) => FoldValues::Floats(&self.floats),
            None => FoldValues::Nothing,
        };
        FoldInput { values, present: (!self.present.is_empty()).then_some(&self.present[..]) }
    }
}
