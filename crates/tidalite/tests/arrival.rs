//! Rows of equal times are returned in order of arrival for all ways of reading: filtered, by several threads, in
//! reverse, from segments, late segments and staging, including the rows that time joins select among them.

mod asked;

use asked::{count, open_with, plan, rows, run};
use tidalite::Database;

/// Inserts rows numbered in order of arrival, 1,000 per time, so that every block begins with a time of the previous
/// block.
fn insert(first: i64, count: i64, from: i64) -> String {
    format!(
        "INSERT INTO t SELECT to_timestamp_micros(1704067200000000 + ({from} + v - {first}) / 1000 * 1000000), v, \
         v * 7919 % 1000003, 'k' || (v % 3) FROM (SELECT value AS v FROM generate_series({first}, {}) AS value) ORDER BY v",
        first + count - 1
    )
}

/// Filters; the fourth one is evaluated above the scan.
const FILTERS: [&str; 5] = ["h % 3 > 0", "h < 900000 AND id <> 7", "true", "md5(k) > '5' OR h > 100000", "h < 0"];

async fn check(database: &Database) {
    for filter in FILTERS {
        let of_filter = format!("FROM t WHERE {filter}");
        let expected = rows(database, &format!("SELECT ts, id {of_filter} ORDER BY ts, id")).await;
        let found = rows(database, &format!("SELECT ts, id {of_filter}")).await;
        assert!(found == expected, "{filter}: {:?}", found.iter().zip(&expected).position(|(a, b)| a != b));
        let computed = rows(database, &format!("SELECT ts, abs(id) {of_filter} ORDER BY ts")).await;
        assert!(computed == expected, "{filter}: computed columns");
        let mut backwards = rows(database, &format!("SELECT ts, id {of_filter} ORDER BY ts DESC")).await;
        backwards.reverse();
        assert!(backwards == expected, "{filter}: from the end");
        for limit in [1, 70_000] {
            let first = rows(database, &format!("SELECT ts, id {of_filter} LIMIT {limit}")).await;
            assert!(first == expected[..expected.len().min(limit)], "{filter}: the first {limit}");
            let last = rows(database, &format!("SELECT ts, id {of_filter} LIMIT -{limit}")).await;
            assert!(last == expected[expected.len().saturating_sub(limit)..], "{filter}: the last {limit}");
        }
        // Computed columns keep the order, with or without the time.
        let ids: Vec<&str> = expected.iter().filter_map(|row| row.split_once('|')).map(|(_, id)| id).collect();
        for answer in [
            format!("SELECT id + 0 {of_filter}"),
            format!("SELECT CAST(id AS VARCHAR) || '' {of_filter}"),
            format!("SELECT id + 0 FROM (SELECT * {of_filter} ORDER BY ts)"),
            format!("SELECT v FROM (SELECT ts, id + 0 AS v {of_filter})"),
        ] {
            assert!(rows(database, &answer).await == ids, "{answer}");
            let first = rows(database, &format!("{answer} LIMIT 70000")).await;
            assert!(first == ids[..ids.len().min(70_000)], "{answer}: the first");
        }
        // The same holds for another order of a sub-query; no two rows have the same `h`.
        let by_h = rows(database, &format!("SELECT id {of_filter} ORDER BY h DESC")).await;
        let computed = rows(database, &format!("SELECT id + 0 FROM (SELECT * {of_filter} ORDER BY h DESC)")).await;
        assert!(computed == by_h, "{filter}: computed of a sub-query in order");
        let beside = rows(database, &format!("SELECT ts, id + 0 AS id {of_filter}")).await;
        assert!(beside == expected, "{filter}: computed beside the time");
        // For a time with rows the last one is selected.
        let last =
            format!("SELECT p.ts, r.id FROM p ASOF JOIN (SELECT * {of_filter}) r WHERE r.ts = p.ts ORDER BY p.ts");
        let greatest = format!(
            "SELECT p.ts, max(r.id) AS id FROM p JOIN (SELECT * {of_filter}) r ON r.ts = p.ts GROUP BY p.ts ORDER BY p.ts"
        );
        assert_eq!(rows(database, &last).await, rows(database, &greatest).await, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_one_time_come_in_order_of_arrival() {
    for fast in [true, false] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = open_with(folder.path(), fast);
        run(&database, "CREATE TABLE t (ts TIMESTAMP, id LONG, h LONG, k VARCHAR) TIMESTAMP(ts) PARTITION BY DAY")
            .await;
        run(&database, "CREATE TABLE p (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY").await;
        let probes = "INSERT INTO p SELECT to_timestamp_micros(1704067200000000 + value * 1000000) FROM generate_series(0, 330, 13) AS value";
        run(&database, probes).await;
        run(&database, &insert(0, 150_000, 0)).await;
        check(&database).await;
        database.settle().expect("it settles");
        check(&database).await;
        // Later rows of existing times, staged and next to a segment.
        run(&database, &insert(150_000, 9_000, 60_000)).await;
        run(&database, &insert(159_000, 40_000, 130_000)).await;
        check(&database).await;
        run(&database, "DELETE FROM t WHERE id % 13 = 5").await;
        check(&database).await;
        database.settle().expect("it settles");
        check(&database).await;
        assert_eq!(count(&database, "SELECT count(*) FROM t WHERE id % 13 <> 5").await, 183_692);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_are_computed_ahead() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open_with(folder.path(), true);
    run(&database, "CREATE TABLE t (ts TIMESTAMP, id LONG, h LONG, k VARCHAR) TIMESTAMP(ts) PARTITION BY DAY").await;
    run(&database, &insert(0, 150_000, 0)).await;
    for filter in FILTERS {
        let planned = plan(&database, &format!("SELECT ts, id FROM t WHERE {filter} ORDER BY ts")).await;
        assert!(planned.contains("pieces ahead") || filter == "h < 0", "{planned}");
        assert!(!planned.contains("deal"), "{planned}");
    }
}
