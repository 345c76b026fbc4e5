//! Which rows of a piece are wanted: alive, and true for every predicate.
//!
//! In: a piece. Out: a mask with a bit for each of its rows. Predicates are asked one after the other, those first that
//! leave the fewest rows for what they cost: judged by zone maps at first, then by what the query has seen so far. A
//! predicate only looks at vectors that still have a wanted row, and a column without predicates is not touched. Conditions
//! on several columns are trees of predicates and of programs ([`super::several`]): of AND a part is asked of the rows
//! that parts before it left, of OR of those that none wanted.
//!
//! The block cache holds blocks as they are encoded, and only those. A mask is made from these bytes, and the rows that
//! a batch needs are decoded straight out of them: unpacking runs faster than memory delivers plain values, so a cache
//! of decoded blocks would hold a third to an eighth of the rows and be slower to read. Plain blocks are used in place.

use super::predicate::Predicate;
use super::prune::Piece;
use super::several::{Computed, Joined, joined};
use super::spec::ScanSpec;
use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_kernels::count_picked;
use tidalite_storage::segment::{Selection, few_codes, retain_rows};
use tidalite_storage::{Bounds, TableSnapshot, ValueSet, Zone};
use tidalite_types::{BLOCK_ROWS, Bitmap, ColumnId, ColumnType};

/// The conditions of a scan, made ready for its snapshot. Shared by the threads of a query.
#[derive(Debug)]
pub(crate) struct Filters {
    all: Vec<Filter>,
}

#[derive(Debug)]
pub(super) struct Filter {
    what: What,
    /// What looking at a row takes, compared with an integer.
    cost: f64,
    /// What share of the rows stays, when nothing else is known.
    guess: f64,
    /// Rows it was asked about, and those it left. Only a hint: threads need not see the same.
    asked: AtomicU64,
    left: AtomicU64,
}

#[derive(Debug)]
enum What {
    /// Symbols by their ids.
    Values {
        column: ColumnId,
        values: ValueSet,
        with_null: bool,
        /// Of symbols, where they are few and NULL is none of them.
        codes: Option<Vec<usize>>,
    },
    Computed(Computed),
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
}

/// Of a row, compared with an integer.
const TEXT_COST: f64 = 8.0;
/// A guess is held against this many rows.
const GUESS_ROWS: f64 = 4096.0;

/// The rows of a piece that are wanted.
pub(crate) enum Wanted {
    All,
    Some(Selection),
}

