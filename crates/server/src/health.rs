//! Health and metrics of the server, and the health port.
//!
//! The port has a separate thread with a separate runtime, so that it responds while all other threads are busy. The same
//! thread runs the watchdog ([`watchdog`]), even if the port is off.

mod watchdog;

use crate::accept::{self, Port, Slot, Total};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::logins::Logins;
use crate::stop::Stop;
use crate::system;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidalite::Database;
use tidalite::metrics::Metric;
use tokio::net::{TcpListener, TcpStream};
pub use watchdog::Watchdog;

/// Idle connections are closed after this time; scrapers reconnect.
const IDLE: Duration = Duration::from_secs(60);

/// Connections of scrapers and load balancers. `system` reserves file handles for this number.
pub const CONNECTIONS_MAX: usize = 64;

pub struct Health {
    database: Database,
    counters: Arc<Counters>,
    bodies: Budget,
    messages: Budget,
    results: Budget,
    logins: Arc<Logins>,
    /// Number of refused connections by protocol.
    refused: Vec<(&'static str, Arc<AtomicU64>)>,
    started: Instant,
    watchdog: Watchdog,
}

/// The health of the server at one moment.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The reason why the process must be restarted.
    pub not_live: Option<String>,
    /// The reason why statements are not answered.
    pub not_ready: Option<String>,
    /// The reason why writes are refused, except the setting `read_only`.
    pub not_writable: Option<String>,
    pub is_read_only: bool,
}

impl Report {
    /// Returns the first reason for which the server is unhealthy.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.not_live.as_ref().or(self.not_ready.as_ref()).or(self.not_writable.as_ref()).cloned()
    }
}

impl Health {
    /// `bodies`, `messages` and `results` are the memory limits of clients.
    #[must_use]
    pub fn new(
        database: Database,
        counters: Arc<Counters>,
        [bodies, messages, results]: [Budget; 3],
        logins: Arc<Logins>,
        watchdog: Watchdog,
    ) -> Health {
        let refused = Vec::new();
        Health { database, counters, bodies, messages, results, logins, refused, started: Instant::now(), watchdog }
    }

