//! Types and notations of columns.

use super::super::numbers::{NumberFormat, Thousands};
use super::super::times::{DateOrder, EpochUnit, TimeFormat};
use super::super::{CsvColumn, CsvFormat, Nulls};
use super::header::text_of;
use super::known::Known;
use super::names::is_time_name;
use super::records::Record;
use super::value::{
    BOOLEANS, COMPACT, DAY_FIRST, INTEGER, IPV4, MONTH_FIRST, NUMBER, NUMBERS, PLAIN_NUMBER, TIME, UUID, ValueFacts,
    boolean_bit, epoch_bit, number_bit, value_of,
};
use crate::{Error, Result};
use std::collections::HashSet;
use tidalite_types::schema::same_name;
use tidalite_types::{ColumnType, TimeUnit};

/// The reason for the detected type of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    pub why: String,
    /// The first distinct values of the sample.
    pub examples: Vec<String>,
    /// Number of NULL values of the sample.
    pub nulls: usize,
}

/// Largest number of distinct strings of a SYMBOL in the sample.
const SYMBOLS_MAX: usize = 10_000;
/// Largest number of examples of a finding, and of characters of an example.
const EXAMPLES_MAX: usize = 3;
const EXAMPLE_CHARS: usize = 64;
/// Above this value, a double cannot represent every integer.
const EXACT_DOUBLE: u64 = 1 << 53;
/// Maximum number of digits of a DECIMAL.
const DECIMAL_DIGITS: usize = 38;
/// If bad records are skipped, one in this many values of a column of times may be something else.
const VALUES_PER_BAD: usize = 100;

/// Properties common to all sampled strings of a column.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Rows with a value.
    pub values: usize,
    /// Candidate types of every string: the intersection of `ValueFacts::bits`.
    pub bits: u32,
    /// The same intersection over strings that could be times, and over strings that could be numbers.
    pub time_bits: u32,
    pub number_bits: u32,
    pub has_time: bool,
    pub decimals: u8,
    pub has_short_year: bool,
    pub is_ambiguous: bool,
    pub has_small: bool,
    is_spaced: bool,
    has_true: bool,
    has_false: bool,
    /// The first string whose type differs from the type of the strings before it.
    breaker: Option<String>,
    /// Rows with a value that is not a time, in a column of times.
    bad: usize,
}

const TIMES: u32 = TIME | DAY_FIRST | MONTH_FIRST | COMPACT;

impl Facts {
    pub(super) fn new(rows: &[Record], column: usize, nulls: &Nulls, skips_bad: bool) -> Facts {
        let texts = || rows.iter().filter_map(|row| text_of(row, column, nulls));
        let facts = Facts::of(texts());
        if !skips_bad || facts.bits & TIMES != 0 {
            return facts;
        }
        let times = Facts::of(texts().filter(|text| value_of(text).bits & (TIMES & !COMPACT) != 0));
        let bad = facts.values - times.values;
        if bad * VALUES_PER_BAD <= facts.values && times.bits & TIMES != 0 { Facts { bad, ..times } } else { facts }
    }

    fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Facts {
        let all = u32::MAX;
        let mut facts = Facts { bits: all, time_bits: all, number_bits: all, ..Facts::default() };
        texts.for_each(|text| facts.add(text));
        facts
    }

    fn add(&mut self, text: &str) {
        self.values += 1;
        let ValueFacts {
            bits,
            is_true,
            is_false,
            has_time,
            decimals,
            has_short_year,
            is_ambiguous,
            is_small,
            is_spaced,
        } = value_of(text);
        if self.bits != 0 && self.bits & bits == 0 {
            self.breaker = Some(shown(text));
        }
        self.bits &= bits;
        if bits & TIMES != 0 {
            self.time_bits &= bits & TIMES;
        }
        if bits & NUMBER != 0 {
            self.number_bits &= bits & (NUMBER | INTEGER);
        }
        self.has_time |= has_time;
        self.decimals = self.decimals.max(decimals);
        self.has_short_year |= has_short_year;
        self.is_ambiguous |= is_ambiguous;
        self.has_small |= is_small;
        self.is_spaced |= is_spaced;
        self.has_true |= is_true;
        self.has_false |= is_false;
    }

