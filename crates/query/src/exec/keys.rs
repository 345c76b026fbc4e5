//! Keys as numbers: rows with equal keys have one number, counted from 0 in the order in which keys first come.
//!
//! A key is the bytes of its columns that compare as the columns do, looked up without being copied.

use crate::functions::floats;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use std::collections::HashMap;

/// No row, or no key.
pub(super) const NONE: u32 = u32::MAX;
/// Of a key in the map, besides its bytes.
const KEY_BYTES: usize = 64;

pub(super) struct Keys {
    converter: RowConverter,
    types: Vec<DataType>,
    numbers: HashMap<Box<[u8]>, u32>,
    bytes: usize,
}

impl Keys {
    /// Keys of columns that are taken as these types; ordered ascending, NULLs last.
    pub fn new(types: Vec<DataType>) -> Result<Keys> {
        let options = SortOptions { descending: false, nulls_first: false };
        let fields = types.iter().map(|t| SortField::new_with_options(t.clone(), options)).collect();
        Ok(Keys { converter: RowConverter::new(fields)?, types, numbers: HashMap::new(), bytes: 0 })
    }

    /// How many there are. Without key columns all rows have the number 0.
    pub fn count(&self) -> usize {
        if self.types.is_empty() { 1 } else { self.numbers.len() }
    }

    /// Memory that the keys take.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// The number of each row's key, new keys among them.
    pub fn numbered(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        if self.types.is_empty() {
            return Ok(vec![0; rows]);
        }
        let converted = self.converter.convert_columns(&self.cast(columns)?)?;
        let (numbers, bytes) = (&mut self.numbers, &mut self.bytes);
        let number = |row: usize| {
            let row = converted.row(row);
            let key = row.as_ref();
            if let Some(number) = numbers.get(key) {
                return *number;
            }
            let number = numbers.len() as u32;
            *bytes += key.len() + KEY_BYTES;
            numbers.insert(key.into(), number);
            number
        };
        Ok((0..rows).map(number).collect())
    }

    /// As [`Keys::numbered`]; a row with a NULL among its keys equals none.
    pub fn numbered_without_null(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        let mut numbers = self.numbered(columns, rows)?;
        without_null(columns, &mut numbers);
        Ok(numbers)
    }

    /// The number of each row's key if it is known; a row with a NULL among its keys equals none.
    pub fn found(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        if self.types.is_empty() {
            return Ok(vec![0; rows]);
        }
        let converted = self.converter.convert_columns(&self.cast(columns)?)?;
        let number = |row: usize| self.numbers.get(converted.row(row).as_ref()).copied().unwrap_or(NONE);
        let mut numbers: Vec<u32> = (0..rows).map(number).collect();
        without_null(columns, &mut numbers);
        Ok(numbers)
    }

    /// For each number its place in the order of the keys.
    pub fn ranks(&self) -> Vec<u32> {
        if self.types.is_empty() {
            return vec![0];
        }
        let mut ordered: Vec<(&[u8], u32)> = self.numbers.iter().map(|(key, number)| (key.as_ref(), *number)).collect();
        ordered.sort_unstable();
        let mut ranks = vec![0; ordered.len()];
        for (rank, (_, number)) in ordered.into_iter().enumerate() {
            ranks[number as usize] = rank as u32;
        }
        ranks
    }

    /// Casts the columns to the key types.
    ///
    /// Floating-point values are normalized: the row converter compares them by bits, SQL does not.
    fn cast(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let cast = |(c, t): (&ArrayRef, &DataType)| Ok(floats::key_values(&cast(c, t)?));
        columns.iter().zip(&self.types).map(cast).collect()
    }
}

fn without_null(columns: &[ArrayRef], numbers: &mut [u32]) {
    for column in columns.iter().filter(|column| column.null_count() > 0) {
        for (row, number) in numbers.iter_mut().enumerate() {
            if column.is_null(row) {
                *number = NONE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn equal_keys_have_one_number_and_ranks_follow_their_order() {
        let mut keys = Keys::new(vec![DataType::Utf8View]).expect("text can be a key");
        let column: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]));
        assert_eq!(keys.numbered(&[column], 4).expect("numbers"), [0, 1, 2, 0]);
        assert_eq!((keys.ranks(), keys.count()), (vec![1, 2, 0], 3), "NULL is the last");
        let other: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("c")]));
        assert_eq!(keys.found(&[other], 3).expect("numbers"), [2, NONE, NONE]);
    }

    #[test]
    fn floats_are_keys_by_value() {
        let mut keys = Keys::new(vec![DataType::Float64]).expect("a number can be a key");
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        assert_eq!(keys.numbered(&[column], 5).expect("numbers"), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn without_columns_there_is_one_key() {
        let mut keys = Keys::new(Vec::new()).expect("no columns are keys, too");
        assert_eq!(keys.numbered(&[], 2).expect("numbers"), [0, 0]);
        assert_eq!((keys.count(), keys.ranks()), (1, vec![0]));
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let mut keys = Keys::new(vec![DataType::Int64]).expect("a number can be a key");
        assert_eq!(keys.numbered_without_null(&[ints], 2).expect("numbers"), [0, NONE]);
    }
}
