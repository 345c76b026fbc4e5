//! Line protocol over TCP: connections.
//!
//! Reading order: this file accepts; [`auth`] asks who it is; [`connection`] reads, parses and commits;
//! [`pace`] decides when.

mod auth;
mod connection;
mod pace;

use crate::counters::{Counters, OpenConnection, add};
use crate::stop::Stop;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tidalite::line::LineOptions;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use auth::Keys;

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub keys: Option<Keys>,
    pub line: LineOptions,
    pub commit_interval: Duration,
    pub batch_rows_max: usize,
}

/// Serves until the stop; returns when every connection has committed what arrived and is closed.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, connections_max: usize, mut stop: Stop) {
    let slots = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.wait() => break,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                crate::stop::accept_failed("line protocol", &error).await;
                continue;
            }
        };
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            tracing::warn!(%peer, connections_max, "closed a line protocol connection: ilp.connections_max are open");
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        tokio::spawn(async move {
            serve_one(socket, peer, &shared, stop).await;
            drop(slot);
        });
    }
    drop(listener);
    let _ = slots.acquire_many(u32::try_from(connections_max).unwrap_or(u32::MAX)).await;
}

async fn serve_one(mut socket: TcpStream, peer: SocketAddr, shared: &Shared, stop: Stop) {
    let _open = OpenConnection::count(&shared.counters.tcp);
    // A peer that vanished without a word is noticed after some minutes rather than never.
    let _ = socket2::SockRef::from(&socket).set_keepalive(true);
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
    match connection::run(&socket, received, shared, stop).await {
        Ok(()) => tracing::debug!(%peer, "line protocol: connection closed"),
        Err(error) => {
            add(&shared.counters.tcp.errors, 1);
            let line = error.line.unwrap_or(0);
            tracing::error!(%peer, line, %error, "line protocol: connection closed; rows of the lines before are kept");
        }
    }
}
