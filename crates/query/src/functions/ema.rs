//! `avg(x, kind, n [, volume]) OVER (… ORDER BY ts)`: exponential moving averages, plain and weighted by volume, as
//! QuestDB defines them.
//!
//! The factor is `n` for the kind `'alpha'`, `2 / (n + 1)` for `'period'`, and `1 - exp(-Δt / n units)` for a unit of
//! time. The frame has no effect: each row counts all rows of its partition up to it. [`crate::plan::calls`] puts the
//! function in the place of `avg`.

use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;

/// The function's name; clients see the name `avg`.
const NAME: &str = "__exponential_avg";
const TAKES: &str = "avg takes a number, one of 'alpha', 'period', 'second', 'minute', 'hour', 'day' and 'week', and a number \
                     that is the same for all rows";

/// Units of time and their seconds.
const UNITS: [(&str, f64); 5] =
    [("second", 1.0), ("minute", 60.0), ("hour", 3_600.0), ("day", 86_400.0), ("week", 604_800.0)];

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exponential {
    has_volume: bool,
    /// True if the last argument is the first column of ORDER BY.
    has_order: bool,
    signature: Signature,
}

/// Returns the function of a value, a kind, a number, a volume if `has_volume`, and the order if `has_order`.
pub(crate) fn exponential(has_volume: bool, has_order: bool) -> WindowUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    WindowUDF::new_from_impl(Exponential { has_volume, has_order, signature })
}

fn refused() -> Error {
    Error::invalid(TAKES).about("avg")
}

/// The factor of a row: the weight of its value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    Fixed(f64),
    /// Decay per nanosecond.
    Time(f64),
}

impl Factor {
    fn parse(kind: &str, number: f64) -> Result<Factor> {
        let kind = kind.trim().to_ascii_lowercase();
        let wrong = |what: &str| Error::invalid(format!("avg takes {what}, not {number}")).about("avg");
        match kind.as_str() {
            "alpha" if number > 0.0 && number <= 1.0 => Ok(Factor::Fixed(number)),
            "alpha" => Err(wrong("an alpha above 0 and up to 1").into()),
            "period" if number >= 1.0 && number.is_finite() => Ok(Factor::Fixed(2.0 / (number + 1.0))),
            "period" => Err(wrong("a period of at least 1").into()),
            unit => {
                let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                    return Err(refused().into());
                };
                if number > 0.0 && number.is_finite() {
                    Ok(Factor::Time(1.0 / (number * seconds * 1e9)))
                } else {
                    Err(wrong("a length above 0").into())
                }
            }
        }
    }

    /// Returns the factor of a row that is `nanos` apart from the previous row.
    fn of(self, nanos: f64) -> f64 {
        match self {
            Factor::Fixed(alpha) => alpha,
            // exp_m1 keeps the digits of short times.
            Factor::Time(decay) => -(-nanos * decay).exp_m1(),
        }
    }
}

/// The values of a partition in order.
struct Rows<'a> {
    values: &'a Float64Array,
    volumes: Option<&'a Float64Array>,
    /// Nanoseconds, where the factor depends on time.
    times: Option<Vec<Option<i128>>>,
}

fn averages(factor: Factor, rows: &Rows) -> Float64Array {
    // The average is numerator / denominator; without volumes the denominator stays 1.
    let mut state: Option<(f64, f64)> = None;
    let mut last_time = None;
    let one = |row: usize| {
        let shown = |state: Option<(f64, f64)>| state.map(|(numerator, denominator)| numerator / denominator);
        let volume = rows.volumes.map_or(Some(1.0), |v| (v.is_valid(row) && v.value(row) != 0.0).then(|| v.value(row)));
        let time = rows.times.as_ref().map_or(Some(0), |times| times[row]);
        let (Some(volume), Some(time), true) = (volume, time, rows.values.is_valid(row)) else { return shown(state) };
        let value = rows.values.value(row);
        state = Some(match state {
            None => (value * volume, volume),
            Some((numerator, denominator)) => {
                let alpha = factor.of(time.abs_diff(last_time.unwrap_or(time)) as f64);
                match rows.volumes {
                    None => (alpha * value + (1.0 - alpha) * numerator, 1.0),
                    Some(_) => (
                        alpha * value * volume + (1.0 - alpha) * numerator,
                        alpha * volume + (1.0 - alpha) * denominator,
                    ),
                }
            }
        });
        last_time = Some(time);
        shown(state)
    };
    (0..rows.values.len()).map(one).collect()
}

