//! Line protocol over TCP: connections.
//!
//! Reading order: this file accepts; [`threads`] serve; [`auth`] asks who it is; [`connection`] reads, parses and
//! commits; [`pace`] decides when.

mod auth;
mod connection;
mod pace;
mod threads;

use crate::accept::{self, Port};
use crate::counters::{Counters, OpenConnection, add};
use crate::stop::Stop;
use crate::tls::{self, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tidalite::line::LineOptions;
use tokio::net::{TcpListener, TcpStream};

pub use auth::Keys;
pub use threads::LineThreads;

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub keys: Option<Keys>,
    /// Without, nothing is encrypted.
    pub tls: Option<Tls>,
    pub line: LineOptions,
    pub commit_interval: Duration,
    pub batch_rows_max: usize,
}

/// Serves until the stop; returns when every connection has committed what arrived and is closed.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, connections_max: usize, stop: Stop) {
    let port = Port { protocol: "line protocol", connections_max, setting: "ilp.connections_max" };
    accept::serve(listener, port, stop, |socket, peer, stop| serve_one(socket, peer, shared.clone(), stop)).await;
}

async fn serve_one(socket: TcpStream, peer: SocketAddr, shared: Arc<Shared>, mut stop: Stop) {
    let _open = OpenConnection::count(&shared.counters.tcp);
    accept::notice_the_vanished(&socket);
    let opened = tokio::select! {
        opened = tls::open(socket, shared.tls.as_ref(), "line protocol", peer, b"") => opened,
        () = stop.wait() => return,
    };
    let Some(mut socket) = opened else { return add(&shared.counters.tcp.errors, 1) };
    let mut received = Vec::new();
    if let Some(keys) = &shared.keys {
        match auth::challenge(&mut socket, keys).await {
            Ok(rest) => received = rest,
            Err(error) => {
                add(&shared.counters.tcp.errors, 1);
                tracing::warn!(%peer, %error, "line protocol: authentication failed, connection closed");
                return;
            }
        }
    }
    match connection::run(socket, received, &shared, stop).await {
        Ok(()) => tracing::debug!(%peer, "line protocol: connection closed"),
        Err(error) => {
            add(&shared.counters.tcp.errors, 1);
            let line = error.line.unwrap_or(0);
            tracing::error!(%peer, line, %error, "line protocol: connection closed; rows of the lines before are kept");
        }
    }
}
