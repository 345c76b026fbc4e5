//! Compares queries on a table that one of its materialized views answers with the same queries on the table: which
//! queries are answered by a view, which are not, and that the results are equal.

mod asked;

use asked::{open, plan, rows, run};
use tidalite::Database;

const TABLE: &str = "CREATE TABLE t (ts TIMESTAMP, k SYMBOL, side SYMBOL, x LONG, i INT, v DOUBLE, b BOOLEAN) \
                     TIMESTAMP(ts) PARTITION BY DAY";
const ROWS: &str = "INSERT INTO t SELECT to_timestamp_micros(1704067200000000 + value * 37000000), \
                    CASE WHEN value % 11 = 0 THEN NULL ELSE 'k' || (value % 5) END, \
                    CASE WHEN value % 3 = 0 THEN 'buy' ELSE 'sell' END, \
                    CASE WHEN value % 7 = 0 THEN NULL ELSE value % 1000 END, value % 100, \
                    CASE WHEN value % 13 = 0 THEN NULL ELSE (value % 64) * 0.25 END, value % 4 > 0 \
                    FROM generate_series(1, 20000) AS value";
const HOURLY: &str = "CREATE MATERIALIZED VIEW hourly REFRESH MANUAL AS (SELECT ts, k, side, count() AS c, count(x) AS cx, \
                      sum(x) AS sx, sum(i) AS si, count(i) AS ci, sum(v) AS sv, count(v) AS cv, min(v) AS lo, max(x) AS hi, first(x) AS fx, \
                      last(v) AS lv, first_not_null(x) AS fn, bool_and(b) AS ab, count(DISTINCT x) AS dx, median(v) AS mv \
                      FROM t SAMPLE BY 1h)";
const BUYS: &str = "CREATE MATERIALIZED VIEW buys REFRESH MANUAL AS (SELECT ts, k, sum(x) AS sx FROM t \
                    WHERE side = 'buy' SAMPLE BY 30m)";

/// The answering view, and the query after SELECT.
const ANSWERED: &[(&str, &str)] = &[
    (
        "hourly",
        "ts, k, side, count(), sum(x), avg(v), first(x), last(v), median(v), count(DISTINCT x) FROM t SAMPLE BY 1h",
    ),
    ("hourly", "ts, k, side, first(x), last(v), first_not_null(x), min(v) FROM t SAMPLE BY 6h"),
    ("hourly", "ts, count(), sum(x), avg(i), sum(i), min(v), max(x), bool_and(b) FROM t SAMPLE BY 1d"),
    ("hourly", "ts, count(*), count(1), count(ts), count(x) FROM t SAMPLE BY 1w"),
    ("hourly", "ts, k, avg(v) FROM t WHERE k IN ('k1', 'k3') AND side = 'sell' SAMPLE BY 1M"),
    ("hourly", "ts, median(v), avg(v) FROM t WHERE k = 'k1' AND side = 'sell' SAMPLE BY 1h"),
    ("hourly", "ts, first(x), last(v) FROM t WHERE k IS NULL AND side = 'sell' SAMPLE BY 1d"),
    ("hourly", "upper(k) AS u, sum(x) FROM t WHERE k <> 'k2' GROUP BY 1 ORDER BY 1"),
    ("hourly", "sum(x), count() FROM t WHERE ts IN '2024-01-02'"),
    ("hourly", "sum(x), count(), avg(v) FROM t WHERE ts >= '2031'"),
    ("hourly", "sum(x) + count() AS s FROM t WHERE ts > '2024-01-02T02:59:59.999999' AND ts < '2024-01-03T05'"),
    ("hourly", "count(DISTINCT k), max(side) FROM t WHERE side > 'a'"),
    ("hourly", "DISTINCT k, side FROM t ORDER BY 1, 2"),
    ("hourly", "date_trunc('day', ts) AS d, k, sum(x) FROM t GROUP BY 1, 2 ORDER BY 1, 2"),
    ("hourly", "date_trunc('hour', ts) AS d, sum(x) FROM t GROUP BY 1 HAVING sum(x) > 10000 ORDER BY 1"),
    ("hourly", "timestamp_floor('3h', ts, '2024-01-01T01:00') AS d, sum(x) FROM t GROUP BY 1 ORDER BY 1"),
    ("hourly", "ts, sum(x) FROM t SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE '-03:00'"),
    ("hourly", "ts, sum(x) FROM t SAMPLE BY 2h FROM '2024-01-02T01:00' TO '2024-01-04' FILL(0)"),
    ("hourly", "ts, k, sum(x) FROM t WHERE k IS NOT NULL SAMPLE BY 12h FILL(PREV)"),
    ("hourly", "k, max(total) AS m FROM (SELECT ts, k, sum(x) AS total FROM t SAMPLE BY 1d) GROUP BY k ORDER BY k"),
    ("hourly", "(SELECT sum(x) FROM t WHERE ts >= '2024-01-04') AS late, (SELECT count() FROM t WHERE k = 'k4') AS k4"),
    ("hourly", "CASE WHEN ts >= '2024-01-04' THEN 1 ELSE 0 END AS half, count() FROM t GROUP BY 1 ORDER BY 1"),
    ("buys", "ts, k, sum(x) FROM t WHERE side = 'buy' SAMPLE BY 30m"),
    ("hourly", "ts, k, sum(x) FROM t WHERE 'sell' = side SAMPLE BY 1h"),
];

