//! What is left to read of a snapshot once time ranges, zone maps and dictionaries have had their say.

use super::predicate::Predicate;
use super::several::Several;
use crate::Result;
use tidalite_storage::{Bounds, Mask, Run, Segment, TableSnapshot, ValueSet};
use tidalite_types::{BLOCK_ROWS, ColumnId};

/// One piece of work: at most a block's rows, of a segment or of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Block { segment: usize, block: usize },
    Run { run: usize, from: usize, rows: usize },
}

impl Piece {
    /// Whether `next` is the block behind it.
    pub fn is_before(&self, next: &Piece) -> bool {
        match (self, next) {
            (Piece::Block { segment, block }, Piece::Block { segment: other, block: behind }) => {
                segment == other && block + 1 == *behind
            }
            _ => false,
        }
    }
}

/// The pieces of one segment or run, in time order within.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Smallest and greatest designated timestamp of the source.
    pub time_range: (i64, i64),
    pub pieces: Vec<Piece>,
    /// Alive ones.
    pub rows: usize,
    /// Whether some rows are dead, so that the time range may be wider than that of the others.
    pub has_dead: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pruned {
    /// Segments in the snapshot's order, then runs in theirs.
    pub sources: Vec<Source>,
    pub counts: Counts,
}

/// Kept and present, for EXPLAIN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub segments: (usize, usize),
    pub blocks: (usize, usize),
    pub staged_rows: (usize, usize),
}

pub(crate) fn prune(snapshot: &TableSnapshot, predicates: &[Predicate], several: &[Several]) -> Result<Pruned> {
    let mut pruned = Pruned::default();
    let is_empty = predicates.iter().any(|p| no_symbol_matches(snapshot, p));
    let designated = snapshot.schema.designated;
    let may_match_times = |range: (i64, i64)| {
        let of_time = predicates.iter().filter(|p| Some(p.column) == designated);
        !is_empty
            && of_time.into_iter().all(|p| p.may_match_times(range.0, range.1))
            && several.iter().all(|several| several.asked.may_match_times(designated, range))
    };
    let mut kept = 0;
    for (index, segment) in snapshot.segments.iter().enumerate() {
        pruned.counts.blocks.1 += segment.block_count();
        if !may_match_times(segment.time_range()) {
            continue;
        }
        let mask = snapshot.mask(segment).map(AsRef::as_ref);
        let source = segment_source(index, segment, mask, predicates, several).map_err(|e| snapshot.named(e))?;
        if !source.pieces.is_empty() {
            kept += 1;
            pruned.counts.blocks.0 += source.pieces.len();
            pruned.sources.push(source);
        }
    }
    pruned.counts.segments = (kept, snapshot.segments.len());
    for (index, run) in snapshot.runs.iter().enumerate() {
        pruned.counts.staged_rows.1 += run.alive_rows();
        // Every row is NULL in a column that the run does not have.
        let matches_nothing = |p: &Predicate| run.column(p.column).is_none() && !p.is_true_of_null();
        if run.alive_rows() == 0 || !may_match_times(run.time_range) || predicates.iter().any(matches_nothing) {
            continue;
        }
        let source = run_source(index, run, designated, may_match_times);
        pruned.counts.staged_rows.0 += source.rows;
        if source.rows > 0 {
            pruned.sources.push(source);
        }
    }
    Ok(pruned)
}

/// A string that no row ever had is in no dictionary.
fn no_symbol_matches(snapshot: &TableSnapshot, predicate: &Predicate) -> bool {
    let ValueSet::Texts { texts, is_listed: true } = &predicate.values else { return false };
    let Some(symbols) = snapshot.symbols.get(&predicate.column) else { return false };
    !predicate.is_true_of_null() && texts.iter().all(|text| symbols.id_of(text).is_none())
}

fn segment_source(
    index: usize,
    segment: &Segment,
    mask: Option<&Mask>,
    predicates: &[Predicate],
    several: &[Several],
) -> tidalite_storage::Result<Source> {
    let (time_range, has_dead) = (segment.time_range(), mask.is_some());
    if predicates.is_empty() && several.is_empty() && mask.is_none() {
        let pieces = (0..segment.block_count()).map(|block| Piece::Block { segment: index, block });
        return Ok(Source { time_range, pieces: pieces.collect(), rows: segment.rows() as usize, has_dead });
    }
    let mut source = Source { time_range, pieces: Vec::new(), rows: 0, has_dead };
    let zones = if predicates.is_empty() { None } else { Some(segment.zones()?) };
    let of_columns = predicates.iter().zip(zones.iter().cycle());
    let of_columns: Vec<_> = of_columns.map(|(predicate, zones)| (predicate, zones.of(predicate.column))).collect();
    for block in 0..segment.block_count() {
        let rows = segment.block_rows(block);
        let alive = rows - mask.map_or(0, |mask| mask.dead_in_block(block));
        let mut may_match = alive > 0;
        for (predicate, zones) in &of_columns {
            may_match = may_match && predicate.may_match(zones.block(block)?.as_ref(), rows);
            if !may_match {
                break;
            }
        }
        let zone = |column: ColumnId| segment.zone(column, block);
        for several in several {
            may_match = may_match && several.asked.may_match(&zone, rows)?;
        }
        if may_match {
            source.pieces.push(Piece::Block { segment: index, block });
            source.rows += alive;
        }
    }
    Ok(source)
}

/// The pieces of a run; of a sorted one those whose times can match.
fn run_source(index: usize, run: &Run, designated: Option<ColumnId>, may_match: impl Fn((i64, i64)) -> bool) -> Source {
    let times = designated.map_or(&[][..], |id| run.timestamps(id));
    let (time_range, has_dead) = (run.time_range, run.dead.is_some());
    let mut source = Source { time_range, pieces: Vec::new(), rows: 0, has_dead };
    for from in (0..run.rows).step_by(BLOCK_ROWS) {
        let rows = BLOCK_ROWS.min(run.rows - from);
        let range = times.get(from).copied().zip(times.get(from + rows - 1).copied());
        if !run.is_sorted || range.is_none_or(&may_match) {
            source.pieces.push(Piece::Run { run: index, from, rows });
            source.rows += rows - run.dead.as_ref().map_or(0, |mask| mask.dead_in_block(from / BLOCK_ROWS));
        }
    }
    source
}

impl Source {
    /// Smallest and greatest designated timestamp of the pieces that are kept, narrower than the source's own.
    pub fn kept_range(&self, snapshot: &TableSnapshot, designated: ColumnId) -> Result<(i64, i64)> {
        if let Some(Piece::Block { segment, .. }) = self.pieces.first()
            && self.pieces.len() == snapshot.segments[*segment].block_count()
        {
            return Ok(self.time_range);
        }
        let bounds = |piece: Option<&Piece>| -> Result<Option<(i64, i64)>> {
            let Some(Piece::Block { segment, block }) = piece else { return Ok(None) };
            let zone = snapshot.segments[*segment].zone(designated, *block).map_err(|e| snapshot.named(e))?;
            Ok(zone.and_then(|zone| match zone.bounds {
                Bounds::Int(min, max) => Some((min, max)),
                _ => None,
            }))
        };
        let min = bounds(self.pieces.first())?.map_or(self.time_range.0, |b| b.0);
        let max = bounds(self.pieces.last())?.map_or(self.time_range.1, |b| b.1);
        Ok((min, max))
    }
}
