//! Compares window functions by symbols, sorted and computed by Tidalite's operators, with the stock operators; and
//! groups over groups by symbols.

mod asked;

use asked::{answer, open, open_with, plan, rows, run};
use std::path::Path;
use tidalite::config::Durability;
use tidalite::{Database, DatabaseConfig};

const TABLE: &str = "CREATE TABLE t (ts TIMESTAMP, id LONG, sym SYMBOL, rare SYMBOL, x LONG, d DOUBLE, day DATE, v VARCHAR) \
     TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows numbered from `first`, some seconds out of order. `rare` belongs to `sym`, except for a few rows.
fn insert(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO t SELECT to_timestamp_micros(1704067200000000 + v / 3 * 900000 - h % {late} * 1000000), v, \
         CASE WHEN h % 17 > 0 THEN 's' || (h % 40) END, CASE WHEN h % 101 > 0 THEN 'r' || (h % 40 % 7) END, h % 1000, \
         CASE WHEN h % 13 = 0 THEN NULL WHEN h % 29 = 0 THEN 'NaN'::double ELSE (h % 64) / 8.0 END, \
         '1969-12-20'::date + (h % 30)::int, 'text ' || (h % 5) \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

async fn same(twins: &[Database; 2], sql: &str) -> usize {
    let (fast, plain) = (rows(&twins[0], sql).await, rows(&twins[1], sql).await);
    let place = fast.iter().zip(&plain).position(|(fast, plain)| fast != plain);
    let differ = place.map(|row| (row, &fast[row], &plain[row]));
    assert!(differ.is_none() && fast.len() == plain.len(), "{sql}: {differ:?}, {} {}", fast.len(), plain.len());
    fast.len()
}

async fn check(twins: &[Database; 2]) {
    let functions = [
        "lag(x)",
        "lead(x, 2, -1)",
        "lag(v)",
        "row_number()",
        "rank()",
        "dense_rank()",
        "ntile(4)",
        "percent_rank()",
        "sum(x)",
        "first_value(id)",
    ];
    for keys in ["sym", "sym, rare", "rare, x % 3", "x", "sym, d", "v, sym"] {
        for order in ["ts, id", "x DESC NULLS FIRST, id", "day, d DESC, id DESC", "v, id", "rare, id"] {
            for (from, filter) in [("t", ""), ("t", "WHERE x > 500 AND sym IS NOT NULL"), ("t", "WHERE id < 0")] {
                let over = format!("OVER (PARTITION BY {keys} ORDER BY {order})");
                let told: Vec<String> =
                    functions.iter().enumerate().map(|(n, f)| format!("{f} {over} AS f{n}")).collect();
                let windows = format!("SELECT id, sym, rare, {} FROM {from} {filter}", told.join(", "));
                same(twins, &format!("{windows} ORDER BY id")).await;
                let one = format!("SELECT id, sym, {} FROM {from} {filter}", told[0]);
                same(twins, &format!("{one} ORDER BY id")).await;
                // The order of the window's rows, which a sort above need not repeat.
                same(twins, &format!("{one} ORDER BY {keys}, {order}, id LIMIT 5000")).await;
                same(twins, &format!("SELECT sym, count(*), sum(f0), max(id) FROM ({one}) GROUP BY sym ORDER BY sym"))
                    .await;
            }
        }
    }
    // Nested windows, of the same order and of others.
    let hours = "SELECT ts AS hour, sym, rare, avg(x) AS a, count(*) AS n FROM t SAMPLE BY 1h";
    let lagged = format!("SELECT *, lag(a) OVER (PARTITION BY sym, rare ORDER BY hour) AS before FROM ({hours})");
    let twice = format!(
        "SELECT *, lead(hour) OVER (PARTITION BY sym, rare ORDER BY hour) AS next FROM ({lagged}) WHERE a > before"
    );
    let other = format!(
        "SELECT *, sum(n) OVER (PARTITION BY sym, rare ORDER BY hour) AS s, sum(n) OVER (PARTITION BY rare ORDER BY hour, sym) AS r FROM ({twice})"
    );
    for sql in [&lagged, &twice, &other] {
        same(twins, &format!("SELECT * FROM ({sql}) ORDER BY hour, sym, rare")).await;
        same(twins, &format!("SELECT rare, count(*), max(hour) FROM ({sql}) GROUP BY rare ORDER BY rare")).await;
    }
    // Groups over groups.
    for keys in ["sym", "rare, sym", "sym, rare, hour > '2024-01-01T03'"] {
        let groups = format!("SELECT {keys}, count(*), sum(n), max(a) FROM ({hours}) WHERE n > 3 GROUP BY ALL");
        same(twins, &format!("SELECT * FROM ({groups}) ORDER BY 1, 2, 3, 4")).await;
        let again = format!(
            "SELECT sym, avg(n) FROM (SELECT sym, rare, timestamp_floor('d', hour) AS day, sum(n) AS n FROM ({hours}) GROUP BY 1, 2, 3) GROUP BY sym"
        );
        same(twins, &format!("{again} ORDER BY sym")).await;
    }
    for by in ["d", "sym, d", "sym, rare, d, day", "d, v"] {
        same(twins, &format!("SELECT {by}, count(*), sum(x) FROM t GROUP BY {by} ORDER BY {by}")).await;
    }
}

async fn run_both(twins: &[Database; 2], sql: &str) {
    run(&twins[0], sql).await;
    run(&twins[1], sql).await;
}

fn settle(twins: &[Database; 2]) {
    twins.iter().for_each(|database| database.settle().expect("it settles"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_of_partitions_are_those_of_the_stock_operators() {
    let folders = [tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder")];
    let twins = [open(folders[0].path()), open_with(folders[1].path(), false)];
    run_both(&twins, TABLE).await;
    check(&twins).await;
    run_both(&twins, &insert(0, 12_000, 1)).await;
    check(&twins).await;
    settle(&twins);
    run_both(&twins, "DELETE FROM t WHERE id % 13 = 5").await;
    run_both(&twins, &insert(12_000, 3_000, 5_000)).await;
    check(&twins).await;
    let sql = "SELECT rare, count(*) FROM (SELECT *, lag(a) OVER (PARTITION BY sym, rare ORDER BY hour) AS b FROM \
         (SELECT ts AS hour, sym, rare, avg(x) AS a FROM t SAMPLE BY 1h)) WHERE a > b GROUP BY rare";
    let planned = plan(&twins[0], sql).await;
    for step in ["TidaliteWindow: lag(a)", "TidaliteSort: by=[sym, rare, hour]", "codes=[sym, rare]"] {
        assert!(planned.contains(step), "{step}: {planned}");
    }
    assert!(!planned.contains("\n  group by"), "{planned}");
}

/// A partition of more rows than are buffered, with others before and after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_of_very_many_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, "CREATE TABLE t (ts TIMESTAMP, sym SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY YEAR").await;
    let rows_of = "INSERT INTO t SELECT to_timestamp_micros(v * 1000), CASE WHEN v % 100 = 7 THEN 'a' WHEN v % 100 = 8 THEN 'z' ELSE 'm' END, v";
    run(&database, &format!("{rows_of} FROM generate_series(0, 1299999) AS s(v)")).await;
    let lagged = "SELECT sym, x, lag(x) OVER (PARTITION BY sym ORDER BY ts) AS before FROM t";
    let asked = format!(
        "SELECT sym, count(*), count(before), sum(x - before), min(x - before), max(x - before) FROM ({lagged}) GROUP BY sym ORDER BY sym"
    );
    assert!(plan(&database, &asked).await.contains("TidaliteWindow"));
    // 'm' has 98 of 100 rows: from 0 to 1299999, in which two steps are wider.
    assert_eq!(
        rows(&database, &asked).await,
        ["a|13000|12999|1299900|100|100", "m|1274000|1273999|1299999|1|3", "z|13000|12999|1299900|100|100"]
    );
}

/// Returns a database with rows that do not fit this memory.
async fn with_memory(folder: &Path, bytes: usize) -> Database {
    let mut config = DatabaseConfig::new(folder);
    config.durability = Durability::Os;
    config.has_background_jobs = false;
    config.query_threads = 2;
    config.query_memory_bytes = bytes;
    let database = Database::open(config).expect("an empty folder opens");
    run(&database, TABLE).await;
    run(&database, &insert(0, 400_000, 1)).await;
    database
}

/// For functions that require all rows of a partition, the stock operator also buffers them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_of_more_than_memory_are_an_error_where_all_their_rows_are_needed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = with_memory(folder.path(), 24 << 20).await;
    // Sorted by time already, and all of one partition: nothing is sorted on disk.
    let lines = "SELECT id, v, d, x, ts, x < 0 AS p FROM t";
    let asked = |function: &str| {
        format!(
            "SELECT count(*), max(f), sum(length(v)), sum(d), sum(x) FROM (SELECT *, {function} OVER (PARTITION BY p ORDER BY ts, id) AS f FROM ({lines}))"
        )
    };
    let told = answer(&database, &asked("ntile(4)")).await.expect_err("there is no room");
    assert!(told.contains("out of memory"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorts_of_more_than_memory_are_left_to_the_stock_operator() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = with_memory(folder.path(), 40 << 20).await;
    let lagged = "SELECT sym, id, v, lag(id) OVER (PARTITION BY sym ORDER BY id DESC) AS next FROM t";
    let asked = format!("SELECT count(*), count(next), min(next - id), sum(length(v)) FROM ({lagged})");
    let analyzed = rows(&database, &format!("EXPLAIN ANALYZE {asked}")).await.join("\n");
    assert!(analyzed.contains("left to the general operators"), "{analyzed}");
    // 40 symbols and NULL, each with a row without a successor; texts of six bytes. The closest rows of one symbol are
    // 13 apart, where a row without a symbol follows another one at which the hash wrapped: 13 · 7919 − 1000003 is a
    // multiple of 17.
    assert_eq!(rows(&database, &asked).await, ["400000|399959|13|2400000"]);
}
