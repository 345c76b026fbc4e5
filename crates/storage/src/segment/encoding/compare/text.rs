//! Selects the rows of a text block that are equal to a constant.
//!
//! A dictionary is searched once and its codes are compared in packed form; if few rows are left, only their entries
//! are examined. FSST strings are first compared by length; only vectors that contain a string of the right length are
//! decompressed.

use crate::segment::buffer::values_in;
use crate::segment::encoding::chunk::Layout;
use crate::segment::encoding::picked::Picked;
use crate::segment::encoding::{EncodedBlock, compressed, dict, fsst, text};
use crate::segment::format::Encoding;
use crate::segment::selection::Selection;
use std::borrow::Cow;
use tidalite_kernels::prefetch;
use tidalite_types::column_type::Physical;
use tidalite_types::views::{INLINE_BYTES, inline_view, outline_view, view_bytes};

/// Dictionary entries are examined row by row if there are this many times more entries than rows.
const ENTRIES_A_ROW: usize = 8;

/// Ratio of rows to wanted rows.
///
/// If the block has this many times more rows than are wanted, rows are examined one by one, with a prefetch
/// `ROWS_AHEAD` rows ahead.
const ROWS_A_LOOK: usize = 32;
const ROWS_AHEAD: usize = 16;

/// Up to this many of 64 rows are examined one by one.
const ROWS_A_WORD: u32 = 16;

impl EncodedBlock {
    /// Returns a bit per row whose value is `text`, least significant first.
    ///
    /// Bits of NULL rows and bits after the last row are clear. Returns `None` if the block is not text.
    #[must_use]
    pub fn equals(&self, text: &[u8]) -> Option<Vec<u64>> {
        self.equals_among(text, None)
    }

    /// Returns rows like [`EncodedBlock::equals`]; the result for rows without a bit in `among` is unspecified.
    pub(in crate::segment::encoding) fn equals_among(&self, wanted: &[u8], among: Option<&[u64]>) -> Option<Vec<u64>> {
        if self.physical != Physical::Views {
            return None;
        }
        if self.entry.encoding == Encoding::Compressed {
            return compressed::inflate(self).ok()?.equals_among(wanted, among);
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows).ok()?;
        let mut mask = vec![0; self.rows.div_ceil(64)];
        let views: Cow<'_, [u128]> = match self.entry.encoding {
            Encoding::Text => Cow::Owned(text::strings(&layout, self).ok()?),
            _ => values_in(layout.first(&self.bytes)),
        };
        let is_equal = equal_to(wanted, layout.data(&self.bytes));
        let few = |most: usize| {
            let rows = among.map(|mask| Selection::new(mask.to_vec()))?;
            if rows.rows() < most { Some(rows) } else { None }
        };
        match self.entry.encoding {
            Encoding::Nulls => {}
            Encoding::Plain | Encoding::Text
                if let Some(rows) = few(self.rows / ROWS_A_LOOK)
                    && let Some(rows) = rows.numbers() =>
            {
                for (at, row) in rows.iter().map(|row| usize::from(*row)).enumerate() {
                    if let Some(ahead) = rows.get(at + ROWS_AHEAD) {
                        prefetch(&views, usize::from(*ahead));
                    }
                    mask[row / 64] |= u64::from(is_equal(views.get(row)?)) << (row % 64);
                }
            }
            Encoding::Plain | Encoding::Text => {
                let wanted = |at: usize| among.map_or(u64::MAX, |mask| mask[at]);
                for (at, views) in views.chunks(64).enumerate().filter(|(at, _)| wanted(*at) != 0) {
                    // Each view may be a cache miss.
                    let rows = if wanted(at).count_ones() <= ROWS_A_WORD { wanted(at) } else { u64::MAX };
                    let equal = |(i, view)| if rows >> i & 1 == 1 { u64::from(is_equal(view)) << i } else { 0 };
                    mask[at] = views.iter().enumerate().map(equal).fold(0, |word, bit| word | bit);
                }
            }
            Encoding::PackedDict => {
                if let Some(few) = few(views.len() / ENTRIES_A_ROW)
                    && let Some(rows) = few.numbers()
                {
                    let codes = dict::take_codes(layout.codes(&self.bytes), views.len(), self.rows, &Picked::of(&few));
                    for (row, code) in rows.iter().map(|row| usize::from(*row)).zip(codes) {
                        mask[row / 64] |= u64::from(is_equal(views.get(usize::from(code))?)) << (row % 64);
                    }
                } else if let Some(code) = views.iter().position(is_equal) {
                    dict::rows_of_code(layout.codes(&self.bytes), views.len(), code, self.rows, &mut mask)?;
                }
            }
            Encoding::FsstDict => {
                let (distinct, data) = fsst::distinct(&layout, self)?;
                if let Some(code) = distinct.iter().position(equal_to(wanted, &data)) {
                    dict::rows_of_code(layout.codes(&self.bytes), distinct.len(), code, self.rows, &mut mask)?;
                }
            }
            Encoding::TextDict => text::rows_of_dictionary(&layout, self, is_equal, &mut mask)?,
            Encoding::Fsst => fsst::rows_equal(&layout, self, wanted, among, &mut mask)?,
            _ => return None,
        }
        self.clear_nulls(&mut mask)?;
        Some(mask)
    }
}

