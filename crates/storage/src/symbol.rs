//! The dictionary of one symbol column: strings by id, ids by string.
//!
//! Append-only: an id denotes its string as long as the column exists. The commit thread appends while readers read.
//! The log and the symbol file store the strings on disk.

use crate::cache::Made;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_types::{SymbolId, Views};

/// Largest number of entries of one dictionary, because dictionaries are held in memory.
pub const SYMBOLS_MAX: usize = 1 << 26;

#[derive(Debug, Default)]
pub struct SymbolMap {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The dictionary that this one extends.
    base: Option<Base>,
    /// The entries after those of the base.
    strings: Views,
    ids: HashTable<u32>,
    hasher: hashbrown::DefaultHashBuilder,
    /// The last returned strings; stale if shorter than `strings`.
    shared: Arc<Views>,
    /// The value that a reader derived from `shared`.
    made: Made,
}

/// The first `len` entries of another dictionary.
///
/// Entries appended to that dictionary later have ids with another meaning in the fork.
#[derive(Debug)]
struct Base {
    map: Arc<SymbolMap>,
    len: usize,
}

impl SymbolMap {
    #[must_use]
    pub fn new() -> SymbolMap {
        SymbolMap::default()
    }

    /// Creates a dictionary with the current entries of `base`.
    ///
    /// New entries do not change `base`: a fork serves rows that may never be committed.
    #[must_use]
    pub fn fork(base: &Arc<SymbolMap>) -> SymbolMap {
        let base = Base { map: base.clone(), len: base.len() };
        SymbolMap { inner: RwLock::new(Inner { base: Some(base), ..Inner::default() }) }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn id_of(&self, value: &[u8]) -> Option<SymbolId> {
        let inner = self.read();
        inner.find(value).map(SymbolId)
    }

    /// Returns all current strings by id: at least those of every snapshot taken before the call.
    #[must_use]
    pub fn strings(&self) -> Arc<Views> {
        self.strings_and_made().0
    }

    /// Returns the strings with a derived value, which is kept for later readers until strings are added.
    #[must_use]
    pub fn strings_and_made(&self) -> (Arc<Views>, Made) {
        {
            let inner = self.read();
            if let Some(base) = inner.base.as_ref().filter(|_| inner.strings.is_empty()) {
                return base.map.strings_and_made();
            }
            if inner.shared.len() == inner.len() {
                return (inner.shared.clone(), inner.made.clone());
            }
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if inner.shared.len() != inner.len() {
            inner.shared = Arc::new(inner.all());
            inner.made = Made::default();
        }
        (inner.shared.clone(), inner.made.clone())
    }

    /// Returns true if `count` more strings of `bytes` in total are within the limits of a dictionary.
    #[must_use]
    pub fn has_room(&self, count: usize, bytes: usize) -> bool {
        let inner = self.read();
        let bytes = bytes + inner.base.as_ref().map_or(0, |base| base.map.read().strings.data().len());
        inner.len() + count <= SYMBOLS_MAX && inner.strings.has_room(bytes)
    }

    /// Returns the ids of `values` in order, adding unknown strings, and the previous number of strings.
    pub fn intern_all<'a>(&self, values: impl Iterator<Item = &'a [u8]>) -> (Vec<u32>, usize) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let before = inner.len();
        if inner.base.is_some() {
            return (values.map(|value| inner.intern(value)).collect(), before);
        }
        // Values often occur in the order of earlier values.
        let mut next = 0;
        let id_of = |value| {
            let is_next = (next as usize) < inner.strings.len() && inner.strings.get(next as usize) == value;
            let id = if is_next { next } else { inner.intern(value) };
            next = id + 1;
            id
        };
        (values.map(id_of).collect(), before)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn base_len(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len)
    }

    fn len(&self) -> usize {
        self.base_len() + self.strings.len()
    }

