//! The syntax tree. Each clause is a struct; each name and each expression has a [`Span`](crate::Span).
//!
//! The tree contains only names from the statement text and does not depend on the catalog. Names keep the spelling
//! of the statement; code that compares names folds the case.
//!
//! Reading order: [`name`] and [`types`]; [`expr`] and [`function`]; [`query`], [`select`], [`relation`],
//! [`time_series`], [`pivot`]; [`dml`]; [`table`], [`view`], [`object`]; [`copy`]; [`session`]; [`admin`]; [`walk`] and
//! [`walk_mut`].

pub mod admin;
pub mod copy;
pub mod dml;
pub mod expr;
pub mod function;
pub mod name;
pub mod object;
pub mod pivot;
pub mod query;
pub mod relation;
pub mod select;
pub mod session;
pub mod table;
pub mod time_series;
pub mod types;
pub mod view;
pub mod walk;
pub mod walk_mut;

pub use admin::{Admin, Backup, CheckTarget, Explain, Show};
pub use copy::{Copy, CopyDirection, CopyOption, CopySource, CopyTarget};
pub use dml::{
    Assignment, ConflictAction, Delete, Insert, InsertBatch, InsertSource, Merge, MergeAction, MergeClause, OnConflict,
    Update,
};
pub use expr::{
    BinaryOperator, CastKind, Expr, ExprKind, Interval, IntervalField, IsTest, LikeKind, Literal, QuantifiedSet,
    Quantifier, Subscript, UnaryOperator, WhenThen,
};
pub use function::{
    FrameBound, FrameExclusion, FrameOffset, FrameUnits, FunctionArg, FunctionCall, NullTreatment, Over, SpecialCall,
    TrimSide, WindowFrame, WindowSpec,
};
pub use name::{Ident, ObjectName, Quote};
pub use object::{CreateFunction, CreateIndex, CreateRole, DropObject, Grant, ObjectKind};
pub use pivot::{Pivot, PivotColumn, PivotValue, PivotValues, Unpivot};
pub use query::{
    Body, Cte, CteBody, Declaration, Limit, Lock, Materialization, OrderBy, OrderItem, Query, SetOperator,
    SetQuantifier, SetTerm, With,
};
pub use relation::{
    Alias, AliasColumn, Join, JoinCondition, JoinKind, JoinSide, Relation, RelationKind, TableRef, TableSample,
};
pub use select::{Distinct, GroupBy, GroupItem, NamedWindow, Projection, Select, SelectItem, Wildcard, WildcardChange};
pub use session::{Cursor, FetchDirection, Session, SettingScope, Transaction};
pub use table::{
    AlterAction, AlterTable, ColumnDef, ColumnOption, CreateTable, Partitions, SettingValue, StorageSetting,
    TableElement, TableSource, TableStorage, TimeToLive,
};
pub use time_series::{
    Alignment, AsofJoin, AsofKind, Duration, DurationUnit, Fill, FillValue, HorizonGrid, HorizonJoin, LatestOn, Offset,
    SampleBy, WindowBound, WindowJoin,
};
pub use types::{TypeArg, TypeName};
pub use view::{AlterView, CreateView, Materialized, Period, Refresh, RefreshMode, RefreshScope};

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
