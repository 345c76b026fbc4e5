//! Finds every fault of a segment, bypassing the cache and continuing after the first fault.
//!
//! Input: a segment and its description by the table. Output: every fault with its location, and the intact blocks. In
//! addition to the checks of reading (checksums, structure), each block is decoded and compared with its description:
//! bounds, counts of NULLs, symbols, time order, the partition. Every byte must belong to a part of the file.

use super::encoding::{EncodedBlock, summed, to_column, zones};
use super::format::{self, Encoding, Entry, Footer, TRAILER_BYTES};
use super::reader::Segment;
use crate::{Bounds, Error, Result, Sum, Zone};
use bytes::Bytes;
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnType, TableSchema, VECTOR_ROWS, Values};

/// The description of a segment outside of its file.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    pub schema: &'a TableSchema,
    /// Returns the number of strings in the dictionary of a column.
    pub symbols: &'a dyn Fn(ColumnId) -> usize,
}

#[derive(Debug, Default)]
pub struct Verified {
    /// Faults with their location, see [`Error::damage`].
    pub problems: Vec<Error>,
    /// Blocks of which every column is intact, ascending.
    pub whole_blocks: Vec<usize>,
    /// For symbol columns: the number of strings that their ids require.
    pub symbols_needed: Vec<(ColumnId, usize)>,
}

/// Verifies a segment. System errors that are no damage, and errors of `go_on`, end the work; `go_on` gets the bytes
/// read.
pub fn verify(
    segment: &Segment,
    expected: Option<Expected<'_>>,
    go_on: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Verified> {
    let mut work = Verifier { segment, expected, found: Verified::default(), extents: Vec::new() };
    match segment.load_footer() {
        Ok(footer) => work.all(&footer, go_on)?,
        Err(error) => work.note(error)?,
    }
    Ok(work.found)
}

struct Verifier<'a> {
    segment: &'a Segment,
    expected: Option<Expected<'a>>,
    found: Verified,
    /// Starts and ends of the chunks.
    extents: Vec<(u64, u64)>,
}

impl Verifier<'_> {
    /// Records damage; returns any other error.
    fn note(&mut self, error: Error) -> Result<()> {
        if error.damage().is_none() {
            return Err(error);
        }
        self.found.problems.push(error);
        Ok(())
    }

    fn all(&mut self, footer: &Footer, go_on: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let file = self.segment.file()?;
        match self.segment.read_bytes(&*file, 0, format::HEADER_BYTES) {
            Ok(header) if header[..] == format::header() => {}
            Ok(_) => self.note(self.segment.damaged_file(0, "its header is wrong"))?,
            Err(error) => self.note(error)?,
        }
        let mut is_whole = vec![true; footer.block_count()];
        for index in 0..footer.column_count() {
            let mut column = ColumnCheck::new(self.segment, footer.column_id(index), self.expected);
            for (block, is_whole) in is_whole.iter_mut().enumerate() {
                match self.block(footer, index, block, &mut column) {
                    Ok(bytes) => go_on(bytes)?,
                    Err(error) => {
                        *is_whole = false;
                        self.note(error)?;
                    }
                }
            }
            if let Err(error) = column.finish() {
                self.note(error)?;
            }
            if column.symbols_needed > 0 {
                self.found.symbols_needed.push((footer.column_id(index), column.symbols_needed));
            }
        }
        self.gaps(&*file)?;
        self.found.whole_blocks = (0..is_whole.len()).filter(|block| is_whole[*block]).collect();
        Ok(())
    }

    fn block(&mut self, footer: &Footer, index: usize, block: usize, check: &mut ColumnCheck<'_>) -> Result<u64> {
        let id = footer.column_id(index);
        let footer_at = self.segment.meta().bytes - TRAILER_BYTES as u64;
        let damaged = |problem: String| self.segment.damaged(id, block, footer_at, &problem);
        let (physical, entry) =
            footer.physical(index).and_then(|p| Ok((p, footer.entry(index, block)?))).map_err(damaged)?;
        let Entry { offset, bytes, encoding, .. } = entry;
        let mut encoded = EncodedBlock { rows: self.segment.block_rows(block), physical, entry, bytes: Bytes::new() };
        if bytes > 0 {
            self.extents.push((offset, offset.saturating_add(u64::from(bytes))));
        }
        if encoding != Encoding::Nulls {
            encoded.bytes = self.segment.load(id, block, &encoded)?;
        }
        check.block(block, &encoded).map_err(|problem| self.segment.damaged(id, block, offset, &problem))?;
        Ok(u64::from(bytes))
    }

    /// Checks that bytes outside of chunks are zero.
    fn gaps(&mut self, file: &dyn crate::fs::File) -> Result<()> {
        if !self.found.problems.is_empty() {
            return Ok(());
        }
        self.extents.sort_unstable();
        let mut at = format::HEADER_BYTES as u64;
        for (from, to) in std::mem::take(&mut self.extents) {
            if from > at && from - at < format::ALIGNMENT as u64 {
                let gap = self.segment.read_bytes(file, at, (from - at) as usize)?;
                if gap.iter().any(|byte| *byte != 0) {
                    self.note(self.segment.damaged_file(at, "bytes between its blocks are not zero"))?;
                }
            }
            at = at.max(to);
        }
        Ok(())
    }
}

