//! Fast operators against standard SQL that they do not take part in: groups by codes and buckets, the latest rows.

mod asked;

use asked::{count, open, plan, rows, run};
use tidalite::Database;

const TABLE: &str =
    "CREATE TABLE t (ts TIMESTAMP, id LONG, sym SYMBOL, rare SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY";

/// Rows numbered from `first`, some seconds out of order. Of `rare`, all but two values are only in the first rows.
fn insert(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO t SELECT to_timestamp_micros(1704067200000000 + v / 3 * 900000 - h % {late} * 1000000), v, \
         CASE WHEN h % 17 = 0 THEN NULL ELSE 's' || (h % 40) END, \
         CASE WHEN v < 3000 THEN 'r' || (h % 50) WHEN h % 2 = 0 THEN 'r1' ELSE 'r2' END, h % 1000 \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

/// The latest row of each key in SQL's own words. Of two of one time it is the one that came later.
fn latest(key: &str, filter: &str) -> String {
    format!(
        "SELECT ts, id, sym, rare, x FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY ts DESC, id DESC) AS n \
         FROM t WHERE {filter}) WHERE n = 1 ORDER BY ts, id"
    )
}

async fn check(database: &Database) {
    for filter in
        ["true", "x > 900", "id < 100000 AND x < 500", "sym = 's3'", "ts IN '2024-01-01T05'", "id = 17", "id < 0"]
    {
        for key in ["sym", "rare"] {
            let fast = format!("SELECT ts, id, sym, rare, x FROM t WHERE {filter} LATEST ON ts PARTITION BY {key}");
            assert!(plan(database, &fast).await.contains("TidaliteLatest"), "{fast}");
            let sorted = format!("SELECT * FROM ({fast}) ORDER BY ts, id");
            assert_eq!(rows(database, &sorted).await, rows(database, &latest(key, filter)).await, "{fast}");
            let times = rows(database, &format!("SELECT ts FROM ({fast})")).await;
            assert!(times.is_sorted(), "in order of time: {fast}");
        }
        // Text that is computed comes as text, a bucket of moved time is computed for every row.
        for (fast, general) in [
            ("sym", "sym || ''"),
            ("rare, sym", "rare || '', sym || ''"),
            ("timestamp_floor('1h', ts)", "timestamp_floor('1h', ts + 0)"),
            ("timestamp_floor('15m', ts), sym", "timestamp_floor('15m', ts + 0), sym || ''"),
            ("date_trunc('day', ts), rare, x > 500", "date_trunc('day', ts + 0), rare || '', x > 500"),
        ] {
            let ask = |keys: &str| {
                let order = (1..=keys.split(", ").count() - keys.matches("('").count()).map(|n| n.to_string());
                let order = order.collect::<Vec<_>>().join(", ");
                format!(
                    "SELECT {keys}, count(*), sum(x), min(id), max(id) FROM t WHERE {filter} GROUP BY {order} ORDER BY {order}"
                )
            };
            let (fast, general) = (ask(fast), ask(general));
            assert!(plan(database, &fast).await.contains("TidaliteGroup"), "{fast}");
            assert_eq!(rows(database, &fast).await, rows(database, &general).await, "{fast}");
        }
    }
    let coded = plan(database, "SELECT ts, sym, count() FROM t SAMPLE BY 1h").await;
    assert!(coded.contains("codes=[sym]") && coded.contains("columns=[timestamp_floor(1h"), "{coded}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_operators_answer_as_sql_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, TABLE).await;
    check(&database).await;
    run(&database, &insert(0, 150_000, 1)).await;
    check(&database).await;
    database.settle().expect("it settles");
    check(&database).await;
    run(&database, "DELETE FROM t WHERE id % 13 = 5 OR (rare IN ('r7', 'r1') AND id > 2000)").await;
    run(&database, &insert(150_000, 60_000, 5_000)).await;
    check(&database).await;
    database.settle().expect("it settles");
    run(&database, "DELETE FROM t WHERE id > 209000").await;
    check(&database).await;
    run(&database, "ALTER TABLE t ADD COLUMN late SYMBOL").await;
    assert_eq!(rows(&database, "SELECT late, id FROM t LATEST ON ts PARTITION BY late").await.len(), 1);
    let blocks = count(&database, "SELECT count(DISTINCT rare) FROM t").await;
    assert!(blocks > 40, "rare symbols are still there: {blocks}");
}
