//! WITH: common table expressions, also recursive ones.

use super::names::folded;
use super::scope::Env;
use super::setops::combined;
use super::{Binder, Result, unsupported};
use crate::Error;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite_sql::ast::{Body, Cte, CteBody, Ident, Query, SetOperator, SetQuantifier, SetTerm, With};

impl Binder<'_> {
    /// Adds the queries of WITH to an environment, each after those that it may name.
    pub(super) fn with(&self, with: &With, env: &mut Env) -> Result<()> {
        let mut names = HashSet::new();
        for cte in &with.ctes {
            let name = folded(&cte.name);
            if !names.insert(name.clone()) {
                let error = Error::invalid(format!("WITH query name \"{name}\" specified more than once"));
                return Err(error.about(name).at(cte.name.span.start as usize).into());
            }
            let plan = self.cte(cte, &name, with.recursive, env)?;
            let plan = LogicalPlanBuilder::from(plan).alias(name.as_str())?.build()?;
            env.name_plan(name, plan);
        }
        Ok(())
    }

    fn cte(&self, cte: &Cte, name: &str, is_recursive: bool, env: &Env) -> Result<LogicalPlan> {
        let CteBody::Query(query) = &cte.body else {
            return unsupported("WITH query that changes rows", cte.name.span);
        };
        if is_recursive
            && let Body::Set { first, rest } = &query.body
            && let [init @ .., last] = rest.as_slice()
            && last.op == SetOperator::Union
        {
            return self.recursive(cte, query, name, (first, init, last), env);
        }
        let plan = self.query(query, env)?;
        with_columns(plan, &cte.columns)
    }

    /// Binds `first UNION last`, where `last` may name the query itself.
    fn recursive(
        &self,
        cte: &Cte,
        query: &Query,
        name: &str,
        (first, init, last): (&Body, &[SetTerm], &SetTerm),
        env: &Env,
    ) -> Result<LogicalPlan> {
        let mut own = env.clone();
        if let Some(with) = &query.with {
            self.with(with, &mut own)?;
        }
        let start = self.set_operations(first, init, &own)?;
        let start = with_columns(start, &cte.columns)?;
        let rows = nullable(start.schema().inner());
        let source = provider_as_source(Arc::new(CteWorkTable::new(name, rows)));
        let rows_so_far = LogicalPlanBuilder::scan(name.to_owned(), source.clone(), None)?.build()?;
        let mut inner = own;
        inner.name_plan(name.to_owned(), rows_so_far);
        let step = self.body(&last.body, &inner)?;
        if !reads(&step, &source)? {
            return match query.order_by.is_some() || query.limit.is_some() {
                true => with_columns(self.query(query, env)?, &cte.columns),
                false => combined(start, step, last),
            };
        }
        if query.order_by.is_some() || query.limit.is_some() {
            let error = Error::invalid("ORDER BY and LIMIT of a recursive query are not supported");
            return Err(error.with_hint("write them behind WITH").at(query.span.start as usize).into());
        }
        if last.by_name {
            let error = Error::invalid("BY NAME of a recursive query is not supported");
            return Err(error.at(query.span.start as usize).into());
        }
        let is_distinct = last.quantifier != Some(SetQuantifier::All);
        Ok(LogicalPlanBuilder::from(start).to_recursive_query(name.to_owned(), step, is_distinct)?.build()?)
    }
}

/// Renames the first columns of a plan.
pub(super) fn with_columns(plan: LogicalPlan, names: &[Ident]) -> Result<LogicalPlan> {
    if names.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    if let Some(extra) = names.get(columns.len()) {
        let message = format!("{} names are given for {} columns", names.len(), columns.len());
        return Err(Error::invalid(message).at(extra.span.start as usize).into());
    }
    let named = columns.into_iter().enumerate().map(|(at, column)| match names.get(at) {
        Some(name) => Expr::Column(column).alias(folded(name)),
        None => Expr::Column(column),
    });
    let named: Vec<Expr> = named.collect();
    Ok(LogicalPlanBuilder::from(plan).project(named)?.build()?)
}

/// Later rows of a recursive query may be NULL where the first rows are not.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn reads(plan: &LogicalPlan, source: &Arc<dyn TableSource>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && Arc::ptr_eq(&scan.source, source)
        {
            found = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
