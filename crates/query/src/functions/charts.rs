//! `bar(value, min, max, width)` and the aggregate `sparkline(value [, min, max, width])`: numbers drawn with block
//! characters, as QuestDB defines them.
//!
//! The values of a sparkline are in the order of the designated timestamp, which [`crate::plan::in_order_of_time`]
//! adds as the last argument, or that of `sparkline(x ORDER BY y)`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar, double};
use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// QuestDB's limit of 1 MiB, at three bytes for a character.
const CHARS_MAX: usize = (1 << 20) / 3;
/// Bytes of all bars of a batch.
const BYTES_MAX: usize = 64 << 20;
/// Horizontal eighths, from one eighth to a full block.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Vertical eighths.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: "bar",
    takes: "a number, the least and the greatest number, and a width",
    kinds: &[Kind::Double, Kind::Double, Kind::Double, Kind::Long],
    gives: Gives::Text,
    call: bars,
    ..PLAIN
}];

fn bars(call: &Call) -> Result<ArrayRef> {
    let [value, least, greatest] = [0, 1, 2].map(|n| call.columns[n].as_primitive::<Float64Type>());
    let widths = call.columns[3].as_primitive::<Int64Type>();
    let mut bytes = 0;
    let text = |row: usize| -> Result<Option<String>> {
        if call.columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let width = widths.value(row);
        let Some(width) = usize::try_from(width).ok().filter(|width| (1..=CHARS_MAX).contains(width)) else {
            let text = format!("bar takes a width from 1 to {CHARS_MAX}, not {width}");
            return Err(Error::invalid(text).about("bar").into());
        };
        let text = bar(value.value(row), least.value(row), greatest.value(row), width);
        bytes += text.as_ref().map_or(0, String::len);
        if bytes > BYTES_MAX {
            return Err(Error::invalid(format!("bars would take more than {} MiB", BYTES_MAX >> 20))
                .about("bar")
                .into());
        }
        Ok(text)
    };
    Ok(Arc::new((0..call.rows).map(text).collect::<Result<StringViewArray>>()?))
}

/// Draws one value; `None` without a range.
fn bar(value: f64, least: f64, greatest: f64, width: usize) -> Option<String> {
    if value.is_nan() || least >= greatest || least.is_nan() || greatest.is_nan() {
        return None;
    }
    let part = ((value - least) / (greatest - least)).clamp(0.0, 1.0);
    // An infinite range has no parts.
    let part = if part.is_nan() { return None } else { part };
    let eighths = (part * (width * 8) as f64).round() as usize;
    let mut out = String::from('█').repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(EIGHTHS[eighths % 8 - 1]);
    }
    Some(out)
}

/// The least and greatest value and the width of a sparkline, as given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Frame {
    least: Option<f64>,
    greatest: Option<f64>,
    width: Option<usize>,
}

/// Draws values in order; `None` without values.
fn sparkline(values: &[f64], frame: Frame) -> Option<String> {
    let values = sampled(values, frame.width.unwrap_or(usize::MAX));
    let least = frame.least.or_else(|| values.iter().copied().reduce(f64::min))?;
    let greatest = frame.greatest.or_else(|| values.iter().copied().reduce(f64::max))?;
    let level = |value: f64| {
        let part = (value - least) / (greatest - least);
        // Without a range every character is full.
        let is_flat = least >= greatest || part.is_nan();
        if is_flat { 7 } else { (part.clamp(0.0, 1.0) * 7.0).round() as usize }
    };
    (!values.is_empty()).then(|| values.iter().map(|value| LEVELS[level(*value)]).collect())
}

/// Averages values in `width` buckets of the same length, if there are more values.
fn sampled(values: &[f64], width: usize) -> Vec<f64> {
    if values.len() <= width {
        return values.to_vec();
    }
    let bucket = |n: usize| {
        let (from, to) = (n * values.len() / width, (n + 1) * values.len() / width);
        values[from..to].iter().sum::<f64>() / (to - from) as f64
    };
    (0..width).map(bucket).collect()
}

/// The name and the numbers of arguments before the time.
pub(crate) const SPARKLINE: &str = "sparkline";
pub(crate) const SPARKLINE_ARGUMENTS: [usize; 2] = [1, 4];

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sparkline {
    signature: Signature,
}

