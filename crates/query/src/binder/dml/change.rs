//! UPDATE and DELETE: queries that return the addresses of the rows, and their new values.

use super::assignments::assigned;
use super::{ChangedTable, Context, nodes};
use crate::binder::Tree;
use crate::scan::read::ADDRESS;
use crate::statement::{Delete, Query, Update};
use crate::{Error, Result};
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{self, Body, Expr, ExprKind, Projection, RelationKind, SelectItem, TableRef, With};
use tidalite_types::SqlState;
use tidalite_types::schema::fold_name;

pub(super) fn delete(delete: ast::Delete, context: &Context) -> Result<Delete> {
    let target = ChangedTable::new(&delete.table, delete.alias.as_ref().map(|alias| &alias.name))?;
    let returning = returning(delete.with.as_ref(), delete.returning, &target, context)?;
    let query = match (&delete.selection, delete.using.as_slice()) {
        (None, []) => None,
        _ => Some(context.query(rows(&target, delete.using, delete.selection, Vec::new(), delete.with))?),
    };
    Ok(Delete { table: target.table, query, returning })
}

pub(super) fn update(update: ast::Update, context: &Context) -> Result<Update> {
    let target = ChangedTable::new(&update.table, update.alias.as_ref().map(|alias| &alias.name))?;
    let returning = returning(update.with.as_ref(), update.returning, &target, context)?;
    let (columns, values) = assigned(update.assignments, &target)?;
    let query = context.query(rows(&target, update.from, update.selection, values, update.with))?;
    Ok(Update { table: target.table, query, columns, returning })
}

/// Returns the query of the addresses of rows of a table, with values computed for each row.
pub(super) fn rows(
    target: &ChangedTable,
    others: Vec<TableRef>,
    selection: Option<Expr>,
    values: Vec<Expr>,
    with: Option<With>,
) -> ast::Query {
    let address = nodes::item(nodes::column(&target.alias, ADDRESS), None);
    let named = |(at, value): (usize, Expr)| nodes::item(value, Some(&format!("{ADDRESS}{at}")));
    let items = std::iter::once(address).chain(values.into_iter().enumerate().map(named)).collect();
    let from = std::iter::once(target.relation()).chain(others).collect();
    ast::Query { with, ..nodes::select(items, from, selection) }
}

/// Returns the query of RETURNING over the changed rows, which replace the rows of the table.
pub(super) fn returning(
    with: Option<&With>,
    items: Vec<SelectItem>,
    target: &ChangedTable,
    context: &Context,
) -> Result<Option<Query>> {
    if items.is_empty() {
        return Ok(None);
    }
    let query = nodes::select(items, vec![target.relation()], None);
    context.query(ast::Query { with: with.cloned(), ..query }).map(Some)
}

/// Returns a query of addresses that also selects columns of the table.
pub(crate) fn with_columns(query: &Query, columns: &[&str]) -> Query {
    let Some(tree) = query.tree.as_deref() else { return query.clone() };
    let mut tree = Tree::clone(tree);
    if let Body::Select(select) = &mut tree.query.body
        && let Some(alias) = select.from.first().and_then(alias_of)
        && let Projection::Items(items) = &mut select.projection
    {
        items.extend(columns.iter().map(|column| nodes::item(nodes::column(&alias, &fold_name(column)), None)));
    }
    Query { tree: Some(Arc::new(tree)), ..query.clone() }
}

/// Rejects aggregate functions in the values that an UPDATE assigns; `is_aggregate` decides by the name of a function.
///
/// # Errors
/// A value has an aggregate function outside of a sub-query.
pub(crate) fn check_values(query: &Query, is_aggregate: &dyn Fn(&str) -> bool) -> Result<()> {
    let Some(Body::Select(select)) = query.tree.as_deref().map(|tree| &tree.query.body) else { return Ok(()) };
    let Projection::Items(items) = &select.projection else { return Ok(()) };
    let mut finder = AggregateFinder { is_aggregate, found: None };
    for item in items {
        if let SelectItem::Expr { expr, .. } = item {
            walk::expr(expr, &mut finder);
        }
    }
    match finder.found {
        None => Ok(()),
        Some(span) => {
            let error = Error::invalid("aggregate functions are not allowed in UPDATE");
            Err(error.with_code(SqlState::GROUPING_ERROR).at(span.start as usize))
        }
    }
}

struct AggregateFinder<'a> {
    is_aggregate: &'a dyn Fn(&str) -> bool,
    found: Option<Span>,
}

impl Visitor for AggregateFinder<'_> {
    fn expr(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Function(call) if call.over.is_none() => {
                let name = call.name.parts.last().map(|name| fold_name(&name.value)).unwrap_or_default();
                if (self.is_aggregate)(&name) {
                    self.found = self.found.or(Some(expr.span));
                }
                true
            }
            ExprKind::Subquery(_)
            | ExprKind::ArrayQuery(_)
            | ExprKind::Exists(_)
            | ExprKind::InQuery { .. }
            | ExprKind::Quantified { .. } => false,
            _ => true,
        }
    }
}

fn alias_of(table: &TableRef) -> Option<String> {
    match (&table.relation.alias, &table.relation.kind) {
        (Some(alias), RelationKind::Table { .. }) => Some(alias.name.value.clone()),
        _ => None,
    }
}
