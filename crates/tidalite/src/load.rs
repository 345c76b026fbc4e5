//! Loads: a statement with many rows becomes one commit, of any size, in bounded memory.
//!
//! Input: the rows of a statement, in parts. Each part is sorted and written to segment files in the folder of the
//! table, which nothing names. Output: one commit that attaches all these segments to the table
//! ([`Op::Attach`](tidalite_ingest::wal::record::Op::Attach)): readers see no row before it and all rows after it. The
//! rows are neither staged nor logged.
//!
//! Invariants: files are synced before the commit is logged. The strings of symbols are logged before the segments that
//! refer to them; ids of a load that does not commit are unused. The rows of a load follow the rows of equal timestamps
//! that were committed before it began: these are merged first, and the load takes greater segment numbers when they are
//! rewritten ([`is_outnumbered`](tidalite_storage::late::is_outnumbered)). A load removes its files until it asks for
//! the commit, and after the commit thread rejected it.
//!
//! Crash: without the commit in the log, nothing names the files and the next open removes them.

use crate::jobs::{Jobs, threads_of};
use crate::session::read_only_database;
use crate::shared::{Shared, lock};
use crate::writer::{Committed, Work, closed, symbol_bytes};
use crate::{Error, ErrorKind, Result};
use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex};
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::new_schema;
use tidalite_ingest::commit::commit_batches;
use tidalite_storage::merge::{MergeOptions, merge};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::tables::SymbolMaps;
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::command::CreateTable;
use tidalite_types::{Batch, SegmentId, TableId, TableSchema, Txn};

/// Number of times that a load tries to merge earlier rows, and to commit with new segment numbers.
const ATTEMPTS_MAX: usize = 16;
/// Limit in bytes of the strings of the symbols of a new table, which are one record of the log with its load.
const NEW_SYMBOL_BYTES_MAX: usize = 512 << 20;

/// The means of a load.
pub(crate) struct Loader {
    pub shared: Arc<Shared>,
    pub jobs: Arc<Mutex<Jobs>>,
    /// Sends a request to the commit thread.
    pub submit: Box<dyn Fn(Work) -> BoxFuture<'static, Result<Committed>> + Send + Sync>,
}

/// The table of a load.
pub(crate) enum LoadTable {
    Existing {
        id: TableId,
        schema: Arc<TableSchema>,
    },
    /// The commit of the load creates the table. With `replaces` it drops a table of the same name.
    New {
        create: CreateTable,
        replaces: bool,
    },
}

/// A running load. Dropping it before [`Load::finish`] ends the load without a commit.
pub(crate) struct Load {
    parts: mpsc::Sender<Part>,
    done: oneshot::Receiver<Result<Txn>>,
}

enum Part {
    Rows(Vec<Batch>),
    End,
}

/// Rows of a load for conversion by the commit thread.
#[derive(Debug)]
pub(crate) struct PartOfLoad {
    pub table: TableId,
    pub schema: Arc<TableSchema>,
    pub batches: Vec<Batch>,
}

/// The request that makes the segments of a load part of their table.
#[derive(Debug)]
pub(crate) struct AttachRequest {
    pub table: TableId,
    pub segments: Vec<SegmentMeta>,
    pub schema: Arc<TableSchema>,
    /// `None` for an existing table.
    pub created: Option<CreatedTable>,
    pub decision: Arc<Decision>,
}

/// The decision of the commit thread on an [`AttachRequest`], beside its reply.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// The segments belong to the table, also if the commit fails afterwards: its record may be in the log.
    pub is_accepted: AtomicBool,
    /// The load has to take new segment numbers.
    pub is_outnumbered: AtomicBool,
}

/// A table that the commit of a load creates.
#[derive(Clone, Debug)]
pub(crate) struct CreatedTable {
    pub symbols: SymbolMaps,
    /// True if a table of the same name is dropped.
    pub replaces: bool,
}

/// The segments of a load. Their files are removed on drop unless they may belong to the table.
#[derive(Debug)]
struct LoadFiles {
    shared: Arc<Shared>,
    table: TableId,
    segments: Vec<SegmentMeta>,
    is_commit_possible: bool,
}

