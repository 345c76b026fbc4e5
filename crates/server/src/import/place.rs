//! Where rows go: a folder opened here, or a server.

use crate::shell::target::{Access, Answer, Target};
use clap::ArgMatches;
use serde_json::value::RawValue;
use std::path::Path;
use tidalite::types::schema::same_name;

/// Where a server is when nobody says.
const SERVER: &str = "http://127.0.0.1:9000";

/// Nothing for a dry run into a folder that is not there yet.
pub struct Place(Option<Target>);

impl Place {
    pub fn open(matches: &ArgMatches, is_dry_run: bool) -> Result<Place, String> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let target = match text("data") {
            Some(data) => {
                if is_dry_run && !Path::new(data).exists() {
                    return Ok(Place(None));
                }
                std::fs::create_dir_all(data).map_err(|e| format!("could not create {data}: {e}"))?;
                Target::open(Path::new(data))
            }
            None => Target::connect(text("server").unwrap_or(SERVER), Access::of(matches)),
        };
        target.map(|target| Place(Some(target)))
    }

    pub fn target(&self) -> Option<&Target> {
        self.0.as_ref()
    }

    pub fn ask(&self, sql: &str) -> Result<Answer, String> {
        self.0.as_ref().ok_or_else(|| "there is no data folder".to_owned())?.ask(sql)
    }

    /// Whether there is a table of the name.
    pub fn has(&self, table: &str) -> Result<bool, String> {
        let Answer::Rows { rows, .. } = self.ask("show tables")? else { return Ok(false) };
        let name = |row: &Vec<Box<RawValue>>| serde_json::from_str::<String>(row.first()?.get()).ok();
        Ok(rows.iter().filter_map(name).any(|found| same_name(&found, table)))
    }

    pub fn seal(&self, table: &str) -> Result<(), String> {
        self.ask(&format!("alter table \"{}\" seal", table.replace('"', "\"\""))).map(|_| ())
    }

    pub fn close(self) -> Result<(), String> {
        self.0.map_or(Ok(()), Target::close)
    }
}
