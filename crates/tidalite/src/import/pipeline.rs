//! Passes the pieces of a file through reader, parsers and commits.

use super::pieces::{Piece, Pieces};
use super::reader::Reader;
use super::window::Window;
use super::{CsvPlan, OnBad};
use crate::threads::spawn_detached;
use crate::{Error, ErrorKind, Result};
use futures::executor::block_on;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_ingest::csv::{BadRecord, CsvParser, Parsed};
use tidalite_types::Batch;

/// Size in bytes of the text that is parsed and committed at a time.
const PIECE_BYTES: usize = 2 << 20;
/// Largest number of concurrent commits.
const COMMITS_MAX: usize = 8;

/// The progress of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the text.
    pub bytes: u64,
    /// Committed and acknowledged rows.
    pub rows: u64,
    /// Skipped records.
    pub bad: u64,
    /// Values of rows that became NULL because they were invalid or missing.
    pub nulled: u64,
}

/// An invalid record, or a value that became NULL, with its line in the file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    pub line: u64,
    pub record: BadRecord,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, position {}", self.line, self.record.position)?;
        if let Some(column) = &self.record.column {
            write!(f, ", column \"{column}\"")?;
        }
        write!(f, ": {}", self.record.reason)
    }
}

/// The result of parsing a piece, or the beginning of its rest.
struct Part {
    piece: u64,
    number: u64,
    is_last: bool,
    /// Number of lines of the file before it.
    lines_before: u64,
    parsed: Parsed,
}

