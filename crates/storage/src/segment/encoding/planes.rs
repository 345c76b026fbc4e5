//! Byte planes: the least significant bytes of all numbers, then the next bytes of all. Written only in compressed
//! form; zstd finds regularities within a plane that bytes of other weight hide.
//!
//! ```text
//! base     u64: what every word is a distance from
//! count    u32: of words, as many as rows or fewer
//! bytes    u8: of a word, 0 to 8
//! steps    u8: 1 if words are differences from the number before (0 +1 −1 as 0 2 1), the first one from the base
//! scaled   u8: 1 if a unit follows
//! zeros    1
//! unit     u64, if scaled: what a word counts
//! planes   of the words
//! lengths  if there are fewer words than rows: of how many rows each is the number, less 1: bytes of 255 as often as
//!          they fit, then the rest
//! ```
//!
//! Integers are extended to 64 bits; floating point is stored by its bits. Also used for the codes of a [`super::text`]
//! dictionary.

use super::EncodedBlock;
use super::choice::Payload;
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::{Encoding, u32_at, u64_at};
use bytemuck::Pod;
use tidalite_types::column_type::Physical;

const HEAD_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One word per row.
    Values,
    /// One word per row, containing the difference.
    Steps,
    /// One word per run of equal values.
    Runs,
}

/// Returns payloads to try for compression, for values of `width` bytes.
pub(super) fn candidates(values: &[u64], width: usize) -> Vec<Payload<'static>> {
    let mut forms = vec![Form::Values];
    if width >= 4 {
        forms.push(Form::Steps);
    }
    if has_runs(values) {
        forms.push(Form::Runs);
    }
    forms.into_iter().map(|form| Payload::new(Encoding::Planes, 0, written(values, form))).collect()
}

/// Returns true if at least a third of the rows are equal to the previous row.
pub(super) fn has_runs(values: &[u64]) -> bool {
    values.windows(2).filter(|two| two[0] == two[1]).count() >= values.len() / 3
}

pub(super) fn written(values: &[u64], form: Form) -> Vec<u8> {
    let (values, lengths) = match form {
        Form::Runs => runs(values),
        Form::Values | Form::Steps => (values.to_vec(), Vec::new()),
    };
    let first = values.first().copied().unwrap_or(0);
    let is_steps = form == Form::Steps;
    let least = values.iter().map(|v| *v as i64).min().unwrap_or(0) as u64;
    let unit = unit(&values, least);
    let base = if is_steps { first } else { least };
    let words: Vec<u64> = match is_steps {
        true => values.iter().zip([first].iter().chain(&values)).map(|(v, before)| folded(*v, *before, unit)).collect(),
        false => values.iter().map(|v| v.wrapping_sub(base) / unit).collect(),
    };
    let bytes = (64 - words.iter().fold(0, |all, word| all | word).leading_zeros() as usize).div_ceil(8);
    let mut out = Vec::with_capacity(HEAD_BYTES + words.len() * bytes + lengths.len());
    out.extend(base.to_le_bytes());
    out.extend((words.len() as u32).to_le_bytes());
    out.extend([bytes as u8, u8::from(is_steps), u8::from(unit > 1), 0]);
    if unit > 1 {
        out.extend(unit.to_le_bytes());
    }
    for plane in 0..bytes {
        out.extend(words.iter().map(|word| (word >> (8 * plane)) as u8));
    }
    out.extend(lengths);
    out
}

/// Returns the value of each run, and the encoded lengths minus one.
fn runs(values: &[u64]) -> (Vec<u64>, Vec<u8>) {
    let (mut firsts, mut lengths) = (Vec::new(), Vec::new());
    for run in values.chunk_by(|a, b| a == b) {
        firsts.push(run[0]);
        let more = run.len() - 1;
        lengths.resize(lengths.len() + more / 255, 255);
        lengths.push((more % 255) as u8);
    }
    // Without repetitions no lengths are stored.
    if firsts.len() == values.len() { (firsts, Vec::new()) } else { (firsts, lengths) }
}

