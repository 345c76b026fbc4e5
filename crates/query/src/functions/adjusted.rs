//! Built-in aggregates with one behaviour corrected.
//!
//! - `sum` and `avg` of integers and decimals are exact ([`super::sums`]); for floating point over moving frames, a
//!   removed row has no effect ([`formulas::sliding`]).
//! - `bool_and`, `bit_or` and similar aggregates support moving frames ([`super::sliding_parts`]).
//! - `min` and `max` of groups of floating point: the stock state starts at the largest finite number and never reaches
//!   infinity or NaN. For addresses the result type is the address type. Arrays and rows have their own
//!   order ([`nested`]).
//! - `sum`: the planner would rewrite `sum(x + 1)` to `sum(x) + count(x)`, and many such expressions take long to plan;
//!   [`crate::plan::grouped`] does the same at less cost.
//! - `string_agg`: the stock aggregate requires sorted input, and two with different orders cannot be combined,
//!   although it can sort by itself.

use super::formulas;
use super::nested::{self, ExtremeAccumulator};
use super::sliding_parts::PartStacks;
use super::sums::{self, Exact};
use crate::door;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};
use tidalite_operators::formulas::{Formula, sliding};
use tidalite_types::ColumnType;

/// The kind of sum that an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Adds {
    Sum,
    Mean,
}

impl Adds {
    fn formula(self) -> &'static Formula {
        match self {
            Adds::Sum => &sliding::SUM,
            Adds::Mean => &sliding::MEAN,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Adjusted {
    stock: Arc<AggregateUDF>,
    /// Of the least or the greatest: how a value stands to the one it takes the place of.
    better: Option<Ordering>,
    /// Whether rows may come in any order.
    sorts: bool,
    adds: Option<Adds>,
    /// True if moving frames need states of rows ([`PartStacks`]).
    is_of_parts: bool,
}

/// As it is registered: a function is another than the stock one.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    static SUM: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::new_from_impl(Adjusted::adding(sum_udaf(), Adds::Sum))));
    SUM.clone()
}

/// Returns `min` and `max` as they are registered.
pub(crate) fn bounds() -> [Arc<AggregateUDF>; 2] {
    static BOUNDS: LazyLock<[Arc<AggregateUDF>; 2]> =
        LazyLock::new(|| [Adjusted::least(), Adjusted::greatest()].map(AggregateUDF::new_from_impl).map(Arc::new));
    BOUNDS.clone()
}

impl Adjusted {
    fn least() -> Adjusted {
        Adjusted { better: Some(Ordering::Less), ..Adjusted::plain(min_udaf()) }
    }

    fn greatest() -> Adjusted {
        Adjusted { better: Some(Ordering::Greater), ..Adjusted::plain(max_udaf()) }
    }

    pub fn all() -> Vec<Adjusted> {
        let all = [
            Adjusted::least(),
            Adjusted::greatest(),
            Adjusted::adding(sum_udaf(), Adds::Sum),
            Adjusted::adding(avg_udaf(), Adds::Mean),
            Adjusted { sorts: true, ..Adjusted::plain(string_agg_udaf()) },
        ];
        let of_parts = [bool_and_udaf(), bool_or_udaf(), bit_and_udaf(), bit_or_udaf(), bit_xor_udaf()];
        let of_parts = of_parts.map(|stock| Adjusted { is_of_parts: true, ..Adjusted::plain(stock) });
        all.into_iter().chain(of_parts).collect()
    }

    fn plain(stock: Arc<AggregateUDF>) -> Adjusted {
        Adjusted { stock, better: None, sorts: false, adds: None, is_of_parts: false }
    }

    fn adding(stock: Arc<AggregateUDF>, adds: Adds) -> Adjusted {
        Adjusted { adds: Some(adds), ..Adjusted::plain(stock) }
    }

    /// Returns the exact sum or mean for the argument types; `None` for others.
    fn exact(&self, args: &AccumulatorArgs) -> Option<Exact> {
        Exact::of_arguments(self.adds? == Adds::Mean, args)
    }

    /// Returns the least or greatest of arrays or rows; `None` for others.
    fn best(&self, args: &AccumulatorArgs) -> Option<Result<ExtremeAccumulator>> {
        let data_type = args.return_field.data_type();
        self.better
            .filter(|_| nested::is_nested(data_type))
            .map(|better| ExtremeAccumulator::try_new(data_type, better))
    }

