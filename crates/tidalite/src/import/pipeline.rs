//! Pieces of a file through reader, parsers and commits.

use super::{CsvPlan, OnBad};
use crate::{Error, ErrorKind, Result};
use futures::executor::block_on;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use tidalite_ingest::csv::{BadRecord, CsvParser, Parsed, Splitter};
use tidalite_types::Batch;

/// Text that is parsed and committed at a time.
const PIECE_BYTES: usize = 2 << 20;
/// A record, or a field in quotes that is never closed, may be so long.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// Commits under way.
const COMMITS_MAX: usize = 8;

/// How far an import is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Of the text.
    pub bytes: u64,
    /// Committed and acknowledged.
    pub rows: u64,
    pub bad: u64,
}

/// A record that is no row, with its line in the file, from 1.
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

struct Piece {
    number: u64,
    text: Vec<u8>,
}

type Done = (u64, usize, Parsed);

/// Imports what `reader` gives behind [`CsvPlan::skipped_bytes`]. `commit` takes batches in order; `told` hears of bad
/// records in order and of progress, and ends the import by an error.
///
/// # Errors
/// Of the reader, of a commit, of `told`; the first bad record under [`OnBad::Abort`].
pub fn import_csv(
    plan: &CsvPlan,
    reader: &mut (dyn Read + Send),
    threads: usize,
    on_bad: OnBad,
    mut commit: impl FnMut(Batch) -> BoxFuture<'static, Result<()>>,
    mut told: impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<Progress> {
    let threads = threads.max(1);
    let parsers: Vec<CsvParser> = (0..threads).map(|i| parser(plan, i as u64)).collect::<Result<_>>()?;
    let (to_parsers, pieces) = sync_channel::<Piece>(threads);
    let (to_commit, parsed) = sync_channel::<Done>(threads);
    let pieces = Mutex::new(pieces);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read_pieces(reader, Splitter::new(&plan.detected.format), to_parsers));
        for parser in parsers {
            let (pieces, to_commit) = (&pieces, to_commit.clone());
            scope.spawn(move || parse_pieces(parser, pieces, &to_commit));
        }
        drop(to_commit);
        let first_line = plan.detected.header_lines as u64;
        let done = commit_pieces(parsed, first_line, on_bad, &mut commit, &mut told);
        // The parsers have seen that nobody listens, or the end; the reader must not wait for them for ever.
        drop(std::mem::replace(&mut *pieces.lock().unwrap_or_else(PoisonError::into_inner), sync_channel(1).1));
        let read = reading.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "reading the file panicked")));
        let done = done?;
        read.map(|()| done)
    })
}

fn parser(plan: &CsvPlan, number: u64) -> Result<CsvParser> {
    let detected = &plan.detected;
    let seed = seed() ^ number;
    Ok(CsvParser::new(&detected.format, &plan.table, &detected.columns, detected.timestamp.as_deref(), seed)?)
}

/// So that no file can be made whose symbols collide.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn read_pieces(reader: &mut (dyn Read + Send), mut splitter: Splitter, to: SyncSender<Piece>) -> Result<()> {
    let mut held: Vec<u8> = Vec::with_capacity(2 * PIECE_BYTES);
    let mut number = 0;
    loop {
        let wanted = held.len() + PIECE_BYTES;
        let is_end = fill(reader, &mut held, wanted)?;
        let whole = if is_end { held.len() } else { splitter.split(&held) };
        if held.len() - whole > RECORD_BYTES_MAX {
            let message =
                format!("a record, or a quoted field that is not closed, is longer than {RECORD_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if whole > 0 {
            let mut rest = Vec::with_capacity(2 * PIECE_BYTES);
            rest.extend_from_slice(&held[whole..]);
            held.truncate(whole);
            let text = std::mem::replace(&mut held, rest);
            // Nobody listens when the import ended early.
            if to.send(Piece { number, text }).is_err() {
                return Ok(());
            }
            number += 1;
        }
        if is_end {
            return Ok(());
        }
    }
}

/// Reads until `held` has `wanted` bytes; true at the end of the file.
fn fill(reader: &mut (dyn Read + Send), held: &mut Vec<u8>, wanted: usize) -> Result<bool> {
    let missing = wanted.saturating_sub(held.len()) as u64;
    let read = reader.take(missing).read_to_end(held);
    let read = read.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not be read: {e}")))?;
    Ok((read as u64) < missing)
}

fn parse_pieces(mut parser: CsvParser, pieces: &Mutex<Receiver<Piece>>, to: &SyncSender<Done>) {
    loop {
        let next = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Piece { number, text }) = next else { return };
        let parsed = parser.parse(&text);
        if to.send((number, text.len(), parsed)).is_err() {
            return;
        }
    }
}

struct UnderWay {
    rows: u64,
    bytes: u64,
    done: BoxFuture<'static, Result<()>>,
}

fn commit_pieces(
    parsed: Receiver<Done>,
    first_line: u64,
    on_bad: OnBad,
    commit: &mut impl FnMut(Batch) -> BoxFuture<'static, Result<()>>,
    told: &mut impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<Progress> {
    let mut progress = Progress::default();
    let (mut early, mut next, mut line) = (BTreeMap::new(), 0, first_line);
    let mut under_way: VecDeque<UnderWay> = VecDeque::new();
    let mut failed = None;
    'pieces: for (number, bytes, piece) in parsed.iter() {
        early.insert(number, (bytes, piece));
        while let Some((bytes, piece)) = early.remove(&next) {
            next += 1;
            let Parsed { batch, lines, bad } = piece;
            for record in bad {
                let bad = Bad { line: line + record.line + 1, record };
                progress.bad += 1;
                let refused = match on_bad {
                    OnBad::Skip => told(Some(&bad), progress).err(),
                    OnBad::Abort => Some(aborted(&bad)),
                };
                if refused.is_some() {
                    failed = refused;
                    break 'pieces;
                }
            }
            line += lines;
            let (rows, bytes) = (batch.rows as u64, bytes as u64);
            let done: BoxFuture<'static, Result<()>> =
                if rows == 0 { Box::pin(async { Ok(()) }) } else { commit(batch) };
            under_way.push_back(UnderWay { rows, bytes, done });
            while under_way.len() > COMMITS_MAX {
                if let Err(error) = acknowledge(&mut under_way, &mut progress, told) {
                    failed = Some(error);
                    break 'pieces;
                }
            }
        }
    }
    // The parsers must not wait for somebody who takes what they made.
    drop(parsed);
    while !under_way.is_empty() {
        if let Err(error) = acknowledge(&mut under_way, &mut progress, told) {
            failed.get_or_insert(error);
        }
    }
    match failed {
        None => Ok(progress),
        Some(mut error) => {
            if progress.rows > 0 {
                let rows = progress.rows;
                error.hint = Some(format!("{rows} rows of it are in the table"));
            }
            Err(error)
        }
    }
}

fn aborted(bad: &Bad) -> Error {
    let mut error = Error::new(ErrorKind::Invalid, bad.to_string());
    error.line = Some(bad.line);
    error
}

/// Waits for the oldest commit under way.
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
