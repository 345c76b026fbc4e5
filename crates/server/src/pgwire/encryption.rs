//! The very beginning of a connection: whether it is encrypted.
//!
//! A client asks for TLS with a message of its own and waits for a byte, or begins with the handshake at once and says
//! by ALPN what it wants to speak. Nothing is read past the message: what follows it belongs to the handshake.

use super::state::PgState;
use crate::logging::LineThrottle;
use crate::socket::Socket;
use crate::tls::{Refused, begins_encrypted};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The name of this protocol within TLS.
pub const ALPN: &str = "postgresql";

static NO_TLS: LineThrottle = LineThrottle::new();

const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The socket, and what was read of it that was no question about encryption. `None` when it is of no use.
pub async fn open(socket: TcpStream, peer: SocketAddr, shared: &PgState) -> Option<(Socket, Vec<u8>)> {
    let late = || Err(Refused::Failed("the handshake took too long".to_owned()));
    match crate::accept::in_time(shared.handshake_timeout, negotiate(socket, shared)).await.unwrap_or_else(late) {
        Ok(opened) => return Some(opened),
        Err(Refused::Left) => tracing::debug!(%peer, "PostgreSQL: connection closed before it began"),
        Err(Refused::Plaintext(_)) => {
            tracing::debug!(%peer, "PostgreSQL: connection closed: no TLS handshake after the request for TLS");
        }
        Err(Refused::Failed(reason)) => {
            if let Some(left_out) = NO_TLS.pass() {
                tracing::warn!(%peer, reason, left_out, "PostgreSQL: connection closed: no TLS");
            }
        }
    }
    None
}

async fn negotiate(mut socket: TcpStream, shared: &PgState) -> Result<(Socket, Vec<u8>), Refused> {
    if let Some(tls) = &shared.tls
        && begins_encrypted(&socket).await
    {
        let socket = tls.accept(socket).await?;
        return match socket.alpn() == Some(ALPN.as_bytes()) {
            true => Ok((socket, Vec::new())),
            false => Err(Refused::Failed(format!("a handshake without a request has to name {ALPN:?} (ALPN)"))),
        };
    }
    loop {
        let mut first = [0; 8];
        socket.read_exact(&mut first).await.map_err(|_| Refused::Left)?;
        let [length, code] = [&first[..4], &first[4..]].map(|part| part.iter().fold(0, |n, b| n << 8 | u32::from(*b)));
        let answer = match (length, code, &shared.tls) {
            (8, SSL, Some(tls)) => {
                socket.write_all(b"S").await.map_err(|_| Refused::Left)?;
                return Ok((tls.accept(socket).await?, Vec::new()));
            }
            (8, SSL | GSS, _) => b"N",
            _ => return Ok((Socket::Plain(socket), first.to_vec())),
        };
        socket.write_all(answer).await.map_err(|_| Refused::Left)?;
    }
}
