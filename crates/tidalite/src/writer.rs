//! The commit thread: everything that changes the database passes here, in one order.
//!
//! In: requests. Each round takes what has queued up, decides every request against the catalog, writes all that was
//! accepted to the log at once, syncs once (group commit), publishes, and answers. A refused request leaves no trace;
//! a failed sync poisons the log, and nothing is committed until the database is opened again. Where syncs are slow,
//! groups of rows are synced and published by other threads ([`flights`]), in the same order.
//!
//! Writers that outrun the merge are slowed twice: above the staging limit large commits are answered only once the
//! merge has caught up, above twice the limit nothing is taken until it has.

mod changes;
mod flights;
mod publish;

pub(crate) use changes::{RowChange, TransactionChange, not_serializable};

use crate::config::Durability;
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use changes::{Decided, Views};
use flights::Flights;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use publish::{Publisher, fail};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tidalite_ingest::apply::is_plain;
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::{commit_command, is_view};
use tidalite_ingest::commit::partial::{Refused, commit_valid};
use tidalite_ingest::commit::{commit_batches, truncate_at_line};
use tidalite_ingest::dedup::Wins;
use tidalite_ingest::order::by_line;
use tidalite_ingest::wal::log::{Group, LogWriter};
use tidalite_ingest::wal::record::Op;
use tidalite_kernels::ask_for_short_turns;
use tidalite_types::{Batch, Command, Txn};

