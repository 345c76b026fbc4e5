//! The PostgreSQL protocol (version 3.0): connections.
//!
//! Reading order: this file accepts; [`message`] bytes in, [`reply`] bytes out; [`startup`] who it is and [`scram`]
//! proves it; [`connection`] the messages of a session, [`prepared`] its statements and portals, [`split`] a text into
//! statements, [`command`] those about the session itself, [`introspection`] those of `psql`; [`types`], [`values`],
//! [`arrays`] and [`numeric`] rows out, [`parameters`] values in; [`cancel`] by key.
//!
//! Always: a client costs memory for one message of its own and a few batches of rows; bytes that are no message end
//! its connection at most; rows are computed only as they are read.

mod arrays;
mod cancel;
mod command;
mod connection;
mod introspection;
mod message;
mod numeric;
mod parameters;
mod prepared;
mod reply;
mod scram;
mod split;
mod startup;
mod types;
mod values;

pub use cancel::Backends;
pub use scram::Credentials;

use crate::accept::{self, Port};
use crate::counters::{Counters, OpenConnection};
use crate::stop::Stop;
use message::Input;
use reply::Output;
use std::net::SocketAddr;
use std::sync::Arc;
use tidalite::Database;
use tokio::net::{TcpListener, TcpStream};

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    /// Without, anyone is let in.
    pub credentials: Option<Credentials>,
    pub message_bytes_max: usize,
    pub backends: Backends,
}

/// Serves until the stop; returns when the statements under way are finished and every connection is closed.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, connections_max: usize, stop: Stop) {
    let port = Port { protocol: "PostgreSQL", connections_max, setting: "pg.connections_max" };
    accept::serve(listener, port, stop, |socket, peer, stop| serve_one(socket, peer, shared.clone(), stop)).await;
}

async fn serve_one(socket: TcpStream, peer: SocketAddr, shared: Arc<Shared>, mut stop: Stop) {
    let _open = OpenConnection::count(&shared.counters.pg);
    // Answers are small and waited for.
    let _ = socket.set_nodelay(true);
    let _ = socket2::SockRef::from(&socket).set_keepalive(true);
    let (read, write) = socket.into_split();
    let mut input = Input::new(read, shared.message_bytes_max);
    let mut out = Output::new(write);
    let started = tokio::select! {
        started = startup::start(&mut input, &mut out, &shared) => started,
        () = stop.wait() => return,
    };
    match started {
        Ok(Some(startup)) => {
            let backend = shared.backends.enter(format!("pg {peer}"));
            let ended = connection::run(input, out, startup, &shared, &backend, stop).await;
            tracing::debug!(%peer, error = ended.err().map(|e| e.to_string()), "PostgreSQL: connection closed");
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%peer, %error, "PostgreSQL: connection closed before it began"),
    }
}
