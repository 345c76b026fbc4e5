//! Which rows of a piece are wanted: alive, and true for every predicate.
//!
//! In: a piece. Out: a mask with a bit for each of its rows. Predicates are asked one after the other, those first that
//! leave the fewest rows for what they cost: judged by zone maps at first, then by what the query has seen so far. A
//! predicate only looks at vectors that still have a wanted row, and a column without predicates is not touched.
//!
//! The block cache holds blocks as they are encoded, and only those. A mask is made from these bytes, and the rows that
//! a batch needs are decoded straight out of them: unpacking runs faster than memory delivers plain values, so a cache
//! of decoded blocks would hold a third to an eighth of the rows and be slower to read. Plain blocks are used in place.

use super::predicate::Predicate;
use super::prune::Piece;
use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_kernels::count_picked;
use tidalite_storage::segment::retain_rows;
use tidalite_storage::{Bounds, TableSnapshot, ValueSet, Zone};
use tidalite_types::{BLOCK_ROWS, Bitmap, ColumnId, ColumnType};

/// The predicates of a scan, made ready for its snapshot. Shared by the threads of a query.
#[derive(Debug)]
pub(crate) struct Filters {
    list: Vec<Filter>,
}

#[derive(Debug)]
pub(super) struct Filter {
    column: ColumnId,
    /// Symbols by their ids.
    values: ValueSet,
    with_null: bool,
    /// What looking at a row takes, compared with an integer.
    cost: f64,
    /// What share of the rows stays, when nothing else is known.
    guess: f64,
    /// Rows it was asked about, and those it left. Only a hint: threads need not see the same.
    asked: AtomicU64,
    left: AtomicU64,
}

/// A guess is held against this many rows.
const GUESS_ROWS: f64 = 4096.0;

/// The rows of a piece that are wanted.
pub(crate) enum Wanted {
    All,
    Some {
        mask: Vec<u64>,
        /// How many they are.
        rows: usize,
    },
}

