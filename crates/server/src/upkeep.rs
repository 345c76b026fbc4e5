//! `tidalite check`, `repair`, `backup`, `backups`, `restore`: looking after data folders.
//!
//! Exit codes: 0 well, 1 problems were found or it failed, 2 it could not be done at all (asked for wrongly, the folder
//! in use). Progress goes to standard error when that is a terminal; answers to standard output.

use crate::errors::with_hint;
use crate::process::fail;
use crate::shell::target::{Access, Answer, Target};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidalite::backup::{VerifyReport, verify_backups};
use tidalite::check::{CheckReport, Problem, check_folder};
use tidalite::repair::{Lost, RepairReport, repair_folder};
use tidalite::restore::{At, restore};
use tidalite::types::{TimeUnit, time};
use tidalite::{Database, DatabaseConfig, Error, destination};

const PROBLEMS: u8 = 1;
const IMPOSSIBLE: u8 = 2;
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// The subcommands of this file.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![check_command(), repair_command(), backup_command(), backups_command(), restore_command()]
}

fn data_arg() -> Arg {
    Arg::new("data").long("data").value_name("DIR").env("TIDALITE_DATA").help("The data folder")
}

fn json_arg() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Answers as one JSON object")
}

fn check_command() -> Command {
    Command::new("check")
        .about("Verifies everything in a data folder that no server runs on")
        .after_help(
            "Exit codes: 0 all is well, 1 problems were found, 2 it could not be checked.\n\
             While a server runs, ask it: CHECK DATABASE, or CHECK TABLE t.",
        )
        .arg(data_arg().default_value("./tidalite-data"))
        .arg(json_arg())
}

fn repair_command() -> Command {
    Command::new("repair")
        .about("Moves what is damaged aside, so that the rest can be used, and says which rows are gone")
        .after_help(
            "What is damaged is kept under quarantine/ in the data folder, with a text that says why.\n\
             Restore a backup instead if there is a recent one.",
        )
        .arg(data_arg().default_value("./tidalite-data"))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only says what would be done and which rows would be gone"),
        )
        .arg(json_arg())
}

fn backup_command() -> Command {
    Command::new("backup")
        .about("Copies what is new since the last backup to a folder")
        .after_help(
            "With --url the server writes to a folder on its own machine, while it goes on; with --data the folder is\n\
             opened here, and no server may run on it. In SQL: BACKUP DATABASE TO '/folder'.",
        )
        // Not from the environment: a server may run on that folder, and be meant.
        .arg(Arg::new("data").long("data").value_name("DIR").conflicts_with("url").help("The data folder"))
        .arg(
            Arg::new("url")
                .long("url")
                .value_name("URL")
                .env("TIDALITE_URL")
                .help("The server [default: http://127.0.0.1:9000]"),
        )
        .args(Access::args())
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FOLDER")
                .required_unless_present("verify")
                .help("Where backups are kept"),
        )
        .arg(Arg::new("verify").long("verify").value_name("FOLDER").conflicts_with_all(["to", "data"]).help(
            "Copies nothing: reads all files that the backups in this folder need, and names those missing or damaged",
        ))
        .arg(json_arg())
}

fn backups_command() -> Command {
    Command::new("backups")
        .about("Lists the backups in a folder")
        .arg(Arg::new("from").value_name("FOLDER").required(true).help("Where backups are kept"))
        .arg(json_arg())
}

fn restore_command() -> Command {
    Command::new("restore")
        .about("Makes a data folder out of a backup")
        .arg(Arg::new("from").long("from").value_name("FOLDER").required(true).help("Where backups are kept"))
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("POINT")
                .help("The name of a backup, the number of a commit, or a time as 2026-01-31T12:00 (UTC) [default: the last backup]"),
        )
        .arg(data_arg().required(true).help("A folder that is empty or not there"))
}

