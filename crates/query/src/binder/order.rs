//! ORDER BY and LIMIT.

use super::names::folded;
use super::scope::{Env, Place};
use super::select::empty_scope;
use super::{Binder, Parameters, Result};
use crate::functions::limits::ALL_BUT_LAST;
use crate::{Error, Parameter};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, SortExpr, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, ExprKind, Limit, Literal, OrderBy, OrderItem, Query, UnaryOperator};
use tidalite_types::SqlState;

/// The rows that LIMIT, OFFSET and FETCH leave.
pub(super) enum LimitRows {
    All,
    Range {
        skip: Option<Expr>,
        fetch: Option<Expr>,
    },
    /// The first rows and those equal to the last of them: FETCH … WITH TIES.
    Ties {
        skip: Option<Expr>,
        fetch: Expr,
    },
    /// The last rows: LIMIT -n without OFFSET.
    Last,
}

impl LimitRows {
    /// Returns the rows with LIMIT -n as a negative number, which stands for the last rows.
    pub fn into_range(self, query: &Query) -> Result<LimitRows> {
        let LimitRows::Last = self else { return Ok(self) };
        match query.limit.as_deref() {
            Some(Limit::Count { count: Some(count), .. }) => match negative(count) {
                Some(rows) => Ok(LimitRows::Range { skip: None, fetch: Some(from_end(rows)) }),
                None => Ok(LimitRows::All),
            },
            _ => Ok(LimitRows::All),
        }
    }
}

/// Returns the number of rows that a query takes from its end: LIMIT -n without OFFSET.
pub(crate) fn last_rows(query: &Query) -> Option<u64> {
    match query.limit.as_deref() {
        Some(Limit::Count { count: Some(count), offset: None }) => negative(count),
        _ => None,
    }
}

/// Returns the LIMIT for the last `rows` rows.
fn from_end(rows: u64) -> Expr {
    lit(-i64::try_from(rows).unwrap_or(i64::MAX))
}

/// A bound of LIMIT.
#[derive(Clone, Copy)]
enum RowBound {
    FromStart(u64),
    FromEnd(u64),
    /// NULL.
    None,
}

