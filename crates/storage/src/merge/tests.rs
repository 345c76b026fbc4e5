use super::*;
use crate::fs::Fs;
use crate::fs::os::OsFs;
use crate::late::late_groups;
use crate::segment::to_column;
use crate::{DeadRows, Run};
use tidalite_types::{Bitmap, Column, ColumnSchema, PartitionBy, TableId, TableSchema, TimeUnit, Txn, Values};

const DAY: i64 = 86_400_000_000;

fn schema(has_timestamp: bool) -> TableSchema {
    let column = |id, name: &str, column_type| ColumnSchema { id: ColumnId(id), name: name.to_owned(), column_type };
    TableSchema {
        name: "t".to_owned(),
        columns: vec![
            column(0, "ts", ColumnType::Timestamp(TimeUnit::Micros)),
            column(1, "arrival", ColumnType::Long),
            column(2, "text", ColumnType::Varchar),
            column(3, "flag", ColumnType::Boolean),
        ],
        designated: has_timestamp.then_some(ColumnId(0)),
        partition_by: if has_timestamp { PartitionBy::Day } else { PartitionBy::None },
        next_column: ColumnId(4),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    }
}

/// Returns rows numbered from `first` with the given timestamps. The third column is missing in odd runs and NULL in
/// every 7th row.
fn run(txn: u64, first: i64, timestamps: Vec<i64>) -> Run {
    let rows = timestamps.len();
    let arrival: Vec<i64> = (first..first + rows as i64).collect();
    let mut text = Column::with_capacity(Physical::Views, rows);
    for row in &arrival {
        if row % 7 == 0 {
            text.extend_null(1);
        } else {
            let one = Column::new(Values::Views({
                let mut views = tidalite_types::Views::new();
                views.push(format!("row number {row}").as_bytes());
                views
            }));
            text.extend_from_range(&one, 0, 1);
        }
    }
    let flags: Bitmap = arrival.iter().map(|row| row % 3 == 0).collect();
    let time_range = (timestamps.iter().copied().min().unwrap(), timestamps.iter().copied().max().unwrap());
    let mut columns = vec![
        (ColumnId(1), Arc::new(Column::new(Values::I64(arrival)))),
        (ColumnId(0), Arc::new(Column::new(Values::I64(timestamps.clone())))),
        (ColumnId(3), Arc::new(Column::new(Values::Bit(flags)))),
    ];
    if txn.is_multiple_of(2) {
        columns.push((ColumnId(2), Arc::new(text)));
    }
    Run { rows, txns: (Txn(txn), Txn(txn)), time_range, is_sorted: timestamps.is_sorted(), columns, dead: None }
}

struct Table {
    store: Arc<SegmentStore>,
    version: TableSnapshot,
    next: u64,
    threads: usize,
    tail_from: Option<i64>,
    kept_from: Option<i64>,
    late_rows_min: usize,
    /// Timestamp, arrival and presence of the text, in the expected order.
    expected: Vec<(i64, i64, bool)>,
    _dir: tempfile::TempDir,
}

fn threads(count: usize) -> Threads<'static> {
    let on: &(dyn Fn(usize, &(dyn Fn() + Sync)) + Sync) = &|count, work| {
        std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(work))));
    };
    Threads { count, on }
}

impl Table {
    fn new(has_timestamp: bool) -> Table {
        let dir = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
        Table {
            store: SegmentStore::new(fs, 64 << 20),
            version: TableSnapshot::empty(TableId(1), Arc::new(schema(has_timestamp))),
            next: 1,
            threads: 1,
            tail_from: None,
            kept_from: None,
            late_rows_min: LATE_ROWS_MIN,
            expected: Vec::new(),
            _dir: dir,
        }
    }

    fn stage(&mut self, timestamps: Vec<i64>) {
        let first = self.version.arrived as i64;
        self.version.arrived += timestamps.len() as u64;
        let txn = self.version.txn.0 + 1;
        let has_text = |i: usize| txn.is_multiple_of(2) && (first + i as i64) % 7 != 0;
        self.expected.extend(timestamps.iter().enumerate().map(|(i, &ts)| (ts, first + i as i64, has_text(i))));
        let run = run(txn, first, timestamps);
        self.version.txn = Txn(txn);
        Arc::make_mut(&mut self.version.runs).push(Arc::new(run));
    }