/// Imports the text of `reader` after [`CsvPlan::skipped_bytes`].
///
/// `commit` gets batches in order. `told` gets invalid records in order and the progress, and ends the import by an
/// error.
///
/// # Errors
/// Fails if the reader, a commit or `told` fails, and at the first invalid record under [`OnBad::Abort`]. The hint
/// contains the number of rows that were imported before.
pub fn import_csv(
    plan: &CsvPlan,
    reader: Reader,
    threads: usize,
    on_bad: OnBad,
    mut commit: impl FnMut(Batch) -> BoxFuture<'static, Result<()>>,
    mut told: impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<Progress> {
    let threads = threads.max(1);
    let (to_parsers, pieces) = sync_channel::<Piece>(threads);
    let (to_commit, parsed) = sync_channel::<Part>(threads);
    let (to_end, end) = sync_channel(1);
    let all = Pieces::new(reader, &plan.detected.format, plan.lines_before, PIECE_BYTES);
    start("tidalite-import-read", move || {
        // The receiver is gone if the import ended early.
        let _ = to_end.send(read_pieces(all, &to_parsers));
    })?;
    let pieces = Arc::new(Mutex::new(pieces));
    let window = Arc::new(Window::new(2 * threads + COMMITS_MAX));
    for number in 0..threads {
        let parser = parser(plan, number as u64);
        let (pieces, window, to_commit) = (pieces.clone(), window.clone(), to_commit.clone());
        start("tidalite-import", move || parse_pieces(parser, on_bad, &pieces, &window, &to_commit))?;
    }
    drop(to_commit);
    let limits = Limits { on_bad, rejects_max: plan.rejects_max };
    let done = commit_pieces(&parsed, &end, &window, limits, &mut commit, &mut told);
    window.close();
    done
}

/// Parses the rows of a text in memory after [`CsvPlan::skipped_bytes`] to batches; one batch unless very many records
/// are invalid.
///
/// The progress counts the rows as committed.
///
/// # Errors
/// Fails at the first invalid record under [`OnBad::Abort`].
pub fn parse_csv(
    plan: &CsvPlan,
    text: &[u8],
    on_bad: OnBad,
    mut told: impl FnMut(&Bad),
) -> Result<(Vec<Batch>, Progress)> {
    let mut parser = parser(plan, 0);
    let (mut batches, mut progress) = (Vec::new(), Progress::default());
    let (mut at, mut lines_before) = (0, plan.lines_before);
    while at < text.len() {
        let Parsed { batch, bytes, lines, bad } = parser.parse(&text[at..], on_bad);
        for record in bad {
            let bad = progress.found(lines_before, record, on_bad, plan.rejects_max)?;
            told(&bad);
        }
        at += bytes;
        lines_before += lines;
        progress.rows += batch.rows as u64;
        if batch.rows > 0 {
            batches.push(batch);
        }
    }
    progress.bytes = text.len() as u64;
    Ok((batches, progress))
}

impl Progress {
    /// Counts an invalid record, unless it ends the import.
    fn found(&mut self, lines_before: u64, record: BadRecord, on_bad: OnBad, max: Option<u64>) -> Result<Bad> {
        let bad = Bad { line: lines_before + record.line + 1, record };
        if on_bad == OnBad::Abort {
            return Err(aborted(&bad));
        }
        let count = if bad.record.is_row { &mut self.nulled } else { &mut self.bad };
        *count += 1;
        match max {
            Some(max) if self.bad + self.nulled > max => {
                let message = format!("more than {max} records are left out or values NULL, the limit of max_rejects");
                let mut error = aborted(&bad);
                error.message = format!("{message}; the last: {}", error.message);
                Err(error)
            }
            _ => Ok(bad),
        }
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    spawn_detached(name, run).map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start a thread: {e}")))
}

fn parser(plan: &CsvPlan, number: u64) -> CsvParser {
    let detected = &plan.detected;
    let seed = seed() ^ number;
    CsvParser::new(&detected.format, &plan.table, &detected.columns, detected.timestamp.as_deref(), seed)
}

/// Returns a random seed, so that no file can be crafted whose symbols collide.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

/// Sends all pieces and returns their number.
fn read_pieces(pieces: Pieces, to: &SyncSender<Piece>) -> Result<u64> {
    let mut count = 0;
    for piece in pieces {
        if to.send(piece?).is_err() {
            break;
        }
        count += 1;
    }
    Ok(count)
}

fn parse_pieces(
    mut parser: CsvParser,
    on_bad: OnBad,
    pieces: &Mutex<Receiver<Piece>>,
    window: &Window,
    to: &SyncSender<Part>,
) {
    loop {
        let next = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Piece { number: piece, mut lines_before, text }) = next else { return };
        let (mut at, mut number) = (0, 0);
        while at < text.len() {
            if !window.wait(piece, number) {
                return;
            }
            let parsed = parser.parse(&text[at..], on_bad);
            at += parsed.bytes;
            let lines = parsed.lines;
            if to.send(Part { piece, number, is_last: at >= text.len(), lines_before, parsed }).is_err() {
                return;
            }
            lines_before += lines;
            number += 1;
        }
    }
}

/// The handling of bad records.
#[derive(Clone, Copy)]
struct Limits {
    on_bad: OnBad,
    rejects_max: Option<u64>,
}

struct UnderWay {
    rows: u64,
    bytes: u64,
    done: BoxFuture<'static, Result<()>>,
}

fn commit_pieces(
    parsed: &Receiver<Part>,
    end: &Receiver<Result<u64>>,
    window: &Window,
    limits: Limits,
    commit: &mut impl FnMut(Batch) -> BoxFuture<'static, Result<()>>,
    told: &mut impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<Progress> {
    let mut progress = Progress::default();
    let mut under_way: VecDeque<UnderWay> = VecDeque::new();
    let mut done = commit_in_order(parsed, window, limits, commit, told, &mut progress, &mut under_way);
    if let Ok(committed) = done {
        done = all_read(end, committed).map(|()| committed);
    }
    while !under_way.is_empty() {
        let acknowledged = acknowledge(&mut under_way, &mut progress, told);
        done = done.and_then(|count| acknowledged.map(|()| count));
    }
    match done {
        Ok(_) => Ok(progress),
        Err(mut error) => {
            if progress.rows > 0 {
                error.hint = Some(format!("{} rows of it are in the table", progress.rows));
            }
            Err(error)
        }
    }
}

/// Checks that the file was read to its end, and that everything read is committed.
fn all_read(end: &Receiver<Result<u64>>, committed: u64) -> Result<()> {
    let panicked = |what: &str| Err(Error::new(ErrorKind::Internal, format!("{what} the file panicked")));
    match end.recv() {
        Ok(Ok(count)) if count == committed => Ok(()),
        Ok(Ok(_)) => panicked("parsing"),
        Ok(Err(error)) => Err(error),
        Err(_) => panicked("reading"),
    }
}

/// Commits in order and returns the number of committed pieces when the parsers have finished.
fn commit_in_order(
    parsed: &Receiver<Part>,
    window: &Window,
    limits: Limits,
    commit: &mut impl FnMut(Batch) -> BoxFuture<'static, Result<()>>,
    told: &mut impl FnMut(Option<&Bad>, Progress) -> Result<()>,
    progress: &mut Progress,
    under_way: &mut VecDeque<UnderWay>,
) -> Result<u64> {
    let (mut early, mut next) = (BTreeMap::new(), (0, 0));
    for part in parsed {
        early.insert((part.piece, part.number), part);
        while let Some(Part { piece, number, is_last, lines_before, parsed }) = early.remove(&next) {
            next = if is_last { (piece + 1, 0) } else { (piece, number + 1) };
            if is_last {
                window.move_to(next.0);
            }
            for record in parsed.bad {
                let bad = progress.found(lines_before, record, limits.on_bad, limits.rejects_max)?;
                told(Some(&bad), *progress)?;
            }
            let (rows, bytes) = (parsed.batch.rows as u64, parsed.bytes as u64);
            let done: BoxFuture<'static, Result<()>> =
                if rows == 0 { Box::pin(async { Ok(()) }) } else { commit(parsed.batch) };
            under_way.push_back(UnderWay { rows, bytes, done });
            while under_way.len() > COMMITS_MAX {
                acknowledge(under_way, progress, told)?;
            }
        }
    }
    Ok(next.0)
}

fn aborted(bad: &Bad) -> Error {
    let mut error = Error::new(ErrorKind::Invalid, bad.to_string());
    error.line = Some(bad.line);
    error
}

/// Waits for the oldest running commit.
fn acknowledge(
    under_way: &mut VecDeque<UnderWay>,
    progress: &mut Progress,
    told: &mut impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<()> {
    let Some(UnderWay { rows, bytes, done }) = under_way.pop_front() else { return Ok(()) };
    block_on(done)?;
    progress.rows += rows;
    progress.bytes += bytes;
    told(None, *progress)
}
