//! Set of keys without accumulators: keys are stored in the slots, so that a lookup reads one line of memory.

use super::group_key::GroupKey;
use crate::prefetch;

/// Number of slots of the smallest set.
const SLOTS_MIN: usize = 64;
/// Number of keys between the prefetch of a slot and its lookup.
const AHEAD: usize = 16;
/// Smaller sets are in the cache and are not prefetched.
const FAR_BYTES: usize = 128 << 10;

/// Open-addressing hash table, at most half full. The zero key is stored separately: its slot is a free slot.
#[derive(Debug)]
pub(super) struct Keys<K> {
    seed: u64,
    slots: Vec<K>,
    count: usize,
    has_zero: bool,
}

impl<K: GroupKey> Keys<K> {
    /// Creates a set. `seed` is the seed of [`super::table::GroupTable::new`].
    pub fn new(seed: u64) -> Keys<K> {
        Keys { seed, slots: vec![K::default(); SLOTS_MIN], count: 0, has_zero: false }
    }

    pub fn len(&self) -> usize {
        self.count + usize::from(self.has_zero)
    }

    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<K>()
    }

    pub fn add(&mut self, keys: &[K]) {
        for (at, key) in keys.iter().enumerate() {
            if self.slots.len() * size_of::<K>() > FAR_BYTES
                && let Some(ahead) = keys.get(at + AHEAD)
            {
                prefetch(&self.slots, self.home(*ahead));
            }
            self.insert(*key);
        }
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        key.hash(self.seed) as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub fn insert(&mut self, key: K) {
        if key == K::default() {
            self.has_zero = true;
            return;
        }
        let mut at = self.home(key);
        while self.slots[at] != key {
            if self.slots[at] == K::default() {
                self.slots[at] = key;
                self.count += 1;
                if self.count * 2 > self.slots.len() {
                    self.rehash(self.slots.len() * 2);
                }
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Reserves slots for `more` keys.
    pub fn reserve(&mut self, more: usize) {
        let slots = (2 * (self.count + more)).next_power_of_two();
        if slots > self.slots.len() {
            self.rehash(slots);
        }
    }

    /// Rehashes into `slots` slots, a power of two.
    #[cold]
    fn rehash(&mut self, slots: usize) {
        let before = std::mem::replace(&mut self.slots, vec![K::default(); slots]);
        for key in before.into_iter().filter(|key| *key != K::default()) {
            let mut at = self.home(key);
            while self.slots[at] != K::default() {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = key;
        }
    }

    /// Returns all keys and clears the set.
    pub fn take(&mut self) -> Vec<K> {
        let Keys { slots, count, has_zero, .. } = std::mem::replace(self, Keys::new(self.seed));
        let mut keys = Vec::with_capacity(count + 1);
        keys.extend(has_zero.then(K::default));
        keys.extend(slots.into_iter().filter(|key| *key != K::default()));
        keys
    }
}