    /// Adds the number of refused connections by protocol to the metrics.
    #[must_use]
    pub fn with_refused(self, refused: Vec<(&'static str, Arc<AtomicU64>)>) -> Health {
        Health { refused, ..self }
    }

    #[must_use]
    pub fn report(&self) -> Report {
        let state = self.database.state();
        let stuck = self.watchdog.problem();
        Report {
            not_live: state.is_over.then(|| "the commit thread has ended".to_owned()),
            not_ready: stuck.statements,
            not_writable: state.not_writable.or(stuck.commits),
            is_read_only: self.database.is_read_only(),
        }
    }

    /// Returns the state for a path of the health endpoints: true if healthy, and the text of the response.
    #[must_use]
    pub fn state(&self, path: &str) -> (bool, String) {
        let report = self.report();
        let one = |reason: &Option<String>, word: &str| match reason {
            None => (true, format!("{word}\n")),
            Some(reason) => (false, format!("not {word}: {reason}\n")),
        };
        match path {
            "/health/live" => one(&report.not_live, "live"),
            "/health/ready" => one(&report.not_live.clone().or(report.not_ready), "ready"),
            "/health/writable" if report.is_read_only => {
                (false, "not writable: the server is read-only (setting read_only)\n".to_owned())
            }
            "/health/writable" => one(&report.problem(), "writable"),
            _ => self.summary(&report),
        }
    }

    fn summary(&self, report: &Report) -> (bool, String) {
        let up = self.started.elapsed().as_secs();
        let problem = report.problem();
        let status = if problem.is_none() { "Healthy" } else { "Unhealthy" };
        let word = |is_so: bool| if is_so { "yes" } else { "no" };
        let writable = report.not_writable.is_none() && !report.is_read_only;
        let mut text = format!("Status: {status}\nVersion: {}\nUptime: {up} s\n", env!("CARGO_PKG_VERSION"));
        text += &format!(
            "Live: {}\nReady: {}\nWritable: {}\n",
            word(report.not_live.is_none()),
            word(report.not_ready.is_none()),
            word(writable)
        );
        let read_only = report.is_read_only.then(|| "the server is read-only (setting read_only)".to_owned());
        if let Some(reason) = problem.clone().or(read_only) {
            text += &format!("Reason: {reason}\n");
        }
        (problem.is_none(), text)
    }

    fn metrics(&self) -> String {
        let gauge = |name, help, value: f64| Metric { name, help, is_counter: false, value };
        let counter = |name, help, value: u64| Metric { name, help, is_counter: true, value: value as f64 };
        let report = self.report();
        let flag = |reason: &Option<String>| f64::from(u8::from(reason.is_none()));
        let writable = if report.is_read_only { 0.0 } else { flag(&report.not_writable) };
        let (failed, refused) = self.logins.counts();
        let mut metrics = self.database.metrics();
        metrics.extend([
            gauge("tidalite_http_bodies_bytes", "Bytes of requests' bodies held.", self.bodies.used() as f64),
            gauge(
                "tidalite_pg_messages_bytes",
                "Bytes of messages, statements and values of clients of the PostgreSQL protocol held.",
                self.messages.used() as f64,
            ),
            gauge("tidalite_memory_bytes", "Bytes of live allocations.", tidalite_memory::used() as f64),
            gauge(
                "tidalite_memory_resident_bytes",
                "Bytes of anonymous memory that are resident: live allocations, freed pages that the allocator keeps.",
                tidalite_memory::resident_bytes() as f64,
            ),
            gauge("tidalite_memory_limit_bytes", "The setting memory.bytes.", tidalite_memory::budget() as f64),
            gauge(
                "tidalite_statements_memory_bytes",
                "Bytes of live allocations of running statements.",
                tidalite_memory::tracked() as f64,
            ),
            gauge(
                "tidalite_results_bytes",
                "Bytes of rows held that clients have not taken yet.",
                self.results.used() as f64,
            ),
            counter(
                "tidalite_slow_readers_total",
                "Connections closed because their clients did not read.",
                self.counters.slow_readers.load(Relaxed),
            ),
            counter(
                "tidalite_slow_uploads_total",
                "Bodies and messages whose memory was revoked because the rest was late.",
                self.bodies.gave_way() + self.messages.gave_way(),
            ),
            counter(
                "tidalite_log_lines_dropped_total",
                "Log lines that standard error did not accept.",
                crate::logging::lines_dropped(),
            ),
            gauge("tidalite_live", "1 unless the process must be restarted.", flag(&report.not_live)),
            gauge("tidalite_ready", "1 if statements are answered.", flag(&report.not_ready)),
            gauge("tidalite_writable", "1 if writes are accepted.", writable),
            gauge(
                "tidalite_watchdog_seconds",
                "Duration of the last watchdog statement.",
                self.watchdog.last_took().as_secs_f64(),
            ),
            counter("tidalite_logins_failed_total", "Logins with wrong credentials.", failed),
            counter("tidalite_logins_refused_total", "Logins refused because of earlier failures.", refused),
        ]);
        self.counters.render(&metrics, &self.refused)
    }
}

/// Starts the health thread, which ends after the stop signal; without a listener it runs only the watchdog.
///
/// # Errors
/// The operating system cannot create a thread.
pub fn spawn(listener: Option<std::net::TcpListener>, health: Arc<Health>, stop: Stop) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("health".to_owned()).spawn(move || {
        system::begin_dates();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(run(listener, health, stop)),
            Err(error) => tracing::error!(%error, "could not start the health thread"),
        }
    })
}

async fn run(listener: Option<std::net::TcpListener>, health: Arc<Health>, stop: Stop) {
    let watching = health.watchdog.watch(&health.database, stop.clone());
    match listener.map(TcpListener::from_std).transpose() {
        Ok(Some(listener)) => {
            let port = Port {
                protocol: "health",
                connections_max: CONNECTIONS_MAX,
                per_address_max: CONNECTIONS_MAX,
                setting: "a fixed limit",
                refused: Arc::default(),
                all: Total::new(usize::MAX),
            };
            let handle = |socket, _, slot, stop| connection(socket, slot, health.clone(), stop);
            tokio::join!(watching, accept::serve(listener, port, stop, handle));
        }
        Ok(None) => watching.await,
        Err(error) => tracing::error!(%error, "could not serve health"),
    }
}

async fn connection(socket: TcpStream, slot: Arc<Slot>, health: Arc<Health>, mut stop: Stop) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &health);
        // Closing an idle connection is harmless: scrapers reconnect.
        slot.release();
        async { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
    tokio::select! {
        // A broken connection needs no log line: the scraper reports it.
        _ = builder.serve_connection(TokioIo::new(socket), service) => {}
        () = stop.wait() => {}
    }
}

fn answer(request: &Request<Incoming>, health: &Health) -> Response<Full<Bytes>> {
    let of = |(is_well, text)| (if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text);
    let (status, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, health.metrics()),
        path @ ("/" | "/status" | "/health" | "/ping" | "/health/live" | "/health/ready" | "/health/writable") => {
            of(health.state(path))
        }
        _ => (
            StatusCode::NOT_FOUND,
            "paths: /status, /health/live, /health/ready, /health/writable, /metrics\n".to_owned(),
        ),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}
