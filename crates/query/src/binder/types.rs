//! Type names of casts.

use super::names::folded;
use super::{Binder, Result};
use crate::functions::geo;
use crate::{Error, Parameter, door};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit as ArrowUnit};
use datafusion::common::DFSchema;
use datafusion::common::datatype::FieldExt;
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;
use tidalite_sql::ast::{TypeArg, TypeName};
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnType, ErrorKind, TimeUnit};

/// Bits of a character of a geohash.
const CHARACTER_BITS: u32 = 5;
/// Digits of DECIMAL without parentheses.
const DECIMAL_DEFAULT: (u8, i8) = (38, 10);
const DECIMAL_DIGITS: u8 = 38;
const LONG_DECIMAL_DIGITS: u8 = 76;

impl Binder<'_> {
    /// Returns the field that a cast to a type gives.
    pub(super) fn type_field(&self, written: &TypeName) -> Result<FieldRef> {
        self.field_of_dims(written, written.dimensions.len())
    }

    /// Returns the field that a cast of a value to a type gives.
    ///
    /// An array type is of any number of dimensions, as in PostgreSQL: the value decides, if it is an array or a
    /// constant text of one. Texts of arrays of several dimensions are read for doubles only.
    pub(super) fn type_field_for(&self, written: &TypeName, value: &Expr, schema: &DFSchema) -> Result<FieldRef> {
        let is_array = !written.dimensions.is_empty() || array_element(&plain_name(written)).is_some();
        let dims = match (is_array, value) {
            (false, _) => 0,
            (_, Expr::Literal(text, _)) => text.try_as_str().flatten().map_or(0, dims_of_text),
            _ => dims_of_type(&value.get_type(schema)?),
        };
        let is_text = matches!(value, Expr::Literal(..));
        let of_doubles = match self.field_of_dims(written, 0)?.data_type() {
            DataType::List(item) => *item.data_type() == DataType::Float64,
            other => *other == DataType::Float64,
        };
        let is_read = !is_text || dims <= 1 || of_doubles;
        self.field_of_dims(written, if dims == 0 || !is_read { written.dimensions.len() } else { dims })
    }

    fn field_of_dims(&self, written: &TypeName, dims: usize) -> Result<FieldRef> {
        let name = plain_name(written);
        let (name, dims) = match array_element(&name) {
            Some(element) => (element.to_owned(), dims.max(1)),
            None => (name, dims),
        };
        let Some((own, mut field)) = field(&name, written)? else {
            let error = Error::new(ErrorKind::NotFound, format!("type \"{name}\" does not exist"));
            return Err(error.about(name).at(written.span.start as usize).into());
        };
        for _ in 0..dims {
            let list = if own { door::array_field(&field).map(Arc::new) } else { None };
            field = list.unwrap_or_else(|| field.into_list());
        }
        Ok(field)
    }
}

/// Returns the number of braces that a text of an array begins with.
fn dims_of_text(text: &str) -> usize {
    let braces = text.bytes().filter(|b| !b.is_ascii_whitespace()).take_while(|b| *b == b'{').count();
    if braces > Parameter::DIMS_MAX as usize { 0 } else { braces }
}

fn dims_of_type(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => 1 + dims_of_type(item.data_type()),
        _ => 0,
    }
}

/// Returns the name of the element of an array type that is named as in the catalog, `_int4`.
fn array_element(name: &str) -> Option<&'static str> {
    let array = pg_type::TYPES.iter().find(|of| of.name == name && name.starts_with('_'))?;
    pg_type::by_oid(array.element).map(|element| element.name)
}

/// Returns the name without the schema of the catalog.
fn plain_name(written: &TypeName) -> String {
    let parts: Vec<String> = written.name.parts.iter().map(folded).collect();
    match parts.as_slice() {
        [schema, name] if schema == crate::pg_catalog::PG_CATALOG => name.clone(),
        parts => parts.join("."),
    }
}

/// Returns the numbers in parentheses.
fn numbers(written: &TypeName) -> Option<Vec<u64>> {
    let number = |arg: &TypeArg| match arg {
        TypeArg::Number { digits, unit: None } => digits.parse().ok(),
        _ => None,
    };
    written.args.iter().map(number).collect()
}

/// Returns the length of a text type: a cast to `varchar(3)` keeps the first three characters, as in PostgreSQL.
pub(super) fn characters(written: &TypeName) -> Option<i64> {
    let is_text = matches!(plain_name(written).as_str(), "varchar" | "char" | "character" | "character varying")
        && written.dimensions.is_empty();
    match numbers(written)?.as_slice() {
        [length] if is_text => i64::try_from(*length).ok(),
        _ => None,
    }
}

