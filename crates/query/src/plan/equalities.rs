//! Filters that the physical planner does not look into.
//!
//! It takes `a = CASE … END`, and `CASE … END = 1`, for a fact about the order of rows and then trips over it, when it finds that it ordered
//! rows by the one where a window wants the other ("does not satisfy order requirements"). Such a plan is made again
//! of filters that say the same with IS TRUE. So is one whose bounds it takes for more rows than there are ("selectivity
//! is out of limit"), of all filters.
//!
//! Where truths are compared, `(a > 6) <= (b < 0)`, also cast to numbers, it mixes up the bounds of both sides of a comparison that must be
//! false, takes a column for a constant and leaves it out of orders: wrong answers, so that these are always hidden.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};

/// `None` when nothing is hidden by it.
pub(crate) fn without_equalities(plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    hiding(plan, is_of_computed)
}

/// `None` when there are no filters.
pub(crate) fn without_bounds(plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    hiding(plan, |part| !matches!(part, Expr::IsTrue(_)))
}

/// `None` when no filter compares truths.
pub(crate) fn without_compared_truths(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let compares = |node: &LogicalPlan| {
        Ok(
            matches!(node, LogicalPlan::Filter(filter) if split_conjunction(&filter.predicate).into_iter().any(compares_truths)),
        )
    };
    if plan.exists(compares)? { hiding(plan.clone(), compares_truths) } else { Ok(None) }
}

fn hiding(plan: LogicalPlan, is_hidden: fn(&Expr) -> bool) -> Result<Option<LogicalPlan>> {
    let done = plan.transform_up(|node| {
        let LogicalPlan::Filter(filter) = &node else { return Ok(Transformed::no(node)) };
        let parts = split_conjunction(&filter.predicate);
        if !parts.iter().any(|part| is_hidden(part)) {
            return Ok(Transformed::no(node));
        }
        let parts = parts.into_iter().cloned();
        let hidden = parts.map(|part| if is_hidden(&part) { Expr::IsTrue(Box::new(part)) } else { part });
        match conjunction(hidden) {
            Some(predicate) => {
                Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input.clone())?)))
            }
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(done.transformed.then_some(done.data))
}

/// Any equality but that of a column and a constant.
fn is_of_computed(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    !matches!(
        (left.as_ref(), right.as_ref()),
        (Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), Expr::Column(_))
    )
}

/// Whether a comparison in it has another one somewhere in its sides: as it is, or cast to a number.
fn compares_truths(part: &Expr) -> bool {
    let is_inner = |expr: &Expr| Ok(is_comparison(expr));
    let has_inner = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) if is_comparison(expr) => {
            Ok(left.exists(is_inner)? || right.exists(is_inner)?)
        }
        _ => Ok(false),
    };
    part.exists(has_inner).unwrap_or(true)
}

fn is_comparison(expr: &Expr) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Eq | NotEq | Lt | LtEq | Gt | GtEq, .. }))
}
