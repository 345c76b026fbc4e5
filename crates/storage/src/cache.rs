//! Caches blocks of segments in memory up to a budget.
//!
//! Input: a key and a function that loads its bytes. Output: shared bytes, from memory if they are cached. Segments are
//! immutable, so no entry is ever invalidated.
//!
//! A block also holds a derived value that a reader computed from its bytes ([`Made`]), which is evicted with the
//! bytes.
//!
//! Invariant: readers of the same missing block wait for one load. Bytes that readers hold after eviction are not
//! counted; they belong to the query. During the load of a block only the lock of its cell is held.

use crate::Result;
use bytes::Bytes;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tidalite_types::{ColumnId, SegmentId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    pub segment: SegmentId,
    pub column: ColumnId,
    pub block: u32,
}

impl BlockKey {
    /// Returns the key of a segment's footer, cached as a block of a column id that no table uses.
    #[must_use]
    pub fn footer(segment: SegmentId) -> BlockKey {
        BlockKey { segment, column: ColumnId(u32::MAX), block: u32::MAX }
    }
}

/// A block in memory.
#[derive(Clone, Debug)]
pub struct Cached {
    pub bytes: Bytes,
    pub made: Made,
}

impl From<Bytes> for Cached {
    fn from(bytes: Bytes) -> Cached {
        Cached { bytes, made: Made::default() }
    }
}

/// A value derived from a block's bytes, computed once and shared with later readers.
///
/// For example, bytes are validated once.
///
/// The value is not counted against the budget, so it should share the bytes instead of copying them.
#[derive(Clone, Default)]
pub struct Made(Arc<OnceLock<Arc<dyn Any + Send + Sync>>>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Made({})", self.0.get().is_some())
    }
}

impl Made {
    /// Returns the derived value, computed by `make` if it is missing.
    pub fn get_or_make<T: Any + Send + Sync, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(made) = self.0.get()
            && let Ok(made) = made.clone().downcast()
        {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        // Another thread may have stored an equal value in the meantime.
        let _ = self.0.set(made.clone());
        Ok(made)
    }
}

/// Counters since the start; `bytes` and `blocks` are the current contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub hits: u64,
    pub misses: u64,
    pub loaded_bytes: u64,
    pub bytes: u64,
    pub blocks: u64,
}

/// Number of locks at which threads on different blocks rarely collide.
const SHARDS_MAX: usize = 16;
/// Smallest size of a shard in bytes, so that it can hold blocks of long strings.
const SHARD_BYTES_MIN: usize = 32 << 20;
/// Overhead of an entry in bytes.
const ENTRY_BYTES: usize = 128;

#[derive(Debug)]
pub struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    hasher: hashbrown::DefaultHashBuilder,
    misses: AtomicU64,
    loaded_bytes: AtomicU64,
}

#[derive(Debug)]
struct Shard {
    blocks: Clock<BlockKey, Cached>,
    /// Blocks that are being loaded.
    loading: HashMap<BlockKey, Arc<Cell>>,
    hits: u64,
}

/// Locked while its block is loaded; empty if the load failed.
type Cell = Mutex<Option<Cached>>;

