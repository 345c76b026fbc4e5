//! Variances, covariances, correlation and linear regression with the algorithms of PostgreSQL.
//!
//! The state of `y` and `x` is the count, both means, and the sums of squares and products of the differences from the
//! means (Chan, Golub, LeVeque). A NaN or an infinity among the values makes these sums NaN.

use super::{Formula, Numbers, add_rows};
use tidalite_kernels::{sum_centered_products, sum_floats};

/// Positions in the state of one value: count, mean, sum of squared differences from the mean.
const COUNT: usize = 0;
const MEAN: usize = 1;
const SQUARES: usize = 2;
/// Positions in the state of `y` and `x`, after those of `y`.
const MEAN_X: usize = 3;
const SQUARES_X: usize = 4;
const PRODUCTS: usize = 5;

pub static FORMULAS: &[Formula] = &[
    Formula { name: "var", aliases: &["var_samp", "var_sample"], value: variance, ..OF_ONE },
    Formula { name: "var_pop", aliases: &["var_population"], value: variance_pop, ..OF_ONE },
    Formula { name: "stddev", aliases: &["stddev_samp"], value: |s| variance(s).map(f64::sqrt), ..OF_ONE },
    Formula { name: "stddev_pop", value: |s| variance_pop(s).map(f64::sqrt), ..OF_ONE },
    Formula {
        name: "covar_samp",
        aliases: &["covar"],
        value: |s| (s[COUNT] > 1.0).then(|| s[PRODUCTS] / (s[COUNT] - 1.0)),
        ..OF_TWO
    },
    Formula { name: "covar_pop", value: |s| not_empty(s, s[PRODUCTS] / s[COUNT]), ..OF_TWO },
    Formula {
        name: "corr",
        value: |s| {
            let is_spread = s[SQUARES] != 0.0 && s[SQUARES_X] != 0.0;
            is_spread.then(|| clamped(s[PRODUCTS] / s[SQUARES].sqrt() / s[SQUARES_X].sqrt()))
        },
        ..OF_TWO
    },
    Formula { name: "regr_slope", value: slope, ..OF_TWO },
    Formula { name: "regr_intercept", value: |s| Some(s[MEAN] - s[MEAN_X] * slope(s)?), ..OF_TWO },
    Formula {
        name: "regr_r2",
        value: |s| match (s[SQUARES], s[SQUARES_X]) {
            (_, 0.0) => None,
            // All points lie on a horizontal line.
            (0.0, _) => Some(1.0),
            (y, x) => Some(s[PRODUCTS] / y * (s[PRODUCTS] / x)),
        },
        ..OF_TWO
    },
    Formula { name: "regr_avgx", value: |s| not_empty(s, s[MEAN_X]), ..OF_TWO },
    Formula { name: "regr_avgy", value: |s| not_empty(s, s[MEAN]), ..OF_TWO },
    Formula { name: "regr_sxx", value: |s| not_empty(s, s[SQUARES_X]), ..OF_TWO },
    Formula { name: "regr_syy", value: |s| not_empty(s, s[SQUARES]), ..OF_TWO },
    Formula { name: "regr_sxy", value: |s| not_empty(s, s[PRODUCTS]), ..OF_TWO },
];

const OF_ONE: Formula = Formula {
    name: "",
    aliases: &[],
    arguments: 1,
    add: add_one,
    add_rows: Some(|states, groups, columns, filter| add_rows(states, groups, columns, filter, add_one)),
    add_columns: Some(add_columns_one),
    merge: merge_one,
    value: |_| None,
};

const OF_TWO: Formula = Formula {
    name: "",
    aliases: &[],
    arguments: 2,
    add: add_two,
    add_rows: Some(|states, groups, columns, filter| add_rows(states, groups, columns, filter, add_two)),
    add_columns: Some(add_columns_two),
    merge: merge_two,
    value: |_| None,
};

/// Equivalent to merging a state of one value, with less to compute.
#[inline]
fn add_one(state: &mut Numbers, values: &[f64]) {
    let value = values[0];
    let (n, delta) = (state[COUNT] + 1.0, value - state[MEAN]);
    state[COUNT] = n;
    state[MEAN] += delta / n;
    state[SQUARES] += delta * (value - state[MEAN]) + spread_of(value);
}

