//! Compares conditions on several columns computed by the scan with general operators: random expressions over a table
//! with NULLs, NaN, infinities, −0 and the extremes of integers, in blocks, late segments and staging.

mod asked;

use asked::{answer, open_with, plan, rows, run};
use fastrand::Rng;
use tidalite::Database;

const TABLE: &str = "CREATE TABLE e (ts TIMESTAMP, id LONG, b BYTE, s SHORT, i INT, l LONG, m LONG, f REAL, d DOUBLE, \
     x DOUBLE, y DOUBLE, at TIMESTAMP, day DATE, flag BOOLEAN, sym SYMBOL, v VARCHAR, ip IPV4, ip2 IPV4) \
     TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows numbered from `first`, `late` seconds out of order.
///
/// `x` and `y` contain special floating-point values, `l` and `m` the extremes of integers; `d` contains decimals,
/// which are packed, and `f` the same in a narrower type.
fn insert(first: i64, count: i64, late: i64) -> String {
    format!(
        "INSERT INTO e SELECT to_timestamp_micros(1704067200000000 + v * 700000 - h % {late} * 1000000), v, \
         CASE WHEN h % 11 > 0 THEN (h % 256 - 128)::byte END, CASE WHEN h % 17 > 0 THEN (h % 65536 - 32768)::short END, \
         CASE h % 23 WHEN 0 THEN NULL WHEN 1 THEN (-2147483647 - 1)::int WHEN 2 THEN 2147483647::int ELSE (h % 1000 - 500)::int END, \
         CASE h % 19 WHEN 0 THEN NULL WHEN 1 THEN (-9223372036854775807 - 1) WHEN 2 THEN 9223372036854775807 WHEN 3 THEN 0 \
         ELSE h % 2000 - 1000 END, CASE h % 7 WHEN 0 THEN NULL WHEN 1 THEN 0 ELSE h % 30 - 10 END, \
         CASE WHEN h % 13 > 0 THEN (h % 400 / 4.0)::float END, CASE WHEN h % 29 > 0 THEN h % 9000 / 100.0 END, \
         CASE h % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN'::double WHEN 2 THEN 'Infinity'::double WHEN 3 THEN '-Infinity'::double \
         WHEN 4 THEN '-0'::double WHEN 5 THEN 0.0 WHEN 6 THEN 1e308 ELSE h % 50 / 4.0 - 5 END, \
         CASE h % 8 WHEN 0 THEN NULL WHEN 1 THEN 'NaN'::double WHEN 2 THEN '-Infinity'::double WHEN 3 THEN '-0'::double \
         WHEN 4 THEN 0.0 WHEN 5 THEN 5e-324 ELSE h % 40 / 4.0 - 4 END, \
         CASE WHEN h % 6 > 0 THEN to_timestamp_micros(1704067200000000 + v * 700000 + h % 2000000 - 1000000) END, \
         CASE WHEN h % 5 > 0 THEN ('2024-01-01'::date + (h % 20)::int) END, \
         CASE h % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END, 's' || (h % 40), \
         CASE WHEN h % 10 > 0 THEN 'text ' || (h % 100) END, \
         CASE WHEN h % 4 > 0 THEN '10.0.0.' || (h % 200) END, '10.0.0.' || (h % 150) \
         FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        first + count - 1
    )
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

/// Returns an integer, mostly of 64 bits.
fn int(rng: &mut Rng, depth: u32) -> String {
    match if depth == 0 { rng.u32(..3) } else { rng.u32(..9) } {
        0 => pick(rng, &["0", "1", "-3", "17", "9223372036854775807", "1000"]).to_owned(),
        1 | 2 => pick(rng, &["l", "m", "i", "s", "b", "id"]).to_owned(),
        3 => format!("-({})", int(rng, depth - 1)),
        4 => format!("({})::long", pick(rng, &["i", "s", "b", "i * i", "s + s", "b * b", "-s"])),
        5 => format!("({} {} {})", int(rng, depth - 1), pick(rng, &["/", "%"]), pick(rng, &["7", "-2", "1000"])),
        op => {
            let sign = ["+", "-", "*"][op as usize % 3];
            format!("({} {sign} {})", int(rng, depth - 1), int(rng, depth - 1))
        }
    }
}

fn float(rng: &mut Rng, depth: u32) -> String {
    match if depth == 0 { rng.u32(..4) } else { rng.u32(..12) } {
        0 => pick(rng, &["0.0", "1.5", "-2.25", "40.0", "1e300", "-0.5"]).to_owned(),
        1..4 => pick(rng, &["d", "x", "y", "f", "d"]).to_owned(),
        4 => format!("-({})", float(rng, depth - 1)),
        5 => format!("abs({})", float(rng, depth - 1)),
        6 => format!("({})::double", int(rng, depth - 1)),
        7 => format!("({})::float", float(rng, depth - 1)),
        8 => format!("{}({})", pick(rng, &["floor", "ceil"]), float(rng, depth - 1)),
        op => {
            let sign = ["+", "-", "*", "/", "%"][op as usize % 5];
            format!("({} {sign} {})", float(rng, depth - 1), float(rng, depth - 1))
        }
    }
}

fn comparison(rng: &mut Rng) -> String {
    let op = pick(rng, &["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
    match rng.u32(..14) {
        0..4 => format!("{} {op} {}", float(rng, 2), float(rng, 2)),
        4..6 => format!("{} {op} {}", int(rng, 2), int(rng, 2)),
        6 => format!("{} {op} {}", int(rng, 1), float(rng, 1)),
        7 => {
            let between = pick(rng, &["BETWEEN", "NOT BETWEEN"]);
            format!("{} {between} {} AND {}", float(rng, 1), float(rng, 0), float(rng, 1))
        }
        8 => format!("({}) IS {}NULL", float(rng, 2), pick(rng, &["", "NOT "])),
        9 => pick(
            rng,
            &[
                "at > ts",
                "at = ts",
                "at - ts > interval '500 milliseconds'",
                "ts - at <= interval '0 seconds'",
                "ts - at < interval '1 day'",
                "at > ts + interval '300 milliseconds'",
                "at - interval '1 day' <= ts - interval '86400 seconds'",
                "ts + 500000 > at",
                "day < '2024-01-09'",
            ],
        )
        .to_owned(),
        10 => pick(rng, &["ip = ip2", "ip < ip2", "ip >= ip2", "flag", "NOT flag", "flag = (d > 40)", "flag IS NULL"])
            .to_owned(),
        11 => pick(rng, &["sym = 's3'", "sym IN ('s1', 's20', 's33')", "v LIKE '%7%'", "v = 'text 12'", "v IS NULL"])
            .to_owned(),
        12 => {
            pick(rng, &["d > 80", "d < 5", "l > 900", "id % 3 = 1", "x = 0", "y <= -0.0", "b IN (1, 2, 3)"]).to_owned()
        }
        _ => format!("{} IN ({}, {}, 3)", int(rng, 1), int(rng, 0), int(rng, 0)),
    }
}

fn condition(rng: &mut Rng, depth: u32) -> String {
    match if depth == 0 { 0 } else { rng.u32(..7) } {
        1 | 2 => format!("({} AND {})", condition(rng, depth - 1), condition(rng, depth - 1)),
        3 | 4 => format!("({} OR {})", condition(rng, depth - 1), condition(rng, depth - 1)),
        5 => format!("NOT ({})", condition(rng, depth - 1)),
        6 => {
            let is = pick(rng, &["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"]);
            format!("({}) IS {is}", condition(rng, depth - 1))
        }
        _ => comparison(rng),
    }
}

/// Returns an error without the values of its row.
fn kind_of(error: &str) -> &str {
    ["division by zero", "out of range"].into_iter().find(|kind| error.contains(kind)).unwrap_or(error)
}

/// Two databases for the same statements. `general` has fast operators disabled.
struct Both {
    fast: Database,
    general: Database,
}

impl Both {
    async fn run(&self, sql: &str) {
        run(&self.fast, sql).await;
        run(&self.general, sql).await;
    }

    fn settle(&self) {
        self.fast.settle().expect("it settles");
        self.general.settle().expect("it settles");
    }

    /// Returns the number of conditions that the scan computed.
    async fn check(&self, rng: &mut Rng, rounds: usize) -> usize {
        let mut computed = 0;
        for _ in 0..rounds {
            let filter = condition(rng, 3);
            let sql = pick(
                rng,
                &[
                    "SELECT count(*), sum(id), count(x), max(i) FROM e WHERE",
                    "SELECT id FROM e WHERE",
                    "SELECT sym, count(*), sum(m) FROM e GROUP BY sym ORDER BY sym HAVING",
                    "SELECT id, ts FROM e LIMIT -7 WHERE",
                ],
            );
            let sql = match sql.split_once(" ORDER BY sym HAVING") {
                Some((head, _)) => {
                    format!("{} ORDER BY sym", head.replace("FROM e", &format!("FROM e WHERE {filter}")))
                }
                None if sql.contains("LIMIT") => format!("SELECT id, ts FROM e WHERE {filter} LIMIT -7"),
                None => format!("{sql} {filter}"),
            };
            let (fast, general) = (answer(&self.fast, &sql).await, answer(&self.general, &sql).await);
            let planned = plan(&self.fast, &sql).await;
            match (fast, general) {
                (Ok(mut fast), Ok(mut general)) => {
                    let general_plan = plan(&self.general, &sql).await;
                    assert!(!general_plan.contains("computed filter"), "{general_plan}");
                    if !sql.contains("LIMIT") {
                        fast.sort();
                        general.sort();
                    }
                    assert!(
                        fast == general,
                        "{sql}\n{planned}\n{} rows and {}: {:?} {:?}",
                        fast.len(),
                        general.len(),
                        &fast[..fast.len().min(8)],
                        &general[..general.len().min(8)]
                    );
                }
                // Any of the rows that cause an error may be reported.
                (Err(fast), Err(general)) => {
                    assert_eq!(kind_of(&fast), kind_of(&general), "{sql}");
                }
                // A row that another condition excludes causes no error; general operators and their planner (at
                // bounds) may evaluate it.
                (Ok(_), Err(error)) => {
                    assert!(error.contains("division by zero") || error.contains("out of range"), "{sql}: {error}")
                }
                (Err(error), Ok(_)) => panic!("{sql}: {error}\n{planned}"),
            }
            computed += usize::from(planned.contains("computed filter"));
        }
        computed
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn computed_conditions_are_those_of_general_operators() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let both = Both { fast: open_with(folders[0].path(), true), general: open_with(folders[1].path(), false) };
    let seed = std::env::var("EXPRESSIONS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut rng = Rng::with_seed(seed.unwrap_or(20_261_124));
    both.run(TABLE).await;
    both.check(&mut rng, 10).await;
    both.run(&insert(0, 140_000, 1)).await;
    assert!(both.check(&mut rng, 60).await > 20, "staged");
    both.settle();
    assert!(both.check(&mut rng, 100).await > 30, "in blocks");
    both.run("DELETE FROM e WHERE id % 13 = 5 OR d > x AND id < 3000").await;
    both.run(&insert(140_000, 20_000, 5_000)).await;
    assert!(both.check(&mut rng, 80).await > 25, "deleted rows, late rows beside blocks");
    both.run("ALTER TABLE e SEAL").await;
    both.run("ALTER TABLE e ADD COLUMN late DOUBLE").await;
    assert!(both.check(&mut rng, 100).await > 30, "sealed");
    for filter in ["late + d > 1", "late IS NULL OR d > late", "NOT (late < d) IS TRUE", "late = d OR x > 3"] {
        let sql = format!("SELECT count(*), sum(id) FROM e WHERE {filter}");
        assert_eq!(rows(&both.fast, &sql).await, rows(&both.general, &sql).await, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_those_of_rows_that_are_left() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let both = Both { fast: open_with(folders[0].path(), true), general: open_with(folders[1].path(), false) };
    both.run(TABLE).await;
    both.run(&insert(0, 70_000, 1)).await;
    both.settle();
    for filter in ["id / m > 3", "id % m = 1", "l / -m > 2", "abs(l) > 5", "abs(b) = 3"] {
        let sql = format!("SELECT count(*) FROM e WHERE {filter}");
        assert!(plan(&both.fast, &sql).await.contains("computed filter"), "{sql}");
        let (fast, general) = (answer(&both.fast, &sql).await, answer(&both.general, &sql).await);
        assert!(fast.is_err(), "{sql}: {fast:?}");
        let words = |error: &Result<Vec<String>, String>| {
            error.clone().err().map(|e| e.split(':').next().unwrap_or("").to_owned())
        };
        assert_eq!(words(&fast), words(&general), "{sql}");
    }
    for filter in ["m <> 0 AND id / m > 3", "m > 0 AND id % m = 1", "(m = 0 OR id / m > 3)", "b > -128 AND abs(b) = 3"]
    {
        let sql = format!("SELECT count(*) FROM e WHERE {filter}");
        assert!(plan(&both.fast, &sql).await.contains("computed filter"), "{sql}");
        let fast = answer(&both.fast, &sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let careful = sql
            .replace("id / m", "id / nullif(m, 0)")
            .replace("id % m", "id % nullif(m, 0)")
            .replace("abs(b)", "abs(b::int)");
        assert_eq!(Ok(fast), answer(&both.general, &careful).await, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compiled_conditions_are_those_of_the_interpreter() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let open = |at: usize, compiles: bool| {
        let mut config = tidalite::DatabaseConfig::new(folders[at].path());
        config.durability = tidalite::config::Durability::Os;
        config.has_background_jobs = false;
        config.query_threads = 2;
        config.query_compiles = compiles;
        Database::open(config).expect("an empty folder opens")
    };
    let (compiling, interpreting) = (open(0, true), open(1, false));
    // More rows than are interpreted before the compilation, in blocks and in staging.
    for database in [&compiling, &interpreting] {
        run(database, TABLE).await;
        run(database, &insert(0, 1_150_000, 1)).await;
        database.settle().expect("it settles");
        run(database, "DELETE FROM e WHERE id % 1013 = 5").await;
        run(database, &insert(1_150_000, 150_001, 1)).await;
    }
    for filter in [
        "x * y + d - x > y * 0.5",
        "d * 0.5 + f * 2 - x * y < 10 AND y + d * 2 > x - 3 AND x * d <> y * d",
        "(i::long * s - b) * 3 + s > b::long * 7",
        "l::double / m + d > x - i",
        "i::long * i - s::int * b >= i::long - 5 OR (x + d) * y = (d + x) * y",
        "floor(d) + ceil(x) > y * 2 - 1 AND NOT (abs(x - y) + d < 5)",
        "(x - y) * d IS NULL OR x - y + d * 2 < x * 2",
    ] {
        let sql = format!("SELECT count(*), sum(id), max(d), min(i) FROM e WHERE {filter}");
        assert_eq!(rows(&compiling, &sql).await, rows(&interpreting, &sql).await, "{sql}");
        let analyzed = format!("EXPLAIN ANALYZE {sql}");
        let compiled = rows(&compiling, &analyzed).await.join("\n");
        assert!(!cfg!(target_arch = "x86_64") || compiled.contains("compiled filter"), "{compiled}");
        let interpreted = rows(&interpreting, &analyzed).await.join("\n");
        assert!(interpreted.contains("computed filter"), "{interpreted}");
    }
    // Conditions on a few rows are never compiled.
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM e WHERE x * y + d - x > y AND id < 70000";
    let few = rows(&compiling, sql).await.join("\n");
    assert!(few.contains("computed filter"), "{few}");
}
