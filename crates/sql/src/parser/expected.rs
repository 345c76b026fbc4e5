//! What may stand in one place of a text.

use crate::{Keyword, Symbol};
use std::cell::RefCell;

/// Something that may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// A keyword.
    Keyword(Keyword),
    /// An operator or a punctuation mark.
    Symbol(Symbol),
    /// A name.
    Name(NameKind),
    /// A constant, or another kind of token, by what it is called in messages.
    Text(&'static str),
}

/// Kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A table, a view, a common table expression, a function that gives rows, a file in quotes.
    Table,
    /// A column, a table before a column, or a function.
    Expression,
    /// A column of a table that is named elsewhere in the statement.
    Column,
    /// A type.
    Type,
    /// A name that the statement gives to something.
    New,
    /// A name of something else: a setting, a role, a cursor.
    Other,
}

/// Notes what the parser looks for in one place.
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

    /// In order, each once.
    pub(super) fn into_expected(self) -> Vec<Expected> {
        let mut expected = self.expected.into_inner();
        expected.sort_unstable();
        expected.dedup();
        expected
    }
}
