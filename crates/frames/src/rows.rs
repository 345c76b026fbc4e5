//! Converts each column of a frame to a column of a table.
//!
//! | Arrow | stored as |
//! |---|---|
//! | bool | BOOLEAN |
//! | int8, int16, int32, int64 | BYTE, SHORT, INT, LONG |
//! | uint8, uint16, uint32 | the next wider: SHORT, INT, LONG |
//! | uint64 | LONG; a larger value is an error |
//! | float16, float32 | FLOAT |
//! | float64 | DOUBLE |
//! | decimal of up to 38 digits | DECIMAL |
//! | timestamp in s, ms / µs / ns, with a zone or without | TIMESTAMP_MS / TIMESTAMP / TIMESTAMP_NS, in UTC |
//! | date | DATE; TIMESTAMP when it is the designated one |
//! | text | VARCHAR, or SYMBOL where asked for |
//! | a dictionary of text | SYMBOL, or VARCHAR where asked for |
//! | other dictionaries, runs | the type of their values |
//! | binary | BINARY; of 16 bytes, UUID |
//! | lists of numbers, lists of these | DOUBLE[], DOUBLE[][] … |
//! | null | nothing: the column is not written |
//! | times of day, durations, intervals, structs, maps, unions | an error |
//!
//! An existing table has its own types; the commit converts values, and rejects values that do not fit.

use crate::room::{COMMIT_BYTES_MAX, Room};
use crate::symbols::{Symbols, is_text};
use crate::values::{Planned, column};
use crate::{Error, Result, lists};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit as ArrowUnit};
use tidalite_types::schema::same_name;
use tidalite_types::{Batch, BatchColumn, ColumnType, TableSchema, TimeUnit};

/// Metadata of a field in which NaN means a missing value, as in pandas.
pub const NAN_IS_NULL: &str = "tidalite.nan_is_null";

#[derive(Clone, Debug, Default)]
pub struct RowOptions {
    pub table: String,
    /// The column with the time of the rows.
    pub at: Option<String>,
    pub symbols: Symbols,
}

/// Mapping of frames of one schema to one table.
#[derive(Clone, Debug)]
pub struct RowPlan {
    table: String,
    columns: Vec<Planned>,
    /// Index in `columns`.
    designated: Option<usize>,
}

impl RowPlan {
    /// Creates a plan. `table` is the schema of the table, if it exists.
    ///
    /// # Errors
    /// Fails if a column cannot be stored, or the time of the rows is required but not given.
    pub fn new(schema: &Schema, options: &RowOptions, table: Option<&TableSchema>) -> Result<RowPlan> {
        let at = time_column(schema, options, table)?;
        let symbols = options.symbols.choose(schema)?;
        let mut columns: Vec<Planned> = Vec::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let is_designated = at == Some(index);
            let stored_name = match table.and_then(TableSchema::timestamp) {
                Some((designated, _)) if is_designated => designated.name.clone(),
                _ => field.name().clone(),
            };
            let existing = table.and_then(|t| t.column(&stored_name)).map(|c| c.column_type);
            let Some(column_type) = stored_type(field, symbols[index], existing, is_designated)? else { continue };
            if let Some(twin) = columns.iter().find(|c| same_name(&c.stored_name, &stored_name)) {
                let message = format!("it is there twice, also as \"{}\"", twin.name);
                return Err(
                    Error::of_column(field.name(), message).with_hint("names are compared without regard to case")
                );
            }
            let nan_is_null = field.metadata().contains_key(NAN_IS_NULL);
            columns.push(Planned {
                index,
                name: field.name().clone(),
                stored_name,
                column_type,
                nan_is_null,
                is_designated,
            });
        }
        if columns.is_empty() {
            return Err(Error::new("the frame has no column of a type that could be written"));
        }
        let designated = columns.iter().position(|c| c.is_designated);
        Ok(RowPlan { table: options.table.clone(), columns, designated })
    }

    /// Returns the name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.table
    }

    /// Returns the names and types of the columns of a new table.
    pub fn columns(&self) -> impl Iterator<Item = (&str, ColumnType)> {
        self.columns.iter().map(|c| (c.stored_name.as_str(), c.column_type))
    }

    /// Returns the name of the designated timestamp.
    #[must_use]
    pub fn designated(&self) -> Option<&str> {
        self.designated.map(|i| self.columns[i].stored_name.as_str())
    }

    /// Converts the rows to a batch. `rows_before` is the number of earlier rows of the frame, for error messages.
    ///
    /// # Errors
    /// Names the first value that cannot be stored; also fails if the rows exceed the limits of a commit.
    pub fn batch(&self, rows: &RecordBatch, rows_before: u64) -> Result<Batch> {
        self.batch_within(rows, rows_before, &mut Room::new(COMMIT_BYTES_MAX, 0))
    }

    pub(crate) fn batch_within(&self, rows: &RecordBatch, rows_before: u64, room: &mut Room) -> Result<Batch> {
        let mut columns: Vec<BatchColumn> = Vec::with_capacity(self.columns.len());
        for planned in &self.columns {
            columns.push(column(rows.column(planned.index), planned, rows_before, room)?);
        }
        let numbers = rows_before + 1..=rows_before + rows.num_rows() as u64;
        let lines = match u32::try_from(*numbers.end()) {
            Ok(last) => (*numbers.start() as u32..=last).collect(),
            Err(_) => Vec::new(),
        };
        Ok(Batch { table: self.table.clone(), rows: rows.num_rows(), columns, timestamps: None, lines })
    }
}

