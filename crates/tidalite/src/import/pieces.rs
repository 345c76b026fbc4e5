//! Splits a text into pieces that end at ends of records.

use super::reader::{Reader, unreadable};
use crate::{Error, ErrorKind, Result};
use std::io::Read;
use tidalite_ingest::csv::{CsvFormat, Splitter, lines_of};

/// Largest size of a record in bytes, including a quoted field that is never closed.
pub const RECORD_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
pub struct Piece {
    /// Counted from 0.
    pub number: u64,
    /// Number of lines of the file before the piece.
    pub lines_before: u64,
    pub text: Vec<u8>,
}

/// Iterates over the pieces; ends after the last piece or the first error, which names the position in the file.
pub struct Pieces {
    reader: Reader,
    splitter: Splitter,
    piece_bytes: usize,
    pub(super) record_bytes_max: usize,
    held: Vec<u8>,
    number: u64,
    lines: u64,
    is_end: bool,
}

impl Pieces {
    /// Creates pieces of about `piece_bytes`. The reader starts after `lines_before` lines.
    #[must_use]
    pub fn new(reader: Reader, format: &CsvFormat, lines_before: u64, piece_bytes: usize) -> Pieces {
        Pieces {
            reader,
            splitter: Splitter::new(format),
            piece_bytes,
            record_bytes_max: RECORD_BYTES_MAX,
            held: Vec::with_capacity(2 * piece_bytes),
            number: 0,
            lines: lines_before,
            is_end: false,
        }
    }

    /// Returns complete records; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<Piece>> {
        while !self.is_end {
            self.is_end = fill(&mut self.reader, &mut self.held, self.piece_bytes)?;
            let whole = if self.is_end { self.held.len() } else { self.splitter.split(&self.held) };
            if whole > 0 {
                return Ok(Some(self.cut(whole)));
            }
            if self.held.len() > self.record_bytes_max {
                let (line, max) = (self.lines + 1, self.record_bytes_max);
                let message = format!(
                    "line {line}: a record, or a quoted field in it that is not closed, is longer than {max} bytes"
                );
                let mut error = Error::new(ErrorKind::Invalid, message);
                error.line = Some(line);
                return Err(error);
            }
        }
        Ok(None)
    }

    fn cut(&mut self, whole: usize) -> Piece {
        let mut rest = Vec::with_capacity(2 * self.piece_bytes);
        rest.extend_from_slice(&self.held[whole..]);
        self.held.truncate(whole);
        let text = std::mem::replace(&mut self.held, rest);
        let piece = Piece { number: self.number, lines_before: self.lines, text };
        self.number += 1;
        self.lines += lines_of(&piece.text);
        piece
    }
}

impl Iterator for Pieces {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let piece = self.read();
        self.is_end |= piece.is_err();
        piece.transpose()
    }
}

/// Reads `bytes` more bytes; returns true at the end of the file.
fn fill(reader: &mut Reader, held: &mut Vec<u8>, bytes: usize) -> Result<bool> {
    let read = reader.take(bytes as u64).read_to_end(held);
    let read = read.map_err(|e| unreadable(&e))?;
    Ok(read < bytes)
}
