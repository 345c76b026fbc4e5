//! A statement, and the statements that contain another one.

use super::{
    Admin, AlterTable, AlterView, Backup, CheckTarget, Copy, CreateFunction, CreateIndex, CreateRole, CreateTable,
    CreateView, Cursor, Delete, DropObject, Expr, Grant, Ident, Insert, Merge, ObjectName, Query, RefreshScope,
    SettingScope, Show, Transaction, TypeName, Update,
};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A query, in any of its forms.
    Query(Box<Query>),
    /// EXPLAIN of a statement.
    Explain(Box<Explain>),
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// MERGE.
    Merge(Box<Merge>),
    /// COPY.
    Copy(Box<Copy>),
    /// CREATE TABLE.
    CreateTable(Box<CreateTable>),
    /// ALTER TABLE.
    AlterTable(Box<AlterTable>),
    /// CREATE VIEW and CREATE MATERIALIZED VIEW.
    CreateView(Box<CreateView>),
    /// ALTER MATERIALIZED VIEW.
    AlterView(Box<AlterView>),
    /// REFRESH MATERIALIZED VIEW.
    RefreshView {
        /// The view.
        view: ObjectName,
        /// Part of the view to recompute.
        scope: RefreshScope,
    },
    /// CREATE SCHEMA.
    CreateSchema {
        /// The schema.
        name: Ident,
        /// True if IF NOT EXISTS is given.
        if_not_exists: bool,
    },
    /// CREATE FUNCTION.
    CreateFunction(Box<CreateFunction>),
    /// CREATE INDEX.
    CreateIndex(Box<CreateIndex>),
    /// CREATE USER and CREATE ROLE.
    CreateRole(Box<CreateRole>),
    /// DROP of any object except columns and partitions.
    Drop(Box<DropObject>),
    /// TRUNCATE.
    Truncate {
        /// The tables.
        tables: Vec<ObjectName>,
        /// True if IF EXISTS is given.
        if_exists: bool,
    },
    /// RENAME TABLE.
    RenameTable {
        /// The table.
        table: ObjectName,
        /// The name it gets.
        to: ObjectName,
    },
    /// GRANT and REVOKE.
    Grant(Box<Grant>),
    /// SHOW.
    Show(Box<Show>),
    /// DESCRIBE of a table or a query.
    Describe(Box<Query>),
    /// SUMMARIZE of a table or a query.
    Summarize(Box<Query>),
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT and related statements.
    Transaction(Transaction),
    /// SET, RESET, PREPARE, EXECUTE, DEALLOCATE, DISCARD.
    Session(Box<Session>),
    /// DECLARE CURSOR, FETCH, MOVE, CLOSE.
    Cursor(Box<Cursor>),
    /// BACKUP.
    Backup(Backup),
    /// CHECK TABLE and CHECK DATABASE.
    Check(CheckTarget),
    /// CANCEL QUERY.
    CancelQuery {
        /// Identifier of the query.
        id: Expr,
    },
    /// VACUUM, CHECKPOINT, COMMENT, LISTEN and other statements that Tidalite does not implement.
    Admin(Box<Admin>),
}

/// EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// ANALYZE.
    pub analyze: bool,
    /// VERBOSE.
    pub verbose: bool,
    /// Options in parentheses, each with its value.
    pub options: Vec<(Ident, Option<Expr>)>,
    /// The statement.
    pub statement: Statement,
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
