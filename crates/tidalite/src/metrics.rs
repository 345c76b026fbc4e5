//! Counters of the database. The server exports them in Prometheus format.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// One number with its Prometheus name, kind and help.
#[derive(Clone, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    /// True for counters, which only grow; false for gauges.
    pub is_counter: bool,
    pub value: f64,
}

/// A reading of all metrics, e.g. `tidalite_rows_committed_total`, `tidalite_staged_rows`, `tidalite_log_syncs_total`.
pub type Metrics = Vec<Metric>;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub rows_committed: AtomicU64,
    pub commits: AtomicU64,
    pub log_written_bytes: AtomicU64,
    pub log_syncs: AtomicU64,
    /// Bytes that a recovery would read.
    pub log_bytes: AtomicU64,
    pub merges: AtomicU64,
    pub merged_rows: AtomicU64,
    /// Rows of segments that merges rewrote.
    pub rewritten_rows: AtomicU64,
    pub segment_written_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub merge_failures: AtomicU64,
    pub seals: AtomicU64,
    /// Rows that were rewritten for size.
    pub sealed_rows: AtomicU64,
    pub checkpoints: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Metrics {
        let counter =
            |name, help, value: &AtomicU64| Metric { name, help, is_counter: true, value: value.load(Relaxed) as f64 };
        vec![
            counter("tidalite_rows_committed_total", "Rows committed.", &self.rows_committed),
            counter("tidalite_commits_total", "Commits, each durable and visible as a whole.", &self.commits),
            counter("tidalite_log_written_bytes_total", "Bytes written to the log.", &self.log_written_bytes),
            counter("tidalite_log_syncs_total", "Syncs of the log.", &self.log_syncs),
            Metric {
                is_counter: false,
                ..counter("tidalite_log_bytes", "Bytes of log a recovery would read.", &self.log_bytes)
            },
            counter("tidalite_merges_total", "Merges of staged rows into segments.", &self.merges),
            counter("tidalite_merged_rows_total", "Staged rows merged into segments.", &self.merged_rows),
            counter("tidalite_rewritten_rows_total", "Rows of segments that merges wrote again.", &self.rewritten_rows),
            counter("tidalite_segment_written_bytes_total", "Bytes written to segments.", &self.segment_written_bytes),
            counter("tidalite_compactions_total", "Times that late segments were woven in.", &self.compactions),
            counter("tidalite_merge_failures_total", "Merges that failed and are tried again.", &self.merge_failures),
            counter(
                "tidalite_seals_total",
                "Times that segments of a quiet partition were written again for size.",
                &self.seals,
            ),
            counter("tidalite_sealed_rows_total", "Rows written again for size.", &self.sealed_rows),
            counter("tidalite_checkpoints_total", "Checkpoints, each of which lets go of old log.", &self.checkpoints),
        ]
    }
}
