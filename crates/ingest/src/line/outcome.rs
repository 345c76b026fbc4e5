//! Reasons why parsing a part of a line stops.

/// `Err` unwinds to the start of the line; the row is then undone.
pub(super) type Parsed<T> = Result<T, Stop>;

#[derive(Debug)]
pub(super) enum Stop {
    /// The input ends before the line.
    Incomplete,
    /// `at` is a position in the input; `column` is the name of the column in question, if any.
    Bad { at: usize, column: Option<String>, message: String },
}

impl Stop {
    #[cold]
    pub(super) fn in_column(self, name: &str) -> Stop {
        match self {
            Stop::Incomplete => Stop::Incomplete,
            Stop::Bad { at, message, .. } => Stop::Bad { at, column: Some(name.to_owned()), message },
        }
    }

    /// Adds the names of table and column before the message.
    #[cold]
    pub(super) fn in_table(self, name: &str) -> Stop {
        let Stop::Bad { at, column, message } = self else { return self };
        let message = match column {
            Some(column) => format!("column {column:?} of table {name:?}: {message}"),
            None => format!("table {name:?}: {message}"),
        };
        Stop::Bad { at, column: None, message }
    }
}

#[cold]
pub(super) fn bad<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
    Err(Stop::Bad { at, column: None, message: message.into() })
}

/// Returns bytes in readable and shortened form for a message.
#[cold]
pub(super) fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]);
    if bytes.len() > BYTES_MAX { format!("{text:?}…") } else { format!("{text:?}") }
}
