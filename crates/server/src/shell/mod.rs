//! `tidalite sql`: a shell, and one-shot queries.
//!
//! Reading order: this file the command line and the loop; [`target`] who answers; [`print`] how it looks.

mod print;
pub mod target;

use crate::process::fail;
use clap::{Arg, ArgMatches, Command};
use print::Format;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use target::{Access, Answer, Target};

const EXAMPLES: &str = "\
Examples:
  tidalite sql                                        a shell for the server on this machine
  tidalite sql \"select * from cpu limit 5\"
  tidalite sql --format csv \"select * from cpu\" > cpu.csv
  tidalite sql --data ./tidalite-data \"show tables\"   opens the folder; no server may run on it
  tidalite sql --url http://admin:secret@db:9000 \"select 1\"
  tidalite sql --url https://db:9000 --ca-file ca.pem \"select 1\"";

const HELP: &str = "\
A statement ends with a semicolon and may have several lines.
  \\d            tables
  \\d NAME       columns of a table
  \\timing       row counts and times on or off
  \\format F     table, csv or json
  \\? or help    this
  \\q or exit    the end; so does Ctrl-D";

#[must_use]
pub fn command() -> Command {
    Command::new("sql")
        .about("Asks a server or a data folder; without a query, a shell")
        .after_help(EXAMPLES)
        .arg(Arg::new("query").value_name("QUERY").help("One statement; its answer goes to standard output"))
        .arg(
            Arg::new("url")
                .long("url")
                .value_name("URL")
                .env("TIDALITE_URL")
                .conflicts_with("data")
                .help("The server [default: http://127.0.0.1:9000]"),
        )
        .arg(Arg::new("data").long("data").value_name("DIR").help("Opens this data folder, without a server"))
        .args(Access::args())
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["table", "csv", "json"])
                .help("How rows look [default: table]"),
        )
}

#[must_use]
pub fn run(matches: &ArgMatches) -> ExitCode {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let target = match text("data") {
        Some(dir) => Target::open(&PathBuf::from(dir)),
        None => Target::connect(text("url").unwrap_or("http://127.0.0.1:9000"), Access::of(matches)),
    };
    let target = match target {
        Ok(target) => target,
        Err(message) => return fail(1, &message),
    };
    let format = text("format").and_then(Format::parse).unwrap_or(Format::Table);
    let code = match text("query") {
        Some(query) => one_shot(&target, query, format),
        None if std::io::stdin().is_terminal() => interactive(&target, format),
        None => piped(&target, format),
    };
    match target.close() {
        Ok(()) => code,
        Err(message) => fail(1, &message),
    }
}

fn one_shot(target: &Target, query: &str, format: Format) -> ExitCode {
    let statements = split(query);
    for statement in &statements {
        if let Err(message) = ask(target, statement, format, false) {
            return fail(1, &message);
        }
    }
    if statements.is_empty() { fail(2, "the query is empty") } else { ExitCode::SUCCESS }
}

/// Statements from a file or another program: stops at the first that fails.
fn piped(target: &Target, format: Format) -> ExitCode {
    match std::io::read_to_string(std::io::stdin()) {
        Ok(text) => one_shot(target, &text, format),
        Err(error) => fail(1, &format!("could not read standard input: {error}")),
    }
}

fn ask(target: &Target, statement: &str, format: Format, timing: bool) -> Result<(), String> {
    let started = Instant::now();
    let answer = target.ask(statement)?;
    let took = started.elapsed();
    let mut out = Vec::new();
    print::answer(&mut out, &answer, format);
    if timing && let Answer::Rows { rows, .. } = &answer {
        let plural = if rows.len() == 1 { "row" } else { "rows" };
        out.extend_from_slice(format!("({} {plural}, {:.1} ms)\n", rows.len(), took.as_secs_f64() * 1e3).as_bytes());
    } else if timing {
        out.extend_from_slice(format!("({:.1} ms)\n", took.as_secs_f64() * 1e3).as_bytes());
    }
    // A reader that has seen enough, such as head, is no error.
    match std::io::Write::write_all(&mut std::io::stdout(), &out) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("could not write: {error}")),
        _ => Ok(()),
    }
}

