//! CSV into a folder, parsed here, or to a server ([`upload`]).

use super::args::ImportArgs;
use super::place::Place;
use super::report::{Done, Rejects, Report};
use super::source::{Reader, Source};
use super::upload::{dry_run, upload};
use crate::errors::with_hint;
use crate::shell::target::Target;
use futures::FutureExt;
use futures::executor::block_on;
use tidalite::import::{Bad, CsvPlan, Progress, Text, findings, import_csv};
use tidalite::types::Command;
use tidalite::{Database, Error};

pub fn import(
    source: &Source,
    asked: &ImportArgs,
    place: &Place,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Done, String> {
    let table = source.table(asked)?;
    let mut text = Text::open(source.open_raw()?, &asked.options.text).map_err(|e| placed(&e))?;
    let schema = match place.target() {
        Some(Target::Folder { database, .. }) => database.table(&table),
        _ => None,
    };
    let plan = asked.options.plan(&mut text, &table, schema.as_deref()).map_err(|e| placed(&e))?;
    if asked.is_dry_run {
        let (found, statement) = match place.target() {
            // The server knows the table.
            Some(Target::Server(server)) => dry_run(server, &plan, &text, asked)?,
            _ => (findings(&plan), plan.statement(schema.as_deref())),
        };
        return Ok(Done { plan: Some(statement), found, ..Done::default() });
    }
    if !plan.has_rows(&text) {
        return Ok(Done::default());
    }
    let names = plan.names(&text.head).to_vec();
    let text = text.into_reader(plan.skipped_bytes);
    let done = match place.target() {
        Some(Target::Folder { database, .. }) => here(database, &plan, text, asked, rejects, report),
        Some(Target::Server(server)) => upload(server.clone(), &plan, &names, text, asked, rejects, report),
        None => Err("there is no data folder".to_owned()),
    };
    rejects.flush()?;
    let Progress { rows, bad, nulled, bytes } = done?;
    Ok(Done { tables: vec![plan.table], rows, bad, nulled, bytes, ..Done::default() })
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
    asked: &ImportArgs,
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
    import_csv(plan, text, asked.threads, plan.on_bad, commit, told).map_err(|e| with_hint(&e))
}
