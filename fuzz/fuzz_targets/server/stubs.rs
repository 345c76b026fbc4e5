//! Stands in for the parts of the server and the database that the parsers name, without what is behind them.

use std::pin::Pin;
use std::task::{Context, Poll};
use tidalite_types::ColumnType;
use tidalite_types::pg_type::PgType;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a client that arrive in chunks of one size.
pub struct Socket {
    pub bytes: Vec<u8>,
    pub at: usize,
    pub chunk: usize,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let count = self.chunk.min(self.bytes.len() - self.at).min(buffer.remaining());
        buffer.put_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Memory of messages, without a limit.
#[derive(Default)]
pub struct Share;

pub struct Refused {
    pub message: String,
}

impl Share {
    pub fn clear(&mut self) {}

    pub fn grow_to(&mut self, _: usize) -> Result<(), Refused> {
        Ok(())
    }

    pub fn watch(&self) -> Watch {
        Watch
    }
}

pub struct Watch;

impl Watch {
    pub async fn unless_revoked<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        Some(next.await)
    }
}

pub async fn in_time<T>(_: std::time::Duration, work: impl Future<Output = T>) -> Option<T> {
    Some(work.await)
}

#[derive(Debug)]
pub struct Report {
    pub message: String,
}

impl Report {
    pub fn error(_: &'static str, message: impl Into<String>) -> Report {
        Report { message: message.into() }
    }

    pub fn with_hint(self, _: impl Into<String>) -> Report {
        self
    }
}

/// As the database has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    Null,
    Boolean(bool),
    Long(i64),
    Double(f64),
    Decimal(String),
    Text(String),
    Bytes(Vec<u8>),
    Typed(String, ColumnType),
    Of(String, PgType),
    List(Vec<Parameter>),
}

impl Parameter {
    pub const DIMS_MAX: i32 = 32;

    /// The text of arrays is parsed by a crate above DataFusion, which this crate does not have.
    pub fn list_of_text(_: &str, _: &dyn Fn(&str) -> Option<Parameter>) -> Option<Parameter> {
        None
    }
}
