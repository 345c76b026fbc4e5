//! What we do to a plan, one change per file: to the logical one before it is optimised, and [`TiesInOrder`] at the end.
//! And the clauses of ours, one node per file: [`relations`] finds them, [`sample_by`] with [`fill`], [`latest_on`] and
//! [`time_join`], [`window_join`] and [`pivot`] plan them, [`physical`] gives them their operators.

mod fill;
mod intervals;
mod latest_on;
mod literals;
mod operators;
mod ordered_aggregates;
mod physical;
mod pivot;
mod relations;
mod sample_by;
mod tail;
mod ties;
mod time_join;
mod time_order;
mod window_join;

pub(crate) use fill::{Fill, FillSpec};
pub(crate) use intervals::time_ranges;
pub(crate) use literals::typed_literals;
pub(crate) use operators::Operators;
pub(crate) use ordered_aggregates::in_order_of_time;
pub(crate) use physical::Planner;
pub(crate) use sample_by::fixed_buckets;
pub(crate) use relations::{TimeRelations, distinct_names};
pub(crate) use tail::last_rows;
pub(crate) use ties::TiesInOrder;
pub(crate) use time_join::{Kind, TimeJoinColumns, TimeJoinSpec, filters_on_left};
pub(crate) use time_order::in_time_order;

pub(crate) use window_join::{WindowJoinColumns, WindowJoinSpec};

use datafusion::common::{Column, Result as DFResult};
use datafusion::logical_expr::Expr;

/// The columns that a node of ours gave out as its expressions.
fn columns_of(exprs: Vec<Expr>) -> DFResult<Vec<Column>> {
    let column = |expr: Expr| match expr.unalias_nested().data {
        Expr::Column(column) => Ok(column),
        other => Err(crate::Error::internal(format!("{other} has taken the place of a column")).into()),
    };
    exprs.into_iter().map(column).collect()
}
