//! Converts values to text, and text to values.

use super::decimal::decimal_text;
use super::problem::{Failure, Problem};
use tidalite_types::time::{civil_from_days, days_from_civil, format_timestamp};
use tidalite_types::{BatchColumn, ColumnType, TimeUnit, Values, Views, jsonb, uuid};

/// Largest number of characters of a value in an error message.
const SHOWN_MAX: usize = 64;

/// Returns true if VARCHAR and SYMBOL accept values of this type.
pub(super) fn has_text(from: ColumnType) -> bool {
    use ColumnType::{Binary, DoubleArray, Ipv4, Uuid};
    !matches!(from, Binary | DoubleArray { .. } | Ipv4 | Uuid)
}

/// Returns the text of every value.
pub(super) fn views_of(column: &BatchColumn) -> Result<Views, Failure> {
    let rows = column.column.len();
    let is_text = is_text(column.column_type);
    let mut views = Views::with_capacity(rows);
    let mut text;
    for row in 0..rows {
        if !column.column.is_valid(row) {
            views.push_empty(1);
            continue;
        }
        let bytes = if is_text {
            bytes_of(column, row)
        } else {
            text = value_text(column, row);
            text.as_bytes()
        };
        if !views.has_room(bytes.len()) {
            return Err((row, Problem::Room));
        }
        views.push(bytes);
    }
    Ok(views)
}

/// Returns every text as a JSONB value.
pub(super) fn jsonb_of(column: &BatchColumn) -> Result<Views, Failure> {
    let mut views = Views::with_capacity(column.column.len());
    for row in 0..column.column.len() {
        if !column.column.is_valid(row) {
            views.push_empty(1);
            continue;
        }
        let text = std::str::from_utf8(bytes_of(column, row)).map_err(|_| (row, Problem::Syntax))?;
        let value = jsonb(text).map_err(|problem| (row, problem))?;
        if !views.has_room(value.len()) {
            return Err((row, Problem::Room));
        }
        views.push(value.as_bytes());
    }
    Ok(views)
}

/// Returns the text of a JSONB value.
pub(crate) fn jsonb(text: &str) -> Result<String, Problem> {
    jsonb::normalize(text).map_err(|error| match error {
        jsonb::JsonbError::Syntax => Problem::Syntax,
        jsonb::JsonbError::Depth => Problem::Depth,
    })
}

fn is_text(column_type: ColumnType) -> bool {
    column_type.is_text() || column_type == ColumnType::Symbol
}

/// Returns the bytes of a row's string or binary value.
pub(super) fn bytes_of(column: &BatchColumn, row: usize) -> &[u8] {
    match &column.column.values {
        Values::U32(codes) => column.dictionary.get(codes[row] as usize),
        Values::Views(views) => views.get(row),
        other => unreachable!("text stored as {:?}", other.physical()),
    }
}

