//! A running server: the database opened, the ports bound, and everything stopped in order again.
//!
//! Start: ports are bound before the database is opened, so that a port in use costs no recovery, and served after
//! it, so that a connection is an answer. Stop: no new connections, requests and lines under way are finished and
//! committed, statements that take too long are stopped, then the database closes with a checkpoint.

use crate::accept::{Port, Total};
use crate::auth::HttpAuth;
use crate::budget::Budget;
use crate::config::{Config, Listen, OnSyncFailure};
use crate::counters::Counters;
use crate::health::{Health, Watchdog};
use crate::lines::Pool;
use crate::logins::Logins;
use crate::stop::{self, Stop, StopSignal};
use crate::tls::{Certificate, Tls};
use crate::{health, http, ilp, pgwire, system};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidalite::line::LineOptions;
use tidalite::{Database, Error};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

/// Connections the system keeps waiting for an accept.
const BACKLOG: u32 = 1024;

/// Interval at which the state of the log is polled.
const LOG_LOOK: Duration = Duration::from_millis(200);

/// Statements and readers may take so long to finish once the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Why the server does not start, in words that say what to do.
#[derive(Debug)]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// Where a running server listens; ports that were given as 0 have their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses {
    pub http: Option<SocketAddr>,
    pub pg: Option<SocketAddr>,
    pub ilp: Option<SocketAddr>,
    pub health: Option<SocketAddr>,
}

pub struct Server {
    pub addresses: Addresses,
    database: Database,
    counters: Arc<Counters>,
    certificate: Option<Arc<Certificate>>,
    signal: StopSignal,
    tasks: Vec<JoinHandle<()>>,
    /// End with it.
    _lines: Option<ilp::LineThreads>,
    health: std::thread::JoinHandle<()>,
    on_sync_failure: OnSyncFailure,
    _file_size_signal: Option<tokio::signal::unix::Signal>,
}

struct Bound {
    http: Option<TcpListener>,
    pg: Option<TcpListener>,
    ilp: Option<TcpListener>,
    health: Option<TcpListener>,
}

impl Server {
    /// Must run on a tokio runtime of several threads.
    ///
    /// # Errors
    /// A port in use, a locked or damaged data folder, a key file that cannot be read.
    pub async fn start(mut config: Config) -> Result<Server, StartError> {
        if !system::has_sane_clock() {
            return Err(StartError("the system clock is before 1970: set the clock of the machine".to_owned()));
        }
        let file_size_signal = system::survive_large_files();
        let handles = system::open_files(config.database.segment_files);
        config.database.segment_files = handles.segments;
        let bound = Bound {
            http: bind(config.http.as_ref(), "HTTP")?,
            pg: bind(config.pg.as_ref(), "the PostgreSQL protocol")?,
            ilp: bind(config.ilp.as_ref(), "line protocol")?,
            health: bind(config.health.as_ref(), "health")?,
        };
        let keys = config.ilp_auth_file.as_deref().map(ilp::Keys::read).transpose();
        let keys = keys.map_err(|e| StartError(format!("setting \"ilp.auth_file\": {e}")))?;
        let certificate = config.tls.as_ref().map(|(chain, key)| Certificate::read(chain, key)).transpose();
        let certificate = certificate.map_err(|e| StartError(format!("could not set up TLS: {e}")))?.map(Arc::new);
        let database_config = config.database.clone();
        let opening = tokio::task::spawn_blocking(move || Database::open(database_config));
        let database = opening.await.map_err(|e| StartError(format!("could not open the database: {e}")))?;
        let database = database.map_err(|e| open_error(&config, &e))?;
        let total = Total::new(handles.connections);
        let server = Server::serve(&config, bound, keys, certificate, database, total);
        let server = server.map_err(|e| StartError(format!("could not serve: {e}")))?;
        Ok(Server { _file_size_signal: file_size_signal, ..server })
    }

    fn serve(
        config: &Config,
        bound: Bound,
        keys: Option<ilp::Keys>,
        certificate: Option<Arc<Certificate>>,
        database: Database,
        total: Total,
    ) -> io::Result<Server> {
        let (signal, stop) = stop::channel();
        let counters = Arc::new(Counters::default());
        let ports = Ports::new(config, total);
        let budgets = budgets(config);
        let [bodies, messages, results] = budgets.clone();
        let logins = Arc::new(Logins::default());
        let health = Health::new(
            database.clone(),
            counters.clone(),
            budgets,
            logins.clone(),
            Watchdog::new(config.watchdog_interval, config.watchdog_deadline),
        );
        let health = Arc::new(health.with_refused(ports.refused()));
        let (database, counters) = (&database, &counters);
        let all = All { config, certificate: &certificate, database, counters, logins: &logins, stop: &stop };
        let mut addresses = Addresses::default();
        let (mut tasks, mut lines) = (Vec::new(), None);
        if let Some(listener) = bound.http {
            addresses.http = Some(listener.local_addr()?);
            tasks.push(all.serve_http(listener, ports.http, (bodies, results.clone()), health.clone())?);
        }
        if let Some(listener) = bound.pg {
            addresses.pg = Some(listener.local_addr()?);
            tasks.push(all.serve_pg(listener, ports.pg, (messages, results))?);
        }
        if let Some(listener) = bound.ilp {
            addresses.ilp = Some(listener.local_addr()?);
            let threads = ilp::LineThreads::start()?;
            tasks.push(all.serve_lines(listener, ports.ilp, keys, &threads)?);
            lines = Some(threads);
        }
        addresses.health = bound.health.as_ref().map(TcpListener::local_addr).transpose()?;
        crate::memory::watch()?;
        let health_listener = bound.health.map(TcpListener::into_std).transpose()?;
        let health = health::spawn(health_listener, health, stop.clone())?;
        addresses.log(config);
        Ok(Server {
            addresses,
            database: database.clone(),
            counters: counters.clone(),
            certificate,
            signal,
            tasks,
            _lines: lines,
            health,
            on_sync_failure: config.on_sync_failure,
            _file_size_signal: None,
        })
    }

