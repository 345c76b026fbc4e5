//! Gathers rows of several columns in an order that is far from their storage order.
//!
//! A direct gather would read each line of memory as often as the line has rows in different blocks of the result. A
//! `Deal` reads the rows once in storage order and distributes them to parts of the result like a radix sort. A part
//! fits the second-level cache and is then brought into order.

use super::Place;
use crate::sort_permutation;
use std::ops::Range;
use tidalite_types::{Bitmap, Column, Values};

/// Rows of a part of the result. Smaller parts mean more parts written at the same time than the cache holds lines.
const PART_ROWS: usize = 1 << 15;
/// The number of a row in its part fits two bytes.
const _: () = assert!(PART_ROWS <= 1 << 15);
/// Storage order is found by direct addressing if the spans have at most this many rows per place.
const SPARSE: usize = 4;

/// An order of rows of several columns, used for all of their columns.
#[derive(Debug)]
pub struct Deal {
    /// Consecutive rows of a run: the run, and the end of its rows in `rows`.
    runs: Vec<(u32, usize)>,
    /// Rows in storage order.
    rows: Vec<u32>,
    /// Target position of each row of `rows`. The rows of a part are in storage order.
    dealt_to: Vec<u32>,
    /// For each row of the result: its position in its part after the distribution.
    picks: Vec<u16>,
}

impl Deal {
    /// Creates the order `places`.
    ///
    /// # Panics
    /// Panics if the number of places does not fit 32 bits, and in most cases if a row occurs twice.
    #[must_use]
    pub fn new(places: &[Place]) -> Deal {
        let count = places.len();
        assert!(u32::try_from(count).is_ok(), "{count} places");
        let (rows, dealt_to) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut deal = Deal { runs: Vec::new(), rows, dealt_to, picks: vec![0; count] };
        let mut next: Vec<u32> = (0..count as u32).step_by(PART_ROWS).collect();
        in_order_of_lying(places, |run, row, wanted| {
            match deal.runs.last_mut() {
                Some((last, end)) if *last == run => *end += 1,
                _ => deal.runs.push((run, deal.rows.len() + 1)),
            }
            let next = &mut next[wanted as usize / PART_ROWS];
            deal.rows.push(row);
            deal.dealt_to.push(*next);
            deal.picks[wanted as usize] = *next as u16 % PART_ROWS as u16;
            *next += 1;
        });
        assert_eq!(deal.rows.len(), count, "rows without those that come twice");
        deal
    }

    /// Writes the rows of a column to `out`, replacing its content. Rows of a run without the column are NULL.
    ///
    /// `dealt` is scratch memory of the same type.
    ///
    /// # Panics
    /// Panics if a place is past the end of its column, and for values without a fixed width.
    pub fn gather(&self, runs: &[Option<&Column>], dealt: &mut Values, out: &mut Column) {
        macro_rules! fill {
            ($($kind:ident),*) => {
                match (dealt, &mut out.values) {
                    $((Values::$kind(dealt), Values::$kind(out)) => {
                        let slices: Vec<&[_]> = runs.iter().map(|run| match run.map(|c| &c.values) {
                            Some(Values::$kind(values)) => values.as_slice(),
                            None => &[],
                            Some(other) => unreachable!("{:?} in a column of another type", other.physical()),
                        }).collect();
                        self.values(&slices, dealt, out);
                    })*
                    (_, other) => unreachable!("values of {:?} dealt", other.physical()),
                }
            };
        }
        fill!(I8, I16, I32, I64, I128, F32, F64, U32, B16);
        let has_nulls = runs.iter().any(|run| run.is_none_or(|column| column.validity.is_some()));
        out.validity = has_nulls.then(|| self.validity(runs));
    }

    fn values<T: Copy + Default>(&self, runs: &[&[T]], dealt: &mut Vec<T>, out: &mut Vec<T>) {
        // Old values are overwritten, so the memory need not be cleared.
        dealt.resize(self.rows.len().next_multiple_of(PART_ROWS).max(dealt.len()), T::default());
        let mut at = 0;
        for &(run, end) in &self.runs {
            let (run, rows, dealt_to) = (runs[run as usize], &self.rows[at..end], &self.dealt_to[at..end]);
            match run.is_empty() {
                true => dealt_to.iter().for_each(|to| dealt[*to as usize] = T::default()),
                false => rows.iter().zip(dealt_to).for_each(|(row, to)| dealt[*to as usize] = run[*row as usize]),
            }
            at = end;
        }
        out.clear();
        out.reserve(self.picks.len());
        for (picks, part) in self.picks.chunks(PART_ROWS).zip(dealt.as_chunks::<PART_ROWS>().0) {
            out.extend(picks.iter().map(|pick| part[usize::from(*pick) % PART_ROWS]));
        }
    }

    fn validity(&self, runs: &[Option<&Column>]) -> Bitmap {
        let mut dealt = Bitmap::filled(self.rows.len(), true);
        let mut at = 0;
        for &(run, end) in &self.runs {
            let column = runs[run as usize];
            for (row, to) in self.rows[at..end].iter().zip(&self.dealt_to[at..end]) {
                if column.is_none_or(|column| !column.is_valid(*row as usize)) {
                    dealt.set(*to as usize, false);
                }
            }
            at = end;
        }
        let is_valid = |(at, pick): (usize, &u16)| dealt.get(at / PART_ROWS * PART_ROWS + usize::from(*pick));
        self.picks.iter().enumerate().map(is_valid).collect()
    }
}

/// Returns the span of requested rows for each run, up to the last run with a place.
///
/// The span of a run without places is empty.
#[must_use]
pub fn row_spans(places: &[Place]) -> Vec<Range<u32>> {
    let run_count = places.iter().map(|place| place.run as usize + 1).max().unwrap_or(0);
    let mut spans = vec![(u32::MAX, 0); run_count];
    for place in places {
        let (start, end) = &mut spans[place.run as usize];
        (*start, *end) = ((*start).min(place.row), (*end).max(place.row + 1));
    }
    spans.into_iter().map(|(start, end)| start.min(end)..end).collect()
}

/// Calls `each` with the run, row and index of each place, in order of run and row.
fn in_order_of_lying(places: &[Place], mut each: impl FnMut(u32, u32, u32)) {
    let spans = row_spans(places);
    let spanned: usize = spans.iter().map(Range::len).sum();
    if spanned > SPARSE * places.len() {
        let keys: Vec<i64> = places.iter().map(|p| i64::from(p.run) << 32 | i64::from(p.row)).collect();
        for wanted in sort_permutation(&keys) {
            let Place { run, row } = places[wanted as usize];
            each(run, row, wanted);
        }
        return;
    }
    const NONE: u32 = u32::MAX;
    let froms: Vec<usize> = spans.iter().scan(0, |at, span| Some(std::mem::replace(at, *at + span.len()))).collect();
    let mut wanted_at = vec![NONE; spanned];
    for (wanted, place) in places.iter().enumerate() {
        let run = place.run as usize;
        wanted_at[froms[run] + (place.row - spans[run].start) as usize] = wanted as u32;
    }
    for (run, (span, from)) in spans.iter().zip(froms).enumerate() {
        for (row, &wanted) in span.clone().zip(&wanted_at[from..from + span.len()]) {
            if wanted != NONE {
                each(run as u32, row, wanted);
            }
        }
    }
}