    /// Deletes one in `of` rows at random positions.
    fn kill(&mut self, random: &mut fastrand::Rng, of: usize) {
        let (mut dead, mut gone) = (DeadRows::default(), std::collections::HashSet::new());
        for segment in self.version.segments.iter() {
            let mut rows = Vec::new();
            // Some segments are deleted completely, so that they are removed without being read.
            let is_whole = random.usize(0..8) == 0;
            for block in 0..segment.block_count() {
                let Some(Values::I64(arrival)) =
                    segment.read(ColumnId(1), block).unwrap().map(|b| to_column(&b).values)
                else {
                    panic!()
                };
                for (row, arrival) in arrival.iter().enumerate().filter(|_| is_whole || random.usize(0..of) == 0) {
                    rows.push((block * BLOCK_ROWS + row) as u64);
                    gone.insert(*arrival);
                }
            }
            dead.segments.push((segment.meta().id, crate::dead::ranges_of(rows)));
        }
        let mut staged = Vec::new();
        for run in self.version.runs.iter() {
            let Some(Values::I64(arrival)) = run.column(ColumnId(1)).map(|c| &c.values) else { panic!() };
            staged.extend(arrival.iter().enumerate().map(|(row, arrival)| (*arrival, run.is_dead(row))));
        }
        let mut distances = Vec::new();
        // A statement never finds a deleted row: a merge may have moved it to a segment.
        for (distance, (arrival, is_dead)) in staged.iter().rev().enumerate() {
            if !is_dead && random.usize(0..of) == 0 {
                distances.push(distance as u64);
                gone.insert(*arrival);
            }
        }
        dead.staged = crate::dead::ranges_of(distances);
        let before = self.version.row_count();
        let killed = self.version.kill(&dead);
        assert_eq!(self.version.row_count(), before - killed);
        self.expected.retain(|row| !gone.contains(&row.1));
        assert_eq!(self.version.row_count(), self.expected.len() as u64);
    }

    fn merge(&mut self) -> Merged {
        self.merge_while(&[], |_| {})
    }

    /// Merges, and changes the table before the result is published.
    fn merge_while(&mut self, reclaim: &[SegmentId], meanwhile: impl FnOnce(&mut Table)) -> Merged {
        let next = &mut self.next;
        let before = self.version.clone();
        let kept_from = self.kept_from;
        let options = MergeOptions {
            threads: threads(self.threads),
            tail_from: self.tail_from,
            kept_from,
            late_rows_min: self.late_rows_min,
        };
        let merged = merge(&self.store, &before, reclaim, &options, &mut || {
            *next += 1;
            SegmentId(*next)
        });
        let merged = merged.unwrap();
        meanwhile(self);
        self.show(&before, kept_from, &merged);
        merged
    }

    fn show(&mut self, before: &TableSnapshot, kept_from: Option<i64>, merged: &Merged) {
        let mut versions = crate::tables::Versions::default();
        versions.adopt(Arc::new(self.version.clone()));
        let input = crate::tables::MergeInput { version: Arc::new(before.clone()), kept_from };
        let masks = merged.moved(before, &versions.died_since(&input)).unwrap();
        versions.end_merge(&input, merged.added.clone(), &merged.removed, masks);
        self.version = TableSnapshot::clone(versions.get(self.version.id).unwrap());
    }

    /// Compacts all late segments, and changes the table before each result is published.
    fn compact_while(&mut self, mut meanwhile: impl FnMut(&mut Table)) {
        for group in late_groups(&self.version) {
            let before = self.version.clone();
            let next = &mut self.next;
            let compacted = compact(&self.store, &before, &group, threads(self.threads), &|| false, &mut || {
                *next += 1;
                SegmentId(*next)
            });
            meanwhile(self);
            self.show(&before, None, &compacted.unwrap());
        }
        assert!(late_groups(&self.version).is_empty());
    }

    fn late_rows(&self) -> u64 {
        self.version.segments.iter().filter(|s| s.meta().is_late).map(|s| s.rows()).sum()
    }

