//! What a query sees of the database: tables pinned at one instant, and what else runs.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::SystemTime;
use tidalite_storage::TableSnapshot;

/// Implemented by the database.
pub trait Catalog: Send + Sync + Debug {
    /// Names of all tables, as first written.
    fn table_names(&self) -> Vec<String>;

    /// Snapshots of the tables named (without regard to case), all of the same instant; `None` for a table that
    /// does not exist.
    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>>;

    /// The statements under way.
    fn activity(&self) -> Vec<ActivityEntry> {
        Vec::new()
    }
}

/// A statement under way, as `query_activity()` shows it.
#[derive(Clone, Debug)]
pub struct ActivityEntry {
    pub id: u64,
    pub client: String,
    pub sql: String,
    pub started: SystemTime,
}
