//! Executes statements on a database and returns their results.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use std::path::Path;
use tidalite::{Database, DatabaseConfig, QueryOptions, Response};

async fn batches(database: &Database, sql: &str) -> Vec<RecordBatch> {
    let answer = database.execute(sql, QueryOptions::default()).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let mut batches = Vec::new();
    if let Response::Rows(mut rows) = answer {
        while let Some(batch) = rows.stream.next().await {
            batches.push(batch.unwrap_or_else(|e| panic!("{sql}: {e}")));
        }
    }
    batches
}

/// Returns every row as text, or the text of the error.
#[allow(dead_code, reason = "not every test asks for it")]
pub async fn answer(database: &Database, sql: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    if let Response::Rows(mut rows) =
        database.execute(sql, QueryOptions::default()).await.map_err(|e| format!("planned: {e}"))?
    {
        while let Some(batch) = rows.stream.next().await {
            texts(&batch.map_err(|e| e.to_string())?, &mut out);
        }
    }
    Ok(out)
}

/// Returns every row as text.
pub async fn rows(database: &Database, sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    batches(database, sql).await.iter().for_each(|batch| texts(batch, &mut out));
    out
}

fn texts(batch: &RecordBatch, out: &mut Vec<String>) {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("a text")).collect();
    let row = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|");
    out.extend((0..batch.num_rows()).map(row));
}

/// Returns the single number of a result.
#[allow(dead_code, reason = "not every test asks for one")]
pub async fn count(database: &Database, sql: &str) -> i64 {
    batches(database, sql).await[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// Returns the output of EXPLAIN.
#[allow(dead_code, reason = "not every test asks for it")]
pub async fn plan(database: &Database, sql: &str) -> String {
    rows(database, &format!("EXPLAIN {sql}")).await.join("\n")
}

/// Executes a statement for its effect.
pub async fn run(database: &Database, sql: &str) {
    batches(database, sql).await;
}

/// Opens an empty folder as a database without background merges.
#[allow(dead_code, reason = "not every test opens one so")]
pub fn open(folder: &Path) -> Database {
    open_with(folder, true)
}

/// The same, with fast operators or with their reference implementations.
#[allow(dead_code, reason = "not every test asks for both")]
pub fn open_with(folder: &Path, fast_operators: bool) -> Database {
    open_on(folder, fast_operators, 2)
}

/// The same with this number of threads.
#[allow(dead_code, reason = "not every test asks for others")]
pub fn open_on(folder: &Path, fast_operators: bool, threads: usize) -> Database {
    let mut config = DatabaseConfig::new(folder);
    config.durability = tidalite::config::Durability::Os;
    config.has_background_jobs = false;
    config.query_threads = threads;
    config.query_fast_operators = fast_operators;
    Database::open(config).expect("an empty folder opens")
}
