//! Sub-queries in expressions: EXISTS, IN, ANY, ALL and scalar sub-queries.

use super::number_types::typed_comparison;
use super::operators::comparison;
use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use crate::plan::compared_values;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ExprSchema, ScalarValue, Spans};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, when};
use std::sync::Arc;
use tidalite_sql::ast::{self, BinaryOperator, ExprKind, Quantifier, Query};
use tidalite_types::SqlState;

impl Binder<'_> {
    /// Binds a query that may name the columns of `place`.
    fn subquery(&self, query: &Query, place: Place) -> Result<Subquery> {
        let plan = self.query(query, &place.env.within(place.scope))?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() })
    }

    pub(super) fn single_column(&self, query: &Query, place: Place) -> Result<Subquery> {
        let subquery = self.subquery(query, place)?;
        if subquery.subquery.schema().fields().len() != 1 {
            let error = Error::invalid("subquery must return only one column").with_code(SqlState::SYNTAX_ERROR);
            return Err(error.at(query.span.start as usize).into());
        }
        Ok(subquery)
    }

    pub(super) fn exists(&self, query: &Query, negated: bool, place: Place) -> Result<Expr> {
        Ok(Expr::Exists(Exists { subquery: self.subquery(query, place)?, negated }))
    }

    pub(super) fn scalar_query(&self, query: &Query, place: Place) -> Result<Expr> {
        Ok(Expr::ScalarSubquery(self.single_column(query, place)?))
    }

    pub(super) fn in_query(&self, operand: &ast::Expr, query: &Query, negated: bool, place: Place) -> Result<Expr> {
        if let ExprKind::Row(values) = &operand.kind {
            return self.row_in(values, query, negated, place);
        }
        let subquery = self.single_column(query, place)?;
        let (value, subquery) = typed(self.expr(operand, place)?, subquery, place)?;
        Ok(Expr::InSubquery(InSubquery::new(Box::new(value), subquery, negated)))
    }

    /// Binds `(x, y) IN (SELECT a, b …)`: true if a row is equal, else NULL if a row may be equal.
    fn row_in(&self, values: &[ast::Expr], query: &Query, negated: bool, place: Place) -> Result<Expr> {
        let (rows, equal) = self.rows_and_comparison(values, Operator::Eq, query, place)?;
        any_of(&rows, equal, negated)
    }

    /// Binds `(x, y) < ANY (SELECT a, b …)` and `(x, y) < ALL (SELECT a, b …)`: ALL is true if the negation is true for
    /// no row.
    fn row_quantified(
        &self,
        values: &[ast::Expr],
        op: Operator,
        quantifier: Quantifier,
        query: &Query,
        place: Place,
    ) -> Result<Expr> {
        let (rows, is_true) = self.rows_and_comparison(values, op, query, place)?;
        match quantifier {
            Quantifier::Any => any_of(&rows, is_true, false),
            Quantifier::All => any_of(&rows, Expr::Not(Box::new(is_true)), true),
        }
    }

    /// Binds `(x, y) = (SELECT a, b …)`: NULL without a row.
    pub(super) fn row_and_query(
        &self,
        values: &[ast::Expr],
        op: Operator,
        query: &Query,
        place: Place,
    ) -> Result<Expr> {
        let (rows, is_true) = self.rows_and_comparison(values, op, query, place)?;
        let plan = LogicalPlanBuilder::from(rows).project([is_true])?.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }))
    }

    /// Binds `(x, y) IN (SELECT a, b …)` where NULL counts as false.
    pub(super) fn row_condition(
        &self,
        values: &[ast::Expr],
        query: &Query,
        negated: bool,
        place: Place,
    ) -> Result<Expr> {
        let (rows, equal) = self.rows_and_comparison(values, Operator::Eq, query, place)?;
        let hit = if negated { Expr::IsNotFalse(Box::new(equal)) } else { equal };
        exists(&rows, hit, negated)
    }

    /// Returns the rows of a query, and the comparison of the values with a row.
    fn rows_and_comparison(
        &self,
        values: &[ast::Expr],
        op: Operator,
        query: &Query,
        place: Place,
    ) -> Result<(LogicalPlan, Expr)> {
        let plan = self.query(query, &place.env.within(place.scope))?;
        let columns = plan.schema().columns();
        if columns.len() != values.len() {
            let message = format!("the sub-query has {} columns, the row has {}", columns.len(), values.len());
            return Err(Error::invalid(message).at(query.span.start as usize).into());
        }
        let names = (0..columns.len()).map(|at| format!("value{at}"));
        let named: Vec<Expr> =
            columns.into_iter().zip(names).map(|(column, name)| Expr::Column(column).alias(name)).collect();
        let rows = LogicalPlanBuilder::from(plan).project(named)?.alias("row_values")?.build()?;
        let own: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
        let values = values.iter().map(|value| outer(self.expr(value, place)?, place)).collect::<Result<Vec<_>>>()?;
        let compared = compared_values(&own, op.swap().unwrap_or(op), &values)?;
        Ok((rows, compared))
    }

    pub(super) fn compared_query(
        &self,
        left: &ast::Expr,
        op: BinaryOperator,
        quantifier: Quantifier,
        query: &Query,
        place: Place,
    ) -> Result<Expr> {
        if let ExprKind::Row(values) = &left.kind {
            return self.row_quantified(values, comparison(op)?, quantifier, query, place);
        }
        let subquery = self.single_column(query, place)?;
        let quantifier = match quantifier {
            Quantifier::Any => SetQuantifier::Any,
            Quantifier::All => SetQuantifier::All,
        };
        let (left, subquery) = typed(self.expr(left, place)?, subquery, place)?;
        Ok(Expr::SetComparison(SetComparison::new(Box::new(left), subquery, comparison(op)?, quantifier)))
    }
}

/// Returns a value and the sub-query that it is compared with, of one type of numbers.
fn typed(value: Expr, subquery: Subquery, place: Place) -> Result<(Expr, Subquery)> {
    let rows = subquery.subquery.as_ref().clone();
    let (value, rows) = typed_comparison(value, &place.scope.schema, rows)?;
    Ok((value, Subquery { subquery: Arc::new(rows), ..subquery }))
}

/// Returns true if `hit` is true for a row, else NULL if `hit` is NULL for a row, else false; or the negation.
fn any_of(rows: &LogicalPlan, hit: Expr, negated: bool) -> Result<Expr> {
    let found = exists(rows, hit.clone(), false)?;
    let may_be = exists(rows, hit.is_null(), false)?;
    let null = lit(ScalarValue::Boolean(None));
    Ok(when(found, lit(!negated)).when(may_be, null).otherwise(lit(negated))?)
}

/// Returns EXISTS of the rows for which `hit` is true.
fn exists(rows: &LogicalPlan, hit: Expr, negated: bool) -> Result<Expr> {
    let hits = LogicalPlanBuilder::from(rows.clone()).filter(hit)?.project(vec![lit(1_i64)])?.build()?;
    let outer_ref_columns = hits.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(hits), outer_ref_columns, spans: Spans::new() };
    Ok(Expr::Exists(Exists { subquery, negated }))
}

/// Returns an expression of a query as an expression within a sub-query.
fn outer(expr: Expr, place: Place) -> Result<Expr> {
    let done = expr.transform_up(|expr| {
        let Expr::Column(column) = expr else { return Ok(Transformed::no(expr)) };
        let field = place.scope.schema.field_from_column(&column)?.clone();
        Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
    });
    Ok(done.data()?)
}
