//! Runs every file of `tests/slt` on an in-process database in three configurations: rows left in staging, rows merged
//! into segments after every statement, and fast operators disabled with rows partly staged and partly loaded into
//! segments as they are inserted. `SLT_COMPLETE=1` writes the results to the files, for review; `SLT=part of a name`
//! runs some files only; `SLT_REWRITES=1` plans without the binder.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use sqllogictest::{
    DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer, default_validator,
};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use tidalite::{Database, DatabaseConfig, Error, OutputColumn, QueryOptions, Response};

const WORLDS: [&str; 3] = ["staged", "settled", "general"];

/// One connection of a test file, with a separate database.
struct World {
    name: &'static str,
    database: Database,
    _folder: tempfile::TempDir,
}

impl World {
    fn open(name: &'static str) -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = DatabaseConfig::new(folder.path());
        config.durability = tidalite::config::Durability::Os;
        config.has_background_jobs = false;
        // The output of EXPLAIN must not depend on the machine.
        config.query_threads = 2;
        config.query_fast_operators = name != "general";
        if name == "general" {
            // INSERT, CREATE TABLE AS and COPY with more than a few hundred rows are loads.
            config.load_bytes = 4 << 10;
        }
        config.query_binder = std::env::var_os("SLT_REWRITES").is_none();
        World { name, database: Database::open(config).expect("an empty folder opens"), _folder: folder }
    }
}

#[async_trait::async_trait]
impl sqllogictest::AsyncDB for World {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let output = match self.database.execute(sql, QueryOptions::default()).await? {
            Response::Done { rows, .. } => DBOutput::StatementComplete(rows),
            Response::Rows(mut answer) => {
                let mut rows = Vec::new();
                while let Some(batch) = answer.stream.next().await {
                    rows.extend(texts(&batch?, &answer.columns));
                }
                DBOutput::Rows { types: answer.columns.iter().map(kind).collect(), rows }
            }
        };
        if self.name == "settled" {
            self.database.settle()?;
        }
        Ok(output)
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        self.name
    }
}

fn kind(column: &OutputColumn) -> DefaultColumnType {
    match column.type_name.as_str() {
        "BYTE" | "SHORT" | "INT" | "LONG" => DefaultColumnType::Integer,
        "FLOAT" | "DOUBLE" => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn texts(batch: &RecordBatch, columns: &[OutputColumn]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters: Vec<_> = batch
        .columns()
        .iter()
        .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("every type has a text"))
        .collect();
    let text = |row: usize, column: usize| {
        let array = batch.column(column);
        if array.is_valid(row) && columns[column].type_name == "IPV4" {
            return Ipv4Addr::from(array.as_primitive::<UInt32Type>().value(row)).to_string();
        }
        let text = formatters[column].value(row).to_string().replace('\n', "\\n");
        if text.is_empty() { "(empty)".to_owned() } else { text }
    };
    (0..batch.num_rows()).map(|row| (0..batch.num_columns()).map(|column| text(row, column)).collect()).collect()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new("../../tests/slt");
    let wanted = std::env::var("SLT").unwrap_or_default();
    let entries = std::fs::read_dir(folder).expect("the folder of tests").map(|e| e.expect("an entry").path());
    let mut files: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "slt") && p.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    files
}

#[test]
fn every_file_gives_what_it_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let is_completing = std::env::var_os("SLT_COMPLETE").is_some();
    let mut failures = Vec::new();
    for file in files() {
        // EXPLAIN differs between the configurations: files contain the output of the settled one.
        for world in WORLDS.into_iter().filter(|world| !is_completing || *world == "settled") {
            let mut runner = Runner::new(|| async move { Ok(World::open(world)) });
            let ran = runtime.block_on(async {
                if is_completing {
                    let updated = runner
                        .update_test_file(&file, " ", default_validator, default_normalizer, default_column_validator)
                        .await;
                    updated.map_err(|e| e.to_string())
                } else {
                    runner.run_file_async(&file).await.map_err(|e| e.to_string())
                }
            });
            if let Err(error) = ran {
                failures.push(format!("{} ({world}): {error}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