/// Returns the representation of a value in an error message.
pub(super) fn shown(column: &BatchColumn, row: usize) -> String {
    if !is_text(column.column_type) {
        return value_text(column, row);
    }
    let text = String::from_utf8_lossy(bytes_of(column, row));
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn value_text(column: &BatchColumn, row: usize) -> String {
    match (&column.column.values, column.column_type) {
        (Values::I32(v), ColumnType::Date) => date_text(v[row]),
        (Values::I32(v), ColumnType::Decimal { scale, .. }) => decimal_text(i128::from(v[row]), scale),
        (Values::I64(v), ColumnType::Decimal { scale, .. }) => decimal_text(i128::from(v[row]), scale),
        (Values::I128(v), ColumnType::Decimal { scale, .. }) => decimal_text(v[row], scale),
        (Values::I64(v), ColumnType::Timestamp(unit)) => format_timestamp(v[row], unit),
        (Values::Bit(v), _) => v.get(row).to_string(),
        (Values::I8(v), _) => v[row].to_string(),
        (Values::I16(v), _) => v[row].to_string(),
        (Values::I32(v), _) => v[row].to_string(),
        (Values::I64(v), _) => v[row].to_string(),
        (Values::I128(v), _) => v[row].to_string(),
        (Values::F32(v), _) => double_text(format!("{:?}", v[row])),
        (Values::F64(v), _) => double_text(format!("{:?}", v[row])),
        (Values::U32(v), _) => std::net::Ipv4Addr::from(v[row]).to_string(),
        (Values::B16(v), _) => format!("{:032x}", u128::from_be_bytes(v[row])),
        (Values::Views(v), _) => format!("of {} bytes", v.get(row).len()),
    }
}

fn date_text(days: i32) -> String {
    let (year, month, day) = civil_from_days(i64::from(days));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Removes the `.0` of whole numbers from Rust's shortest text; infinity has PostgreSQL's name.
fn double_text(shortest: String) -> String {
    match shortest.as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        text => text.strip_suffix(".0").unwrap_or(text).to_owned(),
    }
}

/// Parses a UUID in any form of PostgreSQL.
pub(crate) fn uuid(text: &str) -> Result<[u8; 16], Problem> {
    uuid::parse(text).ok_or(Problem::Syntax)
}

/// Returns true for a UUID of `8-4-4-4-12` hexadecimal digits.
///
/// Other forms of a UUID do not make a column of a file one of UUIDs: 32 digits may be a hash.
pub(crate) fn has_uuid_form(text: &str) -> bool {
    text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && uuid::parse(text).is_some()
}

/// Parses an IPv4 address of four decimal numbers up to 255.
pub(crate) fn ipv4(text: &str) -> Result<u32, Problem> {
    text.parse::<std::net::Ipv4Addr>().map(u32::from).map_err(|_| Problem::Syntax)
}

/// Parses the formats of [`timestamp`] and returns the UTC day.
pub(crate) fn date(text: &str) -> Result<i32, Problem> {
    let (seconds, _) = instant(text).ok_or(Problem::Syntax)?;
    i32::try_from(seconds.div_euclid(86_400)).map_err(|_| Problem::Range)
}

/// Parses ISO 8601; digits finer than the unit are dropped.
///
/// A date `2026-11-21`, optionally followed by a time `T12:30`, `T12:30:59`, `T12:30:59.123456789` and a zone `Z`,
/// `+01`, `+01:00`, `+0100`; the default zone is UTC. A space may replace the `T`.
pub(crate) fn timestamp(text: &str, unit: TimeUnit) -> Result<i64, Problem> {
    let (seconds, nanos) = instant(text).ok_or(Problem::Syntax)?;
    in_unit(seconds, nanos, unit)
}

pub(crate) fn in_unit(seconds: i64, nanos: i64, unit: TimeUnit) -> Result<i64, Problem> {
    let per_second = unit.per_second();
    let value = i128::from(seconds) * i128::from(per_second) + i128::from(nanos / (1_000_000_000 / per_second));
    i64::try_from(value).map_err(|_| Problem::Range)
}

/// Returns the seconds since 1970-01-01 and the nanoseconds of the second.
fn instant(text: &str) -> Option<(i64, i64)> {
    let mut rest = text.as_bytes();
    let year = number(&mut rest, 4)?;
    expect(&mut rest, b"-")?;
    let month = number(&mut rest, 2)?;
    expect(&mut rest, b"-")?;
    let day = number(&mut rest, 2)?;
    let days = days_from_civil(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    if !(1..=12).contains(&month) || civil_from_days(days) != (year, month as u32, day as u32) {
        return None;
    }
    let (seconds, nanos) = if rest.is_empty() { (0, 0) } else { time_of_day(&mut rest)? };
    rest.is_empty().then_some((days * 86_400 + seconds, nanos))
}

/// Parses from the `T` to the end; returns the seconds in UTC since the midnight of the date.
fn time_of_day(rest: &mut &[u8]) -> Option<(i64, i64)> {
    expect(rest, b"Tt ")?;
    let hour = number(rest, 2).filter(|h| *h < 24)?;
    expect(rest, b":")?;
    let minute = number(rest, 2).filter(|m| *m < 60)?;
    let (mut second, mut nanos) = (0, 0);
    if expect(rest, b":").is_some() {
        second = number(rest, 2).filter(|s| *s < 60)?;
        if expect(rest, b".").is_some() {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            nanos = (1..=9).contains(&digits).then(|| number(rest, digits))?? * 10_i64.pow(9 - digits as u32);
        }
    }
    Some((hour * 3_600 + minute * 60 + second - zone(rest)?, nanos))
}

/// Returns the seconds ahead of UTC.
fn zone(rest: &mut &[u8]) -> Option<i64> {
    if rest.is_empty() || expect(rest, b"Zz").is_some() {
        return Some(0);
    }
    let sign = if expect(rest, b"+-")? == b'-' { -1 } else { 1 };
    let hours = number(rest, 2).filter(|h| *h < 24)?;
    let has_colon = expect(rest, b":").is_some();
    let minutes = if rest.is_empty() && !has_colon { 0 } else { number(rest, 2).filter(|m| *m < 60)? };
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// Consumes exactly `digits` digits.
fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let head = rest.split_off(..digits)?;
    head.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

/// Consumes one byte if it is among `bytes`.
fn expect(rest: &mut &[u8], bytes: &[u8]) -> Option<u8> {
    let first = rest.first().copied().filter(|b| bytes.contains(b))?;
    *rest = &rest[1..];
    Some(first)
}
