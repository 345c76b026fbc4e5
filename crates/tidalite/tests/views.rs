//! Materialized views over a base with all kinds of changes: after a refresh they equal the result of their query.

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use futures::executor::block_on;
use std::time::{Duration, Instant};
use tidalite::{Database, DatabaseConfig, QueryOptions, Response};

fn try_ask(database: &Database, sql: &str) -> Result<Vec<String>, tidalite::Error> {
    block_on(async {
        match database.execute(sql, QueryOptions::default()).await? {
            Response::Done { .. } => Ok(Vec::new()),
            Response::Rows(rows) => {
                let batches: Vec<RecordBatch> = rows.stream.try_collect().await?;
                Ok(batches.iter().flat_map(lines).collect())
            }
        }
    })
}

fn ask(database: &Database, sql: &str) -> Vec<String> {
    try_ask(database, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("a text")).collect();
    let row = |row: usize| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

fn config(folder: &tempfile::TempDir) -> DatabaseConfig {
    let mut config = DatabaseConfig::new(folder.path());
    config.durability = tidalite::config::Durability::Os;
    config
}

/// Each view with its base; integers only, so that the order of addition is irrelevant.
const VIEWS: [(&str, &str); 5] = [
    ("hourly", "SELECT ts, k, sum(n) AS total, count() AS c, max(n) AS most FROM b SAMPLE BY 1h"),
    ("unkeyed", "SELECT ts, count() AS c, min(n) AS least FROM b WHERE n % 2 = 0 SAMPLE BY 15m"),
    (
        "london",
        "SELECT ts, k, count() AS c, last(n) AS newest FROM b SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/London'",
    ),
    ("daily", "SELECT ts, k, sum(total) AS total, sum(c) AS c FROM hourly SAMPLE BY 1d"),
    ("monthly", "SELECT ts, sum(c) AS c, max(total) AS most FROM daily SAMPLE BY 1M"),
];

fn statement(rng: &mut fastrand::Rng, newest: &mut i64) -> String {
    // From shortly before London's clocks are set forward on 2024-03-31.
    const START: i64 = 1_711_700_000;
    let mut rows = |rng: &mut fastrand::Rng, is_late: bool| {
        let count = rng.usize(1..40);
        let values: Vec<String> = (0..count)
            .map(|_| {
                if !is_late {
                    *newest += rng.i64(0..900);
                }
                let at = if is_late { rng.i64(0..(*newest).max(1)) } else { *newest };
                format!("({}, 'k{}', {})", (START + at) * 1_000_000, rng.u8(0..4), rng.i64(0..100))
            })
            .collect();
        format!("INSERT INTO b VALUES {}", values.join(", "))
    };
    let window = |rng: &mut fastrand::Rng, newest: i64| {
        let from = START + rng.i64(0..newest.max(1));
        let at = |seconds: i64| format!("to_timestamp_micros({})", seconds * 1_000_000);
        format!("ts >= {} AND ts < {}", at(from), at(from + rng.i64(1..20_000)))
    };
    match rng.u32(..100) {
        0..45 => rows(rng, false),
        45..65 => rows(rng, true),
        65..75 => format!("DELETE FROM b WHERE n % 7 = {} AND {}", rng.u8(0..7), window(rng, *newest)),
        75..85 => format!("UPDATE b SET n = n + 1 WHERE {}", window(rng, *newest)),
        85..90 => format!("UPDATE b SET ts = dateadd('h', 5, ts) WHERE n = {}", rng.u8(0..100)),
        90..91 => "TRUNCATE TABLE b".to_owned(),
        91..92 => "DELETE FROM b".to_owned(),
        _ => "refresh".to_owned(),
    }
}

fn refresh_all(database: &Database) {
    VIEWS.iter().for_each(|(view, _)| drop(ask(database, &format!("REFRESH MATERIALIZED VIEW {view}"))));
}

fn check(database: &Database, what: &str) {
    refresh_all(database);
    for (view, query) in VIEWS {
        let found = sorted(ask(database, &format!("SELECT * FROM {view}")));
        let expected = sorted(ask(database, query));
        assert_eq!(found, expected, "{view}, {what}");
    }
}

fn random_story(seed: u64, keys: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = config(&folder);
    config.has_background_jobs = false;
    let mut database = Database::open(config.clone()).expect("an empty folder opens");
    let create = "CREATE TABLE b (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY";
    ask(&database, &format!("{create} {keys}"));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut newest = 0;
    for (at, (view, query)) in VIEWS.into_iter().enumerate() {
        (0..at).for_each(|_| drop(try_ask(&database, &statement(&mut rng, &mut newest))));
        ask(&database, &format!("CREATE MATERIALIZED VIEW {view} REFRESH MANUAL AS ({query})"));
    }
    for round in 0..60 {
        let sql = statement(&mut rng, &mut newest);
        match sql.as_str() {
            "refresh" => {
                // Only one of them, so that their progress differs.
                let (view, _) = VIEWS[rng.usize(..VIEWS.len())];
                ask(&database, &format!("REFRESH MATERIALIZED VIEW {view}"));
            }
            sql => drop(ask(&database, sql)),
        }
        match rng.u32(..20) {
            0 | 1 => database.settle().expect("it settles"),
            2 => {
                drop(database);
                database = Database::open(config.clone()).expect("it opens again");
            }
            3 | 4 => check(&database, &format!("seed {seed}, after step {round}: {sql}")),
            _ => {}
        }
    }
    check(&database, &format!("seed {seed}, at the end"));
}

#[test]
fn a_refreshed_view_is_what_its_query_gives() {
    (0..6).for_each(|seed| random_story(seed, ""));
}

#[test]
fn a_refreshed_view_over_upserts_is_what_its_query_gives() {
    (100..104).for_each(|seed| random_story(seed, "DEDUP UPSERT KEYS(ts, k)"));
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what} did not come about");
        std::thread::yield_now();
    }
}

