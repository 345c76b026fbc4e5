//! CSV into a folder, parsed here, or to a server, in pieces that it parses.

use super::Asked;
use super::place::Place;
use super::report::{Done, Rejects, Report};
use super::source::{Reader, Source, sample};
use crate::errors::with_hint;
use crate::http::imports::Answer;
use crate::shell::target::Target;
use futures::FutureExt;
use futures::executor::block_on;
use std::io::{Cursor, Read};
use tidalite::import::{Bad, CsvPlan, OnBad, Progress, SAMPLE_BYTES, Splitter, import_csv};
use tidalite::types::{Command, TableSchema};
use tidalite::{Database, Error};

/// Text that a server gets at a time.
const POST_BYTES: usize = 8 << 20;

pub fn import(source: &Source, asked: &Asked, place: &Place, report: &mut Report) -> Result<Done, String> {
    let table = source.table(asked)?;
    let mut reader = source.open()?;
    let (head, is_whole) = sample(&mut reader, SAMPLE_BYTES)?;
    let schema = match place.target() {
        Some(Target::Folder { database, .. }) => database.table(&table),
        _ => None,
    };
    let plan = CsvPlan::new(&head, is_whole, &table, schema.as_deref(), asked.known.clone(), asked.partition_by);
    let plan = plan.map_err(|e| placed(&e))?;
    if asked.is_dry_run {
        let is_there = matches!(place.target(), Some(Target::Server { .. })) && place.has(&table)?;
        let plan = if is_there { into(&table) } else { statement(&plan, schema.as_deref()) };
        return Ok(Done { plan: Some(plan), ..Done::default() });
    }
    let mut text: Reader = Box::new(Cursor::new(head[plan.skipped_bytes..].to_vec()).chain(reader));
    let mut rejects = Rejects::new(asked.rejects.as_deref())?;
    let done = match place.target() {
        Some(Target::Folder { database, .. }) => here(database, &plan, text, asked, &mut rejects, report),
        Some(server) => {
            let mark = plan.skipped_bytes - plan.detected.header_bytes;
            there(server, &plan, &head[mark..plan.skipped_bytes], &mut text, asked, &mut rejects, report)
        }
        None => Err("there is no data folder".to_owned()),
    };
    rejects.finish()?;
    let Progress { rows, bad, bytes } = done?;
    Ok(Done { tables: vec![plan.table], rows, bad, bytes, plan: None })
}

fn placed(error: &Error) -> String {
    match error.line {
        Some(line) => format!("line {line}: {}", with_hint(error)),
        None => with_hint(error),
    }
}

fn here(
    database: &Database,
    plan: &CsvPlan,
    mut text: Reader,
    asked: &Asked,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Progress, String> {
    if let Some(create) = &plan.create {
        block_on(database.command(Command::CreateTable(create.clone()))).map_err(|e| with_hint(&e))?;
    }
    let commit = |batch| database.commit(vec![batch]).map(|done| done.map(|_| ())).boxed();
    let told = |bad: Option<&Bad>, progress: Progress| {
        report.progress(progress.rows, progress.bad);
        match bad {
            Some(bad) => rejects.add(bad).map_err(|e| Error::new(tidalite::ErrorKind::Unavailable, e)),
            None => Ok(()),
        }
    };
    import_csv(plan, &mut *text, asked.threads, asked.on_bad, commit, told).map_err(|e| with_hint(&e))
}

fn into(table: &str) -> String {
    format!("into table \"{table}\", which is there")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What would be asked to make the table.
fn statement(plan: &CsvPlan, schema: Option<&TableSchema>) -> String {
    let Some(create) = &plan.create else {
        let has = |name: &str| schema.is_some_and(|s| s.column(name).is_some());
        let new: Vec<&str> = plan.detected.columns.iter().map(|c| c.name.as_str()).filter(|n| !has(n)).collect();
        let more = if new.is_empty() { String::new() } else { format!("; new columns: {}", new.join(", ")) };
        return into(&plan.table) + &more;
    };
    let columns: Vec<String> = create.columns.iter().map(|(n, t)| format!("  {} {t}", quoted(n))).collect();
    let timestamp = create.designated.as_ref();
    let timestamp = timestamp.map(|n| format!(" TIMESTAMP({}) PARTITION BY {}", quoted(n), create.partition_by));
    format!("CREATE TABLE {} (\n{}\n){};", quoted(&plan.table), columns.join(",\n"), timestamp.unwrap_or_default())
}

/// Every piece carries the names: the first makes the table, the others find it.
fn there(
    server: &Target,
    plan: &CsvPlan,
    names: &[u8],
    text: &mut Reader,
    asked: &Asked,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Progress, String> {
    let mut progress = Progress::default();
    let mut splitter = Splitter::new(&plan.detected.format);
    let path = path_of(plan, asked);
    let mut held = Vec::with_capacity(2 * POST_BYTES);
    // Lines of the file before those of the piece.
    let mut before = 0;
    loop {
        let wanted = POST_BYTES as u64;
        let read = text.take(wanted).read_to_end(&mut held).map_err(|e| format!("could not be read: {e}"))?;
        let is_end = (read as u64) < wanted;
        let whole = if is_end { held.len() } else { splitter.split(&held) };
        if whole > 0 {
            let body = [names, &held[..whole]].concat();
            let reply = server.post(&path, "text/csv", &body)?;
            let answer: Answer = serde_json::from_str(&reply).map_err(|_| reply.trim().to_owned())?;
            if answer.status != "OK" {
                let line = answer.line.map_or(String::new(), |line| format!("line {}: ", line + before));
                return Err(format!("{line}{}; {} rows of it are in the table", answer.status, progress.rows));
            }
            for bad in &answer.rejected {
                rejects.write(
                    bad.line + before,
                    bad.position,
                    bad.column.as_deref(),
                    &bad.reason,
                    bad.record.as_bytes(),
                )?;
            }
            progress.bad += answer.rows_rejected;
            progress.rows += answer.rows_imported;
            progress.bytes += whole as u64;
            before += memchr::memchr_iter(b'\n', &held[..whole]).count() as u64;
            report.progress(progress.rows, progress.bad);
            held.drain(..whole);
        }
        if is_end {
            return Ok(progress);
        }
    }
}

fn path_of(plan: &CsvPlan, asked: &Asked) -> String {
    let known = &asked.known;
    let columns: Vec<String> = known.columns.iter().map(|(n, t)| format!("\"{n}\" {t}")).collect();
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let given = [
        ("fmt", Some("json".to_owned())),
        ("name", Some(plan.table.clone())),
        ("delimiter", Some(char::from(plan.detected.format.delimiter).to_string())),
        ("header", Some(yes(plan.detected.header_bytes > 0))),
        ("columns", Some(columns.join(", ")).filter(|c| !c.is_empty())),
        ("timestamp", known.timestamp.clone()),
        ("partitionBy", asked.partition_by.map(|p| p.to_string())),
        ("null", Some(known.null.clone()).filter(|n| !n.is_empty())),
        ("atomicity", Some(if asked.on_bad == OnBad::Skip { "skipRow" } else { "abort" }.to_owned())),
    ];
    let one = |(name, value): (&str, Option<String>)| Some(format!("{name}={}", encoded(&value?)));
    let all: Vec<String> = given.into_iter().filter_map(one).collect();
    format!("/imp?{}", all.join("&"))
}

/// For a URL.
fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
