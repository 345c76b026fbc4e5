//! Compares filters that the scan evaluates on encoded blocks with the same filters hidden from the scan: random
//! predicates over every type, with rows in staging, merged, deleted, late, and all of these at once. The scan does not
//! support a predicate inside of `coalesce`, so DataFusion's own filter evaluates it on decoded rows.

mod asked;

use asked::{count, open, plan, rows, run};
use tidalite::Database;

const TABLE: &str = "CREATE TABLE t (ts TIMESTAMP, id LONG, b BOOLEAN, y BYTE, s SHORT, i INT, l LONG, far LONG, \
    step LONG, same LONG, f REAL, d DOUBLE, full DOUBLE, m DECIMAL(9,2), w DECIMAL(30,2), n TIMESTAMP_NS, day DATE, \
    sym SYMBOL, txt VARCHAR, few VARCHAR, ip IPV4) TIMESTAMP(ts) PARTITION BY DAY";

/// Inserts rows numbered from `first`, `late` seconds out of order. The shape of each column leads to a different
/// encoding.
fn insert(first: i64, count: i64, late: i64) -> String {
    let special = "WHEN 0 THEN NULL WHEN 1 THEN 'NaN'::double WHEN 2 THEN 'Infinity'::double \
        WHEN 3 THEN '-Infinity'::double WHEN 4 THEN '-0.0'::double WHEN 5 THEN 0.0";
    format!(
        "INSERT INTO t (ts, id, b, y, s, i, l, far, step, same, f, d, full, m, w, n, day, sym, txt, few, ip) \
        SELECT to_timestamp_micros(1704067200000000 + v * 900000 - h % {} * 1000000), v, \
        CASE WHEN h % 11 = 0 THEN NULL ELSE h % 3 = 0 END, \
        CASE WHEN h % 13 = 0 THEN NULL ELSE h % 200 - 100 END, \
        h % 20000 - 10000, \
        CASE WHEN v / 3000 % 4 = 1 THEN NULL ELSE h % 1000003 - 500000 END, \
        CASE WHEN h % 50 = 0 THEN NULL WHEN h % 997 = 1 THEN 9223372036854775807 \
            WHEN h % 997 = 2 THEN -9223372036854775808 ELSE h % 100 END, \
        h % 90 * 1125899906842624, v / 700, 42, \
        CASE h % 41 {special} ELSE (h % 1000) / 8.0 END, \
        CASE h % 43 {special} ELSE (h % 10000) / 100.0 END, \
        CASE WHEN h % 100 = 7 THEN NULL ELSE sin(v) * 1000.0 END, \
        (h % 10000) / 100.0, (h % 100000) / 100.0, \
        to_timestamp_nanos(1704067200000000000 + h % 1000000 * 1000000), \
        CASE WHEN h % 9 = 0 THEN NULL ELSE h % 1000 * 86400000 END, \
        CASE WHEN h % 17 = 0 THEN NULL ELSE 's' || (h % 40) END, \
        CASE WHEN h % 19 = 0 THEN NULL ELSE 'row number ' || (h % 5000) || ' of many' END, \
        CASE WHEN h % 23 = 0 THEN NULL ELSE 'name of ' || (h % 20) END, \
        '10.0.' || (h % 4) || '.' || (h % 250) \
        FROM (SELECT value AS v, value * 7919 % 1000003 AS h FROM generate_series({first}, {}) AS value)",
        late.max(1),
        first + count - 1
    )
}

/// Literals for each column, some of which occur in no row.
const COLUMNS: [(&str, &[&str]); 20] = [
    (
        "ts",
        &[
            "'2024-01-01T00:00:00'",
            "'2024-01-01T09:17:33.3'",
            "'2024-01-02'",
            "'2024-01-02T05:00:00.000001'",
            "'1999-01-01'",
        ],
    ),
    ("id", &["0", "4711", "100000", "100001", "-1", "70000.5", "99999999999"]),
    ("y", &["-100", "0", "17", "99", "200", "1.5"]),
    ("s", &["-10000", "0", "9999", "123", "70000"]),
    ("i", &["-500000", "0", "250000", "3000000000", "0.5"]),
    ("l", &["0", "50", "99", "100", "9223372036854775807", "-9223372036854775808", "9223372036854775000.0"]),
    ("far", &["0", "1125899906842624", "56294995342131200", "7"]),
    ("step", &["0", "100", "57", "1000"]),
    ("same", &["42", "41", "43"]),
    ("f", &["1.5", "-1.5", "124.875", "'NaN'::double", "'Infinity'::double", "0.1", "1.5::float"]),
    ("d", &["1.5", "99.99", "50.0", "'NaN'::double", "'Infinity'::double", "'-Infinity'::double", "7"]),
    ("full", &["0.5", "-999.0", "841.4709848078965", "1e300"]),
    ("m", &["1.5", "99.99", "0.01"]),
    ("w", &["1.5", "999.99", "0.01"]),
    ("n", &["'2024-01-01T00:10:00.000000001'", "'2024-01-01'", "'2024-01-01T00:05:00.123'"]),
    ("day", &["'1970-01-10'", "'1971-05-05'", "'2024-01-01'"]),
    ("ip", &["'10.0.1.1'", "'10.0.3.200'", "'1.1.1.1'"]),
    ("sym", &["'s1'", "'s17'", "'nosuch'", "''"]),
    ("txt", &["'row number 17 of many'", "'row number 4999 of many'", "'row number 17'", "''"]),
    ("few", &["'name of 3'", "'name of 19'", "'name'", "''"]),
];

