//! Removes from a mask the rows whose value is not in a set, for encoded blocks and for columns in memory.
//!
//! Input: a mask of the wanted rows, least significant bit first. Output: the mask without the rows whose value is not
//! in the set. Vectors without a wanted row are skipped, so the order of several filters determines their total cost.

use super::chunk::Layout;
use super::interval::{Interval, fits};
use super::mask::WORDS;
use super::plain::{Limited, in_vector};
use super::{EncodedBlock, compressed, dict, packed, to_column};
use crate::segment::buffer::values_in;
use crate::segment::format::Encoding;
use crate::segment::selection::Selection;
use crate::text_pattern::TextMatcher;
use crate::{TextPattern, ValueSet};
use tidalite_kernels::{RANGES_MAX, count_picked, f64_in_range, keep_bits, picked_numbers};
use tidalite_types::column_type::Physical;
use tidalite_types::{Bitmap, Column, VECTOR_ROWS, Values, ViewsRef};

/// Up to this many ranges or strings are compared in place; for more, the wanted rows are decoded and looked up.
const PASSES_MAX: usize = 4;
const LINE_BYTES: usize = 64;
/// Lines of a vector that are compared in the time of reading one row.
const LINES_A_ROW: usize = 4;

impl EncodedBlock {
    /// Clears the rows of `mask` that are not in `set`. NULL rows remain if `with_null` is true.
    ///
    /// # Panics
    /// May panic if [`EncodedBlock::check`] would fail or the lengths of mask and block differ.
    pub fn retain(&self, set: &ValueSet, with_null: bool, mask: &mut [u64]) -> Result<(), String> {
        if self.entry.encoding == Encoding::Nulls {
            if !with_null {
                mask.fill(0);
            }
            return Ok(());
        }
        let valid = self.valid(mask.len())?;
        let hits = self.hits(set, valid.as_deref(), mask)?;
        let Some(valid) = valid else {
            mask.iter_mut().zip(&hits).for_each(|(word, hits)| *word &= hits);
            return Ok(());
        };
        for (word, (hits, valid)) in mask.iter_mut().zip(hits.iter().zip(&valid)) {
            *word &= hits & valid | if with_null { !valid } else { 0 };
        }
        Ok(())
    }

    /// Returns the rows that are not NULL; `None` if no row is NULL.
    fn valid(&self, words: usize) -> Result<Option<Vec<u64>>, String> {
        if !self.entry.has_validity {
            return Ok(None);
        }
        let mut valid = vec![u64::MAX; words];
        self.clear_nulls(&mut valid).ok_or("sections that do not add up")?;
        Ok(Some(valid))
    }

    /// Returns the rows of `mask` that are in `set`; the result for NULL rows is unspecified.
    fn hits(&self, set: &ValueSet, valid: Option<&[u64]>, mask: &[u64]) -> Result<Vec<u64>, String> {
        if let Some(is_inside) = set.decide(self.entry.zone.bounds) {
            return Ok(vec![if is_inside { u64::MAX } else { 0 }; mask.len()]);
        }
        if self.entry.encoding == Encoding::Compressed {
            return compressed::inflate(self)?.hits(set, valid, mask);
        }
        if self.is_sparse(mask) {
            return match self.by_row(set, mask)? {
                Some(found) => Ok(found),
                None => self.looked_up(set, valid, mask),
            };
        }
        let found = match set {
            ValueSet::Ints(ranges) => {
                self.in_any(ranges.iter().map(|(lo, hi)| Interval::Ints(*lo, *hi)).collect(), mask)?
            }
            ValueSet::Floats(ranges) => {
                self.in_any(ranges.iter().map(|(lo, hi)| Interval::Floats(*lo, *hi)).collect(), mask)?
            }
            ValueSet::Texts { texts, is_listed } => self.one_of(texts, *is_listed, mask)?,
            ValueSet::Like { pattern, is_matching } => self.like(pattern, *is_matching, mask)?,
            ValueSet::Nothing | ValueSet::All => None,
        };
        match found {
            Some(found) => Ok(found),
            None => self.looked_up(set, valid, mask),
        }
    }

    /// Returns true if the block has numbers of 32 or 64 bits with access by row.
    pub(in crate::segment) fn has_numbers_by_row(&self) -> bool {
        use Encoding::{Alp, AlpRd, Packed, Plain};
        matches!(self.entry.encoding, Plain | Packed | Alp | AlpRd)
            && matches!(self.physical, Physical::I32 | Physical::I64 | Physical::F64)
    }

