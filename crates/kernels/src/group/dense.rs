//! Rows whose keys differ in few bits only, as those of a symbol's codes: these bits are a place already, see
//! [`super::planes`].

use super::fold::{FoldInput, Folds};
use super::planes::GroupPlanes;
use super::table::GroupKey;

/// Planes of a query with few folds should stay near the processor.
const BITS_MAX: u32 = 13;

/// Places and what is kept of their groups.
#[derive(Debug)]
pub(super) struct Dense<K> {
    /// A key without the bits that are its place, the same for all.
    base: K,
    from: u32,
    mask: u32,
    planes: GroupPlanes,
}

impl<K: GroupKey> Dense<K> {
    /// For keys of which `any` has the bits that some have, `all` those that all have; if there are `rows` enough.
    pub fn of(any: K, all: K, rows: usize, folds: &Folds) -> Option<Dense<K>> {
        let (from, bits) = any.span(all);
        if bits > BITS_MAX || rows < 1 << bits {
            return None;
        }
        let mask = (1 << bits) - 1;
        Some(Dense {
            base: any.with_bits(from, mask, 0),
            from,
            mask,
            planes: GroupPlanes::new(folds.clone(), 1 << bits),
        })
    }

    /// Whether all keys between these are among its own.
    pub fn has(&self, any: K, all: K) -> bool {
        [any, all].iter().all(|key| key.with_bits(self.from, self.mask, 0) == self.base)
    }

    pub fn bytes(&self) -> usize {
        self.planes.bytes()
    }

    /// Adds rows. `places` is scratch.
    pub fn add(&mut self, keys: &[K], inputs: &[FoldInput<'_>], places: &mut Vec<u32>) {
        let (from, mask) = (self.from, self.mask);
        places.clear();
        places.extend(keys.iter().map(|key| key.bits(from, mask)));
        self.planes.add(places, inputs);
    }

    /// The groups that have rows: keys, and their words one after the other.
    pub fn groups(mut self) -> (Vec<K>, Vec<u64>) {
        let (mut places, mut states) = (Vec::new(), Vec::new());
        self.planes.take(&mut places, &mut states);
        (places.into_iter().map(|place| self.base.with_bits(self.from, self.mask, place)).collect(), states)
    }
}