    /// Completes when the log has failed, unless the setting is `refuse`.
    pub async fn log_failed(&self) -> OnSyncFailure {
        loop {
            tokio::time::sleep(LOG_LOOK).await;
            if self.on_sync_failure != OnSyncFailure::Refuse && self.database.log_failure().is_some() {
                return self.on_sync_failure;
            }
        }
    }

    /// Reads certificate and key again, for connections from now on.
    pub fn reload(&self) {
        let Some(certificate) = &self.certificate else {
            return tracing::info!("SIGHUP: there is no certificate to be read again");
        };
        match certificate.reload() {
            Ok(()) => tracing::info!("read the certificate again"),
            Err(reason) => tracing::error!(reason, "could not read the certificate again; the old one stays"),
        }
    }

    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Stops in order: see the head of this file.
    ///
    /// # Errors
    /// When the database could not write its last checkpoint.
    pub async fn stop(self) -> Result<(), Error> {
        self.signal.give();
        let mut tasks = futures::future::join_all(self.tasks);
        if tokio::time::timeout(GRACE, &mut tasks).await.is_err() {
            for statement in self.database.activity() {
                tracing::warn!(client = statement.client, sql = statement.sql, "stopped a statement: the server stops");
                self.database.cancel(statement.id);
            }
            // What is left is a reader that does not read; it is cut off when the runtime ends.
            let _ = tokio::time::timeout(GRACE, &mut tasks).await;
        }
        let rows = self.counters.tcp.rows.load(std::sync::atomic::Ordering::Relaxed);
        tracing::info!(tcp_rows = rows, "connections are closed; closing the database");
        let database = self.database;
        let closing = tokio::task::spawn_blocking(move || database.close());
        let closed = closing.await.unwrap_or_else(|e| Err(Error::new(tidalite::ErrorKind::Internal, e.to_string())));
        let health = self.health;
        let _ = tokio::task::spawn_blocking(move || health.join()).await;
        closed
    }
}

impl Addresses {
    fn log(&self, config: &Config) {
        let all = [
            ("http", self.http, config.http_tls),
            ("pg", self.pg, config.pg_tls),
            ("ilp", self.ilp, config.ilp_tls),
            ("health", self.health, false),
        ];
        for (protocol, address, tls) in all {
            if let Some(address) = address {
                tracing::info!(protocol, %address, tls, "listening");
            }
        }
    }
}

/// The connection limits of the ports.
struct Ports {
    http: Port,
    pg: Port,
    ilp: Port,
}

impl Ports {
    fn new(config: &Config, all: Total) -> Ports {
        let port = |protocol, connections_max: usize, setting| {
            // A quarter of the connections remains for other addresses.
            let per_address_max = config.per_address_max.unwrap_or(connections_max - connections_max / 4);
            Port { protocol, connections_max, per_address_max, setting, refused: Arc::default(), all: all.clone() }
        };
        Ports {
            http: port("http", config.http_connections_max, "http.connections_max"),
            pg: port("PostgreSQL", config.pg_connections_max, "pg.connections_max"),
            ilp: port("line protocol", config.ilp_connections_max, "ilp.connections_max"),
        }
    }

    /// Returns the counters of refused connections by protocol name in the metrics.
    fn refused(&self) -> Vec<(&'static str, Arc<AtomicU64>)> {
        [("http", &self.http), ("pg", &self.pg), ("tcp", &self.ilp)]
            .map(|(name, port)| (name, port.refused.clone()))
            .into()
    }
}

/// Returns the memory limits of HTTP bodies, of messages of the PostgreSQL protocol, and of results.
fn budgets(config: &Config) -> [Budget; 3] {
    let bodies = Budget::new(
        config.http_bodies_bytes_max.max(config.http_body_bytes_max),
        "the bodies of all requests",
        "http.bodies_bytes_max",
    );
    let messages = Budget::new(
        config.pg_messages_bytes_max.max(config.pg_message_bytes_max),
        "messages, statements and values of all clients",
        "pg.messages_bytes_max",
    );
    let results = Budget::new(config.results_bytes_max, "unread results of all clients", "results.bytes_max");
    [bodies, messages, results]
}

