//! Reads the rows of many small commits of one table as one run.
//!
//! A log of ten thousand tables with one row per second each has millions of runs of one row. Creating these runs and
//! joining them later took ten times as long as reading the values.

use super::columns::decode_column_onto;
use super::record::{RunHead, decode_column_head};
use std::sync::Arc;
use tidalite_storage::Run;
use tidalite_storage::codec::{Decoder, Malformed};
use tidalite_types::{Column, ColumnId, Txn};

/// Number of rows of one commit from which on they form a separate run, because copying them gains nothing.
const OWN_RUN_ROWS: usize = 512;
/// Number of rows at which a run is ended. Runs of this size are not joined with others in staging.
const RUN_ROWS_MAX: usize = 1 << 13;

#[derive(Debug)]
pub struct Gathered {
    rows: usize,
    txns: (Txn, Txn),
    time_range: (i64, i64),
    is_sorted: bool,
    columns: Vec<(ColumnId, Column)>,
}

impl Gathered {
    /// Returns true if collecting the rows pays.
    #[must_use]
    pub fn is_for(head: &RunHead) -> bool {
        head.rows < OWN_RUN_ROWS
    }

    /// Starts with the rows of `head`.
    pub fn begin(head: &RunHead, d: &mut Decoder<'_>) -> Result<Gathered, Malformed> {
        let RunHead { txns, time_range, .. } = *head;
        let mut gathered = Gathered { rows: 0, txns, time_range, is_sorted: true, columns: Vec::new() };
        gathered.append(head, d)?;
        Ok(gathered)
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows >= RUN_ROWS_MAX
    }

    /// Appends the columns of `head` from the front of `d`: rows of a later commit, or later rows of the last one.
    pub fn append(&mut self, head: &RunHead, d: &mut Decoder<'_>) -> Result<(), Malformed> {
        let rows = self.rows + head.rows;
        for at in 0..head.columns as usize {
            let (id, physical) = decode_column_head(d)?;
            // Commits of a table usually have the same columns in the same order.
            let found = match self.columns.get(at) {
                Some((known, _)) if *known == id => Some(at),
                _ => self.columns.iter().position(|(known, _)| *known == id),
            };
            let found = found.unwrap_or_else(|| {
                let mut column = Column::with_capacity(physical, head.rows);
                column.extend_null(self.rows);
                self.columns.push((id, column));
                self.columns.len() - 1
            });
            let column = &mut self.columns[found].1;
            if column.values.physical() != physical || column.len() != self.rows {
                return Err(Malformed("column"));
            }
            decode_column_onto(&mut d.rest, head.rows, column).map_err(|_| Malformed("column"))?;
        }
        if self.columns.len() > head.columns as usize {
            let lacking = self.columns.iter_mut().filter(|(_, column)| column.len() < rows);
            lacking.for_each(|(_, column)| column.extend_null(head.rows));
        }
        self.is_sorted &= head.is_sorted && (self.rows == 0 || self.time_range.1 <= head.time_range.0);
        self.time_range = (self.time_range.0.min(head.time_range.0), self.time_range.1.max(head.time_range.1));
        (self.rows, self.txns.1) = (rows, head.txns.1);
        Ok(())
    }

