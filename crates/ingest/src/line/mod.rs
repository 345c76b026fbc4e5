//! Parses the InfluxDB line protocol with QuestDB's extensions to a [`Batch`] per table.
//!
//! No input or output, no clock, no knowledge of existing tables. The caller decides about the effect of an invalid
//! line: the preceding rows can still be taken.
//!
//! Reading order: [`value`] and [`binary`] define the protocol on the general path. [`row`] parses a line with them
//! into the [`column`]s of a [`table`], with fast paths through [`scan`] and [`symbol`] for lines that resemble earlier
//! lines. [`series`] recognizes complete beginnings of lines, [`shape`] their fields; for lines that are recognized
//! completely, [`waiting`] buffers several rows. A fast path never rejects a line; it leaves doubtful lines to the
//! general path. [`partial`] takes the valid lines of an input with invalid ones; [`span`] finds the end of an invalid
//! line.

mod binary;
mod column;
mod field_value;
mod options;
mod outcome;
mod partial;
mod row;
pub(crate) mod scan;
mod series;
mod shape;
mod span;
mod step;
pub(crate) mod symbol;
mod table;
mod value;
mod waiting;

#[cfg(test)]
mod tests;

use column::Undo;
use hashbrown::HashMap;
pub use options::LineOptions;
use outcome::{Parsed, Stop, bad};
pub use partial::{RefusedLine, ValidLines};
use row::{Fields, RowReader, Tags};
use series::{KnownSeries, SeriesCache, SeriesTags};
use span::LineSpan;
use std::fmt;
use step::{START, StepId, UNKNOWN};
use table::TableBuilder;
use tidalite_types::schema::fold_name;
use tidalite_types::{Batch, ErrorKind};

/// Error message for a string without a closing quote.
const UNCLOSED: &str = "quoted string is not closed";

/// The error of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Counted from 1 over the life of the parser or since [`LineParser::reset`].
    pub line: u64,
    /// Byte position in the line, from 1.
    pub position: usize,
    /// Names table and column, if known.
    pub message: String,
}

impl LineError {
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, position {}: {}", self.line, self.position, self.message)
    }
}

impl std::error::Error for LineError {}

/// Result of recognizing the tags of a line.
enum Seen {
    Never,
    /// The tags are parsed on the general path, and are not learned again.
    Before,
    /// The tags are set: the table, the end of the tags, the step of the last tag, and the state of the fields.
    Set(u32, usize, StepId, Fields),
    /// The complete row is set; the next line starts at this position.
    Row(usize),
}

/// Parses line protocol. Reusable: learned shapes of lines are kept from batch to batch.
pub struct LineParser {
    options: LineOptions,
    tables: Vec<TableBuilder>,
    /// Indexed by the name as written, so that most lines need not unescape or fold it.
    tables_by_raw_name: HashMap<Box<[u8]>, u32>,
    tables_by_name: HashMap<String, u32>,
    /// Tables with rows, in order of first appearance.
    active: Vec<u32>,
    /// The table of the previous line.
    last_table: u32,
    /// Number of the current dictionaries, see [`symbol`].
    epoch: u32,
    /// Tables that continue the dictionaries of a previous batch.
    kept: Vec<u32>,
    /// Number of finished lines.
    line: u64,
    /// Number of bytes of the next input that were scanned and do not complete a line.
    scanned: usize,
    rows: usize,
    cache_bytes: usize,
    series: SeriesCache,
    undo: Vec<Undo>,
    scratch: Vec<u8>,
    tags: Tags,
}

impl LineParser {
    #[must_use]
    pub fn new(options: LineOptions) -> LineParser {
        LineParser {
            series: SeriesCache::new(options.cache_bytes_max / 2, options.series_after_lines),
            options,
            tables: Vec::new(),
            tables_by_raw_name: HashMap::new(),
            tables_by_name: HashMap::new(),
            active: Vec::new(),
            last_table: u32::MAX,
            epoch: 1,
            kept: Vec::new(),
            line: 0,
            scanned: 0,
            rows: 0,
            cache_bytes: 0,
            undo: Vec::new(),
            scratch: Vec::new(),
            tags: Tags::default(),
        }
    }

    #[must_use]
    pub fn options(&self) -> &LineOptions {
        &self.options
    }

