//! The commit thread: every change of the database passes through it, in one order.
//!
//! Input: requests. Each round takes the queued requests, decides each against the catalog, writes all accepted ones to
//! the log at once, syncs once (group commit), publishes, and answers. A rejected request leaves no trace. A failed
//! sync poisons the log, and nothing is committed until the database is opened again. If syncs are slow, groups of rows
//! are synced and published by other threads ([`flights`]), in the same order.
//!
//! Backpressure has two levels: above the staging limit, large commits are answered only after the merge has caught up;
//! above twice the limit, no request is taken until it has.

mod changes;
mod flights;
mod loads;
mod publish;

pub(crate) use changes::{RowChange, TransactionChange, dropped, not_serializable};
pub(crate) use loads::symbol_bytes;

use crate::config::Durability;
use crate::load::{AttachRequest, PartOfLoad};
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
use tidalite_storage::Run;
use tidalite_types::{Batch, Command, TableId, Txn};

/// Smallest and largest limit of the bytes of a group. Between them the limit follows the time of a sync: a fast disk
/// gets small groups, so that no commit waits long for others, a slow disk gets large groups.
const GROUP_BYTES: (usize, usize) = (2 << 20, 32 << 20);
/// Streams of more bytes are left out of a group with waiting clients, once.
const STREAM_BYTES_BESIDE: usize = 256 << 10;
/// Longest wait of streams that need another log file for the end of in-flight syncs.
const FILE_WAIT_MAX: Duration = Duration::from_millis(20);
/// Conservative estimate of the bytes that the commit thread encodes and writes per second.
const GROUP_BYTES_PER_SECOND: f64 = 1e9;
/// Size limit of a commit, which must fit a record of the log.
const COMMIT_BYTES_MAX: usize = 1 << 30;
/// Largest commit in bytes that is answered at once even while staging is above its limit.
const SMALL_COMMIT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) enum Work {
    Rows {
        batches: Vec<Batch>,
        mode: RowsMode,
    },
    Command(Command),
    /// Deletes or replaces rows that a statement found.
    Change(RowChange),
    /// All changes of a transaction, as one commit.
    Transaction(TransactionChange),
    /// Converts rows of a load, which are not visible, to runs.
    LoadRows(PartOfLoad),
    /// Takes the id of a table that a load will create.
    TakeTableId,
    /// Commits the segments of a load.
    Attach(AttachRequest),
    /// Makes every commit so far durable.
    Sync,
    /// Log files up to this commit are no longer needed.
    Release(Txn),
    /// Staging shrank: held answers may be sent.
    Wake,
    /// Checks that commits are processed.
    Probe,
    /// Requests that form one group, for the simulation, whose results may not depend on thread wake-ups.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the simulation needs to say what a group is"))]
    Together(Vec<Request>),
    /// A new spare file for the log exists.
    Spare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsMode {
    /// Missing tables and columns are created.
    Create,
    /// Like `Create`; if a row is rejected, the rows of previous lines are committed.
    CreatePrefix,
    /// Like `Create`; rejected rows are skipped.
    CreateValid,
    /// Table and columns must exist.
    Insert,
    /// Like `Insert`, but rows whose upsert keys exist are skipped.
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
    /// With [`RowsMode::CreatePrefix`]: the reason for the rejected rest. With [`RowsMode::CreateValid`]: the reasons
    /// for the skipped rows, in order of their lines.
    pub refused: Vec<Error>,
    /// Number of rows that a [`RowChange`] changed; `None` if they moved and nothing was changed. With
    /// [`RowsMode::InsertNew`]: the number of new rows.
    pub changed: Option<u64>,
    /// With [`Work::LoadRows`]: the runs.
    pub runs: Vec<Run>,
    /// With [`Work::TakeTableId`].
    pub table: Option<TableId>,
}

/// Sender to the commit thread, which ends when the last sender is dropped.
pub(crate) type Requests = Arc<mpsc::Sender<Request>>;

pub(crate) struct Writer {
    shared: Arc<Shared>,
    requests: Receiver<Request>,
    catalog: Catalog,
    log: LogWriter,
    txn: Txn,
    /// Requests from the channel that wait for capacity.
    waiting: VecDeque<Request>,
    /// Empty between rounds; kept for its memory.
    group: Group,
    /// Duration of the last sync.
    sync_time: Duration,
    /// True if streams of connections were left out of the last group.
    streams_waited: bool,
    /// Time since which streams have waited for another log file.
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
    /// Error of the rows of a request that could no longer be rejected completely.
    failed: Option<Error>,
    /// Rows of a load.
    runs: Vec<Run>,
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

    /// Runs until all senders are dropped.
    pub(crate) fn run(mut self) {
        let mut last_sync = Instant::now();
        // All commits wait for this thread.
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

    /// Waits for work; returns a request, if one was required.
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
        // Requests of the merge come first: rows may wait for this merge.
        requests.retain_mut(|request| !self.is_served(request));
        if requests.is_empty() {
            return;
        }
        let has_rows = requests.iter().any(|r| matches!(r.work, Work::Rows { .. }));
        if has_rows && !requests.iter().any(|r| may_hold_merges(&r.work)) {
            self.wait_for_room();
        }
        let requests = self.reserve(requests);
        // All changes other than rows are decided by the state that readers see.
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
        // A merge writes deleted rows to the manifest, which must not be ahead of the log.
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

    /// Reserves space in the log; rejects requests without space.
    fn reserve(&mut self, requests: Vec<Request>) -> Vec<Request> {
        // A generous estimate: only then a full disk rejects commits instead of breaking the log.
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

    /// Returns true if waiting streams may be written now; otherwise a request follows when an in-flight group
    /// completes.
    ///
    /// Streams that do not fit the log file wait a while for the end of in-flight syncs, so that other commits need not
    /// wait.
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

    /// Returns the size limit of a group. With overlapping syncs, encoding one group delays the start of the next.
    fn group_bytes_max(&self) -> usize {
        let time = if self.syncs_overlap() { self.sync_time / 2 } else { self.sync_time };
        ((time.as_secs_f64() * GROUP_BYTES_PER_SECOND) as usize).clamp(GROUP_BYTES.0, GROUP_BYTES.1)
    }

    fn syncs_overlap(&self) -> bool {
        let from = self.shared.config.overlap_syncs_from;
        self.shared.config.durability == Durability::Sync && from.is_some_and(|from| self.sync_time >= from)
    }

    /// Returns true if the commit thread may continue before these requests are durable and visible.
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

    /// Returns true if the request deletes rows by their positions.
    fn may_kill(&self, work: &Work) -> bool {
        let has_keys = |batch: &Batch| {
            let entry = self.catalog.id_of(&batch.table).and_then(|id| self.catalog.get(id));
            entry.is_some_and(|entry| !entry.schema.dedup.is_empty())
        };
        match work {
            Work::Change(_) | Work::Transaction(_) | Work::Attach(_) => true,
            Work::Rows { batches, .. } => batches.iter().any(has_keys),
            _ => false,
        }
    }

    /// Executes and answers requests about the log; returns false for all others.
    fn is_served(&mut self, request: &mut Request) -> bool {
        if let Work::Together(requests) = &mut request.work {
            self.waiting.extend(requests.drain(..));
        }
        let mut table = None;
        let done = match request.work {
            // A visible commit is in the log, and durable if commits wait for durability.
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
                // Before the answer, so that the sender does not make another spare over this one.
                self.shared.log_wants_spare.store(false, Relaxed);
                Ok(())
            }
            Work::TakeTableId => {
                table = Some(self.catalog.take_table_id());
                Ok(())
            }
            Work::Rows { .. }
            | Work::Command(_)
            | Work::Change(_)
            | Work::Transaction(_)
            | Work::LoadRows(_)
            | Work::Attach(_) => return false,
        };
        let (nobody, _) = oneshot::channel();
        let reply = std::mem::replace(&mut request.reply, nobody);
        let committed = Committed { txn: self.txn, refused: Vec::new(), changed: None, runs: Vec::new(), table };
        let _ = reply.send(done.map(|()| committed).map_err(Error::from));
        true
    }

    /// Takes no rows above twice the staging limit until the merge has freed memory.
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
        // Rows of a load are not staged: their answer need not wait for merges.
        let bytes = if matches!(work, Work::LoadRows(_)) { 0 } else { byte_count(&work) };
        let txn = self.txn.next();
        let (mut changed, mut runs) = (None, Vec::new());
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
            Work::LoadRows(part) => self.decide_part(part, txn).map(|(ops, converted)| {
                runs = converted;
                (ops, Vec::new())
            }),
            Work::Attach(request) => self.decide_attach(request, txn, views, accepted).map(|ops| (ops, Vec::new())),
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
                accepted.push(Accepted { txn: self.txn, ops, bytes, refused, changed, failed, runs, reply });
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
                    // Errors refer to the first rejected row in the order of lines.
                    if by_line(&mut batches) {
                        continue;
                    }
                    // The first rejection by column may follow the first rejection by line: decide again.
                    let (RowsMode::CreatePrefix, Some(line)) = (mode, error.line) else { return Err(error.into()) };
                    truncate_at_line(&mut batches, line);
                    refused = vec![error.into()];
                }
            }
        }
    }

    /// Rejects rows that do not fit one commit, or that have no memory while merges fail.
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

    /// Skips rows that are rejected.
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

    /// Returns an error if a batch is for a table that is defined by a query.
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