    #[must_use]
    pub fn end(self) -> Run {
        let Gathered { rows, txns, time_range, is_sorted, columns } = self;
        let columns = columns.into_iter().map(|(id, column)| (id, Arc::new(column))).collect();
        Run { rows, txns, time_range, is_sorted, columns, dead: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::record::{Front, Op, decode_front, encode_op};
    use tidalite_storage::codec::Encoder;
    use tidalite_storage::staging::join;
    use tidalite_types::{TableId, Values};

    fn run(txn: u64, times: &[i64], columns: Vec<(u32, Column)>) -> Arc<Run> {
        let time = (ColumnId(0), Arc::new(Column::new(Values::I64(times.to_vec()))));
        let others = columns.into_iter().map(|(id, column)| (ColumnId(id), Arc::new(column)));
        Arc::new(Run {
            rows: times.len(),
            txns: (Txn(txn), Txn(txn)),
            time_range: (times.iter().copied().min().unwrap(), times.iter().copied().max().unwrap()),
            is_sorted: times.is_sorted(),
            columns: std::iter::once(time).chain(others).collect(),
            dead: None,
        })
    }

    fn doubles(values: &[Option<f64>]) -> Column {
        let mut column = Column::with_capacity(tidalite_types::column_type::Physical::F64, values.len());
        for value in values {
            match value {
                Some(value) => column.extend_from_range(&Column::new(Values::F64(vec![*value])), 0, 1),
                None => column.extend_null(1),
            }
        }
        column
    }

    fn texts(values: &[&str]) -> Column {
        let mut views = tidalite_types::Views::new();
        values.iter().for_each(|value| views.push(value.as_bytes()));
        Column::new(Values::Views(views))
    }

    fn gathered(runs: &[Arc<Run>]) -> Result<Run, Malformed> {
        let mut gathered: Option<Gathered> = None;
        for run in runs {
            let mut e = Encoder::new();
            encode_op(&Op::Rows { table: TableId(7), run: Run::clone(run) }, &mut e);
            let mut d = Decoder::new(&e.bytes);
            let Front::Rows(TableId(7), head) = decode_front(&mut d)? else { panic!("they are rows") };
            match &mut gathered {
                Some(gathered) => gathered.append(&head, &mut d)?,
                None => gathered = Some(Gathered::begin(&head, &mut d)?),
            }
            assert!(d.rest.is_empty());
        }
        Ok(gathered.expect("there are runs").end())
    }

    /// Compares with the join in staging.
    fn check(runs: &[Arc<Run>]) {
        let (found, joined) = (gathered(runs).unwrap(), join(runs));
        assert_eq!(
            (found.rows, found.txns, found.time_range, found.is_sorted),
            (joined.rows, joined.txns, joined.time_range, joined.is_sorted)
        );
        assert_eq!(found.columns.len(), joined.columns.len());
        for (id, column) in &joined.columns {
            assert_eq!(found.column(*id), Some(column), "{id}");
        }
    }

    #[test]
    fn rows_of_many_commits_are_what_joining_their_runs_gives() {
        check(&[run(3, &[5], vec![(1, doubles(&[Some(1.5)]))]), run(4, &[6], vec![(1, doubles(&[Some(2.0)]))])]);
        // Out of order; later sorted rows do not change that.
        check(&[run(3, &[5, 7], vec![]), run(4, &[6], vec![]), run(9, &[8], vec![])]);
        // Columns that appear, disappear, and change their order; NULLs; text.
        check(&[
            run(1, &[1], vec![(1, doubles(&[Some(-0.0)])), (2, texts(&["a"]))]),
            run(2, &[2], vec![(2, texts(&["one that is longer than twelve"])), (1, doubles(&[Some(1e300)]))]),
            run(3, &[3], vec![(5, doubles(&[None]))]),
            run(4, &[4, 4], vec![(1, doubles(&[None, Some(4.0)])), (5, doubles(&[Some(7.0), Some(8.0)]))]),
            run(5, &[5], vec![(1, doubles(&[Some(1.0)]))]),
        ]);
    }

    #[test]
    fn a_column_that_changes_its_type_or_comes_twice_is_refused() {
        let text = run(2, &[2], vec![(1, texts(&["x"]))]);
        assert!(gathered(&[run(1, &[1], vec![(1, doubles(&[Some(1.0)]))]), text]).is_err());
        let twice = vec![(1, doubles(&[Some(1.0)])), (1, doubles(&[Some(1.0)]))];
        assert!(gathered(&[run(1, &[1], twice)]).is_err());
    }
}
