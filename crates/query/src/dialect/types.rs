//! Names of types, in DDL and in casts.

use super::Input;
use crate::{Result, door};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result as DFResult;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;
use tidalite_types::{ColumnType, TimeUnit};

/// DECIMAL without precision and scale, as in QuestDB.
const DECIMAL_DEFAULT: ColumnType = ColumnType::Decimal { precision: 18, scale: 3 };
const DIMS_MAX: u8 = 32;

impl Input<'_> {
    /// A type in a column definition.
    pub(super) fn column_type(&mut self) -> Result<ColumnType> {
        let position = self.position();
        let Token::Word(word) = &self.parser.peek_token_ref().token else {
            return Err(self.expected("a type"));
        };
        let name = word.value.clone();
        let mut base = match name.as_str() {
            "decimal" | "numeric" => DECIMAL_DEFAULT,
            "char" | "character" => ColumnType::Varchar,
            name => match ColumnType::from_sql_name(name) {
                Some(base) => base,
                None => return self.error(format!("type \"{name}\" does not exist")),
            },
        };
        self.parser.next_token();
        // The second words of names that have several.
        let _ = match name.as_str() {
            "double" => self.take("precision"),
            "character" => self.take("varying"),
            "timestamp" => self.take_all(&["with", "time", "zone"]) || self.take_all(&["without", "time", "zone"]),
            _ => false,
        };
        if self.is_parameter_list(base) {
            self.expect_symbol(&Token::LParen)?;
            let first = self.number("a number")?;
            let second = if self.take_symbol(&Token::Comma) { Some(self.number("a number")?) } else { None };
            self.expect_symbol(&Token::RParen)?;
            // The length of a VARCHAR(n) limits nothing, as in QuestDB and DuckDB.
            if let ColumnType::Decimal { .. } = base {
                base = decimal(first, second.unwrap_or(0)).ok_or_else(|| {
                    crate::Error::invalid("a decimal has 1 to 38 digits, of which at most all are after the point")
                        .at(position)
                })?;
            }
        }
        let mut dims = 0;
        while self.take_symbol(&Token::LBracket) {
            self.expect_symbol(&Token::RBracket)?;
            dims += 1;
        }
        match (dims, base) {
            (0, base) => Ok(base),
            (1..=DIMS_MAX, ColumnType::Double) => Ok(ColumnType::DoubleArray { dims }),
            (_, ColumnType::Double) => self.error(format!("an array has at most {DIMS_MAX} dimensions")),
            (_, other) => self.error(format!("arrays of {other} are not supported, only of DOUBLE")),
        }
    }

    fn is_parameter_list(&self, base: ColumnType) -> bool {
        matches!(self.parser.peek_token_ref().token, Token::LParen)
            && matches!(base, ColumnType::Decimal { .. } | ColumnType::Varchar)
    }
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
        let found = match sql_type {
            ast::DataType::Timestamp(
                None,
                ast::TimezoneInfo::None
                | ast::TimezoneInfo::WithoutTimeZone
                | ast::TimezoneInfo::Tz
                | ast::TimezoneInfo::WithTimeZone,
            ) => Some(ColumnType::Timestamp(TimeUnit::Micros)),
            // Numbers of objects, as PostgreSQL's catalog and its clients have them.
            ast::DataType::Regclass => Some(ColumnType::Long),
            ast::DataType::Custom(name, parameters) if parameters.is_empty() => match name.to_string().as_str() {
                "oid" | "regtype" | "regproc" | "regnamespace" => Some(ColumnType::Long),
                "name" => Some(ColumnType::Varchar),
                name => ColumnType::from_sql_name(name),
            },
            ast::DataType::Uuid => Some(ColumnType::Uuid),
            ast::DataType::JSON => Some(ColumnType::Json),
            ast::DataType::Binary(None) | ast::DataType::Bytea => Some(ColumnType::Binary),
            _ => None,
        };
        // A cast to text that only has another name gives plain text; the others carry their name with them.
        Ok(found.map(|t| door::field("", t, true)))
    }
}
