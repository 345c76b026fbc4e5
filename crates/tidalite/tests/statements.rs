//! Tests that statement files cannot express: positions of errors, cancellation, input of any size, concurrent
//! statements.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tidalite::{Database, DatabaseConfig, Error, ErrorKind, QueryOptions, Response, Rows};
use tidalite_memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);

struct Opened {
    database: Database,
    _folder: tempfile::TempDir,
}

fn open() -> Opened {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = DatabaseConfig::new(folder.path());
    config.durability = tidalite::config::Durability::Os;
    config.query_memory_bytes = 64 << 20;
    Opened { database: Database::open(config).expect("an empty folder opens"), _folder: folder }
}

impl Opened {
    async fn try_run(&self, sql: &str) -> Result<Response, Error> {
        self.database.execute(sql, QueryOptions::default()).await
    }

    async fn run(&self, sql: &str) -> u64 {
        match self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
            Response::Done { rows, .. } => rows,
            Response::Rows(rows) => count(rows).await.unwrap_or_else(|e| panic!("{sql}: {e}")),
        }
    }

    async fn error(&self, sql: &str) -> Error {
        match self.try_run(sql).await {
            Err(error) => error,
            Ok(Response::Done { .. }) => panic!("{sql} was accepted"),
            Ok(Response::Rows(rows)) => count(rows).await.expect_err("the rows fail"),
        }
    }

    async fn rows(&self, sql: &str) -> Rows {
        match self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
            Response::Rows(rows) => rows,
            Response::Done { .. } => panic!("{sql} has no rows"),
        }
    }

    async fn number(&self, sql: &str) -> i64 {
        let mut rows = self.rows(sql).await;
        let batch = rows.stream.next().await.expect("a batch").expect("no error");
        batch.column(0).as_primitive::<Int64Type>().value(0)
    }
}

async fn count(mut rows: Rows) -> Result<u64, Error> {
    let mut count = 0;
    while let Some(batch) = rows.stream.next().await {
        count += batch?.num_rows() as u64;
    }
    Ok(count)
}

const MANY: &str = "SELECT count(*) FROM generate_series(1, 1000000) a(value), generate_series(1, 1000000) b(value) WHERE a.value + b.value = -1";

#[tokio::test]
async fn errors_have_the_place_of_what_they_are_about() {
    let db = open();
    db.run("CREATE TABLE cpu (ts TIMESTAMP, Usage_user DOUBLE) TIMESTAMP(ts)").await;
    for (sql, at, hint) in [
        ("SELECT usage_usr FROM cpu", "usage_usr", Some("perhaps you meant \"usage_user\"")),
        ("SELECT *\nFROM cpuu", "cpuu", Some("perhaps you meant \"cpu\"")),
        ("SELECT é, nosuch(ts) FROM cpu", "é", None),
        ("SELECT nosuch(ts) FROM cpu", "nosuch", None),
        ("SELECT ts FROM cpu WHERE ORDER BY ts", "ORDER", None),
        ("SELECT 'é' || FROM cpu", "FROM", None),
        ("CREATE TABLE t (a INT, b GEOHASH(3c))", "GEOHASH", None),
        ("CREATE TABLE Cpu (a INT)", "Cpu", None),
        ("INSERT INTO cpu (ts, x) VALUES (1, 2)", "x)", None),
        ("DROP TABLE nosuch", "nosuch", None),
        ("SELECT ts FROM cpu WHERE ts > 'soon'", "'soon'", None),
        ("SELECT 1 + 'abc", "'abc", None),
    ] {
        let error = db.error(sql).await;
        assert_eq!(error.position, sql.find(at), "{sql}: {error}");
        if let Some(hint) = hint {
            assert_eq!(error.hint.as_deref(), Some(hint), "{sql}");
        }
    }
}