    fn seal(&mut self, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Merged> {
        let next = &mut self.next;
        let all = self.version.segments.clone();
        let sealed = seal(&self.store, &self.version, &all, threads(self.threads), is_cancelled, &mut || {
            *next += 1;
            SegmentId(*next)
        })?;
        let mut segments = sealed.added.clone();
        crate::tables::sort_segments(&mut segments);
        self.version.segments = Arc::new(segments);
        Ok(sealed)
    }

    fn check(&mut self) {
        let is_ordered = self.version.schema.designated.is_some();
        if is_ordered {
            self.expected.sort_by_key(|row| (row.0, row.1));
        }
        let mut found = Vec::new();
        let mut previous: Option<Arc<Segment>> = None;
        for segment in self.version.segments.iter() {
            if let Some(previous) = previous.filter(|_| is_ordered && !segment.meta().is_late) {
                assert!(previous.time_range().1 <= segment.time_range().0, "segments overlap");
            }
            for block in 0..segment.block_count() {
                let column = |id| segment.read(ColumnId(id), block).unwrap().map(|b| to_column(&b));
                let (Some(ts), Some(arrival), text, Some(flags)) = (column(0), column(1), column(2), column(3)) else {
                    panic!()
                };
                let (Values::I64(ts), Values::I64(arrival), Values::Bit(flags)) =
                    (ts.values, arrival.values, flags.values)
                else {
                    panic!()
                };
                for row in (0..ts.len())
                    .filter(|row| self.version.mask(segment).is_none_or(|mask| !mask.is_dead(block * BLOCK_ROWS + row)))
                {
                    let has_text = text.as_ref().is_some_and(|t| t.is_valid(row));
                    if let (true, Some(Values::Views(views))) = (has_text, text.as_ref().map(|t| &t.values)) {
                        assert_eq!(views.get(row), format!("row number {}", arrival[row]).as_bytes());
                    }
                    assert_eq!(flags.get(row), arrival[row] % 3 == 0);
                    if is_ordered {
                        assert_eq!(segment.meta().partition, ts[row].div_euclid(DAY) * DAY);
                    }
                    found.push((ts[row], arrival[row], has_text));
                }
            }
            let (lo, hi) = segment.time_range();
            let is_whole = self.version.mask(segment).is_none();
            assert!(
                !is_ordered
                    || !is_whole
                    || found[found.len() - segment.rows() as usize].0 == lo && found[found.len() - 1].0 == hi
            );
            previous = Some(segment.clone());
        }
        // Late rows follow other rows of equal timestamps.
        found.sort_by_key(|row| if is_ordered { row.0 } else { 0 });
        assert!(found == self.expected, "{} rows found, {} expected", found.len(), self.expected.len());
    }
}

#[test]
fn rows_in_order_are_appended_without_writing_old_ones_again() {
    let mut table = Table::new(true);
    let mut at = 0;
    for _ in 0..4 {
        table.stage((0..200_000).map(|i| at + i * 1000).collect());
        at += 200_000_000;
        table.merge();
        table.check();
    }
    table.stage(vec![at]);
    let merged = table.merge();
    assert_eq!(merged.rewritten_rows, 0, "one row does not make a large segment be written again");
    table.check();
}

#[test]
fn late_rows_touch_only_the_segments_they_overlap_and_copy_whole_blocks() {
    let mut table = Table::new(true);
    table.stage((0..3_000_000).map(|i| i * 1000).collect());
    table.merge();
    assert_eq!(table.version.segments.len(), 3);
    table.stage(vec![1_500_000_000 + 1, 1_500_000_000 + 1, 1_400_000_001]);
    let merged = table.merge();
    assert_eq!(merged.removed.len(), 1);
    table.check();
    assert!(merged.added.len() == 2, "what lies behind the late rows is a segment of copied blocks");
}

#[test]
fn rows_far_apart_leave_the_segments_between_them_alone() {
    let mut table = Table::new(true);
    table.stage((0..4_000_000).map(|i| i * 1000).collect());
    table.merge();
    assert_eq!(table.version.segments.len(), 4);
    table.stage(vec![5_001, 3_999_998_500, 4_000_000_000]);
    let merged = table.merge();
    assert_eq!(merged.removed.len(), 2, "the first and the last");
    table.check();
}

#[test]
fn equal_timestamps_keep_the_order_of_arrival() {
    let mut table = Table::new(true);
    for _ in 0..3 {
        table.stage(vec![5; 1000]);
        table.stage(vec![5; 10]);
        table.stage(vec![4; 10]);
        table.merge();
        table.check();
    }
}

#[test]
fn rows_of_many_runs_fall_between_old_ones_in_stretches() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..3 {
        // Each time has hundreds of rows of every run, in random order.
        for _ in 0..6 {
            table.stage((0..30_000).map(|_| random.i64(0..80) * 10_000_000_000).collect());
        }
        assert_eq!(table.merge().staged_rows, 180_000);
        table.check();
    }
}

