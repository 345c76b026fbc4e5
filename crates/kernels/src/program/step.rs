//! The steps of a program: numbers, truth values, the reasons of failures.

use super::arithmetic::{Arithmetic, Change};
use super::compare::Comparison;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Float,
}

/// A number for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Column(usize, Kind),
    Int(i64),
    Float(f64),
    /// The result of a step.
    Step(usize, Kind),
}

/// A truth value for each row, identified by the step that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test(pub(super) usize);

impl Test {
    /// Returns the index of the step in `Program::steps`.
    #[must_use]
    pub fn step(self) -> usize {
        self.0
    }
}

/// A calculation of integers that fails for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    Plus,
    Minus,
    Times,
    /// A sum, difference or product of integers of the given number of bits, at most 32.
    Narrow(Arithmetic, u32),
    /// An addition whose left operand and sum must be in this range.
    Moved(i64, i64),
    /// A division of integers of the given number of bits.
    Over(u32),
    Modulo,
}

/// Reason why a row has no number. The operands are in the order of the calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    DivisionByZero,
    Overflow(Guarded, i64, i64),
    /// The value or the sum is outside of the bounds of [`Guarded::Moved`].
    OutOfRange,
    /// [`Change::Magnitude`] of the smallest integer of the given number of bits.
    Magnitude(u32, i64),
}

/// One operation on the numbers of all rows of a span.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Calculate(Arithmetic, Number, Number),
    Guarded(Guarded, Number, Number),
    Change(Change, Number),
    /// [`Change::Magnitude`] for integers of the given number of bits.
    GuardedMagnitude(u32, Number),
    Float(Number),
    Compare(Comparison, Number, Number),
    Present(Number),
    Both(Test, Test),
    Either(Test, Test),
    Not(Test),
    Constant(bool),
    /// Restricts the following steps to the rows of a test.
    Among(Test),
}

impl Number {
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Number::Column(_, kind) | Number::Step(_, kind) => kind,
            Number::Int(_) => Kind::Int,
            Number::Float(_) => Kind::Float,
        }
    }
}

impl Step {
    /// Returns the numbers that the step reads, in order.
    #[must_use]
    pub fn numbers(&self) -> Vec<Number> {
        match self {
            Step::Calculate(_, a, b) | Step::Guarded(_, a, b) | Step::Compare(_, a, b) => vec![*a, *b],
            Step::Change(_, a) | Step::GuardedMagnitude(_, a) | Step::Float(a) | Step::Present(a) => vec![*a],
            Step::Both(..) | Step::Either(..) | Step::Not(_) | Step::Among(_) | Step::Constant(_) => Vec::new(),
        }
    }

    /// Returns the kind of the computed numbers; `None` for a step that computes none.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Step::Calculate(_, a, _) | Step::Change(_, a) => Some(a.kind()),
            Step::Guarded(..) | Step::GuardedMagnitude(..) => Some(Kind::Int),
            Step::Float(_) => Some(Kind::Float),
            _ => None,
        }
    }
}
