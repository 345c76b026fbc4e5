//! Runs every statement of `tests/slt` on two databases: one plans queries by the rewrites of the first front end, the
//! other by the binder for supported forms. Values, column names and types have to be the same.
//!
//! `SLT=part of a name` runs some files only; `FRONT_ENDS=1` prints the forms that the binder does not support.

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tidalite::{Database, DatabaseConfig, Error, FrontEndCounts, QueryOptions, Response};

/// Queries of `tests/slt` that the binder plans, at least: its coverage must not fall. Queries of statements that change
/// rows are planned by the binder on both databases.
const BOUND_MIN: u64 = 2_100;

/// Statements whose results differ on purpose: a part of their text, and the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("order by n + 1 limit 1", "a name in an expression of ORDER BY is a column of FROM, as in PostgreSQL"),
    ("generate_series(1, a.n) g(x)", "a table function may name columns of relations before it"),
    ("FILL(LINEAR) ORDER BY ts", "SAMPLE BY may be ordered by the time that is not selected"),
    ("ip <<= '10.1.2.3'", "the column is named as it is written, not `<@`"),
    ("'10.0.0.0/8' <<= '10.0.0.0/8'", "the column is named as it is written, not `<@`"),
    ("#u33d/10", "a geohash is named as it is written, not as a string"),
    ("AS GEOHASH(2c)", "the type is named as it is written, not `geohash(2, c)`"),
    ("3 = ANY(a), 1 = ANY(a)", "a comparison with a NULL element is unknown, as in PostgreSQL"),
    ("= ANY(array_fill(x * -0.0", "there is one zero"),
    ("ROW WITH TIES", "FETCH takes WITH TIES"),
    ("ROWS WITH TIES", "FETCH takes WITH TIES"),
    ("isOrdered(y) OVER (ORDER BY ts ROWS 1 PRECEDING)", "the order of a window is an order of rows"),
    ("lag(v, 1, 2.0)", "the value and the default have a common type, as in PostgreSQL"),
    ("lag(v, 1, 1.5)", "the value and the default have a common type, as in PostgreSQL"),
    ("DECLARE @a := 1 + 1", "the column is named as it is written, with the variable"),
    ("array(SELECT", "the column is named `array`, as in PostgreSQL"),
    ("(x, y) IN (SELECT a, b - 3 FROM q)", "the column is named as it is written, without an alias in the sub-query"),
];

/// Files with statements for which the first front end returns wrong results or errors.
const NOT_COMPARED: &[&str] = &[
    "argument_types.slt",
    "array_casts.slt",
    "declare.slt",
    "forms.slt",
    "found_by_generator.slt",
    "frames.slt",
    "horizon_join.slt",
    "json_documents.slt",
    "literal_types.slt",
    "number_types.slt",
    "pivot.slt",
    "postgres_edges.slt",
    "real_numbers.slt",
    "rows.slt",
];

/// The result of a statement: names and types of columns, and rows.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Answer {
    fn sorted(&self) -> Answer {
        let mut sorted = self.clone();
        sorted.rows.sort();
        sorted
    }
}

#[derive(Default)]
struct Report {
    queries: u64,
    reordered: u64,
    by_chance: u64,
    /// Errors whose texts differ.
    reworded: Vec<String>,
    differences: Vec<String>,
    counts: Vec<FrontEndCounts>,
}

/// Two databases with the same content.
struct Both {
    file: String,
    rewrites: Database,
    binder: Database,
    report: Arc<Mutex<Report>>,
    _folders: [tempfile::TempDir; 2],
}

fn open(query_binder: bool) -> (Database, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = DatabaseConfig::new(folder.path());
    config.durability = tidalite::config::Durability::Os;
    config.has_background_jobs = false;
    config.query_threads = 2;
    config.query_binder = query_binder;
    (Database::open(config).expect("an empty folder opens"), folder)
}

impl Both {
    fn open(file: String, report: Arc<Mutex<Report>>) -> Both {
        let ((rewrites, first), (binder, second)) = (open(false), open(true));
        Both { file, rewrites, binder, report, _folders: [first, second] }
    }
}

async fn answer(database: &Database, sql: &str) -> Result<Answer, Error> {
    match database.execute(sql, QueryOptions::default()).await? {
        Response::Done { rows, .. } => Ok(Answer { columns: Vec::new(), rows: vec![vec![rows.to_string()]] }),
        Response::Rows(mut answer) => {
            let mut rows = Vec::new();
            while let Some(batch) = answer.stream.next().await {
                rows.extend(texts(&batch?));
            }
            let columns = answer.columns.iter().map(|c| format!("{} {} {:?}", c.name, c.type_name, c.pg.pg_type));
            Ok(Answer { columns: columns.collect(), rows })
        }
    }
}

fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters: Vec<_> = batch
        .columns()
        .iter()
        .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("every type has a text"))
        .collect();
    let text = |row: usize, column: usize| formatters[column].value(row).to_string();
    (0..batch.num_rows()).map(|row| (0..batch.num_columns()).map(|column| text(row, column)).collect()).collect()
}

#[async_trait::async_trait]
impl sqllogictest::AsyncDB for Both {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let first = answer(&self.rewrites, sql).await;
        let second = answer(&self.binder, sql).await;
        let difference = match (&first, &second) {
            (Ok(first), Ok(second)) if first == second => None,
            (Ok(first), Ok(second)) if first.sorted() == second.sorted() => {
                self.report.lock().expect("no panic").reordered += 1;
                None
            }
            (Err(first), Err(second)) => {
                if first.to_string() != second.to_string() {
                    let texts = format!("{}: {sql}\n  {first}\n  {second}", self.file);
                    self.report.lock().expect("no panic").reworded.push(texts);
                }
                None
            }
            // EXPLAIN shows the plan, which may differ.
            (Ok(_), Ok(_)) if sql.trim_start().to_lowercase().starts_with("explain") => None,
            (Ok(before), Ok(_)) => match answer(&self.rewrites, sql).await {
                Ok(again) if again.sorted() == before.sorted() => Some(format!("{first:?}\n{second:?}")),
                _ => {
                    self.report.lock().expect("no panic").by_chance += 1;
                    None
                }
            },
            _ => Some(format!("{first:?}\n{second:?}")),
        };
        let mut report = self.report.lock().expect("no panic");
        report.queries += 1;
        let is_known = DIFFERENT.iter().any(|(part, _)| sql.contains(part));
        if let Some(difference) = difference.filter(|_| !is_known) {
            report.differences.push(format!("{}: {sql}\n{difference}", self.file));
        }
        drop(report);
        let rows = first?;
        if rows.columns.is_empty() {
            return Ok(DBOutput::StatementComplete(rows.rows[0][0].parse().unwrap_or_default()));
        }
        let types = vec![DefaultColumnType::Any; rows.columns.len()];
        Ok(DBOutput::Rows { types, rows: rows.rows })
    }

    async fn shutdown(&mut self) {
        self.report.lock().expect("no panic").counts.push(self.binder.front_end_counts());
    }
}

fn files() -> Vec<PathBuf> {
    let wanted = std::env::var("SLT").unwrap_or_default();
    let entries =
        std::fs::read_dir("../../tests/slt").expect("the folder of tests").map(|e| e.expect("an entry").path());
    let mut files: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "slt") && p.to_string_lossy().contains(&wanted))
        .filter(|p| !NOT_COMPARED.iter().any(|file| p.ends_with(file)))
        .collect();
    files.sort();
    files
}

/// Runs the statements of a file, whatever they return: [`slt`] compares results with the file.
async fn run(file: &Path, report: &Arc<Mutex<Report>>) {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let records = sqllogictest::parse_file::<DefaultColumnType>(file).expect("the file parses");
    let mut runner = Runner::new(|| {
        let (name, report) = (name.clone(), report.clone());
        async move { Ok(Both::open(name, report)) }
    });
    for record in records {
        let _ = runner.run_async(record).await;
    }
    let _ = runner.shutdown_async().await;
}

#[test]
fn front_ends_agree() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let report = Arc::new(Mutex::new(Report::default()));
    for file in files() {
        runtime.block_on(run(&file, &report));
    }
    let report = report.lock().expect("no panic");
    let mut all = FrontEndCounts::default();
    for counts in &report.counts {
        all.bound += counts.bound;
        all.refused += counts.refused;
        for (feature, count) in &counts.unsupported {
            *all.unsupported.entry(feature).or_default() += count;
        }
    }
    let mut unsupported: Vec<_> = all.unsupported.iter().collect();
    unsupported.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let total: u64 = all.unsupported.values().sum();
    if std::env::var_os("FRONT_ENDS").is_some() {
        println!(
            "{} statements: {} bound, {} refused, {total} unsupported, {} different, {} reordered, {} by chance",
            report.queries,
            all.bound,
            all.refused,
            report.differences.len(),
            report.reordered,
            report.by_chance
        );
        report.reworded.iter().for_each(|texts| println!("{texts}"));
        unsupported.iter().for_each(|(feature, count)| println!("{count:6} {feature}"));
    }
    assert!(report.differences.is_empty(), "{}", report.differences.join("\n\n"));
    let is_all = std::env::var_os("SLT").is_none();
    assert!(!is_all || all.bound >= BOUND_MIN, "the binder planned only {} queries", all.bound);
}