/// The state of checking one column, block by block.
struct ColumnCheck<'a> {
    segment: &'a Segment,
    id: ColumnId,
    column_type: Option<ColumnType>,
    is_designated: bool,
    partition: (i64, i64),
    /// First designated timestamp, as far as the column was read without a gap.
    first: Option<i64>,
    last: Option<i64>,
    has_gap: bool,
    strings: Option<usize>,
    symbols_needed: usize,
}

impl<'a> ColumnCheck<'a> {
    fn new(segment: &'a Segment, id: ColumnId, expected: Option<Expected<'_>>) -> ColumnCheck<'a> {
        let column_type = expected.and_then(|e| e.schema.column_by_id(id)).map(|c| c.column_type);
        let is_symbol = column_type == Some(ColumnType::Symbol);
        let is_designated = expected.is_some_and(|e| e.schema.designated == Some(id));
        ColumnCheck {
            segment,
            id,
            column_type,
            is_designated,
            partition: expected.map_or((i64::MIN, i64::MAX), |e| e.schema.partition(segment.time_range().0)),
            first: None,
            last: None,
            has_gap: false,
            strings: expected.filter(|_| is_symbol).map(|e| (e.symbols)(id)),
            symbols_needed: 0,
        }
    }

    fn block(&mut self, block: usize, encoded: &EncodedBlock) -> Result<(), String> {
        // Until the block is accepted it counts as a gap.
        let had_gap = std::mem::replace(&mut self.has_gap, true);
        if let Some(column_type) = self.column_type
            && column_type.physical() != encoded.physical
        {
            return Err(format!("it holds {:?}, the table says {column_type}", encoded.physical));
        }
        let decoded = encoded.decode()?;
        let column = to_column(&decoded);
        let nulls = column.validity.as_ref().map_or(0, tidalite_types::Bitmap::count_zeros);
        let is_all_null = encoded.zone().null_count as usize == encoded.rows;
        if nulls != encoded.zone().null_count as usize || column.len() != encoded.rows {
            return Err(format!("{nulls} rows are NULL, {} are said to be", encoded.zone().null_count));
        }
        if !is_all_null {
            check_bounds(&column, 0..encoded.rows, encoded.zone(), true)?;
            for (vector, zone) in zones::of_vectors(encoded)?.into_iter().enumerate() {
                let from = vector * VECTOR_ROWS;
                check_bounds(&column, from..(from + VECTOR_ROWS).min(encoded.rows), zone, false)?;
            }
        }
        check_sum(&column, encoded.entry.sum)?;
        self.symbols(&column)?;
        if self.is_designated {
            self.times(block, &column)?;
        }
        self.has_gap = had_gap;
        Ok(())
    }

    fn symbols(&mut self, column: &Column) -> Result<(), String> {
        let (Some(strings), Values::U32(codes)) = (self.strings, &column.values) else { return Ok(()) };
        let greatest = codes.iter().enumerate().filter(|(row, _)| column.is_valid(*row)).map(|(_, code)| *code).max();
        let needed = greatest.map_or(0, |code| code as usize + 1);
        self.symbols_needed = self.symbols_needed.max(needed);
        if needed > strings {
            return Err(format!("it has symbol {}, the table has {strings} symbols in this column", needed - 1));
        }
        Ok(())
    }

    fn times(&mut self, block: usize, column: &Column) -> Result<(), String> {
        let Values::I64(times) = &column.values else { return Err("the timestamps are no timestamps".to_owned()) };
        if column.validity.is_some() {
            return Err("a designated timestamp is NULL".to_owned());
        }
        if let Some(row) = (1..times.len()).find(|row| times[row - 1] > times[*row]) {
            return Err(format!("row {} is earlier than the one before it", block * BLOCK_ROWS + row));
        }
        let (lo, hi) = self.partition;
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Ok(()) };
        if first < lo || last >= hi && hi != i64::MAX {
            return Err("a timestamp lies outside of the partition".to_owned());
        }
        if self.last.is_some_and(|before| before > first) {
            return Err("it begins earlier than the block before it ends".to_owned());
        }
        self.first = self.first.or((block == 0).then_some(first));
        self.last = Some(last);
        Ok(())
    }

    /// Checks properties of the whole column.
    fn finish(&self) -> Result<()> {
        if !self.is_designated || self.has_gap {
            return Ok(());
        }
        match (self.first, self.last) {
            (Some(first), Some(last)) if (first, last) != self.segment.time_range() => {
                let problem = "its timestamps are not those that the manifest says";
                Err(self.segment.damaged(self.id, 0, 0, problem))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that the stored sum is the sum of the values.
fn check_sum(column: &Column, said: Option<Sum>) -> Result<(), String> {
    let is_right = match (said, summed::known(column)) {
        (None, _) => true,
        (Some(Sum::Floats(said)), Some(Sum::Floats(sum))) => {
            said.to_bits() == sum.to_bits() || said.is_nan() && sum.is_nan()
        }
        (said, sum) => said == sum,
    };
    is_right.then_some(()).ok_or_else(|| "its sum is not that of its values".to_owned())
}

/// Checks the stored bounds of rows. Bounds of a block are exact; bounds of vectors contain their values.
fn check_bounds(column: &Column, rows: std::ops::Range<usize>, zone: Zone, is_exact: bool) -> Result<(), String> {
    let valid = |row: &usize| column.is_valid(*row);
    let wrong = || Err("its bounds are not those of its values".to_owned());
    match zone.bounds {
        Bounds::None => Ok(()),
        Bounds::Int(lo, hi) => {
            let (mut least, mut greatest) = (i128::MAX, i128::MIN);
            let mut take = |value: i128| (least, greatest) = (least.min(value), greatest.max(value));
            let rows = rows.filter(valid);
            match &column.values {
                Values::Bit(v) => rows.for_each(|row| take(i128::from(v.get(row)))),
                Values::I8(v) => rows.for_each(|row| take(i128::from(v[row]))),
                Values::I16(v) => rows.for_each(|row| take(i128::from(v[row]))),
                Values::I32(v) => rows.for_each(|row| take(i128::from(v[row]))),
                Values::I64(v) => rows.for_each(|row| take(i128::from(v[row]))),
                Values::U32(v) => rows.for_each(|row| take(i128::from(v[row]))),
                Values::I128(v) => rows.for_each(|row| take(v[row])),
                _ => return wrong(),
            }
            let (lo, hi) = (i128::from(lo), i128::from(hi));
            let is_so = if is_exact { (lo, hi) == (least, greatest) } else { lo <= least && greatest <= hi };
            if is_so || least > greatest && !is_exact { Ok(()) } else { wrong() }
        }
        Bounds::Float(lo, hi) => {
            // As in SQL: −0 equals 0, a NaN is greater than every number.
            let key = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            let below = |a: f64, b: f64| !a.is_nan() && (b.is_nan() || a < b);
            let (mut least, mut greatest): (Option<f64>, Option<f64>) = (None, None);
            let mut take = |value: f64| {
                let value = key(value);
                least = Some(least.map_or(value, |l| if below(value, l) { value } else { l }));
                greatest = Some(greatest.map_or(value, |g| if below(g, value) { value } else { g }));
            };
            let rows = rows.filter(valid);
            match &column.values {
                Values::F32(v) => rows.for_each(|row| take(f64::from(v[row]))),
                Values::F64(v) => rows.for_each(|row| take(v[row])),
                _ => return wrong(),
            }
            let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(()) };
            let same = |a: f64, b: f64| !below(a, b) && !below(b, a);
            let is_so = if is_exact {
                same(least, lo) && same(greatest, hi)
            } else {
                !below(least, lo) && !below(hi, greatest)
            };
            if is_so { Ok(()) } else { wrong() }
        }
    }
}

impl Segment {
    /// Checks every byte, bypassing the cache; returns the first fault.
    pub fn verify(&self) -> Result<()> {
        let verified = verify(self, None, &mut |_| Ok(()))?;
        verified.problems.into_iter().next().map_or(Ok(()), Err)
    }
}
