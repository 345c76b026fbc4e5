//! Decoder of Arrow IPC streams from untrusted clients: no memory is allocated for a length that is only claimed.
//!
//! Input: bytes of a stream, split anywhere. Output: its schema and record batches. Offsets, lengths and counts of a
//! message are checked against the bytes of the message. Compressed buffers are decompressed here: their claimed length
//! is checked against [`IpcLimits`] and reserved with the caller before it is allocated. Every error leaves the decoder
//! unusable.
//!
//! The decoder of the crate `arrow` does not check these numbers: it allocates the claimed length of a compressed
//! buffer, and panics at an offset outside of the body and at an unknown type (59.3).

mod arrays;
mod compression;
mod error;
mod limits;
mod schema;
#[cfg(test)]
mod tests;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::compute::concat;
use arrow::datatypes::{Field, SchemaRef};
use arrow::ipc::{self, MessageHeader, MetadataVersion};
use compression::Decompressor;
pub use error::IpcError;
use flatbuffers::VerifierOptions;
pub use limits::{IpcLimits, Reserve};
use std::collections::HashMap;
use std::sync::Arc;

/// The marker before the length of a message since format version 5.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Maximum bytes of the metadata of a message; 4,096 columns have about 400 KiB.
const METADATA_BYTES_MAX: usize = 16 << 20;
/// Maximum ratio of the size of all flatbuffer tables, with shared parts counted each time, to the metadata bytes.
const METADATA_GROWTH_MAX: usize = 16;

/// Decodes chunks of a stream, split anywhere, into record batches.
#[derive(Debug)]
pub struct IpcDecoder {
    state: State,
    /// The first bytes of the part that [`State`] expects.
    held: Vec<u8>,
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    decompressor: Decompressor,
}

#[derive(Debug)]
enum State {
    /// The length of a message; true after the continuation marker.
    Length { is_continued: bool },
    /// The metadata of a message, with its length.
    Metadata(usize),
    /// The body of a message: its metadata and the length of the body.
    Body(Buffer, usize),
    /// After the end-of-stream marker.
    Ended,
}

impl IpcDecoder {
    /// Creates a decoder at the beginning of a stream.
    #[must_use]
    pub fn new(limits: IpcLimits) -> IpcDecoder {
        IpcDecoder {
            state: State::Length { is_continued: false },
            held: Vec::new(),
            schema: None,
            dictionaries: HashMap::new(),
            decompressor: Decompressor::new(limits),
        }
    }

