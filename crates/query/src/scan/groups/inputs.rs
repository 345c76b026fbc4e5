//! What is folded of a batch or a block, as kernels want it.

use super::{GroupInput, as_type};
use crate::scan::read::Reader;
use crate::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use tidalite_kernels::{FoldInput, FoldValues};
use tidalite_storage::Segment;
use tidalite_storage::segment::{OpenBlock, Vectors};
use tidalite_types::VECTOR_ROWS;

/// The values of a batch that are folded.
pub(super) struct Values {
    array: Option<ArrayRef>,
    present: Option<Vec<u8>>,
}

impl Values {
    pub fn of(input: &GroupInput, batch: &RecordBatch) -> Result<Values> {
        let array = batch.column(input.column);
        let wide = match input.is_float {
            Some(true) => Some(as_type(array, &DataType::Float64)?),
            Some(false) => Some(as_type(array, &DataType::Int64)?),
            None => None,
        };
        Ok(Values { array: wide, present: present(array) })
    }

    pub fn folded(&self) -> FoldInput<'_> {
        let values = match &self.array {
            None => FoldValues::Nothing,
            Some(array) => match array.as_primitive_opt::<Float64Type>() {
                Some(floats) => FoldValues::Floats(floats.values()),
                None => FoldValues::Ints(array.as_primitive::<Int64Type>().values()),
            },
        };
        FoldInput { values, present: self.present.as_deref() }
    }
}

/// A block of a column that is folded.
pub(super) enum Opened<'a> {
    /// Every row is NULL.
    Nulls,
    /// Every row has a value, and nobody asks for it.
    Present,
    Some(OpenBlock<'a>, Option<bool>),
}

impl<'a> Opened<'a> {
    pub fn of(input: &GroupInput, reader: &'a Reader, segment: &'a Segment, block: usize) -> Result<Opened<'a>> {
        let named = |e| Error::from(reader.snapshot.named(e));
        let id = reader.column(input.column).id;
        let Some(zone) = segment.zone(id, block).map_err(named)? else { return Ok(Opened::Nulls) };
        if zone.null_count as usize == segment.block_rows(block) {
            return Ok(Opened::Nulls);
        }
        if input.is_float.is_none() && zone.null_count == 0 {
            return Ok(Opened::Present);
        }
        let opened = segment.open_block(id, block).map_err(named)?;
        Ok(opened.map_or(Opened::Nulls, |block| Opened::Some(block, input.is_float)))
    }

    pub fn vectors(&self) -> tidalite_storage::Result<OfInput<'_>> {
        Ok(match self {
            Opened::Nulls => OfInput::Nulls,
            Opened::Present => OfInput::Present,
            Opened::Some(block, None) => OfInput::Presence(block.presence()?),
            Opened::Some(block, Some(true)) => OfInput::Floats(block.floats()?),
            Opened::Some(block, Some(false)) => OfInput::Ints(block.ints()?),
        })
    }
}

pub(super) enum OfInput<'a> {
    Nulls,
    Present,
    Presence(Vectors<'a, i64>),
    Ints(Vectors<'a, i64>),
    Floats(Vectors<'a, f64>),
}

impl OfInput<'_> {
    pub fn vector(&mut self, i: usize, rows: usize) -> FoldInput<'_> {
        const NULLS: [u8; VECTOR_ROWS] = [0; VECTOR_ROWS];
        let (values, present) = match self {
            OfInput::Nulls => (FoldValues::Nothing, Some(&NULLS[..rows])),
            OfInput::Present => (FoldValues::Nothing, None),
            OfInput::Presence(vectors) => (FoldValues::Nothing, vectors.vector(i).1),
            OfInput::Ints(vectors) => {
                let (values, present) = vectors.vector(i);
                (FoldValues::Ints(values), present)
            }
            OfInput::Floats(vectors) => {
                let (values, present) = vectors.vector(i);
                (FoldValues::Floats(values), present)
            }
        };
        FoldInput { values, present }
    }
}

/// 1 where there is a value; `None` where there is one everywhere.
pub(super) fn present(array: &ArrayRef) -> Option<Vec<u8>> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().map(u8::from).collect())
}
