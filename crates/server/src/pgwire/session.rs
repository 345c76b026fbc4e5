//! The state of a session, and the outcome of its messages.

use super::block::Block;
use super::command::Variables;
use super::cursor::Cursor;
use super::message::Input;
use super::prepared::{Portal, Prepared};
use super::reply::{Output, Report};
use super::state::PgState;
use crate::errors::{position, sqlstate};
use crate::stop::Stop;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tidalite::Error;

pub(super) const IDLE: u8 = b'I';
pub(super) const OPEN: u8 = b'T';
pub(super) const FAILED: u8 = b'E';

/// The reason why a message failed.
pub(super) enum Failure {
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

pub(super) type Step<T = ()> = Result<T, Failure>;

pub(super) struct Session<'a> {
    pub(super) input: Input,
    pub(super) out: Output,
    pub(super) shared: &'a PgState,
    pub(super) client: &'a str,
    pub(super) variables: Variables,
    pub(super) transaction: u8,
    /// The open transaction.
    pub(super) block: Option<Block>,
    /// Command tag of the last statement of a message; sent after its block has been committed.
    pub(super) held_tag: Option<String>,
    pub(super) holds_tag: bool,
    /// Statements by name; the unnamed statement has the empty name.
    pub(super) statements: HashMap<String, Arc<Prepared>>,
    pub(super) portals: HashMap<String, Portal>,
    /// Cursors that SQL declared, by name.
    pub(super) cursors: HashMap<String, Cursor>,
    /// True after a message of the pipeline failed: messages up to the next Sync are skipped.
    pub(super) is_skipping: bool,
    pub(super) stop: Stop,
}

pub(super) fn reported(sql: &str, error: &Error) -> Report {
    Report {
        hint: error.hint.clone(),
        position: error.position.filter(|_| !sql.is_empty()).map(|_| position(sql, error) + 1),
        ..Report::error(sqlstate(error), error.message.clone())
    }
}

pub(super) fn not_utf8() -> Report {
    Report::error("22021", "invalid byte sequence for encoding \"UTF8\"")
}

pub(super) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client left while its statement ran")
}
