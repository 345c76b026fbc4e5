//! WITH clauses that change rows: each query of WITH is a step, whose rows later steps read as a table.

use super::{Context, nodes};
use crate::binder::names::folded;
use crate::statement::{Compound, Statement, Step};
use crate::{Error, Result};
use tidalite_sql::ast::{self, Cte, CteBody, With};

/// Returns the steps of WITH, and last the statement itself.
pub(super) fn with_changes(
    with: Option<With>,
    rest: ast::Statement,
    tag: &'static str,
    context: &Context,
) -> Result<Statement> {
    let mut steps = named(with, context)?;
    steps.push(Step::Answer(Box::new(super::statement(rest, context)?)));
    Ok(Statement::Compound(Compound { tag, steps }))
}

/// Returns a step for each query of WITH.
pub(super) fn named(with: Option<With>, context: &Context) -> Result<Vec<Step>> {
    let Some(With { recursive, ctes }) = with else { return Ok(Vec::new()) };
    ctes.into_iter().map(|cte| step(cte, recursive, context)).collect()
}

fn step(cte: Cte, recursive: bool, context: &Context) -> Result<Step> {
    let name = folded(&cte.name);
    let columns = cte.columns.iter().map(folded).collect();
    let (columns, statement) = match cte.body {
        // The query names its columns itself.
        CteBody::Query(_) => (Vec::new(), Statement::Query(context.query(alone(cte, recursive))?)),
        CteBody::Insert(insert) => (columns, super::statement(ast::Statement::Insert(insert), context)?),
        CteBody::Update(update) => (columns, super::statement(ast::Statement::Update(update), context)?),
        CteBody::Delete(delete) => (columns, super::statement(ast::Statement::Delete(delete), context)?),
        CteBody::Merge(merge) => {
            let error = Error::invalid("MERGE is not supported in WITH queries");
            return Err(error.at(merge.table.span.start as usize));
        }
    };
    Ok(Step::Named { name, columns, statement: Box::new(statement) })
}

/// Returns `WITH name AS (query) SELECT * FROM name`.
fn alone(cte: Cte, recursive: bool) -> ast::Query {
    let from = nodes::table(&[&cte.name.value], &cte.name.value, cte.name.span);
    let query = nodes::select(vec![nodes::star()], vec![from], None);
    ast::Query { with: Some(With { recursive, ctes: vec![cte] }), ..query }
}
