//! Statements about the session itself: transactions, settings, what is prepared.

use super::command::Command;
use super::connection::{FAILED, IDLE, OPEN, Session, Step};
use super::reply::Report;
use super::types::{Column, text_column};

impl Session<'_> {
    /// `is_described` when columns are to be announced.
    pub(super) fn command(&mut self, command: &Command, is_described: bool) -> Step {
        if !command.ends_transaction() {
            self.check_transaction()?;
        }
        let no_transaction = || Report::warning("25P01", "there is no transaction in progress");
        let tag = match command {
            Command::Begin => {
                if self.transaction == OPEN {
                    self.out.report(&Report::warning("25001", "there is already a transaction in progress"));
                } else {
                    (self.transaction, self.has_written) = (OPEN, false);
                }
                "BEGIN"
            }
            Command::Commit => {
                let tag = if self.transaction == FAILED { "ROLLBACK" } else { "COMMIT" };
                if self.transaction == IDLE {
                    self.out.report(&no_transaction());
                }
                self.end_transaction();
                tag
            }
            Command::Rollback => {
                if self.transaction == IDLE {
                    self.out.report(&no_transaction());
                } else if self.has_written {
                    let message = "what this transaction wrote stays: every statement commits by itself";
                    self.out.report(&Report::warning("01000", message));
                }
                self.end_transaction();
                "ROLLBACK"
            }
            Command::Savepoint | Command::Release | Command::RollbackTo if self.transaction == IDLE => {
                return Err(Report::error("25P01", "savepoints can only be used in transaction blocks").into());
            }
            Command::Savepoint => "SAVEPOINT",
            Command::Release => "RELEASE",
            Command::RollbackTo => {
                self.transaction = OPEN;
                "ROLLBACK"
            }
            Command::Set { name, value } => {
                if let Some((name, value)) = self.variables.set(name, value.as_deref())? {
                    self.out.parameter(name, &value);
                }
                "SET"
            }
            Command::ResetAll => {
                self.reset();
                "RESET"
            }
            Command::Show(name) => {
                let unknown = || Report::error("42704", format!("unrecognized configuration parameter \"{name}\""));
                let (_, value) = self.variables.get(name).ok_or_else(unknown)?;
                self.show(command, is_described, &[vec![value]]);
                "SHOW"
            }
            Command::ShowAll => {
                let rows: Vec<_> = self.variables.all().map(|(name, value, _)| vec![name.to_owned(), value]).collect();
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
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.reset();
                "DISCARD ALL"
            }
            Command::Nothing(tag) => *tag,
            Command::Refused(message, hint) => return Err(Report::error("0A000", *message).with_hint(*hint).into()),
        };
        self.out.complete(tag);
        Ok(())
    }

    fn end_transaction(&mut self) {
        self.transaction = IDLE;
        self.portals.clear();
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
