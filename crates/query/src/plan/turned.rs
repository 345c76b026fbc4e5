//! The logical node behind `LIMIT -n`: rows from the last to the first.

use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TurnedNode {
    input: LogicalPlan,
}

/// Those of equal keys are turned, too, which sorting would leave as they come.
pub(super) fn turned(plan: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(TurnedNode { input: plan }) })
}

/// Whether rows come in an order that is known from below alone.
pub(super) fn is_turned(node: &Extension) -> bool {
    node.node.as_any().is::<TurnedNode>()
}

impl fmt::Debug for TurnedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for TurnedNode {
    fn partial_cmp(&self, _: &TurnedNode) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for TurnedNode {
    fn name(&self) -> &'static str {
        "Turned"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Turned")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<TurnedNode> {
        Ok(TurnedNode { input: inputs.swap_remove(0) })
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![columns.to_vec()])
    }
}
