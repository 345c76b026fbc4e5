//! Transactions, scopes of settings, cursors.

use super::{Ident, Query};

/// Statements about transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION.
    Begin {
        /// True for READ ONLY, false for READ WRITE; `None` if omitted.
        read_only: Option<bool>,
        /// ISOLATION LEVEL, in upper case.
        isolation: Option<String>,
        /// True for DEFERRABLE, false for NOT DEFERRABLE; `None` if omitted.
        deferrable: Option<bool>,
    },
    /// COMMIT, END.
    Commit {
        /// AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN.
        chain: bool,
        /// TO SAVEPOINT.
        to: Option<Ident>,
    },
    /// SAVEPOINT.
    Savepoint(Ident),
    /// RELEASE SAVEPOINT.
    Release(Ident),
}

/// Lifetime of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// SESSION.
    Session,
    /// LOCAL.
    Local,
}

/// Statements about cursors.
#[derive(Clone, Debug, PartialEq)]
pub enum Cursor {
    /// DECLARE name CURSOR FOR query.
    Declare {
        /// The name.
        name: Ident,
        /// BINARY.
        binary: bool,
        /// True for SCROLL, false for NO SCROLL; `None` if omitted.
        scroll: Option<bool>,
        /// WITH HOLD.
        hold: bool,
        /// The query.
        query: Box<Query>,
    },
    /// FETCH and MOVE.
    Fetch {
        /// True for MOVE, false for FETCH.
        is_move: bool,
        /// Rows to fetch.
        direction: FetchDirection,
        /// The cursor.
        name: Ident,
    },
    /// CLOSE; `None` for ALL.
    Close(Option<Ident>),
}

/// Direction and row count of a FETCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// NEXT, or no direction.
    Next,
    /// PRIOR.
    Prior,
    /// FIRST.
    First,
    /// LAST.
    Last,
    /// ABSOLUTE n.
    Absolute(String),
    /// RELATIVE n.
    Relative(String),
    /// `n`, FORWARD n; `None` for ALL.
    Forward(Option<String>),
    /// BACKWARD n; `None` for ALL.
    Backward(Option<String>),
}
