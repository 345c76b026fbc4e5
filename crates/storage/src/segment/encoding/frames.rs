//! Vectors of bit-packed integers: each vector has a reference and a width, and stores the few values that need a
//! greater width as exceptions.
//!
//! ```text
//! references        one a vector, as wide as the values but at most 8 bytes
//! exception counts  u16 a vector
//! widths            u8 a vector, 0 to 64
//! zeros             to a multiple of 64
//! lines             of all vectors, as `kernels::bitpack` lays them out
//! positions         u16 an exception: its row in its vector, ascending
//! exceptions        as wide as references: what stands there instead
//! ```

use super::value::raw;
use crate::segment::format::aligned;
use tidalite_kernels::bitpack::{prefetch_one, unpack_one, width_mask};
use tidalite_kernels::{Int, LINE_BYTES, Line, Unpacker, line_count, prefetch_slice, width_counts, width_of};
use tidalite_types::{BLOCK_ROWS, VECTOR_ROWS};

/// Prefetch distance in lines: two pages.
const LINES_AHEAD: usize = 64;

/// Packing of a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<T> {
    pub reference: T,
    pub width: u32,
    /// Number of values that need a greater width or a smaller reference.
    pub exceptions: usize,
    /// Bytes of lines and exceptions.
    pub bytes: usize,
}

impl<T: Framed> Plan<T> {
    /// Returns a plan in which every value fits.
    pub fn simple(reference: T, width: u32, rows: usize) -> Plan<T> {
        Plan { reference, width, exceptions: 0, bytes: line_count(width, rows) * LINE_BYTES }
    }
}

/// An integer in its file format.
pub(super) trait Framed: Int + bytemuck::Pod {}
impl<T: Int + bytemuck::Pod> Framed for T {}

/// Largest number of exceptions of a vector: each one is patched individually, which costs time.
const EXCEPTIONS_MAX: usize = 64;

/// Returns the reference and width with the smallest size, for values between `lo` and `hi`.
pub(super) fn plan<T: Framed>(values: &[T], lo: T, hi: T) -> Plan<T> {
    let full = width_of(&[hi], lo);
    let all = Plan::simple(lo, full, values.len());
    if full <= 1 {
        return all;
    }
    let upper = best_width(&width_counts(values, lo), full, values.len(), size_of::<T>()).map(|w| w.plan(lo));
    upper.filter(|p| p.bytes < all.bytes).unwrap_or(all)
}

/// Plans like [`plan`], if a few values may be far below the others, too: differences jump in both directions.
pub(super) fn plan_both_ways(values: &[i64], lo: i64, hi: i64) -> Plan<i64> {
    let upwards = plan(values, lo, hi);
    if !has_values_below(values, upwards.width) {
        return upwards;
    }
    let full = width_of(&[hi], lo);
    // The distance of each value from the greatest one is its distance in the mirrored vector.
    let mut mirrored = [0; VECTOR_ROWS];
    values.iter().zip(&mut mirrored).for_each(|(v, out)| *out = hi.wrapping_sub(*v));
    let counts = width_counts(&mirrored[..values.len()], 0);
    let downwards = best_width(&counts, full, values.len(), 8);
    let downwards = downwards.map(|w| w.plan(hi.wrapping_sub(width_mask(w.width) as i64)));
    let others = [downwards, around_median(values)].into_iter().flatten().filter(|p| p.bytes < upwards.bytes);
    others.min_by_key(|p| p.bytes).unwrap_or(upwards)
}

/// Returns true if most values are so close together that a reference above the smallest value may pay.
fn has_values_below(values: &[i64], width: u32) -> bool {
    let mut picked = [0; 32];
    let step = values.len().div_ceil(picked.len()).max(1);
    let count = values.iter().step_by(step).zip(&mut picked).map(|(v, out)| *out = *v).count();
    let picked = &mut picked[..count];
    picked.sort_unstable();
    let skipped = count / 8;
    width_of(&[picked[count - 1 - skipped]], picked[skipped]) + 1 < width
}

