//! Records into a batch.

use super::column::Builder;
use super::field::{End, blank, end_at, field, skip_record};
use super::{CsvColumn, CsvFormat, is_readable};
use crate::{Error, Result};
use memchr::memchr_iter;
use tidalite_types::{Batch, BatchTimestamps};

/// A record that is no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Counted from 0 in the input of this call.
    pub line: u64,
    /// Place in the record in bytes, from 1.
    pub position: usize,
    /// Of the table, when it is about one.
    pub column: Option<String>,
    pub reason: String,
    /// The record as it was written, with its end.
    pub record: Vec<u8>,
}

#[derive(Debug)]
pub struct Parsed {
    pub batch: Batch,
    /// Lines of the input.
    pub lines: u64,
    pub bad: Vec<BadRecord>,
}

/// Reusable: keeps the strings of symbol columns from batch to batch.
pub struct CsvParser {
    format: CsvFormat,
    table: String,
    columns: Vec<Builder>,
    /// Which of the columns is the designated timestamp.
    designated: Option<usize>,
    has_text: bool,
    scratch: Vec<u8>,
    rows: usize,
    /// Bytes of a row of the last input.
    row_bytes: usize,
}

/// Where in the record, in which column, why.
type Bad = (usize, Option<usize>, String);

impl CsvParser {
    /// `designated` is the name of the designated timestamp, if it is among the columns. `seed` makes its hash tables
    /// unlike those of others.
    ///
    /// # Errors
    /// A column of a type that cannot be read from text.
    pub fn new(
        format: &CsvFormat,
        table: &str,
        columns: &[CsvColumn],
        designated: Option<&str>,
        seed: u64,
    ) -> Result<CsvParser> {
        for column in columns {
            if let Some(column_type) = column.column_type.filter(|t| !is_readable(*t)) {
                let message = format!("column \"{}\" of type {column_type} cannot be read from CSV", column.name);
                return Err(Error::invalid(message));
            }
        }
        let is_designated = |c: &CsvColumn| designated.is_some_and(|d| d == c.name) && c.column_type.is_some();
        let builder = |c: &CsvColumn| Builder::new(&c.name, c.column_type, is_designated(c), seed);
        let builders: Vec<Builder> = columns.iter().map(builder).collect();
        Ok(CsvParser {
            format: format.clone(),
            table: table.to_owned(),
            designated: columns.iter().position(is_designated),
            has_text: builders.iter().any(Builder::is_text),
            columns: builders,
            scratch: Vec::new(),
            rows: 0,
            row_bytes: 64,
        })
    }

    /// Reads whole records; the last needs no newline.
    pub fn parse(&mut self, input: &[u8]) -> Parsed {
        // Checked at once, fields cut at ASCII characters need no check of their own.
        let is_plain = self.format.null.is_empty() && (!self.has_text || std::str::from_utf8(input).is_ok());
        let expected = input.len() / self.row_bytes.max(1) + 16;
        self.columns.iter_mut().for_each(|c| c.reserve(expected));
        let (mut at, mut bad) = (0, Vec::new());
        while at < input.len() {
            if let Some(len) = blank(input, at) {
                at += len;
                continue;
            }
            match self.record(input, at, is_plain) {
                Ok(next) => {
                    self.rows += 1;
                    at = next;
                }
                Err((position, column, reason)) => {
                    self.columns.iter_mut().for_each(|c| c.undo(self.rows));
                    let next = skip_record(input, at, &self.format);
                    bad.push(BadRecord {
                        line: memchr_iter(b'\n', &input[..at]).count() as u64,
                        position: position - at + 1,
                        column: column.map(|c| self.columns[c].name.clone()),
                        reason,
                        record: input[at..next].to_vec(),
                    });
                    at = next;
                }
            }
        }
        self.row_bytes = if self.rows > 0 { input.len() / self.rows } else { self.row_bytes };
        Parsed { batch: self.finish(), lines: memchr_iter(b'\n', input).count() as u64, bad }
    }

    /// Where the next record begins.
    #[inline]
    fn record(&mut self, input: &[u8], start: usize, is_plain: bool) -> std::result::Result<usize, Bad> {
        let (delimiter, quote) = (self.format.delimiter, self.format.quote);
        let (row, count) = (self.rows as u32, self.columns.len());
        let mut at = start;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let short = if is_plain { column.take_plain(input, at, delimiter, quote, row) } else { None };
            let end = match short {
                Some(end) => end,
                None => general(column, input, at, &self.format, &mut self.scratch, row)
                    .map_err(|(at, reason)| (at, Some(i), reason))?,
            };
            if i + 1 < count {
                if input.get(end) != Some(&delimiter) {
                    return Err(too_few(input, end, i + 1, count, delimiter));
                }
                at = end + 1;
            } else {
                at = end;
            }
        }
        match end_at(input, at, delimiter) {
            Some(End::Record(next)) => {
                if self.has_text {
                    self.columns.iter_mut().for_each(Builder::keep);
                }
                Ok(next)
            }
            Some(End::Delimiter) => Err((at, None, format!("more than the {count} fields that there are columns"))),
            None => Err((at, None, CARRIAGE_RETURN.to_owned())),
        }
    }

    fn finish(&mut self) -> Batch {
        let rows = std::mem::take(&mut self.rows);
        let mut timestamps = None;
        let mut columns = Vec::with_capacity(self.columns.len());
        for (i, builder) in self.columns.iter_mut().enumerate() {
            match (self.designated == Some(i)).then(|| builder.finish_times()).flatten() {
                Some((unit, values)) => timestamps = Some(BatchTimestamps { unit, values }),
                None => columns.extend(builder.finish(rows)),
            }
        }
        Batch { table: self.table.clone(), rows, columns, timestamps, lines: Vec::new() }
    }
}

const CARRIAGE_RETURN: &str = "a carriage return within a field must be in quotes";

#[cold]
fn too_few(input: &[u8], at: usize, fields: usize, count: usize, delimiter: u8) -> Bad {
    match end_at(input, at, delimiter) {
        None => (at, None, CARRIAGE_RETURN.to_owned()),
        Some(_) => (at, None, format!("only {fields} of {count} fields")),
    }
}

#[inline(never)]
fn general(
    column: &mut Builder,
    input: &[u8],
    at: usize,
    format: &CsvFormat,
    scratch: &mut Vec<u8>,
    row: u32,
) -> std::result::Result<usize, (usize, String)> {
    let field = field(input, at, format, scratch).map_err(|e| (e.at, e.message.to_owned()))?;
    let end = field.end;
    column.take(field, &format.null, row).map_err(|reason| (at, reason))?;
    Ok(end)
}
