//! The state that all PostgreSQL connections share.

use super::cancel::Backends;
use super::scram::Credentials;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::logins::Logins;
use crate::tls::Tls;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;

/// The database, limits and counters of the PostgreSQL port.
pub struct PgState {
    pub database: Database,
    pub counters: Arc<Counters>,
    /// `None`: users are not authenticated.
    pub credentials: Option<Credentials>,
    pub logins: Arc<Logins>,
    /// Limit for TLS negotiation and, again, for startup message and login; zero is no limit.
    pub handshake_timeout: Duration,
    /// Limit for a client that reads no byte; zero is no limit.
    pub write_timeout: Duration,
    pub message_bytes_max: usize,
    /// Memory for long messages and for the parts of messages that sessions keep.
    pub messages: Budget,
    pub results: Budget,
    /// `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    pub backends: Backends,
}
