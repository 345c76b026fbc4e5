//! Encodes a block as its distinct values in order and a bit-packed code per row.
//!
//! Encoding speed determines which blocks are tried: a sample of 1024 rows excludes most blocks for which a dictionary
//! does not pay, and the other blocks are abandoned at the first excess value.

use super::EncodedBlock;
use super::choice::{Effort, Payload, Scheme, Source};
use super::chunk::{Layout, code_bits, code_bytes};
use super::interval::{Wanted, each_in};
use super::mask::{of_vector, put};
use super::picked::Picked;
use super::value::{Fixed, raw};
use crate::segment::format::Encoding;
use tidalite_kernels::bitpack::unpack_one;
use tidalite_kernels::{LINE_BYTES, Line, Unpacker, line_count, packed_in_range};
use tidalite_types::VECTOR_ROWS;

pub(super) struct Dict;

impl<T: Fixed> Scheme<T> for Dict {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let distinct = sample(source.values, distinct_max(source.rows(), size_of::<T>(), source.plain_bytes()))?;
        Some(distinct * size_of::<T>() + source.rows() * code_bits(distinct)? as usize / 8)
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let limit = distinct_max(source.rows(), size_of::<T>(), source.plain_bytes());
        let dictionary = build(source.values, limit, sample(source.values, limit)?)?;
        let distinct = bytemuck::cast_slice(&dictionary.values).to_vec();
        let mut payload = Payload::new(Encoding::PackedDict, dictionary.values.len() as u32, distinct);
        payload.sections.push(packed(&dictionary.codes, dictionary.values.len()).into());
        Some(payload)
    }

    fn weight(&self, _: Effort) -> usize {
        // A table lookup per row is several times slower than an addition, but costs less than it saves.
        115
    }
}

pub(super) struct Dictionary<T> {
    pub values: Vec<T>,
    pub codes: Vec<u16>,
}

/// Packs the codes of all rows in the bits that `distinct` values require.
pub(super) fn packed(codes: &[u16], distinct: usize) -> Vec<u8> {
    let bits = code_bits(distinct).expect("no dictionary has more values than codes");
    let mut out = Vec::with_capacity(codes.len().div_ceil(VECTOR_ROWS) * line_count(bits, VECTOR_ROWS) * LINE_BYTES);
    codes.chunks(VECTOR_ROWS).for_each(|vector| tidalite_kernels::pack(vector, 0, bits, &mut out));
    out
}

/// Stores the codes of all rows in 0, 1 or 2 bytes each.
fn in_bytes(codes: &[u16], bytes: usize) -> Vec<u8> {
    match bytes {
        0 => Vec::new(),
        1 => codes.iter().map(|code| *code as u8).collect(),
        _ => bytemuck::cast_slice(codes).to_vec(),
    }
}