impl Binder<'_> {
    /// Binds LIMIT, OFFSET and FETCH.
    pub(super) fn limit(&self, query: &Query, env: &Env) -> Result<LimitRows> {
        let rows = |expr: &ast::Expr| self.count(expr, env);
        Ok(match query.limit.as_deref() {
            None | Some(Limit::Count { count: None, offset: None }) => LimitRows::All,
            Some(Limit::Count { count, offset }) => {
                let bound = count.as_ref().and_then(|count| self.row_bound(count));
                if matches!(bound, Some(RowBound::FromEnd(_))) && offset.is_some() {
                    return Err(Error::invalid("LIMIT -n is supported only without OFFSET")
                        .with_hint("LIMIT -n, -m leaves out the last m")
                        .at(query.span.start as usize)
                        .into());
                }
                if count.as_ref().is_some_and(|count| negative(count).is_some()) {
                    return Ok(LimitRows::Last);
                }
                LimitRows::Range {
                    skip: offset.as_ref().map(rows).transpose()?,
                    fetch: count.as_ref().map(rows).transpose()?,
                }
            }
            Some(Limit::Range { lo, hi }) => self.range(lo, hi, env)?,
            Some(Limit::Fetch { percent: true, .. }) => {
                let error = Error::invalid("FETCH with PERCENT is not supported");
                return Err(error.at(query.span.start as usize).into());
            }
            Some(Limit::Fetch { count, offset, with_ties, .. }) => {
                let skip = offset.as_ref().map(rows).transpose()?;
                let fetch = count.as_ref().map_or_else(|| Ok(lit(1_i64)), rows)?;
                match with_ties {
                    true => LimitRows::Ties { skip, fetch },
                    false => LimitRows::Range { skip, fetch: Some(fetch) },
                }
            }
        })
    }

    /// Returns a bound of LIMIT that is a number, NULL or a parameter; `None` for an expression.
    fn row_bound(&self, expr: &ast::Expr) -> Option<RowBound> {
        let of_signed = |rows: i64| match rows {
            0.. => RowBound::FromStart(rows.unsigned_abs()),
            _ => RowBound::FromEnd(rows.unsigned_abs()),
        };
        match &expr.kind {
            ExprKind::Literal(Literal::Null) => Some(RowBound::None),
            ExprKind::Parameter(number) => match self.value_of(*number, expr.span).ok()? {
                Parameter::Null => Some(RowBound::None),
                Parameter::Long(rows) => Some(of_signed(*rows)),
                Parameter::Text(rows) | Parameter::Typed(rows, _) => rows.trim().parse().ok().map(of_signed),
                _ => None,
            },
            _ => integer(expr).map(RowBound::FromStart).or_else(|| negative(expr).map(RowBound::FromEnd)),
        }
    }

    /// `LIMIT lo, hi`: the rows after `lo` up to `hi`, each counted from the start or, if negative, from the end.
    fn range(&self, lo: &ast::Expr, hi: &ast::Expr, env: &Env) -> Result<LimitRows> {
        use RowBound::{FromEnd, FromStart};
        let number = |rows: u64| lit(i64::try_from(rows).unwrap_or(i64::MAX));
        let is_parameter = |bound: &ast::Expr| matches!(bound.kind, ExprKind::Parameter(_));
        if matches!(self.parameters, Parameters::Types(_)) && (is_parameter(lo) || is_parameter(hi)) {
            // The bounds have no values: the plan has the types of parameters only.
            return Ok(LimitRows::Range { skip: Some(self.count(lo, env)?), fetch: Some(self.count(hi, env)?) });
        }
        let (lo_rows, hi_rows) = match (self.row_bound(lo), self.row_bound(hi)) {
            (Some(RowBound::None), Some(hi)) => (FromStart(0), hi),
            (Some(lo), Some(hi)) => (lo, hi),
            _ => return Err(no_range(lo).into()),
        };
        let (fetch, skip) = match (lo_rows, hi_rows) {
            (FromStart(lo), FromStart(hi)) => (number(hi.saturating_sub(lo)), lo),
            (FromEnd(from), FromEnd(to)) if from > to => (from_end(from - to), to),
            (FromEnd(_), FromEnd(_)) => (number(0), 0),
            (FromStart(lo), FromEnd(0) | RowBound::None) => {
                return Ok(LimitRows::Range { skip: Some(number(lo)), fetch: None });
            }
            (FromStart(lo), FromEnd(to)) => (self.scalar_call(ALL_BUT_LAST, vec![number(to)])?, lo),
            _ => return Err(no_range(lo).into()),
        };
        Ok(LimitRows::Range { skip: Some(number(skip)), fetch: Some(fetch) })
    }

    /// Binds a number of rows, which names no column.
    fn count(&self, expr: &ast::Expr, env: &Env) -> Result<Expr> {
        let scope = empty_scope(None);
        self.expr(expr, Place::new(&scope, env))
    }

    /// Binds ORDER BY; `output` are the selected expressions.
    pub(super) fn order_keys(&self, order: &OrderBy, output: &[Expr], place: Place) -> Result<Vec<SortExpr>> {
        match order {
            OrderBy::Items(items) => self.sort_keys(items, output, place),
            OrderBy::All { descending, nulls_first } => {
                let is_ascending = *descending != Some(true);
                let key = |item| SortExpr::new(output_column(item), is_ascending, nulls_first.unwrap_or(!is_ascending));
                Ok(output.iter().map(key).collect())
            }
        }
    }

    /// Binds the keys of ORDER BY; `output` are the selected expressions, by position and name.
    pub(super) fn sort_keys(&self, items: &[OrderItem], output: &[Expr], place: Place) -> Result<Vec<SortExpr>> {
        items.iter().map(|item| Ok(sort_key(item, self.sort_value(&item.expr, output, place)?))).collect()
    }

    fn sort_value(&self, expr: &ast::Expr, output: &[Expr], place: Place) -> Result<Expr> {
        if let Some(position) = position(expr) {
            let found = position.checked_sub(1).and_then(|at| output.get(at));
            return match found {
                Some(value) => Ok(output_column(value)),
                None => Err(out_of_list("ORDER BY", position, expr.span).into()),
            };
        }
        if let ExprKind::Column(name) = &expr.kind
            && let [only] = name.parts.as_slice()
        {
            let name = folded(only);
            // The first of several columns of the name, as of `a.k, b.k`, unless one is computed under the name.
            let named = || output.iter().map(output_column).filter(|column| name_of(column) == Some(&name));
            let is_own = |column: &Expr| matches!(column, Expr::Column(column) if column.relation.is_none());
            let mut several = named();
            match (named().find(is_own), several.next(), several.next()) {
                (Some(own), ..) => return Ok(own),
                (None, Some(column), None) => return Ok(column),
                _ => {}
            }
        }
        self.expr(expr, place)
    }
}

/// Returns the column that an expression of the SELECT list is in the output.
pub(super) fn output_column(expr: &Expr) -> Expr {
    let (relation, name) = expr.qualified_name();
    Expr::Column(Column::new(relation, name))
}

/// Returns the expressions of the SELECT list without aliases, each with its output column.
pub(super) fn with_outputs(items: Vec<Expr>) -> Vec<(Expr, Column)> {
    let with_output = |item: Expr| {
        let (relation, name) = item.qualified_name();
        (item.unalias(), Column::new(relation, name))
    };
    items.into_iter().map(with_output).collect()
}

fn name_of(expr: &Expr) -> Option<&String> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// Returns the sort key for a value; NULL values come last in ascending order and first in descending order.
pub(super) fn sort_key(item: &OrderItem, value: Expr) -> SortExpr {
    let is_ascending = item.descending != Some(true);
    SortExpr::new(value, is_ascending, item.nulls_first.unwrap_or(!is_ascending))
}

/// Returns the error for a position that the SELECT list does not have.
pub(super) fn out_of_list(clause: &str, position: usize, span: Span) -> Error {
    Error::invalid(format!("{clause} position {position} is not in select list"))
        .about(position.to_string())
        .with_code(SqlState::INVALID_COLUMN_REFERENCE)
        .at(span.start as usize)
}

/// Returns the position that an unsigned integer states.
pub(super) fn position(expr: &ast::Expr) -> Option<usize> {
    integer(expr).and_then(|position| usize::try_from(position).ok())
}

fn negative(expr: &ast::Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Unary { op: UnaryOperator::Minus, operand } => integer(operand),
        _ => None,
    }
}

fn integer(expr: &ast::Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Literal(Literal::Number(digits)) => digits.parse().ok(),
        _ => None,
    }
}

fn no_range(lo: &ast::Expr) -> Error {
    let message = "LIMIT lo, hi takes two numbers, the first not from the end unless the second is, too";
    Error::invalid(message).at(lo.span.start as usize)
}