/// Returns a test for views into `data` that are equal to `text`.
fn equal_to<'a>(text: &'a [u8], data: &'a [u8]) -> impl Fn(&u128) -> bool + 'a {
    let is_long = text.len() > INLINE_BYTES;
    let wanted = if is_long { outline_view(text, 0) } else { inline_view(text) };
    // Length and first bytes are in the low half; the offset in the high half is ignored.
    move |view| match is_long {
        true => *view as u64 == wanted as u64 && view_bytes(view, data) == text,
        false => *view == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::encoding::encode;
    use crate::segment::encoding::tests::{encode_bare, random_column, shapes};
    use crate::segment::{Effort, to_column};
    use tidalite_types::{Column, ColumnType, Values};

    fn check(rng: &mut fastrand::Rng, column: &Column, effort: Option<Effort>) -> Encoding {
        let block = match effort {
            Some(effort) => encode(ColumnType::Varchar, column, 0, column.len(), effort),
            None => encode_bare(ColumnType::Varchar, column, Effort::Sealed),
        };
        let Values::Views(views) = to_column(&block.decode().unwrap()).values else { unreachable!() };
        let mut wanted: Vec<Vec<u8>> = (0..4).map(|_| views.get(rng.usize(..views.len())).to_vec()).collect();
        wanted.extend([b"".to_vec(), b"nowhere".to_vec(), [wanted[0].as_slice(), b"x"].concat()]);
        // The same length and beginning with a different end.
        if let Some(last) = wanted[1].clone().last_mut() {
            let mut other = wanted[1].clone();
            *other.last_mut().unwrap() = last.wrapping_add(1);
            wanted.push(other);
        }
        for text in wanted {
            let mask = block.equals(&text).unwrap();
            assert_eq!(mask.len(), column.len().div_ceil(64));
            for row in 0..mask.len() * 64 {
                let expected = row < column.len() && column.is_valid(row) && views.get(row) == text;
                assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, expected, "row {row} {:?}", block.entry.encoding);
            }
        }
        block.entry.encoding
    }

    #[test]
    fn rows_are_those_of_decoding_first() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut seen = Vec::new();
        for (i, rows) in [1, 63, 64, 65, 1_024, 1_025, 5_000, 30_000].into_iter().cycle().take(32).enumerate() {
            let effort = [Some(Effort::Fresh), Some(Effort::Sealed), None][i % 3];
            let column = random_column(&mut rng, ColumnType::Varchar, rows);
            seen.push(check(&mut rng, &column, effort));
            for (_, column_type, column) in shapes(&mut rng, rows) {
                if column_type == ColumnType::Varchar {
                    seen.push(check(&mut rng, &column, effort));
                }
            }
        }
        use Encoding::{Compressed, Fsst, FsstDict, PackedDict, Plain};
        for encoding in [Plain, PackedDict, Fsst, FsstDict, Compressed] {
            assert!(seen.contains(&encoding), "{encoding:?} among {seen:?}");
        }
        let numbers = encode(ColumnType::Long, &Column::new(Values::I64(vec![1, 2])), 0, 2, Effort::Fresh);
        assert_eq!(numbers.equals(b"1"), None);
    }
}
