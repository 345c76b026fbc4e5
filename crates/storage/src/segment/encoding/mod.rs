//! Encodes and decodes one column block, without a file.
//!
//! Input: rows of a [`Column`]. Output: an [`EncodedBlock`], whose chunk has these sections, each aligned to 64 bytes;
//! empty sections are omitted:
//!
//! ```text
//! zones       smallest value of each vector, then greatest, 8 bytes each (i64 or f64)
//! validity    bits in words of 8 bytes
//! plain       values                            views: views | data
//! dict        distinct values | codes           views: views | data | codes
//! narrow      smallest value | distances
//! packed dict as dict, codes in bits
//! text        strings | codes, of a dictionary
//! others      a payload, whose structure its own file says
//! ```
//!
//! Invariant: the same rows give the same bytes. Decoded NULL rows are zeros, empty values or false.
//!
//! Reading order: [`encoded_block`], [`chunk`] the sections; [`value`] fixed-width values; [`nulls`] values of NULL
//! rows; [`choice`] the choice of an encoding; [`fixed`] the candidates of a type; [`constant`], [`plain`], [`frames`],
//! [`packed`], [`delta`], [`runs`], [`dict`], [`narrow`], [`alp`], [`alp_rd`], [`views`], [`fsst`], [`text`],
//! [`planes`] the encodings; [`compressed`] compression of any of them; [`opened`] the form in memory; [`zones`] bounds
//! of vectors; [`interval`], [`mask`], [`compare`] comparisons without decoding; [`picked`], [`take`] selected rows,
//! [`few`] a few rows; [`retain`] rows whose value is in a set; [`summed`], [`totals`] sums of numbers; [`vectors`] one
//! vector at a time, [`digits`] in packed form.

mod alp;
mod alp_rd;
pub mod choice;
pub mod chunk;
pub mod compare;
mod compressed;
mod constant;
mod delta;
mod dict;
pub mod digits;
mod encoded_block;
mod few;
mod fixed;
mod frames;
mod fsst;
pub mod interval;
mod mask;
mod narrow;
mod nulls;
pub mod opened;
mod packed;
mod picked;
mod plain;
mod planes;
pub mod retain;
mod runs;
pub mod summed;
pub mod take;
mod text;
pub mod totals;
mod value;
pub mod vectors;
mod views;
pub mod zones;

use crate::segment::buffer::{collect, share};
use crate::segment::format::Encoding;
use crate::{Block, BlockData};
use bytes::Bytes;
use choice::{Effort, Payload};
use chunk::{Chunk, Layout};
pub use encoded_block::EncodedBlock;
use std::sync::LazyLock;
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, ColumnType, Values, match_values};

impl EncodedBlock {
    /// Returns the name of the encoding; for a compressed block also the encoding inside.
    #[must_use]
    pub fn encoding_name(&self) -> String {
        match compressed::inner(self) {
            Some(inner) => format!("compressed {inner:?}"),
            None => format!("{:?}", self.entry.encoding),
        }
    }

    /// Checks all assumptions of decoding that the checksum does not cover: sizes of sections, ranges of codes and
    /// views.
    pub fn check(&self) -> Result<(), String> {
        let layout = self.check_length()?;
        nulls::check_validity(layout.validity(&self.bytes), self.rows, self.entry.zone.null_count)?;
        match (self.entry.encoding, self.physical) {
            (Encoding::Plain, Physical::Views) => {
                views::check_views(layout.first(&self.bytes), layout.data(&self.bytes))
            }
            (Encoding::Dict, physical) => {
                if physical == Physical::Views {
                    views::check_views(layout.first(&self.bytes), layout.data(&self.bytes))?;
                }
                dict::check_codes(layout.codes(&self.bytes), layout.code_bytes, self.entry.parameter)
            }
            (Encoding::PackedDict, physical) => {
                if physical == Physical::Views {
                    views::check_views(layout.first(&self.bytes), layout.data(&self.bytes))?;
                }
                dict::check_packed(layout.codes(&self.bytes), self.entry.parameter, self.rows)
            }
            (Encoding::Constant, _) => constant::check(layout.payload(&self.bytes), self),
            (Encoding::Packed, _) => packed::check(layout.payload(&self.bytes), self),
            (Encoding::Delta, _) => delta::check(layout.payload(&self.bytes), self),
            (Encoding::Runs, _) => runs::check(layout.payload(&self.bytes), self),
            (Encoding::Alp, _) => alp::check(layout.payload(&self.bytes), self),
            (Encoding::AlpRd, _) => alp_rd::check(layout.payload(&self.bytes), self),
            (Encoding::Fsst | Encoding::FsstDict, _) => fsst::check(&layout, self),
            (Encoding::Text | Encoding::TextDict, _) => text::check(&layout, self),
            (Encoding::Planes, _) => planes::decode(layout.payload(&self.bytes), &[], self).map(|_| ()),
            (Encoding::Compressed, _) => compressed::check(layout.payload(&self.bytes), self),
            (Encoding::Narrow, _) => narrow::check(self.physical),
            (Encoding::Nulls | Encoding::Plain, _) => Ok(()),
        }
    }

