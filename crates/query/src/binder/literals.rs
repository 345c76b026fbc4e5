//! Constants: numbers, strings, intervals, geohashes.

use super::operators::text;
use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use datafusion::arrow::array::types::IntervalMonthDayNano;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, BinaryOperator, ExprKind, Literal, UnaryOperator};
use tidalite_types::Interval;
use tidalite_types::interval::{IntervalField, IntervalFields};

/// The base of hexadecimal numbers.
const HEX_RADIX: u32 = 16;

impl Binder<'_> {
    pub(super) fn literal(&self, literal: &Literal, span: Span) -> Result<Expr> {
        Ok(match literal {
            Literal::Null => Expr::Literal(ScalarValue::Null, None),
            Literal::Boolean(value) => lit(*value),
            Literal::Text(value) => text(value.as_str()),
            Literal::Number(digits) => return self.number(digits, false, span),
            Literal::Hex(digits) => match bytes(digits) {
                Some(bytes) => lit(bytes),
                None => return Err(Error::invalid("invalid hexadecimal digits").at(span.start as usize).into()),
            },
            Literal::Geohash(written) => match crate::dialect::geohash_text(written) {
                Some(value) => text(value),
                None => return Err(crate::dialect::geohash_error(written).at(span.start as usize).into()),
            },
            Literal::Decimal(written) => return exact_decimal(written, span),
            Literal::Bits(_) => {
                return Err(Error::invalid("bit strings are not supported").at(span.start as usize).into());
            }
        })
    }

    /// Returns an integer, a double, or a decimal for digits that a double does not keep.
    pub(super) fn number(&self, digits: &str, is_negative: bool, span: Span) -> Result<Expr> {
        if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            let invalid = || Error::invalid("hexadecimal number out of range").at(span.start as usize);
            let number = u64::from_str_radix(hex, HEX_RADIX).map_err(|_| invalid())?;
            return self.number(&number.to_string(), is_negative, span);
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
            Err(_) => Err(Error::invalid("invalid number").at(span.start as usize).into()),
        }
    }

    pub(super) fn interval(&self, interval: &ast::Interval, place: Place, span: Span) -> Result<Expr> {
        match interval_value(interval) {
            Some(Interval { months, days, nanos }) => {
                let value = IntervalMonthDayNano::new(months, days, nanos);
                Ok(lit(ScalarValue::IntervalMonthDayNano(Some(value))))
            }
            None => self.computed_interval(interval, place, span),
        }
    }

    /// Binds `INTERVAL value unit` of a computed number of units.
    fn computed_interval(&self, interval: &ast::Interval, place: Place, span: Span) -> Result<Expr> {
        let is_constant = matches!(interval.value.kind, ExprKind::Literal(_));
        let unit = match (fields(interval), interval.to.is_some()) {
            (Some(Some(unit)), false) if !is_constant => Interval::parse("1", Some(unit)).ok(),
            _ => None,
        };
        let Some(Interval { months, days, nanos }) = unit else {
            let written = match &interval.value.kind {
                ExprKind::Literal(Literal::Text(text)) => text.clone(),
                _ => self.written(interval.value.span),
            };
            let message = format!("invalid input for type INTERVAL: \"{written}\"");
            return Err(Error::invalid(message).at(interval.value.span.start as usize).into());
        };
        let one = lit(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos))));
        let count = self.expr(&interval.value, place)?;
        self.operator(BinaryOperator::Multiply, count, one, &place.scope.schema, span)
    }
}

/// Returns the decimal of a number such as `10.5m`, which keeps its digits.
fn exact_decimal(written: &str, span: Span) -> Result<Expr> {
    const DIGITS_MAX: usize = 38;
    let digits = written.trim_end_matches(['m', 'M']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let precision = (whole.trim_start_matches('0').len() + fraction.len()).max(1);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match (u8::try_from(precision), i8::try_from(fraction.len())) {
        (Ok(own), Ok(scale)) if is_plain && precision <= DIGITS_MAX => {
            Ok(Expr::Cast(Cast::new(Box::new(text(digits)), DataType::Decimal128(own, scale))))
        }
        _ => {
            let message = format!("a decimal has at most {DIGITS_MAX} digits and no exponent");
            Err(Error::invalid(message).at(span.start as usize).into())
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
