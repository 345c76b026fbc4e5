//! Learned texts between two values of a line.
//!
//! A **step** is the literal text between two values, `,usage_idle=`, and identifies a column. Steps record the steps
//! that followed them.

use super::scan::Prefix;

/// Number of a step of a table.
pub(super) type StepId = u32;

/// The state before the first step of a line.
pub(super) const START: StepId = 0;

/// Follows the last value: the timestamp and the end of the line.
pub(super) const FINISH: StepId = u32::MAX - 1;

/// A step that is not recorded.
pub(super) const UNKNOWN: StepId = u32::MAX;

#[derive(Debug)]
pub(super) struct Step {
    pub prefix: Prefix,
    pub column: u32,
    /// True if a field follows, false for a tag.
    pub field: bool,
    /// True if it continues the fields: the same text has another meaning after a tag.
    pub after_field: bool,
    /// The two most recent following steps.
    pub next: [StepId; 2],
}
