//! `tidalite import`: files, standard input and URLs into a folder or a server.
//!
//! Reading order: this file the command; [`args`] arguments, [`format`] file formats; [`source`] bytes of files,
//! standard input and URLs; [`csv`] CSV, [`upload`] CSV to a server; [`lines`] line protocol; [`parquet`]; [`place`]
//! the destination; [`report`] progress and results.
//!
//! Exit codes: 0 all rows are durable, 1 it failed, or records were left out or values became NULL by `--on-error`, 2
//! asked for wrongly.

mod args;
mod csv;
mod format;
mod lines;
mod parquet;
mod place;
mod report;
mod source;
mod upload;

use crate::process::fail;
use crate::shell::target::Access;
use args::ImportArgs;
use clap::{Arg, ArgAction, ArgMatches, Command};
use format::Format;
use place::Place;
use report::{Rejects, Report};
use source::Source;
use std::process::ExitCode;
use tidalite::import::OPTIONS;

const EXAMPLES: &str = "\
Examples:
  tidalite import trades.csv --data ./tidalite-data             into table trades of a folder
  tidalite import trades.csv --server http://127.0.0.1:9000     of a running server
  tidalite import trades.csv --data ./d --dry-run               what would be done
  tidalite import t.csv --data ./d --columns 'ts TIMESTAMP, price DOUBLE' --timestamp ts --partition-by DAY
  tidalite import old.csv.gz --data ./d --on-error skip --rejects bad.csv
  tidalite import eu.csv --data ./d --date-order dmy --decimal , --encoding latin1
  tidalite import bars.txt --data ./d --columns \"ts TIMESTAMP 'yyyyMMdd HHmmss', open DOUBLE\" --header no
  tidalite import metrics.lp.gz --data ./d                      line protocol
  tidalite import year.parquet --data ./d --timestamp ts

Every commit is synced before it is counted. A table that does not exist is created by what the first records show.
Exit codes: 0 all rows are in, 1 it failed, or records were left out or values became NULL, 2 asked for wrongly.";

fn arg(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

#[must_use]
pub fn command() -> Command {
    Command::new("import")
        .about("Loads CSV, Parquet or line protocol into a data folder or a running server")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .num_args(1..)
                .required(true)
                .help("Files, http(s):// URLs, or - for standard input; gzip and zstd are decompressed"),
        )
        .arg(
            arg("data", "DIR", "Into this data folder, which no server may run on; created when absent")
                .conflicts_with("server"),
        )
        .arg(
            arg("server", "URL", "Into this server [default: http://127.0.0.1:9000]")
                .visible_alias("url")
                .env("TIDALITE_URL"),
        )
        .args(Access::args())
        .arg(arg("table", "NAME", "The table [default: the name of the file]"))
        .arg(
            arg("format", "FORMAT", "What the files are [default: by their names]")
                .value_parser(["csv", "parquet", "lines"]),
        )
        .args(OPTIONS.iter().filter(|o| o.name != "detect").map(|o| arg(o.flag, o.value, o.help)))
        .arg(arg(
            "rejects",
            "FILE",
            "Where records left out are written, each after a line that says where it was and why; overwritten",
        ))
        .arg(arg("precision", "UNIT", "Of the timestamps of line protocol: ns, us, ms, s").default_value("ns"))
        .arg(arg("threads", "N", "Threads that parse [default: all cores]").value_parser(clap::value_parser!(usize)))
        .arg(
            Arg::new("seal")
                .long("seal")
                .action(ArgAction::SetTrue)
                .help("Afterwards writes the table again for size, as a server does when it is quiet"),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only says what the table would be, and why"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Reports as one JSON object a file"))
        .arg(Arg::new("quiet").long("quiet").short('q').action(ArgAction::SetTrue).help("Shows no progress"))
}

#[must_use]
pub fn run(matches: &ArgMatches) -> ExitCode {
    let asked = match ImportArgs::new(matches) {
        Ok(asked) => asked,
        Err(message) => return fail(2, &message),
    };
    match import_all(matches, &asked) {
        Ok((0, 0)) => ExitCode::SUCCESS,
        Ok((bad, 0)) => fail(1, &format!("{bad} records were left out")),
        Ok((0, nulled)) => fail(1, &format!("{nulled} values became NULL")),
        Ok((bad, nulled)) => fail(1, &format!("{bad} records were left out, {nulled} values became NULL")),
        Err(message) => fail(1, &message),
    }
}

/// How many records were left out, how many values became NULL.
fn import_all(matches: &ArgMatches, asked: &ImportArgs) -> Result<(u64, u64), String> {
    let files: Vec<&String> = matches.get_many("files").into_iter().flatten().collect();
    let place = Place::open(matches, asked.is_dry_run)?;
    let mut report = Report::new(matches);
    let mut rejects = Rejects::new(asked.rejects.as_deref().filter(|_| !asked.is_dry_run))?;
    let (mut bad, mut nulled, mut tables) = (0, 0, Vec::new());
    for file in files {
        let source = Source::named(file, asked)?;
        asked.check(source.format)?;
        report.begin(&source);
        let done = match source.format {
            Format::Csv => csv::import(&source, asked, &place, &mut rejects, &report),
            Format::Lines => lines::import(&source, asked, &place, &report),
            Format::Parquet => parquet::import(&source, asked, &place),
        };
        let done = done.map_err(|e| format!("{file}: {e}"))?;
        report.end(&done);
        bad += done.bad;
        nulled += done.nulled;
        tables.extend(done.tables);
    }
    if matches.get_flag("seal") && !asked.is_dry_run {
        tables.sort();
        tables.dedup();
        tables.iter().try_for_each(|table| place.seal(table))?;
    }
    place.close()?;
    Ok((bad, nulled))
}
