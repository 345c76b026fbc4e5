//! Which type of PostgreSQL a column is sent as.

use arrow::datatypes::{DataType, SchemaRef};
use tidalite::OutputColumn;
use tidalite::types::pg_type::{self, PgType};

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub pg_type: PgType,
    /// The OID of the table and the number of the column; zeros for computed columns.
    pub origin: (u32, i16),
    /// The modifier of its type, -1 for none.
    pub modifier: i32,
    /// Values are IPv4 addresses, which travel as numbers inside.
    pub is_ipv4: bool,
}

#[must_use]
pub fn columns(columns: &[OutputColumn], schema: &SchemaRef) -> Vec<Column> {
    let described = columns.iter().zip(schema.fields()).map(|(column, field)| Column {
        name: column.name.clone(),
        pg_type: column.pg.pg_type.unwrap_or_else(|| sent_as(&column.type_name, field.data_type())),
        origin: column.pg.origin.unwrap_or_default(),
        modifier: modifier(column, field.data_type()),
        is_ipv4: column.type_name == "IPV4",
    });
    described.collect()
}

/// A column of text, as SHOW answers.
#[must_use]
pub fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), pg_type: pg_type::TEXT, origin: (0, 0), modifier: -1, is_ipv4: false }
}

/// Precision and scale of a decimal column, packed as in PostgreSQL.
fn modifier(column: &OutputColumn, data_type: &DataType) -> i32 {
    match (column.pg.origin, data_type) {
        (Some(_), DataType::Decimal128(precision, scale)) => ((i32::from(*precision) << 16) | i32::from(*scale)) + 4,
        _ => -1,
    }
}

fn sent_as(type_name: &str, data_type: &DataType) -> PgType {
    match data_type {
        DataType::Boolean => pg_type::BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => pg_type::INT2,
        DataType::Int32 | DataType::UInt16 => pg_type::INT4,
        DataType::UInt32 if type_name == "IPV4" => pg_type::TEXT,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => pg_type::INT8,
        DataType::Float16 | DataType::Float32 => pg_type::FLOAT4,
        DataType::Float64 => pg_type::FLOAT8,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            pg_type::NUMERIC
        }
        DataType::Timestamp(..) => pg_type::TIMESTAMP,
        DataType::Date32 | DataType::Date64 => pg_type::DATE,
        DataType::Time32(_) | DataType::Time64(_) => pg_type::TIME,
        DataType::Interval(_) | DataType::Duration(_) => pg_type::INTERVAL,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => pg_type::BYTEA,
        DataType::FixedSizeBinary(16) => pg_type::UUID,
        DataType::FixedSizeBinary(_) => pg_type::BYTEA,
        DataType::Dictionary(_, values) => sent_as(type_name, values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            list_of(item.data_type())
        }
        _ if type_name == "JSON" => pg_type::JSON,
        _ if type_name == "JSONB" => pg_type::JSONB,
        _ => pg_type::TEXT,
    }
}

/// The array type of the innermost items: PostgreSQL's have any number of dimensions.
fn list_of(item: &DataType) -> PgType {
    match item {
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => {
            list_of(inner.data_type())
        }
        other => pg_type::by_oid(sent_as("", other).array).unwrap_or(pg_type::TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use std::sync::Arc;

    #[test]
    fn columns_have_types_of_postgresql() {
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        let cases = [
            ("BYTE", DataType::Int8, "int2"),
            ("IPV4", DataType::UInt32, "text"),
            ("LONG", DataType::UInt64, "int8"),
            ("SYMBOL", DataType::Utf8View, "text"),
            ("JSON", DataType::Utf8View, "json"),
            ("JSONB", DataType::Utf8View, "jsonb"),
            ("DOUBLE[][]", list(list(DataType::Float64)), "_float8"),
            ("VARCHAR[]", list(DataType::Utf8View), "_text"),
            ("NULL", DataType::Null, "text"),
            ("STRUCT", list(list(DataType::Null)), "_text"),
        ];
        for (name, data_type, expected) in cases {
            assert_eq!(sent_as(name, &data_type).name, expected, "{name} {data_type}");
        }
    }
}
