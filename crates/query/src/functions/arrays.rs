//! Arrays of doubles: element by element `+ - * /` ([`super::element_wise`]), running sums, counts, positions.
//!
//! Operators on arrays come here from [`crate::plan::Operators`].

use super::element_wise::combined;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Float64Builder, Int32Array, Int64Array, ListArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use std::sync::Arc;

macro_rules! element_wise {
    ($name:literal, $kernel:expr) => {
        Scalar {
            name: $name,
            takes: "two arrays, or an array and a number",
            kinds: &[Kind::DoubleOrArray, Kind::DoubleOrArray],
            gives: Gives::Deeper,
            call: |call| combined(&call.columns[0], &call.columns[1], $kernel),
            ..PLAIN
        }
    };
}

macro_rules! of_array {
    ($name:literal, $gives:expr, $call:expr) => {
        Scalar { name: $name, takes: "an array", kinds: &[Kind::Array], gives: $gives, call: $call, ..PLAIN }
    };
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    element_wise!("array_add", numeric::add),
    element_wise!("array_subtract", numeric::sub),
    element_wise!("array_multiply", numeric::mul),
    element_wise!("array_divide", numeric::div),
    of_array!("array_cum_sum", Gives::Doubles, cum_sum),
    of_array!("array_sum", Gives::Double, |call| folded(call, sum)),
    of_array!("list_sum", Gives::Double, |call| folded(call, sum)),
    DOT_PRODUCT,
    Scalar { name: "inner_product", ..DOT_PRODUCT },
    of_array!("array_avg", Gives::Double, |call| folded(call, average)),
    of_array!("array_stddev", Gives::Double, |call| folded(call, |v| spread(v, 1.0))),
    of_array!("array_stddev_samp", Gives::Double, |call| folded(call, |v| spread(v, 1.0))),
    of_array!("array_stddev_pop", Gives::Double, |call| folded(call, |v| spread(v, 0.0))),
    of_array!("array_count", Gives::Long, |call| {
        let rows = rows_of(&call.columns[0])?;
        let count = |row| match rows.at(row) {
            Row::Null => None,
            Row::Values(values) => Some(values.iter().flatten().count() as i64),
        };
        Ok(Arc::new((0..call.rows).map(count).collect::<Int64Array>()))
    }),
    Scalar {
        name: "dim_length",
        takes: "an array and the number of a dimension, from 1",
        kinds: &[Kind::Array, Kind::Long],
        gives: Gives::Int,
        call: dim_length,
        ..PLAIN
    },
    Scalar {
        name: "insertion_point",
        takes: "a sorted array, a number and whether to go before those that are equal",
        kinds: &[Kind::Array, Kind::Double, Kind::Any],
        least: 2,
        gives: Gives::Int,
        call: insertion_point,
        ..PLAIN
    },
];

const DOT_PRODUCT: Scalar = Scalar {
    name: "dot_product",
    takes: "two arrays of one shape",
    kinds: &[Kind::Array, Kind::Array],
    call: |call| {
        let products = combined(&call.columns[0], &call.columns[1], numeric::mul)?;
        folded(
            &Call { columns: &[products], fields: &[], rows: call.rows, data_type: call.data_type, name: call.name },
            sum,
        )
    },
    ..PLAIN
};

/// The function that an operator between arrays is.
pub(crate) fn operator(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "+" => "array_add",
        "-" => "array_subtract",
        "*" => "array_multiply",
        "/" => "array_divide",
        _ => return None,
    })
}

/// One row of a column of arrays.
pub(super) enum Row {
    Null,
    Values(Vec<Option<f64>>),
}

pub(super) struct Rows<'a>(&'a ListArray);

impl Rows<'_> {
    /// All numbers of a row, those of inner lists one after the other.
    pub fn at(&self, row: usize) -> Row {
        if self.0.is_null(row) {
            return Row::Null;
        }
        let mut values = Vec::new();
        flatten(&self.0.value(row), &mut values);
        Row::Values(values)
    }
}

fn flatten(array: &ArrayRef, out: &mut Vec<Option<f64>>) {
    match array.as_list_opt::<i32>() {
        Some(list) => (0..list.len()).filter(|row| list.is_valid(*row)).for_each(|row| flatten(&list.value(row), out)),
        None => out.extend(array.as_primitive_opt::<Float64Type>().into_iter().flat_map(|values| values.iter())),
    }
}

