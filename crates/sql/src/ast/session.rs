//! Transactions, settings, prepared statements, cursors.

use super::{Expr, Ident, Query, Statement, TypeName};

/// Statements about transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION.
    Begin {
        /// READ ONLY or READ WRITE, if it is said.
        read_only: Option<bool>,
        /// ISOLATION LEVEL, in upper case.
        isolation: Option<String>,
        /// DEFERRABLE or NOT DEFERRABLE, if it is said.
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
        /// The setting; of several words, such as `TIME ZONE`, with a space between them.
        name: String,
        /// The values; empty for DEFAULT.
        values: Vec<Expr>,
    },
    /// SET TRANSACTION, SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetTransaction {
        /// Whether it is for all transactions of the session.
        is_for_session: bool,
        /// READ ONLY or READ WRITE, if it is said.
        read_only: Option<bool>,
        /// ISOLATION LEVEL, in upper case.
        isolation: Option<String>,
    },
    /// RESET; `None` for ALL.
    Reset(Option<String>),
    /// DISCARD, with what is discarded in upper case.
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

/// How long a setting holds.
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
        /// SCROLL or NO SCROLL, if it is said.
        scroll: Option<bool>,
        /// WITH HOLD.
        hold: bool,
        /// The query.
        query: Box<Query>,
    },
    /// FETCH and MOVE.
    Fetch {
        /// Whether it is MOVE.
        is_move: bool,
        /// Which rows.
        direction: FetchDirection,
        /// The cursor.
        name: Ident,
    },
    /// CLOSE; `None` for ALL.
    Close(Option<Ident>),
}

/// Which rows a FETCH gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// NEXT, or nothing.
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
