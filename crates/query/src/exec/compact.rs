//! Copies of string views whose buffers hold much more text than the views use.
//!
//! A view keeps its whole buffer alive, and a reservation counts the buffer: ten rows of a block of wide rows keep 256 MiB.
//! A merge of sorted runs emits batches whose views refer to buffers of every run; a merge of thirty runs reserves thirty
//! times the bytes of its rows, and a sort that could spill fails for memory. Workaround for DataFusion 55:
//! `SortPreservingMergeStream` and the merge of `ExternalSorter` do not compact views. To try without: the sort in
//! `tests/attacks/test_memory.py`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{ByteViewType, DataType};
use std::sync::Arc;

/// Texts are copied if the batch keeps more text than this alive; dictionaries of symbols are mostly smaller.
pub(super) const SPARSE_BYTES: usize = 1 << 20;

/// Returns the batch with its own copy of texts that are less than half of the text that it keeps alive.
pub(crate) fn compacted(batch: RecordBatch) -> RecordBatch {
    let is_sparse = |column: &ArrayRef| {
        let (kept, used) = kept_and_used(column);
        kept > SPARSE_BYTES && used < kept / 2
    };
    if !batch.columns().iter().any(is_sparse) {
        return batch;
    }
    let columns = batch.columns().iter();
    let columns = columns.map(|column| if is_sparse(column) { own_texts(column) } else { column.clone() }).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    // The schema and the number of rows are those of the batch.
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).unwrap_or(batch)
}

/// Returns the bytes of text that a column keeps alive, and those of its rows; both 0 of a column that is no view.
pub(super) fn kept_and_used(column: &ArrayRef) -> (usize, usize) {
    fn of<T: ByteViewType>(views: &GenericByteViewArray<T>) -> (usize, usize) {
        let kept = views.data_buffers().iter().map(Buffer::len).sum();
        // The count of used bytes visits each row.
        (kept, if kept > SPARSE_BYTES { views.total_buffer_bytes_used() } else { kept })
    }
    match column.data_type() {
        DataType::Utf8View => of(column.as_string_view()),
        DataType::BinaryView => of(column.as_binary_view()),
        _ => (0, 0),
    }
}

/// Returns the column with its own copy of its texts; a column that is no view as it is.
pub(crate) fn own_texts(column: &ArrayRef) -> ArrayRef {
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
    fn few_rows_of_a_batch_get_texts_of_their_own() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
        let texts = (0..3_000).map(|row| (row % 7 != 3).then(|| format!("{row}{}", "y".repeat(4_000))));
        let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
        let piece = RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("s", texts, true)]).unwrap();
        let few = compacted(piece.slice(100, 10));
        assert_eq!(few, piece.slice(100, 10));
        assert!(few.get_array_memory_size() < 100_000, "{}", few.get_array_memory_size());
        let same = compacted(piece.clone());
        let texts = |batch: &RecordBatch| batch.column(1).as_string_view().data_buffers()[0].as_ptr();
        assert_eq!(texts(&same), texts(&piece), "nothing is copied");
    }
}
