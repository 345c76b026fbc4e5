//! The width of rows as clients receive them.
//!
//! Views of one text count as often as they occur: encoded, each of them is the text. The memory of an array is less, or
//! more where the array is a slice of a larger one.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// Bytes of the rows of a batch.
#[must_use]
pub fn bytes_of_rows(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(bytes_of_values).sum()
}

fn bytes_of_values(array: &ArrayRef) -> usize {
    let (rows, nulls) = (array.len(), array.len() / 8);
    let of_range = |values: &ArrayRef, from: usize, to: usize| bytes_of_values(&values.slice(from, to - from));
    nulls
        + match array.data_type() {
            DataType::Utf8View => 16 * rows + array.as_string_view().total_buffer_bytes_used(),
            DataType::BinaryView => 16 * rows + array.as_binary_view().total_buffer_bytes_used(),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                4 * rows + of_range(list.values(), offsets[0] as usize, offsets[rows] as usize)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                8 * rows + of_range(list.values(), offsets[0] as usize, offsets[rows] as usize)
            }
            DataType::Struct(_) => array.as_struct().columns().iter().map(bytes_of_values).sum(),
            _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, ListArray, StringArray, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;
    use std::sync::Arc;

    #[test]
    fn slices_count_only_their_rows() {
        let texts = || (0..1000).map(|_| Some("y".repeat(500)));
        let lists = (0..1000).map(|_| Some(vec![Some(1); 60]));
        let arrays: [ArrayRef; 4] = [
            Arc::new(texts().collect::<StringArray>()),
            Arc::new(texts().collect::<StringViewArray>()),
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
            Arc::new(Int64Array::from(vec![1; 1000])),
        ];
        for (array, width) in arrays.iter().zip([504, 516, 491, 8]) {
            let bytes = bytes_of_values(&array.slice(10, 100));
            assert!((100 * width..=100 * (width + 2)).contains(&bytes), "{}: {bytes}", array.data_type());
        }
    }

    #[test]
    fn a_text_counts_as_often_as_it_occurs() {
        let one: ArrayRef = Arc::new(StringViewArray::from(vec!["y".repeat(10_000)]));
        let taken =
            datafusion::arrow::compute::take(&one, &datafusion::arrow::array::UInt32Array::from(vec![0; 50]), None);
        assert!(bytes_of_values(&taken.unwrap()) >= 500_000);
    }
}
