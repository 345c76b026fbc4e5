//! The layout of a file: delimiter, quote, comments and lines before the names.

use super::super::field::line_end;
use super::super::{CsvFormat, Nulls};
use super::header::{self, Evidence};
use super::known::Known;
use super::records::{Record, records};
use super::value::{is_name, value_of};
use crate::{Error, Result};

/// Number of records from which delimiter and quote are detected.
const DIALECT_RECORDS: usize = 200;
/// Number of records from which comments and the usual number of fields are detected.
const SHAPE_RECORDS: usize = 1_000;
/// Number of records before the header that may be other text.
const PREAMBLE_RECORDS: usize = 100;
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
const COMMENT: u8 = b'#';

/// The layout of a file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub format: CsvFormat,
    /// Byte offset of the first record that is the header or a row.
    pub start: usize,
    /// The first record is a comment line that has the names.
    pub is_comment_header: bool,
}

pub(super) fn nulls_of(known: &Known) -> Nulls {
    let Some(texts) = &known.nulls else { return Nulls::usual() };
    let nulls = Nulls::new(texts);
    // As PostgreSQL reads COPY: only the given text is NULL.
    let is_other = known.is_exact && !texts.is_empty() && !texts.contains(&String::new());
    if is_other { nulls.without_empty() } else { nulls }
}

/// Detects the layout of a file.
///
/// # Errors
/// An option is invalid.
pub(super) fn layout(sample: &[u8], known: &Known) -> Result<Layout> {
    let ascii = |what: &str, byte: Option<u8>| match byte {
        Some(byte) if !byte.is_ascii() || matches!(byte, b'\n' | b'\r') => {
            Err(Error::invalid(format!("{:?} is no {what}", char::from(byte))))
        }
        byte => Ok(byte),
    };
    let mut delimiter = ascii("delimiter", known.delimiter)?;
    let (quote, comment) = (ascii("quote", known.quote)?, ascii("begin of comments", known.comment)?);
    if delimiter.is_some() && delimiter == Some(quote.unwrap_or(b'"')) {
        return Err(Error::invalid(format!("{:?} is no delimiter", char::from(quote.unwrap_or(b'"')))));
    }
    let mut start = (0..known.skipped_lines).fold(0, |at, _| line_end(sample, at));
    let base = CsvFormat { comment, nulls: nulls_of(known), ..CsvFormat::default() };
    if known.is_exact {
        let format = match (delimiter, quote) {
            (Some(delimiter), _) => CsvFormat { delimiter, quote: quote.unwrap_or(b'"'), ..base },
            (None, _) => dialect(&sample[start..], &base, None, Some(quote.unwrap_or(b'"'))),
        };
        return Ok(Layout { format, start, is_comment_header: false });
    }
    // Excel writes the delimiter in such a line.
    if let Some([separator]) = sample[start..].strip_prefix(b"sep=").and_then(|rest| rest.get(..1))
        && separator.is_ascii_punctuation() | (*separator == b'\t')
        && sample[start + 5..line_end(sample, start)].trim_ascii().is_empty()
        && delimiter.is_none_or(|d| d == *separator)
    {
        delimiter = Some(*separator);
        start = line_end(sample, start);
    }
    let format = dialect(&sample[start..], &base, delimiter, quote);
    let found = preamble(sample, start, &format, known);
    let format = CsvFormat { comment: found.comment.or(format.comment), ..format };
    Ok(Layout { format, start: found.first, is_comment_header: found.has_names })
}

/// Returns the delimiter and quote for which most records have the same number of fields.
///
/// Ties are broken by the number of values that are not text, then by the number of fields.
fn dialect(sample: &[u8], base: &CsvFormat, delimiter: Option<u8>, quote: Option<u8>) -> CsvFormat {
    let delimiters = delimiter.map_or(DELIMITERS.to_vec(), |d| vec![d]);
    let with = |delimiter: u8, quote: u8| CsvFormat { delimiter, quote, ..base.clone() };
    let quotes = quote.map_or(vec![b'"', b'\''], |q| vec![q]);
    let mut best = ((0, 0, 0), with(delimiters[0], quotes[0]));
    for quote_byte in quotes {
        for delimiter in &delimiters {
            let format = with(*delimiter, quote_byte);
            if quote.is_none() && quote_byte == b'\'' && !has_single_quotes(sample, &format) {
                continue;
            }
            let score = score(sample, &format);
            let is_better =
                score > best.0 || (score >= best.0 && quote_byte == b'\'' && best.1.delimiter == *delimiter);
            if is_better {
                best = (score, format);
            }
        }
    }
    best.1
}

/// Returns true if apostrophes are the quotes.
///
/// The conditions: several fields begin with an apostrophe, all of these also end with an apostrophe, and no field
/// begins with a double quote.
fn has_single_quotes(sample: &[u8], format: &CsvFormat) -> bool {
    let plain = CsvFormat { quote: 0, ..format.clone() };
    let Ok(raw) = records(sample, 0, &plain, DIALECT_RECORDS) else { return false };
    if raw.iter().flat_map(|r| &r.fields).any(|(text, _)| text.starts_with(b"\"")) {
        return false;
    }
    let Ok(read) = records(sample, 0, format, DIALECT_RECORDS) else { return false };
    let quoted = read.iter().flat_map(|r| &r.fields).filter(|(_, is_quoted)| *is_quoted).count();
    // A malformed field was skipped together with its record.
    let lines = raw.iter().filter(|r| read.iter().any(|other| other.start == r.start)).count();
    quoted >= 2
        && lines > 0
        && raw.iter().all(|r| read.iter().any(|other| other.start <= r.start && r.end <= other.end))
}

