//! Compensated sums `ksum` (Kahan) and `nsum` (Neumaier), `geomean`, `weighted_avg`, `vwap`, `weighted_stddev_…`,
//! `skewness`, `kurtosis`.

use super::{Formula, Numbers};

pub static FORMULAS: &[Formula] = &[
    Formula {
        name: "ksum",
        aliases: &[],
        arguments: 1,
        add_rows: None,
        add_columns: None,
        add: |s, v| {
            kahan(s, v[0]);
            s[2] += 1.0;
        },
        merge: |s, o| {
            kahan(s, o[0]);
            kahan(s, -o[1]);
            s[2] += o[2];
        },
        value: |s| (s[2] > 0.0).then_some(s[0]),
    },
    Formula {
        name: "nsum",
        aliases: &[],
        arguments: 1,
        add_rows: None,
        add_columns: None,
        add: |s, v| {
            neumaier(&mut s[..2], v[0]);
            s[2] += 1.0;
        },
        merge: |s, o| {
            neumaier(&mut s[..2], o[0]);
            neumaier(&mut s[..2], o[1]);
            s[2] += o[2];
        },
        value: |s| (s[2] > 0.0).then_some(s[0] + s[1]),
    },
    // A negative number has no logarithm, so the mean is NULL. Zero gives −∞, and exp(−∞) is 0 again.
    Formula {
        name: "geomean",
        aliases: &[],
        arguments: 1,
        add_rows: None,
        add_columns: None,
        add: |s, v| {
            neumaier(&mut s[..2], v[0].ln());
            s[2] += 1.0;
        },
        merge: |s, o| {
            neumaier(&mut s[..2], o[0]);
            neumaier(&mut s[..2], o[1]);
            s[2] += o[2];
        },
        value: |s| (s[2] > 0.0).then(|| ((s[0] + s[1]) / s[2]).exp()).filter(|v| !v.is_nan()),
    },
    WEIGHTED,
    Formula { name: "vwap", ..WEIGHTED },
    Formula {
        name: "skewness",
        aliases: &["skewness_samp"],
        value: |s| {
            let (n, spread) = (s[0], s[2] / s[0]);
            let value = (n * (n - 1.0)).sqrt() / (n - 2.0) * (s[3] / n) / spread.powf(1.5);
            (n > 2.0 && spread > 0.0).then_some(value)
        },
        ..MOMENTS
    },
    Formula {
        name: "kurtosis",
        aliases: &["kurtosis_samp"],
        value: |s| {
            let n = s[0];
            let value = (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess(s) + 6.0);
            (n > 3.0 && s[2] > 0.0).then_some(value)
        },
        ..MOMENTS
    },
    Formula { name: "kurtosis_pop", value: |s| (s[0] > 1.0 && s[2] > 0.0).then(|| excess(s)), ..MOMENTS },
    Formula {
        name: "skewness_pop",
        value: |s| (s[0] > 1.0 && s[2] > 0.0).then(|| s[3] / s[0] / (s[2] / s[0]).powf(1.5)),
        ..MOMENTS
    },
    // Reliability weights: the unbiased divisor is Σw - Σw² / Σw.
    Formula {
        name: "weighted_stddev_rel",
        aliases: &["weighted_stddev"],
        value: |s| deviation(s, s[WEIGHTS] - s[SQUARED_WEIGHTS] / s[WEIGHTS]),
        ..WEIGHTED_SPREAD
    },
    // Frequency weights: each row stands for `weight` rows.
    Formula { name: "weighted_stddev_freq", value: |s| deviation(s, s[WEIGHTS] - 1.0), ..WEIGHTED_SPREAD },
];

/// Positions in the state of weighted values: rows, sum of weights, mean, weighted sum of squared differences from the
/// mean, sum of squared weights.
const ROWS: usize = 0;
const WEIGHTS: usize = 1;
const MEAN: usize = 2;
const SPREAD: usize = 3;
const SQUARED_WEIGHTS: usize = 4;

const WEIGHTED_SPREAD: Formula = Formula {
    name: "",
    aliases: &[],
    arguments: 2,
    add_rows: None,
    add_columns: None,
    add: |s, v| {
        if v[1] != 0.0 {
            spreads_merged(s, &[1.0, v[1], v[0], 0.0, v[1] * v[1], 0.0]);
        }
    },
    merge: spreads_merged,
    value: |_| None,
};