const NOT_ANSWERED: &[&str] = &[
    "ts, sum(x) FROM t SAMPLE BY 15m",
    "ts, sum(x) FROM t SAMPLE BY 90m",
    "ts, sum(x) FROM t SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/London'",
    "ts, sum(x) FROM t SAMPLE BY 1h ALIGN TO CALENDAR WITH OFFSET '00:30'",
    "ts, sum(x) FROM t SAMPLE BY 1h ALIGN TO FIRST OBSERVATION",
    "ts, sum(x) FROM t WHERE ts > '2024-01-02' SAMPLE BY 1h",
    "ts, sum(x) FROM t WHERE ts >= '2024-01-02T00:30' SAMPLE BY 1h",
    "ts, sum(x) FROM t WHERE x > 5 SAMPLE BY 1h",
    "ts, sum(x) FROM t WHERE k = side OR v > 3 SAMPLE BY 1h",
    "ts, sum(i + 1) FROM t SAMPLE BY 1h",
    "ts, median(v) FROM t SAMPLE BY 1h",
    "ts, k, side, median(v) FROM t SAMPLE BY 2h",
    "ts, k, first(x) FROM t SAMPLE BY 1h",
    "ts, k, side, count(DISTINCT x) FROM t SAMPLE BY 2h",
    "ts, avg(CAST(v AS INT)) FROM t SAMPLE BY 1h",
    // A sum of LONGs may have wrapped.
    "ts, avg(x) FROM t SAMPLE BY 1d",
    "ts, sum(x) FILTER (WHERE k = 'k1') FROM t SAMPLE BY 1h",
    "min(ts), max(ts), sum(x) FROM t WHERE k = 'k1'",
    "a.k, sum(a.x) FROM t a JOIN (SELECT DISTINCT i FROM t) b ON a.i = b.i GROUP BY 1 ORDER BY 1",
    "k, x FROM t WHERE k = 'k1' ORDER BY ts LIMIT 5",
];

async fn both(database: &Database, query: &str) -> (String, String) {
    let of = |hint: &str| format!("SELECT /*+ {hint} */ {query}");
    let (with, without) = (of("use_materialized_views"), of("no_materialized_views"));
    assert_eq!(rows(database, &with).await, rows(database, &without).await, "{query}");
    (plan(database, &with).await, plan(database, &without).await)
}

