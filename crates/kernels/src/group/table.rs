//! Finds the group of a row: an open-addressing hash table from keys to numbers, counted from 0 in order of arrival.

use super::dense::Dense;
use super::fold::{FoldInput, Folds};
use super::group_key::{GroupKey, bits_of};
use super::keys::Keys;
use crate::prefetch;

/// Number of slots of the smallest table.
const SLOTS_MIN: usize = 64;
/// Number of rows between the prefetch of a slot and its lookup.
const AHEAD: usize = 16;
/// Smaller tables are in the cache and are not prefetched.
const FAR_SLOTS: usize = 1 << 14;
/// Keys below this limit are looked up by direct addressing if they are dense,
const DIRECT_KEYS: usize = 1 << 16;
/// that is, below this multiple of the number of rows and groups.
const DIRECT_SHARE: usize = 4;
/// Rows sampled to detect runs of equal keys.
const SAMPLED_ROWS: usize = 256;

/// Keys, their numbers, and the words of their groups.
#[derive(Debug)]
pub struct GroupTable<K> {
    seed: u64,
    folds: Folds,
    /// The words of a group without rows.
    start: Vec<u64>,
    /// The upper half of the hash, and the number plus one; 0 for a free slot.
    slots: Vec<u64>,
    /// Indexed by small key: the number plus one; 0 if the key has not been looked up.
    direct: Vec<u32>,
    keys: Vec<K>,
    states: Vec<u64>,
    /// Groups that are not yet merged into `keys`.
    dense: Option<Dense<K>>,
    /// If nothing is accumulated: keys that are not yet in `keys`. Empty if `keys` has entries.
    alone: Option<Keys<K>>,
}

impl<K: GroupKey> GroupTable<K> {
    /// Creates an empty table. `seed` must be unknown to the clients that choose the keys.
    #[must_use]
    pub fn new(folds: Folds, seed: u64) -> GroupTable<K> {
        let alone = (folds.words() == 0).then(|| Keys::new(seed));
        GroupTable {
            seed,
            start: folds.start().collect(),
            folds,
            slots: vec![0; if alone.is_some() { 0 } else { SLOTS_MIN }],
            direct: Vec::new(),
            keys: Vec::new(),
            states: Vec::new(),
            dense: None,
            alone,
        }
    }

    /// Creates a table of distinct keys without accumulators.
    #[must_use]
    pub fn of_keys(keys: Vec<K>, seed: u64) -> GroupTable<K> {
        GroupTable { keys, ..GroupTable::new(Folds::new(Vec::new()), seed) }
    }

    /// Returns the number of groups, excluding dense groups before [`GroupTable::settle`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len() + self.alone.as_ref().map_or(0, Keys::len)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys by group number.
    ///
    /// # Panics
    /// Panics if the groups are not settled, as do all methods that return groups.
    #[must_use]
    pub fn keys(&self) -> &[K] {
        self.assert_settled();
        &self.keys
    }

    /// Returns the words of all groups, by group number.
    #[must_use]
    pub fn states(&self) -> &[u64] {
        self.assert_settled();
        &self.states
    }

    fn assert_settled(&self) {
        let are_settled = self.dense.is_none() && self.alone.as_ref().is_none_or(|keys| keys.len() == 0);
        assert!(are_settled, "groups that were not settled");
    }

