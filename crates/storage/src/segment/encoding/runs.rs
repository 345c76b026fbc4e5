//! Run-length encoding: the value of each run, and the last row of the run.
//!
//! ```text
//! values  of the physical width, one a run
//! lasts   u16, the last row of each run; they ascend, and the last one is the last row of the block
//! ```
//!
//! Booleans have no values: they alternate from run to run, and the first one is in the entry's `data_bytes`.

use super::choice::{Effort, Payload, Scheme, Source};
use super::interval::{Wanted, each_in};
use super::mask::count_between;
use super::mask::set;
use super::picked::Picked;
use super::value::{Fixed, raw};
use super::{EncodedBlock, plain};
use crate::BlockData;
use crate::segment::buffer::{collect, share, values_in};
use crate::segment::format::{ALIGNMENT, Encoding};
use std::borrow::Cow;
use tidalite_types::column_type::Physical;
use tidalite_types::{Bitmap, VECTOR_ROWS};

/// If there are this many times more runs than rows, the run of each row is searched: at most sixteen steps per search.
const RUNS_A_ROW: usize = 16;

pub(super) struct Runs;

impl<T: Fixed> Scheme<T> for Runs {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let sample = source.sample();
        let changes: usize = sample.iter().map(|vector| changes(vector)).sum();
        // The vectors of a sample are not adjacent, so changes between vectors are not counted.
        let runs = source.scale(&sample, changes) + 1;
        let bytes = runs * (size_of::<T>() + 2);
        (bytes < source.plain_bytes() / 2).then_some(bytes)
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let runs_max = source.plain_bytes() / (size_of::<T>() + 2);
        if changes(source.values) >= runs_max {
            return None;
        }
        let (mut values, mut lasts) = (Vec::new(), Vec::<u16>::new());
        for (row, pair) in source.values.windows(2).enumerate() {
            if pair[0].bits() != pair[1].bits() {
                values.push(pair[0]);
                lasts.push(row as u16);
            }
        }
        values.push(*source.values.last()?);
        lasts.push((source.rows() - 1) as u16);
        let mut payload = bytemuck::cast_slice(&values).to_vec();
        payload.extend_from_slice(bytemuck::cast_slice(&lasts));
        Some(Payload::new(Encoding::Runs, lasts.len() as u32, payload))
    }

    fn weight(&self, _: Effort) -> usize {
        100
    }
}

/// Encodes booleans in words if runs are clearly smaller.
pub(super) fn of_bits(words: &[u64], rows: usize) -> Option<Payload<'static>> {
    let mut before = words[0] & 1;
    let changes = |word: &u64| {
        let changes = word ^ (word << 1 | before);
        before = word >> 63;
        changes
    };
    // A bit for each row that differs from the previous row; no bit after the last row.
    let mut changes: Vec<u64> = words.iter().map(changes).collect();
    if !rows.is_multiple_of(64)
        && let Some(last) = changes.last_mut()
    {
        *last &= u64::MAX >> (64 - rows % 64);
    }
    let count: usize = changes.iter().map(|word| word.count_ones() as usize).sum();
    if 2 * (count + 1) + ALIGNMENT > words.len() * 4 {
        return None;
    }
    let starts = tidalite_kernels::rows_set(&Bitmap::from_words(changes, rows));
    let lasts: Vec<u16> = starts.iter().map(|start| (start - 1) as u16).chain([(rows - 1) as u16]).collect();
    let mut payload = Payload::new(Encoding::Runs, lasts.len() as u32, bytemuck::cast_slice(&lasts).to_vec());
    payload.data_bytes = (words[0] & 1) as u32;
    Some(payload)
}

/// Decodes the result of [`of_bits`].
fn bits(lasts: &[u16], block: &EncodedBlock) -> Vec<u64> {
    let mut words = vec![0; block.rows.div_ceil(64)];
    let (mut from, mut bit) = (0, block.entry.data_bytes & 1);
    for last in lasts {
        let to = usize::from(*last) + 1;
        if bit == 1 {
            set(&mut words, from, to);
        }
        (from, bit) = (to, 1 - bit);
    }
    words
}

/// Returns the number of values that differ from the previous value.
fn changes<T: Fixed>(values: &[T]) -> usize {
    // In slices whose counts fit a byte, so that the loop is vectorized.
    let pairs = values.len().saturating_sub(1);
    let count = |at: usize| {
        let len = 128.min(pairs - at);
        let (a, b) = (&values[at..at + len], &values[at + 1..at + 1 + len]);
        usize::from(a.iter().zip(b).fold(0u8, |n, (a, b)| n + u8::from(a.bits() != b.bits())))
    };
    (0..pairs).step_by(128).map(count).sum()
}

fn width(block: &EncodedBlock) -> Result<usize, String> {
    match block.physical {
        Physical::Bit => Ok(0),
        physical => physical.width().ok_or_else(|| format!("runs of {physical:?}")),
    }
}

/// Returns values and last rows.
fn split<'a>(payload: &'a [u8], block: &EncodedBlock) -> Result<(&'a [u8], Cow<'a, [u16]>), String> {
    let (width, runs) = (width(block)?, block.entry.parameter as usize);
    if runs == 0 || runs > block.rows || payload.len() != runs * (width + 2) {
        return Err(format!("{runs} runs in {} bytes", payload.len()));
    }
    let (values, lasts) = payload.split_at(runs * width);
    Ok((values, values_in(lasts)))
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    let (_, lasts) = split(payload, block)?;
    if !lasts.is_sorted_by(|a, b| a < b) || lasts.last().map(|last| usize::from(*last) + 1) != Some(block.rows) {
        return Err("runs that do not follow each other".to_owned());
    }
    Ok(())
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    Ok(BlockData::Fixed(match width(block)? {
        0 => {
            let mut words = bits(&split(payload, block)?.1, block);
            words.iter_mut().zip(collect::<u64>(validity)).for_each(|(word, valid)| *word &= valid);
            share(words)
        }
        1 => share(values::<u8>(payload, validity, block)?),
        2 => share(values::<u16>(payload, validity, block)?),
        4 => share(values::<u32>(payload, validity, block)?),
        8 => share(values::<u64>(payload, validity, block)?),
        _ => share(values::<u128>(payload, validity, block)?),
    }))
}