pub(super) fn rows_of(column: &ArrayRef) -> Result<Rows<'_>> {
    match column.as_list_opt::<i32>() {
        Some(list) => Ok(Rows(list)),
        None => Err(Error::internal(format!("{} is no array of ours", column.data_type())).into()),
    }
}

/// A column of arrays of one dimension, each made of all values of its row.
fn mapped(call: &Call, map: impl Fn(usize, &mut [Option<f64>])) -> Result<ArrayRef> {
    let list = rows_of(&call.columns[0])?.0;
    let (mut out, mut lengths) = (Float64Builder::new(), Vec::with_capacity(list.len()));
    for row in 0..list.len() {
        let mut values = match rows_of(&call.columns[0])?.at(row) {
            Row::Null => Vec::new(),
            Row::Values(values) => values,
        };
        map(row, &mut values);
        lengths.push(values.len());
        values.into_iter().for_each(|v| out.append_option(v));
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let item = crate::door::item(DataType::Float64);
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(out.finish()), list.nulls().cloned())?))
}

/// NULL elements count as zero, as in QuestDB.
fn cum_sum(call: &Call) -> Result<ArrayRef> {
    mapped(call, |_, values| {
        let mut sum = 0.0;
        for value in values {
            sum += value.unwrap_or(0.0);
            *value = Some(sum);
        }
    })
}

/// A number out of each array's own numbers.
fn folded(call: &Call, fold: fn(&[f64]) -> Option<f64>) -> Result<ArrayRef> {
    let rows = rows_of(&call.columns[0])?;
    let value = |row| match rows.at(row) {
        Row::Null => None,
        Row::Values(values) => fold(&values.into_iter().flatten().collect::<Vec<f64>>()),
    };
    Ok(Arc::new((0..call.rows).map(value).collect::<Float64Array>()))
}

fn sum(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(|a, b| a + b)
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn spread(values: &[f64], less: f64) -> Option<f64> {
    let (mean, count) = (average(values)?, values.len() as f64 - less);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (count > 0.0).then(|| (squares / count).sqrt())
}

fn dim_length(call: &Call) -> Result<ArrayRef> {
    let dimensions = call.columns[1].as_primitive::<datafusion::arrow::datatypes::Int64Type>();
    let length = |row: usize| -> Result<Option<i32>> {
        if call.columns[0].is_null(row) || dimensions.is_null(row) {
            return Ok(None);
        }
        let mut array = rows_of(&call.columns[0])?.0.value(row);
        for _ in 1..dimensions.value(row) {
            let Some(list) = array.as_list_opt::<i32>() else {
                return Err(Error::invalid("the array has fewer dimensions").into());
            };
            array = if list.is_empty() { list.values().slice(0, 0) } else { list.value(0) };
        }
        Ok(Some(array.len() as i32))
    };
    if dimensions.iter().flatten().any(|d| !(1..=32).contains(&d)) {
        return Err(Error::invalid("dimensions are counted from 1 to 32").into());
    }
    Ok(Arc::new((0..call.rows).map(length).collect::<Result<Int32Array>>()?))
}

/// Where, counted from 1, a number goes so that the array stays sorted: behind those that are equal, or before them.
fn insertion_point(call: &Call) -> Result<ArrayRef> {
    let numbers = call.columns[1].as_primitive::<Float64Type>();
    let rows = rows_of(&call.columns[0])?;
    let before = call.columns.get(2).and_then(|c| c.as_boolean_opt());
    let place = |row: usize| {
        let (Row::Values(values), true) = (rows.at(row), numbers.is_valid(row)) else { return None };
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let number = numbers.value(row);
        let goes_before = before.is_some_and(|b| b.is_valid(row) && b.value(row));
        let is_descending = values.first() > values.last();
        let place = values.partition_point(|v| {
            let is_passed = if is_descending { *v > number } else { *v < number };
            is_passed || (*v == number && !goes_before)
        });
        Some(place as i32 + 1)
    };
    Ok(Arc::new((0..call.rows).map(place).collect::<Int32Array>()))
}
