//! State that all connections of line protocol use.

use super::auth::Keys;
use crate::counters::Counters;
use crate::logins::Logins;
use crate::tls::Tls;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tidalite::line::LineOptions;

/// What every connection may need.
pub struct Shared {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub keys: Option<Keys>,
    pub logins: Arc<Logins>,
    /// Limit for the TLS handshake and for the answer to the challenge; zero is no limit.
    pub handshake_timeout: Duration,
    /// Without, nothing is encrypted.
    pub tls: Option<Tls>,
    pub line: LineOptions,
    pub commit_interval: Duration,
    pub batch_rows_max: usize,
}
