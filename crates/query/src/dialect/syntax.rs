//! Syntax check by the parser of [`tidalite_sql`], before any other parser reads the text.
//!
//! This parser takes time linear in the text. The stock parser takes 2ⁿ time for n nested expressions that contain an
//! error, so a text with a syntax error never reaches the stock parser.

use crate::{Error, Result};

/// Rejects a text that is not a statement, with the error position and, for common mistakes, a hint.
///
/// # Errors
/// Fails if the text is not exactly one statement, or exceeds a limit of the parser.
pub fn validate(sql: &str) -> Result<()> {
    tree(sql).map(drop)
}

/// Returns the syntax tree of a statement.
pub(super) fn tree(sql: &str) -> Result<tidalite_sql::ast::Statement> {
    tidalite_sql::parse(sql).map_err(|error| {
        let refused = Error::invalid(error.to_string()).at(error.position);
        match error.hint {
            Some(hint) => refused.with_hint(hint),
            None => refused,
        }
    })
}
