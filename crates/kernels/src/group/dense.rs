//! Groups rows whose keys differ in few bits only, such as symbol ids: these bits are the group number, see
//! [`super::planes`].

use super::fold::{FoldInput, Folds};
use super::group_key::GroupKey;
use super::planes::GroupPlanes;

/// Largest number of differing bits. The planes of a query with few folds should stay in the cache.
const BITS_MAX: u32 = 13;

/// Keys, group numbers and accumulators.
#[derive(Debug)]
pub(super) struct Dense<K> {
    /// The key with the bits of the group number cleared; the same for all keys.
    base: K,
    from: u32,
    mask: u32,
    planes: GroupPlanes,
}

impl<K: GroupKey> Dense<K> {
    /// Creates the groups if `rows` is large enough. `any` has the bits set in some key, `all` the bits set in all
    /// keys.
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

    /// Returns true if all keys with these common bits map to these groups.
    pub fn has(&self, any: K, all: K) -> bool {
        [any, all].iter().all(|key| key.with_bits(self.from, self.mask, 0) == self.base)
    }

    pub fn bytes(&self) -> usize {
        self.planes.bytes()
    }

    /// Adds rows. `places` is scratch memory.
    pub fn add(&mut self, keys: &[K], inputs: &[FoldInput<'_>], places: &mut Vec<u32>) {
        let (from, mask) = (self.from, self.mask);
        places.clear();
        places.extend(keys.iter().map(|key| key.bits(from, mask)));
        self.planes.add(places, inputs);
    }

    /// Returns the groups that have rows: the keys, and the words of all groups in sequence.
    pub fn groups(mut self) -> (Vec<K>, Vec<u64>) {
        let (mut places, mut states) = (Vec::new(), Vec::new());
        self.planes.take(&mut places, &mut states);
        (places.into_iter().map(|place| self.base.with_bits(self.from, self.mask, place)).collect(), states)
    }
}
