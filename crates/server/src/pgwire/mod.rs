//! The PostgreSQL protocol (version 3.0): connections.
//!
//! Reading order: this file accepts connections; [`state`] their common state; [`encryption`] TLS negotiation;
//! [`message`] decodes messages, [`reply`] encodes responses; [`startup`] and [`scram`] authentication; [`session`] the
//! state of a session; [`connection`] the messages of a session and simple queries, [`extended`] the extended protocol
//! with [`prepared`] statements and portals; [`prepare_command`], [`prepare`] PREPARE and EXECUTE in SQL;
//! [`cursor_command`], [`cursor`], [`cursors`] cursors in SQL; [`running_query`], [`rows`] result rows, [`copy`] COPY;
//! [`split`] splits a text into statements; [`command`] parses session commands and [`obey`] executes them;
//! [`isolation`], [`block`], [`transaction`] transaction blocks; [`introspection`] a query of asyncpg; [`types`],
//! [`values`], [`arrays`] and [`numeric`] encode values, [`parameters`] decodes parameters; [`cancel`] cancel requests.
//!
//! Always: a client costs memory for one message of its own and a few batches of rows; bytes that are no message end
//! its connection at most; rows are computed only as they are read.

mod arrays;
mod block;
mod cancel;
mod command;
mod connection;
mod copy;
mod copy_binary;
mod cursor;
mod cursor_command;
mod cursors;
mod encryption;
mod extended;
mod introspection;
mod isolation;
mod message;
mod numeric;
mod obey;
mod parameters;
mod prepare;
mod prepare_command;
mod prepared;
mod reply;
mod rows;
mod running_query;
mod scram;
mod session;
mod split;
mod startup;
mod state;
mod transaction;
mod types;
mod values;

pub use cancel::Backends;
pub use encryption::ALPN;
pub use scram::Credentials;
pub use state::PgState;

use crate::accept::{self, Port, Slot};
use crate::counters::OpenConnection;
use crate::slow_reader::{Timed, WriteLimit, limit_unsent};
use crate::stop::Stop;
use message::Input;
use reply::Output;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Serves until the stop; returns when the statements under way are finished and every connection is closed.
pub async fn serve(listener: TcpListener, shared: Arc<PgState>, port: Port, stop: Stop) {
    let handle = |socket, peer, slot, stop| serve_one(socket, peer, slot, shared.clone(), stop);
    accept::serve(listener, port, stop, handle).await;
}

async fn serve_one(socket: TcpStream, peer: SocketAddr, slot: Arc<Slot>, shared: Arc<PgState>, mut stop: Stop) {
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