/// Returns the greatest common divisor of all distances from the smallest value: times are often whole seconds.
///
/// Returns 1 if the range of the values exceeds a signed number.
fn unit(values: &[u64], least: u64) -> u64 {
    let (mut unit, mut all) = (0, 0);
    for value in values {
        let distance = value.wrapping_sub(least);
        all |= distance;
        if unit == 0 || distance % unit != 0 {
            unit = greatest_divisor(distance, unit);
            if unit == 1 {
                return 1;
            }
        }
    }
    if all >> 63 == 0 { unit.max(1) } else { 1 }
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the zigzag-encoded difference, so that small differences have few bits for either sign.
fn folded(value: u64, before: u64, unit: u64) -> u64 {
    let step = value.wrapping_sub(before) as i64;
    // With a unit above 1 the steps fit a signed number.
    let step = if unit > 1 { step / unit as i64 } else { step };
    (step << 1 ^ step >> 63) as u64
}

/// Returns the numbers of `rows` rows after checking all bytes.
pub(super) fn read(bytes: &[u8], rows: usize) -> Result<Vec<u64>, String> {
    if bytes.len() < HEAD_BYTES {
        return Err("the head of its planes is cut off".to_owned());
    }
    let (base, count) = (u64_at(bytes, 0), u32_at(bytes, 8) as usize);
    let (width, steps, scaled) = (usize::from(bytes[12]), bytes[13], bytes[14]);
    if count > rows || width > 8 || steps > 1 || scaled > 1 {
        return Err(format!("{count} words of {width} bytes for {rows} rows"));
    }
    let (unit, rest) = match bytes[HEAD_BYTES..].split_at_checked(8 * usize::from(scaled)) {
        Some((unit, rest)) => (if scaled == 1 { u64_at(unit, 0) } else { 1 }, rest),
        None => return Err("the unit of its planes is cut off".to_owned()),
    };
    let (planes, lengths) = rest.split_at_checked(count * width).ok_or("its planes are cut off")?;
    let mut words = vec![0u64; count];
    for (i, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        words.iter_mut().zip(plane).for_each(|(word, byte)| *word |= u64::from(*byte) << (8 * i));
    }
    let mut value = base;
    for word in &mut words {
        let step = (*word >> 1) ^ (*word & 1).wrapping_neg();
        let distance = if steps == 1 { step } else { *word }.wrapping_mul(unit);
        value = if steps == 1 { value.wrapping_add(distance) } else { base.wrapping_add(distance) };
        *word = value;
    }
    if count == rows {
        return if lengths.is_empty() { Ok(words) } else { Err("bytes behind its planes".to_owned()) };
    }
    repeated(&words, lengths, rows)
}

fn repeated(words: &[u64], lengths: &[u8], rows: usize) -> Result<Vec<u64>, String> {
    let (mut out, mut lengths) = (Vec::with_capacity(rows), lengths.iter());
    for word in words {
        let mut end = out.len() + 1;
        loop {
            let byte = *lengths.next().ok_or("the lengths of its runs are cut off")?;
            end += usize::from(byte);
            if byte < 255 {
                break;
            }
        }
        if end > rows {
            return Err(format!("runs past its {rows} rows"));
        }
        out.resize(end, *word);
    }
    if out.len() == rows && lengths.next().is_none() { Ok(out) } else { Err(format!("runs of {} rows", out.len())) }
}

/// Checks the payload during decoding.
pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    let width = match block.physical {
        Physical::Bit | Physical::Views | Physical::I128 | Physical::B16 => None,
        physical => physical.width(),
    };
    let width = width.ok_or_else(|| format!("planes of {:?}", block.physical))?;
    let words = read(payload, block.rows)?;
    Ok(BlockData::Fixed(match width {
        1 => narrowed(&words, validity, |word| word as u8),
        2 => narrowed(&words, validity, |word| word as u16),
        4 => narrowed(&words, validity, |word| word as u32),
        _ => narrowed(&words, validity, |word| word),
    }))
}

fn narrowed<T: Pod + Send>(words: &[u64], validity: &[u8], narrow: impl Fn(u64) -> T) -> bytes::Bytes {
    let mut values: Vec<T> = words.iter().map(|word| narrow(*word)).collect();
    super::nulls::zero_nulls(&mut values, validity);
    share(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..400 {
            let rows = [1, 2, 255, 256, 257, 600, 3_000][round % 7];
            let distinct = [1, 2, 300, u64::MAX][rng.usize(..4)];
            let base = if rng.bool() { rng.u64(..) } else { 0 };
            let stretch = [1, 3, 700][rng.usize(..3)];
            let unit = [1, 1_000_000, 1 << 40][rng.usize(..3)];
            let mut values = Vec::new();
            while values.len() < rows {
                let value = base.wrapping_add(rng.u64(..distinct).wrapping_mul(unit));
                values.resize(rows.min(values.len() + rng.usize(1..=stretch)), value);
            }
            for form in [Form::Values, Form::Steps, Form::Runs] {
                let bytes = written(&values, form);
                assert_eq!(read(&bytes, rows).as_ref(), Ok(&values), "{form:?}");
                assert!(read(&bytes[..rng.usize(..bytes.len())], rows).is_err(), "{form:?} cut off");
                assert!(read(&bytes, rows + 1).is_err(), "{form:?} of more rows");
                let mut damaged = bytes.clone();
                let at = rng.usize(..bytes.len());
                damaged[at] ^= 1 << rng.u8(..8);
                // Rejected, or decoded to the same count of numbers.
                assert!(read(&damaged, rows).map_or(true, |found| found.len() == rows));
            }
        }
    }

    #[test]
    fn small_steps_and_stretches_take_few_bytes() {
        let walk: Vec<u64> = (0..1_000u64).map(|i| (1 << 40) + i * 100 - i % 2 * 150).collect();
        // Steps of 100 and −50: in units of 50 they fit a byte.
        assert_eq!(written(&walk, Form::Steps).len(), HEAD_BYTES + 8 + walk.len());
        let odd: Vec<u64> = walk.iter().enumerate().map(|(i, v)| v + i as u64 % 3).collect();
        assert_eq!(written(&odd, Form::Steps).len(), HEAD_BYTES + 2 * odd.len());
        let seconds: Vec<u64> = (0..1_000u64).map(|i| (i * 7_919 % 60_000).wrapping_sub(9) * 1_000_000).collect();
        assert_eq!(written(&seconds, Form::Values).len(), HEAD_BYTES + 8 + 2 * seconds.len());
        // A range that exceeds a signed number.
        let far: Vec<u64> = [i64::MIN, 0, i64::MAX - 1].map(|v| v as u64).to_vec();
        assert_eq!(read(&written(&far, Form::Steps), 3), Ok(far));
        let stretches: Vec<u64> = (0..1_000u64).map(|i| i / 500).collect();
        assert_eq!(written(&stretches, Form::Runs).len(), HEAD_BYTES + 2 + 2 * 2);
    }
}
