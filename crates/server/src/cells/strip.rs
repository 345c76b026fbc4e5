//! Rows as text, made column by column.
//!
//! In: columns of a batch, as [`Cells`]. Out: some rows of them behind one another. Of each column a strip of text is made
//! first, in one loop for its type; rows are put together of pieces of known length then. Strips are used again.

use super::{Cells, Style, Values};
use crate::json::special_bits;
use std::ops::Range;
use tidalite::{DECIMAL_BYTES, short_decimals};

/// Cells are copied in pieces of so many bytes, of which the last may be less.
const PIECE: usize = DECIMAL_BYTES;
/// Rows of a strip, and fewer of many columns: strips are read again while the cache holds them.
const ROWS_MAX: usize = 256;
const CELLS: usize = 8192;
const ROWS_MIN: usize = 32;
/// A strip of long texts ends behind so many bytes.
const BYTES_MAX: usize = 256 << 10;

/// Mostly either all values of a column have few digits or few have.
const DECIMALS_FIRST: usize = 64;

/// What stands before, between and behind the cells of a row; none is zero.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    pub open: [u8; 2],
    pub between: u8,
    pub close: [u8; 2],
}

/// The text of some rows of a column.
#[derive(Debug, Default)]
struct Strip {
    /// Each cell in a piece of its own, and its length; empty where cells may be longer.
    pieces: Vec<[u8; PIECE]>,
    lens: Vec<u8>,
    /// Or cells behind one another, with a piece to spare behind the last, and where each begins and ends: the same place for
    /// a time that is that of the row before. How many bytes they are together.
    text: Vec<u8>,
    spans: Vec<(usize, usize)>,
    bytes: usize,
}

/// Strips of the columns of a batch.
#[derive(Debug, Default)]
pub struct Strips(Vec<Strip>);

impl Strips {
    /// Appends rows, the first so many of `rows` that are not too much at a time: how many they were, at least one if there
    /// is one.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn write(
        &mut self,
        cells: &[Cells<'_>],
        rows: Range<usize>,
        style: Style,
        marks: Marks,
        out: &mut Vec<u8>,
    ) -> usize {
        let at_once = (CELLS / cells.len().max(1)).clamp(ROWS_MIN, ROWS_MAX);
        let mut count = rows.len().min(at_once);
        self.0.resize_with(cells.len(), Strip::default);
        for (strip, cells) in self.0.iter_mut().zip(cells) {
            count = strip.fill(cells, rows.start..rows.start + count, style);
        }
        self.join(count, marks, out);
        count
    }

    fn join(&self, rows: usize, marks: Marks, out: &mut Vec<u8>) {
        let Marks { open, between, close } = marks;
        let of_cells: usize = self.0.iter().map(|strip| strip.bytes(rows)).sum();
        let mut at = out.len();
        out.resize(at + of_cells + rows * (open.len() + self.0.len() + close.len()) + PIECE, 0);
        // A copy of known length costs less than a call for one of a few bytes.
        let len = |mark: [u8; 2]| mark.iter().filter(|byte| **byte != 0).count();
        let (open_len, close_len) = (len(open), len(close));
        for row in 0..rows {
            out[at..at + 2].copy_from_slice(&open);
            at += open_len;
            for (i, strip) in self.0.iter().enumerate() {
                if i > 0 {
                    out[at] = between;
                    at += 1;
                }
                at = strip.copy(row, out, at);
            }
            out[at..at + 2].copy_from_slice(&close);
            at += close_len;
        }
        out.truncate(at);
    }
}

impl Strip {
    /// How many rows it holds then: not all where they are long.
    fn fill(&mut self, cells: &Cells<'_>, rows: Range<usize>, style: Style) -> usize {
        let is_short = match &cells.values {
            Values::F64(values) => self.fill_decimals(&values[rows.clone()]),
            Values::Text(texts) if style != Style::Text => {
                self.fill_short_texts(cells, &texts.views()[rows.clone()], rows.start)
            }
            _ => false,
        };
        if is_short {
            if cells.nulls {
                self.fill_nulls(cells, rows.clone(), style);
            }
            return rows.len();
        }
        self.pieces.clear();
        self.text.clear();
        self.spans.clear();
        self.bytes = 0;
        let first = rows.start;
        for row in rows {
            let from = self.text.len();
            match self.spans.last() {
                Some(before) if row > first && cells.is_time_of_row_before(row) => self.spans.push(*before),
                _ => {
                    cells.write(row, style, &mut self.text);
                    self.spans.push((from, self.text.len()));
                }
            }
            let (from, to) = self.spans[row - first];
            self.bytes += to - from;
            if self.text.len() > BYTES_MAX {
                break;
            }
        }
        self.text.extend([0; PIECE]);
        self.spans.len()
    }

