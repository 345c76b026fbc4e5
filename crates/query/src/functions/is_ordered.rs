//! The aggregate `isOrdered(x)` of QuestDB: true if values never decrease from row to row.
//!
//! The order of rows is that of the designated timestamp, which [`crate::plan::in_order_of_time`] adds as the second
//! argument, or that of `isOrdered(x ORDER BY y)`; rows of one time may stand in any order. Rows with a NULL do not count.

use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

pub(crate) const NAME: &str = "isordered";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IsOrdered {
    signature: Signature,
}

impl IsOrdered {
    pub fn new() -> IsOrdered {
        IsOrdered { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for IsOrdered {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let refused = || Error::invalid("isOrdered takes a number or a timestamp").about(NAME);
        let [of, time @ ..] = types else { return Err(refused().into()) };
        let of = match of {
            of if of.is_integer() && *of != DataType::UInt64 || of.is_null() => DataType::Int64,
            of if of.is_numeric() => DataType::Float64,
            DataType::Timestamp(..) => of.clone(),
            DataType::Date32 => times::timestamp_type(of, NAME)?,
            _ => return Err(refused().into()),
        };
        match time {
            [] => Ok(vec![of]),
            [time] => Ok(vec![of, times::order_type(time, NAME)?]),
            _ => Err(refused().into()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str| {
            let item = Field::new_list_field(DataType::Int64, true);
            Arc::new(Field::new_list(format!("{}[{name}]", args.name), item, true))
        };
        let is_broken = Field::new(format!("{}[broken]", args.name), DataType::Boolean, true);
        Ok(vec![list("times"), list("keys"), Arc::new(is_broken)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct("isOrdered", args.is_distinct)?;
        if args.exprs.len() != 2 {
            return Err(times::no_order("isOrdered").into());
        }
        Ok(Box::new(Points { is_broken: false, points: Vec::new() }))
    }
}

/// Returns integers in the order of the values.
fn keys(values: &ArrayRef) -> Result<Int64Array> {
    if *values.data_type() != DataType::Float64 {
        return Ok(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone());
    }
    let key = |value: f64| {
        // Zeros of both signs and all NaNs are one value each; a negative number has its other bits flipped.
        let bits = (if value.is_nan() { f64::NAN } else { value + 0.0 }).to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    Ok(values.as_primitive::<Float64Type>().unary(key))
}

#[derive(Debug)]
struct Points {
    /// True once a later row has a smaller value; points are not kept any more then.
    is_broken: bool,
    points: Vec<(i64, i64)>,
}

impl Points {
    fn add(&mut self, times: &Int64Array, keys: &Int64Array) {
        for row in (0..keys.len()).filter(|row| keys.is_valid(*row) && times.is_valid(*row)) {
            let point = (times.value(row), keys.value(row));
            if self.points.last().is_some_and(|last| is_decrease(*last, point) || is_decrease(point, *last)) {
                self.is_broken = true;
            }
            if self.is_broken {
                self.points = Vec::new();
                return;
            }
            self.points.push(point);
        }
    }
}

/// Returns true if the second point is later and less.
fn is_decrease(a: (i64, i64), b: (i64, i64)) -> bool {
    a.0 < b.0 && a.1 > b.1
}

impl Accumulator for Points {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(&times::ticks(&columns[1])?, &keys(&columns[0])?);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (times, keys, broken) = (states[0].as_list::<i32>(), states[1].as_list::<i32>(), states[2].as_boolean());
        for row in 0..times.len() {
            self.is_broken |= broken.is_valid(row) && broken.value(row);
            let (times, keys) = (times.value(row), keys.value(row));
            self.add(times.as_primitive::<Int64Type>(), keys.as_primitive::<Int64Type>());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let column = |part: fn(&(i64, i64)) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(self.points.iter().map(part)))
        };
        let lists = [column(|point| point.0), column(|point| point.1)];
        let mut state = lists.map(|list| SingleRowListArrayBuilder::new(list).build_list_scalar()).to_vec();
        state.push(ScalarValue::Boolean(Some(self.is_broken)));
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.points.sort_unstable();
        let is_ordered = !self.is_broken && self.points.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        Ok(ScalarValue::Boolean(Some(is_ordered)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.capacity() * size_of::<(i64, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;

    fn is_ordered(times: &[i64], values: &[f64]) -> ScalarValue {
        let mut points = Points { is_broken: false, points: Vec::new() };
        let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        points.add(&Int64Array::from(times.to_vec()), &keys(&values).expect("numbers"));
        points.evaluate().expect("a flag")
    }

    #[test]
    fn values_in_the_order_of_time() {
        let flag = |flag| ScalarValue::Boolean(Some(flag));
        assert_eq!(is_ordered(&[1, 2, 3], &[-1.0, -0.0, 0.0]), flag(true));
        assert_eq!(is_ordered(&[3, 1, 2], &[9.0, -5.0, -4.0]), flag(true));
        assert_eq!(is_ordered(&[1, 2, 3, 4], &[1.0, 2.0, 3.0, 2.0]), flag(false));
        assert_eq!(is_ordered(&[1, 5, 3], &[1.0, 5.0, 6.0]), flag(false));
        assert_eq!(is_ordered(&[1, 1], &[2.0, 1.0]), flag(true));
        assert_eq!(is_ordered(&[], &[]), flag(true));
    }
}