/// Bytes of rows that a group may always have, and may have at most. In between it may take about as long as the sync
/// that follows: a fast disk gets small groups, so that nobody waits long for others, a slow one gets large groups.
const GROUP_BYTES: (usize, usize) = (2 << 20, 32 << 20);
/// Streams of more bytes stay out of a group that somebody waits for, once.
const STREAM_BYTES_BESIDE: usize = 256 << 10;
/// How long streams that need another file of the log wait at most until no group is under way.
const FILE_WAIT_MAX: Duration = Duration::from_millis(20);
/// What the commit thread encodes and writes in a second, or rather less.
const GROUP_BYTES_PER_SECOND: f64 = 1e9;
/// One commit must fit a record of the log.
const COMMIT_BYTES_MAX: usize = 1 << 30;
/// Commits of at most this many bytes are answered at once even while staging is over its limit.
const SMALL_COMMIT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) enum Work {
    Rows {
        batches: Vec<Batch>,
        mode: RowsMode,
    },
    Command(Command),
    /// Rows that a statement found are deleted or replaced.
    Change(RowChange),
    /// All that a transaction did, as one commit.
    Transaction(TransactionChange),
    /// Makes every commit so far durable.
    Sync,
    /// Files of the log up to this commit are not needed any more.
    Release(Txn),
    /// Staging shrank: held answers may go.
    Wake,
    /// A check that commits are processed.
    Probe,
    /// Requests that form one group: for the simulation, where nothing may hang on when a thread wakes up.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the simulation needs to say what a group is"))]
    Together(Vec<Request>),
    /// There is a new spare file for the log.
    Spare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsMode {
    /// Tables and columns that do not exist are created.
    Create,
    /// As `Create`; when a row is refused the rows of the lines before it are committed all the same.
    CreatePrefix,
    /// As `Create`; rows that are refused are left out.
    CreateValid,
    /// Table and columns must exist.
    Insert,
    /// As `Insert`, and rows whose upsert keys are there already are left out.
    InsertNew,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub work: Work,
    pub reply: oneshot::Sender<Result<Committed>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Committed {
    pub txn: Txn,
    /// With [`RowsMode::CreatePrefix`]: why the rest was refused. With [`RowsMode::CreateValid`]: why each of the rows that
    /// were left out was refused, in order of their lines.
    pub refused: Vec<Error>,
    /// Rows that a [`RowChange`] changed; `None` when they moved and nothing was done. With [`RowsMode::InsertNew`] the
    /// rows that were new.
    pub changed: Option<u64>,
}

/// How requests reach the commit thread, which ends when the last of these is gone.
pub(crate) type Requests = Arc<mpsc::Sender<Request>>;

pub(crate) struct Writer {
    shared: Arc<Shared>,
    requests: Receiver<Request>,
    catalog: Catalog,
    log: LogWriter,
    txn: Txn,
    /// Requests taken from the channel while there was no room for them.
    waiting: VecDeque<Request>,
    /// Empty between rounds; kept for its memory.
    group: Group,
    /// How long the last sync took.
    sync_time: Duration,
    /// Whether connections' streams stayed out of the last group.
    streams_waited: bool,
    /// Since when streams have waited for another file of the log.
    file_is_full_since: Option<Instant>,
    publisher: Arc<Publisher>,
    flights: Flights,
}

struct Accepted {
    txn: Txn,
    ops: Vec<Op>,
    bytes: usize,
    refused: Vec<Error>,
    changed: Option<u64>,
    /// What made the rows of the request impossible after it could not be refused wholly any more.
    failed: Option<Error>,
    reply: oneshot::Sender<Result<Committed>>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        requests: Receiver<Request>,
        sender: &Requests,
        catalog: Catalog,
        log: LogWriter,
        txn: Txn,
    ) -> Writer {
        let publisher = Arc::new(Publisher::new(shared.clone()));
        let flights = Flights::new(publisher.clone(), shared.config.sync_delay, sender);
        Writer {
            shared,
            requests,
            catalog,
            log,
            txn,
            waiting: VecDeque::new(),
            group: Group::default(),
            sync_time: Duration::ZERO,
            streams_waited: false,
            file_is_full_since: None,
            publisher,
            flights,
        }
    }

    /// Runs until every handle that could send a request is gone.
    pub(crate) fn run(mut self) {
        let mut last_sync = Instant::now();
        // Everybody who commits waits for this thread.
        ask_for_short_turns();
        loop {
            match self.receive(last_sync) {
                Ok(first) => self.round(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Durability::Interval(interval) = self.shared.config.durability
                && last_sync.elapsed() >= interval
            {
                // A failure poisons the log: the next commit reports it.
                let _ = self.log.sync();
                last_sync = Instant::now();
            }
            self.publisher.answer_held();
            self.shared.counters.log_bytes.store(self.log.byte_count(), Relaxed);
            self.shared.log_wants_spare.store(self.log.wants_spare(), Relaxed);
            self.note_failure();
        }
        self.land_all();
        // After a clean close the mark covers the whole log.
        let _ = self.log.sync().and_then(|()| self.log.mark().write());
    }

    /// Waits until there is something to do; gives what came, if anything had to come.
    fn receive(&mut self, last_sync: Instant) -> Result<Option<Request>, RecvTimeoutError> {
        let is_ready = self.waiting.iter().any(|r| !is_stream(r)) || self.streams_may_come();
        if !self.waiting.is_empty() && is_ready {
            return Ok(None);
        }
        let received = match self.shared.config.durability {
            Durability::Interval(interval) => self.requests.recv_timeout(interval.saturating_sub(last_sync.elapsed())),
            _ => self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        received.map(Some)
    }

    fn round(&mut self, first: Option<Request>) {
        self.waiting.extend(first);
        self.waiting.extend(std::iter::from_fn(|| self.requests.try_recv().ok()));
        self.hear_of_flights();
        let streams = match (self.streams_may_come(), self.streams_waited) {
            (false, _) => Streams::Wait,
            (true, false) => Streams::MayWait,
            (true, true) => Streams::Come,
        };
        let bytes_max = self.group_bytes_max();
        let mut requests = take_group(&mut self.waiting, bytes_max, streams);
        let has_streams = requests.iter().any(is_stream);
        self.streams_waited = !has_streams && self.waiting.iter().any(is_stream);
        // What the merge asks for comes first: rows may have to wait for that very merge.
        requests.retain_mut(|request| !self.is_served(request));
        if requests.is_empty() {
            return;
        }
        let has_rows = requests.iter().any(|r| matches!(r.work, Work::Rows { .. }));
        if has_rows && !requests.iter().any(|r| may_hold_merges(&r.work)) {
            self.wait_for_room();
        }
        let requests = self.reserve(requests);
        // What is not rows is decided by what readers see.
        let may_kill = requests.iter().any(|r| self.may_kill(&r.work));
        if may_kill || requests.iter().any(|r| !matches!(r.work, Work::Rows { .. })) {
            self.land_all();
        }
        let mut group = std::mem::take(&mut self.group);
        let mut accepted = Vec::with_capacity(requests.len());
        let shared = self.shared.clone();
        let mut views = Views::new(&shared);
        if may_kill {
            views.lock();
            if let Err(error) = shared.settle_manifest() {
                return refuse(requests, &error.into());
            }
        }
        for request in requests {
            self.decide(request, &mut group, &mut accepted, &mut views);
        }
        let flies = !may_kill && !group.is_empty() && self.may_fly(&accepted);
        if flies {
            self.flights.wait_for_room();
        } else {
            self.land_all();
        }
        // A merge writes what died into the manifest: that must not be ahead of the log.
        let must_sync = accepted.iter().flat_map(|a| &a.ops).any(|op| matches!(op, Op::Delete { .. }));
        if let Err(error) = self.append(&mut group).and_then(|()| if flies { Ok(()) } else { self.sync(must_sync) }) {
            return fail(accepted, &Error::from(error));
        }
        self.group = group;
        if flies {
            self.flights.begin(self.log.unsynced(), accepted, has_streams);
        } else {
            self.publisher.publish(&self.catalog, accepted);
        }
    }

    /// Makes room in the log; refuses what there is none for.
    fn reserve(&mut self, requests: Vec<Request>) -> Vec<Request> {
        // Estimated generously: only that much room makes a full disk a refusal instead of a broken log.
        let room = requests.iter().map(|r| log_room(&r.work)).sum::<u64>();
        if !self.log.has_room(room) {
            self.land_all();
        }
        if room == 0 {
            return requests;
        }
        let Err(error) = self.log.reserve(room) else {
            self.shared.note_log_room(None);
            return requests;
        };
        self.note_full(room, &error);
        let error = error.into();
        let (freeing, others): (Vec<_>, Vec<_>) = requests.into_iter().partition(|r| frees_space(&r.work));
        refuse(others, &error);
        let room = freeing.iter().map(|r| log_room(&r.work)).sum::<u64>();
        if room == 0 || self.log.reserve_to_free(room).is_err() {
            refuse(freeing, &error);
            return Vec::new();
        }
        freeing
    }

    /// Notes a full disk, unless the log has failed.
    fn note_full(&self, room: u64, error: &tidalite_storage::Error) {
        if self.log.check().is_ok() {
            self.shared.note_log_room(Some((room, error.to_string())));
        }
    }

    /// Retries the reservation of log space after a full disk, and notes the result.
    fn look_for_room(&mut self) -> tidalite_storage::Result<()> {
        let Some(room) = self.shared.log_room_missing() else { return Ok(()) };
        if !self.log.has_room(room) {
            self.land_all();
        }
        match self.log.reserve(room) {
            Ok(()) => self.shared.note_log_room(None),
            Err(error) => self.note_full(room, &error),
        }
        Ok(())
    }

    /// Publishes a failure of the log.
    fn note_failure(&self) {
        if let Some(why) = self.log.failure() {
            self.shared.note_log_failure(why);
        }
    }

    /// Whether streams that wait may be written now; if not, something is received when a group has landed. What does not fit
    /// the log's file waits a while until nothing flies, so that nobody else has to wait for that.
    fn streams_may_come(&mut self) -> bool {
        let streams = self.waiting.iter().filter(|r| is_stream(r)).take(2);
        let room: u64 = streams.map(|r| log_room(&r.work)).sum();
        if self.log.has_room(room) {
            self.file_is_full_since = None;
            return room == 0 || self.flights.have_room_for_streams();
        }
        let since = *self.file_is_full_since.get_or_insert_with(Instant::now);
        self.flights.are_down() || since.elapsed() >= FILE_WAIT_MAX
    }

    /// While syncs overlap, what is encoded for one group keeps the next from beginning its own.
    fn group_bytes_max(&self) -> usize {
        let time = if self.syncs_overlap() { self.sync_time / 2 } else { self.sync_time };
        ((time.as_secs_f64() * GROUP_BYTES_PER_SECOND) as usize).clamp(GROUP_BYTES.0, GROUP_BYTES.1)
    }

    fn syncs_overlap(&self) -> bool {
        let from = self.shared.config.overlap_syncs_from;
        self.shared.config.durability == Durability::Sync && from.is_some_and(|from| self.sync_time >= from)
    }

    /// Whether the commit thread can go on before these are durable and visible.
    fn may_fly(&mut self, accepted: &[Accepted]) -> bool {
        let mut ops = accepted.iter().flat_map(|a| &a.ops);
        self.syncs_overlap() && ops.all(|op| is_plain(op, &self.catalog)) && self.flights.can_fly()
    }

    fn hear_of_flights(&mut self) {
        if let Some(time) = self.flights.tell(&mut self.log) {
            self.sync_time = time;
        }
    }

    /// Waits until everything written is durable and visible, or has failed.
    fn land_all(&mut self) {
        self.flights.wait_for_all();
        self.hear_of_flights();
    }

    /// Whether it names rows that die by where they are.
    fn may_kill(&self, work: &Work) -> bool {
        let has_keys = |batch: &Batch| {
            let entry = self.catalog.id_of(&batch.table).and_then(|id| self.catalog.get(id));
            entry.is_some_and(|entry| !entry.schema.dedup.is_empty())
        };
        match work {
            Work::Change(_) | Work::Transaction(_) => true,
            Work::Rows { batches, .. } => batches.iter().any(has_keys),
            _ => false,
        }
    }

    /// Does what is about the log and not about rows, and answers; false for everything else.
    fn is_served(&mut self, request: &mut Request) -> bool {
        if let Work::Together(requests) = &mut request.work {
            self.waiting.extend(requests.drain(..));
        }
        let done = match request.work {
            // Who sees a commit sees it because it is in the log, and durable if that is what commits wait for.
            Work::Sync if self.shared.config.durability == Durability::Sync => self.log.check(),
            Work::Sync => self.log.sync(),
            Work::Release(txn) => {
                self.log.release(txn);
                Ok(())
            }
            Work::Wake => Ok(()),
            Work::Probe => self.look_for_room(),
            Work::Together(_) => Ok(()),
            Work::Spare => {
                self.log.add_spare();
                // Before the answer: who made one must not make another over it.
                self.shared.log_wants_spare.store(false, Relaxed);
                Ok(())
            }
            Work::Rows { .. } | Work::Command(_) | Work::Change(_) | Work::Transaction(_) => return false,
        };
        let (nobody, _) = oneshot::channel();
        let reply = std::mem::replace(&mut request.reply, nobody);
        let committed = Committed { txn: self.txn, refused: Vec::new(), changed: None };
        let _ = reply.send(done.map(|()| committed).map_err(Error::from));
        true
    }

    /// Above twice the staging limit no rows are taken until the merge has made room.
    fn wait_for_room(&mut self) {
        let limit = 2 * self.shared.config.staging_bytes;
        while self.shared.tables.read().staged().bytes > limit && !self.shared.merge_is_stuck() {
            self.shared.ask_for_merge();
            match self.requests.recv_timeout(Duration::from_millis(50)) {
                Ok(mut request) => {
                    if !self.is_served(&mut request) {
                        let may_hold = may_hold_merges(&request.work);
                        self.waiting.push_back(request);
                        if may_hold {
                            return;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn decide(&mut self, request: Request, group: &mut Group, accepted: &mut Vec<Accepted>, views: &mut Views<'_>) {
        let Request { work, reply } = request;
        let bytes = byte_count(&work);
        let txn = self.txn.next();
        let mut changed = None;
        // If a transaction with commands fails, the catalog is restored. Failed rows do not change the catalog.
        let has_commands = matches!(&work, Work::Transaction(change) if !change.commands.is_empty());
        let before = has_commands.then(|| self.catalog.clone());
        let is_new_only = matches!(work, Work::Rows { mode: RowsMode::InsertNew, .. });
        let wins = if is_new_only { Wins::First } else { Wins::Last };
        let decided = match work {
            Work::Rows { batches, mode } => self.decide_rows(batches, mode, txn),
            Work::Command(command) => {
                commit_command(&mut self.catalog, command).map(|ops| (ops, Vec::new())).map_err(Error::from)
            }
            Work::Change(change) => match self.decide_change(change, txn, views, accepted) {
                Ok(Decided::Done(ops, rows)) => {
                    changed = Some(rows);
                    Ok((ops, Vec::new()))
                }
                Ok(Decided::Moved) => Ok((Vec::new(), Vec::new())),
                Err(error) => Err(error),
            },
            Work::Transaction(change) => match self.decide_transaction(change, txn, views, accepted) {
                Ok(Decided::Done(ops, rows)) => {
                    changed = Some(rows);
                    Ok((ops, Vec::new()))
                }
                Ok(Decided::Moved) => Ok((Vec::new(), Vec::new())),
                Err(error) => {
                    if let Some(before) = &before {
                        self.catalog = before.clone();
                    }
                    Err(error)
                }
            },
            _ => return,
        };
        match decided {
            Err(error) => drop(reply.send(Err(error))),
            Ok((ops, refused)) => {
                let (ops, failed) = changes::upserts(&mut self.catalog, ops, txn, wins, views, accepted, before);
                if is_new_only {
                    changed = Some(rows_of(&ops));
                }
                if !ops.is_empty() {
                    group.push(txn, &ops);
                    self.txn = txn;
                }
                accepted.push(Accepted { txn: self.txn, ops, bytes, refused, changed, failed, reply });
            }
        }
    }

    fn decide_change(
        &mut self,
        change: RowChange,
        txn: Txn,
        views: &mut Views<'_>,
        accepted: &[Accepted],
    ) -> Result<Decided> {
        let bytes: usize = change.rows.iter().map(Batch::byte_count).sum();
        if bytes > COMMIT_BYTES_MAX {
            let message = format!("an UPDATE of {bytes} bytes is larger than the {COMMIT_BYTES_MAX} that one may have");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let table = change.seen.id;
        match (self.catalog.get(table).is_some(), views.table(table, &self.catalog, accepted)) {
            (true, Some(now)) => changes::decide(&mut self.catalog, &now, change, txn),
            _ => Err(changes::dropped(&change.seen.schema.name)),
        }
    }

    fn decide_transaction(
        &mut self,
        change: TransactionChange,
        txn: Txn,
        views: &mut Views<'_>,
        accepted: &[Accepted],
    ) -> Result<Decided> {
        self.check_rows(&change.rows)?;
        changes::decide_transaction(&mut self.catalog, change, txn, views, accepted)
    }

    fn decide_rows(&mut self, batches: Vec<Batch>, mode: RowsMode, txn: Txn) -> Result<(Vec<Op>, Vec<Error>)> {
        self.check_rows(&batches)?;
        let may_create = !matches!(mode, RowsMode::Insert | RowsMode::InsertNew);
        if mode == RowsMode::CreateValid {
            return Ok(self.decide_valid(batches, txn));
        }
        let (mut batches, mut refused) = (batches, Vec::new());
        loop {
            let decided = match self.for_view(&batches) {
                Some(error) => Err((error, batches)),
                None => commit_batches(&mut self.catalog, batches, may_create, txn),
            };
            match decided {
                Ok(ops) => return Ok((ops, refused)),
                Err((error, all)) => {
                    batches = all;
                    // The first line that is refused is told among rows in the order of their lines.
                    if by_line(&mut batches) {
                        continue;
                    }
                    // What is refused first by column may come after what is refused first by line: once more.
                    let (RowsMode::CreatePrefix, Some(line)) = (mode, error.line) else { return Err(error.into()) };
                    truncate_at_line(&mut batches, line);
                    refused = vec![error.into()];
                }
            }
        }
    }

    /// Refuses rows that do not fit into one commit, or for which there is no memory until the merge works again.
    fn check_rows(&self, batches: &[Batch]) -> Result<()> {
        if let Some(why) = self.shared.merge_failure()
            && self.shared.tables.read().staged().bytes > self.shared.config.staging_bytes
            && !batches.is_empty()
        {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("no room for more rows until they can be merged: {why}"),
            ));
        }
        let bytes: usize = batches.iter().map(Batch::byte_count).sum();
        if bytes > COMMIT_BYTES_MAX {
            let message = format!("a commit of {bytes} bytes is larger than the {COMMIT_BYTES_MAX} that one may have");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Leaves out what cannot be taken.
    fn decide_valid(&mut self, batches: Vec<Batch>, txn: Txn) -> (Vec<Op>, Vec<Error>) {
        let (mut tables, mut refused) = (Vec::with_capacity(batches.len()), Refused::default());
        for batch in batches {
            match self.for_view(std::slice::from_ref(&batch)) {
                Some(error) => {
                    batch.lines.iter().for_each(|line| refused.push(error.clone().at_line(Some(*line))));
                }
                None => tables.push(batch),
            }
        }
        let ops = commit_valid(&mut self.catalog, tables, txn, &mut refused);
        (ops, refused.into_reasons().into_iter().map(Error::from).collect())
    }

    /// Why some of the rows are refused: their table is defined by a query.
    fn for_view(&self, batches: &[Batch]) -> Option<tidalite_ingest::Error> {
        batches.iter().find_map(|batch| {
            let entry = self.catalog.get(self.catalog.id_of(&batch.table)?)?;
            let error = is_view(&entry.schema.name, entry.schema.view.as_ref()?);
            Some(error.at_line(batch.lines.first().copied()))
        })
    }

    fn append(&mut self, group: &mut Group) -> tidalite_storage::Result<()> {
        if group.is_empty() {
            return Ok(());
        }
        let bytes = group.byte_count() as u64;
        if !self.log.has_room(bytes) {
            self.land_all();
        }
        self.log.append(group)?;
        self.shared.counters.log_written_bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }

    fn sync(&mut self, must: bool) -> tidalite_storage::Result<()> {
        if !self.log.is_synced() && self.shared.config.durability == Durability::Sync {
            let started = Instant::now();
            if !self.shared.config.sync_delay.is_zero() {
                std::thread::sleep(self.shared.config.sync_delay);
            }
            self.log.sync()?;
            self.sync_time = started.elapsed();
            self.publisher.count_sync();
        } else if must {
            self.log.sync()?;
            self.publisher.count_sync();
        }
        Ok(())
    }
}

/// What becomes of connections' streams in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    /// They come into it while there is room.
    Come,
    /// Where somebody waits for the group, large ones stay behind: encoding them takes longer than a fast disk's sync.
    MayWait,
    /// They stay behind.
    Wait,
}

/// Those that a client waits for, then connections' streams while there is room. A stream has one commit under way at a
/// time and is in nobody's order; all others keep theirs.
fn take_group(waiting: &mut VecDeque<Request>, bytes_max: usize, streams: Streams) -> Vec<Request> {
    let (mut bytes, mut group) = (0, Vec::new());
    let passes: &[bool] = if streams == Streams::Wait { &[false] } else { &[false, true] };
    for &takes_streams in passes {
        let is_beside = takes_streams && streams == Streams::MayWait && !group.is_empty();
        for request in std::mem::take(waiting) {
            let size = byte_count(&request.work);
            let has_room = bytes < bytes_max && !(is_beside && bytes + size > STREAM_BYTES_BESIDE);
            if has_room && takes_streams == is_stream(&request) {
                bytes += size;
                group.push(request);
            } else {
                waiting.push_back(request);
            }
        }
    }
    group
}

fn is_stream(request: &Request) -> bool {
    matches!(request.work, Work::Rows { mode: RowsMode::CreatePrefix, .. })
}

fn rows_of(ops: &[Op]) -> u64 {
    ops.iter().map(|op| if let Op::Rows { run, .. } = op { run.rows as u64 } else { 0 }).sum()
}

/// Whether the merge that writers wait for may itself wait for this: a statement that changes rows can hold merges off,
/// and the thread of merges drops partitions that are too old.
fn may_hold_merges(work: &Work) -> bool {
    matches!(work, Work::Change(_) | Work::Command(_) | Work::Transaction(_))
}

/// Whether the disk has more room when it is done, and what it asks for meanwhile is little.
fn frees_space(work: &Work) -> bool {
    match work {
        Work::Command(command) => {
            matches!(command, Command::DropTable { .. } | Command::Truncate { .. } | Command::DropPartitions { .. })
        }
        Work::Change(change) => change.rows.is_empty() && log_room(work) <= SMALL_COMMIT_BYTES as u64,
        _ => false,
    }
}

fn refuse(requests: Vec<Request>, error: &Error) {
    requests.into_iter().for_each(|r| drop(r.reply.send(Err(error.clone()))));
}

fn byte_count(work: &Work) -> usize {
    match work {
        Work::Rows { batches, .. }
        | Work::Change(RowChange { rows: batches, .. })
        | Work::Transaction(TransactionChange { rows: batches, .. }) => batches.iter().map(Batch::byte_count).sum(),
        _ => 0,
    }
}

/// What the record of this work takes in the log at most, schemas of very wide tables aside.
fn log_room(work: &Work) -> u64 {
    match work {
        Work::Rows { batches, .. } => {
            let columns: usize = batches.iter().flat_map(|b| &b.columns).map(|c| 64 + c.name.len()).sum();
            // In a table with upsert keys each row may kill another: a range of dead rows in the log.
            let rows: usize = batches.iter().map(|b| b.rows).sum();
            (byte_count(work) + columns + 20 * rows + 4096) as u64
        }
        Work::Change(change) => {
            // How far a view has come names times, a few thousand at most.
            let state = if change.view.is_some() { 256 << 10 } else { 0 };
            (byte_count(work) + column_room(&change.rows) + hit_room(change) + state + 4096) as u64
        }
        Work::Transaction(change) => {
            let rows: usize = change.rows.iter().map(|b| b.rows).sum();
            let hits: usize = change.changes.iter().map(hit_room).sum();
            let commands = COMMAND_ROOM * change.commands.len();
            (byte_count(work) + column_room(&change.rows) + 20 * rows + hits + commands + 4096) as u64
        }
        Work::Command(_) => COMMAND_ROOM as u64,
        _ => 0,
    }
}

/// Maximum log size of a command, in bytes.
const COMMAND_ROOM: usize = 256 << 10;

fn column_room(batches: &[Batch]) -> usize {
    batches.iter().flat_map(|b| &b.columns).map(|c| 64 + c.name.len()).sum()
}

/// Returns the maximum log size of the row positions of a change, in bytes.
fn hit_room(change: &RowChange) -> usize {
    let ranges: usize = change.hit.iter().map(|mask| mask.ranges().len()).sum();
    20 * ranges + 24 * change.hit.len() + 32 * change.times.len()
}

impl From<tidalite_ingest::Error> for Error {
    fn from(error: tidalite_ingest::Error) -> Error {
        let mut to = Error::new(error.kind, error.message);
        to.line = error.line.map(u64::from);
        to
    }
}

/// Sends work to the commit thread; ready with its answer. Sent before this returns.
pub(crate) fn submit(sender: &mpsc::Sender<Request>, work: Work) -> BoxFuture<'static, Result<Committed>> {
    let (reply, answer) = oneshot::channel();
    let is_sent = sender.send(Request { work, reply }).is_ok();
    async move {
        if !is_sent {
            return Err(closed());
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
    .boxed()
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the database is closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::{BatchTimestamps, TimeUnit};

    /// A commit of so many bytes.
    fn request(mode: RowsMode, bytes: usize) -> Request {
        let timestamps = Some(BatchTimestamps::new(TimeUnit::Nanos, vec![0; bytes / 8]));
        let batch =
            Batch { table: "t".to_owned(), rows: bytes / 8, columns: Vec::new(), timestamps, lines: Vec::new() };
        Request { work: Work::Rows { batches: vec![batch], mode }, reply: oneshot::channel().0 }
    }

    fn sizes<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Vec<usize> {
        requests.into_iter().map(|r| byte_count(&r.work)).collect()
    }

    fn queue(requests: &[(RowsMode, usize)]) -> VecDeque<Request> {
        requests.iter().map(|&(mode, size)| request(mode, size)).collect()
    }

    #[test]
    fn a_group_takes_whom_a_client_waits_for_then_streams_while_there_is_room() {
        use RowsMode::{Create, CreatePrefix};
        let mut waiting =
            queue(&[(CreatePrefix, 816), (CreatePrefix, 800), (Create, 16), (CreatePrefix, 8), (Create, 24)]);
        assert_eq!(sizes(&take_group(&mut waiting, 1000, Streams::MayWait)), [16, 24, 816, 800]);
        assert_eq!(sizes(&waiting), [8]);
        assert_eq!(sizes(&take_group(&mut waiting, 1000, Streams::MayWait)), [8]);
        let mut waiting = queue(&[(Create, 400), (Create, 800), (CreatePrefix, 8), (Create, 16)]);
        assert_eq!(sizes(&take_group(&mut waiting, 1000, Streams::MayWait)), [400, 800]);
        assert_eq!(sizes(&waiting), [8, 16], "a full group takes nobody else, and who waits keeps the order");
    }

    #[test]
    fn large_streams_stay_out_of_one_group_that_somebody_waits_for() {
        use RowsMode::{Create, CreatePrefix};
        let large = STREAM_BYTES_BESIDE;
        let mut waiting = queue(&[(CreatePrefix, large), (Create, 16), (CreatePrefix, 8)]);
        assert_eq!(sizes(&take_group(&mut waiting, 10 * large, Streams::MayWait)), [16, 8]);
        assert_eq!(sizes(&waiting), [large]);
        assert_eq!(sizes(&take_group(&mut waiting, 10 * large, Streams::MayWait)), [large]);
        let mut waiting = queue(&[(CreatePrefix, large), (Create, 16)]);
        assert_eq!(sizes(&take_group(&mut waiting, 10 * large, Streams::Come)), [16, large], "they waited already");
        let mut waiting = queue(&[(CreatePrefix, 8), (Create, 16)]);
        assert_eq!(sizes(&take_group(&mut waiting, 10 * large, Streams::Wait)), [16]);
        assert_eq!(sizes(&take_group(&mut waiting, 10 * large, Streams::Wait)), [0; 0]);
    }
}
