//! Parse errors with position and hint.

use std::fmt;

/// A parse error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// The class of the error, from which the SQLSTATE follows.
    pub code: Code,
    /// The word or symbol that the error is about, as it is written.
    pub object: Option<String>,
    /// Byte offset in the text, on a character boundary.
    pub position: usize,
    /// Suggested correction, if the parser recognises a common mistake.
    pub hint: Option<String>,
}

/// Kinds of parse errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A token other than `expected` was found.
    Unexpected {
        /// Description of the expected token.
        expected: String,
        /// The token found, as written; equal to [`Error::object`].
        found: String,
    },
    /// A string, a quoted name or a comment that does not end.
    Unterminated(&'static str),
    /// A malformed literal, name or clause.
    Invalid(String),
    /// A misplaced or repeated clause; the string names the clause.
    Misplaced(String),
    /// Parentheses, expressions and sub-queries are nested deeper than the given limit.
    TooDeep(usize),
    /// A chain of operators is longer than the given limit.
    TooManyOperators(usize),
    /// A text of 4 GiB or more.
    TooLong,
    /// The text contains no statement.
    Empty,
    /// More than one statement.
    SeveralStatements,
}

/// A class of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The text is not a valid statement.
    Syntax,
    /// The text exceeds a limit of the parser.
    TooComplex,
}

impl Code {
    /// Returns the SQLSTATE, as defined by PostgreSQL.
    #[must_use]
    pub fn sqlstate(self) -> &'static str {
        match self {
            Code::Syntax => "42601",
            Code::TooComplex => "54001",
        }
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, position: usize) -> Error {
        let code = match kind {
            ErrorKind::TooDeep(_) | ErrorKind::TooManyOperators(_) | ErrorKind::TooLong => Code::TooComplex,
            _ => Code::Syntax,
        };
        let object = match &kind {
            ErrorKind::Unexpected { found, .. } => Some(found.clone()),
            _ => None,
        };
        Error { kind, code, object, position, hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Unexpected { expected, found } => {
                write!(f, "syntax error: expected {expected}, found {found}")
            }
            ErrorKind::Unterminated(what) => write!(f, "syntax error: unterminated {what}"),
            ErrorKind::Invalid(what) => write!(f, "syntax error: {what}"),
            ErrorKind::Misplaced(what) => f.write_str(what),
            ErrorKind::TooDeep(limit) => write!(f, "statement is nested more than {limit} levels deep"),
            ErrorKind::TooManyOperators(limit) => {
                write!(f, "an expression has more than {limit} operators in a row")
            }
            ErrorKind::TooLong => f.write_str("a statement of 4 GiB or more"),
            ErrorKind::Empty => f.write_str("empty statement"),
            ErrorKind::SeveralStatements => f.write_str("only one statement can be run at a time"),
        }
    }
}

impl std::error::Error for Error {}
