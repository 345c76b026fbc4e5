//! Columns of blocks and runs as Arrow arrays.
//!
//! Fixed-width values and views keep the memory they lie in: the array shares it with the block cache or the run.
//! Decimals are widened, arrays of doubles unpacked and symbols looked up; those three make new buffers.

use super::{arrow_type, item};
use bytes::Bytes;
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    Float64Array, ListArray, PrimitiveArray, StringViewArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt32Type,
};
use std::sync::Arc;
use tidalite_storage::segment::TextRows;
use tidalite_storage::{Block, BlockData};
use tidalite_types::column_type::Physical;
use tidalite_types::views::{NULL_ELEMENT_BITS, view_bytes};
use tidalite_types::{Column, ColumnType, TimeUnit, Values, Views};

use crate::{Error, Result};

/// Rows of one column wherever they come from, in Arrow's buffers.
pub(crate) struct Raw {
    pub rows: usize,
    pub physical: Physical,
    pub nulls: Option<NullBuffer>,
    pub values: RawValues,
}

pub(crate) enum RawValues {
    Fixed(Buffer),
    Views { views: Buffer, data: Buffer },
}

impl Raw {
    pub fn of_block(block: Block) -> Raw {
        let Block { rows, physical, null_count, validity, data } = block;
        let nulls = validity
            .filter(|_| null_count > 0)
            .map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, rows)));
        let values = match data {
            BlockData::Fixed(bytes) => RawValues::Fixed(Buffer::from(bytes)),
            BlockData::Views { views, data } => {
                RawValues::Views { views: Buffer::from(views), data: Buffer::from(data) }
            }
        };
        Raw { rows, physical, nulls, values }
    }

    /// Rows `from..from + rows` of a column; `from` is a multiple of 64.
    pub fn of_column(column: &Arc<Column>, from: usize, rows: usize) -> Raw {
        let part = |part| Buffer::from(Bytes::from_owner(ColumnBytes { column: column.clone(), part }));
        let nulls =
            column.validity.as_ref().map(|_| NullBuffer::new(BooleanBuffer::new(part(Part::Validity), from, rows)));
        let physical = column.values.physical();
        let values = match &column.values {
            Values::Views(_) => RawValues::Views {
                views: part(Part::Values).slice_with_length(from * 16, rows * 16),
                data: part(Part::Data),
            },
            Values::Bit(_) => RawValues::Fixed(part(Part::Values).slice(from / 8)),
            _ => {
                let width = physical.width().unwrap_or(16);
                RawValues::Fixed(part(Part::Values).slice_with_length(from * width, rows * width))
            }
        };
        Raw { rows, physical, nulls, values }
    }

    /// As an array of the type's Arrow type. A symbol needs its dictionary.
    pub fn into_array(self, column_type: ColumnType, dictionary: Option<&StringViewArray>) -> Result<ArrayRef> {
        if self.physical != column_type.physical() {
            return Err(Error::internal(format!("a {column_type} column holds {:?} values", self.physical)));
        }
        let rows = self.rows;
        match self.values {
            RawValues::Fixed(values) => fixed(values, rows, self.nulls, column_type, dictionary),
            RawValues::Views { views, data } => views_array(views, data, rows, self.nulls, column_type),
        }
    }
}

impl Raw {
    /// The codes of symbols.
    pub fn into_codes(self) -> Result<ArrayRef> {
        match self.values {
            RawValues::Fixed(codes) if self.physical == ColumnType::Symbol.physical() => {
                Ok(primitive::<UInt32Type>(codes, self.rows, self.nulls))
            }
            _ => Err(Error::internal(format!("a symbol column holds {:?} values", self.physical))),
        }
    }
}

/// Rows of a block of text. Whether its texts are such is checked once, as long as the block stays in memory.
pub(crate) fn text_array(rows: TextRows) -> Result<ArrayRef> {
    let texts = all_texts(&rows)?;
    if rows.places.is_none() && rows.validity.is_none() {
        return Ok(texts);
    }
    take(&*texts, &places(rows), None).map_err(door_error)
}

/// The same as places among texts, which several rows may share.
pub(crate) fn text_dictionary(rows: TextRows) -> Result<ArrayRef> {
    let texts = all_texts(&rows)?;
    Ok(Arc::new(DictionaryArray::try_new(places(rows), texts).map_err(door_error)?))
}

/// Each row with a text of its own.
pub(crate) fn as_dictionary(texts: ArrayRef) -> Result<ArrayRef> {
    let places = UInt32Array::new((0..texts.len() as u32).collect(), texts.nulls().cloned());
    Ok(Arc::new(DictionaryArray::try_new(places, texts).map_err(door_error)?))
}

