//! Calls whose function depends on their arguments: aggregates that are scalars with more arguments, and `avg` with
//! the arguments of an exponential moving average.

use super::literals::is_null;
use crate::functions::{array_elements, ema};
use crate::{Error, Result};
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, ScalarFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::planner::{PlannerResult, RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{Expr, WindowFunctionDefinition, cast, lit, when};
use std::sync::Arc;

/// Maximum number of percentiles of one call.
const PERCENTILES_MAX: usize = 64;
/// Aggregates that take an array of percentiles: the name of the aggregate, and the name in messages.
const PERCENTILES: &[(&str, &str)] =
    &[("approx_percentile_cont", "approx_percentile"), (PERCENTILE_CONT, PERCENTILE_CONT)];
const PERCENTILE_CONT: &str = "percentile_cont";

/// Plans `array_elem_sum(a, b)` as a scalar, and `approx_percentile(x, ARRAY[0.5, 0.9])` as an array of aggregates.
pub(super) fn aggregate(call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
    let name = call.func.name();
    if call.args.len() > 1
        && let Some(function) = array_elements::of_rows(name)
    {
        if call.distinct || call.filter.is_some() || !call.order_by.is_empty() {
            let text = format!("DISTINCT, FILTER and ORDER BY are not supported by {name} of several arrays");
            return Err(Error::invalid(text).about(name));
        }
        return Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args))));
    }
    if let Some((_, shown)) = PERCENTILES.iter().find(|(own, _)| *own == name)
        && let Some(percentiles) = call.args.get(1).map_or(Ok(None), |share| percentiles(share, shown))?
    {
        let aggregate = |func, args, order_by| {
            let filter = call.filter.clone();
            let null_treatment = call.null_treatment;
            Expr::AggregateFunction(AggregateFunction::new_udf(
                func,
                args,
                call.distinct,
                filter,
                order_by,
                null_treatment,
            ))
        };
        let one = |percentile: Expr| {
            if is_null(&percentile) {
                return percentile;
            }
            let mut args = call.args.clone();
            args[1] = percentile;
            aggregate(call.func.clone(), args, call.order_by.clone())
        };
        let all = make_array(percentiles.into_iter().map(one).collect());
        if name != PERCENTILE_CONT {
            return Ok(PlannerResult::Planned(all));
        }
        // Without values the array is NULL, as in PostgreSQL.
        let count = aggregate(count_udaf(), call.args[..1].to_vec(), Vec::new());
        return Ok(PlannerResult::Planned(when(count.gt(lit(0_i64)), all).end()?));
    }
    if name == PERCENTILE_CONT && call.args.get(1).is_some_and(is_null) {
        // The count, which is never negative, makes the NULL a value of the group.
        let count = count_udaf().call(call.args[..1].to_vec());
        return Ok(PlannerResult::Planned(when(count.lt(lit(0_i64)), lit(0.0)).end()?));
    }
    Ok(PlannerResult::Original(call))
}

/// Returns the percentiles of an array that is written out, for the aggregate `name`; `None` for another argument.
///
/// # Errors
/// The array has no or too many percentiles.
pub(crate) fn percentiles(expr: &Expr, name: &str) -> Result<Option<Vec<Expr>>> {
    let Some(percentiles) = array_items(expr) else { return Ok(None) };
    // Without percentiles nothing would be left to aggregate.
    if !(1..=PERCENTILES_MAX).contains(&percentiles.len()) {
        let text = format!("{name} takes 1 to {PERCENTILES_MAX} percentiles");
        return Err(Error::invalid(text).about(name));
    }
    Ok(Some(percentiles))
}

/// Returns the items of an array that is written out.
fn array_items(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Cast(Cast { expr, field }) => match field.data_type() {
            DataType::List(item) if !matches!(item.data_type(), DataType::List(_)) => {
                let items = array_items(expr)?.into_iter();
                Some(items.map(|value| cast(value, item.data_type().clone())).collect())
            }
            _ => None,
        },
        Expr::ScalarFunction(function) if function.name() == "make_array" => Some(function.args.clone()),
        Expr::Literal(ScalarValue::List(list), _) if list.len() == 1 => {
            let values = list.value(0);
            let item = |n| ScalarValue::try_from_array(&values, n).ok().map(|value| Expr::Literal(value, None));
            (0..values.len()).map(item).collect()
        }
        _ => None,
    }
}

/// Plans `avg(x, kind, n [, volume]) OVER (…)`.
pub(super) fn window(call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
    let is_avg = matches!(&call.func_def, WindowFunctionDefinition::AggregateUDF(of) if of.name() == "avg");
    if !is_avg || !(3..=4).contains(&call.args.len()) {
        return Ok(PlannerResult::Original(call));
    }
    if call.distinct || call.filter.is_some() || call.null_treatment.is_some() {
        let text = "DISTINCT, FILTER and IGNORE NULLS are not supported by an exponential avg";
        return Err(Error::invalid(text).about("avg"));
    }
    let has_volume = call.args.len() == 4;
    let mut args = call.args;
    let order = call.order_by.first().map(|by| by.expr.clone());
    let has_order = order.is_some();
    args.extend(order);
    let function = WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(Arc::new(ema::exponential(has_volume, has_order))),
        params: WindowFunctionParams {
            args,
            partition_by: call.partition_by,
            order_by: call.order_by,
            window_frame: call.window_frame,
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    };
    Ok(PlannerResult::Planned(Expr::WindowFunction(Box::new(function))))
}
