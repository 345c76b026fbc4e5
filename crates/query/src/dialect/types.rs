//! Names of types, in DDL and in casts.

use super::Input;
use crate::{Error, Result, door};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result as DFResult;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{self, ExactNumberInfo};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::sync::Arc;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnType, TimeUnit};

/// DECIMAL without precision and scale, as in QuestDB.
const DECIMAL_DEFAULT: ColumnType = ColumnType::Decimal { precision: 18, scale: 3 };
const DIMS_MAX: u8 = 32;

/// Maximum binary digits of a REAL; FLOAT(n) with more digits is a DOUBLE.
const REAL_DIGITS_MAX: u64 = 24;
const DOUBLE_DIGITS_MAX: u64 = 53;
/// Maximum fractional digits of a second in a TIMESTAMP(n).
const SECOND_DIGITS_MAX: u64 = 9;

/// PostgreSQL types that no column can have, with the type to use instead.
const WITHOUT_COLUMNS: &[(&str, &str)] = &[
    ("serial", "write LONG: numbers are not made here, the client gives them"),
    ("serial4", "write LONG: numbers are not made here, the client gives them"),
    ("serial8", "write LONG: numbers are not made here, the client gives them"),
    ("bigserial", "write LONG: numbers are not made here, the client gives them"),
    ("smallserial", "write LONG: numbers are not made here, the client gives them"),
    ("time", "write TIMESTAMP, or LONG for a count of microseconds"),
    ("timetz", "write TIMESTAMP, or LONG for a count of microseconds"),
    ("interval", "write LONG for a count of microseconds"),
    ("money", "write DECIMAL(18,2)"),
    ("inet", "write IPV4, or VARCHAR"),
    ("cidr", "write VARCHAR"),
    ("macaddr", "write VARCHAR"),
    ("xml", "write VARCHAR"),
    ("bit", "write BOOLEAN, LONG or BINARY"),
    ("tsvector", "write VARCHAR"),
    ("oid", "write LONG"),
];

impl Input<'_> {
    /// A type in a column definition.
    pub(super) fn column_type(&mut self) -> Result<ColumnType> {
        let position = self.position();
        if self.sees("pg_catalog") && matches!(self.parser.peek_nth_token_ref(1).token, Token::Period) {
            self.parser.next_token();
            self.parser.next_token();
        }
        let Token::Word(word) = &self.parser.peek_token_ref().token else {
            return Err(self.expected("a type"));
        };
        let name = word.value.clone();
        if let Some((name, hint)) = WITHOUT_COLUMNS.iter().find(|(known, _)| *known == name) {
            return Err(Error::invalid(format!("columns of type {} are not supported", name.to_uppercase()))
                .at(position)
                .with_hint(*hint));
        }
        let base = match name.as_str() {
            "decimal" | "numeric" => DECIMAL_DEFAULT,
            "char" | "character" | "bpchar" | "citext" | "name" => ColumnType::Varchar,
            "float" => ColumnType::Double,
            name => match ColumnType::from_sql_name(name) {
                Some(base) => base,
                None => return self.error(format!("type \"{name}\" does not exist")),
            },
        };
        self.parser.next_token();
        // The second words of names that have several.
        let _ = match name.as_str() {
            "double" => self.take("precision"),
            "char" | "character" => self.take("varying"),
            _ => false,
        };
        let base = self.with_parameters(&name, base, position)?;
        if name == "timestamp" {
            let _ = self.take_all(&["with", "time", "zone"]) || self.take_all(&["without", "time", "zone"]);
        }
        let dims = self.dimensions()?;
        match (dims, base) {
            (0, base) => Ok(base),
            (1..=DIMS_MAX, ColumnType::Double) => Ok(ColumnType::DoubleArray { dims }),
            (_, ColumnType::Double) => self.error(format!("an array has at most {DIMS_MAX} dimensions")),
            (_, other) => self.error(format!("arrays of {other} are not supported, only of DOUBLE")),
        }
    }

    /// Parses `[]`, `[3]`, `ARRAY` and `ARRAY[3]`; lengths have no effect, as in PostgreSQL.
    fn dimensions(&mut self) -> Result<u8> {
        let has_word = self.take("array");
        let mut dims = 0_u8;
        while self.take_symbol(&Token::LBracket) {
            if !matches!(self.parser.peek_token_ref().token, Token::RBracket) {
                self.number("a length")?;
            }
            self.expect_symbol(&Token::RBracket)?;
            dims = dims.saturating_add(1);
        }
        Ok(dims.max(u8::from(has_word)))
    }

    /// Parses the parameters in parentheses after a type name.
    fn with_parameters(&mut self, name: &str, base: ColumnType, position: usize) -> Result<ColumnType> {
        let is_one = matches!(name, "float" | "timestamp" | "timestamptz")
            || matches!(base, ColumnType::Decimal { .. } | ColumnType::Varchar);
        // `ts TIMESTAMP(ts)` has no number in the parentheses and is rejected later: a column definition has no table
        // clause.
        let is_number = matches!(self.parser.peek_nth_token_ref(1).token, Token::Number(..));
        if !is_one || !is_number || !matches!(self.parser.peek_token_ref().token, Token::LParen) {
            return Ok(base);
        }
        self.expect_symbol(&Token::LParen)?;
        let first = self.number("a number")?;
        let second = if self.take_symbol(&Token::Comma) { Some(self.number("a number")?) } else { None };
        self.expect_symbol(&Token::RParen)?;
        let refused = |message: &str| Error::invalid(message).at(position);
        match base {
            ColumnType::Decimal { .. } => decimal(first, second.unwrap_or(0))
                .ok_or_else(|| refused("a decimal has 1 to 38 digits, of which at most all are after the point")),
            _ if second.is_some() => Err(refused("the type takes one number in parentheses")),
            ColumnType::Double => {
                double(first).ok_or_else(|| refused("precision for type float must be between 1 and 53"))
            }
            ColumnType::Timestamp(_) => {
                timestamp(first).ok_or_else(|| refused("timestamp precision must be between 0 and 9"))
            }
            // The length of VARCHAR(n) has no effect, as in QuestDB and DuckDB.
            other => Ok(other),
        }
    }
}

