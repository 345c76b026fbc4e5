//! Casts between arrays: every element is cast as a single value of its type is, by the same expression.
//!
//! Arrow's cast of a list would cast its elements by Arrow's kernels, which truncate numbers, for example.

use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident,
};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The column of the elements in [`ArrayCast::element`].
const ELEMENT: &str = "element";

/// Returns the column of the elements of an array, and its schema, for the expression of [`call`].
///
/// # Errors
/// Never for a field of any type.
pub(crate) fn element(of: &FieldRef) -> Result<(Expr, DFSchema)> {
    Ok((ident(ELEMENT), DFSchema::try_from(schema(of))?))
}

fn schema(of: &FieldRef) -> Schema {
    Schema::new(vec![of.as_ref().clone().with_name(ELEMENT).with_nullable(true)])
}

/// Returns a call that casts an array of `from` to the field `to` by an expression over its elements.
pub(crate) fn call(array: Expr, from: &FieldRef, element: Expr, to: &FieldRef) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let udf = ArrayCast { element, from: from.clone(), to: to.clone(), planned: PlannedElement::default(), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(udf)), vec![array]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayCast {
    /// The cast of an element.
    element: Expr,
    /// The field of the elements.
    from: FieldRef,
    to: FieldRef,
    planned: PlannedElement,
    signature: Signature,
}

/// The operator of the cast of an element, created for the first batch. It follows from the other fields of a cast, so
/// that two casts are equal without it.
#[derive(Debug, Default)]
struct PlannedElement(OnceLock<Arc<dyn PhysicalExpr>>);

impl PartialEq for PlannedElement {
    fn eq(&self, _: &PlannedElement) -> bool {
        true
    }
}

impl Eq for PlannedElement {}

impl Hash for PlannedElement {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl ArrayCast {
    fn operator(&self) -> Result<&Arc<dyn PhysicalExpr>> {
        if let Some(known) = self.planned.0.get() {
            return Ok(known);
        }
        let schema = DFSchema::try_from(schema(&self.from))?;
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let created = create_physical_expr(&self.element, &schema, &props, &context)?;
        Ok(self.planned.0.get_or_init(|| created))
    }

    fn cast(&self, lists: &ListArray) -> Result<ArrayRef> {
        let DataType::List(item) = self.to.data_type() else {
            return Err(Error::internal("the cast of an array to another type").into());
        };
        let (lengths, values) = elements_of(lists)?;
        let batch = RecordBatch::try_new(Arc::new(schema(&self.from)), vec![values])?;
        let values = self.operator()?.evaluate(&batch)?.into_array(batch.num_rows())?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, lists.nulls().cloned())?))
    }
}

/// Returns the lengths of lists and their elements, without those below a NULL.
pub(super) fn elements_of(lists: &ListArray) -> Result<(Vec<usize>, ArrayRef)> {
    let offsets = lists.value_offsets();
    if lists.null_count() == 0 {
        let (start, end) = (offsets[0] as usize, offsets[lists.len()] as usize);
        return Ok((lists.offsets().lengths().collect(), lists.values().slice(start, end - start)));
    }
    let range = |row: usize| if lists.is_valid(row) { offsets[row] as u32..offsets[row + 1] as u32 } else { 0..0 };
    let lengths = (0..lists.len()).map(|row| range(row).len()).collect();
    let places: UInt32Array = (0..lists.len()).flat_map(range).collect::<Vec<_>>().into();
    Ok((lengths, take(lists.values(), &places, None)?))
}

impl ScalarUDFImpl for ArrayCast {
    fn name(&self) -> &'static str {
        "array cast"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let array = args.first().map_or(String::new(), ToString::to_string);
        Ok(format!("CAST({array} AS {})", self.to.data_type()))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // A cast is named after its argument.
        Ok(args.first().map_or(String::new(), |arg| arg.schema_name().to_string()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.to.data_type().clone(), true);
        Ok(Arc::new(field.with_metadata(self.to.metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return Err(Error::internal("a cast of nothing").into()) };
        let rows = if matches!(value, ColumnarValue::Scalar(_)) { 1 } else { args.number_rows };
        let array = value.to_array(rows)?;
        let Some(lists) = array.as_list_opt::<i32>() else {
            return Err(Error::internal(format!("{} is no array", array.data_type())).into());
        };
        let out = self.cast(lists)?;
        Ok(match value {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(out),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::logical_expr::{cast, lit};

    /// `10 / element` fails for 0, which only a list that is NULL has.
    #[test]
    fn elements_below_null_are_not_evaluated() {
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(0), Some(2)]));
        let offsets = OffsetBuffer::from_lengths([2, 1, 1, 0]);
        let nulls = NullBuffer::from(vec![true, false, true, true]);
        let lists = ListArray::try_new(item.clone(), offsets, values, Some(nulls)).expect("lists");
        let (column, _) = element(&item).expect("a column");
        let to: FieldRef = Arc::new(Field::new("", DataType::List(item.clone()), true));
        let udf = ArrayCast {
            element: cast(lit(10_i64) / column, DataType::Int64),
            from: item,
            to,
            planned: PlannedElement::default(),
            signature: Signature::any(1, Volatility::Immutable),
        };
        let out = udf.cast(&lists).expect("no division by zero");
        let out = out.as_list::<i32>();
        let row = |row: usize| out.value(row).as_any().downcast_ref::<Int64Array>().expect("integers").clone();
        assert_eq!(row(0), Int64Array::from(vec![Some(2), None]));
        assert!(out.is_null(1));
        assert_eq!(row(2), Int64Array::from(vec![5]));
        assert_eq!(row(3).len(), 0);
        let out = udf.cast(&lists.slice(2, 1)).expect("one row");
        assert_eq!(out.as_list::<i32>().value(0).len(), 1);
    }
}
