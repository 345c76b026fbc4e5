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

    /// The number of the next or incomplete line, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.parser.line()
    }

    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.parser.byte_count()
    }
}

#[must_use]
pub fn line_error(error: &LineError) -> Error {
    let mut out = Error::new(error.kind(), format!("{}, at position {}", error.message, error.position));
    out.line = Some(error.line);
    out
}

/// The present time, in nanoseconds since 1970.
#[must_use]
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the error of a connection that ends within line `line`.
#[must_use]
pub fn incomplete_line(line: u64) -> Error {
    let mut error = Error::new(ErrorKind::Invalid, "the connection ended within a line");
    error.line = Some(line);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines with newlines of their own: escaped within quotes, and within a binary double.
    fn text() -> Vec<u8> {
        let mut text = b"t,h=a v=1i,s=\"x\\\ny\" 1\nt,h=b v=2i,d==\x10".to_vec();
        text.extend_from_slice(&[b'\n', 0, 0, b'\n', 0, 0, 0, 0]);
        text.extend_from_slice(b" 2\nt,h=c v=3i 3");
        text
    }

    fn parsed(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Batch> {
        let mut lines = Lines::new(LineOptions::default());
        pieces.for_each(|piece| lines.push(&piece).unwrap());
        lines.finish().unwrap();
        lines.take()
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = text();
        let whole = parsed([text.clone()].into_iter());
        assert_eq!(whole[0].rows, 3);
        for size in 1..text.len() {
            assert!(parsed(text.chunks(size).map(<[u8]>::to_vec)) == whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_parser_given_back_forgets_its_rows_and_counts_anew() {
        let pool = Pool::default();
        let mut lines = pool.take(LineOptions::default());
        lines.push(b"t v=1i 1\nt v=2").unwrap();
        pool.give_back(lines);
        let mut lines = pool.take(LineOptions::default());
        assert_eq!((lines.rows(), lines.is_within_line()), (0, false));
        assert_eq!(lines.push(b"t v=oops 1\n").unwrap_err().line, 1);
        pool.give_back(lines);
        let seconds = LineOptions { timestamp_unit: tidalite::types::EpochUnit::Seconds, ..LineOptions::default() };
        assert_eq!(pool.take(seconds.clone()).parser.options().timestamp_unit, seconds.timestamp_unit);
    }
}
