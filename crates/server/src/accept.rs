//! The loop that takes connections: the same for every port.
//!
//! Always: no more connections than allowed are open at once; when the stop comes nobody new is taken, and the loop
//! ends once those who are here have gone.

use crate::stop::Stop;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// After a failed accept, which happens when the process is out of file handles, say: keeps the loop from spinning
/// until a connection is closed.
const PAUSE: Duration = Duration::from_millis(50);

/// A peer that vanished without a word is asked after this long without one, and then so often.
const VANISHED: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// What a port is called, and how many connections it may have.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    pub protocol: &'static str,
    pub connections_max: usize,
    /// The setting that says so, for who is turned away.
    pub setting: &'static str,
}

/// Has the system find out, within minutes, that a peer is gone of which no more packets come.
pub fn notice_the_vanished(socket: &TcpStream) {
    let asking = socket2::TcpKeepalive::new().with_time(VANISHED).with_interval(ASK_AGAIN);
    // Without, the connection is as good as before.
    let _ = socket2::SockRef::from(socket).set_tcp_keepalive(&asking);
}

/// Gives each connection to `handle`, a task of its own, which has to end when its stop comes.
pub async fn serve<F>(
    listener: TcpListener,
    port: Port,
    mut stop: Stop,
    handle: impl Fn(TcpStream, SocketAddr, Stop) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let Port { protocol, connections_max, setting } = port;
    let slots = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.wait() => break,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(protocol, %error, "could not accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            tracing::warn!(protocol, %peer, connections_max, "closed a connection: as many as {setting} are open");
            continue;
        };
        let connection = handle(socket, peer, stop.clone());
        tokio::spawn(async move {
            connection.await;
            drop(slot);
        });
    }
    // Closed first, so that nobody new waits for an answer.
    drop(listener);
    let _ = slots.acquire_many(u32::try_from(connections_max).unwrap_or(u32::MAX)).await;
}