impl BlockCache {
    #[must_use]
    pub fn new(bytes_max: usize) -> BlockCache {
        let shards = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard = || Mutex::new(Shard { blocks: Clock::new(bytes_max / shards), loading: HashMap::new(), hits: 0 });
        BlockCache {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher: hashbrown::DefaultHashBuilder::default(),
            misses: AtomicU64::new(0),
            loaded_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the entry of `key`; `load` reads it if it is not in memory.
    pub fn get_or_load(&self, key: BlockKey, load: impl FnOnce() -> Result<Bytes>) -> Result<Cached> {
        self.part_or_load(key, load, Cached::clone)
    }

    /// Returns only `part` of the entry, like [`BlockCache::get_or_load`]: each shared reference costs a cache line.
    pub fn part_or_load<T>(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Bytes>,
        part: impl Fn(&Cached) -> T,
    ) -> Result<T> {
        let cell = {
            let mut shard = self.shard(&key);
            let shard = &mut *shard;
            if let Some(cached) = shard.blocks.look(&key) {
                shard.hits += 1;
                return Ok(part(cached));
            }
            shard.loading.entry(key).or_default().clone()
        };
        let mut loaded = lock(&cell);
        if let Some(cached) = &*loaded {
            self.shard(&key).hits += 1;
            return Ok(part(cached));
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let result = load();
        let mut shard = self.shard(&key);
        // A failed load leaves the cell empty: the next waiting reader retries.
        if shard.loading.get(&key).is_some_and(|c| Arc::ptr_eq(c, &cell)) {
            shard.loading.remove(&key);
        }
        let cached = Cached::from(result?);
        let (bytes, asked) = (cached.bytes.len(), part(&cached));
        self.loaded_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        *loaded = Some(cached.clone());
        let before = shard.blocks.weight() as isize;
        shard.blocks.insert(key, cached, bytes + ENTRY_BYTES);
        // Cached blocks outlive the statement that loads them.
        tidalite_memory::reassign(shard.blocks.weight() as isize - before);
        Ok(asked)
    }

    /// Returns the bytes of `key` if they are in memory, without counting a miss.
    pub fn peek(&self, key: &BlockKey) -> Option<Bytes> {
        let mut shard = self.shard(key);
        let bytes = shard.blocks.look(key)?.bytes.clone();
        shard.hits += 1;
        Some(bytes)
    }

    /// Returns true if `key` is in memory, without marking it as used.
    #[must_use]
    pub fn contains(&self, key: &BlockKey) -> bool {
        self.shard(key).blocks.contains(key)
    }

    /// Removes the blocks of a segment.
    pub fn forget(&self, segment: SegmentId) {
        self.shards.iter().for_each(|shard| lock(shard).blocks.retain(|key| key.segment != segment));
    }

    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let mut stats = CacheStats {
            misses: self.misses.load(Ordering::Relaxed),
            loaded_bytes: self.loaded_bytes.load(Ordering::Relaxed),
            ..CacheStats::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            stats.hits += shard.hits;
            stats.bytes += shard.blocks.weight() as u64;
            stats.blocks += shard.blocks.len() as u64;
        }
        stats
    }

    fn shard(&self, key: &BlockKey) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % self.shards.len()])
    }
}

impl BlockCache {
    /// Evicts blocks of at least `bytes` in total, or all blocks; returns the number of bytes freed.
    pub fn evict(&self, bytes: usize) -> usize {
        let mut freed = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.blocks.weight();
            while freed + (before - shard.blocks.weight()) < bytes && !shard.blocks.is_empty() {
                shard.blocks.evict_one();
            }
            let evicted = before - shard.blocks.weight();
            tidalite_memory::reassign(-(evicted as isize));
            freed += evicted;
        }
        freed
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map with a limited total weight that evicts entries not used since the last pass of the clock hand.
///
/// CLOCK approximates LRU, and a hit only sets a flag.
pub struct Clock<K, V> {
    weight_max: usize,
    weight: usize,
    positions: HashMap<K, usize, hashbrown::DefaultHashBuilder>,
    slots: Vec<Slot<K, V>>,
    hand: usize,
}

struct Slot<K, V> {
    key: K,
    value: V,
    weight: usize,
    was_used: bool,
}

impl<K, V> fmt::Debug for Clock<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({} entries, {} of {})", self.slots.len(), self.weight, self.weight_max)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Clock<K, V> {
    #[must_use]
    pub fn new(weight_max: usize) -> Clock<K, V> {
        Clock { weight_max, weight: 0, positions: HashMap::default(), slots: Vec::new(), hand: 0 }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        self.look(key).cloned()
    }