fn interactive(target: &Target, format: Format) -> ExitCode {
    let mut editor = match DefaultEditor::new() {
        Ok(editor) => editor,
        Err(error) => return fail(1, &format!("could not use the terminal: {error}")),
    };
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".tidalite_history"));
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    print_out!("tidalite {}, {}. \\? for help.", env!("CARGO_PKG_VERSION"), target.name());
    let mut shell = Shell { target, format, timing: true };
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "tidalite> " } else { "      ... " };
        match editor.readline(prompt) {
            Ok(line) => {
                if text.is_empty() && line.trim().is_empty() {
                    continue;
                }
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(_) => break,
        }
        if !is_complete(&text) {
            continue;
        }
        let input = std::mem::take(&mut text);
        let _ = editor.add_history_entry(input.trim());
        if shell.obey(input.trim()) {
            break;
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    ExitCode::SUCCESS
}

struct Shell<'a> {
    target: &'a Target,
    format: Format,
    timing: bool,
}

impl Shell<'_> {
    /// True when that was the last command.
    fn obey(&mut self, input: &str) -> bool {
        let mut words = input.trim_end_matches(';').split_whitespace();
        match (words.next().unwrap_or_default(), words.next()) {
            ("\\q" | "exit" | "quit", None) => return true,
            ("\\?" | "\\h" | "help", None) => print_out!("{HELP}"),
            ("\\d" | "\\dt", None) => self.ask("show tables"),
            ("\\d", Some(table)) => self.ask(&format!("show columns from {table}")),
            ("\\timing", None) => self.timing = !self.timing,
            ("\\format", Some(name)) => match Format::parse(name) {
                Some(format) => self.format = format,
                None => print_err!("the formats are table, csv and json"),
            },
            (word, _) if word.starts_with('\\') => print_err!("there is no command {word}; \\? lists them"),
            _ => split(input).iter().for_each(|statement| self.ask(statement)),
        }
        false
    }

    fn ask(&self, statement: &str) {
        if let Err(message) = ask(self.target, statement, self.format, self.timing) {
            print_err!("{message}");
        }
    }
}

/// Whether what was typed can be run: a command, or statements with a semicolon at the end.
fn is_complete(text: &str) -> bool {
    let trimmed = text.trim();
    let word = trimmed.trim_end_matches(';');
    trimmed.starts_with('\\') || matches!(word, "help" | "exit" | "quit") || ends_with_semicolon(trimmed)
}

/// Outside of strings and comments.
fn ends_with_semicolon(text: &str) -> bool {
    let ends = statement_ends(text);
    ends.last().is_some_and(|end| text[end + 1..].trim().is_empty() || text[end + 1..].trim_start().starts_with("--"))
}

/// The statements of a text, without semicolons and empty ones.
fn split(text: &str) -> Vec<String> {
    let mut from = 0;
    let mut out = Vec::new();
    for end in statement_ends(text).into_iter().chain([text.len()]) {
        out.push(text[from..end].trim().to_owned());
        from = (end + 1).min(text.len());
    }
    out.retain(|s| !s.is_empty());
    out
}

/// Where the semicolons are that end statements.
fn statement_ends(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut ends = Vec::new();
    let mut quote = None;
    let mut i = 0;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(q), b) if q == b => quote = None,
            (Some(_), _) => {}
            (None, b @ (b'\'' | b'"')) => quote = Some(b),
            (None, b'-') if bytes.get(i + 1) == Some(&b'-') => {
                i += bytes[i..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - i);
            }
            (None, b'/') if bytes.get(i + 1) == Some(&b'*') => {
                i += text[i..].find("*/").map_or(bytes.len() - i, |n| n + 1);
            }
            (None, b';') => ends.push(i),
            _ => {}
        }
        i += 1;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_end_statements_outside_of_quotes_and_comments() {
        assert_eq!(
            split("select 1; select ';' ;; -- a; b\n select \"x;y\" /* ; */"),
            ["select 1", "select ';'", "-- a; b\n select \"x;y\" /* ; */"]
        );
        assert!(
            is_complete("select 1;") && is_complete("\\d") && is_complete("exit") && is_complete("select 1; -- done")
        );
        assert!(!is_complete("select 1") && !is_complete("select ';") && !is_complete("-- a;") && !is_complete("/* ;"));
    }
}
