//! Chooses the encoding of a block of values.
//!
//! Input: the values, and the candidate schemes. Each scheme estimates its size from a sample. The most promising
//! schemes encode the block until no other scheme is expected to be smaller.
//!
//! A new encoding requires a tag in `format`, a file that implements [`Scheme`] and has `decode` and `check`, an entry
//! in the list of schemes in `fixed` or `views`, and arms in `EncodedBlock::{check, decode}`.

use crate::segment::format::{ALIGNMENT, Encoding, aligned};
use std::borrow::Cow;
use tidalite_types::{Bitmap, VECTOR_ROWS};

/// The purpose for which a block is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Rows that may be merged again soon: encoding must be fast.
    #[default]
    Fresh,
    /// Rows of a quiet partition: the smallest size with fast reads.
    Sealed,
}

/// The values of a block.
pub(super) struct Source<'a, T> {
    /// The original values; values of NULL rows are unspecified.
    pub given: &'a [T],
    /// The values with NULL rows replaced by adjacent values.
    pub values: &'a [T],
    /// `None` if no row is NULL.
    pub validity: Option<&'a Bitmap>,
    pub effort: Effort,
}

impl<'a, T> Source<'a, T> {
    pub fn rows(&self) -> usize {
        self.values.len()
    }

    /// Returns the size of the values in memory in bytes.
    pub fn plain_bytes(&self) -> usize {
        size_of_val(self.values)
    }

    /// Returns some of the vectors, evenly spread.
    pub fn sample(&self) -> Vec<&'a [T]> {
        let vectors = self.values.chunks(VECTOR_ROWS);
        let count = match self.effort {
            Effort::Fresh => 3,
            Effort::Sealed => 12,
        };
        let step = vectors.len().div_ceil(count);
        // From the middle of each range, because the last vector is often short.
        vectors.skip(step / 2).step_by(step).collect()
    }

    /// Returns the estimated size of the block if `sample` takes `bytes`.
    pub fn scale(&self, sample: &[&[T]], bytes: usize) -> usize {
        let rows: usize = sample.iter().map(|vector| vector.len()).sum();
        (bytes as u64 * self.rows() as u64 / rows.max(1) as u64) as usize
    }
}

/// An encoding of values of type `T`.
pub(super) trait Scheme<T> {
    /// Estimates the bytes of the block from a sample; `None` if the scheme does not support such values.
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize>;

    /// Encodes the block; `None` if the scheme does not support the values or does not pay.
    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>>;

    /// Returns the cost of a byte in percent.
    ///
    /// Schemes that are slower to read, or that cannot be compared without decoding, must be smaller to be chosen.
    fn weight(&self, effort: Effort) -> usize;
}

/// The bytes after zones and validity in a chunk, with the fields of the footer entry.
pub(super) struct Payload<'a> {
    pub encoding: Encoding,
    pub parameter: u32,
    pub data_bytes: u32,
    pub sections: Vec<Cow<'a, [u8]>>,
}

impl<'a> Payload<'a> {
    pub fn new(encoding: Encoding, parameter: u32, section: impl Into<Cow<'a, [u8]>>) -> Payload<'a> {
        Payload { encoding, parameter, data_bytes: 0, sections: vec![section.into()] }
    }

    pub fn bytes(&self) -> usize {
        self.sections.iter().map(|section| aligned(section.len())).sum()
    }
}

/// Blocks of a few lines stay plain: the padding would exceed the gain.
pub(super) const BYTES_MIN: usize = 4 * ALIGNMENT;

/// Returns the payload of the smallest scheme; `None` if plain values are as good. At equal size the earlier scheme
/// wins.
pub(super) fn choose<'a, T>(source: &Source<'a, T>, schemes: &[&dyn Scheme<T>]) -> Option<Payload<'a>> {
    if source.plain_bytes() <= BYTES_MIN {
        return None;
    }
    let weighed = |scheme: &&'_ dyn Scheme<T>, bytes: usize| bytes * scheme.weight(source.effort) / 100;
    let mut ranked: Vec<(usize, &dyn Scheme<T>)> =
        schemes.iter().filter_map(|scheme| Some((weighed(scheme, scheme.estimate(source)?), *scheme))).collect();
    ranked.sort_by_key(|(cost, _)| *cost);
    // Plain values are used in place, so an encoding must be at least a sixteenth smaller, or a sixty-fourth for sealed
    // rows.
    let mut best_cost = match source.effort {
        Effort::Fresh => source.plain_bytes() / 16 * 15,
        Effort::Sealed => source.plain_bytes() / 64 * 63,
    };
    let mut best = None;
    for (expected, scheme) in ranked {
        // Estimates are not exact: a slightly better estimate may be worse.
        let is_promising = match source.effort {
            Effort::Fresh => expected < best_cost,
            Effort::Sealed => expected < best_cost + best_cost / 8,
        };
        if is_promising
            && let Some(payload) = scheme.encode(source)
            && weighed(&scheme, payload.bytes()) < best_cost
        {
            best_cost = weighed(&scheme, payload.bytes());
            best = Some(payload);
        }
    }
    best
}
