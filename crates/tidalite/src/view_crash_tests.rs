//! Views and materialized views after power losses: acknowledged changes exist, and a materialized view continues from
//! its last complete commit, so that the next refresh makes it equal to the result of its query.

use crate::{Database, DatabaseConfig, QueryOptions, Response, Result};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use futures::executor::block_on;
use std::sync::Arc;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;

fn open(fs: &SimFs) -> Result<Database> {
    let config = DatabaseConfig {
        has_background_jobs: false,
        overlap_syncs_from: None,
        merge_threads: 1,
        query_threads: 1,
        log_file_bytes: 4 << 10,
        ..DatabaseConfig::new("")
    };
    Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config, None)
}

/// Returns a line of text per row; none for a statement without rows.
pub(crate) fn ask(db: &Database, sql: &str) -> Result<Vec<String>> {
    block_on(async {
        match db.execute(sql, QueryOptions::default()).await? {
            Response::Done { .. } => Ok(Vec::new()),
            Response::Rows(rows) => {
                let batches: Vec<RecordBatch> = rows.stream.try_collect().await?;
                Ok(batches.iter().flat_map(lines).collect())
            }
        }
    })
}

fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("a text")).collect();
    let row = |row: usize| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

const QUERY: &str = "SELECT ts, k, sum(n) AS total, count() AS c FROM b SAMPLE BY 1h";
const DAILY: &str = "SELECT ts, sum(total) AS total FROM m SAMPLE BY 1d";

fn story() -> Vec<String> {
    let insert = |from: i64, count: i64, step: i64| {
        let value = |i: i64| format!("({}, 'k{}', {i})", (1_704_067_200 + (from + i) * step) * 1_000_000, i % 3);
        format!("INSERT INTO b VALUES {}", (0..count).map(value).collect::<Vec<_>>().join(", "))
    };
    let create = "CREATE TABLE b (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY";
    let refresh = |view: &str| format!("REFRESH MATERIALIZED VIEW {view}");
    vec![
        create.to_owned(),
        insert(0, 8, 1800),
        format!("CREATE MATERIALIZED VIEW m REFRESH MANUAL DEFERRED AS ({QUERY}) PARTITION BY DAY"),
        "CREATE VIEW v AS SELECT k, max(total) AS most FROM m GROUP BY k".to_owned(),
        refresh("m"),
        insert(8, 6, 1800),
        "settle".to_owned(),
        format!("CREATE MATERIALIZED VIEW d REFRESH MANUAL AS ({DAILY})"),
        "DELETE FROM b WHERE n = 3".to_owned(),
        refresh("m"),
        "UPDATE b SET n = n + 100 WHERE k = 'k1'".to_owned(),
        "settle".to_owned(),
        insert(0, 3, 600),
        refresh("m"),
        refresh("d"),
        "CREATE OR REPLACE VIEW v AS SELECT count() AS rows FROM b".to_owned(),
        "TRUNCATE TABLE b".to_owned(),
        insert(200, 4, 900),
        "settle".to_owned(),
        refresh("m"),
        "DROP VIEW v".to_owned(),
        insert(210, 4, 900),
        refresh("d"),
        "DROP MATERIALIZED VIEW d".to_owned(),
    ]
}

fn step(db: &Database, sql: &str) -> Result<()> {
    if sql == "settle" { db.settle() } else { ask(db, sql).map(drop) }
}

/// Returns the names of all tables and views, with the query of each view.
fn names(db: &Database) -> Vec<String> {
    let mut names: Vec<String> = db
        .all_tables()
        .1
        .iter()
        .map(|t| match &t.schema.view {
            Some(view) => format!("{} AS {}", t.schema.name, view.sql),
            None => t.schema.name.clone(),
        })
        .collect();
    names.sort();
    names
}

fn expected_names(steps: &[String]) -> Vec<String> {
    let fs = SimFs::new(0);
    let db = open(&fs).expect("an empty disk opens");
    // Tests of names need no rows.
    let ddl = steps.iter().filter(|sql| sql.starts_with("CREATE") || sql.starts_with("DROP"));
    ddl.for_each(|sql| step(&db, sql).unwrap_or_else(|e| panic!("{sql}: {e}")));
    names(&db)
}

#[test]
fn after_a_power_loss_at_any_operation_views_are_as_acknowledged_and_a_refresh_makes_them_right() {
    let story = story();
    let mut operation = 0;
    loop {
        let fs = SimFs::new(operation);
        fs.crash_at(operation);
        let mut done = 0;
        if let Ok(db) = open(&fs) {
            done = story.iter().take_while(|sql| step(&db, sql).is_ok()).count();
        }
        let is_over = !fs.is_crashed();
        let disk = fs.survivor(operation);
        let what = format!("power loss at operation {operation}, in step {done}");
        let db = open(&disk).unwrap_or_else(|e| panic!("{what}: {e}"));
        let found = names(&db);
        let (before, after) = (&story[..done], &story[..(done + 1).min(story.len())]);
        assert!(found == expected_names(before) || found == expected_names(after), "{what}: found {found:?}");
        let has = |name: &str| found.iter().any(|n| n.starts_with(&format!("{name} AS ")));
        if has("m") {
            check_view(&db, "m", QUERY, &what);
        }
        if has("d") {
            check_view(&db, "d", DAILY, &what);
        }
        if is_over {
            break;
        }
        // Every third operation, because each requires an engine, and adjacent operations are similar.
        operation += 3;
    }
    assert!(operation > 100, "the story has only {operation} operations");
}

fn check_view(db: &Database, view: &str, query: &str, what: &str) {
    let ask = |sql: &str| ask(db, sql).unwrap_or_else(|e| panic!("{what}: {sql}: {e}"));
    ask(&format!("REFRESH MATERIALIZED VIEW {view}"));
    let mut rows = ask(&format!("SELECT * FROM {view}"));
    let mut expected = ask(query);
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected, "{what}: {view}");
    db.settle().unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut rows = ask(&format!("SELECT * FROM {view}"));
    rows.sort();
    assert_eq!(rows, expected, "{what}: {view}, merged");
}
