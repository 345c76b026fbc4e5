//! Identifiers as newtypes of integers.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $repr);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(/// A table for as long as it exists; never reused, survives a rename.
    TableId(u32));
id!(/// A column of one table; never reused, survives a rename.
    ColumnId(u32));
id!(/// An immutable segment file; unique in the database, never reused.
    SegmentId(u64));
id!(/// An entry of a symbol column's dictionary, dense from 0 in order of first commit.
    SymbolId(u32));
id!(/// Number of a commit in the log; 0 is "before the first".
    Txn(u64));

impl Txn {
    #[must_use]
    pub fn next(self) -> Txn {
        Txn(self.0.saturating_add(1))
    }
}
