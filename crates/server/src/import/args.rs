//! Arguments of `tidalite import`.

use super::format::Format;
use clap::ArgMatches;
use clap::parser::ValueSource;
use tidalite::import::{ImportOption, ImportOptions, OPTIONS};

/// Arguments that apply to every file.
pub struct ImportArgs {
    pub table: Option<String>,
    pub format: Option<Format>,
    pub options: ImportOptions,
    /// Flags of `options` on the command line.
    pub given: Vec<&'static str>,
    pub rejects: Option<String>,
    pub threads: usize,
    pub is_dry_run: bool,
    pub precision: Option<String>,
}

impl ImportArgs {
    pub fn new(matches: &ArgMatches) -> Result<ImportArgs, String> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let mut options = ImportOptions::default();
        let mut given = Vec::new();
        let is_given = |o: &&ImportOption| {
            o.name != "detect" && matches.value_source(o.flag).is_some_and(|source| source != ValueSource::DefaultValue)
        };
        for option in OPTIONS.iter().filter(is_given) {
            let value = text(option.flag).unwrap_or_default();
            option.set(&mut options, &value).map_err(|e| format!("--{}: {e}", option.flag))?;
            given.push(option.flag);
        }
        Ok(ImportArgs {
            table: text("table"),
            format: text("format").map(|f| Format::from_word(&f)),
            options,
            given,
            rejects: text("rejects"),
            threads: matches
                .get_one::<usize>("threads")
                .copied()
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)),
            is_dry_run: matches.get_flag("dry-run"),
            precision: text("precision"),
        })
    }

    /// # Errors
    /// A flag does not apply to files of this format.
    pub fn check(&self, format: Format) -> Result<(), String> {
        let (known, what): (&[&str], &str) = match format {
            Format::Csv => return Ok(()),
            Format::Lines => (&[], "line protocol"),
            Format::Parquet => (&["columns", "timestamp", "partition-by"], "Parquet"),
        };
        match self.given.iter().find(|flag| !known.contains(flag)) {
            Some(flag) => Err(format!("--{flag} has no meaning for {what}")),
            None => Ok(()),
        }
    }
}