/// Returns the type of FLOAT(n), as in PostgreSQL; `None` for an invalid n.
fn double(digits: u64) -> Option<ColumnType> {
    match digits {
        1..=REAL_DIGITS_MAX => Some(ColumnType::Float),
        0 => None,
        _ => (digits <= DOUBLE_DIGITS_MAX).then_some(ColumnType::Double),
    }
}

/// Returns the type of TIMESTAMP(n).
///
/// Milliseconds for 3, else microseconds up to 6, else nanoseconds.
fn timestamp(digits: u64) -> Option<ColumnType> {
    let unit = match digits {
        3 => TimeUnit::Millis,
        0..=6 => TimeUnit::Micros,
        _ => TimeUnit::Nanos,
    };
    (digits <= SECOND_DIGITS_MAX).then_some(ColumnType::Timestamp(unit))
}

fn decimal(precision: u64, scale: u64) -> Option<ColumnType> {
    let (precision, scale) = (u8::try_from(precision).ok()?, u8::try_from(scale).ok()?);
    ((1..=38).contains(&precision) && scale <= precision).then_some(ColumnType::Decimal { precision, scale })
}

/// Our types in CAST and `::`. Without it the planner would make TIMESTAMP nanoseconds and know no SYMBOL.
#[derive(Debug)]
pub(crate) struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> DFResult<Option<FieldRef>> {
        let micros = ColumnType::Timestamp(TimeUnit::Micros);
        let found = match sql_type {
            ast::DataType::Timestamp(digits, zone) => {
                let of = digits.map_or(Some(micros), timestamp);
                match of {
                    Some(of) if has_zone(zone) && of == micros => {
                        return Ok(Some(Arc::new(door::of_instants(door::pg_field("", pg_type::TIMESTAMPTZ)))));
                    }
                    of => of,
                }
            }
            ast::DataType::Float(ExactNumberInfo::None) => Some(ColumnType::Double),
            ast::DataType::Float(ExactNumberInfo::Precision(digits)) => double(*digits),
            ast::DataType::Regclass => return Ok(Some(Arc::new(door::pg_field("", pg_type::REGCLASS)))),
            ast::DataType::Custom(name, parameters) if parameters.is_empty() => {
                let name = name.to_string();
                let name = name.strip_prefix("pg_catalog.").unwrap_or(&name).trim_matches('"');
                if let Some(of) = of_catalog(name) {
                    return Ok(Some(Arc::new(door::pg_field("", of))));
                }
                ColumnType::from_sql_name(name)
            }
            ast::DataType::Uuid => Some(ColumnType::Uuid),
            ast::DataType::JSON => Some(ColumnType::Json),
            ast::DataType::JSONB => Some(ColumnType::Jsonb),
            ast::DataType::Binary(None) | ast::DataType::Bytea => Some(ColumnType::Binary),
            ast::DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(inner, _) | ast::ArrayElemTypeDef::AngleBracket(inner),
            ) => {
                let Some(inner) = self.plan_type_field(inner)? else { return Ok(None) };
                return Ok(door::array_field(&inner).map(Arc::new));
            }
            _ => None,
        };
        // A cast to text that only has another name gives plain text; the others carry their name with them.
        Ok(found.map(|t| door::field("", t, true)))
    }
}

fn has_zone(zone: &ast::TimezoneInfo) -> bool {
    matches!(zone, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone)
}

/// Returns a type of catalog columns that no user table can have.
fn of_catalog(name: &str) -> Option<PgType> {
    let found = pg_type::TYPES.iter().find(|of| of.name == name)?;
    let is_text = matches!(*found, pg_type::NAME | pg_type::CHAR | pg_type::BPCHAR | pg_type::UNKNOWN);
    (found.is_object() || is_text || *found == pg_type::TIMESTAMPTZ).then_some(*found)
}
