//! Rows whose keys differ in few bits only, as those of a symbol's codes.
//!
//! These bits are a number already, so nothing is looked up: what is kept of a group lies at its number, in a plane for
//! each fold. Where numbers are few each has several places, which rows take in turns: rows of one key that follow one
//! another need not wait until the memory that both add to is written.

use super::fold::{Fold, FoldInput, Folds};
use super::table::GroupKey;

/// Planes of a query with few folds should stay near the processor.
const BITS_MAX: u32 = 13;
/// Places of a number, where numbers have no more bits than this.
const LANES: usize = 4;
const LANES_BITS: u32 = 8;

/// Numbers and what is kept of their groups.
#[derive(Debug)]
pub(super) struct Dense<K> {
    /// A key without the bits that are its number, the same for all.
    base: K,
    from: u32,
    mask: u32,
    lanes: usize,
    /// Rows by place; then for each fold its words by place. That of rows with a value counts those without.
    planes: Vec<u64>,
}

impl<K: GroupKey> Dense<K> {
    /// For keys of which `any` has the bits that some have, `all` those that all have; if there are `rows` enough.
    pub fn of(any: K, all: K, rows: usize, folds: &Folds) -> Option<Dense<K>> {
        let (from, bits) = any.span(all);
        if bits > BITS_MAX || rows < 1 << bits {
            return None;
        }
        let lanes = if bits <= LANES_BITS { LANES } else { 1 };
        let mask = (1 << bits) - 1;
        let places = lanes << bits;
        let mut planes = vec![0; places];
        for fold in folds.as_slice() {
            let start = if matches!(fold, Fold::Present(_)) { 0 } else { fold.start() };
            planes.resize(planes.len() + places, start);
        }
        Some(Dense { base: any.with_bits(from, mask, 0), from, mask, lanes, planes })
    }

    /// Whether all keys between these are among its own.
    pub fn has(&self, any: K, all: K) -> bool {
        [any, all].iter().all(|key| key.with_bits(self.from, self.mask, 0) == self.base)
    }

    pub fn bytes(&self) -> usize {
        self.planes.capacity() * 8
    }

    fn places(&self) -> usize {
        (self.mask as usize + 1) * self.lanes
    }

    /// Adds rows. `places` is scratch.
    pub fn add(&mut self, keys: &[K], folds: &Folds, inputs: &[FoldInput<'_>], places: &mut Vec<u32>) {
        let (from, mask) = (self.from, self.mask);
        places.clear();
        places.resize(keys.len(), 0);
        if self.lanes == 1 {
            places.iter_mut().zip(keys).for_each(|(place, key)| *place = key.bits(from, mask));
        } else {
            for (places, keys) in places.chunks_mut(LANES).zip(keys.chunks(LANES)) {
                for (lane, (place, key)) in places.iter_mut().zip(keys).enumerate() {
                    *place = key.bits(from, mask) * LANES as u32 + lane as u32;
                }
            }
        }
        let count = self.places();
        let (rows, planes) = self.planes.split_at_mut(count);
        places.iter().for_each(|place| rows[*place as usize] += 1);
        for (fold, plane) in folds.as_slice().iter().zip(planes.chunks_exact_mut(count)) {
            match *fold {
                Fold::Rows => {}
                Fold::Present(input) => {
                    for (place, present) in places.iter().zip(inputs[input].present.unwrap_or_default()) {
                        plane[*place as usize] += u64::from(1 - present);
                    }
                }
                fold => fold.add(plane, 1, 0, places, inputs),
            }
        }
    }

    /// The groups that have rows: keys, and their words one after the other.
    pub fn groups(&self, folds: &Folds) -> (Vec<K>, Vec<u64>) {
        let count = self.places();
        let (rows, planes) = self.planes.split_at(count);
        let (mut keys, mut states) = (Vec::new(), Vec::new());
        for (number, rows) in rows.chunks_exact(self.lanes).enumerate() {
            let rows: u64 = rows.iter().sum();
            if rows == 0 {
                continue;
            }
            keys.push(self.base.with_bits(self.from, self.mask, number as u32));
            for (fold, plane) in folds.as_slice().iter().zip(planes.chunks_exact(count)) {
                let own = &plane[number * self.lanes..][..self.lanes];
                states.push(match fold {
                    Fold::Rows => rows,
                    Fold::Present(_) => rows - own.iter().sum::<u64>(),
                    fold => own.iter().fold(fold.start(), |a, b| fold.joined(a, *b)),
                });
            }
        }
        (keys, states)
    }
}