/// Returns a plan whose range contains the median of the values: outliers may be on both sides.
fn around_median(values: &[i64]) -> Option<Plan<i64>> {
    let mut sorted = [0; 64];
    let step = (values.len() / 64).max(1);
    let picked = values.iter().step_by(step).take(64).zip(&mut sorted).map(|(v, out)| *out = *v).count();
    let sorted = &mut sorted[..picked];
    sorted.sort_unstable();
    let median = sorted[picked / 2];
    // Computes the distance of each value from the median, up or down: width w > 0 covers median − 2^(w−1) to median +
    // 2^(w−1) − 1, width 0 covers the median.
    let mut folded = [0u64; VECTOR_ROWS];
    for (value, out) in values.iter().zip(&mut folded) {
        let distance = value.wrapping_sub(median);
        *out = ((distance ^ distance >> 63) as u64) << 1 | u64::from(distance != 0);
    }
    let counts = width_counts(&folded[..values.len()], 0);
    let best = best_width(&counts, 64, values.len(), 8)?;
    let half = if best.width == 0 { 0 } else { 1i64 << (best.width - 1) };
    Some(best.plan(median.wrapping_sub(half)))
}

struct Width {
    width: u32,
    exceptions: usize,
    bytes: usize,
}

impl Width {
    fn plan<T>(&self, reference: T) -> Plan<T> {
        Plan { reference, width: self.width, exceptions: self.exceptions, bytes: self.bytes }
    }
}

/// Returns the width below `full` with the smallest size including its exceptions.
fn best_width(counts: &[u32; 65], full: u32, rows: usize, value_bytes: usize) -> Option<Width> {
    let mut exceptions = 0;
    let mut best: Option<Width> = None;
    for width in (0..full).rev() {
        exceptions += counts[width as usize + 1] as usize;
        if exceptions > EXCEPTIONS_MAX {
            break;
        }
        let bytes = line_count(width, rows) * LINE_BYTES + exceptions * (2 + value_bytes);
        if best.as_ref().is_none_or(|best| bytes <= best.bytes) {
            best = Some(Width { width, exceptions, bytes });
        }
    }
    best
}

/// Packs vectors in sequence.
pub(super) struct FramesWriter {
    references: Vec<u8>,
    exception_counts: Vec<u16>,
    widths: Vec<u8>,
    lines: Vec<u8>,
    positions: Vec<u16>,
    exceptions: Vec<u8>,
}

impl FramesWriter {
    /// Creates a writer; `bytes` is the approximate size of the output.
    pub fn new(bytes: usize) -> FramesWriter {
        FramesWriter {
            references: Vec::new(),
            exception_counts: Vec::new(),
            widths: Vec::new(),
            lines: Vec::with_capacity(bytes),
            positions: Vec::new(),
            exceptions: Vec::new(),
        }
    }

    /// Appends values of type `T`; the lower `value_bytes` of each value are stored.
    pub fn push<T: Framed>(&mut self, values: &[T], plan: Plan<T>, value_bytes: usize) {
        self.references.extend_from_slice(&bytemuck::bytes_of(&plan.reference)[..value_bytes]);
        self.widths.push(plan.width as u8);
        tidalite_kernels::pack(values, plan.reference, plan.width, &mut self.lines);
        let before = self.positions.len();
        if plan.exceptions > 0 {
            for (row, value) in values.iter().enumerate() {
                let distance = value.distance(plan.reference);
                if plan.width < 64 && distance >> plan.width != 0 {
                    self.positions.push(row as u16);
                    self.exceptions.extend_from_slice(&bytemuck::bytes_of(value)[..value_bytes]);
                }
            }
        }
        self.exception_counts.push((self.positions.len() - before) as u16);
    }

    /// Appends like [`FramesWriter::push`], with known exceptions: their rows, ascending, and their values.
    pub fn push_with<T: Framed>(
        &mut self,
        values: &[T],
        (reference, width): (T, u32),
        exceptions: impl Iterator<Item = (usize, T)>,
        value_bytes: usize,
    ) {
        self.references.extend_from_slice(&bytemuck::bytes_of(&reference)[..value_bytes]);
        self.widths.push(width as u8);
        tidalite_kernels::pack(values, reference, width, &mut self.lines);
        let before = self.positions.len();
        for (row, value) in exceptions {
            self.positions.push(row as u16);
            self.exceptions.extend_from_slice(&bytemuck::bytes_of(&value)[..value_bytes]);
        }
        self.exception_counts.push((self.positions.len() - before) as u16);
    }

