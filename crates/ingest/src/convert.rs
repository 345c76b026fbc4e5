//! Converts a batch's column to the type of the table's column.
//!
//! Input: a [`BatchColumn`] and the target type. Output: the column in the target type, or the first row whose value
//! cannot be converted. Values are rounded only as the table below states. NULL stays NULL and is never examined, so a
//! column of NULLs converts to any type.
//!
//! | from | to | rule |
//! |---|---|---|
//! | BOOLEAN | BYTE … LONG, FLOAT, DOUBLE | 0 or 1 |
//! | BYTE, SHORT, INT, LONG | each other | within the range |
//! | | FLOAT, DOUBLE | to the nearest |
//! | | DECIMAL | within the precision |
//! | | TIMESTAMP (any unit) | counts in the unit of the column |
//! | | DATE | milliseconds since 1970-01-01, rounded down to the day |
//! | FLOAT | DOUBLE | exact |
//! | DOUBLE | FLOAT | to the nearest; a number that becomes infinite is out of range |
//! | FLOAT, DOUBLE | DECIMAL | the shortest text that reads back as the number, which must fit exactly |
//! | DECIMAL | DECIMAL | exact: no digit but zeros is dropped |
//! | | FLOAT, DOUBLE | to the nearest |
//! | TIMESTAMP | another unit | rounded down; within the range |
//! | | DATE | rounded down to the day |
//! | DATE | TIMESTAMP (any unit) | its midnight, within the range |
//! | all above, SYMBOL, JSON | VARCHAR, SYMBOL | the text: shortest for numbers, `true`, ISO 8601 |
//! | VARCHAR, SYMBOL | DECIMAL, UUID, IPV4, JSON, DATE, TIMESTAMP | must be written as the type is |
//!
//! All other conversions are errors, as in the line protocol of QuestDB 9. This table extends QuestDB's by the text of
//! numbers and times, by VARCHAR to times and JSON, and by SYMBOL to all targets of VARCHAR.

pub(crate) mod decimal;
pub(crate) mod json;
mod problem;
pub(crate) mod text;

use decimal::{decimal_values, fit, parse_decimal};
use hashbrown::HashMap;
use problem::Failure;
pub(crate) use problem::Problem;
use std::borrow::Cow;
use tidalite_types::column_type::Physical;
use tidalite_types::{BatchColumn, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

/// The first row whose value cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError {
    pub row: usize,
    /// Names the value and the type; the caller adds the column.
    pub message: String,
}

/// Converts a column; returns `Ok(None)` if the column already has the type.
///
/// # Errors
/// Names the first row that cannot be converted.
pub fn convert(column: &BatchColumn, to: ColumnType) -> Result<Option<BatchColumn>, ConvertError> {
    if column.column_type == to {
        return Ok(None);
    }
    let values = values_as(column, to)
        .map_err(|(row, problem)| ConvertError { row, message: message(column, row, to, problem) })?;
    let validity = column.column.validity.clone();
    let (values, dictionary) = match values {
        Values::Views(texts) if to == ColumnType::Symbol => symbols_of(&texts, validity.as_ref()),
        values => (values, Views::new()),
    };
    Ok(Some(BatchColumn {
        name: column.name.clone(),
        column_type: to,
        column: Column { values, validity },
        dictionary,
        narrower: None,
    }))
}

/// Returns the type of a column that a batch creates.
///
/// Decimals of the line protocol arrive as `DECIMAL(38, digits after the point in this batch)`. QuestDB does not create
/// columns for them. Tidalite creates columns with 18 digits after the point and 20 before it for every batch, so that
/// the type does not depend on the division of rows into batches.
#[must_use]
pub fn type_of_new_column(batch_type: ColumnType) -> ColumnType {
    match batch_type {
        ColumnType::Decimal { precision: 38, .. } => ColumnType::Decimal { precision: 38, scale: 18 },
        other => other,
    }
}

fn message(column: &BatchColumn, row: usize, to: ColumnType, problem: Problem) -> String {
    let value = text::shown(column, row);
    match problem {
        Problem::Type => format!("cannot cast value {value} of type {} to type {to}", column.column_type),
        Problem::Range => format!("value {value} is out of range for type {to}"),
        Problem::Digits => format!("value {value} does not fit type {to} without losing digits"),
        Problem::Syntax => format!("invalid input syntax for type {to}: {value}"),
        Problem::Depth => too_deep(),
        Problem::Room => "more than 2 GiB of text in one column of a batch".to_owned(),
    }
}

pub(crate) fn too_deep() -> String {
    format!("JSON is nested more than {} levels deep", tidalite_types::jsonb::DEPTH_MAX)
}

