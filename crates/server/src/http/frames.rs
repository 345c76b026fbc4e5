//! Frames that come along with a statement, as tables of it.
//!
//! In: a body of the type [`CONTENT_TYPE`]: four bytes, little-endian, how long the form with the parameters is; the form,
//! whose parameter `frames` is a JSON list of `[name, column of the time or null, bytes]`; and the frames one after the
//! other, each a stream in Arrow's IPC format of so many bytes. Out: tables for one statement.

use crate::budget::Share;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use serde_json::Value;
use std::sync::Arc;
use tidalite::{Error, ErrorKind, Frame, Result};
use tidalite_frames::{IpcDecoder, IpcError, IpcLimits, is_packed, unpacked};

pub const CONTENT_TYPE: &str = "application/vnd.tidalite.frames";

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// The form and the frames behind it.
///
/// # Errors
/// When there is no form.
pub fn split(mut body: Vec<u8>) -> Result<(String, Vec<u8>)> {
    let no_form = || invalid("the request body is no form and frames");
    let (length, rest) = body.split_first_chunk::<4>().ok_or_else(no_form)?;
    let end = u32::from_le_bytes(*length) as usize;
    let form = rest.get(..end).ok_or_else(no_form)?;
    let form = std::str::from_utf8(form).map_err(|_| no_form())?.to_owned();
    body.drain(..4 + end);
    Ok((form, body))
}

/// Decodes the tables within `limits` per frame. Memory beyond the bytes of the body is counted in `share`.
///
/// # Errors
/// When the list or a frame is broken, or larger than may be.
pub fn tables(list: &str, bytes: Vec<u8>, limits: IpcLimits, share: &mut Share) -> Result<Vec<Frame>> {
    let wrong = || invalid("parameter frames is no list of [name, time, bytes]");
    let entries: Vec<(String, Option<String>, usize)> = serde_json::from_str::<Vec<Value>>(list)
        .map_err(|_| wrong())?
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()
        .map_err(|_| wrong())?;
    let buffer = Buffer::from(bytes);
    let (mut at, mut tables) = (0_usize, Vec::new());
    for (name, time, length) in entries {
        let end = at.checked_add(length).filter(|end| *end <= buffer.len()).ok_or_else(wrong)?;
        let (schema, batches) = read(buffer.slice_with_length(at, length), limits, share).map_err(|e| match e {
            Broken::Stream(e @ IpcError::TooLarge { .. }) => invalid(format!("frame \"{name}\" is too large: {e}")),
            Broken::Stream(e) => invalid(format!("frame \"{name}\" is not in Arrow's IPC format: {e}")),
            Broken::TooMuch(e) => e,
        })?;
        let designated = time.map(|time| {
            schema.index_of(&time).map_err(|_| invalid(format!("column \"{time}\": the frame does not have it")))
        });
        tables.push(Frame::new(&name, &schema, &batches, designated.transpose()?)?);
        at = end;
    }
    Ok(tables)
}

enum Broken {
    Stream(IpcError),
    TooMuch(Error),
}

impl From<IpcError> for Broken {
    fn from(error: IpcError) -> Broken {
        Broken::Stream(error)
    }
}

impl From<ArrowError> for Broken {
    fn from(error: ArrowError) -> Broken {
        Broken::Stream(error.into())
    }
}

fn read(mut bytes: Buffer, limits: IpcLimits, share: &mut Share) -> Result<(SchemaRef, Vec<RecordBatch>), Broken> {
    let (mut decoder, mut batches) = (IpcDecoder::new(limits), Vec::new());
    loop {
        let mut reserve = |bytes| share.add(bytes).map_err(Broken::TooMuch);
        let Some(batch) = decoder.decode(&mut bytes, &mut reserve)? else { break };
        batches.push(plain(&batch, share)?);
    }
    decoder.finish()?;
    let schema = decoder.schema().ok_or_else(|| IpcError::Malformed("the stream has no schema".to_owned()))?;
    Ok((batches.first().map_or(schema, RecordBatch::schema), batches))
}

/// Without dictionaries and runs, of which few bytes may be very many rows.
fn plain(batch: &RecordBatch, share: &mut Share) -> Result<RecordBatch, Broken> {
    /// Of one value at most, without the text that it points to.
    const VALUE_BYTES: usize = 16;
    let is_small =
        |column: &ArrayRef| is_packed(column.data_type()) || column.get_array_memory_size() < column.len() / 8;
    let small = batch.columns().iter().filter(|column| is_small(column)).count();
    share.add(small.saturating_mul(batch.num_rows()).saturating_mul(VALUE_BYTES)).map_err(Broken::TooMuch)?;
    let columns = batch.columns().iter().map(unpacked).collect::<Result<Vec<_>, _>>()?;
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(&columns);
    let fields: Vec<_> = fields.map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}
