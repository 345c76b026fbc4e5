//! `rnd_symbol_weighted(symbol, weight, …)`, `rnd_symbol_zipf(symbol, …, alpha)`, `rnd_symbol_zipf(count, alpha)` and
//! `rnd_decimal(precision, scale, null_rate)` of QuestDB.

use super::{Arguments, Dice};
use datafusion::arrow::array::{ArrayRef, Decimal128Array, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use std::sync::Arc;

/// Maximum number of symbols that are made up.
const COUNT_MAX: i64 = 1 << 20;
const ZIPF_TAKES: &str = "symbols, or a number of them, and an alpha above 0";
const DECIMAL_TAKES: &str = "a precision from 1 to 38, a scale up to the precision, and how often NULL";

pub(super) fn decimal_refused(name: &str) -> DataFusionError {
    match (Arguments { name, values: Vec::new() }).refused::<()>(DECIMAL_TAKES) {
        Err(error) => error,
        Ok(()) => crate::Error::internal("a refusal without an error").into(),
    }
}

/// Symbols and the sums of the weights up to each.
pub(super) struct Choices {
    symbols: Symbols,
    sums: Vec<f64>,
}

enum Symbols {
    Given(Vec<String>),
    /// `S0`, `S1`, ….
    Numbered,
}

fn symbol(value: &ScalarValue) -> Option<String> {
    value.try_as_str().flatten().map(str::to_owned)
}

fn number(value: &ScalarValue) -> Option<f64> {
    match (value.data_type().is_numeric(), value.cast_to(&DataType::Float64)) {
        (true, Ok(ScalarValue::Float64(number))) => number.filter(|number| number.is_finite()),
        _ => None,
    }
}

/// Adds up weights.
fn sums(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let add = |sum: &mut f64, weight: f64| {
        *sum += weight;
        Some(*sum)
    };
    weights.scan(0.0, add).collect()
}

impl Choices {
    pub fn weighted(args: &Arguments) -> Result<Choices> {
        let takes = "pairs of a symbol and a weight of 0 or more, one of them above 0";
        let (mut symbols, mut weights) = (Vec::new(), Vec::new());
        for pair in args.values.chunks(2) {
            let found = match pair {
                [name, weight] => symbol(name).zip(number(weight).filter(|weight| *weight >= 0.0)),
                _ => None,
            };
            let Some((symbol, weight)) = found else { return args.refused(takes) };
            symbols.push(symbol);
            weights.push(weight);
        }
        let sums = sums(weights.into_iter());
        if !sums.last().is_some_and(|sum| *sum > 0.0 && sum.is_finite()) {
            return args.refused(takes);
        }
        Ok(Choices { symbols: Symbols::Given(symbols), sums })
    }

    /// The symbol of rank r has the weight r^-alpha.
    pub fn zipf(args: &Arguments) -> Result<Choices> {
        let [names @ .., alpha] = &args.values[..] else { return args.refused(ZIPF_TAKES) };
        let Some(alpha) = number(alpha).filter(|alpha| *alpha > 0.0) else { return args.refused(ZIPF_TAKES) };
        let (symbols, count) = match names {
            [count] if count.data_type().is_integer() => match count.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(Some(count @ 1..=COUNT_MAX))) => (Symbols::Numbered, count as usize),
                _ => return args.refused(&format!("a number of symbols from 1 to {COUNT_MAX} and an alpha above 0")),
            },
            names => {
                let names: Option<Vec<String>> = names.iter().map(symbol).collect();
                match names.filter(|names| !names.is_empty()) {
                    Some(names) => (Symbols::Given(names.clone()), names.len()),
                    None => return args.refused(ZIPF_TAKES),
                }
            }
        };
        Ok(Choices { symbols, sums: sums((1..=count).map(|rank| (rank as f64).powf(-alpha))) })
    }

    /// Returns the position of the choice that `part` of all weights falls on.
    fn position(&self, part: f64) -> usize {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let found = self.sums.partition_point(|sum| *sum <= part * total);
        // Rounding may give the whole; the last choice with a weight comes then.
        let last = self.sums.partition_point(|sum| *sum < total);
        found.min(last)
    }
}

pub(super) fn chosen(choices: &Choices, dice: impl Iterator<Item = Dice>) -> ArrayRef {
    let symbol = |mut dice: Dice| {
        let at = choices.position(dice.part());
        match &choices.symbols {
            Symbols::Given(symbols) => symbols[at].clone(),
            Symbols::Numbered => format!("S{at}"),
        }
    };
    Arc::new(StringViewArray::from_iter_values(dice.map(symbol)))
}

/// Numbers from 0 to the greatest of a precision.
pub(super) fn decimals(args: &Arguments, dice: impl Iterator<Item = Dice>) -> Result<ArrayRef> {
    let (precision, scale, rate) = match args.integers()?[..] {
        [precision, scale] => (precision, scale, 0),
        [precision, scale, rate] => (precision, scale, rate),
        _ => return args.refused(DECIMAL_TAKES),
    };
    if !(1..=38).contains(&precision) || !(0..=precision).contains(&scale) {
        return args.refused(DECIMAL_TAKES);
    }
    let count = 10_i128.pow(precision as u32);
    let value = |mut dice: Dice| {
        if dice.is_null(rate) {
            return None;
        }
        // 127 bits: at 38 digits small numbers are drawn a little more often than large ones.
        let bits = u128::from(dice.next()) << 64 | u128::from(dice.next());
        Some((bits >> 1) as i128 % count)
    };
    let values: Decimal128Array = dice.map(value).collect();
    Ok(Arc::new(values.with_precision_and_scale(precision as u8, scale as i8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(values: Vec<ScalarValue>) -> Arguments<'static> {
        Arguments { name: "f", values }
    }

    #[test]
    fn choices_by_weight() {
        let pairs = [("a", 1), ("b", 0), ("c", 3)];
        let values = pairs.iter().flat_map(|(name, weight)| [ScalarValue::from(*name), ScalarValue::from(*weight)]);
        let choices = Choices::weighted(&args(values.collect())).expect("weights");
        assert_eq!([0.0, 0.24, 0.25, 0.99, 1.0].map(|part| choices.position(part)), [0, 0, 2, 2, 2]);
        assert!(Choices::weighted(&args(vec![ScalarValue::from("a"), ScalarValue::from(0)])).is_err());
        assert!(Choices::weighted(&args(vec![ScalarValue::from("a"), ScalarValue::from(-1)])).is_err());
        assert!(Choices::weighted(&args(vec![ScalarValue::from("a")])).is_err());
    }

    /// With alpha 1 and two symbols the weights are 1 and 1/2.
    #[test]
    fn choices_by_rank() {
        let choices = Choices::zipf(&args(vec![ScalarValue::from(2), ScalarValue::from(1.0)])).expect("a count");
        assert_eq!([0.0, 0.66, 0.67, 1.0].map(|part| choices.position(part)), [0, 0, 1, 1]);
        for bad in
            [vec![ScalarValue::from(0), ScalarValue::from(1.0)], vec![ScalarValue::from("a"), ScalarValue::from(0.0)]]
        {
            assert!(Choices::zipf(&args(bad)).is_err());
        }
    }
}
