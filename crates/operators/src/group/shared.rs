//! State shared by the threads of one query, and the groups that the threads return.

use super::chosen::Chosen;
use super::keys::{KeyKind, Numbered, Word};
use super::parts::{Lazy, Parts};
use super::texts::Texts;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite_kernels::{Fold, Folds, GroupTable};

/// State shared by the threads of one query.
pub(super) struct Shared<W> {
    pub(super) folds: Folds,
    pub(super) kinds: Vec<KeyKind>,
    /// State of the columns whose values are replaced by codes.
    pub(super) numbered: Vec<Option<Numbered>>,
    /// Indexed by input: true for floating point; `None` if the input has no values.
    pub(super) inputs: Vec<Option<bool>>,
    pub(super) seed: u64,
    /// Set if not all groups are requested.
    pub(super) chosen: Option<Chosen<W>>,
    /// True if a row has a NULL key; used if the groups are only the strings of the key and nothing is accumulated.
    pub(super) has_null: AtomicBool,
    /// Used once groups are many.
    pub(super) parts: Parts<W>,
    /// If the last key is only counted and values are accumulated: the groups by the other keys.
    pub(super) others: Option<Arc<Shared<W>>>,
}

/// A part of the groups.
pub(super) struct Groups<W> {
    pub lazy: Lazy<W>,
    /// True for groups without the last key, if that key is only counted.
    pub is_of_others: bool,
}

impl<W> From<GroupTable<W>> for Groups<W> {
    fn from(table: GroupTable<W>) -> Groups<W> {
        Groups { lazy: table.into(), is_of_others: false }
    }
}

impl<W: Word> Shared<W> {
    /// Creates the shared state. Buffered rows may take `row_bytes_max` bytes.
    pub fn new(
        folds: Vec<Fold>,
        kinds: Vec<KeyKind>,
        inputs: Vec<Option<bool>>,
        seed: u64,
        row_bytes_max: usize,
    ) -> Shared<W> {
        let folds = Folds::new(folds);
        let numbered = kinds.iter().map(KeyKind::numbered).collect();
        let parts = Parts::new(folds.clone(), seed, row_bytes_max);
        Shared {
            folds,
            kinds,
            numbered,
            inputs,
            seed,
            chosen: None,
            has_null: AtomicBool::new(false),
            parts,
            others: None,
        }
    }

    /// Counts only the distinct values of the last key.
    pub fn counting_last(self) -> Shared<W> {
        let Shared { folds, kinds, inputs, seed, parts, .. } = self;
        let tables = if folds.words() == 0 { 1 } else { 2 };
        let row_bytes_max = parts.row_bytes_max / tables;
        let all = Shared::new(Vec::new(), kinds.clone(), Vec::new(), seed, row_bytes_max);
        if tables == 1 {
            return all;
        }
        let keys = kinds.len().saturating_sub(1);
        let folds = folds.as_slice().to_vec();
        let mut others = Shared::new(folds, kinds[..keys].to_vec(), inputs, seed, row_bytes_max);
        others.numbered = all.numbered[..keys].to_vec();
        Shared { others: Some(Arc::new(others)), ..all }
    }

    /// Limits the result to any `groups` groups.
    pub fn limited(self, groups: usize) -> Shared<W> {
        let chosen = if self.kinds.is_empty() { None } else { Chosen::new(groups, self.seed) };
        Shared { chosen, ..self }
    }

    /// Returns the strings of the only key, if only the set of strings is requested.
    pub(super) fn only_texts(&self) -> Option<&Texts> {
        match self.numbered.as_slice() {
            [Some(Numbered::Texts(texts))] if self.folds.words() == 0 && self.chosen.is_none() => Some(texts),
            _ => None,
        }
    }

    fn groups_of_texts(&self, texts: &Texts) -> Vec<GroupTable<W>> {
        let word = |code: u64| {
            let mut word = W::default();
            word.put(code, 0);
            word
        };
        let null = self.has_null.load(Ordering::Relaxed).then(|| vec![0]);
        let parts = texts.numbers().chain(null).filter(|numbers| !numbers.is_empty());
        let seed = self.seed;
        parts.map(|numbers| GroupTable::of_keys(numbers.into_iter().map(word).collect(), seed)).collect()
    }

    pub fn bytes(&self) -> usize {
        self.numbered_bytes() + self.parts.bytes() + self.others.as_ref().map_or(0, |others| others.parts.bytes())
    }

    /// Returns an upper bound of the memory of the groups after all rows are grouped.
    pub fn bytes_as_groups(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.parts.bytes_as_groups());
        self.numbered_bytes() + self.parts.bytes_as_groups() + others
    }

    fn numbered_bytes(&self) -> usize {
        self.numbered.iter().flatten().map(Numbered::bytes).sum()
    }

    /// Returns all groups, including the threads' own groups.
    pub fn parts_with(&self, few: Vec<Groups<W>>) -> Vec<Groups<W>> {
        let (of_others, own): (Vec<_>, Vec<_>) = few.into_iter().partition(|groups| groups.is_of_others);
        let tables = |few: Vec<Groups<W>>| few.into_iter().map(|few| few.lazy.table()).collect();
        let groups = |is_of_others| move |lazy| Groups { lazy, is_of_others };
        let others = self.others.as_ref().map(|others| others.groups_with(tables(of_others)));
        let others = others.into_iter().flatten().map(groups(true));
        self.groups_with(tables(own)).into_iter().map(groups(false)).chain(others).collect()
    }

    fn groups_with(&self, mut few: Vec<GroupTable<W>>) -> Vec<Lazy<W>> {
        if let Some(texts) = self.only_texts() {
            return self.groups_of_texts(texts).into_iter().map(Lazy::from).collect();
        }
        if !self.parts.are_empty() {
            few.iter().for_each(|own| self.parts.give(own.keys(), own.states()));
            return self.parts.take();
        }
        let Some(mut all) = few.pop() else { return Vec::new() };
        let mut scratch = Vec::new();
        few.iter().for_each(|own| all.join(own, &mut scratch));
        vec![all.into()]
    }

    /// Returns an empty table.
    pub fn table(&self) -> GroupTable<W> {
        GroupTable::new(self.folds.clone(), self.seed)
    }
}

/// Returns all bits of the selected keys.
pub(super) fn bits_of<W: Word>(kinds: &[KeyKind], is_wanted: impl Fn(usize) -> bool) -> W {
    let (mut bits, mut shift) = (W::default(), 0);
    for (at, kind) in kinds.iter().enumerate() {
        if is_wanted(at) {
            bits.put(u64::MAX >> (u64::BITS - kind.bits()), shift);
        }
        shift += kind.bits();
    }
    bits
}
