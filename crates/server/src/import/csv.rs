//! CSV into a folder, parsed here, or to a server ([`upload`]).

use super::Asked;
use super::place::Place;
use super::report::{Done, Rejects, Report};
use super::source::{Reader, Source, sample};
use super::upload::upload;
use crate::errors::with_hint;
use crate::shell::target::Target;
use futures::FutureExt;
use futures::executor::block_on;
use std::io::{Cursor, Read};
use tidalite::import::{Bad, CsvPlan, Progress, SAMPLE_BYTES, import_csv};
use tidalite::types::{Command, TableSchema};
use tidalite::{Database, Error};

pub fn import(
    source: &Source,
    asked: &Asked,
    place: &Place,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Done, String> {
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
        let is_there = matches!(place.target(), Some(Target::Server(_))) && place.has(&table)?;
        let plan = if is_there { into(&table) } else { statement(&plan, schema.as_deref()) };
        return Ok(Done { plan: Some(plan), ..Done::default() });
    }
    let text: Reader = Box::new(Cursor::new(head[plan.skipped_bytes..].to_vec()).chain(reader));
    let done = match place.target() {
        Some(Target::Folder { database, .. }) => here(database, &plan, text, asked, rejects, report),
        Some(Target::Server(server)) => {
            let mark = plan.skipped_bytes - plan.detected.header_bytes;
            upload(server.clone(), &plan, &head[mark..plan.skipped_bytes], text, asked, rejects, report)
        }
        None => Err("there is no data folder".to_owned()),
    };
    rejects.flush()?;
    let Progress { rows, bad, nulled, bytes } = done?;
    Ok(Done { tables: vec![plan.table], rows, bad, nulled, bytes, plan: None })
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
    text: Reader,
    asked: &Asked,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Progress, String> {
    // Made when the first rows come, so that nothing is when the first record is bad.
    let mut create = plan.create.clone();
    let mut make = || create.take().map_or(Ok(()), |c| block_on(database.command(Command::CreateTable(c))).map(|_| ()));
    let commit = |batch| match make() {
        Ok(()) => database.commit(vec![batch]).map(|done| done.map(|_| ())).boxed(),
        Err(error) => futures::future::ready(Err(error)).boxed(),
    };
    let told = |bad: Option<&Bad>, progress: Progress| {
        report.progress(progress.rows, progress.bad);
        match bad {
            Some(bad) => rejects.add(bad).map_err(|e| Error::new(tidalite::ErrorKind::Unavailable, e)),
            None => Ok(()),
        }
    };
    let done = import_csv(plan, text, asked.threads, asked.on_bad, commit, told).map_err(|e| with_hint(&e))?;
    make().map_err(|e| with_hint(&e))?;
    Ok(done)
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
