//! The place of a scan in operators that are kept for the next run of a query ([`crate::engine`]).
//!
//! It knows what came out of the scan and nothing of the table's rows, so that it holds no version of the table back. The
//! next run puts a scan of the table as it is then in it.

use super::exec::ScanExec;
use super::table::{asked, scan_of};
use crate::Error;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::prelude::SessionConfig;
use std::fmt;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::ColumnSchema;

#[derive(Debug)]
pub(crate) struct ScanPlace {
    columns: Vec<ColumnSchema>,
    schema: SchemaRef,
    order: super::spec::Order,
    properties: Arc<PlanProperties>,
}

impl ScanPlace {
    /// Of a scan whose columns come as values; `None` of another.
    pub fn of(scan: &ScanExec) -> Option<ScanPlace> {
        let reader = scan.reader();
        let columns = reader.plain_columns()?;
        Some(ScanPlace {
            columns,
            schema: reader.schema.clone(),
            order: scan.order(),
            properties: scan.properties().clone(),
        })
    }

    /// How many streams come out.
    pub fn partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }

    /// A scan of `snapshot` of the same columns in the same order; `None` when it does not answer all that `filters` say.
    /// The same table, with the same columns.
    pub fn scan(
        &self,
        snapshot: &Arc<TableSnapshot>,
        filters: &[Expr],
        limit: Option<usize>,
        config: &SessionConfig,
    ) -> Result<Option<ScanExec>> {
        let wanted = asked(&snapshot.schema, filters);
        if !wanted.is_exact {
            return Ok(None);
        }
        let columns = (self.columns.clone(), self.schema.clone());
        scan_of(snapshot, columns, wanted, limit, self.order, (config, Some(&self.properties))).map(Some)
    }

    /// A scan of this place with as many streams, which has the properties that were known to the operators above.
    pub fn known(&self, scan: ScanExec) -> ScanExec {
        debug_assert_eq!(scan.partitions(), self.partitions(), "a scan of another place");
        scan.with_properties(self.properties.clone())
    }
}

impl ExecutionPlan for ScanPlace {
    fn name(&self) -> &'static str {
        "TidaliteScanPlace"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Err(Error::internal("the scan of a kept plan was not put in again").into())
    }
}

impl DisplayAs for ScanPlace {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
