//! Parses the valid lines of an input that has invalid ones.
//!
//! Input: a complete input. Output: batches of the valid lines, and the reason for each rejected line. A line is
//! invalid by itself, or because a value has another type than earlier values of its column: then the previous lines
//! become separate batches, so that the types of the table decide which lines are kept.

use super::outcome::Stop;
use super::span::LineSpan;
use super::{LineError, LineOptions, LineParser, UNCLOSED};
use std::ops::Range;
use tidalite_types::Batch;

/// Largest number of batches started by lines of other types; a later line with another type is rejected.
const SPLITS_MAX: usize = 256;
/// Largest number of rejected lines with a reason; further lines are counted.
const REASONS_MAX: usize = 1_000;

/// A rejected line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    pub error: LineError,
    /// The bytes of the line in the input, without its end.
    pub text: Range<usize>,
}

/// The result of [`LineParser::parse_valid`].
#[derive(Debug, Default)]
pub struct ValidLines {
    /// Batches in line order; a table may have several.
    pub batches: Vec<Batch>,
    /// Refused lines in line order, at most 1,000.
    pub refused: Vec<RefusedLine>,
    /// Number of rejected lines that are not in `refused`.
    pub refused_more: usize,
    /// The start of each line in the input, including blank lines and comments.
    pub starts: Vec<usize>,
}

impl ValidLines {
    /// Returns the bytes of line `line`, from 1, in the input, without its end.
    #[must_use]
    pub fn text(&self, input: &[u8], line: u64) -> Range<usize> {
        let start = usize::try_from(line).ok().and_then(|line| self.starts.get(line.checked_sub(1)?)).copied();
        start.map_or(0..0, |start| without_end(input, start, line_end(input, start)))
    }
}

impl LineParser {
    /// Parses the lines of `input`, which must end with a newline, and continues after invalid lines.
    ///
    /// The parser should be new or reset by [`LineParser::reset`].
    pub fn parse_valid(&mut self, input: &[u8], now_ns: i64) -> ValidLines {
        let mut found = ValidLines::default();
        let (mut at, mut splits) = (0, 0);
        while at < input.len() {
            let stop = match self.parse_line(input, at, now_ns) {
                Ok(next) => {
                    found.starts.push(at);
                    (at, self.line) = (next, self.line + 1);
                    continue;
                }
                Err(stop) => stop,
            };
            let end = line_end(input, at);
            if self.rows > 0 && splits < SPLITS_MAX && parses_alone(&self.options, &input[at..end], now_ns) {
                found.batches.extend(self.take());
                splits += 1;
                continue;
            }
            let error = match stop {
                Stop::Bad { at: position, message, .. } => self.error(position - at, message),
                Stop::Incomplete => match LineSpan::find(input, at) {
                    LineSpan::OpenQuote(quote) => self.error(quote - at, UNCLOSED.to_owned()),
                    LineSpan::Ends(_) => self.error(end - at, "the input ends within a line".to_owned()),
                },
            };
            if found.refused.len() < REASONS_MAX {
                found.refused.push(RefusedLine { error, text: without_end(input, at, end) });
            } else {
                found.refused_more += 1;
            }
            found.starts.push(at);
            (at, self.line) = (end, self.line + 1);
        }
        found.batches.extend(self.take());
        found
    }
}

/// Returns the start of the line after the line at `start`. An unclosed string ends with its line.
fn line_end(input: &[u8], start: usize) -> usize {
    match LineSpan::find(input, start) {
        LineSpan::Ends(end) => end,
        LineSpan::OpenQuote(_) => memchr::memchr(b'\n', &input[start..]).map_or(input.len(), |len| start + len + 1),
    }
}

fn without_end(input: &[u8], start: usize, end: usize) -> Range<usize> {
    let line = &input[start..end];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    start..start + line.strip_suffix(b"\r").unwrap_or(line).len()
}

fn parses_alone(options: &LineOptions, line: &[u8], now_ns: i64) -> bool {
    let mut parser = LineParser::new(LineOptions { predict: false, ..options.clone() });
    parser.parse(line, now_ns).is_ok_and(|used| used == line.len())
}