/// Returns distinct values and codes of 0, 1 or 2 bytes per row, to be compressed; `None` if there are too many values.
pub(super) fn payload_in_bytes<T: Fixed>(source: &Source<'_, T>) -> Option<Payload<'static>> {
    let limit = distinct_max(source.rows(), size_of::<T>(), source.plain_bytes());
    let dictionary = build(source.values, limit, sample(source.values, limit)?)?;
    let distinct = bytemuck::cast_slice(&dictionary.values).to_vec();
    let mut payload = Payload::new(Encoding::Dict, dictionary.values.len() as u32, distinct);
    payload.sections.push(in_bytes(&dictionary.codes, code_bytes(dictionary.values.len())?).into());
    Some(payload)
}

/// Unpacks the result of [`packed`].
pub(super) fn unpacked(packed: &[u8], distinct: usize, rows: usize) -> Vec<u16> {
    let mut all = Vec::with_capacity(rows);
    for_vectors(packed, distinct, rows, |codes| all.extend_from_slice(codes));
    all
}

/// Unpacks like [`unpacked`], to the integers of Arrow dictionary keys.
pub(super) fn places(packed: &[u8], distinct: usize, rows: usize) -> Vec<u32> {
    let mut all = Vec::with_capacity(rows);
    for_vectors(packed, distinct, rows, |codes| all.extend(codes.iter().map(|code| u32::from(*code))));
    all
}

/// Returns the largest number of distinct values for which a dictionary pays.
///
/// The dictionary must be a quarter smaller than `best` bytes. Codes of more than one byte require eight rows per
/// value, since each lookup uses a table that exceeds the cache.
pub(super) fn distinct_max(rows: usize, width: usize, best: usize) -> usize {
    let budget = best / 4 * 3;
    let by_one = (budget.saturating_sub(rows) / width).min(256);
    let by_two = (budget.saturating_sub(2 * rows) / width).min(rows / 8);
    by_one.max(by_two)
}

const SAMPLE_ROWS: usize = 1024;

/// Estimates the number of distinct values from a sample; `None` if it certainly exceeds `limit`.
pub(super) fn sample<T: Fixed>(values: &[T], limit: usize) -> Option<usize> {
    if limit == 0 {
        return None;
    }
    // An odd stride, so that it does not align with data of a period of a power of two.
    let stride = (values.len() / SAMPLE_ROWS) | 1;
    let mut table = CodeTable::<T>::new(2 * SAMPLE_ROWS);
    let mut seen = Vec::new();
    for value in values.iter().step_by(stride) {
        let code = usize::from(table.code(*value));
        if code == seen.len() {
            seen.push(0u32);
        }
        seen[code] += 1;
    }
    judge(&seen, values.len() / stride, values.len(), limit)
}

/// Estimates the number of distinct values of all `rows` from their frequencies in a sample.
pub(super) fn judge(seen: &[u32], sample: usize, rows: usize, limit: usize) -> Option<usize> {
    if rows > SAMPLE_ROWS && seen.len() > sample_distinct_max(limit, sample) {
        return None;
    }
    // A value seen once represents the square root of the rows that each row of the sample represents.
    let once = seen.iter().filter(|n| **n == 1).count();
    let unseen = once as f64 * ((rows as f64 / sample.max(1) as f64).sqrt() - 1.0);
    Some((seen.len() + unseen.max(0.0) as usize).clamp(1, limit))
}

/// Returns the limit for the sample: 8,192 evenly frequent values occur 963 times in a sample of 1,024, so up to 15 of
/// 16 may pay.
pub(super) fn sample_distinct_max(limit: usize, sample: usize) -> usize {
    limit.min(sample - sample / 16)
}

/// Builds a dictionary; `None` for more than `limit` distinct values. About `expected` values are expected.
pub(super) fn build<T: Fixed>(values: &[T], limit: usize, expected: usize) -> Option<Dictionary<T>> {
    let mut table = CodeTable::new(4 * expected);
    let mut codes = Vec::with_capacity(values.len());
    // In slices, so that not every row checks the limit.
    for slice in values.chunks(256) {
        codes.extend(slice.iter().map(|v| table.code(*v)));
        if table.values.len() > limit || table.detours > 8 * values.len() {
            return None;
        }
    }
    let mut order: Vec<(T::Bits, u16)> =
        table.values.iter().enumerate().map(|(code, value)| (value.sort_key(), code as u16)).collect();
    order.sort_unstable();
    let order: Vec<u16> = order.into_iter().map(|(_, code)| code).collect();
    let sorted: Vec<T> = order.iter().map(|code| table.values[usize::from(*code)]).collect();
    Some(Dictionary { codes: ranked(&codes, &ranks(&order)), values: sorted })
}

/// Returns the ranks of the codes.
pub(super) fn ranked(codes: &[u16], ranks: &[u16]) -> Vec<u16> {
    codes.iter().map(|code| ranks[usize::from(*code)]).collect()
}

/// Returns the position of each code in `order`.
pub(super) fn ranks(order: &[u16]) -> Vec<u16> {
    let mut ranks = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rank, code)| ranks[usize::from(*code)] = rank as u16);
    ranks
}

/// Open-addressing hash table, at most half full. Codes are assigned in order of appearance.
struct CodeTable<T: Fixed> {
    /// Bits of a value and its code plus one; 0 for a free slot.
    slots: Vec<(T::Bits, u32)>,
    shift: u32,
    values: Vec<T>,
    /// Number of probes beyond the first slot: values chosen to collide must not slow down encoding.
    detours: usize,
}

impl<T: Fixed> CodeTable<T> {
    fn new(capacity: usize) -> CodeTable<T> {
        let slots = capacity.next_power_of_two().max(64);
        CodeTable {
            slots: vec![(T::Bits::default(), 0); slots],
            shift: 64 - slots.trailing_zeros(),
            values: Vec::new(),
            detours: 0,
        }
    }

