//! The reasons why a value cannot be converted.

/// Reason why a value cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Type,
    Range,
    Digits,
    Syntax,
    Depth,
    Room,
}

/// A row and its problem.
pub(super) type Failure = (usize, Problem);
