//! Many commits that wait for one another: those behind others are prepared by who brings them.

mod asked;

use asked::{rows, run};
use tidalite::config::Durability;
use tidalite::types::{Batch, BatchColumn, BatchTimestamps, Column, ColumnType, TimeUnit, Values, Views};
use tidalite::{Database, DatabaseConfig};

const ROWS: usize = 5_000;

/// Rows of host `hosts[row % hosts.len()]` with their numbers from `first` on, a second each.
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
        timestamps: Some(BatchTimestamps {
            unit: TimeUnit::Micros,
            values: (first as i64..).take(ROWS).map(|second| second * 1_000_000).collect(),
        }),
        lines: Vec::new(),
    }
}

#[tokio::test]
async fn commits_in_a_queue_are_all_there_with_their_own_symbols_and_after_reopening() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = || DatabaseConfig { durability: Durability::Os, ..DatabaseConfig::new(folder.path()) };
    let mut database = Database::open(config()).expect("an empty folder opens");
    let mut expected: Vec<String> = Vec::new();
    let mut first = 0;
    for round in 0..4 {
        if round == 2 {
            // Another table of that name: what was found out about the first is of no use.
            run(&database, "DROP TABLE t").await;
            expected.clear();
        }
        let mut batches = Vec::new();
        for commit in 0..24 {
            // Each in an order of its own, some of them new.
            let mut hosts: Vec<String> =
                (0..40).map(|host| format!("host_{}", host + commit % 6 + 10 * round)).collect();
            hosts.rotate_left(commit * 7 % 40);
            for row in 0..ROWS {
                expected.push(format!("{}|{}", hosts[row % 40], first + row));
            }
            batches.push(batch(&hosts, first));
            first += ROWS;
        }
        // None waits for the one before.
        let under_way: Vec<_> = batches.into_iter().map(|batch| database.commit(vec![batch])).collect();
        for commit in under_way {
            commit.await.expect("it is committed");
        }
        assert!(rows(&database, "SELECT host, n FROM t ORDER BY n").await == expected, "round {round}");
        // The log is all there is of some of them.
        drop(database);
        database = Database::open(config()).expect("it opens again");
        assert!(rows(&database, "SELECT host, n FROM t ORDER BY n").await == expected, "round {round}, opened again");
    }
}
