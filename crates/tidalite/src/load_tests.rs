//! Loads by SQL: readers see no row or all rows, a failed load leaves nothing, and other changes of the table keep their
//! order.

use crate::check::check_files;
use crate::restore::At;
use crate::upkeep_tests::{back_up, restored};
use crate::view_crash_tests::ask;
use crate::{Database, DatabaseConfig, ErrorKind, SqlState};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier};
use tidalite_query::CancelToken;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::late::late_of;

/// Rows of a load: about twenty parts.
const ROWS: u64 = 200_000;

fn config() -> DatabaseConfig {
    DatabaseConfig { has_background_jobs: false, load_bytes: 256 << 10, merge_threads: 1, ..DatabaseConfig::new("") }
}

fn open_with(fs: &SimFs, config: DatabaseConfig) -> Database {
    Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config, None).unwrap()
}

fn open(fs: &SimFs) -> Database {
    open_with(fs, config())
}

fn run(db: &Database, sql: &str) {
    ask(db, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

const CREATE: &str = "CREATE TABLE t (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY";

/// Rows in time order, a second apart.
fn rows(first: u64, count: u64) -> String {
    format!(
        "SELECT (n * 1000000)::timestamp AS ts, 'k' || (n % 100) AS k, n \
         FROM (SELECT x + {first} AS n FROM long_sequence({count})) AS s ORDER BY n"
    )
}

fn numbers(db: &Database, what: &str) -> Vec<u64> {
    let found = ask(db, &format!("SELECT {what} FROM t")).unwrap();
    found[0].split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Returns the files of segments.
fn files(fs: &dyn Fs) -> Vec<String> {
    let folders = fs.list(Path::new("segments")).unwrap();
    let within = |folder: String| fs.list(&Path::new("segments").join(folder)).unwrap();
    folders.into_iter().flat_map(within).collect()
}

/// Runs a statement while readers count the rows of `t`; returns the counts.
fn counts_during(db: &Database, statement: &str, missing: bool) -> Vec<u64> {
    let is_over = AtomicBool::new(false);
    // Each reader has counted before the statement starts.
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    for round in 0.. {
                        if round == 1 {
                            start.wait();
                        }
                        // One more count after the end.
                        let is_last = is_over.load(SeqCst);
                        match ask(db, "SELECT count() FROM t") {
                            Ok(found) => seen.push(found[0].parse().unwrap()),
                            Err(error) => assert!(missing && error.kind == ErrorKind::NotFound, "{error}"),
                        }
                        if is_last {
                            break;
                        }
                    }
                    seen
                })
            })
            .collect();
        start.wait();
        let done = ask(db, statement);
        is_over.store(true, SeqCst);
        let seen = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
        done.unwrap_or_else(|e| panic!("{statement}: {e}"));
        seen
    })
}

#[test]
fn readers_see_no_row_or_all_rows_of_an_insert() {
    let fs = SimFs::new(1);
    let db = open_with(&fs, DatabaseConfig { has_background_jobs: true, ..config() });
    run(&db, CREATE);
    run(&db, &format!("INSERT INTO t {}", rows(0, 10)));
    let seen = counts_during(&db, &format!("INSERT INTO t {}", rows(5, ROWS)), false);
    assert!(seen.iter().all(|count| [10, 10 + ROWS].contains(count)), "{seen:?}");
    assert_eq!((seen.first(), seen.last()), (Some(&10), Some(&(10 + ROWS))));
    assert!(db.all_tables().1[0].runs.iter().all(|run| run.rows <= 10), "the rows are not staged");
    drop(db);
    let db = open(&fs.survivor(1));
    assert_eq!(numbers(&db, "count(), sum(n), count(DISTINCT k)"), [ROWS + 10, (6..=ROWS + 5).sum::<u64>() + 55, 100]);
    db.settle().unwrap();
    assert_eq!(numbers(&db, "count(), sum(n), count(DISTINCT k)"), [ROWS + 10, (6..=ROWS + 5).sum::<u64>() + 55, 100]);
}