/// Errors in names have the place of the name and, for a similar name, a hint.
#[test]
fn errors_in_names_have_places() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (database, _folder) = open(true);
    let create = "CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, price DOUBLE) TIMESTAMP(ts) PARTITION BY DAY";
    runtime.block_on(answer(&database, create)).expect("a table");
    // ^ marks the position.
    for (marked, message, hint) in [
        ("SELECT ts, ^prise FROM trades", "column \"prise\" does not exist", Some("perhaps you meant \"price\"")),
        ("SELECT t.^nothing FROM trades t", "column \"nothing\" does not exist", None),
        (
            "SELECT ^tradse.price FROM trades",
            "missing FROM-clause entry for table \"tradse\"",
            Some("perhaps you meant \"trades\""),
        ),
        ("SELECT ^price FROM trades a, trades b", "column reference \"price\" is ambiguous", None),
        (
            "SELECT 1 FROM trades a WHERE EXISTS (SELECT 1 FROM trades b WHERE b.^prce = a.price)",
            "column \"prce\" does not exist",
            Some("perhaps you meant \"price\""),
        ),
        ("SELECT ^roundd(price) FROM trades", "function roundd does not exist", Some("perhaps you meant round")),
        ("SELECT * FROM ^trade", "table \"trade\" does not exist", Some("perhaps you meant \"trades\"")),
        ("SELECT price::^nubmer FROM trades", "type \"nubmer\" does not exist", None),
        ("SELECT price FROM trades ORDER BY ^2", "ORDER BY position 2 is not in select list", None),
        ("SELECT sum(price) OVER ^w FROM trades", "window \"w\" does not exist", None),
        (
            "SELECT 1 FROM trades a CROSS JOIN trades b NATURAL JOIN ^trades c",
            "column \"ts\" of the join is in more than one table of the left side",
            None,
        ),
        ("SELECT DISTINCT ON (^2) price FROM trades", "SELECT DISTINCT ON position 2 is not in select list", None),
    ] {
        let sql = marked.replace('^', "");
        let error = runtime.block_on(answer(&database, &sql)).expect_err(&sql);
        assert_eq!(error.to_string(), message, "{sql}");
        assert_eq!((error.position, error.hint.as_deref()), (marked.find('^'), hint), "{sql}");
    }
}

/// Names that the scopes of the binder resolve, and the rewrites did not.
#[test]
fn scopes_resolve_names() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (database, _folder) = open(true);
    for (sql, expected) in [
        ("SELECT 2 AS a, a + 1 AS b, b * a AS c", "2 3 6"),
        (
            "WITH x AS (SELECT 1 AS n) SELECT n, (WITH x AS (SELECT n + 1 AS n FROM x) SELECT n FROM x) AS m FROM x",
            "1 2",
        ),
        (
            "SELECT c, a.c, b.c FROM (VALUES (1)) a(c) FULL JOIN (VALUES (2)) b(c) USING (c) ORDER BY c",
            "1 1 NULL, 2 NULL 2",
        ),
        ("SELECT g, i FROM generate_series(1, 2) g, generate_series(1, g) i ORDER BY 1, 2", "1 1, 2 1, 2 2"),
        ("SELECT k, sum(v) AS v FROM (VALUES ('a', 1), ('a', 2)) t(k, v) GROUP BY k HAVING sum(v) > 2", "a 3"),
        ("SELECT -n AS n FROM (VALUES (1), (2)) t(n) ORDER BY n + 0", "-1, -2"),
        ("SELECT DISTINCT ON (1) k, v FROM (VALUES ('a', 2), ('a', 1), ('b', 3)) t(k, v) ORDER BY 1, 2", "a 1, b 3"),
        ("SELECT 2 AS n UNION ALL SELECT 1 UNION ALL SELECT 3 ORDER BY ALL DESC", "3, 2, 1"),
        ("SELECT box.xmin FROM (VALUES (3)) box(xmin)", "3"),
    ] {
        let answer = runtime.block_on(answer(&database, sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows: Vec<String> = answer.rows.iter().map(|row| row.join(" ")).collect();
        assert_eq!(rows.join(", "), expected, "{sql}");
    }
}
