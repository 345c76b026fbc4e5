//! The format of Parquet files: checked metadata and pages, and no trust in floating-point statistics.
//!
//! Depending on the writer, the minimum and maximum of a column leave out NaN or are NaN. NaN is greater than every
//! number here, so neither `max(x)` nor a filter can use them.

use super::guard::caught;
use super::reader::{CheckedReaders, check_metadata};
use crate::Error;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};
use std::sync::Arc;

/// [`ParquetFormat`] that checks claims of files, catches panics, and has no minimum, maximum and sum of floating-point
/// columns.
#[derive(Debug, Default)]
pub(in crate::engine) struct BoundedParquet(ParquetFormat);

/// Checks files before upstream reads their metadata.
async fn check(state: &dyn Session, store: &Arc<dyn ObjectStore>, objects: &[ObjectMeta]) -> Result<()> {
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    for object in objects {
        check_metadata(store, object, cache.as_ref()).await?;
    }
    Ok(())
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_floats(item.data_type())
        }
        other => other.is_floating(),
    }
}

#[async_trait]
impl FileFormat for BoundedParquet {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        caught(async {
            check(state, store, objects).await?;
            self.0.infer_schema(state, store, objects).await
        })
        .await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let reading = async {
            check(state, store, std::slice::from_ref(object)).await?;
            self.0.infer_stats(state, store, schema.clone(), object).await
        };
        let mut statistics = caught(reading).await?;
        for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
            if has_floats(field.data_type()) {
                column.min_value = Precision::Absent;
                column.max_value = Precision::Absent;
                column.sum_value = Precision::Absent;
            }
        }
        Ok(statistics)
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        caught(async {
            check(state, store, std::slice::from_ref(object)).await?;
            self.0.infer_ordering(state, store, schema, object).await
        })
        .await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config.file_source().downcast_ref::<ParquetSource>().cloned();
        let source = source.ok_or_else(|| Error::internal("a scan of Parquet without its source"))?;
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let store = state.runtime_env().object_store(config.object_store_url.clone())?;
        let source = source
            .with_table_parquet_options(self.0.options().clone())
            .with_parquet_file_reader_factory(Arc::new(CheckedReaders::new(store, cache)));
        let config = FileScanConfigBuilder::from(config).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(schema)
    }
}
