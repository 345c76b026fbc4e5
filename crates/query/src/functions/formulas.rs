//! Aggregates whose state is a few floating-point numbers: compensated sums `ksum` (Kahan) and `nsum` (Neumaier),
//! `geomean`, `weighted_avg`, `vwap`, `skewness`, `kurtosis`, and those of [`super::regressions`]. Rows with a NULL among
//! the arguments do not count.
//!
//! A formula adds rows to a state and merges two states. It never takes a row away: a sliding frame uses
//! [`super::sliding`], which merges states of rows that are still in the frame.

use super::scalar::double;
use super::sliding::TwoStacks;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Numbers of a state; a formula may leave the last ones 0.
pub(super) const NUMBERS: usize = 6;
/// The state of an aggregate. All zeros is the state of no rows.
pub(super) type Numbers = [f64; NUMBERS];

/// An aggregate as functions of its state.
pub(super) struct Formula {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// How many arguments it has.
    pub arguments: usize,
    /// Adds the values of a row.
    pub add: fn(&mut Numbers, &[f64]),
    /// Adds the rows of another state.
    pub merge: fn(&mut Numbers, &Numbers),
    /// The result; `None` for NULL.
    pub value: fn(&Numbers) -> Option<f64>,
}

static FORMULAS: &[Formula] = &[
    Formula {
        name: "ksum",
        aliases: &[],
        arguments: 1,
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
    // Of a negative number there is no logarithm: then there is no mean either. Zero has −∞, whose power is 0 again.
    Formula {
        name: "geomean",
        aliases: &[],
        arguments: 1,
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
        value: |s| {
            let (n, spread) = (s[0], s[2] / s[0]);
            let value = (n * (n - 1.0)).sqrt() / (n - 2.0) * (s[3] / n) / spread.powf(1.5);
            (n > 2.0 && spread > 0.0).then_some(value)
        },
        ..MOMENTS
    },
    Formula {
        name: "kurtosis",
        value: |s| {
            let n = s[0];
            let value = (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess(s) + 6.0);
            (n > 3.0 && s[2] > 0.0).then_some(value)
        },
        ..MOMENTS
    },
    Formula { name: "kurtosis_pop", value: |s| (s[0] > 1.0 && s[2] > 0.0).then(|| excess(s)), ..MOMENTS },
];

const WEIGHTED: Formula = Formula {
    name: "weighted_avg",
    aliases: &[],
    arguments: 2,
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

/// Count, mean, and the sums of the second, third and fourth powers of what values are away from it.
const MOMENTS: Formula = Formula {
    name: "",
    aliases: &[],
    arguments: 1,
    add: |s, v| moments_merged(s, &[1.0, v[0], 0.0, 0.0, 0.0, 0.0]),
    merge: moments_merged,
    value: |_| None,
};

fn kahan(state: &mut Numbers, value: f64) {
    let corrected = value - state[1];
    let sum = state[0] + corrected;
    // Infinity has nothing to compensate.
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

/// Pébay's formulas for the moments of two sets together.
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

pub(super) fn functions() -> Vec<AggregateUDF> {
    let signature = || Signature::user_defined(Volatility::Immutable);
    let all = FORMULAS.iter().chain(super::regressions::FORMULAS);
    let aliases = |of: &Formula| of.aliases.iter().map(|alias| (*alias).to_owned()).collect();
    let aggregate = |of| Aggregate { of, aliases: aliases(of), signature: signature() };
    all.map(|of| AggregateUDF::new_from_impl(aggregate(of))).collect()
}

struct Aggregate {
    of: &'static Formula,
    aliases: Vec<String>,
    signature: Signature,
}

impl std::fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.of.name)
    }
}

/// Names are unique.
impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        self.of.name == other.of.name
    }
}

impl Eq for Aggregate {}

