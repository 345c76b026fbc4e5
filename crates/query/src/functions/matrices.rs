//! `matmul(a, b)`, `transpose(a)`, `array_build(n, size, filler, …)`, as QuestDB defines them.

use super::element_wise::dimensions;
use super::guarded::too_large;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::shapes::{self, ELEMENTS_MAX, Shaped, array_type, column_of, shaped};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};

/// Maximum multiplications of one call for a batch of rows: about a second of one thread.
const PRODUCTS_MAX: usize = 1 << 28;
/// QuestDB's maximum number of arrays and of their length.
const LENGTH_MAX: i64 = (1 << 28) - 1;

const BUILD_TAKES: &str = "the number of arrays as a constant, their length, and a number or an array for each of them";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "matmul",
        takes: "two arrays of two dimensions",
        kinds: &[Kind::Array, Kind::Array],
        returns: Some(|_, _| Ok(array_type(2))),
        call: matmul,
        ..PLAIN
    },
    Scalar {
        name: "transpose",
        takes: "an array",
        kinds: &[Kind::Array],
        gives: Gives::Like(0),
        call: transpose,
        ..PLAIN
    },
    Scalar {
        name: "array_build",
        takes: BUILD_TAKES,
        kinds: &[Kind::Long, Kind::LongOrArray, Kind::DoubleOrArray],
        is_variadic: true,
        returns: Some(|types, constants| Ok(array_type(built_dims(types, constants)?))),
        call: array_build,
        ..PLAIN
    },
];

fn matmul(call: &Call) -> Result<ArrayRef> {
    if call.columns.iter().any(|column| column.null_count() == column.len()) {
        return Ok(new_null_array(call.data_type, call.rows));
    }
    if call.columns.iter().any(|column| dimensions(column.data_type()) != 2) {
        return Err(Error::invalid("matmul takes two arrays of two dimensions").about("matmul").into());
    }
    let (mut products, mut elements) = (0_usize, 0_usize);
    let product = |row: usize| -> Result<Option<Shaped>> {
        let (Some(a), Some(b)) = (shaped(&call.columns[0], row, "matmul")?, shaped(&call.columns[1], row, "matmul")?)
        else {
            return Ok(None);
        };
        let (rows, inner, columns) = (a.lengths[0], a.lengths[1], b.lengths[1]);
        if inner != b.lengths[0] {
            let sizes = format!("{rows}x{inner} and {}x{columns}", b.lengths[0]);
            return Err(Error::invalid(format!("matmul cannot multiply matrices of {sizes}")).about("matmul").into());
        }
        elements = elements.saturating_add(shapes::count(&[rows, columns], "matmul")?);
        products = products.saturating_add(rows.saturating_mul(inner).saturating_mul(columns));
        if elements > ELEMENTS_MAX || products > PRODUCTS_MAX {
            return Err(Error::invalid("the matrices of matmul are too large").about("matmul").into());
        }
        Ok(Some(Shaped { lengths: vec![rows, columns], values: multiplied(&a.values, &b.values, inner, columns) }))
    };
    column_of((0..call.rows).map(product).collect::<Result<Vec<_>>>()?, 2)
}

/// Multiplies matrices in row-major order; a NULL element makes the sums it is part of NULL.
fn multiplied(a: &[Option<f64>], b: &[Option<f64>], inner: usize, columns: usize) -> Vec<Option<f64>> {
    let rows = a.len().checked_div(inner).unwrap_or(0);
    let mut out = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let products = (0..inner).map(|i| Some(a[row * inner + i]? * b[i * columns + column]?));
            out.push(products.sum::<Option<f64>>());
        }
    }
    out
}

/// Reverses the order of the dimensions.
fn transpose(call: &Call) -> Result<ArrayRef> {
    let dims = dimensions(call.data_type);
    let turned = |row: usize| -> Result<Option<Shaped>> {
        let Some(array) = shaped(&call.columns[0], row, "transpose")? else { return Ok(None) };
        let lengths: Vec<usize> = array.lengths.iter().rev().copied().collect();
        let mut values = vec![None; array.values.len()];
        for (at, value) in turned_positions(&array.lengths).into_iter().zip(&array.values) {
            values[at] = *value;
        }
        Ok(Some(Shaped { lengths, values }))
    };
    column_of((0..call.rows).map(turned).collect::<Result<Vec<_>>>()?, dims)
}