#[inline]
fn add_two(state: &mut Numbers, values: &[f64]) {
    let (y, x) = (values[0], values[1]);
    let (n, dy, dx) = (state[COUNT] + 1.0, y - state[MEAN], x - state[MEAN_X]);
    // One division instead of two: it takes most of the time of a row.
    let share = 1.0 / n;
    state[COUNT] = n;
    state[MEAN] += dy * share;
    state[MEAN_X] += dx * share;
    state[SQUARES] += dy * (y - state[MEAN]) + spread_of(y);
    state[SQUARES_X] += dx * (x - state[MEAN_X]) + spread_of(x);
    state[PRODUCTS] += dy * (x - state[MEAN_X]) + spread_of(y + x);
}

/// Rows of a chunk, which stays in the first-level cache for both passes: the means first, then the sums of squares.
const CHUNK_ROWS: usize = 1024;

fn add_columns_one(state: &mut Numbers, columns: &[&[f64]]) {
    let [values] = columns else { return };
    for values in values.chunks(CHUNK_ROWS) {
        let count = values.len() as f64;
        let mean = sum_floats(values) / count;
        if mean.is_finite() {
            let squares = sum_centered_products(values, mean, values, mean);
            merge_one(state, &[count, mean, squares, 0.0, 0.0, 0.0]);
        } else {
            // The sum may exceed the range of doubles where the mean does not.
            values.iter().for_each(|value| add_one(state, &[*value]));
        }
    }
}

fn add_columns_two(state: &mut Numbers, columns: &[&[f64]]) {
    let [ys, xs] = columns else { return };
    for (ys, xs) in ys.chunks(CHUNK_ROWS).zip(xs.chunks(CHUNK_ROWS)) {
        let count = ys.len() as f64;
        let (mean_y, mean_x) = (sum_floats(ys) / count, sum_floats(xs) / count);
        if mean_y.is_finite() && mean_x.is_finite() {
            let squares_y = sum_centered_products(ys, mean_y, ys, mean_y);
            let squares_x = sum_centered_products(xs, mean_x, xs, mean_x);
            let products = sum_centered_products(ys, mean_y, xs, mean_x);
            merge_two(state, &[count, mean_y, squares_y, mean_x, squares_x, products]);
        } else {
            ys.iter().zip(xs).for_each(|(y, x)| add_two(state, &[*y, *x]));
        }
    }
}

/// Returns the contribution of one value to a sum of squares.
fn spread_of(value: f64) -> f64 {
    if value.is_finite() { 0.0 } else { f64::NAN }
}

fn merge_one(a: &mut Numbers, b: &Numbers) {
    let (na, nb) = (a[COUNT], b[COUNT]);
    if na == 0.0 || nb == 0.0 {
        if na == 0.0 {
            *a = *b;
        }
        return;
    }
    let (n, delta) = (na + nb, b[MEAN] - a[MEAN]);
    a[COUNT] = n;
    a[MEAN] += delta * (nb / n);
    a[SQUARES] += b[SQUARES] + delta * delta * (na * nb / n);
}

fn merge_two(a: &mut Numbers, b: &Numbers) {
    let (na, nb) = (a[COUNT], b[COUNT]);
    if na == 0.0 || nb == 0.0 {
        if na == 0.0 {
            *a = *b;
        }
        return;
    }
    let (n, dy, dx) = (na + nb, b[MEAN] - a[MEAN], b[MEAN_X] - a[MEAN_X]);
    let weight = na * nb / n;
    a[COUNT] = n;
    a[MEAN] += dy * (nb / n);
    a[MEAN_X] += dx * (nb / n);
    a[SQUARES] += b[SQUARES] + dy * dy * weight;
    a[SQUARES_X] += b[SQUARES_X] + dx * dx * weight;
    a[PRODUCTS] += b[PRODUCTS] + dy * dx * weight;
}

fn not_empty(state: &Numbers, value: f64) -> Option<f64> {
    (state[COUNT] > 0.0).then_some(value)
}

fn variance(state: &Numbers) -> Option<f64> {
    (state[COUNT] > 1.0).then(|| state[SQUARES] / (state[COUNT] - 1.0))
}

fn variance_pop(state: &Numbers) -> Option<f64> {
    not_empty(state, state[SQUARES] / state[COUNT])
}

fn slope(state: &Numbers) -> Option<f64> {
    (state[SQUARES_X] != 0.0).then(|| state[PRODUCTS] / state[SQUARES_X])
}

