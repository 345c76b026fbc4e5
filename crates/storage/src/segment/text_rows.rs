//! Rows of a text block, without copies of strings shared by several rows.

use super::encoding::EncodedBlock;
use super::format::Encoding;
use super::selection::Selection;
use crate::cache::Made;
use crate::{Block, BlockData};
use bytes::Bytes;

/// Strings, and the string of each row.
#[derive(Clone, Debug)]
pub struct TextRows {
    pub rows: usize,
    /// Validity bits, see [`Block::validity`]; `None` if no row is NULL.
    pub validity: Option<Bytes>,
    /// A view for each string, see [`tidalite_types::views`], and the data that they point to.
    ///
    /// The strings are those of a dictionary, or of all rows of the block.
    pub views: Bytes,
    pub data: Bytes,
    /// Index of the string of each row; without it row `i` has string `i`. The index of a NULL row is valid but
    /// meaningless.
    pub places: Option<Vec<u32>>,
    /// Value derived from `views` and `data`.
    pub made: Made,
}

/// Rows of a block to read.
#[derive(Clone, Copy, Debug)]
pub enum TextsOf<'a> {
    All,
    Some(&'a Selection),
    /// All rows, except that rows with equal strings may be omitted: a dictionary supplies its strings without reading
    /// rows.
    Each,
}

impl<'a> TextsOf<'a> {
    pub(super) fn selection(self) -> Option<&'a Selection> {
        if let TextsOf::Some(selection) = self { Some(selection) } else { None }
    }
}

impl TextRows {
    pub(super) fn of(block: &EncodedBlock, made: Made, wanted: TextsOf<'_>) -> Result<TextRows, String> {
        match (block.entry.encoding, wanted.selection()) {
            (Encoding::Plain, None) => TextRows::decoded(block.decode()?, made),
            (Encoding::Plain, Some(selection)) => {
                let TextRows { views, data, made, .. } = TextRows::decoded(block.decode()?, made)?;
                let places: Vec<u32> = tidalite_kernels::picked(selection.mask()).map(|row| row as u32).collect();
                let validity = block.picked_validity(Some(selection))?;
                Ok(TextRows { rows: places.len(), validity, views, data, places: Some(places), made })
            }
            // Every string of a dictionary occurs in a row, but the row may be NULL.
            (Encoding::PackedDict, _) if matches!(wanted, TextsOf::Each) && block.zone().null_count == 0 => {
                let (views, data) = block.distinct_texts()?;
                Ok(TextRows { rows: block.entry.parameter as usize, validity: None, views, data, places: None, made })
            }
            (Encoding::PackedDict, selection) => {
                let (views, data, places) = block.dictionary(selection)?;
                let validity = block.picked_validity(selection)?;
                Ok(TextRows { rows: places.len(), validity, views, data, places: Some(places), made })
            }
            // Other encodings are decoded each time, so that no derived value can be kept.
            (_, None) => TextRows::decoded(block.decode()?, Made::default()),
            (_, Some(selection)) => TextRows::decoded(block.take(selection)?, Made::default()),
        }
    }

    fn decoded(block: Block, made: Made) -> Result<TextRows, String> {
        let Block { rows, physical, null_count, validity, data } = block;
        let validity = validity.filter(|_| null_count > 0);
        match data {
            BlockData::Views { views, data } => Ok(TextRows { rows, validity, views, data, places: None, made }),
            BlockData::Fixed(_) => Err(format!("values of {physical:?} where text belongs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::encoding::opened;
    use crate::segment::encoding::tests::random_column;
    use crate::segment::{Effort, encode, to_column};
    use tidalite_types::views::view_bytes;
    use tidalite_types::{ColumnType, Values};

    fn texts_of(texts: &TextRows) -> Vec<Option<Vec<u8>>> {
        let views: Vec<u128> = bytemuck::cast_slice(&texts.views).to_vec();
        let of_row = |row: usize| {
            let valid = texts.validity.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
            let place = texts.places.as_ref().map_or(row, |places| places[row] as usize);
            let text = view_bytes(&views[place], &texts.data).to_vec();
            valid.then_some(text)
        };
        (0..texts.rows).map(of_row).collect()
    }

    #[test]
    fn rows_have_the_texts_that_decoding_gives() {
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut shared, mut without_nulls) = (0, 0);
        for round in 0..60 {
            let mut column = random_column(&mut rng, ColumnType::Varchar, [70, 3_000, 9_000][round % 3]);
            if round % 5 == 0 {
                column.validity = None;
            }
            let effort = if round % 2 == 0 { Effort::Fresh } else { Effort::Sealed };
            let mut block = encode(ColumnType::Varchar, &column, 0, column.len(), effort);
            if opened::is_opened(block.entry.encoding) {
                let bytes = opened::open(&block).unwrap();
                block = opened::opened(block, &bytes).unwrap();
            }
            let decoded = to_column(&block.decode().unwrap());
            let Values::Views(views) = &decoded.values else { panic!("text is kept in views") };
            let all: Vec<_> =
                (0..block.rows).map(|row| decoded.is_valid(row).then(|| views.get(row).to_vec())).collect();
            let texts = TextRows::of(&block, Made::default(), TextsOf::All).unwrap();
            assert_eq!(texts_of(&texts), all, "{:?}", block.entry.encoding);
            shared += usize::from(texts.views.len() < 16 * texts.rows);
            let mut each = texts_of(&TextRows::of(&block, Made::default(), TextsOf::Each).unwrap());
            if block.entry.encoding == Encoding::PackedDict && all.iter().all(Option::is_some) {
                let mut distinct = all.clone();
                distinct.sort_unstable();
                distinct.dedup();
                each.sort_unstable();
                assert_eq!(each, distinct);
                without_nulls += 1;
            } else {
                assert_eq!(each, all);
            }
            let mask: Vec<u64> = (0..block.rows.div_ceil(64)).map(|_| rng.u64(..) & rng.u64(..)).collect();
            let mut mask = tidalite_types::Bitmap::from_words(mask, block.rows).words().to_vec();
            let last = mask.len() - 1;
            mask[last] &= u64::MAX >> (last * 64 + 64 - block.rows);
            let expected: Vec<_> = tidalite_kernels::picked(&mask).map(|row| all[row].clone()).collect();
            assert_eq!(
                texts_of(&TextRows::of(&block, Made::default(), TextsOf::Some(&Selection::new(mask))).unwrap()),
                expected
            );
        }
        assert!(shared > 5 && without_nulls > 2, "{shared} dictionaries, {without_nulls} without NULLs");
    }
}