    /// Whether all are short. Where some of the first are not, no others are looked at.
    fn fill_decimals(&mut self, values: &[f64]) -> bool {
        self.pieces.resize(values.len(), [0; PIECE]);
        self.lens.resize(values.len(), 0);
        let first = values.len().min(DECIMALS_FIRST);
        for part in [0..first, first..values.len()] {
            let lens = &mut self.lens[part.clone()];
            short_decimals(&values[part.clone()], &mut self.pieces[part], lens);
            if lens.contains(&0) {
                return false;
            }
        }
        true
    }

    /// In quotes. Whether all are short, with nothing to be escaped: such lie in their views, behind their lengths. NULL has
    /// any view.
    fn fill_short_texts(&mut self, cells: &Cells<'_>, views: &[u128], first: usize) -> bool {
        const LONGEST: u32 = 12;
        const LETTERS: u128 = u128::MAX / 255 * b'a' as u128;
        self.pieces.clear();
        self.lens.clear();
        let mut special = 0;
        for (row, view) in views.iter().enumerate() {
            let view = if cells.nulls && cells.is_null(first + row) { 0 } else { *view };
            let len = view as u32;
            if len > LONGEST {
                return false;
            }
            let behind = u128::MAX << (8 * len);
            let text = (view >> 32) & !behind;
            let padded = text | (LETTERS & behind);
            special |= special_bits(padded as u64) | special_bits((padded >> 64) as u64);
            let quoted = u128::from(b'"') | (text << 8) | (u128::from(b'"') << (8 * (len + 1)));
            self.pieces.push(quoted.to_le_bytes());
            self.lens.push(len as u8 + 2);
        }
        special == 0
    }

    fn fill_nulls(&mut self, cells: &Cells<'_>, rows: Range<usize>, style: Style) {
        let own = self.pieces.iter_mut().zip(&mut self.lens);
        for (row, (piece, len)) in rows.zip(own).filter(|(row, _)| cells.is_null(*row)) {
            self.text.clear();
            cells.write(row, style, &mut self.text);
            piece[..self.text.len()].copy_from_slice(&self.text);
            *len = self.text.len() as u8;
        }
    }

    /// At most, of so many rows.
    fn bytes(&self, rows: usize) -> usize {
        if self.pieces.is_empty() { self.bytes } else { rows * PIECE }
    }

