//! Takes rows one batch after the other and makes them one commit: in memory if they are few, as a load otherwise.

use crate::load::{Load, LoadTable, Loader};
use crate::session::Host;
use crate::writer::TransactionChange;
use crate::{Error, ErrorKind, Result};
use futures::executor::block_on;
use std::sync::Arc;
use tidalite_ingest::commit::command::is_view;
use tidalite_types::command::CreateTable;
use tidalite_types::{Batch, Command};

/// Rows of one table that become one commit, of any size. Dropped before [`RowSink::finish`], none of them is stored.
///
/// All methods block.
pub struct RowSink {
    host: Arc<dyn Host>,
    held: Vec<Batch>,
    bytes: usize,
    part_bytes: usize,
    /// The means and the table of a load, until it begins.
    loader: Option<(Loader, LoadTable)>,
    load: Option<Load>,
    /// The commands of the commit before its rows.
    commands: Vec<Command>,
}

impl std::fmt::Debug for RowSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowSink").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl RowSink {
    /// Creates a sink for an existing table, or for a table that the commit creates. With `replaces` the commit drops a
    /// table of the same name.
    ///
    /// Returns `None` for a table with upsert keys, whose rows are looked up commit by commit, and in a transaction.
    ///
    /// # Errors
    /// The table does not exist and is not created, or exists and is not replaced.
    pub(crate) fn new(
        host: Arc<dyn Host>,
        table: &str,
        create: Option<CreateTable>,
        replaces: bool,
    ) -> Result<Option<RowSink>> {
        let Some(loader) = host.loader() else { return Ok(None) };
        let found = host.snapshots(&[table]).pop().flatten();
        let (to, commands) = match (create, found) {
            (Some(create), _) => {
                let drop = replaces.then(|| Command::DropTable { table: create.name.clone(), if_exists: true });
                // Another request may create the table first.
                let create = CreateTable { if_not_exists: !replaces, ..create };
                let commands = drop.into_iter().chain([Command::CreateTable(create.clone())]).collect();
                (LoadTable::New { create, replaces }, commands)
            }
            (None, Some(found)) if found.schema.view.is_some() => {
                let view = found.schema.view.as_ref();
                return Err(view.map_or_else(ended, |view| is_view(&found.schema.name, view).into()));
            }
            (None, Some(found)) if !found.schema.dedup.is_empty() => return Ok(None),
            (None, Some(found)) => (LoadTable::Existing { id: found.id, schema: found.schema.clone() }, Vec::new()),
            (None, None) => {
                return Err(Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist")));
            }
        };
        let part_bytes = loader.part_bytes();
        let loader = Some((loader, to));
        Ok(Some(RowSink { host, held: Vec::new(), bytes: 0, part_bytes, loader, load: None, commands }))
    }

    /// Takes rows; waits while earlier rows of a load are written.
    ///
    /// # Errors
    /// The rows of a load are rejected, or cannot be written.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.bytes += batch.byte_count();
        self.held.push(batch);
        if self.bytes < self.part_bytes {
            return Ok(());
        }
        if let Some((loader, table)) = self.loader.take() {
            self.load = Some(loader.begin(table)?);
        }
        self.bytes = 0;
        let rows = std::mem::take(&mut self.held);
        self.load.as_mut().map_or_else(|| Err(ended()), |load| block_on(load.push(rows)))
    }

    /// Commits the rows; they are durable and visible on return.
    ///
    /// # Errors
    /// The commit is rejected or failed.
    pub fn finish(mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.held);
        if self.load.is_none() && self.loader.is_none() {
            return Err(ended());
        }
        if let Some(mut load) = self.load.take() {
            if !rows.is_empty() {
                block_on(load.push(rows))?;
            }
            return block_on(load.finish()).map(drop);
        }
        if self.commands.is_empty() {
            return if rows.is_empty() { Ok(()) } else { block_on(self.host.insert(rows)).map(drop) };
        }
        let commands = std::mem::take(&mut self.commands);
        let change = TransactionChange { changes: Vec::new(), commands, rows, unchanged: Vec::new() };
        block_on(self.host.transaction(change)).map(drop)
    }
}

/// Error of a sink whose load could not begin.
fn ended() -> Error {
    Error::new(ErrorKind::Unavailable, "the load of these rows ended with an error")
}
