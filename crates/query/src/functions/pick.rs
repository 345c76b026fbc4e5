//! `first(x)`, `last(x)`, `first_not_null(x)`, `last_not_null(x)`, `arg_min(x, y)`, `arg_max(x, y)`: the value of one row of
//! a group. The first four go by the time of the rows, which [`crate::plan::in_order_of_time`] gives them as a second
//! argument; where rows have none, by the order they come in.

use super::nested::order;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, TypeSignature, Volatility};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rule {
    is_greatest: bool,
    /// Of rows with the same key the one that comes later.
    is_later: bool,
    skips_null: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pick {
    name: &'static str,
    rule: Rule,
    signature: Signature,
}

/// Those that go by the time of the rows.
pub(crate) const BY_TIME: &[&str] = &["first", "last", "first_not_null", "last_not_null"];

impl Pick {
    /// Of one that goes by time: whether it is the latest row's value, and whether rows without one are passed over.
    pub fn by_time(&self) -> Option<(bool, bool)> {
        BY_TIME.contains(&self.name).then_some((self.rule.is_greatest, self.rule.skips_null))
    }

    pub fn all() -> [Pick; 6] {
        let of = |name, is_greatest, is_later, skips_null| {
            let counts = if BY_TIME.contains(&name) { vec![1, 2] } else { vec![2] };
            let kinds = counts.into_iter().map(TypeSignature::Any).collect();
            let signature = Signature::one_of(kinds, Volatility::Immutable);
            Pick { name, rule: Rule { is_greatest, is_later, skips_null }, signature }
        };
        [
            of("first", false, false, false),
            of("last", true, true, false),
            of("first_not_null", false, false, true),
            of("last_not_null", true, true, true),
            of("arg_min", false, false, false),
            of("arg_max", true, false, false),
        ]
    }
}

impl AggregateUDFImpl for Pick {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(crate::door::field_of_one(self.name, &fields[0]))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of =
            |name: &str, data_type: DataType| Arc::new(Field::new(format!("{}[{name}]", args.name), data_type, true));
        let key = args.input_fields.get(1).map_or(DataType::Boolean, |f| f.data_type().clone());
        let value = args.input_fields[0].data_type().clone();
        Ok(vec![of("value", value), of("key", key), of("is_set", DataType::Boolean)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let null = |n: usize| {
            args.expr_fields.get(n).map_or(Ok(ScalarValue::Boolean(None)), |f| ScalarValue::try_from(f.data_type()))
        };
        Ok(Box::new(Picked { rule: self.rule, value: null(0)?, key: null(1)?, is_set: false }))
    }
}

#[derive(Debug)]
struct Picked {
    rule: Rule,
    value: ScalarValue,
    key: ScalarValue,
    is_set: bool,
}

impl Picked {
    fn is_better(&self, ordering: Ordering) -> bool {
        match ordering {
            Ordering::Equal => self.rule.is_later,
            Ordering::Less => !self.rule.is_greatest,
            Ordering::Greater => self.rule.is_greatest,
        }
    }

    /// The best row of a batch.
    fn best(&self, values: &ArrayRef, keys: Option<&ArrayRef>) -> Result<Option<usize>> {
        let counts =
            |row: &usize| keys.is_none_or(|k| k.is_valid(*row)) && !(self.rule.skips_null && values.is_null(*row));
        let mut rows = (0..values.len()).filter(counts);
        let Some(keys) = keys else {
            return Ok(if self.rule.is_later { rows.next_back() } else { rows.next() });
        };
        let compare = order(keys, keys)?;
        Ok(rows.reduce(|best, row| if self.is_better(compare(row, best)) { row } else { best }))
    }

    fn offer(&mut self, value: ScalarValue, key: ScalarValue) -> Result<()> {
        if !self.is_set || self.is_better(order(&key.to_array()?, &self.key.to_array()?)?(0, 0)) {
            (self.value, self.key, self.is_set) = (value, key, true);
        }
        Ok(())
    }
}

impl Accumulator for Picked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (value, key) = (&values[0], values.get(1));
        if let Some(row) = self.best(value, key)? {
            let key = key.map_or(Ok(ScalarValue::Boolean(None)), |k| ScalarValue::try_from_array(k, row))?;
            self.offer(ScalarValue::try_from_array(value, row)?, key)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let is_set = states[2].as_boolean();
        for row in (0..is_set.len()).filter(|row| is_set.is_valid(*row) && is_set.value(*row)) {
            self.offer(ScalarValue::try_from_array(&states[0], row)?, ScalarValue::try_from_array(&states[1], row)?)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.key.clone(), ScalarValue::Boolean(Some(self.is_set))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.value.size() + self.key.size()
    }
}
