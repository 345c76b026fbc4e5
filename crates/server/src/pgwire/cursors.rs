//! Cursors of SQL: DECLARE, FETCH, MOVE and CLOSE.
//!
//! A cursor is a running query whose rows are computed when they are fetched. With SCROLL, fetched rows stay in memory,
//! within the memory limit of all clients, so that the cursor can move backwards. A cursor reads the snapshot of its
//! DECLARE, with WITH HOLD also after the end of the transaction. FETCH, MOVE and CLOSE also take a portal of the extended
//! protocol, as asyncpg's cursors do.

use super::cursor::{Cursor, CursorRows};
use super::cursor_command::{CursorCommand, Direction};
use super::prepared::{Portal, State};
use super::reply::Report;
use super::rows::{Look, write_rows};
use super::running_query::RunningQuery;
use super::session::{IDLE, Session, Step, gone, reported};
use super::types::Column;
use super::values::canonical;
use arrow::array::{Array, ArrayRef};
use futures::StreamExt;
use std::ops::Range;
use tidalite::{Parameter, Response, Result as Done};

/// Open cursors of one session.
const CURSORS_MAX: usize = 1_000;

impl Session<'_> {
    pub(super) async fn cursor_command(
        &mut self,
        command: &CursorCommand,
        is_described: bool,
        formats: &[i16],
        parameters: Vec<Parameter>,
    ) -> Step {
        self.check_transaction()?;
        match command {
            CursorCommand::Declare { name, is_scroll, is_held, sql } => {
                self.declare(name, *is_scroll, *is_held, sql, parameters).await?;
                self.complete("DECLARE CURSOR");
            }
            CursorCommand::Fetch { name, direction, returns_rows } => {
                let verb = if *returns_rows { "FETCH" } else { "MOVE" };
                let Some(mut cursor) = self.cursors.remove(name) else {
                    let sends = returns_rows.then_some(formats);
                    let moved = self.move_portal(name, *direction, is_described, sends).await?;
                    self.complete(&format!("{verb} {moved}"));
                    return Ok(());
                };
                if *returns_rows && is_described {
                    self.out.row_description(&cursor.running.columns, |i| super::prepared::format(formats, i));
                }
                let moved = self.step(&mut cursor, *direction, returns_rows.then_some(formats)).await;
                self.cursors.insert(name.clone(), cursor);
                self.complete(&format!("{verb} {}", moved?));
            }
            CursorCommand::Close(None) => {
                self.cursors.clear();
                self.portals.retain(|_, portal| !portal.is_of_rows());
                self.complete("CLOSE CURSOR ALL");
            }
            CursorCommand::Close(Some(name)) => {
                if self.cursors.remove(name).is_none() {
                    self.portals.remove(name).ok_or_else(|| missing(name))?;
                }
                self.complete("CLOSE CURSOR");
            }
        }
        Ok(())
    }

    /// Returns the result columns of a cursor statement.
    pub(super) fn cursor_columns(&self, command: &CursorCommand) -> Result<Option<Vec<Column>>, Report> {
        match command {
            CursorCommand::Fetch { name, returns_rows: true, .. } => {
                let of_cursor = self.cursors.get(name).map(|cursor| Some(cursor.running.columns.clone()));
                let of_portal = || self.portals.get(name).map(Portal::columns);
                of_cursor.or_else(of_portal).ok_or_else(|| missing(name))
            }
            _ => Ok(None),
        }
    }

    async fn declare(
        &mut self,
        name: &str,
        is_scroll: bool,
        is_held: bool,
        sql: &str,
        parameters: Vec<Parameter>,
    ) -> Step {
        if self.transaction == IDLE && !is_held {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Report::error("25P01", message)
                .with_hint("BEGIN a transaction, or declare it WITH HOLD")
                .into());
        }
        if self.cursors.contains_key(name) || self.portals.contains_key(name) {
            return Err(Report::error("42P03", format!("cursor \"{name}\" already exists")).into());
        }
        if self.cursors.len() >= CURSORS_MAX {
            return Err(Report::error("53400", format!("a session has at most {CURSORS_MAX} cursors")).into());
        }
        let held = self.held(sql.len())?;
        let Response::Rows(rows) = self.start(sql, sql, parameters).await? else {
            return Err(Report::error("42601", "a cursor can only be declared for a query").into());
        };
        let cursor = Cursor { is_scroll, is_held, ..Cursor::new(RunningQuery::new(rows, None), held) };
        self.cursors.insert(name.to_owned(), cursor);
        Ok(())
    }

    /// Moves a portal of the extended protocol, which moves forward only.
    async fn move_portal(
        &mut self,
        name: &str,
        direction: Direction,
        is_described: bool,
        sends: Option<&[i16]>,
    ) -> Step<u64> {
        let mut portal = self.portals.remove(name).ok_or_else(|| missing(name))?;
        if !portal.is_of_rows() {
            self.portals.insert(name.to_owned(), portal);
            return Err(Report::error("24000", format!("portal \"{name}\" cannot be run")).into());
        }
        if let State::New = portal.state {
            let prepared = portal.prepared.clone();
            let parameters = std::mem::take(&mut portal.parameters);
            if let Response::Rows(rows) = self.start(&prepared.sql, prepared.text(), parameters).await? {
                portal.state = State::Rows(prepared.running(rows));
            }
        }
        let held = self.held(0)?;
        portal.state = match portal.state {
            State::Rows(running) => State::Cursor(Box::new(Cursor::new(running, held))),
            other => other,
        };
        if let (Some(formats), Some(columns), true) = (sends, portal.columns(), is_described) {
            self.out.row_description(&columns, |i| super::prepared::format(formats, i));
        }
        let moved = match &mut portal.state {
            State::Cursor(cursor) => self.step(cursor, direction, sends).await,
            // All rows were sent.
            _ => Ok(0),
        };
        self.portals.insert(name.to_owned(), portal);
        moved
    }

    /// Sends the next rows of a portal that a statement moved; returns how many, and whether there may be more.
    pub(super) async fn send_moved(&mut self, cursor: &mut Cursor, formats: &[i16], max: u64) -> Step<(u64, bool)> {
        let sent = self.forward(cursor, max, Some(formats)).await?;
        Ok((sent, sent >= max))
    }

    /// Moves the cursor; returns the number of rows that were skipped or, with formats, sent.
    async fn step(&mut self, cursor: &mut Cursor, step: Direction, sends: Option<&[i16]>) -> Step<u64> {
        let step = match step {
            Direction::Forward(0) | Direction::Backward(0) | Direction::Relative(0) => {
                let is_on_row = cursor.position > 0 && cursor.position <= cursor.known;
                return self.at(cursor, if is_on_row { cursor.position } else { 0 }, sends).await;
            }
            Direction::Forward(count) => return self.forward(cursor, count, sends).await,
            Direction::Backward(count) => return self.backward(cursor, count, sends).await,
            Direction::Absolute(row) => row,
            Direction::Relative(by) => i64::try_from(cursor.position).unwrap_or(i64::MAX).saturating_add(by).max(0),
        };
        let target = if step >= 0 {
            step.unsigned_abs()
        } else {
            while self.more(cursor).await? {}
            (cursor.known + 1).saturating_sub(step.unsigned_abs())
        };
        if target < cursor.position && !cursor.is_scroll {
            return Err(backwards().into());
        }
        while cursor.known < target && self.more(cursor).await? {
            cursor.position = cursor.known.min(target);
            cursor.forget();
        }
        cursor.position = target.min(cursor.known + 1);
        let row = if target <= cursor.known { target } else { 0 };
        self.at(cursor, row, sends).await
    }

    /// The one row, if there is one of the number.
    async fn at(&mut self, cursor: &mut Cursor, row: u64, sends: Option<&[i16]>) -> Step<u64> {
        if row == 0 {
            return Ok(0);
        }
        if let Some(formats) = sends {
            self.send_kept(cursor, row..row + 1, formats).await?;
        }
        Ok(1)
    }

    async fn forward(&mut self, cursor: &mut Cursor, count: u64, sends: Option<&[i16]>) -> Step<u64> {
        let mut passed = 0;
        while passed < count {
            if cursor.position >= cursor.known && !self.more(cursor).await? {
                cursor.position = cursor.known + 1;
                break;
            }
            let from = cursor.position + 1;
            let end = cursor.known.min(from.saturating_add(count - passed - 1)) + 1;
            if let Some(formats) = sends {
                self.send_kept(cursor, from..end, formats).await?;
            }
            passed += end - from;
            cursor.position = end - 1;
            cursor.forget();
        }
        Ok(passed)
    }

    async fn backward(&mut self, cursor: &mut Cursor, count: u64, sends: Option<&[i16]>) -> Step<u64> {
        if !cursor.is_scroll {
            return Err(backwards().into());
        }
        let mut passed = 0;
        while passed < count && cursor.position > 1 {
            cursor.position -= 1;
            passed += 1;
            if let Some(formats) = sends {
                self.send_kept(cursor, cursor.position..cursor.position + 1, formats).await?;
            }
        }
        if passed < count {
            cursor.position = 0;
        }
        Ok(passed)
    }

    /// Computes more rows; returns false at the end of the result.
    async fn more(&mut self, cursor: &mut Cursor) -> Step<bool> {
        while !cursor.is_complete {
            let next = tokio::select! {
                biased;
                next = cursor.running.rows.stream.next() => next,
                () = self.input.closed() => return Err(gone().into()),
            };
            let Some(batch) = next else {
                cursor.is_complete = true;
                break;
            };
            let batch = batch.map_err(|error| reported("", &error))?;
            let arrays = cursor.running.columns.iter().zip(batch.columns()).map(|(c, a)| canonical(c, a));
            let arrays: Vec<ArrayRef> = arrays.collect::<Done<_>>().map_err(|error| reported("", &error))?;
            if batch.num_rows() == 0 {
                continue;
            }
            if cursor.is_scroll {
                let bytes = arrays.iter().map(|array| array.get_array_memory_size()).sum();
                cursor.held.add(bytes).map_err(|e| Report::error("53200", e.message))?;
            }
            let count = batch.num_rows() as u64;
            cursor.rows.push_back(CursorRows { first: cursor.known + 1, count, arrays });
            cursor.known += count;
            return Ok(true);
        }
        Ok(false)
    }

    /// Sends computed rows by their row numbers.
    async fn send_kept(&mut self, cursor: &mut Cursor, rows: Range<u64>, formats: &[i16]) -> Step {
        let mut next = rows.start;
        while next < rows.end {
            let Some(kept) = cursor.rows.iter().find(|kept| (kept.first..kept.first + kept.count).contains(&next))
            else {
                return Err(Report::error("55000", "the rows of the cursor are not there any more").into());
            };
            let at = |row: u64| usize::try_from(row - kept.first).unwrap_or(usize::MAX);
            let range = at(next)..at(rows.end.min(kept.first + kept.count));
            let look = Look { formats, zone: self.variables.zone };
            let written = write_rows(&mut self.out, &cursor.running.columns, &kept.arrays, look, range);
            let written = written.map_err(|error| reported("", &error))?;
            next = kept.first + written as u64;
            self.out.flush_if_much().await?;
        }
        Ok(())
    }
}

fn missing(name: &str) -> Report {
    Report::error("34000", format!("cursor \"{name}\" does not exist"))
}

fn backwards() -> Report {
    Report::error("55000", "cursor can only scan forward")
        .with_hint("declare it with SCROLL option to enable backward scan")
}
