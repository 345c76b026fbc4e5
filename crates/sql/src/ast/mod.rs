//! The syntax tree. Each clause is a struct; each name and each expression has a [`Span`](crate::Span).
//!
//! The tree contains only names from the statement text and does not depend on the catalog. Names keep the spelling
//! of the statement; code that compares names folds the case.
//!
//! Reading order: [`name`] and [`types`]; [`expr`] and [`function`]; [`query`], [`select`], [`relation`],
//! [`time_series`], [`pivot`]; [`dml`]; [`table`], [`view`], [`object`]; [`copy`]; [`session`]; [`admin`]; [`statement`];
//! [`walk`] and [`walk_mut`], which `walker` defines.

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
pub mod statement;
pub mod table;
pub mod time_series;
pub mod types;
pub mod view;
pub mod walk;
pub mod walk_mut;
mod walker;

pub use admin::{Admin, Backup, CheckTarget, Show};
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
pub use session::{Cursor, FetchDirection, SettingScope, Transaction};
pub use statement::{Explain, Session, Statement};
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
