//! Line protocol over TCP: connections.
//!
//! Reading order: this file accepts; [`threads`] serve; [`auth`] asks who it is; [`connection`] reads, parses and
//! commits; [`pace`] decides when.

mod auth;
mod connection;
mod pace;
mod state;
mod threads;

use crate::accept::{self, Port, Slot};
use crate::counters::{OpenConnection, add};
use crate::logging::LineThrottle;
use crate::stop::Stop;
use crate::tls;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

pub use auth::Keys;
pub use state::IlpState;
pub use threads::LineThreads;

static CLOSED: LineThrottle = LineThrottle::new();

/// Serves until the stop; returns when every connection has committed what arrived and is closed.
pub async fn serve(listener: TcpListener, shared: Arc<IlpState>, port: Port, stop: Stop) {
    let handle = |socket, peer, slot, stop| serve_one(socket, peer, slot, shared.clone(), stop);
    accept::serve(listener, port, stop, handle).await;
}

async fn serve_one(socket: TcpStream, peer: SocketAddr, slot: Arc<Slot>, shared: Arc<IlpState>, mut stop: Stop) {
    let _open = OpenConnection::count(&shared.counters.tcp);
    // The protocol has no error responses: the connection is closed.
    let refused = match slot.full() {
        Some(_) => return,
        None if shared.database.is_read_only() => Some("the server is read-only (setting read_only)"),
        None if shared.keys.is_some() => shared.logins.may_try(peer.ip(), "").err().map(|_| "too many failed logins"),
        None => None,
    };
    if let Some(reason) = refused {
        add(&shared.counters.tcp.errors, 1);
        if let Some(left_out) = CLOSED.pass() {
            tracing::warn!(%peer, reason, left_out, "line protocol: connection closed");
        }
        return;
    }
    accept::notice_the_vanished(&socket);
    let (tls, timeout) = (shared.tls.as_ref(), shared.handshake_timeout);
    let opened = tokio::select! {
        opened = tls::open(socket, tls, timeout, "line protocol", peer, b"") => opened,
        () = stop.wait() => return,
    };
    let Some(mut socket) = opened else { return add(&shared.counters.tcp.errors, 1) };
    let mut received = Vec::new();
    if let Some(keys) = &shared.keys {
        match auth::challenge(&mut socket, keys, shared.handshake_timeout).await {
            Ok(rest) => {
                shared.logins.succeeded(peer.ip());
                received = rest;
            }
            Err(error) => {
                add(&shared.counters.tcp.errors, 1);
                if error.kind() == io::ErrorKind::PermissionDenied {
                    shared.logins.failed("line protocol", peer.ip(), "");
                }
                if let Some(left_out) = CLOSED.pass() {
                    tracing::warn!(%peer, %error, left_out, "line protocol: authentication failed, connection closed");
                }
                return;
            }
        }
    }
    match connection::run(socket, received, &shared, &slot, stop).await {
        Ok(()) => tracing::debug!(%peer, "line protocol: connection closed"),
        Err(error) => {
            add(&shared.counters.tcp.errors, 1);
            let line = error.line.unwrap_or(0);
            if let Some(left_out) = CLOSED.pass() {
                tracing::error!(%peer, line, %error, left_out, "line protocol: connection closed; rows of the lines before are kept");
            }
        }
    }
}