    /// Returns the unit of epoch numbers if the magnitudes of all of them imply the same unit.
    pub(super) fn epoch(&self) -> Option<EpochUnit> {
        EpochUnit::ALL.into_iter().find(|unit| self.values > 0 && self.bits & epoch_bit(*unit) != 0)
    }

    pub(super) fn is_number(&self) -> bool {
        self.values > 0 && self.bits & PLAIN_NUMBER != 0
    }

    /// Returns true if all strings are numbers and the magnitude of some does not determine the unit.
    pub(super) fn is_unclear(&self) -> bool {
        self.is_number() && self.has_small && !self.is_compact()
    }

    /// Returns true if all strings are dates that consist of digits only.
    pub(super) fn is_compact(&self) -> bool {
        self.values > 0 && self.bits & COMPACT != 0
    }
}

/// The detected type of a column and the reason for it.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub facts: Facts,
    pub finding: Finding,
    /// The user gave the type, or the type is that of the existing table.
    pub is_said: bool,
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Sets types and notations of the columns.
///
/// # Errors
/// A time column has two meanings.
pub(super) fn choose(
    columns: &mut [CsvColumn],
    rows: &[Record],
    format: &CsvFormat,
    known: &Known,
) -> Result<Vec<Choice>> {
    let nulls = &format.nulls;
    let all: Vec<Facts> = (0..columns.len()).map(|i| Facts::new(rows, i, nulls, known.skips_bad)).collect();
    let file = FileStyle::new(&all, format, known);
    let mut choices = Vec::with_capacity(columns.len());
    for (i, (column, facts)) in columns.iter_mut().zip(all).enumerate() {
        let is_said = column.column_type.is_some();
        let mut why = match column.column_type {
            Some(column_type) => typed(column, column_type, &facts, &file, known)?,
            None => untyped(column, &facts, rows, i, nulls, &file, known)?,
        };
        if facts.bad > 0 {
            why.push_str(&format!("; {} of {} values are not times", facts.bad, facts.values + facts.bad));
        }
        let nulls_found = rows.len() - facts.values - facts.bad;
        let finding = Finding { why, examples: examples(rows, i, nulls), nulls: nulls_found };
        choices.push(Choice { facts, finding, is_said });
    }
    Ok(choices)
}

fn examples(rows: &[Record], column: usize, nulls: &Nulls) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in rows.iter().filter_map(|row| text_of(row, column, nulls)).take(1_000) {
        if found.len() == EXAMPLES_MAX {
            break;
        }
        let text = shown(text);
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// Date order and number format inferred from some columns of a file and applied to the others.
struct FileStyle {
    order: Option<DateOrder>,
    has_decimal_comma: Option<bool>,
    thousands: Option<Thousands>,
    delimiter: u8,
}

impl FileStyle {
    fn new(all: &[Facts], format: &CsvFormat, known: &Known) -> FileStyle {
        let shows = |bit: u32, other: u32| {
            all.iter().any(|f| f.values > 0 && f.time_bits & (bit | other) == bit && f.time_bits & TIME == 0)
        };
        let order = match (shows(DAY_FIRST, MONTH_FIRST), shows(MONTH_FIRST, DAY_FIRST)) {
            (true, false) => Some(DateOrder::DayFirst),
            (false, true) => Some(DateOrder::MonthFirst),
            _ => None,
        };
        let comma = |f: &&Facts| f.values > 0 && f.number_bits & NUMBER != 0 && f.number_bits & PLAIN_NUMBER == 0;
        let only = |has_comma: bool| {
            let bits: u32 =
                (0..NUMBERS.len()).filter(|n| NUMBERS[*n].has_decimal_comma == has_comma).map(number_bit).sum();
            all.iter().filter(comma).any(|f| f.number_bits & NUMBER & !bits == 0)
        };
        let has_points = all.iter().any(|f| {
            let is_point = f.number_bits & PLAIN_NUMBER != 0 && f.number_bits & INTEGER == 0;
            f.values > 0 && is_point && f.number_bits & number_bit(3) == 0
        });
        let found = match (only(true), only(false) || has_points) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        FileStyle {
            order: known.date_order.or(order),
            has_decimal_comma: known.has_decimal_comma.or(found),
            thousands: known.thousands,
            delimiter: format.delimiter,
        }
    }

    /// Returns the number format, among the formats that fit all values of a column.
    fn numbers(&self, bits: u32, is_spaced: bool) -> Option<NumberFormat> {
        let has_comma = self.has_decimal_comma.unwrap_or(self.delimiter == b';');
        let is_wanted = |format: &NumberFormat| {
            self.thousands.is_none_or(|thousands| format.thousands == thousands || format.thousands == Thousands::None)
                && (self.has_decimal_comma.is_none_or(|comma| format.has_decimal_comma == comma))
        };
        let fits = |n: &usize| bits & number_bit(*n) != 0 && is_wanted(&NUMBERS[*n]);
        let is_plain_wanted = bits & PLAIN_NUMBER != 0
            && (bits & INTEGER != 0 || self.has_decimal_comma != Some(true) || bits & number_bit(3) == 0);
        if is_plain_wanted {
            return Some(NumberFormat::PLAIN);
        }
        // Spaces alone do not prove a number: telephone numbers have spaces too.
        let fits = |n: &usize| fits(n) && !(is_spaced && NUMBERS[*n].thousands == Thousands::Space);
        let preferred = (0..NUMBERS.len()).filter(fits).find(|n| NUMBERS[*n].has_decimal_comma == has_comma);
        preferred.or_else(|| (0..NUMBERS.len()).find(fits)).map(|n| NUMBERS[n])
    }
}

fn given_format<'a>(column: &CsvColumn, known: &'a Known) -> Option<&'a TimeFormat> {
    let of_column = known.formats.iter().find(|(name, _)| same_name(name, &column.name)).map(|(_, format)| format);
    let is_timestamp = known.timestamp.as_ref().is_some_and(|name| same_name(name, &column.name));
    of_column.or_else(|| known.timestamp_format.as_ref().filter(|_| is_timestamp))
}

