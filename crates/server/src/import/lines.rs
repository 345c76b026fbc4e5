//! Line protocol into a folder or to a server.

use super::args::ImportArgs;
use super::place::Place;
use super::report::{Done, Report};
use super::source::Source;
use crate::errors::with_hint;
use crate::lines::{Lines, line_error};
use crate::shell::target::Target;
use futures::executor::block_on;
use std::collections::{BTreeSet, VecDeque};
use std::io::Read;
use tidalite::Database;
use tidalite::import::{RECORD_BYTES_MAX, lines_of};
use tidalite::line::LineOptions;
use tidalite::types::{Batch, EpochUnit};

const READ_BYTES: usize = 1 << 20;
/// Of a request to a server.
const POST_BYTES: usize = 8 << 20;
/// A commit.
const COMMIT_ROWS: usize = 50_000;
/// Commits under way.
const COMMITS_MAX: usize = 4;

pub fn import(source: &Source, asked: &ImportArgs, place: &Place, report: &Report) -> Result<Done, String> {
    let precision = asked.precision.as_deref().unwrap_or_default();
    let unit = EpochUnit::from_precision(precision);
    let timestamp_unit =
        unit.ok_or_else(|| format!("--precision is {precision:?}; it can be ns, us, ms, s, m or h"))?;
    if asked.is_dry_run {
        return Ok(Done {
            plan: Some("line protocol names its tables and columns itself".to_owned()),
            ..Done::default()
        });
    }
    match place.target() {
        Some(Target::Folder { database, .. }) => {
            here(source, database, LineOptions { timestamp_unit, ..LineOptions::default() }, report)
        }
        Some(server) => there(source, server, precision, report),
        None => Err("there is no data folder".to_owned()),
    }
}

fn here(source: &Source, database: &Database, options: LineOptions, report: &Report) -> Result<Done, String> {
    let mut reader = source.open()?;
    let mut lines = Lines::new(options);
    let mut piece = Vec::with_capacity(READ_BYTES);
    let (mut done, mut tables, mut under_way) = (Done::default(), BTreeSet::new(), VecDeque::new());
    loop {
        piece.clear();
        let read = (&mut reader).take(READ_BYTES as u64).read_to_end(&mut piece);
        let is_end = read.map_err(|e| format!("could not be read: {e}"))? < READ_BYTES;
        done.bytes += piece.len() as u64;
        let parsed = lines.push(&piece).and_then(|()| if is_end { lines.finish() } else { Ok(()) });
        if lines.rows() >= COMMIT_ROWS || is_end || parsed.is_err() {
            let batches: Vec<Batch> = lines.take();
            tables.extend(batches.iter().map(|b| b.table.clone()));
            let rows: usize = batches.iter().map(|b| b.rows).sum();
            under_way.push_back((rows as u64, database.commit(batches)));
        }
        let left = if is_end || parsed.is_err() { 0 } else { COMMITS_MAX };
        while under_way.len() > left {
            let Some((rows, commit)) = under_way.pop_front() else { break };
            block_on(commit).map_err(|e| with_hint(&e))?;
            done.rows += rows;
            report.progress(done.rows, 0);
        }
        parsed.map_err(|e| {
            let error = line_error(&e);
            format!("line {}: {}; the {} rows before it are in", e.line, error.message, done.rows)
        })?;
        if is_end {
            done.tables = tables.into_iter().collect();
            return Ok(done);
        }
    }
}

/// Cut at ends of lines; a request is one commit.
fn there(source: &Source, server: &Target, precision: &str, report: &Report) -> Result<Done, String> {
    let mut reader = source.open()?;
    let mut done = Done::default();
    let mut held = Vec::with_capacity(2 * POST_BYTES);
    let mut lines = 0;
    loop {
        let wanted = POST_BYTES as u64;
        let read = (&mut reader).take(wanted).read_to_end(&mut held).map_err(|e| format!("could not be read: {e}"))?;
        let is_end = (read as u64) < wanted;
        let whole = if is_end { held.len() } else { memchr::memrchr(b'\n', &held).map_or(0, |at| at + 1) };
        if whole > 0 {
            let answer = server.post(&format!("/write?precision={precision}"), "text/plain", &held[..whole])?;
            if !answer.is_empty() {
                return Err(format!("lines from {}: {}; those before it are in", lines + 1, answer.trim()));
            }
            lines += lines_of(&held[..whole]);
            done.rows += rows_of(&held[..whole]);
            done.bytes += whole as u64;
            report.progress(done.rows, 0);
            held.drain(..whole);
        }
        if held.len() > RECORD_BYTES_MAX {
            return Err(format!("line {} is longer than {RECORD_BYTES_MAX} bytes", lines + 1));
        }
        if is_end {
            return Ok(done);
        }
    }
}

/// A line is a row unless it is blank or a comment.
fn rows_of(text: &[u8]) -> u64 {
    let is_row = |line: &&[u8]| line.trim_ascii_start().first().is_some_and(|first| *first != b'#');
    text.split(|byte| *byte == b'\n').filter(is_row).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_no_rows() {
        assert_eq!(rows_of(b"# c\na v=1 1\n\r\n  \nb v=2 2\n"), 2);
        assert_eq!(rows_of(b"a v=1"), 1);
    }
}
