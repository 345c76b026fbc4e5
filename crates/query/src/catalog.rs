//! What a query sees of the database: tables pinned at one instant, and what else runs.

use crate::Frame;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tidalite_storage::TableSnapshot;
use tidalite_types::TableId;

/// The session state that a statement may read, and the setting changes that it requests.
#[derive(Debug)]
pub struct SessionContext {
    /// The user that logged in.
    pub user: String,
    /// The process number of the session, as reported to clients.
    pub process: i32,
    /// The settings that differ from their defaults, by lower-case name.
    pub settings: BTreeMap<String, String>,
    changes: Mutex<Vec<SettingChange>>,
    notices: Mutex<Vec<Notice>>,
}

/// A message about a statement that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The SQLSTATE.
    pub code: &'static str,
    pub message: String,
}

/// A setting that a statement changed by `set_config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    pub name: String,
    pub value: String,
    /// True if the change ends with the transaction.
    pub is_local: bool,
}

impl Default for SessionContext {
    fn default() -> SessionContext {
        SessionContext::new(crate::functions::OWNER, 0, BTreeMap::new())
    }
}

impl SessionContext {
    /// Creates a session of `user` with the settings that differ from their defaults, by lower-case name.
    #[must_use]
    pub fn new(user: impl Into<String>, process: i32, settings: BTreeMap<String, String>) -> SessionContext {
        SessionContext { user: user.into(), process, settings, changes: Mutex::default(), notices: Mutex::default() }
    }

    /// Returns a setting that differs from its default.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Records a change, which the caller that runs the statement applies.
    pub fn set(&self, name: &str, value: &str, is_local: bool) {
        let change = SettingChange { name: name.to_owned(), value: value.to_owned(), is_local };
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }

    /// Returns the changes recorded since the last call and clears the list.
    #[must_use]
    pub fn take_changes(&self) -> Vec<SettingChange> {
        std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a notice, which the caller that runs the statement sends to the client.
    pub fn notify(&self, notice: Notice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// Returns the notices recorded since the last call and clears the list.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Implemented by the database.
pub trait Catalog: Send + Sync + Debug {
    /// Names of all tables, as first written.
    fn table_names(&self) -> Vec<String>;

    /// Snapshots of the tables named (without regard to case), all of the same instant; `None` for a table that
    /// does not exist.
    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>>;

    /// The rows that the caller of the statement brought along under a name.
    fn frame(&self, _name: &str) -> Option<Frame> {
        None
    }

    /// Returns the session that runs the statement.
    fn session(&self) -> Arc<SessionContext> {
        Arc::default()
    }

    /// The statements under way.
    fn activity(&self) -> Vec<ActivityEntry> {
        Vec::new()
    }

    /// Returns the statistics of statements since the database was opened.
    fn statement_statistics(&self) -> Vec<StatementStatistics> {
        Vec::new()
    }

    /// What is staged of each table, and what merges did for it.
    fn table_metrics(&self) -> Vec<TableMetrics> {
        Vec::new()
    }

    /// The materialized views over a table, each with the times of the table that changed since it was refreshed; none
    /// when the table is not as it was in this snapshot any more. What a view says of itself is to be looked at, too.
    fn views_over(&self, _base: &TableSnapshot) -> Vec<OverView> {
        Vec::new()
    }

    fn view_metrics(&self) -> Vec<ViewMetrics> {
        Vec::new()
    }
}

/// A materialized view and the ranges of its base's times that it is behind.
pub type OverView = (Arc<TableSnapshot>, Vec<(i64, i64)>);

/// What a materialized view does, as `materialized_views()` shows it.
#[derive(Clone, Debug, Default)]
pub struct ViewMetrics {
    pub view: TableId,
    /// When the last refresh began, in microseconds since 1970.
    pub started: Option<i64>,
    pub is_running: bool,
    /// Why the last refresh failed.
    pub error: Option<String>,
    /// The last commit to the base.
    pub base_txn: u64,
    /// Commits to the base that it does not show yet.
    pub lag_commits: u64,
    /// Stretches of time to be computed again.
    pub pending_ranges: u64,
}

/// One table as `table_metrics()` shows it.
#[derive(Clone, Debug, Default)]
pub struct TableMetrics {
    pub table: String,
    pub staged_rows: u64,
    pub staged_bytes: u64,
    pub staged_runs: u64,
    pub segments: u64,
    /// Rows in segments beside those of their times.
    pub late_rows: u64,
    pub segment_bytes: u64,
    pub work: MergeWork,
}

/// What merges did for a table since the database was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeWork {
    pub merges: u64,
    /// Rows that merges took from staging, and the memory these had.
    pub merged_rows: u64,
    pub merged_bytes: u64,
    /// Rows that were in segments and were written again.
    pub rewritten_rows: u64,
    /// Bytes of segments written.
    pub written_bytes: u64,
    pub last_merge: Option<SystemTime>,
    pub last_merge_time: Duration,
}

/// Statistics of the statements of one normalised text: a row of `statement_statistics()`.
#[derive(Clone, Debug)]
pub struct StatementStatistics {
    pub query: String,
    pub calls: u64,
    /// Calls that failed, or were cancelled before the first rows.
    pub errors: u64,
    /// From the arrival of a statement to the end of its rows.
    pub total: Duration,
    pub longest: Duration,
    /// Rows returned, or changed by a statement that returns none.
    pub rows: u64,
    /// Memory of the returned rows.
    pub bytes: u64,
    /// When the last call began.
    pub last: SystemTime,
}

/// A statement under way, as `query_activity()` shows it.
#[derive(Clone, Debug)]
pub struct ActivityEntry {
    pub id: u64,
    pub client: String,
    pub sql: String,
    pub started: SystemTime,
    /// As [`crate::CancelToken::rows`] has them.
    pub rows: (u64, u64),
    /// True while the statement waits for a running slot.
    pub is_queued: bool,
}