/// Dependencies of all ports.
struct All<'a> {
    config: &'a Config,
    certificate: &'a Option<Arc<Certificate>>,
    database: &'a Database,
    counters: &'a Arc<Counters>,
    logins: &'a Arc<Logins>,
    stop: &'a Stop,
}

impl All<'_> {
    fn tls(&self, is_on: bool, protocol: Option<&str>) -> io::Result<Option<Tls>> {
        match self.certificate {
            Some(certificate) if is_on => Tls::new(certificate.clone(), protocol).map(Some).map_err(io::Error::other),
            _ => Ok(None),
        }
    }

    fn line(&self) -> LineOptions {
        LineOptions {
            nan_is_null: self.config.line_nan_is_null,
            new_table_unit: self.config.line_timestamp_unit,
            line_bytes_max: self.config.line_bytes_max,
            seed: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            ..LineOptions::default()
        }
    }

    fn serve_http(
        &self,
        listener: TcpListener,
        port: Port,
        (bodies, results): (Budget, Budget),
        health: Arc<Health>,
    ) -> io::Result<JoinHandle<()>> {
        let config = self.config;
        let shared = Arc::new(http::HttpState {
            database: self.database.clone(),
            counters: self.counters.clone(),
            auth: HttpAuth::new(config.http_user.as_ref(), &config.http_tokens),
            logins: self.logins.clone(),
            allowed_hosts: http::AllowedHosts::new(config.http_allowed_hosts.clone()),
            health,
            line: self.line(),
            parsers: Pool::default(),
            body: http::BodyLimits {
                bytes_max: config.http_body_bytes_max,
                idle_max: config.http_body_timeout,
                rate_min: config.http_body_rate_min,
            },
            bodies,
            results,
            once: Arc::default(),
            databases: http::Names::default(),
            turns: http::imports::Turns::default(),
            tls: self.tls(config.http_tls, Some("http/1.1"))?,
            handshake_timeout: config.handshake_timeout,
            write_timeout: config.write_timeout,
        });
        Ok(tokio::spawn(http::serve(listener, shared, port, self.stop.clone())))
    }

    fn serve_pg(
        &self,
        listener: TcpListener,
        port: Port,
        (messages, results): (Budget, Budget),
    ) -> io::Result<JoinHandle<()>> {
        let credentials = match self.config.pg_credentials() {
            None => None,
            Some((user, password)) => {
                let made = pgwire::Credentials::new(user, password);
                Some(made.ok_or_else(|| io::Error::other("the system has no random bytes for a password's salt"))?)
            }
        };
        let shared = Arc::new(pgwire::PgState {
            database: self.database.clone(),
            counters: self.counters.clone(),
            credentials,
            logins: self.logins.clone(),
            handshake_timeout: self.config.handshake_timeout,
            write_timeout: self.config.write_timeout,
            message_bytes_max: self.config.pg_message_bytes_max,
            messages,
            results,
            tls: self.tls(self.config.pg_tls, Some(pgwire::ALPN))?,
            backends: pgwire::Backends::default(),
        });
        Ok(tokio::spawn(pgwire::serve(listener, shared, port, self.stop.clone())))
    }

    fn serve_lines(
        &self,
        listener: TcpListener,
        port: Port,
        keys: Option<ilp::Keys>,
        threads: &ilp::LineThreads,
    ) -> io::Result<JoinHandle<()>> {
        let shared = Arc::new(ilp::IlpState {
            database: self.database.clone(),
            counters: self.counters.clone(),
            keys,
            logins: self.logins.clone(),
            handshake_timeout: self.config.handshake_timeout,
            tls: self.tls(self.config.ilp_tls, None)?,
            line: self.line(),
            commit_interval: self.config.ilp_commit_interval,
            batch_rows_max: self.config.ilp_batch_rows_max,
        });
        let stop = self.stop.clone();
        threads.serve(listener, move |listener| ilp::serve(listener, shared, port, stop))
    }
}

fn bind(listen: Option<&Listen>, what: &str) -> Result<Option<TcpListener>, StartError> {
    let Some(listen) = listen else { return Ok(None) };
    let mut last = None;
    for address in &listen.addresses {
        match bind_one(*address) {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) => last = Some(error),
        }
    }
    let Some(error) = last else {
        return Err(StartError(format!("{:?} is no address to listen on ({what})", listen.text)));
    };
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there, perhaps another Tidalite or QuestDB; stop it, or",
        io::ErrorKind::PermissionDenied => "ports below 1024 are for root;",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address;",
        _ => "",
    };
    Err(StartError(format!(
        "could not listen on {} for {what}: {error}; {advice} choose another with --{} HOST:PORT",
        listen.text, listen.flag
    )))
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port whose last connections linger in TIME_WAIT is free for us.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn open_error(config: &Config, error: &Error) -> StartError {
    let hint = error.hint.as_ref().map_or(String::new(), |h| format!("; {h}"));
    StartError(format!("could not open the data folder {}: {error}{hint}", config.database.data.display()))
}