    fn inner(&self) -> &dyn AggregateUDFImpl {
        self.stock.inner().as_ref()
    }
}

impl AggregateUDFImpl for Adjusted {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.adds, types) {
            (Some(Adds::Mean), [of]) if of.is_decimal() => {
                sums::mean_type(of).map_or_else(|| self.inner().return_type(types), Ok)
            }
            _ => self.inner().return_type(types),
        }
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match (self.better, fields) {
            (Some(_), [of]) if door::column_type(of) == Some(ColumnType::Ipv4) => {
                Ok(door::field_of_one(self.name(), of))
            }
            _ if self.adds.is_some() => {
                let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
                let field = self.inner().return_field(fields)?;
                Ok(Arc::new(field.as_ref().clone().with_data_type(self.return_type(&types)?)))
            }
            _ => self.inner().return_field(fields),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if let Some(best) = self.best(&args) {
            return Ok(Box::new(best?));
        }
        match self.exact(&args) {
            Some(exact) => Ok(exact.accumulator(args.is_distinct)),
            None => self.inner().accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let exact = self
            .adds
            .zip(args.input_fields.first())
            .and_then(|(adds, of)| Exact::new(adds == Adds::Mean, of.data_type(), args.return_field.data_type()));
        match exact {
            Some(_) => Ok(Exact::state_fields(&args)),
            None => self.inner().state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.best(&args).is_none() && self.inner().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match (args.return_field.data_type(), self.better) {
            (DataType::Float32, Some(better)) => Ok(Box::new(Groups::<Float32Type>::new(better))),
            (DataType::Float64, Some(better)) => Ok(Box::new(Groups::<Float64Type>::new(better))),
            _ => match self.exact(&args) {
                Some(exact) => Ok(exact.groups()),
                None => self.inner().create_groups_accumulator(args),
            },
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if let Some(best) = self.best(&args) {
            return Ok(Box::new(best?));
        }
        let is_float = args.expr_fields.first().is_some_and(|field| *field.data_type() == DataType::Float64);
        match (self.exact(&args), self.adds) {
            (Some(exact), _) => Ok(exact.accumulator(args.is_distinct)),
            (None, Some(adds)) if is_float && !args.is_distinct => Ok(formulas::sliding(adds.formula())),
            _ if self.is_of_parts => Ok(Box::new(PartStacks::new(self.stock.clone(), &args)?)),
            _ => self.inner().create_sliding_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner().is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        if self.sorts { AggregateOrderSensitivity::Beneficial } else { self.inner().order_sensitivity() }
    }

    fn with_beneficial_ordering(self: Arc<Self>, _: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(self.sorts.then_some(self as Arc<dyn AggregateUDFImpl>))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        if self.sorts { ReversedUDAF::NotSupported } else { self.inner().reverse_expr() }
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner().value_from_stats(args)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }
}

/// The best value of each group so far.
#[derive(Debug)]
struct Groups<T: ArrowPrimitiveType> {
    better: Ordering,
    values: Vec<T::Native>,
    /// Whether a group has a value.
    is_set: Vec<bool>,
}

impl<T: ArrowPrimitiveType> Groups<T> {
    fn new(better: Ordering) -> Groups<T> {
        Groups { better, values: Vec::new(), is_set: Vec::new() }
    }

    fn take(&mut self, emit_to: EmitTo) -> ArrayRef {
        let (values, is_set) = (emit_to.take_needed(&mut self.values), emit_to.take_needed(&mut self.is_set));
        Arc::new(PrimitiveArray::<T>::new(values.into(), Some(NullBuffer::from(is_set))))
    }
}

fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<T: ArrowPrimitiveType> GroupsAccumulator for Groups<T>
where
    T::Native: ArrowNativeTypeOp,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.values.resize(count, T::Native::default());
        self.is_set.resize(count, false);
        let column = values[0].as_primitive::<T>();
        for (row, (&group, &value)) in groups.iter().zip(column.values()).enumerate() {
            if column.is_null(row) || !passes(filter, row) {
                continue;
            }
            if !self.is_set[group] || value.compare(self.values[group]) == self.better {
                self.values[group] = value;
                self.is_set[group] = true;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.update_batch(values, groups, None, count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.take(emit_to))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.take(emit_to)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let column = values[0].as_primitive::<T>();
        let kept = column.iter().enumerate().map(|(row, value)| value.filter(|_| passes(filter, row)));
        Ok(vec![Arc::new(kept.collect::<PrimitiveArray<T>>())])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.is_set.capacity()
    }
}
