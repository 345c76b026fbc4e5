//! Groups whose last key is only counted: `count(DISTINCT x)`.
//!
//! Rows are grouped by all keys, of which nothing is folded; beside, if something is to be folded, they are grouped by the
//! others. In the end both become groups by the others, without being written out before: with the words of these and,
//! behind them, how many groups by all keys there were, but for the one in which the counted key is NULL.

use super::grouper::Grouper;
use super::keys::Word;
use super::worker::{Groups, Shared, bits_of};
use std::sync::Arc;
use tidalite_kernels::{Fold, FoldInput, FoldValues, GroupTable};

/// Groups that are looked at at a time, and rows, where they are that.
const CHUNK: usize = 1 << 12;
const CHUNK_ROWS: usize = 1 << 16;

/// What threads share of the groups by all keys but the last.
pub(super) fn without_last<W: Word>(all: &Shared<W>) -> Shared<W> {
    let keys = all.kinds.len().saturating_sub(1);
    let (folds, inputs) = match &all.others {
        Some(others) => (others.folds.as_slice().iter().copied().chain([Fold::Rows]).collect(), Vec::new()),
        // Groups by all keys are rows of those without the last one, then, of which those are counted that have it.
        None => (vec![Fold::Present(0)], vec![None]),
    };
    let mut fewer = Shared::new(folds, all.kinds[..keys].to_vec(), inputs, all.seed, all.parts.row_bytes_max);
    fewer.numbered = all.numbered[..keys].to_vec();
    fewer
}

/// Makes groups those of `fewer`, what [`without_last`] gave; gives the thread's own, if they stayed few.
pub(super) fn count<W: Word>(
    groups: impl Iterator<Item = Groups<W>>,
    all: &Shared<W>,
    fewer: &Arc<Shared<W>>,
) -> Option<GroupTable<W>> {
    let (last, kinds) = all.kinds.split_last()?;
    let (others, shift) = (bits_of::<W>(kinds, |_| true), kinds.iter().map(|kind| kind.bits()).sum());
    let (bits, null) = (last.bits(), last.null_code());
    let is_there = |key: &W| Some(key.take(shift, bits)) != null;
    // Of no rows.
    let start: Vec<u64> = fewer.folds.start().collect();
    let words = start.len() - 1;
    let mut grouper = Grouper::new(fewer.clone());
    let (mut keys, mut states) = (Vec::new(), Vec::new());
    for Groups { lazy, is_of_others } in groups {
        let table = lazy.table();
        if kinds.is_empty() && !is_of_others {
            // They are all of one group.
            let count = table.keys().iter().filter(|key| is_there(key)).count() as u64;
            let state: Vec<u64> = start[..words].iter().copied().chain([count]).collect();
            grouper.join(&[W::default()], &state);
        } else if all.others.is_none() {
            for chunk in table.keys().chunks(CHUNK_ROWS) {
                let keys: Vec<W> = chunk.iter().map(|key| *key & others).collect();
                let present: Vec<u8> = chunk.iter().map(|key| u8::from(is_there(key))).collect();
                let present = present.contains(&0).then_some(present.as_slice());
                grouper.add(&keys, &[FoldInput { values: FoldValues::Nothing, present }]);
            }
        } else {
            for from in (0..table.len()).step_by(CHUNK) {
                let chunk = from..(from + CHUNK).min(table.len());
                keys.clear();
                keys.extend(table.keys()[chunk.clone()].iter().map(|key| *key & others));
                states.clear();
                if is_of_others {
                    for state in table.states()[chunk.start * words..chunk.end * words].chunks_exact(words) {
                        states.extend_from_slice(state);
                        states.push(0);
                    }
                } else {
                    for key in &table.keys()[chunk] {
                        states.extend_from_slice(&start[..words]);
                        states.push(u64::from(is_there(key)));
                    }
                }
                grouper.join(&keys, &states);
            }
        }
    }
    grouper.finish()
}
