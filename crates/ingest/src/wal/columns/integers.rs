//! Encodes integers without surplus bytes: FRAME, STEP and DELTA of [`super`].
//!
//! A sample of 64 values selects the smallest encoding; every value is then checked.

use super::plain::{
    BadColumn, DELTA, FRAME, PLAIN, SAMPLE, STEP, TOO_SHORT, encode_plain, take, take_array, take_plain, take_u8,
};
use tidalite_kernels::{Int, min_max, narrow_to_1, narrow_to_2, narrow_to_4};

/// Bytes before the first `x`, including the tag.
const FRAME_HEAD: usize = 10;
const STEP_HEAD: usize = 18;
const DELTA_HEAD: usize = 26;

pub(super) trait Integer: bytemuck::Pod + Int {
    fn widen(self) -> i64;
    /// Returns the low bits of `value`.
    fn wrap(value: u64) -> Self;
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            #[inline]
            fn widen(self) -> i64 {
                i64::from(self)
            }
            #[inline]
            fn wrap(value: u64) -> $t {
                value as $t
            }
        }
    )*};
}
integer!(i8, i16, i32, u32, i64);

/// Encodes as PLAIN or FRAME, whichever is smaller.
pub(super) fn encode_integers<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    match min_max(values) {
        Some((min, max)) => encode_between(values, min, max, out),
        None => encode_plain(values, out),
    }
}

/// Encodes like [`encode_integers`], for values with known minimum and maximum.
fn encode_between<T: Integer>(values: &[T], min: T, max: T, out: &mut Vec<u8>) {
    let width = width(max.distance(min));
    // PLAIN has one byte in addition to its values.
    if FRAME_HEAD + values.len() * width > size_of_val(values) {
        return encode_plain(values, out);
    }
    put_head(FRAME, width, &[min.widen() as u64], out);
    let start = out.len();
    out.resize(start + values.len() * width, 0);
    let bytes = &mut out[start..];
    match width {
        0 => {}
        1 => narrow_to_1(values, min, bytes.as_chunks_mut().0),
        2 => narrow_to_2(values, min, bytes.as_chunks_mut().0),
        // Eight bytes never save space.
        _ => narrow_to_4(values, min, bytes.as_chunks_mut().0),
    }
}

/// Encodes as PLAIN, FRAME, STEP or DELTA, whichever is smallest.
pub(super) fn encode_longs(values: &[i64], out: &mut Vec<u8>) {
    let Some((min, max)) = min_max(values) else { return encode_plain(values, out) };
    let n = values.len();
    let framed = width(max.distance(min));
    if framed <= 1 || n < SAMPLE {
        return encode_between(values, min, max, out);
    }
    let step = StepDivisor::find(values, min, max).unwrap_or(StepDivisor::ONE);
    let stepped = width(max.distance(min) / step.size);
    // With a greater range, a delta wraps around and the step need not divide it.
    let delta = (max.distance(min) <= i64::MAX as u64 && sampled_delta_width(values, step) < stepped)
        .then(|| Delta::of(values, step));
    let plain_bytes = 1 + 8 * n;
    let frame_bytes = frame_bytes(n, min, max);
    let step_bytes = STEP_HEAD + n * stepped;
    let delta_bytes = delta.as_ref().map_or(usize::MAX, |d| DELTA_HEAD + (n - 1) * d.width);
    let least = plain_bytes.min(frame_bytes).min(step_bytes).min(delta_bytes);
    if least == plain_bytes || least == frame_bytes {
        encode_between(values, min, max, out);
    } else if least == step_bytes {
        put_head(STEP, stepped, &[min as u64, step.size], out);
        put_counts(stepped, values.iter().map(|v| v.distance(min)), step, out);
    } else if let Some(delta) = delta {
        put_head(DELTA, delta.width, &[values[0] as u64, delta.min as u64, step.size], out);
        put_counts(delta.width, deltas(values).map(|d| d.distance(delta.min)), step, out);
    }
}

pub(super) fn decode_integers<T: Integer>(input: &mut &[u8], n: usize) -> Result<Vec<T>, BadColumn> {
    let tag = take_u8(input)?;
    if tag == PLAIN {
        return take_plain(input, n);
    }
    let width = usize::from(take_u8(input)?);
    let mut number = || Ok(u64::from_le_bytes(take_array(input)?));
    let is_long = size_of::<T>() == 8;
    match tag {
        FRAME => {
            let min = number()?;
            get(input, width, n, |x| T::wrap(min.wrapping_add(x)))
        }
        STEP if is_long => {
            let (min, step) = (number()?, number()?);
            get(input, width, n, |x| T::wrap(min.wrapping_add(x.wrapping_mul(step))))
        }
        DELTA if is_long && n > 0 => {
            let (first, min, step) = (number()?, number()?, number()?);
            let mut value = first;
            let mut values = vec![T::wrap(first)];
            values.extend(get(input, width, n - 1, |x| {
                value = value.wrapping_add(min).wrapping_add(x.wrapping_mul(step));
                T::wrap(value)
            })?);
            Ok(values)
        }
        _ => Err(BadColumn("unknown encoding of integers")),
    }
}

fn deltas(values: &[i64]) -> impl ExactSizeIterator<Item = i64> {
    values[1..].iter().zip(values).map(|(b, a)| b.wrapping_sub(*a))
}

