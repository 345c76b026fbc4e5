//! Inner joins with keys over several tables: `a CROSS JOIN b JOIN c ON a.k = c.k AND a.x + b.x = c.y`.
//!
//! The stock rule that orders joins removes such a key from its join and loses it if no join of two inputs can use it.
//! A filter is kept.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

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
        if join.on.iter().all(|(left, right)| is_of_one(left) && is_of_one(right)) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let (on, spanning): (Vec<_>, Vec<_>) =
            join.on.iter().cloned().partition(|(left, right)| is_of_one(left) && is_of_one(right));
        let equal = match join.null_equality {
            NullEquality::NullEqualsNothing => Operator::Eq,
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
        };
        let spanning = spanning.into_iter().map(|(left, right)| binary_expr(left, equal, right));
        let filter = conjunction(join.filter.iter().cloned().chain(spanning));
        let Join { left, right, join_type, join_constraint, null_equality, null_aware, .. } = join;
        let joined = Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)?;
        Ok(Transformed::yes(LogicalPlan::Join(joined)))
    }
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
