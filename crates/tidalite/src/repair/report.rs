//! The report of a repair, and the error of damage that cannot be repaired.

use crate::{Error, ErrorKind};

/// Lost rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub table: String,
    /// Name in SHOW PARTITIONS; empty if rows of several partitions are lost.
    pub partition: String,
    /// First and last timestamp that the rows can have, as text; empty if unknown.
    pub from: String,
    pub to: String,
    pub rows: u64,
    /// The affected file, or commits of the log.
    pub of: String,
}

#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// Completed steps, one line each.
    pub done: Vec<String>,
    pub lost: Vec<Lost>,
    /// Location of the damaged files within the data folder; empty if there are none.
    pub quarantine: String,
}

pub(super) fn beyond_repair(what: &str) -> Error {
    let mut error = Error::new(ErrorKind::Corrupt, format!("this cannot be repaired: {what}"));
    error.hint = Some("restore a backup; the folder was left as it is".to_owned());
    error
}
