//! Compares groups that the scan computes while unpacking blocks with the same groups of row-wise computed arguments.

mod asked;

use asked::{open, plan, rows, run};
use tidalite::Database;

const TABLE: &str = "CREATE TABLE g (ts TIMESTAMP, id LONG, a SYMBOL, b SYMBOL, c SYMBOL, x BYTE, i INT, l LONG, f REAL, \
     d DOUBLE, at TIMESTAMP, v VARCHAR) TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows numbered from `first`, `late` seconds out of order, from a day before 1970 on.
///
/// Sums of values divided by powers of two are exact in any order. `c` stays the same for long.
fn insert(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO g SELECT to_timestamp_micros(v * 700000 - 86400000000 - h % {late} * 1000000), v, \
         CASE WHEN h % 17 > 0 THEN 'a' || (h % 5) END, 'b' || (h % 300), 'c' || (v / 20000), \
         (h % 90)::byte, (h - 500000)::int, CASE WHEN v % 70000 > 9000 AND h % 3 > 0 THEN h * 1000 END, \
         CASE WHEN h % 11 > 0 THEN ((h % 64) / 8.0)::float END, h / 16.0, \
         CASE WHEN h % 2 = 0 THEN to_timestamp_micros(h * 1000) END, CASE WHEN h % 7 > 0 THEN 'text ' || h END \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

/// Returns the number of queries whose groups the scan computed.
async fn check(database: &Database) -> usize {
    let mut made = 0;
    for filter in
        ["true", "id % 3 = 1", "d > 30000", "b = 'b7'", "ts IN '1969-12-31T05'", "ts >= '1970-01-01'", "id < 0"]
    {
        for keys in [
            "a",
            "c",
            "b, a",
            "timestamp_floor('1h', ts)",
            "timestamp_floor('1h', ts), a",
            "b, timestamp_floor('1h', ts)",
            "a, date_trunc('day', ts), c",
            // Few of all group places have rows: `b` determines `a`, except for NULL.
            "timestamp_floor('1h', ts), a, b",
            "a, b, c, timestamp_floor('1h', ts)",
            "c, b, a",
            "timestamp_floor('7m', ts)",
            "b, timestamp_floor('1s', ts)",
        ] {
            let order = (1..=keys.split(", ").count() - keys.matches("('").count()).map(|n| n.to_string());
            let order = order.collect::<Vec<_>>().join(", ");
            let ask = |column: &dyn Fn(&str) -> String| {
                let [id, x, i, l, f, d, at, v] = ["id", "x", "i", "l", "f", "d", "at", "v"].map(column);
                let any = format!(
                    "count(*), count({v}), count({l}), sum({l}), min({l}), max({l}), avg({d}), min({d}), sum({f}), \
                     max({f}), avg({i}), max({at}), min({at}), max({x}), avg({x}), sum({i}), max({id})"
                );
                let only_added = format!("count({id}), avg({d}), sum({d}), sum({x}), avg({i}), sum({i}), count(*)");
                let added_with_nulls = format!("sum({l}), avg({d}), count({f})");
                [any, only_added, added_with_nulls].map(|values| {
                    format!("SELECT {keys}, {values} FROM g WHERE {filter} GROUP BY {order} ORDER BY {order}")
                })
            };
            // Values computed for each row are in no block.
            let (fast, general) = (ask(&|c| c.to_owned()), ask(&|c| format!("(CASE WHEN id >= 0 THEN {c} END)")));
            for (fast, general) in fast.into_iter().zip(general) {
                made += usize::from(plan(database, &fast).await.contains(", grouped"));
                assert!(!plan(database, &general).await.contains(", grouped"), "{general}");
                assert_eq!(rows(database, &fast).await, rows(database, &general).await, "{fast}");
            }
        }
    }
    let only_keys = "SELECT DISTINCT a, c FROM g ORDER BY a, c";
    let computed = only_keys.replace("a, c FROM", "a || '', c FROM").replace("BY a", "BY 1").replace("1, c", "1, 2");
    assert_eq!(rows(database, only_keys).await, rows(database, &computed).await);
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_blocks_are_those_of_their_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, TABLE).await;
    assert_eq!(check(&database).await, 0, "there is nothing to add up");
    run(&database, &insert(0, 150_000, 1)).await;
    assert!(check(&database).await > 10, "staged");
    database.settle().expect("it settles");
    assert!(check(&database).await > 10, "in blocks");
    run(&database, "DELETE FROM g WHERE id % 13 = 5").await;
    run(&database, &insert(150_000, 20_000, 5_000)).await;
    assert!(check(&database).await > 10, "deleted rows, late rows beside blocks");
    run(&database, "ALTER TABLE g SEAL").await;
    assert!(check(&database).await > 10, "sealed");
    // Symbols that occur in no block, and missing columns.
    run(&database, "ALTER TABLE g ADD COLUMN late SYMBOL").await;
    run(&database, "ALTER TABLE g ADD COLUMN later DOUBLE").await;
    assert_eq!(rows(&database, "SELECT late, count(*), count(later), sum(later) FROM g GROUP BY late").await.len(), 1);
    run(&database, "INSERT INTO g (ts, id, late, later) VALUES ('1970-01-01', -1, 'new', 2.5)").await;
    let fast = "SELECT late, count(*), count(later), sum(later) FROM g GROUP BY late ORDER BY late";
    let general = fast.replace("(later)", "(later + 0)");
    assert_eq!(rows(&database, fast).await, rows(&database, &general).await);
}

/// Hours of many rows, which determine the read method, and between them others that have two rows each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buckets_that_change_more_often_than_it_seemed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, "CREATE TABLE g (ts TIMESTAMP, b SYMBOL, d DOUBLE) TIMESTAMP(ts) PARTITION BY YEAR").await;
    let insert = "INSERT INTO g SELECT to_timestamp_micros(CASE WHEN v < 80000 THEN v * 10000 WHEN v < 90000 \
         THEN 800000000 + (v - 80000) * 1800000000 ELSE 18000800000000 + (v - 90000) * 10000 END), \
         CASE WHEN v % 301 > 0 THEN 'b' || (v % 301) END, CASE WHEN v % 7 > 0 THEN v / 4.0 END \
         FROM generate_series(0, 399999) AS s(v)";
    run(&database, insert).await;
    database.settle().expect("it settles");
    let fast = "SELECT timestamp_floor('1h', ts), b, count(*), count(d), sum(d), min(d), max(d) FROM g GROUP BY 1, 2 ORDER BY 1, 2";
    assert!(plan(&database, fast).await.contains(", grouped"));
    assert_eq!(rows(&database, fast).await, rows(&database, &fast.replace("(d)", "(d + 0)")).await);
}