#[test]
fn a_table_without_timestamps_keeps_the_order_of_arrival() {
    let mut table = Table::new(false);
    for rows in [10, 100_000, 1, 70_000] {
        table.stage((0..rows).map(|i| -i).collect());
        table.merge();
        table.check();
    }
}

#[test]
fn any_order_of_arrival_gives_the_same_table() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = Table::new(true);
        for _ in 0..6 {
            for _ in 0..random.usize(1..5) {
                let (start, spread) = (random.i64(-DAY..3 * DAY), 1 << random.i64(0..37));
                let rows = random.usize(1..40_000);
                table.stage((0..rows).map(|_| start + random.i64(0..spread)).collect());
            }
            table.merge();
            table.check();
        }
    }
}

#[test]
fn late_segments_have_their_rows_in_the_order_of_arrival_and_are_woven_in() {
    let mut late = 0;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = Table::new(true);
        (table.late_rows_min, table.threads) = (random.usize(1..2000), random.usize(1..3));
        for round in 0..12 {
            for _ in 0..random.usize(1..4) {
                // Also few distinct timestamps, so that late rows share timestamps with other rows.
                let (start, spread) = (random.i64(-DAY / 2..DAY), 1 << random.i64(0..37));
                let (rows, grain) = (random.usize(1..if round == 0 { 200_000 } else { 4_000 }), 1 << random.i64(0..30));
                table.stage((0..rows).map(|_| (start + random.i64(0..spread)) / grain * grain).collect());
            }
            table.kill(&mut random, 50);
            let mut again = random.fork();
            table.merge_while(&reclaimable(&table.version, round % 2 == 0), |table| table.kill(&mut again, 100));
            table.check();
            late += table.late_rows();
            if random.usize(0..4) == 0 {
                table.compact_while(|table| table.kill(&mut random, 100));
                table.check();
            }
        }
        table.compact_while(|_| {});
        table.check();
    }
    assert!(late > 100_000, "{late}");
}

#[test]
fn rows_that_fall_everywhere_are_written_twice_however_many_there_are() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(1);
    let mut rewritten = 0;
    for _ in 0..12 {
        table.stage((0..400_000).map(|_| random.i64(0..DAY)).collect());
        rewritten += table.merge().rewritten_rows;
    }
    assert!(rewritten <= 3 * 400_000, "{rewritten} rows: while the table is small, rows are woven in");
    assert!(table.late_rows() >= 7 * 400_000);
    table.check();
    table.compact_while(|_| {});
    table.check();
    let sizes: Vec<u64> = table.version.segments.iter().map(|s| s.rows()).collect();
    assert!(sizes.len() <= 6 && sizes.iter().all(|rows| *rows <= SEGMENT_ROWS_MAX as u64), "{sizes:?}");
}

#[test]
fn rows_go_beside_their_times_only_where_a_merge_would_write_much_for_what_it_has() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(4);
    let step = DAY / 4_000_000;
    table.stage((0..1_200_000).map(|n| n * step).collect());
    table.merge();
    let mut rows: Vec<i64> = (1_200_000..2_000_000).map(|n| n * step).collect();
    rows.extend((0..100_000).map(|_| random.i64(0..1_200_000 * step)));
    table.stage(rows);
    let merged = table.merge();
    assert!((1_200_000..1_400_000).contains(&merged.rewritten_rows), "{}", merged.rewritten_rows);
    assert_eq!(table.late_rows(), 0, "1.2 million rows are written again beside 0.9 million new ones");
    table.stage((0..100_000).map(|_| random.i64(0..2_000_000 * step)).collect());
    table.merge();
    assert!(table.late_rows() > 99_000, "{} of 100,000 rows", table.late_rows());
    table.check();
}

