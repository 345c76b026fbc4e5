//! Statements about the session itself: transactions, settings, what is prepared.

use super::command::{Command, boolean};
use super::isolation::{Level, Modes};
use super::reply::Report;
use super::session::{IDLE, Session, Step};
use super::types::{Column, text_column};

impl Session<'_> {
    /// `is_described` when columns are to be announced.
    pub(super) async fn command(&mut self, command: &Command, is_described: bool) -> Step {
        if !command.ends_transaction() {
            self.check_transaction()?;
        }
        let tag = match command {
            Command::Begin { modes, tag } => {
                self.begin(*modes)?;
                tag
            }
            Command::Commit { chains } => self.commit(*chains).await?,
            Command::Rollback { chains } => self.roll_back(*chains)?,
            Command::Savepoint(name) => self.savepoint(name)?,
            Command::Release(name) => self.release(name)?,
            Command::RollbackTo(name) => self.roll_back_to(name)?,
            Command::SetTransaction(modes) => {
                self.set_transaction(*modes)?;
                "SET"
            }
            Command::SetCharacteristics(modes) => {
                if let Some(level) = modes.level {
                    self.set("default_transaction_isolation", Some(level.name))?;
                }
                if let Some(is_read_only) = modes.is_read_only {
                    self.set("default_transaction_read_only", Some(if is_read_only { "on" } else { "off" }))?;
                }
                "SET"
            }
            Command::Set { name, value, is_local } => {
                if !is_local || self.note_local(name) {
                    self.set(name, value.as_deref())?;
                }
                "SET"
            }
            Command::Reset(name) => {
                self.set(name, None)?;
                "RESET"
            }
            Command::ResetAll => {
                self.reset();
                "RESET"
            }
            Command::Show(name) => {
                let unknown = || Report::error("42704", format!("unrecognized configuration parameter \"{name}\""));
                let value = self.transaction_setting(name).or_else(|| self.variables.get(name).map(|(_, value)| value));
                let value = value.ok_or_else(unknown)?;
                self.show(command, is_described, &[vec![value]]);
                "SHOW"
            }
            Command::ShowAll => {
                let value = |name: &str, value| self.transaction_setting(name).unwrap_or(value);
                let all = self.variables.all().map(|(name, set, _)| vec![name.to_owned(), value(name, set)]);
                let rows: Vec<_> = all.collect();
                self.show(command, is_described, &rows);
                "SHOW"
            }
            Command::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Command::Deallocate(Some(name)) => {
                self.prepared(name)?;
                self.statements.remove(name);
                "DEALLOCATE"
            }
            Command::DiscardAll if self.transaction != IDLE => {
                return Err(Report::error("25001", "DISCARD ALL cannot run inside a transaction block").into());
            }
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.cursors.clear();
                self.reset();
                "DISCARD ALL"
            }
            Command::Nothing(tag) => *tag,
            Command::Refused(message, hint) => return Err(Report::error("0A000", *message).with_hint(*hint).into()),
            Command::Malformed(at) => {
                let message = match at.as_str() {
                    "end of input" => "syntax error at end of input".to_owned(),
                    word => format!("syntax error at or near \"{word}\""),
                };
                return Err(Report::error("42601", message).into());
            }
        };
        self.complete(tag);
        Ok(())
    }

    /// Sets a setting of the session, or of its transaction.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Report> {
        let invalid = || {
            Report::error("22023", format!("invalid value for parameter \"{name}\": \"{}\"", value.unwrap_or_default()))
        };
        let modes = match (name, value) {
            ("transaction_isolation", Some(value)) => {
                Modes { level: Some(Level::by_name(value).ok_or_else(invalid)?), is_read_only: None }
            }
            ("transaction_read_only", Some(value)) => {
                Modes { level: None, is_read_only: Some(boolean(value).ok_or_else(invalid)?) }
            }
            _ => {
                if let Some((name, value)) = self.variables.set(name, value)? {
                    self.out.parameter(name, &value);
                }
                return Ok(());
            }
        };
        self.set_transaction(modes)
    }

    fn reset(&mut self) {
        for (name, value) in self.variables.reset() {
            self.out.parameter(name, &value);
        }
    }

    fn show(&mut self, command: &Command, is_described: bool, rows: &[Vec<String>]) {
        if is_described && let Some(columns) = shown(command) {
            self.out.row_description(&columns, |_| 0);
        }
        for row in rows {
            self.out.message(b'D', |out| {
                out.extend_from_slice(&(row.len() as u16).to_be_bytes());
                for value in row {
                    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value.as_bytes());
                }
            });
        }
    }
}

/// The columns a command answers.
pub fn shown(command: &Command) -> Option<Vec<Column>> {
    match command {
        Command::Show(name) => Some(vec![text_column(name)]),
        Command::ShowAll => Some(vec![text_column("name"), text_column("setting")]),
        _ => None,
    }
}
