//! Statements are understood or refused, whatever is done to them.

use super::{folded, parse, statement, validate};
use crate::statement::{Partitions, Statement};
use tidalite_types::{ColumnType, Command, PartitionBy};

const STATEMENTS: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS \"T é\" (ts TIMESTAMP, s SYMBOL CAPACITY 10 CACHE, d DECIMAL(10, 2), a DOUBLE[][]) TIMESTAMP(ts) PARTITION BY DAY WAL;",
    "CREATE TABLE t AS (SELECT a, b FROM u), CAST(a AS LONG), INDEX(b CAPACITY 5) TIMESTAMP(a) PARTITION BY HOUR",
    "CREATE TABLE t AS SELECT a FROM u WHERE a IN (1, 2) TIMESTAMP(a) PARTITION BY WEEK WITH maxUncommittedRows = 10, o3MaxLag = 1s",
    "ALTER TABLE t DROP PARTITION LIST '2024-01-01', '2024-01-02'",
    "ALTER TABLE t DROP PARTITION WHERE ts < '2024-01-01' AND x > 1",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, b SYMBOL NOCACHE",
    "INSERT INTO t (a, \"b c\") VALUES (1, 'x'), (-2.5, NULL)",
    "INSERT INTO t SELECT * FROM u LIMIT 1, 10",
    "EXPLAIN ANALYZE FROM t WHERE a::int = 1 -- why",
    "WITH x AS (FROM t) SELECT avg(a), avg(b), a + b AS \"Sum\" FROM x GROUP BY /* all */ ALL ORDER BY 1 LIMIT -5",
    "SELECT 'é''' || e'\\n', $1, interval '1 day', [1, 2][1] FROM t a LEFT JOIN u b USING (k) WHERE EXISTS (TABLE v)",
    "SELECT ts, s, avg(p), count() FROM t a WHERE ts IN '2016-06-13;1M;1y;3' SAMPLE BY 5m FROM '2016' TO '2017' FILL(NULL, PREV(x), -1.5) ALIGN TO CALENDAR TIME ZONE 'Europe/London' WITH OFFSET '00:45' ORDER BY 1",
    "SELECT * FROM t WHERE ts IN today() LATEST ON ts PARTITION BY a, b LIMIT -5",
    "FROM t ASOF JOIN (SELECT * FROM u WHERE x IN ('a')) v ON (k, l) TOLERANCE 5m LT JOIN w ON t.a = w.a SPLICE JOIN z WHERE a > 1",
    "DECLARE @a := 1 + 2, @b := @a SELECT @b, (DECLARE @c := 'x' SELECT @c), position('a' IN 'b'), vwap(a, b), count_distinct(c) FROM (t) TIMESTAMP(ts)",
    "SHOW CREATE TABLE `t`; ",
    "RENAME TABLE 'a' TO b",
    "CANCEL QUERY '12'",
    "COPY t (a, \"b c\") FROM 'x.csv' WITH HEADER true TIMESTAMP 'ts' PARTITION BY DAY DELIMITER E'\\t' ON ERROR SKIP_ROW",
    "COPY (SELECT a FROM t SAMPLE BY 1h) TO STDOUT (FORMAT csv, HEADER, NULL 'é')",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS v WITH BASE t REFRESH EVERY 10m START '2024' DEFERRED AS (SELECT ts, avg(x) FROM t SAMPLE BY 1h) PARTITION BY DAY TTL 3d",
    "SELECT sum(v) OVER (w ROWS 1 PRECEDING), percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC) FILTER (WHERE a) FROM t WHERE k = ANY(ARRAY['a', 'b']) WINDOW w AS (x PARTITION BY k), x AS (ORDER BY v) QUALIFY row_number() OVER w = 1",
    "SELECT a FROM t EXCEPT ALL SELECT b FROM u INTERSECT ALL (SELECT c FROM v) UNION SELECT d FROM w WHERE a NOT IN (SELECT 1) OR b OR c",
    "WITH t AS (SELECT x % 2 AS odd, x FROM long_sequence(4)) PIVOT t ON odd USING sum(x)",
];

