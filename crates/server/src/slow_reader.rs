//! Clients that do not read: their connections are closed.
//!
//! In: a socket. Out: the same socket, whose writes fail once the client has taken no byte for the setting
//! `write_timeout`, or earlier if the memory of the result that it does not take is revoked ([`crate::results`]). The
//! error ends the connection, and with it the query, its snapshot and its memory.
//!
//! Always: the operating system keeps at most [`UNSENT_BYTES`] that it has not sent; past them the socket takes no more
//! bytes. A client is told apart from one that reads slowly by these bytes: each time about half of them have been sent,
//! the time starts again.

use crate::budget::Watch;
use crate::counters::add;
use crate::logging::LineThrottle;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of a connection that the operating system keeps before it sends them.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

static STOPPED: LineThrottle = LineThrottle::new();

/// Limits the bytes that the operating system keeps for a client that does not read. Bytes on their way to the client,
/// as many as its receive window and the network allow, do not count.
pub fn limit_unsent(socket: &TcpStream) {
    // The connection works without.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(UNSENT_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// The time limit of a connection's writes, and the result that is being sent; clones share both.
#[derive(Clone, Debug)]
pub struct WriteLimit(Arc<Limit>);

#[derive(Debug)]
struct Limit {
    /// Zero is no limit.
    timeout: Duration,
    /// Protocol and address, for the log.
    client: String,
    result: Mutex<Option<Watch>>,
    /// Counts the connections that were closed.
    stopped: Arc<AtomicU64>,
}

impl WriteLimit {
    #[must_use]
    pub fn new(timeout: Duration, client: String, stopped: Arc<AtomicU64>) -> WriteLimit {
        WriteLimit(Arc::new(Limit { timeout, client, result: Mutex::default(), stopped }))
    }

    /// Sets the result that is sent from now on: the connection is closed if its memory is revoked while the client does
    /// not read.
    pub fn sends(&self, result: Watch) {
        *self.0.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Waits until a client that does not read has to be disconnected; returns the reason.
    async fn passed(self) -> io::Error {
        let Limit { timeout, client, result, stopped } = &*self.0;
        let result = result.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let waiting = async {
            match timeout.is_zero() {
                true => std::future::pending().await,
                false => tokio::time::sleep(*timeout).await,
            }
        };
        let waited = match &result {
            Some(result) => result.unless_revoked(waiting).await,
            None => Some(waiting.await),
        };
        let reason = match waited {
            Some(()) => format!("the client took no byte for {} ms, the setting write_timeout", timeout.as_millis()),
            None => {
                "the client did not read, and other results needed its memory (setting results.bytes_max)".to_owned()
            }
        };
        add(stopped, 1);
        if let Some(left_out) = STOPPED.pass() {
            tracing::warn!(client, reason, left_out, "closed a connection");
        }
        io::Error::new(io::ErrorKind::TimedOut, reason)
    }
}

/// A socket with a [`WriteLimit`].
pub struct Timed<S> {
    socket: S,
    limit: WriteLimit,
    /// Present while the socket takes no bytes.
    passed: Option<Pin<Box<dyn Future<Output = io::Error> + Send>>>,
}

impl<S> Timed<S> {
    pub fn new(socket: S, limit: WriteLimit) -> Timed<S> {
        Timed { socket, limit, passed: None }
    }

    fn timed<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.passed = None;
            return written;
        }
        let passed = self.passed.get_or_insert_with(|| Box::pin(self.limit.clone().passed()));
        passed.as_mut().poll(cx).map(Err)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.timed(written, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        this.timed(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.socket).poll_shutdown(cx);
        this.timed(shut, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, bytes);
        this.timed(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use std::sync::atomic::Ordering::Relaxed;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_client_that_takes_no_byte_is_disconnected() {
        let (mut client, server) = duplex(64);
        let stopped: Arc<AtomicU64> = Arc::default();
        let mut timed = Timed::new(server, WriteLimit::new(SHORT, String::new(), stopped.clone()));
        timed.write_all(&[0; 64]).await.unwrap();
        for _ in 0..3 {
            assert!(futures::poll!(Box::pin(timed.write(&[0]))).is_pending() && timed.passed.is_some());
            client.read_u8().await.unwrap();
            timed.write_all(&[0]).await.unwrap();
            assert!(timed.passed.is_none(), "the time starts again with each byte that is taken");
        }
        assert_eq!(stopped.load(Relaxed), 0);
        let begun = tokio::time::Instant::now();
        let error = timed.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), stopped.load(Relaxed)), (io::ErrorKind::TimedOut, 1));
        assert!(begun.elapsed() >= SHORT && error.to_string().contains("write_timeout"), "{error}");
    }

    #[tokio::test]
    async fn the_memory_of_a_result_that_is_not_taken_can_be_revoked() {
        let (_client, server) = duplex(64);
        let limit = WriteLimit::new(Duration::ZERO, String::new(), Arc::default());
        let mut timed = Timed::new(server, limit.clone());
        let budget = Budget::new(1 << 20, "unread results of all clients", "results.bytes_max");
        let mut held = budget.share();
        held.set(1 << 20).unwrap();
        limit.sends(held.watch());
        let mut other = budget.share();
        let mut writing = Box::pin(timed.write_all(&[0; 100]));
        assert!(futures::poll!(writing.as_mut()).is_pending());
        assert!(other.set(1 << 19).is_err(), "the client has not been slow yet");
        budget.revoke_after(1 << 19, Duration::from_secs(3));
        other.set(1 << 19).unwrap();
        let error = writing.await.unwrap_err();
        assert!(error.to_string().contains("results.bytes_max"), "{error}");
        assert!(held.set(1).is_err());
    }
}
