//! The logical node behind FILL: every bucket from the first to the last, for every key.

use crate::calendar::Buckets;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// What a value of a bucket without rows is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fill {
    Null,
    /// That of the bucket before, of the value with this number.
    Prev(usize),
    /// On the line between the values around it.
    Linear,
    Constant(ScalarValue),
}

/// What the operator has to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FillSpec {
    pub keys: usize,
    pub fills: Vec<Fill>,
    pub buckets: Buckets,
    /// Buckets begin with the first row.
    pub is_first: bool,
    pub from: Option<i64>,
    pub to: Option<i64>,
}

impl FillSpec {
    /// What comes out of rows of `input`: a value that was always there need not be in a bucket that is filled.
    pub fn field(&self, at: usize, input: &FieldRef) -> FieldRef {
        if at <= self.keys { input.clone() } else { Arc::new(input.as_ref().clone().with_nullable(true)) }
    }
}

/// Over rows of a bucket, keys and values, in order of the bucket; the same columns come out.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct FillNode {
    input: LogicalPlan,
    schema: DFSchemaRef,
    pub spec: FillSpec,
}

impl FillNode {
    pub fn new(input: LogicalPlan, spec: FillSpec) -> Result<FillNode> {
        let fields = input.schema().iter().enumerate();
        let fields = fields.map(|(at, (table, field))| (table.cloned(), spec.field(at, field))).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(FillNode { input, schema: Arc::new(schema), spec })
    }
}

impl fmt::Debug for FillNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for FillNode {
    fn partial_cmp(&self, _: &FillNode) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for FillNode {
    fn name(&self) -> &'static str {
        "Fill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fill: {:?}", self.spec.fills)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<FillNode> {
        FillNode::new(inputs.swap_remove(0), self.spec.clone())
    }

    /// The numbers of the fills are those of the columns: all are kept. Filters stay above, as one on a value or the
    /// time would change what is filled.
    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}
