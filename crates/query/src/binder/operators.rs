//! Operators: the operators of arrays, times, addresses and JSON are functions, chosen by the types of the operands.

use super::scope::Place;
use super::{Binder, Result};
use crate::functions::json_paths;
use crate::{Error, door, plan};
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::{is_interval, is_signed_numeric, is_timestamp};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator as PlannerOperator;
use tidalite_sql::Span;
use tidalite_sql::ast::{self, BinaryOperator, ExprKind, Literal, UnaryOperator};
use tidalite_types::SqlState;

impl Binder<'_> {
    pub(super) fn unary(&self, op: UnaryOperator, operand: &ast::Expr, place: Place, span: Span) -> Result<Expr> {
        let schema = &place.scope.schema;
        match op {
            UnaryOperator::Not => {
                if let ExprKind::Exists(query) = &operand.kind {
                    return self.exists(query, true, place);
                }
                let value = self.expr(operand, place)?;
                let data_type = value.get_type(schema)?;
                let boolean = BinaryTypeCoercer::new(&data_type, &Operator::IsDistinctFrom, &DataType::Boolean);
                match boolean.get_input_types() {
                    Ok(_) => Ok(Expr::Not(Box::new(value))),
                    Err(_) => {
                        let text = format!("argument of NOT must be of type BOOLEAN, not {}", type_of(&value, schema)?);
                        Err(Error::invalid(text).at(span.start as usize).into())
                    }
                }
            }
            UnaryOperator::Minus => self.minus(operand, place, span),
            UnaryOperator::Plus => {
                let value = self.expr(operand, place)?;
                let data_type = value.get_type(schema)?;
                let is_number = data_type.is_numeric() || is_interval(&data_type) || is_timestamp(&data_type);
                if is_number { Ok(value) } else { Err(no_sign("+", &value, schema, span)?.into()) }
            }
            // The bits of -1 are all set.
            UnaryOperator::BitNot => {
                let value = self.expr(operand, place)?;
                self.operator(BinaryOperator::Subtract, lit(-1_i64), value, schema, span)
            }
            UnaryOperator::Abs => self.scalar_call("abs", vec![self.expr(operand, place)?]),
            UnaryOperator::SquareRoot => self.scalar_call("sqrt", vec![self.expr(operand, place)?]),
            UnaryOperator::CubeRoot => self.scalar_call("cbrt", vec![self.expr(operand, place)?]),
        }
    }

    fn minus(&self, operand: &ast::Expr, place: Place, span: Span) -> Result<Expr> {
        if let ExprKind::Literal(Literal::Number(digits)) = &operand.kind {
            return self.number(digits, true, operand.span);
        }
        let value = self.expr(operand, place)?;
        let data_type = value.get_type(&place.scope.schema)?;
        if matches!(data_type, DataType::Duration(_)) {
            // The difference of two times.
            let interval = cast(value, DataType::Interval(IntervalUnit::MonthDayNano));
            return Ok(Expr::Negative(Box::new(interval)));
        }
        let has_sign =
            data_type.is_null() || is_signed_numeric(&data_type) || is_interval(&data_type) || is_timestamp(&data_type);
        match has_sign {
            true => Ok(Expr::Negative(Box::new(value))),
            false => Err(no_sign("-", &value, &place.scope.schema, span)?.into()),
        }
    }

    /// Applies a binary operator.
    pub(super) fn operator(
        &self,
        op: BinaryOperator,
        left: Expr,
        right: Expr,
        schema: &DFSchema,
        span: Span,
    ) -> Result<Expr> {
        if op == BinaryOperator::Power {
            return self.scalar_call("power", vec![left, right]);
        }
        let missing = || Error::invalid("the operator is not supported").at(span.start as usize);
        let (planner_op, own) = operator(op).ok_or_else(missing)?;
        plan::check_rows(&left, &right).map_err(|error| error.at(span.start as usize))?;
        let mut raw = RawBinaryExpr { op: planner_op, left, right };
        for planner in self.state.expr_planners() {
            match planner.plan_binary_op(raw, schema)? {
                PlannerResult::Planned(expr) => return Ok(expr),
                PlannerResult::Original(original) => raw = original,
            }
        }
        let own = own.ok_or_else(missing)?;
        let RawBinaryExpr { left, right, .. } = raw;
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), own, Box::new(right))))
    }
}

/// Returns the SQL name of the type of a value.
fn type_of(value: &Expr, schema: &DFSchema) -> Result<String> {
    Ok(door::type_name(&value.to_field(schema)?.1))
}

/// Returns the error for a sign before a value of another type than numbers.
fn no_sign(sign: &str, value: &Expr, schema: &DFSchema, span: Span) -> Result<Error> {
    let error = Error::invalid(format!("operator does not exist: {sign} {}", type_of(value, schema)?));
    Ok(error.with_code(SqlState::UNDEFINED_FUNCTION).at(span.start as usize))
}

