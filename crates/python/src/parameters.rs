//! Values that are bound to `$1`, `$2`, …, as `tidalite/_parameters.py` tags them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tidalite::Parameter;
use tidalite::types::ColumnType;

pub fn parameters(values: &Bound<'_, PyList>) -> PyResult<Vec<Parameter>> {
    values.iter().map(|value| parameter(&value)).collect()
}

fn parameter(tagged: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let tagged = tagged.cast::<PyTuple>()?;
    let tag: String = tagged.get_item(0)?.extract()?;
    let value = |at: usize| tagged.get_item(at);
    Ok(match tag.as_str() {
        "null" => Parameter::Null,
        "boolean" => Parameter::Boolean(value(1)?.extract()?),
        "long" => Parameter::Long(value(1)?.extract()?),
        "double" => Parameter::Double(value(1)?.extract()?),
        "decimal" => Parameter::Decimal(value(1)?.extract()?),
        "text" => Parameter::Text(value(1)?.extract()?),
        "bytes" => Parameter::Bytes(value(1)?.extract()?),
        "list" => Parameter::List(parameters(value(1)?.cast()?)?),
        other => {
            let column_type = ColumnType::from_sql_name(other);
            let unknown = || PyValueError::new_err(format!("there is no type {other}"));
            Parameter::Typed(value(1)?.extract()?, column_type.ok_or_else(unknown)?)
        }
    })
}
