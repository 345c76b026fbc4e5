//! The arrays of one message: nodes and buffers are assigned to the fields of the schema, depth first.
//!
//! A node has the rows and NULLs of an array, a buffer the position of bytes in the body. All are checked against the
//! body. Buffers may not overlap, so that all arrays of a message together have no more bytes than its body; a copy for
//! the alignment of values is reserved first. `ArrayData` checks the values.

use super::compression::{Codec, Decompressor};
use super::error::IpcError;
use super::limits::{ROWS_MAX, Reserve};
use super::schema::dictionary_id;
use arrow::array::{ArrayData, ArrayRef, BufferSpec, RecordBatch, RecordBatchOptions, layout, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::ipc::{self, MetadataVersion};
use std::collections::HashMap;

/// Reads the arrays of one message in order.
pub(super) struct Reader<'a, E> {
    rows: i64,
    version: MetadataVersion,
    nodes: Box<dyn Iterator<Item = &'a ipc::FieldNode> + 'a>,
    buffers: Box<dyn Iterator<Item = &'a ipc::Buffer> + 'a>,
    /// The number of data buffers of each view array.
    variadic_counts: Box<dyn Iterator<Item = i64> + 'a>,
    codec: Option<Codec>,
    body: &'a Buffer,
    /// Bytes of the body that are not assigned to a buffer yet.
    left: usize,
    dictionaries: &'a HashMap<i64, ArrayRef>,
    decompressor: &'a mut Decompressor,
    reserve: Reserve<'a, E>,
}

