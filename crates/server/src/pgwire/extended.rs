//! Prepared statements: Parse, Bind, Describe and Execute.
//!
//! A statement is looked at once and run as often as it is bound; its rows wait in a portal until they are asked for.

use super::message::Bind;
use super::obey::shown;
use super::prepared::{Portal, Prepared, State, What, first_word, format};
use super::reply::Report;
use super::rows::rows_tag;
use super::running_query::RunningQuery;
use super::session::{IDLE, Session, Step, gone, not_utf8, reported};
use super::types::Column;
use super::{introspection, parameters, split};
use crate::budget::Share;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use tidalite::types::pg_type;
use tidalite::{Parameter, Response};

/// Maximum number of prepared statements and portals of a session.
const STATEMENTS_MAX: usize = 10_000;
const PORTALS_MAX: usize = 1_000;

/// Approximate bytes of a statement or a portal in addition to its text and values.
const ENTRY_BYTES: usize = 512;

impl Session<'_> {
    pub(super) fn parse(&mut self, name: String, sql: &Bytes, oids: Vec<u32>) -> Step {
        let sql = std::str::from_utf8(sql).map_err(|_| not_utf8())?;
        let statements = split::statements(sql);
        if statements.len() > 1 {
            return Err(Report::error("42601", "cannot insert multiple commands into a prepared statement").into());
        }
        let what = What::of(statements.first().map_or("", |(_, statement)| statement))?;
        let is_end = matches!(&what, What::Command(command) if command.ends_transaction());
        if !is_end {
            self.check_transaction()?;
        }
        let oids = if introspection::asks_types(sql) { vec![pg_type::OIDS.oid] } else { oids };
        let prepared = self.new_prepared(&name, sql, what, oids)?;
        self.statements.insert(name, Arc::new(prepared));
        self.out.empty(b'1');
        Ok(())
    }

    /// A statement that can go by a name.
    pub(super) fn new_prepared(&self, name: &str, sql: &str, what: What, oids: Vec<u32>) -> Result<Prepared, Report> {
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Report::error("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        if self.statements.len() >= STATEMENTS_MAX {
            let message = format!("a session has at most {STATEMENTS_MAX} prepared statements");
            return Err(Report::error("53400", message));
        }
        let plainer = introspection::plainer(sql);
        let _held = self.held(sql.len() + name.len())?;
        Ok(Prepared { sql: sql.to_owned(), plainer, what, oids, described: OnceLock::new(), _held })
    }

    /// Returns a share of the memory limit of all clients, for parts of a message that the session keeps.
    pub(super) fn held(&self, bytes: usize) -> Result<Share, Report> {
        let mut share = self.shared.messages.share();
        // Something is kept of a statement of one byte, too.
        share.add(bytes + ENTRY_BYTES).map_err(|e| Report::error("53200", e.message))?;
        Ok(share)
    }

    pub(super) fn prepared(&self, name: &str) -> Result<Arc<Prepared>, Report> {
        let missing = || Report::error("26000", format!("prepared statement \"{name}\" does not exist"));
        self.statements.get(name).cloned().ok_or_else(missing)
    }

    /// Determines the types of parameters and columns, if they are unknown.
    pub(super) async fn describe(&mut self, prepared: &Prepared) -> Step {
        if prepared.described.get().is_some() || !matches!(prepared.what, What::Statement) {
            return Ok(());
        }
        let types =
            prepared.oids.iter().map(|oid| pg_type::by_oid(*oid).filter(|of| *of != pg_type::UNKNOWN)).collect();
        self.take_settings();
        let options = self.options();
        let describing = match self.begun_transaction() {
            Some(transaction) => transaction.describe(prepared.text(), types, options),
            None => self.shared.database.describe(prepared.text(), types, options),
        };
        let described = tokio::select! {
            biased;
            described = describing => described,
            () = self.input.closed() => return Err(gone().into()),
        };
        let described = described.map_err(|error| reported(&prepared.sql, &error))?;
        let _ = prepared.described.set(described);
        Ok(())
    }

    pub(super) async fn bind(&mut self, bind: Bind) -> Step {
        let prepared = self.prepared(&bind.statement)?;
        let is_taken = self.portals.contains_key(&bind.portal) || self.cursors.contains_key(&bind.portal);
        if !bind.portal.is_empty() && is_taken {
            return Err(Report::error("42P03", format!("cursor \"{}\" already exists", bind.portal)).into());
        }
        if self.portals.len() >= PORTALS_MAX {
            return Err(Report::error("53400", format!("a session has at most {PORTALS_MAX} portals")).into());
        }
        let count = bind.values.len();
        if bind.formats.len() > 1 && bind.formats.len() != count {
            let message = format!("bind message has {} parameter formats but {count} parameters", bind.formats.len());
            return Err(Report::error("08P01", message).into());
        }
        let is_unknown = |index: usize| bind.values[index].is_some() && prepared.oid(index) == 0;
        if (0..count).any(is_unknown) {
            self.describe(&prepared).await?;
        }
        if let Some(described) = prepared.described.get()
            && described.parameters.len().max(prepared.oids.len()) != count
        {
            let (name, wanted) = (&bind.statement, described.parameters.len());
            let message = format!(
                "bind message supplies {count} parameters, but prepared statement \"{name}\" requires {wanted}"
            );
            return Err(Report::error("08P01", message).into());
        }
        if let What::Execute(asked) = &prepared.what {
            let (prepared, parameters) = self.executed(asked).await?;
            return self.bound(bind.portal, prepared, parameters, bind.result_formats, 0);
        }
        let decoded = bind.values.iter().enumerate().map(|(i, value)| {
            parameters::decode(i + 1, prepared.oid(i), format(&bind.formats, i) == 1, value.as_deref())
        });
        let parameters = decoded.collect::<Result<_, _>>()?;
        let bytes = bind.values.iter().flatten().map(Bytes::len).sum();
        self.bound(bind.portal, prepared, parameters, bind.result_formats, bytes)
    }

    fn bound(
        &mut self,
        name: String,
        prepared: Arc<Prepared>,
        parameters: Vec<Parameter>,
        formats: Vec<i16>,
        bytes: usize,
    ) -> Step {
        let _held = self.held(bytes)?;
        self.portals.insert(name, Portal { prepared, parameters, formats, state: State::New, _held });
        self.out.empty(b'2');
        Ok(())
    }

    pub(super) async fn describe_statement(&mut self, name: &str) -> Step {
        let prepared = self.prepared(name)?;
        self.describe(&prepared).await?;
        self.out.parameter_description(&prepared.all_oids());
        let columns = match &prepared.what {
            What::Command(command) => shown(command),
            What::Cursor(command) => self.cursor_columns(command)?,
            What::Execute(asked) => self.statement_asked_for(asked).await?.columns(),
            _ => prepared.columns(),
        };
        self.announce(columns.as_deref(), &[]);
        Ok(())
    }

    /// Rows of a query that was not described before are begun: only then their types are known for sure.
    pub(super) async fn describe_portal(&mut self, name: &str) -> Step {
        // A cursor of SQL is a portal by its name.
        if let (false, Some(cursor)) = (self.portals.contains_key(name), self.cursors.get(name)) {
            let columns = cursor.columns().to_vec();
            self.announce(Some(&columns), &[]);
            return Ok(());
        }
        let mut portal = self.take(name)?;
        let prepared = portal.prepared.clone();
        if prepared.returns_changed_rows() {
            // It must not run before it is executed.
            self.describe(&prepared).await?;
        }
        let mut columns = match &prepared.what {
            What::Command(command) => shown(command),
            What::Cursor(command) => self.cursor_columns(command)?,
            What::Nothing | What::Prepare(_) | What::Execute(_) => None,
            What::Statement => prepared.columns(),
        };
        let is_known = prepared.described.get().is_some();
        if matches!(prepared.what, What::Statement) && !is_known && prepared.may_return_rows() {
            self.check_transaction()?;
            self.begin_pipeline(1);
            if let State::New = portal.state
                && let Response::Rows(rows) =
                    self.start(&prepared.sql, prepared.text(), portal.parameters.clone()).await?
            {
                portal.state = State::Rows(RunningQuery::new(rows, None));
            }
            if let State::Rows(running) = &portal.state {
                columns = Some(running.columns.clone());
            }
        }
        self.announce(columns.as_deref(), &portal.formats);
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    fn announce(&mut self, columns: Option<&[Column]>, formats: &[i16]) {
        match columns {
            Some(columns) => self.out.row_description(columns, |i| format(formats, i)),
            None => self.out.empty(b'n'),
        }
    }

    fn take(&mut self, name: &str) -> Result<Portal, Report> {
        let missing = || Report::error("34000", format!("portal \"{name}\" does not exist"));
        self.portals.remove(name).ok_or_else(missing)
    }

    pub(super) async fn execute(&mut self, name: &str, rows_max: u32) -> Step {
        let mut portal = self.take(name)?;
        let prepared = portal.prepared.clone();
        match &prepared.what {
            What::Nothing => self.out.empty(b'I'),
            What::Command(command) => self.command(command, false).await?,
            What::Cursor(command) => {
                self.cursor_command(command, false, &portal.formats, portal.parameters.clone()).await?;
            }
            What::Prepare(asked) => self.prepare(asked).await?,
            // Its portal has the statement that it runs.
            What::Execute(_) => {}
            What::Statement => self.execute_statement(&mut portal, &prepared, rows_max).await?,
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// Statements up to a Sync are one transaction: begins it, unless no more than `executes` are run before that comes.
    fn begin_pipeline(&mut self, executes: usize) {
        let is_alone = self.input.executes_before_sync().is_some_and(|count| count <= executes);
        if self.transaction == IDLE && !is_alone {
            self.begin_implicit();
        }
    }

    async fn execute_statement(&mut self, portal: &mut Portal, prepared: &Prepared, rows_max: u32) -> Step {
        self.check_transaction()?;
        self.begin_pipeline(0);
        if let (State::New, "copy") = (&portal.state, first_word(&prepared.sql).as_str()) {
            portal.state = State::Finished;
            return self.copy(&prepared.sql).await;
        }
        if let State::New = portal.state {
            match self.start(&prepared.sql, prepared.text(), std::mem::take(&mut portal.parameters)).await? {
                Response::Done { tag, rows } => {
                    portal.state = State::Finished;
                    self.changed(tag, rows);
                    return Ok(());
                }
                Response::Rows(rows) => portal.state = State::Rows(prepared.running(rows)),
            }
        }
        let max = if rows_max == 0 { u64::MAX } else { u64::from(rows_max) };
        let (count, may_have_more) = match &mut portal.state {
            State::Rows(running) => self.send(running, &portal.formats, max).await?,
            State::Cursor(cursor) => self.send_moved(cursor, &portal.formats, max).await?,
            State::New | State::Finished => (0, false),
        };
        if may_have_more {
            self.out.empty(b's');
        } else {
            portal.state = State::Finished;
            self.complete(&rows_tag(&prepared.sql, count));
        }
        Ok(())
    }
}
