//! Parses one field on the general path.

use super::CsvFormat;

/// A field without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub text: &'a [u8],
    pub is_quoted: bool,
    /// Position of its terminator: a delimiter, the end of the line, or the end of the input.
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldError {
    pub at: usize,
    pub message: &'static str,
    /// True if the field began with a quote that is never closed.
    pub is_open: bool,
}

/// The element after a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldEnd {
    Delimiter,
    /// The next record begins at this position.
    Record(usize),
}

/// Returns the terminator at `at`, if there is one.
#[inline]
pub(super) fn end_at(input: &[u8], at: usize, delimiter: u8) -> Option<FieldEnd> {
    match input.get(at) {
        None => Some(FieldEnd::Record(at)),
        Some(&byte) if byte == delimiter => Some(FieldEnd::Delimiter),
        Some(b'\n') => Some(FieldEnd::Record(at + 1)),
        Some(b'\r') if input.get(at + 1).is_none_or(|b| *b == b'\n') => {
            Some(FieldEnd::Record((at + 2).min(input.len())))
        }
        Some(_) => None,
    }
}

/// Parses the field that begins at `at`.
pub(super) fn field<'a>(
    input: &'a [u8],
    at: usize,
    format: &CsvFormat,
    scratch: &'a mut Vec<u8>,
) -> Result<Field<'a>, FieldError> {
    if input.get(at) == Some(&format.quote) {
        return quoted(input, at, format, scratch);
    }
    let rest = &input[at..];
    let end = memchr::memchr2(format.delimiter, b'\n', rest).map_or(input.len(), |len| at + len);
    let is_line = input.get(end).is_none_or(|b| *b == b'\n');
    let end = if is_line && end > at && input[end - 1] == b'\r' { end - 1 } else { end };
    Ok(Field { text: &input[at..end], is_quoted: false, end })
}

fn quoted<'a>(
    input: &'a [u8],
    at: usize,
    format: &CsvFormat,
    scratch: &'a mut Vec<u8>,
) -> Result<Field<'a>, FieldError> {
    let start = at + 1;
    let (mut from, mut is_copied) = (start, false);
    loop {
        let len = memchr::memchr(format.quote, &input[from..]);
        let close = from + len.ok_or(FieldError { at, message: "a quoted field is not closed", is_open: true })?;
        if input.get(close + 1) != Some(&format.quote) {
            if end_at(input, close + 1, format.delimiter).is_none() {
                let message = "a closing quote must be followed by the delimiter or the end of the line";
                return Err(FieldError { at: close + 1, message, is_open: false });
            }
            let text = if is_copied {
                scratch.extend_from_slice(&input[from..close]);
                scratch.as_slice()
            } else {
                &input[start..close]
            };
            return Ok(Field { text, is_quoted: true, end: close + 1 });
        }
        if !is_copied {
            scratch.clear();
            is_copied = true;
        }
        scratch.extend_from_slice(&input[from..=close]);
        from = close + 2;
    }
}

/// Text, and true if it was quoted.
pub(super) type Owned = (Vec<u8>, bool);

/// Returns the fields of the record at `at`, and the start of the next record. More than `max` fields are an error.
pub(super) fn record(
    input: &[u8],
    mut at: usize,
    format: &CsvFormat,
    max: usize,
) -> Result<(Vec<Owned>, usize), FieldError> {
    let mut fields = Vec::new();
    let mut scratch = Vec::new();
    loop {
        if fields.len() == max {
            return Err(FieldError { at, message: "more fields than a table can have columns", is_open: false });
        }
        let field = field(input, at, format, &mut scratch)?;
        let end = field.end;
        fields.push((field.text.to_vec(), field.is_quoted));
        match end_at(input, end, format.delimiter) {
            Some(FieldEnd::Delimiter) => at = end + 1,
            Some(FieldEnd::Record(next)) => return Ok((fields, next)),
            None => {
                let message = "a carriage return within a field must be in quotes";
                return Err(FieldError { at: end, message, is_open: false });
            }
        }
    }
}

/// Returns the start of the record after the record at `at`, even if that record is invalid.
///
/// As in [`super::Splitter`], text after a closing quote belongs to the field. An unclosed quote costs its line, not
/// the rest of the input.
pub(super) fn skip_record(input: &[u8], mut at: usize, format: &CsvFormat) -> usize {
    let mut scratch = Vec::new();
    loop {
        let (from, is_open) = match field(input, at, format, &mut scratch) {
            Ok(field) => (field.end, false),
            Err(error) => (error.at, error.is_open),
        };
        let end = if is_open {
            memchr::memchr(b'\n', &input[from..])
        } else {
            memchr::memchr2(format.delimiter, b'\n', &input[from..])
        };
        match end.map(|len| from + len) {
            None => return input.len(),
            Some(end) if input[end] == b'\n' => return end + 1,
            Some(end) => at = end + 1,
        }
    }
}

/// Returns the start of the line after the line at `at`.
pub(super) fn line_end(input: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &input[at..]).map_or(input.len(), |len| at + len + 1)
}

/// Returns the length of the blank line at `at`, if there is one.
#[inline]
pub(super) fn blank(input: &[u8], at: usize) -> Option<usize> {
    match input.get(at) {
        Some(b'\n') => Some(1),
        Some(b'\r') if input.get(at + 1).is_none_or(|b| *b == b'\n') => Some(input.len().min(at + 2) - at),
        _ => None,
    }
}