/// Returns the number of bytes for numbers up to `max`.
fn width(max: u64) -> usize {
    match max {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// A common divisor of all differences between the values, for example of timestamps in nanoseconds with millisecond
/// precision.
#[derive(Clone, Copy)]
struct StepDivisor {
    size: u64,
    /// `size` is `odd << shift`; this is the inverse of `odd` modulo 2^64.
    inverse: u64,
    shift: u32,
}

impl StepDivisor {
    const ONE: StepDivisor = StepDivisor { size: 1, inverse: 1, shift: 0 };

    /// Returns the greatest step; `None` if it is 1 or requires too many samples.
    fn find(values: &[i64], min: i64, max: i64) -> Option<StepDivisor> {
        let sample = values.iter().step_by((values.len() / SAMPLE) | 1);
        let mut size =
            sample.fold(max.distance(min), |size, v| if size == 1 { 1 } else { common_divisor(v.distance(min), size) });
        for _ in 0..4 {
            if size == 1 {
                return None;
            }
            let step = StepDivisor::new(size);
            let most = u64::MAX / size;
            match values.iter().find(|v| step.count(v.distance(min)) > most) {
                None => return Some(step),
                Some(stray) => size = common_divisor(stray.distance(min), size),
            }
        }
        None
    }

    fn new(size: u64) -> StepDivisor {
        let shift = size.trailing_zeros();
        let odd = size >> shift;
        // Newton's iteration: each round doubles the number of correct bits, starting with 3.
        let inverse = (0..5).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))));
        StepDivisor { size, inverse, shift }
    }

    /// Returns the number of steps of `difference`.
    ///
    /// For other numbers than multiples the result exceeds the result of any multiple: multiplication by the inverse
    /// permutes the 64-bit numbers, and the multiples have the smallest results.
    #[inline]
    fn count(self, difference: u64) -> u64 {
        difference.wrapping_mul(self.inverse).rotate_right(self.shift)
    }
}

/// Returns the greatest common divisor.
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

struct Delta {
    min: i64,
    width: usize,
}

impl Delta {
    /// Creates the deltas of at least two values.
    fn of(values: &[i64], step: StepDivisor) -> Delta {
        let first = values[1].wrapping_sub(values[0]);
        let (min, max) = deltas(values).fold((first, first), |(min, max), d| (min.min(d), max.max(d)));
        Delta { min, width: width(max.distance(min) / step.size) }
    }
}

/// Estimates the width of the deltas of at least two values.
fn sampled_delta_width(values: &[i64], step: StepDivisor) -> usize {
    let last = values.len() - 1;
    let sample = (0..last).step_by(last / SAMPLE + 1).map(|i| values[i + 1].wrapping_sub(values[i]));
    let (min, max) = sample.fold((i64::MAX, i64::MIN), |(min, max), d| (min.min(d), max.max(d)));
    width(max.distance(min) / step.size)
}

/// Returns the size of the output of [`put_frame`].
pub(super) fn frame_bytes(n: usize, min: i64, max: i64) -> usize {
    FRAME_HEAD + n * width(max.distance(min))
}

/// Writes FRAME for values that map to integers in `min..=max`; `above` returns the difference to `min`.
pub(super) fn put_frame<T: Copy>(values: &[T], min: i64, max: i64, above: impl Fn(T) -> u64, out: &mut Vec<u8>) {
    let width = width(max.distance(min));
    put_head(FRAME, width, &[min as u64], out);
    put(width, values.iter().map(|&v| above(v)), out);
}

fn put_head(tag: u8, width: usize, numbers: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&[tag, width as u8]);
    out.extend_from_slice(bytemuck::cast_slice(numbers));
}

/// Writes the step count of each difference in `width` bytes, mostly with a multiplication of 32 bits.
fn put_counts(width: usize, differences: impl ExactSizeIterator<Item = u64>, step: StepDivisor, out: &mut Vec<u8>) {
    if width == 8 {
        return put(width, differences.map(|d| step.count(d)), out);
    }
    let inverse = step.inverse as u32;
    put(width, differences.map(|d| u64::from(((d >> step.shift) as u32).wrapping_mul(inverse))), out);
}

/// Appends the low `width` bytes of each item.
fn put(width: usize, items: impl ExactSizeIterator<Item = u64>, out: &mut Vec<u8>) {
    match width {
        0 => {}
        1 => put_chunks(items.map(|x| [x as u8]), out),
        2 => put_chunks(items.map(|x| (x as u16).to_le_bytes()), out),
        4 => put_chunks(items.map(|x| (x as u32).to_le_bytes()), out),
        _ => put_chunks(items.map(u64::to_le_bytes), out),
    }
}

fn put_chunks<const W: usize>(items: impl ExactSizeIterator<Item = [u8; W]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + items.len() * W, 0);
    let (chunks, _) = out[start..].as_chunks_mut();
    chunks.iter_mut().zip(items).for_each(|(chunk, item)| *chunk = item);
}

fn get<T>(input: &mut &[u8], width: usize, n: usize, mut value: impl FnMut(u64) -> T) -> Result<Vec<T>, BadColumn> {
    let bytes = take(input, n.checked_mul(width).ok_or(TOO_SHORT)?)?;
    Ok(match width {
        0 => (0..n).map(|_| value(0)).collect(),
        1 => bytes.iter().map(|&b| value(u64::from(b))).collect(),
        2 => bytes.as_chunks().0.iter().map(|&b| value(u64::from(u16::from_le_bytes(b)))).collect(),
        4 => bytes.as_chunks().0.iter().map(|&b| value(u64::from(u32::from_le_bytes(b)))).collect(),
        8 => bytes.as_chunks().0.iter().map(|&b| value(u64::from_le_bytes(b))).collect(),
        _ => return Err(BadColumn("unknown width")),
    })
}
