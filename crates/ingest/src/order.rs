//! Sorts the rows of a batch by time, and restores the order of their lines.
//!
//! The parsing thread sorts rows that are not in time order while they are in the CPU cache, so that merges copy ranges
//! of rows instead of searching each row. An error names the first rejected line, and the preceding rows may be kept:
//! then the rows are first restored to the order of their lines.

use tidalite_kernels::gather::{gather_into, gather_slice};
use tidalite_kernels::{is_sorted, sort_permutation};
use tidalite_storage::staging::stays_alone;
use tidalite_types::{Batch, Column};

/// Sorts by time; rows with equal times keep their order.
///
/// Batches whose rows are joined with others before a merge stay unchanged, since joining would lose the order, and
/// batches with a widened column ([`tidalite_types::BatchColumn::narrower`]) stay unchanged.
pub fn by_time(batch: &mut Batch) {
    let Some(timestamps) = batch.timestamps.as_ref().filter(|_| stays_alone(batch.rows)) else { return };
    if is_sorted(&timestamps.values) || batch.columns.iter().any(|column| column.narrower.is_some()) {
        return;
    }
    reorder(batch, &sort_permutation(&timestamps.values));
}

/// Restores the order of lines; returns true if some batches were in another order.
pub fn by_line(batches: &mut [Batch]) -> bool {
    let mut any = false;
    for batch in batches.iter_mut().filter(|batch| !batch.lines.is_sorted()) {
        let lines: Vec<i64> = batch.lines.iter().map(|line| i64::from(*line)).collect();
        reorder(batch, &sort_permutation(&lines));
        any = true;
    }
    any
}

/// Keeps only these rows, in this order. Columns with values only in other rows are dropped.
pub fn keep_rows(batch: &mut Batch, rows: &[u32]) {
    let is_null = |column: &tidalite_types::BatchColumn| column.column.null_count() == column.column.len();
    let nulls: Vec<bool> = batch.columns.iter().map(is_null).collect();
    // `narrower` refers to rows before the first wider value; some of these rows may not be kept.
    batch.columns.iter_mut().for_each(|column| column.narrower = None);
    reorder(batch, rows);
    batch.rows = rows.len();
    let mut nulls = nulls.into_iter();
    batch.columns.retain(|column| nulls.next() == Some(true) || !is_null(column));
}

fn reorder(batch: &mut Batch, order: &[u32]) {
    if let Some(timestamps) = &mut batch.timestamps {
        timestamps.values = gather_slice(&timestamps.values, order);
    }
    if !batch.lines.is_empty() {
        batch.lines = gather_slice(&batch.lines, order);
    }
    // The memory of a column is reused for the next column of its type.
    let mut spare: Option<Column> = None;
    for column in batch.columns.iter_mut().map(|column| &mut column.column) {
        let physical = column.values.physical();
        let same = spare.take().filter(|spare| spare.values.physical() == physical);
        let mut ordered = same.unwrap_or_else(|| Column::with_capacity(physical, order.len()));
        gather_into(column, order, &mut ordered);
        spare = Some(std::mem::replace(column, ordered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_kernels::gather::gather_plain;
    use tidalite_types::{BatchColumn, BatchTimestamps, Bitmap, ColumnType, TimeUnit, Values, Views};

    fn column(column_type: ColumnType, values: Values, validity: Option<Bitmap>) -> BatchColumn {
        let column = Column { values, validity };
        BatchColumn { name: "c".to_owned(), column_type, column, dictionary: Views::new(), narrower: None }
    }

    /// Returns rows that contain their position in every kind of column, at these times.
    fn batch(times: &[i64]) -> Batch {
        let numbers = || 0..times.len();
        let mut texts = Views::new();
        numbers().for_each(|row| texts.push(format!("{row} {}", "x".repeat(row % 30)).as_bytes()));
        let some = Some(numbers().map(|row| row % 3 > 0).collect());
        Batch {
            table: "t".to_owned(),
            rows: times.len(),
            columns: vec![
                column(ColumnType::Long, Values::I64(numbers().map(|row| row as i64).collect()), None),
                column(ColumnType::Symbol, Values::U32(numbers().map(|row| row as u32).collect()), some),
                column(ColumnType::Symbol, Values::U32(numbers().map(|row| row as u32 / 2).collect()), None),
                column(ColumnType::Varchar, Values::Views(texts), None),
                column(ColumnType::Boolean, Values::Bit(numbers().map(|row| row % 5 == 0).collect()), None),
            ],
            timestamps: Some(BatchTimestamps::new(TimeUnit::Micros, times.to_vec())),
            lines: numbers().map(|row| 7 + row as u32).collect(),
        }
    }

    fn times(batch: &Batch) -> &[i64] {
        batch.timestamps.as_ref().map_or(&[], |timestamps| &timestamps.values)
    }

    #[test]
    fn rows_go_into_order_of_time_and_back_whole() {
        let mut dice = fastrand::Rng::with_seed(5);
        for rows in [0, 1, 700, 4_095, 4_096, 9_000] {
            for range in [1, 3, 1_000, i64::MAX] {
                let arrived: Vec<i64> = (0..rows).map(|_| dice.i64(-range..range)).collect();
                let (mut ordered, before) = (batch(&arrived), batch(&arrived));
                by_time(&mut ordered);
                let mut expected: Vec<usize> = (0..rows).collect();
                if rows >= 4_096 {
                    expected.sort_by_key(|row| arrived[*row]);
                }
                assert!(times(&ordered).iter().eq(expected.iter().map(|row| &arrived[*row])));
                for (column, was) in ordered.columns.iter().zip(&before.columns) {
                    let rows: Vec<u32> = expected.iter().map(|row| *row as u32).collect();
                    let wanted = gather_plain(&was.column, &rows);
                    match (&column.column.values, &wanted.values) {
                        (Values::Views(texts), Values::Views(wanted)) => assert!(texts.iter().eq(wanted.iter())),
                        _ => assert_eq!(column.column, wanted),
                    }
                }
                assert_eq!(by_line(std::slice::from_mut(&mut ordered)), !expected.is_sorted());
                assert_eq!(ordered, before);
                assert!(!by_line(&mut [ordered]), "they are in order of their lines");
            }
        }
    }

    #[test]
    fn a_column_that_became_wider_leaves_its_batch_as_it_came() {
        let arrived: Vec<i64> = (0..5_000).rev().collect();
        let mut widened = batch(&arrived);
        widened.columns[0].narrower = Some((ColumnType::Long, Values::I64(vec![1, 2, 3])));
        by_time(&mut widened);
        assert_eq!(times(&widened), arrived);
    }
}
