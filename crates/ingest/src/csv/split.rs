//! Finds the ends of records in text that arrives in pieces.

use super::CsvFormat;
use memchr::{memchr, memchr_iter, memrchr};

/// Returns the number of lines; text after the last newline is not counted.
#[must_use]
pub fn lines_of(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

/// Finds the last end of a record in one pass over each piece. A newline in quotes does not end a record.
#[derive(Clone, Debug)]
pub struct Splitter {
    delimiter: u8,
    quote: u8,
    comment: Option<u8>,
    /// Number of input bytes in which quotes were tracked.
    seen: usize,
    is_open: bool,
    /// Position before which ends of records were searched.
    searched: usize,
}

impl Splitter {
    #[must_use]
    pub fn new(format: &CsvFormat) -> Splitter {
        let CsvFormat { delimiter, quote, comment, .. } = *format;
        Splitter { delimiter, quote, comment, seen: 0, is_open: false, searched: 0 }
    }

    /// Returns the number of bytes of `input` that are complete records. Call again with the rest and more input.
    pub fn split(&mut self, input: &[u8]) -> usize {
        let (mut at, mut end) = (self.seen, 0);
        while let Some(len) = memchr(self.quote, &input[at..]) {
            let quote = at + len;
            if !self.is_open {
                if quote == 0 || input[quote - 1] == self.delimiter || input[quote - 1] == b'\n' {
                    end = self.last_end(input, quote).unwrap_or(end);
                    // The record begins at `end`; quotes in a comment are ignored.
                    self.is_open = self.comment.is_none_or(|comment| input[end] != comment);
                }
                at = quote + 1;
                continue;
            }
            match input.get(quote + 1) {
                Some(&byte) if byte == self.quote => at = quote + 2,
                Some(_) => {
                    self.is_open = false;
                    self.searched = quote + 1;
                    at = quote + 1;
                }
                // The next byte decides if the quote closes the field.
                None => return self.cut(end, quote),
            }
        }
        if !self.is_open {
            end = self.last_end(input, input.len()).unwrap_or(end);
        }
        self.cut(end, input.len())
    }

    fn last_end(&mut self, input: &[u8], before: usize) -> Option<usize> {
        let from = self.searched.min(before);
        self.searched = before;
        memrchr(b'\n', &input[from..before]).map(|at| from + at + 1)
    }

    fn cut(&mut self, end: usize, seen: usize) -> usize {
        self.seen = seen - end;
        self.searched = self.searched.saturating_sub(end);
        end
    }
}
