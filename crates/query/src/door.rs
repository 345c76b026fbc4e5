//! Where our columns become Arrow's: types and fields here, values in [`arrays`], and back in [`batches`].
//!
//! Timestamps are UTC and travel as Arrow timestamps without a zone: functions and comparisons with text are then
//! exact and fast, and no session's zone can shift them. Decimals travel as 128 bits whatever they are stored in.

pub(crate) mod array_texts;
pub(crate) mod arrays;
pub mod batches;
pub(crate) mod timestamps;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit as ArrowUnit};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnSchema, ColumnType, TimeUnit};

/// The metadata key under which a field carries the SQL name of its type.
const TYPE_KEY: &str = "tidalite.type";
/// The metadata key under which a field carries its name as it was first written.
const NAME_KEY: &str = "tidalite.name";
/// The metadata key for the number of the PostgreSQL type of a field.
///
/// The key is set where the Arrow type alone would mean another PostgreSQL type.
const PG_TYPE_KEY: &str = "tidalite.pg";
/// The same as [`PG_TYPE_KEY`], for texts that stand for object numbers.
const SHOWN_AS_KEY: &str = "tidalite.shown";
/// The metadata key for the table number and column number of a field.
const ORIGIN_KEY: &str = "tidalite.origin";
/// The metadata key for the values of a sub-query of a PIVOT that are part of the name of a field.
const PIVOT_KEY: &str = "tidalite.pivot";
/// The metadata key that marks the designated timestamp of a table.
const DESIGNATED_KEY: &str = "tidalite.designated";

/// The metadata key that marks a time as an instant, as TIMESTAMP WITH TIME ZONE.
///
/// AT TIME ZONE converts an instant to local time, and a time without the key to an instant.
const INSTANT_KEY: &str = "tidalite.instant";

/// Marks the field as one of instants.
pub(crate) fn of_instants(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(INSTANT_KEY.to_owned(), String::new());
    field.with_metadata(metadata)
}

/// Returns true if the field holds instants.
pub(crate) fn has_instants(field: &Field) -> bool {
    field.metadata().contains_key(INSTANT_KEY) && matches!(field.data_type(), DataType::Timestamp(..))
}

/// Returns the metadata of a constant instant.
pub(crate) fn instant_metadata() -> HashMap<String, String> {
    HashMap::from([(INSTANT_KEY.to_owned(), String::new())])
}

pub(crate) fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Millis => ArrowUnit::Millisecond,
        TimeUnit::Micros => ArrowUnit::Microsecond,
        TimeUnit::Nanos => ArrowUnit::Nanosecond,
    }
}

/// How a type travels.
pub(crate) fn arrow_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Byte => DataType::Int8,
        ColumnType::Short => DataType::Int16,
        ColumnType::Int => DataType::Int32,
        ColumnType::Long => DataType::Int64,
        ColumnType::Float => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        ColumnType::Timestamp(unit) => DataType::Timestamp(arrow_unit(unit), None),
        ColumnType::Date => DataType::Date32,
        ColumnType::Symbol | ColumnType::Varchar | ColumnType::Json | ColumnType::Jsonb => DataType::Utf8View,
        ColumnType::Binary => DataType::BinaryView,
        ColumnType::Uuid => DataType::FixedSizeBinary(16),
        ColumnType::Ipv4 => DataType::UInt32,
        ColumnType::DoubleArray { dims } => (0..dims).fold(DataType::Float64, |inner, _| DataType::List(item(inner))),
    }
}

pub(crate) fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(data_type, true))
}

/// A field of a type; types that share an Arrow type with another carry their name.
pub(crate) fn field(name: &str, column_type: ColumnType, is_nullable: bool) -> FieldRef {
    let field = Field::new(name, arrow_type(column_type), is_nullable);
    let is_plain = type_of(&DataType::clone(field.data_type())) == Some(column_type);
    if is_plain {
        return Arc::new(field);
    }
    Arc::new(field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), column_type.to_string())])))
}

