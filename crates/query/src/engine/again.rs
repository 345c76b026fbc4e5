//! Statements that the planner understands otherwise than they are meant, or not at all, planned once more with other
//! names.

use crate::dialect::{own_names, starred};
use crate::{Error, Result, plan};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

/// So many names beside a `*` are told apart.
const NAMES_MAX: usize = 100;

/// The plan before it is optimised. `sql` is the text of the statement.
pub(super) async fn planned(state: &SessionState, statement: Statement, sql: &str) -> Result<LogicalPlan> {
    // Only what has sub-queries or a `*` may have to be planned again.
    let again = sql.contains(['(', '*']).then(|| statement.clone());
    let planned = match (state.statement_to_plan(statement).await, &again) {
        (Err(error), Some(again)) => told_apart(state, error.into(), again.clone()).await?,
        (planned, _) => planned?,
    };
    match again {
        Some(again) if plan::field_accesses(&planned)? > 0 => with_own_names(state, planned, again).await,
        _ => Ok(planned),
    }
}

fn query_of(statement: &mut Statement) -> Option<&mut ast::Query> {
    match statement {
        Statement::Statement(statement) => match statement.as_mut() {
            ast::Statement::Query(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// The plan with numbers behind names that a `*` has, too.
async fn told_apart(state: &SessionState, mut error: Error, mut statement: Statement) -> Result<LogicalPlan> {
    for _ in 0..NAMES_MAX {
        let name = error.subject.clone().filter(|_| error.to_string().ends_with("is ambiguous"));
        let (Some(name), Some(query)) = (name, query_of(&mut statement)) else { return Err(error) };
        if !starred::renamed(query, &name) {
            return Err(error);
        }
        match state.statement_to_plan(statement.clone()).await {
            Ok(planned) => return Ok(planned),
            Err(next) => error = next.into(),
        }
    }
    Err(error)
}

/// The plan with tables under names that no column has, if it then takes fewer values apart.
async fn with_own_names(state: &SessionState, planned: LogicalPlan, mut statement: Statement) -> Result<LogicalPlan> {
    if let Some(query) = query_of(&mut statement) {
        own_names::given(query);
    }
    let again = state.statement_to_plan(statement).await;
    match again {
        Ok(again) if plan::field_accesses(&again)? < plan::field_accesses(&planned)? => Ok(again),
        _ => Ok(planned),
    }
}
