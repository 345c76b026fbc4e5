//! One session: its messages, one after the other.
//!
//! Always: a statement that is refused is an error message and nothing else; in a pipeline of messages all that follow
//! it are passed over up to the next Sync. A client that goes away while its statement runs stops it. When the server
//! stops, what was asked is answered first.

use super::Shared;
use super::cancel::Backend;
use super::command::{Command, Variables, recognise};
use super::message::{Bind, Input, Malformed, Message, Object};
use super::prepared::{Portal, Prepared, Running, State, What, first_word, format};
use super::reply::{Output, Report};
use super::startup::Startup;
use super::types::{Column, of_parameter, text_column};
use super::values::{Cells, canonical};
use super::{introspection, parameters, split};
use crate::counters::add;
use crate::errors::{position, sqlstate};
use crate::stop::Stop;
use arrow::array::ArrayRef;
use bytes::Bytes;
use futures::StreamExt;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tidalite::types::pg_type;
use tidalite::{Error, Parameter, QueryOptions, Response, Result as Done};

/// Of one session.
const STATEMENTS_MAX: usize = 10_000;
const PORTALS_MAX: usize = 1_000;

const IDLE: u8 = b'I';
const OPEN: u8 = b'T';
const FAILED: u8 = b'E';

/// Why a message was not done.
enum Failure {
    Refused(Report),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Failure {
        Failure::Refused(report)
    }
}

type Step<T = ()> = Result<T, Failure>;

struct Session<'a> {
    input: Input,
    out: Output,
    shared: &'a Shared,
    client: &'a str,
    variables: Variables,
    transaction: u8,
    /// Whether a statement of the open transaction changed something.
    has_written: bool,
    /// By name; the unnamed one has the empty name.
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    /// A message of the pipeline failed: those up to the next Sync are passed over.
    is_skipping: bool,
}

/// Serves until the client leaves, the stop comes, or the connection is of no more use.
pub async fn run(
    input: Input,
    out: Output,
    startup: Startup,
    shared: &Shared,
    backend: &Backend<'_>,
    mut stop: Stop,
) -> io::Result<()> {
    let mut session = Session {
        input,
        out,
        shared,
        client: &backend.client,
        variables: Variables::default(),
        transaction: IDLE,
        has_written: false,
        statements: HashMap::new(),
        portals: HashMap::new(),
        is_skipping: false,
    };
    if let Err(report) = session.greet(&startup, backend) {
        session.out.report(&Report { severity: "FATAL", ..report });
        return session.out.flush().await;
    }
    session.out.flush().await?;
    loop {
        let message = tokio::select! {
            biased;
            message = session.input.next() => message,
            () = stop.wait() => {
                session.out.report(&Report::fatal("57P01", "terminating connection due to administrator command"));
                return session.out.flush().await;
            }
        };
        match message {
            Ok(None | Some(Message::Terminate)) => return Ok(()),
            Ok(Some(message)) => session.handle(message).await?,
            Err(Malformed::Io(error)) => return Err(error),
            Err(Malformed::Fatal(text) | Malformed::Message(text)) => {
                add(&shared.counters.pg.errors, 1);
                session.out.report(&Report::fatal("08P01", text));
                return session.out.flush().await;
            }
        }
    }
}