    /// Returns the allocated bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.slots.capacity() + self.states.capacity()) * 8
            + self.direct.capacity() * 4
            + self.keys.capacity() * size_of::<K>()
            + self.dense.as_ref().map_or(0, Dense::bytes)
            + self.alone.as_ref().map_or(0, Keys::bytes)
    }

    /// Returns the key set if nothing is accumulated.
    fn alone(&mut self) -> Option<&mut Keys<K>> {
        let alone = self.alone.as_mut()?;
        self.keys.drain(..).for_each(|key| alone.insert(key));
        Some(alone)
    }

    /// Adds rows. `groups` is scratch memory.
    pub fn add(&mut self, keys: &[K], inputs: &[FoldInput<'_>], groups: &mut Vec<u32>) {
        let Some((any, all)) = bits_of(keys) else { return };
        if any == all {
            return self.add_all(any, keys.len(), inputs);
        }
        if self.dense.as_ref().is_none_or(|dense| !dense.has(any, all))
            && let Some(dense) = Dense::of(any, all, keys.len(), &self.folds)
        {
            self.join_dense();
            self.dense = Some(dense);
        }
        match &mut self.dense {
            Some(dense) if dense.has(any, all) => return dense.add(keys, inputs, groups),
            _ => {}
        }
        if let Some(alone) = self.alone() {
            return alone.add(keys);
        }
        self.number(keys, any, groups);
        self.folds.add(&mut self.states, groups, inputs);
    }

    /// Merges all groups into one array. Must be called before groups are read.
    pub fn settle(&mut self) {
        self.join_dense();
        if let Some(alone) = self.alone.as_mut().filter(|alone| alone.len() > 0) {
            self.keys = alone.take();
        }
    }

    fn join_dense(&mut self) {
        if let Some(dense) = self.dense.take() {
            let (keys, states) = dense.groups();
            self.join_some(&keys, &states, &mut Vec::new());
        }
    }

    /// Adds `rows` rows of one key. The group is created even if there are no rows and inputs.
    pub fn add_all(&mut self, key: K, rows: usize, inputs: &[FoldInput<'_>]) {
        if let Some(alone) = self.alone() {
            return alone.insert(key);
        }
        let group = self.number_of(key) as usize;
        if rows > 0 {
            let words = self.folds.words();
            self.folds.add_all(&mut self.states[group * words..][..words], rows, inputs);
        }
    }

    /// Adds the groups of another table with the same folds.
    pub fn join(&mut self, other: &GroupTable<K>, groups: &mut Vec<u32>) {
        self.join_some(other.keys(), other.states(), groups);
    }

    /// Adds groups given by their keys and words.
    pub fn join_some(&mut self, keys: &[K], states: &[u64], groups: &mut Vec<u32>) {
        let Some((any, _)) = bits_of(keys) else { return };
        if let Some(alone) = self.alone() {
            return alone.add(keys);
        }
        self.number(keys, any, groups);
        let words = self.folds.words();
        for (at, group) in groups.iter().enumerate() {
            let own = &mut self.states[*group as usize * words..][..words];
            self.folds.join(own, &states[at * words..][..words]);
        }
    }

    /// Writes the number of each row's key; new keys get a number. `any` has the bits that are set in some key.
    fn number(&mut self, keys: &[K], any: K, groups: &mut Vec<u32>) {
        groups.clear();
        groups.reserve(keys.len());
        let sampled = &keys[..keys.len().min(SAMPLED_ROWS)];
        let dense = DIRECT_KEYS.min(DIRECT_SHARE * (keys.len() + self.keys.len()));
        if let Some(any) = any.index(dense) {
            self.number_directly(keys, any, groups);
        } else if sampled.windows(2).filter(|pair| pair[0] == pair[1]).count() * 2 > sampled.len() {
            let mut last = (keys[0], self.number_of(keys[0]));
            groups.extend(keys.iter().map(|key| {
                if *key != last.0 {
                    last = (*key, self.number_of(*key));
                }
                last.1
            }));
        } else if self.slots.len() < FAR_SLOTS {
            groups.extend(keys.iter().map(|key| self.number_of(*key)));
        } else {
            for (row, key) in keys.iter().enumerate() {
                if let Some(ahead) = keys.get(row + AHEAD) {
                    prefetch(&self.slots, self.home(ahead.hash(self.seed)));
                }
                groups.push(self.number_of(*key));
            }
        }
    }

    /// Writes the numbers of keys that have only bits of `any`, by direct addressing.
    fn number_directly(&mut self, keys: &[K], any: usize, groups: &mut Vec<u32>) {
        let count = (any + 1).next_power_of_two();
        if self.direct.len() < count {
            self.direct.resize(count, 0);
        }
        groups.extend(keys.iter().map(|key| {
            let index = key.index(count).unwrap_or(0);
            let mut known = self.direct[index];
            if known == 0 {
                known = self.number_of(*key) + 1;
                self.direct[index] = known;
            }
            known - 1
        }));
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn number_of(&mut self, key: K) -> u32 {
        let hash = key.hash(self.seed);
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return self.insert(key, hash, at);
            }
            let number = slot as u32 - 1;
            if slot >> 32 == hash >> 32 && self.keys[number as usize] == key {
                return number;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: K, hash: u64, at: usize) -> u32 {
        let number = self.keys.len() as u32;
        self.slots[at] = (hash >> 32 << 32) | u64::from(number + 1);
        self.keys.push(key);
        self.states.extend_from_slice(&self.start);
        if self.keys.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// Reserves memory for `more` keys.
    pub fn reserve(&mut self, more: usize) {
        if let Some(alone) = self.alone() {
            return alone.reserve(more);
        }
        let keys = self.keys.len() + more;
        self.keys.reserve(more);
        self.states.reserve(more * self.folds.words());
        if keys * 2 > self.slots.len() {
            self.rehash((keys * 2).next_power_of_two());
        }
    }

    fn grow(&mut self) {
        self.rehash(self.slots.len() * 2);
    }

    /// Rehashes into `slots` slots, a power of two.
    fn rehash(&mut self, slots: usize) {
        self.slots = vec![0; slots];
        for (number, key) in self.keys.iter().enumerate() {
            let hash = key.hash(self.seed);
            let mut at = hash as usize & (self.slots.len() - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = (hash >> 32 << 32) | (number as u64 + 1);
        }
    }
}

/// Sorts row numbers by hash partition of their keys and writes the first index of each partition to `starts`.
///
/// There are `1 << bits` partitions, chosen by other bits of the hash than the slot of a table.
pub fn by_partition<K: GroupKey>(keys: &[K], seed: u64, bits: u32, order: &mut Vec<u32>, starts: &mut Vec<u32>) {
    let of = |key: &K| (key.hash(seed) << 24 >> (64 - bits)) as usize;
    starts.clear();
    starts.resize((1 << bits) + 1, 0);
    for key in keys {
        starts[of(key) + 1] += 1;
    }
    for partition in 0..1 << bits {
        starts[partition + 1] += starts[partition];
    }
    order.clear();
    order.resize(keys.len(), 0);
    let mut next = starts.clone();
    for (row, key) in keys.iter().enumerate() {
        let place = &mut next[of(key)];
        order[*place as usize] = row as u32;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold::{Fold, FoldValues};
    use super::*;
    use std::collections::HashMap;

    fn check<K: GroupKey + std::hash::Hash + std::fmt::Debug>(keys: &[K], values: &[i64]) {
        let folds = Folds::new(vec![Fold::Rows, Fold::SumInt(0), Fold::MaxInt(0)]);
        let mut expected: HashMap<K, (u64, i64, i64)> = HashMap::new();
        for (key, value) in keys.iter().zip(values) {
            let own = expected.entry(*key).or_insert((0, 0, i64::MIN));
            *own = (own.0 + 1, own.1 + value, own.2.max(*value));
        }
        let is = |tables: &[GroupTable<K>]| {
            let found: HashMap<K, (u64, i64, i64)> = tables
                .iter()
                .flat_map(|t| t.keys().iter().zip(t.states().chunks(3)))
                .map(|(key, s)| (*key, (s[0], s[1].cast_signed(), s[2].cast_signed())))
                .collect();
            assert_eq!(tables.iter().map(GroupTable::len).sum::<usize>(), expected.len(), "each key once");
            assert_eq!(found, expected);
        };
        let mut scratch = Vec::new();
        let mut halves = [GroupTable::new(folds.clone(), 7), GroupTable::new(folds.clone(), 7)];
        let middle = keys.len() / 2;
        for (table, rows) in halves.iter_mut().zip([0..middle, middle..keys.len()]) {
            let inputs = [FoldInput { values: FoldValues::Ints(&values[rows.clone()]), present: None }];
            table.add(&keys[rows], &inputs, &mut scratch);
            table.settle();
        }
        let [mut whole, other] = halves;
        whole.join(&other, &mut scratch);
        is(&[whole]);

        let (mut order, mut starts) = (Vec::new(), Vec::new());
        by_partition(keys, 7, 4, &mut order, &mut starts);
        let tables: Vec<GroupTable<K>> = starts
            .windows(2)
            .map(|range| {
                let rows = &order[range[0] as usize..range[1] as usize];
                let keys: Vec<K> = rows.iter().map(|r| keys[*r as usize]).collect();
                let values: Vec<i64> = rows.iter().map(|r| values[*r as usize]).collect();
                let mut table = GroupTable::new(folds.clone(), 7);
                let inputs = [FoldInput { values: FoldValues::Ints(&values), present: None }];
                table.add(&keys, &inputs, &mut scratch);
                table.settle();
                table
            })
            .collect();
        is(&tables);
    }

    #[test]
    fn each_key_has_one_group() {
        let mut random = fastrand::Rng::with_seed(2);
        for (rows, keys) in [(0, 1), (1, 1), (100, 1), (5_000, 40), (50_000, 60_000)] {
            let of: Vec<u64> = (0..rows).map(|_| random.u64(0..keys).wrapping_mul(0x1000_0000_0001)).collect();
            let values: Vec<i64> = (0..rows).map(|_| random.i64(-9..9)).collect();
            check(&of, &values);
            let wide: Vec<u128> = of.iter().map(|k| u128::from(*k) << 61 | u128::from(k % 3)).collect();
            check(&wide, &values);
        }
    }

    #[test]
    fn keys_alone_are_there_once() {
        let mut random = fastrand::Rng::with_seed(6);
        let (mut scratch, none) = (Vec::new(), Folds::new(Vec::new()));
        for below in [3, 40, 9_000, u64::MAX] {
            let keys: Vec<u64> = (0..20_000).map(|_| random.u64(0..below)).chain([0, u64::MAX]).collect();
            let mut expected: Vec<u64> = keys.clone();
            expected.sort_unstable();
            expected.dedup();
            let (mut table, mut other) = (GroupTable::new(none.clone(), 7), GroupTable::new(none.clone(), 7));
            for (at, chunk) in keys.chunks(3_000).enumerate() {
                if at == 3 {
                    table.reserve(5_000);
                }
                // Rows after a call of `settle`, and keys of few bits between the others.
                if at == 5 {
                    table.settle();
                }
                table.add(chunk, &[], &mut scratch);
                other.add(&[keys[0] & !7 | 1, keys[0] & !7 | 2], &[], &mut scratch);
                other.add_all(chunk[0], 5, &[]);
            }
            table.settle();
            assert_eq!(table.len(), expected.len(), "each once");
            let mut found = table.keys().to_vec();
            found.sort_unstable();
            assert_eq!(found, expected);
            other.settle();
            expected.extend(keys.chunks(3_000).map(|chunk| chunk[0]).chain([keys[0] & !7 | 1, keys[0] & !7 | 2]));
            expected.sort_unstable();
            expected.dedup();
            table.join(&other, &mut scratch);
            table.settle();
            let mut found = table.keys().to_vec();
            found.sort_unstable();
            assert_eq!((found, table.states().len()), (expected, 0));
        }
    }

    #[test]
    fn keys_that_differ_in_few_bits() {
        let mut random = fastrand::Rng::with_seed(4);
        for (rows, keys, from) in [(64, 1, 0), (4_000, 5, 0), (4_001, 7, 20), (9_000, 200, 50), (300, 200, 3)] {
            let common = random.u64(..) & !(0xff << from);
            let of: Vec<u64> = (0..rows).map(|_| common | random.u64(0..keys) << from).collect();
            let values: Vec<i64> = (0..rows).map(|_| random.i64(-9..9)).collect();
            check(&of, &values);
            let wide: Vec<u128> = of.iter().map(|k| u128::from(*k) << 31 | 5).collect();
            check(&wide, &values);
        }
    }

    #[test]
    fn a_few_rows_of_small_keys_take_little_memory() {
        let mut table = GroupTable::new(Folds::new(vec![Fold::Rows]), 7);
        let mut scratch = Vec::new();
        // A partition has every 256th of the keys.
        let keys: Vec<u64> = (0..256).map(|k| k * 256).collect();
        for _ in 0..3 {
            table.add(&keys, &[], &mut scratch);
        }
        table.settle();
        assert_eq!((table.len(), table.states()), (256, &[3; 256][..]));
        assert!(table.bytes() < 32 << 10, "{} bytes", table.bytes());
    }

    #[test]
    fn partitions_share_keys_evenly() {
        for step in [1, 8, 1 << 20, 3_600_000_000] {
            let keys: Vec<u64> = (0..65_536_u64).map(|k| k * step).collect();
            let (mut order, mut starts) = (Vec::new(), Vec::new());
            by_partition(&keys, 99, 8, &mut order, &mut starts);
            let largest = starts.windows(2).map(|w| w[1] - w[0]).max();
            assert!(largest < Some(2 * 256), "of 256 each, one has {largest:?} for step {step}");
        }
    }
}
