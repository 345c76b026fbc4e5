//! Groups whose last key is only counted: `count(DISTINCT x)`.
//!
//! Rows are grouped by all keys, without accumulators. If there are accumulators, rows are also grouped by the other
//! keys. At the end both are merged into groups by the other keys, without being written out before. The state of such
//! a group has the words of its accumulators, followed by the number of its groups by all keys, excluding the group in
//! which the counted key is NULL.

use super::grouper::Grouper;
use super::keys::Word;
use super::shared::{Groups, Shared, bits_of};
use std::sync::Arc;
use tidalite_kernels::{Fold, FoldInput, FoldValues, GroupTable};

/// Number of groups, or rows, that are processed at a time.
const CHUNK: usize = 1 << 12;
const CHUNK_ROWS: usize = 1 << 16;

/// Returns the shared state of the groups by all keys but the last.
pub(super) fn without_last<W: Word>(all: &Shared<W>) -> Shared<W> {
    let keys = all.kinds.len().saturating_sub(1);
    let (folds, inputs) = match &all.others {
        Some(others) => (others.folds.as_slice().iter().copied().chain([Fold::Rows]).collect(), Vec::new()),
        // The groups by all keys are then added as rows, and the rows with a last key are counted.
        None => (vec![Fold::Present(0)], vec![None]),
    };
    let mut fewer = Shared::new(folds, all.kinds[..keys].to_vec(), inputs, all.seed, all.parts.row_bytes_max);
    fewer.numbered = all.numbered[..keys].to_vec();
    fewer
}

/// Merges groups into the groups of `fewer`, the result of [`without_last`].
///
/// Returns the thread's own groups, if they stayed few.
pub(super) fn count<W: Word>(
    groups: impl Iterator<Item = Groups<W>>,
    all: &Shared<W>,
    fewer: &Arc<Shared<W>>,
) -> Option<GroupTable<W>> {
    let (last, kinds) = all.kinds.split_last()?;
    let (others, shift) = (bits_of::<W>(kinds, |_| true), kinds.iter().map(|kind| kind.bits()).sum());
    let (bits, null) = (last.bits(), last.null_code());
    let is_there = |key: &W| Some(key.take(shift, bits)) != null;
    // The state of a group without rows.
    let start: Vec<u64> = fewer.folds.start().collect();
    let words = start.len() - 1;
    let mut grouper = Grouper::new(fewer.clone());
    let (mut keys, mut states) = (Vec::new(), Vec::new());
    for Groups { lazy, is_of_others } in groups {
        let table = lazy.table();
        if kinds.is_empty() && !is_of_others {
            // All belong to one group.
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
