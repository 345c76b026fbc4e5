//! Exact `sum` of integers and decimals and `avg` of decimals: sums have 256 bits, so only a result that does not fit
//! its type is an error, independent of the row order. A sum of LONG is a LONG.

use crate::Error;
use crate::decimal::{self, Decimal, arrow_decimal, decimal_type, divided};
use crate::functions::decimal_arithmetic::{decimal_array, wide_values};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, Int64Array, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_operators::wide_sums::{self, WideSum};

/// Minimum digits after the point of a mean, as PostgreSQL has for small numbers.
const MEAN_SCALE_MIN: i32 = 16;

const CAST_HINT: &str = "cast the argument to DECIMAL(38,0)";

/// An exact sum or mean of one type.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    is_mean: bool,
    /// The scale of the argument.
    scale: i32,
    /// The type of the result.
    data_type: DataType,
}

/// Returns the type of a mean of decimals: the integer digits of the values, at most 38 digits in all.
pub(super) fn mean_type(of: &DataType) -> Option<DataType> {
    let (precision, scale) = decimal_type(of)?;
    let (precision, scale) = (i32::from(precision), i32::from(scale));
    let digits = if precision <= 38 { 38 } else { 76 };
    let own = scale.max(MEAN_SCALE_MIN).min(digits - (precision - scale));
    Some(arrow_decimal(precision - scale + own, own))
}

impl Exact {
    /// Creates an exact aggregate; `None` for other types.
    pub fn new(is_mean: bool, of: &DataType, data_type: &DataType) -> Option<Exact> {
        let scale = match of {
            DataType::Int64 | DataType::UInt64 if !is_mean => 0,
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i32::from(*scale),
            _ => return None,
        };
        Some(Exact { is_mean, scale, data_type: data_type.clone() })
    }

    pub fn of_arguments(is_mean: bool, args: &AccumulatorArgs) -> Option<Exact> {
        Exact::new(is_mean, args.expr_fields.first()?.data_type(), args.return_field.data_type())
    }

    pub fn state_fields(args: &StateFieldsArgs) -> Vec<FieldRef> {
        let digits = DataType::Decimal256(decimal::WIDE_DIGITS, 0);
        if args.is_distinct {
            let values = DataType::List(crate::door::item(digits));
            return vec![Arc::new(Field::new(format!("{}[values]", args.name), values, true))];
        }
        let field = |name: &str, of| Arc::new(Field::new(format!("{}[{name}]", args.name), of, true));
        vec![field("sum", digits), field("count", DataType::Int64)]
    }

    pub fn accumulator(self, is_distinct: bool) -> Box<dyn Accumulator> {
        match is_distinct {
            true => Box::new(DistinctSum { of: self, values: HashMap::new() }),
            false => Box::new(OneSum { of: self, sum: WideSum::default() }),
        }
    }

    pub fn groups(self) -> Box<dyn GroupsAccumulator> {
        Box::new(Sums { of: self, sums: Vec::new() })
    }

    /// Converts a sum to the digits of the result; `None` without rows.
    fn digits(&self, sum: &WideSum) -> Result<Option<i256>> {
        let (sum, count) = (sum.sum(), sum.count);
        if count == 0 {
            return Ok(None);
        }
        if !self.is_mean {
            return Ok(Some(sum));
        }
        let (precision, scale) = decimal_type(&self.data_type).unwrap_or((38, 0));
        let up = decimal::power(u32::try_from(i32::from(scale) - self.scale).unwrap_or(0));
        let mean = up.and_then(|up| divided(sum.checked_mul(up)?, i256::from_i128(count.into())));
        let sum = || Decimal { digits: sum, scale: self.scale }.text();
        let mean = mean.ok_or_else(|| decimal::overflow(&format!("{} / {count}", sum()), precision, scale))?;
        Ok(Some(mean))
    }

    /// Returns the result of one sum as LONG; `None` for other types.
    fn long(&self, sum: &WideSum) -> Option<Result<Option<i64>>> {
        if self.data_type != DataType::Int64 {
            return None;
        }
        let long = || sum.sum().to_i128().and_then(|sum| i64::try_from(sum).ok());
        let past_end = || Error::sum_past_end().with_hint(CAST_HINT).into();
        Some(if sum.count == 0 { Ok(None) } else { long().map(Some).ok_or_else(past_end) })
    }

