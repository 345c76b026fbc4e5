//! `x NOT IN (SELECT y FROM … WHERE … = outer.k)` among the conditions of WHERE, as `NOT EXISTS`.
//!
//! The stock planner asks whether any row of all is NULL, not of those that belong to the outer row. Said as it is meant:
//! there is no row of them whose value is equal, or unknown beside this one.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, UnaryOperator,
    Visitor,
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

/// How the only table of a FROM is called.
fn only_table(from: &[TableWithJoins]) -> Option<Ident> {
    match from {
        [TableWithJoins { relation, joins }] if joins.is_empty() => called(relation),
        _ => None,
    }
}

fn called(table: &TableFactor) -> Option<Ident> {
    match table {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.clone()),
            None => name.0.last()?.as_ident().cloned(),
        },
        TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => Some(alias.as_ref()?.name.clone()),
        _ => None,
    }
}

/// Whether it names a table that is not its own.
fn is_correlated(select: &Select) -> bool {
    let tables =
        select.from.iter().flat_map(|of| std::iter::once(&of.relation).chain(of.joins.iter().map(|j| &j.relation)));
    let Some(own) = tables.map(|table| called(table).map(|name| name.value)).collect::<Option<Vec<_>>>() else {
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
