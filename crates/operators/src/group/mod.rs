//! Groups rows by keys and accumulates values.
//!
//! A [`Grouping`] is shared by the threads of a query ([`shared`]); each thread has a [`Worker`]. Keys are packed into
//! one or two words per row ([`keys`]) after strings and timestamps are replaced by codes ([`texts`], [`times`]).
//! [`worker`] and [`grouper`] add rows to all groups or to the groups of [`chosen`], and collect [`rows`] for the
//! [`parts`] that threads share if there are many groups. [`counted`] counts the distinct values of a key, [`best`]
//! selects the top groups of an order, and [`output`] writes groups as columns. [`Overflow`] is returned if the keys
//! cannot be packed.

mod best;
mod chosen;
mod counted;
mod grouper;
mod keys;
mod output;
mod overflow;
mod parts;
mod rows;
mod shared;
mod texts;
mod times;
mod worker;

pub use best::{Best, By};
pub use keys::KeyKind;
pub use output::{Output, OutputKind};
pub use overflow::Overflow;
pub use worker::{Values, magnitude, present};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use keys::Word;
use shared::{Groups, Shared};
use std::sync::Arc;
use tidalite_kernels::Fold;

/// State shared by the threads of a query. The width of its keys is fixed at creation.
#[derive(Clone)]
pub struct Grouping(Width<Arc<Shared<u64>>, Arc<Shared<u128>>>);

/// State of one thread.
pub struct Worker(Width<worker::Worker<u64>, worker::Worker<u128>>);

/// A part of the groups. No group is in two parts.
pub struct Part(Width<Groups<u64>, Groups<u128>>);

/// The requested groups.
#[derive(Clone, Copy, Debug)]
pub enum Sought {
    All,
    /// Any groups, at most this many.
    Any(usize),
    /// The number of distinct values of the last key for each combination of the others; completed by
    /// [`Grouping::count_last`].
    CountsOfLast,
}

/// A state for keys of one word or of two words.
#[derive(Clone)]
enum Width<N, W> {
    Narrow(N),
    Wide(W),
}

impl Grouping {
    /// Creates a grouping. `inputs` is true for floating-point inputs, false for integers, `None` for inputs without
    /// values.
    ///
    /// `seed` must be unknown to the clients that choose the keys. If groups are many, ungrouped rows are buffered in
    /// `row_bytes_max` bytes plus, for each thread, some rows of every part.
    #[must_use]
    pub fn new(
        folds: Vec<Fold>,
        kinds: Vec<KeyKind>,
        inputs: Vec<Option<bool>>,
        sought: Sought,
        seed: u64,
        row_bytes_max: usize,
    ) -> Grouping {
        fn shared<W: Word>(shared: Shared<W>, sought: Sought) -> Arc<Shared<W>> {
            Arc::new(match sought {
                Sought::All => shared,
                Sought::Any(groups) => shared.limited(groups),
                Sought::CountsOfLast => shared.counting_last(),
            })
        }
        Grouping(match kinds.iter().map(KeyKind::bits).sum::<u32>() <= u64::BITS {
            true => Width::Narrow(shared(Shared::new(folds, kinds, inputs, seed, row_bytes_max), sought)),
            false => Width::Wide(shared(Shared::new(folds, kinds, inputs, seed, row_bytes_max), sought)),
        })
    }

    #[must_use]
    pub fn worker(&self) -> Worker {
        match &self.0 {
            Width::Narrow(shared) => Worker(Width::Narrow(worker::Worker::new(shared.clone()))),
            Width::Wide(shared) => Worker(Width::Wide(worker::Worker::new(shared.clone()))),
        }
    }

