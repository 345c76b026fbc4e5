//! Expands dictionaries and runs to their values, and copies arrays that share memory.
//!
//! Text and bytes become views, so that a long text shared by many rows is stored once.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::Buffer;
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Returns true if one value may represent many rows.
#[must_use]
pub fn is_packed(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}

/// Returns an array with one value per row.
///
/// # Errors
/// Fails if keys or ends of runs are invalid.
pub fn unpacked(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let mut array = array.clone();
    while is_packed(array.data_type()) {
        array = unpacked_once(&array)?;
    }
    Ok(array)
}

/// Expands runs to their values; dictionaries stay unchanged.
pub(crate) fn without_runs(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let mut array = array.clone();
    while matches!(array.data_type(), DataType::RunEndEncoded(..)) {
        array = unpacked_once(&array)?;
    }
    Ok(array)
}

fn unpacked_once(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => {
            let dictionary = array.as_any_dictionary();
            take(&cast(dictionary.values(), &shared(values))?, dictionary.keys(), None)
        }
        DataType::RunEndEncoded(ends, values) => {
            let target = shared(values.data_type());
            let values = Arc::new(values.as_ref().clone().with_data_type(target.clone()));
            cast(&cast(array, &DataType::RunEndEncoded(ends.clone(), values))?, &target)
        }
        _ => Ok(array.clone()),
    }
}

/// Returns the type in which rows share equal parts.
fn shared(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        // 16 bytes are a UUID.
        DataType::FixedSizeBinary(bytes) if *bytes != 16 => DataType::BinaryView,
        other => other.clone(),
    }
}

/// Copies views that share the text of whole blocks, without text that no row needs.
#[must_use]
pub fn compact(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => {
            let views = array.as_string_view();
            let held: usize = views.data_buffers().iter().map(Buffer::len).sum();
            if held > 2 * views.total_buffer_bytes_used() { Arc::new(views.gc()) } else { array.clone() }
        }
        DataType::BinaryView => {
            let views = array.as_binary_view();
            let held: usize = views.data_buffers().iter().map(Buffer::len).sum();
            if held > 2 * views.total_buffer_bytes_used() { Arc::new(views.gc()) } else { array.clone() }
        }
        _ => array.clone(),
    }
}

/// Returns the bytes of an array's rows, without those of other rows in shared memory.
#[must_use]
pub fn byte_count(array: &ArrayRef) -> usize {
    let views = |text: usize| text + 16 * array.len();
    match array.data_type() {
        DataType::Utf8View => views(array.as_string_view().total_buffer_bytes_used()),
        DataType::BinaryView => views(array.as_binary_view().total_buffer_bytes_used()),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Int32Array, RunArray, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    fn texts(array: &ArrayRef) -> Vec<Option<&str>> {
        array.as_string_view().iter().collect()
    }

    #[test]
    fn a_text_of_many_rows_is_there_once() {
        let long = "x".repeat(1000);
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some(long.as_str()), None]));
        let keys = Int32Array::from_iter((0..500).map(|i| [Some(0), Some(1), None][i % 3]));
        let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, values.clone()));
        let runs: ArrayRef =
            Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![400, 500]), &values).unwrap());
        for (packed, first, last) in [(dictionary, 0, 1), (runs.slice(100, 400), 0, 399)] {
            let plain = unpacked(&packed).unwrap();
            assert_eq!((texts(&plain)[first], texts(&plain)[last]), (Some(long.as_str()), None));
            let held: usize = plain.as_string_view().data_buffers().iter().map(Buffer::len).sum();
            assert!(held <= 2 * long.len(), "{held}");
        }
    }

    #[test]
    fn part_of_a_block_is_copied_out_of_it() {
        let all: Vec<String> = (0..1000).map(|i| format!("{i:0100}")).collect();
        let block: ArrayRef = Arc::new(StringViewArray::from_iter_values(&all));
        let part = block.slice(10, 5);
        let copy = compact(&part);
        assert_eq!(texts(&copy), texts(&part));
        let held: usize = copy.as_string_view().data_buffers().iter().map(Buffer::len).sum();
        assert_eq!((held, byte_count(&part)), (500, 5 * 116));
        assert_eq!(byte_count(&block), 1000 * 116);
    }
}