impl Session<'_> {
    fn greet(&mut self, startup: &Startup, backend: &Backend<'_>) -> Result<(), Report> {
        self.variables.set("session_authorization", Some(&startup.user))?;
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
            Message::FunctionCall => Err(Report::error("0A000", "function calls are not supported").into()),
            // Of a COPY that was refused already; Terminate never comes here.
            Message::Copy | Message::Password(_) | Message::Terminate => Ok(()),
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
        self.out.report(report);
        if self.transaction == OPEN {
            self.transaction = FAILED;
        }
    }

    /// Portals live as long as their transaction.
    async fn ready(&mut self) -> io::Result<()> {
        if self.transaction == IDLE {
            self.portals.clear();
        }
        self.out.ready(self.transaction);
        self.out.flush().await
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
        for (at, statement) in statements {
            match self.statement(statement).await {
                Ok(()) => {}
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

    async fn statement(&mut self, sql: &str) -> Step {
        if let Some(command) = recognise(sql) {
            return self.command(&command, true);
        }
        self.check_transaction()?;
        match self.start(sql, Vec::new()).await? {
            Response::Done { tag, rows } => self.changed(tag, rows),
            Response::Rows(rows) => {
                let mut running = Running::new(rows, None);
                self.out.row_description(&running.columns, |_| 0);
                let (count, _) = self.send(&mut running, &[], u64::MAX).await?;
                self.out.complete(&rows_tag(sql, count));
            }
        }
        Ok(())
    }

    fn check_transaction(&self) -> Result<(), Report> {
        if self.transaction != FAILED {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(Report::error("25P02", message))
    }

    /// Begins a statement; a client that leaves meanwhile ends it.
    async fn start(&mut self, sql: &str, parameters: Vec<Parameter>) -> Step<Response> {
        let started = Instant::now();
        let plainer = introspection::plainer(sql);
        let text = plainer.as_deref().unwrap_or(sql);
        let options = QueryOptions { timeout: self.variables.timeout, client: self.client.to_owned(), parameters };
        let response = tokio::select! {
            biased;
            response = self.shared.database.execute(text, options) => response,
            () = self.input.closed() => return Err(gone().into()),
        };
        self.shared.counters.queries.observe(started.elapsed());
        response.map_err(|error| reported(sql, &error).into())
    }

    fn changed(&mut self, tag: &str, rows: u64) {
        self.has_written |= self.transaction == OPEN;
        let tag = match tag {
            "INSERT" => format!("INSERT 0 {rows}"),
            "DELETE" | "UPDATE" => format!("{tag} {rows}"),
            "CREATE TABLE AS" => format!("SELECT {rows}"),
            other => other.to_owned(),
        };
        self.out.complete(&tag);
    }

    /// Sends rows, at most `max`; gives how many, and whether there may be more.
    async fn send(&mut self, running: &mut Running, formats: &[i16], max: u64) -> Step<(u64, bool)> {
        let mut sent = 0;
        loop {
            if running.batch.is_none() {
                let next = tokio::select! {
                    biased;
                    next = running.rows.stream.next() => next,
                    () = self.input.closed() => return Err(gone().into()),
                };
                let Some(batch) = next else { break };
                let batch = batch.map_err(|error| reported("", &error))?;
                if batch.num_columns() != running.columns.len() {
                    return Err(Report::error("0A000", "cached plan must not change result type").into());
                }
                let arrays = running.columns.iter().zip(batch.columns()).map(|(c, a)| canonical(c, a));
                let arrays: Vec<ArrayRef> = arrays.collect::<Done<_>>().map_err(|error| reported("", &error))?;
                running.batch = Some((arrays, batch.num_rows(), 0));
            }
            if let Some((arrays, rows, next)) = &mut running.batch {
                let end =
                    usize::try_from(max - sent).map_or(*rows, |left| rows.saturating_sub(*next).min(left) + *next);
                let from = *next;
                *next = write_rows(&mut self.out, &running.columns, arrays, formats, from..end)
                    .map_err(|error| reported("", &error))?;
                sent += (*next - from) as u64;
                if next == rows {
                    running.batch = None;
                }
            }
            self.out.flush_if_much().await?;
            if sent >= max {
                break;
            }
        }
        add(&self.shared.counters.query_rows, sent);
        Ok((sent, sent >= max))
    }

    fn parse(&mut self, name: String, sql: &Bytes, oids: Vec<u32>) -> Step {
        let sql = std::str::from_utf8(sql).map_err(|_| not_utf8())?;
        let statements = split::statements(sql);
        if statements.len() > 1 {
            return Err(Report::error("42601", "cannot insert multiple commands into a prepared statement").into());
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(Report::error("42P05", format!("prepared statement \"{name}\" already exists")).into());
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return Err(
                Report::error("53400", format!("a session has at most {STATEMENTS_MAX} prepared statements")).into()
            );
        }
        let what = match recognise(sql) {
            _ if statements.is_empty() => What::Nothing,
            Some(command) => What::Command(command),
            None => What::Statement,
        };
        let is_end = matches!(&what, What::Command(command) if command.ends_transaction());
        if !is_end {
            self.check_transaction()?;
        }
        let oids = if introspection::asks_types(sql) { vec![pg_type::OIDS.oid] } else { oids };
        let prepared = Prepared { sql: sql.to_owned(), what, oids, described: OnceLock::new() };
        self.statements.insert(name, Arc::new(prepared));
        self.out.empty(b'1');
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<Arc<Prepared>, Report> {
        let missing = || Report::error("26000", format!("prepared statement \"{name}\" does not exist"));
        self.statements.get(name).cloned().ok_or_else(missing)
    }

    /// Finds out what a statement asks for and answers, if that is not known.
    async fn describe(&mut self, prepared: &Prepared) -> Step {
        if prepared.described.get().is_some() || !matches!(prepared.what, What::Statement) {
            return Ok(());
        }
        let types = prepared.oids.iter().map(|oid| of_parameter(*oid)).collect();
        let plainer = introspection::plainer(&prepared.sql);
        let text = plainer.as_deref().unwrap_or(&prepared.sql);
        let described = tokio::select! {
            biased;
            described = self.shared.database.describe(text, types) => described,
            () = self.input.closed() => return Err(gone().into()),
        };
        let described = described.map_err(|error| reported(&prepared.sql, &error))?;
        let _ = prepared.described.set(described);
        Ok(())
    }

    async fn bind(&mut self, bind: Bind) -> Step {
        let prepared = self.prepared(&bind.statement)?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
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
        let decoded = bind.values.iter().enumerate().map(|(i, value)| {
            parameters::decode(i + 1, prepared.oid(i), format(&bind.formats, i) == 1, value.as_deref())
        });
        let parameters = decoded.collect::<Result<_, _>>()?;
        let portal = Portal { prepared, parameters, formats: bind.result_formats, state: State::New };
        self.portals.insert(bind.portal, portal);
        self.out.empty(b'2');
        Ok(())
    }

    async fn describe_statement(&mut self, name: &str) -> Step {
        let prepared = self.prepared(name)?;
        self.describe(&prepared).await?;
        self.out.parameter_description(&prepared.all_oids());
        let columns = match &prepared.what {
            What::Command(command) => shown(command),
            _ => prepared.columns(),
        };
        self.announce(columns.as_deref(), &[]);
        Ok(())
    }

    /// Rows of a query that was not described before are begun: only then their types are known for sure.
    async fn describe_portal(&mut self, name: &str) -> Step {
        let mut portal = self.take(name)?;
        let prepared = portal.prepared.clone();
        let mut columns = match &prepared.what {
            What::Command(command) => shown(command),
            What::Nothing => None,
            What::Statement => prepared.columns(),
        };
        let is_known = prepared.described.get().is_some();
        if matches!(prepared.what, What::Statement) && !is_known && prepared.may_return_rows() {
            self.check_transaction()?;
            if let State::New = portal.state
                && let Response::Rows(rows) = self.start(&prepared.sql, portal.parameters.clone()).await?
            {
                portal.state = State::Rows(Running::new(rows, None));
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

    async fn execute(&mut self, name: &str, rows_max: u32) -> Step {
        let mut portal = self.take(name)?;
        let prepared = portal.prepared.clone();
        match &prepared.what {
            What::Nothing => self.out.empty(b'I'),
            What::Command(command) => self.command(command, false)?,
            What::Statement => self.execute_statement(&mut portal, &prepared, rows_max).await?,
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    async fn execute_statement(&mut self, portal: &mut Portal, prepared: &Prepared, rows_max: u32) -> Step {
        self.check_transaction()?;
        if let State::New = portal.state {
            match self.start(&prepared.sql, std::mem::take(&mut portal.parameters)).await? {
                Response::Done { tag, rows } => {
                    portal.state = State::Finished;
                    self.changed(tag, rows);
                    return Ok(());
                }
                Response::Rows(rows) => portal.state = State::Rows(Running::new(rows, prepared.columns())),
            }
        }
        let State::Rows(running) = &mut portal.state else {
            self.out.complete(&rows_tag(&prepared.sql, 0));
            return Ok(());
        };
        let max = if rows_max == 0 { u64::MAX } else { u64::from(rows_max) };
        let (count, may_have_more) = self.send(running, &portal.formats, max).await?;
        if may_have_more {
            self.out.empty(b's');
        } else {
            portal.state = State::Finished;
            self.out.complete(&rows_tag(&prepared.sql, count));
        }
        Ok(())
    }

    /// `is_described` when columns are to be announced.
    fn command(&mut self, command: &Command, is_described: bool) -> Step {
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
fn shown(command: &Command) -> Option<Vec<Column>> {
    match command {
        Command::Show(name) => Some(vec![text_column(name)]),
        Command::ShowAll => Some(vec![text_column("name"), text_column("setting")]),
        _ => None,
    }
}

/// Writes rows until much is waiting to be sent; gives the next one.
fn write_rows(
    out: &mut Output,
    columns: &[Column],
    arrays: &[ArrayRef],
    formats: &[i16],
    rows: std::ops::Range<usize>,
) -> Done<usize> {
    let cells: Vec<(Cells, bool)> = columns
        .iter()
        .zip(arrays)
        .enumerate()
        .map(|(i, (column, array))| {
            (Cells::new(column.pg_type, column.is_ipv4, array.as_ref()), format(formats, i) == 1)
        })
        .collect();
    for row in rows.clone() {
        if out.has_much() {
            return Ok(row);
        }
        out.try_message(b'D', |body| {
            body.extend_from_slice(&(cells.len() as u16).to_be_bytes());
            cells.iter().try_for_each(|(cells, is_binary)| cells.write(row, *is_binary, body))
        })?;
    }
    Ok(rows.end)
}

fn rows_tag(sql: &str, count: u64) -> String {
    match first_word(sql).as_str() {
        "show" => "SHOW".to_owned(),
        "explain" => "EXPLAIN".to_owned(),
        _ => format!("SELECT {count}"),
    }
}

fn reported(sql: &str, error: &Error) -> Report {
    Report {
        severity: "ERROR",
        sqlstate: sqlstate(error),
        message: error.message.clone(),
        hint: error.hint.clone(),
        position: error.position.filter(|_| !sql.is_empty()).map(|_| position(sql, error) + 1),
    }
}

fn not_utf8() -> Report {
    Report::error("22021", "invalid byte sequence for encoding \"UTF8\"")
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client left while its statement ran")
}
