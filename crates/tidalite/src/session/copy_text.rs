//! Converts PostgreSQL's text format of COPY to CSV for the importer.
//!
//! Input: lines of fields separated by tabs, `\N` for NULL, with backslash escapes. Output: the same rows with commas,
//! NULL as [`NULL`] and every other field quoted. A line `\.` ends the rows.

use std::io::Read;

/// NULL in the output; quoted it is a text.
pub(super) const NULL: &str = "\\N";
/// Size of a read in bytes.
const PIECE_BYTES: usize = 256 << 10;

pub(super) struct Plain {
    text: Box<dyn Read + Send>,
    delimiter: u8,
    null: Vec<u8>,
    /// Input that is not yet a complete line.
    held: Vec<u8>,
    ready: Vec<u8>,
    at: usize,
    has_ended: bool,
}

impl Plain {
    pub fn new(text: Box<dyn Read + Send>, delimiter: Option<u8>, null: Option<&str>) -> Plain {
        Plain {
            text,
            delimiter: delimiter.unwrap_or(b'\t'),
            null: null.unwrap_or(NULL).as_bytes().to_vec(),
            held: Vec::new(),
            ready: Vec::new(),
            at: 0,
            has_ended: false,
        }
    }

    fn more(&mut self) -> std::io::Result<()> {
        self.at = 0;
        self.ready.clear();
        let before = self.held.len();
        self.held.resize(before + PIECE_BYTES, 0);
        let read = self.text.read(&mut self.held[before..])?;
        self.held.truncate(before + read);
        self.has_ended = read == 0;
        let whole = match self.held.iter().rposition(|b| *b == b'\n') {
            _ if self.has_ended => self.held.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let rest = self.held.split_off(whole);
        let lines = std::mem::replace(&mut self.held, rest);
        for line in lines.split_inclusive(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line == b"\\." {
                (self.has_ended, self.text) = (true, Box::new(std::io::empty()));
                self.held.clear();
                break;
            }
            push_line(&mut self.ready, line, self.delimiter, &self.null);
        }
        Ok(())
    }
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.ready.len() && !self.has_ended {
            self.more()?;
        }
        let rest = &self.ready[self.at..];
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.at += taken;
        Ok(taken)
    }
}

fn push_line(out: &mut Vec<u8>, line: &[u8], delimiter: u8, null: &[u8]) {
    let (mut from, mut at, mut is_first) = (0, 0, true);
    loop {
        if at < line.len() && line[at] == b'\\' {
            at = (at + 2).min(line.len());
            continue;
        }
        if at >= line.len() || line[at] == delimiter {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            let field = &line[from..at];
            if field == null {
                out.extend_from_slice(NULL.as_bytes());
            } else {
                push_field(out, field);
            }
            if at >= line.len() {
                return out.push(b'\n');
            }
            from = at + 1;
        }
        at += 1;
    }
}

fn push_field(out: &mut Vec<u8>, field: &[u8]) {
    out.push(b'"');
    let mut rest = field.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'\\' { escaped(&mut rest) } else { byte };
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Returns the byte of a backslash escape.
fn escaped(rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>) -> u8 {
    match rest.next() {
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'v') => 11,
        Some(b'x') if rest.peek().is_some_and(u8::is_ascii_hexdigit) => number(rest, 0, 16),
        Some(first @ b'0'..=b'7') => number(rest, u32::from(first - b'0'), 8),
        Some(other) => other,
        None => b'\\',
    }
}

/// Parses at most two more digits.
fn number(rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>, first: u32, radix: u32) -> u8 {
    let mut value = first;
    for _ in 0..2 {
        let Some(digit) = rest.next_if(|b| char::from(*b).is_digit(radix)) else { break };
        value = value * radix + char::from(digit).to_digit(radix).unwrap_or_default();
    }
    (value & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, delimiter: Option<u8>) -> String {
        let mut out = String::new();
        let text = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        Plain::new(text, delimiter, None).read_to_string(&mut out).expect("it is read");
        out
    }

    #[test]
    fn fields_keep_what_backslashes_stand_for() {
        assert_eq!(plain("a\tb\n", None), "\"a\",\"b\"\n");
        assert_eq!(plain("\\N\t\n1\t\\N", None), "\\N,\"\"\n\"1\",\\N\n");
        assert_eq!(plain("a\\tb\\\\c\\nd\\x41\\101\\,\te\"f", None), "\"a\tb\\c\ndAA,\",\"e\"\"f\"\n");
        assert_eq!(plain("a,b|c\n\\.\nrest", Some(b'|')), "\"a,b\",\"c\"\n");
        let long = "x".repeat(300_000);
        assert_eq!(plain(&format!("{long}\t1\n2\t{long}\n"), None), format!("\"{long}\",\"1\"\n\"2\",\"{long}\"\n"));
    }
}