fn all_texts(rows: &TextRows) -> Result<Arc<StringViewArray>> {
    let views = || ScalarBuffer::<u128>::from(Buffer::from(rows.views.clone()));
    let check = || StringViewArray::try_new(views(), vec![Buffer::from(rows.data.clone())], None);
    rows.made.get_or_make(check).map_err(door_error)
}

fn places(rows: TextRows) -> UInt32Array {
    let nulls = rows.validity.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, rows.rows)));
    let places = rows.places.unwrap_or_else(|| (0..rows.rows as u32).collect());
    UInt32Array::new(ScalarBuffer::from(places), nulls)
}

/// Keeps a run's column alive while Arrow looks at a part of it.
struct ColumnBytes {
    column: Arc<Column>,
    part: Part,
}

enum Part {
    Values,
    Validity,
    /// What views point into.
    Data,
}

impl AsRef<[u8]> for ColumnBytes {
    fn as_ref(&self) -> &[u8] {
        match self.part {
            Part::Validity => self.column.validity.as_ref().map_or(&[], |bits| bytemuck::cast_slice(bits.words())),
            Part::Data => match &self.column.values {
                Values::Views(views) => views.data(),
                _ => &[],
            },
            Part::Values => {
                tidalite_types::match_values!(
                    &self.column.values,
                    v => bytemuck::cast_slice(v.as_slice()),
                    Bit(bits) => bytemuck::cast_slice(bits.words()),
                    Views(views) => bytemuck::cast_slice(views.views()),
                )
            }
        }
    }
}

fn fixed(
    values: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    column_type: ColumnType,
    dictionary: Option<&StringViewArray>,
) -> Result<ArrayRef> {
    Ok(match column_type {
        ColumnType::Boolean => Arc::new(BooleanArray::new(BooleanBuffer::new(values, 0, rows), nulls)),
        ColumnType::Byte => primitive::<Int8Type>(values, rows, nulls),
        ColumnType::Short => primitive::<Int16Type>(values, rows, nulls),
        ColumnType::Int => primitive::<Int32Type>(values, rows, nulls),
        ColumnType::Long => primitive::<Int64Type>(values, rows, nulls),
        ColumnType::Float => primitive::<Float32Type>(values, rows, nulls),
        ColumnType::Double => primitive::<Float64Type>(values, rows, nulls),
        ColumnType::Date => primitive::<Date32Type>(values, rows, nulls),
        ColumnType::Ipv4 => primitive::<UInt32Type>(values, rows, nulls),
        ColumnType::Timestamp(TimeUnit::Millis) => primitive::<TimestampMillisecondType>(values, rows, nulls),
        ColumnType::Timestamp(TimeUnit::Micros) => primitive::<TimestampMicrosecondType>(values, rows, nulls),
        ColumnType::Timestamp(TimeUnit::Nanos) => primitive::<TimestampNanosecondType>(values, rows, nulls),
        ColumnType::Decimal { .. } => decimal(values, rows, nulls, column_type)?,
        ColumnType::Uuid => Arc::new(
            FixedSizeBinaryArray::try_new(16, values.slice_with_length(0, rows * 16), nulls).map_err(door_error)?,
        ),
        ColumnType::Symbol => symbols(values, rows, nulls, dictionary)?,
        other => return Err(Error::internal(format!("{other} has no fixed width"))),
    })
}

fn primitive<T: ArrowPrimitiveType>(values: Buffer, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(values, 0, rows), nulls))
}

fn decimal(values: Buffer, rows: usize, nulls: Option<NullBuffer>, column_type: ColumnType) -> Result<ArrayRef> {
    let values: ScalarBuffer<i128> = match column_type.physical() {
        Physical::I32 => ScalarBuffer::<i32>::new(values, 0, rows).iter().map(|v| i128::from(*v)).collect(),
        Physical::I64 => ScalarBuffer::<i64>::new(values, 0, rows).iter().map(|v| i128::from(*v)).collect(),
        _ => ScalarBuffer::new(values, 0, rows),
    };
    let array = Decimal128Array::new(values, nulls).with_data_type(arrow_type(column_type));
    Ok(Arc::new(array))
}

fn symbols(
    ids: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    dictionary: Option<&StringViewArray>,
) -> Result<ArrayRef> {
    let dictionary = dictionary.ok_or_else(|| Error::internal("a symbol column without its dictionary"))?;
    if dictionary.is_empty() {
        // Only NULLs: their ids point nowhere.
        return Ok(new_null_array(&DataType::Utf8View, rows));
    }
    let ids = UInt32Array::new(ScalarBuffer::new(ids, 0, rows), nulls);
    take(dictionary, &ids, None).map_err(door_error)
}