/// Runs one of [`commands`]; `None` when it is not one of them.
#[must_use]
pub fn run(name: &str, matches: &ArgMatches) -> Option<ExitCode> {
    Some(match name {
        "check" => check(matches),
        "repair" => repair(matches),
        "backup" => backup(matches),
        "backups" => backups(matches),
        "restore" => restored(matches),
        _ => return None,
    })
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn folder(matches: &ArgMatches) -> PathBuf {
    PathBuf::from(text(matches, "data").unwrap_or_default())
}

fn check(matches: &ArgMatches) -> ExitCode {
    let data = folder(matches);
    let mut progress = Progress::new("checked");
    let report = match check_folder(&data, &mut |done, total| progress.note(done, total)) {
        Ok(report) => report,
        Err(error) => return fail(IMPOSSIBLE, &format!("could not check {}: {}", data.display(), with_hint(&error))),
    };
    progress.end();
    if matches.get_flag("json") {
        print_out!("{}", json_of_check(&report));
    } else {
        print_check(&report);
    }
    if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PROBLEMS) }
}

fn print_check(report: &CheckReport) {
    for problem in &report.problems {
        print_out!("{}", line_of(problem));
    }
    for orphan in &report.orphans {
        print_out!("note: {orphan} belongs to no table; the next start removes it");
    }
    let CheckReport { tables, segments, rows, commits, .. } = report;
    let found = count_of_problems(report.problems.len());
    print_out!("{found}: {tables} tables, {rows} rows in {segments} segments, {commits} commits in the log");
}

fn count_of_problems(count: usize) -> String {
    match count {
        0 => "no problems".to_owned(),
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    }
}

fn repair(matches: &ArgMatches) -> ExitCode {
    let data = folder(matches);
    let mut progress = Progress::new("verified");
    let is_dry = matches.get_flag("dry-run");
    let report = match repair_folder(&data, is_dry, &mut |done, total| progress.note(done, total)) {
        Ok(report) => report,
        Err(error) => return fail(IMPOSSIBLE, &format!("could not repair {}: {}", data.display(), with_hint(&error))),
    };
    progress.end();
    if matches.get_flag("json") {
        let lost = report.lost.iter().map(|l| {
            serde_json::json!({
                "table": l.table, "partition": l.partition, "from": l.from, "to": l.to, "rows": l.rows, "of": l.of,
            })
        });
        let lost = lost.collect::<Vec<_>>();
        let RepairReport { done, quarantine, .. } = &report;
        print_out!("{}", serde_json::json!({"done": done, "lost": lost, "quarantine": quarantine, "dry_run": is_dry}));
        return ExitCode::SUCCESS;
    }
    report.done.iter().for_each(|line| print_out!("{line}"));
    for Lost { table, partition, from, to, rows, of } in &report.lost {
        let table = if table.is_empty() { String::new() } else { format!("table \"{table}\", ") };
        let partition = if partition.is_empty() { String::new() } else { format!("partition {partition}, ") };
        let times = if from.is_empty() { String::new() } else { format!(" from {from} to {to}") };
        let rows = if *rows == 0 { String::new() } else { format!("{rows} rows{times}, ") };
        print_out!("gone: {table}{partition}{rows}{of}");
    }
    match (&report.quarantine[..], is_dry) {
        ("", _) => print_out!("nothing is damaged"),
        (folder, true) => print_out!("this was a dry run: nothing was changed, nothing is in {folder}"),
        (folder, false) => print_out!("what was damaged is kept in {}", data.join(folder).display()),
    }
    ExitCode::SUCCESS
}

/// A problem in one line.
fn line_of(problem: &Problem) -> String {
    let mut place = Vec::new();
    if !problem.table.is_empty() {
        place.push(format!("table \"{}\"", problem.table));
    }
    if !problem.partition.is_empty() {
        place.push(format!("partition {}", problem.partition));
    }
    if !problem.column.is_empty() {
        place.push(format!("column \"{}\"", problem.column));
    }
    if !problem.file.is_empty() {
        place.push(format!("{} at byte {}", problem.file, problem.offset));
    }
    format!("{}: {}", place.join(", "), problem.problem)
}

fn json_of_check(report: &CheckReport) -> serde_json::Value {
    let problems = report.problems.iter().map(|p| {
        serde_json::json!({
            "table": p.table, "partition": p.partition, "column": p.column,
            "file": p.file, "offset": p.offset, "problem": p.problem,
        })
    });
    serde_json::json!({
        "problems": problems.collect::<Vec<_>>(),
        "orphans": report.orphans,
        "tables": report.tables,
        "segments": report.segments,
        "rows": report.rows,
        "bytes": report.bytes,
        "commits": report.commits,
    })
}