    #[inline]
    fn code(&mut self, value: T) -> u16 {
        let bits = value.bits();
        let mask = self.slots.len() - 1;
        let mut at = (T::hash(bits) >> self.shift) as usize & mask;
        loop {
            let (slot_bits, code) = self.slots[at];
            if code == 0 {
                return self.insert(value, at);
            }
            if slot_bits == bits {
                return (code - 1) as u16;
            }
            self.detours += 1;
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, value: T, at: usize) -> u16 {
        let code = self.values.len();
        self.values.push(value);
        self.slots[at] = (value.bits(), code as u32 + 1);
        if 2 * self.values.len() > self.slots.len() {
            self.grow();
        }
        code as u16
    }

    fn grow(&mut self) {
        let slots = 4 * self.slots.len();
        self.slots = vec![(T::Bits::default(), 0); slots];
        self.shift = 64 - slots.trailing_zeros();
        for (code, value) in self.values.iter().enumerate() {
            let mut at = (T::hash(value.bits()) >> self.shift) as usize;
            while self.slots[at].1 != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = (value.bits(), code as u32 + 1);
        }
    }
}

/// Returns `rows` values from their codes, which are below the number of distinct values.
pub(super) fn look_up<T: Copy + bytemuck::Zeroable>(distinct: &[T], codes: &[u8], bytes: usize, rows: usize) -> Vec<T> {
    match bytes {
        0 => vec![distinct[0]; rows],
        1 => {
            // A table of 256 entries for codes of a byte needs no bounds checks.
            let mut table = [T::zeroed(); 256];
            table[..distinct.len()].copy_from_slice(distinct);
            codes.iter().map(|c| table[usize::from(*c)]).collect()
        }
        _ => look_up_codes(distinct, bytemuck::cast_slice::<u8, u16>(codes)),
    }
}

/// Returns the values of all rows of a block with [`Encoding::Dict`] or [`Encoding::PackedDict`].
pub(super) fn values_of<T: Copy + bytemuck::Zeroable>(distinct: &[T], layout: &Layout, block: &EncodedBlock) -> Vec<T> {
    let codes = layout.codes(&block.bytes);
    match block.entry.encoding {
        Encoding::PackedDict => look_up_packed(distinct, codes, block.rows),
        _ => look_up(distinct, codes, layout.code_bytes, block.rows),
    }
}

/// Calls `each` with the values of each vector of a block with [`Encoding::PackedDict`].
pub(super) fn each_vector<T: Copy>(distinct: &[T], packed: &[u8], rows: usize, mut each: impl FnMut(&[T])) {
    let mut values = Vec::with_capacity(VECTOR_ROWS);
    for_vectors(packed, distinct.len(), rows, |codes| {
        values.clear();
        values.extend(codes.iter().map(|code| distinct[usize::from(*code)]));
        each(&values);
    });
}

fn look_up_codes<T: Copy>(distinct: &[T], codes: &[u16]) -> Vec<T> {
    codes.iter().map(|code| distinct[usize::from(*code)]).collect()
}

/// Size of a table in which codes are looked up without bounds checks.
const TABLE: usize = 4096;

/// Returns the entries of packed codes.
pub(super) fn look_up_packed<T: Copy + bytemuck::Zeroable>(distinct: &[T], packed: &[u8], rows: usize) -> Vec<T> {
    let mut table = vec![T::zeroed(); TABLE.max(distinct.len())];
    table[..distinct.len()].copy_from_slice(distinct);
    let mut out = Vec::with_capacity(rows);
    for_vectors(packed, distinct.len(), rows, |codes| match table.first_chunk::<TABLE>() {
        Some(table) if distinct.len() <= TABLE => {
            out.extend(codes.iter().map(|code| table[usize::from(*code) % TABLE]));
        }
        _ => out.extend(codes.iter().map(|code| table[usize::from(*code)])),
    });
    out
}

/// Calls `each` with the codes of each vector.
fn for_vectors(packed: &[u8], distinct: usize, rows: usize, mut each: impl FnMut(&[u16])) {
    let mut codes = Codes::new(packed, distinct, rows);
    (0..rows.div_ceil(VECTOR_ROWS)).for_each(|i| each(codes.vector(i)));
}

/// The packed codes of a block, unpacked a vector at a time.
pub(super) struct Codes<'a> {
    lines: &'a [Line],
    bits: u32,
    rows: usize,
    unpacker: Unpacker,
    codes: Vec<u16>,
}

