//! Many concurrent commits: all acknowledged commits exist, and are in the log after a crash.

mod asked;

use asked::{rows, run};
use std::path::Path;
use tidalite::config::Durability;
use tidalite::types::{Batch, BatchColumn, BatchTimestamps, Column, ColumnType, TimeUnit, Values, Views};
use tidalite::{Database, DatabaseConfig};

const ROWS: usize = 5_000;

/// Merges are disabled, so that all rows are only in the log.
fn config(folder: &Path) -> DatabaseConfig {
    DatabaseConfig { durability: Durability::Os, has_background_jobs: false, ..DatabaseConfig::new(folder) }
}

/// Returns rows of host `hosts[row % hosts.len()]` with numbers from `first` on, one second apart.
fn batch(hosts: &[String], first: usize) -> Batch {
    let mut dictionary = Views::new();
    hosts.iter().for_each(|host| dictionary.push(host.as_bytes()));
    let column = |name: &str, column_type, values, dictionary| BatchColumn {
        name: name.to_owned(),
        column_type,
        column: Column::new(values),
        dictionary,
        narrower: None,
    };
    let codes = (0..ROWS as u32).map(|row| row % hosts.len() as u32).collect();
    let numbers = (first as i64..).take(ROWS).collect();
    Batch {
        table: "t".to_owned(),
        rows: ROWS,
        columns: vec![
            column("host", ColumnType::Symbol, Values::U32(codes), dictionary),
            column("n", ColumnType::Long, Values::I64(numbers), Views::new()),
        ],
        timestamps: Some(BatchTimestamps::new(
            TimeUnit::Micros,
            (first as i64..).take(ROWS).map(|second| second * 1_000_000).collect(),
        )),
        lines: Vec::new(),
    }
}

#[tokio::test]
async fn commits_in_a_queue_are_all_there_with_their_own_symbols_and_after_a_crash() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(folder.path())).expect("an empty folder opens");
    let mut expected: Vec<String> = Vec::new();
    let mut first = 0;
    for round in 0..4 {
        if round == 2 {
            // Another table of that name, whose symbols are numbered from the beginning.
            run(&database, "DROP TABLE t").await;
            expected.clear();
        }
        let mut batches = Vec::new();
        for commit in 0..24 {
            // Each batch has a different order of hosts, some of them new.
            let mut hosts: Vec<String> =
                (0..40).map(|host| format!("host_{}", host + commit % 6 + 10 * round)).collect();
            hosts.rotate_left(commit * 7 % 40);
            for row in 0..ROWS {
                expected.push(format!("{}|{}", hosts[row % 40], first + row));
            }
            batches.push(batch(&hosts, first));
            first += ROWS;
        }
        // No commit waits for the previous one.
        let under_way: Vec<_> = batches.into_iter().map(|batch| database.commit(vec![batch])).collect();
        for commit in under_way {
            commit.await.expect("it is committed");
        }
        assert!(rows(&database, "SELECT host, n FROM t ORDER BY n").await == expected, "round {round}");
        let (_folder, crashed) = as_after_a_crash(folder.path());
        assert!(rows(&crashed, "SELECT host, n FROM t ORDER BY n").await == expected, "round {round}, from the log");
    }
}

/// Opens a copy of the current files: closing would write rows of the log elsewhere.
fn as_after_a_crash(folder: &Path) -> (tempfile::TempDir, Database) {
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_into(folder, copy.path());
    let database = Database::open(DatabaseConfig::new(copy.path())).expect("it opens again");
    (copy, database)
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => {
                std::fs::create_dir(&to).expect("a folder");
                copy_into(&entry.path(), &to);
            }
            false => drop(std::fs::copy(entry.path(), to).expect("a file")),
        }
    }
}

#[tokio::test]
async fn rows_before_a_refused_line_are_committed_from_a_queue_and_are_there_after_a_crash() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(config(folder.path())).expect("an empty folder opens");
    let hosts: Vec<String> = (0..40).map(|host| format!("host_{host}")).collect();
    database.commit(vec![batch(&hosts, 0)]).await.expect("it is committed");
    run(&database, "CREATE VIEW v AS SELECT * FROM t").await;
    let mut expected: Vec<String> = (0..ROWS).map(|row| format!("{}|{row}", hosts[row % 40])).collect();
    let mut all = Vec::new();
    for commit in 1..24 {
        // Alternating lines of a table and of a view; the view's are rejected from a certain line on.
        let (mut of_table, mut of_view) = (batch(&hosts, commit * ROWS), batch(&hosts, 0));
        let kept = commit * 200;
        of_table.lines =
            (1..=ROWS as u32).map(|line| if line <= kept as u32 { line } else { line + ROWS as u32 }).collect();
        of_view.table = "v".to_owned();
        of_view.lines = (kept as u32 + 1..=(kept + ROWS) as u32).collect();
        expected.extend((0..kept).map(|row| format!("{}|{}", hosts[row % 40], commit * ROWS + row)));
        all.push(vec![of_table, of_view]);
    }
    let under_way: Vec<_> = all.into_iter().map(|batches| database.commit_until_refused(batches)).collect();
    for commit in under_way {
        let (_, refused) = commit.await.expect("it is committed");
        assert!(refused.expect("the view's rows are refused").message.contains("is a view"));
    }
    assert!(rows(&database, "SELECT host, n FROM t ORDER BY n").await == expected);
    let (_folder, crashed) = as_after_a_crash(folder.path());
    assert!(rows(&crashed, "SELECT host, n FROM t ORDER BY n").await == expected, "from the log");
}
