//! Splits the rows of a frame into commits.
//!
//! Input: record batches of any size. Output: the batches of one commit at a time. Small batches are collected, so that
//! a frame in many small pieces does not become as many runs; large ones are split, so that rows are written to disk
//! while the next ones are converted.

use crate::room::{COMMIT_BYTES_MAX, Room, too_much};
use crate::{Error, Result, RowPlan};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use tidalite_types::command::CreateTable;
use tidalite_types::{Batch, PartitionBy};

/// Smallest (if more rows follow) and largest number of rows of one batch.
const ROWS_MIN: usize = 128 << 10;
const ROWS_MAX: usize = 1 << 20;
/// Size of a commit in bytes, unless all rows must be in one commit.
const COMMIT_BYTES: usize = 64 << 20;
/// Largest number of rows of a commit, because their line numbers are held, too.
const COMMIT_ROWS_MAX: usize = 128 << 20;

#[derive(Debug)]
pub struct Pieces {
    plan: RowPlan,
    /// True if all rows must be in one commit.
    is_atomic: bool,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    batches: Vec<Batch>,
    /// Bytes of `batches`, excluding line numbers, which are not kept.
    bytes: usize,
    held_rows: usize,
    rows: u64,
    /// Number of rows before these in another frame, for error messages.
    first: u64,
    commit_bytes_max: usize,
}

impl Pieces {
    #[must_use]
    pub fn new(plan: RowPlan, is_atomic: bool) -> Pieces {
        Pieces {
            plan,
            is_atomic,
            waiting: Vec::new(),
            waiting_rows: 0,
            batches: Vec::new(),
            bytes: 0,
            held_rows: 0,
            rows: 0,
            first: 0,
            commit_bytes_max: COMMIT_BYTES_MAX,
        }
    }

    /// Starts the row numbers at `first`, for rows that continue another frame.
    #[must_use]
    pub fn from_row(self, first: u64) -> Pieces {
        Pieces { first, ..self }
    }

    /// Returns the number of rows taken so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows + self.waiting_rows as u64
    }

    /// Returns the memory of converted rows that were not yet committed.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes + self.held_rows * 4
    }

    /// Takes rows, and calls `commit` with each complete commit.
    ///
    /// # Errors
    /// Fails like [`RowPlan::batch`], if one commit would be too large, or if `commit` fails.
    pub fn push<E: From<Error>>(
        &mut self,
        rows: RecordBatch,
        commit: &mut impl FnMut(Vec<Batch>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        while at < rows.num_rows() {
            let count = (rows.num_rows() - at).min(ROWS_MAX - self.waiting_rows);
            self.waiting.push(rows.slice(at, count));
            self.waiting_rows += count;
            at += count;
            if self.waiting_rows >= ROWS_MIN {
                self.convert()?;
                if !self.is_atomic && self.bytes >= COMMIT_BYTES {
                    (self.bytes, self.held_rows) = (0, 0);
                    commit(std::mem::take(&mut self.batches))?;
                }
            }
        }
        Ok(())
    }

    /// Calls `commit` with the remaining rows.
    ///
    /// # Errors
    /// Fails like [`Pieces::push`].
    pub fn finish<E: From<Error>>(&mut self, commit: &mut impl FnMut(Vec<Batch>) -> Result<(), E>) -> Result<(), E> {
        self.convert()?;
        (self.bytes, self.held_rows) = (0, 0);
        if self.batches.is_empty() { Ok(()) } else { commit(std::mem::take(&mut self.batches)) }
    }

    fn convert(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_rows = 0;
        let joined = match &waiting[..] {
            [] => return Ok(()),
            [one] => one.clone(),
            [first, ..] => concat_batches(&first.schema(), &waiting)
                .map_err(|e| Error::new(format!("cannot join the rows: {e}")))?,
        };
        let mut room = Room::new(self.commit_bytes_max, self.bytes);
        let batch = self.plan.batch_within(&joined, self.first + self.rows, &mut room)?;
        self.rows += joined.num_rows() as u64;
        self.held_rows += joined.num_rows();
        self.bytes += batch.byte_count() - batch.lines.len() * 4;
        if self.bytes > self.commit_bytes_max || self.held_rows > COMMIT_ROWS_MAX {
            return Err(too_much(self.commit_bytes_max));
        }
        self.batches.push(batch);
        Ok(())
    }
}

impl RowPlan {
    /// Returns the table for rows of this plan.
    #[must_use]
    pub fn table(&self, partition_by: PartitionBy) -> CreateTable {
        let designated = self.designated().map(str::to_owned);
        CreateTable {
            name: self.name().to_owned(),
            columns: self.columns().map(|(name, column_type)| (name.to_owned(), column_type)).collect(),
            partition_by: if designated.is_some() { partition_by } else { PartitionBy::None },
            designated,
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
            if_not_exists: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RowOptions, Symbols};
    use arrow::array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, ListViewArray, NullArray, RunArray,
        StringArray, StringViewArray,
    };
    use arrow::datatypes::{DataType, Field, Int8Type, Int32Type};
    use std::sync::Arc;

