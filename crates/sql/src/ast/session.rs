//! Transactions, settings, prepared statements, cursors.

use super::{Expr, Ident, Query, Statement, TypeName};

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

/// Statements about the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Session {
    /// SET.
    Set {
        /// LOCAL or SESSION.
        scope: Option<SettingScope>,
        /// Name of the setting; the words of a longer name such as `TIME ZONE` are separated by one space.
        name: String,
        /// The values; empty for DEFAULT.
        values: Vec<Expr>,
    },
    /// SET TRANSACTION, SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetTransaction {
        /// True if the modes apply to all transactions of the session.
        is_for_session: bool,
        /// True for READ ONLY, false for READ WRITE; `None` if omitted.
        read_only: Option<bool>,
        /// ISOLATION LEVEL, in upper case.
        isolation: Option<String>,
    },
    /// RESET; `None` for ALL.
    Reset(Option<String>),
    /// DISCARD, with its argument in upper case.
    Discard(String),
    /// PREPARE.
    Prepare {
        /// The name.
        name: Ident,
        /// The types of the parameters.
        types: Vec<TypeName>,
        /// The statement.
        statement: Box<Statement>,
    },
    /// EXECUTE.
    Execute {
        /// The name.
        name: Ident,
        /// The values.
        args: Vec<Expr>,
    },
    /// DEALLOCATE; `None` for ALL.
    Deallocate(Option<Ident>),
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