async fn check(database: &Database, is_fresh: bool) {
    for (view, query) in ANSWERED {
        let (with, without) = both(database, query).await;
        let named = format!("table={view} (a materialized view of t)");
        assert_eq!(with.contains(&named), is_fresh, "{query}\n{with}");
        assert!(!without.contains("materialized view"), "{query}\n{without}");
    }
    for query in NOT_ANSWERED {
        let (with, _) = both(database, query).await;
        assert!(!with.contains("materialized view"), "{query}\n{with}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_answers_as_its_base_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    for statement in [TABLE, ROWS, HOURLY, BUYS] {
        run(&database, statement).await;
    }
    check(&database, true).await;
    database.settle().expect("it settles");
    check(&database, true).await;
    // Rows inserted, changed or deleted in the base make views stale until they are refreshed.
    for change in [
        "INSERT INTO t SELECT dateadd('s', 1, ts), k, side, x + 1, i, v, b FROM t WHERE i = 3",
        "DELETE FROM t WHERE i = 7",
        "UPDATE t SET x = x + 5, k = 'k1' WHERE i = 9",
        "UPDATE t SET ts = dateadd('h', 5, ts) WHERE i = 10",
    ] {
        run(&database, change).await;
        check(&database, false).await;
        run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
        run(&database, "REFRESH MATERIALIZED VIEW buys").await;
        check(&database, true).await;
    }
    // Other columns of the base are irrelevant.
    run(&database, "ALTER TABLE t ADD COLUMN late LONG").await;
    check(&database, true).await;
    run(&database, "ALTER TABLE t RENAME COLUMN v TO w").await;
    let (with, _) = both(&database, "ts, sum(w) FROM t SAMPLE BY 1h").await;
    assert!(!with.contains("materialized view"), "{with}");
}

/// If a view is stale, queries on other times are still answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_times_are_asked_of_the_base() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    for statement in [TABLE, ROWS, HOURLY] {
        run(&database, statement).await;
    }
    run(&database, "INSERT INTO t (ts, k, x) VALUES ('2024-01-05T12:30', 'k1', 1)").await;
    let is_answered = async |query: &str| both(&database, query).await.0.contains("materialized view");
    assert!(is_answered("ts, sum(x) FROM t WHERE ts < '2024-01-05T12' SAMPLE BY 1h").await);
    assert!(is_answered("ts, sum(x) FROM t WHERE ts >= '2024-01-05T13' SAMPLE BY 1d").await);
    assert!(!is_answered("ts, sum(x) FROM t WHERE ts <= '2024-01-05T12:59:59.999999' SAMPLE BY 1h").await);
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
    assert!(is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    // Rows dropped from the base stay in the view, which then does not answer queries.
    run(&database, "ALTER TABLE t DROP PARTITION LIST '2024-01-01', '2024-01-03'").await;
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    assert!(is_answered("k, sum(x) FROM t WHERE ts >= '2024-01-04' GROUP BY k ORDER BY k").await);
    run(&database, "ALTER TABLE t DROP PARTITION LIST '2024-01-02'").await;
    run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
    assert!(is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await, "all that it keeps more is older");
    // Rows inserted for such a time are not in the view.
    run(&database, "INSERT INTO t (ts, k, x) VALUES ('2024-01-01T12:30', 'k1', 1)").await;
    run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    assert!(is_answered("ts, sum(x) FROM t WHERE ts >= '2024-01-04' SAMPLE BY 1d").await);
}

/// A view does not answer queries on times that its own TTL dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_lost_rows_knows_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, TABLE).await;
    run(&database, ROWS).await;
    let view =
        "CREATE MATERIALIZED VIEW m REFRESH MANUAL AS (SELECT ts, k, sum(x) AS s FROM t SAMPLE BY 1h) PARTITION BY DAY";
    run(&database, view).await;
    let is_answered = async |query: &str| both(&database, query).await.0.contains("materialized view");
    assert!(is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    run(&database, "ALTER MATERIALIZED VIEW m SET TTL 2 DAYS").await;
    database.settle().expect("it settles");
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await);
    assert!(is_answered("k, sum(x) FROM t WHERE ts >= '2024-01-08' GROUP BY k ORDER BY k").await);
    run(&database, "ALTER MATERIALIZED VIEW m SET TTL 0").await;
    assert!(!is_answered("k, sum(x) FROM t GROUP BY k ORDER BY k").await, "they do not come back by themselves");
}

/// Views over views, cached plans, and columns with equal names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_of_views_and_kept_plans() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    for statement in [TABLE, ROWS, HOURLY] {
        run(&database, statement).await;
    }
    run(&database, "CREATE MATERIALIZED VIEW daily REFRESH MANUAL AS (SELECT ts, sum(sx) AS x, sum(c) AS k FROM hourly SAMPLE BY 1d)")
        .await;
    let query = "ts, sum(x), count() FROM t SAMPLE BY 1d";
    assert!(both(&database, query).await.0.contains("table=daily (a materialized view of hourly)"));
    let query = "SELECT /*+ use_materialized_views */ sum(x), count() FROM t WHERE ts < '2024-01-03'";
    let before = rows(&database, query).await;
    for _ in 0..4 {
        assert_eq!(rows(&database, query).await, before);
    }
    run(&database, "INSERT INTO t (ts, x) VALUES ('2024-01-01', 1000000)").await;
    let after = rows(&database, query).await;
    assert_ne!(after, before, "a plan that is kept does not keep the view");
    run(&database, "REFRESH MATERIALIZED VIEW hourly").await;
    run(&database, "REFRESH MATERIALIZED VIEW daily").await;
    assert_eq!(rows(&database, query).await, after);
    assert!(plan(&database, query).await.contains("table=daily"), "and finds it again");
}
