//! The values of the designated timestamp.

use crate::convert::convert;
use tidalite_types::time::days_from_civil;
use tidalite_types::{BatchColumn, BatchTimestamps, Column, ColumnType, TableSchema, TimeUnit, Values};

/// An error message and the index of the row of the batch that caused it.
pub(super) type BadRow = (String, usize);

/// Checks the values of the designated timestamp.
///
/// Returns the values of `timestamps` in the table's unit if a conversion is required, or the error and its row.
pub(super) fn check_designated(
    schema: &TableSchema,
    timestamps: Option<&BatchTimestamps>,
    given: Option<&Column>,
) -> Result<Option<Vec<i64>>, BadRow> {
    let Some((column, unit)) = schema.timestamp() else {
        return match timestamps {
            Some(_) => {
                Err((format!("table \"{}\" has no designated timestamp, which line protocol needs", schema.name), 0))
            }
            None => Ok(None),
        };
    };
    let (values, converted) = match (timestamps, given.map(|c| (&c.values, &c.validity))) {
        (Some(timestamps), None) if timestamps.unit == unit => (&timestamps.values, None),
        (Some(timestamps), None) => (&timestamps.values, Some(to_unit(timestamps, unit)?)),
        (None, Some((Values::I64(values), validity))) => {
            if let Some(row) = validity.as_ref().and_then(|v| v.iter().position(|valid| !valid)) {
                return Err((format!("designated timestamp \"{}\" cannot be NULL", column.name), row));
            }
            (values, None)
        }
        (Some(_), Some(_)) => {
            return Err((
                format!("column \"{}\" is the designated timestamp and was given a second value", column.name),
                0,
            ));
        }
        (None, _) => {
            return Err((
                format!("designated timestamp \"{}\" of table \"{}\" has no value", column.name, schema.name),
                0,
            ));
        }
    };
    check_years(converted.as_ref().unwrap_or(values), unit)?;
    Ok(converted)
}

/// Returns the times of rows of line protocol in `unit`.
///
/// A field that supplies the designated timestamp takes precedence over the timestamp of its line, as in QuestDB.
/// Integers of the field have the unit of the lines' timestamps.
pub(super) fn line_times(
    field: Option<&BatchColumn>,
    timestamps: &BatchTimestamps,
    unit: TimeUnit,
) -> Result<Vec<i64>, BadRow> {
    let given = field.map(|field| given_times(field, timestamps, unit)).transpose()?;
    let time = |(row, &at_end): (usize, &i64)| match (field, &given) {
        (Some(field), Some(given)) if field.column.is_valid(row) => Ok(given[row]),
        _ => timestamps.unit.convert(at_end, unit).ok_or_else(|| out_of_range(at_end, unit, row)),
    };
    let values = timestamps.values.iter().enumerate().map(time).collect::<Result<Vec<i64>, BadRow>>()?;
    check_years(&values, unit)?;
    Ok(values)
}

/// Converts the values of a field to times; values of NULL rows are undefined.
fn given_times(field: &BatchColumn, timestamps: &BatchTimestamps, unit: TimeUnit) -> Result<Vec<i64>, BadRow> {
    if let (ColumnType::Long, Values::I64(values), Some(line)) =
        (field.column_type, &field.column.values, timestamps.line)
    {
        let convert = |(row, &value): (usize, &i64)| match line.integers.convert(value, unit) {
            Some(time) => Ok(time),
            None if !field.column.is_valid(row) => Ok(0),
            None => Err(out_of_range(value, unit, row)),
        };
        return values.iter().enumerate().map(convert).collect();
    }
    let converted = convert(field, ColumnType::Timestamp(unit)).map_err(|e| (e.message, e.row))?;
    match converted.map_or_else(|| field.column.values.clone(), |converted| converted.column.values) {
        Values::I64(values) => Ok(values),
        other => Err((format!("times are stored as {:?}", other.physical()), 0)),
    }
}

fn out_of_range(value: i64, unit: TimeUnit, row: usize) -> BadRow {
    (format!("timestamp {value} is out of range for {}", ColumnType::Timestamp(unit)), row)
}

fn to_unit(timestamps: &BatchTimestamps, unit: TimeUnit) -> Result<Vec<i64>, BadRow> {
    let convert = |(row, &value): (usize, &i64)| {
        timestamps.unit.convert(value, unit).ok_or_else(|| out_of_range(value, unit, row))
    };
    timestamps.values.iter().enumerate().map(convert).collect()
}

fn check_years(values: &[i64], unit: TimeUnit) -> Result<(), BadRow> {
    let range = years(unit);
    match values.iter().position(|ts| !range.contains(ts)) {
        None => Ok(()),
        Some(row) => Err((format!("timestamp {} is outside the years 0001 to 9999", values[row]), row)),
    }
}

/// Range of timestamps that calendars and partition names can represent.
fn years(unit: TimeUnit) -> std::ops::RangeInclusive<i64> {
    let at = |year| days_from_civil(year, 1, 1).saturating_mul(86_400).saturating_mul(unit.per_second());
    at(1)..=at(10_000) - 1
}
