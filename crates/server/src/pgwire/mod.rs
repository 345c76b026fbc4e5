//! The PostgreSQL protocol (version 3.0): connections.
//!
//! Reading order: this file accepts connections; [`encryption`] TLS negotiation; [`message`] decodes messages,
//! [`reply`] encodes responses; [`startup`] and [`scram`] authentication; [`connection`] the messages of a session and
//! simple queries, [`extended`] the extended protocol with [`prepared`] statements and portals; [`prepare`] PREPARE and
//! EXECUTE in SQL, [`cursors`] cursors in SQL; [`rows`] result rows, [`copy`] COPY; [`split`] splits a text into
//! statements; [`command`] parses session commands and [`obey`] executes them, [`transaction`] transaction blocks,
//! [`introspection`] a query of asyncpg; [`types`], [`values`], [`arrays`] and [`numeric`] encode values,
//! [`parameters`] decodes parameters; [`cancel`] cancel requests.
//!
//! Always: a client costs memory for one message of its own and a few batches of rows; bytes that are no message end
//! its connection at most; rows are computed only as they are read.

mod arrays;
mod cancel;
mod command;
mod connection;
mod copy;
mod copy_binary;
mod cursors;
mod encryption;
mod extended;
mod introspection;
mod message;
mod numeric;
mod obey;
mod parameters;
mod prepare;
mod prepared;
mod reply;
mod rows;
mod scram;
mod split;
mod startup;
mod transaction;
mod types;
mod values;

pub use cancel::Backends;
pub use encryption::ALPN;
pub use scram::Credentials;

use crate::accept::{self, Port, Slot};
use crate::budget::Budget;
use crate::counters::{Counters, OpenConnection};
use crate::logins::Logins;
use crate::slow_reader::{Timed, WriteLimit, limit_unsent};
use crate::stop::Stop;
use crate::tls::Tls;
use message::Input;
use reply::Output;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tokio::net::{TcpListener, TcpStream};

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    /// Without, anyone is let in.
    pub credentials: Option<Credentials>,
    pub logins: Arc<Logins>,
    /// Limit for TLS negotiation and, again, for startup message and login; zero is no limit.
    pub handshake_timeout: Duration,
    /// Limit for a client that takes no byte; zero is no limit.
    pub write_timeout: Duration,
    pub message_bytes_max: usize,
    /// Of long messages, and of what sessions keep of them.
    pub messages: Budget,
    pub results: Budget,
    /// Without, nothing is encrypted.
    pub tls: Option<Tls>,
    pub backends: Backends,
}

/// Serves until the stop; returns when the statements under way are finished and every connection is closed.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, port: Port, stop: Stop) {
    let handle = |socket, peer, slot, stop| serve_one(socket, peer, slot, shared.clone(), stop);
    accept::serve(listener, port, stop, handle).await;
}

async fn serve_one(socket: TcpStream, peer: SocketAddr, slot: Arc<Slot>, shared: Arc<Shared>, mut stop: Stop) {
    let _open = OpenConnection::count(&shared.counters.pg);
    // Answers are small and waited for.
    let _ = socket.set_nodelay(true);
    accept::notice_the_vanished(&socket);
    limit_unsent(&socket);
    let opened = tokio::select! {
        opened = encryption::open(socket, peer, &shared) => opened,
        () = stop.wait() => return,
    };
    let Some((socket, received)) = opened else { return };
    let is_encrypted = socket.is_encrypted();
    let limit = WriteLimit::new(shared.write_timeout, format!("pg {peer}"), shared.counters.slow_readers.clone());
    let (read, write) = tokio::io::split(Timed::new(socket, limit.clone()));
    let mut input = Input::new(read, &received, shared.messages.share());
    let mut out = Output::new(write, limit);
    let client = startup::Peer { is_encrypted, address: peer.ip(), full: slot.full() };
    let started = tokio::select! {
        started = startup::start(&mut input, &mut out, &shared, client) => started,
        () = stop.wait() => return,
    };
    match started {
        Ok(Some(startup)) => {
            slot.keep();
            let backend = shared.backends.enter(format!("pg {peer}"));
            let ended = connection::run(input, out, startup, &shared, &backend, stop).await;
            return tracing::debug!(%peer, error = ended.err().map(|e| e.to_string()), "PostgreSQL: connection closed");
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%peer, %error, "PostgreSQL: connection closed before it began"),
    }
    out.close().await;
}
