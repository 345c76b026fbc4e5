//! Errors of rejected commits.

use tidalite_types::ErrorKind;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// The line of the request, counted from 1, if rows were sent as text.
    pub line: Option<u32>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), line: None }
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// Adds `line` unless the error has a line.
    #[must_use]
    pub fn or_at_line(self, line: Option<u32>) -> Error {
        let line = self.line.or(line);
        self.at_line(line)
    }

    #[must_use]
    pub fn at_line(mut self, line: Option<u32>) -> Error {
        self.line = line;
        self
    }
}
