//! The state that all line protocol connections share.

use super::auth::Keys;
use crate::counters::Counters;
use crate::logins::Logins;
use crate::tls::Tls;
use std::sync::Arc;
use std::time::Duration;
use tidalite::Database;
use tidalite::line::LineOptions;

/// The database, limits and counters of the line protocol port.
pub struct IlpState {
    pub database: Database,
    pub counters: Arc<Counters>,
    pub keys: Option<Keys>,
    pub logins: Arc<Logins>,
    /// Limit for the TLS handshake and for the answer to the challenge; zero is no limit.
    pub handshake_timeout: Duration,
    /// `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    pub line: LineOptions,
    pub commit_interval: Duration,
    pub batch_rows_max: usize,
}
