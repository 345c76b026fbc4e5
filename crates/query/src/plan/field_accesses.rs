//! How often a plan takes a part of a value, `column.part`, as it does of structs.

use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

pub(crate) fn field_accesses(plan: &LogicalPlan) -> DFResult<usize> {
    let mut count = 0;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                count += usize::from(matches!(e, Expr::ScalarFunction(call) if call.name() == "get_field"));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(count)
}
