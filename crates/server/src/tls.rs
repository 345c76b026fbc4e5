//! Encryption: the certificate, and the beginning of an encrypted connection.
//!
//! In: PEM files and a connection just taken. Out: a [`Socket`], or why there is none. The certificate can be read
//! again while connections are open: new ones get the new one, and one that is no good changes nothing.
//!
//! Always: a handshake that takes too long ends, and holds nothing but its own connection until then.

use crate::accept::in_time;
use crate::logging::LineThrottle;
use crate::socket::Socket;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

static CLOSED: LineThrottle = LineThrottle::new();

/// The first byte of every TLS connection, and of no request or line.
const HANDSHAKE: u8 = 0x16;

/// What the server shows to its clients.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// # Errors
    /// Which file is no good, and why.
    pub fn read(chain: &Path, key: &Path) -> Result<Certificate, String> {
        let current = RwLock::new(Arc::new(read(chain, key)?));
        Ok(Certificate { chain: chain.to_owned(), key: key.to_owned(), current })
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// As [`Certificate::read`]; then the old one stays.
    pub fn reload(&self) -> Result<(), String> {
        let new = Arc::new(read(&self.chain, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn read(chain: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let of = |path: &Path, problem: String| format!("{}: {problem}", path.display());
    let certificates = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|e| of(chain, problem(e, "certificate")))?;
    if certificates.is_empty() {
        return Err(of(chain, "there is no certificate in it".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| match e {
        pem::Error::NoItemsFound if is_encrypted(key) => {
            of(key, "the private key is encrypted; give one without a passphrase".to_owned())
        }
        e => of(key, problem(e, "private key")),
    })?;
    CertifiedKey::from_der(certificates, private, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            of(key, format!("the private key is not that of the certificate in {}", chain.display()))
        }
        rustls::Error::InvalidCertificate(why) => of(chain, format!("the certificate is not valid: {why}")),
        other => of(key, format!("the private key cannot be used: {other}")),
    })
}

fn problem(error: pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("there is no {wanted} in it (PEM)"),
        pem::Error::Io(error) => format!("could not be read: {error}"),
        other => format!("is not PEM: {other}"),
    }
}

fn is_encrypted(key: &Path) -> bool {
    std::fs::read_to_string(key).is_ok_and(|text| text.contains("ENCRYPTED"))
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// How one port encrypts.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a connection is not encrypted.
pub enum Refused {
    /// Its peer does not encrypt.
    Plaintext(TcpStream),
    /// It was closed before it began.
    Left,
    Failed(String),
}

impl Tls {
    /// `protocol` is the name of what is spoken within, for clients that name what they expect (ALPN); `None` is that of
    /// lines, to which nothing is answered, so that their senders never read.
    ///
    /// # Errors
    /// When the library refuses its own defaults.
    pub fn new(certificate: Arc<Certificate>, protocol: Option<&str>) -> Result<Tls, String> {
        let builder = ServerConfig::builder_with_provider(Arc::new(provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(certificate);
        config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
        // With tickets that it has not read in its socket, the sender's closing would be a reset, which throws away what
        // it has still to send.
        if protocol.is_none() {
            config.send_tls13_tickets = 0;
        }
        Ok(Tls(Arc::new(config).into()))
    }

    /// Performs the handshake, without a timeout.
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn accept(&self, socket: TcpStream) -> Result<Socket, Refused> {
        match first_byte(&socket).await {
            None => Err(Refused::Left),
            Some(HANDSHAKE) => {
                let encrypted = self.0.accept(socket).await.map_err(|e| Refused::Failed(e.to_string()))?;
                Ok(Socket::Tls(Box::new(encrypted)))
            }
            Some(_) => Err(Refused::Plaintext(socket)),
        }
    }
}

/// What comes first, left where it is; `None` when nothing ever will.
async fn first_byte(socket: &TcpStream) -> Option<u8> {
    let mut first = [0];
    matches!(socket.peek(&mut first).await, Ok(1)).then_some(first[0])
}

/// Whether the peer begins with a handshake, without having asked whether it may.
pub async fn begins_encrypted(socket: &TcpStream) -> bool {
    first_byte(socket).await == Some(HANDSHAKE)
}

/// Encrypts a connection if its port does; `None` after a failure or after `timeout` (zero is no limit). `answer` is sent
/// to a peer that does not encrypt.
pub async fn open(
    socket: TcpStream,
    tls: Option<&Tls>,
    timeout: Duration,
    protocol: &str,
    peer: SocketAddr,
    answer: &[u8],
) -> Option<Socket> {
    let Some(tls) = tls else { return Some(Socket::Plain(socket)) };
    let late = || Err(Refused::Failed("the handshake took too long".to_owned()));
    match in_time(timeout, tls.accept(socket)).await.unwrap_or_else(late) {
        Ok(socket) => return Some(socket),
        Err(Refused::Plaintext(mut socket)) => {
            if let Some(left_out) = CLOSED.pass() {
                tracing::warn!(protocol, %peer, left_out, "closed a connection: it is not encrypted, and this port speaks TLS only");
            }
            let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, answer).await;
            linger(socket).await;
        }
        Err(Refused::Left) => tracing::debug!(protocol, %peer, "a connection was closed before it began"),
        Err(Refused::Failed(reason)) => {
            if let Some(left_out) = CLOSED.pass() {
                tracing::warn!(protocol, %peer, reason, left_out, "closed a connection: no TLS");
            }
        }
    }
    None
}

/// A socket that is closed while bytes of its peer wait unread resets the connection, and the peer may never see what
/// it was told.
async fn linger(mut socket: TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let _ = socket.shutdown().await;
    let mut rest = Vec::new();
    let mut socket = socket.take(LINGER_BYTES);
    let _ = tokio::time::timeout(LINGER, socket.read_to_end(&mut rest)).await;
}

const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests;