impl Loader {
    /// Returns the bytes of rows from which on a statement is a load, which are also the bytes of a part.
    pub fn part_bytes(&self) -> usize {
        self.shared.config.load_bytes
    }

    /// Begins a load.
    pub fn begin(self, table: LoadTable) -> Result<Load> {
        if self.shared.config.is_read_only {
            return Err(read_only_database("the change"));
        }
        // One part waits while another is written.
        let (parts, received) = mpsc::channel(0);
        let (done, ended) = oneshot::channel();
        let run = move || drop(done.send(LoadWriter::run(self, table, received)));
        let started = std::thread::Builder::new().name("tidalite-load".to_owned()).spawn(run);
        started.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not start a thread: {e}")))?;
        Ok(Load { parts, done: ended })
    }
}

impl Load {
    /// Adds rows; waits while earlier parts are written.
    ///
    /// # Errors
    /// The load failed. It ends without a commit.
    pub async fn push(&mut self, batches: Vec<Batch>) -> Result<()> {
        if self.parts.send(Part::Rows(batches)).await.is_ok() {
            return Ok(());
        }
        // The load ended by its error.
        Err(self.end().await.err().unwrap_or_else(panicked))
    }

    /// Commits the rows.
    pub async fn finish(mut self) -> Result<Txn> {
        let _ = self.parts.send(Part::End).await;
        self.end().await
    }

    async fn end(&mut self) -> Result<Txn> {
        (&mut self.done).await.unwrap_or_else(|_| Err(panicked()))
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "a load panicked")
}

/// The thread of a load.
struct LoadWriter {
    loader: Loader,
    schema: Arc<TableSchema>,
    files: LoadFiles,
    /// The dictionaries of a new table.
    created: Option<Catalog>,
    replaces: bool,
}

impl LoadWriter {
    fn run(loader: Loader, table: LoadTable, mut parts: mpsc::Receiver<Part>) -> Result<Txn> {
        let mut writer = LoadWriter::new(loader, table)?;
        while let Some(part) = block_on(parts.next()) {
            match part {
                Part::Rows(batches) => writer.write(batches)?,
                Part::End => return writer.commit(),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "the statement ended before its rows were complete"))
    }

    fn new(loader: Loader, table: LoadTable) -> Result<LoadWriter> {
        let replaces = matches!(table, LoadTable::New { replaces: true, .. });
        let (id, schema, created) = match table {
            LoadTable::Existing { id, schema } => {
                merge_earlier(&loader, id);
                (id, schema, None)
            }
            LoadTable::New { create, .. } => {
                let schema = Arc::new(new_schema(create)?);
                let taken = block_on((loader.submit)(Work::TakeTableId))?;
                let id = taken.table.ok_or_else(panicked)?;
                let mut catalog = Catalog::default();
                catalog.put(id, schema.clone());
                (id, schema, Some(catalog))
            }
        };
        let shared = loader.shared.clone();
        let files = LoadFiles { shared, table: id, segments: Vec::new(), is_commit_possible: false };
        Ok(LoadWriter { loader, schema, files, created, replaces })
    }

    /// Writes rows to segments.
    fn write(&mut self, batches: Vec<Batch>) -> Result<()> {
        let shared = self.loader.shared.clone();
        let runs = self.runs(batches)?;
        if runs.iter().all(|run| run.rows == 0) {
            return Ok(());
        }
        let table = self.files.table;
        let runs = Arc::new(runs.into_iter().map(Arc::new).collect());
        let rows = TableSnapshot { runs, ..TableSnapshot::empty(table, self.schema.clone()) };
        let options = MergeOptions {
            threads: threads_of(shared.config.merge_threads),
            tail_from: None,
            kept_from: None,
            late_rows_min: usize::MAX,
        };
        let _files = shared.begin_load_files().ok_or_else(closed)?;
        let merged = merge(&shared.store, &rows, &[], &options, &mut || shared.take_segment_id())?;
        self.files.segments.extend(merged.added.iter().map(|segment| segment.meta().clone()));
        shared.counters.segment_written_bytes.fetch_add(merged.written_bytes, Relaxed);
        Ok(())
    }