/// Reads and verifies all files of the backups in a folder.
fn verify(matches: &ArgMatches, folder: &str) -> ExitCode {
    let mut progress = Progress::new("verified");
    let opened = destination::open(folder, false);
    let report = opened.and_then(|at| verify_backups(&*at, &mut |done, total| progress.note(done, total)));
    let VerifyReport { backups, files, bytes, problems } = match report {
        Ok(report) => report,
        Err(error) => return fail(IMPOSSIBLE, &format!("could not verify {folder}: {}", with_hint(&error))),
    };
    progress.end();
    if matches.get_flag("json") {
        let answer = serde_json::json!({"backups": backups, "files": files, "bytes": bytes, "problems": problems});
        print_out!("{answer}");
    } else {
        problems.iter().for_each(|problem| print_out!("{problem}"));
        let found = count_of_problems(problems.len());
        print_out!("{found}: {backups} backups of {files} files, {} read", size(bytes));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PROBLEMS) }
}

fn backup(matches: &ArgMatches) -> ExitCode {
    if let Some(folder) = text(matches, "verify") {
        return verify(matches, folder);
    }
    let to = text(matches, "to").unwrap_or_default();
    let done = match text(matches, "data") {
        Some(data) => backup_folder(Path::new(data), to),
        None => backup_server(matches, to),
    };
    match done {
        Ok(line) => {
            print_out!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => fail(PROBLEMS, &message),
    }
}

fn backup_folder(data: &Path, to: &str) -> Result<String, String> {
    let said = |e: Error| with_hint(&e);
    if !data.is_dir() {
        return Err(format!("there is no data folder {}", data.display()));
    }
    let to = match to.contains("://") {
        true => to.to_owned(),
        false => std::path::absolute(to).map_err(|e| format!("{to}: {e}"))?.display().to_string(),
    };
    let config = DatabaseConfig { has_background_jobs: false, ..DatabaseConfig::new(data) };
    let database = Database::open(config).map_err(said)?;
    let mut progress = Progress::new("copied");
    let report = database.backup(&to, &mut |done, total| progress.note(done, total)).map_err(said)?;
    progress.end();
    database.close().map_err(said)?;
    Ok(format!(
        "{}: {} files of {} copied, {} of {} shared with earlier backups",
        report.name,
        report.files_copied,
        size(report.bytes_copied),
        report.files_shared,
        size(report.bytes_shared)
    ))
}

fn backup_server(matches: &ArgMatches, to: &str) -> Result<String, String> {
    let url = text(matches, "url").unwrap_or("http://127.0.0.1:9000");
    let target = Target::connect(url, Access::of(matches))?;
    let answer = target.ask(&format!("BACKUP DATABASE TO '{}'", to.replace('\'', "''")))?;
    let Answer::Rows { rows, .. } = answer else { return Err("the server did not say what it did".to_owned()) };
    let cell = |i: usize| rows.first().and_then(|r| r.get(i)).map_or("", |c| c.get()).trim_matches('"').to_owned();
    let bytes = |i: usize| size(cell(i).parse().unwrap_or(0));
    Ok(format!(
        "{}: {} files of {} copied, {} of {} shared with earlier backups",
        cell(0),
        cell(2),
        bytes(3),
        cell(4),
        bytes(5)
    ))
}

fn backups(matches: &ArgMatches) -> ExitCode {
    let from = text(matches, "from").unwrap_or_default();
    let all = destination::open(from, false).and_then(|from| tidalite::backup::backups(&*from));
    let all = match all {
        Ok(all) => all,
        Err(error) => return fail(IMPOSSIBLE, &with_hint(&error)),
    };
    if matches.get_flag("json") {
        let all = all.iter().map(|b| {
            serde_json::json!({
                "name": b.name, "database": b.database, "txn": b.txn.0,
                "time": time::format_timestamp(b.time, TimeUnit::Micros),
                "tables": b.tables, "rows": b.rows, "bytes": b.bytes(), "log_from": b.log_from().map(|t| t.0),
            })
        });
        print_out!("{}", serde_json::Value::Array(all.collect()));
        return ExitCode::SUCCESS;
    }
    for b in &all {
        let log = b.log_from().map_or_else(String::new, |txn| format!(", each commit from {txn} on"));
        print_out!("{}  commit {}{log}, {} tables, {} rows, {}", b.name, b.txn, b.tables, b.rows, size(b.bytes()));
    }
    ExitCode::SUCCESS
}

fn restored(matches: &ArgMatches) -> ExitCode {
    let (from, data) = (text(matches, "from").unwrap_or_default(), folder(matches));
    let at = match text(matches, "at").map(point).transpose() {
        Ok(at) => at.unwrap_or_default(),
        Err(message) => return fail(IMPOSSIBLE, &message),
    };
    let mut progress = Progress::new("restored");
    match restore(from, &at, &data, &mut |done, total| progress.note(done, total)) {
        Ok(report) => {
            progress.end();
            let size = size(report.bytes);
            print_out!(
                "{} as of commit {} out of backup {}: {size} in {} files",
                data.display(),
                report.txn,
                report.backup,
                report.files
            );
            ExitCode::SUCCESS
        }
        Err(error) => fail(PROBLEMS, &with_hint(&error)),
    }
}

/// What `--at` means: all digits are a commit, a backup has a dash behind digits and a Z at the end, else a time.
fn point(text: &str) -> Result<At, String> {
    if let Ok(txn) = text.parse() {
        return Ok(At::Txn(txn));
    }
    let is_name = text.len() > 13 && text.as_bytes()[12] == b'-' && text[..12].bytes().all(|b| b.is_ascii_digit());
    if is_name {
        return Ok(At::Backup(text.to_owned()));
    }
    time_of(text).map(At::Time).ok_or_else(|| {
        format!("--at is {text:?}: neither a backup, nor the number of a commit, nor a time as 2026-01-31T12:00:00")
    })
}

/// Microseconds of a time in UTC, of which parts at the end may be missing: then its last moment is meant.
fn time_of(text: &str) -> Option<i64> {
    let text = text.trim_end_matches('Z');
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "23:59:59.999999"));
    let mut date = date.splitn(3, '-').map(str::parse::<u32>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "999999"));
    let mut parts = clock.split(':').map(str::parse::<i64>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().transpose().ok()?.unwrap_or(59);
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    if !(1..=12).contains(&month)
        || !(1..=time::days_in_month(i64::from(year), month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let seconds = time::days_from_civil(i64::from(year), month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// One line on a terminal that is written over.
struct Progress {
    what: &'static str,
    started: Instant,
    last: Instant,
    is_shown: bool,
}

impl Progress {
    fn new(what: &'static str) -> Progress {
        let now = Instant::now();
        Progress { what, started: now, last: now, is_shown: std::io::stderr().is_terminal() }
    }

    fn note(&mut self, done: u64, total: u64) -> Result<(), Error> {
        if self.is_shown && self.last.elapsed() >= PROGRESS {
            self.last = Instant::now();
            let rate = size((done as f64 / self.started.elapsed().as_secs_f64()) as u64);
            let line = format!("\r{} {} of {}, {rate}/s   ", self.what, size(done), size(total));
            // A failure to print progress does not stop the command.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        }
        Ok(())
    }

    fn end(&self) {
        if self.is_shown && self.last > self.started {
            print_err!("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_backups_commits_or_times() {
        assert_eq!(point("12"), Ok(At::Txn(12)));
        let name = "000000000012-20261122T010203.123456Z";
        assert_eq!(point(name), Ok(At::Backup(name.to_owned())));
        // 2026-01-31 is day 20,484 since 1970.
        assert_eq!(point("2026-01-31T00:00:00.000000Z"), Ok(At::Time(20_484 * 86_400_000_000)));
        assert_eq!(point("2026-01-31"), Ok(At::Time(20_485 * 86_400_000_000 - 1)));
        assert_eq!(point("2026-01-31 12:30"), Ok(At::Time((20_484 * 86_400 + 12 * 3_600 + 31 * 60) * 1_000_000 - 1)));
        assert!(point("yesterday").is_err());
        assert!(point("2026-13-01").is_err());
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!((size(0), size(1023), size(1536)), ("0 B".to_owned(), "1023 B".to_owned(), "1.5 KiB".to_owned()));
    }
}