#[test]
fn what_fails_or_is_given_up_leaves_no_file() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(2);
    for rows in [2_000_000, 100_000] {
        table.stage((0..rows).map(|_| random.i64(0..DAY)).collect());
        table.merge();
    }
    let groups = late_groups(&table.version);
    let [group] = &groups[..] else { panic!("{} groups", groups.len()) };
    let there =
        |table: &Table| std::fs::read_dir(table._dir.path().join(SegmentStore::dir(TableId(1)))).unwrap().count();
    let before = there(&table);
    assert_eq!(before, table.version.segments.len());
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let is_cancelled = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 6;
    let mut next = 1_000;
    let error = compact(&table.store, &table.version, group, Threads::ONE, &is_cancelled, &mut || {
        next += 1;
        SegmentId(next)
    });
    assert!(error.is_err() && next > 1_001, "it was given up in its second slice");
    assert_eq!(there(&table), before);
    table.check();
}

/// Returns the bytes of all segment files, by path.
fn files(table: &Table) -> Vec<Vec<u8>> {
    table.version.segments.iter().map(|s| std::fs::read(table._dir.path().join(s.path())).unwrap()).collect()
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let build = |threads| {
        let mut table = Table::new(true);
        table.threads = threads;
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..3 {
            table.stage((0..300_000).map(|_| random.i64(0..3 * DAY)).collect());
            table.stage((0..100_000).map(|i| DAY + i * 1000).collect());
            table.merge();
        }
        table.check();
        files(&table)
    };
    let one = build(1);
    assert!(build(2) == one && build(5) == one);
}

#[test]
fn dead_rows_are_left_behind_also_those_that_die_during_a_merge() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = Table::new(seed % 4 != 3);
        for _ in 0..6 {
            for _ in 0..random.usize(0..4) {
                let (start, spread) = (random.i64(-DAY..3 * DAY), 1 << random.i64(0..37));
                let rows = random.usize(1..60_000);
                table.stage((0..rows).map(|_| start + random.i64(0..spread)).collect());
                if random.bool() {
                    table.kill(&mut random, 5);
                }
            }
            let of = 1 + random.usize(0..6);
            table.kill(&mut random, of);
            let reclaim = reclaimable(&table.version, random.bool());
            let mut later = random.fork();
            table.merge_while(&reclaim, |table| table.kill(&mut later, 3));
            assert!(reclaim.iter().all(|id| table.version.segments.iter().all(|s| s.meta().id != *id)));
            table.check();
        }
        let reclaim = reclaimable(&table.version, true);
        table.merge_while(&reclaim, |_| {});
        table.check();
        assert!(table.version.dead.is_empty() && table.version.runs.is_empty());
    }
}

#[test]
fn segments_without_any_row_left_go_without_a_new_one() {
    let mut table = Table::new(true);
    table.stage((0..10_000).map(|i| i * 1000).collect());
    table.merge();
    table.kill(&mut fastrand::Rng::with_seed(1), 1);
    let reclaim = reclaimable(&table.version, false);
    let merged = table.merge_while(&reclaim, |_| {});
    assert_eq!((merged.added.len(), merged.rewritten_rows, merged.removed.len()), (0, 0, 1));
    table.check();
}

#[test]
fn rows_all_of_whose_columns_were_dropped_stay() {
    let mut table = Table::new(false);
    let late = ColumnSchema { id: ColumnId(4), name: "late".to_owned(), column_type: ColumnType::Long };
    for (staged, rows) in [(5, 5), (BLOCK_ROWS, BLOCK_ROWS + 5), (1, BLOCK_ROWS + 6)] {
        // In the last round the table has no column.
        let columns = if staged == 1 { Vec::new() } else { vec![late.clone()] };
        table.version.schema = Arc::new(TableSchema { columns, ..schema(false) });
        table.stage(vec![0; staged]);
        table.merge();
        assert_eq!((table.version.row_count(), table.version.runs.len()), (rows as u64, 0));
        let segments = table.version.segments.clone();
        assert_eq!(segments.iter().map(|s| s.rows()).sum::<u64>(), rows as u64);
        for segment in segments.iter() {
            segment.verify().unwrap();
            let values = segment.read(ColumnId(4), 0).unwrap().map(|block| to_column(&block));
            assert!(values.is_none_or(|values| values.null_count() == values.len()));
        }
    }
}

