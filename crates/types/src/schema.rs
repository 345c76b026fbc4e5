//! The schema of a table: its columns, its designated timestamp, its partitions.

use crate::{ColumnId, ColumnType, Materialized, NAME_BYTES_MAX, PartitionBy, TimeUnit, Ttl, View};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    pub id: ColumnId,
    /// The name as first written; compared case-insensitively.
    pub name: String,
    pub column_type: ColumnType,
}

/// The schema of a table.
///
/// Invariant: names are distinct case-insensitively; `designated` is a timestamp column of `columns`; `next_column` is
/// greater than every id ever used; without a designated timestamp `partition_by` is None.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    pub name: String,
    pub columns: Vec<ColumnSchema>,
    pub designated: Option<ColumnId>,
    pub partition_by: PartitionBy,
    pub next_column: ColumnId,
    /// Only for partitioned tables.
    pub ttl: Option<Ttl>,
    /// Expected lateness of rows in microseconds; `None` uses the observed lateness.
    pub lag_us: Option<u64>,
    /// The upsert keys including the designated timestamp; empty if rows may repeat.
    pub dedup: Vec<ColumnId>,
    /// Set for a table that a query defines. A view that is not materialized has no rows.
    pub view: Option<Arc<View>>,
}

impl TableSchema {
    /// Finds a column by name, case-insensitively.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnSchema> {
        self.columns.iter().find(|c| same_name(&c.name, name))
    }

    /// Returns the materialized view, if the table is one.
    #[must_use]
    pub fn materialized(&self) -> Option<&Materialized> {
        self.view.as_ref()?.materialized.as_ref()
    }

    /// Returns true for a view without rows.
    #[must_use]
    pub fn is_plain_view(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.materialized.is_none())
    }

    #[must_use]
    pub fn column_by_id(&self, id: ColumnId) -> Option<&ColumnSchema> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// Returns the designated timestamp column and its unit.
    #[must_use]
    pub fn timestamp(&self) -> Option<(&ColumnSchema, TimeUnit)> {
        let column = self.column_by_id(self.designated?)?;
        match column.column_type {
            ColumnType::Timestamp(unit) => Some((column, unit)),
            _ => None,
        }
    }

    /// Returns the partition interval `[lo, hi)` that contains `ts`; all times for a table without a designated
    /// timestamp.
    #[must_use]
    pub fn partition(&self, ts: i64) -> (i64, i64) {
        match self.timestamp() {
            Some((_, unit)) => self.partition_by.interval(ts, unit),
            None => (i64::MIN, i64::MAX),
        }
    }
}

/// Returns true if two names of tables or columns are equal case-insensitively (Unicode lower case).
#[must_use]
pub fn same_name(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    fold_name(a) == fold_name(b)
}

/// Returns the form of a name used as key of maps.
#[must_use]
pub fn fold_name(name: &str) -> String {
    name.to_lowercase()
}

/// Returns the problem of a table or column name; `None` for a valid name.
///
/// A name is 1 to [`NAME_BYTES_MAX`] bytes of UTF-8 without control characters and byte order marks: senders of line
/// protocol name their fields `usage.idle`, `%cpu` and `latency(ms)`, and two names that differ stay two columns.
#[must_use]
pub fn name_problem(name: &str, what: &str) -> Option<String> {
    find_problem(name, what, &[])
}

/// Returns the problem of a table name under QuestDB's rules, for names derived from file names.
///
/// These rules are narrower than [`name_problem`].
#[must_use]
pub fn table_name_problem(name: &str) -> Option<String> {
    let problem = find_problem(name, "table", &['?', ',', '\'', '"', '\\', '/', ':', ')', '(', '+', '*', '%', '~']);
    if problem.is_none() && (name.starts_with('.') || name.ends_with('.') || name.contains("..")) {
        return Some(format!("table name {name:?} has a dot at an end or two in a row"));
    }
    if problem.is_none() && (name.starts_with(' ') || name.ends_with(' ')) {
        return Some(format!("table name {name:?} has a space at an end"));
    }
    problem
}

/// Returns the problem of a column name under QuestDB's rules, for names derived from header records.
///
/// These rules are narrower than [`name_problem`].
#[must_use]
pub fn column_name_problem(name: &str) -> Option<String> {
    find_problem(name, "column", &['?', '.', ',', '\'', '"', '\\', '/', ':', ')', '(', '+', '-', '*', '%', '~'])
}

fn find_problem(name: &str, what: &str, forbidden: &[char]) -> Option<String> {
    if name.is_empty() {
        return Some(format!("{what} name is empty"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Some(format!("{what} name of {} bytes is longer than {NAME_BYTES_MAX}", name.len()));
    }
    let bad = |c: char| forbidden.contains(&c) || c.is_control() || c == '\u{feff}';
    name.chars().find(|&c| bad(c)).map(|c| format!("{what} name {name:?} has a {c:?}, which names cannot have"))
}
