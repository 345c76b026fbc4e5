//! `to_timestamp(seconds)`, `to_timestamp(text [, pattern])` and `to_date(text [, pattern])`.
//!
//! A pattern with a `%` is a strftime pattern. Otherwise, a pattern is PostgreSQL's if it has letters that QuestDB's
//! patterns lack, else QuestDB's ([`super::patterns`]). Most words mean the same; a pattern of `to_date` is QuestDB's only if
//! it has a word that PostgreSQL reads otherwise: `mm` beside `MM` is the minute, `MMM` the name of a month.

use super::to_char::{keywords, parsed};
use super::{patterns, times};
use crate::door::timestamps::parse_date;
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimeUnit as ArrowUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use tidalite_types::TimeUnit;

const MICROS: DataType = DataType::Timestamp(ArrowUnit::Microsecond, None);

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ToTime {
    is_date: bool,
    signature: Signature,
    stock: Arc<ScalarUDF>,
}

impl ToTime {
    pub fn all() -> [ToTime; 2] {
        [false, true].map(|is_date| {
            let stock = datafusion::functions::datetime::to_date();
            let stock =
                if is_date { stock } else { datafusion::functions::datetime::to_timestamp(&ConfigOptions::default()) };
            ToTime { is_date, signature: Signature::user_defined(Volatility::Immutable), stock }
        })
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

impl ScalarUDFImpl for ToTime {
    fn name(&self) -> &'static str {
        if self.is_date { "to_date" } else { "to_timestamp" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [first, patterns @ ..] if is_text(first) && patterns.iter().all(is_text) => {
                Ok(vec![DataType::Utf8View; types.len()])
            }
            [first] if !self.is_date && first.is_integer() => Ok(vec![DataType::Int64]),
            [first] if !self.is_date && first.is_numeric() => Ok(vec![DataType::Float64]),
            [DataType::Timestamp(unit, _)] => Ok(vec![DataType::Timestamp(*unit, None)]),
            [DataType::Date32] => Ok(vec![DataType::Date32]),
            _ => {
                let takes = if self.is_date { "a text and a pattern" } else { "seconds, or a text and a pattern" };
                Err(Error::invalid(format!("{} takes {takes}", self.name())).about(self.name()).into())
            }
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.is_date { DataType::Date32 } else { MICROS })
    }

    /// Marks a time made of seconds since 1970 as an instant.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.return_type(&[])?, true);
        let is_number = args.arg_fields.first().is_some_and(|first| first.data_type().is_numeric());
        Ok(Arc::new(if is_number { door::of_instants(field) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let found = match &columns[..] {
            [one] => self.of_one(one)?,
            [texts, patterns] if !has_strftime(patterns) => {
                let (texts, patterns) = (texts.as_string_view(), patterns.as_string_view());
                self.by_patterns(texts, patterns)?
            }
            _ => {
                let texts = columns.iter().map(|column| Ok(ColumnarValue::Array(cast(column, &DataType::Utf8)?)));
                let args =
                    ScalarFunctionArgs { args: texts.collect::<Result<_>>()?, number_rows: rows, ..args.clone() };
                self.stock.invoke_with_args(args)?.to_array(rows)?
            }
        };
        let found = cast(&found, &self.return_type(&[])?)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?));
        }
        Ok(ColumnarValue::Array(found))
    }
}

fn has_strftime(patterns: &ArrayRef) -> bool {
    patterns.as_string_view().iter().flatten().any(|pattern| pattern.contains('%'))
}

/// Returns true if a pattern has words that PostgreSQL reads otherwise.
fn is_quest(pattern: &str) -> bool {
    let has_both = pattern.contains("MM") && pattern.contains("mm");
    has_both || pattern.contains("MMM") || pattern.contains(['E', 'S', 'U', 'N'])
}

fn out_of_range() -> datafusion::common::DataFusionError {
    Error::invalid("timestamp out of range").into()
}

impl ToTime {
    fn of_one(&self, value: &ArrayRef) -> Result<ArrayRef> {
        let ticks = match value.data_type() {
            DataType::Int64 => {
                let micros = |seconds: i64| seconds.checked_mul(1_000_000).ok_or_else(out_of_range);
                let seconds = value.as_primitive::<Int64Type>().iter();
                seconds.map(|v| v.map(micros).transpose()).collect::<Result<Int64Array>>()?
            }
            DataType::Float64 => {
                let micros = |seconds: f64| {
                    let micros = (seconds * 1e6).round();
                    if micros.abs() < 9.2e18 { Ok(micros as i64) } else { Err(out_of_range()) }
                };
                let seconds = value.as_primitive::<Float64Type>().iter();
                seconds.map(|v| v.map(micros).transpose()).collect::<Result<Int64Array>>()?
            }
            DataType::Utf8View if self.is_date => {
                let day = |text: &str| parse_date(text).ok_or_else(|| Error::invalid_time("DATE", text));
                let texts = value.as_string_view().iter();
                let days = texts.map(|text| Ok(text.map(day).transpose()?)).collect::<Result<Date32Array>>()?;
                return Ok(Arc::new(days));
            }
            DataType::Utf8View => return super::text_times::micros(value),
            _ => {
                let null = ScalarValue::try_from(self.return_type(&[])?)?.to_array_of_size(value.len())?;
                let columns = [value.clone(), null];
                return super::time_casts::cast_of(&columns);
            }
        };
        times::of_ticks(ticks, &MICROS)
    }

    fn by_patterns(&self, texts: &StringViewArray, patterns: &StringViewArray) -> Result<ArrayRef> {
        let unit = if self.is_date { TimeUnit::Millis } else { TimeUnit::Micros };
        let mut known: Option<(&str, Reader)> = None;
        let mut out = Vec::with_capacity(texts.len());
        for row in 0..texts.len() {
            if texts.is_null(row) || patterns.is_null(row) {
                out.push(None);
                continue;
            }
            let (text, pattern) = (texts.value(row), patterns.value(row));
            let reader = match known.take() {
                Some((last, reader)) if last == pattern => reader,
                _ if patterns::is_foreign(pattern) || self.is_date && !is_quest(pattern) => {
                    Reader::Postgres(keywords::pieces(pattern))
                }
                _ => Reader::Quest(patterns::pieces(pattern)),
            };
            let ticks = match &reader {
                Reader::Postgres(pieces) => parsed(text, pieces, unit),
                Reader::Quest(pieces) => patterns::parsed(text, pieces, unit),
            };
            out.push(Some(ticks.ok_or_else(|| patterns::refused(text))?));
            known = Some((pattern, reader));
        }
        if self.is_date {
            let days = out.into_iter().map(|v| v.and_then(|v| i32::try_from(v.div_euclid(86_400_000)).ok()));
            return Ok(Arc::new(days.collect::<Date32Array>()));
        }
        times::of_ticks(Int64Array::from(out), &MICROS)
    }
}

/// A parsed pattern.
enum Reader {
    Postgres(Vec<keywords::Piece>),
    Quest(Vec<patterns::Piece>),
}
