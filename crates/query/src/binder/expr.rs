//! Expressions.

use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use crate::dialect::halves;
use crate::functions::value_texts;
use crate::functions::zones::AT_TIME_ZONE;
use crate::plan::{chosen_texts_alike, text_as, texts_alike};
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, Cast, InList, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, BinaryOperator, CastKind, ExprKind, TypeName, WhenThen};
use tidalite_types::{ErrorKind, SqlState};

/// A chain of more operands of AND and OR becomes a balanced tree: the time to plan grows with its height.
const CHAIN_MAX: usize = 17;

impl Binder<'_> {
    /// Binds an expression.
    pub(super) fn expr(&self, expr: &ast::Expr, place: Place) -> Result<Expr> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Column(name) => self.column(name, place),
            ExprKind::Literal(literal) => self.literal(literal, span),
            ExprKind::Parameter(number) => self.parameter(*number, span),
            ExprKind::Variable(name) => Err(super::declare::unknown(name).into()),
            ExprKind::Typed { data_type, text } => self.typed_text(data_type, text),
            ExprKind::Interval(interval) => self.interval(interval, place, span),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, place, span),
            ExprKind::Binary { left, op, right } => self.binary(left, *op, right, place, span),
            ExprKind::And(list) => joined(self.exprs(list, place)?, Expr::and),
            ExprKind::Or(list) => joined(self.exprs(list, place)?, Expr::or),
            ExprKind::Between { operand, negated, symmetric, low, high } => {
                self.between(operand, low, high, *negated, *symmetric, place)
            }
            ExprKind::InList { operand, negated, list } => {
                let operand = self.expr(operand, place)?;
                Ok(among(operand, self.in_items(list, place)?, *negated, &place.scope.schema)?)
            }
            ExprKind::InQuery { operand, negated, query } => self.in_query(operand, query, *negated, place),
            ExprKind::InValue { operand, negated, set } => self.in_value(operand, set, *negated, place),
            ExprKind::Like { .. } => self.like(expr, place),
            ExprKind::Is { operand, negated, test } => self.is(operand, test, *negated, place, span),
            ExprKind::Quantified { left, op, quantifier, set } => {
                self.quantified(left, *op, *quantifier, set, place, span)
            }
            ExprKind::Case { operand, branches, otherwise } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref(), place)
            }
            ExprKind::Cast { kind, operand, data_type } => self.cast(*kind, operand, data_type, place),
            ExprKind::Collate { operand, collation } => self.collated(operand, collation, place),
            ExprKind::AtTimeZone { operand, zone } => match zone {
                Some(zone) => {
                    let args = vec![self.expr(zone, place)?, self.expr(operand, place)?];
                    self.scalar_call(AT_TIME_ZONE, args)
                }
                None => {
                    let error = Error::invalid("AT LOCAL is not supported").with_hint("write AT TIME ZONE 'zone'");
                    Err(error.at(span.start as usize).into())
                }
            },
            ExprKind::Function(call) => self.function(call, place, span),
            ExprKind::Special(call) => self.special(call, place, span),
            ExprKind::Exists(query) => self.exists(query, false, place),
            ExprKind::Subquery(query) => self.scalar_query(query, place),
            ExprKind::ArrayQuery(query) => self.array_of_query(query, place),
            ExprKind::Array(items) => self.array(items, place),
            ExprKind::Row(values) => self.row(values, place, span),
            ExprKind::Dictionary { is_map, entries } => self.dictionary(*is_map, entries, place, span),
            ExprKind::Subscript { operand, subscripts } => self.subscripts(operand, subscripts, place),
            ExprKind::Field { operand, name } => self.field(operand, name, place),
            ExprKind::Default => {
                let error = Error::invalid("DEFAULT is not allowed in this context");
                Err(error.with_code(SqlState::SYNTAX_ERROR).at(span.start as usize).into())
            }
        }
    }

    /// Binds a condition of WHERE or ON.
    pub(super) fn condition(&self, expr: &ast::Expr, place: Place) -> Result<Expr> {
        match &expr.kind {
            ExprKind::And(list) => {
                let parts = list.iter().map(|part| self.condition(part, place)).collect::<Result<Vec<_>>>()?;
                joined(parts, Expr::and)
            }
            ExprKind::InQuery { operand, negated, query } => match &operand.kind {
                ExprKind::Row(values) => self.row_condition(values, query, *negated, place),
                _ => self.expr(expr, place),
            },
            _ => self.expr(expr, place),
        }
    }

    pub(super) fn exprs(&self, list: &[ast::Expr], place: Place) -> Result<Vec<Expr>> {
        list.iter().map(|expr| self.expr(expr, place)).collect()
    }

    /// Calls a scalar function of the session or of our own.
    pub(super) fn scalar_call(&self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        let own = || crate::functions::scalar_named(name);
        let Some(function) = self.state.scalar_functions().get(name).cloned().or_else(own) else {
            return Err(crate::Error::internal(format!("function {name} is not registered")).into());
        };
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
    }

    fn between(
        &self,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        symmetric: bool,
        place: Place,
    ) -> Result<Expr> {
        let [operand, low, high] = [operand, low, high].map(|expr| self.expr(expr, place));
        let schema = place.scope.schema.as_ref();
        let (operand, low, high) = (operand?, low?, high?);
        let operand = text_as(text_as(operand, &low, schema)?, &high, schema)?;
        let (low, high) = (text_as(low, &operand, schema)?, text_as(high, &operand, schema)?);
        let of = |low: Expr, high: Expr, negated| {
            Expr::Between(Between::new(Box::new(operand.clone()), negated, Box::new(low), Box::new(high)))
        };
        if !symmetric {
            return Ok(of(low, high, negated));
        }
        let either = of(low.clone(), high.clone(), false).or(of(high, low, false));
        Ok(if negated { Expr::Not(Box::new(either)) } else { either })
    }

    fn case(
        &self,
        operand: Option<&ast::Expr>,
        branches: &[WhenThen],
        otherwise: Option<&ast::Expr>,
        place: Place,
    ) -> Result<Expr> {
        let schema = place.scope.schema.as_ref();
        let boxed = |expr: &ast::Expr| self.expr(expr, place).map(Box::new);
        let branches = branches.iter().map(|branch| Ok((boxed(&branch.when)?, boxed(&branch.then)?)));
        let mut branches = branches.collect::<Result<Vec<_>>>()?;
        let (operand, mut otherwise) = (operand.map(boxed).transpose()?, otherwise.map(boxed).transpose()?);
        if let Some(operand) = &operand {
            for (when, _) in &mut branches {
                **when = text_as(std::mem::take(when.as_mut()), operand, schema)?;
            }
        }
        let results = branches.iter_mut().map(|(_, then)| then).chain(&mut otherwise);
        chosen_texts_alike(results.map(AsMut::as_mut).collect(), schema)?;
        Ok(Expr::Case(Case::new(operand, branches, otherwise)))
    }

    fn typed_text(&self, data_type: &TypeName, text: &str) -> Result<Expr> {
        let field = self.type_field(data_type)?;
        let text = Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None);
        Ok(Expr::Cast(Cast::new_from_field(Box::new(text), field)))
    }

    fn cast(&self, kind: CastKind, operand: &ast::Expr, data_type: &TypeName, place: Place) -> Result<Expr> {
        if let Some(bits) = super::types::geohash_bits(data_type) {
            let bits = Expr::Literal(ScalarValue::Int64(Some(bits.into())), None);
            return self.scalar_call(crate::functions::geo::CUT, vec![self.expr(operand, place)?, bits]);
        }
        let value = self.expr(operand, place)?;
        let field = self.type_field_for(data_type, &value, &place.scope.schema)?;
        let value = match kind {
            CastKind::TryCast => Expr::TryCast(TryCast::new_from_field(Box::new(value), field)),
            _ => self.cast_to(value, field, place)?,
        };
        match super::types::characters(data_type) {
            Some(characters) => self.scalar_call("left", vec![value, lit(characters)]),
            None => Ok(value),
        }
    }

    /// Casts a value; an integer is a number of seconds for a timestamp in nanoseconds.
    pub(super) fn cast_to(&self, value: Expr, field: FieldRef, place: Place) -> Result<Expr> {
        let from = value.get_type(&place.scope.schema)?;
        let is_nanos = matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, None));
        let is_seconds = is_nanos && from == DataType::Int64;
        if let Some(name) =
            value_texts::cast_function(&from, field.data_type()).filter(|_| !matches!(value, Expr::Literal(..)))
        {
            return self.scalar_call(name, vec![value]);
        }
        let value = match super::arrays::texts_of_documents(&field).filter(|texts| from != *texts.data_type()) {
            Some(texts) => Expr::Cast(Cast::new_from_field(Box::new(value), texts)),
            None => value,
        };
        let value = match is_seconds {
            true => Expr::Cast(Cast::new(Box::new(value), DataType::Timestamp(TimeUnit::Second, None))),
            false => value,
        };
        Ok(Expr::Cast(Cast::new_from_field(Box::new(value), field)))
    }

    /// COLLATE: strings are ordered by bytes, under each of the names of that order.
    fn collated(&self, operand: &ast::Expr, collation: &ast::ObjectName, place: Place) -> Result<Expr> {
        const BY_BYTES: &[&str] = &["c", "default", "posix", "ucs_basic", "c.utf-8", "c.utf8"];
        let name = collation.parts.last().map(super::names::folded).unwrap_or_default();
        if BY_BYTES.contains(&name.as_str()) {
            return self.expr(operand, place);
        }
        let error = Error::new(ErrorKind::NotFound, format!("collation \"{name}\" does not exist")).about(name);
        Err(error.with_code(SqlState::UNDEFINED_OBJECT).at(collation.span.start as usize).into())
    }

    fn binary(
        &self,
        left: &ast::Expr,
        op: BinaryOperator,
        right: &ast::Expr,
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        if matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow)
            && let Some(path) = super::operators::json_path(right)
        {
            let name = if op == BinaryOperator::Arrow { crate::functions::json::PART } else { "json_extract" };
            let path = Expr::Literal(ScalarValue::Utf8(Some(path)), None);
            return self.scalar_call(name, vec![self.expr(left, place)?, path]);
        }
        if let Some(name) = super::operators::json_path_function(op) {
            return self.scalar_call(name, vec![self.expr(left, place)?, self.expr(right, place)?]);
        }
        if let (ExprKind::Row(values), ExprKind::Subquery(query)) = (&left.kind, &right.kind) {
            return self.row_and_query(values, super::operators::comparison(op)?, query, place);
        }
        // Additions in a row are nested to the left, thousands of levels deep.
        let mut chain = vec![(op, right, span)];
        let mut first = left;
        while let ExprKind::Binary { left, op, right } = &first.kind
            && !matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow)
            && super::operators::json_path_function(*op).is_none()
        {
            chain.push((*op, right, first.span));
            first = left;
        }
        let mut value = self.expr(first, place)?;
        for (op, right, span) in chain.into_iter().rev() {
            let right = self.expr(right, place)?;
            value = self.operator(op, value, right, &place.scope.schema, span)?;
        }
        Ok(value)
    }
}

/// Plans `value IN (items)`.
pub(super) fn among(
    value: Expr,
    items: Vec<Expr>,
    negated: bool,
    schema: &DFSchema,
) -> datafusion::common::Result<Expr> {
    let mut values = std::iter::once(value).chain(items).collect::<Vec<_>>();
    texts_alike(values.iter_mut().collect(), schema)?;
    let items = values.split_off(1);
    let value = values.pop().unwrap_or_default();
    Ok(Expr::InList(InList::new(Box::new(value), items, negated)))
}

/// Connects operands of AND or OR; a long chain becomes a balanced tree.
pub(super) fn joined(parts: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Result<Expr> {
    let missing = || crate::Error::internal("AND or OR without operands").into();
    if parts.len() < CHAIN_MAX {
        return parts.into_iter().reduce(join).ok_or_else(missing);
    }
    halves(parts, &join).ok_or_else(missing)
}