    /// Where the next may stand. Up to a piece behind that is written, too.
    #[inline]
    fn copy(&self, row: usize, out: &mut [u8], at: usize) -> usize {
        if let Some(piece) = self.pieces.get(row) {
            out[at..at + PIECE].copy_from_slice(piece);
            return at + usize::from(self.lens[row]);
        }
        let (mut from, end) = self.spans[row];
        let mut to = at;
        let next = at + end - from;
        while from < end {
            out[to..to + PIECE].copy_from_slice(&self.text[from..from + PIECE]);
            (from, to) = (from + PIECE, to + PIECE);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray};
    use std::sync::Arc;

    const MARKS: Marks = Marks { open: [b'<', 0], between: b';', close: *b">\n" };

    /// Row by row, as it is defined.
    fn plain(cells: &[Cells<'_>], rows: Range<usize>, style: Style) -> Vec<u8> {
        let mut out = Vec::new();
        for row in rows {
            out.push(MARKS.open[0]);
            for (i, column) in cells.iter().enumerate() {
                out.extend((i > 0).then_some(MARKS.between));
                column.write(row, style, &mut out);
            }
            out.extend(MARKS.close);
        }
        out
    }

    fn random_column(dice: &mut fastrand::Rng, rows: usize) -> ArrayRef {
        let (kind, nulls) = (dice.u8(0..8), dice.bool());
        let is_null = |dice: &mut fastrand::Rng| nulls && dice.u8(0..4) == 0;
        match kind {
            0 => Arc::new(
                (0..rows).map(|_| (!is_null(dice)).then(|| dice.i64(..) >> dice.u8(0..64))).collect::<Int64Array>(),
            ),
            1 => {
                let long = dice.usize(1..60);
                let text =
                    |dice: &mut fastrand::Rng| "x\"é\n".chars().cycle().take(dice.usize(0..long)).collect::<String>();
                Arc::new((0..rows).map(|_| (!is_null(dice)).then(|| text(dice))).collect::<StringViewArray>())
            }
            2 => {
                let one = |dice: &mut fastrand::Rng| f64::from_bits(dice.u64(..));
                Arc::new((0..rows).map(|_| (!is_null(dice)).then(|| one(dice))).collect::<Float64Array>())
            }
            3 => {
                let (step, mut at) = (dice.i64(0..90_000_000), dice.i64(-1 << 50..1 << 50));
                let mut time = |dice: &mut fastrand::Rng| {
                    at += if dice.bool() { 0 } else { step };
                    at
                };
                Arc::new((0..rows).map(|_| (!is_null(dice)).then(|| time(dice))).collect::<TimestampMicrosecondArray>())
            }
            4 => {
                let rare = dice.bool();
                let text = |dice: &mut fastrand::Rng| {
                    let letters = if rare && dice.u8(..) == 0 { "a\"\\\u{1}" } else { "tidalités" };
                    letters.chars().cycle().take(dice.usize(0..12)).collect::<String>()
                };
                Arc::new((0..rows).map(|_| (!is_null(dice)).then(|| text(dice))).collect::<StringViewArray>())
            }
            _ => {
                // Mostly all short.
                let one = |dice: &mut fastrand::Rng| {
                    if kind == 5 && dice.u8(..) == 0 {
                        f64::NAN
                    } else {
                        f64::from(dice.i32(-9_000_000..9_000_000)) / 8.0
                    }
                };
                Arc::new((0..rows).map(|_| (!is_null(dice)).then(|| one(dice))).collect::<Float64Array>())
            }
        }
    }

    #[test]
    fn rows_made_by_columns_are_those_made_cell_by_cell() {
        let mut dice = fastrand::Rng::with_seed(5);
        let styles = [Style::Csv, Style::Text, Style::Json { long_quotes: true, not_finite_quotes: false }];
        let mut strips = Strips::default();
        for round in 0..200 {
            let rows = [1, 40, 300, 700][round % 4];
            let columns: Vec<ArrayRef> = (0..dice.usize(1..[6, 300][usize::from(round % 20 == 0)]))
                .map(|_| random_column(&mut dice, rows))
                .collect();
            let cells: Vec<Cells<'_>> = columns.iter().map(|column| Cells::new(column.as_ref(), "")).collect();
            let (from, style) = (dice.usize(0..rows), styles[round % 3]);
            let (mut out, mut at) = (Vec::new(), from);
            while at < rows {
                let some = strips.write(&cells, at..rows, style, MARKS, &mut out);
                assert!(some > 0);
                at += some;
            }
            assert!(out == plain(&cells, from..rows, style), "round {round}: {} columns", columns.len());
        }
    }

    #[test]
    fn long_texts_are_a_few_rows_at_a_time() {
        let long = "long ".repeat(BYTES_MAX / 10);
        let texts: ArrayRef = Arc::new((0..8).map(|_| Some(long.as_str())).collect::<StringViewArray>());
        let numbers: ArrayRef = Arc::new((0..8).map(|row| Some(f64::from(row))).collect::<Float64Array>());
        let cells: Vec<Cells<'_>> = [&numbers, &texts, &numbers].map(|column| Cells::new(column.as_ref(), "")).into();
        let (mut out, mut at, mut turns) = (Vec::new(), 0, 0);
        while at < texts.len() {
            at += Strips::default().write(&cells, at..texts.len(), Style::Csv, MARKS, &mut out);
            turns += 1;
        }
        assert_eq!(turns, 3);
        assert!(out == plain(&cells, 0..8, Style::Csv));
    }
}
