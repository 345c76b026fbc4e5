//! Reads selected rows of a block without decoding the others.
//!
//! Input: a selection. Output: a block of the selected rows, in order. Vectors without a selected row are skipped. The
//! other vectors are decoded one at a time in the first-level cache, and only the selected rows are copied, which is
//! faster than decoding the block even if most rows are selected.

use super::chunk::Layout;
use super::picked::Picked;
use super::value::raw;
use super::{EncodedBlock, alp, alp_rd, compressed, delta, dict, fsst, packed, runs};
use crate::segment::buffer::{collect, share, values_in};
use crate::segment::format::Encoding;
use crate::segment::selection::Selection;
use crate::{Block, BlockData};
use bytes::Bytes;
use tidalite_kernels::{count_picked, select, select_bits};
use tidalite_types::Views;
use tidalite_types::column_type::Physical;

impl Picked<'_> {
    /// Selects plain values.
    fn plain<T: bytemuck::Pod + Default>(&self, values: &[u8]) -> Vec<T> {
        let values = values_in::<T>(values);
        let mut out = Vec::with_capacity(self.rows());
        match self.selection.numbers() {
            Some(numbers) => out.extend(numbers.iter().map(|number| values[usize::from(*number)])),
            None => select(&values, self.mask(), &mut out),
        }
        self.zero_nulls(&mut out);
        out
    }

    fn plain_fixed(&self, values: &[u8], physical: Physical) -> BlockData {
        BlockData::Fixed(match physical.width() {
            None => self.bits(&collect::<u64>(values)),
            Some(1) => share(self.plain::<u8>(values)),
            Some(2) => share(self.plain::<u16>(values)),
            Some(4) => share(self.plain::<u32>(values)),
            Some(8) => share(self.plain::<u64>(values)),
            Some(_) => share(self.plain::<u128>(values)),
        })
    }

    fn repeated<T: bytemuck::Pod + Send>(&self, value: &[u8]) -> Bytes {
        let mut out = vec![raw::<T>(value); self.rows()];
        self.zero_nulls(&mut out);
        share(out)
    }

    fn looked_up<T: bytemuck::Pod + Send>(&self, distinct: &[u8], codes: &[u16]) -> Bytes {
        let mut out = dict::look_up_some::<T>(distinct, codes);
        self.zero_nulls(&mut out);
        share(out)
    }
}