/// Returns the index of the column with the time of the rows.
fn time_column(schema: &Schema, options: &RowOptions, table: Option<&TableSchema>) -> Result<Option<usize>> {
    let designated = table.map(TableSchema::timestamp);
    if let Some(name) = &options.at {
        let Ok(index) = schema.index_of(name) else {
            let has: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).take(20).collect();
            let error = Error::of_column(name, "it shall be the time of the rows, but the frame does not have it");
            return Err(error.with_hint(format!("the frame has {}", has.join(", "))));
        };
        if designated == Some(None) {
            let message = format!("table \"{}\" has no designated timestamp for it", options.table);
            return Err(Error::of_column(name, message).with_hint("leave at out"));
        }
        return Ok(Some(index));
    }
    let Some(Some((column, _))) = designated else { return Ok(None) };
    let found = schema.fields().iter().position(|field| same_name(field.name(), &column.name));
    found.map(Some).ok_or_else(|| {
        let message =
            format!("table \"{}\" is ordered by \"{}\", which the frame does not have", options.table, column.name);
        Error::new(message).with_hint("say which column is the time of the rows: at=\"…\"")
    })
}

/// Returns the type of a column before the commit converts it to the table's; `None` if it has no values.
fn stored_type(
    field: &Field,
    is_symbol: bool,
    existing: Option<ColumnType>,
    is_designated: bool,
) -> Result<Option<ColumnType>> {
    let data_type = field.data_type();
    if is_designated {
        return match plain_type(data_type) {
            Some(ColumnType::Timestamp(unit)) => Ok(Some(ColumnType::Timestamp(unit))),
            Some(ColumnType::Date) => Ok(Some(ColumnType::Timestamp(TimeUnit::Micros))),
            _ => Err(Error::of_column(field.name(), format!("the time of rows cannot be of type {data_type}"))
                .with_hint("make it a timestamp, as pandas.to_datetime and polars' str.to_datetime do")),
        };
    }
    if *data_type == DataType::Null {
        return Ok(None);
    }
    if is_text(data_type) {
        let is_symbol = if existing.is_none() { is_symbol } else { existing == Some(ColumnType::Symbol) };
        return Ok(Some(if is_symbol { ColumnType::Symbol } else { ColumnType::Varchar }));
    }
    let found = plain_type(data_type).or_else(|| lists::dims(data_type).map(|dims| ColumnType::DoubleArray { dims }));
    let refused = || {
        Error::of_column(field.name(), format!("type {data_type} has no place in a table")).with_hint(hint(data_type))
    };
    found.map(Some).ok_or_else(refused)
}

fn hint(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Duration(_) | DataType::Interval(_) => "store durations as numbers of a unit",
        DataType::Time32(_) | DataType::Time64(_) => "store times of day as numbers or text",
        DataType::Struct(_) => "make a column of each of its fields",
        DataType::Decimal128(..) | DataType::Decimal256(..) => "decimals have up to 38 digits and no negative scale",
        _ => "convert it to numbers or text",
    }
}

pub(crate) fn plain_type(data_type: &DataType) -> Option<ColumnType> {
    Some(match data_type {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 => ColumnType::Byte,
        DataType::Int16 | DataType::UInt8 => ColumnType::Short,
        DataType::Int32 | DataType::UInt16 => ColumnType::Int,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => ColumnType::Long,
        DataType::Float16 | DataType::Float32 => ColumnType::Float,
        DataType::Float64 => ColumnType::Double,
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s)
            if *p <= 38 && *s >= 0 && *s as u8 <= *p =>
        {
            ColumnType::Decimal { precision: *p, scale: *s as u8 }
        }
        DataType::Timestamp(ArrowUnit::Second | ArrowUnit::Millisecond, _) => ColumnType::Timestamp(TimeUnit::Millis),
        DataType::Timestamp(ArrowUnit::Microsecond, _) => ColumnType::Timestamp(TimeUnit::Micros),
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => ColumnType::Timestamp(TimeUnit::Nanos),
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::FixedSizeBinary(16) => ColumnType::Uuid,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            ColumnType::Binary
        }
        DataType::Dictionary(_, values) => return plain_type(values),
        DataType::RunEndEncoded(_, values) => return plain_type(values.data_type()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
