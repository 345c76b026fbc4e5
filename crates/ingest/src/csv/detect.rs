//! What a file is, from its first records and what is known already.
//!
//! In: the beginning of a file, what the user said and what the table has. Out: the format, the
//! names and types of the columns, the designated timestamp. What was said holds; what the table has comes next; the
//! rest is read off the records: a type is the narrowest of BOOLEAN, LONG, DOUBLE, DATE, TIMESTAMP, UUID, IPV4 that
//! every value of the sample has, else SYMBOL where texts repeat, else VARCHAR.

use super::column::timestamp;
use super::field::{blank, record};
use super::{CsvColumn, CsvFormat, Splitter, lines_of};
use crate::convert::text;
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use tidalite_types::schema::{column_name_problem, fold_name, same_name};
use tidalite_types::{COLUMNS_MAX, ColumnType, NAME_BYTES_MAX, PartitionBy, TimeUnit};

/// Records looked at.
const RECORDS_MAX: usize = 20_000;
/// Different texts that a SYMBOL may have in the sample.
const SYMBOLS_MAX: usize = 10_000;
/// Columns that a message names.
const LISTED_MAX: usize = 100;
/// A partition should have so many rows, so that its files are not many and small.
const PARTITION_ROWS: f64 = 500_000.0;
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// Names that a designated timestamp is likely to have.
const TIME_NAMES: [&str; 5] = ["timestamp", "ts", "time", "datetime", "date"];

/// What is known of a file before it is read.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub delimiter: Option<u8>,
    pub has_header: Option<bool>,
    /// A text for NULL.
    pub null: String,
    /// Columns as the user gave them.
    pub columns: Vec<(String, ColumnType)>,
    /// Those of the table, in its order, when it exists.
    pub table: Option<Vec<(String, ColumnType)>>,
    /// The designated timestamp as the user named it or the table has it.
    pub timestamp: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    pub format: CsvFormat,
    /// The names stand in the first record, which ends here; 0 without them.
    pub header_bytes: usize,
    pub header_lines: usize,
    pub columns: Vec<CsvColumn>,
    pub timestamp: Option<String>,
    /// By which about half a million rows or more are in a partition, as far as the sample shows.
    pub partition_by: PartitionBy,
    pub sampled_rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Boolean,
    Long,
    Double,
    Date,
    Timestamp,
    /// With more than six digits after the point.
    TimestampNs,
    Uuid,
    Ipv4,
    Text,
}

impl Kind {
    fn of(text: &str) -> Kind {
        if text.is_empty() {
            return Kind::None;
        }
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            return Kind::Boolean;
        }
        if text.parse::<i64>().is_ok() {
            return Kind::Long;
        }
        if text.bytes().any(|b| b.is_ascii_digit()) || text.len() <= 9 {
            if text.parse::<f64>().is_ok() {
                return Kind::Double;
            }
            if text::date(text).is_ok() {
                let fraction =
                    text.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count());
                return match text.len() {
                    10 => Kind::Date,
                    _ if fraction > 6 => Kind::TimestampNs,
                    _ => Kind::Timestamp,
                };
            }
            if text::uuid(text).is_ok() {
                return Kind::Uuid;
            }
            if text::ipv4(text).is_ok() {
                return Kind::Ipv4;
            }
        }
        Kind::Text
    }

    fn with(self, other: Kind) -> Kind {
        use Kind::{Date, Double, Long, None, Text, Timestamp, TimestampNs};
        match (self, other) {
            (a, b) if a == b => a,
            (None, kind) | (kind, None) => kind,
            (Long, Double) | (Double, Long) => Double,
            (Date, Timestamp) | (Timestamp, Date) => Timestamp,
            (Date | Timestamp, TimestampNs) | (TimestampNs, Date | Timestamp) => TimestampNs,
            _ => Text,
        }
    }
}

type Record = Vec<(Vec<u8>, bool)>;

/// What the sample begins with: names, or the first row.
struct Head {
    names: Vec<String>,
    has_names: bool,
    /// Where the first record ends.
    bytes: usize,
}