    /// Returns the schema, once the stream has sent the schema.
    #[must_use]
    pub fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    /// Reads until a record batch is complete or `buffer` is empty, and advances `buffer`.
    ///
    /// # Errors
    /// [`IpcError`] when the stream is malformed or too large, and errors of `reserve`.
    pub fn decode<E: From<IpcError>>(
        &mut self,
        buffer: &mut Buffer,
        reserve: Reserve<'_, E>,
    ) -> Result<Option<RecordBatch>, E> {
        while !buffer.is_empty() || matches!(self.state, State::Body(_, 0)) {
            match &self.state {
                State::Length { is_continued } => {
                    let is_continued = *is_continued;
                    let Some(word) = self.take(buffer, 4) else { break };
                    self.state = after_length([word[0], word[1], word[2], word[3]], is_continued)?;
                }
                State::Metadata(bytes) => {
                    let Some(metadata) = self.take(buffer, *bytes) else { break };
                    let body_bytes = message(&metadata)?.bodyLength();
                    let body_bytes = usize::try_from(body_bytes)
                        .map_err(|_| IpcError::malformed(format!("a message has {body_bytes} bytes")))?;
                    self.state = State::Body(metadata, body_bytes);
                }
                State::Body(metadata, bytes) => {
                    let (metadata, bytes) = (metadata.clone(), *bytes);
                    let Some(body) = self.take(buffer, bytes) else { break };
                    self.state = State::Length { is_continued: false };
                    if let Some(batch) = self.read(&message(&metadata)?, &body, reserve)? {
                        return Ok(Some(batch));
                    }
                }
                State::Ended => return Err(IpcError::malformed("bytes follow the end of the stream").into()),
            }
        }
        Ok(None)
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// When the stream ends inside a message.
    pub fn finish(&self) -> Result<(), IpcError> {
        match self.state {
            State::Ended => Ok(()),
            State::Length { is_continued: false } if self.held.is_empty() => Ok(()),
            _ => Err(IpcError::malformed("the stream ends inside a message")),
        }
    }

    /// Returns the next `bytes`, without a copy if `buffer` has all of them. Memory grows with received bytes only.
    fn take(&mut self, buffer: &mut Buffer, bytes: usize) -> Option<Buffer> {
        if self.held.is_empty() && buffer.len() >= bytes {
            let taken = buffer.slice_with_length(0, bytes);
            buffer.advance(bytes);
            return Some(taken);
        }
        let count = buffer.len().min(bytes - self.held.len());
        self.held.extend_from_slice(&buffer[..count]);
        buffer.advance(count);
        (self.held.len() == bytes).then(|| Buffer::from_vec(std::mem::take(&mut self.held)))
    }

    fn read<E: From<IpcError>>(
        &mut self,
        message: &ipc::Message<'_>,
        body: &Buffer,
        reserve: Reserve<'_, E>,
    ) -> Result<Option<RecordBatch>, E> {
        let version = message.version();
        if version < MetadataVersion::V4 || version > MetadataVersion::V5 {
            return Err(IpcError::malformed(format!("version {} of the format is not supported", version.0)).into());
        }
        match message.header_type() {
            MessageHeader::Schema if self.schema.is_some() => {
                Err(IpcError::malformed("the stream has a second schema").into())
            }
            MessageHeader::Schema => {
                let header = message.header_as_schema().ok_or_else(no_header)?;
                self.schema = Some(Arc::new(schema::schema(header)?));
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let header = message.header_as_record_batch().ok_or_else(no_header)?;
                let schema = self.schema.clone().ok_or_else(no_schema)?;
                self.batch(header, schema, version, body, reserve).map(Some)
            }
            MessageHeader::DictionaryBatch => {
                let header = message.header_as_dictionary_batch().ok_or_else(no_header)?;
                self.dictionary(header, version, body, reserve).map(|()| None)
            }
            MessageHeader::NONE => Ok(None),
            other => Err(IpcError::malformed(format!("a message of kind {} is not supported", other.0)).into()),
        }
    }

    fn batch<E: From<IpcError>>(
        &mut self,
        header: ipc::RecordBatch<'_>,
        schema: SchemaRef,
        version: MetadataVersion,
        body: &Buffer,
        reserve: Reserve<'_, E>,
    ) -> Result<RecordBatch, E> {
        let dictionaries = &self.dictionaries;
        arrays::Reader::new(header, version, body, dictionaries, &mut self.decompressor, reserve)?.batch(schema)
    }

    /// Keeps the values of a dictionary. A delta reserves the whole new dictionary: earlier batches keep the old one.
    fn dictionary<E: From<IpcError>>(
        &mut self,
        header: ipc::DictionaryBatch<'_>,
        version: MetadataVersion,
        body: &Buffer,
        reserve: Reserve<'_, E>,
    ) -> Result<(), E> {
        let id = header.id();
        let schema = self.schema.clone().ok_or_else(no_schema)?;
        let unknown = || IpcError::malformed(format!("no column has the dictionary {id}"));
        let values =
            schema.fields().iter().find_map(|field| schema::dictionary_values(field, id)).ok_or_else(unknown)?;
        let field = Arc::new(Field::new("", values, true));
        let data = header.data().ok_or_else(no_header)?;
        let schema = Arc::new(arrow::datatypes::Schema::new([field]));
        let added = self.batch(data, schema, version, body, reserve)?;
        let added = added.columns().first().ok_or_else(unknown)?.clone();
        let values = if header.isDelta() {
            let before = self.dictionaries.get(&id).ok_or_else(unknown)?;
            reserve(before.get_array_memory_size().saturating_add(added.get_array_memory_size()))?;
            concat(&[before, &added]).map_err(IpcError::from)?
        } else {
            added
        };
        self.dictionaries.insert(id, values);
        Ok(())
    }
}

fn after_length(word: [u8; 4], is_continued: bool) -> Result<State, IpcError> {
    if word == CONTINUATION && !is_continued {
        return Ok(State::Length { is_continued: true });
    }
    match u32::from_le_bytes(word) as usize {
        0 => Ok(State::Ended),
        bytes if bytes <= METADATA_BYTES_MAX => Ok(State::Metadata(bytes)),
        bytes => Err(IpcError::malformed(format!(
            "the description of a message has {bytes} bytes; at most {METADATA_BYTES_MAX} are allowed"
        ))),
    }
}

/// Verifies the metadata of a message. Tables may share parts, so a few bytes could expand to many.
fn message(metadata: &[u8]) -> Result<ipc::Message<'_>, IpcError> {
    let options = VerifierOptions {
        max_tables: metadata.len().max(64),
        max_apparent_size: metadata.len() * METADATA_GROWTH_MAX,
        ..VerifierOptions::default()
    };
    ipc::root_as_message_with_opts(&options, metadata)
        .map_err(|error| IpcError::malformed(format!("the description of a message is broken: {error}")))
}

fn no_header() -> IpcError {
    IpcError::malformed("the header of a message is not of the declared kind")
}

fn no_schema() -> IpcError {
    IpcError::malformed("rows come before the schema")
}
