//! The staged rows in the order they will have. They stay in their runs: a place says which and where.

use super::pieces::{BlockPlan, Piece};
use crate::{Error, Result, Run, TableSnapshot};
use std::sync::Arc;
use tidalite_kernels::gather::{Deal, Place, gather_places, scatter_places};
use tidalite_kernels::{is_sorted, sort_permutation};
use tidalite_types::{Bitmap, Column, ColumnId, Values};

#[derive(Debug)]
pub(super) struct NewRows {
    pub rows: usize,
    /// In order; empty in a table without a designated timestamp.
    pub timestamps: Vec<i64>,
    runs: Arc<Vec<Arc<Run>>>,
    /// For each run the number of rows before it.
    starts: Vec<usize>,
    /// Of each row in order; absent when the runs are in order as they are, all rows of them.
    places: Option<Vec<Place>>,
}

/// The rows of a piece as they lie in their runs, and which row of the piece each becomes.
#[derive(Debug)]
pub(super) struct ByArrival {
    places: Vec<Place>,
    to: Vec<u16>,
}

/// Rows are far apart when among so many that lie one after the other there is one of a block.
const FAR_APART: usize = 2;
/// For fewer rows it is not worth knowing in which order they lie.
const ARRIVAL_ROWS_MIN: usize = 4096;

impl NewRows {
    /// The rows before `kept_from` if that is given. Dead ones are not among them in a table with a designated timestamp.
    pub fn of(table: &TableSnapshot, kept_from: Option<i64>) -> Result<NewRows> {
        let runs = table.runs.clone();
        let starts: Vec<usize> = runs.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.rows))).collect();
        let rows: usize = runs.iter().map(|r| r.rows).sum();
        if u32::try_from(rows).is_err() {
            return Err(Error::new(tidalite_types::ErrorKind::Internal, format!("a merge of {rows} rows at once")));
        }
        let mut new = NewRows { rows, timestamps: Vec::new(), runs, starts, places: None };
        let Some(designated) = table.schema.designated else { return Ok(new) };
        if kept_from.is_some() || new.runs.iter().any(|run| run.dead.is_some()) {
            new.pick(designated, kept_from);
            return Ok(new);
        }
        new.timestamps.reserve_exact(rows);
        new.runs.iter().for_each(|r| new.timestamps.extend_from_slice(r.timestamps(designated)));
        if !is_sorted(&new.timestamps) {
            new.sort();
        }
        Ok(new)
    }

    fn pick(&mut self, designated: ColumnId, kept_from: Option<i64>) {
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
        self.places = Some(if is_sorted(&self.timestamps) { all } else { self.in_order(&all) });
    }

    fn sort(&mut self) {
        let mut all = Vec::with_capacity(self.rows);
        for (run, of) in self.runs.iter().enumerate() {
            all.extend((0..of.rows as u32).map(|row| Place { run: run as u32, row }));
        }
        self.places = Some(self.in_order(&all));
    }

    /// Brings the timestamps into order; gives the places, which were as these were, in the same order.
    fn in_order(&mut self, all: &[Place]) -> Vec<Place> {
        let order = sort_permutation(&self.timestamps);
        self.timestamps = order.iter().map(|&row| self.timestamps[row as usize]).collect();
        order.iter().map(|&row| all[row as usize]).collect()
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
        self.places.as_ref().map_or(row, |places| self.starts[places[row].run as usize] + places[row].row as usize)
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

    /// For all columns of a segment of new rows alone that lie far apart; `None` where they are read block by block.
    pub fn deal(&self, blocks: &[BlockPlan]) -> Option<Deal> {
        let is_whole =
            |block: &BlockPlan| matches!(block.pieces[..], [Piece { is_new: true, .. }]) && block.picks.is_none();
        let places = self.places.as_ref().filter(|_| blocks.len() > 1 && blocks.iter().all(is_whole))?;
        let rows = blocks[0].pieces[0].range().start..blocks[blocks.len() - 1].pieces[0].range().end;
        let count: usize = blocks.iter().map(|block| block.rows).sum();
        let places = places.get(rows).filter(|places| places.len() == count)?;
        // From the first to the last row of each run that the first block has.
        let mut spans = vec![(u32::MAX, 0); self.runs.len()];
        for place in &places[..blocks[0].rows] {
            let (lo, hi) = &mut spans[place.run as usize];
            (*lo, *hi) = ((*lo).min(place.row), (*hi).max(place.row));
        }
        let spanned: usize = spans.iter().map(|(lo, hi)| (hi + 1).saturating_sub(*lo) as usize).sum();
        (spanned > FAR_APART * blocks[0].rows).then(|| Deal::new(places))
    }

    /// The rows of a segment, for columns of values of a fixed width.
    pub fn dealt(&self, id: ColumnId, deal: &Deal, spare: &mut Values, out: &mut Column) {
        let columns: Vec<Option<&Column>> = self.runs.iter().map(|r| r.column(id).map(Arc::as_ref)).collect();
        deal.gather(&columns, spare, out);
    }

    pub fn place(&self, row: usize) -> Place {
        match &self.places {
            Some(places) => places[row],
            None => {
                let run = self.starts.partition_point(|&start| start <= row) - 1;
                Place { run: run as u32, row: (row - self.starts[run]) as u32 }
            }
        }
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
        let mut index = self.starts.partition_point(|&start| start <= from) - 1;
        while from < end {
            let (run, start) = (&self.runs[index], self.starts[index]);
            let count = (start + run.rows - from).min(end - from);
            match run.column(id) {
                Some(column) => out.extend_from_range(column, from - start, count),
                None => out.extend_null(count),
            }
            from += count;
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
