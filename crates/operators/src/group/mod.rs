//! Rows into groups.
//!
//! A [`Grouping`] is what the threads of a query share, a [`Worker`] what one of them has. Keys are packed into one word
//! a row or two ([`keys`]), texts and times numbered for it ([`texts`], [`times`]); [`worker`] adds rows to groups, to all
//! or those of [`chosen`]; [`best`] picks those that come first in an order; [`output`] writes them as columns.
//! [`Overflow`] gives up: the keys are not what packing understands.

mod best;
mod chosen;
mod keys;
mod output;
mod texts;
mod times;
mod worker;

pub use best::{Best, By};
pub use keys::{KeyKind, Overflow};
pub use output::{Output, OutputKind};
pub use worker::{Values, present};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::sync::Arc;
use tidalite_kernels::{Fold, GroupTable};
use worker::Shared;

/// What the threads of a query share. The width of its keys is known when it is made.
#[derive(Clone)]
pub struct Grouping(Width<Arc<Shared<u64>>, Arc<Shared<u128>>>);

/// What one thread has.
pub struct Worker(Width<worker::Worker<u64>, worker::Worker<u128>>);

/// Some of the groups; no other part has one of them.
pub struct Part(Width<GroupTable<u64>, GroupTable<u128>>);

/// One word a key, or two.
#[derive(Clone)]
enum Width<N, W> {
    Narrow(N),
    Wide(W),
}

impl Grouping {
    /// `inputs` says of each whether its values are floating point, `None` if it has none; any `limit` groups will do; `seed`
    /// is what those who choose the keys do not know.
    #[must_use]
    pub fn new(
        folds: Vec<Fold>,
        kinds: Vec<KeyKind>,
        inputs: Vec<Option<bool>>,
        limit: Option<usize>,
        seed: u64,
    ) -> Grouping {
        let groups = limit.unwrap_or(usize::MAX);
        if kinds.iter().map(KeyKind::bits).sum::<u32>() <= u64::BITS {
            Grouping(Width::Narrow(Arc::new(Shared::new(folds, kinds, inputs, seed).limited(groups))))
        } else {
            Grouping(Width::Wide(Arc::new(Shared::new(folds, kinds, inputs, seed).limited(groups))))
        }
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

    /// All groups, when `few` are those that threads had for themselves.
    #[must_use]
    pub fn parts(&self, few: Vec<Part>) -> Vec<Part> {
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        for Part(table) in few {
            match table {
                Width::Narrow(table) => narrow.push(table),
                Width::Wide(table) => wide.push(table),
            }
        }
        match &self.0 {
            Width::Narrow(shared) => {
                shared.parts_with(narrow).into_iter().map(|table| Part(Width::Narrow(table))).collect()
            }
            Width::Wide(shared) => shared.parts_with(wide).into_iter().map(|table| Part(Width::Wide(table))).collect(),
        }
    }

    /// Memory that [`Grouping::best`] takes of any of `parts`, at most.
    #[must_use]
    pub fn best_bytes(&self, parts: &[Part], best: &Best) -> usize {
        let groups = parts.iter().map(|Part(table)| match table {
            Width::Narrow(table) => table.len(),
            Width::Wide(table) => table.len(),
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
                let tables =
                    parts.filter_map(|Part(table)| if let Width::Narrow(table) = table { Some(table) } else { None });
                Part(Width::Narrow(best::best(tables, shared, outputs, best)))
            }
            Width::Wide(shared) => {
                let tables =
                    parts.filter_map(|Part(table)| if let Width::Wide(table) = table { Some(table) } else { None });
                Part(Width::Wide(best::best(tables, shared, outputs, best)))
            }
        }
    }

    /// A part as rows: its keys, then `outputs`.
    ///
    /// # Errors
    /// When `schema` is not that of the columns.
    #[must_use]
    pub fn batches(&self, part: &Part, outputs: &[Output], schema: &SchemaRef) -> Vec<Result<RecordBatch, ArrowError>> {
        match (&self.0, &part.0) {
            (Width::Narrow(shared), Width::Narrow(table)) => output::batches(table, shared, outputs, schema),
            (Width::Wide(shared), Width::Wide(table)) => output::batches(table, shared, outputs, schema),
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

    /// The thread's own groups, if they stayed few; else they are with the others' now.
    #[must_use]
    pub fn finish(self) -> Option<Part> {
        match self.0 {
            Width::Narrow(worker) => worker.finish().map(|table| Part(Width::Narrow(table))),
            Width::Wide(worker) => worker.finish().map(|table| Part(Width::Wide(table))),
        }
    }
}

#[cfg(test)]
mod tests;
