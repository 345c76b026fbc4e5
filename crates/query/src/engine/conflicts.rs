//! INSERT … ON CONFLICT: the new rows, and the new values of existing rows.

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

/// The existing and the new rows of an INSERT … ON CONFLICT.
#[derive(Clone, Debug)]
pub struct Conflicting {
    pub table: Arc<TableSnapshot>,
    /// The name of the table in expressions.
    pub alias: String,
    /// A table of the same schema with the new rows.
    pub brought: Arc<TableSnapshot>,
    /// The range of the timestamps of the new rows, both ends included; `None` for all rows.
    pub times: Option<(i64, i64)>,
}

/// Tables with their names in a generated query.
type Own = Vec<(String, Arc<dyn TableProvider>)>;

impl Conflicting {
    fn tables(&self, is_fast: bool) -> Own {
        let table = NativeTable::addressed(self.table.clone()).fast(is_fast);
        let table = match self.times {
            Some((lo, hi)) => table.bounded(lo, hi),
            None => table,
        };
        let brought = NativeTable::addressed(self.brought.clone()).fast(is_fast);
        // Sub-queries read all rows of the table.
        let whole = NativeTable::new(self.table.clone()).fast(is_fast);
        let name = self.table.schema.name.clone();
        vec![(EXCLUDED.to_owned(), Arc::new(brought)), (EXISTING.to_owned(), Arc::new(table)), (name, Arc::new(whole))]
    }

    /// Returns the query of the new values of existing rows, and the tables of the query.
    pub(super) fn becoming(&self, conflict: &OnConflict, is_fast: bool) -> Result<(Query, Own)> {
        Ok((changed_rows(&self.table.schema, &self.alias, conflict)?, self.tables(is_fast)))
    }
}

impl Engine {
    /// Returns the rows whose keys do not exist, in their order, or (`is_there`) the new values of existing rows. The
    /// columns are the address of the existing row, the number of rows with the same keys, and all columns of the table.
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
