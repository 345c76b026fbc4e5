//! Settings of a database, excluding those of the server.

use crate::machine;
use std::path::PathBuf;
use std::time::Duration;
use tidalite_query::FileAccess;

/// The time at which a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the log is synced: the commit survives power loss.
    #[default]
    Sync,
    /// After the log is written; it is synced at least once in every interval.
    Interval(Duration),
    /// After the log is written; the operating system decides when to sync.
    Os,
}

#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// The data folder; created if it does not exist.
    pub data: PathBuf,
    pub durability: Durability,
    /// Number of threads that run queries.
    pub query_threads: usize,
    /// Number of threads that merge staged rows into partitions.
    pub merge_threads: usize,
    /// Largest lateness of rows that is expected to recur: the newest rows of their table, for the observed lateness,
    /// stay in separate segments.
    pub merge_lag_max: Duration,
    /// Smallest number of late rows, falling into many blocks, that are written to late segments; for tests with few
    /// rows.
    pub late_rows_min: usize,
    /// Time without new rows after which a partition is rewritten for size; zero for never.
    pub seal_after: Duration,
    /// Delay of the TTL if the time of a table's newest row may be wrong; zero for no delay.
    ///
    /// It applies if empty partitions separate the newest row from all others.
    pub ttl_jump_wait: Duration,
    /// Largest number of heavy queries that run at the same time; others wait. At least 1.
    pub query_running_max: usize,
    /// Largest number of waiting heavy queries; others are rejected.
    pub query_queued_max: usize,
    /// Memory limit of the process in bytes of live allocations: statements spill or fail before it. It applies where
    /// the global allocator counts (`tidalite-memory`), and to all databases of the process: the last one opened sets it.
    pub memory_bytes: usize,
    /// Memory limit of one statement in bytes; at most half of `memory_bytes` is used. Operators spill before it, and a
    /// statement whose operators cannot spill fails.
    pub query_memory_bytes: usize,
    /// Folder of spill files; `None` for `spill` in the data folder.
    pub spill_folder: Option<PathBuf>,
    /// Limit of the spill files of all queries together, in bytes.
    pub spill_bytes_max: u64,
    /// Memory for blocks of segments in bytes; the default is a quarter of the memory.
    pub cache_bytes: usize,
    /// Limit of committed rows in memory in bytes; above it writers wait for the merge.
    pub staging_bytes: usize,
    /// Size in bytes of the rows of a statement above which they are written to segments before their commit, and of the
    /// rows that are written at a time.
    pub load_bytes: usize,
    /// Log bytes since the last checkpoint that trigger the next one, which limits the time of recovery.
    pub log_bytes: u64,
    /// Allocation size of a log file in bytes.
    pub log_file_bytes: u64,
    /// Memory limit for the uncommitted rows of all open transactions, in bytes.
    pub transaction_bytes: usize,
    /// Timeout of statements without their own timeout; zero for none.
    pub query_timeout: Duration,
    /// True if queries may read local files and URLs.
    pub query_reads_files: bool,
    /// True if COPY may write local files.
    pub query_writes_files: bool,
    /// Files and hosts that statements and backups may use, if the settings above permit files at all.
    pub file_access: FileAccess,
    /// True if Tidalite's operators replace DataFusion's if possible.
    pub query_fast_operators: bool,
    /// True if long conditions on several columns are compiled to machine code for many rows.
    pub query_compiles: bool,
    /// True if materialized views answer queries on their bases, unless a statement overrides it.
    pub query_use_materialized_views: bool,
    /// True if the binder plans the queries that it supports; else the rewrites of the first front end plan all.
    pub query_binder: bool,
    /// Rejects changes; merges and the maintenance of the log continue.
    pub is_read_only: bool,
    /// Duration from which on statements are logged; zero for none.
    pub slow_statement: Duration,
    /// Maximum number of open segment files.
    pub segment_files: usize,
    /// Delay added to every sync of the log, for tests of slow disks.
    pub sync_delay: Duration,
    /// Duration of a log sync from which on the next commits are written and synced in parallel; `None` for one sync
    /// after the other.
    pub overlap_syncs_from: Option<Duration>,
    /// True if merges and checkpoints run automatically; otherwise only by [`crate::Database::settle`].
    pub has_background_jobs: bool,
}

/// Largest share of the machine's memory for live allocations, in percent. The rest is for fragmentation and freed
/// pages, which the allocator keeps for ten seconds.
const MEMORY_PERCENT: usize = 75;
/// Divisor of the memory for the block cache: blocks are the most frequently read data, and staging, queries and the
/// page cache need the rest.
const CACHE_PART: usize = 4;
/// Smallest block cache in bytes; with a smaller one every query would read files.
const CACHE_BYTES_MIN: usize = 64 << 20;
/// Size of the block cache in bytes if the size of the memory is unknown.
const CACHE_BYTES: usize = 1 << 30;

/// Fewer running slots would let a few long queries delay queries of a second.
const RUNNING_MIN: usize = 8;
/// A waiting query holds its plan, no memory for rows.
const QUEUED_MAX: usize = 1000;

/// Returns the default of [`DatabaseConfig::query_running_max`] for a number of query threads.
#[must_use]
pub fn running_max(threads: usize) -> usize {
    (2 * threads).max(RUNNING_MIN)
}

impl DatabaseConfig {
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> DatabaseConfig {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        DatabaseConfig {
            data: data.into(),
            durability: Durability::Sync,
            query_threads: threads,
            merge_threads: threads,
            merge_lag_max: Duration::from_secs(600),
            late_rows_min: tidalite_storage::merge::LATE_ROWS_MIN,
            seal_after: Duration::from_secs(600),
            ttl_jump_wait: Duration::from_secs(24 * 3600),
            query_running_max: running_max(threads),
            query_queued_max: QUEUED_MAX,
            memory_bytes: machine::memory_bytes().map_or(usize::MAX, |all| all / 100 * MEMORY_PERCENT),
            query_memory_bytes: 2 << 30,
            spill_folder: None,
            spill_bytes_max: 100 << 30,
            cache_bytes: machine::memory_bytes().map_or(CACHE_BYTES, |all| (all / CACHE_PART).max(CACHE_BYTES_MIN)),
            staging_bytes: 256 << 20,
            load_bytes: 64 << 20,
            log_bytes: 512 << 20,
            log_file_bytes: 64 << 20,
            transaction_bytes: 512 << 20,
            query_timeout: Duration::ZERO,
            query_reads_files: true,
            query_writes_files: true,
            file_access: FileAccess::unrestricted(),
            query_fast_operators: true,
            query_compiles: true,
            query_use_materialized_views: false,
            query_binder: true,
            is_read_only: false,
            slow_statement: Duration::ZERO,
            segment_files: tidalite_storage::segment::store::OPEN_FILES_MAX,
            sync_delay: Duration::ZERO,
            overlap_syncs_from: Some(Duration::from_millis(1)),
            has_background_jobs: true,
        }
    }

    /// Returns the folder of spill files; `None` (the temporary folder of the system) without a data folder.
    pub(crate) fn spill_folder(&self) -> Option<PathBuf> {
        let within = || Some(self.data.join("spill")).filter(|_| !self.data.as_os_str().is_empty());
        self.spill_folder.clone().or_else(within)
    }

    /// Returns true if the log is written past the page cache, so that no sync has to write it.
    pub(crate) fn log_bypasses_cache(&self) -> bool {
        self.durability == Durability::Sync
    }
}
