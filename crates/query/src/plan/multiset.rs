//! EXCEPT ALL and INTERSECT ALL of rows that come several times: a row that is there three times on the left and once on
//! the right is left twice, and is common once. The planner's joins ask only whether it is there at all; here each row
//! is numbered among its equals, and the number is one more column that is compared.

use crate::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

const NUMBER: &str = "__among_equals";

/// Before anything is optimised: then only these set operations are such joins.
pub(crate) fn numbered_sets(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Join(join) = node else { return Ok(Transformed::no(node)) };
        let is_set = matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
            && join.null_equality == NullEquality::NullEqualsNull
            && join.filter.is_none()
            && join.on.len() == join.left.schema().fields().len()
            && !join.on.is_empty();
        // Of rows that differ there is one each.
        if !is_set || matches!(join.left.as_ref(), LogicalPlan::Distinct(_)) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let columns = join.left.schema().columns();
        let Join { left, right, join_type, mut on, .. } = join;
        let (left, right) = (numbered(&left)?, numbered(&right)?);
        on.push((Expr::Column(Column::new_unqualified(NUMBER)), Expr::Column(Column::new_unqualified(NUMBER))));
        let joined = Join::try_new(
            left,
            right,
            on,
            None,
            join_type,
            datafusion::common::JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        let plain = LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns.into_iter().map(Expr::Column));
        Ok(Transformed::yes(plain?.build()?))
    })?;
    Ok(done.data)
}

fn numbered(plan: &Arc<LogicalPlan>) -> datafusion::common::Result<Arc<LogicalPlan>> {
    let equals = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(equals).build()?.alias(NUMBER);
    let inner = number.clone().unalias();
    let windowed = LogicalPlanBuilder::from(plan.as_ref().clone()).window(vec![inner.clone()])?;
    let name = Expr::Column(Column::new_unqualified(inner.schema_name().to_string())).alias(NUMBER);
    let columns = plan.schema().columns().into_iter().map(Expr::Column).chain([name]);
    Ok(Arc::new(windowed.project(columns)?.build()?))
}
