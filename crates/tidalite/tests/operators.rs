//! Compares fast operators with standard SQL that does not use them (groups by codes and buckets, the latest rows), and
//! with their reference implementations (time joins).

mod asked;

use asked::{count, open, open_on, plan, rows, run};
use std::collections::HashSet;
use tidalite::Database;

const TABLE: &str =
    "CREATE TABLE t (ts TIMESTAMP, id LONG, sym SYMBOL, rare SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows numbered from `first`, some seconds out of order. All but two values of `rare` are only in the first
/// rows.
fn insert(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO t SELECT to_timestamp_micros(1704067200000000 + v / 3 * 900000 - h % {late} * 1000000), v, \
         CASE WHEN h % 17 = 0 THEN NULL ELSE 's' || (h % 40) END, \
         CASE WHEN v < 3000 THEN 'r' || (h % 50) WHEN h % 2 = 0 THEN 'r1' ELSE 'r2' END, h % 1000 \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

/// Returns standard SQL for the latest row of each key. Of rows of equal times it is the one that arrived later.
fn latest(key: &str, filter: &str) -> String {
    format!(
        "SELECT ts, id, sym, rare, x FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY ts DESC, id DESC) AS n \
         FROM t WHERE {filter}) WHERE n = 1 ORDER BY ts, id"
    )
}

async fn check(database: &Database) {
    for filter in [
        "true",
        "x > 900",
        "id < 100000 AND x < 500",
        "sym = 's3'",
        "ts IN '2024-01-01T05'",
        "id = 17",
        "id < 0",
        // Conditions on the keys themselves.
        "sym IS NULL",
        "sym IS NOT NULL AND x < 300",
        "sym IN ('s1', 's2', 'nowhere') AND rare IN ('r1', 'r2', 'r40')",
        "rare <> 'r1' AND x > 3",
        "rare LIKE 'r4%'",
        "rare = 'r40'",
        "rare IN ('r39', 'r2') AND sym <> 's2'",
        "sym = 's3' OR sym IS NULL",
    ] {
        for key in ["sym", "rare"] {
            let fast = format!("SELECT ts, id, sym, rare, x FROM t WHERE {filter} LATEST ON ts PARTITION BY {key}");
            assert!(plan(database, &fast).await.contains("TidaliteLatest"), "{fast}");
            let sorted = format!("SELECT * FROM ({fast}) ORDER BY ts, id");
            // The first run may build the co-occurrence index, the second one uses it.
            for time in 0..2 {
                assert_eq!(rows(database, &sorted).await, rows(database, &latest(key, filter)).await, "{fast} {time}");
            }
            let times = rows(database, &format!("SELECT ts FROM ({fast})")).await;
            assert!(times.is_sorted(), "in order of time: {fast}");
        }
        // Computed text is a string, and a bucket of a shifted time is computed for every row.
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
    // Also if a single stream of few rows is distributed to threads.
    let few =
        plan(database, "SELECT ts, sym, rare, avg(x) FROM t WHERE id = 17 AND sym IS NOT NULL SAMPLE BY 1h").await;
    assert!(few.contains("codes=[sym, rare]") || few.contains("codes=[rare, sym]"), "{few}");
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

/// Checks the first and the last rows in time order, for which scans read only the required rows.
async fn check_limits(database: &Database) {
    for filter in
        ["true", "x > 900", "x >= 0", "sym = 's3'", "x + id > 1000", "id = 17", "id < 0", "ts >= '2024-01-01T05'"]
    {
        let query = format!("SELECT ts, id, sym, x FROM t WHERE {filter}");
        let all = rows(database, &format!("{query} ORDER BY ts, id")).await;
        let known: HashSet<&String> = all.iter().collect();
        // Any of the rows of equal times may be included, once.
        let check = |asked: &str, found: &[String], expected: &[String]| {
            let time = |row: &String| row.split(['|', ',']).next().unwrap_or_default().to_owned();
            assert!(found.iter().map(time).eq(expected.iter().map(time)), "{asked}");
            let distinct: HashSet<&String> = found.iter().collect();
            assert!(distinct.len() == found.len() && distinct.is_subset(&known), "{asked}");
        };
        for n in [1, 7, 1_000, 70_000] {
            let some = all.len().min(n);
            let latest: Vec<String> = all.iter().rev().take(some).cloned().collect();
            for (end, expected) in [
                (format!("LIMIT {n}"), &all[..some]),
                (format!("LIMIT -{n}"), &all[all.len() - some..]),
                (format!("ORDER BY ts DESC LIMIT {n}"), &latest),
                (format!("LIMIT {n}, {}", n + 5), &all[some..all.len().min(n + 5)]),
            ] {
                let asked = format!("{query} {end}");
                check(&asked, &rows(database, &asked).await, expected);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_give_the_first_and_the_last_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, TABLE).await;
    check_limits(&database).await;
    run(&database, &insert(0, 150_000, 1)).await;
    check_limits(&database).await;
    database.settle().expect("it settles");
    check_limits(&database).await;
    run(&database, "DELETE FROM t WHERE id % 13 = 5 OR id > 149990").await;
    run(&database, &insert(150_000, 60_000, 5_000)).await;
    check_limits(&database).await;
    database.settle().expect("it settles");
    run(&database, "DELETE FROM t WHERE id > 209000").await;
    check_limits(&database).await;
    let last = plan(&database, "SELECT * FROM t WHERE x > 900 LIMIT -10").await;
    assert!(last.contains("latest first") && last.contains(", limit=10"), "{last}");
}

const NUMBERS: &str = "CREATE TABLE n (ts TIMESTAMP, id LONG, b BYTE, s SHORT, i INT, l LONG, f REAL, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows whose floating-point sums are exact.
fn numbers(first: i64, count: i64) -> String {
    format!(
        "INSERT INTO n SELECT to_timestamp_micros(1704067200000000 + v * 700000), v, (h % 90)::byte, \
         CASE WHEN h % 17 > 0 THEN (h % 3000)::short END, (h - 500000)::int, h * 1000, \
         ((h % 64) / 8.0)::float, CASE WHEN h % 5 > 0 THEN h / 16.0 END \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

async fn check_totals(database: &Database) {
    for filter in ["true", "id % 3 = 1", "d > 30000", "i = -1", "ts IN '2024-01-01T05'", "ts >= '2024-01-02' AND b < 3"]
    {
        for column in ["b", "s", "i", "l", "f", "d"] {
            let ask = |column: &str| {
                format!(
                    "SELECT count(*), count({column}), sum({column}), avg({column}), sum({column} + 2) FROM n WHERE {filter}"
                )
            };
            // Values computed for each row have no totals.
            let (fast, general) = (ask(column), ask(&format!("(CASE WHEN id >= 0 THEN {column} END)")));
            let planned =
                plan(database, &format!("SELECT count(*), sum({column}), avg({column}) FROM n WHERE {filter}")).await;
            let has_totals = planned.contains(&format!("columns=[rows, count({column}), sum({column})"));
            assert!(has_totals || filter == "id % 3 = 1", "{planned}");
            assert_eq!(rows(database, &fast).await, rows(database, &general).await, "{fast}");
        }
        let several = "count(*), sum(i), avg(i), sum(d), avg(f)";
        let computed = "count(*), sum(i * k), avg(i * k), sum(d * k), avg(f * k)";
        let fast = rows(database, &format!("SELECT {several} FROM n WHERE {filter}")).await;
        let general =
            format!("SELECT {computed} FROM (SELECT *, CASE WHEN id >= 0 THEN 1 END AS k FROM n) WHERE {filter}");
        assert_eq!(fast, rows(database, &general).await, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_of_blocks_are_those_of_their_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, NUMBERS).await;
    check_totals(&database).await;
    run(&database, &numbers(0, 150_000)).await;
    check_totals(&database).await;
    database.settle().expect("it settles");
    check_totals(&database).await;
    run(&database, "DELETE FROM n WHERE id % 13 = 5").await;
    run(&database, &numbers(150_000, 20_000)).await;
    check_totals(&database).await;
    run(&database, "ALTER TABLE n SEAL").await;
    check_totals(&database).await;
    // A column that most blocks do not have.
    run(&database, "ALTER TABLE n ADD COLUMN late DOUBLE").await;
    assert_eq!(rows(&database, "SELECT count(*), count(late), sum(late) FROM n WHERE id < 10").await.len(), 1);
    assert_eq!(count(&database, "SELECT count(late) FROM n").await, 0);
}

/// Two databases with the same rows, the second one without fast operators.
struct Twins {
    fast: Database,
    plain: Database,
    random: fastrand::Rng,
    /// True for WINDOW JOIN, false for ASOF and LT JOIN.
    are_windows: bool,
}

/// Inserts rows of a join side: three per time, some seconds out of order, every seventeenth without a key; they arrive
/// in order of their numbers in every database.
fn side(table: &str, first: i64, count: i64, (step, late, keys): (i64, i64, i64)) -> String {
    format!(
        "INSERT INTO {table} SELECT to_timestamp_micros(1704067200000000 + v / 3 * {step} - h % {late} * 100000), v, \
         CASE WHEN h % 17 > 0 THEN 's' || (h % {keys}) END, CASE WHEN h % 19 > 0 THEN 'v' || (h % 3) END, \
         CASE WHEN h % 23 > 0 THEN (h % {keys})::int END, CASE WHEN h % 29 > 0 THEN 'n' || (h % {keys}) END, h / 16.0 \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value) ORDER BY v",
        first + count - 1
    )
}

impl Twins {
    async fn run(&self, sql: &str) {
        run(&self.fast, sql).await;
        run(&self.plain, sql).await;
    }

    fn settle(&self) {
        self.fast.settle().expect("it settles");
        self.plain.settle().expect("it settles");
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.usize(0..of.len())]
    }

    /// Returns a random time join.
    fn join(&mut self) -> String {
        let kind = self.one_of(&["ASOF", "LT"]);
        let left = self.one_of(&[
            "l",
            "l",
            "l",
            "(SELECT * FROM r WHERE id % 9 = 0)",
            "(SELECT * FROM l WHERE x > 40000)",
            "(SELECT ts, id, sym, ven, k, name, x FROM l WHERE x + id > 40000)",
            "(SELECT * FROM l WHERE ts IN '2024-01-01T03')",
            "(SELECT * FROM l WHERE id IN (30, 31, 14900))",
            "(SELECT * FROM l WHERE sym = 's3')",
            "(SELECT * FROM l WHERE id < 0)",
            "(SELECT * FROM l ORDER BY ts LIMIT 900)",
            "(SELECT ts, max(id) AS id, sym, ven, max(k) AS k, max(name) AS name, sum(x) AS x FROM l SAMPLE BY 10m)",
            "(SELECT l.*, a.id AS other FROM l ASOF JOIN r a ON l.sym = a.sym)",
            "(SELECT CASE WHEN id % 7 > 0 THEN ts END AS ts, id, sym, ven, k, name, x FROM l ORDER BY ts, id, k, sym, name)",
        ]);
        let right = self.one_of(&[
            "r",
            "r",
            "r",
            "l",
            "m",
            "(SELECT * FROM r WHERE x > 30000)",
            "(SELECT * FROM r WHERE x + id > 100000)",
            "(SELECT ts, id, lower(sym) AS sym, ven, k, upper(name) AS name, x FROM r)",
            "(SELECT * FROM r WHERE ts IN '2024-01-01T04')",
            "(SELECT * FROM r WHERE id < 0)",
            "(SELECT * FROM r LATEST ON ts PARTITION BY sym, ven)",
            "(SELECT ts, id, CASE WHEN id % 2 = 0 THEN sym END AS sym, ven, k, name, x FROM r)",
            "(SELECT CASE WHEN id % 7 > 0 THEN ts END AS ts, id, sym, ven, k, name, x FROM r ORDER BY ts, id, k, sym, name)",
        ]);
        let keys = self.one_of(&[
            "",
            "ON (sym)",
            "ON (sym)",
            "ON (sym)",
            "ON (sym, ven)",
            "ON (k)",
            "ON (name)",
            "ON (sym, k)",
            "ON a.sym = b.sym AND b.x > 20000",
            "ON a.sym = b.name",
        ]);
        let tolerance = self.one_of(&["", "", "", "TOLERANCE 1s", "TOLERANCE 250T", "TOLERANCE 2h", "TOLERANCE 0s"]);
        let filter = self.one_of(&["", "", "WHERE a.id % 3 = 0", "WHERE b.x > 20000 OR b.id IS NULL"]);
        format!("{left} a {kind} JOIN {right} b {keys} {tolerance} {filter}")
    }

    /// Returns a random WINDOW JOIN, and true if the fast operator supports it.
    fn window(&mut self) -> (String, bool) {
        let left = self.one_of(&[
            "l",
            "l",
            "(SELECT * FROM r WHERE id % 29 = 0)",
            "(SELECT * FROM l WHERE x > 40000)",
            "(SELECT ts, id, sym, ven, k, name, x FROM l WHERE sqrt(x) + id > 400)",
            "(SELECT * FROM l WHERE ts IN '2024-01-01T03')",
            "(SELECT * FROM l WHERE id IN (30, 31, 14900))",
            "(SELECT * FROM l WHERE id < 0)",
            "(SELECT ts, max(id) AS id, sym, ven, max(k) AS k, max(name) AS name, sum(x) AS x FROM l SAMPLE BY 10m)",
            "(SELECT CASE WHEN id % 7 > 0 THEN ts END AS ts, id, sym, ven, k, name, x FROM l ORDER BY ts, id, k, sym, name)",
        ]);
        let right = self.one_of(&[
            "r",
            "r",
            "r",
            "l",
            "m",
            "(SELECT * FROM r WHERE x > 30000)",
            "(SELECT * FROM r WHERE sqrt(x) + id > 1000)",
            "(SELECT ts, id, lower(sym) AS sym, ven, k, upper(name) AS name, x FROM r)",
            "(SELECT * FROM r WHERE ts IN '2024-01-01T04')",
            "(SELECT * FROM r WHERE id < 0)",
            "(SELECT * FROM r LATEST ON ts PARTITION BY sym, ven)",
            "(SELECT CASE WHEN id % 7 > 0 THEN ts END AS ts, id, sym, ven, k, name, x FROM r ORDER BY ts, id, k, sym, name)",
        ]);
        let keys = self.one_of(&["", "ON (sym)", "ON (sym)", "ON (sym, ven)", "ON (k)", "ON (name)", "ON (sym, k)"]);
        let range = self.one_of(&[
            "1 second PRECEDING AND 1 second FOLLOWING",
            "20 seconds PRECEDING AND CURRENT ROW",
            "CURRENT ROW AND 5 seconds FOLLOWING",
            "10 seconds PRECEDING AND 2 seconds PRECEDING",
            "3 seconds FOLLOWING AND 4 seconds FOLLOWING",
            "CURRENT ROW AND CURRENT ROW",
            "200 milliseconds PRECEDING AND 0 hours FOLLOWING",
            "1 second FOLLOWING AND 1 second PRECEDING",
            "a.id % 3 seconds PRECEDING AND CURRENT ROW",
        ]);
        let wide = "10 minutes PRECEDING AND 10 minutes FOLLOWING";
        let range = if keys.contains("sym, ") { self.one_of(&[range, wide]) } else { range };
        let prevailing = self.one_of(&["", "INCLUDE PREVAILING", "EXCLUDE PREVAILING"]);
        let filter = self.one_of(&["", "", "WHERE a.id % 3 = 0"]);
        let is_plain = right == "m"
            || left.contains("SAMPLE")
            || left.contains("CASE")
            || range.contains("a.id")
            || range.starts_with("1 second F");
        let join = format!("{left} a WINDOW JOIN {right} b {keys} RANGE BETWEEN {range} {prevailing} {filter}");
        (join, !is_plain)
    }

    async fn check_windows(&mut self, rounds: usize) {
        for _ in 0..rounds {
            let (join, is_fast) = self.window();
            let what = self.one_of(&[
                "a.ts, a.id, a.sym, count() AS n, sum(b.id) AS s, avg(b.x) AS a",
                "a.id, min(b.x), max(b.x), max(b.sym), min(b.name), count(b.k)",
                "a.ts, first(b.id), last(b.id), first(b.sym), last(b.x)",
                "count()",
                "a.sym, sum(b.x + a.x), count() FILTER (WHERE b.x > a.x), count(DISTINCT b.name), count(DISTINCT b.k)",
                "a.ts, a.ven, max(b.ts), min(b.ts), bool_or(b.k > 7)",
                "*, array_agg(b.id)",
            ]);
            // Several threads aggregate the pairs of the reference operator, without order of arrival.
            let has_order = what.contains("first") || what.contains("array_agg");
            let what = if has_order && !is_fast { "a.ts, a.id, sum(b.id)" } else { what };
            let sql = format!("SELECT {what} FROM {join}");
            let planned = plan(&self.fast, &sql).await;
            assert_eq!(planned.contains("TidaliteWindowJoin"), is_fast, "{sql}: {planned}");
            let (fast, plain) = (rows(&self.fast, &sql).await, rows(&self.plain, &sql).await);
            let place = fast.iter().zip(&plain).position(|(fast, plain)| fast != plain);
            let differ = place.map(|row| (row, &fast[row], &plain[row]));
            assert!(differ.is_none() && fast.len() == plain.len(), "{sql}: {differ:?}, {} {}", fast.len(), plain.len());
        }
    }

    async fn check(&mut self, rounds: usize) {
        if self.are_windows {
            return self.check_windows(rounds / 2).await;
        }
        for _ in 0..rounds {
            let join = self.join();
            let what = self.one_of(&[
                "SELECT a.ts, a.id, a.sym, b.ts, b.id, b.sym, b.ven, b.k, b.name, b.x FROM",
                "SELECT b.id, a.name FROM",
                "SELECT * FROM",
                "SELECT count(*), count(b.ts), sum(b.id), sum(a.id), max(b.sym) FROM",
                "SELECT a.sym, count(*), sum(b.id), count(DISTINCT b.name) FROM",
                "SELECT b.sym, count(*), sum(b.id), sum(b.x) FROM",
            ]);
            let group = what[7..].split(',').next().filter(|_| what.contains(".sym, count"));
            let sql = format!("{what} {join} {}", group.map_or(String::new(), |key| format!("GROUP BY {key}")));
            let planned = plan(&self.fast, &sql).await;
            assert!(planned.contains("TidaliteTimeJoin"), "{sql}: {planned}");
            let (mut fast, mut plain) = (rows(&self.fast, &sql).await, rows(&self.plain, &sql).await);
            // Conditions on several threads, and groups, lose the order.
            if sql.contains("WHERE") || sql.contains("GROUP") {
                fast.sort_unstable();
                plain.sort_unstable();
            }
            let place = fast.iter().zip(&plain).position(|(fast, plain)| fast != plain);
            let differ = place.map(|row| (row, &fast[row], &plain[row]));
            assert!(differ.is_none() && fast.len() == plain.len(), "{sql}: {differ:?}, {} {}", fast.len(), plain.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_by_time_are_those_of_the_plain_operator() {
    over_rows_of_all_kinds(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_of_joins_are_those_of_the_plain_operator() {
    over_rows_of_all_kinds(true).await;
}

async fn over_rows_of_all_kinds(are_windows: bool) {
    let folders = [tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder")];
    // Several threads would not select rows of equal times by arrival.
    let threads = if are_windows { 1 } else { 2 };
    let (fast, plain) = (open(folders[0].path()), open_on(folders[1].path(), false, threads));
    let mut twins = Twins { fast, plain, random: fastrand::Rng::with_seed(11), are_windows };
    for (table, time) in [("l", "TIMESTAMP"), ("r", "TIMESTAMP"), ("m", "TIMESTAMP_NS")] {
        let columns = "id LONG, sym SYMBOL, ven SYMBOL, k INT, name VARCHAR, x DOUBLE";
        twins.run(&format!("CREATE TABLE {table} (ts {time}, {columns}) TIMESTAMP(ts) PARTITION BY DAY")).await;
    }
    twins.check(20).await;
    twins.run(&side("r", 0, 330_000, (400_000, 1, 40))).await;
    twins.check(10).await;
    twins.run(&side("l", 0, 15_000, (8_000_000, 1, 45))).await;
    twins.run(&side("m", 0, 30_000, (4_000_000, 900, 50))).await;
    twins.check(30).await;
    twins.settle();
    twins.check(30).await;
    // Staged rows of times that also occur in segments, sorted and unsorted.
    twins.run(&side("r", 330_000, 9_000, (300_000, 40_000, 42))).await;
    twins.run(&side("r", 100_000, 7_000, (400_000, 1, 42))).await;
    twins.run(&side("l", 15_000, 3_000, (700_000, 30_000, 42))).await;
    twins.check(40).await;
    twins.run("DELETE FROM r WHERE id % 13 = 5 OR sym IN ('s7', 's9')").await;
    twins.run("DELETE FROM l WHERE id % 11 = 5").await;
    twins.check(30).await;
    twins.settle();
    twins.check(30).await;
}

const FIRSTS: &str = "CREATE TABLE f (ts TIMESTAMP, id LONG, i INT, d DOUBLE, b BOOLEAN, day DATE, sym SYMBOL, t VARCHAR, up LONG) \
     TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows some of whose numbers have only the defined order; `up` increases with the rows, but not strictly.
fn firsts(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO f SELECT to_timestamp_micros(1704067200000000 + v * 900000 - h % {late} * 1000000), v, \
         CASE WHEN h % 29 > 0 THEN (h % 700 - 350)::int END, \
         CASE WHEN h % 31 = 0 THEN NULL WHEN h % 997 = 1 THEN 'NaN'::double WHEN h % 997 = 2 THEN '-Infinity'::double \
              WHEN h % 997 = 3 THEN 'Infinity'::double WHEN h % 7 = 0 THEN -0.0 WHEN h % 7 = 1 THEN 0.0 ELSE (h - 500000) / 64.0 END, \
         h % 3 = 0, '2020-01-01'::date + (h % 900)::int, CASE WHEN h % 11 > 0 THEN 's' || (h % 300) END, \
         CASE WHEN h % 13 > 0 THEN 'text ' || (h * 31 % 5000) END, v / 10 \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

async fn check_firsts(database: &Database) {
    for filter in ["true", "d < 0 OR d IS NULL", "sym = 's7'"] {
        for keys in [
            vec!["i"],
            vec!["d"],
            vec!["b"],
            vec!["day"],
            vec!["sym"],
            vec!["t"],
            vec!["up"],
            vec!["ts"],
            vec!["d", "i"],
            vec!["b", "d"],
        ] {
            for order in ["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"] {
                let keys = keys.iter().map(|key| format!("{key} {order}")).collect::<Vec<_>>().join(", ");
                let columns = "t, d, ts, id, i, sym";
                for limit in [1, 1_000] {
                    let fast = format!("SELECT {columns} FROM f WHERE {filter} ORDER BY {keys}, id LIMIT {limit}");
                    // A numbering of all rows keeps them all.
                    let general = format!(
                        "SELECT {columns} FROM (SELECT *, row_number() OVER (ORDER BY {keys}, id) AS n FROM f WHERE {filter}) \
                         WHERE n <= {limit} ORDER BY n"
                    );
                    assert_eq!(rows(database, &fast).await, rows(database, &general).await, "{fast}");
                }
            }
        }
    }
    let planned = plan(database, "SELECT * FROM f ORDER BY d DESC LIMIT 10").await;
    assert!(planned.contains("TidaliteRows") && planned.contains("only what can be among the first by d"), "{planned}");
    let computed = plan(database, "SELECT * FROM f ORDER BY abs(i) LIMIT 10").await;
    assert!(computed.contains("TidaliteRows") && !computed.contains("only what can be among the first"), "{computed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_rows_of_an_order_are_those_of_all_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, FIRSTS).await;
    assert_eq!(rows(&database, "SELECT * FROM f ORDER BY d LIMIT 10").await.len(), 0);
    run(&database, &firsts(0, 150_000, 1)).await;
    check_firsts(&database).await;
    database.settle().expect("it settles");
    check_firsts(&database).await;
    run(&database, "DELETE FROM f WHERE id % 13 = 5 OR d = 'NaN'::double OR up < 30").await;
    run(&database, &firsts(150_000, 30_000, 5_000)).await;
    check_firsts(&database).await;
    run(&database, "ALTER TABLE f ADD COLUMN later DOUBLE").await;
    assert_eq!(rows(&database, "SELECT id, later FROM f ORDER BY later, id LIMIT 3").await.len(), 3);
}

/// A plan that runs again starts without state of the previous run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_rows_are_found_again_in_every_turn_of_a_recursive_query() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    run(&database, FIRSTS).await;
    run(&database, &firsts(0, 150_000, 1)).await;
    let turns = "WITH RECURSIVE r AS (SELECT 0::bigint AS n, 0::bigint AS id UNION ALL \
                 SELECT r.n + 1, x.id + 0 FROM r, (SELECT id FROM f ORDER BY up DESC, id LIMIT 3) AS x WHERE r.n < 3 AND x.id % 10 = 0) \
                 SELECT n, id FROM r ORDER BY n, id";
    let expected = ["0 0", "1 149990", "2 149990", "3 149990"];
    let found: Vec<String> = rows(&database, turns).await.iter().map(|row| row.replace(['|', ','], " ")).collect();
    assert_eq!(found, expected);
}