/// The converted values; texts as views when `to` is a Symbol.
fn values_as(column: &BatchColumn, to: ColumnType) -> Result<Values, Failure> {
    use ColumnType::{
        Boolean, Byte, Date, Decimal, Double, Float, Int, Ipv4, Json, Jsonb, Long, Short, Symbol, Timestamp, Uuid,
        Varchar,
    };
    let rows = Rows { validity: column.column.validity.as_ref() };
    let values = &column.column.values;
    match (column.column_type, to, values) {
        (from, Varchar | Symbol, _) if text::has_text(from) => text::views_of(column).map(Values::Views),
        (Boolean, Byte | Short | Int | Long | Float | Double, Values::Bit(bits)) => {
            let longs: Vec<i64> = bits.iter().map(i64::from).collect();
            integers_as(&longs, &rows, to)
        }
        (Byte | Short | Int | Long, _, _) => integers_as(&widened(values), &rows, to),
        (Float, Double, Values::F32(v)) => Ok(Values::F64(v.iter().map(|&v| f64::from(v)).collect())),
        (Double, Float, Values::F64(v)) => floats(v, &rows).map(Values::F32),
        (Float, Decimal { precision, scale }, Values::F32(v)) => {
            rows.map(v, |v| decimal_of_float(&format!("{v:e}"), precision, scale)).map(|v| decimal_values(v, to))
        }
        (Double, Decimal { precision, scale }, Values::F64(v)) => {
            rows.map(v, |v| decimal_of_float(&format!("{v:e}"), precision, scale)).map(|v| decimal_values(v, to))
        }
        (Decimal { scale: from, .. }, Decimal { precision, scale }, _) => rows
            .map(&decimal::widened(values), |v| fit(v, i32::from(from), precision, scale))
            .map(|v| decimal_values(v, to)),
        (Decimal { scale, .. }, Float, _) => {
            Ok(Values::F32(decimal::widened(values).iter().map(|&v| decimal::to_f32(v, scale)).collect()))
        }
        (Decimal { scale, .. }, Double, _) => {
            Ok(Values::F64(decimal::widened(values).iter().map(|&v| decimal::to_f64(v, scale)).collect()))
        }
        (Timestamp(from), Timestamp(unit), Values::I64(v)) => {
            rows.map(v, |v| from.convert(v, unit).ok_or(Problem::Range)).map(Values::I64)
        }
        (Timestamp(unit), Date, Values::I64(v)) => days(v, unit, &rows),
        (Date, Timestamp(unit), Values::I32(v)) => {
            rows.map(v, |v| text::in_unit(i64::from(v) * 86_400, 0, unit)).map(Values::I64)
        }
        (Varchar | Symbol, Decimal { precision, scale }, _) => {
            rows.parse(column, |text| decimal_of(text, precision, scale)).map(|v| decimal_values(v, to))
        }
        (Varchar | Symbol, Uuid, _) => rows.parse(column, text::uuid).map(Values::B16),
        (Varchar | Symbol, Ipv4, _) => rows.parse(column, text::ipv4).map(Values::U32),
        (Varchar | Symbol, Date, _) => rows.parse(column, text::date).map(Values::I32),
        (Varchar | Symbol, Timestamp(unit), _) => rows.parse(column, |t| text::timestamp(t, unit)).map(Values::I64),
        (Varchar | Symbol, Json, _) => {
            rows.parse(column, json::check)?;
            text::views_of(column).map(Values::Views)
        }
        (Jsonb, Json, _) => text::views_of(column).map(Values::Views),
        (Varchar | Symbol | Json, Jsonb, _) => text::jsonb_of(column).map(Values::Views),
        _ => rows.none_fit(values.len(), to.physical()),
    }
}

/// The rows that have values.
struct Rows<'a> {
    validity: Option<&'a Bitmap>,
}

impl Rows<'_> {
    fn has_value(&self, row: usize) -> bool {
        self.validity.is_none_or(|v| v.get(row))
    }

    /// Converts each value; NULL rows get the default.
    fn map<T: Copy, U: Default>(
        &self,
        values: &[T],
        convert: impl Fn(T) -> Result<U, Problem>,
    ) -> Result<Vec<U>, Failure> {
        let one = |(row, &value): (usize, &T)| match self.has_value(row) {
            true => convert(value).map_err(|problem| (row, problem)),
            false => Ok(U::default()),
        };
        values.iter().enumerate().map(one).collect()
    }

    fn parse<U: Default>(
        &self,
        column: &BatchColumn,
        parse: impl Fn(&str) -> Result<U, Problem>,
    ) -> Result<Vec<U>, Failure> {
        let one = |row: usize| match self.has_value(row) {
            true => std::str::from_utf8(text::bytes_of(column, row))
                .map_err(|_| Problem::Syntax)
                .and_then(&parse)
                .map_err(|problem| (row, problem)),
            false => Ok(U::default()),
        };
        (0..column.column.len()).map(one).collect()
    }

    /// For types without a conversion: fails at the first value.
    fn none_fit(&self, rows: usize, physical: Physical) -> Result<Values, Failure> {
        match (0..rows).find(|&row| self.has_value(row)) {
            Some(row) => Err((row, Problem::Type)),
            None => Ok(Column::nulls(physical, rows).values),
        }
    }
}

