//! The rows of a batch as text, piece by piece, by two threads where they are many.
//!
//! In: columns. Out: text of rows in their order. While the thread that is asked writes a piece, another writes the one
//! behind it; a client reads what came before meanwhile. No more than that is ahead of the client, so that a slow one slows
//! the query.

use crate::cells::{Cells, Marks, Strips, Style};
use arrow::array::ArrayRef;
use std::sync::Arc;
use tidalite::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// About what a piece has: a tenth of a millisecond of work, and a hundred kilobytes.
const CELLS: usize = 8192;
/// Room for the text of one, mostly.
const TEXT_BYTES: usize = 128 << 10;
/// To wake another thread for less takes longer.
const CELLS_AHEAD_MIN: usize = 2048;
/// A piece ends behind so many bytes, whatever is left of its rows.
const BYTES_MAX: usize = 256 << 10;

/// Columns, and how their rows are written.
#[derive(Debug)]
struct Columns {
    arrays: Vec<ArrayRef>,
    type_names: Vec<String>,
    style: Style,
    marks: Marks,
}

/// What another thread wrote: the text, and which row is next.
type Written = (Vec<u8>, usize);

#[derive(Debug)]
pub struct Batch {
    columns: Arc<Columns>,
    next: usize,
    until: usize,
    /// What another thread writes, and its first row; those before are for this one.
    ahead: Option<(JoinHandle<Written>, usize)>,
}

impl Batch {
    /// Rows `from` to `until` of columns, whose SQL types are `type_names`.
    pub fn new(
        arrays: Vec<ArrayRef>,
        type_names: Vec<String>,
        (from, until): (usize, usize),
        (style, marks): (Style, Marks),
    ) -> Batch {
        let columns = Columns { arrays, type_names, style, marks };
        Batch { columns: Arc::new(columns), next: from, until, ahead: None }
    }

    pub fn is_written(&self) -> bool {
        self.next >= self.until
    }

    /// Appends a piece, and says how many rows it has.
    ///
    /// # Errors
    /// The thread that wrote it panicked.
    pub async fn write(&mut self, strips: &mut Strips, out: &mut Vec<u8>) -> Result<usize> {
        let from = self.next;
        if let Some((ahead, _)) = self.ahead.take_if(|(_, first)| *first == from) {
            let panicked = |_| Error::new(ErrorKind::Internal, "writing the answer panicked");
            let (text, next) = ahead.await.map_err(panicked)?;
            self.next = next;
            if out.is_empty() { *out = text } else { out.extend(text) }
        } else {
            let until = match &self.ahead {
                Some((_, first)) => *first,
                None => self.begin_ahead(),
            };
            self.next = self.columns.write((from, until), strips, out);
        }
        Ok(self.next - from)
    }

    /// Where the next piece ends, which is for this thread; another begins with the one behind it, if that is worth it.
    fn begin_ahead(&mut self) -> usize {
        let (left, columns) = (self.until - self.next, self.columns.arrays.len().max(1));
        let pieces = (left * columns).div_ceil(CELLS).next_multiple_of(2);
        let rows = left.div_ceil(pieces);
        let (first, until) = (self.next + rows, self.until.min(self.next + 2 * rows));
        let runtime = Handle::try_current().ok().filter(|runtime| runtime.metrics().num_workers() > 1);
        let Some(runtime) = runtime.filter(|_| rows * columns >= CELLS_AHEAD_MIN && first < until) else {
            return self.until.min(self.next + CELLS.div_ceil(columns));
        };
        let columns = self.columns.clone();
        let ahead = runtime.spawn_blocking(move || {
            let mut text = Vec::new();
            let next = columns.write((first, until), &mut Strips::default(), &mut text);
            (text, next)
        });
        self.ahead = Some((ahead, first));
        first
    }
}

impl Columns {
    /// Appends rows, at least one of them if there is one, and says which is next.
    fn write(&self, (from, until): (usize, usize), strips: &mut Strips, out: &mut Vec<u8>) -> usize {
        let of_type = self.arrays.iter().zip(&self.type_names);
        let cells: Vec<Cells<'_>> = of_type.map(|(array, name)| Cells::new(array.as_ref(), name)).collect();
        out.reserve(TEXT_BYTES);
        let bytes_max = out.len() + BYTES_MAX;
        let mut next = from;
        while next < until && out.len() < bytes_max {
            next += strips.write(&cells, next..until, self.style, self.marks, out);
        }
        next
    }
}
