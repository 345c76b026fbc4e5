//! Records into a batch.

use super::column::Builder;
use super::field::{End, blank, end_at, field, line_end, skip_record};
use super::{CsvColumn, CsvFormat, OnBad, lines_of};
use tidalite_types::{Batch, BatchTimestamps};

/// Bad records and values that one call tells of, but for those of the last record: what can be said about 2 MiB of
/// nonsense takes a hundred times as much.
pub const BAD_MAX: usize = 10_000;

/// A record that is no row, or a value that became NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Counted from 0 in the input of this call.
    pub line: u64,
    /// Place in the record in bytes, from 1.
    pub position: usize,
    /// Of the table, when it is about one.
    pub column: Option<String>,
    pub reason: String,
    /// A value, or what is missing, became NULL and the record a row.
    pub is_row: bool,
    /// As it was written, with its end; empty when it is a row.
    pub record: Vec<u8>,
}

#[derive(Debug)]
pub struct Parsed {
    pub batch: Batch,
    /// Of the input: all, unless so much is bad ([`BAD_MAX`]) or the first record under [`OnBad::Abort`]. Read on there.
    pub bytes: usize,
    /// Lines in them.
    pub lines: u64,
    /// In their order.
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
    /// A short way can end a field at the delimiter.
    is_short: bool,
    scratch: Vec<u8>,
    rows: usize,
    /// Bytes of a row of the last input.
    row_bytes: usize,
    /// What became NULL in the row under way.
    noted: Vec<Bad>,
}

/// Where in the record, in which column, why.
type Bad = (usize, Option<usize>, String);

/// Bad records, and how far lines are counted.
struct Found {
    line: u64,
    counted: usize,
    bad: Vec<BadRecord>,
}

impl CsvParser {
    /// `designated` is the name of the designated timestamp, if it is among the columns. `seed` makes its hash tables
    /// unlike those of others.
    pub fn new(
        format: &CsvFormat,
        table: &str,
        columns: &[CsvColumn],
        designated: Option<&str>,
        seed: u64,
    ) -> CsvParser {
        let is_designated = |c: &CsvColumn| designated.is_some_and(|d| d == c.name) && c.column_type.is_some();
        let time = columns.iter().position(is_designated);
        // A time of day may not be missing where its date is the designated timestamp.
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

    /// Reads every field the general way, which tests compare with the short ones.
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

    /// Reads whole records; the last needs no newline.
    pub fn parse(&mut self, input: &[u8], on_bad: OnBad) -> Parsed {
        // Checked at once, fields cut at ASCII characters need no check of their own.
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

    /// Where the next record begins.
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
            Some(End::Record(next)) => {
                self.keep();
                Ok(next)
            }
            Some(End::Delimiter) if self.format.ignores_extra => {
                self.keep();
                Ok(skip_record(input, at + 1, &self.format))
            }
            Some(End::Delimiter) => Err((at, None, format!("more than the {count} fields that there are columns"))),
            None => Err((at, None, CARRIAGE_RETURN.to_owned())),
        }
    }

    #[inline(always)]
    fn keep(&mut self) {
        if self.has_text {
            self.columns.iter_mut().for_each(Builder::keep);
        }
    }

    /// A record of only so many fields, which may be a row all the same.
    #[cold]
    fn ends_early(&mut self, input: &[u8], at: usize, fields: usize, on_bad: OnBad) -> Result<usize, Bad> {
        let Some(End::Record(next)) = end_at(input, at, self.format.delimiter) else {
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

    /// Tells of the record at `start`, which is no row; gives where the next one begins.
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

/// A field that was not taken.
struct Refusal {
    at: usize,
    reason: String,
    /// Where it ends, when that is known: it is a field, but no value of its column.
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
