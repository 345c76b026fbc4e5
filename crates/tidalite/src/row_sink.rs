//! Takes rows one batch after the other and makes them one commit, for threads that may block.

use crate::load::{LoadTable, StatementRows};
use crate::session::Host;
use crate::{Error, ErrorKind, Result};
use futures::executor::block_on;
use std::sync::Arc;
use tidalite_ingest::commit::command::is_view;
use tidalite_query::CancelToken;
use tidalite_types::Batch;
use tidalite_types::command::CreateTable;

/// Rows of one table that become one commit, of any size. Dropped before [`RowSink::finish`], none of them is stored.
///
/// All methods block.
pub struct RowSink(StatementRows);

impl std::fmt::Debug for RowSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowSink").finish_non_exhaustive()
    }
}

impl RowSink {
    /// Creates a sink for an existing table, or for a table that the commit creates. With `replaces` the commit drops a
    /// table of the same name.
    ///
    /// Returns `None` for a table with upsert keys, whose rows are looked up commit by commit, and in a transaction.
    ///
    /// # Errors
    /// The table does not exist and is not created, or is a view.
    pub(crate) fn new(
        host: Arc<dyn Host>,
        table: &str,
        create: Option<CreateTable>,
        replaces: bool,
        cancel: CancelToken,
    ) -> Result<Option<RowSink>> {
        let to = match create {
            Some(create) => LoadTable::New { create, replaces },
            None => {
                let missing = || Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist"));
                let found = host.snapshots(&[table]).pop().flatten().ok_or_else(missing)?;
                if let Some(view) = &found.schema.view {
                    return Err(is_view(&found.schema.name, view).into());
                }
                if !found.schema.dedup.is_empty() {
                    return Ok(None);
                }
                LoadTable::Existing { id: found.id, schema: found.schema.clone() }
            }
        };
        Ok(StatementRows::new(host, to, cancel).map(RowSink))
    }

    /// Takes rows; waits while earlier rows of a load are written.
    ///
    /// # Errors
    /// The rows of a load are rejected, or cannot be written.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        block_on(self.0.push(batch))
    }

    /// Commits the rows; they are durable and visible on return.
    ///
    /// # Errors
    /// The commit is rejected or failed.
    pub fn finish(self) -> Result<()> {
        block_on(self.0.finish())
    }
}