/// Returns the operator under which DataFusion's expression planners know it, and the operator of the plan, if there is
/// one.
fn operator(op: BinaryOperator) -> Option<(PlannerOperator, Option<Operator>)> {
    match op {
        BinaryOperator::Overlap => return Some((PlannerOperator::PGOverlap, None)),
        BinaryOperator::StartsWith => return Some((PlannerOperator::PGStartsWith, None)),
        _ => {}
    }
    let (planner_op, own) = match op {
        BinaryOperator::Add => (PlannerOperator::Plus, Operator::Plus),
        BinaryOperator::Subtract => (PlannerOperator::Minus, Operator::Minus),
        BinaryOperator::Multiply => (PlannerOperator::Multiply, Operator::Multiply),
        BinaryOperator::Divide => (PlannerOperator::Divide, Operator::Divide),
        BinaryOperator::IntegerDivide => (PlannerOperator::DuckIntegerDivide, Operator::IntegerDivide),
        BinaryOperator::Modulo => (PlannerOperator::Modulo, Operator::Modulo),
        BinaryOperator::Equal => (PlannerOperator::Eq, Operator::Eq),
        BinaryOperator::NotEqual => (PlannerOperator::NotEq, Operator::NotEq),
        BinaryOperator::Less => (PlannerOperator::Lt, Operator::Lt),
        BinaryOperator::LessEqual => (PlannerOperator::LtEq, Operator::LtEq),
        BinaryOperator::Greater => (PlannerOperator::Gt, Operator::Gt),
        BinaryOperator::GreaterEqual => (PlannerOperator::GtEq, Operator::GtEq),
        BinaryOperator::NullSafeEqual => (PlannerOperator::Spaceship, Operator::IsNotDistinctFrom),
        BinaryOperator::Concat => (PlannerOperator::StringConcat, Operator::StringConcat),
        BinaryOperator::BitAnd => (PlannerOperator::BitwiseAnd, Operator::BitwiseAnd),
        BinaryOperator::BitOr => (PlannerOperator::BitwiseOr, Operator::BitwiseOr),
        BinaryOperator::BitXor => (PlannerOperator::PGBitwiseXor, Operator::BitwiseXor),
        BinaryOperator::Xor => (PlannerOperator::Xor, Operator::BitwiseXor),
        BinaryOperator::ShiftLeft => (PlannerOperator::PGBitwiseShiftLeft, Operator::BitwiseShiftLeft),
        BinaryOperator::ShiftRight => (PlannerOperator::PGBitwiseShiftRight, Operator::BitwiseShiftRight),
        BinaryOperator::Contains | BinaryOperator::ContainsEqual => (PlannerOperator::AtArrow, Operator::AtArrow),
        BinaryOperator::ContainedBy | BinaryOperator::ContainedEqual => (PlannerOperator::ArrowAt, Operator::ArrowAt),
        BinaryOperator::RegexMatch => (PlannerOperator::PGRegexMatch, Operator::RegexMatch),
        BinaryOperator::RegexMatchInsensitive => (PlannerOperator::PGRegexIMatch, Operator::RegexIMatch),
        BinaryOperator::RegexNotMatch => (PlannerOperator::PGRegexNotMatch, Operator::RegexNotMatch),
        BinaryOperator::RegexNotMatchInsensitive => (PlannerOperator::PGRegexNotIMatch, Operator::RegexNotIMatch),
        BinaryOperator::LikeMatch => (PlannerOperator::PGLikeMatch, Operator::LikeMatch),
        BinaryOperator::LikeMatchInsensitive => (PlannerOperator::PGILikeMatch, Operator::ILikeMatch),
        BinaryOperator::NotLikeMatch => (PlannerOperator::PGNotLikeMatch, Operator::NotLikeMatch),
        BinaryOperator::NotLikeMatchInsensitive => (PlannerOperator::PGNotILikeMatch, Operator::NotILikeMatch),
        _ => return None,
    };
    Some((planner_op, Some(own)))
}

/// Returns the operator of a comparison.
pub(super) fn comparison(op: BinaryOperator) -> Result<Operator> {
    Ok(match op {
        BinaryOperator::Equal => Operator::Eq,
        BinaryOperator::NotEqual => Operator::NotEq,
        BinaryOperator::Less => Operator::Lt,
        BinaryOperator::LessEqual => Operator::LtEq,
        BinaryOperator::Greater => Operator::Gt,
        BinaryOperator::GreaterEqual => Operator::GtEq,
        _ => {
            let error = Error::invalid("ANY and ALL take a comparison: =, <>, <, <=, > or >=");
            return Err(error.with_code(SqlState::UNDEFINED_FUNCTION).into());
        }
    })
}

/// Returns the function of `#>` or `#>>`; `None` for another operator.
pub(super) fn json_path_function(op: BinaryOperator) -> Option<&'static str> {
    match op {
        BinaryOperator::PathArrow => Some(json_paths::PART),
        BinaryOperator::PathLongArrow => Some(json_paths::TEXT),
        _ => None,
    }
}

/// Returns the path of the name or position after `->` and `->>`; `None` for another operand.
pub(super) fn json_path(step: &ast::Expr) -> Option<String> {
    match &step.kind {
        ExprKind::Literal(Literal::Text(name)) if !name.contains('"') => Some(format!("$[\"{name}\"]")),
        ExprKind::Literal(Literal::Text(name)) => Some(format!("$['{name}']")),
        ExprKind::Literal(Literal::Number(place)) => Some(format!("$[{place}]")),
        ExprKind::Unary { op: UnaryOperator::Minus, operand } => match &operand.kind {
            ExprKind::Literal(Literal::Number(place)) => Some(format!("$[-{place}]")),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a string constant.
pub(super) fn text(value: impl Into<String>) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(value.into())), None)
}