    /// Returns the memory of the shared state.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Width::Narrow(shared) => shared.bytes(),
            Width::Wide(shared) => shared.bytes(),
        }
    }

    /// Returns an upper bound of the memory of the groups after all rows are grouped.
    #[must_use]
    pub fn bytes_as_groups(&self) -> usize {
        match &self.0 {
            Width::Narrow(shared) => shared.bytes_as_groups(),
            Width::Wide(shared) => shared.bytes_as_groups(),
        }
    }

    /// Returns all groups. `few` are the threads' own groups.
    #[must_use]
    pub fn parts(&self, few: Vec<Part>) -> Vec<Part> {
        let mut few = few.into_iter();
        match &self.0 {
            Width::Narrow(shared) => shared
                .parts_with(narrow(&mut few).collect())
                .into_iter()
                .map(|groups| Part(Width::Narrow(groups)))
                .collect(),
            Width::Wide(shared) => shared
                .parts_with(wide(&mut few).collect())
                .into_iter()
                .map(|groups| Part(Width::Wide(groups)))
                .collect(),
        }
    }

    /// Returns the grouping for [`Grouping::count_last`]: the groups by all keys but the last.
    ///
    /// The state has the words of these groups, followed by the number of distinct values of the last key.
    #[must_use]
    pub fn without_last(&self) -> Grouping {
        Grouping(match &self.0 {
            Width::Narrow(shared) => Width::Narrow(Arc::new(counted::without_last(shared))),
            Width::Wide(shared) => Width::Wide(Arc::new(counted::without_last(shared))),
        })
    }

    /// Adds parts of these groups to the groups of `fewer`, the result of [`Grouping::without_last`].
    ///
    /// Returns the thread's own groups, if they stayed few. No accumulator may depend on the order of rows.
    #[must_use]
    pub fn count_last(&self, parts: &mut dyn Iterator<Item = Part>, fewer: &Grouping) -> Option<Part> {
        match (&self.0, &fewer.0) {
            (Width::Narrow(all), Width::Narrow(fewer)) => {
                counted::count(narrow(parts), all, fewer).map(|table| Part(Width::Narrow(table.into())))
            }
            (Width::Wide(all), Width::Wide(fewer)) => {
                counted::count(wide(parts), all, fewer).map(|table| Part(Width::Wide(table.into())))
            }
            _ => None,
        }
    }

    /// Returns an upper bound of the memory of [`Grouping::best`] for any of `parts`.
    #[must_use]
    pub fn best_bytes(&self, parts: &[Part], best: &Best) -> usize {
        let groups = parts.iter().map(|Part(groups)| match groups {
            Width::Narrow(groups) => groups.lazy.groups_max(),
            Width::Wide(groups) => groups.lazy.groups_max(),
        });
        match &self.0 {
            Width::Narrow(shared) => best::bytes(groups.sum(), shared, best),
            Width::Wide(shared) => best::bytes(groups.sum(), shared, best),
        }
    }

    /// Returns the top groups of the parts.
    #[must_use]
    pub fn best(&self, parts: &mut dyn Iterator<Item = Part>, outputs: &[Output], best: &Best) -> Part {
        match &self.0 {
            Width::Narrow(shared) => {
                let tables = narrow(parts).map(|groups| groups.lazy.table());
                Part(Width::Narrow(best::best(tables, shared, outputs, best).into()))
            }
            Width::Wide(shared) => {
                let tables = wide(parts).map(|groups| groups.lazy.table());
                Part(Width::Wide(best::best(tables, shared, outputs, best).into()))
            }
        }
    }

    /// Returns a part as record batches: its keys, then `outputs`.
    ///
    /// # Errors
    /// Each batch is an error if `schema` does not match the columns.
    #[must_use]
    pub fn batches(&self, part: Part, outputs: &[Output], schema: &SchemaRef) -> Vec<Result<RecordBatch, ArrowError>> {
        match (&self.0, part.0) {
            (Width::Narrow(shared), Width::Narrow(groups)) => {
                output::batches(&groups.lazy.table(), shared, outputs, schema)
            }
            (Width::Wide(shared), Width::Wide(groups)) => {
                output::batches(&groups.lazy.table(), shared, outputs, schema)
            }
            _ => Vec::new(),
        }
    }
}

impl Worker {
    /// Adds rows: a column per key and values per input.
    ///
    /// # Errors
    /// Returns [`Overflow`] if the keys cannot be packed; the groups so far are unusable then.
    pub fn add(&mut self, keys: &[ArrayRef], inputs: &[Values], rows: usize) -> Result<(), Overflow> {
        match &mut self.0 {
            Width::Narrow(worker) => worker.add(keys, inputs, rows),
            Width::Wide(worker) => worker.add(keys, inputs, rows),
        }
    }

    /// Returns the memory of the thread.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Width::Narrow(worker) => worker.bytes(),
            Width::Wide(worker) => worker.bytes(),
        }
    }

    /// Returns the thread's own groups if they stayed few; other groups have been moved to the shared parts.
    #[must_use]
    pub fn finish(self) -> Vec<Part> {
        match self.0 {
            Width::Narrow(worker) => worker.finish().into_iter().map(|groups| Part(Width::Narrow(groups))).collect(),
            Width::Wide(worker) => worker.finish().into_iter().map(|groups| Part(Width::Wide(groups))).collect(),
        }
    }
}

fn narrow(parts: &mut dyn Iterator<Item = Part>) -> impl Iterator<Item = Groups<u64>> {
    parts.filter_map(|Part(groups)| if let Width::Narrow(groups) = groups { Some(groups) } else { None })
}

fn wide(parts: &mut dyn Iterator<Item = Part>) -> impl Iterator<Item = Groups<u128>> {
    parts.filter_map(|Part(groups)| if let Width::Wide(groups) = groups { Some(groups) } else { None })
}

#[cfg(test)]
mod tests;
