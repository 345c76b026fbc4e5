//! `json_agg(x)` and `json_object_agg(name, x)`: aggregate the values of a group into a JSON text, `jsonb_agg` and
//! `jsonb_object_agg` into JSONB, as in PostgreSQL.

use super::json;
use super::json_build::{Json, values};
use crate::{Error, door};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::fmt::Write;
use std::sync::Arc;
use tidalite_types::{ColumnType, SqlState};

/// Maximum bytes of the text of a group.
const BYTES_MAX: usize = 256 << 20;

pub(crate) const JSON_AGG: &str = "json_agg";
pub(crate) const JSON_OBJECT_AGG: &str = "json_object_agg";
pub(crate) const JSONB_AGG: &str = "jsonb_agg";
pub(crate) const JSONB_OBJECT_AGG: &str = "jsonb_object_agg";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JsonAgg {
    name: &'static str,
    is_object: bool,
    is_jsonb: bool,
    signature: Signature,
}

impl JsonAgg {
    pub fn all() -> [JsonAgg; 4] {
        let all = [
            (JSON_AGG, false, false),
            (JSON_OBJECT_AGG, true, false),
            (JSONB_AGG, false, true),
            (JSONB_OBJECT_AGG, true, true),
        ];
        all.map(|(name, is_object, is_jsonb)| {
            let arguments = if is_object { 2 } else { 1 };
            JsonAgg { name, is_object, is_jsonb, signature: Signature::any(arguments, Volatility::Immutable) }
        })
    }
}

impl AggregateUDFImpl for JsonAgg {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field(&self, _: &[FieldRef]) -> Result<FieldRef> {
        Ok(door::field(self.name(), if self.is_jsonb { ColumnType::Jsonb } else { ColumnType::Json }, true))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[items]", args.name), DataType::Utf8, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.name(), args.is_distinct)?;
        if !args.order_bys.is_empty() {
            return Err(Error::invalid(format!("ORDER BY is not supported by {}", self.name()))
                .with_hint("order the rows in a sub-query")
                .into());
        }
        let value = args.expr_fields.get(usize::from(self.is_object));
        let is_json = value.is_some_and(|field| door::document_type(field).is_some());
        Ok(Box::new(Items { is_object: self.is_object, is_jsonb: self.is_jsonb, is_json, text: None }))
    }
}

/// The items so far, separated by commas; `None` without rows.
#[derive(Debug)]
struct Items {
    is_object: bool,
    /// The result is JSONB.
    is_jsonb: bool,
    /// The values are documents.
    is_json: bool,
    text: Option<String>,
}

impl Items {
    fn add(&mut self, item: &str) -> Result<()> {
        let text = self.text.get_or_insert_default();
        if text.len() + item.len() > BYTES_MAX {
            return Err(
                Error::invalid(format!("a JSON text of a group would have more than {} MiB", BYTES_MAX >> 20)).into()
            );
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(item);
        Ok(())
    }
}

impl Accumulator for Items {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(last) = columns.get(usize::from(self.is_object)) else { return Ok(()) };
        let own = values(last, self.is_json)?;
        let names = if self.is_object { Some(values(&columns[0], false)?) } else { None };
        let mut item = String::new();
        for (row, value) in own.iter().enumerate() {
            item.clear();
            // Writing to a String never fails.
            let _ = match names.as_ref().map(|names| &names[row]) {
                None => write!(item, "{value}"),
                Some(Json::Null) => return Err(Error::invalid("field name must not be null").into()),
                Some(name @ Json::String(_)) => write!(item, "{name} : {value}"),
                Some(Json::Array(_)) => {
                    let error = Error::invalid("key value must be scalar, not array, composite, or json");
                    return Err(error.with_code(SqlState::INVALID_PARAMETER_VALUE).into());
                }
                Some(name) => write!(item, "\"{name}\" : {value}"),
            };
            self.add(&item)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let ends = if self.is_object { ("{ ", " }") } else { ("[", "]") };
        let text = self.text.as_ref().map(|text| format!("{}{text}{}", ends.0, ends.1));
        Ok(ScalarValue::Utf8View(match text {
            Some(text) if self.is_jsonb => Some(json::normalize(&text)?),
            text => text,
        }))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.text.as_ref().map_or(0, String::capacity)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Utf8(self.text.clone())])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let texts = cast(&states[0], &DataType::Utf8)?;
        texts.as_string::<i32>().iter().flatten().try_for_each(|text| self.add(text))
    }
}