impl Filters {
    pub fn new(snapshot: &TableSnapshot, spec: &ScanSpec) -> Filters {
        let several = joined(spec.several.iter().map(|several| several.asked.clone()).collect());
        let predicates = spec.predicates.iter().map(|predicate| Filter::of_values(snapshot, predicate));
        Filters {
            all: predicates.chain(several.into_iter().map(|of| Filter::of(snapshot, of, spec.compiles))).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What share of the rows is expected to satisfy all of them, where each compares what is encoded in bits.
    pub fn expected_share(&self) -> Option<f64> {
        let of = |filter: &Filter| match &filter.what {
            // Of more each takes a look of its own.
            What::Values { values: ValueSet::Ints(ranges), .. } if ranges.len() > 1 => None,
            What::Values { .. } if filter.cost < TEXT_COST => Some(filter.guess),
            _ => None,
        };
        self.all.iter().map(of).product::<Option<f64>>().filter(|_| !self.all.is_empty())
    }

    /// The symbols of a column, of so many, that rows may have which satisfy them, as bits; and whether they may have none.
    pub fn symbols_of(&self, column: ColumnId, count: usize) -> (Vec<u64>, bool) {
        let (mut bits, mut may_be_null) = (Bitmap::filled(count, true).into_words(), true);
        for filter in &self.all {
            let What::Values { column: own, values, with_null, .. } = &filter.what else { continue };
            if *own != column {
                continue;
            }
            may_be_null = may_be_null && *with_null;
            let ranges = match values {
                ValueSet::Ints(ranges) => ranges.as_slice(),
                ValueSet::Nothing => &[],
                _ => continue,
            };
            let within = |bound: i128| bound.clamp(0, count as i128) as usize;
            let mut own = vec![0_u64; bits.len()];
            for (lo, hi) in ranges {
                (within(*lo)..within(hi.saturating_add(1))).for_each(|code| own[code / 64] |= 1 << (code % 64));
            }
            bits.iter_mut().zip(own).for_each(|(word, own)| *word &= own);
        }
        (bits, may_be_null)
    }

    /// The columns of symbols, but for one, of which not every row satisfies them.
    pub fn other_symbols(&self, snapshot: &TableSnapshot, column: ColumnId) -> Vec<ColumnId> {
        let of = |filter: &Filter| match &filter.what {
            What::Values { column: own, .. } if *own != column && snapshot.symbols.contains_key(own) => Some(*own),
            _ => None,
        };
        let mut others: Vec<ColumnId> = self.all.iter().filter_map(of).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Whether any of them is asked by machine code by now.
    pub fn is_compiled(&self) -> bool {
        self.all.iter().any(Filter::is_compiled)
    }

    /// Whether asking them of a row may be an error, so that it matters which rows they are asked of.
    pub fn may_fail(&self) -> bool {
        self.all.iter().any(Filter::may_fail)
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
        let mut filters = in_order(&self.all, true, snapshot, piece)?;
        let known = if dead.is_none() && within.is_none() {
            filters.first().and_then(|f| f.known(snapshot, piece))
        } else {
            None
        };
        let (mut mask, mut left) = match known {
            Some(known) => {
                let first = filters.remove(0);
                if !filters.is_empty() {
                    first.note(rows, known.rows());
                }
                filters.retain(|filter| !filter.holds_for_all(snapshot, piece));
                if filters.is_empty() || known.rows() == 0 {
                    return Ok(Wanted::Some(known));
                }
                let rows = known.rows();
                (known.into_mask(), rows)
            }
            None => (Bitmap::filled(rows, true).into_words(), rows),
        };
        if let Some(dead) = dead {
            mask.iter_mut().zip(dead.words()).for_each(|(word, dead)| *word &= !dead);
            left = count_picked(&mask);
        }
        if let Some(within) = within {
            left = within.ask(snapshot, piece, &mut mask, left)?;
        }
        left = retain_in_order(&filters, snapshot, piece, &mut mask, left)?;
        Ok(if left == rows { Wanted::All } else { Wanted::Some(Selection::of_mask(mask, left)) })
    }
}

/// Clears the rows of `mask`, which are so many, that do not satisfy every filter, and counts the others.
fn retain_all(
    filters: &[Filter],
    snapshot: &TableSnapshot,
    piece: Piece,
    mask: &mut [u64],
    asked: usize,
) -> Result<usize> {
    retain_in_order(&in_order(filters, true, snapshot, piece)?, snapshot, piece, mask, asked)
}

/// One after the other.
fn retain_in_order(
    filters: &[&Filter],
    snapshot: &TableSnapshot,
    piece: Piece,
    mask: &mut [u64],
    asked: usize,
) -> Result<usize> {
    let mut left = asked;
    for filter in filters {
        if left == 0 {
            break;
        }
        left = filter.ask(snapshot, piece, mask, left)?;
    }
    Ok(left)
}

/// Clears the rows of `mask` that satisfy no filter: each is asked of the rows that those before it did not want.
fn retain_any(filters: &[Filter], snapshot: &TableSnapshot, piece: Piece, mask: &mut [u64]) -> Result<()> {
    let mut open = mask.to_vec();
    mask.fill(0);
    let mut found = vec![0; open.len()];
    for filter in in_order(filters, false, snapshot, piece)? {
        let asked = count_picked(&open);
        if asked == 0 {
            break;
        }
        found.copy_from_slice(&open);
        filter.ask(snapshot, piece, &mut found, asked)?;
        for ((mask, open), found) in mask.iter_mut().zip(&mut open).zip(&found) {
            *mask |= found;
            *open &= !found;
        }
    }
    Ok(())
}

/// Those first that settle most rows for what they cost: that get rid of them, or of whose rows it is enough that one
/// wants them. What may be an error of a row is asked last.
fn in_order<'a>(
    filters: &'a [Filter],
    is_all: bool,
    snapshot: &TableSnapshot,
    piece: Piece,
) -> Result<Vec<&'a Filter>> {
    if let [only] = filters {
        return Ok(vec![only]);
    }
    let mut ranked = Vec::with_capacity(filters.len());
    for filter in filters {
        let zone = match (piece, &filter.what) {
            (Piece::Block { segment, block }, What::Values { column, .. }) => {
                snapshot.segments[segment].zone(*column, block).map_err(|e| snapshot.named(e))?
            }
            _ => None,
        };
        ranked.push((filter.rank(zone, is_all), filter));
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(ranked.into_iter().map(|(_, filter)| filter).collect())
}

impl Filter {
    fn new(what: What, cost: f64, guess: f64) -> Filter {
        Filter { what, cost, guess, asked: AtomicU64::new(0), left: AtomicU64::new(0) }
    }

    fn of(snapshot: &TableSnapshot, joined: Joined, compiles: bool) -> Filter {
        let each =
            |list: Vec<Joined>| list.into_iter().map(|of| Filter::of(snapshot, of, compiles)).collect::<Vec<_>>();
        let cost = |list: &[Filter]| list.iter().map(|filter| filter.cost).sum::<f64>().max(1.0);
        match joined {
            Joined::One(predicate) => Filter::of_values(snapshot, &predicate),
            Joined::Computed(computed) => {
                let cost = computed.cost();
                let computed = if compiles { computed.compiling() } else { computed };
                Filter::new(What::Computed(computed), cost, 0.3)
            }
            Joined::All(list) => {
                let list = each(list);
                let (cost, guess) = (cost(&list), list.iter().map(|filter| filter.guess).product());
                Filter::new(What::All(list), cost, guess)
            }
            Joined::Any(list) => {
                let list = each(list);
                let (cost, none) = (cost(&list), list.iter().map(|filter| 1.0 - filter.guess).product::<f64>());
                Filter::new(What::Any(list), cost, 1.0 - none)
            }
            Joined::Not(inner) => {
                let inner = Filter::of(snapshot, *inner, compiles);
                let (cost, guess) = (inner.cost, 1.0 - inner.guess);
                Filter::new(What::Not(Box::new(inner)), cost, guess)
            }
        }
    }

    pub fn of_values(snapshot: &TableSnapshot, predicate: &Predicate) -> Filter {
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
            Some(ColumnType::Varchar | ColumnType::Json | ColumnType::Jsonb) => TEXT_COST,
            Some(ColumnType::Float | ColumnType::Double) => 2.0,
            _ => 1.0,
        };
        let (column, with_null) = (predicate.column, predicate.is_true_of_null());
        let is_symbol = column_type == Some(ColumnType::Symbol) && !with_null;
        let codes = if is_symbol { few_codes(&values).map(Iterator::collect) } else { None };
        Filter::new(What::Values { column, values, with_null, codes }, cost, guess)
    }

    /// The rows of a block that satisfy it, where they are known without comparing.
    fn known(&self, snapshot: &TableSnapshot, piece: Piece) -> Option<Selection> {
        let (Piece::Block { segment, block }, What::Values { column, codes: Some(codes), .. }) = (piece, &self.what)
        else {
            return None;
        };
        let segment = &snapshot.segments[segment];
        segment.known_rows(*column, block, codes)
    }

    /// Whether the bounds of a block say that all its rows satisfy it.
    fn holds_for_all(&self, snapshot: &TableSnapshot, piece: Piece) -> bool {
        let (Piece::Block { segment, block }, What::Values { column, values, .. }) = (piece, &self.what) else {
            return false;
        };
        let zone = snapshot.segments[segment].zone(*column, block);
        matches!(zone, Ok(Some(zone)) if zone.null_count == 0 && values.decide(zone.bounds) == Some(true))
    }

    /// Clears the rows of `mask`, which are so many, that do not satisfy it, and counts the others.
    fn ask(&self, snapshot: &TableSnapshot, piece: Piece, mask: &mut [u64], asked: usize) -> Result<usize> {
        self.retain(snapshot, piece, mask)?;
        let left = count_picked(mask);
        self.note(asked, left);
        Ok(left)
    }

    fn note(&self, asked: usize, left: usize) {
        self.asked.fetch_add(asked as u64, Ordering::Relaxed);
        self.left.fetch_add(left as u64, Ordering::Relaxed);
    }

    fn retain(&self, snapshot: &TableSnapshot, piece: Piece, mask: &mut [u64]) -> Result<()> {
        let (column, values, with_null) = match &self.what {
            What::Values { column, values, with_null, .. } => (*column, values, *with_null),
            What::Computed(computed) => return computed.retain(snapshot, piece, mask),
            What::All(list) => return retain_all(list, snapshot, piece, mask, count_picked(mask)).map(|_| ()),
            What::Any(list) => return retain_any(list, snapshot, piece, mask),
            What::Not(inner) => {
                let mut found = mask.to_vec();
                inner.retain(snapshot, piece, &mut found)?;
                mask.iter_mut().zip(&found).for_each(|(word, found)| *word &= !found);
                return Ok(());
            }
        };
        match piece {
            Piece::Block { segment, block } => {
                let segment = &snapshot.segments[segment];
                let retained = segment.retain(column, block, values, with_null, mask);
                retained.map_err(|e| snapshot.named(e).into())
            }
            Piece::Run { run, from, rows } => {
                match snapshot.runs[run].column(column) {
                    Some(column) => retain_rows(column, from, rows, values, with_null, mask),
                    // Every row is NULL in a column that the run does not have.
                    None if !with_null => mask.fill(0),
                    None => {}
                }
                Ok(())
            }
        }
    }

    /// Cost for each row that it settles.
    fn rank(&self, zone: Option<Zone>, is_all: bool) -> f64 {
        if self.may_fail() {
            return f64::INFINITY;
        }
        let of_zone = match &self.what {
            What::Values { values, .. } => zone.and_then(|zone| share(values, zone.bounds)),
            _ => None,
        };
        let cost = match (&self.what, zone.map(|zone| zone.bounds)) {
            (What::Values { .. }, Some(Bounds::Int(min, max))) => cost_of_integers(min, max),
            _ => self.cost,
        };
        let guess = of_zone.unwrap_or(self.guess);
        let (asked, left) = (self.asked.load(Ordering::Relaxed) as f64, self.left.load(Ordering::Relaxed) as f64);
        let stays = ((left + guess * GUESS_ROWS) / (asked + GUESS_ROWS)).clamp(0.0, 1.0);
        cost / if is_all { 1.0 - stays } else { stays }.max(1e-9)
    }

    fn is_compiled(&self) -> bool {
        match &self.what {
            What::Values { .. } => false,
            What::Computed(computed) => computed.is_compiled(),
            What::All(list) | What::Any(list) => list.iter().any(Filter::is_compiled),
            What::Not(inner) => inner.is_compiled(),
        }
    }

    /// Whether a row can be an error.
    fn may_fail(&self) -> bool {
        match &self.what {
            What::Values { .. } => false,
            What::Computed(computed) => computed.may_fail(),
            What::All(list) | What::Any(list) => list.iter().any(Filter::may_fail),
            What::Not(inner) => inner.may_fail(),
        }
    }
}

/// What it costs to compare a row's integer, of a block with these bounds: half of it to look at all, the rest the more bits
/// it has, since these come from memory. Of 16 bits it is 1, of 64 bits 2.5.
fn cost_of_integers(min: i64, max: i64) -> f64 {
    let bits = 64 - max.abs_diff(min).leading_zeros();
    0.5 + f64::from(bits) / 32.0
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