/// `sample` is the beginning of a file, all of it when `is_whole`.
///
/// # Errors
/// The sample is no CSV, or does not fit what is known.
pub fn detect(sample: &[u8], is_whole: bool, known: &Known) -> Result<Detected> {
    if let Some(delimiter) = known.delimiter.filter(|d| !d.is_ascii() || matches!(d, b'"' | b'\n' | b'\r')) {
        return Err(Error::invalid(format!("{:?} is no delimiter", char::from(delimiter))));
    }
    let null = known.null.clone().into_bytes();
    let delimiter = known.delimiter.unwrap_or_else(|| delimiter_of(sample));
    let format = CsvFormat { delimiter, null, ..CsvFormat::default() };
    let whole = if is_whole { sample.len() } else { Splitter::new(&format).split(sample) };
    if whole == 0 && !sample.is_empty() {
        let message = format!("the first record, or a quoted field in it, is longer than {} bytes", sample.len());
        return Err(Error::invalid(message).at_line(Some(1)));
    }
    let sample = &sample[..whole];
    let types = Types::of(known);
    if known.table.is_some()
        && let Some(found) = of_table(sample, &format, known, &types)?
    {
        return Ok(found);
    }
    let (records, first_end) = records(sample, &format, RECORDS_MAX)?;
    let first = first_of(&records)?;
    let has_names = match known.has_header {
        Some(has_header) => has_header,
        None => looks_like_header(&records, &types, &format.null),
    };
    let head = Head { names: names(first, has_names, known)?, has_names, bytes: first_end };
    let rows = &records[usize::from(has_names)..];
    let column_type = |i: usize| column_type(rows, i, &format.null);
    let columns = head.names.iter().enumerate().map(|(i, name)| {
        types.column(name).unwrap_or_else(|| CsvColumn { name: name.clone(), column_type: Some(column_type(i)) })
    });
    detected(sample, columns.collect(), &format, &head, rows, known)
}

/// The answer from the first record alone, when the table has, or the user said, every column of the file: nothing is
/// left to find out.
fn of_table(sample: &[u8], format: &CsvFormat, known: &Known, types: &Types) -> Result<Option<Detected>> {
    let (records, bytes) = records(sample, format, 1)?;
    let first = first_of(&records)?;
    let are_names = || named(first, &format.null).is_some_and(|names| names.iter().all(|name| types.has(name)));
    let has_names = match known.has_header {
        Some(has_header) => has_header,
        None if are_names() => true,
        None => return Ok(None),
    };
    let head = Head { names: names(first, has_names, known)?, has_names, bytes };
    let columns: Option<Vec<CsvColumn>> = head.names.iter().map(|name| types.column(name)).collect();
    let found = columns.map(|columns| detected(sample, columns, format, &head, &[], known));
    found.transpose()
}

fn first_of(records: &[Record]) -> Result<&Record> {
    records.first().ok_or_else(|| Error::invalid("there is no record"))
}

fn names(first: &Record, has_names: bool, known: &Known) -> Result<Vec<String>> {
    if has_names { Ok(header_names(first)) } else { given_names(first.len(), known) }
}

fn detected(
    sample: &[u8],
    mut columns: Vec<CsvColumn>,
    format: &CsvFormat,
    head: &Head,
    rows: &[Record],
    known: &Known,
) -> Result<Detected> {
    if let Some((missing, _)) = known.columns.iter().find(|(n, _)| !columns.iter().any(|c| same_name(&c.name, n))) {
        return Err(Error::invalid(format!("column \"{missing}\" is not in the file, which has {}", list(&columns))));
    }
    let timestamp = designate(&mut columns, rows, known, &format.null)?;
    let header_bytes = if head.has_names { head.bytes } else { 0 };
    Ok(Detected {
        format: format.clone(),
        header_bytes,
        header_lines: lines_of(&sample[..header_bytes]) as usize,
        partition_by: partition_by(&columns, rows, timestamp.as_deref()),
        columns,
        timestamp,
        sampled_rows: rows.len(),
    })
}

/// Names of columns, for a message.
fn list(columns: &[CsvColumn]) -> String {
    let shown: Vec<&str> = columns.iter().take(LISTED_MAX).map(|c| c.name.as_str()).collect();
    shown.join(", ") + if columns.len() > LISTED_MAX { ", …" } else { "" }
}

