//! COPY between a table and a client: `FROM STDIN`, `TO STDOUT`. The protocol layer supplies the bytes of the client.

use crate::threads::spawn_detached;
use crate::{Error, ErrorKind, Result};
use futures::channel::oneshot;
use std::io::Read;
use tidalite_query::CancelToken;
pub use tidalite_query::statement::{Copy, CopyFormat, CopyWhat, Name};
use tidalite_query::statement::{CopyPlace, Statement};
use tokio::sync::mpsc;

/// Number of pieces of text from a client that wait to be parsed.
const PIECES_WAITING: usize = 4;

/// Returns the COPY of a statement that copies from or to the client; `None` for every other statement.
///
/// # Errors
/// Fails if the statement is an invalid COPY.
pub fn with_client(sql: &str) -> Result<Option<Copy>> {
    match tidalite_query::parse(sql)? {
        Statement::Copy(copy) if matches!(copy.place, CopyPlace::Client) => {
            crate::session::copy::import_options(&copy)?;
            Ok(Some(copy))
        }
        _ => Ok(None),
    }
}

/// Rows from a client that are being committed. Dropping the value before [`CopyIn::finish`] discards uncommitted rows.
#[derive(Debug)]
pub struct CopyIn {
    pieces: mpsc::Sender<Option<Vec<u8>>>,
    done: oneshot::Receiver<Result<u64>>,
    cancel: CancelToken,
}

impl CopyIn {
    pub(crate) fn start(
        work: impl FnOnce(Box<dyn Read + Send>, CancelToken) -> Result<u64> + Send + 'static,
        cancel: CancelToken,
    ) -> Result<CopyIn> {
        let (pieces, receiver) = mpsc::channel(PIECES_WAITING);
        let (done, answer) = oneshot::channel();
        let incoming = Box::new(Incoming { pieces: receiver, piece: Vec::new(), at: 0, has_ended: false });
        let token = cancel.clone();
        let started = spawn_detached("tidalite-copy", move || drop(done.send(work(incoming, token))));
        started.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start a thread: {e}")))?;
        Ok(CopyIn { pieces, done: answer, cancel })
    }

    /// Sends a piece, waiting until the previous pieces are parsed. Returns false if the copy has failed.
    pub async fn write(&mut self, piece: Vec<u8>) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.pieces.send(Some(piece)) => sent.is_ok(),
        }
    }

    /// Completes when the copy is cancelled.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Ends the input and returns the number of copied rows.
    ///
    /// # Errors
    /// Fails for the first invalid record, a failed commit, or a cancellation.
    pub async fn finish(self) -> Result<u64> {
        let CopyIn { pieces, done, cancel } = self;
        if cancel.is_cancelled() {
            return Err(cancel.reason().into());
        }
        // A failed copy has closed the channel.
        let _ = pieces.send(None).await;
        let lost = || Err(Error::new(ErrorKind::Internal, "the copy failed by a bug: it panicked"));
        done.await.unwrap_or_else(|_| lost())
    }
}

/// A reader of the pieces as one text.
struct Incoming {
    pieces: mpsc::Receiver<Option<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    has_ended: bool,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.piece.len() && !self.has_ended {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => (self.piece, self.at) = (piece, 0),
                Some(None) => self.has_ended = true,
                None => return Err(std::io::Error::other("the client broke off")),
            }
        }
        let rest = &self.piece[self.at..];
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.at += taken;
        Ok(taken)
    }
}
