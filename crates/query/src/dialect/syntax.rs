//! What is a statement: decided by the parser of [`tidalite_sql`], before anything else reads the text.
//!
//! It takes time in proportion to the text, where the stock parser takes time with 2ⁿ of n nested expressions when there
//! is an error within them. So nothing that is no statement reaches the stock parser.

use crate::{Error, Result};

/// Refuses what is no statement, with its place and, for common mistakes, a hint.
///
/// # Errors
/// The text is no statement, more than one, or past a limit of the parser.
pub fn validate(sql: &str) -> Result<()> {
    match tidalite_sql::parse(sql) {
        Ok(_) => Ok(()),
        Err(error) => {
            let refused = Error::invalid(error.to_string()).at(error.position);
            Err(match error.hint {
                Some(hint) => refused.with_hint(hint),
                None => refused,
            })
        }
    }
}