/// Names and types of columns that nobody has to find out: those the user gave, then those of the table.
struct Types(HashMap<String, (String, ColumnType)>);

impl Types {
    fn of(known: &Known) -> Types {
        let mut types = HashMap::new();
        let said = known.columns.iter().map(|c| (c, false));
        for ((name, column_type), is_of_table) in said.chain(known.table.iter().flatten().map(|c| (c, true))) {
            let entry = types.entry(fold_name(name)).or_insert_with(|| (String::new(), *column_type));
            // The file's own spelling holds, unless the table has another.
            if is_of_table {
                entry.0.clone_from(name);
            }
        }
        Types(types)
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(&fold_name(name))
    }

    fn column(&self, name: &str) -> Option<CsvColumn> {
        let (spelled, column_type) = self.0.get(&fold_name(name))?;
        let name = if spelled.is_empty() { name } else { spelled };
        Some(CsvColumn { name: name.to_owned(), column_type: Some(*column_type) })
    }
}

/// The first records, and where the first of them ends.
fn records(sample: &[u8], format: &CsvFormat, max: usize) -> Result<(Vec<Record>, usize)> {
    let (mut at, mut out, mut first_end) = (0, Vec::new(), 0);
    while at < sample.len() && out.len() < max {
        if let Some(len) = blank(sample, at) {
            at += len;
            continue;
        }
        match record(sample, at, format, COLUMNS_MAX) {
            Ok((fields, next)) => {
                out.push(fields);
                at = next;
            }
            Err(error) if out.is_empty() => {
                let line = lines_of(&sample[..at]) as u32 + 1;
                let message = format!("{} (position {})", error.message, error.at - at + 1);
                return Err(Error::invalid(message).at_line(Some(line)));
            }
            // The parser reports it, or skips it.
            Err(_) => at = super::field::skip_record(sample, at, format),
        }
        if out.len() == 1 && first_end == 0 {
            first_end = at;
        }
    }
    Ok((out, first_end))
}

/// The delimiter by which most of the first records have the same number of fields, of several the one with most fields.
fn delimiter_of(sample: &[u8]) -> u8 {
    let score = |delimiter: u8| {
        let format = CsvFormat { delimiter, ..CsvFormat::default() };
        let Ok((records, _)) = records(sample, &format, 100) else { return (0, 0) };
        let width = records.first().map_or(0, Vec::len);
        let same = records.iter().filter(|r| r.len() == width).count();
        if width > 1 { (same, width) } else { (0, 0) }
    };
    // Of equals the first.
    let better = |best: u8, next: u8| if score(next) > score(best) { next } else { best };
    DELIMITERS.into_iter().reduce(better).unwrap_or(b',')
}

fn text_of<'a>(record: &'a Record, column: usize, null: &[u8]) -> Option<&'a str> {
    let (text, is_quoted) = record.get(column)?;
    if text.is_empty() || (!is_quoted && text == null) {
        return None;
    }
    std::str::from_utf8(text).ok().map(str::trim)
}

/// The texts of a first record that may be names: all that are there, if none is a value of another kind.
fn named<'a>(first: &'a Record, null: &[u8]) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = (0..first.len()).filter_map(|i| text_of(first, i, null)).collect();
    (!names.is_empty() && names.iter().all(|name| Kind::of(name) == Kind::Text)).then_some(names)
}

/// Names are texts, with other kinds of values below some of them; where all columns are text, they are different ones
/// that do not come again. A column without a name says nothing (an index, as pandas writes it).
fn looks_like_header(records: &[Record], types: &Types, null: &[u8]) -> bool {
    let Some((first, rest)) = records.split_first() else { return false };
    let Some(names) = named(first, null) else { return false };
    if names.iter().all(|name| types.has(name)) {
        return true;
    }
    let has_name = |i: &usize| text_of(first, *i, null).is_some();
    let comes_again = |i: usize| rest.iter().any(|r| text_of(r, i, null) == text_of(first, i, null));
    let is_typed = |i: usize| !matches!(kind_of(rest, i, null), Kind::Text | Kind::None);
    let are_different = names.iter().collect::<HashSet<_>>().len() == names.len();
    (0..first.len()).filter(has_name).any(is_typed)
        || (are_different && !(0..first.len()).filter(has_name).any(comes_again))
}

