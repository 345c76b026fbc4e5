//! The socket below an HTTP connection: enforces a time limit for request heads and reports flushes.
//!
//! Always: the head of a request arrives within the setting `handshake_timeout`, counted from its first byte, or for the
//! first request from the start of the connection. hyper limits the time of idle connections, [`super::body`] that of
//! bodies.

use super::response::Body;
use crate::budget::Watch;
use crate::slow_reader::WriteLimit;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// State that the socket and the requests of a connection share.
#[derive(Clone, Debug)]
pub struct Wire(Arc<State>);

#[derive(Debug)]
struct State {
    /// Number of requests whose head has arrived.
    requests: AtomicU64,
    /// A request is in progress.
    is_busy: AtomicBool,
    /// Number of completed flushes of the socket.
    flushes: AtomicU64,
    flushed: Notify,
    limit: WriteLimit,
}

impl Wire {
    #[must_use]
    pub fn new(limit: WriteLimit) -> Wire {
        Wire(Arc::new(State {
            requests: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            flushes: AtomicU64::new(0),
            flushed: Notify::new(),
            limit,
        }))
    }

    /// As [`WriteLimit::sends`].
    pub fn sends(&self, result: Watch) {
        self.0.limit.sends(result);
    }

    /// Returns true if no request is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.0.is_busy.load(SeqCst)
    }

    /// Notes that the head of a request has arrived; [`Wire::answered`] follows.
    pub fn begin(&self) {
        self.0.is_busy.store(true, SeqCst);
        self.0.requests.fetch_add(1, SeqCst);
    }

    /// Wraps the body of a response; `done` runs when the body is dropped.
    #[must_use]
    pub fn answered(&self, body: Body, done: impl FnOnce() + Send + Unpin + 'static) -> Body {
        use http_body_util::BodyExt;
        Answered { body, wire: self.clone(), done: Some(done) }.boxed_unsync()
    }

    /// Waits until the operating system has all bytes of the response so far: hyper drops unwritten bytes when a body
    /// ends in an error.
    pub async fn flushed(&self) {
        let before = self.0.flushes.load(SeqCst);
        loop {
            let flushed = self.0.flushed.notified();
            if self.0.flushes.load(SeqCst) != before {
                return;
            }
            flushed.await;
        }
    }
}

/// The body of a response.
struct Answered<F: FnOnce()> {
    body: Body,
    wire: Wire,
    done: Option<F>,
}

impl<F: FnOnce() + Unpin> HttpBody for Answered<F> {
    type Data = bytes::Bytes;
    type Error = tidalite::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, tidalite::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<F: FnOnce()> Drop for Answered<F> {
    fn drop(&mut self) {
        self.wire.0.is_busy.store(false, SeqCst);
        if let Some(done) = self.done.take() {
            done();
        }
    }
}

/// A socket with a time limit for request heads.
pub struct Watched<S> {
    socket: S,
    wire: Wire,
    head_max: Duration,
    /// Value of `State::requests` when the head of `deadline` began.
    requests: u64,
    /// The time at which the current head must be complete.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    /// The time for the first head starts now; zero is no limit.
    pub fn new(socket: S, wire: Wire, head_max: Duration) -> Watched<S> {
        let mut watched = Watched { socket, wire, head_max, requests: 0, deadline: None };
        watched.begin_head();
        watched
    }

    fn begin_head(&mut self) {
        if !self.head_max.is_zero() && self.deadline.is_none() {
            self.deadline = Some(Box::pin(tokio::time::sleep_until(Instant::now() + self.head_max)));
        }
    }

    /// Removes the deadline of a head that has arrived.
    fn clear_deadline(&mut self) {
        let requests = self.wire.0.requests.load(SeqCst);
        if requests != self.requests {
            (self.requests, self.deadline) = (requests, None);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.clear_deadline();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, buffer);
        match &read {
            Poll::Ready(Ok(())) if buffer.filled().len() > before && this.wire.is_idle() => this.begin_head(),
            _ => {}
        }
        // Checked after every read: single bytes must not extend the time.
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            this.deadline = None;
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the head of a request did not come in time",
            )));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            this.wire.0.flushes.fetch_add(1, SeqCst);
            this.wire.0.flushed.notify_waiters();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn wire() -> Wire {
        Wire::new(WriteLimit::new(LONG, String::new(), Arc::default()))
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn timeout_of_a_slow_head() {
        let (mut client, server) = duplex(64);
        let mut watched = Watched::new(server, wire(), Duration::from_millis(50));
        let started = Instant::now();
        let mut byte = [0];
        let error = loop {
            client.write_all(b"x").await.unwrap();
            if let Err(error) = watched.read_exact(&mut byte).await {
                break error;
            }
            assert!(started.elapsed() < LONG);
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn no_deadline_for_bodies() {
        let (mut client, server) = duplex(64);
        let wire = wire();
        let mut watched = Watched::new(server, wire.clone(), LONG);
        assert!(watched.deadline.is_some());
        client.write_all(b"xx").await.unwrap();
        let mut byte = [0];
        watched.read_exact(&mut byte).await.unwrap();
        wire.begin();
        watched.read_exact(&mut byte).await.unwrap();
        assert!(watched.deadline.is_none() && !wire.is_idle());
        drop(wire.answered(super::super::response::full(""), || {}));
        client.write_all(b"x").await.unwrap();
        watched.read_exact(&mut byte).await.unwrap();
        assert!(watched.deadline.is_some());
    }

    #[tokio::test]
    async fn notification_of_a_flush() {
        let (_client, server) = duplex(64);
        let wire = wire();
        let mut watched = Watched::new(server, wire.clone(), LONG);
        let mut waiting = Box::pin(wire.flushed());
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        watched.flush().await.unwrap();
        waiting.await;
    }
}
