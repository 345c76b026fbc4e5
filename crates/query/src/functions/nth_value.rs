//! `nth_value(x, n ORDER BY y, …)`, the aggregate: the stock one wants its rows sorted, and no two of them could want it
//! otherwise. This one keeps the n rows that come first; of a negative n, those that come last.

use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use datafusion::arrow::compute::{SortColumn, SortOptions, concat, filter, is_not_null, lexsort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::sync::{Arc, LazyLock};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NthValue {
    signature: Signature,
}

/// As it is registered.
pub(crate) fn nth_value() -> Arc<AggregateUDF> {
    static NTH_VALUE: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(NthValue { signature: Signature::any(2, Volatility::Immutable) }))
    });
    NTH_VALUE.clone()
}

impl AggregateUDFImpl for NthValue {
    fn name(&self) -> &'static str {
        "nth_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.ordering_fields.is_empty() {
            return nth_value_udaf().state_fields(args);
        }
        let types = args.input_fields[..1].iter().chain(args.ordering_fields).map(|field| field.data_type().clone());
        let list = |(at, data_type): (usize, DataType)| {
            let item = Field::new_list_field(data_type, true);
            Arc::new(Field::new_list(format!("{}[{at}]", args.name), item, false))
        };
        Ok(types.enumerate().map(list).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.name(), args.is_distinct)?;
        let n = number(&args.exprs[1])?;
        if args.order_bys.is_empty() {
            return nth_value_udaf().accumulator(args);
        }
        let options = args.order_bys.iter().map(|by| if n < 0 { !by.options } else { by.options }).collect();
        let of = args.order_bys.iter().map(|by| by.expr.data_type(args.schema));
        let types = std::iter::once(Ok(args.expr_fields[0].data_type().clone())).chain(of);
        let kept = types.map(|of| Ok(new_empty_array(&of?))).collect::<Result<_>>()?;
        let count = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
        Ok(Box::new(First { count, options, skips_null: args.ignore_nulls, kept }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(self: Arc<Self>, _: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }
}

fn number(argument: &Arc<dyn PhysicalExpr>) -> Result<i64> {
    let literal = argument.downcast_ref::<Literal>().map(|literal| literal.value().cast_to(&DataType::Int64));
    match literal.transpose()? {
        Some(ScalarValue::Int64(Some(0))) => {
            Err(Error::invalid("nth_value counts from 1, or from -1 at the end").into())
        }
        Some(ScalarValue::Int64(Some(n))) => Ok(n),
        _ => Err(Error::invalid("the second argument of nth_value is a number, the same for all rows").into()),
    }
}

/// The rows of a group that come first.
#[derive(Debug)]
struct First {
    count: usize,
    options: Vec<SortOptions>,
    skips_null: bool,
    /// In order: the value, then what they are ordered by.
    kept: Vec<ArrayRef>,
}

impl First {
    fn add(&mut self, rows: Vec<ArrayRef>) -> Result<()> {
        let rows = if self.skips_null && rows[0].null_count() > 0 {
            let wanted = is_not_null(&rows[0])?;
            rows.iter().map(|column| filter(column, &wanted)).collect::<std::result::Result<_, _>>()?
        } else {
            rows
        };
        let both = |(kept, column): (&ArrayRef, &ArrayRef)| concat(&[kept, column]);
        let all = self.kept.iter().zip(&rows).map(both).collect::<std::result::Result<Vec<_>, _>>()?;
        let by = all[1..].iter().zip(&self.options);
        let by: Vec<_> = by.map(|(values, of)| SortColumn { values: values.clone(), options: Some(*of) }).collect();
        let places = lexsort_to_indices(&by, Some(self.count))?;
        self.kept = all.iter().map(|column| take(column, &places, None)).collect::<std::result::Result<_, _>>()?;
        Ok(())
    }
}

impl Accumulator for First {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // The second is the number.
        self.add(values[..1].iter().chain(&values[2..]).cloned().collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let items = |state: &ArrayRef| {
            let lists = state.as_list::<i32>();
            let ends = lists.value_offsets();
            let (from, to) = (ends[0] as usize, ends[lists.len()] as usize);
            lists.values().slice(from, to - from)
        };
        self.add(states.iter().map(items).collect())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = |column: &ArrayRef| SingleRowListArrayBuilder::new(column.clone()).build_list_scalar();
        Ok(self.kept.iter().map(list).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.count.checked_sub(1).filter(|last| *last < self.kept[0].len()) {
            Some(last) => ScalarValue::try_from_array(&self.kept[0], last),
            None => ScalarValue::try_from(self.kept[0].data_type()),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.kept.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
    }
}