#[test]
fn a_stream_with_jitter_writes_only_its_newest_rows_again() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(3);
    // 1,000 rows per second, up to 2 s late, merged every minute.
    let (mut rows, mut rewritten) = (0, 0);
    for minute in 0..7 {
        let times = (0..60_000).map(|i| 10_000_000 + (minute * 60_000 + i) * 1000 - random.i64(0..2_000_000));
        table.stage(times.collect());
        table.tail_from = Some(10_000_000 + (minute + 1) * 60_000_000 - 4_000_000);
        let merged = table.merge();
        table.check();
        rows += 60_000;
        rewritten += merged.rewritten_rows;
    }
    assert!(rewritten < rows / 10, "{rewritten} rows written again of {rows}");
    assert!(table.version.segments.len() <= 8);
}

#[test]
fn many_small_merges_make_few_segments() {
    let mut table = Table::new(true);
    let mut rewritten = 0;
    for at in 0..200 {
        table.stage((0..2_000).map(|i| (at * 2_000 + i) * 1000).collect());
        rewritten += table.merge().rewritten_rows;
    }
    table.check();
    assert!(table.version.segments.len() < 16, "{} segments", table.version.segments.len());
    assert!(rewritten < 4 * 400_000, "{rewritten} rows written again");
}

#[test]
fn sealed_segments_have_the_same_rows_and_late_rows_open_only_what_they_touch() {
    let mut table = Table::new(true);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..4 {
        table.stage((0..300_000).map(|_| random.i64(0..DAY)).collect());
        table.merge();
    }
    let sealed = table.seal(&|| false).unwrap();
    assert!(!sealed.added.is_empty());
    table.check();
    let is_sealed = |t: &Table| t.version.segments.iter().map(|s| s.is_sealed().unwrap()).collect::<Vec<_>>();
    assert!(table.version.segments.len() == 2 && is_sealed(&table) == [true, true]);
    let (lo, hi) = table.version.segments[1].time_range();
    table.stage(vec![lo + (hi - lo) / 2, hi]);
    table.merge();
    table.check();
    assert_eq!(is_sealed(&table), [true, false]);
}

#[test]
fn a_seal_that_is_given_up_leaves_no_files() {
    let mut table = Table::new(true);
    table.stage((0..300_000).collect());
    table.merge();
    let before = files(&table);
    assert!(table.seal(&|| true).is_err());
    table.check();
    assert!(files(&table) == before);
    let folder = table._dir.path().join(SegmentStore::dir(TableId(1)));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
}

/// Returns five segments: one before noon, then four of noon only, too large for a small merge to join them.
fn noon_in_many_segments() -> Table {
    let mut table = Table::new(true);
    let noon = DAY / 2;
    table.stage((0..20_000).map(|i| noon - 20_000 + i).chain([noon]).collect());
    table.merge();
    for _ in 0..4 {
        table.stage(vec![noon; 20_000]);
        table.merge();
    }
    table.check();
    assert_eq!(table.version.segments.len(), 5);
    table
}

#[test]
fn segments_of_one_timestamp_keep_the_order_of_arrival_when_one_is_written_again() {
    for at in 0..5 {
        let mut table = noon_in_many_segments();
        // All rows before noon in the first segment, every second row in the other segments.
        let segment = table.version.segments[at].clone();
        let rows: Vec<u64> = if at == 0 { (0..20_000).collect() } else { (0..20_000).step_by(2).collect() };
        let dead = DeadRows { segments: vec![(segment.meta().id, crate::dead::ranges_of(rows))], ..Default::default() };
        table.version.kill(&dead);
        let gone = |arrival: i64| {
            let first = if at == 0 { 0 } else { 20_001 + (at as i64 - 1) * 20_000 };
            (first..first + 20_000).contains(&arrival) && (at == 0 || (arrival - first) % 2 == 0)
        };
        table.expected.retain(|row| !gone(row.1));
        table.merge_while(&[segment.meta().id], |_| {});
        table.check();
        table.stage(vec![DAY / 2; 10]);
        table.merge();
        table.check();
    }
}