#[test]
fn readers_see_no_table_or_all_rows_of_create_table_as() {
    let fs = SimFs::new(2);
    let db = open_with(&fs, DatabaseConfig { has_background_jobs: true, ..config() });
    let create = format!("CREATE TABLE t AS ({}), CAST(k AS SYMBOL) TIMESTAMP(ts) PARTITION BY DAY", rows(0, ROWS));
    let seen = counts_during(&db, &create, true);
    assert!(!seen.is_empty() && seen.iter().all(|count| *count == ROWS), "{seen:?}");
    let error = ask(&db, &create).unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Conflict, "table \"t\" already exists"));
    run(&db, "CREATE TABLE small AS (SELECT 1 AS a)");
    assert_eq!(ask(&db, "SELECT * FROM small").unwrap(), ["1"]);
    drop(db);
    let db = open(&fs.survivor(1));
    assert_eq!(numbers(&db, "count(), sum(n), count(DISTINCT k)"), [ROWS, (1..=ROWS).sum::<u64>(), 100]);
    run(&db, "INSERT INTO t VALUES (0, 'new', 0)");
    assert_eq!(numbers(&db, "count(), count(DISTINCT k)"), [ROWS + 1, 101]);
}

/// A load of rows in time order needs no late segments; one of rows in the opposite order keeps equal times in order.
#[test]
fn rows_of_equal_times_keep_their_order() {
    let fs = SimFs::new(3);
    let db = open(&fs);
    run(&db, CREATE);
    let equal = |order: &str| {
        let numbers = format!("SELECT x - 1 AS n FROM long_sequence(99999) ORDER BY x {order}");
        format!("INSERT INTO t SELECT ((n / 3) * 1000000)::timestamp, 'k', n FROM ({numbers}) AS s")
    };
    run(&db, &equal("ASC"));
    assert_eq!(late_of(&db.all_tables().1[0].segments).count(), 0);
    run(&db, "INSERT INTO t VALUES (33000000, 'between', 1000000)");
    run(&db, &equal("DESC"));
    assert!(late_of(&db.all_tables().1[0].segments).count() > 0);
    run(&db, "INSERT INTO t VALUES (33000000, 'last', 3000000)");
    let expected = ["99", "100", "101", "1000000", "101", "100", "99", "3000000"];
    let query = "SELECT n FROM t WHERE ts = '1970-01-01T00:00:33Z'";
    assert_eq!(ask(&db, query).unwrap(), expected);
    db.settle().unwrap();
    assert_eq!(ask(&db, query).unwrap(), expected);
    assert_eq!(late_of(&db.all_tables().1[0].segments).count(), 0);
}

#[test]
fn a_failed_load_leaves_no_rows_and_no_files() {
    let fs = SimFs::new(4);
    let db = open(&fs);
    run(&db, CREATE);
    let number = format!("(CASE WHEN n = {ROWS} THEN 'x' ELSE '1' END)::long");
    let failing = format!("SELECT ts, k, {number} AS n FROM ({}) AS s", rows(0, ROWS));
    ask(&db, &format!("INSERT INTO t {failing}")).unwrap_err();
    ask(&db, &format!("CREATE TABLE u AS ({failing})")).unwrap_err();
    assert_eq!(numbers(&db, "count()"), [0]);
    assert_eq!(ask(&db, "SELECT table_name FROM tables()").unwrap(), ["t"]);
    // The load ends after its statement.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !files(&fs).is_empty() {
        assert!(std::time::Instant::now() < deadline, "{:?}", files(&fs));
        std::thread::yield_now();
    }
}

/// Runs `change` in the middle of a load of `rows(0, 4)` in two parts.
fn load_around(db: &Database, change: impl FnOnce()) -> crate::Result<()> {
    use crate::load::LoadTable;
    use futures::executor::block_on;
    use tidalite_types::{Batch, BatchTimestamps, TimeUnit};
    let table = db.all_tables().1[0].clone();
    let part = |times: Vec<i64>| Batch {
        table: "t".to_owned(),
        rows: times.len(),
        columns: Vec::new(),
        timestamps: Some(BatchTimestamps::new(TimeUnit::Micros, times)),
        lines: Vec::new(),
    };
    let mut load = db.loader().begin(LoadTable::Existing { id: table.id, schema: table.schema.clone() })?;
    block_on(load.push(vec![part(vec![1, 2])]))?;
    change();
    block_on(load.push(vec![part(vec![3, 4])]))?;
    block_on(load.finish(&CancelToken::new())).map(drop)
}

