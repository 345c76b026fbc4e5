//! The first records of a file.

use super::super::field::{blank, line_end, record, skip_record};
use super::super::{CsvFormat, lines_of};
use crate::{Error, Result};
use tidalite_types::COLUMNS_MAX;

/// Text of a field, and true if it was quoted.
pub(super) type RecordFields = Vec<(Vec<u8>, bool)>;

/// A record and its position in the sample.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub fields: RecordFields,
    pub start: usize,
    pub end: usize,
}

/// Returns at most `max` records from `start` on. Records with broken quotes are omitted.
///
/// # Errors
/// The first record is broken.
pub(super) fn records(sample: &[u8], start: usize, format: &CsvFormat, max: usize) -> Result<Vec<Record>> {
    let (mut at, mut out) = (start, Vec::new());
    while at < sample.len() && out.len() < max {
        if let Some(len) = blank(sample, at) {
            at += len;
            continue;
        }
        if Some(sample[at]) == format.comment {
            at = line_end(sample, at);
            continue;
        }
        match record(sample, at, format, COLUMNS_MAX) {
            Ok((fields, end)) => {
                out.push(Record { fields, start: at, end });
                at = end;
            }
            Err(error) if out.is_empty() => {
                let line = lines_of(&sample[..at]) as u32 + 1;
                let message = format!("{} (position {})", error.message, error.at - at + 1);
                return Err(Error::invalid(message).at_line(Some(line)));
            }
            // The parser reports the record later.
            Err(_) => at = skip_record(sample, at, format),
        }
    }
    Ok(out)
}
