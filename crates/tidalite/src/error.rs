//! The error type for all rejected requests and failures of the database.

pub use tidalite_types::{ErrorKind, SqlState};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with texts in PostgreSQL's style: lower case, no full stop, naming the object, with detail and hint apart.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// Byte offset into the statement, counted from 0, of the offending character.
    pub position: Option<usize>,
    /// Line of a line protocol request, counted from 1.
    pub line: Option<u64>,
    pub hint: Option<String>,
    /// The SQLSTATE, if it differs from the code that follows from the kind and the message.
    pub code: Option<SqlState>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), position: None, line: None, hint: None, code: None }
    }

    /// Sets the SQLSTATE that PostgreSQL uses for the same error.
    #[must_use]
    pub fn with_code(mut self, code: SqlState) -> Error {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl From<tidalite_storage::Error> for Error {
    fn from(error: tidalite_storage::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}