/// Names that columns may have: what they may not is an underscore, and one that comes again gets a number.
fn header_names(first: &Record) -> Vec<String> {
    let mut taken = HashSet::with_capacity(first.len());
    // From which number on a name has not been tried.
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::with_capacity(first.len());
    for (i, (text, _)) in first.iter().enumerate() {
        let plain = header_name(text, i);
        let mut name = plain.clone();
        if !taken.insert(fold_name(&name)) {
            let number = next.entry(fold_name(&plain)).or_insert(2);
            loop {
                let suffix = format!("_{number}");
                name = shortened(&plain, NAME_BYTES_MAX - suffix.len()).to_owned() + &suffix;
                *number += 1;
                if taken.insert(fold_name(&name)) {
                    break;
                }
            }
        }
        names.push(name);
    }
    names
}

fn header_name(text: &[u8], column: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let fits = |c: char| column_name_problem(c.encode_utf8(&mut [0; 4])).is_none();
    let name: String = text.trim().chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() { format!("c{column}") } else { shortened(&name, NAME_BYTES_MAX).to_owned() }
}

/// As many of its characters as fit in so many bytes.
fn shortened(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn given_names(width: usize, known: &Known) -> Result<Vec<String>> {
    let names = |columns: &[(String, ColumnType)]| columns.iter().map(|(n, _)| n.clone()).collect();
    if !known.columns.is_empty() {
        if known.columns.len() == width {
            return Ok(names(&known.columns));
        }
        let message = format!("{} columns were given and the first record has {width} fields", known.columns.len());
        return Err(Error::invalid(message));
    }
    match &known.table {
        Some(columns) if columns.len() == width => Ok(names(columns)),
        Some(columns) => Err(Error::invalid(format!(
            "the table has {} columns and the first record, without names, {width} fields",
            columns.len()
        ))),
        None => Ok((0..width).map(|i| format!("c{i}")).collect()),
    }
}

fn kind_of(rows: &[Record], column: usize, null: &[u8]) -> Kind {
    rows.iter().fold(Kind::None, |kind, row| kind.with(text_of(row, column, null).map_or(Kind::None, Kind::of)))
}

fn column_type(rows: &[Record], column: usize, null: &[u8]) -> ColumnType {
    match kind_of(rows, column, null) {
        Kind::None => ColumnType::Varchar,
        Kind::Boolean => ColumnType::Boolean,
        Kind::Long => ColumnType::Long,
        Kind::Double => ColumnType::Double,
        Kind::Date => ColumnType::Date,
        Kind::Timestamp => ColumnType::Timestamp(TimeUnit::Micros),
        Kind::TimestampNs => ColumnType::Timestamp(TimeUnit::Nanos),
        Kind::Uuid => ColumnType::Uuid,
        Kind::Ipv4 => ColumnType::Ipv4,
        Kind::Text => {
            let texts: Vec<&str> = rows.iter().filter_map(|row| text_of(row, column, null)).collect();
            let different = texts.iter().collect::<HashSet<_>>().len();
            if different * 2 <= texts.len() && different <= SYMBOLS_MAX {
                ColumnType::Symbol
            } else {
                ColumnType::Varchar
            }
        }
    }
}

/// The designated timestamp: the one named, else the one most likely, which has no NULL in the sample; its column gets
/// the type of a time.
fn designate(columns: &mut [CsvColumn], rows: &[Record], known: &Known, null: &[u8]) -> Result<Option<String>> {
    if let Some(name) = &known.timestamp {
        let Some(i) = columns.iter().position(|c| same_name(&c.name, name)) else {
            let message = format!("timestamp column \"{name}\" is not in the file, which has {}", list(columns));
            return Err(Error::invalid(message));
        };
        if !matches!(columns[i].column_type, Some(ColumnType::Timestamp(_))) {
            columns[i].column_type = Some(ColumnType::Timestamp(named_unit(rows, i, &columns[i].name, null)?));
        }
        return Ok(Some(columns[i].name.clone()));
    }
    if known.table.is_some() {
        return Ok(None);
    }
    let is_said = |c: &CsvColumn| known.columns.iter().any(|(n, _)| same_name(n, &c.name));
    let is_full = |i: usize| rows.iter().all(|row| text_of(row, i, null).is_some());
    let unit_of = |i: usize, c: &CsvColumn, by_name: bool| {
        let unit = match c.column_type {
            Some(ColumnType::Timestamp(unit)) => Some(unit),
            Some(ColumnType::Date) if !is_said(c) => Some(TimeUnit::Micros),
            Some(ColumnType::Long) if by_name && !is_said(c) => epoch_unit(rows, i, null),
            _ => None,
        };
        unit.filter(|_| is_full(i))
    };
    let by_name = TIME_NAMES.iter().find_map(|name| {
        let i = columns.iter().position(|c| same_name(&c.name, name))?;
        Some((i, unit_of(i, &columns[i], true)?))
    });
    let first = || columns.iter().enumerate().find_map(|(i, c)| Some((i, unit_of(i, c, false)?)));
    let Some((i, unit)) = by_name.or_else(first) else { return Ok(None) };
    columns[i].column_type = Some(ColumnType::Timestamp(unit));
    Ok(Some(columns[i].name.clone()))
}

/// The unit of a column that is said to be the designated timestamp.
fn named_unit(rows: &[Record], column: usize, name: &str, null: &[u8]) -> Result<TimeUnit> {
    match (epoch_unit(rows, column, null), kind_of(rows, column, null)) {
        (Some(unit), _) => Ok(unit),
        // As microseconds they would be times of 1970.
        (None, Kind::Long | Kind::Double) => Err(Error::invalid(format!(
            "timestamp column \"{name}\" has numbers that are not all milli-, micro- or nanoseconds since 1970; its type \
             says what they are (TIMESTAMP_MS, TIMESTAMP, TIMESTAMP_NS)"
        ))),
        (None, _) => Ok(TimeUnit::Micros),
    }
}

/// The unit that integers of a time since 1970 are in, when they are between 1973 and 5138 in it.
fn epoch_unit(rows: &[Record], column: usize, null: &[u8]) -> Option<TimeUnit> {
    let mut values = rows.iter().filter_map(|row| text_of(row, column, null)).peekable();
    values.peek()?;
    let mut unit = None;
    for text in values {
        let value: i64 = text.parse().ok()?;
        let found = match value {
            100_000_000_000..100_000_000_000_000 => TimeUnit::Millis,
            100_000_000_000_000..100_000_000_000_000_000 => TimeUnit::Micros,
            100_000_000_000_000_000.. => TimeUnit::Nanos,
            _ => return None,
        };
        if *unit.get_or_insert(found) != found {
            return None;
        }
    }
    unit
}

fn partition_by(columns: &[CsvColumn], rows: &[Record], name: Option<&str>) -> PartitionBy {
    let Some(i) = name.and_then(|name| columns.iter().position(|c| c.name == name)) else { return PartitionBy::None };
    let Some(ColumnType::Timestamp(unit)) = columns[i].column_type else { return PartitionBy::None };
    let times = rows.iter().filter_map(|row| timestamp(text_of(row, i, &[])?, unit).ok());
    let range = times.fold(None, |range: Option<(i64, i64)>, t| {
        let (lo, hi) = range.unwrap_or((t, t));
        Some((lo.min(t), hi.max(t)))
    });
    let Some((lo, hi)) = range.filter(|(lo, hi)| lo < hi) else { return PartitionBy::Day };
    let rows_per_day = rows.len() as f64 / ((hi as f64 - lo as f64) / unit.per_second() as f64 / 86_400.0);
    let by = [
        (PartitionBy::Hour, 1.0 / 24.0),
        (PartitionBy::Day, 1.0),
        (PartitionBy::Week, 7.0),
        (PartitionBy::Month, 30.0),
        (PartitionBy::Year, f64::INFINITY),
    ];
    // An hour only where a day would be ten times too many.
    let fits = |(by, days): &&(PartitionBy, f64)| {
        rows_per_day * days >= if *by == PartitionBy::Hour { 10.0 * PARTITION_ROWS } else { PARTITION_ROWS }
    };
    by.iter().find(fits).map_or(PartitionBy::Year, |(by, _)| *by)
}
