//! What INSERT … ON CONFLICT makes of the rows it brings and of those that are there.

use super::Engine;
use crate::binder::dml::conflict::{EXCLUDED, EXISTING, changed_rows, new_rows};
use crate::scan::table::NativeTable;
use crate::statement::{OnConflict, Query};
use crate::{CancelToken, Catalog, QueryResult, Result};
use datafusion::catalog::TableProvider;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;

/// The rows that meet.
#[derive(Clone, Debug)]
pub struct Conflicting {
    pub table: Arc<TableSnapshot>,
    /// What expressions call the table.
    pub alias: String,
    /// A table of the same schema with the rows that are brought, whose times are within this.
    pub brought: Arc<TableSnapshot>,
    pub times: Option<(i64, i64)>,
}

/// Tables by the names that a query of ours calls them.
type Own = Vec<(String, Arc<dyn TableProvider>)>;

impl Conflicting {
    fn tables(&self, is_fast: bool) -> Own {
        let table = NativeTable::addressed(self.table.clone()).fast(is_fast);
        let table = match self.times {
            Some((lo, hi)) => table.bounded(lo, hi),
            None => table,
        };
        let brought = NativeTable::addressed(self.brought.clone()).fast(is_fast);
        // Sub-queries see all of it.
        let whole = NativeTable::new(self.table.clone()).fast(is_fast);
        let name = self.table.schema.name.clone();
        vec![(EXCLUDED.to_owned(), Arc::new(brought)), (EXISTING.to_owned(), Arc::new(table)), (name, Arc::new(whole))]
    }

    /// The query of what becomes of the rows that are there, and its tables.
    pub(super) fn becoming(&self, conflict: &OnConflict, is_fast: bool) -> Result<(Query, Own)> {
        Ok((changed_rows(&self.table.schema, &self.alias, conflict)?, self.tables(is_fast)))
    }
}

impl Engine {
    /// The rows whose keys are not there, in their order, or (`is_there`) what becomes of those that are: first the
    /// address of the row that is there, if any, then how many rows have the same keys, then all columns of the table.
    pub fn conflicting<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        rows: &'a Conflicting,
        conflict: &'a OnConflict,
        is_there: bool,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let query = if is_there { changed_rows } else { new_rows };
            let query = query(&rows.table.schema, &rows.alias, conflict)?;
            let own = rows.tables(self.fast_operators);
            let own: Vec<_> = own.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
            let planned = self.plan(&catalog, &query, &own, "", &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }
}
