//! The groups that come first in an order, where no others are asked for.
//!
//! Groups are compared as they lie, by the words of their keys and folds: only those that come out become columns. Most
//! are told from them by a number that says about where they stand in the order.

use super::keys::{KeyForm, Word};
use super::output::{Output, OutputKind};
use super::worker::Shared;
use std::cmp::Ordering;
use tidalite_kernels::GroupTable;

/// Candidates are put in order when they are this many more than twice those asked for.
const SPARE: usize = 64;

/// So many groups that come first. Of those that are equal in the order, any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Best {
    /// At least one.
    pub groups: usize,
    /// The first that tells two groups apart decides.
    pub by: Vec<By>,
}

/// A column of those that come out: the keys, then the outputs. −0 is 0, and NaN the greatest number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct By {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}

/// Those of `tables` that come first.
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

/// Memory of the candidates among `groups` groups, at most.
pub(super) fn bytes<W: Word>(groups: usize, shared: &Shared<W>, best: &Best) -> usize {
    let candidates = (2 * best.groups + SPARE).min(groups);
    // Each is copied when some are kept, and a list that grows has room for as many again.
    2 * candidates * (size_of::<W>() + size_of::<u64>() * (shared.folds.words() + 2))
}

/// Candidates.
#[derive(Default)]
struct First<W> {
    max: usize,
    /// Of each one's state.
    words: usize,
    /// See [`Key::about`].
    abouts: Vec<u64>,
    keys: Vec<W>,
    states: Vec<u64>,
    /// Whether the candidates below `max` are the first of all so far, the last of them at the end.
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

    /// Keeps those that come first.
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

    /// Whether groups of which this is said are equal in the order.
    #[inline]
    fn is_told(&self, about: u64) -> bool {
        matches!(self.0.as_slice(), [Key { of: Of::Output(_), .. }]) && about > 1 && about < u64::MAX - 1
    }

    fn compare<W: Word>(&self, a: Group<'_, W>, b: Group<'_, W>) -> Ordering {
        self.0.iter().map(|key| key.compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// One of those that groups are compared by.
struct Key<'a> {
    by: &'a By,
    of: Of<'a>,
}

enum Of<'a> {
    /// Bits of the key, from a place on.
    Key(KeyForm<'a>, u32, u32),
    Output(&'a OutputKind),
}

impl<'a> Key<'a> {
    /// `None` where there is no such column, by which no two groups differ.
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

    /// The value, or the number of the text.
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

    /// No less than that of any group that comes before this one.
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
