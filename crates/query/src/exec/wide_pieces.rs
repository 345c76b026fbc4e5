//! Pieces of wide rows, handed out in small batches of their own memory.
//!
//! In: the rows of one piece, up to a block. Out: the same rows, in order, in batches of about a mebibyte that share no
//! memory with the piece. A block of 65,536 texts of 4 kB is 256 MB, and every batch that is a slice of it keeps all of it
//! alive: a client that does not read would hold the block.
//!
//! Always: while the reader of a query pauses, the query holds no wide piece. The piece is dropped ([`HeldPieces::release`])
//! and read again when its next rows are wanted: tables of a query never change. Pieces of at most [`PIECE_BYTES`] stay as
//! they are.

use super::compact::{SPARSE_BYTES, kept_and_used, own_texts};
use super::width::bytes_of_rows;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::common::{DataFusionError, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of rows of a piece that is handed out as it is. A block of 64 bytes a row.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes of a batch: as many as a client gets at a time.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes of a batch where several streams wait for the client.
const BATCH_BYTES_MIN: usize = 64 << 10;
/// Held pieces of all queries together. Above it a query drops its pieces as soon as its reader pauses.
const HELD_BYTES: usize = 256 << 20;

/// Bytes of rows of the wide pieces that all queries hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A piece while its rows are handed out; empty after a release.
#[derive(Debug, Default)]
struct Held(Mutex<Option<Counted>>);

/// A batch whose bytes are in [`HELD`].
#[derive(Debug)]
struct Counted {
    batch: RecordBatch,
    bytes: usize,
}

impl Counted {
    fn new(batch: RecordBatch) -> Counted {
        let bytes = bytes_of_rows(&batch);
        HELD.fetch_add(bytes, Ordering::Relaxed);
        Counted { batch, bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HELD.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The wide pieces of a statement.
#[derive(Debug, Default)]
pub(crate) struct HeldPieces {
    pieces: Mutex<Vec<Weak<Held>>>,
    /// True while no piece may be held.
    is_released: AtomicBool,
}

impl HeldPieces {
    /// Drops all pieces and holds none until [`HeldPieces::resume`].
    pub fn release(&self) {
        let mut pieces = lock(&self.pieces);
        self.is_released.store(true, Ordering::Relaxed);
        for held in pieces.drain(..).filter_map(|piece| piece.upgrade()) {
            *lock(&held.0) = None;
        }
    }

    pub fn resume(&self) {
        // Ordered with the pieces that are being added by their lock.
        let _pieces = lock(&self.pieces);
        self.is_released.store(false, Ordering::Relaxed);
    }

    /// Returns true if the pieces of all queries take more memory than they should.
    pub fn are_many() -> bool {
        HELD.load(Ordering::Relaxed) > HELD_BYTES
    }

    fn hold(&self, held: &Arc<Held>, batch: RecordBatch) {
        let mut pieces = lock(&self.pieces);
        if self.is_released.load(Ordering::Relaxed) {
            return;
        }
        pieces.retain(|piece| piece.strong_count() > 0 && !std::ptr::eq(piece.as_ptr(), Arc::as_ptr(held)));
        pieces.push(Arc::downgrade(held));
        *lock(&held.0) = Some(Counted::new(batch));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the bytes of a batch if so many streams wait for the same client.
pub(crate) fn batch_bytes(streams: usize) -> usize {
    (BATCH_BYTES / streams.max(1)).max(BATCH_BYTES_MIN)
}

/// The rows of a piece that are still to be handed out.
#[derive(Debug)]
pub(crate) struct WidePiece {
    held: Arc<Held>,
    /// Rows that were handed out, and all.
    from: usize,
    rows: usize,
    /// Bytes of the rows of the piece.
    bytes: usize,
    /// Bytes of a batch, and its rows by the average width.
    batch_bytes: usize,
    step: usize,
}

impl WidePiece {
    /// Returns the rows of a piece that is not wide as they are.
    pub fn try_new(
        batch: RecordBatch,
        batch_bytes: usize,
        pieces: &HeldPieces,
    ) -> std::result::Result<WidePiece, RecordBatch> {
        let (rows, bytes) = (batch.num_rows(), bytes_of_rows(&batch));
        if bytes <= PIECE_BYTES || rows < 2 {
            return Err(batch);
        }
        let step = (rows * batch_bytes / bytes).max(1);
        let piece = WidePiece { held: Arc::default(), from: 0, rows, bytes, batch_bytes, step };
        pieces.hold(&piece.held, batch);
        Ok(piece)
    }

    /// Bytes of the rows of the piece.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the next rows, `None` after the last; `again` reads the piece once more.
    pub fn next(
        &mut self,
        pieces: &HeldPieces,
        again: impl FnOnce() -> Result<Option<RecordBatch>>,
    ) -> Result<Option<RecordBatch>> {
        if self.from == self.rows {
            return Ok(None);
        }
        let held = lock(&self.held.0).as_ref().map(|counted| counted.batch.clone());
        let is_released = held.is_none();
        let batch = match held {
            Some(batch) => batch,
            None => again()?.ok_or_else(|| changed(self.rows, 0))?,
        };
        if batch.num_rows() < self.rows {
            return Err(changed(self.rows, batch.num_rows()));
        }
        let mut rows = self.step.min(self.rows - self.from);
        let mut slice = batch.slice(self.from, rows);
        // Rows of one piece differ in width.
        while rows > 1 && bytes_of_rows(&slice) > 2 * self.batch_bytes {
            rows = rows.div_ceil(2);
            slice = batch.slice(self.from, rows);
        }
        let own = copied(&slice)?;
        self.from += rows;
        if self.from == self.rows {
            *lock(&self.held.0) = None;
        } else if is_released {
            pieces.hold(&self.held, batch);
        }
        Ok(Some(own))
    }
}

fn changed(before: usize, after: usize) -> DataFusionError {
    crate::Error::internal(format!("a piece of {before} rows has {after} when it is read again")).into()
}

/// Returns rows that share no memory with others.
fn copied(batch: &RecordBatch) -> Result<RecordBatch> {
    let all = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    let copied = |column: &ArrayRef| -> Result<ArrayRef> {
        Ok(if kept_and_used(column).0 > SPARSE_BYTES { own_texts(column) } else { take(column, &all, None)? })
    };
    let columns = batch.columns().iter().map(copied).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use datafusion::arrow::compute::concat_batches;

    /// Rows whose text has as many letters as `width` says.
    fn piece(rows: usize, width: impl Fn(usize) -> usize) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let texts = (0..rows).map(|row| (row % 7 != 3).then(|| format!("{row}{}", "y".repeat(width(row)))));
        let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("s", texts, true)]).unwrap()
    }

    /// Hands a piece out; `pauses` says before which batches the reader pauses. Returns its batches and how often it was read again.
    fn handed_out(piece: &RecordBatch, pauses: impl Fn(usize) -> bool) -> (Vec<RecordBatch>, usize) {
        let pieces = HeldPieces::default();
        let mut wide = WidePiece::try_new(piece.clone(), BATCH_BYTES, &pieces).unwrap();
        let (mut batches, mut reads) = (Vec::new(), 0);
        loop {
            if pauses(batches.len()) {
                pieces.release();
                assert!(lock(&wide.held.0).is_none(), "nothing is held in a pause");
                pieces.resume();
            }
            let next = wide.next(&pieces, || {
                reads += 1;
                Ok(Some(piece.clone()))
            });
            match next.unwrap() {
                Some(batch) => batches.push(batch),
                None => return (batches, reads),
            }
        }
    }

    #[test]
    fn batches_are_small_and_have_all_rows() {
        for width in [(|_| 4_000) as fn(usize) -> usize, |row| if row < 9_000 { 1 } else { 30_000 }] {
            let piece = piece(9_500, width);
            let (batches, reads) = handed_out(&piece, |_| false);
            assert_eq!(concat_batches(&piece.schema(), &batches).unwrap(), piece);
            assert_eq!(reads, 0);
            assert!(batches.iter().all(|batch| batch.get_array_memory_size() <= 3 * BATCH_BYTES));
        }
    }

    #[test]
    fn a_released_piece_is_read_again() {
        let piece = piece(9_000, |_| 4_000);
        let (batches, reads) = handed_out(&piece, |at| at % 5 == 2);
        assert!(batches.len() > 10);
        assert_eq!(concat_batches(&piece.schema(), &batches).unwrap(), piece);
        assert_eq!(reads, batches.len() / 5 + usize::from(batches.len() % 5 > 2));
    }

    #[test]
    fn nothing_is_held_while_the_reader_pauses() {
        let (piece, pieces) = (piece(3_000, |_| 4_000), HeldPieces::default());
        pieces.release();
        let mut wide = WidePiece::try_new(piece.clone(), BATCH_BYTES, &pieces).unwrap();
        assert!(lock(&wide.held.0).is_none());
        let first = wide.next(&pieces, || Ok(Some(piece.clone()))).unwrap().unwrap();
        assert!(lock(&wide.held.0).is_none() && first.num_rows() < 400);
        let error = wide.next(&pieces, || Ok(Some(piece.slice(0, 10)))).unwrap_err();
        assert!(error.to_string().contains("read again"), "{error}");
    }

    #[test]
    fn narrow_pieces_stay_as_they_are() {
        let piece = piece(60_000, |_| 3);
        assert_eq!(WidePiece::try_new(piece.clone(), BATCH_BYTES, &HeldPieces::default()).unwrap_err(), piece);
    }
}
