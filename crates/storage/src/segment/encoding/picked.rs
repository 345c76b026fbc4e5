//! The selected rows of a block, read by row or by vector.

use super::mask::{WORDS, words_of};
use super::nulls::fill_nulls;
use crate::segment::buffer::share;
use crate::segment::selection::Selection;
use bytes::Bytes;
use tidalite_kernels::bitpack::prefetch_one;
use tidalite_kernels::{Line, select, select_bits};
use tidalite_types::VECTOR_ROWS;

/// Up to this many rows of a vector are read one by one; for more, the vector is unpacked.
const FEW_ROWS: usize = 16;

/// The selected rows, and their validity.
pub(super) struct Picked<'a> {
    pub(super) selection: &'a Selection,
    /// A bit per selected row; `None` if none is NULL.
    pub(super) valid: Option<Vec<u64>>,
}

impl<'a> Picked<'a> {
    /// Creates a value without NULLs, or for callers that ignore NULLs.
    pub fn of(selection: &'a Selection) -> Picked<'a> {
        Picked { selection, valid: None }
    }
}

impl Picked<'_> {
    /// Returns the row numbers in the block if the rows are few.
    pub fn numbers(&self) -> Option<&[u16]> {
        self.selection.numbers()
    }

    pub fn rows(&self) -> usize {
        self.selection.rows()
    }

    pub fn mask(&self) -> &[u64] {
        self.selection.mask()
    }

    /// Returns the vectors with selected rows, and their words of the mask.
    pub fn vectors(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let all = (0..self.mask().len().div_ceil(WORDS)).map(|i| (i, words_of(self.mask(), i)));
        all.filter(|(_, words)| words.iter().any(|word| *word != 0))
    }

    /// Returns the rows of vectors that `append` decodes.
    pub fn by_vector<T: bytemuck::Pod + Default>(&self, append: impl FnMut(usize, &mut Vec<T>)) -> Vec<T> {
        self.found(0, |_| (&[], 0), |_, _| T::default(), append)
    }

    /// Returns rows like [`Picked::by_vector`], but reads few rows of a vector one by one; `packed` returns its lines
    /// and width.
    pub fn by_row<'l, T: bytemuck::Pod + Default>(
        &self,
        packed: impl Fn(usize) -> (&'l [Line], u32),
        of_row: impl FnMut(usize, usize) -> T,
        append: impl FnMut(usize, &mut Vec<T>),
    ) -> Vec<T> {
        self.found(FEW_ROWS, packed, of_row, append)
    }

    fn found<'l, T: bytemuck::Pod + Default>(
        &self,
        few: usize,
        packed: impl Fn(usize) -> (&'l [Line], u32),
        mut of_row: impl FnMut(usize, usize) -> T,
        mut append: impl FnMut(usize, &mut Vec<T>),
    ) -> Vec<T> {
        let mut out = Vec::with_capacity(self.rows());
        let mut vector = Vec::new();
        let Some(numbers) = self.selection.numbers() else {
            for (i, words) in self.vectors() {
                vector.clear();
                append(i, &mut vector);
                select(&vector, words, &mut out);
            }
            self.zero_nulls(&mut out);
            return out;
        };
        let by_vector = || numbers.chunk_by(|a, b| vector_of(*a) == vector_of(*b));
        // Each row is a cache miss: all rows are prefetched before the first is read.
        for numbers in by_vector().filter(|numbers| numbers.len() <= few) {
            let (lines, width) = packed(vector_of(numbers[0]));
            numbers.iter().for_each(|number| prefetch_one(lines, width, usize::from(*number) % VECTOR_ROWS));
        }
        for numbers in by_vector() {
            let i = vector_of(numbers[0]);
            let rows = numbers.iter().map(|number| usize::from(*number) % VECTOR_ROWS);
            if numbers.len() <= few {
                out.extend(rows.map(|row| of_row(i, row)));
            } else {
                vector.clear();
                append(i, &mut vector);
                out.extend(rows.map(|row| vector[row]));
            }
        }
        self.zero_nulls(&mut out);
        out
    }

    /// Sets NULL rows to zero, like decoding.
    pub fn zero_nulls<T: bytemuck::Zeroable + Copy>(&self, out: &mut [T]) {
        if let Some(valid) = &self.valid {
            fill_nulls(out, valid, T::zeroed());
        }
    }

    /// Selects bits.
    pub fn bits(&self, all: &[u64]) -> Bytes {
        let mut out = select_bits(all, self.mask());
        out.iter_mut().zip(self.valid.iter().flatten()).for_each(|(word, valid)| *word &= valid);
        share(out)
    }
}

fn vector_of(number: u16) -> usize {
    usize::from(number) / VECTOR_ROWS
}