impl Hash for Aggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.name.hash(state);
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.of.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let numbers: Option<Vec<DataType>> = types.iter().map(double).collect();
        numbers.filter(|n| n.len() == self.of.arguments).ok_or_else(|| {
            let what = if self.of.arguments == 1 { "a number" } else { "two numbers" };
            let mut error = Error::invalid(format!("{} takes {what}", self.of.name));
            error.subject = Some(self.of.name.to_owned());
            error.into()
        })
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let values = DataType::List(crate::door::item(DataType::Float64));
            return Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), values, true))]);
        }
        let field = |n: usize| Arc::new(Field::new(format!("{}[{n}]", args.name), DataType::Float64, false));
        Ok((0..NUMBERS).map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct && self.of.arguments == 1 {
            return Ok(Box::new(Distinct { of: self.of, values: BTreeMap::new() }));
        }
        super::refuse_distinct(self.of.name, args.is_distinct)?;
        Ok(Box::new(Running { of: self.of, numbers: [0.0; NUMBERS] }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups { of: self.of, states: Vec::new() }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.of.name, args.is_distinct)?;
        Ok(Box::new(TwoStacks::new(self.of)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Calls `step` with each row in which no argument is NULL.
pub(super) fn each_row(columns: &[ArrayRef], mut step: impl FnMut(usize, &[f64])) {
    let doubles = |column: &'_ ArrayRef| column.as_primitive::<Float64Type>().clone();
    // One row at a time comes from moving frames, for which a list of columns would be most of the work.
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

/// The state of each group.
struct Groups {
    of: &'static Formula,
    states: Vec<Numbers>,
}

impl Groups {
    fn columns(states: &[Numbers]) -> Vec<ArrayRef> {
        let column = |n: usize| Arc::new(states.iter().map(|state| Some(state[n])).collect::<Float64Array>());
        (0..NUMBERS).map(|n| column(n) as ArrayRef).collect()
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.states.resize(count, [0.0; NUMBERS]);
        each_row(columns, |row, values| {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                (self.of.add)(&mut self.states[groups[row]], values);
            }
        });
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.states.resize(count, [0.0; NUMBERS]);
        each_row(columns, |row, values| {
            let mut other = [0.0; NUMBERS];
            other.iter_mut().zip(values).for_each(|(number, value)| *number = *value);
            (self.of.merge)(&mut self.states[groups[row]], &other);
        });
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        Ok(Arc::new(states.iter().map(|state| (self.of.value)(state)).collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(Groups::columns(&emit_to.take_needed(&mut self.states)))
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = columns.first().map_or(0, |c| c.len());
        let mut own = Groups { of: self.of, states: Vec::new() };
        own.update_batch(columns, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        Ok(Groups::columns(&own.states))
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<Numbers>()
    }
}

struct Running {
    of: &'static Formula,
    numbers: Numbers,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", self.of.name, self.numbers)
    }
}

impl Accumulator for Running {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        each_row(columns, |_, values| (self.of.add)(&mut self.numbers, values));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> = states.iter().map(|c| c.as_primitive::<Float64Type>()).collect();
        for row in 0..columns.first().map_or(0, |c| c.len()) {
            let mut other = [0.0; NUMBERS];
            other.iter_mut().zip(&columns).for_each(|(number, column)| *number = column.value(row));
            (self.of.merge)(&mut self.numbers, &other);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.numbers.iter().map(|n| ScalarValue::Float64(Some(*n))).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.of.value)(&self.numbers)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The same of the different values, in their order, so that the answer does not hang on the order of rows.
struct Distinct {
    of: &'static Formula,
    /// By their bits, in an order that is that of the values.
    values: BTreeMap<i64, f64>,
}

impl std::fmt::Debug for Distinct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} values", self.of.name, self.values.len())
    }
}

impl Distinct {
    fn add(&mut self, values: &ArrayRef) {
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            // Zero of either sign is one value, and so is every NaN.
            let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
            let bits = value.to_bits() as i64;
            self.values.insert(bits ^ (((bits >> 63) as u64) >> 1) as i64, value);
        }
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        columns.iter().for_each(|column| self.add(column));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states.iter().flat_map(|state| state.as_list::<i32>().iter()).flatten() {
            self.add(&list);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.values().map(|v| ScalarValue::Float64(Some(*v))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut numbers = [0.0; NUMBERS];
        self.values.values().for_each(|v| (self.of.add)(&mut numbers, &[*v]));
        Ok(ScalarValue::Float64((self.of.value)(&numbers)))
    }

    fn size(&self) -> usize {
        // A B-tree holds its pairs in nodes that are two thirds full.
        size_of::<Self>() + self.values.len() * 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                // Kahan's bound: twice the rounding of the sum, however many are added.
                let error = folded(name, &tenths, at).expect("a sum") - 100_000.0;
                assert!(error.abs() <= 2.0 * f64::EPSILON * 100_000.0, "{name} {error}");
            }
            assert_eq!(folded(name, &[f64::INFINITY, 1.0], 1), Some(f64::INFINITY));
            assert_eq!(folded(name, &[], 0), None);
        }
    }

    /// Worked out from the definitions: of 1, 2, 3, 10 the mean is 4, the powers sum up to 50, 180, 1394.
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
}
