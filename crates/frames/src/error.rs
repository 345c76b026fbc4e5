//! Errors of rejected frames.

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with a text in PostgreSQL's style: lower case, no full stop, naming the column and the row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    pub message: String,
    pub column: Option<String>,
    /// Counted from 0 over all batches of the frame.
    pub row: Option<u64>,
    pub hint: Option<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), column: None, row: None, hint: None }
    }

    /// Creates an error about a whole column.
    pub fn of_column(name: &str, message: impl std::fmt::Display) -> Error {
        Error { column: Some(name.to_owned()), ..Error::new(format!("column \"{name}\": {message}")) }
    }

    /// Creates an error about one value.
    pub fn of_value(name: &str, row: u64, message: impl std::fmt::Display) -> Error {
        let message = format!("column \"{name}\", row {row}: {message}");
        Error { column: Some(name.to_owned()), row: Some(row), ..Error::new(message) }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}
