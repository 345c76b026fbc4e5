//! Lengths and positions with PostgreSQL's types: the stock functions return unsigned integers.

use super::guarded::guarded;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions_nested::{length, position};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

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
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let stock: FieldRef = self.stock.return_field_from_args(ReturnFieldArgs {
            arg_fields: &args.arg_fields,
            scalar_arguments: &vec![None; types.len()],
        })?;
        let answer = self.stock.invoke_with_args(ScalarFunctionArgs { return_field: stock, ..args })?;
        Ok(match answer {
            ColumnarValue::Array(array) => ColumnarValue::Array(cast(&array, &self.gives)?),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.cast_to(&self.gives)?),
        })
    }
}