impl WindowUDFImpl for Exponential {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let count = 3 + usize::from(self.has_volume) + usize::from(self.has_order);
        if types.len() != count {
            return Err(refused().into());
        }
        let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let coerced = |(n, given): (usize, &DataType)| match n {
            1 if is_text(given) => Ok(DataType::Utf8),
            0 | 2 if given.is_numeric() || given.is_null() => Ok(DataType::Float64),
            3 if self.has_volume && (given.is_numeric() || given.is_null()) => Ok(DataType::Float64),
            n if self.has_order && n + 1 == count => Ok(given.clone()),
            _ => Err(refused().into()),
        };
        types.iter().enumerate().map(coerced).collect()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Float64, true)))
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::NotSupported
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let constant = |n: usize, to: &DataType| -> Result<ScalarValue> {
            let literal = args.input_exprs().get(n).and_then(|expr| expr.downcast_ref::<Literal>());
            Ok(literal.ok_or_else(refused)?.value().cast_to(to)?)
        };
        let (kind, number) = (constant(1, &DataType::Utf8)?, constant(2, &DataType::Float64)?);
        let (ScalarValue::Utf8(Some(kind)), ScalarValue::Float64(Some(number))) = (kind, number) else {
            return Err(refused().into());
        };
        let factor = Factor::parse(&kind, number)?;
        if matches!(factor, Factor::Time(_)) && !self.has_order {
            return Err(Error::invalid("avg by time needs ORDER BY a timestamp in its window").about("avg").into());
        }
        Ok(Box::new(Evaluator { factor, has_volume: self.has_volume }))
    }
}

#[derive(Debug)]
struct Evaluator {
    factor: Factor,
    has_volume: bool,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, columns: &[ArrayRef], _: usize) -> Result<ArrayRef> {
        let times = match self.factor {
            Factor::Fixed(_) => None,
            Factor::Time(_) => Some(nanos(columns.last().ok_or_else(refused)?)?),
        };
        let volumes = self.has_volume.then(|| columns[3].as_primitive::<Float64Type>());
        let rows = Rows { values: columns[0].as_primitive::<Float64Type>(), volumes, times };
        Ok(Arc::new(averages(self.factor, &rows)))
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn uses_window_frame(&self) -> bool {
        false
    }
}

fn nanos(column: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let unit = times::unit(column.data_type())
        .map_err(|_| Error::invalid("avg by time needs ORDER BY a timestamp in its window").about("avg"))?;
    let ticks: Int64Array = times::ticks(column)?;
    let per_tick = i128::from(1_000_000_000 / unit.per_second());
    Ok(ticks.iter().map(|ts| ts.map(|ts| i128::from(ts) * per_tick)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(factor: Factor, values: &[Option<f64>], volumes: Option<&[f64]>, times: Option<&[i128]>) -> Vec<Option<f64>> {
        let values = Float64Array::from(values.to_vec());
        let volumes = volumes.map(|volumes| Float64Array::from(volumes.to_vec()));
        let times = times.map(|times| times.iter().copied().map(Some).collect());
        averages(factor, &Rows { values: &values, volumes: volumes.as_ref(), times }).iter().collect()
    }

    /// Expected values by the formula: 10, 0.5·20 + 0.5·10 = 15, kept over NULL, 0.5·15 + 0.5·30 = 22.5.
    #[test]
    fn averages_by_a_factor() {
        let values = [None, Some(10.0), Some(20.0), None, Some(30.0)];
        let expected = [None, Some(10.0), Some(15.0), Some(15.0), Some(22.5)];
        assert_eq!(of(Factor::Fixed(0.5), &values, None, None), expected);
        assert_eq!(Factor::parse("Period", 3.0).expect("a factor"), Factor::Fixed(0.5));
    }

    /// Numerators 10, 0.5·20·3 + 0.5·10 = 35; denominators 1, 0.5·3 + 0.5·1 = 2. A volume of zero is skipped.
    #[test]
    fn averages_weighted_by_volume() {
        let values = [10.0, 99.0, 20.0].map(Some);
        let found = of(Factor::Fixed(0.5), &values, Some(&[1.0, 0.0, 3.0]), None);
        assert_eq!(found, [10.0, 10.0, 17.5].map(Some));
    }

    /// After ln 2 units the factor is 1/2; two rows at one time leave the average.
    #[test]
    fn averages_by_time() {
        let half = (std::f64::consts::LN_2 * 1e9).round() as i128;
        let factor = Factor::parse("second", 1.0).expect("a factor");
        let found = of(factor, &[10.0, 20.0, 500.0].map(Some), None, Some(&[0, half, half]));
        let found: Vec<f64> = found.into_iter().flatten().collect();
        assert!((found[1] - 15.0).abs() < 1e-8 && found[2] == found[1], "{found:?}");
        // In descending order the distance is the same.
        let found = of(factor, &[10.0, 20.0].map(Some), None, Some(&[half, 0]));
        assert!(found[1].is_some_and(|average| (average - 15.0).abs() < 1e-8), "{found:?}");
    }

    #[test]
    fn factors_out_of_range_are_refused() {
        for (kind, number) in
            [("alpha", 0.0), ("alpha", 1.5), ("alpha", f64::NAN), ("period", 0.5), ("hour", 0.0), ("month", 1.0)]
        {
            assert!(Factor::parse(kind, number).is_err(), "{kind} {number}");
        }
    }
}
