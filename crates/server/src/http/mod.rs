//! HTTP: connections, and which request goes where.
//!
//! Reading order: this file, connections; [`state`] the shared state; [`route`] the table of paths; [`write`] line
//! protocol, [`partial`] partial writes; [`influx`] other requests of InfluxDB clients, [`database_names`]; [`imports`]
//! CSV uploads; [`query`] SQL queries; [`validate`] syntax checks; [`arrow`] rows and results in Arrow format;
//! [`frames`] tables that are sent with a statement; [`once`] idempotency keys; [`browser`] requests of pages in
//! browsers; [`body`] request bodies and results, [`response`] complete responses; [`wire`] the socket; [`params`]
//! request parameters; [`pages`] constant responses.
//!
//! Each connection is a task on the runtime of the sockets. When the stop signal comes, connections finish the
//! request they are in and close.

mod arrow;
mod body;
mod browser;
mod console;
mod database_names;
mod frames;
pub mod imports;
mod influx;
mod once;
mod pages;
mod params;
mod partial;
mod query;
mod response;
mod route;
mod state;
mod validate;
mod wire;
mod write;

use crate::accept::{self, Port, Slot};
use crate::counters::OpenConnection;
use crate::slow_reader::{Timed, WriteLimit, limit_unsent};
use crate::stop::Stop;
use crate::tls;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

pub use body::BodyLimits;
pub use browser::AllowedHosts;
pub use database_names::Names;
pub use state::HttpState;

use response::Body;
use wire::{Watched, Wire};

/// An idle connection is closed after this long; clients that pool connections expect minutes.
const IDLE: Duration = Duration::from_secs(300);

/// Read buffer of a connection at most: bodies arrive in pieces of up to this size.
const READ_BYTES: usize = 256 << 10;

/// Serves until the stop; returns when the last connection is closed.
pub async fn serve(listener: TcpListener, shared: Arc<HttpState>, port: Port, stop: Stop) {
    let handle = |socket, peer, slot, stop| connection(socket, peer, slot, shared.clone(), stop);
    accept::serve(listener, port, stop, handle).await;
}

async fn connection(socket: TcpStream, peer: SocketAddr, slot: Arc<Slot>, shared: Arc<HttpState>, mut stop: Stop) {
    let counters = shared.counters.clone();
    let _open = OpenConnection::count(&counters.http);
    let _ = socket.set_nodelay(true);
    accept::notice_the_vanished(&socket);
    limit_unsent(&socket);
    let (tls, timeout) = (shared.tls.as_ref(), shared.handshake_timeout);
    let opened = tokio::select! {
        opened = tls::open(socket, tls, timeout, "http", peer, pages::NOT_ENCRYPTED) => opened,
        () = stop.wait() => return,
    };
    let Some(socket) = opened else { return };
    let limit = WriteLimit::new(shared.write_timeout, format!("http {peer}"), counters.slow_readers.clone());
    let wire = Wire::new(limit.clone());
    let watched = Watched::new(Timed::new(socket, limit), wire.clone(), shared.handshake_timeout);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (shared, slot, wire) = (shared.clone(), slot.clone(), wire.clone());
        slot.keep();
        wire.begin();
        request.extensions_mut().insert(wire.clone());
        async move {
            let response = route::answer(request, peer, slot.full(), &shared).await;
            let answered = response.map(|body| wire.answered(body, move || slot.release()));
            Ok::<Response<Body>, Infallible>(answered)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(READ_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(watched), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}