    /// Returns the entries of the base, then the own entries.
    fn all(&self) -> Views {
        let Some(base) = &self.base else { return self.strings.clone() };
        let mut all = Views::with_capacity(self.len());
        all.extend_from_range(base.map.strings().as_ref().as_ref(), 0, base.len);
        all.extend_from_range(self.strings.as_ref(), 0, self.strings.len());
        all
    }

    fn find_in_base(&self, value: &[u8]) -> Option<u32> {
        let base = self.base.as_ref()?;
        base.map.id_of(value).map(|id| id.0).filter(|id| (*id as usize) < base.len)
    }

    fn find(&self, value: &[u8]) -> Option<u32> {
        if let Some(id) = self.find_in_base(value) {
            return Some(id);
        }
        let hash = self.hasher.hash_one(value);
        let found = self.ids.find(hash, |&id| self.strings.get(id as usize) == value);
        found.map(|id| id + self.base_len() as u32)
    }

    fn intern(&mut self, value: &[u8]) -> u32 {
        if let Some(id) = self.find_in_base(value) {
            return id;
        }
        self.intern_own(value) + self.base_len() as u32
    }

    /// Returns the position of a string among the own entries.
    fn intern_own(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let Inner { strings, ids, hasher, .. } = self;
        if let Some(&id) = ids.find(hash, |&id| strings.get(id as usize) == value) {
            return id;
        }
        let id = strings.len() as u32;
        strings.push(value);
        ids.insert_unique(hash, id, |&id| hasher.hash_one(strings.get(id as usize)));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn ids_are_dense_and_stay() {
        let map = SymbolMap::new();
        let (ids, before) = map.intern_all([&b"a"[..], b"b", b"a", b"a longer one than twelve", b""].into_iter());
        assert_eq!((ids, before), (vec![0, 1, 0, 2, 3], 0));
        let strings = map.strings();
        let (ids, before) = map.intern_all([&b"c"[..], b"b"].into_iter());
        assert_eq!((ids, before), (vec![4, 1], 4));
        assert_eq!(strings.len(), 4, "what was handed out does not change");
        assert_eq!(map.strings().get(4), b"c");
        assert_eq!(map.id_of(b""), Some(SymbolId(3)));
        assert_eq!(map.id_of(b"d"), None);
    }

    #[test]
    fn a_fork_leaves_its_base_alone() {
        let base = Arc::new(SymbolMap::new());
        base.intern_all([&b"a"[..], b"b"].into_iter());
        let fork = SymbolMap::fork(&base);
        assert_eq!((fork.len(), fork.strings().len()), (2, 2));
        // Strings added to the base later have another id in the fork.
        base.intern_all([&b"c"[..]].into_iter());
        let (ids, before) = fork.intern_all([&b"b"[..], b"d", b"c", b"a", b"d"].into_iter());
        assert_eq!((ids, before), (vec![1, 2, 3, 0, 2], 2));
        assert_eq!((fork.len(), base.len()), (4, 3));
        let strings = fork.strings();
        let all: Vec<&[u8]> = strings.iter().collect();
        assert_eq!(all, [&b"a"[..], b"b", b"d", b"c"]);
        assert_eq!(fork.id_of(b"c"), Some(SymbolId(3)));
        assert_eq!((base.id_of(b"c"), base.id_of(b"d")), (Some(SymbolId(2)), None));
    }

    #[test]
    fn ids_do_not_depend_on_what_is_asked_with_them() {
        let (map, mut ids) = (SymbolMap::new(), HashMap::new());
        let mut dice = fastrand::Rng::with_seed(4);
        for _ in 0..300 {
            let from = dice.usize(0..60);
            let mut values: Vec<String> =
                (from..from + dice.usize(0..40)).map(|i| format!("{}{i}", "x".repeat(i % 14))).collect();
            if dice.bool() {
                dice.shuffle(&mut values);
            }
            let known = ids.len();
            for value in &values {
                let next = ids.len() as u32;
                ids.entry(value.clone()).or_insert(next);
            }
            let found = map.intern_all(values.iter().map(String::as_bytes));
            assert_eq!(found, (values.iter().map(|value| ids[value]).collect(), known));
        }
    }
}
