//! The state that all HTTP requests share.

use super::body::BodyLimits;
use super::browser::AllowedHosts;
use super::database_names::Names;
use super::imports::Turns;
use super::once::Once;
use crate::auth::HttpAuth;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::health::Health;
use crate::lines::Pool;
use crate::logins::Logins;
use crate::tls::Tls;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tidalite::line::LineOptions;

/// The database, limits and counters of the HTTP port.
pub struct HttpState {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub auth: HttpAuth,
    pub logins: Arc<Logins>,
    pub allowed_hosts: AllowedHosts,
    pub health: Arc<Health>,
    pub line: LineOptions,
    /// All parsers have the options `line`, except for the unit of timestamps.
    pub parsers: Pool,
    pub body: BodyLimits,
    pub bodies: Budget,
    pub results: Budget,
    pub once: Arc<Once>,
    /// Names that InfluxDB clients use for the database.
    pub databases: Names,
    pub turns: Turns,
    /// `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    /// Limit for the head of a request and for the TLS handshake; zero is no limit.
    pub handshake_timeout: Duration,
    /// Limit for a client that reads no byte; zero is no limit.
    pub write_timeout: Duration,
}
