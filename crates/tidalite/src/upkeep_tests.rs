//! Damage to any byte of any file is reported or harmless: never a wrong result, never a panic. A restore returns the
//! content of the backup, independent of concurrent changes.

use crate::backup::backup_to;
use crate::check::{CheckReport, check_files};
use crate::destination::{BACKUPS, Destination, Folder};
use crate::repair::{RepairReport, repair_files};
use crate::restore::{At, Plan, restore_files};
use crate::{Database, DatabaseConfig, ErrorKind, QueryOptions, Response, Result};
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::fs::overlay::OverlayFs;

const COLUMNS: [&str; 5] = ["ts", "sym", "x", "y", "s"];

pub(crate) fn config() -> DatabaseConfig {
    DatabaseConfig {
        has_background_jobs: false,
        merge_threads: 1,
        query_threads: 1,
        log_file_bytes: 16 << 10,
        cache_bytes: 64 << 20,
        ..DatabaseConfig::new("")
    }
}

pub(crate) fn open(fs: &SimFs) -> Result<Database> {
    Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config(), None)
}

/// Returns the rows of a result as text, sorted.
pub(crate) fn ask(db: &Database, sql: &str) -> Result<Vec<String>> {
    block_on(async {
        let rows = match db.execute(sql, QueryOptions::default()).await? {
            Response::Rows(rows) => rows,
            Response::Done { .. } => return Ok(Vec::new()),
        };
        let mut stream = rows.stream;
        let mut lines = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let options = arrow::util::display::FormatOptions::default().with_null("NULL");
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|c| arrow::util::display::ArrayFormatter::try_new(c, &options).unwrap())
                .collect();
            for row in 0..batch.num_rows() {
                lines.push(columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|"));
            }
        }
        lines.sort();
        Ok(lines)
    })
}

