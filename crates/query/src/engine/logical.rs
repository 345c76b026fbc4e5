//! The logical plan of a query before optimization. The binder plans the query, or, for a form that the binder does not
//! know yet, the rewrites of [`crate::dialect`] and DataFusion's SQL planner.

use super::{Engine, again, plans};
use crate::binder::{self, BindError, Tree};
use crate::statement::Query;
use crate::tables::{QueryTables, full_name};
use crate::{Catalog, Error, Result, plan};
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
        let is_only_tree = query.only_tree().is_some();
        let mut query = query.clone();
        self.pivots(state, catalog, &mut query, own).await?;
        let files = self.files(state, &mut query.ast, 0).await?;
        let taken = files.len();
        let statement = PlannerStatement::Statement(Box::new(ast::Statement::Query(query.ast)));
        let tables = QueryTables::new(catalog.clone(), self.fast_operators);
        let references = state.resolve_table_references(&statement)?;
        let of_tree = query.tree.as_deref().filter(|_| is_only_tree).map(|tree| binder::tables::names(&tree.query));
        let references = references.iter().chain(of_tree.iter().flatten());
        let names: Vec<String> = references.filter_map(|r| full_name(r.schema(), r.table())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let expanded = self.pin_with_views(state, &tables, &names)?;
        let tree = query.tree.as_deref().filter(|_| self.uses_binder || is_only_tree);
        self.check_size(&statement, tree.filter(|_| is_only_tree), &expanded)?;
        let names_any = !own.is_empty() || names.iter().any(|name| tables.is_pinned(name));
        for (name, table) in own {
            tables.put(name, table.clone());
        }
        for (name, table) in files {
            tables.put(&name, table);
        }
        let mut state = state.clone();
        state.register_catalog_list(Arc::new(tables.clone()));
        let names_only_tables = taken == 0 && expanded.is_empty();
        self.put_views(&state, &tables, expanded, taken).await?;
        let now = state.execution_props().query_execution_start_time.unwrap_or_default();
        let bound = match tree {
            Some(tree) => self.bound(&state, &query.words.sql, tree, is_only_tree).await?,
            None => None,
        };
        let logical = match bound {
            Some(plan) => plan,
            None => again::planned(&state, statement, &query.words.sql).await?,
        };
        let is_immutable = plans::is_immutable(&logical)?;
        let logical = plan::row_values(logical)?;
        let logical = plan::counted_in_units(plan::numbered_sets(logical)?)?;
        let logical = plan::time_ranges(logical, now)?;
        let logical = plan::exact_numbers(logical)?;
        let logical = plan::filters_on_left(plan::typed_literals(logical)?)?;
        let logical = plan::limits_in_time_order(plan::in_order_of_time(logical)?)?;
        let logical = match query.tail {
            Some(rows) => plan::last_rows(logical, rows)?,
            None => plan::in_time_order(logical)?,
        };
        let (logical, is_bound) = plan::bound_functions(plan::same_fields(plan::shown(logical)?)?, catalog)?;
        let logical = plan::decorrelated(logical)?;
        let names_only_tables = names_only_tables && !is_bound && is_immutable;
        Ok((logical, state, About { names_any, names_only_tables }))
    }

    /// Returns the plan of the binder; `None` if the query has a form that the binder does not know yet.
    ///
    /// Such a form is an error of a query that has only the tree.
    async fn bound(
        &self,
        state: &SessionState,
        sql: &str,
        tree: &Tree,
        is_only_tree: bool,
    ) -> Result<Option<LogicalPlan>> {
        let tables = binder::tables::tables(state, &tree.query).await;
        match binder::bind(state, &tables, sql, tree) {
            Ok(plan) => {
                self.front_end.change(|counts| counts.bound += 1);
                Ok(Some(plan))
            }
            Err(BindError::Unsupported(unsupported)) => {
                self.front_end.change(|counts| *counts.unsupported.entry(unsupported.feature).or_default() += 1);
                if is_only_tree {
                    let error = Error::invalid(format!("{} is not supported here", unsupported.feature));
                    return Err(error.at(unsupported.span.start as usize));
                }
                Ok(None)
            }
            Err(BindError::Invalid(error)) => {
                self.front_end.change(|counts| counts.refused += 1);
                Err(*error)
            }
        }
    }
}