#[tokio::test]
async fn columns_are_named_and_typed_as_their_table_says() {
    let db = open();
    db.run("CREATE TABLE t (Ts TIMESTAMP_NS, Sym SYMBOL, a DOUBLE[], ip IPV4) TIMESTAMP(ts)").await;
    let rows = db.rows("SELECT a, TS, sym AS Other, count(*), IP, sum(1), sum(2) FROM t GROUP BY a, ts, sym, ip").await;
    let columns: Vec<_> = rows.columns.iter().map(|c| (c.name.as_str(), c.type_name.as_str())).collect();
    let expected = [
        ("a", "DOUBLE[]"),
        ("Ts", "TIMESTAMP_NS"),
        ("Other", "SYMBOL"),
        ("count", "LONG"),
        ("ip", "IPV4"),
        ("sum", "LONG"),
        ("sum1", "LONG"),
    ];
    assert_eq!(columns, expected);
    assert_eq!(rows.timestamp, Some(1));
    let names: Vec<_> = rows.schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
}

#[tokio::test]
async fn a_statement_stops_at_its_timeout() {
    let db = open();
    let started = Instant::now();
    let options = QueryOptions { timeout: Some(Duration::from_millis(50)), ..QueryOptions::default() };
    let error = match db.database.execute(MANY, options).await {
        Ok(Response::Rows(rows)) => count(rows).await.expect_err("it takes longer"),
        Ok(Response::Done { .. }) => panic!("a query has rows"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("statement timeout of 50 ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(db.database.activity().is_empty());
}

#[tokio::test]
async fn a_statement_stops_when_cancelled() {
    let db = open();
    let options = QueryOptions { client: "the test".to_owned(), ..QueryOptions::default() };
    let Ok(Response::Rows(rows)) = db.database.execute(MANY, options).await else { panic!("a query has rows") };
    let running = db.database.activity();
    assert_eq!((running.len(), running[0].client.as_str(), running[0].sql.as_str()), (1, "the test", MANY));
    db.run(&format!("CANCEL QUERY {}", running[0].id)).await;
    let error = count(rows).await.expect_err("it was cancelled");
    assert_eq!(error.message, "canceling statement due to user request");
    assert!(db.database.activity().is_empty());
}

/// Every run of a statement is listed, counted and cancelled separately, although its plan is cached.
#[tokio::test]
async fn a_repeated_statement_stops_when_cancelled() {
    let db = open();
    db.run("CREATE TABLE many (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    let written = "INSERT INTO many SELECT timestamp_sequence('2024-01-01', 1000) AS ts, x FROM long_sequence(700000)";
    db.run(written).await;
    let sql = "SELECT x FROM many WHERE x > 5";
    for _ in 0..4 {
        assert_eq!(db.run(sql).await, 699_995);
        let options = QueryOptions { client: "the test".to_owned(), ..QueryOptions::default() };
        let Ok(Response::Rows(mut rows)) = db.database.execute(sql, options).await else { panic!("a query has rows") };
        assert!(rows.stream.next().await.expect("a batch").expect("no error").num_rows() > 0);
        let running = db.database.activity();
        assert_eq!((running.len(), running[0].client.as_str(), running[0].sql.as_str()), (1, "the test", sql));
        let (read, all) = running[0].rows;
        assert!(read > 0 && read < all && all >= 700_000, "{read} of {all}");
        db.run(&format!("CANCEL QUERY {}", running[0].id)).await;
        let error = count(rows).await.expect_err(sql);
        assert_eq!(error.message, "canceling statement due to user request");
        assert!(db.database.activity().is_empty());
        drop(db.rows(sql).await);
        assert!(db.database.activity().is_empty());
    }
}

/// Counts and bounds of a whole table are returned without reading it, and updated after writes.
#[tokio::test]
async fn what_is_known_of_a_table_is_told_as_it_is_now() {
    let db = open();
    db.run("CREATE TABLE w (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    let asked = async |expected: [Option<i64>; 3]| {
        for _ in 0..3 {
            for (sql, expected) in
                ["SELECT count(*) FROM w", "SELECT max(x) FROM w", "SELECT count(*) FROM w WHERE x > 1"]
                    .iter()
                    .zip(expected)
            {
                let batches: Vec<_> = db.rows(sql).await.stream.map(|batch| batch.expect("no error")).collect().await;
                let column = batches[0].column(0).as_primitive::<Int64Type>();
                assert_eq!(column.iter().next().flatten(), expected, "{sql}");
            }
        }
    };
    asked([Some(0), None, Some(0)]).await;
    db.run("INSERT INTO w VALUES ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-03', 3)").await;
    asked([Some(3), Some(3), Some(2)]).await;
    db.run("DELETE FROM w WHERE x = 3").await;
    asked([Some(2), Some(2), Some(1)]).await;
    db.database.settle().expect("it settles");
    asked([Some(2), Some(2), Some(1)]).await;
    db.run("ALTER TABLE w RENAME COLUMN x TO y").await;
    db.run("ALTER TABLE w ADD COLUMN x LONG").await;
    asked([Some(2), None, Some(0)]).await;
    db.run("DROP TABLE w").await;
    db.run("CREATE TABLE w (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    asked([Some(0), None, Some(0)]).await;
}

/// A plan for a table without rows is not reused after rows were inserted.
#[tokio::test]
async fn a_statement_that_found_nothing_finds_what_is_written_then() {
    let db = open();
    db.run("CREATE TABLE w (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    let asked = async |sql: &str, times: usize, expected: &[i64]| {
        for _ in 0..times {
            let batches: Vec<_> = db.rows(sql).await.stream.map(|batch| batch.expect("no error")).collect().await;
            let found: Vec<i64> = batches
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values())
                .copied()
                .collect();
            assert_eq!(found, expected, "{sql}");
        }
    };
    for (times, start) in [(1, "2024-01-01"), (2, "2024-02-01"), (3, "2024-03-01")] {
        let limited = format!("SELECT x FROM w LIMIT {times}");
        let grouped = format!("SELECT x, count(*) FROM w GROUP BY x ORDER BY x DESC LIMIT {times}");
        asked(&limited, times, &[]).await;
        asked(&grouped, times, &[]).await;
        db.run(&format!(
            "INSERT INTO w VALUES ('{start}', 1), ('{start}T01', 2), ('{start}T02', 3), ('{start}T03', 4)"
        ))
        .await;
        asked(&limited, 3, &[1, 2, 3, 4][..times]).await;
        asked(&grouped, 3, &[4, 3, 2][..times]).await;
        db.run("DELETE FROM w WHERE x > 0").await;
    }
}

/// A statement without tables is planned once, except for volatile functions.
#[tokio::test]
async fn what_needs_no_table_is_told_again() {
    let db = open();
    for _ in 0..4 {
        for (sql, expected) in [("SELECT 1", 1), ("select 6 * 7", 42), ("SELECT count(*) FROM (VALUES (1), (2))", 2)] {
            assert_eq!(db.number(sql).await, expected, "{sql}");
        }
        assert_eq!(db.error("SELECT 1 / 0").await.kind, ErrorKind::Invalid);
        assert_eq!(db.number("SELECT count(*) FROM query_activity()").await, 1);
    }
    let mut clock = Vec::new();
    while clock.first() == clock.last() {
        clock.push(db.number("SELECT now()::LONG").await);
    }
    db.run("CREATE TABLE one (x LONG)").await;
    db.run("INSERT INTO one SELECT 1").await;
    for rows in 1..4 {
        assert_eq!(db.number("SELECT (SELECT count(*) FROM one)").await, rows);
        db.run("INSERT INTO one SELECT 1").await;
    }
}

/// A plan that contains the current time is made each time; a plan with a fixed interval is cached.
#[tokio::test]
async fn statements_with_fixed_intervals_are_planned_once() {
    let db = open();
    db.run("CREATE TABLE t (ts TIMESTAMP, x LONG) TIMESTAMP(ts)").await;
    db.run("INSERT INTO t VALUES ('2025-01-01T12', 1)").await;
    for (sql, is_kept) in [
        ("SELECT count(*) FROM t WHERE ts IN '2025-01-01'", true),
        ("SELECT sum(x) FROM t WHERE ts IN '2025-01-01T11;2h' AND x > 0", true),
        ("SELECT count(*) FROM t WHERE ts IN '$now - 1d..$now'", false),
        ("SELECT count(*) FROM t WHERE ts IN today()", false),
    ] {
        db.run(sql).await;
        db.run(sql).await;
        let planned = db.database.front_end_counts().bound;
        for _ in 0..5 {
            db.run(sql).await;
        }
        assert_eq!(db.database.front_end_counts().bound == planned, is_kept, "{sql}");
    }
}

/// An error in nested expressions took the stock parser 2ⁿ time, and blocked a planner thread forever.
#[tokio::test]
async fn nested_bad_input_is_refused_at_once() {
    let db = open();
    let openings =
        ["NOT(", "CAST(", "CASE WHEN x THEN ", "ARRAY[", "((((", "f(", "x IN (", "EXISTS (SELECT ", "(SELECT ", "-("];
    for opening in openings {
        for count in [30, 60, 10_000] {
            let nested = opening.repeat(count);
            for sql in [
                format!("SELECT {nested}"),
                format!("SELECT {nested}1 1"),
                format!("EXPLAIN SELECT {nested}"),
                format!("INSERT INTO t SELECT {nested}"),
                format!("CREATE VIEW v AS SELECT {nested}"),
                format!("CREATE MATERIALIZED VIEW v AS (SELECT {nested}"),
                format!("COPY (SELECT {nested}) TO 'x'"),
                format!("DELETE FROM t WHERE {nested}"),
                format!("UPDATE t SET x = {nested}"),
                format!("ALTER TABLE t DROP PARTITION WHERE {nested}"),
            ] {
                let start = std::time::Instant::now();
                assert!(db.database.execute(&sql, QueryOptions::default()).await.is_err());
                assert!(db.database.describe(&sql, Vec::new(), QueryOptions::default()).await.is_err());
                assert!(start.elapsed() < Duration::from_secs(2), "{opening} {count}: {:?}", start.elapsed());
            }
        }
    }
    assert_eq!(db.number("SELECT 1").await, 1);
}

/// A statement planned on a large stack also runs on a small stack when it is repeated.
#[tokio::test]
async fn a_deep_statement_is_asked_again_on_a_small_stack() {
    let db = open();
    db.run("CREATE TABLE d (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    db.run("INSERT INTO d VALUES ('2024-01-01', 1), ('2024-01-02', 2)").await;
    let sum = format!("SELECT x FROM d WHERE {} > 300", vec!["x"; 190].join("+"));
    let either = |terms: usize| format!("SELECT x FROM d WHERE {}", vec!["x=1"; terms].join(" OR "));
    let nested = format!("SELECT x FROM d WHERE {}x=1{}", "NOT(x=3 OR ".repeat(40), ")".repeat(40));
    let deep = [(sum, 1), (nested, 1), (either(130), 1), (either(900), 1)];
    for _ in 0..4 {
        for (sql, rows) in deep.clone() {
            let database = db.database.clone();
            let asked = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    match database.execute(&sql, QueryOptions::default()).await.expect("it is a query") {
                        Response::Rows(found) => count(found).await.expect("no error"),
                        Response::Done { .. } => panic!("a query has rows"),
                    }
                })
            };
            let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(asked).expect("a thread");
            assert_eq!(thread.join().expect("it does not panic"), rows);
        }
    }
}

/// Parameter values of other types than before, and rows inserted between two runs.
#[tokio::test]
async fn a_prepared_statement_takes_any_values() {
    use tidalite::Parameter::{Double, Long, Text};
    let db = open();
    db.run("CREATE TABLE p (ts TIMESTAMP, k SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    db.run("INSERT INTO p VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'a', 2), ('2024-01-03', 'b', 3)").await;
    let counted = async |sql: &str, parameters: Vec<tidalite::Parameter>| {
        let options = QueryOptions { parameters, ..QueryOptions::default() };
        match db.database.execute(sql, options).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
            Response::Rows(rows) => count(rows).await.unwrap_or_else(|e| panic!("{sql}: {e}")),
            Response::Done { .. } => panic!("a query has rows"),
        }
    };
    let (above, of) = ("SELECT ts, k FROM p WHERE x >= $1", "SELECT ts, x FROM p WHERE k = $1 AND ts < $2");
    for run in 0..4 {
        assert_eq!(counted(above, vec![Long(2)]).await, 2 + run);
        assert_eq!(counted(above, vec![Long(1)]).await, 3 + run);
        assert_eq!(counted(above, vec![Double(1.5)]).await, 2 + run);
        assert_eq!(counted(above, vec![Text("3".to_owned())]).await, 1 + run);
        let text = |text: &str| Text(text.to_owned());
        assert_eq!(counted(of, vec![text("a"), text("2024-01-02")]).await, 1);
        assert_eq!(counted(of, vec![text("a"), text("2024-01-03")]).await, 2);
        assert_eq!(counted(of, vec![text("c"), text("2025")]).await, run);
        db.run("INSERT INTO p VALUES ('2024-02-01', 'c', 7)").await;
    }
}

/// A `float8` parameter is a DOUBLE beside a DECIMAL, also in a plan for all values. Expected counts are PostgreSQL 15's.
#[tokio::test]
async fn double_parameters_beside_decimals() {
    use tidalite::Parameter::Double;
    let db = open();
    db.run("CREATE TABLE p (ts TIMESTAMP, d DECIMAL(10,2), w DECIMAL(38,20)) TIMESTAMP(ts) PARTITION BY DAY").await;
    db.run(
        "INSERT INTO p VALUES ('2024-01-01', 0, 0.1), ('2024-01-02', 0.07, 0.07), \
         ('2024-01-03', 2.5, 0.07000000000000000001), ('2024-01-04', 1.25, NULL)",
    )
    .await;
    let counted = async |sql: &str, value: f64| {
        let options = QueryOptions { parameters: vec![Double(value)], ..QueryOptions::default() };
        match db.database.execute(sql, options).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
            Response::Rows(rows) => count(rows).await.unwrap_or_else(|e| panic!("{sql}, {value}: {e}")),
            Response::Done { .. } => panic!("a query has rows"),
        }
    };
    // Rows where the column is equal, less, and greater or equal: for d, then for w.
    for (value, expected) in [
        (0.07, [1, 1, 3, 2, 0, 3]),
        (2.5, [1, 3, 1, 0, 3, 0]),
        (1e-20, [0, 1, 3, 0, 0, 3]),
        (1e300, [0, 4, 0, 0, 3, 0]),
        (f64::NAN, [0, 4, 0, 0, 3, 0]),
        (f64::INFINITY, [0, 4, 0, 0, 3, 0]),
        (f64::NEG_INFINITY, [0, 0, 4, 0, 0, 3]),
        (-0.0, [1, 0, 4, 0, 0, 3]),
    ] {
        let conditions = ["d = $1", "d < $1", "d >= $1", "w = $1", "w < $1", "w >= $1"];
        for (condition, expected) in conditions.into_iter().zip(expected) {
            for _ in 0..3 {
                let sql = format!("SELECT ts FROM p WHERE {condition}");
                assert_eq!(counted(&sql, value).await, expected, "{condition}, {value}");
            }
        }
        let chosen = "SELECT ts FROM p WHERE coalesce(CASE WHEN d < 0 THEN d END, $1) = $1::double";
        assert_eq!(counted(chosen, value).await, 4, "{value}");
    }
}

