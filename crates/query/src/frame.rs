//! Rows in memory that the caller of a statement brings along as a table.
//!
//! In: record batches of any Arrow types. Out: a table whose columns are of the types that ours have at the door, under
//! folded names, in pieces of at most a block.

use crate::{Catalog, Error, Result, door};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit as ArrowUnit};
use datafusion::catalog::{MemTable, TableProvider};
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::BLOCK_ROWS;
use tidalite_types::schema::{fold_name, same_name};

/// A table of one statement; it hides a table of the database that has its name.
#[derive(Clone, Debug)]
pub struct Frame {
    pub name: String,
    table: Arc<dyn TableProvider>,
}

impl Frame {
    /// `designated` is the column that is the time of the rows, if one is.
    ///
    /// # Errors
    /// When a column cannot be brought to a type that queries know, or is no time but shall be the designated one.
    pub fn new(name: &str, schema: &SchemaRef, rows: &[RecordBatch], designated: Option<usize>) -> Result<Frame> {
        let folded: Vec<String> = schema.fields().iter().map(|field| fold_name(field.name())).collect();
        let names = crate::plan::distinct_names(folded.iter().map(String::as_str));
        let mut fields = Vec::with_capacity(names.len());
        for (i, (field, unique)) in schema.fields().iter().zip(names).enumerate() {
            let data_type = known_type(field.data_type());
            let mut own = door::named(&Field::new("", data_type, true), field.name()).with_name(unique);
            if designated == Some(i) {
                if !matches!(own.data_type(), DataType::Timestamp(..)) {
                    let message = format!("column \"{}\" is of type {}", field.name(), door::type_name(&own));
                    return Err(Error::invalid(message).with_hint("the time of rows has to be a TIMESTAMP"));
                }
                let mut metadata = own.metadata().clone();
                metadata.extend(door::designated_metadata());
                own = own.with_metadata(metadata);
            }
            fields.push(own);
        }
        let schema = Arc::new(Schema::new(fields));
        let mut pieces = Vec::new();
        for batch in rows {
            let batch = known_columns(batch, &schema)?;
            let starts = (0..batch.num_rows()).step_by(BLOCK_ROWS);
            pieces.extend(starts.map(|at| batch.slice(at, BLOCK_ROWS.min(batch.num_rows() - at))));
        }
        let table = MemTable::try_new(schema, vec![pieces])?;
        Ok(Frame { name: name.to_owned(), table: Arc::new(table) })
    }

    pub(crate) fn table(&self) -> Arc<dyn TableProvider> {
        self.table.clone()
    }
}

/// Returns a schema with its first columns renamed.
#[must_use]
pub fn renamed(schema: &SchemaRef, names: &[String]) -> SchemaRef {
    let names = names.iter().map(Some).chain(std::iter::repeat(None));
    let fields = schema.fields().iter().zip(names).map(|(field, name)| match name {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A catalog with one additional frame.
#[derive(Debug)]
pub(crate) struct WithFrame {
    pub catalog: Arc<dyn Catalog>,
    pub frame: Frame,
}

impl Catalog for WithFrame {
    fn table_names(&self) -> Vec<String> {
        self.catalog.table_names()
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        self.catalog.snapshots(names)
    }

    fn frame(&self, name: &str) -> Option<Frame> {
        if same_name(&self.frame.name, name) { Some(self.frame.clone()) } else { self.catalog.frame(name) }
    }
}

/// The type as which values of another arrive at the door when they come from a table.
fn known_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(ArrowUnit::Second, _) => DataType::Timestamp(ArrowUnit::Millisecond, None),
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => known_type(values),
        DataType::RunEndEncoded(_, values) => known_type(values.data_type()),
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

fn known_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |(column, field): (&ArrayRef, &Arc<Field>)| cast_with_options(column, field.data_type(), &strict);
    let columns = batch.columns().iter().zip(schema.fields()).map(cast).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|e| Error::invalid(e.to_string()))?;
    let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| Error::internal(e.to_string()))
}
