//! Filters that no row passes: a conjunct is false or NULL. Workaround for DataFusion 55 (DF-69).
//!
//! The stock rule that pushes filters down puts a condition without columns below an aggregation, which then returns
//! one row without groups: `SELECT count(*) FROM t HAVING count(*) IN (NULL)`. Such a filter is removed with the plan
//! below it when the rule meets it, also after the rule has replaced a column by a constant of a projection.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, EmptyRelation, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The stock rule, except for filters that no row passes.
#[derive(Debug)]
pub(crate) struct RemoveFalseFilters(pub Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for RemoveFalseFilters {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Filter(filter) if is_never_true(&filter.predicate) => {
                let schema = Arc::clone(filter.input.schema());
                Ok(Transformed::yes(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema })))
            }
            _ => self.0.rewrite(plan, config),
        }
    }
}

/// Returns true for false and NULL, and for AND and OR of them; the simplification of IN leaves `NULL OR NULL`.
fn is_never_true(predicate: &Expr) -> bool {
    match predicate {
        Expr::Literal(ScalarValue::Boolean(Some(false) | None) | ScalarValue::Null, _) => true,
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => is_never_true(left) || is_never_true(right),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => is_never_true(left) && is_never_true(right),
        _ => false,
    }
}
