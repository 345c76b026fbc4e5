//! The messages of a session, in order, and simple queries.
//!
//! Invariants: a refused statement is an error message and nothing else; in a pipeline, the following messages up to
//! the next Sync are skipped. A statement stops if its client disconnects. When the server stops, it answers received
//! messages first.

use super::cancel::Backend;
use super::command::Variables;
use super::message::{Input, Malformed, Message, Object};
use super::prepared::{What, first_word};
use super::reply::{Output, Report};
use super::rows::rows_tag;
use super::running_query::RunningQuery;
use super::session::{FAILED, Failure, IDLE, Session, Step, gone, not_utf8, reported};
use super::startup::Startup;
use super::state::PgState;
use super::{introspection, split};
use crate::counters::add;
use crate::results;
use crate::stop::Stop;
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};
use tidalite::{Parameter, QueryOptions, Response, SqlState};

/// Serves until the client leaves, the stop comes, or the connection is of no more use.
pub async fn run(
    input: Input,
    out: Output,
    startup: Startup,
    shared: &PgState,
    backend: &Backend<'_>,
    stop: Stop,
) -> io::Result<()> {
    let mut session = Session {
        input,
        out,
        shared,
        client: &backend.client,
        variables: Variables::default(),
        transaction: IDLE,
        block: None,
        held_tag: None,
        holds_tag: false,
        statements: HashMap::new(),
        portals: HashMap::new(),
        cursors: HashMap::new(),
        is_skipping: false,
        stop: stop.clone(),
    };
    if let Err(report) = session.greet(&startup, backend) {
        session.out.report(&Report { severity: "FATAL", ..report });
        return session.out.flush().await;
    }
    let ended = session.serve(stop).await;
    session.out.close().await;
    ended
}

