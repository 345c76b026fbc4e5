//! Lists made of lists, to be unnested.

use crate::dialect::set_returning::{EXPANDED, OR_EMPTY, ORDINALS, SUBSCRIPTS};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, StructArray, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// Subscripts of a catalog vector, which count from 0.
pub(crate) const VECTOR_SUBSCRIPTS: &str = "__vector_subscripts";

pub(super) fn functions() -> [ScalarUDF; 5] {
    [OR_EMPTY, EXPANDED, ORDINALS, SUBSCRIPTS, VECTOR_SUBSCRIPTS].map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(OfList { name, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfList {
    name: &'static str,
    signature: Signature,
}

/// Returns the item type of a list; NULL for other types.
fn item(list: &DataType) -> DataType {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item.data_type().clone(),
        _ => DataType::Null,
    }
}

fn list_of(item: DataType) -> DataType {
    DataType::List(crate::door::item(item))
}

/// Returns the fields of an item and its subscript.
fn pair(item: DataType) -> Fields {
    vec![Field::new("x", item, true), Field::new("n", DataType::Int32, true)].into()
}

impl ScalarUDFImpl for OfList {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_list = |t: &DataType| matches!(t, DataType::List(_) | DataType::Null);
        match types {
            lists if self.name == ORDINALS && !lists.iter().all(is_list) => {
                Err(crate::Error::invalid("an array is expected").into())
            }
            [list, ..] if is_list(list) => Ok(types.to_vec()),
            _ => Err(crate::Error::invalid("an array is expected").into()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let of = types.first().cloned().unwrap_or(DataType::Null);
        Ok(match self.name {
            OR_EMPTY => list_of(item(&of)),
            EXPANDED => list_of(DataType::Struct(pair(item(&of)))),
            ORDINALS => list_of(DataType::Int64),
            _ => list_of(DataType::Int32),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name == ORDINALS {
            return ordinals(&args);
        }
        let wanted = args.return_field.data_type();
        let given = args.args[0].to_array(args.number_rows)?;
        let given = if *given.data_type() == DataType::Null {
            new_null_array(&list_of(DataType::Null), args.number_rows)
        } else {
            given
        };
        let lists = given.as_list::<i32>();
        let rows = lists.len();
        let empty = |row: usize| if lists.is_null(row) { 0 } else { lists.value_length(row) as usize };
        let offsets = OffsetBuffer::from_lengths((0..rows).map(empty));
        let first = i32::from(self.name != VECTOR_SUBSCRIPTS);
        let numbers = (0..rows).flat_map(|row| (0..empty(row) as i32).map(move |n| n + first));
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers));
        // The values under NULL slots may hold data, which has to be removed.
        let kept = || -> Result<ArrayRef> {
            let parts: Vec<ArrayRef> =
                (0..rows).filter(|row| !lists.is_null(*row)).map(|row| lists.value(row)).collect();
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            if parts.is_empty() {
                return Ok(lists.values().slice(0, 0));
            }
            Ok(datafusion::arrow::compute::concat(&parts)?)
        };
        let items: ArrayRef = match self.name {
            OR_EMPTY => kept()?,
            EXPANDED => {
                let items = kept()?;
                Arc::new(StructArray::try_new(pair(items.data_type().clone()), vec![items, numbers], None)?)
            }
            _ => numbers,
        };
        let list = ListArray::try_new(crate::door::item(items.data_type().clone()), offsets, items, None)?;
        Ok(ColumnarValue::Array(cast(&list, wanted)?))
    }
}

/// Returns the numbers from 1 to the length of the longest of the lists of a row.
fn ordinals(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let lists = args.args.iter().map(|list| list.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
    let length = |list: &ArrayRef, row: usize| match list.as_list_opt::<i32>() {
        Some(lists) if lists.is_valid(row) => lists.value_length(row) as usize,
        _ => 0,
    };
    let lengths = (0..args.number_rows).map(|row| lists.iter().map(|list| length(list, row)).max().unwrap_or(0));
    let lengths: Vec<usize> = lengths.collect();
    let numbers = Int64Array::from_iter_values(lengths.iter().flat_map(|length| 1..=*length as i64));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(crate::door::item(DataType::Int64), offsets, Arc::new(numbers), None)?;
    Ok(ColumnarValue::Array(Arc::new(list)))
}
