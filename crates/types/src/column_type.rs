//! The types of columns, and their storage.

use crate::time::TimeUnit;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    /// A number of `precision` digits (1 to 38), of which `scale` (0 to `precision`) are after the point.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// UTC since 1970-01-01, in the given unit. SQL: TIMESTAMP_MS, TIMESTAMP (µs), TIMESTAMP_NS.
    Timestamp(TimeUnit),
    /// Days since 1970-01-01.
    Date,
    /// A string stored as an id of a table-wide dictionary.
    Symbol,
    Varchar,
    Binary,
    Uuid,
    Ipv4,
    /// Doubles in `dims` dimensions (1 to 32); see [`crate::views`] for the bytes of a value.
    DoubleArray {
        dims: u8,
    },
    /// JSON whose text is stored as it was written.
    Json,
    /// JSON whose text is stored as in [`crate::jsonb`].
    Jsonb,
}

/// Layout of the values of a type in memory and in plain blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {
    Bit,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    U32,
    B16,
    Views,
}

impl Physical {
    /// Returns the bytes per value; `None` for bits and for variable-length values (16 bytes per view plus data).
    #[must_use]
    pub fn width(self) -> Option<usize> {
        Some(match self {
            Physical::I8 => 1,
            Physical::I16 => 2,
            Physical::I32 | Physical::F32 | Physical::U32 => 4,
            Physical::I64 | Physical::F64 => 8,
            Physical::I128 | Physical::B16 => 16,
            Physical::Bit | Physical::Views => return None,
        })
    }
}

impl ColumnType {
    #[must_use]
    pub fn physical(self) -> Physical {
        match self {
            ColumnType::Boolean => Physical::Bit,
            ColumnType::Byte => Physical::I8,
            ColumnType::Short => Physical::I16,
            ColumnType::Int | ColumnType::Date => Physical::I32,
            ColumnType::Long | ColumnType::Timestamp(_) => Physical::I64,
            ColumnType::Float => Physical::F32,
            ColumnType::Double => Physical::F64,
            ColumnType::Decimal { precision: 0..=9, .. } => Physical::I32,
            ColumnType::Decimal { precision: 10..=18, .. } => Physical::I64,
            ColumnType::Decimal { .. } => Physical::I128,
            ColumnType::Symbol | ColumnType::Ipv4 => Physical::U32,
            ColumnType::Uuid => Physical::B16,
            ColumnType::Varchar
            | ColumnType::Binary
            | ColumnType::DoubleArray { .. }
            | ColumnType::Json
            | ColumnType::Jsonb => Physical::Views,
        }
    }

    /// Returns true if values are UTF-8 text of variable length.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, ColumnType::Varchar | ColumnType::Json | ColumnType::Jsonb)
    }

    /// Returns the type of an SQL name in any case, without parameters (the parser handles `DECIMAL` and arrays).
    #[must_use]
    pub fn from_sql_name(name: &str) -> Option<ColumnType> {
        Some(match name.to_ascii_uppercase().as_str() {
            "BOOLEAN" | "BOOL" => ColumnType::Boolean,
            "BYTE" | "TINYINT" | "INT1" => ColumnType::Byte,
            "SHORT" | "SMALLINT" | "INT2" => ColumnType::Short,
            "INT" | "INTEGER" | "INT4" => ColumnType::Int,
            "LONG" | "BIGINT" | "INT8" => ColumnType::Long,
            "FLOAT" | "REAL" | "FLOAT4" => ColumnType::Float,
            "DOUBLE" | "FLOAT8" | "DOUBLE PRECISION" => ColumnType::Double,
            "TIMESTAMP" | "TIMESTAMPTZ" => ColumnType::Timestamp(TimeUnit::Micros),
            "TIMESTAMP_NS" => ColumnType::Timestamp(TimeUnit::Nanos),
            "TIMESTAMP_MS" => ColumnType::Timestamp(TimeUnit::Millis),
            "DATE" => ColumnType::Date,
            "SYMBOL" => ColumnType::Symbol,
            "VARCHAR" | "STRING" | "TEXT" => ColumnType::Varchar,
            "BINARY" | "BYTEA" | "BLOB" => ColumnType::Binary,
            "UUID" => ColumnType::Uuid,
            "IPV4" => ColumnType::Ipv4,
            "JSON" => ColumnType::Json,
            "JSONB" => ColumnType::Jsonb,
            _ => return None,
        })
    }
}

impl ColumnType {
    /// Returns the name of the type in a column definition, where `FLOAT` means DOUBLE, as in PostgreSQL.
    #[must_use]
    pub fn sql_name(self) -> String {
        match self {
            ColumnType::Float => "REAL".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Formats the SQL name, as shown by `SHOW COLUMNS` and to REST clients.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnType::Boolean => "BOOLEAN",
            ColumnType::Byte => "BYTE",
            ColumnType::Short => "SHORT",
            ColumnType::Int => "INT",
            ColumnType::Long => "LONG",
            ColumnType::Float => "FLOAT",
            ColumnType::Double => "DOUBLE",
            ColumnType::Decimal { precision, scale } => return write!(f, "DECIMAL({precision},{scale})"),
            ColumnType::Timestamp(TimeUnit::Micros) => "TIMESTAMP",
            ColumnType::Timestamp(TimeUnit::Nanos) => "TIMESTAMP_NS",
            ColumnType::Timestamp(TimeUnit::Millis) => "TIMESTAMP_MS",
            ColumnType::Date => "DATE",
            ColumnType::Symbol => "SYMBOL",
            ColumnType::Varchar => "VARCHAR",
            ColumnType::Binary => "BINARY",
            ColumnType::Uuid => "UUID",
            ColumnType::Ipv4 => "IPV4",
            ColumnType::Json => "JSON",
            ColumnType::Jsonb => "JSONB",
            ColumnType::DoubleArray { dims } => {
                f.write_str("DOUBLE")?;
                return (0..*dims).try_for_each(|_| f.write_str("[]"));
            }
        })
    }
}
