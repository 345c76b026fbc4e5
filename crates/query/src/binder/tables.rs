//! The tables that a query names.

use super::names::{folded_parts, table_reference};
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::TableSource;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{Query, Relation, RelationKind};

/// Tables by the name that the query has for them.
pub(crate) type Tables = HashMap<TableReference, Arc<dyn TableSource>>;

/// Returns the names of tables in a query, those of WITH queries among them.
pub(crate) fn names(query: &Query) -> Vec<TableReference> {
    struct Names(Vec<TableReference>);
    impl Visitor for Names {
        fn relation(&mut self, relation: &Relation) {
            if let RelationKind::Table { name } = &relation.kind {
                self.0.extend(table_reference(&folded_parts(name)));
            }
        }
    }
    let mut names = Names(Vec::new());
    walk::query(query, &mut names);
    names.0
}

/// Looks up the tables of a query in the catalog of a session. A name without a table is left out.
pub(crate) async fn tables(state: &SessionState, query: &Query) -> Tables {
    let mut tables = Tables::new();
    for name in names(query) {
        if tables.contains_key(&name) {
            continue;
        }
        if let Ok(schema) = state.schema_for_ref(name.clone())
            && let Ok(Some(table)) = schema.table(name.table()).await
        {
            tables.insert(name, provider_as_source(table));
        }
    }
    tables
}