    /// Returns the positions of the sections, which must fill the chunk.
    fn check_length(&self) -> Result<Layout, String> {
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        match self.bytes.len() == layout.bytes {
            true => Ok(layout),
            false => Err(format!("{} bytes where {} belong", self.bytes.len(), layout.bytes)),
        }
    }

    /// Decodes the rows. Plain values share the bytes of this block.
    ///
    /// # Panics
    /// May panic if [`EncodedBlock::check`] would fail.
    pub fn decode(&self) -> Result<Block, String> {
        if self.entry.encoding == Encoding::Compressed {
            return compressed::inflate(self)?.decode();
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let validity = match self.entry.encoding {
            Encoding::Nulls => Some(zeros(self.rows.div_ceil(64) * 8)),
            _ => self.entry.has_validity.then(|| layout.validity_bytes(&self.bytes)),
        };
        let (payload, valid) = (layout.payload(&self.bytes), layout.validity(&self.bytes));
        let data = match self.entry.encoding {
            Encoding::Nulls => null_data(self.physical, self.rows),
            Encoding::Plain => plain_data(self, &layout),
            Encoding::Dict | Encoding::PackedDict if self.physical == Physical::Views => {
                views::decode_dict(self, &layout)
            }
            Encoding::Dict | Encoding::PackedDict => fixed::decode_dict(self, &layout),
            Encoding::Narrow => fixed::decode_narrow(self, &layout)?,
            Encoding::Constant => constant::decode(payload, valid, self),
            Encoding::Packed => packed::decode(payload, valid, self)?,
            Encoding::Delta => delta::decode(payload, valid, self)?,
            Encoding::Runs => runs::decode(payload, valid, self)?,
            Encoding::Alp => alp::decode(payload, valid, self)?,
            Encoding::AlpRd => alp_rd::decode(payload, valid, self)?,
            Encoding::Fsst | Encoding::FsstDict => fsst::decode(&layout, self)?,
            Encoding::Text | Encoding::TextDict => text::decode(&layout, self)?,
            Encoding::Planes => planes::decode(payload, valid, self)?,
            Encoding::Compressed => return Err("compressed twice".to_owned()),
        };
        let null_count = self.entry.zone.null_count as usize;
        Ok(Block { rows: self.rows, physical: self.physical, null_count, validity, data })
    }
}

/// Encodes rows `from..from + rows` of `column` with the encoding chosen for `effort`.
///
/// # Panics
/// Panics without rows, with more than [`BLOCK_ROWS`], too few rows in the column, or a column of another type.
#[must_use]
pub fn encode(column_type: ColumnType, column: &Column, from: usize, rows: usize, effort: Effort) -> EncodedBlock {
    encode_with(column_type, column, (from, rows), effort, effort == Effort::Sealed)
}

/// Encodes like [`encode`]; `compresses` allows compression if the result is smaller.
fn encode_with(
    column_type: ColumnType,
    column: &Column,
    (from, rows): (usize, usize),
    effort: Effort,
    compresses: bool,
) -> EncodedBlock {
    let physical = column_type.physical();
    assert!((1..=BLOCK_ROWS).contains(&rows) && from + rows <= column.len(), "{rows} rows of {}", column.len());
    assert_eq!(column.values.physical(), physical, "values of a {column_type} column");
    let validity = column.validity.as_ref().and_then(|v| nulls::slice(v, from, rows));
    let null_count = validity.as_ref().map_or(0, Bitmap::count_zeros);
    if null_count == rows {
        return EncodedBlock::nulls(physical, rows);
    }
    let mut chunk = Chunk::new(rows, validity, null_count, compresses);
    match &column.values {
        Values::Bit(bits) => encode_bits(&mut chunk, bits, from),
        Values::Views(views) => views::encode(&mut chunk, &views.views()[from..from + rows], views.data(), effort),
        // Symbol ids have no order, so their bounds would be useless.
        Values::U32(values) => {
            fixed::encode_ints(&mut chunk, &values[from..from + rows], column_type != ColumnType::Symbol, effort)
        }
        Values::I8(values) => fixed::encode_ints(&mut chunk, &values[from..from + rows], true, effort),
        Values::I16(values) => fixed::encode_ints(&mut chunk, &values[from..from + rows], true, effort),
        Values::I32(values) => fixed::encode_ints(&mut chunk, &values[from..from + rows], true, effort),
        Values::I64(values) => fixed::encode_ints(&mut chunk, &values[from..from + rows], true, effort),
        Values::I128(values) => fixed::encode_ints(&mut chunk, &values[from..from + rows], true, effort),
        Values::F32(values) => fixed::encode_floats(&mut chunk, &values[from..from + rows], effort),
        Values::F64(values) => fixed::encode_floats(&mut chunk, &values[from..from + rows], effort),
        Values::B16(values) => fixed::encode_b16(&mut chunk, &values[from..from + rows], effort),
    }
    chunk.finish(physical)
}

fn encode_bits(chunk: &mut Chunk, bits: &Bitmap, from: usize) {
    let mut own = Bitmap::new();
    own.extend_from_range(bits, from, chunk.rows);
    let mut words = own.words().to_vec();
    let all = Bitmap::filled(chunk.rows, true);
    let valid = chunk.validity.as_ref().unwrap_or(&all);
    words.iter_mut().zip(valid.words()).for_each(|(word, valid)| *word &= valid);
    let has_true = words.iter().any(|w| *w != 0);
    let has_false = words.iter().zip(valid.words()).any(|(word, valid)| *word != *valid);
    chunk.set_bounds(crate::Bounds::Int(i64::from(!has_false), i64::from(has_true)));
    if has_true != has_false {
        return chunk.write(&constant::bit_payload(has_true));
    }
    let plain = || Payload::new(Encoding::Plain, 0, bytemuck::cast_slice(&words));
    let bare = runs::of_bits(&words, chunk.rows).unwrap_or_else(plain);
    let payload = if chunk.compresses { compressed::smaller(bare, &[]) } else { bare };
    chunk.write(&payload);
}

fn plain_data(block: &EncodedBlock, layout: &Layout) -> BlockData {
    match block.physical {
        Physical::Views => {
            BlockData::Views { views: layout.first_bytes(&block.bytes), data: layout.data_bytes(&block.bytes) }
        }
        _ => BlockData::Fixed(layout.first_bytes(&block.bytes)),
    }
}

fn null_data(physical: Physical, rows: usize) -> BlockData {
    match physical {
        Physical::Bit => BlockData::Fixed(zeros(rows.div_ceil(64) * 8)),
        Physical::Views => BlockData::Views { views: zeros(rows * 16), data: Bytes::new() },
        _ => BlockData::Fixed(zeros(rows * physical.width().unwrap_or(16))),
    }
}

/// Returns zeros shared by all blocks of NULLs.
fn zeros(bytes: usize) -> Bytes {
    static ZEROS: LazyLock<Bytes> = LazyLock::new(|| share(vec![0u128; BLOCK_ROWS]));
    ZEROS.slice(..bytes)
}

/// Converts decoded rows to a column, for jobs that rearrange rows.
#[must_use]
pub fn to_column(block: &Block) -> Column {
    let mut column = Column::with_capacity(block.physical, block.rows);
    match (&mut column.values, &block.data) {
        (Values::Bit(bits), BlockData::Fixed(bytes)) => *bits = Bitmap::from_words(words(bytes), block.rows),
        (Values::Views(out), BlockData::Views { views, data }) => {
            let views: Vec<u128> = collect(views);
            out.extend_from_range(tidalite_types::ViewsRef { views: &views, data }, 0, block.rows);
        }
        (values, BlockData::Fixed(bytes)) => match_values!(
            values,
            v => v.extend_from_slice(&collect(bytes)),
            Bit(_b) => (),
            Views(_v) => (),
        ),
        (_, BlockData::Views { .. }) => unreachable!("views in a block of {:?}", block.physical),
    }
    column.validity = block.validity.as_ref().map(|bytes| Bitmap::from_words(words(bytes), block.rows));
    column
}

fn words(bytes: &Bytes) -> Vec<u64> {
    collect(bytes)
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
pub(crate) mod tests;
