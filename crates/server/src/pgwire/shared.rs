//! State that all connections use.

use super::cancel::Backends;
use super::scram::Credentials;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::logins::Logins;
use crate::tls::Tls;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    /// Without, anyone is let in.
    pub credentials: Option<Credentials>,
    pub logins: Arc<Logins>,
    /// Limit for TLS negotiation and, again, for startup message and login; zero is no limit.
    pub handshake_timeout: Duration,
    /// Limit for a client that takes no byte; zero is no limit.
    pub write_timeout: Duration,
    pub message_bytes_max: usize,
    /// Of long messages, and of what sessions keep of them.
    pub messages: Budget,
    pub results: Budget,
    /// Without, nothing is encrypted.
    pub tls: Option<Tls>,
    pub backends: Backends,
}