    /// Returns true if so few rows per vector are wanted that reading them one by one touches fewer cache lines.
    pub(in crate::segment) fn is_sparse(&self, mask: &[u64]) -> bool {
        if !self.has_numbers_by_row() {
            return false;
        }
        let lines = self.entry.bytes as usize / LINE_BYTES / self.rows.div_ceil(VECTOR_ROWS).max(1);
        // Most masks are not sparse, which is detected without examining vectors.
        let wanted = count_picked(mask) * LINES_A_ROW;
        wanted <= lines * mask.len().div_ceil(WORDS)
            && wanted <= lines * mask.chunks(WORDS).filter(|words| words.iter().any(|word| *word != 0)).count()
    }

    /// Compares with ranges; `None` if a lookup of values is faster or required.
    fn in_any(&self, mut intervals: Vec<Interval>, mask: &[u64]) -> Result<Option<Vec<u64>>, String> {
        if intervals.iter().any(|interval| !fits(self.physical, *interval)) {
            return Err(format!("numbers of another kind than {:?}", self.physical));
        }
        intervals.retain(|interval| interval.decide(self.entry.zone.bounds) != Some(false));
        if self.entry.encoding == Encoding::Packed && (2..=RANGES_MAX).contains(&intervals.len()) {
            let layout = Layout::of(&self.entry, self.physical, self.rows)?;
            let ranges: Option<Vec<_>> = intervals.iter().map(|interval| interval.of_i64()).collect();
            let found = ranges.and_then(|of| packed::rows_in_any(layout.payload(&self.bytes), self, &of, mask));
            if found.is_some() {
                return Ok(found);
            }
        }
        if let [only] = *intervals {
            return Ok(self.rows_in_among(only, Some(mask)));
        }
        if intervals.len() > PASSES_MAX {
            return Ok(None);
        }
        let mut found = vec![0; mask.len()];
        for interval in intervals {
            let Some(rows) = self.rows_in_among(interval, Some(mask)) else { return Ok(None) };
            found.iter_mut().zip(rows).for_each(|(found, rows)| *found |= rows);
        }
        Ok(Some(found))
    }

    /// Compares with strings, with the same result `None` as [`EncodedBlock::in_any`].
    fn one_of(&self, texts: &[Vec<u8>], is_listed: bool, mask: &[u64]) -> Result<Option<Vec<u64>>, String> {
        if self.physical != Physical::Views {
            return Err(format!("text among values of {:?}", self.physical));
        }
        if texts.len() > PASSES_MAX {
            return Ok(None);
        }
        let mut found = vec![0; mask.len()];
        for text in texts {
            let Some(rows) = self.equals_among(text, Some(mask)) else { return Ok(None) };
            found.iter_mut().zip(rows).for_each(|(found, rows)| *found |= rows);
        }
        if !is_listed {
            found.iter_mut().for_each(|word| *word = !*word);
        }
        Ok(Some(found))
    }

