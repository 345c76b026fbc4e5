//! Rectangular arrays of doubles: the lengths of their dimensions, and their elements in row-major order.

use super::element_wise::dimensions;
use super::guarded::{BYTES_MAX, too_large};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use std::sync::Arc;

/// Maximum number of elements that one call returns for a batch of rows.
pub(super) const ELEMENTS_MAX: usize = BYTES_MAX / size_of::<f64>();

/// The array of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shaped {
    /// The length of each dimension, the outermost first.
    pub lengths: Vec<usize>,
    pub values: Vec<Option<f64>>,
}

/// Returns the number of elements of a shape.
///
/// # Errors
/// Fails if an array of that shape is too large.
pub(super) fn count(lengths: &[usize], name: &str) -> Result<usize> {
    let count = lengths.iter().try_fold(1_usize, |product, length| product.checked_mul(*length));
    count.filter(|count| *count <= ELEMENTS_MAX).ok_or_else(|| too_large(name).into())
}

/// Returns the array of a row; `None` for NULL.
///
/// # Errors
/// Fails if inner arrays differ in length or are NULL.
pub(super) fn shaped(column: &ArrayRef, row: usize, name: &str) -> Result<Option<Shaped>> {
    let Some(list) = column.as_list_opt::<i32>() else {
        return Err(Error::internal(format!("{} is no array of doubles", column.data_type())).into());
    };
    if list.is_null(row) {
        return Ok(None);
    }
    let mut out = Shaped { lengths: vec![0; dimensions(column.data_type())], values: Vec::new() };
    let mut known = vec![false; out.lengths.len()];
    collect(&list.value(row), 0, &mut out, &mut known, name)?;
    Ok(Some(out))
}

fn collect(array: &ArrayRef, depth: usize, out: &mut Shaped, known: &mut [bool], name: &str) -> Result<()> {
    let ragged = || Error::invalid(format!("{name} takes arrays whose inner arrays have one length")).about(name);
    if known[depth] && out.lengths[depth] != array.len() {
        return Err(ragged().into());
    }
    (out.lengths[depth], known[depth]) = (array.len(), true);
    match array.as_list_opt::<i32>() {
        Some(inner) => {
            for row in 0..inner.len() {
                if inner.is_null(row) {
                    return Err(ragged().into());
                }
                collect(&inner.value(row), depth + 1, out, known, name)?;
            }
        }
        None => out.values.extend(array.as_primitive::<Float64Type>().iter()),
    }
    Ok(())
}

/// Builds a column of arrays with `dims` dimensions.
pub(super) fn column_of(rows: Vec<Option<Shaped>>, dims: usize) -> Result<ArrayRef> {
    let levels: Vec<OffsetBuffer<i32>> = (0..dims).map(|level| offsets(&rows, level)).collect();
    let is_valid: Vec<bool> = rows.iter().map(Option::is_some).collect();
    let values = rows.into_iter().flatten().flat_map(|row| row.values);
    let mut array: ArrayRef = Arc::new(values.collect::<Float64Array>());
    for (level, offsets) in levels.into_iter().enumerate().rev() {
        let nulls = (level == 0).then(|| NullBuffer::from(is_valid.clone()));
        let item = crate::door::item(array.data_type().clone());
        array = Arc::new(ListArray::try_new(item, offsets, array, nulls)?);
    }
    Ok(array)
}

/// Returns the offsets of the lists of one level; there is one list for each index of the levels above.
fn offsets(rows: &[Option<Shaped>], level: usize) -> OffsetBuffer<i32> {
    let lists = rows.iter().flat_map(|row| {
        let (count, length) = match row {
            Some(row) => (row.lengths[..level].iter().product(), row.lengths[level]),
            None => (usize::from(level == 0), 0),
        };
        std::iter::repeat_n(length, count)
    });
    OffsetBuffer::from_lengths(lists)
}

/// Returns the position in an array of shape `to` of each element of an array of shape `from`, in row-major order.
///
/// `to` has the same number of dimensions and is at least as long in each.
pub(super) fn positions(from: &[usize], to: &[usize]) -> Vec<usize> {
    let mut found = vec![0];
    for (dimension, length) in from.iter().enumerate() {
        let step: usize = to[dimension + 1..].iter().product();
        found = found.into_iter().flat_map(|base| (0..*length).map(move |index| base + index * step)).collect();
    }
    found
}

