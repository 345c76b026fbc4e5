//! Groups rows by their words: in a table of the thread while groups are few, then in shared tables.
//!
//! When the thread's own table has many groups, they are moved to the shared tables ([`super::parts`]). From then on
//! rows are collected for each part of the shared tables and added to the part in batches.

use super::keys::Word;
use super::rows::Rows;
use super::shared::Shared;
use std::sync::Arc;
use tidalite_kernels::{FoldInput, GroupTable};

/// Largest number of groups in a thread's own table.
const OWN_GROUPS_MAX: usize = 1 << 14;

pub(super) struct Grouper<W> {
    shared: Arc<Shared<W>>,
    own: GroupTable<W>,
    /// Rows by part, once groups are many.
    collected: Option<Vec<Rows<W>>>,
    groups: Vec<u32>,
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl<W: Word> Grouper<W> {
    pub fn new(shared: Arc<Shared<W>>) -> Grouper<W> {
        let mut own = shared.table();
        if shared.kinds.is_empty() {
            // Without keys, one group exists even without rows.
            own.add_all(W::default(), 0, &[]);
        }
        Grouper { shared, own, collected: None, groups: Vec::new(), order: Vec::new(), starts: Vec::new() }
    }

    /// Returns the memory of the thread.
    pub fn bytes(&self) -> usize {
        let collected = self.collected.as_ref().map_or(0, |parts| parts.iter().map(Rows::bytes).sum());
        self.own.bytes() + collected + (2 * self.groups.capacity()) * size_of::<u32>()
    }

    /// Adds rows without keys.
    pub fn add_all(&mut self, rows: usize, inputs: &[FoldInput<'_>]) {
        self.own.add_all(W::default(), rows, inputs);
    }

    /// Adds rows.
    pub fn add(&mut self, words: &[W], inputs: &[FoldInput<'_>]) {
        let Some(collected) = &mut self.collected else {
            self.own.add(words, inputs, &mut self.groups);
            if self.own.len() > OWN_GROUPS_MAX {
                self.give_away();
            }
            return;
        };
        let shared = &self.shared;
        shared.parts.order(words, &mut self.order, &mut self.starts);
        for (part, (own, range)) in collected.iter_mut().zip(self.starts.windows(2)).enumerate() {
            let rows = &self.order[range[0] as usize..range[1] as usize];
            if own.are_full_with(rows.len()) {
                let full = std::mem::replace(own, Rows::new(&shared.inputs));
                shared.parts.add(part, full, &mut self.groups);
            }
            own.extend(rows, words, inputs);
        }
    }

    /// Adds groups given by their keys and words.
    pub fn join(&mut self, keys: &[W], states: &[u64]) {
        if self.collected.is_some() {
            return self.shared.parts.give(keys, states);
        }
        self.own.join_some(keys, states, &mut self.groups);
        if self.own.len() > OWN_GROUPS_MAX {
            self.give_away();
        }
    }

    /// Moves the thread's own groups to the shared parts.
    fn give_away(&mut self) {
        let shared = &self.shared;
        self.own.settle();
        shared.parts.give(self.own.keys(), self.own.states());
        self.own = shared.table();
        self.collected = Some((0..shared.parts.len()).map(|_| Rows::new(&shared.inputs)).collect());
    }

    /// Returns the thread's own groups if they stayed few; otherwise they have been moved to the shared parts.
    pub fn finish(mut self) -> Option<GroupTable<W>> {
        let Some(collected) = self.collected else {
            self.own.settle();
            return Some(self.own);
        };
        let rows = collected.into_iter().enumerate();
        rows.for_each(|(part, rows)| self.shared.parts.add(part, rows, &mut self.groups));
        None
    }
}
