//! Top-K groups: the groups that come first in an order.
//!
//! Groups are compared in packed form, by the words of their keys and folds; only the result is converted to columns.
//! Most groups are excluded by an approximate rank of 64 bits.

use super::keys::{KeyForm, Word};
use super::output::{Output, OutputKind};
use super::shared::Shared;
use std::cmp::Ordering;
use tidalite_kernels::GroupTable;

/// Candidates are sorted when their number exceeds twice the requested number by this value.
const SPARE: usize = 64;

/// Top-K groups by `by`. Ties are broken arbitrarily.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Best {
    /// Number of groups, at least one.
    pub groups: usize,
    /// Sort keys; the first key in which two groups differ decides.
    pub by: Vec<By>,
}

/// A sort key: an output column, counted over the keys and then the outputs. −0 equals 0, and NaN is the greatest
/// number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct By {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}

/// Returns the first groups of `tables`.
pub(super) fn best<W: Word>(
    tables: impl Iterator<Item = GroupTable<W>>,
    shared: &Shared<W>,
    outputs: &[Output],
    best: &Best,
) -> GroupTable<W> {
    let order = Order(best.by.iter().filter_map(|by| Key::new(by, shared, outputs)).collect());
    let mut first = First { max: best.groups.max(1), words: shared.folds.words(), ..First::default() };
    tables.for_each(|table| first.add(&table, &order));
    first.cut(&order);
    let mut found = shared.table();
    found.join_some(&first.keys, &first.states, &mut Vec::new());
    found
}

/// Returns an upper bound of the memory for the candidates among `groups` groups.
pub(super) fn bytes<W: Word>(groups: usize, shared: &Shared<W>, best: &Best) -> usize {
    let candidates = (2 * best.groups + SPARE).min(groups);
    // Each candidate is copied when candidates are discarded, and a growing list has twice the capacity.
    2 * candidates * (size_of::<W>() + size_of::<u64>() * (shared.folds.words() + 2))
}

/// The current candidates.
#[derive(Default)]
struct First<W> {
    max: usize,
    /// Words of the state of a candidate.
    words: usize,
    /// See [`Key::about`].
    abouts: Vec<u64>,
    keys: Vec<W>,
    states: Vec<u64>,
    /// True if the candidates below `max` are the first of all groups so far, with the last of them at the end.
    is_full: bool,
}

impl<W: Word> First<W> {
    fn add(&mut self, table: &GroupTable<W>, order: &Order<'_>) {
        let (keys, states) = (table.keys(), table.states());
        for (number, key) in keys.iter().enumerate() {
            let group = Group { key: *key, state: &states[number * self.words..][..self.words] };
            let about = order.about(group);
            if self.is_full {
                let last = self.max - 1;
                let is_behind = match about.cmp(&self.abouts[last]) {
                    Ordering::Less => false,
                    Ordering::Equal => order.is_told(about) || order.compare(group, self.group(last)).is_ge(),
                    Ordering::Greater => true,
                };
                if is_behind {
                    continue;
                }
            }
            self.abouts.push(about);
            self.keys.push(group.key);
            self.states.extend_from_slice(group.state);
            if self.keys.len() > 2 * self.max + SPARE {
                self.cut(order);
            }
        }
    }

    fn group(&self, at: usize) -> Group<'_, W> {
        Group { key: self.keys[at], state: &self.states[at * self.words..][..self.words] }
    }

    /// Keeps the first `max` candidates.
    fn cut(&mut self, order: &Order<'_>) {
        if self.keys.len() <= self.max {
            return;
        }
        let mut places: Vec<usize> = (0..self.keys.len()).collect();
        places.select_nth_unstable_by(self.max - 1, |a, b| {
            self.abouts[*a].cmp(&self.abouts[*b]).then_with(|| order.compare(self.group(*a), self.group(*b)))
        });
        places.truncate(self.max);
        self.states = places.iter().flat_map(|at| self.group(*at).state).copied().collect();
        self.keys = places.iter().map(|at| self.keys[*at]).collect();
        self.abouts = places.iter().map(|at| self.abouts[*at]).collect();
        self.is_full = true;
    }
}

#[derive(Clone, Copy)]
struct Group<'a, W> {
    key: W,
    state: &'a [u64],
}

struct Order<'a>(Vec<Key<'a>>);

impl Order<'_> {
    #[inline]
    fn about<W: Word>(&self, group: Group<'_, W>) -> u64 {
        self.0.first().map_or(0, |key| key.about(group))
    }

    /// Returns true if groups with this approximate rank are equal in the order.
    #[inline]
    fn is_told(&self, about: u64) -> bool {
        matches!(self.0.as_slice(), [Key { of: Of::Output(_), .. }]) && about > 1 && about < u64::MAX - 1
    }

    fn compare<W: Word>(&self, a: Group<'_, W>, b: Group<'_, W>) -> Ordering {
        self.0.iter().map(|key| key.compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// A sort key with its source.
struct Key<'a> {
    by: &'a By,
    of: Of<'a>,
}

enum Of<'a> {
    /// Bits of the packed key, with their position and number.
    Key(KeyForm<'a>, u32, u32),
    Output(&'a OutputKind),
}

impl<'a> Key<'a> {
    /// Creates a sort key; `None` if the column does not exist, in which case no two groups differ.
    fn new<W: Word>(by: &'a By, shared: &'a Shared<W>, outputs: &'a [Output]) -> Option<Key<'a>> {
        let of = match shared.kinds.get(by.column) {
            Some(kind) => {
                let shift = shared.kinds[..by.column].iter().map(|kind| kind.bits()).sum();
                Of::Key(kind.form(shared.numbered[by.column].as_ref()), shift, kind.bits())
            }
            None => Of::Output(&outputs.get(by.column - shared.kinds.len())?.kind),
        };
        Some(Key { by, of })
    }

    /// Returns the value, or the code of the string.
    #[inline]
    fn value<W: Word>(&self, group: Group<'_, W>) -> Option<i64> {
        match &self.of {
            Of::Key(form, shift, bits) => form.value(group.key.take(*shift, *bits)),
            Of::Output(kind) => kind.value(group.state),
        }
    }

    fn compare<W: Word>(&self, a: Group<'_, W>, b: Group<'_, W>) -> Ordering {
        let (Some(a), Some(b)) = (self.value(a), self.value(b)) else {
            let nulls_first = self.value(b).is_none().cmp(&self.value(a).is_none());
            return if self.by.nulls_first { nulls_first } else { nulls_first.reverse() };
        };
        let order = match &self.of {
            Of::Key(form, ..) => form.compare(a, b),
            Of::Output(_) => a.cmp(&b),
        };
        if self.by.is_descending { order.reverse() } else { order }
    }

    /// Returns an approximate rank that is not below the rank of any group that sorts before this one.
    #[inline]
    fn about<W: Word>(&self, group: Group<'_, W>) -> u64 {
        let Some(value) = self.value(group) else { return if self.by.nulls_first { 0 } else { u64::MAX } };
        let rising = match &self.of {
            Of::Key(form, ..) => form.about(value),
            Of::Output(_) => value,
        };
        let rising = rising.cast_unsigned() ^ 1 << 63;
        let about = if self.by.is_descending { !rising } else { rising };
        if self.by.nulls_first { about.max(1) } else { about.min(u64::MAX - 1) }
    }
}

#[cfg(test)]
mod tests;
