//! Data folders of this release for tests of later releases, and their expected content.
//!
//! `tests/fixtures/format-<n>/data` is a folder left by a killed process: segments of several partitions, late rows
//! merged into them and in late segments, a checkpoint with staged rows, more rows only in the log. Next to it is a
//! file per table with the sent rows, written from the model and not from reads. `make fixture` writes a new folder.

use super::cells::{read, to_batch};
use super::model::{Cell, Change, Model, Row, Rows, Table};
use super::script::TYPES;
use super::values::{Style, cell};
use crate::load::LoadTable;
use crate::writer::{RowsMode, Work};
use crate::{Database, DatabaseConfig};
use futures::executor::block_on;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_query::CancelToken;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::late::late_of;
use tidalite_types::command::CreateTable;
use tidalite_types::text::hex_digits;
use tidalite_types::{ColumnType, Command, PartitionBy, TimeUnit};

const SECOND: i64 = 1_000_000_000;
/// 2023-11-14T22:13:20Z.
const START: i64 = 1_700_000_000 * SECOND;

struct Writer {
    db: Database,
    model: Model,
    rng: fastrand::Rng,
}

fn config(data: &Path) -> DatabaseConfig {
    DatabaseConfig {
        has_background_jobs: false,
        overlap_syncs_from: None,
        merge_threads: 1,
        late_rows_min: 1,
        log_file_bytes: 16 << 10,
        ..DatabaseConfig::new(data)
    }
}

impl Writer {
    fn change(&mut self, change: Change) {
        self.model.apply(&change).expect("the story is sound");
        let work = match change {
            Change::Rows { batches, .. } => {
                Work::Rows { batches: batches.iter().map(to_batch).collect(), mode: RowsMode::Create }
            }
            Change::Command(command) => Work::Command(command),
            Change::Rewrite(_) | Change::Transaction(_) => panic!("statements have a way of their own"),
        };
        for answer in self.db.submit_together(vec![work]) {
            block_on(answer).expect("the disk is well");
        }
    }

    /// Adds rows of random values from `at` on, `step` apart.
    fn rows(&mut self, table: &str, types: &[ColumnType], count: usize, at: i64, step: i64) {
        self.rows_at(table, types, (0..count as i64).map(|row| at + row * step).collect());
    }

    /// Adds rows of random values at these times.
    fn rows_at(&mut self, table: &str, types: &[ColumnType], times: Vec<i64>) {
        let rows = self.random_rows(table, types, times);
        self.change(Change::Rows { batches: vec![rows], may_create: true });
    }

    /// Loads rows of random values at these times, in two parts.
    fn load_at(&mut self, table: &str, types: &[ColumnType], times: &[Vec<i64>; 2]) {
        let parts = times.clone().map(|times| self.random_rows(table, types, times));
        let found = self.db.all_tables().1.into_iter().find(|t| t.schema.name == table).expect("it exists");
        let to = LoadTable::Existing { id: found.id, schema: found.schema.clone() };
        let mut load = self.db.loader().begin(to).expect("a thread");
        for part in &parts {
            block_on(load.push(vec![to_batch(part)])).expect("the disk is well");
        }
        block_on(load.finish(&CancelToken::new())).expect("the disk is well");
        let change = Change::Rows { batches: parts.to_vec(), may_create: false };
        self.model.apply(&change).expect("the story is sound");
    }

    fn random_rows(&mut self, table: &str, types: &[ColumnType], times: Vec<i64>) -> Rows {
        let columns: Vec<_> = types.iter().map(|t| (format!("{t}").replace(['(', ',', ')'], "_"), *t)).collect();
        let styles: Vec<Style> = types.iter().map(|_| Style::draw(&mut self.rng)).collect();
        let cells = (0..times.len()).map(|row| -> Row {
            let values = types.iter().zip(&styles).map(|(t, style)| cell(&mut self.rng, *t, *style, row));
            Arc::new(values.collect())
        });
        let cells = cells.collect();
        Rows { table: table.to_owned(), columns, cells, timestamps: Some((TimeUnit::Nanos, times)) }
    }

