//! `to_char(x, pattern)` of times, intervals and numbers with PostgreSQL's patterns, and the parser of such patterns
//! for `to_date(text, pattern)`. A pattern with a `%` is a strftime pattern.

pub(super) mod keywords;
mod numbers;
mod read;
mod show;

pub(super) use read::parsed;

use super::time_casts::{interval, of_interval};
use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Time64NanosecondType, TimeUnit as ArrowUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use keywords::{Piece, pieces};
use std::sync::Arc;
use tidalite_types::Interval;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ToChar {
    signature: Signature,
    stock: Arc<ScalarUDF>,
}

impl ToChar {
    pub fn new() -> ToChar {
        let signature = Signature::user_defined(Volatility::Immutable);
        ToChar { signature, stock: datafusion::functions::datetime::to_char() }
    }
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &'static str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, _] = types else {
            return Err(Error::invalid("to_char takes a time, an interval or a number, and a pattern").into());
        };
        let value = match value {
            DataType::Interval(_) | DataType::Duration(_) => value.clone(),
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(ArrowUnit::Nanosecond),
            DataType::Decimal128(..) => value.clone(),
            value if value.is_integer() => DataType::Decimal128(20, 0),
            value if value.is_numeric() => DataType::Float64,
            value => times::timestamp_type(value, "to_char")?,
        };
        Ok(vec![value, DataType::Utf8View])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let [values, patterns] = &columns[..] else { return Err(Error::internal("to_char without a pattern").into()) };
        let is_strftime = patterns.as_string_view().iter().flatten().any(|pattern| pattern.contains('%'));
        let texts = if is_strftime { self.strftime(&args, rows)? } else { texts(values, patterns.as_string_view())? };
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?));
        }
        Ok(ColumnarValue::Array(texts))
    }
}

impl ToChar {
    fn strftime(&self, args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
        let pattern = match &args.args[1] {
            ColumnarValue::Scalar(pattern) => ColumnarValue::Scalar(pattern.cast_to(&DataType::Utf8)?),
            ColumnarValue::Array(patterns) => ColumnarValue::Array(cast(patterns, &DataType::Utf8)?),
        };
        let stock = ScalarFunctionArgs { args: vec![args.args[0].clone(), pattern], ..args.clone() };
        Ok(cast(&self.stock.invoke_with_args(stock)?.to_array(rows)?, &DataType::Utf8View)?)
    }
}

fn texts(values: &ArrayRef, patterns: &StringViewArray) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            let decimals = values.as_primitive::<datafusion::arrow::datatypes::Decimal128Type>();
            each(values, patterns, numbers::Format::parse, |row, format| {
                Ok(format.shown(&numbers::Digits::of_decimal(decimals.value(row), scale)))
            })
        }
        DataType::Float64 => {
            let doubles = values.as_primitive::<Float64Type>();
            each(values, patterns, numbers::Format::parse, |row, format| {
                Ok(format.shown(&numbers::Digits::of_double(doubles.value(row))))
            })
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let lengths = of_interval(values)?;
            each(values, patterns, time_pattern, |row, pieces| show::length(interval(lengths.value(row)), pieces))
        }
        DataType::Time64(_) => {
            let clocks = values.as_primitive::<Time64NanosecondType>();
            each(values, patterns, time_pattern, |row, pieces| {
                show::length(Interval { months: 0, days: 0, nanos: clocks.value(row) }, pieces)
            })
        }
        _ => {
            let (unit, ticks) = (times::unit(values.data_type())?, times::ticks(values)?);
            each(values, patterns, time_pattern, |row, pieces| Ok(show::timestamp(ticks.value(row), unit, pieces)))
        }
    }
}

fn time_pattern(pattern: &str) -> Result<Vec<Piece>> {
    Ok(pieces(pattern))
}

/// Formats each row; the parsed pattern of the previous row is reused if it is the same.
fn each<P>(
    values: &ArrayRef,
    patterns: &StringViewArray,
    parse: fn(&str) -> Result<P>,
    text: impl Fn(usize, &P) -> Result<String>,
) -> Result<ArrayRef> {
    let mut known: Option<(&str, P)> = None;
    let mut out = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        if values.is_null(row) || patterns.is_null(row) {
            out.push(None);
            continue;
        }
        let pattern = patterns.value(row);
        let format = match known.take() {
            Some((last, format)) if last == pattern => format,
            _ => parse(pattern)?,
        };
        out.push(Some(text(row, &format)?));
        known = Some((pattern, format));
    }
    Ok(Arc::new(out.into_iter().collect::<StringViewArray>()))
}
