//! COPY between a table and a client: `FROM STDIN`, `TO STDOUT`. Whoever speaks to the client brings its bytes.

use crate::{Error, ErrorKind, Result};
use futures::channel::oneshot;
use std::io::Read;
use tidalite_query::CancelToken;
pub use tidalite_query::statement::{Copy, CopyFormat, CopyWhat, Name};
use tidalite_query::statement::{CopyPlace, Statement};
use tokio::sync::mpsc;

/// Pieces of text on their way from a client.
const PIECES_WAITING: usize = 4;

/// The COPY that a statement is when it goes from or to the client; `None` for every other statement.
///
/// # Errors
/// When it is a COPY that cannot be.
pub fn with_client(sql: &str) -> Result<Option<Copy>> {
    match tidalite_query::parse(sql)? {
        Statement::Copy(copy) if matches!(copy.place, CopyPlace::Client) => {
            crate::session::copy::import_options(&copy)?;
            Ok(Some(copy))
        }
        _ => Ok(None),
    }
}

/// Rows that a client sends, being committed. Dropped before [`CopyIn::finish`], those not committed yet never are.
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
        let thread = std::thread::Builder::new().name("tidalite-copy".to_owned());
        let started = thread.spawn(move || drop(done.send(work(incoming, token))));
        started.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start a thread: {e}")))?;
        Ok(CopyIn { pieces, done: answer, cancel })
    }

    /// Hands a piece on; waits while those before it are not parsed. False when no more are wanted: the copy has failed.
    pub async fn write(&mut self, piece: Vec<u8>) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.pieces.send(Some(piece)) => sent.is_ok(),
        }
    }

    /// Ready when it was cancelled.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// No more will come; gives how many rows were copied.
    ///
    /// # Errors
    /// Of the first record that is no row, of a commit, or why it was cancelled.
    pub async fn finish(self) -> Result<u64> {
        let CopyIn { pieces, done, cancel } = self;
        if cancel.is_cancelled() {
            return Err(cancel.reason().into());
        }
        // A copy that has failed listens no more.
        let _ = pieces.send(None).await;
        let lost = || Err(Error::new(ErrorKind::Internal, "the copy failed by a bug: it panicked"));
        done.await.unwrap_or_else(|_| lost())
    }
}

/// The pieces as one text.
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
