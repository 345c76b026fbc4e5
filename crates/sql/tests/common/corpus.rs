//! The statements of the repository: `tests/slt`, and the SQL of the documents.

use std::path::{Path, PathBuf};
use tidalite_sql::{Symbol, TokenKind};

/// The root of the repository.
///
/// Read at run time: cargo may keep a test binary that was built in another checkout.
fn root() -> PathBuf {
    let of_package = || Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    std::env::var_os("SQL_CORPUS").map_or_else(of_package, PathBuf::from)
}

/// Returns all statements that are expected to parse, each with its location.
pub fn statements() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for path in files(&root().join("tests/slt"), "slt") {
        of_slt(&path, &mut all);
    }
    for path in files(&root().join("docs"), "md").into_iter().chain(files(&root().join("docs/sql"), "md")) {
        of_markdown(&path, &mut all);
    }
    all
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == extension));
    files.sort();
    files
}

/// Collects records of `statement ok`, `statement count n` and `query`, up to an empty line or `----`.
fn of_slt(path: &Path, all: &mut Vec<(String, String)>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let head = lines[at];
        at += 1;
        let is_statement = head.starts_with("statement ") && !head.starts_with("statement error");
        let is_query = head.starts_with("query ") && !head.starts_with("query error");
        if !is_statement && !is_query {
            continue;
        }
        let from = at;
        while at < lines.len() && !lines[at].trim().is_empty() && lines[at] != "----" {
            at += 1;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        all.push((format!("{name}:{}", from + 1), lines[from..at].join("\n")));
    }
}

/// Collects ```` ```sql ```` blocks, split at semicolons.
fn of_markdown(path: &Path, all: &mut Vec<(String, String)>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for (n, block) in text.split("```sql\n").skip(1).enumerate() {
        let block = block.split("\n```").next().unwrap_or_default();
        let tokens = tidalite_sql::lexer::tokens(block).unwrap_or_else(|e| panic!("{name}, block {n}: {e}"));
        let mut from = None;
        for token in tokens {
            let ends = [TokenKind::End, TokenKind::Symbol(Symbol::Semicolon)].contains(&token.kind);
            match (ends, from) {
                (true, Some(start)) => {
                    all.push((format!("{name}, block {n}"), block[start..token.span.start as usize].to_owned()));
                    from = None;
                }
                (false, None) => from = Some(token.span.start as usize),
                _ => {}
            }
        }
    }
}
