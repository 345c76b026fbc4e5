//! What the server counts, and the text Prometheus reads.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tidalite::Metrics;

/// Upper bounds in seconds of the buckets of a latency.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// How many took how long.
#[derive(Debug, Default)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS.len() + 1],
    sum_us: AtomicU64,
}

impl Latency {
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BUCKETS.iter().position(|b| seconds <= *b).unwrap_or(BUCKETS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took.as_micros().min(u128::from(u64::MAX)) as u64, Ordering::Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut total = 0;
        for (bound, count) in BUCKETS.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {total}");
        }
        total += self.counts[BUCKETS.len()].load(Ordering::Relaxed);
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {total}\n{name}_sum {sum}\n{name}_count {total}");
    }
}

/// Of one way for lines to come in.
#[derive(Debug, Default)]
pub struct LineCounters {
    pub rows: AtomicU64,
    pub bytes: AtomicU64,
    pub commits: AtomicU64,
    pub errors: AtomicU64,
    pub connections: AtomicU64,
    pub connections_now: AtomicI64,
}

#[derive(Debug, Default)]
pub struct Counters {
    pub tcp: LineCounters,
    /// Connections are those of HTTP as a whole.
    pub http: LineCounters,
    /// Connections, and statements and connections refused.
    pub pg: LineCounters,
    pub http_ok: AtomicU64,
    pub http_client_errors: AtomicU64,
    pub http_server_errors: AtomicU64,
    /// Refused requests from pages of other origins or names.
    pub http_pages_refused: AtomicU64,
    pub query_rows: AtomicU64,
    /// Connections closed because their clients did not read.
    pub slow_readers: Arc<AtomicU64>,
    pub queries: Latency,
    pub writes: Latency,
}

pub fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Counters {
    /// Writes the metrics of the server and of the database; `refused` are refused connections by protocol.
    #[must_use]
    pub fn render(&self, database: &Metrics, refused: &[(&str, Arc<AtomicU64>)]) -> String {
        let mut out = String::new();
        self.render_lines(&mut out);
        let name = "tidalite_http_responses_total";
        let _ = writeln!(out, "# HELP {name} HTTP responses by class of status.\n# TYPE {name} counter");
        for (class, counter) in
            [("2xx", &self.http_ok), ("4xx", &self.http_client_errors), ("5xx", &self.http_server_errors)]
        {
            let _ = writeln!(out, "{name}{{class=\"{class}\"}} {}", counter.load(Ordering::Relaxed));
        }
        let name = "tidalite_connections_refused_total";
        let help = "Connections beyond a limit, refused or closed.";
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
        for (protocol, count) in refused {
            let _ = writeln!(out, "{name}{{protocol=\"{protocol}\"}} {}", load(count));
        }
        let name = "tidalite_http_pages_refused_total";
        let help = "Requests of pages of other origins or names that were refused.";
        let refused = load(&self.http_pages_refused);
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {refused}");
        let name = "tidalite_pg_errors_total";
        let errors = load(&self.pg.errors);
        let help = "Statements, messages and connections of the PostgreSQL protocol that were refused.";
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {errors}");
        let name = "tidalite_query_rows_total";
        let rows = self.query_rows.load(Ordering::Relaxed);
        let _ = writeln!(out, "# HELP {name} Rows sent to clients.\n# TYPE {name} counter\n{name} {rows}");
        self.queries.render(
            &mut out,
            "tidalite_query_seconds",
            "Time from a statement's arrival to the end of its answer.",
        );
        self.writes.render(&mut out, "tidalite_http_write_seconds", "Time from a write's head to its acknowledgement.");
        for metric in database {
            let kind = if metric.is_counter { "counter" } else { "gauge" };
            let (name, help) = (metric.name, metric.help);
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {}", metric.value);
        }
        out
    }

    fn render_lines(&self, out: &mut String) {
        type Read = fn(&LineCounters) -> f64;
        let lines: [(&str, &LineCounters); 2] = [("tcp", &self.tcp), ("http", &self.http)];
        let all: [(&str, &LineCounters); 3] = [("tcp", &self.tcp), ("http", &self.http), ("pg", &self.pg)];
        let families: [(&str, &str, &str, Read); 6] = [
            ("tidalite_line_rows_total", "counter", "Rows that came by line protocol and were committed.", |c| {
                load(&c.rows)
            }),
            ("tidalite_line_bytes_total", "counter", "Bytes of line protocol, decompressed.", |c| load(&c.bytes)),
            ("tidalite_line_commits_total", "counter", "Commits of line protocol.", |c| load(&c.commits)),
            (
                "tidalite_line_errors_total",
                "counter",
                "Requests refused and connections closed for what they sent.",
                |c| load(&c.errors),
            ),
            ("tidalite_connections_total", "counter", "Connections accepted.", |c| load(&c.connections)),
            ("tidalite_connections", "gauge", "Connections open.", |c| {
                c.connections_now.load(Ordering::Relaxed) as f64
            }),
        ];
        for (name, kind, help, read) in families {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            let protocols = if name.starts_with("tidalite_line") { &lines[..] } else { &all[..] };
            for (protocol, counters) in protocols {
                let _ = writeln!(out, "{name}{{protocol=\"{protocol}\"}} {}", read(counters));
            }
        }
    }
}

fn load(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

/// Counts a connection for as long as it lives.
pub struct OpenConnection<'a>(&'a LineCounters);

impl<'a> OpenConnection<'a> {
    #[must_use]
    pub fn count(counters: &'a LineCounters) -> OpenConnection<'a> {
        add(&counters.connections, 1);
        counters.connections_now.fetch_add(1, Ordering::Relaxed);
        OpenConnection(counters)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections_now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::metrics::Metric;

    #[test]
    fn prometheus_reads_name_labels_and_value() {
        let counters = Counters::default();
        add(&counters.tcp.rows, 7);
        counters.queries.observe(Duration::from_millis(2));
        let database = vec![Metric { name: "tidalite_staged_rows", help: "Rows.", is_counter: false, value: 3.0 }];
        let refused = [("http", Arc::new(AtomicU64::new(5)))];
        let text = counters.render(&database, &refused);
        for line in [
            "tidalite_line_rows_total{protocol=\"tcp\"} 7",
            "tidalite_query_seconds_bucket{le=\"0.001\"} 0",
            "tidalite_query_seconds_bucket{le=\"0.0025\"} 1",
            "tidalite_query_seconds_count 1",
            "# TYPE tidalite_staged_rows gauge",
            "tidalite_staged_rows 3",
            "tidalite_connections_refused_total{protocol=\"http\"} 5",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
