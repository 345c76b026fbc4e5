//! Detects the designated timestamp, and chooses the partition interval for its times.

use super::super::times::{EpochUnit, TimeFormat};
use super::super::{CsvColumn, Nulls};
use super::column::Choice;
use super::header::text_of;
use super::known::Known;
use super::names::{TIME_NAMES, is_time_name, list};
use super::records::Record;
use crate::{Error, Result};
use tidalite_types::schema::same_name;
use tidalite_types::{ColumnType, PartitionBy, TimeUnit};

/// Smallest desired number of rows of a partition, so that a table does not have many small files.
const PARTITION_ROWS: f64 = 500_000.0;
/// Name of the designated timestamp of a new table if the file has two columns for it.
const JOINED_NAME: &str = "timestamp";

/// Chooses the designated timestamp: the given one, or the most likely column without NULLs in the sample.
///
/// The column gets a timestamp type.
pub(super) fn designate(
    columns: &mut Vec<CsvColumn>,
    choices: &mut Vec<Choice>,
    rows: &[Record],
    known: &Known,
    nulls: &Nulls,
) -> Result<Option<String>> {
    if let Some((date, time)) = &known.date_and_time {
        return join(columns, choices, (date, time), known).map(Some);
    }
    if let Some(name) = &known.timestamp {
        let Some(i) = columns.iter().position(|c| same_name(&c.name, name)) else {
            let message = format!("timestamp column \"{name}\" is not in the file, which has {}", list(columns));
            return Err(Error::invalid(message));
        };
        if !matches!(columns[i].column_type, Some(ColumnType::Timestamp(_))) {
            let unit = named_unit(&choices[i], &columns[i].name)?;
            make_time(&mut columns[i], &mut choices[i], unit);
        }
        return Ok(Some(columns[i].name.clone()));
    }
    if known.table.is_some() {
        return Ok(None);
    }
    let is_full = |i: usize| rows.iter().all(|row| text_of(row, i, nulls).is_some());
    let unit_of = |i: usize, by_name: bool| {
        let Choice { facts, is_said, .. } = &choices[i];
        let unit = match columns[i].column_type {
            Some(ColumnType::Timestamp(unit)) => Some(unit),
            Some(ColumnType::Date) if !is_said => Some(TimeUnit::Micros),
            Some(ColumnType::Long | ColumnType::Double) if by_name && !is_said => number_unit(facts),
            _ => None,
        };
        unit.filter(|_| is_full(i))
    };
    let by_name = TIME_NAMES.iter().find_map(|name| {
        let i = columns.iter().position(|c| same_name(&c.name, name))?;
        Some((i, unit_of(i, true)?))
    });
    let first = || (0..columns.len()).find_map(|i| Some((i, unit_of(i, false)?)));
    let first_named = || (0..columns.len()).find_map(|i| Some((i, unit_of(i, is_time_name(&columns[i].name))?)));
    let Some((i, unit)) = by_name.or_else(first).or_else(first_named) else { return Ok(None) };
    make_time(&mut columns[i], &mut choices[i], unit);
    Ok(Some(columns[i].name.clone()))
}

/// Makes a column the designated timestamp.
fn make_time(column: &mut CsvColumn, choice: &mut Choice, unit: TimeUnit) {
    let is_number = matches!(column.column_type, Some(ColumnType::Long | ColumnType::Double));
    column.column_type = Some(ColumnType::Timestamp(unit));
    column.times.get_or_insert(TimeFormat::Auto(None));
    column.numbers = Default::default();
    let why = &mut choice.finding.why;
    if is_number && choice.facts.is_compact() {
        *why = "dates of digits".to_owned();
    } else if let Some(epoch) = choice.facts.epoch().filter(|_| is_number) {
        *why = format!("{} since 1970", epoch.words());
    }
    why.push_str("; the designated timestamp");
}

/// Returns the unit of numbers that are times.
fn number_unit(facts: &super::column::Facts) -> Option<TimeUnit> {
    if facts.is_compact() {
        return Some(if facts.decimals > 6 { TimeUnit::Nanos } else { TimeUnit::Micros });
    }
    facts.epoch().map(EpochUnit::column_unit)
}

/// Returns the unit of a column that the user named as designated timestamp.
fn named_unit(choice: &Choice, name: &str) -> Result<TimeUnit> {
    let facts = &choice.facts;
    match number_unit(facts) {
        Some(unit) => Ok(unit),
        None if facts.is_number() => Err(Error::invalid(format!(
            "timestamp column \"{name}\" has numbers that are not all seconds, milli-, micro- or nanoseconds since 1970; \
             a format says what they are (epoch_s, epoch_ms, epoch_us, epoch_ns)"
        ))),
        None => Ok(if facts.decimals > 6 { TimeUnit::Nanos } else { TimeUnit::Micros }),
    }
}

/// Combines a date column and a time-of-day column into a timestamp at the position of the date.
fn join(
    columns: &mut [CsvColumn],
    choices: &mut [Choice],
    (date, time): (&str, &str),
    known: &Known,
) -> Result<String> {
    let position = |name: &str| columns.iter().position(|c| same_name(&c.name, name));
    let (Some(date), Some(time)) = (position(date), position(time)) else {
        return Err(Error::invalid(format!("the date and the time are not in the file, which has {}", list(columns))));
    };
    if date == time {
        return Err(Error::invalid("the date and the time are one column"));
    }
    let name = known.timestamp.clone().unwrap_or_else(|| JOINED_NAME.to_owned());
    let is_taken = |(i, c): (usize, &CsvColumn)| i != date && i != time && same_name(&c.name, &name);
    if columns.iter().enumerate().any(is_taken) {
        return Err(Error::invalid(format!("the file has a column \"{name}\" beside the date and the time")));
    }
    let table_type = known.table.iter().flatten().find(|(n, _)| same_name(n, &name)).map(|(_, t)| *t);
    let unit = match table_type {
        Some(ColumnType::Timestamp(unit)) => unit,
        _ if choices[time].facts.decimals > 6 => TimeUnit::Nanos,
        _ => TimeUnit::Micros,
    };
    let time_name = columns[time].name.clone();
    columns[date].name.clone_from(&name);
    columns[date].column_type = Some(ColumnType::Timestamp(unit));
    columns[date].times.get_or_insert(TimeFormat::Auto(known.date_order));
    columns[time] = CsvColumn {
        name: time_name,
        column_type: Some(ColumnType::Timestamp(unit)),
        added_to: Some(date),
        ..CsvColumn::default()
    };
    Ok(name)
}

pub(super) fn partition_by(columns: &[CsvColumn], rows: &[Record], name: Option<&str>, nulls: &Nulls) -> PartitionBy {
    let Some(i) = name.and_then(|name| columns.iter().position(|c| c.name == name)) else { return PartitionBy::None };
    let Some(ColumnType::Timestamp(unit)) = columns[i].column_type else { return PartitionBy::None };
    let format = columns[i].times.clone().unwrap_or(TimeFormat::Auto(None));
    let times = rows.iter().filter_map(|row| format.timestamp(text_of(row, i, nulls)?, unit).ok());
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
    // An hour only if a day would have ten times too many rows.
    let fits = |(by, days): &&(PartitionBy, f64)| {
        rows_per_day * days >= if *by == PartitionBy::Hour { 10.0 * PARTITION_ROWS } else { PARTITION_ROWS }
    };
    by.iter().find(fits).map_or(PartitionBy::Year, |(by, _)| *by)
}
