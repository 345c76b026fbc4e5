//! What the database counts. The server shows it as Prometheus text.

/// One number with its Prometheus name, kind and help.
#[derive(Clone, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    /// Counters only grow; gauges go both ways.
    pub is_counter: bool,
    pub value: f64,
}

/// A reading of all of them, e.g. `tidalite_rows_committed_total`, `tidalite_staged_rows`, `tidalite_log_syncs_total`.
pub type Metrics = Vec<Metric>;
