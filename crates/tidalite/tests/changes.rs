//! Rows change during concurrent writes and merges: no change is lost or applied twice.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite::{Database, DatabaseConfig, QueryOptions, Response};

async fn run(database: &Database, sql: &str) -> u64 {
    match database.execute(sql, QueryOptions::default()).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
        Response::Done { rows, .. } => rows,
        Response::Rows(_) => panic!("{sql} has rows"),
    }
}

async fn numbers(database: &Database, sql: &str) -> Vec<i64> {
    let Ok(Response::Rows(mut rows)) = database.execute(sql, QueryOptions::default()).await else { panic!("{sql}") };
    let batch = rows.stream.next().await.expect("a batch").expect("no error");
    (0..batch.num_columns()).map(|i| batch.column(i).as_primitive::<Int64Type>().value(0)).collect()
}

fn config(folder: &tempfile::TempDir) -> DatabaseConfig {
    let mut config = DatabaseConfig::new(folder.path());
    config.durability = tidalite::config::Durability::Os;
    config
}

/// Inserts rows numbered from `first`, including late ones.
fn insert(first: i64, count: i64) -> String {
    let late = "CASE WHEN value % 5 = 0 THEN value - 400 ELSE value END";
    let time = format!("to_timestamp_micros(1700000000000000 + ({late}) * 60000000)");
    format!("INSERT INTO t SELECT {time}, value, 0 FROM generate_series({first}, {}) AS value", first + count - 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn updates_and_deletes_hold_while_rows_arrive_and_merges_move_them() {
    const ROWS: i64 = 6_000;
    const ROUNDS: i64 = 12;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    run(&database, "CREATE TABLE t (ts TIMESTAMP, id LONG, n LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    for first in (0..ROWS).step_by(1000) {
        run(&database, &insert(first, 1000)).await;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let (settling, over) = (database.clone(), is_over.clone());
    let settles = std::thread::spawn(move || {
        let mut count = 0;
        while !over.load(Ordering::Relaxed) {
            settling.settle().expect("it settles");
            count += 1;
        }
        count
    });
    let update = |table_part: i64| {
        let database = database.clone();
        tokio::spawn(async move {
            let mut changed = 0;
            for _ in 0..ROUNDS {
                changed +=
                    run(&database, &format!("UPDATE t SET n = n + 1 WHERE id % 2 = {table_part} AND id < {ROWS}"))
                        .await;
            }
            changed
        })
    };
    let (evens, odds, more) = (update(0), update(1), update(0));
    let inserting = database.clone();
    let inserts = tokio::spawn(async move {
        for round in 0..40 {
            let first = ROWS + round * 100;
            run(&inserting, &insert(first, 100)).await;
            // The rows of the previous batch whose number ends in 3.
            run(&inserting, &format!("DELETE FROM t WHERE id % 10 = 3 AND id >= {ROWS} AND id < {first}")).await;
        }
    });
    let changed = evens.await.unwrap() + odds.await.unwrap() + more.await.unwrap();
    inserts.await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    assert!(settles.join().unwrap() > 0);
    assert_eq!(changed as i64, 3 * ROUNDS * ROWS / 2);
    let sql = format!(
        "SELECT count(*), count(distinct id), sum(n), min(n), max(n), sum(CASE WHEN id >= {ROWS} THEN 1 ELSE 0 END) FROM t"
    );
    let inserted = 40 * 100 - 39 * 10;
    let expected = vec![ROWS + inserted, ROWS + inserted, 3 * ROUNDS * ROWS / 2, 0, 2 * ROUNDS, inserted];
    assert_eq!(numbers(&database, &sql).await, expected);
    database.settle().expect("it settles");
    assert_eq!(numbers(&database, &sql).await, expected);
    database.close().expect("it closes");
    drop(database);
    let again = Database::open(config(&folder)).expect("it opens again");
    assert_eq!(numbers(&again, &sql).await, expected);
}

#[tokio::test]
async fn partitions_past_their_time_go() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    run(&database, "CREATE TABLE t (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    run(&database, "INSERT INTO t VALUES ('2024-01-01T12', 1), ('2024-01-02T12', 2), ('2024-01-31T11', 3)").await;
    database.settle().expect("it settles");
    run(&database, "INSERT INTO t VALUES ('2024-01-01T13', 4), ('2024-01-30T13', 5)").await;
    run(&database, "ALTER TABLE t SET TTL 30 DAYS").await;
    database.settle().expect("it settles");
    // The first of January is older than thirty days only at the end of the 31st.
    assert_eq!(numbers(&database, "SELECT count(*), sum(n) FROM t").await, [5, 15]);
    run(&database, "INSERT INTO t VALUES ('2024-02-01T00', 6)").await;
    database.settle().expect("it settles");
    assert_eq!(numbers(&database, "SELECT count(*), sum(n) FROM t").await, [4, 16]);
    // A deleted row does not affect expiry.
    run(&database, "ALTER TABLE t SET TTL 0").await;
    run(&database, "DELETE FROM t WHERE n = 6").await;
    run(&database, "ALTER TABLE t SET TTL 29 DAYS").await;
    database.settle().expect("it settles");
    assert_eq!(numbers(&database, "SELECT count(*), sum(n) FROM t").await, [3, 10], "the newest row was deleted");
    // A row of the future counts as of now.
    let day = "date_trunc('day', now())";
    run(&database, "CREATE TABLE f (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY TTL 3 DAYS").await;
    run(&database, &format!("INSERT INTO f SELECT {day} - INTERVAL '1 day', 1")).await;
    run(&database, "INSERT INTO f VALUES ('2199-01-01', 2)").await;
    run(&database, &format!("INSERT INTO f SELECT {day} - INTERVAL '5 days', 3")).await;
    database.settle().expect("it settles");
    assert_eq!(numbers(&database, "SELECT count(*), sum(n) FROM f").await, [2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_of_the_same_keys_leave_one_row_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    run(
        &database,
        "CREATE TABLE t (ts TIMESTAMP, id LONG, n LONG) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, id)",
    )
    .await;
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let database = database.clone();
            tokio::spawn(async move {
                for round in 0..10 {
                    // Each sends rows that all others also send, with a distinct number, and everything twice.
                    let sql = format!(
                        "INSERT INTO t SELECT to_timestamp_micros(1700000000000000 + (value % 50) * 3600000000), value, {} FROM generate_series({}, {}) AS value",
                        writer * 100 + round, round * 37, round * 37 + 200
                    );
                    run(&database, &sql).await;
                    run(&database, &sql).await;
                    if writer == 0 {
                        let settling = database.clone();
                        tokio::task::spawn_blocking(move || settling.settle()).await.unwrap().expect("it settles");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let expected = 9 * 37 + 201;
    assert_eq!(numbers(&database, "SELECT count(*), count(distinct id) FROM t").await, [expected, expected]);
    database.settle().expect("it settles");
    assert_eq!(numbers(&database, "SELECT count(*), count(distinct id) FROM t").await, [expected, expected]);
}

#[tokio::test]
async fn deleted_rows_give_their_space_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    run(&database, "CREATE TABLE t (ts TIMESTAMP, id LONG, n LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    run(&database, &insert(0, 9000)).await;
    database.settle().expect("it settles");
    let bytes = |database: &Database| {
        let metrics = database.metrics();
        metrics.iter().find(|m| m.name == "tidalite_segment_bytes").map_or(0.0, |m| m.value)
    };
    let before = bytes(&database);
    assert_eq!(run(&database, "DELETE FROM t WHERE id >= 1000").await, 8000);
    assert_eq!(numbers(&database, "SELECT count(*) FROM t").await, [1000]);
    database.settle().expect("it settles");
    assert!(bytes(&database) < before / 2.0, "{} of {before} bytes", bytes(&database));
    assert_eq!(numbers(&database, "SELECT count(*), sum(id) FROM t").await, [1000, 999 * 500]);
}