    /// Parses every complete line of `input` and returns their number of bytes.
    ///
    /// The rest is an incomplete line: call again with the rest and more input. `now_ns` is the timestamp of rows
    /// without one.
    ///
    /// # Errors
    /// Returns the first invalid line. Its values are dropped, the preceding lines are kept. The parser then only
    /// supports [`LineParser::take`] and [`LineParser::reset`].
    pub fn parse(&mut self, input: &[u8], now_ns: i64) -> Result<usize, LineError> {
        let seen = if self.scanned <= input.len() { self.scanned } else { 0 };
        let mut at = 0;
        if let Some(last) = memchr::memrchr(b'\n', &input[seen..]) {
            let last = seen + last;
            while at <= last {
                match self.parse_line(input, at, now_ns) {
                    Ok(next) => at = next,
                    Err(Stop::Incomplete) => break,
                    Err(Stop::Bad { at: position, message, .. }) => return Err(self.error(position - at, message)),
                }
                self.line += 1;
            }
        }
        self.scanned = input.len() - at;
        if self.scanned > self.options.line_bytes_max {
            return Err(self.too_long());
        }
        Ok(at)
    }

    /// Ends the input: the last line needs no newline.
    ///
    /// # Errors
    /// Fails like [`LineParser::parse`], and if the input ends within a quoted string or a binary value.
    pub fn finish(&mut self, rest: &[u8], now_ns: i64) -> Result<(), LineError> {
        let used = self.parse(rest, now_ns)?;
        self.scanned = 0;
        if used == rest.len() {
            return Ok(());
        }
        let mut line = rest[used..].to_vec();
        line.push(b'\n');
        if self.parse(&line, now_ns)? < line.len() {
            self.scanned = 0;
            return Err(match LineSpan::find(&line, 0) {
                LineSpan::OpenQuote(at) => self.error(at, UNCLOSED.to_owned()),
                LineSpan::Ends(_) => self.error(line.len() - 1, "the input ends within a line".to_owned()),
            });
        }
        Ok(())
    }

    /// Returns the rows parsed so far, a batch per table in order of first appearance.
    ///
    /// Large batches are in time order ([`crate::order`]). The parser continues without these rows.
    pub fn take(&mut self) -> Vec<Batch> {
        let active = std::mem::take(&mut self.active);
        let keeps = active.iter().all(|&t| self.tables[t as usize].may_keep_dictionaries());
        let batches = active.iter().map(|&t| self.tables[t as usize].take(keeps, &self.options)).collect();
        self.rows = 0;
        if keeps {
            let newly = active.into_iter().filter(|&t| !std::mem::replace(&mut self.tables[t as usize].is_kept, true));
            self.kept.extend(newly);
        } else {
            self.void_dictionaries();
        }
        if self.cache_bytes > self.options.cache_bytes_max {
            self.forget();
        }
        batches
    }

    /// Starts the next batches with empty dictionaries.
    fn void_dictionaries(&mut self) {
        self.kept.drain(..).for_each(|t| self.tables[t as usize].clear_dictionaries());
        self.series.void_ids();
        match self.epoch.checked_add(1) {
            Some(epoch) => self.epoch = epoch,
            None => self.forget(),
        }
    }

    /// Drops rows not taken and restarts line numbers at 1, for the next request or connection.
    pub fn reset(&mut self) {
        self.take();
        self.void_dictionaries();
        self.line = 0;
        self.scanned = 0;
    }

