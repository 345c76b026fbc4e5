//! The staged rows in their final order. Rows stay in their runs and are identified by run and row.

use super::pieces::{BlockPlan, ByArrival, Piece};
use super::threads::{ORDERED_ROWS_MIN, Threads, for_each};
use crate::{Error, Result, Run, TableSnapshot};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::gather::{Deal, Place, gather_places, row_spans, scatter_places};
use tidalite_kernels::{is_sorted, merge_many, sort_permutation};
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, ColumnId, Values};

#[derive(Debug)]
pub(super) struct NewRows {
    pub rows: usize,
    /// Ascending; empty for a table without a designated timestamp.
    pub timestamps: Vec<i64>,
    runs: Arc<Vec<Arc<Run>>>,
    /// For each run, the number of rows before it.
    starts: Vec<usize>,
    /// The place of each row in order; `None` if `spans` has the places.
    places: Option<Vec<Place>>,
    /// Consecutive rows of one run, in order.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// Index of the first row; the span ends at the start of the next span.
    at: usize,
    place: Place,
}

/// Smallest average number of rows per part for which the rows of a run are merged as parts.
const PART_ROWS_MIN: usize = 256;

/// The new rows of a segment, which are reordered all at once.
#[derive(Debug)]
pub(super) struct NewInOrder {
    /// Index of the first row among all new rows.
    pub first: usize,
    deal: Deal,
}

/// Rows are far apart if this many consecutive stored rows contain only one row of a block.
const FAR_APART: usize = 2;
/// For fewer rows, storage order does not pay.
const ARRIVAL_ROWS_MIN: usize = 4096;

/// Rows of a time slice, in order of arrival.
struct Part {
    timestamps: Vec<i64>,
    places: Vec<Place>,
}

impl Part {
    fn with_capacity(rows: usize) -> Part {
        Part { timestamps: Vec::with_capacity(rows), places: Vec::with_capacity(rows) }
    }
}

/// Returns `parts - 1` timestamps that split the rows into parts of similar size.
fn cuts(timestamps: &[i64], parts: usize) -> Vec<i64> {
    const OF_EACH: usize = 64;
    let wanted = OF_EACH * parts;
    let mut sample: Vec<i64> = timestamps.iter().step_by((timestamps.len() / wanted).max(1)).copied().collect();
    sample.sort_unstable();
    (1..parts).map(|part| sample[sample.len() * part / parts]).collect()
}

