//! The unit of a program and the operands of its loops.

/// Rows that a program processes at a time, so that their numbers stay in the first-level cache between steps.
pub const SPAN: usize = 512;

/// One bit per row of a span.
pub type Span = [u64; SPAN / 64];

/// An operand of a loop: a value per row, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a, T> {
    Many(&'a [T]),
    One(T),
}