    fn tell(&mut self) {
        let mut columns: Vec<_> = TYPES.iter().map(|t| (format!("{t}").replace(['(', ',', ')'], "_"), *t)).collect();
        columns.insert(3, ("ts".to_owned(), ColumnType::Timestamp(TimeUnit::Micros)));
        self.change(Change::Command(Command::CreateTable(CreateTable {
            name: "every type".to_owned(),
            columns,
            designated: Some("ts".to_owned()),
            partition_by: PartitionBy::Day,
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
            if_not_exists: false,
        })));
        let some = [ColumnType::Symbol, ColumnType::Double, ColumnType::Varchar];
        for batch in 0..6 {
            self.rows("every type", &TYPES, 120, START + batch * 8 * 3600 * SECOND, 90 * SECOND);
            self.rows("created", &some, 300, START + batch * 3600 * SECOND, SECOND);
        }
        self.db.settle().expect("the disk is well");
        // Late rows of equal timestamps, in one segment of three.
        self.rows("every type", &TYPES, 40, START + 9 * 3600 * SECOND, 0);
        self.rows("created", &some[..2], 400, START + 1800 * SECOND, SECOND / 2);
        let (table, column) = ("created".to_owned(), "more".to_owned());
        let column_type = ColumnType::Long;
        self.change(Change::Command(Command::AddColumn { table, column, column_type, if_not_exists: false }));
        self.db.settle().expect("the disk is well");
        for count in [900, 60, 40, 50] {
            let times = (0..count).map(|_| START + self.rng.i64(0..20 * 3600) * SECOND).collect();
            self.rows_at("everywhere", &some, times);
            let id = self.db.all_tables().1.iter().find(|t| t.schema.name == "everywhere").map(|t| t.id);
            self.db.jobs().merge_now(id.expect("it has rows")).expect("the disk is well");
        }
        // Segments of a load that the checkpoint names.
        let times = [0, 15].map(|minute| (0..70).map(|row| START + (minute * 60 + row * 20) * SECOND).collect());
        self.load_at("everywhere", &some, &times);
        self.change(Change::Command(Command::RenameTable { table: "created".into(), to: "renamed".into() }));
        self.rows("renamed", &some, 50, START, 7 * SECOND);
        self.rows("dropped", &some, 10, START, SECOND);
        self.db.jobs().checkpoint_now().expect("the disk is well");
        self.rows("every type", &TYPES, 20, START, 1800 * SECOND);
        self.rows("in the log only", &some, 40, START, 3600 * SECOND);
        // Segments that only the log names.
        self.load_at("in the log only", &some, &times);
        self.rows("in the log only", &some, 10, START, 3600 * SECOND);
        self.change(Change::Command(Command::DropTable { table: "dropped".into(), if_exists: false }));
        let column = "DOUBLE".to_owned();
        self.change(Change::Command(Command::DropColumn { table: "renamed".into(), column, if_exists: false }));
    }
}

/// Writes `data` and a file for each table to an empty or missing folder.
fn write(folder: &Path) {
    let fs = SimFs::new(0);
    let db = Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, config(Path::new("")), None).unwrap();
    let mut writer = Writer { db, model: Model::default(), rng: fastrand::Rng::with_seed(1) };
    writer.tell();
    export(&fs.killed(), Path::new(""), &folder.join("data"));
    for table in &writer.model.tables {
        std::fs::write(folder.join(format!("{}.csv", table.schema.name)), text(table, table.ordered())).unwrap();
    }
}

fn export(fs: &SimFs, from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in fs.list(from).unwrap() {
        let (path, to) = (from.join(&name), to.join(&name));
        let Ok(file) = fs.open(&path) else {
            export(fs, &path, &to);
            continue;
        };
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
}

/// Returns a line for the schema, then one per row: integers in decimal, bytes as an x and hexadecimal digits, NULL as
/// nothing.
fn text(table: &Table, rows: Vec<Row>) -> String {
    let mark = |is_designated| if is_designated { " designated" } else { "" };
    let columns = table.schema.columns.iter().map(|c| format!("{} {}{}", c.name, c.column_type, mark(c.is_designated)));
    let mut lines = vec![format!("partition by {}", table.schema.partition_by), columns.collect::<Vec<_>>().join(";")];
    for row in rows {
        let cells = row.iter().map(|cell| match cell {
            Cell::Null => String::new(),
            Cell::Int(value) => value.to_string(),
            Cell::Bytes(bytes) => format!("x{}", hex_digits(bytes)),
        });
        lines.push(cells.collect::<Vec<_>>().join(";"));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            drop(std::fs::copy(entry.path(), to))
        }
    }
}

/// Opens a copy of the data, and compares it as found, merged, and opened again. Returns the number of late segments.
fn check(folder: &Path) -> usize {
    let data = tempfile::tempdir().unwrap();
    copy(&folder.join("data"), data.path());
    let mut late = 0;
    for state in ["as it was left", "merged"] {
        let db = Database::open(config(data.path())).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let tables = db.all_tables().1;
        let files = std::fs::read_dir(folder).unwrap().filter(|f| f.as_ref().unwrap().path().extension().is_some());
        assert_eq!(tables.len(), files.count(), "tables of {}", folder.display());
        for table in tables {
            late += late_of(&table.segments).count();
            let found = read(&table).unwrap();
            let expected = std::fs::read_to_string(folder.join(format!("{}.csv", found.schema.name))).unwrap();
            let found_text = text(&found, found.rows.clone());
            let differs = found_text.lines().zip(expected.lines()).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{} of {}, {state}", found.schema.name, folder.display());
            assert_eq!(found_text.len(), expected.len());
        }
        db.settle().unwrap();
        db.close().unwrap();
    }
    late
}

/// Cargo runs tests in the package's folder; a compiled-in path would be wrong after a move of the checkout.
fn fixtures() -> PathBuf {
    PathBuf::from("../../tests/fixtures")
}

#[test]
fn folders_of_earlier_releases_are_read() {
    let mut folders = 0;
    for folder in std::fs::read_dir(fixtures()).unwrap() {
        check(&folder.unwrap().path());
        folders += 1;
    }
    assert!(folders > 0);
}

/// Writes to `TIDALITE_FIXTURE` if it is set.
#[test]
fn a_folder_of_this_release_is_read() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("TIDALITE_FIXTURE").map_or(temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    write(&folder);
    assert!(check(&folder) > 0, "late segments");
}