impl<'a> Codes<'a> {
    pub fn new(packed: &'a [u8], distinct: usize, rows: usize) -> Codes<'a> {
        let (bits, codes) = (code_bits(distinct).unwrap_or(16), Vec::with_capacity(VECTOR_ROWS));
        Codes { lines: packed.as_chunks().0, bits, rows, unpacker: Unpacker::new(), codes }
    }

    pub fn vector(&mut self, i: usize) -> &[u16] {
        let lines = &self.lines[i * line_count(self.bits, VECTOR_ROWS)..];
        self.codes.clear();
        let rows = (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        self.unpacker.unpack(lines, self.bits, 0, rows, &mut self.codes);
        &self.codes
    }
}

/// Returns the packed codes of the selected rows.
pub(super) fn take_codes(packed: &[u8], distinct: usize, rows: usize, picked: &Picked<'_>) -> Vec<u16> {
    let bits = code_bits(distinct).unwrap_or(16);
    let (mut unpacker, lines) = (Unpacker::new(), packed.as_chunks().0);
    let of = |i: usize| &lines[i * line_count(bits, VECTOR_ROWS)..];
    picked.by_row(
        |i| (of(i), bits),
        |i, row| unpack_one(of(i), bits, row) as u16,
        |i, codes| unpacker.unpack(of(i), bits, 0, (rows - i * VECTOR_ROWS).min(VECTOR_ROWS), codes),
    )
}

/// Returns the entries of codes, which must be in range; for a few rows this avoids a copy of the dictionary.
pub(super) fn look_up_some<T: bytemuck::Pod>(distinct: &[u8], codes: &[u16]) -> Vec<T> {
    codes.iter().map(|code| raw(&distinct[usize::from(*code) * size_of::<T>()..])).collect()
}

pub(super) fn check_codes(codes: &[u8], bytes: usize, distinct: u32) -> Result<(), String> {
    let greatest = match bytes {
        0 => None,
        1 => codes.iter().max().map(|c| u32::from(*c)),
        _ => codes.chunks_exact(2).map(|c| u32::from(u16::from_le_bytes([c[0], c[1]]))).max(),
    };
    below(greatest, distinct)
}

pub(super) fn check_packed(packed: &[u8], distinct: u32, rows: usize) -> Result<(), String> {
    let mut greatest = None;
    for_vectors(packed, distinct as usize, rows, |codes| greatest = greatest.max(codes.iter().copied().max()));
    below(greatest.map(u32::from), distinct)
}

fn below(greatest: Option<u32>, distinct: u32) -> Result<(), String> {
    if greatest.is_some_and(|c| c >= distinct) { Err("a code past its dictionary".to_owned()) } else { Ok(()) }
}

/// Compares each entry once, and codes, which have the order of the entries, as a range of numbers.
pub(super) fn rows_in(
    distinct: &[u8],
    codes: &[u8],
    block: &EncodedBlock,
    wanted: &Wanted<'_>,
    mask: &mut [u64],
) -> Option<()> {
    let inside = each_in(distinct, block.physical, wanted.interval)?;
    let (Some(first), Some(last)) = (inside.iter().position(|i| *i), inside.iter().rposition(|i| *i)) else {
        mask.fill(0);
        return Some(());
    };
    if inside[first..=last].iter().any(|i| !*i) {
        // Negative NaNs sort before all numbers here, unlike in comparisons.
        let codes = unpacked(codes, inside.len(), block.rows);
        codes.iter().enumerate().for_each(|(row, code)| put(mask, row, inside[usize::from(*code)]));
        return Some(());
    }
    let bits = code_bits(inside.len())?;
    let (mut unpacker, lines) = (Unpacker::new(), codes.as_chunks().0);
    for i in wanted.vectors() {
        let rows = (block.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        let lines = &lines[i * line_count(bits, VECTOR_ROWS)..];
        let words = packed_in_range(&mut unpacker, lines, bits, rows, first as u64, last as u64);
        let mask = of_vector(mask, i);
        mask.copy_from_slice(&words[..mask.len()]);
    }
    Some(())
}

/// Sets the rows whose packed code is `code`.
pub(super) fn rows_of_code(packed: &[u8], distinct: usize, code: usize, rows: usize, mask: &mut [u64]) -> Option<()> {
    let bits = code_bits(distinct)?;
    let (mut unpacker, lines) = (Unpacker::new(), packed.as_chunks().0);
    for at in (0..rows).step_by(VECTOR_ROWS) {
        let lines = &lines[at / VECTOR_ROWS * line_count(bits, VECTOR_ROWS)..];
        let rows = (rows - at).min(VECTOR_ROWS);
        let words = packed_in_range(&mut unpacker, lines, bits, rows, code as u64, code as u64);
        let mask = of_vector(mask, at / VECTOR_ROWS);
        mask.copy_from_slice(&words[..mask.len()]);
    }
    Some(())
}
