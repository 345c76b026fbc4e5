//! The database: one folder, opened once.

use crate::{Activity, DatabaseConfig, Metrics, QueryOptions, Response, Result};
use futures::future::BoxFuture;
use tidalite_types::{Batch, TableSchema, Txn};
use std::sync::Arc;

/// A handle; clones share the database. Dropping the last one closes it as [`Database::close`] does.
#[derive(Clone, Debug)]
pub struct Database {}

impl Database {
    /// Opens or creates the folder, replays the log and starts the background threads. Blocks.
    pub fn open(config: DatabaseConfig) -> Result<Database> {
        let _ = config;
        todo!()
    }

    /// Commits the batches, all or none of them; ready when they are durable (as configured) and visible.
    /// Commits submitted by one caller take effect in the order of the calls, awaited or not.
    /// While writers outrun the merge the future waits (back-pressure).
    #[must_use]
    pub fn commit(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>> {
        let _ = batches;
        todo!()
    }

    /// Runs one SQL statement. Rows come as a stream; dropping it stops the query.
    #[must_use]
    pub fn execute(&self, sql: &str, options: QueryOptions) -> BoxFuture<'static, Result<Response>> {
        let _ = (sql, options);
        todo!()
    }

    /// What runs now.
    #[must_use]
    pub fn activity(&self) -> Vec<Activity> {
        todo!()
    }

    /// Stops the statement of [`Activity::id`]; false when there is none.
    pub fn cancel(&self, id: u64) -> bool {
        let _ = id;
        todo!()
    }

    /// The schema of a table, by name without regard to case.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let _ = name;
        todo!()
    }

    #[must_use]
    pub fn metrics(&self) -> Metrics {
        todo!()
    }

    /// Refuses new commits, finishes those under way, writes a checkpoint and stops the threads. Blocks.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
}