fn is_part(column: &CsvColumn, known: &Known) -> bool {
    known
        .date_and_time
        .as_ref()
        .is_some_and(|(date, time)| same_name(date, &column.name) || same_name(time, &column.name))
}

/// Detects the notation of a column whose type is known, and states the reason.
fn typed(
    column: &mut CsvColumn,
    column_type: ColumnType,
    facts: &Facts,
    file: &FileStyle,
    known: &Known,
) -> Result<String> {
    let is_given = known.columns.iter().any(|(n, _)| same_name(n, &column.name));
    let said = if is_given { "given" } else { "of the table" };
    match column_type {
        // If the magnitude does not determine the unit, the type that the user gave determines it.
        ColumnType::Timestamp(unit)
            if is_given && facts.is_unclear() && given_format(column, known).is_none() && known.table.is_none() =>
        {
            let unit = EpochUnit::from_column(unit);
            column.times = Some(TimeFormat::Epoch(unit));
            Ok(format!("{said}; {} since 1970, the unit of the type", unit.words()))
        }
        ColumnType::Timestamp(_) | ColumnType::Date => {
            let (format, why) = time_format(column, facts, file, known, true)?;
            column.times = format;
            Ok(if why.is_empty() { said.to_owned() } else { format!("{said}; {why}") })
        }
        ColumnType::Byte
        | ColumnType::Short
        | ColumnType::Int
        | ColumnType::Long
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Decimal { .. } => {
            if let Some((_, format)) = known.numbers.iter().find(|(n, _)| same_name(n, &column.name)) {
                column.numbers = *format;
                return Ok(format!("{said}; written as {format}"));
            }
            let given = file.thousands.is_some() || file.has_decimal_comma == Some(true);
            let bits = if facts.values > 0 && facts.number_bits != u32::MAX { facts.number_bits } else { 0 };
            column.numbers = match file.numbers(bits, false) {
                Some(format) => format,
                None if given && bits == 0 => NumberFormat {
                    has_decimal_comma: file.has_decimal_comma == Some(true),
                    thousands: file.thousands.unwrap_or_default(),
                },
                None => NumberFormat::PLAIN,
            };
            let words = number_words(column.numbers);
            Ok(if words.is_empty() { said.to_owned() } else { format!("{said}; {words}") })
        }
        _ => Ok(said.to_owned()),
    }
}

fn number_words(format: NumberFormat) -> String {
    let comma = if format.has_decimal_comma { "decimal comma" } else { "" };
    match format.thousands {
        Thousands::None => comma.to_owned(),
        thousands if comma.is_empty() => format!("thousands separated by {thousands}"),
        thousands => format!("{comma}, thousands separated by {thousands}"),
    }
}