    /// Converts rows to the columns and dictionaries of the table.
    fn runs(&mut self, batches: Vec<Batch>) -> Result<Vec<Run>> {
        let Some(catalog) = &mut self.created else {
            let part = PartOfLoad { table: self.files.table, schema: self.schema.clone(), batches };
            return Ok(block_on((self.loader.submit)(Work::LoadRows(part)))?.runs);
        };
        let ops = commit_batches(catalog, batches, false, Txn(0)).map_err(|(error, _)| error)?;
        if symbol_bytes(&catalog.symbols(self.files.table)) > NEW_SYMBOL_BYTES_MAX {
            let limit = NEW_SYMBOL_BYTES_MAX >> 20;
            let message = format!("the symbols of a new table take more than the {limit} MiB that one commit may have");
            return Err(Error::new(ErrorKind::Invalid, message).with_hint("a VARCHAR has no such limit"));
        }
        Ok(ops.into_iter().filter_map(|op| op.into_run()).collect())
    }

    fn commit(self) -> Result<Txn> {
        let LoadWriter { loader, schema, mut files, created, replaces } = self;
        let created = created.map(|catalog| CreatedTable { symbols: catalog.symbols(files.table), replaces });
        let mut attempts = 1;
        loop {
            let decision = Arc::new(Decision::default());
            let request = AttachRequest {
                table: files.table,
                segments: files.segments.clone(),
                schema: schema.clone(),
                created: created.clone(),
                decision: decision.clone(),
            };
            files.is_commit_possible = true;
            let reply = block_on((loader.submit)(Work::Attach(request)));
            files.is_commit_possible = reply.is_ok() || decision.is_accepted.load(SeqCst);
            match reply {
                Err(_) if decision.is_outnumbered.load(SeqCst) && attempts < ATTEMPTS_MAX => files.renumber()?,
                reply => return Ok(reply?.txn),
            }
            attempts += 1;
        }
    }
}

/// Merges the rows that were committed before, which precede the rows of the load also where times are equal.
///
/// Without effect on a table whose merges fail or are held: the order of equal timestamps is then not that of arrival.
fn merge_earlier(loader: &Loader, table: TableId) {
    let version = || loader.shared.tables.read().get(table).cloned();
    let Some(before) = version().map(|version| version.txn) else { return };
    for _ in 0..ATTEMPTS_MAX {
        let is_staged = version().and_then(|now| Some(now.runs.first()?.txns.0 <= before)).unwrap_or(false);
        if !is_staged {
            return;
        }
        // Compactions and seals give way.
        loader.shared.waiting_loads.fetch_add(1, SeqCst);
        let merged = lock(&loader.jobs).merge_staged(table);
        loader.shared.waiting_loads.fetch_sub(1, SeqCst);
        if let Err(error) = merged {
            tracing::warn!(%error, "rows could not be merged before a load");
            return;
        }
    }
}

impl LoadFiles {
    /// Renames the files to new numbers, in the same order.
    fn renumber(&mut self) -> Result<()> {
        let _files = self.shared.begin_load_files().ok_or_else(closed)?;
        for meta in &mut self.segments {
            let (from, id) = (SegmentStore::path(self.table, meta.id), self.shared.take_segment_id());
            let to = SegmentStore::path(self.table, id);
            self.shared.fs.rename(&from, &to).map_err(|e| tidalite_storage::Error::io("rename", &from, e))?;
            self.shared.store.forget(meta.id);
            meta.id = id;
        }
        let folder = SegmentStore::path(self.table, SegmentId(0));
        let folder = folder.parent().unwrap_or(Path::new(""));
        Ok(self.shared.fs.sync_dir(folder).map_err(|e| tidalite_storage::Error::io("sync", folder, e))?)
    }
}

impl Drop for LoadFiles {
    fn drop(&mut self) {
        if self.segments.is_empty() || self.is_commit_possible {
            return;
        }
        // After a close, the next open removes the files.
        let Some(_files) = self.shared.begin_load_files() else { return };
        for meta in &self.segments {
            self.shared.store.forget(meta.id);
            let _ = self.shared.fs.remove(&SegmentStore::path(self.table, meta.id));
        }
    }
}