pub(crate) fn run(db: &Database, sql: &str) {
    ask(db, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

pub(crate) fn insert(db: &Database, table: &str, numbers: std::ops::Range<i64>) {
    let rows = numbers.map(|n| {
        let (day, second) = (1 + n % 3, n % 86_400);
        let text = if n % 7 == 0 { "NULL".to_owned() } else { format!("'text of row number {}'", n * n) };
        format!(
            "('2024-01-0{day}T00:00:00Z'::timestamp + interval '{second} seconds', 's{}', {n}, {n}.5, {text})",
            n % 40
        )
    });
    run(db, &format!("INSERT INTO {table} (ts, sym, x, y, s) VALUES {}", rows.collect::<Vec<_>>().join(", ")));
}

/// Returns every table by name, each column separately and all together.
pub(crate) fn content(db: &Database) -> BTreeMap<String, Vec<String>> {
    let tables = ask(db, "SELECT table_name FROM tables()").unwrap();
    tables.into_iter().map(|t| (t.clone(), ask(db, &format!("SELECT * FROM {t}")).unwrap())).collect()
}

pub(crate) fn create(db: &Database, table: &str) {
    run(
        db,
        &format!(
            "CREATE TABLE {table} (ts TIMESTAMP, sym SYMBOL, x LONG, y DOUBLE, s VARCHAR) TIMESTAMP(ts) PARTITION BY DAY"
        ),
    );
}

/// Returns a folder with all kinds of files: segments of several partitions, symbols, a checkpoint with rows, a log
/// after it.
fn folder() -> (SimFs, BTreeMap<String, Vec<String>>) {
    let fs = SimFs::new(7);
    let db = open(&fs).unwrap();
    create(&db, "t");
    create(&db, "other");
    insert(&db, "t", 0..300);
    insert(&db, "other", 0..30);
    db.settle().unwrap();
    insert(&db, "t", 300..340);
    insert(&db, "other", 30..60);
    db.close().unwrap();
    let db = open(&fs).unwrap();
    for n in 0..6 {
        insert(&db, "t", 1000 + n * 5..1005 + n * 5);
    }
    // The state after a crash, with a log to read.
    let found = fs.survivor(1);
    let db = open(&found.survivor(1)).unwrap();
    (found, content(&db))
}

pub(crate) fn files(fs: &dyn Fs, dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for name in fs.list(dir).unwrap() {
        let path = dir.join(name);
        match fs.open(&path) {
            Ok(_) => all.push(path),
            Err(_) => all.extend(files(fs, &path)),
        }
    }
    all
}

pub(crate) fn check(fs: &SimFs) -> Result<CheckReport> {
    check_files(&(Arc::new(fs.clone()) as Arc<dyn Fs>), &mut |_, _| Ok(()))
}

/// Returns a copy of the folder with one flipped bit in a file.
fn flipped(fs: &SimFs, path: &Path, at: u64, bit: u32) -> SimFs {
    let fs = fs.survivor(0);
    let file = fs.open_write(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
    file.sync().unwrap();
    fs
}

/// Returns positions in every part of a file: its ends, and random ones.
fn places(rng: &mut fastrand::Rng, len: u64, count: u64) -> Vec<u64> {
    let ends = [0, 8, 12, 24, 40, 64, len / 2, len.saturating_sub(32), len.saturating_sub(9), len - 1];
    let mut places: Vec<u64> = ends.into_iter().chain((0..count).map(|_| rng.u64(..len))).collect();
    places.retain(|at| *at < len);
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn a_sound_folder_has_no_problems() {
    let (fs, _) = folder();
    let report = check(&fs).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!((report.tables, report.segments, report.rows, report.commits), (2, 6, 330, 6));
    let db = open(&fs).unwrap();
    assert_eq!(ask(&db, "CHECK DATABASE").unwrap(), Vec::<String>::new());
    assert_eq!(ask(&db, "CHECK TABLE T").unwrap(), Vec::<String>::new());
    assert_eq!(ask(&db, "CHECK TABLE nosuch").unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_flipped_bit_is_named_or_does_not_matter() {
    let (fs, expected) = folder();
    let (mut rng, mut seen) = (fastrand::Rng::with_seed(11), BTreeMap::<String, usize>::new());
    let mut last_lost = expected.clone();
    last_lost.get_mut("t").unwrap().retain(|row| !(1025..1030).any(|n| row.contains(&format!("|{n}|"))));
    for path in files(&fs, Path::new("")) {
        let kind = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let kind = kind.split('-').next().unwrap().to_owned();
        let len = fs.open(&path).unwrap().len().unwrap();
        for at in places(&mut rng, len, 12) {
            let what = format!("{} at {at}", path.display());
            let bad = flipped(&fs, &path, at, rng.u32(..8));
            let report = check(&bad).unwrap_or_else(|e| panic!("{what}: {e}"));
            *seen.entry(kind.clone()).or_default() += usize::from(!report.problems.is_empty());
            let db = match open(&bad) {
                Ok(db) => db,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Corrupt, "{what}: {error}");
                    assert!(!report.problems.is_empty(), "{what}: {error}");
                    continue;
                }
            };
            let mut failed = 0;
            for table in ["t", "other"] {
                for column in COLUMNS.iter().chain(&["*"]) {
                    match ask(&db, &format!("SELECT {column} FROM {table}")) {
                        Ok(rows) if *column == "*" => {
                            assert!(
                                rows == expected[table] || rows == last_lost[table],
                                "{what}: wrong rows of {table}"
                            );
                        }
                        Ok(rows) => assert!(rows.len() >= expected[table].len() - 5, "{what}"),
                        Err(error) => {
                            failed += 1;
                            assert_eq!(error.kind, ErrorKind::Corrupt, "{what}: {error}");
                            for part in [
                                format!("table \"{table}\""),
                                "partition 2024-01-0".to_owned(),
                                format!("{} is damaged at byte", path.display()),
                            ] {
                                assert!(error.message.contains(&part), "{what}: {error}");
                            }
                        }
                    }
                }
            }
            // Damage to a block fails the queries of its column, to a footer those of its table.
            assert!(failed <= 6, "{what}: {failed} queries failed");
            assert!(failed == 0 || !report.problems.is_empty(), "{what}: not found by the check");
            // Late rows in every partition: the merge continues despite the damage.
            insert(&db, "t", 2000..2030);
            insert(&db, "other", 2000..2030);
            db.settle().unwrap_or_else(|e| panic!("{what}: {e}"));
            for table in ["t", "other"] {
                if let Ok(rows) = ask(&db, &format!("SELECT * FROM {table}")) {
                    let more = expected[table].len() + 30;
                    assert!(rows.len() == more || rows.len() == more - 5, "{what}: {} rows of {table}", rows.len());
                }
            }
        }
    }
    for kind in ["manifest", "wal", "checkpoint", "symbols", "segments"] {
        assert!(seen.get(kind).is_some_and(|n| *n >= 5), "{seen:?}");
    }
}

pub(crate) fn repair(fs: &SimFs) -> Result<RepairReport> {
    repair_files(&(Arc::new(fs.clone()) as Arc<dyn Fs>), "now", &mut |_, _| Ok(()))
}

/// Checks that every row is expected, with its symbol or a placeholder; returns the number of missing rows.
fn missing(found: &[String], expected: &[String], what: &str) -> usize {
    let number = |row: &str| row.split('|').nth(2).unwrap().to_owned();
    let by_number: BTreeMap<String, &String> = expected.iter().map(|row| (number(row), row)).collect();
    for row in found {
        let meant = by_number.get(&number(row)).unwrap_or_else(|| panic!("{what}: {row} was never written"));
        let same = |(i, (a, b)): (usize, (&str, &str))| a == b || i == 1 && a.starts_with("<lost symbol ");
        assert!(row.split('|').zip(meant.split('|')).enumerate().all(same), "{what}: {row} was {meant}");
    }
    let distinct: std::collections::BTreeSet<String> = found.iter().map(|row| number(row)).collect();
    assert_eq!(distinct.len(), found.len(), "{what}: a row twice");
    expected.len() - found.len()
}

#[test]
fn a_repair_leaves_a_sound_folder_and_says_what_is_gone() {
    let (fs, expected) = folder();
    let (mut rng, mut repaired) = (fastrand::Rng::with_seed(12), BTreeMap::<String, usize>::new());
    for path in files(&fs, Path::new("")) {
        let kind = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let kind = kind.split('-').next().unwrap().to_owned();
        let len = fs.open(&path).unwrap().len().unwrap();
        for at in places(&mut rng, len, 6) {
            let what = format!("{} at {at}", path.display());
            let bad = flipped(&fs, &path, at, rng.u32(..8));
            let problems = check(&bad).unwrap().problems;
            let operations = bad.operations();
            let above: Arc<dyn Fs> = Arc::new(OverlayFs::new(Arc::new(bad.clone())));
            let dry = repair_files(&above, "now", &mut |_, _| Ok(()));
            assert_eq!(bad.operations(), operations, "{what}: a dry run wrote something");
            let report = match repair(&bad) {
                Ok(report) => report,
                Err(error) => {
                    assert_eq!((error.kind, &kind[..]), (ErrorKind::Corrupt, "manifest"), "{what}: {error}");
                    continue;
                }
            };
            let dry = dry.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!((&dry.done, &dry.lost), (&report.done, &report.lost), "{what}");
            assert_eq!(report.done.is_empty(), problems.is_empty(), "{what}: {problems:?} {report:?}");
            assert_eq!(check(&bad).unwrap().problems, [], "{what}: {report:?}");
            let db = open(&bad.survivor(4)).unwrap_or_else(|e| panic!("{what}: {e}"));
            let mut gone = 0;
            for table in ["t", "other"] {
                gone += missing(&ask(&db, &format!("SELECT * FROM {table}")).unwrap(), &expected[table], &what);
            }
            // The last record of the log is indistinguishable from an incomplete one.
            let is_tail = kind == "wal" && gone == 5 && problems.is_empty();
            assert!(gone == 0 || !report.lost.is_empty() || is_tail, "{what}: {gone} rows are gone without a word");
            let named: u64 = report.lost.iter().map(|lost| lost.rows).sum();
            if kind == "segments" {
                assert_eq!(named, gone as u64, "{what}: {report:?}");
            }
            insert(&db, "t", 3000..3010);
            insert(&db, "other", 3000..3010);
            db.settle().unwrap();
            assert_eq!(ask(&db, "SELECT x FROM t WHERE x >= 3000").unwrap().len(), 10, "{what}");
            *repaired.entry(kind.clone()).or_default() += usize::from(!report.done.is_empty());
        }
    }
    for kind in ["wal", "checkpoint", "symbols", "segments"] {
        assert!(repaired.get(kind).is_some_and(|n| *n >= 5), "{repaired:?}");
    }
}

#[test]
fn a_missing_segment_is_given_up_and_nothing_else() {
    let (fs, expected) = folder();
    let segment = files(&fs, Path::new("segments")).remove(0);
    fs.remove(&segment).unwrap();
    let problems = check(&fs).unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].problem, "the file is missing");
    let report = repair(&fs).unwrap();
    assert_eq!((report.lost.len(), report.lost[0].rows), (1, 100), "{report:?}");
    assert_eq!(check(&fs).unwrap().problems, []);
    let db = open(&fs).unwrap();
    let left = |table: &str| ask(&db, &format!("SELECT * FROM {table}")).unwrap();
    assert_eq!(missing(&left("t"), &expected["t"], "t") + missing(&left("other"), &expected["other"], "other"), 100);
}

#[test]
fn deleted_rows_stay_deleted_by_a_repair() {
    let fs = SimFs::new(8);
    let db = open(&fs).unwrap();
    create(&db, "t");
    insert(&db, "t", 0..90);
    db.settle().unwrap();
    run(&db, "DELETE FROM t WHERE x < 60 AND x % 3 = 0");
    let expected = content(&db);
    let left = fs.survivor(1);
    drop(db);
    // The header of one file and a block of another: both have deleted rows, or could have.
    for (index, at) in [(0, 9), (1, 64), (2, 9)] {
        let bad = flipped(&left, &files(&left, Path::new("segments"))[index], at, 1);
        let report = repair(&bad).unwrap();
        let rows = ask(&open(&bad).unwrap(), "SELECT * FROM t").unwrap();
        assert!(rows.iter().all(|row| expected["t"].contains(row)), "{index}: {report:?}");
        assert_eq!(check(&bad).unwrap().problems, []);
    }
}

#[test]
fn a_repair_that_fails_or_stops_anywhere_is_done_by_the_next_one() {
    let (fs, _) = folder();
    let mut damaged = fs.survivor(0);
    let segments = files(&damaged, Path::new("segments"));
    let log = files(&damaged, Path::new("wal")).remove(0);
    damaged = flipped(&damaged, &segments[0], 64, 1);
    damaged = flipped(&damaged, &log, 64 + 40, 2);
    damaged = flipped(&damaged, Path::new("symbols/00000000.sym"), 30, 2);
    damaged.remove(&segments[2]).unwrap();
    damaged.sync_dir(segments[2].parent().unwrap()).unwrap();
    let whole = damaged.survivor(0);
    assert!(repair(&whole).unwrap().done.len() >= 4);
    let expected = content(&open(&whole).unwrap());
    let mut operation = 0;
    loop {
        let disk = damaged.survivor(operation);
        let before = disk.operations();
        disk.crash_at(before + operation);
        let _ = repair(&disk);
        let is_over = !disk.is_crashed();
        let left = disk.survivor(operation + 7);
        repair(&left).unwrap_or_else(|e| panic!("after a crash at {operation}: {e}"));
        assert_eq!(check(&left).unwrap().problems, [], "after a crash at {operation}");
        assert!(content(&open(&left).unwrap()) == expected, "after a crash at {operation}");

        let disk = damaged.survivor(operation);
        let fault = disk.operations() + operation;
        disk.fail_at(fault, std::io::ErrorKind::StorageFull);
        let _ = repair(&disk);
        if disk.operations() > fault {
            repair(&disk).unwrap_or_else(|e| panic!("after a fault at {operation}: {e}"));
            assert!(content(&open(&disk).unwrap()) == expected, "after a fault at {operation}");
        }
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 40, "{operation} operations");
}

fn destination(fs: &SimFs) -> Folder {
    Folder::new(Arc::new(fs.clone()), "/backups".to_owned())
}

pub(crate) fn back_up(db: &Database, to: &SimFs) -> Result<crate::backup::BackupReport> {
    backup_to(db.shared(), &destination(to), &mut |_, _| Ok(()))
}

pub(crate) fn restored(from: &SimFs, at: &At) -> Result<SimFs> {
    let (from, fs) = (destination(from), SimFs::new(3));
    restore_files(&from, &Plan::new(&from, at)?, &fs, &mut |_, _| Ok(()))?;
    // The restored folder is durable.
    Ok(fs.survivor(9))
}

#[test]
fn backups_come_back_as_of_their_commit_and_of_any_between() {
    let (source, to) = (SimFs::new(1), SimFs::new(2));
    let db = open(&source).unwrap();
    create(&db, "t");
    let mut history = BTreeMap::new();
    let note = |history: &mut BTreeMap<u64, _>| drop(history.insert(db.all_tables().0.0, content(&db)));
    insert(&db, "t", 0..50);
    note(&mut history);
    let first = back_up(&db, &to).unwrap();
    assert_eq!((first.txn, first.files_shared), (2, 0));
    db.settle().unwrap();
    let second = back_up(&db, &to).unwrap();
    insert(&db, "t", 50..80);
    note(&mut history);
    // Deletes rows of segments and staged rows.
    run(&db, "DELETE FROM t WHERE x % 10 = 3");
    note(&mut history);
    run(&db, "UPDATE t SET y = 1.25 WHERE x = 12 OR x = 72");
    note(&mut history);
    create(&db, "u");
    insert(&db, "u", 0..20);
    note(&mut history);
    run(&db, "ALTER TABLE t DROP COLUMN y");
    run(&db, "ALTER TABLE t DROP PARTITION LIST '2024-01-02'");
    note(&mut history);
    run(&db, "DROP TABLE u");
    note(&mut history);
    let third = back_up(&db, &to).unwrap();
    assert!(third.files_shared >= 2, "segments of the second are not copied again: {third:?}");
    assert_eq!(third.log_from, second.txn + 1);
    for (txn, expected) in &history {
        let fs = restored(&to, &At::Txn(*txn)).unwrap_or_else(|e| panic!("commit {txn}: {e}"));
        assert_eq!(check(&fs).unwrap().problems, [], "commit {txn}");
        let again = open(&fs).unwrap();
        assert_eq!(content(&again), *expected, "commit {txn}");
        // The restored database continues with a separate history.
        create(&again, "later");
        insert(&again, "later", 0..9);
        again.settle().unwrap();
        drop(again);
        assert_eq!(ask(&open(&fs).unwrap(), "SELECT x FROM later").unwrap().len(), 9, "commit {txn}");
    }
    let latest = open(&restored(&to, &At::Latest).unwrap()).unwrap();
    assert_eq!(content(&latest), content(&db));
    let named = open(&restored(&to, &At::Backup(first.name.clone())).unwrap()).unwrap();
    assert_eq!(content(&named), history[&2]);
    assert_eq!(Plan::new(&destination(&to), &At::Txn(1)).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(Plan::new(&destination(&to), &At::Txn(third.txn + 1)).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(Plan::new(&destination(&to), &At::Backup("x".to_owned())).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_damaged_backup_is_refused_and_a_damaged_segment_is_not_backed_up() {
    let (fs, expected) = folder();
    let to = SimFs::new(5);
    back_up(&open(&fs.survivor(0)).unwrap(), &to).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for path in files(&to, Path::new("")) {
        let len = to.open(&path).unwrap().len().unwrap();
        for at in places(&mut rng, len, 2) {
            let bad = flipped(&to, &path, at, rng.u32(..8));
            match restored(&bad, &At::Latest) {
                Err(error) => assert_eq!(error.kind, ErrorKind::Corrupt, "{}: {error}", path.display()),
                // Log files between backups and white space at the end of the list do not belong to a backup.
                Ok(fs) => {
                    assert!(path.starts_with("log") || path.starts_with(BACKUPS), "{} at {at}", path.display());
                    assert_eq!(content(&open(&fs).unwrap()), expected);
                }
            }
        }
    }
    let segment = files(&fs, Path::new("segments")).remove(0);
    let bad = flipped(&fs, &segment, 64, 1);
    let error = back_up(&open(&bad).unwrap(), &SimFs::new(6)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(error.message.contains("partition 2024-01-0"), "{error}");
}

#[test]
fn a_backup_that_fails_or_stops_anywhere_is_none_and_the_next_one_is_whole() {
    let (source, _) = folder();
    let db = open(&source).unwrap();
    let expected = content(&db);
    let mut operation = 0;
    loop {
        // First the destination's disk is full, then its power is lost.
        let full = SimFs::new(operation);
        full.fail_at(operation, std::io::ErrorKind::StorageFull);
        let was_made = back_up(&db, &full).is_ok();
        let is_over = full.operations() <= operation;
        // A backup rejected at the very end may exist, and is complete then.
        let lists = destination(&full).list(BACKUPS).unwrap();
        if was_made || lists.iter().any(|n| !n.ends_with(".part")) {
            assert_eq!(content(&open(&restored(&full, &At::Latest).unwrap()).unwrap()), expected, "{operation}");
        }
        // A fault that has not occurred yet would hit this backup.
        if !is_over {
            back_up(&db, &full).unwrap_or_else(|e| panic!("after a fault at {operation}: {e}"));
        }
        assert_eq!(content(&open(&restored(&full, &At::Latest).unwrap()).unwrap()), expected);

        let crashed = SimFs::new(operation);
        crashed.crash_at(operation);
        let was_made = back_up(&db, &crashed).is_ok();
        let left = crashed.survivor(operation + 1);
        let lists = destination(&left).list(BACKUPS).unwrap();
        if was_made || lists.iter().any(|n| !n.ends_with(".part")) {
            assert_eq!(content(&open(&restored(&left, &At::Latest).unwrap()).unwrap()), expected, "{operation}");
        }
        back_up(&db, &left).unwrap_or_else(|e| panic!("after a crash at {operation}: {e}"));
        assert_eq!(content(&open(&restored(&left, &At::Latest).unwrap()).unwrap()), expected);
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 30, "{operation} operations");
    assert_eq!(content(&db), expected, "the database does not mind");
}
