//! Which groups are asked for, where any few will do: those that come first.
//!
//! Once they are known, rows of other groups need not be looked at any closer than it takes to see that they are such.

use super::keys::Word;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::GroupKey;

/// More than these are not worth the look.
pub(super) const CHOSEN_MAX: usize = 1_024;
/// Of the table that most others are told by.
const TABLE_BITS: u32 = 16;

/// Shared by the threads of a query.
pub(super) struct Chosen<W> {
    max: usize,
    seed: u64,
    words: Mutex<HashSet<W>>,
}

/// All that are asked for. Others are told from them by a bit of their hash, mostly.
pub(super) struct Asked<W> {
    seed: u64,
    words: HashSet<W>,
    table: Vec<u64>,
}

impl<W: Word> Chosen<W> {
    /// `None` when they are too many.
    pub fn new(max: usize, seed: u64) -> Option<Chosen<W>> {
        (max <= CHOSEN_MAX).then(|| Chosen { max, seed, words: Mutex::default() })
    }

    /// Takes those of `words` that come first, while there is room. Until there is none, all that came are among them.
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

    /// With only the bits of `mask`.
    pub fn masked(&self, mask: W) -> Asked<W> {
        Asked::new(self.words.iter().map(|word| *word & mask).collect(), self.seed)
    }

    /// The rows that have one of them.
    pub fn rows(&self, words: &[W]) -> Vec<u32> {
        let is_asked = |word: &W| {
            let bit = GroupKey::hash(*word, self.seed) >> (64 - TABLE_BITS);
            self.table[bit as usize / 64] >> (bit % 64) & 1 == 1 && self.words.contains(word)
        };
        words.iter().enumerate().filter(|(_, word)| is_asked(word)).map(|(row, _)| row as u32).collect()
    }
}
