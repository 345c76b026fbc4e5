//! The distinct values of a block in order, and a code a row.
//!
//! Speed of writing decides what is tried: a sample of 1024 rows rules out most blocks that would not pay, and the
//! rest give up at the first value too many.

use super::chunk::{Chunk, code_bytes};
use super::fixed::Fixed;

pub(super) struct Dictionary<T> {
    pub values: Vec<T>,
    pub codes: Codes,
}

pub(super) enum Codes {
    /// There is one value.
    None,
    U8(Vec<u8>),
    U16(Vec<u16>),
}

impl Codes {
    /// Codes in the width that `distinct` values ask for, `ranks` giving the place of each in the order.
    pub fn ranked(codes: &[u16], ranks: &[u16], distinct: usize) -> Codes {
        match code_bytes(distinct) {
            Some(0) => Codes::None,
            Some(1) => Codes::U8(codes.iter().map(|c| ranks[usize::from(*c)] as u8).collect()),
            _ => Codes::U16(codes.iter().map(|c| ranks[usize::from(*c)]).collect()),
        }
    }

    pub fn write(&self, chunk: &mut Chunk) {
        match self {
            Codes::None => {}
            Codes::U8(codes) => chunk.section(codes),
            Codes::U16(codes) => chunk.section(bytemuck::cast_slice(codes)),
        }
    }
}

/// The most distinct values that make a dictionary worth it: a quarter less than `best` bytes, and codes of two
/// bytes only where eight rows share a value, since each costs a look-up in a table that leaves the cache.
pub(super) fn distinct_max(rows: usize, width: usize, best: usize) -> usize {
    let budget = best / 4 * 3;
    let by_one = (budget.saturating_sub(rows) / width).min(256);
    let by_two = (budget.saturating_sub(2 * rows) / width).min(rows / 8);
    by_one.max(by_two)
}

const SAMPLE_ROWS: usize = 1024;

/// How many distinct values a sample has; `None` when there cannot be so few as `limit`.
pub(super) fn sample<T: Fixed>(values: &[T], limit: usize) -> Option<usize> {
    if limit == 0 || values.len() <= SAMPLE_ROWS {
        return (limit > 0).then_some(limit);
    }
    // An odd stride, so that it does not run in step with data that repeats every power of two.
    let stride = (values.len() / SAMPLE_ROWS) | 1;
    let mut table = Table::<T>::new(2 * SAMPLE_ROWS);
    values.iter().step_by(stride).for_each(|v| {
        table.code(*v);
    });
    let distinct = table.values.len();
    (distinct <= sample_distinct_max(limit, values.len() / stride)).then_some(distinct)
}

/// 8,192 evenly frequent values show 963 times in a sample of 1,024, so that 15 of 16 still may pay.
pub(super) fn sample_distinct_max(limit: usize, sample: usize) -> usize {
    limit.min(sample - sample / 16)
}

/// `None` when there are more than `limit` distinct values; about `expected` are.
pub(super) fn build<T: Fixed>(values: &[T], limit: usize, expected: usize) -> Option<Dictionary<T>> {
    let mut table = Table::new(4 * expected);
    let mut codes = Vec::with_capacity(values.len());
    // In slices, so that the check for too many is not paid by each row.
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
    Some(Dictionary { codes: Codes::ranked(&codes, &ranks(&order), sorted.len()), values: sorted })
}

/// The place of each code in `order`.
pub(super) fn ranks(order: &[u16]) -> Vec<u16> {
    let mut ranks = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rank, code)| ranks[usize::from(*code)] = rank as u16);
    ranks
}

/// Open addressing, at most half full. Codes are given in order of appearance.
struct Table<T: Fixed> {
    /// Bits of a value and its code + 1; 0 is free.
    slots: Vec<(T::Bits, u32)>,
    shift: u32,
    values: Vec<T>,
    /// Steps to a neighbour slot: values made to collide must not make writing slow.
    detours: usize,
}

impl<T: Fixed> Table<T> {
    fn new(capacity: usize) -> Table<T> {
        let slots = capacity.next_power_of_two().max(64);
        Table {
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

/// `rows` values from their codes, which are below the number of distinct values.
pub(super) fn look_up<T: Copy + bytemuck::Zeroable>(distinct: &[T], codes: &[u8], bytes: usize, rows: usize) -> Vec<T> {
    match bytes {
        0 => vec![distinct[0]; rows],
        1 => {
            // 256 entries for codes of a byte: no bounds to check.
            let mut table = [T::zeroed(); 256];
            table[..distinct.len()].copy_from_slice(distinct);
            codes.iter().map(|c| table[usize::from(*c)]).collect()
        }
        _ => bytemuck::cast_slice::<u8, u16>(codes).iter().map(|c| distinct[usize::from(*c)]).collect(),
    }
}

pub(super) fn check_codes(codes: &[u8], bytes: usize, distinct: u32) -> Result<(), String> {
    let greatest = match bytes {
        0 => None,
        1 => codes.iter().max().map(|c| u32::from(*c)),
        _ => codes.chunks_exact(2).map(|c| u32::from(u16::from_le_bytes([c[0], c[1]]))).max(),
    };
    if greatest.is_some_and(|c| c >= distinct) { Err("a code past its dictionary".to_owned()) } else { Ok(()) }
}
