//! Tests the state after a power loss: every acknowledged commit exists once, and no commit exists in part.
//!
//! A fixed sequence of commits, schema changes, merges and checkpoints runs on a simulated disk. For every file
//! operation of the sequence, the power is lost at that operation, unsynced content is lost or reordered at random, and
//! the database is opened again, compared with a plain model, used further, and opened once more.

use crate::load::LoadTable;
use crate::{Database, DatabaseConfig, ErrorKind};
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tidalite_query::CancelToken;
use tidalite_storage::TableSnapshot;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::{Mood, SimFs};
use tidalite_storage::segment::to_column;
use tidalite_types::command::CreateTable;
use tidalite_types::{
    BLOCK_ROWS, Batch, BatchColumn, BatchTimestamps, Column, ColumnId, ColumnType, Command, PartitionBy, TimeUnit,
    Values, Views,
};

const DAY: i64 = 86_400_000_000_000;

/// Expected content of a table: timestamp, number, symbol.
type Rows = Vec<(i64, Option<i64>, Option<String>)>;
type Model = BTreeMap<String, Rows>;

#[derive(Clone, Debug)]
enum Step {
    /// Rows for several tables in one commit: the table, and the numbers and timestamps of its rows.
    Rows(Vec<(&'static str, Vec<(i64, i64)>)>),
    Command(Command),
    /// Deletes the rows of a table whose number is a multiple of a divisor, or adds an amount to their numbers.
    Change {
        table: &'static str,
        multiple: i64,
        more: Option<i64>,
    },
    /// Rows with a fixed timestamp each, for a table with upsert keys: key and number.
    Upsert(&'static str, Vec<(i64, i64)>),
    /// The parts of a load, as in `Rows`.
    Load(&'static str, Vec<Vec<(i64, i64)>>),
    /// A load that creates its table.
    LoadNew(&'static str, Vec<Vec<(i64, i64)>>),
    Settle,
    Seal(&'static str),
}

fn config() -> DatabaseConfig {
    // Small log files, so that the sequence fills several.
    DatabaseConfig {
        has_background_jobs: false,
        // One sync after the other, so that the result does not depend on thread scheduling.
        overlap_syncs_from: None,
        merge_threads: 1,
        late_rows_min: 1,
        log_file_bytes: 4 << 10,
        ..DatabaseConfig::new("")
    }
}

fn open(fs: &SimFs) -> crate::Result<Database> {
    Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config(), None)
}

/// The number determines the symbol, so that many commits add new symbols.
fn symbol_of(number: i64) -> String {
    if number % 3 == 0 { format!("a symbol longer than a view {}", number / 7) } else { format!("s{}", number % 5) }
}

fn batch(table: &str, rows: &[(i64, i64)]) -> Batch {
    let (mut dictionary, mut codes) = (Views::new(), Vec::new());
    for (_, number) in rows {
        codes.push(dictionary.len() as u32);
        dictionary.push(symbol_of(*number).as_bytes());
    }
    let number = BatchColumn {
        name: "number".to_owned(),
        column_type: ColumnType::Long,
        column: Column::new(Values::I64(rows.iter().map(|r| r.1).collect())),
        dictionary: Views::new(),
        narrower: None,
    };
    let symbol = BatchColumn {
        name: "symbol".to_owned(),
        column_type: ColumnType::Symbol,
        column: Column::new(Values::U32(codes)),
        dictionary,
        narrower: None,
    };
    let timestamps = BatchTimestamps::new(TimeUnit::Nanos, rows.iter().map(|r| r.0).collect());
    let (columns, lines) = (vec![symbol, number], Vec::new());
    Batch { table: table.to_owned(), rows: rows.len(), columns, timestamps: Some(timestamps), lines }
}

fn apply(db: &Database, step: &Step) -> crate::Result<()> {
    match step {
        Step::Rows(tables) => block_on(db.commit(tables.iter().map(|(t, rows)| batch(t, rows)).collect())).map(drop),
        Step::Command(command) => block_on(db.command(command.clone())).map(drop),
        Step::Change { table, multiple, more } => {
            let sql = match more {
                Some(more) => format!("UPDATE {table} SET number = number + {more} WHERE number % {multiple} = 0"),
                None => format!("DELETE FROM {table} WHERE number % {multiple} = 0"),
            };
            block_on(db.execute(&sql, crate::QueryOptions::default())).map(drop)
        }
        Step::Upsert(table, rows) => {
            let values: Vec<String> =
                rows.iter().map(|(key, number)| format!("('2024-01-0{}', 'k{key}', {number})", 1 + key % 3)).collect();
            let sql = format!("INSERT INTO {table} (timestamp, symbol, number) VALUES {}", values.join(", "));
            block_on(db.execute(&sql, crate::QueryOptions::default())).map(drop)
        }
        Step::Load(table, parts) => {
            let found = db.all_tables().1.into_iter().find(|t| t.schema.name == *table).unwrap();
            load(db, LoadTable::Existing { id: found.id, schema: found.schema.clone() }, table, parts)
        }
        Step::LoadNew(table, parts) => {
            load(db, LoadTable::New { create: create_table(table), replaces: false }, table, parts)
        }
        Step::Settle => db.settle(),
        Step::Seal(table) => db.seal(table),
    }
}

fn load(db: &Database, to: LoadTable, table: &str, parts: &[Vec<(i64, i64)>]) -> crate::Result<()> {
    let mut load = db.loader().begin(to)?;
    for part in parts {
        block_on(load.push(vec![batch(table, part)]))?;
    }
    block_on(load.finish(&CancelToken::new())).map(drop)
}

fn apply_to_model(model: &mut Model, step: &Step) {
    match step {
        Step::Rows(tables) => {
            for (table, rows) in tables {
                let new = rows.iter().map(|&(ts, number)| (ts, Some(number), Some(symbol_of(number))));
                model.entry((*table).to_owned()).or_default().extend(new);
            }
        }
        Step::Command(Command::CreateTable(create)) => drop(model.insert(create.name.clone(), Vec::new())),
        Step::Command(Command::DropTable { table, .. }) => drop(model.remove(table)),
        Step::Command(Command::Truncate { table }) => model.get_mut(table).unwrap().clear(),
        Step::Command(Command::RenameTable { table, to }) => {
            let rows = model.remove(table).unwrap();
            model.insert(to.clone(), rows);
        }
        Step::Command(Command::DropColumn { table, .. }) => {
            model.get_mut(table).unwrap().iter_mut().for_each(|row| row.2 = None);
        }
        Step::Command(Command::DropPartitions { table, partitions }) => {
            model.get_mut(table).unwrap().retain(|row| !partitions.contains(&(row.0.div_euclid(DAY) * DAY)));
        }
        Step::Change { table, multiple, more } => {
            let rows = model.get_mut(*table).unwrap();
            let is_hit = |number: &Option<i64>| number.is_some_and(|n| n % multiple == 0);
            match more {
                Some(more) => rows.iter_mut().filter(|r| is_hit(&r.1)).for_each(|r| r.1 = r.1.map(|n| n + more)),
                None => rows.retain(|row| !is_hit(&row.1)),
            }
        }
        Step::Upsert(table, rows) => {
            let table = model.get_mut(*table).unwrap();
            for (key, number) in rows {
                let (ts, symbol) = (19_723 * DAY + key % 3 * DAY, Some(format!("k{key}")));
                table.retain(|row| row.0 != ts || row.2 != symbol);
                table.push((ts, Some(*number), symbol));
            }
        }
        Step::Load(table, parts) | Step::LoadNew(table, parts) => {
            let all = parts.concat();
            apply_to_model(model, &Step::Rows(vec![(*table, all)]));
        }
        Step::Command(_) | Step::Settle | Step::Seal(_) => {}
    }
}

fn read(table: &TableSnapshot) -> Rows {
    let id = |name| table.schema.column(name).map(|c| c.id);
    let (ts, number, symbol) = (id("timestamp").unwrap(), id("number").unwrap(), id("symbol"));
    let strings = symbol.map(|id| table.symbols[&id].strings());
    let mut rows = Rows::new();
    let mut add = |column: &dyn Fn(ColumnId) -> Option<Column>, is_dead: &dyn Fn(usize) -> bool| {
        let Some(Values::I64(ts)) = column(ts).map(|c| c.values) else { panic!("a block without timestamps") };
        let (number, symbol) = (column(number), symbol.and_then(column));
        for (row, ts) in ts.into_iter().enumerate().filter(|(row, _)| !is_dead(*row)) {
            let number = number.as_ref().filter(|c| c.is_valid(row)).map(|c| match &c.values {
                Values::I64(v) => v[row],
                other => panic!("{other:?}"),
            });
            let symbol = symbol.as_ref().filter(|c| c.is_valid(row)).map(|c| match &c.values {
                Values::U32(v) => String::from_utf8(strings.as_ref().unwrap().get(v[row] as usize).to_vec()).unwrap(),
                other => panic!("{other:?}"),
            });
            rows.push((ts, number, symbol));
        }
    };
    for segment in table.segments.iter() {
        for block in 0..segment.block_count() {
            let is_dead = |row| table.mask(segment).is_some_and(|mask| mask.is_dead(block * BLOCK_ROWS + row));
            add(&|id| segment.read(id, block).unwrap().map(|b| to_column(&b)), &is_dead);
        }
    }
    for run in table.runs.iter() {
        add(&|id| run.column(id).map(|c| Column::clone(c)), &|row| run.is_dead(row));
    }
    rows
}

fn content(db: &Database) -> Model {
    let (_, tables) = db.all_tables();
    let mut model: Model = tables.iter().map(|t| (t.schema.name.clone(), read(t))).collect();
    sort(&mut model);
    model
}

fn sort(model: &mut Model) {
    model.values_mut().for_each(|rows| rows.sort());
}

fn create(name: &str) -> Step {
    Step::Command(Command::CreateTable(create_table(name)))
}

fn create_table(name: &str) -> CreateTable {
    let columns = [
        ("timestamp", ColumnType::Timestamp(TimeUnit::Nanos)),
        ("symbol", ColumnType::Symbol),
        ("number", ColumnType::Long),
    ];
    CreateTable {
        name: name.to_owned(),
        columns: columns.map(|(n, t)| (n.to_owned(), t)).to_vec(),
        designated: Some("timestamp".to_owned()),
        partition_by: PartitionBy::Day,
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        if_not_exists: false,
    }
}

fn create_upserts(name: &str) -> Step {
    let Step::Command(Command::CreateTable(mut table)) = create(name) else { panic!() };
    table.dedup = vec!["timestamp".to_owned(), "symbol".to_owned()];
    Step::Command(Command::CreateTable(table))
}

/// Returns rows numbered from `first`, `spread` apart, every third one late.
fn rows(first: i64, count: i64, spread: i64) -> Vec<(i64, i64)> {
    (first..first + count).map(|n| (if n % 3 == 0 { (n - 20) * spread } else { n * spread }, n)).collect()
}

fn story() -> Vec<Step> {
    let hour = DAY / 24;
    let change = |table, multiple, more| Step::Change { table, multiple, more };
    let drop_table = |table: &str| Step::Command(Command::DropTable { table: table.to_owned(), if_exists: false });
    vec![
        create("a"),
        Step::Rows(vec![("a", rows(0, 50, hour)), ("b", rows(1000, 10, 7))]),
        Step::Rows(vec![("a", rows(50, 5, hour))]),
        Step::Settle,
        Step::Rows(vec![("a", rows(40, 30, hour)), ("c", rows(5000, 10, hour))]),
        Step::Command(Command::RenameTable { table: "b".into(), to: "d".into() }),
        Step::Rows(vec![("b", rows(2000, 3, hour)), ("d", rows(2100, 3, 7))]),
        Step::Settle,
        Step::Seal("a"),
        Step::Rows(vec![("a", rows(300, 2, hour))]),
        Step::Load("a", vec![rows(60, 8, hour), rows(64, 8, hour), rows(400, 4, hour)]),
        change("a", 5, None),
        change("a", 7, Some(1)),
        Step::Rows(vec![("a", rows(70, 5, hour))]),
        change("a", 3, Some(100)),
        Step::Command(Command::DropPartitions { table: "a".into(), partitions: vec![DAY, 2 * DAY] }),
        Step::Load("a", vec![rows(20, 12, hour)]),
        change("a", 11, None),
        Step::Rows(vec![("a", rows(30, 10, hour))]),
        Step::Load("c", vec![rows(5100, 2, hour)]),
        Step::Command(Command::Truncate { table: "c".into() }),
        Step::Load("c", vec![rows(6100, 3, hour), rows(6050, 3, hour)]),
        Step::Rows(vec![("c", rows(6000, 4, hour))]),
        Step::Settle,
        change("c", 2, None),
        drop_table("d"),
        Step::Rows(vec![("d", rows(7000, 4, hour)), ("a", rows(8000, 1, 1))]),
        Step::Command(Command::DropColumn { table: "c".into(), column: "symbol".into(), if_exists: false }),
        Step::Command(Command::AddColumn {
            table: "a".into(),
            column: "more".into(),
            column_type: ColumnType::Double,
            if_not_exists: false,
        }),
        change("a", 4, Some(3)),
        Step::Settle,
        change("c", 1, None),
        Step::LoadNew("n", vec![rows(100, 4, hour), rows(90, 4, hour)]),
        change("n", 2, Some(1)),
        create_upserts("u"),
        Step::Upsert("u", vec![(1, 10), (2, 20), (3, 30), (1, 11)]),
        Step::Upsert("u", vec![(4, 40), (2, 21)]),
        drop_table("b"),
        Step::Load("n", vec![rows(200, 2, hour)]),
        Step::Settle,
        Step::Upsert("u", vec![(2, 22), (3, 30), (5, 50), (4, 41)]),
        change("u", 10, None),
        Step::Upsert("u", vec![(2, 22), (3, 31), (5, 51)]),
        Step::Seal("u"),
        Step::Rows(vec![("e", rows(1, 2, 1)), ("a", rows(20, 3, hour))]),
        Step::Seal("a"),
    ]
}

/// Runs the sequence until a step fails; returns the model after the last acknowledged step and after the step in
/// doubt.
fn run(db: &Database, steps: &[Step]) -> (Model, Model) {
    let mut acknowledged = Model::new();
    for step in steps {
        let mut next = acknowledged.clone();
        apply_to_model(&mut next, step);
        if apply(db, step).is_err() {
            sort(&mut acknowledged);
            sort(&mut next);
            return (acknowledged, next);
        }
        acknowledged = next;
    }
    sort(&mut acknowledged);
    (acknowledged.clone(), acknowledged)
}

#[test]
fn the_story_without_faults_gives_the_model_before_and_after_reopening() {
    let fs = SimFs::new(0);
    let db = open(&fs).unwrap();
    let (model, _) = run(&db, &story());
    assert_eq!(content(&db), model);
    db.close().unwrap();
    assert_eq!(content(&open(&fs).unwrap()), model);
    assert_eq!(content(&open(&fs.survivor(1)).unwrap()), model);
}

#[test]
fn a_power_loss_at_any_operation_loses_nothing_acknowledged_and_leaves_nothing_in_part() {
    let mut operation = 0;
    loop {
        let fs = SimFs::new(operation);
        fs.crash_at(operation);
        let story = story();
        let (acknowledged, in_doubt) = match open(&fs) {
            Ok(db) => run(&db, &story),
            Err(_) => (Model::new(), Model::new()),
        };
        let is_over = !fs.is_crashed();
        for seed in 0..3 {
            let disk = fs.survivor(seed);
            let what = format!("power loss at operation {operation}, survivor {seed}");
            let db = open(&disk).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = content(&db);
            assert!(
                found == acknowledged || found == in_doubt,
                "{what}: found {found:#?}, acknowledged {acknowledged:#?}"
            );
            // Continues with new rows, a merge and a checkpoint, twice with a crash in between.
            let more = [
                Step::Rows(vec![
                    ("z", rows(9000, 5, 1)),
                    ("a", rows(9000, 2, 1)),
                    ("b", rows(9200, 2, 1)),
                    ("d", rows(9300, 1, 1)),
                ]),
                Step::Settle,
                Step::Rows(vec![("z", rows(9100, 5, 1)), ("b", rows(9500, 2, 1))]),
            ];
            let mut expected = found;
            for step in &more {
                apply(&db, step).unwrap_or_else(|e| panic!("{what}: {step:?}: {e}"));
                apply_to_model(&mut expected, step);
            }
            sort(&mut expected);
            drop(db);
            let again = open(&disk.survivor(seed + 100)).unwrap_or_else(|e| panic!("{what}, opened again: {e}"));
            assert!(content(&again) == expected, "{what}: lost something after going on");
        }
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 100, "the story has only {operation} operations");
}

#[test]
fn a_failed_operation_refuses_commits_or_is_repaired_and_loses_nothing() {
    let mut operation = 0;
    loop {
        let fs = SimFs::new(operation);
        fs.fail_at(operation, io::ErrorKind::StorageFull);
        let Ok(db) = open(&fs) else {
            operation += 1;
            continue;
        };
        let (mut acknowledged, mut in_doubt) = (Model::new(), None);
        for step in story() {
            let mut next = acknowledged.clone();
            apply_to_model(&mut next, &step);
            // One fault: the failed step may be retried, unless the fault hit the log.
            match apply(&db, &step).or_else(|_| apply(&db, &step)) {
                Ok(()) => acknowledged = next,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Unavailable, "operation {operation}, {step:?}: {error}");
                    sort(&mut next);
                    in_doubt = Some(next);
                    break;
                }
            }
        }
        let is_over = fs.operations() <= operation;
        sort(&mut acknowledged);
        assert_eq!(content(&db), acknowledged, "fault at operation {operation}");
        drop(db);
        // The process restarts, then the power is lost: the content visible in between remains.
        let restarted = fs.killed();
        let shown = content(&open(&restarted).unwrap_or_else(|e| panic!("restart after {operation}: {e}")));
        for seed in 0..3 {
            let lost =
                open(&restarted.survivor(seed)).unwrap_or_else(|e| panic!("fault at {operation}, power loss: {e}"));
            assert_eq!(content(&lost), shown, "fault at operation {operation}, restart, power loss");
        }
        let again = open(&fs.survivor(operation)).unwrap_or_else(|e| panic!("fault at operation {operation}: {e}"));
        let found = content(&again);
        // A commit whose sync failed may still have survived.
        assert!(found == acknowledged || Some(&found) == in_doubt.as_ref(), "fault at operation {operation}");
        if is_over {
            break;
        }
        operation += 1;
    }
}

/// A merge whose edit of the manifest failed may exist in the manifest at the next open: rows deleted since would be
/// searched at wrong positions.
#[test]
fn rows_that_die_after_a_merge_that_failed_stay_dead() {
    let dying = [
        Step::Change { table: "t", multiple: 2, more: None },
        Step::Change { table: "t", multiple: 3, more: Some(1_000) },
        Step::Upsert("u", (0..9).map(|key| (key, 700 + key)).collect()),
    ];
    let before = [
        create("t"),
        create_upserts("u"),
        Step::Rows(vec![("t", rows(0, 30, DAY))]),
        Step::Upsert("u", (0..9).map(|key| (key, key)).collect()),
    ];
    let mut failed = 0;
    for (operation, is_full) in (0..).flat_map(|operation| [(operation, false), (operation, true)]) {
        let fs = SimFs::new(operation);
        let db = open(&fs).unwrap();
        let mut model = Model::new();
        for step in &before {
            apply(&db, step).unwrap();
            apply_to_model(&mut model, step);
        }
        fs.fail_at(fs.operations() + operation, io::ErrorKind::StorageFull);
        if db.settle().is_ok() {
            break;
        }
        failed += 1;
        // Alternatively, nothing more can be written that would revoke the merge.
        fs.set_mood(if is_full { Mood::Full } else { Mood::Well });
        for step in &dying {
            match apply(&db, step) {
                Ok(()) => apply_to_model(&mut model, step),
                Err(error) => {
                    assert!(is_full && error.kind == ErrorKind::Unavailable, "{operation}, {step:?}: {error}")
                }
            }
        }
        sort(&mut model);
        assert_eq!(content(&db), model, "operation {operation} of a merge failed");
        drop(db);
        fs.set_mood(Mood::Well);
        for (after, fs) in [("a restart", fs.killed()), ("a power loss", fs.survivor(operation))] {
            let found = content(&open(&fs).unwrap_or_else(|e| panic!("{after}, operation {operation}: {e}")));
            assert_eq!(found, model, "{after}, operation {operation} of a merge failed");
        }
    }
    assert!(failed > 10, "{failed}");
}

/// Small runs are joined while a commit is published: its first rows with previous rows, its later rows with following
/// rows.
///
/// A dropped partition then removes one run, and a merge of it ends within the other run of the checkpoint.
#[test]
fn a_partition_dropped_behind_a_checkpoint_does_not_hinder_opening() {
    let fs = SimFs::new(1);
    let db = open(&fs).unwrap();
    let (first_day, second_day) = (|n: i64| vec![(n, n)], |n: i64| vec![(DAY + n, n)]);
    // A merge takes all rows.
    let lag = Command::SetLag { table: "t".to_owned(), lag_us: Some(0) };
    let mut steps = vec![create("t"), Step::Command(lag)];
    steps.extend((0..7).map(|n| Step::Rows(vec![("t", first_day(n))])));
    steps.push(Step::Rows(vec![("t", first_day(7)), ("t", second_day(7))]));
    steps.extend((8..15).map(|n| Step::Rows(vec![("t", second_day(n))])));
    let mut model = Model::new();
    for step in &steps {
        apply(&db, step).unwrap();
        apply_to_model(&mut model, step);
    }
    let runs: Vec<_> = db.all_tables().1[0].runs.iter().map(|run| run.txns).collect();
    assert!(runs.len() == 2 && runs[0].1 == runs[1].0, "they share a commit: {runs:?}");
    db.jobs().checkpoint_now().unwrap();
    let drop_second = Step::Command(Command::DropPartitions { table: "t".to_owned(), partitions: vec![DAY] });
    apply(&db, &drop_second).unwrap();
    apply_to_model(&mut model, &drop_second);
    let id = db.all_tables().1[0].id;
    db.jobs().merge_now(id).unwrap();
    sort(&mut model);
    for again in 0..2 {
        let db = open(&fs.survivor(again)).unwrap();
        assert_eq!(content(&db), model);
        apply(&db, &Step::Rows(vec![("t", second_day(20))])).unwrap();
        db.settle().unwrap();
        assert_eq!(db.all_tables().1[0].row_count(), 9);
    }
}

/// An upsert must read the rows that it replaces, which may fail after its new column, new table and new symbol were
/// decided.
#[test]
fn an_upsert_that_cannot_look_up_its_rows_leaves_tables_as_they_were() {
    let before = [create_upserts("u"), Step::Upsert("u", (0..9).map(|key| (key, key)).collect()), Step::Settle];
    let written = SimFs::new(1);
    let db = open(&written).unwrap();
    let mut model = Model::new();
    for step in &before {
        apply(&db, step).unwrap();
        apply_to_model(&mut model, step);
    }
    sort(&mut model);
    let wider = |number: i64| {
        let mut wider = batch("u", &[(19_723 * DAY, number)]);
        wider.columns.push(BatchColumn { name: "more".to_owned(), ..wider.columns[1].clone() });
        wider.columns.push(BatchColumn { name: "another".to_owned(), ..wider.columns[0].clone() });
        wider
    };
    let names = |db: &Database| -> Vec<(String, usize)> {
        db.all_tables().1.iter().map(|t| (t.schema.name.clone(), t.schema.columns.len())).collect()
    };
    // No part of the segments is in memory yet.
    let fs = written.killed();
    let db = open(&fs).unwrap();
    fs.set_mood(Mood::Unreadable);
    block_on(db.commit(vec![batch("v", &[(0, 1)]), wider(1)])).unwrap_err();
    fs.set_mood(Mood::Well);
    assert_eq!(names(&db), [("u".to_owned(), 3)]);
    assert_eq!(content(&db), model);
    // The names of the rejected upsert can be added with other types, next to the symbol that it added.
    let mut other = wider(1);
    other.columns[2].column_type = ColumnType::Double;
    other.columns[2].column = Column::new(Values::F64(vec![0.5]));
    block_on(db.commit(vec![other])).unwrap();
    block_on(db.commit(vec![wider(1), batch("v", &[(0, 1)])])).unwrap();
    apply_to_model(&mut model, &Step::Rows(vec![("u", vec![(19_723 * DAY, 1)]), ("v", vec![(0, 1)])]));
    sort(&mut model);
    for again in 0..2 {
        let db = open(&fs.survivor(again)).unwrap();
        assert_eq!(names(&db), [("u".to_owned(), 5), ("v".to_owned(), 2 + 1)]);
        assert_eq!(content(&db), model);
        db.settle().unwrap();
        assert_eq!(content(&db), model);
    }
}

/// Returns the numbers of a table, in order.
fn numbers(db: &Database, table: &str) -> Vec<i64> {
    let mut found: Vec<i64> = content(db).remove(table).unwrap_or_default().iter().filter_map(|row| row.1).collect();
    found.sort_unstable();
    found
}

/// Runs writers that each commit 0, 1, 2 … to a separate table until a commit fails.
///
/// Two wait for every answer, one works like the stream of a connection, and one sends all commits at once. Returns the
/// number of acknowledged commits of each.
fn write_beside_one_another(db: &Database) -> [usize; 4] {
    const COMMITS: i64 = 12;
    let commit = |table: &str, number: i64| db.commit(vec![batch(table, &[(number, number)])]);
    let in_turn = |table| (0..COMMITS).take_while(|&number| block_on(commit(table, number)).is_ok()).count();
    std::thread::scope(|threads| {
        let [first, second] = ["t0", "t1"].map(|table| threads.spawn(move || in_turn(table)));
        let stream = threads.spawn(|| {
            let commit = |number| db.commit_until_refused(vec![batch("t2", &[(number, number)])]);
            (0..COMMITS).take_while(|&number| block_on(commit(number)).is_ok()).count()
        });
        let together: Vec<_> = (0..COMMITS).map(|number| commit("t3", number)).collect();
        let together: Vec<_> = together.into_iter().map(block_on).collect();
        let acknowledged = together.iter().take_while(|answer| answer.is_ok()).count();
        assert!(together[acknowledged..].iter().all(Result::is_err), "nothing is durable behind what is not");
        let [first, second, stream] = [first, second, stream].map(|thread| thread.join().unwrap());
        [first, second, stream, acknowledged]
    })
}

/// With overlapping syncs, the power is lost or an operation fails at any moment.
#[test]
fn overlapping_syncs_lose_and_double_nothing() {
    let config = || DatabaseConfig {
        overlap_syncs_from: Some(std::time::Duration::ZERO),
        sync_delay: std::time::Duration::from_micros(100),
        ..config()
    };
    let open = |fs: &SimFs| Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config(), None);
    let tables = ["t0", "t1", "t2", "t3"];
    let mut ends = [false; 2];
    for operation in 1..90 {
        for is_failure in [false, true] {
            let fs = SimFs::new(operation);
            let db = open(&fs).unwrap();
            for table in tables {
                apply(&db, &create(table)).unwrap();
            }
            if is_failure {
                fs.fail_at(fs.operations() + operation, io::ErrorKind::Other);
            } else {
                fs.crash_at(fs.operations() + operation);
            }
            let acknowledged = write_beside_one_another(&db);
            ends[usize::from(acknowledged == [12; 4])] = true;
            // Visible commits are durable.
            let seen = tables.map(|table| numbers(&db, table).len());
            for survivor in 0..2 {
                let db = open(&fs.survivor(survivor)).unwrap();
                for (i, table) in tables.iter().enumerate() {
                    let found = numbers(&db, table);
                    assert!(
                        found.iter().copied().eq(0..found.len() as i64),
                        "operation {operation}, {table}: {found:?}"
                    );
                    let least = acknowledged[i].max(seen[i]);
                    assert!(found.len() >= least, "operation {operation}, {table}: {} of {least}", found.len());
                }
                apply(&db, &Step::Rows(vec![("t0", vec![(0, 100)])])).unwrap();
            }
        }
    }
    assert_eq!(ends, [true, true], "some of them came to the end and some did not");
}