impl NewRows {
    /// Collects the rows before `kept_from`, if it is given. With a designated timestamp, deleted rows are excluded.
    pub fn of(table: &TableSnapshot, kept_from: Option<i64>, threads: Threads<'_>) -> Result<NewRows> {
        let runs = table.runs.clone();
        let starts: Vec<usize> = runs.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.rows))).collect();
        let rows: usize = runs.iter().map(|r| r.rows).sum();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(tidalite_types::ErrorKind::Internal, format!("a merge of {rows} rows at once")));
        }
        let whole = |(run, at): (usize, &usize)| Span { at: *at, place: Place { run: run as u32, row: 0 } };
        let spans = starts.iter().enumerate().filter(|(run, _)| runs[*run].rows > 0).map(whole).collect();
        let mut new = NewRows { rows, timestamps: Vec::new(), runs, starts, places: None, spans };
        let Some(designated) = table.schema.designated else { return Ok(new) };
        if new.weave(designated, kept_from) {
            return Ok(new);
        }
        if kept_from.is_some() || new.runs.iter().any(|run| run.dead.is_some()) {
            new.pick(designated, kept_from, threads)?;
            return Ok(new);
        }
        new.timestamps.reserve_exact(rows);
        new.runs.iter().for_each(|r| new.timestamps.extend_from_slice(r.timestamps(designated)));
        // Many runs of a few rows each may also follow each other in order.
        if !is_sorted(&new.timestamps) {
            new.sort(threads)?;
        }
        Ok(new)
    }

    /// Merges spans if the rows of each run are sorted and adjacent, as rows of a connection are.
    ///
    /// Columns are then copied by spans.
    ///
    /// Returns false, without changes, if they are not.
    fn weave(&mut self, designated: ColumnId, kept_from: Option<i64>) -> bool {
        let Some(parts) = self.parts(designated, kept_from) else { return false };
        let keys = |(place, count): &(Place, usize)| {
            &self.runs[place.run as usize].timestamps(designated)[place.row as usize..][..*count]
        };
        let slices: Vec<&[i64]> = parts.iter().map(keys).collect();
        let Some(found) = merge_many(&slices) else { return false };
        let (mut timestamps, mut spans) = (Vec::with_capacity(slices.iter().map(|s| s.len()).sum()), Vec::new());
        for span in found {
            let Place { run, row } = parts[span.part as usize].0;
            spans.push(Span { at: timestamps.len(), place: Place { run, row: row + span.from as u32 } });
            timestamps.extend_from_slice(&slices[span.part as usize][span.from..][..span.count]);
        }
        (self.rows, self.timestamps, self.spans) = (timestamps.len(), timestamps, spans);
        true
    }

    /// Returns the rows before `kept_from` that are not deleted, in order of arrival, as ranges sorted by time.
    fn parts(&self, designated: ColumnId, kept_from: Option<i64>) -> Option<Vec<(Place, usize)>> {
        let mut parts = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            let timestamps = run.timestamps(designated);
            let dead = run.dead.as_ref().map_or_else(Vec::new, |mask| mask.ranges());
            if dead.len() * PART_ROWS_MIN > run.rows {
                return None;
            }
            let mut from = 0;
            for (end, next) in dead.iter().map(|(at, count)| (*at, at + count)).chain([(run.rows, run.rows)]) {
                let keys = &timestamps[from..end];
                if !is_sorted(keys) {
                    return None;
                }
                let count = kept_from.map_or(keys.len(), |kept| keys.partition_point(|ts| *ts < kept));
                if count > 0 {
                    parts.push((Place { run: index as u32, row: from as u32 }, count));
                }
                from = next;
            }
        }
        Some(parts)
    }

    fn pick(&mut self, designated: ColumnId, kept_from: Option<i64>, threads: Threads<'_>) -> Result<()> {
        let mut all: Vec<Place> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            for (row, &ts) in run.timestamps(designated).iter().enumerate() {
                if kept_from.is_none_or(|from| ts < from) && !run.is_dead(row) {
                    self.timestamps.push(ts);
                    all.push(Place { run: index as u32, row: row as u32 });
                }
            }
        }
        self.rows = all.len();
        self.places = Some(if is_sorted(&self.timestamps) { all } else { self.in_order(&all, threads)? });
        Ok(())
    }

    fn sort(&mut self, threads: Threads<'_>) -> Result<()> {
        let mut all = Vec::with_capacity(self.rows);
        for (run, of) in self.runs.iter().enumerate() {
            all.extend((0..of.rows as u32).map(|row| Place { run: run as u32, row }));
        }
        self.places = Some(self.in_order(&all, threads)?);
        Ok(())
    }

    /// Sorts the timestamps and returns the places, which have the initial order of the timestamps, in the same order.
    ///
    /// The time range is split into a part for each thread, with about the same number of rows. Each thread first
    /// distributes a range of the rows to the parts, and then sorts the rows of a part, which arrive range by range in
    /// order of arrival.
    fn in_order(&mut self, all: &[Place], threads: Threads<'_>) -> Result<Vec<Place>> {
        let count = threads.at_most(all.len() / ORDERED_ROWS_MIN).count;
        if count <= 1 {
            let order = sort_permutation(&self.timestamps);
            self.timestamps = order.iter().map(|&row| self.timestamps[row as usize]).collect();
            return Ok(order.iter().map(|&row| all[row as usize]).collect());
        }
        let (timestamps, stretch) = (std::mem::take(&mut self.timestamps), all.len().div_ceil(count));
        let cuts = cuts(&timestamps, count);
        let dealt = for_each(count, threads, |at| {
            let rows = stretch * at..(stretch * (at + 1)).min(all.len());
            let mut parts: Vec<Part> = (0..count).map(|_| Part::with_capacity(rows.len() / count * 9 / 8)).collect();
            for (ts, place) in timestamps[rows.clone()].iter().zip(&all[rows]) {
                let part = &mut parts[cuts.iter().filter(|cut| *cut <= ts).count()];
                part.timestamps.push(*ts);
                part.places.push(*place);
            }
            Ok(parts)
        })?;
        let sizes = (0..count).map(|part| dealt.iter().map(|parts| parts[part].places.len()).sum());
        let sizes: Vec<usize> = sizes.collect();
        self.timestamps = vec![0; all.len()];
        let mut places = vec![Place { run: 0, row: 0 }; all.len()];
        let (mut ts_left, mut places_left, mut slots) = (&mut self.timestamps[..], &mut places[..], Vec::new());
        for size in sizes {
            slots.push(Mutex::new((ts_left.split_off_mut(..size), places_left.split_off_mut(..size))));
        }
        for_each(count, threads, |at| {
            let mut slot = slots[at].lock().unwrap_or_else(PoisonError::into_inner);
            let (Some(ts_out), Some(places_out)) = (slot.0.take(), slot.1.take()) else { return Ok(()) };
            let of_part = || dealt.iter().map(|parts| &parts[at]);
            let keys: Vec<i64> = of_part().flat_map(|part| &part.timestamps).copied().collect();
            let values: Vec<Place> = of_part().flat_map(|part| &part.places).copied().collect();
            let order = sort_permutation(&keys);
            for ((row, ts), place) in order.iter().zip(ts_out).zip(places_out) {
                (*ts, *place) = (keys[*row as usize], values[*row as usize]);
            }
            Ok(())
        })?;
        Ok(places)
    }

    pub fn has(&self, id: ColumnId) -> bool {
        self.runs.iter().any(|r| r.column(id).is_some())
    }

    /// Returns an upper bound of the text bytes of a column in these rows.
    pub fn text_bytes(&self, id: ColumnId, pieces: &[Piece], most: usize) -> usize {
        let all: usize = self.runs.iter().filter_map(|r| r.column(id)).map(|c| c.byte_count()).sum();
        if all <= most {
            return if pieces.iter().any(|p| p.is_new) { all } else { 0 };
        }
        let text = |row: usize| {
            let place = self.place(row);
            match self.runs[place.run as usize].column(id).map(|c| &c.values) {
                Some(Values::Views(views)) => views.get(place.row as usize).len(),
                _ => 0,
            }
        };
        pieces.iter().filter(|p| p.is_new).flat_map(|p| p.range()).map(text).sum()
    }

    /// Returns the number of staged rows that arrived before a row.
    pub fn arrival(&self, row: usize) -> usize {
        let place = self.place(row);
        self.starts[place.run as usize] + place.row as usize
    }

    /// Returns true if some of these rows may be deleted.
    pub fn has_dead(&self) -> bool {
        self.timestamps.is_empty() && self.runs.iter().any(|run| run.dead.is_some())
    }

    pub fn is_dead(&self, row: usize) -> bool {
        let place = self.place(row);
        self.runs[place.run as usize].is_dead(place.row as usize)
    }

    /// Returns the storage order of a piece, used for all columns; `None` if rows are read in result order.
    pub fn by_arrival(&self, piece: Piece) -> Option<ByArrival> {
        let rows = piece.range();
        let is_worth_it = piece.is_new && (ARRIVAL_ROWS_MIN..=usize::from(u16::MAX) + 1).contains(&rows.len());
        let places = &self.places.as_ref().filter(|_| is_worth_it)?[rows];
        let arrivals: Vec<i64> =
            places.iter().map(|place| (self.starts[place.run as usize] + place.row as usize) as i64).collect();
        let order = sort_permutation(&arrivals);
        Some(ByArrival {
            places: order.iter().map(|&row| places[row as usize]).collect(),
            to: order.iter().map(|&row| row as u16).collect(),
        })
    }

    /// Returns the new rows of a segment if they are far apart, used for all columns; `None` if they are read block by
    /// block.
    pub fn deal(&self, blocks: &[BlockPlan]) -> Option<NewInOrder> {
        let places = self.places.as_ref()?;
        let pieces = || blocks.iter().flat_map(|block| &block.pieces).filter(|piece| piece.is_new);
        let (first, last) = (pieces().next()?.range().start, pieces().last()?.range().end);
        let count: usize = pieces().map(|piece| piece.range().len()).sum();
        // The rows of a single piece use `by_arrival`: they form one block, which fits the cache.
        if pieces().nth(1).is_none() || count < ARRIVAL_ROWS_MIN || last - first != count {
            return None;
        }
        let places = &places[first..last];
        let one_block = &places[..count.min(BLOCK_ROWS)];
        let spanned: usize = row_spans(one_block).iter().map(Range::len).sum();
        (spanned > FAR_APART * one_block.len()).then(|| NewInOrder { first, deal: Deal::new(places) })
    }

    /// Gathers the new rows of a segment for a column of fixed-width values.
    pub fn dealt(&self, id: ColumnId, rows: &NewInOrder, spare: &mut Values, out: &mut Column) {
        let columns: Vec<Option<&Column>> = self.runs.iter().map(|r| r.column(id).map(Arc::as_ref)).collect();
        rows.deal.gather(&columns, spare, out);
    }

    pub fn place(&self, row: usize) -> Place {
        match &self.places {
            Some(places) => places[row],
            None => {
                let Span { at, place } = self.spans[self.span_of(row)];
                Place { row: place.row + (row - at) as u32, ..place }
            }
        }
    }

    fn span_of(&self, row: usize) -> usize {
        self.spans.partition_point(|span| span.at <= row) - 1
    }

    /// Appends the rows of a piece. `by_arrival` describes the same rows.
    pub fn append(&self, id: ColumnId, piece: Piece, by_arrival: Option<&ByArrival>, out: &mut Column) {
        match &self.places {
            Some(places) => self.append_places(id, &places[piece.range()], by_arrival, out),
            None => self.append_range(id, piece, out),
        }
    }

    fn append_range(&self, id: ColumnId, piece: Piece, out: &mut Column) {
        let (mut from, end) = (piece.range().start, piece.range().end);
        if from == end {
            return;
        }
        let mut index = self.span_of(from);
        while from < end {
            let Span { at, place } = self.spans[index];
            let until = self.spans.get(index + 1).map_or(self.rows, |next| next.at).min(end);
            match self.runs[place.run as usize].column(id) {
                Some(column) => out.extend_from_range(column, place.row as usize + from - at, until - from),
                None => out.extend_null(until - from),
            }
            from = until;
            index += 1;
        }
    }

    fn append_places(&self, id: ColumnId, places: &[Place], by_arrival: Option<&ByArrival>, out: &mut Column) {
        let columns: Vec<Option<&Column>> = self.runs.iter().map(|r| r.column(id).map(Arc::as_ref)).collect();
        let before = out.len();
        match by_arrival.filter(|_| !matches!(out.values, Values::Bit(_) | Values::Views(_))) {
            Some(ByArrival { places, to }) => scatter_places(&columns, places, to, &mut out.values),
            None => gather_places(&columns, places, &mut out.values),
        }
        let has_nulls = columns.iter().any(|c| c.is_none_or(|c| c.validity.is_some()));
        match (&mut out.validity, has_nulls) {
            (None, false) => {}
            (Some(validity), false) => validity.extend_filled(places.len(), true),
            (validity, true) => {
                let validity = validity.get_or_insert_with(|| Bitmap::filled(before, true));
                let is_valid = |p: &Place| columns[p.run as usize].is_some_and(|c| c.is_valid(p.row as usize));
                places.iter().for_each(|place| validity.push(is_valid(place)));
            }
        }
    }
}