impl<'a, E: From<IpcError>> Reader<'a, E> {
    pub(super) fn new(
        header: ipc::RecordBatch<'a>,
        version: MetadataVersion,
        body: &'a Buffer,
        dictionaries: &'a HashMap<i64, ArrayRef>,
        decompressor: &'a mut Decompressor,
        reserve: Reserve<'a, E>,
    ) -> Result<Reader<'a, E>, E> {
        let rows = header.length();
        if !(0..=ROWS_MAX).contains(&rows) {
            return Err(IpcError::malformed(format!("a message has {rows} rows")).into());
        }
        Ok(Reader {
            rows,
            version,
            nodes: Box::new(header.nodes().into_iter().flatten()),
            buffers: Box::new(header.buffers().into_iter().flatten()),
            variadic_counts: Box::new(header.variadicBufferCounts().into_iter().flatten()),
            codec: header.compression().map(Codec::of).transpose()?,
            body,
            left: body.len(),
            dictionaries,
            decompressor,
            reserve,
        })
    }

    /// Reads all columns.
    pub(super) fn batch(mut self, schema: SchemaRef) -> Result<RecordBatch, E> {
        let columns = schema.fields().iter().map(|field| self.array(field).map(make_array));
        let columns = columns.collect::<Result<Vec<_>, E>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows as usize));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options).map_err(IpcError::from)?)
    }

    fn array(&mut self, field: &Field) -> Result<ArrayData, E> {
        let data_type = field.data_type();
        let (rows, nulls) = self.node(field)?;
        let layout = layout(data_type);
        let had_validity = matches!(data_type, DataType::Union(..)) && self.version < MetadataVersion::V5;
        let validity = if layout.can_contain_null_mask || had_validity { Some(self.buffer(1)?) } else { None };
        let mut buffers = Vec::new();
        for spec in &layout.buffers {
            let buffer = self.buffer(alignment(spec))?;
            buffers.push(whole_values(spec, buffer));
        }
        if layout.variadic {
            let missing = || IpcError::malformed(format!("column \"{}\" has no count of its buffers", field.name()));
            for _ in 0..self.variadic_counts.next().ok_or_else(missing)? {
                buffers.push(self.buffer(1)?);
            }
        }
        let children = self.children(field)?;
        let mut array = ArrayData::builder(data_type.clone()).len(rows).buffers(buffers).child_data(children);
        if let Some(validity) = validity.filter(|_| nulls > 0 && layout.can_contain_null_mask) {
            if validity.len() < rows.div_ceil(8) {
                return Err(IpcError::malformed(format!("column \"{}\" has too few bits", field.name())).into());
            }
            array = array.null_bit_buffer(Some(validity)).null_count(nulls);
        }
        Ok(array.build().map_err(IpcError::from)?)
    }

    fn children(&mut self, field: &Field) -> Result<Vec<ArrayData>, E> {
        match field.data_type() {
            DataType::List(child)
            | DataType::LargeList(child)
            | DataType::ListView(child)
            | DataType::LargeListView(child)
            | DataType::FixedSizeList(child, _)
            | DataType::Map(child, _) => Ok(vec![self.array(child)?]),
            DataType::Struct(fields) => fields.iter().map(|child| self.array(child)).collect(),
            DataType::RunEndEncoded(ends, values) => Ok(vec![self.array(ends)?, self.array(values)?]),
            DataType::Union(fields, _) => fields.iter().map(|(_, child)| self.array(child)).collect(),
            DataType::Dictionary(_, values) => {
                let known = dictionary_id(field).and_then(|id| self.dictionaries.get(&id).cloned());
                Ok(vec![known.unwrap_or_else(|| no_values(values)).to_data()])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns rows and NULLs of the next array.
    fn node(&mut self, field: &Field) -> Result<(usize, usize), E> {
        let name = field.name();
        let missing = || IpcError::malformed(format!("column \"{name}\" has no node"));
        let node = self.nodes.next().ok_or_else(missing)?;
        let (rows, nulls) = (node.length(), node.null_count());
        if !(0..=ROWS_MAX).contains(&rows) || !(0..=rows).contains(&nulls) {
            let message = format!("column \"{name}\" has {rows} rows and {nulls} nulls");
            return Err(IpcError::malformed(message).into());
        }
        Ok((rows as usize, nulls as usize))
    }

    /// Returns the next buffer, decompressed, at a multiple of `alignment`.
    fn buffer(&mut self, alignment: usize) -> Result<Buffer, E> {
        let buffer = self.buffers.next().ok_or_else(|| IpcError::malformed("a message has too few buffers"))?;
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let fits = |&(at, len): &(usize, usize)| at.checked_add(len).is_some_and(|end| end <= self.body.len());
        let (at, len) = range.filter(fits).ok_or_else(|| {
            IpcError::malformed(format!(
                "a buffer of {} bytes at {} is outside of the {} bytes of its message",
                buffer.length(),
                buffer.offset(),
                self.body.len()
            ))
        })?;
        self.left = self.left.checked_sub(len).ok_or_else(|| IpcError::malformed("buffers of a message overlap"))?;
        let bytes = self.body.slice_with_length(at, len);
        let bytes = match self.codec {
            Some(codec) if len > 0 => self.decompressor.buffer(codec, &bytes, self.reserve)?,
            _ => bytes,
        };
        if bytes.as_ptr().align_offset(alignment) == 0 {
            return Ok(bytes);
        }
        (self.reserve)(bytes.len())?;
        Ok(Buffer::from_slice_ref(bytes.as_slice()))
    }
}

/// Returns a buffer without an incomplete value at the end: Arrow's validation panics at such a value.
fn whole_values(spec: &BufferSpec, buffer: Buffer) -> Buffer {
    match spec {
        BufferSpec::FixedWidth { byte_width, .. } if *byte_width > 1 => {
            let bytes = buffer.len() / byte_width * byte_width;
            buffer.slice_with_length(0, bytes)
        }
        _ => buffer,
    }
}

/// Buffers made by `Buffer::from_slice_ref` are aligned for every type.
fn alignment(spec: &BufferSpec) -> usize {
    match spec {
        BufferSpec::FixedWidth { alignment, .. } => *alignment,
        BufferSpec::VariableWidth | BufferSpec::BitMap | BufferSpec::AlwaysNull => 1,
    }
}

/// Returns the empty dictionary of a column without values, which a stream may omit.
fn no_values(data_type: &DataType) -> ArrayRef {
    arrow::array::new_empty_array(data_type)
}