// Integers

fn widened(values: &Values) -> Cow<'_, [i64]> {
    match values {
        Values::I8(v) => v.iter().map(|&v| i64::from(v)).collect(),
        Values::I16(v) => v.iter().map(|&v| i64::from(v)).collect(),
        Values::I32(v) => v.iter().map(|&v| i64::from(v)).collect(),
        Values::I64(v) => Cow::Borrowed(v),
        other => unreachable!("integers stored as {:?}", other.physical()),
    }
}

fn integers_as(values: &[i64], rows: &Rows<'_>, to: ColumnType) -> Result<Values, Failure> {
    match to {
        ColumnType::Byte => narrowed(values, rows, |v| v as i8).map(Values::I8),
        ColumnType::Short => narrowed(values, rows, |v| v as i16).map(Values::I16),
        ColumnType::Int => narrowed(values, rows, |v| v as i32).map(Values::I32),
        ColumnType::Long | ColumnType::Timestamp(_) => Ok(Values::I64(values.to_vec())),
        ColumnType::Float => Ok(Values::F32(values.iter().map(|&v| v as f32).collect())),
        ColumnType::Double => Ok(Values::F64(values.iter().map(|&v| v as f64).collect())),
        ColumnType::Decimal { precision, scale } => {
            rows.map(values, |v| fit(i128::from(v), 0, precision, scale)).map(|v| decimal_values(v, to))
        }
        ColumnType::Date => days(values, TimeUnit::Millis, rows),
        _ => rows.none_fit(values.len(), to.physical()),
    }
}

/// Checks all values in one loop that the compiler can vectorise; a value out of range is searched afterwards.
fn narrowed<T: Into<i64>>(values: &[i64], rows: &Rows<'_>, narrow: fn(i64) -> T) -> Result<Vec<T>, Failure> {
    let fits = |v: i64| narrow(v).into() == v;
    if !values.iter().fold(true, |all, &v| all & fits(v))
        && let Some(row) = (0..values.len()).find(|&row| !fits(values[row]) && rows.has_value(row))
    {
        return Err((row, Problem::Range));
    }
    Ok(values.iter().map(|&v| narrow(v)).collect())
}

// Times and doubles

fn days(values: &[i64], unit: TimeUnit, rows: &Rows<'_>) -> Result<Values, Failure> {
    let day = 86_400 * unit.per_second();
    let days: Vec<i64> = values.iter().map(|v| v.div_euclid(day)).collect();
    narrowed(&days, rows, |v| v as i32).map(Values::I32)
}

fn floats(values: &[f64], rows: &Rows<'_>) -> Result<Vec<f32>, Failure> {
    rows.map(values, |v| match v as f32 {
        narrow if narrow.is_infinite() && v.is_finite() => Err(Problem::Range),
        narrow => Ok(narrow),
    })
}

/// Converts a floating-point number; `shortest` is its text in Rust.
fn decimal_of_float(shortest: &str, precision: u8, scale: u8) -> Result<i128, Problem> {
    match shortest {
        "NaN" | "inf" | "-inf" => Err(Problem::Range),
        _ => decimal_of(shortest, precision, scale),
    }
}

pub(crate) fn decimal_of(text: &str, precision: u8, scale: u8) -> Result<i128, Problem> {
    parse_decimal(text).and_then(|(digits, from)| fit(digits, from, precision, scale))
}

// Symbols

/// Returns codes in order of first appearance, and their strings.
fn symbols_of(texts: &Views, validity: Option<&Bitmap>) -> (Values, Views) {
    let rows = Rows { validity };
    let mut dictionary = Views::new();
    let mut codes: HashMap<&[u8], u32> = HashMap::new();
    let mut code_of = |row: usize| {
        let text = texts.get(row);
        *codes.entry(text).or_insert_with(|| {
            dictionary.push(text);
            dictionary.len() as u32 - 1
        })
    };
    let values = (0..texts.len()).map(|row| if rows.has_value(row) { code_of(row) } else { 0 }).collect();
    (Values::U32(values), dictionary)
}

#[cfg(test)]
mod tests;
