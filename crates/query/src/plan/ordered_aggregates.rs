//! Aggregates that depend on the order of rows: `first(x)` and similar aggregates get the designated timestamp as an
//! additional argument, unless the call has its own order (`first(x ORDER BY y)`).

use crate::functions::{charts, is_ordered, paths, pick};
use crate::{Error, Result};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

pub(crate) fn in_order_of_time(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        let schema = aggregate.input.schema();
        let time = schema.iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from);
        let is_meant = |f: &AggregateFunction| has_own_order(f) || (time.is_some() && is_by_time(f));
        let is_any_meant =
            |expr: &Expr| expr.exists(|e| Ok(matches!(e, Expr::AggregateFunction(f) if is_meant(f)))).unwrap_or(false);
        if !aggregate.aggr_expr.iter().any(is_any_meant) {
            return Ok(Transformed::no(node));
        }
        let ordered = |expr: &Expr| -> datafusion::common::Result<Expr> {
            if !is_any_meant(expr) {
                return Ok(expr.clone());
            }
            let name = expr.schema_name().to_string();
            let done = expr.clone().transform_up(|e| {
                Ok(match e {
                    Expr::AggregateFunction(f) if is_meant(&f) => {
                        Transformed::yes(Expr::AggregateFunction(in_order(f, time.as_ref())?))
                    }
                    other => Transformed::no(other),
                })
            });
            Ok(done.data()?.alias(name))
        };
        let expressions = aggregate.aggr_expr.iter().map(ordered).collect::<datafusion::common::Result<Vec<_>>>()?;
        let made = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), expressions)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(made)))
    })?;
    Ok(done.data)
}

/// Returns true for an aggregate over rows in the order of time without its own ORDER BY.
pub(super) fn is_by_time(function: &AggregateFunction) -> bool {
    goes_by_time(function) && function.params.order_by.is_empty()
}

fn goes_by_time(function: &AggregateFunction) -> bool {
    let (name, count) = (function.func.name(), function.params.args.len());
    (count == 1 && pick::BY_TIME.contains(&name)) || needs_time(name, count)
}

/// Returns true for a call that has no result without the times of its rows as a further argument.
pub(crate) fn needs_time(name: &str, arguments: usize) -> bool {
    let is_sparkline = name == charts::SPARKLINE && charts::SPARKLINE_ARGUMENTS.contains(&arguments);
    (arguments == 1 && name == is_ordered::NAME) || is_sparkline || paths::BY_TIME.contains(&(name, arguments))
}

/// Returns true for an aggregate over rows in the order of time whose call has its own ORDER BY.
fn has_own_order(function: &AggregateFunction) -> bool {
    !function.params.order_by.is_empty() && goes_by_time(function)
}

fn in_order(mut function: AggregateFunction, time: Option<&Column>) -> Result<AggregateFunction> {
    let name = function.func.name().to_owned();
    let params = &mut function.params;
    if params.order_by.is_empty() {
        params.args.extend(time.cloned().map(Expr::Column));
        return Ok(function);
    }
    match name.as_str() {
        "first" | "first_not_null" => function.func = first_value_udaf(),
        "last" | "last_not_null" => function.func = last_value_udaf(),
        _ => match params.order_by.as_slice() {
            [by] if by.asc => {
                params.args.push(by.expr.clone());
                params.order_by.clear();
            }
            _ => return Err(Error::invalid(format!("{name} goes by one time, from the first to the last"))),
        },
    }
    if name.ends_with("_not_null") {
        function.params.null_treatment = Some(NullTreatment::IgnoreNulls);
    }
    Ok(function)
}
