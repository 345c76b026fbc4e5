//! Health and metrics, on a thread of their own with a runtime of their own: they answer while everything else is
//! busy.

use crate::accept::{self, Port};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::stop::Stop;
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
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidalite::Database;
use tidalite::metrics::Metric;
use tokio::net::{TcpListener, TcpStream};

/// Scrapers reconnect, and a forgotten connection should not stay.
const IDLE: Duration = Duration::from_secs(60);

/// More than all scrapers and load balancers that anybody has.
const PORT: Port = Port { protocol: "health", connections_max: 256, setting: "a fixed limit" };

pub struct Health {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub bodies: Budget,
    pub messages: Budget,
    pub started: Instant,
}

/// Starts the thread; it ends with the stop.
///
/// # Errors
/// When the system has no thread left.
pub fn spawn(listener: std::net::TcpListener, health: Health, stop: Stop) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("health".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(serve(listener, Arc::new(health), stop)),
            Err(error) => tracing::error!(%error, "could not start the thread that answers for health"),
        }
    })
}

async fn serve(listener: std::net::TcpListener, health: Arc<Health>, stop: Stop) {
    match TcpListener::from_std(listener) {
        Ok(listener) => {
            accept::serve(listener, PORT, stop, |socket, _, stop| connection(socket, health.clone(), stop)).await
        }
        Err(error) => tracing::error!(%error, "could not serve health"),
    }
}

async fn connection(socket: TcpStream, health: Arc<Health>, mut stop: Stop) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &health);
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
    let (status, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, metrics(health)),
        "/" | "/status" | "/health" | "/ping" => {
            let up = health.started.elapsed().as_secs();
            (StatusCode::OK, format!("Status: Healthy\nVersion: {}\nUptime: {up} s\n", env!("CARGO_PKG_VERSION")))
        }
        _ => (StatusCode::NOT_FOUND, "there are /status and /metrics\n".to_owned()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

fn metrics(health: &Health) -> String {
    let held = |name, help, budget: &Budget| Metric { name, help, is_counter: false, value: budget.used() as f64 };
    let mut metrics = health.database.metrics();
    metrics.push(held("tidalite_http_bodies_bytes", "Bytes of requests' bodies held.", &health.bodies));
    let help = "Bytes of messages, statements and values of clients of the PostgreSQL protocol held.";
    metrics.push(held("tidalite_pg_messages_bytes", help, &health.messages));
    let value = crate::logging::lines_dropped() as f64;
    let help = "Log lines that standard error did not take.";
    metrics.push(Metric { name: "tidalite_log_lines_dropped_total", help, is_counter: true, value });
    health.counters.render(&metrics)
}
