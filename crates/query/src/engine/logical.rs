//! The logical plan of a query before optimization. The binder plans the query, or, for a form that the binder does not
//! know yet, the rewrites of [`crate::dialect`] and DataFusion's SQL planner.

use super::{Engine, again, plans};
use crate::binder::{self, BindError, ReadValues, Tree};
use crate::names::Words;
use crate::statement::Query;
use crate::tables::QueryTables;
use crate::{Catalog, Error, Result, plan};
use chrono::{DateTime, Utc};
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as PlannerStatement;
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The relations and functions that a query names.
pub(super) struct About {
    /// Tables outside the system catalog.
    pub names_any: bool,
    /// Neither views nor files, nor functions of the session, of the clock or of chance.
    pub names_only_tables: bool,
}

/// The numbers of queries that each front end has planned.
#[derive(Clone, Debug, Default)]
pub struct FrontEndCounts {
    /// Planned by the binder.
    pub bound: u64,
    /// Refused by the binder as invalid.
    pub refused: u64,
    /// Planned by the rewrites, by the form that the binder does not know.
    pub unsupported: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<FrontEndCounts>);

impl Counts {
    fn change(&self, change: impl FnOnce(&mut FrontEndCounts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Engine {
    /// Returns the numbers of queries that each front end has planned.
    #[must_use]
    pub fn front_end_counts(&self) -> FrontEndCounts {
        self.front_end.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the plan before optimization, the state with the tables of the plan, and the kinds of names in the query.
    pub(super) fn logical<'a>(
        self: &'a Arc<Self>,
        state: &'a SessionState,
        catalog: &'a Arc<dyn Catalog>,
        query: &'a Query,
        own: &'a [(&'a str, Arc<dyn TableProvider>)],
    ) -> BoxFuture<'a, Result<(LogicalPlan, SessionState, About)>> {
        self.logical_unboxed(state, catalog, query, own).boxed()
    }

    async fn logical_unboxed(
        self: &Arc<Self>,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        own: &[(&str, Arc<dyn TableProvider>)],
    ) -> Result<(LogicalPlan, SessionState, About)> {
        let tables = QueryTables::new(catalog.clone(), self.fast_operators);
        let names = self.references(state, query)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let expanded = self.pin_with_views(state, &tables, &names)?;
        self.check_size(query, &expanded)?;
        let names_any = !own.is_empty() || names.iter().any(|name| tables.is_pinned(name));
        for (name, table) in own {
            tables.put(name, table.clone());
        }
        let mut state = state.clone();
        state.register_catalog_list(Arc::new(tables.clone()));
        let names_views = !expanded.is_empty();
        self.put_views(&state, &tables, expanded).await?;
        let bound = match self.tree_of(query) {
            Some(tree) => self.bound(&state, catalog, query, tree).await?,
            None => None,
        };
        let (logical, names_files) = match bound {
            Some(bound) => bound,
            None => (self.rewritten(&state, query).await?, false),
        };
        let now = state.execution_props().query_execution_start_time.unwrap_or_default();
        let is_immutable = plans::is_immutable(&logical)?;
        let (logical, is_bound) = refined(logical, catalog, now, query.tail)?;
        let names_only_tables = !names_files && !names_views && !is_bound && is_immutable;
        Ok((logical, state, About { names_any, names_only_tables }))
    }

    /// Returns the plan of the rewrites of the first front end.
    pub(super) async fn rewritten(&self, state: &SessionState, query: &Query) -> Result<LogicalPlan> {
        let parsed = Box::new(query.stock_ast()?.clone());
        let statement = PlannerStatement::Statement(Box::new(ast::Statement::Query(parsed)));
        again::planned(state, statement, &query.words.sql).await
    }

    /// Returns the tree of a query that the binder plans.
    pub(super) fn tree_of<'q>(&self, query: &'q Query) -> Option<&'q Tree> {
        query.tree.as_deref().filter(|_| self.uses_binder || query.only_tree().is_some())
    }

    /// Returns the plan of the binder, and true if the query names files; `None` if the rewrites plan the query.
    async fn bound(
        &self,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        tree: &Tree,
    ) -> Result<Option<(LogicalPlan, bool)>> {
        let bound = self.bind(state, catalog, &query.words, tree).await;
        self.front_end.change(|counts| match &bound {
            Ok(_) => counts.bound += 1,
            Err(BindError::Unsupported(form)) => *counts.unsupported.entry(form.feature).or_default() += 1,
            Err(BindError::Invalid(_)) => counts.refused += 1,
            Err(BindError::Values(_)) => {}
        });
        if_bound(bound, query)
    }

    /// Binds a query over the tables of `state`; also returns true if the query names files.
    pub(super) async fn bind(
        &self,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        words: &Arc<Words>,
        tree: &Tree,
    ) -> binder::Result<(LogicalPlan, bool)> {
        let mut tables = binder::tables::tables(state, &tree.query).await;
        let names_files = self.open_files(state, tree, &mut tables).await?;
        let mut values = ReadValues::new();
        loop {
            match binder::bind(state, &tables, &words.sql, tree, &values) {
                Ok(plan) => return Ok((plan, names_files)),
                Err(BindError::Values(query)) => {
                    let read = self.pivot_values(state, catalog, words, &query, values.len()).await?;
                    values.insert(query.span, read);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the plan of the binder; `None` for a form that only the rewrites plan.
///
/// # Errors
/// The query is not valid, or neither front end plans it.
pub(super) fn if_bound<T>(bound: binder::Result<T>, query: &Query) -> Result<Option<T>> {
    match bound {
        Ok(plan) => Ok(Some(plan)),
        Err(BindError::Unsupported(_)) if query.ast.is_some() => Ok(None),
        Err(BindError::Unsupported(form)) => {
            Err(Error::invalid(format!("{} is not supported", form.feature)).at(form.span.start as usize))
        }
        Err(BindError::Invalid(error)) => Err(*error),
        Err(BindError::Values(_)) => Err(Error::internal("the values of a PIVOT were not read")),
    }
}

/// Applies the rules that come before the optimizer. Also returns true if functions were bound to the objects of the
/// database.
pub(super) fn refined(
    logical: LogicalPlan,
    catalog: &Arc<dyn Catalog>,
    now: DateTime<Utc>,
    tail: Option<u64>,
) -> Result<(LogicalPlan, bool)> {
    let logical = plan::row_values(logical)?;
    let logical = plan::counted_in_units(plan::numbered_sets(logical)?)?;
    let logical = plan::time_ranges(logical, now)?;
    let logical = plan::exact_numbers(logical)?;
    let logical = plan::filters_on_left(plan::typed_literals(logical)?)?;
    let logical = plan::limits_in_time_order(plan::in_order_of_time(logical)?)?;
    let logical = match tail {
        Some(rows) => plan::last_rows(logical, rows)?,
        None => plan::in_time_order(logical)?,
    };
    let (logical, is_bound) = plan::bound_functions(plan::same_fields(plan::shown(logical)?)?, catalog)?;
    Ok((plan::decorrelated(logical)?, is_bound))
}