/// Returns the time format of a column and the reason for it; no format if the values are not times.
fn time_format(
    column: &CsvColumn,
    facts: &Facts,
    file: &FileStyle,
    known: &Known,
    must_be: bool,
) -> Result<(Option<TimeFormat>, String)> {
    if let Some(format) = given_format(column, known) {
        return Ok((Some(format.clone()), format!("format \"{format}\" was given")));
    }
    let auto = |order: Option<DateOrder>, why: &str| Ok((Some(TimeFormat::Auto(order)), why.to_owned()));
    if facts.values == 0 || facts.time_bits == u32::MAX {
        if let Some(unit) = facts.epoch() {
            return auto(file.order, &format!("{} since 1970", unit.words()));
        }
        return auto(file.order, "");
    }
    let bits = facts.time_bits;
    if bits & (TIME | COMPACT) != 0 {
        return auto(file.order, "");
    }
    let (day, month) = ("day before month", "month before day");
    match (bits & DAY_FIRST != 0, bits & MONTH_FIRST != 0) {
        (true, false) => auto(Some(DateOrder::DayFirst), day),
        (false, true) => auto(Some(DateOrder::MonthFirst), month),
        (true, true) if !facts.is_ambiguous => auto(Some(DateOrder::DayFirst), ""),
        (true, true) => match file.order {
            Some(DateOrder::DayFirst) => auto(file.order, day),
            Some(DateOrder::MonthFirst) => auto(file.order, month),
            None if facts.has_short_year && !must_be => Ok((None, String::new())),
            None => Err(ambiguous(column)),
        },
        (false, false) => auto(file.order, "notations differ"),
    }
}

fn ambiguous(column: &CsvColumn) -> Error {
    Error::invalid(format!(
        "the dates of column \"{}\" can be read as day and month or as month and day; say which: date_order dmy or mdy \
         (in a URL dateOrder), or VARCHAR as type of the column",
        column.name
    ))
}

/// Detects type and notation of a column about which nothing is known, and states the reason.
fn untyped(
    column: &mut CsvColumn,
    facts: &Facts,
    rows: &[Record],
    index: usize,
    nulls: &Nulls,
    file: &FileStyle,
    known: &Known,
) -> Result<String> {
    let set = |column: &mut CsvColumn, column_type: ColumnType, why: &str| {
        column.column_type = Some(column_type);
        Ok(why.to_owned())
    };
    if let Some(format) = given_format(column, known) {
        column.times = Some(format.clone());
        let has_nanos = facts.decimals > 6 || *format == TimeFormat::Epoch(EpochUnit::Nanos);
        let unit = if has_nanos { TimeUnit::Nanos } else { TimeUnit::Micros };
        return set(column, ColumnType::Timestamp(unit), &format!("format \"{format}\" was given"));
    }
    if is_part(column, known) {
        column.times = Some(TimeFormat::Auto(file.order));
        return set(column, ColumnType::Timestamp(TimeUnit::Micros), "a part of the designated timestamp");
    }
    if facts.values == 0 {
        return set(column, ColumnType::Varchar, "no value in the sample");
    }
    let bits = facts.bits;
    let is_boolean = |n: &usize| bits & boolean_bit(*n) != 0 && (*n == 0 || (facts.has_true && facts.has_false));
    if let Some(n) = (0..BOOLEANS.len()).find(is_boolean) {
        return set(column, ColumnType::Boolean, &format!("{} and {}", BOOLEANS[n].0, BOOLEANS[n].1));
    }
    if bits & NUMBER != 0
        && let Some(format) = file.numbers(bits, facts.is_spaced)
    {
        let texts = rows.iter().filter_map(|row| text_of(row, index, nulls));
        let (column_type, why) = number_type(texts, format);
        column.numbers = format;
        if matches!(column_type, ColumnType::Varchar) {
            column.numbers = NumberFormat::PLAIN;
        }
        let words = number_words(format);
        return set(column, column_type, &if words.is_empty() { why.to_owned() } else { format!("{why}; {words}") });
    }
    if bits & (TIME | DAY_FIRST | MONTH_FIRST) != 0 && is_date(column, facts) {
        let (format, why) = time_format(column, facts, file, known, false)?;
        if let Some(format) = format {
            column.times = Some(format);
            let column_type = match (facts.has_time, facts.decimals > 6) {
                (false, _) => ColumnType::Date,
                (true, true) => ColumnType::Timestamp(TimeUnit::Nanos),
                (true, false) => ColumnType::Timestamp(TimeUnit::Micros),
            };
            return set(column, column_type, if why.is_empty() { "times" } else { &why });
        }
    }
    if bits & UUID != 0 {
        return set(column, ColumnType::Uuid, "UUIDs");
    }
    if bits & IPV4 != 0 {
        return set(column, ColumnType::Ipv4, "addresses");
    }
    text(column, facts, rows, index, nulls)
}

