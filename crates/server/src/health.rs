//! Health and metrics: what the server knows of itself, and the port that tells it.
//!
//! The port is served on a thread of its own with a runtime of its own: it answers while everything else is busy. The
//! same thread runs the watchdog ([`watchdog`]), also where the port is off.

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
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidalite::Database;
use tidalite::metrics::Metric;
use tokio::net::{TcpListener, TcpStream};
use watchdog::Watchdog;

/// Scrapers reconnect, and a forgotten connection should not stay.
const IDLE: Duration = Duration::from_secs(60);

/// More than all scrapers and load balancers that anybody has. The process keeps file handles for them.
pub const CONNECTIONS_MAX: usize = 64;

pub struct Health {
    database: Database,
    counters: Arc<Counters>,
    bodies: Budget,
    messages: Budget,
    logins: Arc<Logins>,
    /// Connections refused, by protocol.
    refused: Vec<(&'static str, Arc<AtomicU64>)>,
    started: Instant,
    watchdog: Watchdog,
}

/// What health is made of, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Why the process has to be started again.
    pub not_live: Option<String>,
    /// Why statements are not answered.
    pub not_ready: Option<String>,
    /// Why writes are refused, other than by the setting `read_only`.
    pub not_writable: Option<String>,
    pub is_read_only: bool,
}

impl Report {
    /// Returns the first reason why the server does not do what it is there for.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.not_live.as_ref().or(self.not_ready.as_ref()).or(self.not_writable.as_ref()).cloned()
    }
}

impl Health {
    /// The watchdog looks every `interval`, zero for never, and gives a statement `deadline` to be answered.
    #[must_use]
    pub fn new(
        database: Database,
        counters: Arc<Counters>,
        budgets: (Budget, Budget),
        logins: Arc<Logins>,
        (interval, deadline): (Duration, Duration),
    ) -> Health {
        let (bodies, messages) = budgets;
        let watchdog = Watchdog::new(interval, deadline);
        let refused = Vec::new();
        Health { database, counters, bodies, messages, logins, refused, started: Instant::now(), watchdog }
    }

    /// Shows how many connections each port refused.
    #[must_use]
    pub fn with_refused(self, refused: Vec<(&'static str, Arc<AtomicU64>)>) -> Health {
        Health { refused, ..self }
    }

    #[must_use]
    pub fn report(&self) -> Report {
        let state = self.database.state();
        let stuck = self.watchdog.problem();
        Report {
            not_live: state.is_over.then(|| "the thread of commits has ended".to_owned()),
            not_ready: stuck.statements,
            not_writable: state.not_writable.or(stuck.commits),
            is_read_only: self.database.is_read_only(),
        }
    }

    /// What a path of health says: whether it is well, and why not.
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
            counter(
                "tidalite_slow_uploads_total",
                "Bodies and messages whose rest did not come and whose memory others needed.",
                self.bodies.gave_way() + self.messages.gave_way(),
            ),
            counter(
                "tidalite_log_lines_dropped_total",
                "Log lines that standard error did not take.",
                crate::logging::lines_dropped(),
            ),
            gauge("tidalite_live", "1 unless the process has to be started again.", flag(&report.not_live)),
            gauge("tidalite_ready", "1 if statements are answered.", flag(&report.not_ready)),
            gauge("tidalite_writable", "1 if writes are taken.", writable),
            gauge(
                "tidalite_watchdog_seconds",
                "Time of the last statement of the watchdog.",
                self.watchdog.last_took().as_secs_f64(),
            ),
            counter("tidalite_logins_failed_total", "Logins with wrong credentials.", failed),
            counter("tidalite_logins_refused_total", "Logins refused after too many that failed.", refused),
        ]);
        self.counters.render(&metrics, &self.refused)
    }
}

/// Starts the thread; it ends with the stop. Without a listener it only watches.
///
/// # Errors
/// When the system has no thread left.
pub fn spawn(listener: Option<std::net::TcpListener>, health: Arc<Health>, stop: Stop) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("health".to_owned()).spawn(move || {
        system::begin_dates();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(run(listener, health, stop)),
            Err(error) => tracing::error!(%error, "could not start the thread that answers for health"),
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
        // A scraper that reconnects is none the worse for it.
        slot.release();
        async { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
    tokio::select! {
        // A connection that breaks is the scraper's business.
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
            "there are /status, /health/live, /health/ready, /health/writable and /metrics\n".to_owned(),
        ),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}
