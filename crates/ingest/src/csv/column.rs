//! A growing column of a batch.

use super::field::Field;
use super::nested;
use super::number::{self, LastDay};
use super::numbers::NumberFormat;
use super::times::{TimeFormat, time_of_day};
use super::{CsvColumn, CsvFormat, Nulls};
use crate::convert::decimal::decimal_values;
use crate::convert::{Problem, decimal_of, json, text, too_deep};
use crate::line::scan::tag_of;
use crate::line::symbol::SymbolTable;
use memchr::memchr2;
use std::borrow::Cow;
use tidalite_types::time::days_from_civil;
use tidalite_types::{BatchColumn, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

/// Largest size in bytes of the strings that a symbol column keeps from batch to batch.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Largest number of characters of a value in an error message.
const SHOWN_MAX: usize = 64;

#[derive(Debug)]
enum Data {
    Skipped,
    Boolean(Bitmap),
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal(Vec<i128>, u8, u8),
    Timestamp(Vec<i64>, TimeUnit, LastDay),
    /// Nanoseconds since midnight.
    TimeOfDay(Vec<i64>),
    Date(Vec<i32>),
    Symbol(Vec<u32>, Box<Symbols>),
    Text(Views),
    /// Binary values and arrays in their stored form.
    Nested(Views),
    Uuid(Vec<[u8; 16]>),
    Ipv4(Vec<u32>),
}

/// Strings of a symbol column. Positions in `table` persist from batch to batch; ids are those of `dictionary`.
#[derive(Debug, Default)]
struct Symbols {
    table: SymbolTable,
    /// Bytes of the strings in the table.
    bytes: usize,
    dictionary: Views,
    epoch: u32,
    /// The entry that the current row added.
    added: Option<u32>,
}

pub(super) struct Builder {
    pub name: String,
    column_type: ColumnType,
    is_designated: bool,
    data: Data,
    times: Option<TimeFormat>,
    numbers: NumberFormat,
    /// The date column to which a time of day is added.
    pub added_to: Option<usize>,
    /// True if the type and the format of the column permit [`Builder::take_plain`].
    ///
    /// `is_short`: the current input uses `take_plain`.
    may_be_short: bool,
    pub is_short: bool,
    /// NULL rows, ascending.
    nulls: Vec<u32>,
    seed: u64,
}

/// Reason why a field is not a value of its column.
pub(super) type Refused = String;

impl Builder {
    pub(super) fn new(column: &CsvColumn, is_designated: bool, nulls: &Nulls, seed: u64) -> Builder {
        let data = match column.column_type {
            Some(_) if column.added_to.is_some() => Data::TimeOfDay(Vec::new()),
            None => Data::Skipped,
            Some(ColumnType::Boolean) => Data::Boolean(Bitmap::new()),
            Some(ColumnType::Byte) => Data::Byte(Vec::new()),
            Some(ColumnType::Short) => Data::Short(Vec::new()),
            Some(ColumnType::Int) => Data::Int(Vec::new()),
            Some(ColumnType::Long) => Data::Long(Vec::new()),
            Some(ColumnType::Float) => Data::Float(Vec::new()),
            Some(ColumnType::Double) => Data::Double(Vec::new()),
            Some(ColumnType::Decimal { precision, scale }) => Data::Decimal(Vec::new(), precision, scale),
            Some(ColumnType::Timestamp(unit)) => Data::Timestamp(Vec::new(), unit, LastDay::default()),
            Some(ColumnType::Date) => Data::Date(Vec::new()),
            Some(ColumnType::Symbol) => Data::Symbol(Vec::new(), Box::new(Symbols { epoch: 1, ..Symbols::default() })),
            Some(ColumnType::Uuid) => Data::Uuid(Vec::new()),
            Some(ColumnType::Ipv4) => Data::Ipv4(Vec::new()),
            Some(ColumnType::Binary | ColumnType::DoubleArray { .. }) => Data::Nested(Views::new()),
            Some(_) => Data::Text(Views::new()),
        };
        let mut builder = Builder {
            name: column.name.clone(),
            column_type: column.column_type.unwrap_or(ColumnType::Varchar),
            is_designated,
            data,
            times: column.times.clone(),
            numbers: column.numbers,
            added_to: column.added_to,
            may_be_short: false,
            is_short: false,
            nulls: Vec::new(),
            seed,
        };
        builder.may_be_short = builder.is_text()
            || matches!(builder.data, Data::Skipped)
            || (!nulls.could_be_values()
                && builder.numbers == NumberFormat::PLAIN
                && matches!(builder.times, None | Some(TimeFormat::Auto(_))));
        builder
    }

    /// Selects the fast or the general path for the fields of the next input.
    pub(super) fn begin(&mut self, is_plain: bool) {
        self.is_short = is_plain && self.may_be_short;
    }

    fn is_number(&self) -> bool {
        !matches!(
            self.data,
            Data::Skipped
                | Data::Boolean(_)
                | Data::Timestamp(..)
                | Data::TimeOfDay(_)
                | Data::Date(_)
                | Data::Nested(_)
                | Data::Uuid(_)
                | Data::Ipv4(_)
        ) && !self.is_text()
    }

    pub(super) fn is_designated(&self) -> bool {
        self.is_designated
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.data, Data::Symbol(..) | Data::Text(_))
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        if let Data::Symbol(_, symbols) = &self.data { symbols.bytes } else { 0 }
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        match &mut self.data {
            Data::Skipped | Data::Boolean(_) | Data::Text(_) | Data::Nested(_) => {}
            Data::Byte(v) => v.reserve(rows),
            Data::Short(v) => v.reserve(rows),
            Data::Int(v) | Data::Date(v) => v.reserve(rows),
            Data::Long(v) | Data::Timestamp(v, ..) | Data::TimeOfDay(v) => v.reserve(rows),
            Data::Float(v) => v.reserve(rows),
            Data::Double(v) => v.reserve(rows),
            Data::Decimal(v, ..) => v.reserve(rows),
            Data::Symbol(v, _) | Data::Ipv4(v) => v.reserve(rows),
            Data::Uuid(v) => v.reserve(rows),
        }
    }

    /// Parses the field at `at` on the fast path; returns its end.
    #[inline(always)]
    pub(super) fn take_plain(&mut self, input: &[u8], at: usize, format: &CsvFormat, row: u32) -> Option<usize> {
        let (delimiter, quote) = (format.delimiter, format.quote);
        let first = *input.get(at)?;
        if (first == delimiter || first == b'\n') && !self.is_designated {
            // An empty text is read on the general path.
            if format.nulls.keeps_empty() && self.is_text() {
                return None;
            }
            self.push_null(row);
            return Some(at);
        }
        match &mut self.data {
            Data::Double(v) => {
                let (value, end) = number::double(input, at, delimiter)?;
                v.push(value);
                Some(end)
            }
            Data::Long(v) => {
                let (value, end) = number::long(input, at, delimiter)?;
                v.push(value);
                Some(end)
            }
            Data::Timestamp(v, unit, last) => {
                let (value, end) = number::timestamp(input, at, delimiter, *unit, last)?;
                v.push(value);
                Some(end)
            }
            Data::Int(v) => {
                let (value, end) = number::long(input, at, delimiter)?;
                v.push(i32::try_from(value).ok()?);
                Some(end)
            }
            Data::Float(v) => {
                // Rounded twice, but from so few digits that the result is the same.
                let (value, end) = number::double(input, at, delimiter).filter(|(_, end)| end - at <= 8)?;
                v.push(value as f32);
                Some(end)
            }
            Data::Skipped | Data::Symbol(..) | Data::Text(_)
                if first != quote && !matches!(self.column_type, ColumnType::Json | ColumnType::Jsonb) =>
            {
                let end = at + memchr2(delimiter, b'\n', &input[at..])?;
                // Fields with a carriage return, or that may be a NULL string, use the general path.
                if input[end - 1] == b'\r' {
                    return None;
                }
                let text = &input[at..end];
                if format.nulls.has(text) {
                    self.push_null(row);
                    return Some(end);
                }
                self.take_text(text).then_some(end)
            }
            _ => None,
        }
    }

    /// Appends text; returns false if the limit is exceeded.
    #[inline(always)]
    fn take_text(&mut self, text: &[u8]) -> bool {
        match &mut self.data {
            Data::Symbol(v, symbols) => {
                let tag = tag_of(text, self.seed);
                let id = match symbols.table.find(&tag, symbols.epoch) {
                    Some(id) => id,
                    None => {
                        if !symbols.dictionary.has_room(text.len()) {
                            return false;
                        }
                        let id = symbols.dictionary.len() as u32;
                        let (entry, grown) = symbols.table.add(&tag, symbols.epoch, &mut symbols.dictionary);
                        symbols.bytes += grown;
                        symbols.added = Some(entry);
                        id
                    }
                };
                v.push(id);
                true
            }
            Data::Text(views) => {
                let has_room = views.has_room(text.len());
                if has_room {
                    views.push(text);
                }
                has_room
            }
            _ => true,
        }
    }

    pub(super) fn push_null(&mut self, row: u32) {
        match &mut self.data {
            Data::Skipped => return,
            Data::Boolean(v) => v.push(false),
            Data::Byte(v) => v.push(0),
            Data::Short(v) => v.push(0),
            Data::Int(v) | Data::Date(v) => v.push(0),
            Data::Long(v) | Data::Timestamp(v, ..) | Data::TimeOfDay(v) => v.push(0),
            Data::Float(v) => v.push(0.0),
            Data::Double(v) => v.push(0.0),
            Data::Decimal(v, ..) => v.push(0),
            Data::Symbol(v, _) | Data::Ipv4(v) => v.push(0),
            Data::Text(v) | Data::Nested(v) => v.push_empty(1),
            Data::Uuid(v) => v.push([0; 16]),
        }
        self.nulls.push(row);
    }

    /// Parses a field on the general path.
    pub(super) fn take(&mut self, field: Field<'_>, nulls: &Nulls, row: u32) -> Result<(), Refused> {
        if matches!(self.data, Data::Skipped) {
            return Ok(());
        }
        let is_text = self.is_text();
        let text = if is_text { field.text } else { field.text.trim_ascii() };
        let is_null = match (text.is_empty(), is_text) {
            (true, _) => !is_text || !field.is_quoted && !nulls.keeps_empty(),
            (false, true) => !field.is_quoted && nulls.has(text),
            (false, false) => nulls.has_beside_values(text),
        };
        if is_null {
            if self.is_designated {
                return Err("the designated timestamp may not be NULL".to_owned());
            }
            self.push_null(row);
            return Ok(());
        }
        let Ok(utf8) = std::str::from_utf8(text) else {
            return Err(format!("{} is not UTF-8", shown(text)));
        };
        self.value(utf8).map_err(|problem| reason(problem, self.column_type, text))
    }

    fn value(&mut self, text: &str) -> Result<(), Problem> {
        let text = if self.numbers != NumberFormat::PLAIN && self.is_number() {
            match self.numbers.plain(text) {
                Some((plain, _)) => plain,
                // Infinity and NaN have no separators.
                None if !text.bytes().any(|b| b.is_ascii_digit()) => Cow::Borrowed(text),
                None => return Err(Problem::Syntax),
            }
        } else {
            Cow::Borrowed(text)
        };
        let text = text.as_ref();
        match &mut self.data {
            Data::Skipped => {}
            Data::Boolean(v) => v.push(boolean(text).ok_or(Problem::Syntax)?),
            Data::Byte(v) => v.push(whole(text)?),
            Data::Short(v) => v.push(whole(text)?),
            Data::Int(v) => v.push(whole(text)?),
            Data::Long(v) => v.push(whole(text)?),
            Data::Float(v) => v.push(float(text, f32::is_infinite)?),
            Data::Double(v) => v.push(float(text, f64::is_infinite)?),
            Data::Decimal(v, precision, scale) => v.push(decimal_of(text, *precision, *scale)?),
            Data::Timestamp(v, unit, _) => v.push(match &self.times {
                Some(format) => format.timestamp(text, *unit)?,
                None => timestamp(text, *unit)?,
            }),
            Data::TimeOfDay(v) => v.push(time_of_day(text).ok_or(Problem::Syntax)?),
            Data::Date(v) => v.push(match &self.times {
                Some(format) => format.date(text)?,
                None => text::date(text)?,
            }),
            Data::Uuid(v) => v.push(text::uuid(text)?),
            Data::Ipv4(v) => v.push(text::ipv4(text)?),
            Data::Nested(v) => {
                let value = match self.column_type {
                    ColumnType::DoubleArray { dims } => nested::array(text, dims),
                    _ => nested::bytes(text),
                };
                let value = value.ok_or(Problem::Syntax)?;
                if !v.has_room(value.len()) {
                    return Err(Problem::Room);
                }
                v.push(&value);
            }
            Data::Symbol(..) | Data::Text(_) => {
                let normalized;
                let text = match self.column_type {
                    ColumnType::Json => {
                        json::check(text)?;
                        text
                    }
                    ColumnType::Jsonb => {
                        normalized = text::jsonb(text)?;
                        normalized.as_str()
                    }
                    _ => text,
                };
                if !self.take_text(text.as_bytes()) {
                    return Err(Problem::Room);
                }
            }
        }
        Ok(())
    }

    /// Accepts the current row.
    #[inline(always)]
    pub(super) fn keep(&mut self) {
        if let Data::Symbol(_, symbols) = &mut self.data {
            symbols.added = None;
        }
    }

    /// Removes the values of a rejected row.
    pub(super) fn undo(&mut self, rows: usize) {
        match &mut self.data {
            Data::Skipped => {}
            Data::Boolean(v) => v.truncate(rows),
            Data::Byte(v) => v.truncate(rows),
            Data::Short(v) => v.truncate(rows),
            Data::Int(v) | Data::Date(v) => v.truncate(rows),
            Data::Long(v) | Data::Timestamp(v, ..) | Data::TimeOfDay(v) => v.truncate(rows),
            Data::Float(v) => v.truncate(rows),
            Data::Double(v) => v.truncate(rows),
            Data::Decimal(v, ..) => v.truncate(rows),
            Data::Ipv4(v) => v.truncate(rows),
            Data::Text(v) | Data::Nested(v) => v.truncate(rows),
            Data::Uuid(v) => v.truncate(rows),
            Data::Symbol(v, symbols) => {
                v.truncate(rows);
                if let Some(entry) = symbols.added.take() {
                    symbols.table.forget(entry);
                    symbols.dictionary.truncate(symbols.dictionary.len() - 1);
                }
            }
        }
        while self.nulls.last().is_some_and(|row| *row as usize >= rows) {
            self.nulls.pop();
        }
    }

    /// Returns the values of the designated timestamp.
    pub(super) fn finish_times(&mut self) -> Option<(TimeUnit, Vec<i64>)> {
        match &mut self.data {
            Data::Timestamp(v, unit, _) => Some((*unit, std::mem::take(v))),
            _ => None,
        }
    }

    /// Adds times of day, in nanoseconds, to the times.
    pub(super) fn add_times_of_day(&mut self, times: &[i64]) {
        if let Data::Timestamp(values, unit, _) = &mut self.data {
            let nanos = 1_000_000_000 / unit.per_second();
            values.iter_mut().zip(times).for_each(|(value, time)| *value = value.saturating_add(time / nanos));
        }
    }

    /// Returns the times of day of this input, in nanoseconds.
    pub(super) fn take_times_of_day(&mut self) -> Option<Vec<i64>> {
        match &mut self.data {
            Data::TimeOfDay(v) => Some(std::mem::take(v)),
            _ => None,
        }
    }

    /// Returns the column and empties the builder.
    pub(super) fn finish(&mut self, rows: usize) -> Option<BatchColumn> {
        let mut dictionary = Views::new();
        let values = match &mut self.data {
            Data::Skipped | Data::TimeOfDay(_) => {
                self.nulls.clear();
                return None;
            }
            Data::Boolean(v) => Values::Bit(std::mem::take(v)),
            Data::Byte(v) => Values::I8(std::mem::take(v)),
            Data::Short(v) => Values::I16(std::mem::take(v)),
            Data::Int(v) | Data::Date(v) => Values::I32(std::mem::take(v)),
            Data::Long(v) | Data::Timestamp(v, ..) => Values::I64(std::mem::take(v)),
            Data::Float(v) => Values::F32(std::mem::take(v)),
            Data::Double(v) => Values::F64(std::mem::take(v)),
            Data::Decimal(v, ..) => decimal_values(std::mem::take(v), self.column_type),
            Data::Text(v) | Data::Nested(v) => Values::Views(std::mem::take(v)),
            Data::Uuid(v) => Values::B16(std::mem::take(v)),
            Data::Ipv4(v) => Values::U32(std::mem::take(v)),
            Data::Symbol(v, symbols) => {
                dictionary = std::mem::take(&mut symbols.dictionary);
                symbols.epoch += 1;
                if symbols.bytes > KEPT_BYTES_MAX {
                    (symbols.table, symbols.bytes) = (SymbolTable::default(), 0);
                }
                Values::U32(std::mem::take(v))
            }
        };
        let nulls = std::mem::take(&mut self.nulls);
        let validity = (!nulls.is_empty()).then(|| {
            let mut validity = Bitmap::filled(rows, true);
            nulls.iter().for_each(|row| validity.set(*row as usize, false));
            validity
        });
        let (name, column_type) = (self.name.clone(), self.column_type);
        Some(BatchColumn { name, column_type, column: Column { values, validity }, dictionary, narrower: None })
    }
}

