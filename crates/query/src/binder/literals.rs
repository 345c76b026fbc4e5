//! Constants: numbers, strings, intervals, geohashes.

use super::operators::text;
use super::{Binder, Result, unsupported};
use datafusion::arrow::array::types::IntervalMonthDayNano;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, ExprKind, Literal, UnaryOperator};
use tidalite_types::Interval;
use tidalite_types::interval::{IntervalField, IntervalFields};

impl Binder<'_> {
    pub(super) fn literal(&self, literal: &Literal, span: Span) -> Result<Expr> {
        Ok(match literal {
            Literal::Null => Expr::Literal(ScalarValue::Null, None),
            Literal::Boolean(value) => lit(*value),
            Literal::Text(value) => text(value.as_str()),
            Literal::Number(digits) => return self.number(digits, false, span),
            Literal::Hex(digits) => match bytes(digits) {
                Some(bytes) => lit(bytes),
                None => return unsupported("hexadecimal digits", span),
            },
            Literal::Geohash(written) => match crate::dialect::geohash_text(written) {
                Some(value) => text(value),
                None => return unsupported("geohash", span),
            },
            Literal::Decimal(_) => return unsupported("decimal with a letter", span),
            Literal::Bits(_) => return unsupported("bits", span),
        })
    }

    /// Returns an integer, a double, or a decimal for digits that a double does not keep.
    pub(super) fn number(&self, digits: &str, is_negative: bool, span: Span) -> Result<Expr> {
        if digits.starts_with("0x") || digits.starts_with("0X") {
            return unsupported("hexadecimal number", span);
        }
        if let Some(exact) = decimal(digits) {
            return Ok(if is_negative { Expr::Negative(Box::new(exact)) } else { exact });
        }
        let signed = if is_negative { format!("-{digits}") } else { digits.to_owned() };
        if let Ok(number) = signed.parse::<i64>() {
            return Ok(lit(number));
        }
        if let Ok(number) = signed.parse::<u64>() {
            return Ok(lit(number));
        }
        match signed.parse::<f64>() {
            Ok(number) => Ok(lit(number)),
            Err(_) => unsupported("number", span),
        }
    }

    pub(super) fn interval(&self, interval: &ast::Interval, span: Span) -> Result<Expr> {
        match interval_value(interval) {
            Some(Interval { months, days, nanos }) => {
                let value = IntervalMonthDayNano::new(months, days, nanos);
                Ok(lit(ScalarValue::IntervalMonthDayNano(Some(value))))
            }
            None => unsupported("interval", span),
        }
    }
}

/// Returns the value of a constant interval.
pub(super) fn interval_value(interval: &ast::Interval) -> Option<Interval> {
    let text = match &interval.value.kind {
        ExprKind::Literal(Literal::Text(text) | Literal::Number(text)) => text.clone(),
        ExprKind::Unary { op: UnaryOperator::Minus, operand } => match &operand.kind {
            ExprKind::Literal(Literal::Number(text)) => format!("-{text}"),
            _ => return None,
        },
        _ => return None,
    };
    Interval::parse(&text, fields(interval)?).ok()
}

/// Returns the fields after the value; `None` for a field that SQL does not have.
fn fields(interval: &ast::Interval) -> Option<Option<IntervalFields>> {
    let field = |field: &ast::IntervalField| {
        let name = &field.unit.value;
        IntervalField::from_sql_name(name.strip_suffix(['s', 'S']).unwrap_or(name))
    };
    Some(match (&interval.field, &interval.to) {
        (Some(first), Some(last)) => Some((field(first)?, field(last)?)),
        (Some(only), None) => Some((field(only)?, field(only)?)),
        (None, _) => None,
    })
}

/// Returns the decimal of a number with more digits than a double keeps.
fn decimal(digits: &str) -> Option<Expr> {
    let (precision, scale) = crate::dialect::decimal_digits(digits)?;
    Some(Expr::Cast(Cast::new(Box::new(text(digits)), DataType::Decimal128(precision, scale))))
}

/// Returns the bytes of hexadecimal digits; an odd number of digits begins with a half byte.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    padded.as_bytes().chunks(2).map(byte).collect()
}
