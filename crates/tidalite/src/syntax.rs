//! Syntax check of a statement without a database.

use crate::Result;

/// Refuses a text that is no statement, with the place and, for common mistakes, a hint.
///
/// Names, types and privileges are not looked at: a statement that passes may still be refused when it runs. Takes time in
/// proportion to the length of the text.
///
/// # Errors
/// The text is no statement, more than one, or past a limit of the parser.
///
/// ```
/// assert!(tidalite::validate("SELECT ts, avg(price) FROM trades SAMPLE BY 1h").is_ok());
/// let error = tidalite::validate("SELECT price FORM trades").unwrap_err();
/// assert_eq!((error.position, error.hint.as_deref()), (Some(18), Some("did you mean FROM instead of FORM?")));
/// ```
pub fn validate(sql: &str) -> Result<()> {
    Ok(tidalite_query::validate(sql)?)
}
