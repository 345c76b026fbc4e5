//! Aggregates whose state is a few floating-point numbers: adding rows to a state and merging states, over Arrow
//! columns.
//!
//! [`means`] and [`regressions`] are the formulas, [`sliding`] evaluates them over moving frames. A formula never
//! subtracts a row: floating-point addition cannot be undone exactly.

pub mod means;
pub mod regressions;
pub mod sliding;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::Float64Type;
use std::sync::Arc;

/// Numbers in a state; a formula may leave the last ones 0.
pub const NUMBERS: usize = 6;
/// Fewer rows are added one by one: moving frames add single rows.
const COLUMN_ROWS_MIN: usize = 16;
/// The state of an aggregate. All zeros is the state of no rows.
pub type Numbers = [f64; NUMBERS];

/// An aggregate as functions of its state.
pub struct Formula {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The number of arguments.
    pub arguments: usize,
    /// Adds the values of a row.
    pub add: fn(&mut Numbers, &[f64]),
    /// Adds rows to the states of their groups in a specialized loop; `None` uses `add` for each row.
    pub add_rows: Option<AddRows>,
    /// Adds columns without NULLs to one state, faster than `add` for each row.
    pub add_columns: Option<fn(&mut Numbers, &[&[f64]])>,
    /// Merges the state of other rows.
    pub merge: fn(&mut Numbers, &Numbers),
    /// Returns the result; `None` for NULL.
    pub value: fn(&Numbers) -> Option<f64>,
}

/// Adds rows of columns to the states with the given group ids.
pub type AddRows = fn(&mut [Numbers], &[usize], &[ArrayRef], Option<&BooleanArray>);

impl std::fmt::Debug for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Formula {
    /// Adds rows to the states of their groups. `filter` is true for the rows to add.
    pub fn add_to_groups(
        &self,
        states: &mut [Numbers],
        groups: &[usize],
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) {
        match self.add_rows {
            Some(add_rows) => add_rows(states, groups, columns, filter),
            None => add_rows(states, groups, columns, filter, self.add),
        }
    }

    /// Adds all rows to one state.
    pub fn add_all(&self, state: &mut Numbers, columns: &[ArrayRef]) {
        let rows = columns.first().map_or(0, |column| column.len());
        match self.add_columns {
            Some(add_columns) if rows >= COLUMN_ROWS_MIN && columns.iter().all(|column| column.null_count() == 0) => {
                let columns: Vec<&[f64]> =
                    columns.iter().map(|column| &column.as_primitive::<Float64Type>().values()[..]).collect();
                add_columns(state, &columns);
            }
            _ => each_row(columns, |_, values| (self.add)(state, values)),
        }
    }

    /// Merges states, one per row, into those of their groups.
    pub fn merge_to_groups(&self, states: &mut [Numbers], groups: &[usize], columns: &[ArrayRef]) {
        each_row(columns, |row, values| {
            let mut other = [0.0; NUMBERS];
            other.iter_mut().zip(values).for_each(|(number, value)| *number = *value);
            (self.merge)(&mut states[groups[row]], &other);
        });
    }
}

/// Returns states as columns, one for each number.
#[must_use]
pub fn columns_of(states: &[Numbers]) -> Vec<ArrayRef> {
    let column = |n: usize| Arc::new(states.iter().map(|state| Some(state[n])).collect::<Float64Array>());
    (0..NUMBERS).map(|n| column(n) as ArrayRef).collect()
}

/// The loop of [`AddRows`], specialized for one `add`.
fn add_rows(
    states: &mut [Numbers],
    groups: &[usize],
    columns: &[ArrayRef],
    filter: Option<&BooleanArray>,
    add: impl Fn(&mut Numbers, &[f64]),
) {
    each_row(columns, |row, values| {
        if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
            add(&mut states[groups[row]], values);
        }
    });
}

/// Calls `step` with each row in which no argument is NULL.
pub fn each_row(columns: &[ArrayRef], mut step: impl FnMut(usize, &[f64])) {
    let doubles = |column: &'_ ArrayRef| column.as_primitive::<Float64Type>().clone();
    // Moving frames add one row at a time, for which allocating a list of columns would dominate.
    match columns {
        [] => {}
        [only] => {
            let only = only.as_primitive::<Float64Type>();
            for row in (0..only.len()).filter(|row| only.is_valid(*row)) {
                step(row, &[only.value(row)]);
            }
        }
        [first, second] => {
            let (first, second) = (first.as_primitive::<Float64Type>(), second.as_primitive::<Float64Type>());
            for row in (0..first.len()).filter(|row| first.is_valid(*row) && second.is_valid(*row)) {
                step(row, &[first.value(row), second.value(row)]);
            }
        }
        many => {
            let many: Vec<Float64Array> = many.iter().map(doubles).collect();
            let mut values = vec![0.0; many.len()];
            for row in (0..many[0].len()).filter(|row| many.iter().all(|column| column.is_valid(*row))) {
                values.iter_mut().zip(&many).for_each(|(value, column)| *value = column.value(row));
                step(row, &values);
            }
        }
    }
}
