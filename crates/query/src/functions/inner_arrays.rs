//! Functions over each innermost array: `shift(a, distance [, fill])` and `array_sort(a [, descending [, nulls_first]])`,
//! as QuestDB defines them. `array_sort` of one dimension is also PostgreSQL 18's.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar, is_null};
use super::shapes::innermost;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, sort};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;

const SORT_TAKES: &str = "an array, whether the order is descending, and whether NULL comes first";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "shift",
        takes: "an array, how far, and what to fill up with",
        kinds: &[Kind::Array, Kind::Long, Kind::Double],
        least: 2,
        gives: Gives::Like(0),
        call: shift,
        ..PLAIN
    },
    Scalar { name: "array_sort", ..SORT },
    Scalar { name: "list_sort", ..SORT },
];

const SORT: Scalar = Scalar {
    takes: SORT_TAKES,
    kinds: &[Kind::List, Kind::Any, Kind::Any],
    least: 1,
    gives: Gives::Like(0),
    call: array_sort,
    ..PLAIN
};

fn list(column: &ArrayRef) -> Result<&ListArray> {
    column.as_list_opt::<i32>().ok_or_else(|| Error::internal(format!("{} is no list", column.data_type())).into())
}

/// Moves the elements of each innermost array to the right, or to the left by a negative distance.
fn shift(call: &Call) -> Result<ArrayRef> {
    let distances = call.columns[1].as_primitive::<Int64Type>();
    let fills = call.columns.get(2).map(|column| column.as_primitive::<Float64Type>());
    innermost(list(&call.columns[0])?, &mut |row, values| {
        let fill = fills.filter(|fills| fills.is_valid(row)).map(|fills| fills.value(row));
        let distance = if distances.is_valid(row) { distances.value(row) } else { 0 };
        let mut values: Vec<Option<f64>> = values.as_primitive::<Float64Type>().iter().collect();
        let count = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX).min(values.len());
        if distance >= 0 {
            values.rotate_right(count);
            values[..count].fill(fill);
        } else {
            let kept = values.len() - count;
            values.rotate_left(count);
            values[kept..].fill(fill);
        }
        Ok(Arc::new(Float64Array::from(values)))
    })
}

/// Reads a flag of a row: true, false, or one of two words.
fn flag(call: &Call, n: usize, row: usize, words: [&str; 2]) -> Result<Option<bool>> {
    let Some(column) = call.columns.get(n).filter(|column| !is_null(column, row)) else { return Ok(None) };
    if let Some(flags) = column.as_boolean_opt() {
        return Ok(Some(flags.value(row)));
    }
    let word = column.as_string_view_opt().map(|texts| texts.value(row));
    let word = word.or_else(|| column.as_string_opt::<i32>().map(|texts| texts.value(row)));
    let known = word.and_then(|word| words.iter().position(|known| word.trim().eq_ignore_ascii_case(known)));
    match known {
        Some(at) => Ok(Some(at == 1)),
        None => Err(Error::invalid(format!("{} takes {SORT_TAKES}", call.name)).about(call.name).into()),
    }
}

/// Sorts each innermost array; NULL is greater than all values unless the third argument says otherwise.
fn array_sort(call: &Call) -> Result<ArrayRef> {
    let lists = list(&call.columns[0])?;
    let mut options = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let descending = flag(call, 1, row, ["asc", "desc"])?.unwrap_or(false);
        let nulls_first = flag(call, 2, row, ["nulls last", "nulls first"])?.unwrap_or(descending);
        options.push(SortOptions { descending, nulls_first });
    }
    let known = NullBuffer::from(
        (0..call.rows).map(|row| !call.columns.iter().any(|column| is_null(column, row))).collect::<Vec<bool>>(),
    );
    let item = match lists.data_type() {
        datafusion::arrow::datatypes::DataType::List(item) => item.clone(),
        other => return Err(Error::internal(format!("{other} is no list")).into()),
    };
    let lists = ListArray::try_new(item, lists.offsets().clone(), lists.values().clone(), Some(known))?;
    innermost(&lists, &mut |row, values| {
        let refused =
            |_| Error::invalid(format!("{} cannot order the items of this array", call.name)).about(call.name);
        Ok(sort(&values, Some(options[row])).map_err(refused)?)
    })
}