impl Session<'_> {
    async fn serve(&mut self, mut stop: Stop) -> io::Result<()> {
        self.out.flush().await?;
        loop {
            let message = tokio::select! {
                biased;
                message = self.input.next() => message,
                () = stop.wait() => {
                    self.out.report(&Report::fatal("57P01", "terminating connection due to administrator command"));
                    return self.out.flush().await;
                }
                () = idle(self.variables.idle_timeout.filter(|_| self.transaction != IDLE)) => {
                    let message = "terminating connection due to idle-in-transaction timeout";
                    self.out.report(&Report::fatal("25P03", message));
                    return self.out.flush().await;
                }
            };
            match message {
                Ok(None | Some(Message::Terminate)) => return Ok(()),
                Ok(Some(message)) => self.handle(message).await?,
                Err(Malformed::Io(error)) => return Err(error),
                Err(Malformed::Fatal(text) | Malformed::Message(text)) => return self.end("08P01", text).await,
                Err(Malformed::Memory(text)) => return self.end("53200", text).await,
            }
        }
    }

    /// Sends a fatal error, after which the connection is closed.
    async fn end(&mut self, sqlstate: &'static str, text: String) -> io::Result<()> {
        add(&self.shared.counters.pg.errors, 1);
        self.out.report(&Report::fatal(sqlstate, text));
        self.out.flush().await
    }

    fn greet(&mut self, startup: &Startup, backend: &Backend<'_>) -> Result<(), Report> {
        self.variables.process = backend.id;
        self.variables.set("session_authorization", Some(&startup.user))?;
        if self.shared.database.is_read_only() {
            self.variables.set("default_transaction_read_only", Some("on"))?;
        }
        for (name, value) in &startup.settings {
            self.variables.set(name, Some(value))?;
        }
        for (name, value, is_reported) in self.variables.all() {
            if is_reported {
                self.out.parameter(name, &value);
            }
        }
        self.out.message(b'K', |body| {
            body.extend_from_slice(&backend.id.to_be_bytes());
            body.extend_from_slice(&backend.key.to_be_bytes());
        });
        self.out.ready(IDLE);
        Ok(())
    }

    async fn handle(&mut self, message: Message) -> io::Result<()> {
        if self.is_skipping && message != Message::Sync {
            return Ok(());
        }
        let done = match message {
            Message::Query(sql) => return self.simple(&sql).await,
            Message::Sync => {
                self.is_skipping = false;
                match self.end_implicit().await {
                    Ok(()) => {}
                    Err(Failure::Io(error)) => return Err(error),
                    Err(Failure::Refused(report)) => self.refused(&report),
                }
                return self.ready().await;
            }
            Message::Flush => self.out.flush().await.map_err(Failure::Io),
            Message::Parse { name, sql, types } => self.parse(name, &sql, types),
            Message::Bind(bind) => self.bind(bind).await,
            Message::Describe { of: Object::Statement, name } => self.describe_statement(&name).await,
            Message::Describe { of: Object::Portal, name } => self.describe_portal(&name).await,
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max).await,
            Message::Close { of, name } => {
                match of {
                    Object::Statement => drop(self.statements.remove(&name)),
                    Object::Portal => drop(self.portals.remove(&name)),
                }
                self.out.empty(b'3');
                Ok(())
            }
            // A function call is no part of a pipeline: the following messages are answered.
            Message::FunctionCall => {
                self.refused(
                    &Report::error("0A000", "function calls are not supported").with_hint("call it by SELECT"),
                );
                return self.ready().await;
            }
            // Messages of a refused COPY; Terminate is handled before.
            Message::CopyData(_)
            | Message::CopyDone
            | Message::CopyFail(_)
            | Message::Password(_)
            | Message::Terminate => Ok(()),
        };
        match done {
            Ok(()) => self.out.flush_if_much().await,
            Err(Failure::Io(error)) => Err(error),
            Err(Failure::Refused(report)) => {
                self.refused(&report);
                self.is_skipping = true;
                // Clients may wait for it before they send their Sync.
                self.out.flush().await
            }
        }
    }

    fn refused(&mut self, report: &Report) {
        add(&self.shared.counters.pg.errors, 1);
        self.send_notices();
        self.out.report(report);
        self.fail_block();
    }

    /// Portals live as long as their transaction.
    async fn ready(&mut self) -> io::Result<()> {
        self.take_settings();
        if self.transaction == IDLE {
            self.portals.clear();
        }
        self.out.ready(self.transaction);
        self.out.flush().await
    }

    /// Makes the changes that statements asked for by `set_config`.
    pub(super) fn take_settings(&mut self) {
        for change in self.variables.context().take_changes() {
            match self.variables.set(&change.name, Some(&change.value)) {
                Ok(Some((name, value))) => self.out.parameter(name, &value),
                Ok(None) => {}
                Err(report) => self.out.report(&Report { severity: "WARNING", ..report }),
            }
        }
    }

    async fn simple(&mut self, sql: &Bytes) -> io::Result<()> {
        let Ok(sql) = std::str::from_utf8(sql) else {
            self.refused(&not_utf8());
            return self.ready().await;
        };
        let statements = split::statements(sql);
        if statements.is_empty() {
            self.out.empty(b'I');
        }
        let count = statements.len();
        for (number, (at, statement)) in statements.into_iter().enumerate() {
            // Several statements of one message are one transaction, as far as they say nothing else.
            if count > 1 && self.transaction == IDLE {
                self.begin_implicit();
            }
            self.holds_tag = number + 1 == count;
            let mut done = self.statement(statement).await;
            self.holds_tag = false;
            if number + 1 == count && done.is_ok() {
                done = self.end_implicit().await;
            }
            let tag = self.held_tag.take();
            match done {
                Ok(()) => tag.into_iter().for_each(|tag| self.out.complete(&tag)),
                Err(Failure::Io(error)) => return Err(error),
                Err(Failure::Refused(mut report)) => {
                    report.position = report.position.map(|p| p + sql[..at].chars().count());
                    self.refused(&report);
                    break;
                }
            }
        }
        self.ready().await
    }

    /// Sends CommandComplete, or postpones it until the transaction has been committed.
    pub(super) fn complete(&mut self, tag: &str) {
        if self.holds_tag {
            self.held_tag = Some(tag.to_owned());
        } else {
            self.out.complete(tag);
        }
    }

    async fn statement(&mut self, sql: &str) -> Step {
        match What::of(sql)? {
            What::Nothing => {}
            What::Command(command) => return self.command(&command, true).await,
            What::Cursor(command) => return self.cursor_command(&command, true, &[], Vec::new()).await,
            What::Prepare(asked) => return self.prepare(&asked).await,
            What::Execute(asked) => {
                let (prepared, values) = self.executed(&asked).await?;
                return self.answer("", &prepared.sql, prepared.text(), values).await;
            }
            What::Statement if first_word(sql) == "copy" => return self.copy(sql).await,
            What::Statement => {}
        }
        self.check_transaction()?;
        let plainer = introspection::plainer(sql);
        self.answer(sql, sql, plainer.as_deref().unwrap_or(sql), Vec::new()).await
    }

    /// Executes a text and sends its results; the positions of errors refer to `sent`, the text from the client.
    async fn answer(&mut self, sent: &str, sql: &str, text: &str, values: Vec<Parameter>) -> Step {
        match self.start(sent, text, values).await? {
            Response::Done { tag, rows } => self.changed(tag, rows),
            Response::Rows(rows) => {
                let mut running = RunningQuery::new(rows, None);
                self.out.row_description(&running.columns, |_| 0);
                let (count, _) = self.send(&mut running, &[], u64::MAX).await?;
                self.complete(&rows_tag(sql, count));
            }
        }
        Ok(())
    }

    pub(super) fn check_transaction(&self) -> Result<(), Report> {
        if self.transaction != FAILED {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(Report::error("25P02", message))
    }

    /// Begins a statement; a client that leaves meanwhile ends it.
    ///
    /// `text` is executed in place of `sql`; errors refer to `sql`.
    pub(super) async fn start(&mut self, sql: &str, text: &str, parameters: Vec<Parameter>) -> Step<Response> {
        let started = Instant::now();
        self.take_settings();
        let options = QueryOptions { parameters, ..self.options() };
        let has_begun = self.has_begun();
        let response = match self.open_transaction() {
            None => self.run(self.shared.database.execute(text, options)).await?,
            // A statement that commits by itself is permitted as the first statement of an implicit block.
            Some(transaction) if !has_begun => match self.run(transaction.execute(text, options.clone())).await? {
                Err(error) if error.code == Some(SqlState::ACTIVE_SQL_TRANSACTION) && self.leave_fresh_block() => {
                    self.run(self.shared.database.execute(text, options)).await?
                }
                response => response,
            },
            Some(transaction) => self.run(transaction.execute(text, options)).await?,
        };
        self.shared.counters.queries.observe(started.elapsed());
        match response {
            Ok(Response::Rows(rows)) => {
                let (rows, watch) = results::held(rows, &self.shared.results);
                self.out.sends(watch);
                Ok(Response::Rows(rows))
            }
            Ok(done) => Ok(done),
            Err(error) => Err(reported(sql, &error).into()),
        }
    }

    /// Returns the options of a statement without parameters.
    pub(super) fn options(&self) -> QueryOptions {
        QueryOptions {
            timeout: self.variables.timeout,
            client: self.client.to_owned(),
            parameters: Vec::new(),
            frames: Vec::new(),
            is_read_only: self.is_read_only(),
            session: Some(self.variables.context()),
        }
    }

    /// Waits for a statement, unless the client leaves.
    async fn run<T>(&mut self, running: impl Future<Output = T>) -> io::Result<T> {
        tokio::select! {
            biased;
            done = running => Ok(done),
            () = self.input.closed() => Err(gone()),
        }
    }

    /// Sends the notices of a statement, unless the client set a higher level.
    fn send_notices(&mut self) {
        let notices = self.variables.context().take_notices();
        let level = self.variables.value("client_min_messages").to_ascii_lowercase();
        if matches!(level.as_str(), "warning" | "error" | "fatal" | "panic") {
            return;
        }
        for notice in notices {
            self.out.report(&Report { severity: "NOTICE", ..Report::error(notice.code, notice.message) });
        }
    }

    pub(super) fn changed(&mut self, tag: &str, rows: u64) {
        self.send_notices();
        let tag = match tag {
            "INSERT" => format!("INSERT 0 {rows}"),
            "DELETE" | "UPDATE" | "MERGE" => format!("{tag} {rows}"),
            "CREATE TABLE AS" => format!("SELECT {rows}"),
            other => other.to_owned(),
        };
        self.complete(&tag);
    }
}

/// Completes after a timeout; never completes without a timeout.
async fn idle(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}
