//! `tidalite import`: files, standard input and URLs into a folder or a server.
//!
//! Reading order: this file what was asked for; [`source`] bytes from wherever they are; [`csv`] CSV, [`upload`] that to a
//! server; [`lines`] line protocol; [`parquet`]; [`place`] where rows go; [`report`] what is shown.
//!
//! Exit codes: 0 all rows are durable, 1 it failed, or records were left out or values became NULL by `--on-error`, 2
//! asked for wrongly.

mod csv;
mod lines;
mod parquet;
mod place;
mod report;
mod source;
mod upload;

use crate::cli::fail;
use crate::shell::target::Access;
use clap::{Arg, ArgAction, ArgMatches, Command};
use place::Place;
use report::{Rejects, Report};
use source::{Format, Source};
use std::process::ExitCode;
use tidalite::import::{Known, OnBad};
use tidalite::types::{ColumnType, PartitionBy};

const EXAMPLES: &str = "\
Examples:
  tidalite import trades.csv --data ./tidalite-data             into table trades of a folder
  tidalite import trades.csv --server http://127.0.0.1:9000     of a running server
  tidalite import trades.csv --data ./d --dry-run               what would be done
  tidalite import t.csv --data ./d --columns 'ts TIMESTAMP, price DOUBLE' --timestamp ts --partition-by DAY
  zcat old.csv.gz | tidalite import - --table old --data ./d --on-error skip --rejects bad.csv
  tidalite import metrics.lp.gz --data ./d                      line protocol
  tidalite import year.parquet --data ./d --timestamp ts

Every commit is synced before it is counted. A table that does not exist is created by what the first records show.
Exit codes: 0 all rows are in, 1 it failed, or records were left out or values became NULL, 2 asked for wrongly.";

/// What was asked for, of every file.
pub struct Asked {
    pub table: Option<String>,
    pub format: Option<Format>,
    pub known: Known,
    pub partition_by: Option<PartitionBy>,
    pub on_bad: OnBad,
    pub rejects: Option<String>,
    pub threads: usize,
    pub is_dry_run: bool,
    pub precision: Option<String>,
}

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
                .help("Files, http(s):// URLs, or - for standard input; .gz is decompressed"),
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
        .arg(arg("columns", "LIST", "Types of columns, as 'ts TIMESTAMP, price DOUBLE'; without a header their names"))
        .arg(arg("timestamp", "COLUMN", "The designated timestamp of a new table [default: the likeliest column]"))
        .arg(arg("partition-by", "UNIT", "NONE, HOUR, DAY, WEEK, MONTH or YEAR, of a new table [default: by the rows]"))
        .arg(arg("delimiter", "CHAR", "Between fields of CSV [default: found out of , tab ; |]"))
        .arg(
            arg("header", "WHETHER", "Whether the first record of CSV has the names")
                .value_parser(["auto", "yes", "no"])
                .default_value("auto"),
        )
        .arg(arg("null", "TEXT", "A text without quotes that stands for NULL, beside the empty one"))
        .arg(
            arg("on-error", "WHAT", "At a record that is no row: end, leave it out, or make NULL of its bad values")
                .value_parser(["abort", "skip", "null"])
                .default_value("abort"),
        )
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
        .arg(Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Only says what the table would be"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Reports as one JSON object a file"))
        .arg(Arg::new("quiet").long("quiet").short('q').action(ArgAction::SetTrue).help("Shows no progress"))
}

