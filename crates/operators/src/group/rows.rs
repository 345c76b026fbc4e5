//! Rows of a part of the groups, collected until there are enough of them to be worth fetching the part's table.

use super::keys::Word;
use tidalite_kernels::{FoldInput, FoldValues};

/// Rows that are collected before they are handed on.
const ROWS_MAX: usize = 1 << 12;

/// Keys, and the values of each input.
pub(super) struct Rows<W> {
    pub keys: Vec<W>,
    inputs: Vec<Input>,
}

/// The bits of values, and whether they are there: empty while all are.
struct Input {
    /// Whether the values are floating point; `None` if there are none.
    is_float: Option<bool>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    present: Vec<u8>,
}

impl<W: Word> Rows<W> {
    /// `inputs` says of each whether its values are floating point, `None` if it has none. There is no room before rows come,
    /// then for [`ROWS_MAX`].
    pub fn new(inputs: &[Option<bool>]) -> Rows<W> {
        Rows { keys: Vec::new(), inputs: inputs.iter().map(|is_float| Input::new(*is_float)).collect() }
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<W>() + self.inputs.iter().map(Input::bytes).sum::<usize>()
    }

    /// Whether no more than so many have room.
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

    /// As kernels fold them.
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

    /// Adds some rows' values to those of `before` rows.
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
