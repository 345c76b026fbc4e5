//! INSERT: the query of the rows.

use super::assignments::value_or_default;
use super::change::returning;
use super::{ChangedTable, Context, conflict, name, nodes};
use crate::binder::Parameters;
use crate::statement::{Insert, Query};
use crate::{Error, Parameter, Result};
use tidalite_sql::ast::{self, Body, InsertBatch, InsertSource, Literal, With};

pub(super) fn insert(insert: ast::Insert, context: &Context) -> Result<Insert> {
    let target = ChangedTable::new(&insert.table, insert.alias.as_ref())?;
    let returning = returning(insert.with.as_ref(), insert.returning, &target, context)?;
    let conflict = match insert.conflict {
        Some(clause) => Some(conflict::clause(clause, &target, insert.with.as_ref(), context)?),
        None => None,
    };
    Ok(Insert {
        table: target.table.text,
        table_position: target.table.position,
        columns: insert.columns.iter().map(name).collect(),
        query: rows(insert.source, insert.with, context)?,
        alias: target.alias,
        conflict,
        returning,
        commit_rows: commit_rows(insert.batch)?,
    })
}

fn commit_rows(batch: Option<InsertBatch>) -> Result<Option<u64>> {
    match batch {
        None | Some(InsertBatch::Atomic) => Ok(None),
        Some(InsertBatch::Rows(digits)) => match digits.parse::<u64>() {
            Ok(rows) => Ok(Some(rows.max(1))),
            Err(_) => Err(Error::invalid(format!("{digits} is not a number of rows of a commit"))),
        },
    }
}

/// Returns the query of the inserted rows.
fn rows(source: InsertSource, with: Option<With>, context: &Context) -> Result<Query> {
    match source {
        InsertSource::DefaultValues => {
            let row = vec![nodes::literal(Literal::Null)];
            context.query(nodes::query(None, Body::Values(vec![row]), tidalite_sql::Span::default()))
        }
        InsertSource::Query(query) if matches!(query.body, Body::Values(_)) => values(*query, with, context),
        InsertSource::Query(query) => context.query(nodes::whole(with, *query)),
    }
}

/// Returns the query of VALUES; the columns determine the types of parameters.
fn values(mut query: ast::Query, with: Option<With>, context: &Context) -> Result<Query> {
    if let Body::Values(rows) = &mut query.body {
        for cell in rows.iter_mut().flatten() {
            if matches!(cell.kind, ast::ExprKind::Default) {
                *cell = value_or_default(cell.clone());
            }
        }
    }
    if query.with.is_some() && with.is_some() {
        query = nodes::whole(with, query);
    } else {
        query.with = query.with.or(with);
    }
    let parameters = match &context.parameters {
        Parameters::Values(values) => Parameters::Values(values.iter().map(untyped).collect()),
        types => types.clone(),
    };
    context.query_with(query, parameters)
}

fn untyped(value: &Parameter) -> Parameter {
    match value {
        Parameter::Typed(text, _) | Parameter::Of(text, _) => Parameter::Text(text.clone()),
        Parameter::List(items) => Parameter::List(items.iter().map(untyped).collect()),
        other => other.clone(),
    }
}
