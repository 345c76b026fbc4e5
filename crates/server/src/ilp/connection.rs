//! One connection: bytes to rows to commits.
//!
//! Always: rows are committed in the order of their lines; when a line is bad or its row refused, those before it
//! are committed, nothing after it is, and the connection ends. A line without its end, when the sender closes, is dropped: half a number
//! is a wrong number.

use super::pace::{Next, Pace};
use super::state::IlpState;
use crate::accept::Slot;
use crate::counters::add;
use crate::lines::{Lines, incomplete_line, line_error};
use crate::socket::Socket;
use crate::stop::Stop;
use futures::future::BoxFuture;
use std::io;
use std::time::{Duration, Instant};
use tidalite::types::Txn;
use tidalite::{Error, ErrorKind, Result};
use tokio::io::AsyncReadExt;

/// Bytes read at once, by a connection that sends little and by one that sends much.
const READ_BYTES_MIN: usize = 16 << 10;
const READ_BYTES_MAX: usize = 256 << 10;

/// What is still read when the server stops: what may have arrived already,
const STOP_BYTES_MAX: usize = 64 << 20;
/// while one piece follows the other like this,
const STOP_PAUSE: Duration = Duration::from_millis(50);
/// and no longer than this.
const STOP_TIME_MAX: Duration = Duration::from_secs(1);

/// The commit, and why rows from some line on were refused.
type Commit = BoxFuture<'static, Result<(Txn, Option<Error>)>>;

struct Connection<'a> {
    socket: Socket,
    shared: &'a IlpState,
    slot: &'a Slot,
    lines: Lines,
    buffer: Vec<u8>,
    pace: Pace,
    under_way: Option<(Commit, usize)>,
    /// Bytes have arrived; the connection is no longer a candidate for eviction.
    has_sent: bool,
}

/// Reads until the peer closes, the stop comes, or something is wrong. `received` was read from the socket before.
///
/// # Errors
/// Why the connection has to be closed.
pub async fn run(socket: Socket, received: Vec<u8>, shared: &IlpState, slot: &Slot, mut stop: Stop) -> Result<()> {
    let mut connection = Connection {
        socket,
        shared,
        slot,
        lines: Lines::new(shared.line.clone()),
        buffer: vec![0; READ_BYTES_MIN],
        pace: Pace::new(shared.commit_interval, shared.batch_rows_max),
        under_way: None,
        has_sent: false,
    };
    match connection.read_all(received, &mut stop).await {
        // What was parsed while a commit was under way that failed, or of which rows were refused, follows these.
        Err(Ended::Commit(error)) => Err(error),
        // The rows before a line that is bad are kept.
        Err(Ended::Other(error)) => connection.commit_rest().await.and(Err(error)),
        Ok(()) => connection.commit_rest().await,
    }
}

/// Whether rows parsed so far may still be committed is what matters about an error.
enum Ended {
    Commit(Error),
    Other(Error),
}

impl Connection<'_> {
    async fn read_all(&mut self, received: Vec<u8>, stop: &mut Stop) -> Result<(), Ended> {
        self.push(&received)?;
        loop {
            self.submit_if_due();
            let full = self.pace.is_full(self.lines.rows(), self.lines.byte_count());
            let due = match self.pace.next(self.lines.rows(), self.lines.byte_count(), Instant::now()) {
                Next::CommitAt(at) if self.under_way.is_none() => Some(at),
                _ => None,
            };
            tokio::select! {
                biased;
                done = finished(&mut self.under_way), if self.under_way.is_some() => self.acknowledged(done)?,
                () = stop.wait() => return self.read_what_arrived().await,
                () = until(due), if due.is_some() => {}
                count = self.socket.read(&mut self.buffer), if !full => {
                    match count.map_err(|e| broken(&e))? {
                        0 => return self.end_of_input(),
                        count => self.take(count)?,
                    }
                    // A socket that is always ready would keep its thread from everyone else.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Takes so many bytes of the buffer, which were just read.
    fn take(&mut self, count: usize) -> Result<(), Ended> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.push(&buffer[..count]);
        if count == buffer.len() {
            buffer.resize(READ_BYTES_MAX.min(buffer.len() * 2), 0);
        }
        self.buffer = buffer;
        result
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        if !self.has_sent && !bytes.is_empty() {
            self.slot.keep();
            self.has_sent = true;
        }
        add(&self.shared.counters.tcp.bytes, bytes.len() as u64);
        self.lines.push(bytes).map_err(|e| Ended::Other(line_error(&e)))
    }

    fn end_of_input(&mut self) -> Result<(), Ended> {
        if self.lines.is_within_line() { Err(Ended::Other(incomplete_line(self.lines.line()))) } else { Ok(()) }
    }

    /// The server stops: takes what the system has received or is about to. What one look does not find may be there all
    /// the same: the runtime takes a socket for empty that gave less than was asked for, and the sender's system hands on
    /// bytes only as room for them is told.
    async fn read_what_arrived(&mut self) -> Result<(), Ended> {
        let mut left = STOP_BYTES_MAX;
        let end = Instant::now() + STOP_TIME_MAX;
        loop {
            let pause = STOP_PAUSE.min(end.saturating_duration_since(Instant::now()));
            let Ok(read) = tokio::time::timeout(pause, self.socket.read(&mut self.buffer)).await else { break };
            let count = read.map_err(|e| broken(&e))?;
            self.take(count)?;
            if count == 0 || count > left {
                break;
            }
            left -= count;
        }
        Ok(())
    }

    fn submit_if_due(&mut self) {
        let now = Instant::now();
        let due = self.pace.next(self.lines.rows(), self.lines.byte_count(), now) == Next::Commit;
        if due && self.under_way.is_none() {
            self.submit(now);
        }
    }

    fn submit(&mut self, now: Instant) {
        let rows = self.lines.rows();
        self.under_way = Some((self.shared.database.commit_until_refused(self.lines.take()), rows));
        self.pace.submitted(now);
    }

    fn acknowledged(&mut self, done: Result<usize>) -> Result<(), Ended> {
        let rows = done.map_err(Ended::Commit)?;
        add(&self.shared.counters.tcp.rows, rows as u64);
        add(&self.shared.counters.tcp.commits, 1);
        Ok(())
    }

    async fn commit_rest(&mut self) -> Result<()> {
        let unwrap = |ended| match ended {
            Ended::Commit(error) | Ended::Other(error) => error,
        };
        loop {
            if self.under_way.is_some() {
                let done = finished(&mut self.under_way).await;
                self.acknowledged(done).map_err(unwrap)?;
            } else if self.lines.rows() > 0 {
                self.submit(Instant::now());
            } else {
                return Ok(());
            }
        }
    }
}

/// The end of the commit under way: its rows.
async fn finished(under_way: &mut Option<(Commit, usize)>) -> Result<usize> {
    let Some((commit, rows)) = under_way else { return std::future::pending().await };
    let rows = *rows;
    let result = commit.await;
    *under_way = None;
    match result? {
        (_, None) => Ok(rows),
        (_, Some(refused)) => Err(refused),
    }
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

fn broken(error: &io::Error) -> Ended {
    Ended::Other(Error::new(ErrorKind::Unavailable, format!("the connection broke: {error}")))
}
