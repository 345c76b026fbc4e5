//! Rows to and from a server, as streams of Arrow's IPC format.

use crate::rows::Table;
use crate::{capsule, errors};
use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ffi_stream::ArrowArrayStreamReader;
use arrow::ipc::writer::StreamWriter;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidalite_frames::{IpcDecoder as Decoder, IpcError, IpcLimits, byte_count, compact};

/// Turns pieces of a stream, cut anywhere, into rows.
#[pyclass(frozen, module = "tidalite._native")]
pub struct IpcDecoder(Mutex<Decoding>);

struct Decoding {
    decoder: Decoder,
    batches: Vec<RecordBatch>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl IpcDecoder {
    #[new]
    fn new() -> IpcDecoder {
        IpcDecoder(Mutex::new(Decoding { decoder: Decoder::new(IpcLimits::none()), batches: Vec::new() }))
    }

    fn feed(&self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        let mut buffer = Buffer::from(piece);
        let fed = py.detach(|| -> Result<(), IpcError> {
            let Decoding { decoder, batches } = &mut *locked(&self.0);
            while let Some(batch) = decoder.decode::<IpcError>(&mut buffer, &mut |_| Ok(()))? {
                batches.push(batch);
            }
            Ok(())
        });
        fed.map_err(|e| errors::of_arrow(py, &broken(&e)))
    }

    /// The rows read since the last call.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let mut decoding = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let batches = std::mem::take(&mut decoding.batches);
        Ok(decoding.decoder.schema().map(|schema| Table { schema, batches }))
    }

    /// Says that nothing more comes.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.0
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .decoder
            .finish()
            .map_err(|e| errors::of_arrow(py, &broken(&e)))
    }
}

fn broken(error: &IpcError) -> ArrowError {
    ArrowError::IpcError(error.to_string())
}

/// Turns an Arrow stream into bodies of requests, each a whole stream of about `bytes`.
#[pyclass(frozen, module = "tidalite._native")]
pub struct IpcEncoder {
    state: Mutex<Encoding>,
    bytes: usize,
}

struct Encoding {
    reader: ArrowArrayStreamReader,
    /// Rows of a batch that were too many for the last body, and about how many bytes one of them has.
    rest: Option<(RecordBatch, usize)>,
    rows: u64,
    is_done: bool,
}

#[pymethods]
impl IpcEncoder {
    #[new]
    fn new(frame: &Bound<'_, PyAny>, bytes: usize) -> PyResult<IpcEncoder> {
        let reader = capsule::reader(frame)?;
        Ok(IpcEncoder { state: Mutex::new(Encoding { reader, rest: None, rows: 0, is_done: false }), bytes })
    }

    /// Rows given so far.
    #[getter]
    fn rows(&self) -> u64 {
        locked(&self.state).rows
    }

    /// The next body, None when there are no more rows. A frame without rows is one body.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let body = py.detach(|| locked(&self.state).body(self.bytes));
        let body = body.map_err(|e| errors::of_arrow(py, &e))?;
        Ok(body.map(|body| PyBytes::new(py, &body)))
    }
}

impl Encoding {
    fn body(&mut self, bytes: usize) -> Result<Option<Vec<u8>>, ArrowError> {
        /// What is left of a body is not filled by fewer rows.
        const ROWS_MIN: usize = 1024;
        if self.is_done {
            return Ok(None);
        }
        let schema = self.reader.schema();
        let mut writer = StreamWriter::try_new(Vec::with_capacity(bytes + bytes / 8), &schema)?;
        let first = self.rows;
        loop {
            let Some((batch, each)) = self.next()? else {
                self.is_done = true;
                break;
            };
            let room = bytes.saturating_sub(writer.get_ref().len()) / each;
            if room < batch.num_rows().min(ROWS_MIN) && self.rows > first {
                self.rest = Some((batch, each));
                break;
            }
            let count = batch.num_rows().min(room.max(1));
            writer.write(&compacted(&batch.slice(0, count))?)?;
            self.rows += count as u64;
            if count < batch.num_rows() {
                self.rest = Some((batch.slice(count, batch.num_rows() - count), each));
            }
        }
        if self.is_done && first > 0 && self.rows == first {
            return Ok(None);
        }
        writer.finish()?;
        writer.into_inner().map(Some)
    }

    /// Rows, and about how many bytes one of them has. A slice of text views would count the text of all.
    fn next(&mut self) -> Result<Option<(RecordBatch, usize)>, ArrowError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        let Some(batch) = self.reader.next().transpose()? else { return Ok(None) };
        let bytes: usize = batch.columns().iter().map(byte_count).sum();
        let each = bytes / batch.num_rows().max(1) + 1;
        Ok(Some((batch, each)))
    }
}

/// Without what only other rows of the batch need.
fn compacted(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(compact).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}