/// Parses `true`, `t`, `yes`, `y`, `on`, `1` and their opposites, in any case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let is = |words: [&str; 6]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(["true", "t", "yes", "y", "on", "1"]) {
        return Some(true);
    }
    is(["false", "f", "no", "n", "off", "0"]).then_some(false)
}

fn integer<T: TryFrom<i64>>(text: &str) -> Result<T, Problem> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    let value: i64 = text.parse().map_err(|_| Problem::Range)?;
    T::try_from(value).map_err(|_| Problem::Range)
}

/// Parses an integer, also `5.0` and `5e3` from programs that have only floating-point numbers.
fn whole<T: TryFrom<i64>>(text: &str) -> Result<T, Problem> {
    match integer(text) {
        Err(Problem::Syntax) => {
            let value = i64::try_from(decimal_of(text, 38, 0)?).map_err(|_| Problem::Range)?;
            T::try_from(value).map_err(|_| Problem::Range)
        }
        other => other,
    }
}

/// Parses a number; a finite text that becomes infinite is out of range, unlike `inf`.
fn float<T: std::str::FromStr + Copy>(text: &str, is_infinite: fn(T) -> bool) -> Result<T, Problem> {
    let value: T = text.parse().map_err(|_| Problem::Syntax)?;
    if is_infinite(value) && text.bytes().any(|b| b.is_ascii_digit()) { Err(Problem::Range) } else { Ok(value) }
}

/// Parses ISO 8601, or an integer in the unit of the column; in the years 1 to 9999.
pub(super) fn timestamp(text: &str, unit: TimeUnit) -> Result<i64, Problem> {
    let value = match integer::<i64>(text) {
        Ok(value) => value,
        Err(Problem::Range) => return Err(Problem::Range),
        Err(_) => text::timestamp(text, unit)?,
    };
    let at = |year| days_from_civil(year, 1, 1).saturating_mul(86_400).saturating_mul(unit.per_second());
    if (at(1)..=at(10_000) - 1).contains(&value) { Ok(value) } else { Err(Problem::Range) }
}

#[cold]
fn reason(problem: Problem, to: ColumnType, text: &[u8]) -> Refused {
    match problem {
        Problem::Range => format!("value {} is out of range for type {to}", shown(text)),
        Problem::Digits => format!("value {} does not fit type {to} without losing digits", shown(text)),
        Problem::Depth => too_deep(),
        Problem::Room => "more than 2 GiB of text in one column of a batch".to_owned(),
        Problem::Type | Problem::Syntax => format!("invalid input syntax for type {to}: {}", shown(text)),
    }
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
