//! The binder: resolves the names of a syntax tree in scopes and builds the logical plan.
//!
//! In: a query of [`tidalite_sql`], the tables that the query names ([`tables`]), the functions of a session. Out: the
//! plan before optimization. The binder does not print SQL and does not parse text.
//!
//! Reading order:
//!
//! - [`scope`] and [`names`]; [`query`] with [`order`], [`setops`], [`values`] with [`value_types`], and [`with`];
//!   [`number_types`].
//! - [`select`] with [`items`], [`aggregate`], [`distinct`] and [`window`]; [`from`] with [`joins`], [`files`],
//!   [`pivot`] and [`unpivot`]; [`declare`] replaces variables before.
//! - Tidalite's clauses: [`time_series`], [`horizon`], [`window_join`], [`sequences`].
//! - [`expr`] with [`literals`], [`operators`], [`predicates`], [`arrays`], [`collections`], [`functions`],
//!   [`subqueries`], [`types`] and [`parameters`]; [`labels`] names columns.
//! - [`dml`]: the queries of statements that change rows.

mod aggregate;
mod arrays;
mod collections;
pub(crate) mod declare;
mod distinct;
pub(crate) mod dml;
mod expr;
mod files;
mod from;
mod functions;
mod horizon;
mod items;
mod joins;
mod labels;
mod literals;
mod names;
mod number_types;
mod operators;
mod order;
mod ordered_sets;
mod parameters;
mod pivot;
mod predicates;
mod query;
mod scope;
mod select;
mod sequences;
mod setops;
mod subqueries;
pub(crate) mod tables;
mod ties;
mod time_series;
mod types;
mod unpivot;
mod value_types;
mod values;
mod window;
mod window_join;
mod window_names;
mod with;

pub(crate) use files::{FileCall, FileOption};
pub(crate) use names::is_immutable;
pub(crate) use order::last_rows;
pub(crate) use pivot::{COLUMNS_MAX, ReadValues, ValuesQuery, too_many};
pub(crate) use time_series::sampling;

use crate::{Error, Parameter};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::DataFusionError;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use scope::Env;
use tables::Tables;
use tidalite_sql::{Span, ast};

/// A query as the parser of [`tidalite_sql`] read it, with the values or types of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub query: ast::Query,
    pub parameters: Parameters,
}

/// The values or the types of the parameters `$1`, `$2`, ….
#[derive(Clone, Debug)]
pub(crate) enum Parameters {
    Values(Vec<Parameter>),
    /// A query that is only described has types, as far as they are known.
    Types(Vec<Option<FieldRef>>),
}

/// The reason why a query was not bound.
#[derive(Clone, Debug)]
pub(crate) enum BindError {
    /// A form that the binder does not know yet.
    Unsupported(Unsupported),
    /// An error of the statement.
    Invalid(Box<Error>),
    /// The query is bound again when the values of a sub-query of PIVOT are known.
    Values(Box<ValuesQuery>),
}

/// A form that the binder does not know yet, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub feature: &'static str,
    pub span: Span,
}

pub(crate) type Result<T> = std::result::Result<T, BindError>;

impl From<Error> for BindError {
    fn from(error: Error) -> BindError {
        BindError::Invalid(Box::new(error))
    }
}

impl From<DataFusionError> for BindError {
    fn from(error: DataFusionError) -> BindError {
        Error::from(error).into()
    }
}

/// Returns the error for a form that the binder does not know yet.
fn unsupported<T>(feature: &'static str, span: Span) -> Result<T> {
    Err(BindError::Unsupported(Unsupported { feature, span }))
}

/// Binds one query.
struct Binder<'a> {
    state: &'a SessionState,
    tables: &'a Tables,
    /// The text of the statement, from which columns take their names.
    text: &'a str,
    parameters: &'a Parameters,
    /// The values of sub-queries of PIVOTs that are known.
    values: &'a ReadValues,
}

/// Builds the plan of a query.
///
/// A negative LIMIT of the query itself, without OFFSET, is not part of the plan: the caller takes the last rows.
///
/// # Errors
/// The query is not valid, has a form that the binder does not know yet, or has a PIVOT whose values are not in
/// `values`.
pub(crate) fn bind(
    state: &SessionState,
    tables: &Tables,
    text: &str,
    tree: &Tree,
    values: &ReadValues,
) -> Result<LogicalPlan> {
    let binder = Binder { state, tables, text, parameters: &tree.parameters, values };
    let plan = binder.statement(&tree.query, &Env::default())?;
    match tree.parameters {
        Parameters::Values(_) => Ok(plan),
        Parameters::Types(_) => Ok(parameters::with_inferred_types(plan)?),
    }
}