fn views_array(
    views: Buffer,
    data: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    column_type: ColumnType,
) -> Result<ArrayRef> {
    let views = ScalarBuffer::<u128>::new(views, 0, rows);
    match column_type {
        ColumnType::Binary => Ok(Arc::new(BinaryViewArray::try_new(views, vec![data], nulls).map_err(door_error)?)),
        ColumnType::DoubleArray { dims } => doubles(&views, &data, nulls, dims),
        _ => Ok(Arc::new(StringViewArray::try_new(views, vec![data], nulls).map_err(door_error)?)),
    }
}

/// The strings of a symbol map as an array that shares their memory.
pub(crate) fn dictionary_array(strings: Arc<Views>) -> Result<StringViewArray> {
    let rows = strings.len();
    let views = Buffer::from(Bytes::from_owner(ViewsBytes { strings: strings.clone(), is_data: false }));
    let data = Buffer::from(Bytes::from_owner(ViewsBytes { strings, is_data: true }));
    StringViewArray::try_new(ScalarBuffer::new(views, 0, rows), vec![data], None).map_err(door_error)
}

struct ViewsBytes {
    strings: Arc<Views>,
    is_data: bool,
}

impl AsRef<[u8]> for ViewsBytes {
    fn as_ref(&self) -> &[u8] {
        if self.is_data { self.strings.data() } else { bytemuck::cast_slice(self.strings.views()) }
    }
}

/// Values as in [`tidalite_types::views`]: extents, then doubles.
fn doubles(views: &[u128], data: &[u8], nulls: Option<NullBuffer>, dims: u8) -> Result<ArrayRef> {
    let dims = usize::from(dims);
    let mut offsets: Vec<Vec<i32>> = vec![vec![0]; dims];
    let mut numbers: Vec<f64> = Vec::new();
    for (row, view) in views.iter().enumerate() {
        let value = if nulls.as_ref().is_none_or(|n| n.is_valid(row)) { view_bytes(view, data) } else { &[] };
        push_array(value, &mut offsets, &mut numbers).ok_or_else(|| {
            Error::new(tidalite_types::ErrorKind::Corrupt, format!("row {row} of an array column is malformed"))
        })?;
    }
    let is_null = |number: &f64| number.to_bits() == NULL_ELEMENT_BITS;
    let elements = numbers.iter().any(is_null).then(|| numbers.iter().map(|number| !is_null(number)).collect());
    let mut array: ArrayRef = Arc::new(Float64Array::new(numbers.into(), elements));
    let mut data_type = DataType::Float64;
    for (level, offsets) in offsets.into_iter().enumerate().rev() {
        let nulls = if level == 0 { nulls.clone() } else { None };
        let list = ListArray::try_new(item(data_type), OffsetBuffer::new(ScalarBuffer::from(offsets)), array, nulls)
            .map_err(door_error)?;
        data_type = list.data_type().clone();
        array = Arc::new(list);
    }
    Ok(array)
}

/// Adds one value to the lists of every level; `None` when its bytes are not an array of so many dimensions.
fn push_array(value: &[u8], offsets: &mut [Vec<i32>], numbers: &mut Vec<f64>) -> Option<()> {
    let dims = offsets.len();
    let is_null = value.is_empty();
    let (extents, elements) =
        if is_null { (Vec::new(), value) } else { (extents(value.get(..dims * 4)?), &value[dims * 4..]) };
    // How many lists this value has at a level, and how long each is.
    let mut lists = 1_usize;
    for (level, offsets) in offsets.iter_mut().enumerate() {
        let extent = if is_null { 0 } else { extents[level] };
        let mut last = *offsets.last()?;
        for _ in 0..lists {
            last = last.checked_add(i32::try_from(extent).ok()?)?;
            offsets.push(last);
        }
        lists = lists.checked_mul(extent).filter(|n| *n <= elements.len().max(1) * 2 || is_null)?;
        if is_null {
            // A level below a NULL has no lists for it.
            return Some(());
        }
    }
    if elements.len() != lists * 8 {
        return None;
    }
    numbers
        .extend(elements.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("chunks of eight"))));
    Some(())
}

fn extents(bytes: &[u8]) -> Vec<usize> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("chunks of four")) as usize).collect()
}

fn door_error(error: datafusion::arrow::error::ArrowError) -> Error {
    Error::new(tidalite_types::ErrorKind::Corrupt, format!("stored values do not make an array: {error}"))
}
