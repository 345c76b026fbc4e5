//! Assignments of SET: a value for each column.

use super::{ChangedTable, name, nodes};
use crate::statement::Name;
use crate::{Error, Result};
use tidalite_sql::Span;
use tidalite_sql::ast::{Alias, AliasColumn, Assignment, Expr, ExprKind, Literal, ObjectName, Query};
use tidalite_sql::ast::{Relation, RelationKind};
use tidalite_types::schema::same_name;

/// Returns the assigned columns, and the value of each.
pub(super) fn assigned(assignments: Vec<Assignment>, target: &ChangedTable) -> Result<(Vec<Name>, Vec<Expr>)> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for Assignment { columns: names, value } in assignments {
        let given = values_of(value, names.len())?;
        for name in &names {
            columns.push(column(name, target)?);
        }
        values.extend(given.into_iter().map(value_or_default));
    }
    Ok((columns, values))
}

/// Returns the default value of every column, NULL, in place of DEFAULT.
pub(super) fn value_or_default(value: Expr) -> Expr {
    match value.kind {
        ExprKind::Default => Expr { kind: ExprKind::Literal(Literal::Null), span: value.span },
        _ => value,
    }
}

/// Returns one value for each of `count` columns.
fn values_of(value: Expr, count: usize) -> Result<Vec<Expr>> {
    let span = value.span;
    match value.kind {
        _ if count == 1 => Ok(vec![value]),
        ExprKind::Row(values) if values.len() == count => Ok(values),
        ExprKind::Subquery(query) => Ok((0..count).map(|at| column_of(&query, at, count, span)).collect()),
        _ => {
            let error = Error::invalid(format!("{count} columns are assigned from another number of values"));
            Err(error.at(span.start as usize))
        }
    }
}

/// Returns a sub-query for one column of a query.
fn column_of(query: &Query, at: usize, count: usize, span: Span) -> Expr {
    const ROWS: &str = "assigned";
    let column = |at: usize| format!("value{at}");
    let columns = (0..count).map(|at| AliasColumn { name: nodes::ident(&column(at)), data_type: None });
    let alias = Some(Alias { name: nodes::ident(ROWS), columns: columns.collect() });
    let kind = RelationKind::Query { lateral: false, query: Box::new(query.clone()) };
    let rows = nodes::table_ref(Relation::new(kind, alias, span));
    let items = vec![nodes::item(nodes::column(ROWS, &column(at)), None)];
    Expr { kind: ExprKind::Subquery(Box::new(nodes::select(items, vec![rows], None))), span }
}

/// Returns the name of an assigned column, which may be preceded by the name of the table.
fn column(written: &ObjectName, target: &ChangedTable) -> Result<Name> {
    let Some((column, tables)) = written.parts.split_last() else {
        return Err(Error::internal("a name without parts"));
    };
    if let Some(table) = tables.last() {
        let is_target = [target.table.text.as_str(), &target.alias].iter().any(|name| same_name(name, &table.value));
        if !is_target {
            let error = Error::invalid(format!("\"{}\" is not the table that is updated", table.value));
            return Err(error.at(table.span.start as usize));
        }
    }
    Ok(name(column))
}