fn values<T: bytemuck::Pod>(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<Vec<T>, String> {
    let (distinct, lasts) = split(payload, block)?;
    let distinct: Vec<T> = collect(distinct);
    let mut out = Vec::with_capacity(block.rows);
    for (value, last) in distinct.into_iter().zip(lasts.iter()) {
        out.resize(usize::from(*last) + 1, value);
    }
    super::nulls::zero_nulls(&mut out, validity);
    Ok(out)
}

/// Returns a function that appends the values of a vector; NULLs have their stored values.
pub(super) fn vectors<'a, T: Fixed>(
    payload: &'a [u8],
    block: &'a EncodedBlock,
) -> Result<impl FnMut(usize, &mut Vec<T>) + 'a, String> {
    let (distinct, lasts) = split(payload, block)?;
    let (distinct, rows) = (values_in::<T>(distinct), block.rows);
    Ok(move |i: usize, out: &mut Vec<T>| {
        let (mut from, end) = (i * VECTOR_ROWS, rows.min((i + 1) * VECTOR_ROWS));
        let first = lasts.partition_point(|last| usize::from(*last) < from);
        for (value, last) in distinct[first..].iter().zip(&lasts[first..]) {
            let to = end.min(usize::from(*last) + 1);
            out.resize(out.len() + to - from, *value);
            from = to;
            if from == end {
                break;
            }
        }
    })
}

pub(super) fn take(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<BlockData, String> {
    Ok(BlockData::Fixed(match width(block)? {
        0 => picked.bits(&bits(&split(payload, block)?.1, block)),
        1 => share(some::<u8>(payload, block, picked)?),
        2 => share(some::<u16>(payload, block, picked)?),
        4 => share(some::<u32>(payload, block, picked)?),
        8 => share(some::<u64>(payload, block, picked)?),
        _ => share(some::<u128>(payload, block, picked)?),
    }))
}

fn some<T: bytemuck::Pod>(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<Vec<T>, String> {
    let (distinct, lasts) = split(payload, block)?;
    let (mut out, mut from) = (Vec::with_capacity(picked.rows()), 0);
    if let Some(numbers) = picked.numbers().filter(|numbers| RUNS_A_ROW * numbers.len() < lasts.len()) {
        let mut run = 0;
        for number in numbers {
            run = run_of(&lasts, run, *number);
            out.push(raw::<T>(&distinct[run * size_of::<T>()..]));
        }
        picked.zero_nulls(&mut out);
        return Ok(out);
    }
    for (value, last) in distinct.chunks_exact(size_of::<T>()).zip(lasts.iter()) {
        let to = usize::from(*last) + 1;
        out.resize(out.len() + count_between(picked.mask(), from, to), raw::<T>(value));
        from = to;
    }
    picked.zero_nulls(&mut out);
    Ok(out)
}

/// Returns the run of a row, which is not before `from`.
///
/// The search starts at the position for runs of equal length and gallops in doubling steps: a binary search would have
/// a cache miss in each of its first steps.
fn run_of(lasts: &[u16], from: usize, row: u16) -> usize {
    let end = lasts.len() - 1;
    let guess = (usize::from(row) * lasts.len() / (usize::from(lasts[end]) + 1)).clamp(from, end);
    let (mut low, mut high, mut step) = (guess, guess, 1);
    if lasts[guess] < row {
        while high < end && lasts[high] < row {
            (low, high) = (high + 1, (high + step).min(end));
            step *= 2;
        }
    } else {
        while low > from && lasts[low - 1] >= row {
            (high, low) = (low - 1, low.saturating_sub(step).max(from));
            step *= 2;
        }
    }
    low + lasts[low..=high].partition_point(|last| *last < row)
}

pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let (values, lasts) = split(payload, block).ok()?;
    if block.physical == Physical::Bit {
        return plain::rows_in(bytemuck::cast_slice(&bits(&lasts, block)), block, wanted, mask);
    }
    let mut from = 0;
    for (is_inside, last) in each_in(values, block.physical, wanted.interval)?.into_iter().zip(lasts.iter()) {
        let to = usize::from(*last) + 1;
        if is_inside {
            set(mask, from, to);
        }
        from = to;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_a_row_is_found_from_any_before_it() {
        let mut random = fastrand::Rng::with_seed(11);
        for round in 0..300 {
            // Runs of about equal lengths, or some much longer than others.
            let longest = [1, 3, 40, 9_000][round % 4];
            let (mut lasts, mut last) = (Vec::new(), random.u16(0..longest));
            while lasts.len() < 2_000 {
                lasts.push(last);
                let length = if round % 8 > 3 && random.u8(0..20) > 0 { 1 } else { random.u16(1..=longest) };
                let Some(next) = last.checked_add(length) else { break };
                last = next;
            }
            let (mut rows, rows_in) = (Vec::new(), *lasts.last().expect("at least one run"));
            rows.extend([0, rows_in]);
            rows.extend((0..50).map(|_| random.u16(0..=rows_in)));
            for row in rows {
                let expected = lasts.partition_point(|last| *last < row);
                for from in [0, expected, random.usize(0..=expected)] {
                    assert_eq!(run_of(&lasts, from, row), expected, "row {row} from {from} of {lasts:?}");
                }
            }
        }
    }
}
