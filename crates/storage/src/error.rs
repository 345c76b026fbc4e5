//! Errors of stored data.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tidalite_types::{ColumnId, ErrorKind, SegmentId, TableId};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
    damage: Option<Box<Damage>>,
}

/// Location of damaged bytes in a segment.
///
/// [`crate::TableSnapshot::named`] adds the names from the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub table: TableId,
    pub segment: SegmentId,
    /// Start of the partition's interval.
    pub partition: i64,
    /// `None` if the whole file is affected.
    pub column: Option<ColumnId>,
    pub block: Option<usize>,
    pub file: PathBuf,
    pub offset: u64,
    pub problem: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} is damaged at byte {}: ", self.file.display(), self.offset)?;
        if let (Some(column), Some(block)) = (self.column, self.block) {
            write!(f, "column {column} block {block}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), source: None, damage: None }
    }

    pub fn corrupt(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, message)
    }

    /// Creates an I/O error. `action` is a verb such as "write"; the path and the system's reason follow.
    #[must_use]
    pub fn io(action: &str, path: &Path, error: io::Error) -> Error {
        let kind = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => ErrorKind::Corrupt,
            _ => ErrorKind::Unavailable,
        };
        Error {
            kind,
            message: format!("could not {action} {}: {error}", path.display()),
            source: Some(error),
            damage: None,
        }
    }

    #[must_use]
    pub fn damaged(damage: Damage) -> Error {
        let message = damage.to_string();
        Error { kind: ErrorKind::Corrupt, message, source: None, damage: Some(Box::new(damage)) }
    }

    /// Returns the same error with another message.
    #[must_use]
    pub fn reworded(self, message: String) -> Error {
        Error { message, ..self }
    }

    /// Returns the location of the damage if bytes of a segment are damaged.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the kind of the system's error if the system caused the error.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.source.as_ref().map(io::Error::kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing data folder asks writers to retry; it does not blame their rows.
    #[test]
    fn a_folder_of_ours_that_is_gone_is_nobodys_mistake() {
        let error = Error::io("create", Path::new("log/0000000000000007.log"), io::ErrorKind::NotFound.into());
        assert_eq!((error.kind(), error.io_kind()), (ErrorKind::Unavailable, Some(io::ErrorKind::NotFound)));
        assert_eq!(error.to_string(), "could not create log/0000000000000007.log: entity not found");
    }
}
