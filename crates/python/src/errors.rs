//! Errors as the package's exceptions, which are classes of Python (`tidalite/errors.py`).

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidalite::{Error, ErrorKind};

/// An exception of the package: `kind` picks the class.
fn exception(
    py: Python<'_>,
    kind: &str,
    message: &str,
    fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    let made = || {
        let fields = PyDict::new(py);
        fill(&fields)?;
        PyModule::import(py, "tidalite.errors")?.getattr("of_kind")?.call((kind, message), Some(&fields))
    };
    made().map_or_else(|error| error, PyErr::from_value)
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Corrupt => "corrupt",
        _ => "internal",
    }
}

/// An error of the database. Positions count characters of `sql`.
pub fn of_database(py: Python<'_>, error: &Error, sql: Option<&str>) -> PyErr {
    exception(py, kind_name(error.kind), &error.message, |fields| {
        fields.set_item("hint", error.hint.as_deref())?;
        if let (Some(sql), Some(at)) = (sql, error.position) {
            fields.set_item("position", sql.char_indices().take_while(|(i, _)| *i < at).count())?;
            fields.set_item("sql", sql)?;
        }
        Ok(())
    })
}

/// Why rows of a frame were refused.
pub fn of_write(py: Python<'_>, error: &Error) -> PyErr {
    // They are numbered as lines of text are, from 1.
    let row = error.line.map(|line| line.saturating_sub(1));
    let kind = if error.kind == ErrorKind::Invalid { "data" } else { kind_name(error.kind) };
    let message = row.map_or_else(|| error.message.clone(), |row| format!("{}, in row {row}", error.message));
    exception(py, kind, &message, |fields| {
        fields.set_item("hint", error.hint.as_deref())?;
        fields.set_item("row", row)
    })
}

/// An error about a frame.
pub fn of_frame(py: Python<'_>, error: &tidalite_frames::Error) -> PyErr {
    exception(py, "data", &error.message, |fields| {
        fields.set_item("hint", error.hint.as_deref())?;
        fields.set_item("column", error.column.as_deref())?;
        fields.set_item("row", error.row)
    })
}

/// What a producer of Arrow data says.
pub fn of_arrow(py: Python<'_>, error: &arrow::error::ArrowError) -> PyErr {
    exception(py, "data", &format!("cannot read the frame: {error}"), |_| Ok(()))
}

pub fn of_kind(py: Python<'_>, kind: &str, message: &str) -> PyErr {
    exception(py, kind, message, |_| Ok(()))
}
