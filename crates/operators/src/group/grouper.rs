//! Rows by their words into groups: a thread's own while they are few, else those that all threads share.
//!
//! Groups that stay few stay in a table of the thread's own. When they get many, the table is emptied into shared ones,
//! each for a part of the keys by their hash, small enough to stay near the processor. From then on rows are collected
//! for each of the parts, and a part is added to when it has enough to be worth fetching its table.

use super::keys::Word;
use super::worker::Shared;
use std::ops::Range;
use std::sync::Arc;
use tidalite_kernels::{FoldInput, FoldValues, GroupTable, by_partition};

/// Groups that a thread keeps for itself.
pub(super) const OWN_GROUPS_MAX: usize = 1 << 14;
pub(super) const PART_BITS: u32 = 8;
/// Rows collected for a part before they are added.
const PART_ROWS: usize = 1 << 12;

pub(super) struct Grouper<W> {
    shared: Arc<Shared<W>>,
    own: GroupTable<W>,
    /// Once groups are many.
    collected: Option<Vec<Collected<W>>>,
    groups: Vec<u32>,
    order: Vec<u32>,
    starts: Vec<u32>,
}

/// Rows of one part.
struct Collected<W> {
    keys: Vec<W>,
    inputs: Vec<Input>,
}

/// The bits of values, and whether they are there: empty while all are.
#[derive(Default)]
struct Input {
    ints: Vec<i64>,
    floats: Vec<f64>,
    present: Vec<u8>,
}

impl<W: Word> Grouper<W> {
    pub fn new(shared: Arc<Shared<W>>) -> Grouper<W> {
        let mut own = shared.table();
        if shared.kinds.is_empty() {
            // There is a group also of no rows.
            own.add_all(W::default(), 0, &[]);
        }
        Grouper { shared, own, collected: None, groups: Vec::new(), order: Vec::new(), starts: Vec::new() }
    }

    /// Memory that is the thread's own.
    pub fn bytes(&self) -> usize {
        let collected = self.collected.as_ref().map_or(0, |parts| parts.iter().map(Collected::bytes).sum());
        self.own.bytes() + collected + (2 * self.groups.capacity()) * size_of::<u32>()
    }

    /// Adds rows without keys.
    pub fn add_all(&mut self, rows: usize, inputs: &[FoldInput<'_>]) {
        self.own.add_all(W::default(), rows, inputs);
    }

    /// Adds rows.
    pub fn add(&mut self, words: &[W], inputs: &[FoldInput<'_>]) {
        if self.collected.is_none() {
            self.own.add(words, inputs, &mut self.groups);
            if self.own.len() > OWN_GROUPS_MAX {
                self.give_away();
            }
            return;
        }
        by_partition(words, self.shared.seed, PART_BITS, &mut self.order, &mut self.starts);
        for part in 0..1 << PART_BITS {
            let rows = self.starts[part] as usize..self.starts[part + 1] as usize;
            self.collect(part, rows, words, inputs);
        }
    }

    fn collect(&mut self, part: usize, rows: Range<usize>, words: &[W], inputs: &[FoldInput<'_>]) {
        let Some(collected) = self.collected.as_mut().map(|parts| &mut parts[part]) else { return };
        let rows = &self.order[rows];
        let before = collected.keys.len();
        collected.keys.extend(rows.iter().map(|row| words[*row as usize]));
        for (own, input) in collected.inputs.iter_mut().zip(inputs) {
            own.extend(before, rows, input);
        }
        if collected.keys.len() >= PART_ROWS {
            self.pour(part);
        }
    }

    /// Adds what was collected for a part.
    fn pour(&mut self, part: usize) {
        let Some(collected) = self.collected.as_mut().map(|parts| &mut parts[part]) else { return };
        if collected.keys.is_empty() {
            return;
        }
        let (groups, kinds) = (&mut self.groups, &self.shared.inputs);
        let inputs: Vec<FoldInput<'_>> =
            collected.inputs.iter().zip(kinds).map(|(own, is_float)| own.folded(*is_float)).collect();
        self.shared.add_to_part(part, |table| table.add(&collected.keys, &inputs, groups));
        collected.keys.clear();
        collected.inputs.iter_mut().for_each(Input::clear);
    }

    /// Empties the thread's own table into the parts.
    fn give_away(&mut self) {
        let shared = &self.shared;
        self.own.settle();
        shared.give(self.own.keys(), self.own.states());
        self.own = shared.table();
        let inputs = || shared.inputs.iter().map(|_| Input::default()).collect();
        let collected = || Collected { keys: Vec::with_capacity(PART_ROWS), inputs: inputs() };
        self.collected = Some((0..1 << PART_BITS).map(|_| collected()).collect());
    }

    /// The thread's own groups, if they stayed few; else they are with the others' now.
    pub fn finish(mut self) -> Option<GroupTable<W>> {
        if self.collected.is_none() {
            self.own.settle();
            return Some(self.own);
        }
        (0..1 << PART_BITS).for_each(|part| self.pour(part));
        None
    }
}

impl<W> Collected<W> {
    fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<W>() + self.inputs.iter().map(Input::bytes).sum::<usize>()
    }
}

impl Input {
    fn bytes(&self) -> usize {
        (self.ints.capacity() + self.floats.capacity()) * size_of::<u64>() + self.present.capacity()
    }

    /// Adds some rows' values to those of `before` rows.
    fn extend(&mut self, before: usize, rows: &[u32], input: &FoldInput<'_>) {
        match input.values {
            FoldValues::Ints(values) => self.ints.extend(rows.iter().map(|row| values[*row as usize])),
            FoldValues::Floats(values) => self.floats.extend(rows.iter().map(|row| values[*row as usize])),
            FoldValues::Nothing => {}
        }
        match input.present {
            Some(present) => {
                self.present.resize(before, 1);
                self.present.extend(rows.iter().map(|row| present[*row as usize]));
            }
            None if self.present.is_empty() => {}
            None => self.present.resize(before + rows.len(), 1),
        }
    }

    fn folded(&self, is_float: Option<bool>) -> FoldInput<'_> {
        let values = match is_float {
            Some(false) => FoldValues::Ints(&self.ints),
            Some(true) => FoldValues::Floats(&self.floats),
            None => FoldValues::Nothing,
        };
        FoldInput { values, present: (!self.present.is_empty()).then_some(&self.present[..]) }
    }

    fn clear(&mut self) {
        self.ints.clear();
        self.floats.clear();
        self.present.clear();
    }
}