impl EncodedBlock {
    /// Returns the rows of a selection.
    ///
    /// # Panics
    /// May panic if [`EncodedBlock::check`] would fail or the selection is for another block.
    pub fn take(&self, selection: &Selection) -> Result<Block, String> {
        let rows = selection.rows();
        if self.entry.encoding == Encoding::Nulls || rows == 0 {
            let block = EncodedBlock::nulls(self.physical, rows).decode()?;
            return Ok(Block { validity: block.validity.filter(|_| rows > 0), ..block });
        }
        if self.entry.encoding == Encoding::Compressed {
            return compressed::inflate(self)?.take(selection);
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let validity = layout.validity(&self.bytes);
        let valid = (!validity.is_empty()).then(|| select_bits(&collect::<u64>(validity), selection.mask()));
        let null_count = valid.as_ref().map_or(0, |valid| rows - count_picked(valid));
        let picked = Picked { selection, valid: valid.filter(|_| null_count > 0) };
        let data = self.take_data(&layout, &picked)?;
        let validity = picked.valid.map(share);
        Ok(Block { rows, physical: self.physical, null_count, validity, data })
    }

    /// Returns the validity bits of the rows of `selection`, or of all rows; `None` if none of them is NULL.
    pub(in crate::segment) fn picked_validity(&self, selection: Option<&Selection>) -> Result<Option<Bytes>, String> {
        if !self.entry.has_validity {
            return Ok(None);
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let Some(selection) = selection else { return Ok(Some(layout.validity_bytes(&self.bytes))) };
        let valid = select_bits(&collect::<u64>(layout.validity(&self.bytes)), selection.mask());
        Ok((count_picked(&valid) < selection.rows()).then(|| share(valid)))
    }

    /// Returns a dictionary of views: views, data, and the keys of the rows of `selection`, or of all rows.
    pub(in crate::segment) fn dictionary(
        &self,
        selection: Option<&Selection>,
    ) -> Result<(Bytes, Bytes, Vec<u32>), String> {
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let (codes, distinct) = (layout.codes(&self.bytes), self.entry.parameter as usize);
        let places = match selection {
            None => dict::places(codes, distinct, self.rows),
            Some(selection) => dict::take_codes(codes, distinct, self.rows, &Picked::of(selection))
                .into_iter()
                .map(u32::from)
                .collect(),
        };
        Ok((layout.first_bytes(&self.bytes), layout.data_bytes(&self.bytes), places))
    }

    /// Returns the views and the data of a dictionary's strings, each of which occurs in some row.
    pub(in crate::segment) fn distinct_texts(&self) -> Result<(Bytes, Bytes), String> {
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        Ok((layout.first_bytes(&self.bytes), layout.data_bytes(&self.bytes)))
    }

    fn take_data(&self, layout: &Layout, picked: &Picked<'_>) -> Result<BlockData, String> {
        let (payload, first) = (layout.payload(&self.bytes), layout.first(&self.bytes));
        let is_text = self.physical == Physical::Views;
        Ok(match self.entry.encoding {
            Encoding::Nulls | Encoding::Dict | Encoding::Narrow | Encoding::Planes => self.take_decoded(picked)?,
            Encoding::Text | Encoding::TextDict | Encoding::Compressed => self.take_decoded(picked)?,
            Encoding::Plain if is_text => {
                BlockData::Views { views: share(picked.plain::<u128>(first)), data: layout.data_bytes(&self.bytes) }
            }
            Encoding::Plain => picked.plain_fixed(first, self.physical),
            Encoding::Constant => BlockData::Fixed(match self.physical.width() {
                None => picked.bits(&vec![if self.entry.parameter == 0 { 0 } else { u64::MAX }; picked.mask().len()]),
                Some(1) => picked.repeated::<u8>(payload),
                Some(2) => picked.repeated::<u16>(payload),
                Some(4) => picked.repeated::<u32>(payload),
                Some(8) => picked.repeated::<u64>(payload),
                Some(_) => picked.repeated::<u128>(payload),
            }),
            Encoding::Packed => packed::take(payload, self, picked)?,
            Encoding::Delta => delta::take(payload, self, picked)?,
            Encoding::Runs => runs::take(payload, self, picked)?,
            Encoding::Alp => alp::take(payload, self, picked)?,
            Encoding::AlpRd => alp_rd::take(payload, self, picked)?,
            Encoding::PackedDict => self.take_entries(layout, first, picked),
            Encoding::Fsst => {
                let (views, data) = fsst::take(layout, self, picked)?.into_parts();
                BlockData::Views { views: share(views), data: share(data) }
            }
            Encoding::FsstDict => {
                let (distinct, data) = fsst::distinct(layout, self).ok_or("a dictionary that is cut off")?;
                let codes = dict::take_codes(layout.codes(&self.bytes), distinct.len(), self.rows, picked);
                let mut out = Views::with_capacity(picked.rows());
                let text = |code: u16| tidalite_types::views::view_bytes(&distinct[usize::from(code)], &data);
                codes.into_iter().for_each(|code| out.push(text(code)));
                let (mut views, data) = out.into_parts();
                picked.zero_nulls(&mut views);
                BlockData::Views { views: share(views), data: share(data) }
            }
        })
    }

    fn take_entries(&self, layout: &Layout, distinct: &[u8], picked: &Picked<'_>) -> BlockData {
        let count = self.entry.parameter as usize;
        let codes = dict::take_codes(layout.codes(&self.bytes), count, self.rows, picked);
        let entries = match self.physical.width() {
            Some(1) => picked.looked_up::<u8>(distinct, &codes),
            Some(2) => picked.looked_up::<u16>(distinct, &codes),
            Some(4) => picked.looked_up::<u32>(distinct, &codes),
            Some(8) => picked.looked_up::<u64>(distinct, &codes),
            _ => picked.looked_up::<u128>(distinct, &codes),
        };
        match self.physical {
            Physical::Views => BlockData::Views { views: entries, data: layout.data_bytes(&self.bytes) },
            _ => BlockData::Fixed(entries),
        }
    }

    /// Selects rows after decoding, for encodings that are written only in compressed form, which is decompressed as a
    /// whole.
    fn take_decoded(&self, picked: &Picked<'_>) -> Result<BlockData, String> {
        Ok(match self.decode()?.data {
            BlockData::Fixed(values) => picked.plain_fixed(&values, self.physical),
            BlockData::Views { views, data } => BlockData::Views { views: share(picked.plain::<u128>(&views)), data },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::encoding::tests::{TYPES, random_column, shapes};
    use crate::segment::encoding::{encode, to_column};
    use crate::segment::{Effort, encoding};
    use tidalite_types::{Column, ColumnType, Values};

    fn random_mask(rng: &mut fastrand::Rng, rows: usize) -> Vec<u64> {
        let kind = rng.u32(..4);
        let is_picked = |rng: &mut fastrand::Rng, row: usize| match kind {
            0 => rng.u32(..rows as u32) < 3,
            1 => rng.bool(),
            2 => row / 700 % 3 == 1,
            _ => rng.u32(..20) > 0,
        };
        let mut mask = vec![0; rows.div_ceil(64)];
        (0..rows).filter(|row| is_picked(rng, *row)).for_each(|row| mask[row / 64] |= 1 << (row % 64));
        mask
    }

    fn check(rng: &mut fastrand::Rng, column_type: ColumnType, column: &Column, effort: Effort) -> Encoding {
        let block = encode(column_type, column, 0, column.len(), effort);
        if block.entry.encoding == Encoding::Compressed {
            check_block(rng, column_type, &block);
        }
        let block = encoding::tests::encode_bare(column_type, column, effort);
        check_block(rng, column_type, &block);
        block.entry.encoding
    }

    fn check_block(rng: &mut fastrand::Rng, column_type: ColumnType, block: &EncodedBlock) {
        let decoded = to_column(&block.decode().unwrap());
        for _ in 0..3 {
            let mask = random_mask(rng, block.rows);
            let rows: Vec<u32> = tidalite_kernels::picked(&mask).map(|row| row as u32).collect();
            let expected = tidalite_kernels::gather(&decoded, &rows);
            let taken = block.take(&Selection::new(mask.clone())).unwrap();
            assert_eq!((taken.rows, taken.physical), (rows.len(), block.physical));
            assert_eq!(taken.validity.is_some(), taken.null_count > 0);
            let taken = to_column(&taken);
            let is_same = (0..rows.len()).all(|row| taken.is_valid(row) == expected.is_valid(row));
            assert!(is_same, "{column_type} {:?}", block.entry.encoding);
            assert!(same(&taken.values, &expected.values), "{column_type} {:?}", block.entry.encoding);
        }
    }

    /// Compares the bits, so that a NaN equals itself.
    fn same(a: &Values, b: &Values) -> bool {
        match (a, b) {
            (Values::F32(a), Values::F32(b)) => a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits())),
            (Values::F64(a), Values::F64(b)) => a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits())),
            (Values::Views(a), Values::Views(b)) => a.iter().eq(b.iter()),
            (a, b) => a == b,
        }
    }

    #[test]
    fn rows_are_those_of_decoding_first() {
        let mut rng = fastrand::Rng::with_seed(1);
        let sizes = [1, 2, 63, 64, 65, 1023, 1024, 1025, 3_000, 10_000];
        let mut seen = Vec::new();
        for round in 0..40 {
            let effort = if round % 2 == 0 { Effort::Fresh } else { Effort::Sealed };
            for column_type in TYPES {
                let column = random_column(&mut rng, column_type, sizes[round % sizes.len()]);
                seen.push(check(&mut rng, column_type, &column, effort));
            }
        }
        for (rows, effort) in [(5_000, Effort::Fresh), (40_000, Effort::Sealed)] {
            for (_, column_type, column) in shapes(&mut rng, rows) {
                seen.push(check(&mut rng, column_type, &column, effort));
            }
        }
        for encoding in encoding::tests::WRITTEN {
            assert!(seen.contains(&encoding), "{encoding:?} among {seen:?}");
        }
    }
}
