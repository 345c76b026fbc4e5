//! Plans `EXTRACT(field FROM x)` as a call of Tidalite's `date_part` in place of the stock one.

use crate::functions::scalar_named;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};

#[derive(Debug)]
pub(crate) struct TimeParts;

impl ExprPlanner for TimeParts {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(match scalar_named("date_part") {
            Some(function) => PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, args))),
            None => PlannerResult::Original(args),
        })
    }
}