#[tokio::test]
async fn a_statement_stops_when_its_rows_are_dropped() {
    let db = open();
    drop(db.rows(MANY).await);
    assert!(db.database.activity().is_empty());
    assert_eq!(db.number("SELECT 1").await, 1, "the threads are free again");
}

/// Joins that would take minutes, and joins whose rows are not read: the next statement gets the threads at once.
#[tokio::test]
async fn joins_by_time_give_their_threads_back() {
    const ENOUGH: Duration = Duration::from_secs(30);
    let db = open();
    db.run("CREATE TABLE a (ts TIMESTAMP, k SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    let written = "INSERT INTO a SELECT timestamp_sequence('2024-01-01', 1000) AS ts, 'k' || (x % 3) AS k, x FROM long_sequence(300000)";
    db.run(written).await;
    let wide = "RANGE BETWEEN 1 day PRECEDING AND 1 day FOLLOWING";
    let computed = "RANGE BETWEEN 1 + l.x - l.x days PRECEDING AND 1 day FOLLOWING";
    let settled = async |sql: &str| {
        for settle in [false, true] {
            if settle {
                db.database.settle().expect("it settles");
            }
            for is_dropped in [false, true] {
                let mut rows = db.rows(sql).await;
                let running = db.database.activity();
                assert_eq!(running.len(), 1, "{sql}");
                let has_begun = || db.database.activity().iter().any(|one| one.rows.0 > 0);
                if sql.starts_with("SELECT l.ts, r.x") {
                    assert!(rows.stream.next().await.expect("a batch").expect("no error").num_rows() > 0);
                }
                while !has_begun() {
                    tokio::task::yield_now().await;
                }
                if is_dropped {
                    drop(rows);
                } else {
                    db.run(&format!("CANCEL QUERY {}", running[0].id)).await;
                    let error = count(rows).await.expect_err(sql);
                    assert_eq!(error.message, "canceling statement due to user request");
                }
                assert!(db.database.activity().is_empty());
                let next = db.number("SELECT sum(x + x % 2) FROM a WHERE x % 7 < 9");
                let sum =
                    tokio::time::timeout(ENOUGH, next).await.unwrap_or_else(|_| panic!("{sql} keeps its threads"));
                assert_eq!(sum, 45_000_300_000, "{sql}");
            }
        }
    };
    for on in ["", "ON (k)"] {
        settled(&format!(
            "SELECT count(*), sum(n) FROM (SELECT count() AS n, sum(r.x) AS s FROM a l WINDOW JOIN a r {on} {wide})"
        ))
        .await;
        settled(&format!(
            "SELECT count(*), sum(n) FROM (SELECT sum(r.x) AS n FROM a l WINDOW JOIN a r {on} {computed})"
        ))
        .await;
        settled(&format!("SELECT l.ts, r.x FROM a l ASOF JOIN a r {on}")).await;
        settled(&format!("SELECT l.ts, r.x FROM a l LT JOIN a r {on}")).await;
    }
}

#[tokio::test]
async fn input_of_any_shape_is_answered() {
    let db = open();
    db.run("CREATE TABLE t (ts TIMESTAMP, x LONG, s VARCHAR) TIMESTAMP(ts)").await;
    let deep = |n: usize| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n));
    db.error(&deep(100_000)).await;
    db.run(&deep(50)).await;
    db.error(&format!("SELECT 1{}", " + 1".repeat(300_000))).await;
    // See docs/sql/explain.md: the planner's time is cubic in the levels.
    let error = db.error(&format!("SELECT 1{}", " + 1".repeat(500))).await;
    assert!(error.message.starts_with("the statement is too large"), "{error}");
    assert_eq!(db.number(&format!("SELECT 1{}", " + 1".repeat(200))).await, 201);
    db.run(&format!("SELECT x FROM t WHERE x = 0{}", " OR x = 1".repeat(900))).await;
    db.run(&format!("SELECT {}", vec!["1 + 1"; 2_000].join(", "))).await;
    db.error(&format!("SELECT {}", "NOT ".repeat(100_000))).await;
    db.error(&"(".repeat(1_000_000)).await;
    db.error("\0\u{feff}\u{202e}").await;
    db.error("SELECT \"").await;
    db.error("/* never closed").await;
    let text = "é'".repeat(500_000);
    assert_eq!(db.number(&format!("SELECT char_length('{}')::bigint", text.replace('\'', "''"))).await, 1_000_000);
    let values: Vec<String> = (0..20_000).map(|i| format!("({i}, -{i}, 'text number {i}')")).collect();
    assert_eq!(db.run(&format!("INSERT INTO t VALUES {}", values.join(","))).await, 20_000);
    assert_eq!(db.number("SELECT sum(x) FROM t").await, -199_990_000);
}