impl Sparkline {
    pub fn new() -> Sparkline {
        Sparkline { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Sparkline {
    fn name(&self) -> &'static str {
        SPARKLINE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let refused = || {
            Error::invalid("sparkline takes a number, or a number, the least and the greatest number, and a width")
                .about(SPARKLINE)
        };
        let is_time = |n: usize| SPARKLINE_ARGUMENTS.contains(&n) && n + 1 == types.len();
        if !SPARKLINE_ARGUMENTS.iter().any(|count| types.len() == *count || types.len() == count + 1) {
            return Err(refused().into());
        }
        let coerced = |(n, given): (usize, &DataType)| match n {
            n if is_time(n) => times::order_type(given, SPARKLINE),
            3 if given.is_integer() || given.is_null() => Ok(DataType::Int64),
            0..3 => Ok(double(given).ok_or_else(refused)?),
            _ => Err(refused().into()),
        };
        types.iter().enumerate().map(coerced).collect()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Arc::new(Field::new_list(format!("{}[{name}]", args.name), Field::new_list_field(item, true), true))
        };
        let number = |name: &str, of: DataType| Arc::new(Field::new(format!("{}[{name}]", args.name), of, true));
        Ok(vec![
            list("times", DataType::Int64),
            list("values", DataType::Float64),
            number("least", DataType::Float64),
            number("greatest", DataType::Float64),
            number("width", DataType::Int64),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(SPARKLINE, args.is_distinct)?;
        let count = args.exprs.len();
        let has_frame = count >= SPARKLINE_ARGUMENTS[1];
        if SPARKLINE_ARGUMENTS.contains(&count) {
            return Err(times::no_order(SPARKLINE).into());
        }
        Ok(Box::new(Points { has_frame, points: Vec::new(), frame: Frame::default() }))
    }
}

/// The values of a group with their times.
#[derive(Debug)]
struct Points {
    has_frame: bool,
    points: Vec<(i64, f64)>,
    frame: Frame,
}

impl Points {
    fn add(&mut self, times: &Int64Array, values: &Float64Array) -> Result<()> {
        let is_valid = |row: &usize| values.is_valid(*row) && times.is_valid(*row);
        self.points.extend((0..values.len()).filter(is_valid).map(|row| (times.value(row), values.value(row))));
        // A width limits the text, not the points of the state, which the memory limit covers.
        if self.frame.width.is_none() && self.points.len() > CHARS_MAX {
            return Err(Error::invalid(format!("a sparkline would have more than {CHARS_MAX} characters"))
                .about(SPARKLINE)
                .with_hint("sparkline(value, NULL, NULL, width) averages values")
                .into());
        }
        Ok(())
    }

    fn frame(&mut self, numbers: [&ArrayRef; 3]) -> Result<()> {
        let [least, greatest] = [0, 1].map(|n| numbers[n].as_primitive::<Float64Type>().iter().flatten().next());
        let width = numbers[2].as_primitive::<Int64Type>().iter().flatten().next();
        let refused = || Error::invalid(format!("sparkline takes a width from 1 to {CHARS_MAX}")).about(SPARKLINE);
        let width = match width {
            None => None,
            Some(width) => {
                Some(usize::try_from(width).ok().filter(|w| (1..=CHARS_MAX).contains(w)).ok_or_else(refused)?)
            }
        };
        let own = self.frame;
        self.frame =
            Frame { least: own.least.or(least), greatest: own.greatest.or(greatest), width: own.width.or(width) };
        Ok(())
    }
}

impl Accumulator for Points {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        if self.has_frame {
            self.frame([&columns[1], &columns[2], &columns[3]])?;
        }
        let times = columns.last().ok_or_else(|| times::no_order(SPARKLINE))?;
        self.add(&times::ticks(times)?, columns[0].as_primitive::<Float64Type>())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.frame([&states[2], &states[3], &states[4]])?;
        let (times, values) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for row in 0..times.len() {
            let (times, values) = (times.value(row), values.value(row));
            self.add(times.as_primitive::<Int64Type>(), values.as_primitive::<Float64Type>())?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns: [ArrayRef; 2] = [
            Arc::new(Int64Array::from_iter_values(self.points.iter().map(|point| point.0))),
            Arc::new(Float64Array::from_iter_values(self.points.iter().map(|point| point.1))),
        ];
        let mut state = columns.map(|list| SingleRowListArrayBuilder::new(list).build_list_scalar()).to_vec();
        state.extend([self.frame.least, self.frame.greatest].map(ScalarValue::Float64));
        state.push(ScalarValue::Int64(self.frame.width.and_then(|width| i64::try_from(width).ok())));
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let values: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        Ok(ScalarValue::Utf8View(sparkline(&values, self.frame)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.capacity() * size_of::<(i64, f64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(5.0, 0.0, 10.0, 4).as_deref(), Some("██"));
        // 1/16 of two characters is one eighth.
        assert_eq!(bar(1.0, 0.0, 16.0, 2).as_deref(), Some("▏"));
        assert_eq!(bar(7.0, 0.0, 8.0, 1).as_deref(), Some("▉"));
        assert_eq!([bar(-3.0, 0.0, 1.0, 3), bar(9.0, 0.0, 1.0, 3)], [Some(String::new()), Some("███".to_owned())]);
        assert_eq!([bar(1.0, 2.0, 2.0, 3), bar(f64::NAN, 0.0, 1.0, 3)], [const { None }; 2]);
    }

    #[test]
    fn sparklines_have_one_character_for_a_value() {
        let values: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(sparkline(&values, Frame::default()).as_deref(), Some("▁▂▃▄▅▆▇█"));
        let frame = Frame { least: Some(0.0), greatest: Some(14.0), width: None };
        assert_eq!(sparkline(&[0.0, 2.0, 99.0, -1.0], frame).as_deref(), Some("▁▂█▁"));
        assert_eq!(sparkline(&[3.0, 3.0], Frame::default()).as_deref(), Some("██"));
        assert_eq!(sparkline(&[], Frame::default()), None);
        // Means 0.5, 2.5, 4.5 and 6.5 of pairs.
        assert_eq!(sampled(&values, 4), [0.5, 2.5, 4.5, 6.5]);
    }
}