/// Merges weighted spreads by the formula of Chan, Golub and LeVeque.
fn spreads_merged(a: &mut Numbers, b: &Numbers) {
    if b[ROWS] == 0.0 {
        return;
    }
    if a[ROWS] == 0.0 {
        *a = *b;
        return;
    }
    let (weights, delta) = (a[WEIGHTS] + b[WEIGHTS], b[MEAN] - a[MEAN]);
    a[ROWS] += b[ROWS];
    a[SPREAD] += b[SPREAD] + delta * delta * (a[WEIGHTS] * b[WEIGHTS] / weights);
    a[MEAN] += delta * (b[WEIGHTS] / weights);
    a[WEIGHTS] = weights;
    a[SQUARED_WEIGHTS] += b[SQUARED_WEIGHTS];
}

/// Returns the deviation for a divisor; `None` for fewer than two rows and divisors that are not positive.
fn deviation(s: &Numbers, divisor: f64) -> Option<f64> {
    let is_defined = s[ROWS] > 1.0 && s[WEIGHTS] > 0.0 && divisor > 0.0;
    is_defined.then(|| (s[SPREAD] / divisor).sqrt()).filter(|value| !value.is_nan())
}

const WEIGHTED: Formula = Formula {
    name: "weighted_avg",
    aliases: &[],
    arguments: 2,
    add_rows: None,
    add_columns: None,
    add: |s, v| {
        neumaier(&mut s[..2], v[0] * v[1]);
        neumaier(&mut s[2..4], v[1]);
    },
    merge: |s, o| {
        o[..2].iter().for_each(|v| neumaier(&mut s[..2], *v));
        o[2..4].iter().for_each(|v| neumaier(&mut s[2..4], *v));
    },
    value: |s| Some((s[0] + s[1]) / (s[2] + s[3])).filter(|_| s[2] + s[3] != 0.0),
};

/// Count, mean, and the sums of the second, third and fourth powers of the differences from the mean.
const MOMENTS: Formula = Formula {
    name: "",
    aliases: &[],
    arguments: 1,
    add_rows: None,
    add_columns: None,
    add: |s, v| moments_merged(s, &[1.0, v[0], 0.0, 0.0, 0.0, 0.0]),
    merge: moments_merged,
    value: |_| None,
};

fn kahan(state: &mut Numbers, value: f64) {
    let corrected = value - state[1];
    let sum = state[0] + corrected;
    // An infinite sum has no rounding error to compensate.
    state[1] = if sum.is_finite() { (sum - state[0]) - corrected } else { 0.0 };
    state[0] = sum;
}

pub(super) fn neumaier(state: &mut [f64], value: f64) {
    let sum = state[0] + value;
    if sum.is_finite() {
        state[1] += if state[0].abs() >= value.abs() { (state[0] - sum) + value } else { (value - sum) + state[0] };
    } else {
        state[1] = 0.0;
    }
    state[0] = sum;
}

/// Merges the moments of two sets by Pébay's formulas.
fn moments_merged(a: &mut Numbers, b: &Numbers) {
    let (na, nb) = (a[0], b[0]);
    let n = na + nb;
    if nb == 0.0 {
        return;
    }
    if na == 0.0 {
        *a = *b;
        return;
    }
    let delta = b[1] - a[1];
    let m4 = a[4]
        + b[4]
        + delta.powi(4) * na * nb * (na * na - na * nb + nb * nb) / (n * n * n)
        + 6.0 * delta * delta * (na * na * b[2] + nb * nb * a[2]) / (n * n)
        + 4.0 * delta * (na * b[3] - nb * a[3]) / n;
    let m3 = a[3] + b[3] + delta.powi(3) * na * nb * (na - nb) / (n * n) + 3.0 * delta * (na * b[2] - nb * a[2]) / n;
    let m2 = a[2] + b[2] + delta * delta * na * nb / n;
    *a = [n, a[1] + delta * nb / n, m2, m3, m4, 0.0];
}

