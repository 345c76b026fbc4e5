//! Arrow data across the border to Python, by the PyCapsule interface: no copy, and no library needed on either side.

#![expect(unsafe_code, reason = "pointers in capsules are all that the interface has")]

use crate::errors;
use arrow::array::RecordBatchReader;
use arrow::datatypes::Schema;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// The stream of an object that has `__arrow_c_stream__`, or of a capsule.
pub fn reader(frame: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = match frame.cast::<PyCapsule>() {
        Ok(capsule) => capsule.clone(),
        Err(_) if frame.hasattr("__arrow_c_stream__")? => {
            frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?
        }
        Err(_) => {
            let message = format!("{} is no frame: it has no __arrow_c_stream__", frame.get_type().name()?);
            return Err(PyTypeError::new_err(message));
        }
    };
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a pointer to an initialised ArrowArrayStream, by the PyCapsule interface;
    // it is moved out here, while the capsule lives and the interpreter's lock is held, and marked as released.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) };
    reader.map_err(|e| errors::of_arrow(frame.py(), &e))
}

/// A capsule with the stream.
pub fn stream<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A capsule with a schema.
pub fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|e| errors::of_arrow(py, &e))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// The schema that a consumer asks for.
pub fn requested(capsule: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule of this name holds a pointer to an initialised ArrowSchema, which lives as long as the capsule
    // does; it is only read.
    let schema = unsafe { pointer.as_ref() };
    Schema::try_from(schema).map_err(|e| errors::of_arrow(capsule.py(), &e))
}