    /// Returns the number of the next line, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line + 1
    }

    /// Returns the number of rows that [`LineParser::take`] would return.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate memory of the result of [`LineParser::take`].
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.active.iter().map(|&t| self.tables[t as usize].byte_count()).sum()
    }

    /// Drops all learned state. There must be no rows that depend on it.
    fn forget(&mut self) {
        self.tables.clear();
        self.tables_by_raw_name.clear();
        self.tables_by_name.clear();
        self.series.clear();
        self.last_table = u32::MAX;
        self.cache_bytes = 0;
        self.kept.clear();
        self.epoch = 1;
    }

    #[cold]
    fn error(&self, offset: usize, message: String) -> LineError {
        LineError { line: self.line + 1, position: offset + 1, message }
    }

    #[cold]
    fn too_long(&self) -> LineError {
        let max = self.options.line_bytes_max;
        self.error(max, format!("line is longer than {max} bytes, the setting line.bytes_max"))
    }

    /// Parses the line at `start` and returns the start of the next line.
    fn parse_line(&mut self, input: &[u8], start: usize, now_ns: i64) -> Parsed<usize> {
        let start = match line_start(input, start)? {
            LineStart::Row(at) => at,
            LineStart::Next(next) => return Ok(next),
        };
        let looks = self.options.predict && self.series.looks();
        let seen = if looks { self.known_tags(input, start) } else { Seen::Before };
        let (table_id, at, last, fields) = match seen {
            Seen::Row(next) => return Ok(next),
            Seen::Set(table, at, last, fields) => (table, at, last, fields),
            Seen::Before | Seen::Never => {
                let (table, at) = self.table(input, start)?;
                (table, at, START, Fields::Unread)
            }
        };
        self.tags.begin(matches!(seen, Seen::Never));
        let table = &mut self.tables[table_id as usize];
        table.settle();
        if table.rows == 0 {
            table.start_batch(&input[start..at], start)?;
        }
        let mut reader = RowReader {
            table,
            input,
            start,
            options: &self.options,
            now_ns,
            epoch: self.epoch,
            line: u32::try_from(self.line + 1).unwrap_or(u32::MAX),
            undo: &mut self.undo,
            scratch: &mut self.scratch,
            cache_bytes: &mut self.cache_bytes,
            tags: &mut self.tags,
        };
        match reader.read(at, last, fields) {
            Ok(next) => {
                self.undo.clear();
                if table.rows == 1 {
                    self.active.push(table_id);
                }
                self.rows += 1;
                if self.tags.wanted && self.tags.end > 0 {
                    self.learn_tags(&input[start..=self.tags.end], table_id);
                }
                Ok(next)
            }
            Err(stop) => {
                table.undo_row(&mut self.undo);
                self.series.void_ids();
                Err(stop.in_table(&table.name))
            }
        }
    }

    /// Sets the tags of the line at `start` if they were seen before, or parses the complete line.
    #[inline]
    fn known_tags(&mut self, input: &[u8], start: usize) -> Seen {
        let (last_table, fields) = (self.last_table, self.fields_ahead(input, start));
        let Some(known) = self.series.find(input, start, self.options.seed) else { return Seen::Never };
        let at = start + known.text_bytes;
        let mut fields = if known.table == last_table { fields.at(at) } else { Fields::Unread };
        if self.tables[known.table as usize].rows == 0 {
            return Seen::Before;
        }
        if let Some(next) = self.known_row(input, start, known, &mut fields) {
            return Seen::Row(next);
        }
        if !self.set_tags(known) {
            return Seen::Before;
        }
        Seen::Set(known.table, at, known.last_step, fields)
    }

    /// Parses a line of a known series whose fields have its table's shape.
    #[inline(always)]
    fn known_row(&mut self, input: &[u8], start: usize, known: KnownSeries, fields: &mut Fields) -> Option<usize> {
        let (table, at) = (&mut self.tables[known.table as usize], start + known.text_bytes);
        if !table.shape.follows(known.last_step) {
            return None;
        }
        if let Fields::Unread = fields {
            *fields = Fields::read(&mut table.shape, input, at);
        }
        let Fields::Read { end, .. } = *fields else { return None };
        let (unit, timestamp, next) = row::line_end(input, end, &self.options)?;
        if table.timestamp_unit != Some(unit) || next - start > self.options.line_bytes_max {
            return None;
        }
        let SeriesTags { columns, entries, ids } = self.series.tags(known);
        if !table.lets_wait(known.kind, columns) {
            return None;
        }
        if !known.resolved {
            for ((&column, &entry), id) in columns.iter().zip(entries).zip(&mut *ids) {
                *id = table.columns[column as usize].entry_id(column, entry, self.epoch, &mut self.undo)?;
            }
        }
        table.push_waiting(ids, timestamp, u32::try_from(self.line + 1).unwrap_or(u32::MAX));
        if !known.resolved {
            self.undo.clear();
            self.series.resolve(known);
        }
        self.last_table = known.table;
        self.rows += 1;
        Some(next)
    }

    /// Sets the tags of a row of a known series. If it fails, the line is parsed on the general path, which sets the
    /// same tags again.
    fn set_tags(&mut self, known: KnownSeries) -> bool {
        let table = &mut self.tables[known.table as usize];
        table.settle();
        let SeriesTags { columns, entries, ids } = self.series.tags(known);
        for ((&column, &entry), id) in columns.iter().zip(entries).zip(ids) {
            match table.columns[column as usize].set_entry(column, entry, table.rows, self.epoch, &mut self.undo) {
                Some(own) => *id = own,
                None => return false,
            }
        }
        self.series.resolve(known);
        self.last_table = known.table;
        true
    }

    /// If series arrive in no order, parses the fields of a line before its tags, assuming the table of the previous
    /// line.
    #[inline(always)]
    fn fields_ahead(&mut self, input: &[u8], start: usize) -> Fields {
        let Some(at) = self.series.expect(input, start, self.options.seed) else { return Fields::Unread };
        let Some(table) = self.tables.get_mut(self.last_table as usize) else { return Fields::Unread };
        Fields::read(&mut table.shape, input, at)
    }

    /// Learns the tags of the row just finished. `key` is its line up to the space after them.
    #[inline(never)]
    fn learn_tags(&mut self, key: &[u8], table_id: u32) {
        let table = &self.tables[table_id as usize];
        let (columns, seed) = (&self.tags.columns, self.options.seed);
        let entry = |column: u32| table.columns[column as usize].last_entry(table.rows, seed);
        let distinct = || columns.iter().enumerate().all(|(i, c)| !columns[..i].contains(c));
        let usable = self.tags.last_step != UNKNOWN && (1..=64).contains(&columns.len()) && distinct();
        if usable && self.series.has_room(key.len()) && columns.iter().all(|&c| entry(c).is_some()) {
            let tags = columns.iter().filter_map(|&column| Some((column, entry(column)?)));
            self.series.learn(key, seed, table_id, self.tags.last_step, tags);
        }
    }

    /// Returns the table of the line at `start`, and the end of its name.
    #[inline]
    fn table(&mut self, input: &[u8], start: usize) -> Parsed<(u32, usize)> {
        let last = self.tables.get(self.last_table as usize);
        if let (Some(last), true) = (last, self.options.predict) {
            for candidate in last.next {
                let Some(table) = self.tables.get(candidate as usize) else { continue };
                let end = start + table.raw_name.len();
                if matches!(input.get(end), Some(b',' | b' ')) && input[start..end] == *table.raw_name {
                    self.last_table = candidate;
                    return Ok((candidate, end));
                }
            }
        }
        let (found, end) = self.find_table(input, start)?;
        if let Some(last) = self.tables.get_mut(self.last_table as usize)
            && last.next[0] != found
        {
            last.next = [found, last.next[0]];
        }
        self.last_table = found;
        Ok((found, end))
    }

    fn find_table(&mut self, input: &[u8], start: usize) -> Parsed<(u32, usize)> {
        let token = value::measurement(input, start)?;
        let end = token.end_at;
        let raw = &input[start..end];
        if !matches!(token.end, value::End::Comma | value::End::Space) {
            return bad(end, format!("table name {} must be followed by a comma or a space", outcome::shown(raw)));
        }
        if let Some(&table) = self.tables_by_raw_name.get(raw) {
            return Ok((table, end));
        }
        let name = table::table_name(raw, token.escaped, start)?;
        let next = self.tables.len() as u32;
        let table = *self.tables_by_name.entry(fold_name(&name)).or_insert(next);
        if table == next {
            self.tables.push(TableBuilder::new(name, raw));
        }
        self.tables_by_raw_name.insert(raw.into(), table);
        self.cache_bytes += 1024 + 3 * raw.len();
        Ok((table, end))
    }
}

/// The content at the start of a line.
enum LineStart {
    /// A row that starts at this position.
    Row(usize),
    /// Nothing or a comment; the next line starts at this position.
    Next(usize),
}

#[inline(always)]
fn line_start(input: &[u8], start: usize) -> Parsed<LineStart> {
    match input.get(start) {
        // Greater than spaces, line ends and the comment character.
        Some(byte) if *byte > b'#' => Ok(LineStart::Row(start)),
        _ => odd_start(input, start),
    }
}

/// Skips spaces and tabs before a line, which have no meaning, as in InfluxDB.
#[inline(never)]
fn odd_start(input: &[u8], start: usize) -> Parsed<LineStart> {
    let blanks = input[start..].iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    let at = start + blanks.ok_or(Stop::Incomplete)?;
    if input[at] == b'#' {
        let len = memchr::memchr(b'\n', &input[at..]).ok_or(Stop::Incomplete)?;
        return Ok(LineStart::Next(at + len + 1));
    }
    Ok(value::line_end(input, at)?.map_or(LineStart::Row(at), |len| LineStart::Next(at + len)))
}