    /// Matches a pattern, once per string of a dictionary.
    ///
    /// Returns `None` if fewer rows are wanted than the dictionary has strings, and if strings must be decoded first.
    fn like(&self, pattern: &TextPattern, is_matching: bool, mask: &[u64]) -> Result<Option<Vec<u64>>, String> {
        if self.physical != Physical::Views {
            return Err(format!("text among values of {:?}", self.physical));
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let (views, data) = (values_in::<u128>(layout.first(&self.bytes)), layout.data(&self.bytes));
        let texts = ViewsRef { views: &views, data };
        let distinct = self.entry.parameter as usize;
        let mut found = match self.entry.encoding {
            Encoding::Plain => pattern.matcher().matching(texts, mask),
            Encoding::PackedDict if count_picked(mask) >= distinct => {
                let is_hit = pattern.matcher().matching(texts, &vec![u64::MAX; distinct.div_ceil(64)]);
                if is_hit.iter().all(|word| *word == 0) {
                    vec![0; mask.len()]
                } else {
                    let codes = dict::unpacked(layout.codes(&self.bytes), distinct, self.rows);
                    let bit = |code: u16| is_hit[usize::from(code) / 64] >> (code % 64) & 1;
                    let word = |codes: &[u16]| codes.iter().rev().fold(0, |word, code| word << 1 | bit(*code));
                    codes.chunks(64).map(word).collect()
                }
            }
            _ => return Ok(None),
        };
        if !is_matching {
            found.iter_mut().for_each(|word| *word = !*word);
        }
        Ok(Some(found))
    }

    /// Reads rows one by one; `None` if the encoding has no access by row.
    fn by_row(&self, set: &ValueSet, mask: &[u64]) -> Result<Option<Vec<u64>>, String> {
        let numbers = picked_numbers(mask, count_picked(mask));
        let mut found = vec![0; mask.len()];
        let mut keep = |row: u16, is_inside: bool| found[usize::from(row) / 64] |= u64::from(is_inside) << (row % 64);
        if self.physical == Physical::F64 {
            let mut values = Vec::with_capacity(numbers.len());
            if !self.few_floats(&numbers, &mut values)? {
                return Ok(None);
            }
            numbers.iter().zip(values).for_each(|(row, value)| keep(*row, set.has_float(value)));
        } else {
            let mut values = Vec::with_capacity(numbers.len());
            if !self.few_ints(&numbers, &mut values)? {
                return Ok(None);
            }
            numbers.iter().zip(values).for_each(|(row, value)| keep(*row, set.has_int(value.into())));
        }
        Ok(Some(found))
    }

    /// Decodes the rows of `mask` that are not NULL, and other rows only if most are wanted.
    fn looked_up(&self, set: &ValueSet, valid: Option<&[u64]>, mask: &[u64]) -> Result<Vec<u64>, String> {
        let mut found = mask.to_vec();
        found.iter_mut().zip(valid.into_iter().flatten()).for_each(|(word, valid)| *word &= valid);
        if self.physical != Physical::Views && 2 * count_picked(&found) >= self.rows {
            retain_rows(&to_column(&self.decode()?), 0, self.rows, set, false, &mut found);
            return Ok(found);
        }
        let selection = Selection::new(found);
        let values = to_column(&self.take(&selection)?);
        let mut kept = Bitmap::filled(values.len(), true).words().to_vec();
        retain_rows(&values, 0, values.len(), set, false, &mut kept);
        let mut found = selection.into_mask();
        keep_bits(&mut found, &kept);
        Ok(found)
    }
}

/// Retains rows `from..from + rows` of a column in memory, like [`EncodedBlock::retain`].
///
/// `mask` begins with row `from`, which is a multiple of 64.
///
/// # Panics
/// Panics if `from` is not a multiple of 64, or the column or the mask has too few rows.
pub fn retain_rows(column: &Column, from: usize, rows: usize, set: &ValueSet, with_null: bool, mask: &mut [u64]) {
    assert!(from.is_multiple_of(64) && from + rows <= column.len(), "rows {from}+{rows} of {}", column.len());
    let prepared = Prepared::of(set);
    for (vector, words) in mask[..rows.div_ceil(64)].chunks_mut(WORDS).enumerate() {
        if words.iter().all(|word| *word == 0) {
            continue;
        }
        let start = from + vector * VECTOR_ROWS;
        let hits = prepared.hits(&column.values, start, (start + VECTOR_ROWS).min(from + rows), words);
        for (i, word) in words.iter_mut().enumerate() {
            let valid = column.validity.as_ref().map_or(u64::MAX, |valid| valid.words()[start / 64 + i]);
            *word &= hits[i] & valid | if with_null { !valid } else { 0 };
        }
    }
}

type Hits = [u64; WORDS];

/// A set prepared for tests of many values.
struct Prepared<'a> {
    set: &'a ValueSet,
    matcher: Option<TextMatcher<'a>>,
    table: Option<MatchTable>,
}

/// A bit per integer from the first one on.
struct MatchTable {
    first: i64,
    bits: Vec<u64>,
}