#[must_use]
pub fn run(matches: &ArgMatches) -> ExitCode {
    let asked = match Asked::of(matches) {
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
fn import_all(matches: &ArgMatches, asked: &Asked) -> Result<(u64, u64), String> {
    let files: Vec<&String> = matches.get_many("files").into_iter().flatten().collect();
    let place = Place::open(matches, asked.is_dry_run)?;
    let mut report = Report::new(matches);
    let mut rejects = Rejects::new(asked.rejects.as_deref().filter(|_| !asked.is_dry_run))?;
    let (mut bad, mut nulled, mut tables) = (0, 0, Vec::new());
    for file in files {
        let source = Source::named(file, asked)?;
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

impl Asked {
    fn of(matches: &ArgMatches) -> Result<Asked, String> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let partition_by = match text("partition-by") {
            None => None,
            Some(unit) => Some(PartitionBy::from_sql_name(&unit).ok_or_else(|| {
                format!("--partition-by is {unit:?}; it can be NONE, HOUR, DAY, WEEK, MONTH or YEAR")
            })?),
        };
        let known = Known {
            delimiter: text("delimiter").map(|d| delimiter(&d)).transpose()?,
            has_header: match text("header").as_deref() {
                Some("yes") => Some(true),
                Some("no") => Some(false),
                _ => None,
            },
            null: text("null").unwrap_or_default(),
            columns: columns(&text("columns").unwrap_or_default()).map_err(|e| format!("--columns: {e}"))?,
            table: None,
            timestamp: text("timestamp"),
        };
        Ok(Asked {
            table: text("table"),
            format: text("format").map(|f| Format::of_word(&f)),
            known,
            partition_by,
            on_bad: match text("on-error").as_deref() {
                Some("skip") => OnBad::Skip,
                Some("null") => OnBad::Null,
                _ => OnBad::Abort,
            },
            rejects: text("rejects"),
            threads: matches
                .get_one::<usize>("threads")
                .copied()
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)),
            is_dry_run: matches.get_flag("dry-run"),
            precision: text("precision"),
        })
    }
}

/// One ASCII character, or how it is written in a shell.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        text if text.len() == 1 => Ok(text.as_bytes()[0]),
        text => Err(format!("{text:?} is no delimiter: one ASCII character is")),
    }
}

/// `ts TIMESTAMP, "a b" DECIMAL(10,2)`
pub fn columns(text: &str) -> Result<Vec<(String, ColumnType)>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is not closed")?,
            None => rest.split_once(char::is_whitespace).ok_or_else(|| format!("{rest:?} has no type"))?,
        };
        // A comma in parentheses belongs to the type.
        let mut depth = 0;
        let end = behind.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '(') - i32::from(*c == ')');
            *c == ',' && depth == 0
        });
        let (type_name, next) = end.map_or((behind, ""), |(at, _)| (&behind[..at], &behind[at + 1..]));
        let column_type = column_type(type_name.trim())?;
        out.push((name.to_owned(), column_type));
        rest = next.trim();
    }
    Ok(out)
}

/// A type as SQL names it.
pub fn column_type(name: &str) -> Result<ColumnType, String> {
    if let Some(found) = ColumnType::from_sql_name(name) {
        return Ok(found);
    }
    let unknown = || format!("{name:?} is no type");
    let upper = name.to_ascii_uppercase();
    let (word, inside) = upper.strip_suffix(')').and_then(|n| n.split_once('(')).ok_or_else(unknown)?;
    if !matches!(word.trim(), "DECIMAL" | "NUMERIC") {
        return Err(unknown());
    }
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let number = |text: &str| text.trim().parse::<u8>().map_err(|_| unknown());
    match (number(precision)?, number(scale)?) {
        (precision @ 1..=38, scale) if scale <= precision => Ok(ColumnType::Decimal { precision, scale }),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::types::TimeUnit;

    #[test]
    fn lists_of_columns_are_read() {
        let found = columns("ts TIMESTAMP_NS, \"a b\" decimal(10, 2),s symbol").unwrap();
        let expected = [
            ("ts".to_owned(), ColumnType::Timestamp(TimeUnit::Nanos)),
            ("a b".to_owned(), ColumnType::Decimal { precision: 10, scale: 2 }),
            ("s".to_owned(), ColumnType::Symbol),
        ];
        assert_eq!(found, expected);
        assert_eq!(columns("ts").unwrap_err(), "\"ts\" has no type");
        assert_eq!(columns("ts NOSUCH").unwrap_err(), "\"NOSUCH\" is no type");
        assert!(columns("d decimal(40,2)").is_err() && columns("\"d INT").is_err());
        assert_eq!((delimiter("\\t"), delimiter(";")), (Ok(b'\t'), Ok(b';')));
        assert!(delimiter("ab").is_err());
    }
}
