//! The syntax tree: what a statement says, each clause a struct, each name and expression with its place.
//!
//! The tree has no names but those that were written, and nothing in it depends on the catalog. Names keep their spelling;
//! who compares them folds their case.
//!
//! Reading order: [`name`] and [`types`]; [`expr`] and [`function`]; [`query`], [`select`], [`relation`], [`time_series`],
//! [`pivot`]; [`dml`]; [`table`], [`view`], [`object`]; [`copy`]; [`session`]; [`admin`].

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
    FrameBound, FrameExclusion, FrameUnits, FunctionArg, FunctionCall, NullTreatment, Over, SpecialCall, TrimSide,
    WindowFrame, WindowSpec,
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
        /// The part that is computed again.
        scope: RefreshScope,
    },
    /// CREATE SCHEMA.
    CreateSchema {
        /// The schema.
        name: Ident,
        /// Whether an existing one is left alone.
        if_not_exists: bool,
    },
    /// CREATE FUNCTION.
    CreateFunction(Box<CreateFunction>),
    /// CREATE INDEX.
    CreateIndex(Box<CreateIndex>),
    /// CREATE USER and CREATE ROLE.
    CreateRole(Box<CreateRole>),
    /// DROP of anything but columns and partitions.
    Drop(Box<DropObject>),
    /// TRUNCATE.
    Truncate {
        /// The tables.
        tables: Vec<ObjectName>,
        /// Whether missing tables are passed over.
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
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT and their like.
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
        /// The query's number.
        id: Expr,
    },
    /// VACUUM, CHECKPOINT, COMMENT, LISTEN and others that the product does not have.
    Admin(Box<Admin>),
}
