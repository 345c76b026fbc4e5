//! A running server: the database opened, the ports bound, and everything stopped in order again.
//!
//! Start: ports are bound before the database is opened, so that a port in use costs no recovery, and served after
//! it, so that a connection is an answer. Stop: no new connections, requests and lines under way are finished and
//! committed, statements that take too long are stopped, then the database closes with a checkpoint.

use crate::auth::HttpAuth;
use crate::budget::Budget;
use crate::config::{Config, Listen};
use crate::counters::Counters;
use crate::lines::Pool;
use crate::stop::{self, StopSignal};
use crate::tls::{Certificate, Tls};
use crate::{health, http, ilp, pgwire};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidalite::line::LineOptions;
use tidalite::{Database, Error};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

/// Connections the system keeps waiting for an accept.
const BACKLOG: u32 = 1024;

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
    health: Option<std::thread::JoinHandle<()>>,
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
    pub async fn start(config: Config) -> Result<Server, StartError> {
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
        let server = Server::serve(&config, bound, keys, certificate, database);
        server.map_err(|e| StartError(format!("could not serve: {e}")))
    }

    fn serve(
        config: &Config,
        bound: Bound,
        keys: Option<ilp::Keys>,
        certificate: Option<Arc<Certificate>>,
        database: Database,
    ) -> io::Result<Server> {
        let tls = |is_on: bool, protocol| match &certificate {
            Some(certificate) if is_on => Tls::new(certificate.clone(), protocol).map(Some).map_err(io::Error::other),
            _ => Ok(None),
        };
        let (signal, stop) = stop::channel();
        let counters = Arc::new(Counters::default());
        let line = LineOptions {
            nan_is_null: config.line_nan_is_null,
            new_table_unit: config.line_timestamp_unit,
            line_bytes_max: config.line_bytes_max,
            seed: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            ..LineOptions::default()
        };
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
        let mut addresses = Addresses::default();
        let (mut tasks, mut lines) = (Vec::new(), None);
        if let Some(listener) = bound.http {
            addresses.http = Some(listener.local_addr()?);
            let shared = Arc::new(http::Shared {
                database: database.clone(),
                counters: counters.clone(),
                auth: HttpAuth::new(config.http_user.as_ref(), &config.http_tokens),
                line: line.clone(),
                parsers: Pool::default(),
                body: http::BodyLimits { bytes_max: config.http_body_bytes_max, idle_max: config.http_body_timeout },
                bodies: bodies.clone(),
                once: Arc::default(),
                databases: http::Names::default(),
                turns: http::imports::Turns::default(),
                tls: tls(config.http_tls, Some("http/1.1"))?,
            });
            tasks.push(tokio::spawn(http::serve(listener, shared, config.http_connections_max, stop.clone())));
        }
        if let Some(listener) = bound.pg {
            addresses.pg = Some(listener.local_addr()?);
            let credentials = match config.pg_credentials() {
                None => None,
                Some((user, password)) => {
                    let made = pgwire::Credentials::new(user, password);
                    Some(made.ok_or_else(|| io::Error::other("the system has no random bytes for a password's salt"))?)
                }
            };
            let shared = Arc::new(pgwire::Shared {
                database: database.clone(),
                counters: counters.clone(),
                credentials,
                message_bytes_max: config.pg_message_bytes_max,
                messages: messages.clone(),
                tls: tls(config.pg_tls, Some(pgwire::ALPN))?,
                backends: pgwire::Backends::default(),
            });
            tasks.push(tokio::spawn(pgwire::serve(listener, shared, config.pg_connections_max, stop.clone())));
        }
        if let Some(listener) = bound.ilp {
            addresses.ilp = Some(listener.local_addr()?);
            let shared = Arc::new(ilp::Shared {
                database: database.clone(),
                counters: counters.clone(),
                keys,
                tls: tls(config.ilp_tls, None)?,
                line,
                commit_interval: config.ilp_commit_interval,
                batch_rows_max: config.ilp_batch_rows_max,
            });
            let threads = ilp::LineThreads::start()?;
            let (connections_max, stop) = (config.ilp_connections_max, stop.clone());
            tasks.push(threads.serve(listener, move |listener| ilp::serve(listener, shared, connections_max, stop))?);
            lines = Some(threads);
        }
        let mut health = None;
        if let Some(listener) = bound.health {
            addresses.health = Some(listener.local_addr()?);
            let state = health::Health {
                database: database.clone(),
                counters: counters.clone(),
                bodies,
                messages,
                started: Instant::now(),
            };
            health = Some(health::spawn(listener.into_std()?, state, stop.clone())?);
        }
        let all = [
            ("http", addresses.http, config.http_tls),
            ("pg", addresses.pg, config.pg_tls),
            ("ilp", addresses.ilp, config.ilp_tls),
            ("health", addresses.health, false),
        ];
        for (protocol, address, tls) in all {
            if let Some(address) = address {
                tracing::info!(protocol, %address, tls, "listening");
            }
        }
        Ok(Server { addresses, database, counters, certificate, signal, tasks, _lines: lines, health })
    }

    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.certificate.is_some()
    }

    /// Reads certificate and key again, for connections from now on.
    pub fn reload(&self) {
        let Some(certificate) = &self.certificate else { return };
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
        if let Some(health) = self.health {
            let _ = tokio::task::spawn_blocking(move || health.join()).await;
        }
        closed
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