    /// Appends everything to `out`, whose length is the current size of the chunk's payload.
    pub fn finish(self, mut out: Vec<u8>) -> Vec<u8> {
        out.extend_from_slice(&self.references);
        out.extend_from_slice(bytemuck::cast_slice(&self.exception_counts));
        out.extend_from_slice(&self.widths);
        if !self.lines.is_empty() {
            out.resize(aligned(out.len()), 0);
        }
        out.extend_from_slice(&self.lines);
        out.extend_from_slice(bytemuck::cast_slice(&self.positions));
        out.extend_from_slice(&self.exceptions);
        out
    }
}

/// Largest number of vectors of a block.
const VECTORS_MAX: usize = BLOCK_ROWS.div_ceil(VECTOR_ROWS);

/// Parsed frames of a chunk, with all parts in bounds.
///
/// Created for each access to a block, which may read only a few rows, so the type allocates no memory.
pub(super) struct Frames<'a> {
    rows: usize,
    value_bytes: usize,
    references: &'a [u8],
    widths: &'a [u8],
    lines: &'a [Line],
    positions: &'a [u8],
    exceptions: &'a [u8],
    /// First line and first exception of each vector, followed by the total numbers.
    starts: [Start; VECTORS_MAX + 1],
}

#[derive(Clone, Copy, Default)]
struct Start {
    line: u32,
    exception: u32,
}

/// One vector: its reference, packed distances and exceptions.
pub(super) struct Frame<'a, T> {
    pub rows: usize,
    pub reference: T,
    pub width: u32,
    pub lines: &'a [Line],
    positions: &'a [u8],
    exceptions: &'a [u8],
    value_bytes: usize,
}