    fn rows(from: i64, count: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + count));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    fn commits(batches: Vec<RecordBatch>, is_atomic: bool) -> Vec<Vec<usize>> {
        let options = RowOptions { table: "t".to_owned(), at: None, symbols: Symbols::Auto };
        let plan = RowPlan::new(&batches[0].schema(), &options, None).unwrap();
        let mut pieces = Pieces::new(plan, is_atomic);
        let (mut commits, mut next) = (Vec::new(), 0);
        let mut commit = |batches: Vec<Batch>| {
            for batch in &batches {
                let tidalite_types::Values::I64(values) = &batch.columns[0].column.values else { panic!() };
                assert!(values.iter().copied().eq(next..next + values.len() as i64));
                assert_eq!(batch.lines.first().copied(), Some(next as u32 + 1));
                next += values.len() as i64;
            }
            commits.push(batches.iter().map(|b| b.rows).collect());
            Ok::<(), Error>(())
        };
        for batch in batches {
            pieces.push(batch, &mut commit).unwrap();
        }
        pieces.finish(&mut commit).unwrap();
        commits
    }

    #[test]
    fn small_pieces_are_joined_and_large_ones_cut() {
        let small = (0..10).map(|i| rows(i * 1000, 1000)).collect();
        assert_eq!(commits(small, false), [[10_000]]);
        let large = 9 * ROWS_MAX as i64 + 5;
        let all = commits(vec![rows(0, large)], true);
        assert_eq!(all.len(), 1);
        assert_eq!(all.concat().iter().sum::<usize>(), large as usize);
        let parts = commits(vec![rows(0, large)], false);
        assert!(parts.len() > 1 && parts.concat() == all.concat());
    }

    #[test]
    fn what_is_too_much_for_one_commit_is_refused() {
        let options = RowOptions { table: "t".to_owned(), at: None, symbols: Symbols::Auto };
        let some = rows(0, ROWS_MIN as i64);
        let mut pieces = Pieces::new(RowPlan::new(&some.schema(), &options, None).unwrap(), true);
        pieces.commit_bytes_max = 4 << 20;
        let mut push = || pieces.push(some.clone(), &mut |_| Ok::<(), Error>(()));
        let errors: Vec<_> = (0..5).map(|_| push().err().map(|e| e.message)).collect();
        assert_eq!(errors[..4], [None, None, None, None]);
        assert_eq!(errors[4].as_deref(), Some("one commit may have 4 MiB, the rows are more"));
    }

    /// Returns the error of a commit of at most 1 MiB for a column.
    fn refusal(column: ArrayRef, symbols: Symbols) -> Option<String> {
        let rows = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let options = RowOptions { table: "t".to_owned(), at: None, symbols };
        let mut pieces = Pieces::new(RowPlan::new(&rows.schema(), &options, None).unwrap(), true);
        pieces.commit_bytes_max = 1 << 20;
        let keep = &mut |_| Ok::<(), Error>(());
        pieces.push(rows, keep).and_then(|()| pieces.finish(keep)).err().map(|e| e.message)
    }

    #[test]
    fn few_bytes_that_stand_for_many_are_refused_before_they_are_made() {
        // Each would be 10 GB or more.
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        let rows = 10_000;
        let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(vec![0; rows].into(), long.clone()));
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&vec![rows as i32].into(), &long).unwrap());
        let view = StringViewArray::from_iter_values(["y".repeat(1 << 20)]);
        let views: ArrayRef =
            Arc::new(StringViewArray::new(vec![view.views()[0]; rows].into(), view.data_buffers().to_vec(), None));
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 1 << 17]));
        let lists: ArrayRef =
            Arc::new(ListViewArray::new(item, vec![0; rows].into(), vec![1 << 17; rows].into(), numbers, None));
        let flags: ArrayRef =
            Arc::new(RunArray::<Int32Type>::try_new(&vec![i32::MAX].into(), &BooleanArray::from(vec![true])).unwrap());
        for (column, symbols) in [
            (dictionary, Symbols::None),
            (runs, Symbols::Auto),
            (views, Symbols::Auto),
            (lists, Symbols::Auto),
            (flags, Symbols::Auto),
        ] {
            let said = refusal(column, symbols);
            assert!(
                said.as_deref().is_some_and(|m| m.ends_with("one commit may have 1 MiB, the rows are more")),
                "{said:?}"
            );
        }
        // As symbols the text is stored once.
        let short: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 19)]));
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&vec![rows as i32].into(), &short).unwrap());
        assert_eq!(refusal(runs, Symbols::All), None);
    }

    #[test]
    fn rows_of_no_column_are_refused() {
        let rows = RecordBatch::try_from_iter([("c", Arc::new(NullArray::new(5)) as ArrayRef)]).unwrap();
        let options = RowOptions { table: "t".to_owned(), at: None, symbols: Symbols::Auto };
        let refused = RowPlan::new(&rows.schema(), &options, None).unwrap_err();
        assert_eq!(refused.message, "the frame has no column of a type that could be written");
    }
}