#[test]
fn mutilated_statements_do_not_panic() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below.max(1)
    };
    for statement in STATEMENTS {
        parse(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        for _ in 0..400 {
            let mut chars: Vec<char> = statement.chars().collect();
            for _ in 0..next(4) + 1 {
                let (from, other) = (next(chars.len()), next(chars.len()));
                match next(5) {
                    0 => chars.truncate(from),
                    1 => drop(chars.drain(from.min(other)..from.max(other))),
                    2 => chars.insert(from, ['\'', '"', '(', ')', ';', '\0', 'é', ',', '-', '/'][next(10)]),
                    3 => chars.swap(from, other),
                    _ => chars.extend_from_within(from.min(other)..from.max(other)),
                }
                if chars.is_empty() {
                    break;
                }
            }
            let text: String = chars.into_iter().collect();
            if let Err(error) = parse(&text) {
                let position = error.position.unwrap_or(0);
                assert!(position <= text.len() && text.is_char_boundary(position), "{text:?}: {position}");
            }
        }
    }
}

/// The parser of [`tidalite_sql`] accepts each SQL test that the stock parser accepts.
///
/// Otherwise statements that ran before would fail.
#[test]
fn nothing_that_was_accepted_is_refused() {
    // Read at run time: cargo may keep a test binary that was built in another checkout.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let folder = std::path::Path::new(&package).join("../../tests/slt");
    let (mut refused, mut accepted) = (Vec::new(), 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        for record in text.split("\n\n") {
            let lines =
                record.lines().skip_while(|line| line.starts_with(['#', 'o', 's']) && !line.starts_with("statement"));
            let sql = lines.skip(1).take_while(|line| *line != "----").collect::<Vec<_>>().join("\n");
            if folded(&sql).and_then(|(tokens, words)| statement(tokens, words)).is_err() {
                continue;
            }
            accepted += 1;
            if let Err(error) = validate(&sql) {
                refused.push(format!("{error}\n    {sql}"));
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    assert!(refused.is_empty(), "{}\n{}", refused.len(), refused.join("\n"));
}

#[test]
fn a_table_is_made_of_what_is_written() {
    let Ok(Statement::Commands { commands, .. }) = parse(STATEMENTS[0]) else { panic!("it is understood") };
    let [Command::CreateTable(create)] = &commands[..] else { panic!("it is one command") };
    assert_eq!((create.name.as_str(), create.if_not_exists), ("T é", true));
    assert_eq!(create.columns[3], ("a".to_owned(), ColumnType::DoubleArray { dims: 2 }));
    assert_eq!((create.designated.as_deref(), create.partition_by), (Some("ts"), PartitionBy::Day));
    let Ok(Statement::CreateTableAs(create)) = parse(STATEMENTS[2]) else { panic!("it is understood") };
    assert_eq!((create.designated.as_deref(), create.partition_by), (Some("a"), PartitionBy::Week));
    let Ok(Statement::DropPartitions { which: Partitions::List(names), .. }) = parse(STATEMENTS[3]) else {
        panic!("it is understood")
    };
    assert_eq!(names[1].text, "2024-01-02");
}

#[test]
fn a_clause_is_refused_where_it_goes_wrong() {
    fn place(sql: &str) -> Option<&str> {
        parse(sql).expect_err("it is wrong").position.map(|at| &sql[at..])
    }
    assert_eq!(place("SELECT count() FROM t SAMPLE BY soon"), Some("soon"));
    assert_eq!(place("SELECT count() FROM t SAMPLE BY 1h ALIGN TO soon"), Some("TO soon"));
    assert_eq!(place("SELECT * FROM t LATEST ON ts"), Some(""));
    assert_eq!(place("SELECT * FROM t LATEST ON ts PARTITION BY k WHERE x"), Some("WHERE x"));
    assert_eq!(place("SELECT * FROM t ASOF JOIN u TOLERANCE soon"), Some("soon"));
    assert_eq!(place("DECLARE @a = 1 SELECT @a"), Some("= 1 SELECT @a"));
}

#[test]
fn pivots_within_each_other_do_not_grow_without_end() {
    let columns = |levels: usize| "PIVOT t ON (".repeat(levels) + "a" + &")".repeat(levels);
    let tables = |levels: usize| "PIVOT (".repeat(levels) + "PIVOT t ON a" + &") ON a".repeat(levels);
    for statement in [columns(3), tables(3), columns(20), tables(30)] {
        parse(&statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    let found_by_fuzzing = format!("PIVOT t x ON {} a", "pivot(k) y ON ".repeat(12));
    for statement in [columns(5_000), tables(5_000), found_by_fuzzing] {
        let error = parse(&statement).expect_err("longer than any machine has memory for");
        let limits = ["grows too long", "is nested more than", "syntax error"];
        assert!(limits.iter().any(|limit| error.to_string().contains(limit)), "{error}");
        assert!(error.position.is_some_and(|at| at < statement.len()), "{error:?}");
    }
}
