//! Table functions of QuestDB about its server: `memory_metrics()`, `reader_pool()`, `writer_pool()`,
//! `checkpoint_status()`, `keywords()`, `files()`, `glob()`.
//!
//! Tidalite has no pools of readers and writers and no checkpoint mode, and the answers say so. Folders of the machine
//! are not listed.

use super::system::{Columns, flag, long, text};
use crate::{Catalog, Error, Result};
use datafusion::arrow::array::{ArrayRef, TimestampMicrosecondArray};
use std::sync::Arc;

/// Returns what the kernel counts for the process; without rows where it does not.
pub(super) fn memory_metrics(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tags = [("TOTAL_USED", "RssAnon:"), ("RSS", "VmRSS:"), ("MMAP_DEFAULT", "RssFile:")];
    let found: Vec<(&str, i64)> =
        tags.iter().filter_map(|(tag, label)| Some((*tag, kernel_bytes(&status, label)?))).collect();
    Ok(vec![
        ("memory_tag", text(found.iter().map(|(tag, _)| tag))),
        ("bytes", long(found.iter().map(|(_, bytes)| *bytes))),
    ])
}

/// Reads a line such as `VmRSS:    1234 kB`.
fn kernel_bytes(status: &str, label: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
}

fn no_times() -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(Vec::<i64>::new()))
}

/// Returns the columns of QuestDB's pool of readers, without rows.
pub(super) fn reader_pool(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Ok(vec![
        ("table_name", text([""; 0])),
        ("owner_thread_id", long([])),
        ("last_access_timestamp", no_times()),
        ("current_txn", long([])),
    ])
}

/// Returns the columns of QuestDB's pool of writers, without rows.
pub(super) fn writer_pool(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Ok(vec![
        ("table_name", text([""; 0])),
        ("owner_thread_id", long([])),
        ("last_access_timestamp", no_times()),
        ("ownership_reason", text([""; 0])),
    ])
}

/// Returns that no checkpoint is open: backups read snapshots.
pub(super) fn checkpoint_status(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let started: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![None::<i64>]));
    Ok(vec![("in_progress", flag([false])), ("started_at", started)])
}

/// Lists the keywords of Tidalite's grammar.
pub(super) fn keywords(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Ok(vec![("keyword", text(tidalite_sql::Keyword::all().map(tidalite_sql::Keyword::text)))])
}

fn not_listed(name: &str) -> Error {
    Error::invalid(format!("{name}() is not supported: SQL does not list folders of the server"))
        .about(name)
        .with_hint("read_parquet('folder/*.parquet') and read_csv('folder/*.csv') read all files of a folder")
}

pub(super) fn files(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Err(not_listed("files"))
}

pub(super) fn glob(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Err(not_listed("glob"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_kernel() {
        let status = "Name:\ttidalite\nVmRSS:\t    1234 kB\nRssFile:\t  x kB\n";
        assert_eq!(kernel_bytes(status, "VmRSS:"), Some(1_263_616));
        assert_eq!([kernel_bytes(status, "RssFile:"), kernel_bytes(status, "RssAnon:")], [None, None]);
    }
}
