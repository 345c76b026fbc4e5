//! Queries: WITH, the body, ORDER BY and LIMIT.

use super::order::LimitRows;
use super::scope::{Env, Place, Scope};
use super::ties::with_ties;
use super::{Binder, Result};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use tidalite_sql::ast::{Body, OrderBy, Query};

impl Binder<'_> {
    /// Binds the query of a statement; the rows that its own negative LIMIT takes are left to the caller.
    pub(super) fn statement(&self, query: &Query, env: &Env) -> Result<LogicalPlan> {
        self.limited(query, env, |limit| if matches!(limit, LimitRows::Last) { LimitRows::All } else { limit })
    }

    pub(super) fn query(&self, query: &Query, env: &Env) -> Result<LogicalPlan> {
        self.limited(query, env, |limit| limit)
    }

    /// Binds a query; `own` returns the part of the limit that the plan applies.
    fn limited(&self, query: &Query, env: &Env, own: fn(LimitRows) -> LimitRows) -> Result<LogicalPlan> {
        let mut inner = env.clone();
        if let Some(with) = &query.with {
            self.with(with, &mut inner)?;
        }
        let limit = own(self.limit(query, &inner)?);
        let order = query.order_by.as_ref();
        let plan = match &query.body {
            Body::Select(select) => self.select(select, order, &inner)?,
            other => {
                let plan = self.body(other, &inner)?;
                self.sorted(plan, order, &inner)?
            }
        };
        match limit.into_range(query)? {
            LimitRows::Range { skip, fetch } => {
                Ok(LogicalPlanBuilder::from(plan).limit_by_expr(skip, fetch)?.build()?)
            }
            LimitRows::Ties { skip, fetch } => with_ties(plan, skip, fetch, query.span),
            LimitRows::All | LimitRows::Last => Ok(plan),
        }
    }

    /// Binds the rows of a query, without the clauses around them.
    pub(super) fn body(&self, body: &Body, env: &Env) -> Result<LogicalPlan> {
        match body {
            Body::Select(select) => self.select(select, None, env),
            Body::Values(rows) => self.rows_of_values(rows, env),
            Body::Query(query) => self.query(query, env),
            Body::Set { first, rest } => self.set_operations(first, rest, env),
        }
    }

    /// Sorts rows that no SELECT computes: of set operations, VALUES and queries in parentheses.
    fn sorted(&self, plan: LogicalPlan, order: Option<&OrderBy>, env: &Env) -> Result<LogicalPlan> {
        let Some(order) = order else { return Ok(plan) };
        let keys = {
            let scope = Scope::of_plan(&plan, env.outer);
            let columns: Vec<_> = scope.columns.iter().map(|column| column.value.clone()).collect();
            self.order_keys(order, &columns, Place::new(&scope, env))?
        };
        Ok(LogicalPlanBuilder::from(plan).sort(keys)?.build()?)
    }
}
