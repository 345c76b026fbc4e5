//! Copies of string views whose buffers hold much more than the strings.
//!
//! A merge of sorted runs emits batches whose views refer to buffers of every run. Each such batch keeps all of these
//! buffers alive and is counted with all of them: a merge of thirty runs reserves thirty times the bytes of its rows, and
//! a sort that could spill fails for memory. Workaround for DataFusion 54: `SortPreservingMergeStream` and the merge of
//! `ExternalSorter` do not compact views. To try without: the sort in `tests/attacks/test_memory.py`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;

/// Buffers of fewer bytes are kept: a copy costs more than they do.
const BUFFER_BYTES_MIN: usize = 64 << 10;
/// Buffers with more than this many times the bytes of the strings are copied.
const WASTE_MAX: usize = 2;

/// Returns the batch with compact string and binary views.
///
/// # Errors
/// The columns do not match the schema, which cannot happen.
pub(super) fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    if !batch.columns().iter().any(is_wasteful) {
        return Ok(batch.clone());
    }
    let columns =
        batch.columns().iter().map(|column| if is_wasteful(column) { copied(column) } else { column.clone() });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

fn is_wasteful(column: &ArrayRef) -> bool {
    let (held, used) = match column.data_type() {
        DataType::Utf8View => {
            let views = column.as_string_view();
            (bytes_of(views.data_buffers()), views.total_buffer_bytes_used())
        }
        DataType::BinaryView => {
            let views = column.as_binary_view();
            (bytes_of(views.data_buffers()), views.total_buffer_bytes_used())
        }
        _ => return false,
    };
    held >= BUFFER_BYTES_MIN && held > WASTE_MAX * used
}

fn bytes_of(buffers: &[datafusion::arrow::buffer::Buffer]) -> usize {
    buffers.iter().map(datafusion::arrow::buffer::Buffer::capacity).sum()
}

fn copied(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => column.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringViewArray};

    #[test]
    fn views_of_large_buffers_are_copied() {
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..10_000).map(|n| format!("{n:>40}"))));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let whole = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        // All strings: nothing to gain.
        assert_eq!(compact(&whole).unwrap().get_array_memory_size(), whole.get_array_memory_size());
        let few = whole.slice(5_000, 100);
        let compacted = compact(&few).unwrap();
        assert_eq!(compacted, few);
        assert!(compacted.column(0).get_array_memory_size() < 100 * 100);
    }
}