/// Returns the position of each element of an array of shape `lengths` in the transposed array.
fn turned_positions(lengths: &[usize]) -> Vec<usize> {
    let mut found = vec![0];
    for (dimension, length) in lengths.iter().enumerate() {
        // In the result this dimension is followed by the dimensions before it.
        let step: usize = lengths[..dimension].iter().product();
        found = found.into_iter().flat_map(|base| (0..*length).map(move |index| base + index * step)).collect();
    }
    found
}

fn build_refused() -> Error {
    Error::invalid(format!("array_build takes {BUILD_TAKES}")).about("array_build")
}

/// Returns the dimensions of the result: one for a single array, else two.
fn built_dims(types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<usize> {
    let arrays = match constants.first().copied().flatten().map(|value| value.cast_to(&DataType::Int64)) {
        Some(Ok(ScalarValue::Int64(Some(arrays)))) => arrays,
        _ => return Err(build_refused().into()),
    };
    if !(1..=LENGTH_MAX).contains(&arrays) || usize::try_from(arrays) != Ok(types.len().saturating_sub(2)) {
        return Err(build_refused().into());
    }
    if types[2..].iter().any(|filler| dimensions(filler) > 1) {
        return Err(Error::invalid("array_build takes fillers of one dimension").about("array_build").into());
    }
    Ok(if arrays == 1 { 1 } else { 2 })
}

fn array_build(call: &Call) -> Result<ArrayRef> {
    let (size, fillers) = (&call.columns[1], &call.columns[2..]);
    let (dims, mut elements) = (dimensions(call.data_type), 0_usize);
    let built = |row: usize| -> Result<Option<Shaped>> {
        if call.columns[0].is_null(row) || size.is_null(row) {
            return Ok(None);
        }
        let length = match size.as_primitive_opt::<Int64Type>() {
            Some(lengths) => lengths.value(row),
            None => shaped(size, row, "array_build")?.map_or(0, |array| array.values.len() as i64),
        };
        if !(0..=LENGTH_MAX).contains(&length) {
            let text = format!("array_build takes a length from 0 to {LENGTH_MAX}, not {length}");
            return Err(Error::invalid(text).about("array_build").into());
        }
        let length = length as usize;
        elements = elements.saturating_add(length.saturating_mul(fillers.len()));
        if elements > ELEMENTS_MAX {
            return Err(too_large("array_build").into());
        }
        let mut values = Vec::with_capacity(length * fillers.len());
        for filler in fillers {
            match filler.as_primitive_opt::<Float64Type>() {
                Some(numbers) => {
                    let number = numbers.is_valid(row).then(|| numbers.value(row));
                    values.extend(std::iter::repeat_n(number, length));
                }
                None => {
                    let given = shaped(filler, row, "array_build")?.unwrap_or_default().values;
                    values.extend(given.into_iter().chain(std::iter::repeat(None)).take(length));
                }
            }
        }
        let lengths = if dims == 1 { vec![length] } else { vec![fillers.len(), length] };
        Ok(Some(Shaped { lengths, values }))
    };
    column_of((0..call.rows).map(built).collect::<Result<Vec<_>>>()?, dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::shapes::positions;

    fn numbers(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    /// Expected values by hand: (1 2; 3 4) (2 3; 2 3) = (6 9; 14 21).
    #[test]
    fn products_of_rows_and_columns() {
        let (a, b) = (numbers(&[1.0, 2.0, 3.0, 4.0]), numbers(&[2.0, 3.0, 2.0, 3.0]));
        assert_eq!(multiplied(&a, &b, 2, 2), numbers(&[6.0, 9.0, 14.0, 21.0]));
        assert_eq!(multiplied(&[Some(1.0), None], &b, 2, 2), [None, None]);
        assert_eq!(multiplied(&numbers(&[2.0, 5.0]), &numbers(&[3.0]), 1, 1), numbers(&[6.0, 15.0]));
    }

    #[test]
    fn a_turned_array_has_its_dimensions_reversed() {
        // (0 1 2; 3 4 5) becomes (0 3; 1 4; 2 5).
        assert_eq!(turned_positions(&[2, 3]), [0, 2, 4, 1, 3, 5]);
        assert_eq!(turned_positions(&[4]), positions(&[4], &[4]));
        // Element (i, j, k) of 2x2x2 goes to (k, j, i).
        assert_eq!(turned_positions(&[2, 2, 2]), [0, 4, 2, 6, 1, 5, 3, 7]);
    }
}