/// Returns the Arrow type that carries values of a PostgreSQL type.
fn pg_arrow_type(of: PgType) -> DataType {
    match of {
        pg_type::BOOL => DataType::Boolean,
        pg_type::INT2 => DataType::Int16,
        pg_type::INT4 => DataType::Int32,
        pg_type::INT8 => DataType::Int64,
        of if of.is_object() => DataType::Int64,
        pg_type::FLOAT4 => DataType::Float32,
        pg_type::FLOAT8 => DataType::Float64,
        pg_type::NUMERIC => DataType::Decimal128(38, 0),
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => DataType::Timestamp(ArrowUnit::Microsecond, None),
        pg_type::DATE => DataType::Date32,
        pg_type::TIME => DataType::Time64(ArrowUnit::Microsecond),
        pg_type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        pg_type::BYTEA => DataType::BinaryView,
        pg_type::UUID => DataType::FixedSizeBinary(16),
        of if of.is_array() => {
            DataType::List(item(pg_type::by_oid(of.element).map_or(DataType::Utf8View, pg_arrow_type)))
        }
        _ => DataType::Utf8View,
    }
}

/// Returns the PostgreSQL type of an Arrow type when the field has no [`PG_TYPE_KEY`].
fn natural_pg_type(data_type: &DataType) -> Option<PgType> {
    match data_type {
        DataType::Interval(_) | DataType::Duration(_) => Some(pg_type::INTERVAL),
        DataType::Time32(_) | DataType::Time64(_) => Some(pg_type::TIME),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let element = natural_pg_type(item.data_type())?;
            if element.is_array() { Some(element) } else { pg_type::by_oid(element.array) }
        }
        other => type_of(other).map(pg_type::of),
    }
}

/// Creates a field of a PostgreSQL type.
pub(crate) fn pg_field(name: &str, of: PgType) -> Field {
    let field = Field::new(name, pg_arrow_type(of), true);
    if natural_pg_type(field.data_type()) == Some(of) {
        return field;
    }
    with_pg_type(field, of)
}

/// Returns the field with its values sent as a PostgreSQL type.
pub(crate) fn with_pg_type(field: Field, of: PgType) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(PG_TYPE_KEY.to_owned(), of.oid.to_string());
    field.with_metadata(metadata)
}

/// Returns the PostgreSQL type in the metadata of a field, if it still matches the Arrow type.
pub(crate) fn carried_pg_type(field: &Field) -> Option<PgType> {
    let carried = field.metadata().get(PG_TYPE_KEY)?.parse().ok().and_then(pg_type::by_oid);
    carried.filter(|of| pg_arrow_type(*of) == *field.data_type())
}

/// Returns the field of arrays of these values; `None` when PostgreSQL has no such array type.
pub(crate) fn array_field(of: &Field) -> Option<Field> {
    let element = pg_type(of);
    let array = if element.is_array() { Some(element) } else { pg_type::by_oid(element.array) };
    let field = Field::new("", DataType::List(item(of.data_type().clone())), true);
    let array = array?;
    Some(if natural_pg_type(field.data_type()) == Some(array) { field } else { with_pg_type(field, array) })
}

/// Returns the metadata of a text that names an object of a type.
pub(crate) fn shown_as(of: PgType) -> [(String, String); 1] {
    [(SHOWN_AS_KEY.to_owned(), of.oid.to_string())]
}

/// Returns the PostgreSQL type of a field where it differs from that of its Arrow type.
pub(crate) fn sent_as(field: &Field) -> Option<PgType> {
    let shown = field.metadata().get(SHOWN_AS_KEY).filter(|_| *field.data_type() == DataType::Utf8View);
    shown.and_then(|oid| oid.parse().ok()).and_then(pg_type::by_oid).or_else(|| carried_pg_type(field))
}