/// Returns the number of records with the most frequent number of fields, the per mille of values that are not text,
/// and the fields.
fn score(sample: &[u8], format: &CsvFormat) -> (usize, usize, usize) {
    let Ok(records) = records(sample, 0, format, DIALECT_RECORDS) else { return (0, 0, 0) };
    let (width, count) = common_width(&records);
    if width < 2 {
        return (0, 0, 0);
    }
    let of_width = records.iter().filter(|r| r.fields.len() == width);
    let fields: Vec<&[u8]> =
        of_width.flat_map(|r| &r.fields).map(|(t, _)| t.as_slice()).filter(|t| !t.is_empty()).collect();
    let is_value = |text: &&&[u8]| std::str::from_utf8(text).is_ok_and(|text| value_of(text.trim()).bits != 0);
    let values = fields.iter().filter(is_value).count();
    (count, values * 1_000 / fields.len().max(1), width)
}

/// Returns the most frequent number of fields (the largest of several), and the number of records with it.
fn common_width(records: &[Record]) -> (usize, usize) {
    let mut counts = std::collections::HashMap::new();
    for record in records.iter().filter(|r| !is_hash(r)) {
        *counts.entry(record.fields.len()).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(width, count)| (*count, *width)).unwrap_or((0, 0))
}

fn is_hash(record: &Record) -> bool {
    record.fields.first().is_some_and(|(text, is_quoted)| !is_quoted && text.first() == Some(&COMMENT))
}

/// The lines before the rows.
struct Preamble {
    /// Start of the header or of the first row.
    first: usize,
    /// The comment character, if there are comments among the rows.
    comment: Option<u8>,
    /// True if the names are in a comment.
    has_names: bool,
}

fn preamble(sample: &[u8], start: usize, format: &CsvFormat, known: &Known) -> Preamble {
    // A malformed first record is reported later, when the records are read for type detection.
    let all = records(sample, start, format, SHAPE_RECORDS).unwrap_or_default();
    let (width, _) = common_width(&all);
    let is_known = format.comment.is_some();
    let leading = if is_known { 0 } else { all.iter().take_while(|r| is_hash(r)).count() };
    let rest = &all[leading..];
    let plain =
        |first: Option<&Record>| Preamble { first: first.map_or(start, |r| r.start), comment: None, has_names: false };
    if rest.is_empty() {
        return plain(all.first());
    }
    let is_comment = |r: &Record| is_hash(r) && r.fields.len() != width;
    let has_comments = !is_known && rest.iter().any(is_hash) && rest.iter().filter(|r| is_hash(r)).all(is_comment);
    let comment = has_comments.then_some(COMMENT);
    let evidence = |rest: &[Record]| header::evidence(rest, &header::Types::new(known), known, &format.nulls);
    if let Some(last) = all[..leading].last()
        && evidence(rest) != Evidence::Strong
    {
        let has_names = known.has_header != Some(false) && width > 1 && last.fields.len() == width;
        if has_names && names_in_comment(last) {
            return Preamble { first: last.start, comment, has_names: true };
        }
        // Rows of text that begin with the character.
        if all[..leading].iter().any(|r| r.fields.len() == width) {
            return plain(all.first());
        }
    }
    // Lines that are not records of this file, before a record of names.
    let narrow = rest.iter().take(PREAMBLE_RECORDS).take_while(|r| r.fields.len() < width).count();
    let is_preamble = (1..rest.len()).contains(&narrow)
        && known.has_header != Some(false)
        && rest[narrow].fields.len() == width
        && evidence(&rest[narrow..]) == Evidence::Strong;
    Preamble { comment, ..plain(rest.get(if is_preamble { narrow } else { 0 })) }
}

/// Returns true if the fields of a comment line are names, as in `# ts,price` written by NumPy.
fn names_in_comment(record: &Record) -> bool {
    let text = |(n, (text, _)): (usize, &(Vec<u8>, bool))| {
        let text = if n == 0 { text.trim_ascii_start().strip_prefix(b"#").unwrap_or(text) } else { text };
        std::str::from_utf8(text).is_ok_and(|t| !t.trim().is_empty() && is_name(t.trim()))
    };
    record.fields.iter().enumerate().all(text)
}

/// Removes the comment character from the first name.
pub(super) fn without_comment(record: &mut Record, sample: &[u8]) {
    let raw = &sample[record.start..record.end];
    let skipped = raw.iter().take_while(|b| matches!(**b, COMMENT | b' ')).count();
    record.start += skipped;
    if let Some((text, _)) = record.fields.first_mut() {
        let name = text.iter().skip_while(|b| matches!(**b, COMMENT | b' ')).copied().collect();
        *text = name;
    }
}
