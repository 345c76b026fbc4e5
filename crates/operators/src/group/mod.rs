//! Rows into groups.
//!
//! A [`Grouping`] is what the threads of a query share, a [`Worker`] what one of them has. Keys are packed into one word
//! a row or two ([`keys`]), texts and times numbered for it ([`texts`], [`times`]); [`worker`] and [`grouper`] add rows
//! to groups, to all or those of [`chosen`], and collect [`rows`] for the [`parts`] that threads share once groups are
//! many; [`counted`] counts the values of a key; [`best`] picks those that come first in an order; [`output`] writes them
//! as columns. [`Overflow`] gives up: the keys are not what packing understands.

mod best;
mod chosen;
mod counted;
mod grouper;
mod keys;
mod output;
mod parts;
mod rows;
mod texts;
mod times;
mod worker;

pub use best::{Best, By};
pub use keys::{KeyKind, Overflow};
pub use output::{Output, OutputKind};
pub use worker::{Values, magnitude, present};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use keys::Word;
use std::sync::Arc;
use tidalite_kernels::Fold;
use worker::{Groups, Shared};

/// What the threads of a query share. The width of its keys is known when it is made.
#[derive(Clone)]
pub struct Grouping(Width<Arc<Shared<u64>>, Arc<Shared<u128>>>);

/// What one thread has.
pub struct Worker(Width<worker::Worker<u64>, worker::Worker<u128>>);

/// Some of the groups; no other part of all has one of them.
pub struct Part(Width<Groups<u64>, Groups<u128>>);

/// What of the groups is sought.
#[derive(Clone, Copy, Debug)]
pub enum Sought {
    All,
    /// Any so many of them.
    Any(usize),
    /// How many values the last key has in each group by the others: [`Grouping::count_last`] is to follow.
    CountsOfLast,
}

/// One word a key, or two.
#[derive(Clone)]
enum Width<N, W> {
    Narrow(N),
    Wide(W),
}

impl Grouping {
    /// `inputs` says of each whether its values are floating point, `None` if it has none; `seed` is what those who choose
    /// the keys do not know. Of many groups rows are kept until they are grouped, which take `row_bytes_max` and, for each
    /// thread, some of every part.
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

    /// Memory of what is shared.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Width::Narrow(shared) => shared.bytes(),
            Width::Wide(shared) => shared.bytes(),
        }
    }

    /// Memory that groups take at most, when all rows are among them.
    #[must_use]
    pub fn bytes_as_groups(&self) -> usize {
        match &self.0 {
            Width::Narrow(shared) => shared.bytes_as_groups(),
            Width::Wide(shared) => shared.bytes_as_groups(),
        }
    }

    /// All groups, when `few` are those that threads had for themselves.
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

    /// For [`Grouping::count_last`]: the groups by all keys but the last, with the words that these have and, behind them, how
    /// many values of the last key there are.
    #[must_use]
    pub fn without_last(&self) -> Grouping {
        Grouping(match &self.0 {
            Width::Narrow(shared) => Width::Narrow(Arc::new(counted::without_last(shared))),
            Width::Wide(shared) => Width::Wide(Arc::new(counted::without_last(shared))),
        })
    }

    /// Adds parts of these groups to those of `fewer`, what [`Grouping::without_last`] gave; gives the thread's own, if they
    /// stayed few. Nothing that is folded may go by the order of rows.
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

    /// Memory that [`Grouping::best`] takes of any of `parts`, at most.
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

    /// Those groups of parts that come first.
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

    /// A part as rows: its keys, then `outputs`.
    ///
    /// # Errors
    /// When `schema` is not that of the columns.
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
    /// Adds rows: a column for each key, values for each input.
    ///
    /// # Errors
    /// [`Overflow`] when the keys cannot be packed; what was added so far is of no use then.
    pub fn add(&mut self, keys: &[ArrayRef], inputs: &[Values], rows: usize) -> Result<(), Overflow> {
        match &mut self.0 {
            Width::Narrow(worker) => worker.add(keys, inputs, rows),
            Width::Wide(worker) => worker.add(keys, inputs, rows),
        }
    }

    /// Memory that is the thread's own.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Width::Narrow(worker) => worker.bytes(),
            Width::Wide(worker) => worker.bytes(),
        }
    }

    /// The thread's own groups, those that stayed few; others are with those of all threads now.
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
