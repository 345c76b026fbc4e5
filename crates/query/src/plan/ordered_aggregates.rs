//! `first(x)` and its like get the designated timestamp of their rows as a second argument.

use crate::Result;
use crate::functions::{paths, pick};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

pub(crate) fn in_order_of_time(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        let schema = aggregate.input.schema();
        let time = schema.iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from);
        let (Some(time), true) = (time, aggregate.aggr_expr.iter().any(lacks_time)) else {
            return Ok(Transformed::no(node));
        };
        let with_time = |expr: &Expr| -> datafusion::common::Result<Expr> {
            if !lacks_time(expr) {
                return Ok(expr.clone());
            }
            let name = expr.schema_name().to_string();
            let done = expr.clone().transform_up(|e| {
                Ok(match e {
                    Expr::AggregateFunction(mut f) if is_by_time(&f) => {
                        f.params.args.push(Expr::Column(time.clone()));
                        Transformed::yes(Expr::AggregateFunction(f))
                    }
                    other => Transformed::no(other),
                })
            })?;
            Ok(done.data.alias(name))
        };
        let expressions = aggregate.aggr_expr.iter().map(with_time).collect::<datafusion::common::Result<Vec<_>>>()?;
        let made = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), expressions)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(made)))
    })?;
    Ok(done.data)
}

/// Whether an aggregate goes by the time of its rows and was not told which.
pub(super) fn is_by_time(function: &AggregateFunction) -> bool {
    let (name, count) = (function.func.name(), function.params.args.len());
    (count == 1 && pick::BY_TIME.contains(&name)) || paths::BY_TIME.contains(&(name, count))
}

fn lacks_time(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::AggregateFunction(f) if is_by_time(f)))).unwrap_or(false)
}
