//! Line protocol in memory: rows of Python values, and whole frames.

use crate::database::symbols_of;
use crate::piece::Piece;
use crate::{capsule, errors};
use arrow::array::RecordBatchReader;
use arrow::ffi_stream::ArrowArrayStreamReader;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidalite_frames::lines::{name_problem, push_escaped, push_quoted};
use tidalite_frames::{At, LineOptions, LinePlan, Table};

/// Text not sent yet. Rows are added whole or not at all.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Buffer {
    version: u8,
    text: Mutex<Text>,
}

#[derive(Default)]
struct Text {
    /// In order; none is empty.
    pieces: Vec<Vec<u8>>,
    rows: u64,
}

impl Text {
    fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// The piece that rows are appended to.
    fn last(&mut self) -> &mut Vec<u8> {
        /// A piece that is longer is left alone, so that it is not copied when it grows.
        const PIECE_BYTES: usize = 4 << 20;
        if self.pieces.last().is_none_or(|last| last.len() > PIECE_BYTES) {
            self.pieces.push(Vec::with_capacity(64 << 10));
        }
        let at = self.pieces.len() - 1;
        &mut self.pieces[at]
    }
}

impl Buffer {
    fn text(&self, py: Python<'_>) -> MutexGuard<'_, Text> {
        self.text.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Buffer {
    #[new]
    #[pyo3(signature = (protocol_version=2))]
    fn new(py: Python<'_>, protocol_version: u8) -> PyResult<Buffer> {
        if !(1..=3).contains(&protocol_version) {
            let message = format!("protocol_version {protocol_version} is not one of 1, 2, 3");
            return Err(errors::of_kind(py, "invalid", &message));
        }
        Ok(Buffer { version: protocol_version, text: Mutex::default() })
    }

    #[getter]
    fn protocol_version(&self) -> u8 {
        self.version
    }

    /// Rows in it.
    #[getter]
    fn rows(&self, py: Python<'_>) -> u64 {
        self.text(py).rows
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.text(py).len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let text = self.text(py);
        PyBytes::new(py, &text.pieces.concat())
    }

    fn clear(&self, py: Python<'_>) {
        *self.text(py) = Text::default();
    }

    /// Takes the text out, in pieces.
    fn take(&self, py: Python<'_>) -> Vec<Piece> {
        Piece::all(std::mem::take(&mut *self.text(py)).pieces)
    }

    /// Puts back what could not be sent, before what came since.
    fn put_back(&self, py: Python<'_>, pieces: Vec<Bound<'_, Piece>>, rows: u64) {
        let pieces = pieces.iter().map(|piece| piece.get().bytes().to_vec());
        let mut text = self.text(py);
        let later = std::mem::take(&mut text.pieces);
        text.pieces = pieces.chain(later).collect();
        text.rows += rows;
    }

    /// Adds one row. `at` is in nanoseconds, None for the time of the server; `columns` may have (tag, value) pairs of
    /// what Python has no plain type for.
    #[pyo3(signature = (table, symbols, columns, at, at_suffix))]
    fn row(
        &self,
        py: Python<'_>,
        table: &str,
        symbols: Option<&Bound<'_, PyDict>>,
        columns: Option<&Bound<'_, PyDict>>,
        at: Option<i64>,
        at_suffix: &str,
    ) -> PyResult<()> {
        let mut text = self.text(py);
        let out = text.last();
        let start = out.len();
        let pushed = push_row(py, out, self.version, table, symbols, columns, at, at_suffix);
        if pushed.is_err() {
            out.truncate(start);
        } else {
            text.rows += 1;
        }
        pushed
    }

    /// Adds the rows of an Arrow stream; gives how many.
    #[pyo3(signature = (frame, table=None, table_column=None, at=None, at_nanos=None, symbols=None, threads=1))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of a Python function, by name")]
    fn frame(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        table: Option<String>,
        table_column: Option<String>,
        at: Option<String>,
        at_nanos: Option<i64>,
        symbols: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<u64> {
        let (reader, plan) = planned(self.version, frame, table, table_column, at, at_nanos, symbols)?;
        let written = py.detach(|| {
            let (mut pieces, mut rows) = (Vec::new(), 0);
            for batch in reader {
                let batch = batch.map_err(Failed::Arrow)?;
                pieces.extend(plan.lines(&batch, rows, threads).map_err(Failed::Frame)?);
                rows += batch.num_rows() as u64;
            }
            Ok((pieces, rows))
        });
        let (pieces, rows) = written.map_err(|failed| match failed {
            Failed::Arrow(error) => errors::of_arrow(py, &error),
            Failed::Frame(error) => errors::of_frame(py, &error),
        })?;
        let mut text = self.text(py);
        text.pieces.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        text.rows += rows;
        Ok(rows)
    }
}

/// The rows of a frame, and how they become lines.
pub fn planned(
    version: u8,
    frame: &Bound<'_, PyAny>,
    table: Option<String>,
    table_column: Option<String>,
    at: Option<String>,
    at_nanos: Option<i64>,
    symbols: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ArrowArrayStreamReader, LinePlan)> {
    let py = frame.py();
    let table = match (table, table_column) {
        (Some(name), None) => Table::Named(name),
        (None, Some(column)) => Table::Column(column),
        _ => return Err(errors::of_kind(py, "invalid", "say either table or table_column")),
    };
    let at = match (at, at_nanos) {
        (Some(column), _) => At::Column(column),
        (None, Some(nanos)) => At::Nanos(nanos),
        (None, None) => At::Server,
    };
    let options = LineOptions { version, table, at, symbols: symbols_of(symbols)? };
    let reader = capsule::reader(frame)?;
    let plan = LinePlan::new(&reader.schema(), &options).map_err(|e| errors::of_frame(py, &e))?;
    Ok((reader, plan))
}

enum Failed {
    Arrow(arrow::error::ArrowError),
    Frame(tidalite_frames::Error),
}

#[expect(clippy::too_many_arguments, reason = "the arguments of a Python function, by name")]
fn push_row(
    py: Python<'_>,
    out: &mut Vec<u8>,
    version: u8,
    table: &str,
    symbols: Option<&Bound<'_, PyDict>>,
    columns: Option<&Bound<'_, PyDict>>,
    at: Option<i64>,
    at_suffix: &str,
) -> PyResult<()> {
    push_name(py, out, table, "table")?;
    let head = out.len();
    for (name, value) in symbols.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        out.push(b',');
        push_name(py, out, name.extract()?, "column")?;
        out.push(b'=');
        let text = value
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err(format!("symbol {name} is no str but {}", value.get_type())))?;
        push_escaped(out, text.to_cow()?.as_bytes());
    }
    let mut separator = b' ';
    for (name, value) in columns.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        out.push(separator);
        push_name(py, out, name.extract()?, "column")?;
        out.push(b'=');
        push_value(out, version, &name, &value)?;
        separator = b',';
    }
    if out.len() == head {
        return Err(errors::of_kind(py, "data", "a row needs at least one symbol or column with a value"));
    }
    if let Some(at) = at {
        out.push(b' ');
        out.extend_from_slice(at.to_string().as_bytes());
        out.extend_from_slice(at_suffix.as_bytes());
    }
    out.push(b'\n');
    Ok(())
}

fn push_name(py: Python<'_>, out: &mut Vec<u8>, name: &str, what: &str) -> PyResult<()> {
    if let Some(problem) = name_problem(name, what) {
        return Err(errors::of_kind(py, "data", &problem));
    }
    push_escaped(out, name.as_bytes());
    Ok(())
}

fn push_value(out: &mut Vec<u8>, version: u8, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(value) = value.cast::<PyBool>() {
        out.push(if value.is_true() { b't' } else { b'f' });
    } else if let Ok(value) = value.cast::<PyFloat>() {
        let value = value.value();
        if version >= 2 {
            out.extend_from_slice(b"=\x10");
            out.extend_from_slice(&value.to_le_bytes());
        } else if value.is_finite() || value.is_nan() {
            out.extend_from_slice(format!("{value:?}").as_bytes());
        } else {
            out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
        }
    } else if let Ok(value) = value.cast::<PyInt>() {
        let number: i64 = value.extract().map_err(|_| {
            errors::of_kind(
                value.py(),
                "data",
                &format!("column \"{name}\": value {value} is out of range for type LONG"),
            )
        })?;
        out.extend_from_slice(number.to_string().as_bytes());
        out.push(b'i');
    } else if let Ok(value) = value.cast::<PyString>() {
        out.push(b'"');
        push_quoted(out, value.to_cow()?.as_bytes());
        out.push(b'"');
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        // What the package has put into its form on the line.
        out.extend_from_slice(bytes.as_bytes());
    } else {
        let message = format!("column \"{name}\": values of {} have no form in line protocol", value.get_type());
        return Err(errors::of_kind(value.py(), "data", &message));
    }
    Ok(())
}
