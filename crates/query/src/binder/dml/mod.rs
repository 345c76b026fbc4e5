//! INSERT, UPDATE, DELETE and MERGE as statements whose queries are trees for the binder.
//!
//! Each statement is a struct of [`crate::statement`] with a query for each of its parts: the inserted rows, the
//! addresses of the changed rows with their new values, and the rows of RETURNING. MERGE, and a WITH clause that
//! changes rows, are several statements.
//!
//! Reading order: [`nodes`] creates nodes of trees; [`assignments`]; [`change`] has UPDATE and DELETE; [`insert`];
//! [`conflict`]; [`steps`] has WITH clauses that change rows, and [`merge`]; [`constants`] reads VALUES without a plan.

mod assignments;
mod change;
pub(crate) mod conflict;
pub(crate) mod constants;
mod insert;
mod merge;
mod nodes;
mod steps;

pub(crate) use change::{check_values, with_columns};

use super::{Parameters, Tree, declare};
use crate::names::Words;
use crate::statement::{Name, Query, Statement};
use crate::{Error, Result};
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::{self, CteBody, ObjectName, With};

/// The parts of a statement that all of its queries share.
pub(crate) struct Context {
    pub words: Arc<Words>,
    pub parameters: Parameters,
}

impl Context {
    fn query(&self, query: ast::Query) -> Result<Query> {
        self.query_with(query, self.parameters.clone())
    }

    fn query_with(&self, mut query: ast::Query, parameters: Parameters) -> Result<Query> {
        declare::resolve(&mut query)?;
        Ok(Query::from_tree(self.words.clone(), Tree { query, parameters }))
    }
}

/// Returns true for a statement that [`statement`] supports.
pub(crate) fn changes_rows(tree: &ast::Statement) -> bool {
    use ast::Statement::{Delete, Insert, Merge, Query, Update};
    match tree {
        Insert(_) | Update(_) | Delete(_) | Merge(_) => true,
        Query(query) => has_changes(query.with.as_ref()),
        _ => false,
    }
}

fn has_changes(with: Option<&With>) -> bool {
    with.is_some_and(|with| with.ctes.iter().any(|cte| !matches!(cte.body, CteBody::Query(_))))
}

/// Returns the statement of a tree that changes rows.
///
/// # Errors
/// The tree has a form that is not supported.
pub(crate) fn statement(tree: ast::Statement, context: &Context) -> Result<Statement> {
    use ast::Statement::{Delete, Insert, Merge, Query, Update};
    match tree {
        Insert(mut insert) if has_changes(insert.with.as_ref()) => {
            steps::with_changes(insert.with.take(), Insert(insert), "INSERT", context)
        }
        Update(mut update) if has_changes(update.with.as_ref()) => {
            steps::with_changes(update.with.take(), Update(update), "UPDATE", context)
        }
        Delete(mut delete) if has_changes(delete.with.as_ref()) => {
            steps::with_changes(delete.with.take(), Delete(delete), "DELETE", context)
        }
        Query(mut query) if has_changes(query.with.as_ref()) => {
            steps::with_changes(query.with.take(), Query(query), "SELECT", context)
        }
        Query(query) => context.query(nodes::whole(None, *query)).map(Statement::Query),
        Insert(insert) => insert::insert(*insert, context).map(Statement::Insert),
        Update(update) => change::update(*update, context).map(Statement::Update),
        Delete(delete) => change::delete(*delete, context).map(Statement::Delete),
        Merge(merge) => merge::merge(*merge, context),
        _ => Err(Error::internal("the statement does not change rows")),
    }
}

/// The table whose rows change.
struct ChangedTable {
    table: Name,
    /// The name of the table in expressions.
    alias: String,
    span: Span,
}

impl ChangedTable {
    fn new(name: &ObjectName, alias: Option<&ast::Ident>) -> Result<ChangedTable> {
        let table = table_name(name)?;
        let last = name.parts.last().map(|part| part.value.clone()).unwrap_or_default();
        let alias = alias.map_or(last, |alias| alias.value.clone());
        Ok(ChangedTable { table, alias, span: name.span })
    }

    /// Returns the relation of the table in FROM. With the schema, the name is not that of a query of WITH.
    fn relation(&self) -> ast::TableRef {
        nodes::table(&[crate::tables::SCHEMA, &self.table.text], &self.alias, self.span)
    }
}

/// Returns the name of a table in the database.
fn table_name(written: &ObjectName) -> Result<Name> {
    let mut parts = written.parts.iter().map(name);
    let first = parts.next().ok_or_else(|| Error::internal("a name without parts"))?;
    parts.try_fold(first, |schema, table| table.within(&schema))
}

fn name(ident: &ast::Ident) -> Name {
    Name { text: ident.value.clone(), position: ident.span.start as usize }
}

#[cfg(test)]
mod tests;
