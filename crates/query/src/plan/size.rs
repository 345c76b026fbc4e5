//! How large a plan may be. Queries of WITH and views stand in a plan as often as they are named, so that forty of them,
//! each naming the one before twice, would be a million million steps.

use crate::{Error, Result};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

/// Steps of a plan.
const STEPS_MAX: usize = 20_000;

pub(crate) fn of_bounded_size(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut steps = 0_usize;
    plan.apply_with_subqueries(|_| {
        steps += 1;
        Ok(if steps > STEPS_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if steps > STEPS_MAX {
        let message = format!(
            "the statement would take more than {STEPS_MAX} steps: queries of WITH count as often as they are named"
        );
        return Err(Error::invalid(message));
    }
    Ok(plan)
}
