//! The aggregates of [`tidalite_operators::formulas`]: compensated sums, weighted means, moments, variances,
//! regressions.
//!
//! Rows with a NULL argument are ignored. A moving frame keeps states of its rows ([`TwoStacks`]), since floating-point
//! addition cannot be undone.

use super::scalar::double;
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
use tidalite_operators::formulas::sliding::{NeverEntered, TwoStacks};
use tidalite_operators::formulas::{Formula, NUMBERS, Numbers, columns_of, means, regressions};

pub(super) fn functions() -> Vec<AggregateUDF> {
    let signature = || Signature::user_defined(Volatility::Immutable);
    let all = means::FORMULAS.iter().chain(regressions::FORMULAS);
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
        Ok(sliding(self.of))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Creates an accumulator of a formula over a moving frame.
pub(super) fn sliding(of: &'static Formula) -> Box<dyn Accumulator> {
    Box::new(Sliding(TwoStacks::new(of)))
}

#[derive(Debug)]
struct Sliding(TwoStacks);

impl Accumulator for Sliding {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.enter(columns);
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let left = self.0.leave(columns);
        left.map_err(|NeverEntered| Error::internal("a row left a frame that it never entered").into())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(Error::internal("a sliding frame merges no states").into())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.0.state_of_frame().iter().map(|n| ScalarValue::Float64(Some(*n))).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.0.value()))
    }

    fn size(&self) -> usize {
        self.0.bytes()
    }
}

/// The states of all groups.
struct Groups {
    of: &'static Formula,
    states: Vec<Numbers>,
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
        self.of.add_to_groups(&mut self.states, groups, columns, filter);
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.states.resize(count, [0.0; NUMBERS]);
        self.of.merge_to_groups(&mut self.states, groups, columns);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        Ok(Arc::new(states.iter().map(|state| (self.of.value)(state)).collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(columns_of(&emit_to.take_needed(&mut self.states)))
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = columns.first().map_or(0, |c| c.len());
        let mut own = Groups { of: self.of, states: Vec::new() };
        own.update_batch(columns, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        Ok(columns_of(&own.states))
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
        self.of.add_all(&mut self.numbers, columns);
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
