//! What is wrong with a text, where, and what may help.

use std::fmt;

/// A statement that is no statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The class of the error, from which the SQLSTATE follows.
    pub code: Code,
    /// The word or symbol that the error is about, as it is written.
    pub object: Option<String>,
    /// Byte offset in the text, on a character boundary.
    pub position: usize,
    /// What to write instead, where a common mistake is recognised.
    pub hint: Option<String>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something else stands where `expected` belongs.
    Unexpected {
        /// The least that had to come.
        expected: String,
        /// What came, as it is written; [`Error::object`] has it, too.
        found: String,
    },
    /// A string, a quoted name or a comment that does not end.
    Unterminated(&'static str),
    /// A literal, a name or a clause that cannot be.
    Invalid(String),
    /// A clause that stands in the wrong place, or twice; the text names it.
    Misplaced(String),
    /// Parentheses, expressions and sub-queries within each other past the limit, which is given.
    TooDeep(usize),
    /// More operators in a row than the limit, which is given.
    TooManyOperators(usize),
    /// A text of 4 GiB or more.
    TooLong,
    /// No statement at all.
    Empty,
    /// More than one statement.
    SeveralStatements,
}

/// A class of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The text is no statement.
    Syntax,
    /// The text may be a statement, but is past a limit of the parser.
    TooComplex,
}

impl Code {
    /// The code in PostgreSQL's table of errors.
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