#[tokio::test]
async fn a_query_that_needs_too_much_memory_fails_alone() {
    let db = open();
    let error = db.error("SELECT count(DISTINCT value || 'some text to make it longer'), array_agg(value) FROM generate_series(1, 30000000) AS value").await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert_eq!(error.code.map(|code| code.as_str()), Some("53200"), "{error}");
    assert!(error.to_string().contains("query.memory_bytes"), "{error}");
    assert_eq!(db.number("SELECT 1").await, 1);
}

#[tokio::test]
async fn memory_that_no_operator_reserves_is_limited() {
    let db = open();
    let texts = "(SELECT x, md5(x::varchar) AS t FROM long_sequence(5000000))";
    for sql in [
        format!("SELECT cardinality(array_agg(t)) FROM {texts}"),
        format!("SELECT max(v) FROM (SELECT first_value(t) OVER (PARTITION BY x) AS v FROM {texts})"),
    ] {
        let error = db.error(&sql).await;
        assert_eq!(error.code.map(|code| code.as_str()), Some("53200"), "{error}");
        let text = format!("{error} {:?}", error.hint);
        let operations = ["aggregation", "sort", "window", "distribution of rows"];
        let names_operation = operations.iter().any(|operation| text.contains(operation));
        assert!(names_operation && text.contains("query.memory_bytes") && !text.contains("Exec"), "{text}");
    }
    let values: Vec<String> = (0..200_000).map(|n| format!("({n}, 'a{n}')")).collect();
    let error = db.error(&format!("SELECT count(*) FROM (VALUES {}) v(a, b)", values.join(", "))).await;
    assert_eq!(error.code.map(|code| code.as_str()), Some("53200"), "{error}");
}

