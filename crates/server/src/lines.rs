//! Bytes that arrive in any pieces, parsed as line protocol.
//!
//! The parser wants whole lines; what is left of a piece waits here for its other half.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite::line::{LineError, LineOptions, LineParser};
use tidalite::types::Batch;
use tidalite::{Error, ErrorKind};

/// Parsers at rest: one that has seen lines of a shape parses more of them faster.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Vec<Lines>>,
}

/// Parsers kept at rest at most: each may remember megabytes. More requests at a time than this make new ones.
const IDLE_MAX: usize = 8;

impl Pool {
    #[must_use]
    pub fn take(&self, options: LineOptions) -> Lines {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |lines: &Lines| lines.parser.options().timestamp_unit == options.timestamp_unit;
        let found = idle.iter().rposition(fits).map(|at| idle.swap_remove(at));
        drop(idle);
        found.unwrap_or_else(|| Lines::new(options))
    }

    pub fn give_back(&self, mut lines: Lines) {
        lines.parser.reset();
        lines.rest.clear();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(lines);
        }
    }
}

pub struct Lines {
    parser: LineParser,
    /// The beginning of a line whose end has not arrived.
    rest: Vec<u8>,
}

impl Lines {
    #[must_use]
    pub fn new(options: LineOptions) -> Lines {
        Lines { parser: LineParser::new(options), rest: Vec::new() }
    }

    /// # Errors
    /// The first bad line; the lines before it can be taken.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), LineError> {
        if self.rest.is_empty() {
            let used = self.parser.parse(piece, now_ns())?;
            self.rest.extend_from_slice(&piece[used..]);
            return Ok(());
        }
        // Only the line across the border is copied, not the piece.
        let Some(end) = memchr::memchr(b'\n', piece) else {
            self.rest.extend_from_slice(piece);
            // Nothing new to find, but the parser is the one who says that a line is too long.
            let too_long = self.rest.len() > self.parser.options().line_bytes_max;
            return if too_long { self.parse_rest() } else { Ok(()) };
        };
        self.rest.extend_from_slice(&piece[..=end]);
        self.parse_rest()?;
        if self.rest.is_empty() {
            return self.push(&piece[end + 1..]);
        }
        // A newline within a string or a binary value: the slow way until the line's end is found.
        self.rest.extend_from_slice(&piece[end + 1..]);
        self.parse_rest()
    }

    fn parse_rest(&mut self) -> Result<(), LineError> {
        let used = self.parser.parse(&self.rest, now_ns())?;
        self.rest.drain(..used);
        Ok(())
    }

    /// The end of input: the last line needs no newline.
    ///
    /// # Errors
    /// When the last line is bad or incomplete.
    pub fn finish(&mut self) -> Result<(), LineError> {
        let result = self.parser.finish(&self.rest, now_ns());
        self.rest.clear();
        result
    }

    pub fn take(&mut self) -> Vec<Batch> {
        self.parser.take()
    }

    /// Whether the end of a line is missing.
    #[must_use]
    pub fn is_within_line(&self) -> bool {
        !self.rest.is_empty()
    }

    #[must_use]
    pub fn rows(&self) -> usize {
        self.parser.rows()
    }

    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.parser.byte_count()
    }
}

#[must_use]
pub fn line_error(error: &LineError) -> Error {
    let mut out = Error::new(error.kind(), format!("{} (column {})", error.message, error.column));
    out.line = Some(error.line);
    out
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// For a connection that ends within a line.
#[must_use]
pub fn incomplete_line() -> Error {
    Error::new(ErrorKind::Invalid, "the connection ended within a line")
}
