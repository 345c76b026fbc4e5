//! Messages to a client, gathered and written in pieces.

use super::types::Column;
use crate::budget::Watch;
use crate::slow_reader::{Timed, WriteLimit};
use crate::socket::Socket;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, WriteHalf};

const GOODBYE: Duration = Duration::from_secs(1);

/// Written to the socket once so many bytes are waiting.
const CHUNK_BYTES: usize = 64 << 10;

/// An error or a notice as the protocol has it.
#[derive(Clone, Debug)]
pub struct Report {
    pub severity: &'static str,
    pub sqlstate: &'static str,
    pub message: String,
    pub hint: Option<String>,
    /// In characters, counted from 1.
    pub position: Option<usize>,
    /// The function of PostgreSQL that reports this, where clients recognize the error by it.
    pub routine: Option<&'static str>,
}

impl Report {
    pub fn error(sqlstate: &'static str, message: impl Into<String>) -> Report {
        Report { severity: "ERROR", sqlstate, message: message.into(), hint: None, position: None, routine: None }
    }

    pub fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Report {
        Report { severity: "FATAL", ..Report::error(sqlstate, message) }
    }

    pub fn warning(sqlstate: &'static str, message: impl Into<String>) -> Report {
        Report { severity: "WARNING", ..Report::error(sqlstate, message) }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Report {
        self.hint = Some(hint.into());
        self
    }
}

pub struct Output {
    socket: WriteHalf<Timed<Socket>>,
    limit: WriteLimit,
    buffer: Vec<u8>,
}

impl Output {
    pub fn new(socket: WriteHalf<Timed<Socket>>, limit: WriteLimit) -> Output {
        Output { socket, limit, buffer: Vec::with_capacity(CHUNK_BYTES / 8) }
    }

    /// As [`WriteLimit::sends`].
    pub fn sends(&self, result: Watch) {
        self.limit.sends(result);
    }

    /// Appends a message whose body `write` appends.
    pub fn message(&mut self, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
        // An error is impossible where the body cannot fail.
        let _ = self.try_message(tag, |out| {
            write(out);
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// As [`Output::message`]; when `write` fails there is no message.
    pub fn try_message<E>(&mut self, tag: u8, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[tag, 0, 0, 0, 0]);
        if let Err(error) = write(&mut self.buffer) {
            self.buffer.truncate(start);
            return Err(error);
        }
        let length = (self.buffer.len() - start - 1) as u32;
        self.buffer[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    pub fn empty(&mut self, tag: u8) {
        self.message(tag, |_| {});
    }

    pub fn ready(&mut self, transaction: u8) {
        self.message(b'Z', |out| out.push(transaction));
    }

    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| push_text(out, tag));
    }

    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            push_text(out, name);
            push_text(out, value);
        });
    }

    pub fn report(&mut self, report: &Report) {
        let tag = if matches!(report.severity, "WARNING" | "NOTICE") { b'N' } else { b'E' };
        let position = report.position.map(|p| p.to_string());
        let fields = [
            (b'S', Some(report.severity)),
            (b'V', Some(report.severity)),
            (b'C', Some(report.sqlstate)),
            (b'M', Some(report.message.as_str())),
            (b'H', report.hint.as_deref()),
            (b'P', position.as_deref()),
            (b'R', report.routine),
        ];
        self.message(tag, |out| {
            for (field, text) in fields {
                if let Some(text) = text {
                    out.push(field);
                    push_text(out, text);
                }
            }
            out.push(0);
        });
    }

    /// `formats` are those of the columns, once they are known.
    pub fn row_description(&mut self, columns: &[Column], format: impl Fn(usize) -> i16) {
        self.message(b'T', |out| {
            out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
            for (i, column) in columns.iter().enumerate() {
                push_text(out, &column.name);
                out.extend_from_slice(&column.origin.0.to_be_bytes());
                out.extend_from_slice(&column.origin.1.to_be_bytes());
                out.extend_from_slice(&column.pg_type.oid.to_be_bytes());
                out.extend_from_slice(&column.pg_type.len.to_be_bytes());
                out.extend_from_slice(&column.modifier.to_be_bytes());
                out.extend_from_slice(&format(i).to_be_bytes());
            }
        });
    }

    pub fn parameter_description(&mut self, oids: &[u32]) {
        self.message(b't', |out| {
            out.extend_from_slice(&(oids.len() as u16).to_be_bytes());
            oids.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        });
    }

    #[must_use]
    pub fn has_much(&self) -> bool {
        self.buffer.len() >= CHUNK_BYTES
    }

    /// Writes when much is waiting.
    pub async fn flush_if_much(&mut self) -> io::Result<()> {
        if self.has_much() { self.flush().await } else { Ok(()) }
    }

    /// Says goodbye as TLS wants it, else the client takes the end for an attack; and does not wait for who is gone.
    pub async fn close(&mut self) {
        let _ = tokio::time::timeout(GOODBYE, self.socket.shutdown()).await;
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.buffer).await?;
        // What is encrypted is buffered once more below.
        self.socket.flush().await?;
        self.buffer.clear();
        // One long row does not keep its memory.
        self.buffer.shrink_to(2 * CHUNK_BYTES);
        Ok(())
    }
}

/// Text ends with a zero, so none may be in it.
fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|b| *b != 0));
    out.push(0);
}
