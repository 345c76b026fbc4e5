//! Tokens that are allowed at one position of a text.

use crate::{Keyword, Symbol};
use std::cell::RefCell;

/// A token that is allowed at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// A keyword.
    Keyword(Keyword),
    /// An operator or a punctuation mark.
    Symbol(Symbol),
    /// A name.
    Name(NameKind),
    /// A constant or another kind of token, by its description in messages.
    Text(&'static str),
}

/// Kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A table, a view, a common table expression, a table function, or a quoted file name.
    Table,
    /// A column, a table before a column, or a function.
    Expression,
    /// A column of a table that is named elsewhere in the statement.
    Column,
    /// A type.
    Type,
    /// A new name, defined by the statement.
    New,
    /// A name of another object: a setting, a role, a cursor.
    Other,
}

/// Records the tokens that the parser accepts at one position.
pub(crate) struct Trace {
    at: usize,
    expected: RefCell<Vec<Expected>>,
}

impl Trace {
    pub(super) fn new(at: usize) -> Trace {
        Trace { at, expected: RefCell::default() }
    }

    pub(super) fn is_at(&self, at: usize) -> bool {
        self.at == at
    }

    pub(super) fn note(&self, at: usize, expected: Expected) {
        if at == self.at {
            self.expected.borrow_mut().push(expected);
        }
    }

    /// Returns the recorded tokens, sorted and without duplicates.
    pub(super) fn into_expected(self) -> Vec<Expected> {
        let mut expected = self.expected.into_inner();
        expected.sort_unstable();
        expected.dedup();
        expected
    }
}
