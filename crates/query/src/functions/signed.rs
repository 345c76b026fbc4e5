//! Lengths and positions with PostgreSQL's types: the stock functions return unsigned integers. `array_length(a, 1)` of
//! an array without elements is NULL.

use super::guarded::guarded;
use datafusion::arrow::array::{ArrayRef, Int32Array};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_nested::{length, position};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

const ARRAY_LENGTH: &str = "array_length";

/// An array without elements has no dimension, whose length is NULL.
fn without_zeros(lengths: &ArrayRef) -> Result<ArrayRef> {
    let is_zero = eq(lengths, &Int32Array::new_scalar(0))?;
    Ok(nullif(lengths, &is_zero)?)
}

pub(super) fn functions() -> [ScalarUDF; 3] {
    let function = |stock: Arc<ScalarUDF>, gives| ScalarUDF::new_from_impl(Signed { stock: guarded(stock), gives });
    [
        function(length::array_length_udf(), DataType::Int32),
        function(position::array_position_udf(), DataType::Int32),
        function(
            position::array_positions_udf(),
            DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))),
        ),
    ]
}

/// A stock function with its result cast to another type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Signed {
    stock: Arc<ScalarUDF>,
    gives: DataType,
}

impl ScalarUDFImpl for Signed {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn aliases(&self) -> &[String] {
        self.stock.aliases()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(types)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.gives.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let has_dimension = self.stock.name() == ARRAY_LENGTH && args.args.len() == 2;
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let stock: FieldRef = self.stock.return_field_from_args(ReturnFieldArgs {
            arg_fields: &args.arg_fields,
            scalar_arguments: &vec![None; types.len()],
        })?;
        let answer = self.stock.invoke_with_args(ScalarFunctionArgs { return_field: stock, ..args })?;
        let of_dimension = |length: ArrayRef| if has_dimension { without_zeros(&length) } else { Ok(length) };
        Ok(match answer {
            ColumnarValue::Array(array) => ColumnarValue::Array(of_dimension(cast(&array, &self.gives)?)?),
            ColumnarValue::Scalar(value) => {
                let length = of_dimension(value.cast_to(&self.gives)?.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&length, 0)?)
            }
        })
    }
}