impl<'a> Prepared<'a> {
    fn of(set: &'a ValueSet) -> Prepared<'a> {
        let (mut matcher, mut table) = (None, None);
        match set {
            ValueSet::Like { pattern, .. } => matcher = Some(pattern.matcher()),
            ValueSet::Ints(ranges) if ranges.len() > PASSES_MAX => table = MatchTable::of(ranges),
            _ => {}
        }
        Prepared { set, matcher, table }
    }

    /// Tests at most one vector; the result for rows that are not wanted is unspecified.
    fn hits(&self, values: &Values, from: usize, to: usize, wanted: &[u64]) -> Hits {
        let set = self.set;
        match (set, values) {
            (ValueSet::All, _) => [u64::MAX; WORDS],
            (ValueSet::Ints(ranges), Values::I8(v)) => self.ints(&v[from..to], ranges),
            (ValueSet::Ints(ranges), Values::I16(v)) => self.ints(&v[from..to], ranges),
            (ValueSet::Ints(ranges), Values::I32(v)) => self.ints(&v[from..to], ranges),
            (ValueSet::Ints(ranges), Values::I64(v)) => self.ints(&v[from..to], ranges),
            (ValueSet::Ints(ranges), Values::U32(v)) => self.ints(&v[from..to], ranges),
            (ValueSet::Ints(_), Values::I128(v)) => each(&v[from..to], |v| set.has_int(*v)),
            (ValueSet::Ints(_), Values::Bit(bits)) => of_bits(&bits.words()[from / 64..to.div_ceil(64)], set),
            (ValueSet::Floats(ranges), Values::F64(v)) => doubles(&v[from..to], ranges, set),
            (ValueSet::Floats(_), Values::F32(v)) => each(&v[from..to], |v| set.has_float(f64::from(*v))),
            (ValueSet::Like { is_matching, .. }, Values::Views(views)) => {
                let texts = ViewsRef { views: &views.views()[from..to], data: views.data() };
                let found = self.matcher.as_ref().map(|matcher| matcher.matching(texts, wanted));
                let mut hits = [0; WORDS];
                hits.iter_mut().zip(found.into_iter().flatten()).for_each(|(hits, found)| *hits = found);
                if *is_matching { hits } else { hits.map(|word| !word) }
            }
            (ValueSet::Texts { .. }, Values::Views(views)) => {
                let mut rows = from..to;
                each(&views.views()[from..to], |_| rows.next().is_some_and(|row| set.has_text(views.get(row))))
            }
            // A set of another kind contains none of the values.
            _ => [0; WORDS],
        }
    }

    fn ints<T: Limited + Into<i128>>(&self, values: &[T], ranges: &[(i128, i128)]) -> Hits {
        if let Some(table) = &self.table {
            // Values here have at most 64 bits.
            return each(values, |v| table.has((*v).into() as i64));
        }
        if ranges.len() > PASSES_MAX {
            return each(values, |v| self.set.has_int((*v).into()));
        }
        let mut all = [0; WORDS];
        for (lo, hi) in ranges {
            let mut hits = [0; WORDS];
            if let Some((lo, hi)) = Interval::Ints(*lo, *hi).of_i64() {
                in_vector(values, lo, hi, &mut hits);
            }
            all.iter_mut().zip(hits).for_each(|(all, hits)| *all |= hits);
        }
        all
    }
}

impl MatchTable {
    /// Limit in bits; used for values that are close together, such as symbol ids.
    const BITS_MAX: i128 = 1 << 20;

    fn of(ranges: &[(i128, i128)]) -> Option<MatchTable> {
        let (first, last) = (ranges.first()?.0, ranges.last()?.1);
        let count = last.checked_sub(first).filter(|count| *count < MatchTable::BITS_MAX)? as usize + 1;
        let start = i64::try_from(first).ok()?;
        let mut bits = vec![0; count.div_ceil(64)];
        let inside = ranges.iter().flat_map(|(lo, hi)| (lo - first) as usize..=(hi - first) as usize);
        inside.for_each(|at| bits[at / 64] |= 1 << (at % 64));
        Some(MatchTable { first: start, bits })
    }

    /// Values before the first one wrap to positions after the last one.
    #[inline]
    fn has(&self, value: i64) -> bool {
        let at = value.wrapping_sub(self.first).cast_unsigned();
        self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

fn each<T>(values: &[T], mut is_inside: impl FnMut(&T) -> bool) -> Hits {
    let mut hits = [0; WORDS];
    for (word, values) in hits.iter_mut().zip(values.chunks(64)) {
        *word = values.iter().enumerate().fold(0, |word, (i, value)| word | u64::from(is_inside(value)) << i);
    }
    hits
}

fn doubles(values: &[f64], ranges: &[(f64, f64)], set: &ValueSet) -> Hits {
    if ranges.len() > PASSES_MAX {
        return each(values, |v| set.has_float(*v));
    }
    let mut all = [0; WORDS];
    for (lo, hi) in ranges {
        all.iter_mut().zip(f64_in_range(values, *lo, *hi)).for_each(|(all, hits)| *all |= hits);
    }
    all
}

fn of_bits(bits: &[u64], set: &ValueSet) -> Hits {
    let (has_false, has_true) = (set.has_int(0), set.has_int(1));
    let mut hits = [0; WORDS];
    for (hits, bits) in hits.iter_mut().zip(bits) {
        *hits = if has_true { *bits } else { 0 } | if has_false { !bits } else { 0 };
    }
    hits
}

#[cfg(test)]
mod tests;