/// Returns the type of arrays of doubles with `dims` dimensions.
pub(super) fn array_type(dims: usize) -> DataType {
    (0..dims).fold(DataType::Float64, |item, _| DataType::List(crate::door::item(item)))
}

/// Applies `map` to each innermost list of a column; `map` gets the row of the list.
///
/// NULL lists stay NULL.
pub(super) fn innermost(
    list: &ListArray,
    map: &mut dyn FnMut(usize, ArrayRef) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    mapped(list, &(0..list.len()).collect::<Vec<_>>(), map)
}

fn mapped(
    list: &ListArray,
    rows: &[usize],
    map: &mut dyn FnMut(usize, ArrayRef) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    if let Some(inner) = list.values().as_list_opt::<i32>() {
        // A slice of a column has the inner lists of all rows of the column, and a slice may have no rows.
        let (start, end) = (list.value_offsets()[0] as usize, list.value_offsets()[list.len()] as usize);
        let owners = rows.iter().zip(list.offsets().lengths());
        let owners: Vec<usize> = owners.flat_map(|(row, length)| std::iter::repeat_n(*row, length)).collect();
        let inner = mapped(&inner.slice(start, end - start), &owners, map)?;
        let item = crate::door::item(inner.data_type().clone());
        let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
        return Ok(Arc::new(ListArray::try_new(item, offsets, inner, list.nulls().cloned())?));
    }
    let (mut parts, mut lengths) = (Vec::new(), Vec::with_capacity(list.len()));
    for (at, row) in rows.iter().enumerate() {
        if list.is_null(at) {
            lengths.push(0);
            continue;
        }
        let part = map(*row, list.value(at))?;
        lengths.push(part.len());
        parts.push(part);
    }
    let values = match parts.is_empty() {
        true => list.values().slice(0, 0),
        false => datafusion::arrow::compute::concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
    };
    let item = crate::door::item(values.data_type().clone());
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, values, list.nulls().cloned())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(lengths: &[usize], values: &[f64]) -> Shaped {
        Shaped { lengths: lengths.to_vec(), values: values.iter().copied().map(Some).collect() }
    }

    #[test]
    fn columns_read_back_as_they_were_built() {
        let rows = vec![Some(array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), None, Some(array(&[2, 0], &[]))];
        let column = column_of(rows.clone(), 2).expect("a column");
        assert_eq!(column.data_type(), &array_type(2));
        let read: Vec<_> = (0..3).map(|row| shaped(&column, row, "f").expect("rectangular")).collect();
        assert_eq!(read, rows);
    }

    #[test]
    fn positions_in_a_larger_array() {
        assert_eq!(positions(&[2, 2], &[2, 3]), [0, 1, 3, 4]);
        assert_eq!(positions(&[3], &[5]), [0, 1, 2]);
        assert_eq!(positions(&[0, 2], &[2, 2]), [0_usize; 0]);
    }

    /// A slice without rows has the inner lists of the whole column.
    #[test]
    fn inner_lists_of_a_slice() {
        let rows: Vec<_> = (0..3).map(|n| Some(array(&[1, 1], &[f64::from(n)]))).collect();
        let column = column_of(rows.clone(), 2).expect("a column");
        let mapped_rows = |from: usize, count: usize| {
            let (slice, mut seen) = (column.slice(from, count), Vec::new());
            let found = innermost(slice.as_list::<i32>(), &mut |row, values| {
                seen.push(row);
                Ok(values)
            })
            .expect("lists");
            let read: Vec<_> = (0..count).map(|row| shaped(&found, row, "f").expect("rectangular")).collect();
            assert_eq!(read, rows[from..from + count]);
            seen
        };
        assert_eq!([mapped_rows(0, 3), mapped_rows(1, 1), mapped_rows(2, 0)], [vec![0, 1, 2], vec![0], vec![]]);
    }

    #[test]
    fn a_shape_that_is_too_large_is_refused() {
        assert_eq!(count(&[2, 3], "f").expect("small"), 6);
        assert!(count(&[1 << 40, 1 << 40], "f").is_err());
        assert!(count(&[ELEMENTS_MAX + 1], "f").is_err());
        assert_eq!(count(&[usize::MAX, 0], "f").expect("empty"), 0);
    }
}
