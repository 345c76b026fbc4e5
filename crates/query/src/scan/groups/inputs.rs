//! What is folded of a block, as kernels want it.

use super::GroupInput;
use crate::scan::read::Reader;
use crate::{Error, Result};
use tidalite_kernels::{FoldInput, FoldValues};
use tidalite_storage::Segment;
use tidalite_storage::segment::{OpenBlock, Vectors};
use tidalite_types::VECTOR_ROWS;

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
