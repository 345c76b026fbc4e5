//! The SQL front end: lexer, parser and syntax tree.
//!
//! The crate contains only the grammar: no catalog, no functions, no value types. A binder resolves names and
//! builds a plan from the tree. Parsing time is linear in the length of the text and recursion is bounded, for
//! every input ([`DEPTH_MAX`], [`CHAIN_MAX`]).
//!
//! Reading order: [`token`] and [`lexer`]; [`keyword`]; [`ast`]; `parser`, one file per clause; `suggest`, hints for
//! errors; [`completion`] for editors.
//!
//! ```
//! use tidalite_sql::{ast::Statement, parse};
//!
//! let statement = parse("SELECT ts, avg(price) FROM trades SAMPLE BY 1h")?;
//! assert!(matches!(statement, Statement::Query(_)));
//!
//! let error = parse("SELECT price FORM trades").unwrap_err();
//! assert_eq!(error.to_string(), "syntax error: expected end of statement, found trades");
//! assert_eq!(error.hint.as_deref(), Some("did you mean FROM instead of FORM?"));
//! # Ok::<(), tidalite_sql::Error>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ast;
pub mod completion;
pub mod error;
pub mod keyword;
pub mod lexer;
mod parser;
pub mod span;
mod suggest;
pub mod token;

pub use completion::expected_at;
pub use error::{Code, Error, ErrorKind};
pub use keyword::{Category, Keyword};
pub use parser::expected::{Expected, NameKind};
pub use parser::{CHAIN_MAX, DEPTH_MAX, NESTED_JOINS_MAX};
pub use span::Span;
pub use token::{Symbol, Token, TokenKind};

use ast::Statement;

/// Returns the byte offset of the first word, quoted name or text constant that is `name`, in any case.
#[must_use]
pub fn position_of_name(text: &str, name: &str) -> Option<usize> {
    let is_named = |token: &&Token| {
        let written = token.span.slice(text);
        match token.kind {
            TokenKind::Word(_) => written.eq_ignore_ascii_case(name),
            TokenKind::QuotedName => written[1..written.len() - 1].replace("\"\"", "\"").eq_ignore_ascii_case(name),
            TokenKind::String => written[1..written.len() - 1].replace("''", "'").eq_ignore_ascii_case(name),
            _ => false,
        }
    };
    lexer::tokens(text).ok()?.iter().find(is_named).map(|token| token.span.start as usize)
}

/// Parses one statement; trailing semicolons are allowed.
///
/// # Errors
/// The text is not a statement, contains several statements, or exceeds a limit. The error has the position.
pub fn parse(text: &str) -> Result<Statement, Error> {
    let tokens = lexer::tokens(text)?;
    parser::Parser::new(text, &tokens).statement().map_err(|error| suggest::with_hint(*error, text, &tokens))
}
