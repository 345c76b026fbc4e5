//! ON CONFLICT: the queries of new rows, and of the new values of existing rows.

use super::assignments::assigned;
use super::{ChangedTable, Context, name, nodes};
use crate::binder::{Parameters, Tree};
use crate::names::{Words, in_quotes};
use crate::scan::read::ADDRESS;
use crate::statement::{Assigned, Name, OnConflict, Query};
use crate::{Error, Result};
use std::sync::Arc;
use tidalite_sql::ast::{self, Body, ConflictAction, Expr, ExprKind, Projection, SelectItem, With};
use tidalite_types::schema::{fold_name, same_name};
use tidalite_types::{ColumnSchema, TableSchema};

/// The relation of the inserted rows.
pub(crate) const EXCLUDED: &str = "excluded";
/// The relation of the existing rows.
pub(crate) const EXISTING: &str = "__existing";

pub(super) fn clause(
    clause: ast::OnConflict,
    target: &ChangedTable,
    with: Option<&With>,
    context: &Context,
) -> Result<OnConflict> {
    if let Some(constraint) = &clause.constraint {
        let error = Error::invalid("ON CONSTRAINT is not supported: name the upsert keys in parentheses");
        return Err(error.at(constraint.span.start as usize));
    }
    let update = match clause.action {
        ConflictAction::Nothing => None,
        ConflictAction::Update { assignments, selection } => {
            let (columns, values) = assigned(assignments, target)?;
            let is_excluded = |(column, value): (&Name, &Expr)| is_excluded(value, &column.text);
            let is_plain = selection.is_none() && columns.iter().zip(&values).all(is_excluded);
            let items = values.into_iter().map(|value| nodes::item(value, None)).collect();
            let query = ast::Query { with: with.cloned(), ..nodes::select(items, Vec::new(), selection) };
            Some(Assigned { columns, is_plain, query: context.query(query)? })
        }
    };
    Ok(OnConflict { position: clause.span.start as usize, keys: clause.keys.iter().map(name).collect(), update })
}

/// Returns true for `EXCLUDED.column`.
fn is_excluded(value: &Expr, column: &str) -> bool {
    let ExprKind::Column(name) = &value.kind else { return false };
    matches!(name.parts.as_slice(), [table, name] if same_name(&table.value, EXCLUDED) && same_name(&name.value, column))
}

fn quoted(name: &str) -> String {
    in_quotes(&fold_name(name))
}

fn keys(schema: &TableSchema) -> Vec<String> {
    schema.dedup.iter().filter_map(|id| schema.column_by_id(*id)).map(|column| quoted(&column.name)).collect()
}

/// Returns the condition that the keys of two rows are equal, as GROUP BY compares them.
fn on(schema: &TableSchema, alias: &str) -> String {
    let equal = |key: String| format!("{alias}.{key} IS NOT DISTINCT FROM {EXCLUDED}.{key}");
    keys(schema).into_iter().map(equal).collect::<Vec<_>>().join(" AND ")
}

fn of_excluded(names: Vec<String>) -> String {
    names.into_iter().map(|name| format!("{EXCLUDED}.{name}")).collect::<Vec<_>>().join(", ")
}

/// Returns the query of the rows whose keys do not exist: NULL, the number of rows with the same keys, all columns.
pub(crate) fn new_rows(schema: &TableSchema, alias: &str, conflict: &OnConflict) -> Result<Query> {
    let alias = quoted(alias);
    let (on, keys) = (on(schema, &alias), of_excluded(keys(schema)));
    let columns = of_excluded(schema.columns.iter().map(|column| quoted(&column.name)).collect());
    // DO NOTHING: of several new rows with the same keys, the first exists when the others are inserted.
    let first = match &conflict.update {
        None => format!("QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {EXCLUDED}.\"{ADDRESS}\") = 1"),
        Some(_) => String::new(),
    };
    let sql = format!(
        "SELECT {alias}.\"{ADDRESS}\", count(*) OVER (PARTITION BY {keys}) AS \"{ADDRESS}s\", {columns} \
         FROM {EXCLUDED} LEFT JOIN {EXISTING} AS {alias} ON {on} WHERE {alias}.\"{ADDRESS}\" IS NULL {first} \
         ORDER BY {EXCLUDED}.\"{ADDRESS}\""
    );
    let parameters = Parameters::Values(Vec::new());
    Ok(Query::from_tree(Arc::new(Words::read(&sql)), Tree { query: template(&sql)?, parameters }))
}

/// Returns the query of the new values of existing rows: the address, the number of rows with the same keys, and all
/// columns.
pub(crate) fn changed_rows(schema: &TableSchema, alias: &str, conflict: &OnConflict) -> Result<Query> {
    let internal = || Error::internal("ON CONFLICT without new values");
    let update = conflict.update.as_ref().ok_or_else(internal)?;
    let given = update.query.tree.as_deref().ok_or_else(internal)?;
    let Body::Select(given_select) = &given.query.body else { return Err(internal()) };
    let name = quoted(alias);
    let mut query = template(&format!(
        "SELECT {name}.\"{ADDRESS}\", count(*) OVER (PARTITION BY {name}.\"{ADDRESS}\") AS \"{ADDRESS}s\" \
         FROM {EXCLUDED} JOIN {EXISTING} AS {name} ON {}",
        on(schema, &name)
    ))?;
    query.with.clone_from(&given.query.with);
    if let Body::Select(select) = &mut query.body
        && let (Projection::Items(items), Projection::Items(values)) =
            (&mut select.projection, &given_select.projection)
    {
        select.selection.clone_from(&given_select.selection);
        let value = |(at, column): (usize, &ColumnSchema)| {
            let assigned = update.columns.iter().position(|name| same_name(&name.text, &column.name));
            let value = match assigned.and_then(|at| values.get(at)) {
                Some(SelectItem::Expr { expr, .. }) => expr.clone(),
                _ => nodes::column(alias, &fold_name(&column.name)),
            };
            nodes::item(value, Some(&format!("{ADDRESS}{at}")))
        };
        items.extend(schema.columns.iter().enumerate().map(value));
    }
    Ok(Query::from_tree(update.query.words.clone(), Tree { query, parameters: given.parameters.clone() }))
}

fn template(sql: &str) -> Result<ast::Query> {
    match tidalite_sql::parse(sql) {
        Ok(ast::Statement::Query(query)) => Ok(*query),
        _ => Err(Error::internal(format!("a query of ON CONFLICT did not parse: {sql}"))),
    }
}
