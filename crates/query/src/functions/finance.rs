//! Prices of order books: `l2price`, `mid`, `wmid`, `spread_bps`.

use super::arrays::{Row, rows_of};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use std::sync::Arc;

const BOOK: &[Kind] = &[Kind::Double, Kind::DoubleOrArray];
const L2_TAKES: &str = "a size, then sizes and prices: as two arrays, or in turns";
const D2: &[Kind] = &[Kind::Double, Kind::Double];

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: "l2price", takes: L2_TAKES, kinds: BOOK, is_variadic: true, call: l2price, ..PLAIN },
    Scalar { name: "level_two_price", takes: L2_TAKES, kinds: BOOK, is_variadic: true, call: l2price, ..PLAIN },
    Scalar { name: "mid", takes: "a bid and an ask", kinds: D2, call: |c| each(c, |v| (v[0] + v[1]) / 2.0), ..PLAIN },
    Scalar { name: "spread", takes: "a bid and an ask", kinds: D2, call: |c| each(c, |v| v[1] - v[0]), ..PLAIN },
    Scalar {
        name: "spread_bps",
        takes: "a bid and an ask",
        kinds: D2,
        call: |c| each(c, |v| (v[1] - v[0]) / ((v[0] + v[1]) / 2.0) * 10_000.0),
        ..PLAIN
    },
    Scalar {
        name: "wmid",
        takes: "the size and the price of a bid, the price and the size of an ask",
        kinds: &[Kind::Double, Kind::Double, Kind::Double, Kind::Double],
        call: |call| {
            each(call, |v| {
                let imbalance = v[0] / (v[0] + v[3]);
                v[2] * imbalance + v[1] * (1.0 - imbalance)
            })
        },
        gives: Gives::Double,
        ..PLAIN
    },
];

/// A formula over numbers of a row; NULL where one is NULL or nothing finite comes out.
fn each(call: &Call, formula: fn(&[f64]) -> f64) -> Result<ArrayRef> {
    let columns: Vec<_> = call.columns.iter().map(|c| c.as_primitive::<Float64Type>()).collect();
    let mut values = vec![0.0; columns.len()];
    let value = |row: usize| {
        for (value, column) in values.iter_mut().zip(&columns) {
            *value = column.is_valid(row).then(|| column.value(row))?;
        }
        Some(formula(&values)).filter(|v| v.is_finite())
    };
    Ok(Arc::new((0..call.rows).map(value).collect::<Float64Array>()))
}

fn l2price(call: &Call) -> Result<ArrayRef> {
    let are_arrays: Vec<bool> = call.columns[1..].iter().map(|c| *c.data_type() != DataType::Float64).collect();
    let in_arrays = are_arrays[..] == [true, true];
    let in_turns = are_arrays.len() >= 2 && are_arrays.len().is_multiple_of(2) && !are_arrays.contains(&true);
    if !in_arrays && !in_turns {
        return Err(Error::invalid(format!("{} takes {L2_TAKES}", call.name)).into());
    }
    let targets = call.columns[0].as_primitive::<Float64Type>();
    let price = |row: usize| -> Result<Option<f64>> {
        if targets.is_null(row) {
            return Ok(None);
        }
        if in_turns {
            let level = |n: usize| {
                let column = call.columns[n].as_primitive::<Float64Type>();
                column.is_valid(row).then(|| column.value(row))
            };
            return Ok(filled(
                targets.value(row),
                (1..call.columns.len()).step_by(2).map(|n| (level(n), level(n + 1))),
            ));
        }
        let (Row::Values(sizes), Row::Values(prices)) =
            (rows_of(&call.columns[1])?.at(row), rows_of(&call.columns[2])?.at(row))
        else {
            return Ok(None);
        };
        if sizes.len() != prices.len() {
            return Err(Error::invalid(format!("{} takes as many prices as sizes", call.name)).into());
        }
        Ok(filled(targets.value(row), sizes.iter().copied().zip(prices.iter().copied())))
    };
    Ok(Arc::new((0..call.rows).map(price).collect::<Result<Float64Array>>()?))
}

/// The average price of an order of a size; `None` when the levels do not suffice.
fn filled(target: f64, levels: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Option<f64> {
    let (mut open, mut cost) = (target, 0.0);
    for (size, price) in levels {
        let (size, price) = (size?, price?);
        let taken = size.min(open);
        cost += taken * price;
        open -= taken;
        if open <= 0.0 {
            return Some(cost / target).filter(|v| v.is_finite());
        }
    }
    None
}
