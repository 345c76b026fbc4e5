//! Group limit: selects which groups are returned if any `max` groups are sufficient.
//!
//! After the groups are selected, rows of other groups are only tested for membership.

use super::keys::Word;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::GroupKey;

/// Above this limit the test costs more than it saves.
pub(super) const CHOSEN_MAX: usize = 1_024;
/// Number of bits of the hash that index the filter table.
const TABLE_BITS: u32 = 16;

/// Selected groups, shared by the threads of a query.
pub(super) struct Chosen<W> {
    max: usize,
    seed: u64,
    words: Mutex<HashSet<W>>,
}

/// The final selection. Most other groups are rejected by a bit of their hash.
pub(super) struct Asked<W> {
    seed: u64,
    words: HashSet<W>,
    table: Vec<u64>,
}

impl<W: Word> Chosen<W> {
    /// Creates the selection; `None` if `max` exceeds the limit.
    pub fn new(max: usize, seed: u64) -> Option<Chosen<W>> {
        (max <= CHOSEN_MAX).then(|| Chosen { max, seed, words: Mutex::default() })
    }

    /// Selects words until `max` groups are selected, and returns the selection when it is full.
    ///
    /// Before that, all words seen are selected.
    pub fn choose(&self, words: &[W]) -> Option<Arc<Asked<W>>> {
        let mut chosen = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        for word in words {
            if chosen.len() >= self.max {
                break;
            }
            chosen.insert(*word);
        }
        (chosen.len() >= self.max).then(|| Arc::new(Asked::new(chosen.clone(), self.seed)))
    }
}

impl<W: Word> Asked<W> {
    fn new(words: HashSet<W>, seed: u64) -> Asked<W> {
        let mut table = vec![0; (1 << TABLE_BITS) / 64];
        for word in &words {
            let bit = GroupKey::hash(*word, seed) >> (64 - TABLE_BITS);
            table[bit as usize / 64] |= 1 << (bit % 64);
        }
        Asked { seed, words, table }
    }

    /// Returns the selection reduced to the bits of `mask`.
    pub fn masked(&self, mask: W) -> Asked<W> {
        Asked::new(self.words.iter().map(|word| *word & mask).collect(), self.seed)
    }

    /// Returns the rows whose word is selected.
    pub fn rows(&self, words: &[W]) -> Vec<u32> {
        let is_asked = |word: &W| {
            let bit = GroupKey::hash(*word, self.seed) >> (64 - TABLE_BITS);
            self.table[bit as usize / 64] >> (bit % 64) & 1 == 1 && self.words.contains(word)
        };
        words.iter().enumerate().filter(|(_, word)| is_asked(word)).map(|(row, _)| row as u32).collect()
    }
}