/// Returns the field of a type without its dimensions, and whether the type is described by a column type.
fn field(name: &str, written: &TypeName) -> Result<Option<(bool, FieldRef)>> {
    let Some(numbers) = numbers(written) else { return Err(no_modifier(name, written).into()) };
    let plain = |data_type| Ok(Some((false, Arc::new(Field::new("", data_type, true)) as FieldRef)));
    let column = |column_type| Ok(Some((true, door::field("", column_type, true))));
    match (name, numbers.as_slice()) {
        ("boolean" | "bool", []) => plain(DataType::Boolean),
        ("tinyint", []) => plain(DataType::Int8),
        ("smallint" | "int2", []) => plain(DataType::Int16),
        ("int" | "integer" | "int4", []) => plain(DataType::Int32),
        ("bigint" | "int8", []) => plain(DataType::Int64),
        ("real" | "float4", []) => plain(DataType::Float32),
        ("double" | "double precision" | "float8", []) => plain(DataType::Float64),
        ("float", []) => column(ColumnType::Double),
        ("float", [1..=24]) => column(ColumnType::Float),
        ("float", [25..=53]) => column(ColumnType::Double),
        ("varchar" | "char" | "character" | "character varying", [] | [_]) | ("text" | "string", []) => {
            plain(DataType::Utf8View)
        }
        ("date", []) => plain(DataType::Date32),
        ("time", [] | [_]) if written.with_time_zone != Some(true) => plain(DataType::Time64(ArrowUnit::Nanosecond)),
        ("interval", [] | [_]) => plain(DataType::Interval(IntervalUnit::MonthDayNano)),
        ("decimal" | "numeric", numbers) => match decimal(numbers) {
            Some(decimal) => plain(decimal),
            None => {
                let text = format!("a decimal has 1 to {LONG_DECIMAL_DIGITS} digits, not fewer than its scale");
                Err(Error::invalid(text).at(written.span.start as usize).into())
            }
        },
        ("timestamp" | "timestamptz", numbers) => {
            let has_zone = name == "timestamptz" || written.with_time_zone == Some(true);
            timestamp(numbers, has_zone, written)
        }
        ("uuid", []) => column(ColumnType::Uuid),
        ("json", []) => column(ColumnType::Json),
        ("jsonb", []) => column(ColumnType::Jsonb),
        ("binary" | "bytea", []) => column(ColumnType::Binary),
        ("regclass", []) => Ok(Some((true, Arc::new(door::pg_field("", pg_type::REGCLASS))))),
        (name, []) => match of_catalog(name) {
            Some(of) => Ok(Some((true, Arc::new(door::pg_field("", of))))),
            None => Ok(ColumnType::from_sql_name(name).map(|found| (true, door::field("", found, true)))),
        },
        _ => Err(no_modifier(name, written).into()),
    }
}

fn no_modifier(name: &str, written: &TypeName) -> Error {
    let error = Error::invalid(format!("type modifier is not allowed for type \"{name}\"")).about(name);
    error.at(written.span.start as usize)
}

fn timestamp(numbers: &[u64], has_zone: bool, written: &TypeName) -> Result<Option<(bool, FieldRef)>> {
    let unit = match numbers {
        [] | [0..=2 | 4..=6] => TimeUnit::Micros,
        [3] => TimeUnit::Millis,
        [7..=9] => TimeUnit::Nanos,
        _ => {
            let error = Error::invalid("a timestamp has 0 to 9 digits of a second");
            return Err(error.at(written.span.start as usize).into());
        }
    };
    let field = match (has_zone, unit) {
        (true, TimeUnit::Micros) => Arc::new(door::of_instants(door::pg_field("", pg_type::TIMESTAMPTZ))),
        _ => door::field("", ColumnType::Timestamp(unit), true),
    };
    Ok(Some((true, field)))
}

fn decimal(numbers: &[u64]) -> Option<DataType> {
    let (precision, scale) = match numbers {
        [] => DECIMAL_DEFAULT,
        [precision] => (u8::try_from(*precision).ok()?, 0),
        [precision, scale] => (u8::try_from(*precision).ok()?, i8::try_from(*scale).ok()?),
        _ => return None,
    };
    if !(1..=LONG_DECIMAL_DIGITS).contains(&precision) || scale.unsigned_abs() > precision {
        return None;
    }
    Some(match precision {
        ..=DECIMAL_DIGITS => DataType::Decimal128(precision, scale),
        _ => DataType::Decimal256(precision, scale),
    })
}

/// Returns a type of catalog columns that no user table can have.
fn of_catalog(name: &str) -> Option<PgType> {
    let found = pg_type::TYPES.iter().find(|of| of.name == name)?;
    let is_text = matches!(*found, pg_type::NAME | pg_type::CHAR | pg_type::BPCHAR | pg_type::UNKNOWN);
    (found.is_object() || is_text || *found == pg_type::TIMESTAMPTZ).then_some(*found)
}

/// Returns the bits of `GEOHASH(4c)` and `GEOHASH(20b)`.
pub(super) fn geohash_bits(written: &TypeName) -> Option<u32> {
    if plain_name(written) != "geohash" {
        return None;
    }
    let [TypeArg::Number { digits, unit: Some(unit) }] = written.args.as_slice() else { return None };
    let of_each = match unit.value.as_str() {
        "c" | "C" => CHARACTER_BITS,
        "b" | "B" => 1,
        _ => return None,
    };
    let bits = digits.parse::<u32>().ok()?.checked_mul(of_each)?;
    (1..=geo::BITS_MAX).contains(&bits).then_some(bits)
}
