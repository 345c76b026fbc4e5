//! Parses records into a batch.

use super::column::Builder;
use super::field::{FieldEnd, blank, end_at, field, line_end, skip_record};
use super::{CsvColumn, CsvFormat, OnBad, lines_of};
use tidalite_types::{Batch, BatchTimestamps};

/// Largest number of invalid records and values that one call reports, except for those of the last record: the reports
/// for 2 MiB of invalid text take a hundred times its size.
pub const BAD_MAX: usize = 10_000;

/// An invalid record, or a value that became NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Counted from 0 in the input of this call.
    pub line: u64,
    /// Byte position in the record, from 1.
    pub position: usize,
    /// Name of the table's column, if one is concerned.
    pub column: Option<String>,
    pub reason: String,
    /// True if a value became NULL and the record is a row.
    pub is_row: bool,
    /// The original text with its line end; empty if the record is a row.
    pub record: Vec<u8>,
}

#[derive(Debug)]
pub struct Parsed {
    pub batch: Batch,
    /// Bytes read: all, unless there are [`BAD_MAX`] invalid records or the first one under [`OnBad::Abort`]. Continue
    /// there.
    pub bytes: usize,
    /// Number of lines in these bytes.
    pub lines: u64,
    /// In order.
    pub bad: Vec<BadRecord>,
}

/// Parses records. Reusable: strings of symbol columns are kept from batch to batch.
pub struct CsvParser {
    format: CsvFormat,
    table: String,
    columns: Vec<Builder>,
    /// Index of the designated timestamp.
    designated: Option<usize>,
    has_text: bool,
    /// True if a fast path can end a field at the delimiter.
    is_short: bool,
    scratch: Vec<u8>,
    rows: usize,
    /// Bytes per row of the last input.
    row_bytes: usize,
    /// Values of the current row that became NULL.
    noted: Vec<Bad>,
}

/// Position in the record, column, reason.
type Bad = (usize, Option<usize>, String);

/// Invalid records, and the position up to which lines are counted.
struct Found {
    line: u64,
    counted: usize,
    bad: Vec<BadRecord>,
}

impl CsvParser {
    /// Creates a parser. `designated` is the name of the designated timestamp if it is among the columns.
    ///
    /// `seed` makes the hash tables of this parser different from those of others.
    pub fn new(
        format: &CsvFormat,
        table: &str,
        columns: &[CsvColumn],
        designated: Option<&str>,
        seed: u64,
    ) -> CsvParser {
        let is_designated = |c: &CsvColumn| designated.is_some_and(|d| d == c.name) && c.column_type.is_some();
        let time = columns.iter().position(is_designated);
        // A time of day is required if its date is the designated timestamp.
        let is_required = |c: &CsvColumn| is_designated(c) || (time.is_some() && c.added_to == time);
        let builder = |c: &CsvColumn| Builder::new(c, is_required(c), &format.nulls, seed);
        let builders: Vec<Builder> = columns.iter().map(builder).collect();
        CsvParser {
            format: format.clone(),
            table: table.to_owned(),
            designated: time,
            has_text: builders.iter().any(Builder::is_text),
            is_short: !format.delimiter.is_ascii_alphanumeric() && !b" +-.:".contains(&format.delimiter),
            columns: builders,
            scratch: Vec::new(),
            rows: 0,
            row_bytes: 64,
            noted: Vec::new(),
        }
    }

    /// Reads every field on the general path, for tests that compare both paths.
    #[doc(hidden)]
    #[must_use]
    pub fn without_short_ways(mut self) -> CsvParser {
        self.is_short = false;
        self
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.columns.iter().map(Builder::kept_bytes).sum()
    }

    /// Reads complete records; the last record needs no newline.
    pub fn parse(&mut self, input: &[u8], on_bad: OnBad) -> Parsed {
        // After this check, fields that are cut at ASCII characters are valid UTF-8.
        let is_plain = self.is_short && (!self.has_text || std::str::from_utf8(input).is_ok());
        self.columns.iter_mut().for_each(|c| c.begin(is_plain));
        let expected = input.len() / self.row_bytes.max(1) + 16;
        self.columns.iter_mut().for_each(|c| c.reserve(expected));
        let bad_max = if on_bad == OnBad::Abort { 1 } else { BAD_MAX };
        let comment = self.format.comment.map_or(u16::MAX, u16::from);
        let (mut at, mut found) = (0, Found { line: 0, counted: 0, bad: Vec::new() });
        while at < input.len() && found.bad.len() < bad_max {
            if let Some(len) = blank(input, at) {
                at += len;
                continue;
            }
            if u16::from(input[at]) == comment {
                at = line_end(input, at);
                continue;
            }
            match self.record(input, at, on_bad) {
                Ok(next) => {
                    if !self.noted.is_empty() {
                        self.tell_noted(input, at, &mut found);
                    }
                    self.rows += 1;
                    at = next;
                }
                Err(bad) => at = self.leave_out(input, at, bad, &mut found),
            }
        }
        self.row_bytes = at.checked_div(self.rows).unwrap_or(self.row_bytes);
        let lines = found.line + lines_of(&input[found.counted..at]);
        Parsed { batch: self.finish(), bytes: at, lines, bad: found.bad }
    }

