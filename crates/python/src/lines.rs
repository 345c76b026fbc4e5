//! A frame as line protocol in parts, so that one part becomes text while another is being sent.

use crate::buffer::planned;
use crate::errors;
use crate::piece::Piece;
use arrow::array::RecordBatch;
use arrow::ffi_stream::ArrowArrayStreamReader;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use tidalite_frames::LinePlan;

#[pyclass(frozen, module = "tidalite._native")]
pub struct Lines {
    plan: LinePlan,
    state: Mutex<State>,
}

struct State {
    reader: ArrowArrayStreamReader,
    /// The batch that is being cut, and where the next part of it begins.
    batch: Option<(RecordBatch, usize)>,
    rows: u64,
}

#[pymethods]
impl Lines {
    #[new]
    #[pyo3(signature = (protocol_version, frame, table=None, table_column=None, at=None, at_nanos=None, symbols=None))]
    fn new(
        protocol_version: u8,
        frame: &Bound<'_, PyAny>,
        table: Option<String>,
        table_column: Option<String>,
        at: Option<String>,
        at_nanos: Option<i64>,
        symbols: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Lines> {
        let (reader, plan) = planned(protocol_version, frame, table, table_column, at, at_nanos, symbols)?;
        Ok(Lines { plan, state: Mutex::new(State { reader, batch: None, rows: 0 }) })
    }

    /// The next part, of at most `rows` rows, in pieces; None at the end.
    fn next(&self, py: Python<'_>, rows: usize, threads: usize) -> PyResult<Option<Vec<Piece>>> {
        let made = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(part) = state.part(rows).map_err(Failed::Arrow)? else { return Ok(None) };
            let pieces = self.plan.lines(&part, state.rows, threads).map_err(Failed::Frame)?;
            state.rows += part.num_rows() as u64;
            Ok(Some(Piece::all(pieces)))
        });
        made.map_err(|failed| match failed {
            Failed::Arrow(error) => errors::of_arrow(py, &error),
            Failed::Frame(error) => errors::of_frame(py, &error),
        })
    }
}

enum Failed {
    Arrow(arrow::error::ArrowError),
    Frame(tidalite_frames::Error),
}

impl State {
    fn part(&mut self, rows: usize) -> Result<Option<RecordBatch>, arrow::error::ArrowError> {
        loop {
            if let Some((batch, at)) = self.batch.take().filter(|(batch, at)| *at < batch.num_rows()) {
                let count = rows.max(1).min(batch.num_rows() - at);
                let part = batch.slice(at, count);
                self.batch = Some((batch, at + count));
                return Ok(Some(part));
            }
            let Some(batch) = self.reader.next().transpose()? else { return Ok(None) };
            self.batch = Some((batch, 0));
        }
    }
}