/// The handling of connections' streams in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    /// They are included as long as capacity is left.
    Come,
    /// If a client waits for the group, large ones are left out: encoding them takes longer than a fast disk's sync.
    MayWait,
    /// They are left out.
    Wait,
}

/// Takes requests with waiting clients, then streams within the limit.
///
/// A stream has one commit in flight at a time and its order does not matter; all other requests keep their order.
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
    let rows = |op: &Op| match op {
        Op::Rows { run, .. } => run.rows as u64,
        Op::Attach { segments, .. } => segments.iter().map(|meta| meta.rows).sum(),
        _ => 0,
    };
    ops.iter().map(rows).sum()
}

/// Returns true if the awaited merge may itself wait for this request: a statement that changes rows can hold merges,
/// and the jobs thread drops expired partitions.
fn may_hold_merges(work: &Work) -> bool {
    matches!(work, Work::Change(_) | Work::Command(_) | Work::Transaction(_))
}

/// Returns true if the request frees disk space and needs little space itself.
fn frees_space(work: &Work) -> bool {
    match work {
        Work::Command(command) => removes_rows(command),
        Work::Transaction(change) => {
            change.rows.is_empty() && change.changes.is_empty() && change.commands.iter().all(removes_rows)
        }
        Work::Change(change) => change.rows.is_empty() && log_room(work) <= SMALL_COMMIT_BYTES as u64,
        _ => false,
    }
}

