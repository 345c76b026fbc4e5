//! Queries over late segments return the results of queries over rows that were never merged, before and after
//! compaction.

use crate::view_crash_tests::ask;
use crate::{Database, DatabaseConfig};

const ROWS: i64 = 300;

/// Inserts rows of two days in any order, several per minute, numbered in order of arrival.
fn insert(commit: i64) -> String {
    let mut random = fastrand::Rng::with_seed(commit as u64);
    let value = |n: i64| {
        let minute = random.i64(0..2 * 1440);
        format!("({}, 'k{}', {n})", (1_704_067_200 + 60 * minute) * 1_000_000, random.u32(0..7))
    };
    let values: Vec<String> = (commit * ROWS..(commit + 1) * ROWS).map(value).collect();
    format!("INSERT INTO t VALUES {}", values.join(", "))
}

const QUERIES: [&str; 14] = [
    "SELECT * FROM t",
    "SELECT * FROM t ORDER BY ts DESC, n DESC LIMIT 500",
    "SELECT * FROM t LIMIT -300",
    "SELECT * FROM t WHERE ts IN '2024-01-02T05' AND k = 'k3'",
    "SELECT count(), sum(n), min(ts), max(ts) FROM t WHERE ts >= '2024-01-01T20:10' AND ts < '2024-01-02T03:50'",
    "SELECT k, count(), sum(n), avg(n) FROM t GROUP BY k ORDER BY k",
    "SELECT ts, k, first(ts), last(ts), min(n), max(n), sum(n) FROM t SAMPLE BY 1h ORDER BY ts, k",
    "SELECT ts, count() FROM t SAMPLE BY 10m FILL(0)",
    "SELECT * FROM t LATEST ON ts PARTITION BY k ORDER BY k",
    "SELECT * FROM t WHERE ts < '2024-01-02T01' LATEST ON ts PARTITION BY k ORDER BY k",
    "SELECT a.ts, a.n, b.n FROM t a ASOF JOIN (t WHERE k = 'k1') b WHERE a.k = 'k2'",
    "SELECT ts, n, lag(n) OVER (PARTITION BY k ORDER BY ts, n) FROM t ORDER BY ts, n",
    "SELECT n FROM t WHERE n % 1000 = 7 ORDER BY n",
    "SELECT count(DISTINCT ts), count(DISTINCT k) FROM t",
];

fn open(folder: &tempfile::TempDir) -> Database {
    let config = DatabaseConfig { has_background_jobs: false, late_rows_min: 1, ..DatabaseConfig::new(folder.path()) };
    Database::open(config).unwrap()
}

#[test]
fn queries_over_late_segments_give_what_they_give_before_and_after() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (merged, staged) = (open(&folders[0]), open(&folders[1]));
    let late_rows = || merged.metrics().iter().find(|m| m.name == "tidalite_late_rows").map_or(0.0, |m| m.value);
    let same = |when: &str| {
        for query in QUERIES {
            let (found, expected) = (ask(&merged, query).unwrap(), ask(&staged, query).unwrap());
            assert!(found == expected && !found.is_empty(), "{when}: {query}\n{found:?}\n{expected:?}");
        }
    };
    for db in [&merged, &staged] {
        ask(db, "CREATE TABLE t (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY").unwrap();
    }
    let (_, tables) = merged.all_tables();
    for commit in 0..24 {
        for db in [&merged, &staged] {
            ask(db, &insert(commit)).unwrap();
            if commit % 8 == 7 {
                ask(db, "DELETE FROM t WHERE n % 11 = 3").unwrap();
                ask(db, "UPDATE t SET n = n + 100000 WHERE n % 13 = 5").unwrap();
            }
        }
        merged.jobs().merge_now(tables[0].id).unwrap();
        if commit == 11 {
            same("half way");
        }
    }
    assert!(late_rows() > 3_000.0, "{}", late_rows());
    same("beside others");
    merged.settle().unwrap();
    assert_eq!(late_rows(), 0.0);
    same("woven in");
}