/// Clamps a correlation to its range, which rounding may leave by a little.
fn clamped(value: f64) -> f64 {
    if value.is_nan() { value } else { value.clamp(-1.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::NUMBERS;

    fn value(name: &str, rows: &[[f64; 2]], at: usize) -> Option<f64> {
        let of = FORMULAS.iter().find(|f| f.name == name).expect("a formula");
        let mut parts = [[0.0; NUMBERS]; 2];
        for (part, rows) in parts.iter_mut().zip([&rows[..at], &rows[at..]]) {
            rows.iter().for_each(|row| (of.add)(part, &row[..of.arguments]));
        }
        let [mut whole, other] = parts;
        (of.merge)(&mut whole, &other);
        (of.value)(&whole)
    }

    /// Expected values by definition.
    ///
    /// y = 1, 2, 6 and x = 2, 4, 3; means 3 and 3, Syy = 14, Sxx = 2, Sxy = 1.
    #[test]
    fn results_of_a_split_set_are_those_of_the_whole() {
        let rows = [[1.0, 2.0], [2.0, 4.0], [6.0, 3.0]];
        let expected = [
            ("var", 7.0),
            ("var_pop", 14.0 / 3.0),
            ("stddev", 7.0_f64.sqrt()),
            ("covar_samp", 0.5),
            ("covar_pop", 1.0 / 3.0),
            ("corr", 1.0 / 28.0_f64.sqrt()),
            ("regr_slope", 0.5),
            ("regr_intercept", 1.5),
            ("regr_r2", 1.0 / 28.0),
            ("regr_avgx", 3.0),
            ("regr_avgy", 3.0),
            ("regr_sxx", 2.0),
            ("regr_syy", 14.0),
            ("regr_sxy", 1.0),
        ];
        for (name, expected) in expected {
            for at in 0..=3 {
                let found = value(name, &rows, at).expect("a value");
                assert!((found - expected).abs() < 1e-12, "{name} {at}: {found} {expected}");
            }
        }
    }

    /// Expected values are outputs of PostgreSQL 15.
    /// Columns and rows add up to the same: `add_columns` is compared with its reference `add`.
    #[test]
    fn columns_add_what_their_rows_add() {
        let mut random = fastrand::Rng::with_seed(1);
        for formula in [&OF_ONE, &OF_TWO] {
            for (rows, offset) in [(16, 0.0), (1_024, 1e6), (5_000, -3.0), (2_500, 1e306)] {
                let columns: Vec<Vec<f64>> =
                    (0..formula.arguments).map(|_| (0..rows).map(|_| offset + random.f64()).collect()).collect();
                let slices: Vec<&[f64]> = columns.iter().map(|column| &column[..]).collect();
                let (mut by_columns, mut by_rows) = ([0.0; NUMBERS], [0.0; NUMBERS]);
                (formula.add_columns.expect("sums of squares have it"))(&mut by_columns, &slices);
                for row in 0..rows {
                    let values: Vec<f64> = slices.iter().map(|column| column[row]).collect();
                    (formula.add)(&mut by_rows, &values);
                }
                for (of_columns, of_rows) in by_columns.iter().zip(by_rows) {
                    let is_near = (of_columns - of_rows).abs() <= 1e-6 * of_rows.abs().max(1.0);
                    assert!(is_near || of_columns.is_nan() && of_rows.is_nan(), "{by_columns:?} {by_rows:?}");
                }
            }
        }
    }

    #[test]
    fn columns_with_an_infinity_have_no_spread() {
        let mut values = vec![1.0; 40];
        values[7] = f64::INFINITY;
        let (mut one, mut two) = ([0.0; NUMBERS], [0.0; NUMBERS]);
        add_columns_one(&mut one, &[&values]);
        add_columns_two(&mut two, &[&[1.0; 40], &values]);
        assert!(one[SQUARES].is_nan() && two[SQUARES_X].is_nan() && two[PRODUCTS].is_nan());
        assert_eq!(two[SQUARES], 0.0);
    }

    #[test]
    fn edges() {
        assert_eq!(value("var", &[[1.0, 1.0]], 1), None);
        assert_eq!(value("var_pop", &[[1.0, 1.0]], 1), Some(0.0));
        assert!(value("var_pop", &[[f64::INFINITY, 1.0]], 1).expect("a value").is_nan());
        assert_eq!(value("regr_r2", &[[1.0, 1.0], [1.0, 2.0]], 1), Some(1.0));
        assert_eq!(value("corr", &[[1.0, 1.0], [1.0, 2.0]], 1), None);
        assert!(value("corr", &[[f64::NAN, 1.0], [1.0, 2.0]], 1).expect("a value").is_nan());
        assert_eq!(value("covar_pop", &[], 0), None);
    }
}