/// Returns the PostgreSQL type of a field.
pub(crate) fn pg_type(field: &Field) -> PgType {
    let own = || column_type(field).map(pg_type::of).filter(|_| field.metadata().contains_key(TYPE_KEY));
    carried_pg_type(field).or_else(own).or_else(|| natural_pg_type(field.data_type())).unwrap_or(pg_type::TEXT)
}

/// Returns the type of the JSON documents in a field of documents or of their arrays; `None` for other values.
pub(crate) fn document_type(field: &Field) -> Option<ColumnType> {
    let oid = pg_type(field).oid;
    [ColumnType::Json, ColumnType::Jsonb].into_iter().find(|column_type| {
        let own = pg_type::of(*column_type);
        oid == own.oid || oid == own.array
    })
}

/// Returns the table number and column number of a field; `None` for a computed field.
pub(crate) fn origin(field: &Field) -> Option<(u32, i16)> {
    let mut parts = field.metadata().get(ORIGIN_KEY)?.split(':');
    let (table, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let of: u32 = parts.next()?.parse().ok()?;
    // A cast keeps the metadata of its argument.
    (pg_type(field).oid == of).then_some((table, number))
}

/// The field of a value that is one of those of another field: an address stays one, and a JSON document.
pub(crate) fn field_of_one(name: &str, of: &Field) -> FieldRef {
    match column_type(of) {
        Some(kept @ (ColumnType::Ipv4 | ColumnType::Json | ColumnType::Jsonb)) => field(name, kept, true),
        _ => Arc::new(Field::new(name, of.data_type().clone(), true)),
    }
}

/// Creates the field of a table column, with the name folded.
///
/// `origin` is the table number in the catalog and the column number in the table, from 1.
pub(crate) fn table_field(column: &ColumnSchema, is_designated: bool, origin: Option<(i64, usize)>) -> FieldRef {
    let field = named(&field("", column.column_type, !is_designated), &column.name);
    let mut metadata = field.metadata().clone();
    if let Some((oid, number)) = origin {
        metadata.insert(ORIGIN_KEY.to_owned(), format!("{oid}:{number}:{}", pg_type::of(column.column_type).oid));
    }
    if is_designated {
        metadata.insert(DESIGNATED_KEY.to_owned(), String::new());
    }
    Arc::new(field.with_metadata(metadata))
}

/// The field under its folded name, carrying the name as it is written.
pub(crate) fn named(field: &Field, name: &str) -> Field {
    let folded = tidalite_types::schema::fold_name(name);
    let mut metadata = field.metadata().clone();
    metadata.insert(NAME_KEY.to_owned(), name.to_owned());
    field.clone().with_name(folded).with_metadata(metadata)
}

/// The metadata of a computed column that is spelled so.
pub(crate) fn spelled_metadata(name: &str) -> HashMap<String, String> {
    HashMap::from([(NAME_KEY.to_owned(), name.to_owned())])
}

/// Creates the metadata of a column of a PIVOT from its spelling and from the values of sub-queries in it.
pub(crate) fn pivot_metadata(name: &str, values: Option<String>) -> HashMap<String, String> {
    let mut metadata = spelled_metadata(name);
    metadata.extend(values.map(|values| (PIVOT_KEY.to_owned(), values)));
    metadata
}

/// Returns the values of sub-queries of a PIVOT that are part of the name of a column.
pub(crate) fn pivot_values(field: &Field) -> Option<&str> {
    field.metadata().get(PIVOT_KEY).map(String::as_str)
}

/// The spelling a field carries for the name it has now.
pub(crate) fn spelling(field: &Field) -> Option<&str> {
    let carried = field.metadata().get(NAME_KEY)?;
    tidalite_types::schema::same_name(carried, field.name()).then_some(carried.as_str())
}

pub(crate) fn is_designated(field: &Field) -> bool {
    field.metadata().contains_key(DESIGNATED_KEY) && matches!(field.data_type(), DataType::Timestamp(..))
}

/// The mark of a column that a query made the time of its rows; it counts before that of a table.
const NAMED: &str = "named";

pub(crate) fn designated_metadata() -> HashMap<String, String> {
    HashMap::from([(DESIGNATED_KEY.to_owned(), NAMED.to_owned())])
}

pub(crate) fn is_named_designated(field: &Field) -> bool {
    is_designated(field) && field.metadata().get(DESIGNATED_KEY).is_some_and(|v| v == NAMED)
}

pub(crate) fn undesignated(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(DESIGNATED_KEY);
    field.with_metadata(metadata)
}

/// Our type that a field of a result is of: the one it carries the name of, when its values still are such, else
/// the one that its Arrow type stands for.
pub(crate) fn column_type(field: &Field) -> Option<ColumnType> {
    let carried = field.metadata().get(TYPE_KEY).and_then(|name| ColumnType::from_sql_name(name));
    carried.filter(|t| arrow_type(*t) == *field.data_type()).or_else(|| type_of(field.data_type()))
}

/// The SQL name of a field's type, for clients.
pub(crate) fn type_name(field: &Field) -> String {
    match (column_type(field), field.data_type()) {
        (Some(column_type), _) => column_type.to_string(),
        (None, DataType::Interval(_) | DataType::Duration(_)) => "INTERVAL".to_owned(),
        (None, DataType::Time32(_) | DataType::Time64(_)) => "TIME".to_owned(),
        (None, DataType::Null) => "NULL".to_owned(),
        (
            None,
            DataType::List(inner)
            | DataType::LargeList(inner)
            | DataType::ListView(inner)
            | DataType::FixedSizeList(inner, _),
        ) => {
            format!("{}[]", type_name(inner))
        }
        (None, DataType::Struct(fields)) => {
            let field = |field: &Arc<Field>| format!("{} {}", crate::names::quoted(field.name()), type_name(field));
            format!("STRUCT({})", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        (None, DataType::Decimal256(precision, scale)) => format!("DECIMAL({precision},{scale})"),
        (None, other) => other.to_string().to_uppercase(),
    }
}

/// The type a column gets that is made from values of an Arrow type.
pub(crate) fn type_of(data_type: &DataType) -> Option<ColumnType> {
    Some(match data_type {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 => ColumnType::Byte,
        DataType::Int16 | DataType::UInt8 => ColumnType::Short,
        DataType::Int32 | DataType::UInt16 => ColumnType::Int,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => ColumnType::Long,
        DataType::Float16 | DataType::Float32 => ColumnType::Float,
        DataType::Float64 => ColumnType::Double,
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) if *s >= 0 && *p <= 38 => {
            ColumnType::Decimal { precision: *p, scale: *s as u8 }
        }
        DataType::Timestamp(ArrowUnit::Second | ArrowUnit::Millisecond, _) => ColumnType::Timestamp(TimeUnit::Millis),
        DataType::Timestamp(ArrowUnit::Microsecond, _) => ColumnType::Timestamp(TimeUnit::Micros),
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => ColumnType::Timestamp(TimeUnit::Nanos),
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Varchar,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ColumnType::Binary,
        DataType::FixedSizeBinary(16) => ColumnType::Uuid,
        // Whoever gives a text a dictionary means it to repeat, as categories of data frames do.
        DataType::Dictionary(_, values) => match type_of(values)? {
            ColumnType::Varchar => ColumnType::Symbol,
            other => other,
        },
        DataType::List(inner) => match type_of(inner.data_type())? {
            ColumnType::Double => ColumnType::DoubleArray { dims: 1 },
            ColumnType::DoubleArray { dims } => {
                ColumnType::DoubleArray { dims: dims.checked_add(1).filter(|d| *d <= 32)? }
            }
            _ => return None,
        },
        _ => return None,
    })
}
