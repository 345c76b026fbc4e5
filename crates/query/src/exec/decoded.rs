//! Codes of symbols as texts again, above operators that get by with codes.

use crate::{Error, Result};
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// As EXPLAIN knows it.
pub(crate) const NAME: &str = "DecodedExec";

/// Rows as they come, with the texts of some columns.
#[derive(Debug)]
pub(crate) struct Decoded {
    input: Arc<dyn ExecutionPlan>,
    /// By column, of those that come as codes.
    texts: Arc<[Option<StringViewArray>]>,
    /// Those of the same rows that never were codes.
    properties: Arc<PlanProperties>,
}

impl Decoded {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        texts: Vec<Option<StringViewArray>>,
        properties: Arc<PlanProperties>,
    ) -> Decoded {
        Decoded { input, texts: texts.into(), properties }
    }

    /// What the codes of a column stand for.
    pub fn texts(&self, column: usize) -> Option<&StringViewArray> {
        self.texts.get(column)?.as_ref()
    }

    /// The same but for one column, which stays codes, as the input has it. That rows are in its order still means that
    /// of the texts.
    pub fn without(&self, column: usize) -> Result<Decoded> {
        let mut texts = self.texts.to_vec();
        *texts.get_mut(column).ok_or_else(|| Error::internal("a column that is not there"))? = None;
        let mut fields = self.schema().fields().to_vec();
        fields[column] = Arc::new(fields[column].as_ref().clone().with_data_type(DataType::UInt32));
        let schema = Arc::new(Schema::new_with_metadata(fields, self.schema().metadata().clone()));
        let equivalences =
            EquivalenceProperties::new_with_orderings(schema, self.properties.output_ordering().cloned());
        let properties = self.properties.as_ref().clone().with_eq_properties(equivalences);
        Ok(Decoded { input: self.input.clone(), texts: texts.into(), properties: Arc::new(properties) })
    }
}

impl ExecutionPlan for Decoded {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| Error::internal("codes without rows"))?;
        Ok(Arc::new(Decoded { input, texts: self.texts.clone(), properties: self.properties.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DFResult<SendableRecordBatchStream> {
        let (texts, schema) = (self.texts.clone(), self.schema());
        let decoded = move |batch: RecordBatch| {
            let column = |(codes, texts): (&ArrayRef, &Option<StringViewArray>)| match texts {
                Some(texts) => take(texts, codes, None),
                None => Ok(codes.clone()),
            };
            let columns =
                batch.columns().iter().zip(texts.iter()).map(column).collect::<std::result::Result<_, _>>()?;
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        };
        let rows = self.input.execute(partition, context)?.map(move |batch| batch.and_then(&decoded));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

impl DisplayAs for Decoded {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}