#[test]
fn immediate_views_follow_by_themselves_also_over_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    ask(&database, "CREATE TABLE b (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY");
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T00:10', 'a', 1), ('2024-01-01T01:10', 'a', 2)");
    ask(&database, "CREATE MATERIALIZED VIEW h AS SELECT ts, sum(n) AS total FROM b SAMPLE BY 1h");
    ask(&database, "CREATE MATERIALIZED VIEW d AS (SELECT ts, sum(total) AS total FROM h SAMPLE BY 1d) TTL 10 YEARS");
    let totals = |database: &Database| ask(database, "SELECT ts, total FROM d");
    wait_until("the first total", || totals(&database) == ["2024-01-01T00:00:00 3"]);
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T00:20', 'b', 10)");
    wait_until("the late row", || totals(&database) == ["2024-01-01T00:00:00 13"]);
    ask(&database, "DELETE FROM b WHERE n = 2");
    drop(database);
    let database = Database::open(config(&folder)).expect("it opens again");
    wait_until("the deletion", || totals(&database) == ["2024-01-01T00:00:00 11"]);
    let state = "SELECT view_name, refresh_type, view_status, lag_commits FROM materialized_views() ORDER BY 1";
    wait_until("no lag", || ask(&database, state) == ["d immediate valid 0", "h immediate valid 0"]);
}

#[test]
fn a_view_that_its_base_no_longer_carries_says_why_and_writes_go_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(&folder)).expect("an empty folder opens");
    ask(&database, "CREATE TABLE b (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY");
    ask(&database, "CREATE MATERIALIZED VIEW h AS SELECT ts, sum(n) AS total FROM b SAMPLE BY 1h");
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T00:10', 5)");
    wait_until("the first row", || ask(&database, "SELECT total FROM h") == ["5"]);
    ask(&database, "ALTER TABLE b RENAME COLUMN n TO m");
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T00:20', 6)");
    let state = "SELECT view_status, invalidation_reason FROM materialized_views()";
    wait_until("the view is invalid", || ask(&database, state)[0].starts_with("invalid column \"n\""));
    assert_eq!(ask(&database, "SELECT total FROM h"), ["5"], "what it had stays");
    assert_eq!(ask(&database, "SELECT count() FROM b"), ["2"]);
    ask(&database, "ALTER TABLE b RENAME COLUMN m TO n");
    ask(&database, "ALTER MATERIALIZED VIEW h RESUME");
    assert_eq!(ask(&database, "SELECT total FROM h"), ["11"]);
    assert_eq!(ask(&database, state), ["valid NULL"]);
}

#[test]
fn what_the_base_lets_go_of_stays_in_the_view() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = config(&folder);
    config.has_background_jobs = false;
    let database = Database::open(config).expect("an empty folder opens");
    ask(&database, "CREATE TABLE b (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY");
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T05', 1), ('2024-01-02T05', 2), ('2024-01-03T05', 3)");
    ask(&database, "CREATE MATERIALIZED VIEW d REFRESH MANUAL AS SELECT ts, sum(n) AS total FROM b SAMPLE BY 1d");
    ask(&database, "ALTER TABLE b DROP PARTITION LIST '2024-01-01'");
    ask(&database, "INSERT INTO b VALUES ('2024-01-01T06', 100), ('2024-01-02T06', 10)");
    ask(&database, "REFRESH MATERIALIZED VIEW d");
    let totals = || ask(&database, "SELECT total FROM d");
    assert_eq!(totals(), ["1", "12", "3"], "what was dropped counts, what comes behind it does not");
    ask(&database, "REFRESH MATERIALIZED VIEW d RANGE FROM '2024-01-01' TO '2024-01-02'");
    assert_eq!(totals(), ["100", "12", "3"], "unless it is asked for");
    ask(&database, "REFRESH MATERIALIZED VIEW d FULL");
    assert_eq!(totals(), ["100", "12", "3"]);
}

#[test]
fn a_large_base_is_computed_in_steps() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = config(&folder);
    config.has_background_jobs = false;
    let database = Database::open(config).expect("an empty folder opens");
    ask(&database, "CREATE TABLE b (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY");
    let time = "to_timestamp_micros(1700000000000000 + value * 100000)";
    ask(
        &database,
        &format!("INSERT BATCH 1000000 INTO b SELECT {time}, value FROM generate_series(1, 6000000) AS value"),
    );
    ask(
        &database,
        "CREATE MATERIALIZED VIEW m REFRESH MANUAL AS SELECT ts, count() AS c, sum(n) AS s FROM b SAMPLE BY 1h",
    );
    let found = ask(&database, "SELECT count(), sum(c), sum(s) FROM m");
    assert_eq!(found, ["167 6000000 18000003000000"]);
    let difference = "SELECT count() FROM (SELECT ts, count() AS c FROM b SAMPLE BY 1h EXCEPT SELECT ts, c FROM m)";
    assert_eq!(ask(&database, difference), ["0"]);
}