/// Dates without time and with two-digit years could be version numbers: only the column name decides.
fn is_date(column: &CsvColumn, facts: &Facts) -> bool {
    !facts.has_short_year || facts.has_time || is_time_name(&column.name)
}

fn text(column: &mut CsvColumn, facts: &Facts, rows: &[Record], index: usize, nulls: &Nulls) -> Result<String> {
    let texts: Vec<&str> = rows.iter().filter_map(|row| text_of(row, index, nulls)).collect();
    let different = texts.iter().collect::<HashSet<_>>().len();
    let repeats = different * 2 <= texts.len() && different <= SYMBOLS_MAX;
    column.column_type = Some(if repeats { ColumnType::Symbol } else { ColumnType::Varchar });
    let breaker = match &facts.breaker {
        Some(text) => format!("text, because of \"{text}\""),
        None => "text".to_owned(),
    };
    Ok(format!("{breaker}; {different} different of {}", texts.len()))
}

/// Returns the narrowest numeric type that keeps all digits of integers.
fn number_type<'a>(texts: impl Iterator<Item = &'a str>, format: NumberFormat) -> (ColumnType, &'static str) {
    let (mut whole, mut decimals) = (0, 0);
    let (mut is_whole, mut is_long, mut is_exact, mut is_decimal) = (true, true, true, true);
    for text in texts {
        let Some((plain, shape)) = format.plain(text) else {
            // Infinity or NaN.
            (is_whole, is_decimal) = (false, false);
            continue;
        };
        let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
        let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
        (whole, decimals) = (whole.max(before.len()), decimals.max(after.len()));
        if shape.has_decimals || shape.has_exponent {
            is_whole = false;
            is_decimal &= !shape.has_exponent;
        } else {
            let long = plain.parse::<i64>();
            is_long &= long.is_ok();
            is_exact &= long.is_ok_and(|value| value.unsigned_abs() <= EXACT_DOUBLE);
        }
    }
    let fits = whole + decimals <= DECIMAL_DIGITS;
    let decimal = |scale: usize| ColumnType::Decimal { precision: DECIMAL_DIGITS as u8, scale: scale as u8 };
    match (is_whole, is_long) {
        (true, true) => (ColumnType::Long, "integers"),
        (true, false) if fits => (decimal(0), "integers of more than 64 bits"),
        (false, _) if is_exact => (ColumnType::Double, "numbers"),
        (false, _) if is_decimal && fits => (decimal(decimals), "numbers that a double does not hold"),
        _ => (ColumnType::Varchar, "numbers that no type holds without loss"),
    }
}

/// Rejects time columns whose numbers have no certain unit.
///
/// # Errors
/// The unit of the numbers of a time column is unknown.
pub(super) fn check(columns: &[CsvColumn], choices: &[Choice], known: &Known) -> Result<()> {
    for (column, Choice { facts, .. }) in columns.iter().zip(choices) {
        let is_time = matches!(column.column_type, Some(ColumnType::Timestamp(_) | ColumnType::Date));
        let is_auto = matches!(column.times, Some(TimeFormat::Auto(_)));
        if is_time && is_auto && facts.is_unclear() && !is_part(column, known) {
            return Err(Error::invalid(format!(
                "column \"{}\" has numbers whose unit is not clear: they are not seconds, milli-, micro- or nanoseconds \
                 since 1970 of a time after 1973; say what they are by a format epoch_s, epoch_ms, epoch_us or epoch_ns",
                column.name
            )));
        }
    }
    Ok(())
}
