//! The columns of a view, for lists of columns: its rows come from its query, which takes its place before planning.

use crate::door;
use crate::error::Error;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use tidalite_types::{ErrorKind, TableSchema};

#[derive(Debug)]
pub(crate) struct ViewColumns {
    name: String,
    schema: SchemaRef,
}

impl ViewColumns {
    pub fn new(view: Arc<TableSchema>) -> ViewColumns {
        let fields: Vec<_> = view.columns.iter().map(|c| door::table_field(c, false, None)).collect();
        ViewColumns { name: view.name.clone(), schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait]
impl TableProvider for ViewColumns {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Created between the look for views and the look for tables.
        let message = format!("view \"{}\" was created while the statement was planned; try again", self.name);
        Err(Error::new(ErrorKind::Unavailable, message).into())
    }
}
