//! Which encoding a block of values gets.
//!
//! In: the values, and the schemes that may serve them. Each scheme guesses from a sample what it would take; the
//! most promising are carried out until none of the others is expected to be smaller.
//!
//! A new encoding is a tag in `format`, a file that implements [`Scheme`] and has `decode` and `check`, a place in
//! the list of schemes in `fixed` or `views`, and arms in `EncodedBlock::{check, decode}`.

use crate::segment::format::{ALIGNMENT, Encoding, aligned};
use std::borrow::Cow;
use tidalite_types::{Bitmap, VECTOR_ROWS};

/// What a block is encoded for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Rows that may be merged again soon: writing must be fast.
    #[default]
    Fresh,
    /// Rows that stay: the smallest size that is still read fast.
    Sealed,
}

/// The values of a block.
pub(super) struct Source<'a, T> {
    /// As they came, anything under NULL.
    pub given: &'a [T],
    /// NULL rows replaced by neighbours.
    pub values: &'a [T],
    /// Absent when no row is NULL.
    pub validity: Option<&'a Bitmap>,
    pub effort: Effort,
}

impl<'a, T> Source<'a, T> {
    pub fn rows(&self) -> usize {
        self.values.len()
    }

    /// Bytes of the values as memory has them.
    pub fn plain_bytes(&self) -> usize {
        size_of_val(self.values)
    }

    /// Some of the vectors, evenly spread.
    pub fn sample(&self) -> Vec<&'a [T]> {
        let vectors = self.values.chunks(VECTOR_ROWS);
        let count = match self.effort {
            Effort::Fresh => 3,
            Effort::Sealed => 12,
        };
        let step = vectors.len().div_ceil(count);
        // From the middle of each stretch: the last vector is often short.
        vectors.skip(step / 2).step_by(step).collect()
    }

    /// What the block takes if `sample` takes `bytes`.
    pub fn scale(&self, sample: &[&[T]], bytes: usize) -> usize {
        let rows: usize = sample.iter().map(|vector| vector.len()).sum();
        (bytes as u64 * self.rows() as u64 / rows.max(1) as u64) as usize
    }
}

/// A way to lay out values of type `T`.
pub(super) trait Scheme<T> {
    /// Bytes of the block, judged by a sample; `None` when the scheme does not serve such values.
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize>;

    /// `None` when it turns out not to serve or not to pay.
    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>>;

    /// What a byte counts, in percent: schemes that are read slower, or cannot be compared without decoding, must be
    /// smaller to be chosen.
    fn weight(&self, effort: Effort) -> usize;
}

/// What follows zones and validity in a chunk, and what the entry says of it.
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

/// Blocks of a few lines stay plain: the padding would eat the gain.
pub(super) const BYTES_MIN: usize = 4 * ALIGNMENT;

/// The payload of the scheme that takes the least, `None` when plain values are as good. Schemes before others win at
/// equal size.
pub(super) fn choose<'a, T>(source: &Source<'a, T>, schemes: &[&dyn Scheme<T>]) -> Option<Payload<'a>> {
    if source.plain_bytes() <= BYTES_MIN {
        return None;
    }
    let weighed = |scheme: &&'_ dyn Scheme<T>, bytes: usize| bytes * scheme.weight(source.effort) / 100;
    let mut ranked: Vec<(usize, &dyn Scheme<T>)> =
        schemes.iter().filter_map(|scheme| Some((weighed(scheme, scheme.estimate(source)?), *scheme))).collect();
    ranked.sort_by_key(|(cost, _)| *cost);
    // A sixteenth less than plain at least, which is used where it lies; of rows that stay, a sixty-fourth.
    let mut best_cost = match source.effort {
        Effort::Fresh => source.plain_bytes() / 16 * 15,
        Effort::Sealed => source.plain_bytes() / 64 * 63,
    };
    let mut best = None;
    for (expected, scheme) in ranked {
        // Guesses are not exact: what is expected to be a little better may be worse.
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