/// Rows that their reader keeps are memory of the reader, for any number of rows.
#[tokio::test]
async fn kept_rows_do_not_count_for_the_statement() {
    let db = open();
    let mut rows = db.rows("SELECT x, md5(x::varchar) AS t FROM long_sequence(4000000)").await;
    let mut kept = Vec::new();
    while let Some(batch) = rows.stream.next().await {
        kept.push(batch.expect("the rows come whole"));
    }
    assert_eq!(kept.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4_000_000);
}

#[tokio::test]
async fn distinct_values_that_memory_has_no_room_for_are_counted() {
    let db = open();
    let values =
        "SELECT value, value || ' and some text to make it longer' AS t FROM generate_series(1, 3000000) AS value";
    assert_eq!(db.number(&format!("SELECT count(DISTINCT t) FROM ({values})")).await, 3_000_000);
    let by_rest = format!(
        "SELECT value % 7 AS r, count(DISTINCT t) AS n, sum(value) AS s, min(value) AS m FROM ({values}) GROUP BY r"
    );
    assert_eq!(db.number(&format!("SELECT sum(n) FROM ({by_rest})")).await, 3_000_000);
    assert_eq!(db.number(&format!("SELECT sum(s) FROM ({by_rest})")).await, 4_500_001_500_000);
    // The sum of 1 to 7.
    assert_eq!(db.number(&format!("SELECT sum(m) FROM ({by_rest})")).await, 28);
}

