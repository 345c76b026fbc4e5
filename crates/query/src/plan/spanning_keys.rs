//! Inner joins with keys over several tables: `a CROSS JOIN b JOIN c ON a.k = c.k AND a.x + b.x = c.y`.
//!
//! The stock rule that orders joins removes such a key from its join and loses it if no join of two inputs can use it.
//! The rule also compares all keys as those of the uppermost join are compared: `IS NOT DISTINCT FROM` becomes `=` below
//! a join by `=`. A filter is kept.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Moves such keys to a filter; runs before the stock rule that orders joins.
#[derive(Debug)]
pub(crate) struct FilterSpanningKeys;

impl OptimizerRule for FilterSpanningKeys {
    fn name(&self) -> &'static str {
        "filter_spanning_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        if join.join_type != JoinType::Inner || !(is_inner(&join.left) || is_inner(&join.right)) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let mut inputs = Vec::new();
        leaves(&join.left, &mut inputs);
        leaves(&join.right, &mut inputs);
        let is_of_one = |side: &Expr| {
            let columns = side.column_refs();
            inputs.iter().any(|schema| columns.iter().all(|column| schema.has_column(column)))
        };
        let is_mixed = [&join.left, &join.right].into_iter().any(|side| mixes_with(side, join.null_equality));
        let equals_null = join.null_equality == NullEquality::NullEqualsNull;
        let stays = |(left, right): &(Expr, Expr)| is_of_one(left) && is_of_one(right) && !(is_mixed && equals_null);
        if !is_mixed && join.on.iter().all(stays) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let (on, moved): (Vec<_>, Vec<_>) = join.on.iter().cloned().partition(stays);
        let below = |side: &Arc<LogicalPlan>| -> Result<Arc<LogicalPlan>> {
            match side.as_ref() {
                LogicalPlan::Join(below) if !equals_null && mixes_with(side, join.null_equality) => {
                    let (left, right) = (below.left.clone(), below.right.clone());
                    Ok(Arc::new(filtered(left, right, below, Vec::new(), below.on.clone())?))
                }
                _ => Ok(side.clone()),
            }
        };
        let (left, right) = (below(&join.left)?, below(&join.right)?);
        Ok(Transformed::yes(filtered(left, right, &join, on, moved)?))
    }
}

/// The join with some of its keys as filters.
fn filtered(
    left: Arc<LogicalPlan>,
    right: Arc<LogicalPlan>,
    join: &Join,
    on: Vec<(Expr, Expr)>,
    moved: Vec<(Expr, Expr)>,
) -> Result<LogicalPlan> {
    let equal = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let null_equality = if on.is_empty() { NullEquality::NullEqualsNothing } else { join.null_equality };
    let moved = moved.into_iter().map(|(left, right)| binary_expr(left, equal, right));
    let filter = conjunction(join.filter.iter().cloned().chain(moved));
    let (kind, using) = (join.join_type, join.join_constraint);
    Ok(LogicalPlan::Join(Join::try_new(left, right, on, filter, kind, using, null_equality, join.null_aware)?))
}

/// Whether it is an inner join whose keys are equal in another way.
fn mixes_with(plan: &LogicalPlan, equality: NullEquality) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
        && !join.on.is_empty() && join.null_equality != equality)
}

fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
}

/// Collects the inputs that the stock rule reorders.
fn leaves<'a>(plan: &'a LogicalPlan, found: &mut Vec<&'a DFSchemaRef>) {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            leaves(&join.left, found);
            leaves(&join.right, found);
        }
        other => found.push(other.schema()),
    }
}
