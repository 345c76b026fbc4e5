//! Aggregates over rows in order of their time: `twap(price [, ts])`, the average of prices that hold until the next
//! comes, and `haversine_dist_deg(latitude, longitude [, ts])`, the kilometres of a way over the globe. The time is the
//! designated one when none is given ([`crate::plan::in_order_of_time`]). Rows with a NULL do not count.

use super::geo::distance_m;
use super::scalar::double;
use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// The aggregates, and how many arguments they have before the time.
pub(crate) const BY_TIME: &[(&str, usize)] = &[("twap", 1), ("haversine_dist_deg", 2)];

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Path {
    name: &'static str,
    values: usize,
    signature: Signature,
}

impl Path {
    pub fn all() -> Vec<Path> {
        let signature = || Signature::user_defined(Volatility::Immutable);
        BY_TIME.iter().map(|(name, values)| Path { name, values: *values, signature: signature() }).collect()
    }
}

impl AggregateUDFImpl for Path {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let refused = || {
            let what = if self.values == 1 { "a number" } else { "a latitude, a longitude" };
            let mut error = Error::invalid(format!("{} takes {what} and a timestamp", self.name))
                .with_hint("the timestamp can be left out where the rows have a designated one");
            error.subject = Some(self.name.to_owned());
            error
        };
        let Some((numbers, time)) = types.split_at_checked(self.values) else { return Err(refused().into()) };
        let numbers: Option<Vec<DataType>> = numbers.iter().map(double).collect();
        let mut out = numbers.ok_or_else(refused)?;
        match time {
            // Before the plan is looked at as a whole; without a time it is refused when it runs.
            [] => {}
            [time] => out.push(times::timestamp_type(time, self.name)?),
            _ => return Err(refused().into()),
        }
        Ok(out)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Arc::new(Field::new_list(format!("{}[{name}]", args.name), Field::new_list_field(item, true), true))
        };
        Ok(vec![list("times", DataType::Int64), list("first", DataType::Float64), list("second", DataType::Float64)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.name, args.is_distinct)?;
        if args.exprs.len() != self.values + 1 {
            return Err(Error::invalid(format!("{} needs the time of its rows", self.name))
                .with_hint("name it as the last argument")
                .into());
        }
        Ok(Box::new(Points { is_price: self.values == 1, points: Vec::new() }))
    }
}

#[derive(Debug)]
struct Points {
    is_price: bool,
    /// Of a price the second number is 0.
    points: Vec<(i64, f64, f64)>,
}

impl Points {
    fn add(&mut self, times: &Int64Array, first: &Float64Array, second: Option<&Float64Array>) {
        let is_valid = |row: &usize| {
            times.is_valid(*row) && first.is_valid(*row) && second.is_none_or(|second| second.is_valid(*row))
        };
        let point = |row: usize| (times.value(row), first.value(row), second.map_or(0.0, |second| second.value(row)));
        self.points.extend((0..times.len()).filter(is_valid).map(point));
    }
}

/// Prices hold until the next; the last one has no length. Of rows at one instant alone the plain average.
fn twap(points: &[(i64, f64, f64)]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    if first.0 == last.0 {
        return Some(points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64);
    }
    let area: f64 = points.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) as f64).sum();
    Some(area / (last.0 - first.0) as f64)
}

fn way_km(points: &[(i64, f64, f64)]) -> Option<f64> {
    let distance = |pair: &[(i64, f64, f64)]| distance_m((pair[0].1, pair[0].2), (pair[1].1, pair[1].2));
    (!points.is_empty()).then(|| points.windows(2).map(distance).sum::<f64>() / 1_000.0)
}

impl Accumulator for Points {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some((time, values)) = columns.split_last() else { return Ok(()) };
        let values: Vec<&Float64Array> = values.iter().map(|c| c.as_primitive::<Float64Type>()).collect();
        self.add(&times::ticks(time)?, values[0], values.get(1).copied());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists: Vec<_> = states.iter().map(|list| list.as_list::<i32>()).collect();
        for row in 0..lists[0].len() {
            let (times, first, second) = (lists[0].value(row), lists[1].value(row), lists[2].value(row));
            let (first, second) = (first.as_primitive::<Float64Type>(), second.as_primitive::<Float64Type>());
            self.add(times.as_primitive::<Int64Type>(), first, Some(second));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns: [ArrayRef; 3] = [
            Arc::new(Int64Array::from_iter_values(self.points.iter().map(|p| p.0))),
            Arc::new(Float64Array::from_iter_values(self.points.iter().map(|p| p.1))),
            Arc::new(Float64Array::from_iter_values(self.points.iter().map(|p| p.2))),
        ];
        Ok(columns.map(|list| SingleRowListArrayBuilder::new(list).build_list_scalar()).to_vec())
    }

    /// Sorted by all there is, so that the answer does not depend on which thread was first.
    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)));
        Ok(ScalarValue::Float64(if self.is_price { twap(&self.points) } else { way_km(&self.points) }))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.points.capacity() * size_of::<(i64, f64, f64)>()
    }
}
