//! Isolation levels and modes of transactions.

use tidalite::Isolation;

/// An isolation level as clients name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub name: &'static str,
    pub(super) isolation: Isolation,
}

pub(super) const LEVELS: &[Level] = &[
    Level { name: "serializable", isolation: Isolation::Serializable },
    Level { name: "repeatable read", isolation: Isolation::RepeatableRead },
    Level { name: "read committed", isolation: Isolation::ReadCommitted },
    // As in PostgreSQL, READ UNCOMMITTED behaves like READ COMMITTED.
    Level { name: "read uncommitted", isolation: Isolation::ReadCommitted },
];

impl Level {
    /// Returns the level of a name, in any case and with any blanks.
    pub fn by_name(name: &str) -> Option<Level> {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        LEVELS.iter().find(|level| level.name == name).copied()
    }
}

/// The transaction modes given by BEGIN and SET TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    pub level: Option<Level>,
    pub is_read_only: Option<bool>,
}