impl Filters {
    pub fn new(snapshot: &TableSnapshot, predicates: &[Predicate]) -> Filters {
        Filters { list: predicates.iter().map(|predicate| Filter::new(snapshot, predicate)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The wanted rows of a piece, in the order they are stored; those that satisfy `within`, if that is given.
    pub(super) fn wanted(&self, snapshot: &TableSnapshot, piece: Piece, within: Option<&Filter>) -> Result<Wanted> {
        let (rows, dead) = match piece {
            Piece::Block { segment, block } => {
                let segment = &snapshot.segments[segment];
                (segment.block_rows(block), snapshot.mask(segment).and_then(|mask| mask.block(block)))
            }
            Piece::Run { run, from, rows } => {
                (rows, snapshot.runs[run].dead.as_ref().and_then(|mask| mask.block(from / BLOCK_ROWS)))
            }
        };
        if self.is_empty() && dead.is_none() && within.is_none() {
            return Ok(Wanted::All);
        }
        let mut mask = Bitmap::filled(rows, true).into_words();
        if let Some(dead) = dead {
            mask.iter_mut().zip(dead.words()).for_each(|(word, dead)| *word &= !dead);
        }
        let mut left = count_picked(&mask);
        for filter in within.into_iter().chain(self.in_order(snapshot, piece)?) {
            if left == 0 {
                break;
            }
            filter.retain(snapshot, piece, &mut mask)?;
            let asked = std::mem::replace(&mut left, count_picked(&mask));
            filter.asked.fetch_add(asked as u64, Ordering::Relaxed);
            filter.left.fetch_add(left as u64, Ordering::Relaxed);
        }
        Ok(if left == rows { Wanted::All } else { Wanted::Some { mask, rows: left } })
    }

    /// Those first that get rid of most rows for what they cost.
    fn in_order(&self, snapshot: &TableSnapshot, piece: Piece) -> Result<Vec<&Filter>> {
        if let [only] = self.list.as_slice() {
            return Ok(vec![only]);
        }
        let mut ranked = Vec::with_capacity(self.list.len());
        for filter in &self.list {
            let zone = match piece {
                Piece::Block { segment, block } => {
                    snapshot.segments[segment].zone(filter.column, block).map_err(|e| snapshot.named(e))?
                }
                Piece::Run { .. } => None,
            };
            ranked.push((filter.rank(zone), filter));
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(ranked.into_iter().map(|(_, filter)| filter).collect())
    }
}

impl Filter {
    pub fn new(snapshot: &TableSnapshot, predicate: &Predicate) -> Filter {
        let column_type = snapshot.schema.column_by_id(predicate.column).map(|c| c.column_type);
        let (values, guess) = match (&predicate.values, snapshot.symbols.get(&predicate.column)) {
            (ValueSet::Texts { texts, is_listed }, Some(symbols)) => {
                let ids = texts.iter().filter_map(|text| symbols.id_of(text));
                let ids: Vec<(i128, i128)> = ids.map(|id| (i128::from(id.0), i128::from(id.0))).collect();
                let share = (ids.len() as f64 / symbols.len().max(1) as f64).min(1.0);
                let set = ValueSet::ints(ids);
                if *is_listed { (set, share) } else { (set.complement(), 1.0 - share) }
            }
            (ValueSet::Like { pattern, is_matching }, Some(symbols)) => {
                let (texts, matcher) = (symbols.strings(), pattern.matcher());
                let ids = (0..texts.len()).filter(|id| matcher.matches(texts.get(*id)) == *is_matching);
                let ids: Vec<usize> = ids.collect();
                // Neighbours as one range: blocks compare few ranges in their bits.
                let ranges = ids.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0] as i128, run[run.len() - 1] as i128));
                (ValueSet::ints(ranges.collect()), ids.len() as f64 / texts.len().max(1) as f64)
            }
            (values, _) => (values.clone(), if matches!(values, ValueSet::All) { 1.0 } else { 0.3 }),
        };
        let cost = match column_type {
            Some(ColumnType::Varchar | ColumnType::Json) => 8.0,
            Some(ColumnType::Float | ColumnType::Double) => 2.0,
            _ => 1.0,
        };
        let with_null = predicate.is_true_of_null();
        Filter {
            column: predicate.column,
            values,
            with_null,
            cost,
            guess,
            asked: AtomicU64::new(0),
            left: AtomicU64::new(0),
        }
    }

    /// Clears the rows of `mask` that do not satisfy it.
    fn retain(&self, snapshot: &TableSnapshot, piece: Piece, mask: &mut [u64]) -> Result<()> {
        match piece {
            Piece::Block { segment, block } => {
                let segment = &snapshot.segments[segment];
                let retained = segment.retain(self.column, block, &self.values, self.with_null, mask);
                retained.map_err(|e| snapshot.named(e).into())
            }
            Piece::Run { run, from, rows } => {
                match snapshot.runs[run].column(self.column) {
                    Some(column) => retain_rows(column, from, rows, &self.values, self.with_null, mask),
                    // Every row is NULL in a column that the run does not have.
                    None if !self.with_null => mask.fill(0),
                    None => {}
                }
                Ok(())
            }
        }
    }

    /// Cost for each row that it gets rid of.
    fn rank(&self, zone: Option<Zone>) -> f64 {
        let guess = zone.and_then(|zone| share(&self.values, zone.bounds)).unwrap_or(self.guess);
        let (asked, left) = (self.asked.load(Ordering::Relaxed) as f64, self.left.load(Ordering::Relaxed) as f64);
        let stays = ((left + guess * GUESS_ROWS) / (asked + GUESS_ROWS)).clamp(0.0, 1.0);
        self.cost / (1.0 - stays).max(1e-9)
    }
}

/// The share of a set in the values between bounds, as if they were spread evenly.
fn share(values: &ValueSet, bounds: Bounds) -> Option<f64> {
    let shares: f64 = match (values, bounds) {
        (ValueSet::Ints(ranges), Bounds::Int(min, max)) => {
            let (min, max) = (min as f64, max as f64);
            let width = max - min + 1.0;
            ranges.iter().map(|(lo, hi)| (max.min(*hi as f64) - min.max(*lo as f64) + 1.0).max(0.0) / width).sum()
        }
        (ValueSet::Floats(ranges), Bounds::Float(min, max)) if max > min && (max - min).is_finite() => {
            // Without an upper bound, which is NaN, the least is the block's.
            ranges.iter().map(|(lo, hi)| (max.min(*hi) - min.max(*lo)).max(0.0) / (max - min)).sum()
        }
        _ => return None,
    };
    Some(shares.min(1.0))
}
