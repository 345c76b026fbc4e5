//! What is folded of a block, as kernels want it.

use super::GroupInput;
use crate::scan::read::Reader;
use crate::{Error, Result};
use tidalite_kernels::{Digits, FoldInput, FoldValues};
use tidalite_storage::Segment;
use tidalite_storage::segment::{DigitVectors, FewRows, OpenBlock, Vectors};
use tidalite_types::{ColumnId, VECTOR_ROWS};

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

    /// Numbers as they are packed, where that will do.
    pub fn packed(&self) -> tidalite_storage::Result<Option<Packed<'_>>> {
        Ok(match self {
            Opened::Present => Some(Packed::Present),
            Opened::Some(block, Some(is_float)) => block.digits(*is_float)?.map(Packed::Digits),
            _ => None,
        })
    }
}

/// An input whose rows all have a value.
pub(super) enum Packed<'a> {
    /// Which nobody asks for.
    Present,
    Digits(DigitVectors<'a>),
}

/// The digits of inputs that have them, if a vector has all that are asked for.
pub(super) fn digits<'a>(inputs: &'a mut [Packed<'_>], i: usize) -> Option<Vec<Option<Digits<'a>>>> {
    let has = |input: &Packed<'_>| matches!(input, Packed::Digits(vectors) if vectors.has(i));
    let is_some = inputs.iter().any(has);
    let is_all = inputs.iter().all(|input| has(input) || matches!(input, Packed::Present));
    let of = |input: &'a mut Packed<'_>| match input {
        Packed::Present => None,
        Packed::Digits(vectors) => Some(vectors.vector(i)),
    };
    (is_some && is_all).then(|| inputs.iter_mut().map(of).collect())
}

/// The values of a few rows, which all have one.
pub(super) enum Few {
    /// Nobody asks for it.
    Present,
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl Few {
    /// `None` where the column is not to be read that way.
    pub fn of(
        few: &FewRows<'_>,
        column: ColumnId,
        is_float: Option<bool>,
        rows: usize,
    ) -> tidalite_storage::Result<Option<Few>> {
        Ok(match is_float {
            None => few.zone(column)?.filter(|zone| zone.null_count == 0).map(|_| Few::Present),
            Some(true) => {
                let mut values = Vec::with_capacity(rows);
                few.floats(column, &mut values)?.then_some(Few::Floats(values))
            }
            Some(false) => {
                let mut values = Vec::with_capacity(rows);
                few.ints(column, &mut values)?.then_some(Few::Ints(values))
            }
        })
    }

    pub fn folded(&self) -> FoldInput<'_> {
        let values = match self {
            Few::Present => FoldValues::Nothing,
            Few::Ints(values) => FoldValues::Ints(values),
            Few::Floats(values) => FoldValues::Floats(values),
        };
        FoldInput { values, present: None }
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
