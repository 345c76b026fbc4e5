//! Prepared statements and portals of a session.

use super::command::{Command, recognise};
use super::cursor::Cursor;
use super::cursor_command::CursorCommand;
use super::prepare_command::{Execute, Prepare};
use super::reply::Report;
use super::running_query::RunningQuery;
use super::split::{Token, tokens};
use super::types::{self, Column};
use crate::budget::Share;
use std::sync::OnceLock;
use tidalite::types::pg_type;
use tidalite::{Described, OutputColumn, Parameter, Rows};

/// A statement that can be bound to values many times.
pub struct Prepared {
    pub sql: String,
    /// The text to execute instead, for catalog queries of `psql` and asyncpg that use unsupported forms.
    pub plainer: Option<String>,
    pub what: What,
    /// The types the client gave for parameters; 0 for none.
    pub oids: Vec<u32>,
    /// The types of parameters and columns, after the first use of them.
    pub described: OnceLock<Described>,
    /// Share of the memory limit of all clients.
    pub _held: Share,
}

/// The kind of a statement.
pub enum What {
    Nothing,
    Command(Command),
    Prepare(Prepare),
    Execute(Execute),
    Cursor(CursorCommand),
    Statement,
}

impl What {
    /// # Errors
    /// The text begins as PREPARE, EXECUTE or a cursor statement and has another form.
    pub fn of(sql: &str) -> Result<What, Report> {
        let malformed = |form| Report::error("42601", "syntax error").with_hint(format!("write {form}"));
        Ok(match first_word(sql).as_str() {
            "" if tokens(sql).next().is_none() => What::Nothing,
            "prepare" => {
                What::Prepare(Prepare::read(sql).ok_or_else(|| malformed("PREPARE name [(type, …)] AS statement"))?)
            }
            first if first == "execute" || (first == "explain" && Execute::is_explained(sql)) => {
                What::Execute(Execute::read(sql).ok_or_else(|| malformed("EXECUTE name [(value, …)]"))?)
            }
            _ => match CursorCommand::read(sql) {
                Some(command) => What::Cursor(command?),
                None => recognise(sql).map_or(What::Statement, What::Command),
            },
        })
    }
}

impl Prepared {
    /// Returns the rows of an execution; their columns were announced if the statement was described.
    pub fn running(&self, rows: Rows) -> RunningQuery {
        let described = self.described.get().and_then(|described| described.columns.as_ref());
        // Other names may differ: the name of `$1 + 1` has the value of the parameter.
        let is_other = |(own, described): (&OutputColumn, &OutputColumn)| {
            own.pivot_values != described.pivot_values && own.name != described.name
        };
        let has_other_columns = described.is_some_and(|(columns, _)| rows.columns.iter().zip(columns).any(is_other));
        RunningQuery { has_other_columns, ..RunningQuery::new(rows, self.columns()) }
    }

    /// Returns the text to execute.
    pub fn text(&self) -> &str {
        self.plainer.as_deref().unwrap_or(&self.sql)
    }

    /// Returns the type of a parameter, counted from 0; 0 if the type is unknown.
    pub fn oid(&self, index: usize) -> u32 {
        let given = self.oids.get(index).copied().filter(|oid| *oid != 0);
        let found = || Some(self.described.get()?.parameters.get(index).copied().flatten()?.oid);
        given.or_else(found).unwrap_or(0)
    }

    /// Returns the types of all parameters; unknown types are text.
    pub fn all_oids(&self) -> Vec<u32> {
        let count = self.described.get().map_or(0, |d| d.parameters.len()).max(self.oids.len());
        (0..count).map(|i| Some(self.oid(i)).filter(|oid| *oid != 0).unwrap_or(pg_type::TEXT.oid)).collect()
    }

    pub fn columns(&self) -> Option<Vec<Column>> {
        let (columns, schema) = self.described.get()?.columns.as_ref()?;
        Some(types::columns(columns, schema))
    }

    /// Returns true if the statement may return rows, by its first word.
    pub fn may_return_rows(&self) -> bool {
        const CHANGES: &[&str] = &[
            "insert", "update", "delete", "copy", "create", "alter", "drop", "truncate", "rename", "cancel", "refresh",
            "grant", "revoke", "vacuum", "reindex", "comment", "merge",
        ];
        !CHANGES.contains(&first_word(&self.sql).as_str())
    }

    /// Returns true if the statement changes rows and returns them, by its words.
    pub fn returns_changed_rows(&self) -> bool {
        let is_returning = |token| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("returning"));
        !self.may_return_rows() && tokens(&self.sql).any(|(_, token)| is_returning(token))
    }
}

pub fn first_word(sql: &str) -> String {
    match tokens(sql).next() {
        Some((_, Token::Word(word))) => word.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// A statement with its values, and its rows if it was started.
pub struct Portal {
    pub prepared: std::sync::Arc<Prepared>,
    pub parameters: Vec<Parameter>,
    pub formats: Vec<i16>,
    pub state: State,
    /// Share of the memory limit of all clients.
    pub _held: Share,
}

impl Portal {
    /// Returns true if the portal is of a query.
    pub fn is_of_rows(&self) -> bool {
        matches!(self.prepared.what, What::Statement) && self.prepared.may_return_rows()
    }

    /// Returns the columns of the rows, if they are known.
    pub fn columns(&self) -> Option<Vec<Column>> {
        match &self.state {
            State::Rows(running) => Some(running.columns.clone()),
            State::Cursor(cursor) => Some(cursor.columns().to_vec()),
            State::New | State::Finished => self.prepared.columns(),
        }
    }
}

pub enum State {
    New,
    Rows(RunningQuery),
    /// Rows of a portal that a statement moved.
    Cursor(Box<Cursor>),
    Finished,
}

/// Returns the format of a column: text without formats; one format applies to all columns.
pub fn format(formats: &[i16], index: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(index).copied().unwrap_or(0),
    }
}
