//! What can be set about a database, apart from the server around it.

use crate::machine;
use std::path::PathBuf;
use std::time::Duration;
use tidalite_query::FileAccess;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the log is synced: the commit survives power loss.
    #[default]
    Sync,
    /// After the log is written; it is synced at least once in every interval.
    Interval(Duration),
    /// After the log is written; the operating system syncs when it likes.
    Os,
}

#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// The data folder; created when absent.
    pub data: PathBuf,
    pub durability: Durability,
    /// Threads that run queries.
    pub query_threads: usize,
    /// Threads that merge staged rows into partitions.
    pub merge_threads: usize,
    /// Rows that come at most this late are expected to come again: the newest rows of their table, for as long as they
    /// were late, stay in segments of their own.
    pub merge_lag_max: Duration,
    /// For tests with few rows: so many late rows that fall into many blocks go to segments beside these.
    pub late_rows_min: usize,
    /// A partition without new rows for this long is written again for size; zero for never.
    pub seal_after: Duration,
    /// Delay of the TTL if empty partitions separate the newest row of a table from all others, in case the time of that
    /// row is wrong; zero for no delay.
    pub ttl_jump_wait: Duration,
    /// Heavy queries that run at the same time; the others wait. At least 1.
    pub query_running_max: usize,
    /// Heavy queries that wait; the others are refused.
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
    /// Memory for blocks of segments; a quarter of what there is unless told otherwise.
    pub cache_bytes: usize,
    /// Committed rows in memory; past it writers wait for the merge.
    pub staging_bytes: usize,
    /// Log written since the last checkpoint that triggers the next one: bounds the time of recovery.
    pub log_bytes: u64,
    /// What a file of the log is allocated with.
    pub log_file_bytes: u64,
    /// Memory limit for the uncommitted rows of all open transactions, in bytes.
    pub transaction_bytes: usize,
    /// Statements without a timeout of their own stop after this long; zero for never.
    pub query_timeout: Duration,
    /// Whether queries may read files of this machine and URLs.
    pub query_reads_files: bool,
    /// Whether COPY may write files of this machine.
    pub query_writes_files: bool,
    /// Files and hosts that statements and backups may use, if the settings above permit files at all.
    pub file_access: FileAccess,
    /// Whether operators of ours take the place of the general ones where they can.
    pub query_fast_operators: bool,
    /// Whether long conditions on several columns become machine code where many rows are asked.
    pub query_compiles: bool,
    /// Whether materialized views answer queries on their bases, unless a statement says otherwise.
    pub query_use_materialized_views: bool,
    /// True if the binder plans the queries that it supports; else the rewrites of the first front end plan all.
    pub query_binder: bool,
    /// Changes are refused; merges and the maintenance of the log go on.
    pub is_read_only: bool,
    /// Statements that take this long or longer are logged; zero for none.
    pub slow_statement: Duration,
    /// Maximum number of open segment files.
    pub segment_files: usize,
    /// For tests of slow disks: added to every sync of the log.
    pub sync_delay: Duration,
    /// While a sync of the log takes this long or longer, the next commits are written and synced meanwhile; `None` for
    /// one sync after the other.
    pub overlap_syncs_from: Option<Duration>,
    /// Whether merges and checkpoints happen by themselves; else only by [`crate::Database::settle`].
    pub has_background_jobs: bool,
}

/// Live allocations may take this share of the machine's memory, in percent. Fragmentation and freed pages that the
/// allocator keeps for ten seconds need the rest.
const MEMORY_PERCENT: usize = 75;
/// Blocks have this part of the memory: what is read again and again is mostly theirs, and staging, queries and the system's
/// own cache of files have to be beside them.
const CACHE_PART: usize = 4;
/// With less than this every query would read files.
const CACHE_BYTES_MIN: usize = 64 << 20;
/// Where the system does not say what memory there is.
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

    /// Whether the log is written past the system's cache, where no sync would have to write it.
    pub(crate) fn log_bypasses_cache(&self) -> bool {
        self.durability == Durability::Sync
    }
}