    fn array(&self, sums: &[WideSum]) -> Result<ArrayRef> {
        let digits = sums.iter().map(|sum| self.digits(sum)).collect::<Result<Vec<_>>>()?;
        let out_of_range = || Error::sum_past_end().with_hint(CAST_HINT);
        let long = |digits: i256| digits.to_i128().ok_or_else(out_of_range);
        match self.data_type {
            DataType::Int64 => {
                let value = |digits: i256| i64::try_from(long(digits)?).map_err(|_| out_of_range());
                let values = digits.into_iter().map(|digits| digits.map(value).transpose());
                Ok(Arc::new(values.collect::<crate::Result<Int64Array>>()?))
            }
            DataType::UInt64 => {
                let value = |digits: i256| u64::try_from(long(digits)?).map_err(|_| out_of_range());
                let values = digits.into_iter().map(|digits| digits.map(value).transpose());
                Ok(Arc::new(values.collect::<crate::Result<UInt64Array>>()?))
            }
            _ => {
                let (precision, scale) = decimal_type(&self.data_type).unwrap_or((38, 0));
                if let Some(large) = digits.iter().flatten().find(|digits| !decimal::fits(**digits, precision)) {
                    let text = Decimal { digits: *large, scale: scale.into() }.text();
                    return Err(decimal::overflow(&format!("the sum {text}"), precision, scale).into());
                }
                let nulls: NullBuffer = digits.iter().map(Option::is_some).collect::<Vec<_>>().into();
                let values = digits.into_iter().map(|digits| digits.unwrap_or(i256::ZERO)).collect();
                decimal_array(values, Some(nulls), &self.data_type)
            }
        }
    }
}

/// Returns the digits of each row.
fn digits_of(array: &ArrayRef) -> Box<dyn Fn(usize) -> i256 + '_> {
    match array.data_type() {
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            Box::new(move |row| i256::from_i128(values[row].into()))
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            Box::new(move |row| i256::from_i128(values[row].into()))
        }
        _ => wide_values(array),
    }
}

fn each(array: &ArrayRef, mut step: impl FnMut(usize, i256) -> Result<()>) -> Result<()> {
    let digits = digits_of(array);
    (0..array.len()).filter(|row| array.is_valid(*row)).try_for_each(|row| step(row, digits(row)))
}

/// Accumulator of all rows, or of the rows in a frame: integers can be subtracted again.
#[derive(Debug)]
struct OneSum {
    of: Exact,
    sum: WideSum,
}

impl Accumulator for OneSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.add_all(&values[0], false);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.add_all(&values[0], true);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; states[0].len()];
        wide_sums::merge_to_groups(std::slice::from_mut(&mut self.sum), &groups, states);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal256(Some(self.sum.sum()), decimal::WIDE_DIGITS, 0);
        Ok(vec![sum, ScalarValue::Int64(Some(self.sum.count))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.of.long(&self.sum) {
            Some(long) => Ok(ScalarValue::Int64(long?)),
            None => ScalarValue::try_from_array(&self.of.array(&[self.sum])?, 0),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Accumulator of the distinct values.
#[derive(Debug)]
struct DistinctSum {
    of: Exact,
    /// Each value with its number of rows.
    values: HashMap<i256, i64>,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(&values[0], |_, digits| {
            *self.values.entry(digits).or_default() += 1;
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(&values[0], |_, digits| {
            if let Some(rows) = self.values.get_mut(&digits) {
                *rows -= 1;
                if *rows == 0 {
                    self.values.remove(&digits);
                }
            }
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let value = |digits: &i256| ScalarValue::Decimal256(Some(*digits), decimal::WIDE_DIGITS, 0);
        let values: Vec<ScalarValue> = self.values.keys().map(value).collect();
        let data_type = DataType::Decimal256(decimal::WIDE_DIGITS, 0);
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &data_type))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = WideSum::default();
        self.values.keys().for_each(|digits| sum.join(&WideSum::new(*digits, 1)));
        ScalarValue::try_from_array(&self.of.array(&[sum])?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<(i256, i64, u64)>()
    }
}

/// Accumulator of each group.
#[derive(Debug)]
struct Sums {
    of: Exact,
    sums: Vec<WideSum>,
}

fn columns_of(sums: &[WideSum]) -> Result<Vec<ArrayRef>> {
    let digits = sums.iter().map(|sum| Some(sum.sum())).collect::<Decimal256Array>();
    let counts = sums.iter().map(|sum| Some(sum.count)).collect::<Int64Array>();
    let digits = digits.with_precision_and_scale(decimal::WIDE_DIGITS, 0)?;
    Ok(vec![Arc::new(digits), Arc::new(counts)])
}

impl GroupsAccumulator for Sums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.sums.resize(count, WideSum::default());
        wide_sums::add_to_groups(&mut self.sums, groups, &values[0], filter);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.sums.resize(count, WideSum::default());
        wide_sums::merge_to_groups(&mut self.sums, groups, states);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        self.of.array(&sums)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        columns_of(&emit_to.take_needed(&mut self.sums))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut own = Sums { of: self.of.clone(), sums: Vec::new() };
        own.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        columns_of(&own.sums)
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<WideSum>()
    }
}