#[test]
fn what_merges_leave_staged_comes_in_order_with_later_ones() {
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..12 {
        let mut table = Table::new(true);
        table.threads = 1 + round % 3;
        let (mut staged, mut merged) = (0, 0);
        for step in 0..10_i64 {
            for _ in 0..random.usize(1..4) {
                // Late by up to two steps, with many rows at one time.
                let count = random.usize(1..200);
                staged += count as u64;
                table.stage((0..count).map(|_| DAY - 5_000 + step * 1_000 - random.i64(0..2_000)).collect());
            }
            let from = DAY - 5_000 + step * 1_000 - 2_000;
            table.kept_from = Some(from);
            let merge = if round % 2 == 0 {
                table.merge()
            } else {
                // Rows are deleted and added while the merge runs, among the kept and the merged rows.
                let mut seed = fastrand::Rng::with_seed(random.u64(..));
                staged += 3;
                table.merge_while(&[], |table| {
                    table.kill(&mut seed, 5);
                    table.stage(vec![from - 1, from, from + 1]);
                })
            };
            merged += merge.staged_rows;
            assert_eq!(table.version.row_count(), table.expected.len() as u64);
            assert!(merge.added.iter().all(|segment| segment.time_range().1 < from), "round {round}, step {step}");
        }
        table.kept_from = None;
        merged += table.merge().staged_rows;
        assert!(table.version.runs.is_empty());
        table.check();
        if round % 2 == 0 {
            assert_eq!(merged, staged, "each row was taken once");
        }
    }
}

#[test]
fn a_commit_counts_as_merged_only_with_all_of_its_rows() {
    let mut table = Table::new(true);
    table.stage(vec![1, 2]);
    table.stage(vec![3, 9]);
    table.stage(vec![4]);
    let merged = |table: &Table, kept_from| {
        crate::tables::MergeInput { version: Arc::new(table.version.clone()), kept_from }.merged_txn()
    };
    assert_eq!(merged(&table, None), Txn(3));
    assert_eq!(merged(&table, Some(5)), Txn(1), "a row of the second stays");
    assert_eq!(merged(&table, Some(2)), Txn(0));
    assert_eq!(merged(&table, Some(10)), Txn(3));
    // A second run of the first commit, of which a row stays staged.
    let mut again = run(1, 5, vec![7]);
    again.txns = (Txn(1), Txn(1));
    Arc::make_mut(&mut table.version.runs).insert(1, Arc::new(again));
    assert_eq!(merged(&table, Some(5)), Txn(0));
}

#[test]
fn new_rows_are_put_in_order_by_many_threads_as_by_one() {
    let mut rng = fastrand::Rng::with_seed(9);
    for round in 0..6 {
        let rows = [70_000, 300_000][round % 2];
        let mut time = || match round / 2 {
            // Few times, one time for half of the rows, or any time.
            0 => rng.i64(0..5),
            1 if rng.bool() => 77,
            1 => rng.i64(-1000..1000),
            _ => rng.i64(..),
        };
        let times: Vec<i64> = (0..rows).map(|_| time()).collect();
        let runs = times.chunks(rows / 7).zip(1..).map(|(part, txn)| Arc::new(run(txn, 0, part.to_vec()))).collect();
        let table = TableSnapshot { runs: Arc::new(runs), ..TableSnapshot::empty(TableId(1), Arc::new(schema(true))) };
        let alone = NewRows::of(&table, None, Threads::ONE).unwrap();
        assert!(alone.timestamps.is_sorted());
        for count in [2, 7, 16] {
            let together = NewRows::of(&table, None, threads(count)).unwrap();
            assert_eq!(together.timestamps, alone.timestamps, "round {round}, {count} threads");
            assert!((0..rows).all(|row| together.place(row) == alone.place(row)), "round {round}, {count} threads");
        }
        let arrivals: Vec<usize> = (0..rows).map(|row| alone.arrival(row)).collect();
        assert!(arrivals.iter().zip(&alone.timestamps).all(|(row, ts)| times[*row] == *ts));
    }
}
