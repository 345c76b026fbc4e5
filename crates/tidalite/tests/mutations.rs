//! Parses and plans invalid statements: those of `tests/slt` with words and bytes removed, doubled and exchanged. The
//! outcome is a result or an error, never a panic, and never takes long. Internal errors are printed: each should be an
//! error of the user.
//!
//! Runs a fixed number from a fixed seed; `MUTATE_SECONDS=n` runs for this time from `MUTATE_FROM=n`. A failure prints
//! its seed and the statement.

use std::path::Path;
use std::time::{Duration, Instant};
use tidalite::{Database, DatabaseConfig, ErrorKind, QueryOptions};

/// Number of statements of every test run.
const STATEMENTS: u64 = 10_000;

/// Time limit; planning such a statement takes a millisecond or two.
const LONG: Duration = Duration::from_secs(20);

/// Returns the statements of all files.
fn statements() -> Vec<String> {
    let folder = Path::new("../../tests/slt");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|path| path.extension().is_some_and(|e| e == "slt")) {
        let text = std::fs::read_to_string(file).expect("a text");
        for record in text.split("\n\n") {
            let lines = record.lines().skip_while(|line| line.starts_with('#') || line.starts_with("onlyif"));
            let statement: Vec<&str> = lines.skip(1).take_while(|line| *line != "----").collect();
            found.extend(Some(statement.join("\n")).filter(|s| !s.is_empty()));
        }
    }
    found
}

/// Returns words, numbers, quoted texts and signs, with the space before each.
fn words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut was_word) = (None, false);
    for c in sql.chars() {
        let is_word = c.is_alphanumeric() || c == '_' || c == '.';
        let goes_on = quote.is_some() || is_word && was_word;
        match words.last_mut() {
            Some(last) if goes_on || last.chars().all(char::is_whitespace) => last.push(c),
            _ => words.push(c.to_string()),
        }
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        was_word = is_word;
    }
    words
}

const SEEDS_OF_TROUBLE: &[&str] = &[
    "(",
    ")",
    "'",
    "\"",
    ",",
    ";",
    "--",
    "/*",
    "$1",
    "$0",
    "$99999999999",
    "@",
    "@x",
    ":=",
    "::",
    "1e999",
    "-",
    "NULL",
    "9223372036854775808",
    "''",
    "'2024-13-45'",
    "\u{0}",
    "ä",
    "SAMPLE BY",
    "1h",
    "0h",
    "FILL(PREV)",
    "ALIGN TO CALENDAR",
    "LATEST ON ts PARTITION BY sym",
    "ASOF JOIN u",
    "LIMIT -1",
    "OVER (",
    "[",
    "]",
    "{",
    "CASE",
    "END",
    "ARRAY[",
    "INTERVAL '1 day'",
    "TIMESTAMP(ts)",
    "PARTITION BY",
    "WITH RECURSIVE",
    "EXPLAIN",
    "*",
    "..",
    "IN",
    "BETWEEN",
];

fn mutated(all: &[Vec<String>], rng: &mut fastrand::Rng) -> String {
    let mut sql = all[rng.usize(..all.len())].clone();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..=sql.len());
        match rng.u32(..8) {
            0 if at < sql.len() => drop(sql.remove(at)),
            1 if at < sql.len() => sql.insert(at, sql[at].clone()),
            2 if sql.len() > 1 => {
                let (a, b) = (rng.usize(..sql.len()), rng.usize(..sql.len()));
                sql.swap(a, b);
            }
            3 => sql.insert(at, format!(" {} ", SEEDS_OF_TROUBLE[rng.usize(..SEEDS_OF_TROUBLE.len())])),
            4 => {
                let other = &all[rng.usize(..all.len())];
                let from = rng.usize(..=other.len());
                let to = (from + rng.usize(..12)).min(other.len());
                sql.splice(at..at, other[from..to].iter().cloned());
            }
            5 => sql.truncate(at),
            6 if at < sql.len() => {
                let mut chars: Vec<char> = sql[at].chars().collect();
                let place = rng.usize(..=chars.len());
                match rng.bool() {
                    true if place < chars.len() => drop(chars.remove(place)),
                    _ => chars.insert(place, rng.char(' '..'\u{7f}')),
                }
                sql[at] = chars.into_iter().collect();
            }
            _ => {
                let other = &all[rng.usize(..all.len())];
                if at < sql.len() && !other.is_empty() {
                    sql[at] = other[rng.usize(..other.len())].clone();
                }
            }
        }
    }
    sql.concat()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_statement_panics_or_takes_long() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = DatabaseConfig { has_background_jobs: false, ..DatabaseConfig::new(folder.path()) };
    let database = Database::open(config).expect("an empty folder opens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // The first table of a name is kept, so that many statements find their tables.
    for sql in statements().iter().filter(|sql| sql.starts_with("CREATE TABLE")) {
        let _ = runtime.block_on(database.execute(sql, QueryOptions::default()));
    }
    let all: Vec<Vec<String>> = statements().iter().map(|sql| words(sql)).collect();
    assert!(all.len() > 300, "{} statements", all.len());
    assert!(all.iter().zip(statements()).all(|(words, sql)| words.concat() == sql));
    let (from, started) = (number("MUTATE_FROM").unwrap_or(0), Instant::now());
    let seconds = number("MUTATE_SECONDS").map(Duration::from_secs);
    let (mut seed, mut good) = (from, 0u64);
    while seconds.map_or(seed - from < STATEMENTS, |seconds| started.elapsed() < seconds) {
        let sql = mutated(&all, &mut fastrand::Rng::with_seed(seed));
        let begun = Instant::now();
        let described = runtime.block_on(database.describe(&sql, Vec::new(), QueryOptions::default()));
        assert!(begun.elapsed() < LONG, "MUTATE_FROM={seed} took {:?}:\n{sql}", begun.elapsed());
        match described {
            Ok(_) => good += 1,
            Err(error) => {
                assert!(!error.message.contains("panicked"), "MUTATE_FROM={seed}: {error}:\n{sql}");
                if error.kind == ErrorKind::Internal {
                    println!("MUTATE_FROM={seed}: internal: {error}:\n{sql}\n");
                }
                let is_within = error.position.is_none_or(|at| at <= sql.len() && sql.is_char_boundary(at));
                assert!(is_within, "MUTATE_FROM={seed}: a position of {:?}:\n{sql}", error.position);
            }
        }
        seed += 1;
    }
    println!("{} statements from {from}, of which {good} mean something", seed - from);
    assert!(good > 0);
}
