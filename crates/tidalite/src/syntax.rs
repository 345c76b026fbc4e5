//! Syntax check of a statement without a database.

use crate::Result;

/// Rejects an invalid statement, with the position and, for common mistakes, a hint.
///
/// Names, types and privileges are not checked: a valid statement may still be rejected when it runs. Takes time linear
/// in the length of the text.
///
/// # Errors
/// The text is not a statement, has more than one, or exceeds a limit of the parser.
///
/// ```
/// assert!(tidalite::validate("SELECT ts, avg(price) FROM trades SAMPLE BY 1h").is_ok());
/// let error = tidalite::validate("SELECT price FORM trades").unwrap_err();
/// assert_eq!((error.position, error.hint.as_deref()), (Some(18), Some("did you mean FROM instead of FORM?")));
/// ```
pub fn validate(sql: &str) -> Result<()> {
    Ok(tidalite_query::validate(sql)?)
}
