//! Operators that are said with others: `~x`, `document -> 'a'` and `document ->> 0`.

use crate::functions::json;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

pub(super) fn replaced(expr: &mut Expr) {
    let null = || Box::new(Expr::Value(Value::Null.into()));
    match expr {
        // The bits of -1 are all set.
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: inner } => {
            let left = Box::new(Expr::Value(Value::Number("-1".to_owned(), false).into()));
            let right = Box::new(Expr::Nested(std::mem::replace(inner, null())));
            let minus = Expr::BinaryOp { left, op: BinaryOperator::Minus, right };
            *expr = Expr::Nested(Box::new(minus));
        }
        Expr::BinaryOp { left, op: op @ (BinaryOperator::Arrow | BinaryOperator::LongArrow), right } => {
            let Some(path) = step(right) else { return };
            let name = if *op == BinaryOperator::Arrow { json::PART } else { "json_extract" };
            let path = Expr::Value(Value::SingleQuotedString(path).into());
            let document = std::mem::replace(left, null());
            *expr = super::sequences::call(name, vec![*document, path]);
        }
        _ => {}
    }
}

/// A name, or a place in a list, as a path.
fn step(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => step(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(name) if !name.contains('"') => Some(format!("$[\"{name}\"]")),
            Value::SingleQuotedString(name) => Some(format!("$['{name}']")),
            Value::Number(place, _) => Some(format!("$[{place}]")),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(place, _) => Some(format!("$[-{place}]")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
