//! Queries that materialized views answer, where that is asked for: by `query.use_materialized_views`, or by a hint in the
//! statement, `/*+ use_materialized_views */`; `/*+ no_materialized_views */` says no. What can be answered so is
//! [`crate::plan::from_views`]'s.
//!
//! A plan that is kept for the next time is the one over the tables: whether a view is fresh is found out each time.

use super::Engine;
use crate::plan::{self, Candidate, Definition};
use crate::scan::table::NativeTable;
use crate::statement::{Query, Statement};
use crate::{Catalog, Result, dialect};
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_storage::TableSnapshot;
use tidalite_types::{TableId, TableSchema};

/// Views that follow views.
const DEPTH_MAX: usize = 8;
/// How many definitions are remembered.
const DEFINITIONS_MAX: usize = 1_000;

/// What is known of materialized views, each as of the columns that its base had.
#[derive(Debug, Default)]
pub(super) struct Definitions(Mutex<HashMap<TableId, Known>>);

type Known = (Arc<TableSchema>, Option<Arc<Definition>>);

impl Definitions {
    fn get(&self, view: TableId, base: &TableSchema) -> Option<Option<Arc<Definition>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (schema, definition) = known.get(&view)?;
        let is_same =
            schema.columns == base.columns && schema.designated == base.designated && schema.name == base.name;
        is_same.then(|| definition.clone())
    }

    fn put(&self, view: TableId, base: &Arc<TableSchema>, definition: Option<Arc<Definition>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= DEFINITIONS_MAX {
            known.clear();
        }
        known.insert(view, (base.clone(), definition));
    }
}

impl Engine {
    /// Whether views may answer a query.
    pub(super) fn asks_views(&self, query: &Query) -> bool {
        hint(&query.words.sql).unwrap_or(self.uses_views)
    }

    /// The optimised plan of a query, with what views answer taken from them.
    pub(super) fn answered<'a>(
        self: &'a Arc<Self>,
        logical: LogicalPlan,
        state: &'a SessionState,
        catalog: &'a Arc<dyn Catalog>,
        query: &'a Query,
    ) -> BoxFuture<'a, Result<LogicalPlan>> {
        async move {
            let mut logical = logical;
            if !self.asks_views(query) {
                return Ok(logical);
            }
            for _ in 0..DEPTH_MAX {
                let mut candidates = Vec::new();
                for base in plan::aggregated_tables(&logical)? {
                    for (view, behind) in catalog.views_over(&base) {
                        if let Some(definition) = self.definition(state, catalog, &base, &view).await {
                            let is_fast = self.fast_operators;
                            candidates.push(Candidate { base: base.clone(), view, definition, behind, is_fast });
                        }
                    }
                }
                if candidates.is_empty() {
                    break;
                }
                let done = plan::from_views(logical, &candidates, state)?;
                logical = done.data;
                if !done.transformed {
                    break;
                }
            }
            Ok(logical)
        }
        .boxed()
    }

    /// What a view's query is over its base; `None` when that is not understood.
    async fn definition(
        self: &Arc<Self>,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        base: &Arc<TableSnapshot>,
        view: &Arc<TableSnapshot>,
    ) -> Option<Arc<Definition>> {
        if let Some(known) = self.definitions.get(view.id, &base.schema) {
            return known;
        }
        let sql = &view.schema.view.as_ref()?.sql;
        let Ok(Statement::Query(query)) = dialect::parse(sql) else { return None };
        let table: Arc<dyn TableProvider> = Arc::new(NativeTable::new(base.clone()).fast(self.fast_operators));
        let own = [(base.schema.name.as_str(), table)];
        let planned = self.logical(state, catalog, &query, &own).await;
        let optimized = planned.and_then(|(logical, with_tables, _)| Ok(with_tables.optimize(&logical)?));
        let definition = optimized.ok().and_then(|plan| Definition::of(&plan, base, view)).map(Arc::new);
        self.definitions.put(view.id, &base.schema, definition.clone());
        definition
    }
}

/// What a statement says itself, in a comment that begins with a plus; the first that says something counts.
fn hint(sql: &str) -> Option<bool> {
    let hints = sql.split("/*+").skip(1).filter_map(|rest| rest.split_once("*/")).map(|(hint, _)| hint);
    let mut words = hints.flat_map(|hint| hint.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.find_map(|word| match word.to_ascii_lowercase().as_str() {
        "use_materialized_views" => Some(true),
        "no_materialized_views" => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_hint_is_a_comment_with_a_plus() {
        assert_eq!(hint("SELECT /*+ Use_Materialized_Views */ 1"), Some(true));
        assert_eq!(hint("SELECT /*+ parallel(4), no_materialized_views */ 1"), Some(false));
        assert_eq!(hint("SELECT /* use_materialized_views */ 1"), None);
        assert_eq!(hint("SELECT 1 /*+ use_materialized_views"), None);
    }
}
