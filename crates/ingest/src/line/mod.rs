//! The InfluxDB line protocol with QuestDB's extensions: bytes in, a [`Batch`] per table out.
//!
//! No input or output, no clock, no knowledge of the tables that exist. What a bad line costs is the caller's
//! decision: rows before it can still be taken.

use std::fmt;
use tidalite_types::{Batch, ErrorKind};

/// The unit of a timestamp at the end of a line that carries no suffix: `precision=` over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTimeUnit {
    Nanos,
    Micros,
    Millis,
    Seconds,
    Minutes,
    Hours,
}

impl LineTimeUnit {
    /// Reads the value of `precision=`: `n`, `ns`, `u`, `us`, `ms`, `s`, `m`, `h`.
    #[must_use]
    pub fn from_precision(text: &str) -> Option<LineTimeUnit> {
        Some(match text {
            "n" | "ns" => LineTimeUnit::Nanos,
            "u" | "us" => LineTimeUnit::Micros,
            "ms" => LineTimeUnit::Millis,
            "s" => LineTimeUnit::Seconds,
            "m" => LineTimeUnit::Minutes,
            "h" => LineTimeUnit::Hours,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
pub struct LineOptions {
    pub timestamp_unit: LineTimeUnit,
    /// Whether a NaN means "missing" and becomes NULL, as its senders mean it.
    pub nan_is_null: bool,
    /// The longest line, its end included.
    pub line_bytes_max: usize,
    /// Memory for predictions kept from batch to batch; past it they are dropped by [`LineParser::take`].
    pub cache_bytes_max: usize,
    /// Makes the hash tables of this parser unlike those of others, so that input cannot be made to collide.
    pub seed: u64,
    /// Off: every line takes the general path. Its results are the same; for tests.
    pub predict: bool,
}

impl Default for LineOptions {
    fn default() -> LineOptions {
        LineOptions {
            timestamp_unit: LineTimeUnit::Nanos,
            nan_is_null: true,
            line_bytes_max: 8 << 20,
            cache_bytes_max: 16 << 20,
            seed: 0,
            predict: true,
        }
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// From 1, over the life of the parser or since [`LineParser::reset`].
    pub line: u64,
    /// Position in the line in bytes, from 1.
    pub column: usize,
    pub message: String,
}

impl LineError {
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for LineError {}

/// Reusable: keeps what it learnt about the shape of lines from batch to batch.
pub struct LineParser {
    options: LineOptions,
}

impl LineParser {
    #[must_use]
    pub fn new(options: LineOptions) -> LineParser {
        LineParser { options }
    }

    #[must_use]
    pub fn options(&self) -> &LineOptions {
        &self.options
    }

    /// Parses every complete line of `input` and returns how many bytes they are. The rest is an incomplete line:
    /// call again with that rest and more behind it. `now_ns` stamps rows without a timestamp.
    ///
    /// # Errors
    /// The first bad line. Nothing of it is kept, the lines before it are; the parser then only serves
    /// [`LineParser::take`] and [`LineParser::reset`].
    pub fn parse(&mut self, input: &[u8], now_ns: i64) -> Result<usize, LineError> {
        let _ = (input, now_ns);
        Ok(0)
    }

    /// The end of input: a last line needs no newline.
    ///
    /// # Errors
    /// As [`LineParser::parse`], and when the input ends within a quoted string or a binary value.
    pub fn finish(&mut self, rest: &[u8], now_ns: i64) -> Result<(), LineError> {
        let _ = (rest, now_ns);
        Ok(())
    }

    /// The rows parsed so far, a batch per table in order of first appearance; the parser goes on without them.
    pub fn take(&mut self) -> Vec<Batch> {
        Vec::new()
    }

    /// Drops rows not taken and counts lines from 1 again: for the next request or connection.
    pub fn reset(&mut self) {}

    /// Rows that [`LineParser::take`] would return.
    #[must_use]
    pub fn rows(&self) -> usize {
        0
    }

    /// Memory of what [`LineParser::take`] would return, about.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        0
    }
}
