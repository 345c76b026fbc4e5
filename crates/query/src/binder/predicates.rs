//! Predicates: IN, LIKE, IS, ANY and ALL.

use super::expr::{among, joined};
use super::operators::{comparison, text};
use super::scope::Place;
use super::{Binder, Result};
use crate::dialect::INTERVAL;
use crate::functions::guarded::array_has;
use crate::functions::value_texts::SIMILAR_TO_ESCAPE;
use crate::plan::{text_as, text_as_list};
use crate::{Error, Parameter};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::functions_nested::expr_fn::{array_max, array_min, array_position, cardinality};
use datafusion::logical_expr::expr::{Cast, InList, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit, when};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, BinaryOperator, ExprKind, IsTest, LikeKind, Literal, QuantifiedSet, Quantifier};

/// The function whose call as the set of IN is an interval of time.
const RANGES: &[&str] = &["today", "yesterday", "tomorrow", "interval"];

/// The left side of LIKE, and the form of the comparison.
#[derive(Clone)]
struct LikeOperand {
    value: Expr,
    kind: LikeKind,
    negated: bool,
    /// The character of ESCAPE, if that is written: none for an empty string.
    escape: Option<Option<char>>,
    span: Span,
}

impl Binder<'_> {
    /// Binds the items of IN; a list as the value of a parameter stands for its items.
    pub(super) fn in_items(&self, list: &[ast::Expr], place: Place) -> Result<Vec<Expr>> {
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            match &item.kind {
                ExprKind::Parameter(number) => items.extend(self.parameter_items(*number, item.span)?),
                _ => items.push(self.expr(item, place)?),
            }
        }
        Ok(items)
    }

    /// Binds `ts IN '2024'`: an interval of time.
    pub(super) fn in_value(&self, operand: &ast::Expr, set: &ast::Expr, negated: bool, place: Place) -> Result<Expr> {
        let is_interval = match &set.kind {
            ExprKind::Literal(Literal::Text(_)) | ExprKind::Parameter(_) => true,
            ExprKind::Function(call) => match super::names::folded_parts(&call.name).as_slice() {
                [name] => RANGES.contains(&name.as_str()),
                _ => false,
            },
            _ => false,
        };
        if !is_interval {
            return self.in_array(operand, set, negated, place);
        }
        let interval = self.scalar_call(INTERVAL, vec![self.expr(set, place)?])?;
        Ok(Expr::InList(InList::new(Box::new(self.expr(operand, place)?), vec![interval], negated)))
    }

    /// Binds `x IN array`.
    fn in_array(&self, operand: &ast::Expr, set: &ast::Expr, negated: bool, place: Place) -> Result<Expr> {
        let found = match &set.kind {
            ExprKind::Array(_) => {
                let values = QuantifiedSet::Values(vec![set.clone()]);
                self.quantified(operand, BinaryOperator::Equal, Quantifier::Any, &values, place, set.span)?
            }
            _ => {
                let schema = place.scope.schema.as_ref();
                let array = self.expr(set, place)?;
                if !matches!(array.get_type(schema)?, DataType::List(_)) {
                    let error = Error::invalid("IN takes values in parentheses, an interval of time or an array");
                    return Err(error.at(set.span.start as usize).into());
                }
                over_array(self.expr(operand, place)?, BinaryOperator::Equal, Quantifier::Any, array, schema)?
            }
        };
        Ok(if negated { Expr::Not(Box::new(found)) } else { found })
    }

    /// Returns the character of ESCAPE: none for an empty string.
    fn escape(&self, escape: &ast::Expr, place: Place) -> Result<Option<char>> {
        let refused = |message: &str| Error::invalid(message).at(escape.span.start as usize);
        let bound = self.expr(escape, place)?;
        let Some(text) = constant_text(&bound) else { return Err(refused("ESCAPE takes a constant string").into()) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (first, None) => Ok(first),
            _ => Err(refused("invalid escape string").with_hint("an escape string is empty or one character").into()),
        }
    }

    /// Binds LIKE, ILIKE, SIMILAR TO and REGEXP.
    pub(super) fn like(&self, expr: &ast::Expr, place: Place) -> Result<Expr> {
        let ExprKind::Like { operand, negated, kind, quantifier, pattern, escape } = &expr.kind else {
            return Err(Error::internal("an expression is not LIKE").into());
        };
        let escape = escape.as_deref().map(|escape| self.escape(escape, place)).transpose()?;
        let value = self.expr(operand, place)?;
        let left = LikeOperand { value, kind: *kind, negated: *negated, escape, span: expr.span };
        let Some(quantifier) = quantifier else { return self.like_pattern(left, pattern, place) };
        let one = |pattern: &ast::Expr| self.like_pattern(left.clone(), pattern, place);
        let matches = patterns(pattern)?.iter().map(one).collect::<Result<Vec<_>>>()?;
        match (quantifier, matches.is_empty()) {
            (Quantifier::Any, true) => Ok(lit(false)),
            (Quantifier::All, true) => Ok(lit(true)),
            (Quantifier::Any, false) => joined(matches, Expr::or),
            (Quantifier::All, false) => joined(matches, Expr::and),
        }
    }

    /// Binds the comparison with one pattern.
    fn like_pattern(&self, left: LikeOperand, pattern: &ast::Expr, place: Place) -> Result<Expr> {
        let LikeOperand { value, kind, negated, escape, span } = left;
        let bound = self.expr(pattern, place)?;
        let pattern = match (kind, constant_text(&bound), escape) {
            (LikeKind::Regexp, ..) | (LikeKind::Like | LikeKind::Ilike, _, None | Some(Some('\\'))) => bound,
            (LikeKind::Similar, Some(written), escape) => {
                text(crate::dialect::similar_to(written, escape.unwrap_or(Some('\\'))))
            }
            (LikeKind::Similar, None, None) => self.scalar_call(SIMILAR_TO_ESCAPE, vec![bound])?,
            (LikeKind::Like | LikeKind::Ilike, Some(written), Some(escape)) => {
                text(crate::dialect::with_backslashes(written, escape))
            }
            (_, None, Some(_)) => {
                let error = Error::invalid("a pattern with ESCAPE is a constant string");
                return Err(error.at(pattern.span.start as usize).into());
            }
        };
        if let LikeKind::Like | LikeKind::Ilike = kind {
            let is_insensitive = kind == LikeKind::Ilike;
            return Ok(Expr::Like(Like::new(negated, Box::new(value), Box::new(pattern), None, is_insensitive)));
        }
        let op = if negated { BinaryOperator::RegexNotMatch } else { BinaryOperator::RegexMatch };
        self.operator(op, value, pattern, &place.scope.schema, span)
    }

    /// Binds `x IS [NOT] …`.
    pub(super) fn is(
        &self,
        operand: &ast::Expr,
        test: &IsTest,
        negated: bool,
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        let value = Box::new(self.expr(operand, place)?);
        Ok(match (test, negated) {
            (IsTest::Null, false) => Expr::IsNull(value),
            (IsTest::Null, true) => Expr::IsNotNull(value),
            (IsTest::True, false) => Expr::IsTrue(value),
            (IsTest::True, true) => Expr::IsNotTrue(value),
            (IsTest::False, false) => Expr::IsFalse(value),
            (IsTest::False, true) => Expr::IsNotFalse(value),
            (IsTest::Unknown, false) => Expr::IsUnknown(value),
            (IsTest::Unknown, true) => Expr::IsNotUnknown(value),
            (IsTest::DistinctFrom(other), negated) => {
                let op = if negated { Operator::IsNotDistinctFrom } else { Operator::IsDistinctFrom };
                let (other, schema) = (self.expr(other, place)?, place.scope.schema.as_ref());
                let value = text_as(*value, &other, schema)?;
                let other = text_as(other, &value, schema)?;
                Expr::BinaryExpr(BinaryExpr::new(Box::new(value), op, Box::new(other)))
            }
            (IsTest::Normalized | IsTest::Json, _) => {
                let error = Error::invalid("IS NORMALIZED and IS JSON are not supported");
                return Err(error.at(span.start as usize).into());
            }
        })
    }

    /// Binds `x = ANY (…)` and `x > ALL (…)`.
    pub(super) fn quantified(
        &self,
        left: &ast::Expr,
        op: BinaryOperator,
        quantifier: Quantifier,
        set: &QuantifiedSet,
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        let values = match set {
            QuantifiedSet::Query(query) => return self.compared_query(left, op, quantifier, query, place),
            QuantifiedSet::Values(values) => values,
        };
        let [set] = values.as_slice() else {
            let error = Error::invalid("ANY and ALL take an array or a query").with_hint("ANY (ARRAY[a, b])");
            return Err(error.at(span.start as usize).into());
        };
        if self.is_untyped(set) {
            // The parameter has the type of the items until the type of the array is known.
            let (left, item) = (self.expr(left, place)?, self.expr(set, place)?);
            return self.operator(op, left, item, &place.scope.schema, span);
        }
        let is_list = matches!(
            (quantifier, op),
            (Quantifier::Any, BinaryOperator::Equal) | (Quantifier::All, BinaryOperator::NotEqual)
        );
        if is_list && let Some(items) = self.array_items(set, place)? {
            let negated = quantifier == Quantifier::All;
            if items.is_empty() {
                return Ok(lit(negated));
            }
            let value = self.expr(left, place)?;
            if let (ExprKind::Row(_), ExprKind::Array(written)) = (&left.kind, &set.kind) {
                return Ok(row_among(value, written, items, negated));
            }
            return Ok(among(value, items, negated, &place.scope.schema)?);
        }
        let (left, array) = (self.expr(left, place)?, self.expr(set, place)?);
        over_array(left, op, quantifier, array, place.scope.schema.as_ref())
    }

    /// Returns the items of an array that is written as a constructor, or as a constant string.
    fn array_items(&self, set: &ast::Expr, place: Place) -> Result<Option<Vec<Expr>>> {
        match &set.kind {
            ExprKind::Array(items) => self.exprs(items, place).map(Some),
            ExprKind::Literal(Literal::Text(text)) => Ok(items_of_text(text)),
            ExprKind::Parameter(number) => match self.value_of(*number, set.span)? {
                Parameter::List(items) => {
                    items.iter().map(|item| self.constant(item, set.span)).collect::<Result<_>>().map(Some)
                }
                Parameter::Text(text) => Ok(items_of_text(text)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

/// Plans `left op ANY (array)` and `left op ALL (array)`.
fn over_array(left: Expr, op: BinaryOperator, quantifier: Quantifier, array: Expr, schema: &DFSchema) -> Result<Expr> {
    let array = text_as_list(array, &left, schema)?;
    let left = text_as_item(left, &array, schema)?;
    let op = comparison(op)?;
    match quantifier {
        Quantifier::Any => Ok(any(left, op, array)?),
        Quantifier::All => Ok(all(left, op, array)?),
    }
}

/// Returns the text of a constant string.
fn constant_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// Returns the patterns of LIKE ANY or LIKE ALL.
fn patterns(list: &ast::Expr) -> Result<&[ast::Expr]> {
    match &list.kind {
        ExprKind::Row(patterns) | ExprKind::Array(patterns) => Ok(patterns),
        ExprKind::Literal(_) | ExprKind::Parameter(_) => Ok(std::slice::from_ref(list)),
        _ => {
            let error = Error::invalid("LIKE ANY and LIKE ALL take a list of patterns");
            Err(error.at(list.span.start as usize).into())
        }
    }
}

/// Casts a constant text to the type of the items of an array.
fn text_as_item(value: Expr, array: &Expr, schema: &DFSchema) -> datafusion::common::Result<Expr> {
    let is_text = matches!(&value, Expr::Literal(text, _) if text.try_as_str().flatten().is_some());
    match array.get_type(schema) {
        Ok(DataType::List(item)) if is_text && !item.data_type().is_string() => {
            Ok(Expr::Cast(Cast::new_from_field(Box::new(value), item)))
        }
        _ => Ok(value),
    }
}

/// Returns the items of PostgreSQL's text of an array, as which clients send lists.
fn items_of_text(written: &str) -> Option<Vec<Expr>> {
    let list = Parameter::list_of_text(written, &|item| Some(Parameter::Text(item.to_owned())))?;
    let Parameter::List(items) = list else { return None };
    let value = |item| match item {
        Parameter::Text(item) => Some(text(item)),
        Parameter::Null => Some(Expr::Literal(ScalarValue::Null, None)),
        _ => None,
    };
    items.into_iter().map(value).collect()
}

/// Returns true if `row` is among the items of an array, or is not if `negated`.
///
/// Items of an array are compared as a whole: NULL fields are equal, unlike those of a list of rows.
fn row_among(row: Expr, written: &[ast::Expr], items: Vec<Expr>, negated: bool) -> Expr {
    let equal = |(item, written): (Expr, &ast::Expr)| {
        let op = if matches!(written.kind, ExprKind::Row(_)) { Operator::IsNotDistinctFrom } else { Operator::Eq };
        compared(row.clone(), op, item)
    };
    let found = items.into_iter().zip(written).map(equal).reduce(Expr::or).unwrap_or_else(|| lit(false));
    if negated { Expr::Not(Box::new(found)) } else { found }
}

fn compared(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// `left op ANY (array)`: NULL for a NULL array, false for one without values.
fn any(left: Expr, op: Operator, array: Expr) -> datafusion::common::Result<Expr> {
    let (min, max) = (array_min(array.clone()), array_max(array.clone()));
    let (bound, is_true) = match op {
        Operator::Eq => {
            // Nothing is among no elements, nor is NULL.
            let has_elements = cardinality(array.clone()).not_eq(lit(0_u64));
            return Ok(has_elements.and(null_if_unknown(array_has(array.clone(), left), array)?));
        }
        Operator::Gt => (min.clone(), min.lt(left)),
        Operator::GtEq => (min.clone(), min.lt_eq(left)),
        Operator::Lt => (max.clone(), max.gt(left)),
        Operator::LtEq => (max.clone(), max.gt_eq(left)),
        _ => (max.clone(), min.not_eq(left.clone()).or(max.not_eq(left))),
    };
    let null = lit(ScalarValue::Boolean(None));
    let found = when(bound.is_not_null(), is_true).when(array.clone().is_not_null(), lit(false)).otherwise(null)?;
    null_if_unknown(found, array)
}

/// Returns NULL in place of false for an array with a NULL, whose comparison is unknown.
fn null_if_unknown(found: Expr, array: Expr) -> datafusion::common::Result<Expr> {
    Ok(found.or(when(has_null(array), lit(ScalarValue::Boolean(None))).otherwise(lit(false))?))
}

fn has_null(array: Expr) -> Expr {
    array_position(array, lit(ScalarValue::Null), lit(1_i64)).is_not_null()
}

/// `left op ALL (array)`: true for an array without elements.
fn all(left: Expr, op: Operator, array: Expr) -> datafusion::common::Result<Expr> {
    let (min, max) = (array_min(array.clone()), array_max(array.clone()));
    let not = |expr: Expr| Expr::Not(Box::new(expr));
    let is_false = match op {
        Operator::Eq => not(min.eq(left.clone()).and(max.eq(left.clone()))),
        Operator::Gt | Operator::GtEq => not(compared(left.clone(), op, max)),
        Operator::Lt | Operator::LtEq => not(compared(left.clone(), op, min)),
        _ => array_has(array.clone(), left.clone()),
    };
    let null = lit(ScalarValue::Boolean(None));
    let has_null = has_null(array.clone());
    when(array.clone().is_null(), null.clone())
        .when(cardinality(array).eq(lit(0_u64)), lit(true))
        .when(left.is_null(), null.clone())
        .when(is_false, lit(false))
        .when(has_null, null)
        .otherwise(lit(true))
}