fn excess(s: &Numbers) -> f64 {
    s[0] * s[4] / (s[2] * s[2]) - 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::NUMBERS;

    fn folded(name: &str, values: &[f64], at: usize) -> Option<f64> {
        let of = FORMULAS.iter().find(|f| f.name == name).expect("a formula");
        let mut parts = [[0.0; NUMBERS]; 2];
        for (part, values) in parts.iter_mut().zip([&values[..at], &values[at..]]) {
            values.iter().for_each(|v| (of.add)(part, &[*v]));
        }
        let [mut whole, other] = parts;
        (of.merge)(&mut whole, &other);
        (of.value)(&whole)
    }

    #[test]
    fn sums_keep_what_rounding_loses() {
        assert_eq!([1.0, 1e100, 1.0, -1e100].iter().sum::<f64>(), 0.0);
        assert_eq!(folded("nsum", &[1.0, 1e100, 1.0, -1e100], 4), Some(2.0));
        let tenths = vec![0.1; 1_000_000];
        assert!((tenths.iter().sum::<f64>() - 100_000.0).abs() > 1e-6);
        for name in ["ksum", "nsum"] {
            for at in [0, 1, 777_777, 1_000_000] {
                // Kahan's bound: twice the rounding error of the sum, independent of the number of values.
                let error = folded(name, &tenths, at).expect("a sum") - 100_000.0;
                assert!(error.abs() <= 2.0 * f64::EPSILON * 100_000.0, "{name} {error}");
            }
            assert_eq!(folded(name, &[f64::INFINITY, 1.0], 1), Some(f64::INFINITY));
            assert_eq!(folded(name, &[], 0), None);
        }
    }

    /// Expected values by definition: for 1, 2, 3, 10 the mean is 4 and the power sums are 50, 180, 1394.
    #[test]
    fn moments_of_a_split_set_are_those_of_the_whole() {
        let skewness = (12.0_f64).sqrt() / 2.0 * (180.0 / 4.0) / (50.0_f64 / 4.0).powf(1.5);
        let excess = 4.0 * 1394.0 / 2500.0 - 3.0;
        let kurtosis = 3.0 / 2.0 * (5.0 * excess + 6.0);
        for at in 0..=4 {
            for (name, expected) in [("skewness", skewness), ("kurtosis", kurtosis), ("kurtosis_pop", excess)] {
                let found = folded(name, &[1.0, 2.0, 3.0, 10.0], at).expect("enough values");
                assert!((found - expected).abs() < 1e-12, "{name} {at}: {found} {expected}");
            }
        }
        assert_eq!(folded("skewness", &[1.0, 1.0, 1.0], 1), None);
    }

    /// The example of QuestDB's documentation.
    #[test]
    fn moments_of_a_sample_and_of_a_population() {
        let values = [-10.0, -20.0, 100.0, 1000.0, 1000.0];
        let expected = [
            ("kurtosis", -3.289_971_233_898_511),
            ("kurtosis_pop", -1.822_492_808_474_628),
            ("skewness", 0.574_511_614_753_355_4),
            ("skewness_pop", 0.385_394_107_335_502_17),
        ];
        for (name, expected) in expected {
            let found = folded(name, &values, 2).expect("enough values");
            assert!((found - expected).abs() < 1e-12, "{name}: {found} {expected}");
        }
    }

    fn weighted(name: &str, rows: &[[f64; 2]], at: usize) -> Option<f64> {
        let of = FORMULAS.iter().find(|f| f.name == name).expect("a formula");
        let mut parts = [[0.0; NUMBERS]; 2];
        for (part, rows) in parts.iter_mut().zip([&rows[..at], &rows[at..]]) {
            rows.iter().for_each(|row| (of.add)(part, row));
        }
        let [mut whole, other] = parts;
        (of.merge)(&mut whole, &other);
        (of.value)(&whole)
    }

    /// Expected values by definition: values 1, 2, 4 with weights 1, 2, 1 have Σw = 4, Σwx = 9, Σwx² = 25, Σw² = 6.
    #[test]
    fn weighted_deviations() {
        let rows = [[1.0, 1.0], [2.0, 2.0], [99.0, 0.0], [4.0, 1.0]];
        let spread = 25.0 - 81.0 / 4.0;
        for at in 0..=4 {
            for (name, divisor) in [("weighted_stddev_rel", 4.0 - 6.0 / 4.0), ("weighted_stddev_freq", 3.0)] {
                let found = weighted(name, &rows, at).expect("a value");
                assert!((found - (spread / divisor as f64).sqrt()).abs() < 1e-12, "{name} {at}: {found}");
            }
        }
        // One row, a sum of weights of 1, and a negative one.
        assert_eq!(weighted("weighted_stddev_rel", &rows[..1], 1), None);
        assert_eq!(weighted("weighted_stddev_freq", &[[1.0, 0.5], [2.0, 0.5]], 1), None);
        assert_eq!(weighted("weighted_stddev_rel", &[[1.0, -2.0], [2.0, 1.0]], 1), None);
    }
}