    /// Returns a reference to the value, like [`Clock::get`].
    pub fn look(&mut self, key: &K) -> Option<&V> {
        let slot = &mut self.slots[*self.positions.get(key)?];
        slot.was_used = true;
        Some(&slot.value)
    }

    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.positions.contains_key(key)
    }

    /// Inserts an entry and replaces an entry of the same key. An entry that exceeds the total weight alone is not
    /// stored.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.weight_max {
            return;
        }
        while self.weight + weight > self.weight_max {
            self.evict_one();
        }
        self.weight += weight;
        self.positions.insert(key.clone(), self.slots.len());
        self.slots.push(Slot { key, value, weight, was_used: false });
    }

    pub fn remove(&mut self, key: &K) {
        if let Some(&position) = self.positions.get(key) {
            self.remove_at(position);
        }
    }

    /// Removes the entries for which `is_wanted` is false.
    pub fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        // In reverse, because the last entry moves into the gap.
        for position in (0..self.slots.len()).rev() {
            if !is_wanted(&self.slots[position].key) {
                self.remove_at(position);
            }
        }
    }

    fn evict_one(&mut self) {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            if !std::mem::take(&mut self.slots[self.hand].was_used) {
                return self.remove_at(self.hand);
            }
            self.hand += 1;
        }
    }

    fn remove_at(&mut self, position: usize) {
        let slot = self.slots.swap_remove(position);
        self.positions.remove(&slot.key);
        self.weight -= slot.weight;
        if let Some(moved) = self.slots.get(position) {
            self.positions.insert(moved.key.clone(), position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn key(segment: u64, block: u32) -> BlockKey {
        BlockKey { segment: SegmentId(segment), column: ColumnId(0), block }
    }

    #[test]
    fn what_is_used_stays_and_the_weight_holds() {
        let mut clock = Clock::new(10);
        (0..10).for_each(|i| clock.insert(i, i * 10, 1));
        for i in 10..1000 {
            assert_eq!(clock.get(&3), Some(30), "used before every insert");
            clock.insert(i, i * 10, 1 + i as usize % 3);
            assert!(clock.weight() <= 10);
            assert_eq!(clock.slots.iter().map(|s| s.weight).sum::<usize>(), clock.weight());
            assert!(clock.slots.iter().enumerate().all(|(at, s)| clock.positions[&s.key] == at));
        }
        clock.insert(0, 0, 11);
        assert_eq!(clock.get(&0), None, "heavier than everything may be");
        clock.retain(|k| *k == 3);
        assert_eq!((clock.len(), clock.weight()), (1, 1));
    }

    #[test]
    fn blocks_are_loaded_once_and_forgotten_by_segment() {
        let cache = BlockCache::new(1 << 20);
        for round in 0..3 {
            for block in 0..100 {
                let load = || if round == 0 { Ok(Bytes::from(vec![block as u8; 100])) } else { unreachable!() };
                assert_eq!(cache.get_or_load(key(1, block), load).unwrap().bytes[0], block as u8);
            }
        }
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.loaded_bytes, stats.blocks), (200, 100, 10_000, 100));
        cache.forget(SegmentId(1));
        assert_eq!((cache.stats().bytes, cache.stats().blocks), (0, 0));
    }

    #[test]
    fn what_was_made_of_a_block_is_found_again() {
        let cache = BlockCache::new(1 << 20);
        let load = || Ok(Bytes::from_static(b"12"));
        let made =
            |number: u64| cache.get_or_load(key(1, 0), load).unwrap().made.get_or_make(|| Ok::<_, Error>(number));
        assert_eq!(*made(12).unwrap(), 12);
        assert_eq!(*made(13).unwrap(), 12);
        let other = cache.get_or_load(key(1, 0), load).unwrap().made.get_or_make(|| Ok::<_, Error>("twelve"));
        assert_eq!(*other.unwrap(), "twelve", "another kind is made anew");
        cache.forget(SegmentId(1));
        assert_eq!(*made(13).unwrap(), 13);
    }

    #[test]
    fn a_failed_load_is_tried_again() {
        let cache = BlockCache::new(1 << 20);
        assert!(cache.get_or_load(key(1, 0), || Err(Error::corrupt("no"))).is_err());
        assert_eq!(cache.get_or_load(key(1, 0), || Ok(Bytes::from_static(b"yes"))).unwrap().bytes, "yes");
    }

    #[test]
    fn threads_that_want_the_same_block_wait_for_one_load() {
        let cache = BlockCache::new(1 << 20);
        let loads = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for block in 0..500 {
                        let load = || {
                            loads.fetch_add(1, Ordering::Relaxed);
                            Ok(Bytes::from(vec![block as u8; 10]))
                        };
                        assert_eq!(cache.get_or_load(key(0, block), load).unwrap().bytes[0], block as u8);
                    }
                });
            }
        });
        assert_eq!(loads.load(Ordering::Relaxed), 500);
    }
}
