//! `x NOT IN (SELECT y FROM … WHERE … = outer.k)` among the conditions of WHERE, as `NOT EXISTS`.
//!
//! The stock planner asks whether any row of all is NULL, not of those that belong to the outer row. Said as it is meant:
//! there is no row of them whose value is equal, or unknown beside this one. And `(x, y) IN (SELECT a, b …)`, which it
//! does not know: a row exists that is equal.

use super::relations::{called, factors};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, TableWithJoins, UnaryOperator, Visitor,
};
use std::ops::ControlFlow;

pub(super) fn rewritten(select: &mut Select) {
    let outer = only_table(&select.from);
    if let Some(condition) = &mut select.selection {
        conditions(condition, outer.as_ref());
    }
}

/// Each of those that have to be true.
fn conditions(expr: &mut Expr, outer: Option<&Ident>) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conditions(left, outer);
            conditions(right, outer);
        }
        Expr::Nested(inner) => conditions(inner, outer),
        Expr::InSubquery { expr: row, subquery, negated } if matches!(row.as_ref(), Expr::Tuple(_)) => {
            if let Expr::Tuple(values) = row.as_ref()
                && let Some(found) = row_exists(values, subquery, *negated)
            {
                *expr = found;
            }
        }
        Expr::InSubquery { expr: value, subquery, negated: true } => {
            if let Some(found) = not_exists(value, subquery, outer) {
                *expr = found;
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
            let mut inner = inner.as_ref();
            while let Expr::Nested(nested) = inner {
                inner = nested;
            }
            if let Expr::InSubquery { expr: value, subquery, negated: false } = inner
                && let Some(found) = not_exists(value, subquery, outer)
            {
                *expr = found;
            }
        }
        _ => {}
    }
}

fn not_exists(value: &Expr, subquery: &Query, outer: Option<&Ident>) -> Option<Expr> {
    let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
    if !super::subqueries::is_plain(subquery) || !is_correlated(select) {
        return None;
    }
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] = &select.projection[..] else {
        return None;
    };
    // Within the sub-query its own columns come first.
    let value = match value {
        Expr::Identifier(name) => Expr::CompoundIdentifier(vec![outer?.clone(), name.clone()]),
        Expr::CompoundIdentifier(_) | Expr::Value(_) => value.clone(),
        _ => return None,
    };
    let or = |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Or, right: Box::new(right) };
    let is_equal =
        Expr::BinaryOp { left: Box::new(item.clone()), op: BinaryOperator::Eq, right: Box::new(value.clone()) };
    let is_unknown = or(Expr::IsNull(Box::new(item.clone())), Expr::IsNull(Box::new(value)));
    let hit = Expr::Nested(Box::new(or(is_equal, is_unknown)));
    let mut query = subquery.clone();
    query.order_by = None;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    select.distinct = None;
    select.selection = Some(match select.selection.take() {
        None => hit,
        Some(other) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(other))),
            op: BinaryOperator::And,
            right: Box::new(hit),
        },
    });
    Some(Expr::Exists { subquery: Box::new(query), negated: true })
}

/// `(x, y) IN (SELECT …)`; NOT IN when no row is equal or may be.
fn row_exists(values: &[Expr], subquery: &Query, negated: bool) -> Option<Expr> {
    let names: Vec<String> = (0..values.len()).map(|n| format!("__item{n}")).collect();
    let mut exists =
        super::subqueries::parsed(&format!("EXISTS (SELECT 1 FROM __rows AS __in({}))", names.join(", ")))?;
    super::subqueries::put(&mut exists, subquery, None);
    let binary = |left, op, right| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    let hit = |(value, name): (&Expr, &String)| {
        let (item, value) = (Expr::Identifier(Ident::new(name)), Expr::Nested(Box::new(value.clone())));
        let is_equal = binary(item.clone(), BinaryOperator::Eq, value.clone());
        if !negated {
            return is_equal;
        }
        let is_unknown = binary(Expr::IsNull(Box::new(item)), BinaryOperator::Or, Expr::IsNull(Box::new(value)));
        Expr::Nested(Box::new(binary(is_equal, BinaryOperator::Or, is_unknown)))
    };
    let hits = values.iter().zip(&names).map(hit).reduce(|a, b| binary(a, BinaryOperator::And, b));
    let Expr::Exists { subquery, negated: is_negated } = &mut exists else { return None };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    select.selection = hits;
    *is_negated = negated;
    Some(exists)
}

/// How the only table of a FROM is called.
fn only_table(from: &[TableWithJoins]) -> Option<Ident> {
    match from {
        [TableWithJoins { relation, joins }] if joins.is_empty() => called(relation),
        _ => None,
    }
}

/// Whether it names a table that is not its own.
fn is_correlated(select: &Select) -> bool {
    let tables = factors(select).into_iter().map(|table| called(table).map(|name| name.value));
    let Some(own) = tables.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let mut finder = Foreign { own: &own, found: false };
    if let Some(condition) = &select.selection {
        let _ = super::visit::visit(condition, &mut finder);
    }
    finder.found
}

struct Foreign<'a> {
    own: &'a [String],
    found: bool,
}

impl Visitor for Foreign<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = &parts[..]
        {
            self.found |= !self.own.contains(&table.value);
        }
        ControlFlow::Continue(())
    }
}