#[test]
fn other_changes_during_a_load_come_before_it() {
    let fs = SimFs::new(5);
    let db = open(&fs);
    run(&db, CREATE);
    for change in
        ["INSERT INTO t (ts, n) VALUES (5, 1)", "TRUNCATE TABLE t", "DELETE FROM t", "INSERT INTO t (ts) VALUES (1)"]
    {
        let before = numbers(&db, "count()")[0];
        load_around(&db, || run(&db, change)).unwrap();
        let expected = if change.starts_with("INSERT") { before + 5 } else { 4 };
        assert_eq!(numbers(&db, "count()"), [expected], "{change}");
    }
    db.settle().unwrap();
    assert_eq!(numbers(&db, "count()"), [9]);
    // A merge that began before the load is discarded, and a later one takes its place.
    load_around(&db, || db.settle().unwrap()).unwrap();
    assert_eq!(numbers(&db, "count()"), [13]);
    load_around(&db, || run(&db, "ALTER TABLE t ADD COLUMN more LONG")).unwrap();
    assert_eq!(numbers(&db, "count(), count(more)"), [17, 0]);
    let error = load_around(&db, || run(&db, "ALTER TABLE t DROP COLUMN n")).unwrap_err();
    assert_eq!(error.code, Some(SqlState::SERIALIZATION_FAILURE), "{error}");
    let error = load_around(&db, || run(&db, "DROP TABLE t")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    db.settle().unwrap();
    let left = files(&fs);
    assert!(left.is_empty(), "{left:?}");
}

/// Rows that were committed before a load come first, also if a merge gives their segment a greater number meanwhile.
#[test]
fn rows_of_a_load_follow_rows_that_a_merge_rewrites_meanwhile() {
    let fs = SimFs::new(9);
    let db = open(&fs);
    run(&db, CREATE);
    run(&db, "INSERT INTO t (ts, n) VALUES (1, 1), (3, 1)");
    db.settle().unwrap();
    let segments = || db.all_tables().1[0].segments.iter().map(|segment| segment.meta().id).collect::<Vec<_>>();
    let before = segments();
    load_around(&db, || {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while files(&fs).len() <= before.len() {
            assert!(std::time::Instant::now() < deadline, "the first part is not written");
            std::thread::yield_now();
        }
        run(&db, "INSERT INTO t (ts, n) VALUES (2, 2)");
        db.settle().unwrap();
        assert!(segments().iter().all(|id| !before.contains(id)), "the merge rewrites the segment");
    })
    .unwrap();
    let query = "SELECT ts::long, coalesce(n, 0) FROM t WHERE ts <> 2::timestamp";
    let expected = ["1 1", "1 0", "3 1", "3 0", "4 0"];
    assert_eq!(ask(&db, query).unwrap(), expected);
    assert_eq!(ask(&open(&fs.survivor(1)), query).unwrap(), expected);
    db.settle().unwrap();
    assert_eq!(ask(&db, query).unwrap(), expected);
}

#[test]
fn two_loads_of_one_table_are_both_committed() {
    let fs = SimFs::new(10);
    let db = open_with(&fs, DatabaseConfig { has_background_jobs: true, ..config() });
    run(&db, CREATE);
    std::thread::scope(|scope| {
        for first in [0, 50] {
            let db = &db;
            scope.spawn(move || run(db, &format!("INSERT INTO t {}", rows(first, ROWS))));
        }
    });
    let sum = |first: u64| (first + 1..=first + ROWS).sum::<u64>();
    assert_eq!(numbers(&db, "count(), sum(n)"), [2 * ROWS, sum(0) + sum(50)]);
    drop(db);
    assert_eq!(numbers(&open(&fs.survivor(1)), "count(), sum(n)"), [2 * ROWS, sum(0) + sum(50)]);
}

#[test]
fn materialized_views_contain_loads() {
    let fs = SimFs::new(6);
    let db = open(&fs);
    run(&db, CREATE);
    run(
        &db,
        "CREATE MATERIALIZED VIEW m REFRESH MANUAL AS (SELECT ts, sum(n) AS total FROM t SAMPLE BY 1h) PARTITION BY DAY",
    );
    let error = db.row_sink("m", None, false).unwrap_err();
    assert!(error.message.contains("\"m\" is a materialized view"), "{error}");
    run(&db, &format!("INSERT INTO t {}", rows(0, ROWS)));
    let same = |db: &Database| {
        run(db, "REFRESH MATERIALIZED VIEW m");
        let found = ask(db, "SELECT sum(total) FROM m").unwrap();
        assert_eq!(found, ask(db, "SELECT sum(n) FROM t").unwrap());
    };
    let again = fs.survivor(0);
    same(&db);
    // The times are also those of a replayed load.
    same(&open(&again));
}

#[test]
fn checks_backups_and_restores_know_loads() {
    let fs = SimFs::new(7);
    let db = open(&fs);
    run(&db, CREATE);
    run(&db, "INSERT INTO t VALUES (1, 'a', 1)");
    let to = SimFs::new(1);
    let backup = || back_up(&db, &to).unwrap().txn;
    let first = backup();
    run(&db, &format!("INSERT INTO t {}", rows(0, ROWS)));
    let loaded = db.all_tables().0.0;
    run(&db, "INSERT INTO t VALUES (1, 'a', 1)");
    // The log attaches the load, and no manifest names it yet.
    let report = check_files(&(Arc::new(fs.survivor(1)) as Arc<dyn Fs>), &mut |_, _| Ok(())).unwrap();
    assert_eq!((report.problems, report.orphans), (Vec::new(), Vec::new()));
    assert!(report.rows >= ROWS, "{}", report.rows);
    let count_at = |at: u64| -> crate::Result<u64> { Ok(numbers(&open(&restored(&to, &At::Txn(at))?), "count()")[0]) };
    let last = backup();
    let all: crate::Result<Vec<u64>> = [first, loaded, last].into_iter().map(count_at).collect();
    assert_eq!(all.unwrap(), [1, ROWS + 1, ROWS + 2]);
    // The files of this load are replaced before a backup has them.
    run(&db, &format!("INSERT INTO t {}", rows(0, ROWS)));
    let second = db.all_tables().0.0;
    run(&db, "INSERT INTO t VALUES (1, 'a', 1)");
    db.settle().unwrap();
    let after = backup();
    let error = count_at(second).unwrap_err();
    assert!(error.message.contains(&format!("commit {second} is a load")), "{error}");
    assert_eq!(count_at(second - 1).unwrap(), ROWS + 2);
    assert_eq!(count_at(after).unwrap(), 2 * ROWS + 3);
}

#[test]
fn a_restore_needs_no_files_of_loads_that_were_removed() {
    let removals = [
        ("TRUNCATE TABLE t", ""),
        ("DROP TABLE t", CREATE),
        ("ALTER TABLE t DROP PARTITION LIST '1970-01-01', '1970-01-02', '1970-01-03'", ""),
    ];
    for (seed, (removal, afterwards)) in removals.into_iter().enumerate() {
        let db = open(&SimFs::new(seed as u64));
        run(&db, CREATE);
        let to = SimFs::new(1);
        back_up(&db, &to).unwrap();
        run(&db, &format!("INSERT INTO t {}", rows(0, ROWS)));
        run(&db, removal);
        if !afterwards.is_empty() {
            run(&db, afterwards);
        }
        run(&db, "INSERT INTO t VALUES (1, 'a', 1)");
        let at = db.all_tables().0.0;
        db.settle().unwrap();
        back_up(&db, &to).unwrap();
        let restored = open(&restored(&to, &At::Txn(at)).unwrap());
        assert_eq!(numbers(&restored, "count()"), [1], "{removal}");
    }
}

/// Returns a CSV file of rows in time order, a second apart; the last record ends with `last`.
fn csv(rows: u64, last: &str) -> String {
    let line = |n: u64| {
        let number = if n == rows { last.to_owned() } else { n.to_string() };
        format!("1970-01-01T{:02}:{:02}:{:02}Z,k{},{number}\n", n / 3600, n / 60 % 60, n % 60, n % 100)
    };
    std::iter::once("ts,k,n\n".to_owned()).chain((1..=rows).map(line)).collect()
}

#[test]
fn a_copy_is_one_commit() {
    let rows = 80_000;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (good, bad) = (file("good.csv", csv(rows, "1")), file("bad.csv", csv(rows, "1,2")));
    let fs = SimFs::new(8);
    let db = open_with(&fs, DatabaseConfig { has_background_jobs: true, ..config() });
    let copy = |file: &str, options: &str| format!("COPY t FROM '{file}' (FORMAT csv, HEADER true{options})");
    ask(&db, &copy(&bad, ", TIMESTAMP 'ts'")).unwrap_err();
    assert_eq!(ask(&db, "SELECT table_name FROM tables()").unwrap(), [""; 0]);
    let seen = counts_during(&db, &copy(&good, ", TIMESTAMP 'ts'"), true);
    assert!(!seen.is_empty() && seen.iter().all(|count| *count == rows), "{seen:?}");
    ask(&db, &copy(&bad, "")).unwrap_err();
    assert_eq!(numbers(&db, "count()"), [rows]);
    let seen = counts_during(&db, &copy(&good, ""), false);
    assert!(seen.iter().all(|count| [rows, 2 * rows].contains(count)), "{seen:?}");
    drop(db);
    assert_eq!(numbers(&open(&fs.survivor(1)), "count(), count(DISTINCT k)"), [2 * rows, 100]);
}