#[tokio::test]
async fn rows_come_in_order_of_time_from_segments_and_staging() {
    let db = open();
    db.run("CREATE TABLE t (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY").await;
    for start in [500_000, 0, 250_000] {
        let sql = format!(
            "INSERT INTO t SELECT to_timestamp_micros((value * 7919 % 400000 + {start}) * 1000000), value FROM generate_series(1, 200000) AS value"
        );
        assert_eq!(db.run(&sql).await, 200_000);
        if start == 0 {
            db.database.settle().expect("merges");
        }
    }
    for sql in [
        "SELECT ts FROM t",
        "SELECT ts FROM t WHERE x % 3 = 0",
        "SELECT ts FROM t WHERE x > 1000 LIMIT 100000",
        "SELECT ts FROM t ORDER BY ts",
    ] {
        let mut rows = db.rows(sql).await;
        let (mut last, mut count) = (i64::MIN, 0);
        while let Some(batch) = rows.stream.next().await {
            let batch = batch.expect("no error");
            for ts in batch.column(0).as_primitive::<arrow::datatypes::TimestampMicrosecondType>().values() {
                let at = if sql.ends_with("DESC") { -*ts } else { *ts };
                assert!(last <= at, "{sql}: {at} after {last}");
                last = at;
                count += 1;
            }
        }
        assert!(count >= 80_000, "{sql}: {count} rows");
    }
    assert_eq!(db.number("SELECT count(*) FROM t").await, 600_000);
}

