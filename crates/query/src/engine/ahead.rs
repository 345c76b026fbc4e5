//! Rows between a query and its reader: a channel that is bounded by bytes.
//!
//! In: batches of any size. Out: the same rows in batches of at most [`BATCH_BYTES`], or of one row. A query whose reader
//! does not take its rows waits with [`AHEAD_BYTES`] in the channel, and the batch that does not fit.

use crate::exec::compact::compacted;
use crate::exec::width::bytes_of_rows;
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes of rows computed ahead of the reader.
const AHEAD_BYTES: usize = 512 << 10;
/// A batch counts as at least so many bytes: an eighth, so that batches of few rows are bounded, too.
const WEIGHT_MIN: usize = AHEAD_BYTES / 8;
/// Bytes of a batch. Encoders of clients copy a batch at a time.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// Rows or the error that ends them; the permit is released when the reader takes the message.
type Message = (Result<RecordBatch>, Option<OwnedSemaphorePermit>);

#[derive(Clone)]
pub(super) struct Sender {
    messages: mpsc::UnboundedSender<Message>,
    free: Arc<Semaphore>,
}

pub(super) struct Receiver(mpsc::UnboundedReceiver<Message>);

pub(super) fn channel() -> (Sender, Receiver) {
    // Bounded by the permits: no batch is sent without one.
    let (messages, received) = mpsc::unbounded_channel();
    (Sender { messages, free: Arc::new(Semaphore::new(AHEAD_BYTES)) }, Receiver(received))
}

impl Sender {
    /// Sends the rows of a batch as the reader takes them; returns false once there is no reader.
    pub async fn send(&self, batch: RecordBatch) -> bool {
        let batch = compacted(batch);
        let (rows, bytes) = (batch.num_rows(), bytes_of_rows(&batch));
        if bytes <= BATCH_BYTES || rows < 2 {
            return self.send_one(batch, bytes).await;
        }
        let step = (rows.saturating_mul(BATCH_BYTES) / bytes).max(1);
        for from in (0..rows).step_by(step) {
            let slice = batch.slice(from, step.min(rows - from));
            if !self.send_one(slice, BATCH_BYTES).await {
                return false;
            }
        }
        true
    }

    async fn send_one(&self, batch: RecordBatch, bytes: usize) -> bool {
        let weight = bytes.clamp(WEIGHT_MIN, AHEAD_BYTES) as u32;
        // The semaphore is never closed.
        let permit = self.free.clone().acquire_many_owned(weight).await.ok();
        self.messages.send((Ok(batch), permit)).is_ok()
    }

    /// Sends the error that ends the rows; never waits.
    pub fn fail(&self, error: Error) {
        // Without a reader the error has no receiver.
        let _ = self.messages.send((Err(error), None));
    }

    /// Ready once there is no reader.
    pub async fn closed(&self) {
        self.messages.closed().await;
    }
}

impl Receiver {
    pub async fn recv(&mut self) -> Option<Result<RecordBatch>> {
        self.0.recv().await.map(|(batch, _)| batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;
    use futures::FutureExt;

    fn batch(rows: usize, width: usize) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..rows).map(|_| "y".repeat(width))));
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    #[test]
    fn a_reader_that_does_not_read_stops_the_sender() {
        let (sender, mut receiver) = channel();
        let mut sent = 0;
        while sender.send(batch(10, 10_000)).now_or_never().is_some() {
            sent += 1;
        }
        assert!((3..=5).contains(&sent), "{sent} batches of 100 kB in half a mebibyte");
        assert_eq!(receiver.recv().now_or_never().unwrap().unwrap().unwrap().num_rows(), 10);
        assert!(sender.send(batch(10, 10_000)).now_or_never().is_some());
        let small = (0..100).filter(|_| sender.send(batch(1, 1)).now_or_never().is_some()).count();
        assert!(small <= 8, "{small}");
        sender.fail(Error::cancelled());
        drop(sender);
        let mut rest = Vec::new();
        while let Some(batch) = receiver.recv().now_or_never().unwrap() {
            rest.push(batch);
        }
        assert!(rest.pop().unwrap().is_err() && rest.iter().all(Result::is_ok));
    }

    #[test]
    fn large_batches_come_in_pieces() {
        let (sender, mut receiver) = channel();
        let whole = batch(3000, 2000);
        let mut sending = Box::pin(sender.send(whole));
        let mut numbers = Vec::new();
        loop {
            let is_sent = sending.as_mut().now_or_never().is_some();
            while let Some(Some(piece)) = receiver.recv().now_or_never() {
                let piece = piece.unwrap();
                assert!(bytes_of_rows(&piece) <= BATCH_BYTES);
                numbers.extend_from_slice(piece.column(0).as_primitive::<Int64Type>().values());
            }
            if is_sent {
                break;
            }
        }
        assert_eq!(numbers, (0..3000).collect::<Vec<i64>>());
    }
}
