//! The staged rows in the order they will have. They stay in their runs: a place says which and where.

use super::pieces::{BlockPlan, Piece};
use super::write::{Threads, for_each};
use crate::{Error, Result, Run, TableSnapshot};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::gather::{Deal, Place, gather_places, row_spans, scatter_places};
use tidalite_kernels::{is_sorted, merge_many, sort_permutation};
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, ColumnId, Values};

#[derive(Debug)]
pub(super) struct NewRows {
    pub rows: usize,
    /// In order; empty in a table without a designated timestamp.
    pub timestamps: Vec<i64>,
    runs: Arc<Vec<Arc<Run>>>,
    /// For each run the number of rows before it.
    starts: Vec<usize>,
    /// Of each row in order; absent where `spans` say it.
    places: Option<Vec<Place>>,
    /// Rows that lie one after the other, in order.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// The first of these rows; they end where the next span begins.
    at: usize,
    place: Place,
}

/// Rows of a run are taken as parts of it where there are at least so many for each on average.
const PART_ROWS_MIN: usize = 256;

/// The rows of a piece as they lie in their runs, and which row of the piece each becomes.
#[derive(Debug)]
pub(super) struct ByArrival {
    places: Vec<Place>,
    to: Vec<u16>,
}

/// The new rows of a segment, which are brought into order as a whole.
#[derive(Debug)]
pub(super) struct NewInOrder {
    /// The first of them among all new rows.
    pub first: usize,
    deal: Deal,
}

/// Rows are far apart when among so many that lie one after the other there is one of a block.
const FAR_APART: usize = 2;
/// For fewer rows it is not worth knowing in which order they lie.
const ARRIVAL_ROWS_MIN: usize = 4096;

/// Rows that are worth a thread to bring them into order.
pub(super) const ORDERED_ROWS_MIN: usize = 1 << 15;

/// Rows of a stretch of time, as they arrived.
struct Part {
    timestamps: Vec<i64>,
    places: Vec<Place>,
}

impl Part {
    fn with_capacity(rows: usize) -> Part {
        Part { timestamps: Vec::with_capacity(rows), places: Vec::with_capacity(rows) }
    }
}

/// One fewer timestamps than parts, which cut the rows into parts of about the same size.
fn cuts(timestamps: &[i64], parts: usize) -> Vec<i64> {
    const OF_EACH: usize = 64;
    let wanted = OF_EACH * parts;
    let mut sample: Vec<i64> = timestamps.iter().step_by((timestamps.len() / wanted).max(1)).copied().collect();
    sample.sort_unstable();
    (1..parts).map(|part| sample[sample.len() * part / parts]).collect()
}

impl NewRows {
    /// The rows before `kept_from` if that is given. Dead ones are not among them in a table with a designated timestamp.
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
        // Also very many runs of a few rows each may follow one another.
        if !is_sorted(&new.timestamps) {
            new.sort(threads)?;
        }
        Ok(new)
    }

    /// Where the rows of each run are in order and lie together, as those of a connection do: finds the spans, which
    /// columns are copied by. `false` where they are not, and nothing was done.
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

    /// The rows before `kept_from` that are not dead, in order of arrival, as ranges that are in order of time.
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

    /// Brings the timestamps into order; gives the places, which were as these were, in the same order.
    ///
    /// The time is cut into a part for each thread, of about as many rows. Each first deals a stretch of the rows out to the
    /// parts; then each puts the rows of a part, which come stretch by stretch as they arrived, in order.
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

    /// Bytes of text of a column in these rows, or more.
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

    /// How many staged rows arrived before a row.
    pub fn arrival(&self, row: usize) -> usize {
        let place = self.place(row);
        self.starts[place.run as usize] + place.row as usize
    }

    /// Whether some of these rows may be dead.
    pub fn has_dead(&self) -> bool {
        self.timestamps.is_empty() && self.runs.iter().any(|run| run.dead.is_some())
    }

    pub fn is_dead(&self, row: usize) -> bool {
        let place = self.place(row);
        self.runs[place.run as usize].is_dead(place.row as usize)
    }

    /// For all columns of a piece; `None` where they are read as they come.
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

    /// For all columns of a segment: its new rows, if they lie far apart; `None` where they are read block by block.
    pub fn deal(&self, blocks: &[BlockPlan]) -> Option<NewInOrder> {
        let places = self.places.as_ref()?;
        let pieces = || blocks.iter().flat_map(|block| &block.pieces).filter(|piece| piece.is_new);
        let (first, last) = (pieces().next()?.range().start, pieces().last()?.range().end);
        let count: usize = pieces().map(|piece| piece.range().len()).sum();
        // The rows of one piece are taken as they arrived (`by_arrival`): they become one block, which the cache holds.
        if pieces().nth(1).is_none() || count < ARRIVAL_ROWS_MIN || last - first != count {
            return None;
        }
        let places = &places[first..last];
        let one_block = &places[..count.min(BLOCK_ROWS)];
        let spanned: usize = row_spans(one_block).iter().map(Range::len).sum();
        (spanned > FAR_APART * one_block.len()).then(|| NewInOrder { first, deal: Deal::new(places) })
    }

    /// The new rows of a segment, for columns of values of a fixed width.
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

    /// Appends the rows of a piece; `by_arrival` are the same.
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
