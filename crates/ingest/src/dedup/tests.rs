//! Compares random commits, merges and repetitions with a map by key.

use super::*;
use crate::commit::command::commit_command;
use crate::commit::commit_batches;
use std::collections::BTreeMap;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::merge::{MergeOptions, Threads, merge, reclaimable};
use tidalite_storage::segment::{SegmentStore, to_column};
use tidalite_types::command::CreateTable;
use tidalite_types::{
    Batch, BatchColumn, Bitmap, Column, ColumnType, Command, PartitionBy, SegmentId, TimeUnit, Values, Views,
};

const DAY: i64 = 86_400_000_000;

/// Timestamp, symbol, double, value.
type Row = (i64, Option<&'static str>, Option<u64>, i64);
type Model = BTreeMap<(i64, Option<&'static str>, Option<u64>), i64>;

const SYMBOLS: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("a longer symbol than a view")];
const DOUBLES: [Option<f64>; 5] = [None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(1.5)];

/// Returns the key of a double.
fn key_of(value: Option<f64>) -> Option<u64> {
    value.map(|v| if v == 0.0 { 0 } else { v.to_bits() })
}

struct World {
    catalog: Catalog,
    versions: Versions,
    store: Arc<SegmentStore>,
    txn: Txn,
    next_segment: u64,
    model: Model,
}

fn validity<T>(values: &[Option<T>]) -> Option<Bitmap> {
    values.iter().any(Option::is_none).then(|| values.iter().map(Option::is_some).collect())
}

fn batch(rows: &[(i64, Option<&'static str>, Option<f64>, i64)]) -> Batch {
    let column = |name: &str, column_type, values, validity, dictionary| BatchColumn {
        name: name.to_owned(),
        column_type,
        column: Column { values, validity },
        dictionary,
        narrower: None,
    };
    let mut dictionary = Views::new();
    SYMBOLS.iter().flatten().for_each(|s| dictionary.push(s.as_bytes()));
    let symbols: Vec<_> = rows.iter().map(|r| r.1).collect();
    let code = |s: &Option<&str>| SYMBOLS.iter().position(|other| other == s).unwrap_or(0).saturating_sub(1) as u32;
    let doubles: Vec<_> = rows.iter().map(|r| r.2).collect();
    let times = Values::I64(rows.iter().map(|r| r.0).collect());
    let values = Values::I64(rows.iter().map(|r| r.3).collect());
    Batch {
        table: "t".to_owned(),
        rows: rows.len(),
        columns: vec![
            column("ts", ColumnType::Timestamp(TimeUnit::Micros), times, None, Views::new()),
            column(
                "s",
                ColumnType::Symbol,
                Values::U32(symbols.iter().map(code).collect()),
                validity(&symbols),
                dictionary,
            ),
            column(
                "d",
                ColumnType::Double,
                Values::F64(doubles.iter().map(|d| d.unwrap_or(0.0)).collect()),
                validity(&doubles),
                Views::new(),
            ),
            column("v", ColumnType::Long, values, None, Views::new()),
        ],
        timestamps: None,
        lines: Vec::new(),
    }
}

impl World {
    fn new() -> World {
        let fs: Arc<dyn Fs> = Arc::new(SimFs::new(1));
        fs.create_dir_all(std::path::Path::new("segments")).unwrap();
        let mut world = World {
            catalog: Catalog::default(),
            versions: Versions::default(),
            store: SegmentStore::new(fs, 64 << 20),
            txn: Txn(0),
            next_segment: 1,
            model: Model::new(),
        };
        let create = CreateTable {
            name: "t".to_owned(),
            columns: [
                ("ts", ColumnType::Timestamp(TimeUnit::Micros)),
                ("s", ColumnType::Symbol),
                ("d", ColumnType::Double),
                ("v", ColumnType::Long),
            ]
            .map(|(name, t)| (name.to_owned(), t))
            .to_vec(),
            designated: Some("ts".to_owned()),
            partition_by: PartitionBy::Day,
            ttl: None,
            lag_us: None,
            dedup: ["ts", "s", "d"].map(str::to_owned).to_vec(),
            if_not_exists: false,
        };
        world.txn = Txn(1);
        let ops = commit_command(&mut world.catalog, Command::CreateTable(create)).unwrap();
        publish(&mut world.versions, &world.catalog, world.txn, ops);
        world
    }

    /// Returns the numbers of appended and deleted rows.
    fn commit(&mut self, rows: &[(i64, Option<&'static str>, Option<f64>, i64)]) -> (usize, u64) {
        self.txn = self.txn.next();
        // Two batches of one commit see each other.
        let (first, second) = rows.split_at(rows.len() / 2);
        let batches = [first, second].into_iter().filter(|rows| !rows.is_empty()).map(batch).collect();
        let ops = commit_batches(&mut self.catalog, batches, false, self.txn).unwrap();
        let versions = &self.versions;
        let ops = resolve(&self.catalog, &ops, self.txn, Wins::Last, |id| versions.get(id).cloned()).unwrap();
        let appended = ops.iter().map(|op| if let Op::Rows { run, .. } = op { run.rows } else { 0 }).sum();
        let died = ops.iter().map(|op| if let Op::Delete { dead, .. } = op { dead.rows() } else { 0 }).sum();
        publish(&mut self.versions, &self.catalog, self.txn, ops);
        self.model.extend(rows.iter().map(|r| ((r.0, r.1, key_of(r.2)), r.3)));
        (appended, died)
    }

    fn merge(&mut self) {
        let table = self.catalog.id_of("t").unwrap();
        let Some(input) = self.versions.begin_merge(table) else { return };
        let next = &mut self.next_segment;
        let options = MergeOptions { threads: Threads::ONE, tail_from: None, kept_from: None, late_rows_min: 8 };
        let merged = merge(&self.store, &input.version, &reclaimable(&input.version, false), &options, &mut || {
            *next += 1;
            SegmentId(*next)
        });
        let merged = merged.unwrap();
        self.versions.end_merge(&input, merged.added.clone(), &merged.removed, Vec::new());
    }

    fn check(&self) {
        let table = self.versions.get(self.catalog.id_of("t").unwrap()).unwrap();
        let ids: Vec<ColumnId> = table.schema.columns.iter().map(|c| c.id).collect();
        let strings = table.symbols[&ids[1]].strings();
        let mut found: Vec<Row> = Vec::new();
        let mut add = |columns: &[Arc<Column>], is_dead: &dyn Fn(usize) -> bool| {
            let (Values::I64(ts), Values::U32(s), Values::F64(d), Values::I64(v)) =
                (&columns[0].values, &columns[1].values, &columns[2].values, &columns[3].values)
            else {
                panic!()
            };
            for row in (0..ts.len()).filter(|row| !is_dead(*row)) {
                let text = columns[1].is_valid(row).then(|| strings.get(s[row] as usize).to_vec());
                let symbol = text.map(|t| SYMBOLS.iter().flatten().find(|s| s.as_bytes() == t).copied().unwrap());
                found.push((ts[row], symbol, key_of(columns[2].is_valid(row).then_some(d[row])), v[row]));
            }
        };
        for segment in table.segments.iter() {
            for block in 0..segment.block_count() {
                let column = |id: &ColumnId| Arc::new(to_column(&segment.read(*id, block).unwrap().unwrap()));
                let dead = |row| table.mask(segment).is_some_and(|mask| mask.is_dead(block * BLOCK_ROWS + row));
                add(&ids.iter().map(column).collect::<Vec<_>>(), &dead);
            }
        }
        for run in table.runs.iter() {
            let columns: Vec<_> = ids.iter().map(|id| run.column(*id).unwrap().clone()).collect();
            add(&columns, &|row| run.is_dead(row));
        }
        found.sort_unstable();
        let expected: Vec<Row> = self.model.iter().map(|(k, v)| (k.0, k.1, k.2, *v)).collect();
        assert!(found == expected, "{} rows, {} expected", found.len(), expected.len());
        assert_eq!(table.row_count(), expected.len() as u64);
    }
}

#[test]
fn the_last_row_of_a_key_is_the_one_that_is_there() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new();
        for step in 0..40 {
            let (start, spread) = (random.i64(0..3) * DAY / 2, random.i64(1..400));
            let rows: Vec<_> = (0..random.usize(1..300))
                .map(|_| {
                    let (s, d) = (SYMBOLS[random.usize(0..4)], DOUBLES[random.usize(0..5)]);
                    (start + random.i64(0..spread) * 1000, s, d, random.i64(0..3))
                })
                .collect();
            world.commit(&rows);
            if random.usize(0..4) == 0 {
                world.merge();
            }
            // The same commit again has no effect.
            if random.bool() {
                let before = world.versions.get(TableId(0)).map(|t| t.row_count());
                let (appended, _) = world.commit(&rows);
                assert!(appended <= rows.len() && world.versions.get(TableId(0)).map(|t| t.row_count()) == before);
            }
            if step % 10 == 9 {
                world.check();
            }
        }
        world.merge();
        world.check();
    }
}

#[test]
fn what_is_there_costs_nothing_and_what_is_new_kills_nothing() {
    let mut world = World::new();
    let rows: Vec<_> = (0..1000).map(|i| (i * 10, SYMBOLS[i as usize % 4], DOUBLES[i as usize % 5], i)).collect();
    assert_eq!(world.commit(&rows), (1000, 0));
    assert_eq!(world.commit(&rows), (0, 0), "staged");
    world.merge();
    assert_eq!(world.commit(&rows), (0, 0), "merged");
    let changed: Vec<_> = rows.iter().map(|r| (r.0, r.1, r.2, r.3 + i64::from(r.0 % 100 == 0))).collect();
    assert_eq!(world.commit(&changed), (100, 100));
    assert_eq!(world.commit(&changed), (0, 0));
    world.check();
}