impl<'a> Frames<'a> {
    /// Parses the frames that begin at `at` in `bytes` and extend to the end.
    ///
    /// Checks everything except that positions ascend and are in range, which [`Frames::check`] does.
    pub fn parse(bytes: &'a [u8], at: usize, rows: usize, value_bytes: usize) -> Result<Frames<'a>, String> {
        let count = rows.div_ceil(VECTOR_ROWS);
        if count > VECTORS_MAX {
            return Err(format!("{rows} rows in a block"));
        }
        let header_end = at + count * (value_bytes + 3);
        let header = bytes.get(at..header_end).ok_or("the head of its vectors is cut off")?;
        let (references, header) = header.split_at(count * value_bytes);
        let (counts, widths) = header.split_at(2 * count);
        let widest = widths.iter().fold(0, |widest, width| widest.max(*width));
        if usize::from(widest) > 8 * value_bytes {
            return Err(format!("distances of {widest} bits between values of {value_bytes} bytes"));
        }
        let mut starts = [Start::default(); VECTORS_MAX + 1];
        let mut start = Start::default();
        for (i, (width, exceptions)) in widths.iter().zip(counts.as_chunks().0).enumerate() {
            starts[i] = start;
            // In a complete vector each bit of the width takes one line.
            start.line += u32::from(*width);
            start.exception += u32::from(u16::from_le_bytes(*exceptions));
        }
        if let Some(width) = widths.last() {
            let last_rows = rows - (count - 1) * VECTOR_ROWS;
            start.line = starts[count - 1].line + line_count(u32::from(*width), last_rows) as u32;
        }
        starts[count] = start;
        let (lines, exceptions) = (start.line as usize, start.exception as usize);
        let lines_at = if lines == 0 { header_end } else { aligned(header_end) };
        let positions_at = lines_at + lines * LINE_BYTES;
        let exceptions_at = positions_at + 2 * exceptions;
        if exceptions_at + value_bytes * exceptions != bytes.len() {
            return Err(format!("{} bytes of vectors", bytes.len()));
        }
        Ok(Frames {
            rows,
            value_bytes,
            references,
            widths,
            lines: bytes[lines_at..positions_at].as_chunks().0,
            positions: &bytes[positions_at..exceptions_at],
            exceptions: &bytes[exceptions_at..],
            starts,
        })
    }

    /// Checks that the positions of exceptions are valid rows.
    pub fn check(&self) -> Result<(), String> {
        for i in 0..self.vector_count() {
            let positions = positions(self.exceptions_of(i).0);
            if !positions.clone().is_sorted_by(|a, b| a < b)
                || positions.last().is_some_and(|last| last >= self.rows_of(i))
            {
                return Err(format!("exceptions of vector {i} out of place"));
            }
        }
        Ok(())
    }

    pub fn vector_count(&self) -> usize {
        self.widths.len()
    }

    fn rows_of(&self, i: usize) -> usize {
        (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS)
    }

    /// Returns the positions and values of the exceptions of vector `i`.
    fn exceptions_of(&self, i: usize) -> (&'a [u8], &'a [u8]) {
        let (from, to) = (self.starts[i].exception as usize, self.starts[i + 1].exception as usize);
        let bytes = self.value_bytes;
        (&self.positions[2 * from..2 * to], &self.exceptions[bytes * from..bytes * to])
    }

    /// Returns the lines of vector `i` and their width.
    pub fn packed(&self, i: usize) -> (&'a [Line], u32) {
        let lines = self.starts[i].line as usize..self.starts[i + 1].line as usize;
        (&self.lines[lines], u32::from(self.widths[i]))
    }

    /// Prefetches lines some pages after the lines of vector `i`, for reads of all vectors in order.
    pub fn ask_ahead(&self, i: usize) {
        let lines = self.starts[i].line as usize..self.starts[i + 1].line as usize;
        self.lines.iter().skip(lines.start + LINES_AHEAD).take(lines.len()).for_each(|line| prefetch_slice(line));
    }

    pub fn vector<T: Framed>(&self, i: usize) -> Frame<'a, T> {
        let (lines, width) = self.packed(i);
        let (positions, exceptions) = self.exceptions_of(i);
        Frame {
            rows: self.rows_of(i),
            reference: raw(&self.references[i * self.value_bytes..][..self.value_bytes]),
            width,
            lines,
            positions,
            exceptions,
            value_bytes: self.value_bytes,
        }
    }
}

fn positions(bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> + Clone {
    bytes.as_chunks().0.iter().map(|two| usize::from(u16::from_le_bytes(*two)))
}

impl<T: Framed> Frame<'_, T> {
    /// Returns the row and value of each exception.
    pub fn exceptions(&self) -> impl Iterator<Item = (usize, T)> {
        positions(self.positions).zip(self.exceptions.chunks_exact(self.value_bytes).map(raw))
    }

    /// Returns the value of a row that is an exception.
    pub fn exception(&self, row: usize) -> Option<T> {
        self.exceptions().find(|(at, _)| *at == row).map(|(_, value)| value)
    }

    /// Returns the packed value of a row, which is meaningless for an exception.
    pub fn packed(&self, row: usize) -> T {
        self.reference.plus(unpack_one(self.lines, self.width, row))
    }

    /// Returns the value of a row.
    pub fn row(&self, row: usize) -> T {
        self.exception(row).unwrap_or_else(|| self.packed(row))
    }

    /// Appends the rows.
    pub fn unpack(&self, unpacker: &mut Unpacker, out: &mut Vec<T>) {
        let start = out.len();
        unpacker.unpack(self.lines, self.width, self.reference, self.rows, out);
        for (row, value) in self.exceptions() {
            out[start + row] = value;
        }
    }
}

/// Each row is a cache miss: all rows are prefetched before the first is read.
pub(super) fn prefetch(frames: &Frames<'_>, numbers: &[u16]) {
    for (i, row) in numbers.iter().map(|number| place(*number)) {
        let (lines, width) = frames.packed(i);
        prefetch_one(lines, width, row);
    }
}

/// Returns the vector and the row in the vector.
pub(super) fn place(number: u16) -> (usize, usize) {
    (usize::from(number) / VECTOR_ROWS, usize::from(number) % VECTOR_ROWS)
}