fn removes_rows(command: &Command) -> bool {
    matches!(command, Command::DropTable { .. } | Command::Truncate { .. } | Command::DropPartitions { .. })
}

fn refuse(requests: Vec<Request>, error: &Error) {
    requests.into_iter().for_each(|r| drop(r.reply.send(Err(error.clone()))));
}

fn byte_count(work: &Work) -> usize {
    match work {
        Work::Rows { batches, .. }
        | Work::Change(RowChange { rows: batches, .. })
        | Work::Transaction(TransactionChange { rows: batches, .. })
        | Work::LoadRows(PartOfLoad { batches, .. }) => batches.iter().map(Batch::byte_count).sum(),
        _ => 0,
    }
}

/// Returns the maximum log size of a request, except for schemas of very wide tables.
fn log_room(work: &Work) -> u64 {
    match work {
        Work::Rows { batches, .. } => {
            let columns: usize = batches.iter().flat_map(|b| &b.columns).map(|c| 64 + c.name.len()).sum();
            // With upsert keys each row may delete another, which takes a range of deleted rows in the log.
            let rows: usize = batches.iter().map(|b| b.rows).sum();
            (byte_count(work) + columns + 20 * rows + 4096) as u64
        }
        Work::Change(change) => {
            // The progress of a view has at most a few thousand time ranges.
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
        Work::LoadRows(part) => loads::room_of_part(part),
        Work::Attach(request) => loads::room_of_attach(request),
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

/// Sends a request to the commit thread, before this returns; completes with the answer.
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

    /// Returns a commit of this size.
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