/// The values of a PIVOT are read while the statement is planned, which stops as its rows do.
#[tokio::test]
async fn values_of_a_pivot_stop_at_the_timeout() {
    let db = open();
    let started = Instant::now();
    let sql = format!("SELECT * FROM (SELECT 1 AS x) PIVOT (sum(x) FOR x IN ({MANY}))");
    let options = QueryOptions { timeout: Some(Duration::from_millis(50)), ..QueryOptions::default() };
    let Err(error) = db.database.execute(&sql, options).await else { panic!("it takes longer") };
    assert!(error.message.contains("statement timeout of 50 ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(db.database.activity().is_empty());
}

#[tokio::test]
async fn columns_of_a_pivot_are_described_as_they_are_returned() {
    let db = open();
    db.run("CREATE TABLE t (k SYMBOL, v LONG)").await;
    db.run("INSERT INTO t VALUES ('b', 1), ('a', 2), ('c', 3), ('a', 4)").await;
    let sql = "SELECT * FROM t PIVOT (sum(v) FOR k IN (SELECT DISTINCT k FROM t))";
    for expected in [&["a", "b", "c"][..], &["a", "b", "c", "d"]] {
        let described = db.database.describe(sql, Vec::new(), QueryOptions::default()).await.expect(sql);
        let (columns, _) = described.columns.expect("a query has columns");
        let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
        assert_eq!(names, expected);
        let values: Vec<_> = columns.into_iter().filter_map(|column| column.pivot_values).collect();
        assert_eq!(values, expected);
        let returned: Vec<_> = db.rows(sql).await.columns.iter().map(|column| column.name.clone()).collect();
        assert_eq!(returned, expected);
        db.run("INSERT INTO t VALUES ('d', 5)").await;
    }
}

#[tokio::test]
async fn files_are_tables() {
    let db = open();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("a.csv"), "k;v\nx;1\ny;2\n").expect("a file");
    std::fs::write(path("b.csv"), "k;v\nz;4\n").expect("a file");
    let (a, b, both) = (path("a.csv"), path("b.csv"), path("*.csv"));
    for (sql, expected) in [
        (format!("SELECT sum(v) FROM read_csv('{a}')"), 3),
        (format!("SELECT sum(f.v) FROM read_csv('{both}', delim => ';') AS f"), 7),
        (format!("SELECT sum(v) FROM read_csv(['{a}', '{b}'], header = true)"), 7),
        (format!("SELECT sum(v) FROM '{a}'"), 3),
        (format!("SELECT sum(l.v * r.v) FROM '{a}' l CROSS JOIN read_csv('{b}') r"), 12),
        (format!("WITH f AS (SELECT * FROM '{both}') SELECT sum(v) FROM f"), 7),
        (format!("SELECT (SELECT max(v) FROM '{a}') + min(v) FROM '{b}'"), 6),
    ] {
        assert_eq!(db.number(&sql).await, expected, "{sql}");
    }
    db.run(&format!("CREATE VIEW v AS SELECT * FROM '{both}'")).await;
    assert_eq!(db.number("SELECT sum(v) FROM v").await, 7);
    let error = db.error(&format!("SELECT * FROM '{}'", path("nothing.csv"))).await;
    assert!(error.message.ends_with(&format!("no files found at file://{}", path("nothing.csv"))), "{error}");
    let error = db.error("SELECT * FROM 'nothing'").await;
    assert_eq!(error.message, "table \"nothing\" does not exist");
}