    /// Parses the record at `start` and returns the start of the next record.
    #[inline]
    fn record(&mut self, input: &[u8], start: usize, on_bad: OnBad) -> Result<usize, Bad> {
        let delimiter = self.format.delimiter;
        let (row, count) = (self.rows as u32, self.columns.len());
        let mut at = start;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let short = if column.is_short { column.take_plain(input, at, &self.format, row) } else { None };
            let end = match short {
                Some(end) => end,
                None => match general(column, input, at, &self.format, &mut self.scratch, row) {
                    Ok(end) => end,
                    Err(Refusal { end: Some(end), reason, .. }) if on_bad == OnBad::Null && !column.is_designated() => {
                        column.push_null(row);
                        self.noted.push((at, Some(i), reason));
                        end
                    }
                    Err(Refusal { at, reason, .. }) => return Err((at, Some(i), reason)),
                },
            };
            if i + 1 < count {
                if input.get(end) != Some(&delimiter) {
                    return self.ends_early(input, end, i + 1, on_bad);
                }
                at = end + 1;
            } else {
                at = end;
            }
        }
        match end_at(input, at, delimiter) {
            Some(FieldEnd::Record(next)) => {
                self.keep();
                Ok(next)
            }
            Some(FieldEnd::Delimiter) if self.format.ignores_extra => {
                self.keep();
                Ok(skip_record(input, at + 1, &self.format))
            }
            Some(FieldEnd::Delimiter) => {
                Err((at, None, format!("more than the {count} fields that there are columns")))
            }
            None => Err((at, None, CARRIAGE_RETURN.to_owned())),
        }
    }

    #[inline(always)]
    fn keep(&mut self) {
        if self.has_text {
            self.columns.iter_mut().for_each(Builder::keep);
        }
    }

    /// Handles a record with too few fields, which may still be a row.
    #[cold]
    fn ends_early(&mut self, input: &[u8], at: usize, fields: usize, on_bad: OnBad) -> Result<usize, Bad> {
        let Some(FieldEnd::Record(next)) = end_at(input, at, self.format.delimiter) else {
            return Err((at, None, CARRIAGE_RETURN.to_owned()));
        };
        let bad = (at, None, format!("only {fields} of {} fields", self.columns.len()));
        if on_bad != OnBad::Null || self.columns[fields..].iter().any(Builder::is_designated) {
            return Err(bad);
        }
        let row = self.rows as u32;
        self.columns[fields..].iter_mut().for_each(|c| c.push_null(row));
        self.noted.push(bad);
        self.keep();
        Ok(next)
    }

    /// Reports the invalid record at `start` and returns the start of the next record.
    #[cold]
    fn leave_out(&mut self, input: &[u8], start: usize, bad: Bad, found: &mut Found) -> usize {
        self.noted.clear();
        self.columns.iter_mut().for_each(|c| c.undo(self.rows));
        let next = skip_record(input, start, &self.format);
        self.tell(input, start, bad, input[start..next].to_vec(), found);
        next
    }

    #[cold]
    fn tell_noted(&mut self, input: &[u8], start: usize, found: &mut Found) {
        for bad in std::mem::take(&mut self.noted) {
            self.tell(input, start, bad, Vec::new(), found);
        }
    }

    fn tell(&self, input: &[u8], start: usize, (at, column, reason): Bad, record: Vec<u8>, found: &mut Found) {
        found.line += lines_of(&input[found.counted..start]);
        found.counted = start;
        found.bad.push(BadRecord {
            line: found.line,
            position: at - start + 1,
            column: column.map(|c| self.columns[c].name.clone()),
            reason,
            is_row: record.is_empty(),
            record,
        });
    }

    /// Adds times of day to the dates of their columns.
    fn add_times_of_day(&mut self) {
        for n in 0..self.columns.len() {
            let Some(date) = self.columns[n].added_to else { continue };
            let Some(times) = self.columns[n].take_times_of_day() else { continue };
            self.columns[date].add_times_of_day(&times);
        }
    }

    fn finish(&mut self) -> Batch {
        self.add_times_of_day();
        let rows = std::mem::take(&mut self.rows);
        let mut timestamps = None;
        let mut columns = Vec::with_capacity(self.columns.len());
        for (i, builder) in self.columns.iter_mut().enumerate() {
            match (self.designated == Some(i)).then(|| builder.finish_times()).flatten() {
                Some((unit, values)) => timestamps = Some(BatchTimestamps::new(unit, values)),
                None => columns.extend(builder.finish(rows)),
            }
        }
        Batch { table: self.table.clone(), rows, columns, timestamps, lines: Vec::new() }
    }
}

const CARRIAGE_RETURN: &str = "a carriage return within a field must be in quotes";

/// A rejected field.
struct Refusal {
    at: usize,
    reason: String,
    /// End of the field, if known: the field is well-formed, but not a value of its column.
    end: Option<usize>,
}

#[inline(never)]
fn general(
    column: &mut Builder,
    input: &[u8],
    at: usize,
    format: &CsvFormat,
    scratch: &mut Vec<u8>,
    row: u32,
) -> Result<usize, Refusal> {
    let field =
        field(input, at, format, scratch).map_err(|e| Refusal { at: e.at, reason: e.message.to_owned(), end: None })?;
    let end = field.end;
    column.take(field, &format.nulls, row).map_err(|reason| Refusal { at, reason, end: Some(end) })?;
    Ok(end)
}