fn predicate(rng: &mut fastrand::Rng) -> String {
    let (column, literals) = COLUMNS[rng.usize(..COLUMNS.len())];
    let pick = |rng: &mut fastrand::Rng| literals[rng.usize(..literals.len())];
    let is_text = matches!(column, "sym" | "txt" | "few");
    let comparisons: &[&str] = if is_text { &["=", "<>"] } else { &["=", "<>", "<", "<=", ">", ">="] };
    let compared =
        |rng: &mut fastrand::Rng| format!("{column} {} {}", comparisons[rng.usize(..comparisons.len())], pick(rng));
    match rng.u32(..14) {
        0 => format!("{column} IS NULL"),
        1 => format!("{column} IS NOT NULL"),
        2 if !is_text => format!("{column} BETWEEN {} AND {}", pick(rng), pick(rng)),
        3 if !is_text => format!("{column} NOT BETWEEN {} AND {}", pick(rng), pick(rng)),
        4 | 5 => {
            let list: Vec<_> = (0..rng.usize(1..7)).map(|_| pick(rng)).collect();
            format!("{column} {} ({})", if rng.bool() { "IN" } else { "NOT IN" }, list.join(", "))
        }
        6 => format!("({} OR {})", compared(rng), compared(rng)),
        7 => format!("({} OR {column} IS NULL)", compared(rng)),
        8 => format!("NOT ({} AND {})", compared(rng), compared(rng)),
        9 => format!("({}) IS NOT TRUE", compared(rng)),
        10 => ["b", "NOT b", "b IS NOT TRUE", "b IS UNKNOWN", "b = false", "b IS NOT FALSE"][rng.usize(..6)].to_owned(),
        11 => format!("({column} IS DISTINCT FROM {})", pick(rng)),
        _ => compared(rng),
    }
}

async fn check(database: &Database, rng: &mut fastrand::Rng, rounds: usize) -> usize {
    let mut found = 0;
    for _ in 0..rounds {
        let parts: Vec<String> = (0..rng.usize(1..4)).map(|_| predicate(rng)).collect();
        let (shown, hidden) = (parts.join(" AND "), format!("coalesce({}, false)", parts.join(" AND ")));
        let expected = count(database, &format!("SELECT count(*) FROM t WHERE {hidden}")).await;
        assert_eq!(count(database, &format!("SELECT count(*) FROM t WHERE {shown}")).await, expected, "{shown}");
        found += usize::from(expected > 0);
        let forms: &[&str] = match expected {
            0..3_000 => &[
                "SELECT * FROM t WHERE P",
                "SELECT txt, d, sym, b FROM t WHERE P LIMIT -7",
                "SELECT * FROM t WHERE P ORDER BY ts DESC LIMIT 20",
            ],
            3_000..60_000 => &["SELECT id, txt, few, full, b, i FROM t WHERE P", "SELECT * FROM t WHERE P LIMIT 30"],
            _ => &["SELECT * FROM t WHERE P ORDER BY ts DESC LIMIT 500", "SELECT id, w, n FROM t WHERE P LIMIT -300"],
        };
        for form in forms {
            let (a, b) = (form.replace('P', &shown), form.replace('P', &hidden));
            let (a, b) = (rows(database, &a).await, rows(database, &b).await);
            let first = a.iter().zip(&b).find(|(a, b)| a != b);
            assert!(a == b, "{form} {shown}: {} rows, not {}; {first:?}", a.len(), b.len());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_of_the_scan_are_those_of_the_engine() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = open(folder.path());
    let mut rng = fastrand::Rng::with_seed(7);
    run(&database, TABLE).await;
    run(&database, &insert(0, 90_000, 1)).await;
    run(&database, &insert(90_000, 30_000, 5_000)).await;
    let mut found = check(&database, &mut rng, 40).await;
    run(&database, "DELETE FROM t WHERE id % 13 = 5 OR id BETWEEN 5000 AND 8000").await;
    found += check(&database, &mut rng, 20).await;
    database.settle().expect("it settles");
    found += check(&database, &mut rng, 60).await;
    run(&database, "DELETE FROM t WHERE id % 17 = 3 OR id BETWEEN 70000 AND 74000").await;
    run(&database, "UPDATE t SET d = 1.5, txt = 'row number 17 of many' WHERE id % 1000 = 1").await;
    run(&database, "ALTER TABLE t ADD COLUMN extra LONG").await;
    run(&database, &insert(120_000, 20_000, 90_000)).await;
    found += check(&database, &mut rng, 60).await;
    assert_eq!(count(&database, "SELECT count(*) FROM t WHERE extra IS NOT NULL").await, 0);
    let all = count(&database, "SELECT count(*) FROM t").await;
    assert_eq!(count(&database, "SELECT count(*) FROM t WHERE extra IS NULL AND same = 42").await, all);
    assert!(found > 100, "only {found} predicates with rows");
    let plan = plan(&database, "SELECT * FROM t WHERE d > 1.5 AND sym IN ('s1', 's2', 's3', 's4') AND i IS NULL").await;
    assert!(!plan.contains("filter: ") && plan.contains("filter on encoded"), "{plan}");
}
