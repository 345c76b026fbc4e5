//! The values of settings, parsed from their texts.

use super::error::SettingError;
use super::{ENV_SYNC_DELAY, Given, find};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use tidalite::config::Durability;
use tidalite::types::TimeUnit;
use tidalite::{DatabaseConfig, FileAccess};

/// The addresses of a port, and their text from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `localhost` may be several.
    pub addresses: Vec<SocketAddr>,
    pub text: String,
    /// The flag that changes it, for error messages.
    pub flag: &'static str,
}

/// The action after a failed write or sync of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSyncFailure {
    Restart,
    Exit,
    Refuse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Always: `http_user` and `http_password` are both set or both absent; without `insecure_bind` every address is
/// a loopback one or its protocol asks for authentication.
#[derive(Clone, Debug)]
pub struct Config {
    pub database: DatabaseConfig,
    pub http: Option<Listen>,
    pub pg: Option<Listen>,
    pub ilp: Option<Listen>,
    pub health: Option<Listen>,
    /// Zero for no watchdog.
    pub watchdog_interval: Duration,
    pub watchdog_deadline: Duration,
    pub on_sync_failure: OnSyncFailure,
    pub handshake_timeout: Duration,
    pub write_timeout: Duration,
    pub results_bytes_max: usize,
    /// `None`: three quarters of the connections of a port.
    pub per_address_max: Option<usize>,
    /// The files of certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub http_tls: bool,
    pub pg_tls: bool,
    pub ilp_tls: bool,
    /// Name and password.
    pub http_user: Option<(String, String)>,
    pub http_tokens: Vec<String>,
    pub http_allowed_hosts: Vec<String>,
    pub http_body_bytes_max: usize,
    pub http_body_timeout: Duration,
    /// Bytes per second.
    pub http_body_rate_min: usize,
    pub http_bodies_bytes_max: usize,
    pub http_connections_max: usize,
    pub pg_user: Option<(String, String)>,
    pub pg_connections_max: usize,
    pub pg_message_bytes_max: usize,
    pub pg_messages_bytes_max: usize,
    pub ilp_connections_max: usize,
    pub ilp_auth_file: Option<PathBuf>,
    pub ilp_commit_interval: Duration,
    pub ilp_batch_rows_max: usize,
    pub line_bytes_max: usize,
    pub line_nan_is_null: bool,
    /// The unit of the designated timestamp of new tables; `None`: the lines determine the unit.
    pub line_timestamp_unit: Option<TimeUnit>,
    pub log_level: String,
    pub log_format: LogFormat,
}

impl Config {
    /// # Errors
    /// On the first value that is not allowed.
    pub fn new(given: &Given) -> Result<Config, SettingError> {
        let read = Reader { given };
        let mut database = DatabaseConfig::new(read.text("data"));
        database.durability = read.parsed("durability", durability)?;
        database.query_threads = read.parsed("query.threads", |t| auto(t, database.query_threads))?;
        let running_max = tidalite::running_max(database.query_threads);
        database.query_running_max = read.parsed("query.running_max", |t| auto(t, running_max))?;
        database.query_queued_max = read.parsed("query.queued_max", count_or_none)?;
        database.merge_threads = read.parsed("merge.threads", |t| auto(t, database.merge_threads))?;
        database.merge_lag_max = read.parsed("merge.lag_max", duration)?;
        database.seal_after = read.parsed("seal.after", duration)?;
        database.ttl_jump_wait = read.parsed("ttl.jump_wait", duration)?;
        database.memory_bytes = read.parsed("memory.bytes", |t| auto_bytes(t, database.memory_bytes))?;
        database.query_memory_bytes = read.parsed("query.memory_bytes", bytes)?;
        database.spill_folder = Some(read.text("spill.folder")).filter(|t| !t.is_empty()).map(PathBuf::from);
        database.spill_bytes_max = read.parsed("spill.bytes_max", bytes)? as u64;
        database.transaction_bytes = read.parsed("transaction.bytes_max", bytes)?;
        database.cache_bytes = read.parsed("cache.bytes", |t| auto_bytes(t, database.cache_bytes))?;
        database.staging_bytes = read.parsed("staging.bytes", bytes)?;
        database.log_bytes = read.parsed("wal.bytes", bytes)? as u64;
        database.query_timeout = read.parsed("query.timeout", duration)?;
        database.query_reads_files = read.parsed("query.reads_files", yes_no)?;
        database.query_writes_files = read.parsed("query.writes_files", yes_no)?;
        database.file_access = read.file_access()?;
        database.query_fast_operators = read.parsed("query.fast_operators", yes_no)?;
        database.query_compiles = read.parsed("query.compiles", yes_no)?;
        database.query_use_materialized_views = read.parsed("query.use_materialized_views", yes_no)?;
        database.is_read_only = read.parsed("read_only", yes_no)?;
        database.slow_statement = read.parsed("log.slow_statement", duration)?;
        database.sync_delay = sync_delay(given)?;
        let tls = read.pair("tls.certificate", "tls.key")?;
        let has_tls = tls.is_some();
        let config = Config {
            database,
            http: read.listen("http.listen")?,
            pg: read.listen("pg.listen")?,
            ilp: read.listen("ilp.listen")?,
            health: read.listen("health.listen")?,
            watchdog_interval: read.parsed("health.watchdog_interval", duration)?,
            watchdog_deadline: read.parsed("health.watchdog_deadline", |t| duration(t).filter(|d| !d.is_zero()))?,
            on_sync_failure: read.parsed("on_sync_failure", on_sync_failure)?,
            handshake_timeout: read.parsed("handshake_timeout", duration)?,
            write_timeout: read.parsed("write_timeout", duration)?,
            results_bytes_max: read.parsed("results.bytes_max", bytes)?,
            per_address_max: read.parsed("connections.per_address_max", |t| match t {
                "auto" => Some(None),
                text => count(text).map(Some),
            })?,
            tls: tls.map(|(certificate, key)| (certificate.into(), key.into())),
            http_tls: read.tls("http.tls", has_tls)?,
            pg_tls: read.tls("pg.tls", has_tls)?,
            ilp_tls: read.tls("ilp.tls", has_tls)?,
            http_user: read.user()?,
            http_tokens: read.tokens()?,
            http_allowed_hosts: read.names("http.allowed_hosts")?,
            http_body_bytes_max: read.parsed("http.body_bytes_max", bytes)?,
            http_body_timeout: read.parsed("http.body_timeout", duration)?,
            http_body_rate_min: read.parsed("http.body_rate_min", |t| if t == "0" { Some(0) } else { bytes(t) })?,
            http_bodies_bytes_max: read.parsed("http.bodies_bytes_max", bytes)?,
            http_connections_max: read.parsed("http.connections_max", count)?,
            pg_user: read.pair("pg.user", "pg.password")?,
            pg_connections_max: read.parsed("pg.connections_max", count)?,
            pg_message_bytes_max: read.parsed("pg.message_bytes_max", bytes)?,
            pg_messages_bytes_max: read.parsed("pg.messages_bytes_max", bytes)?,
            ilp_connections_max: read.parsed("ilp.connections_max", count)?,
            ilp_auth_file: Some(read.text("ilp.auth_file")).filter(|t| !t.is_empty()).map(PathBuf::from),
            ilp_commit_interval: read.parsed("ilp.commit_interval", duration)?,
            ilp_batch_rows_max: read.parsed("ilp.batch_rows_max", count)?,
            line_bytes_max: read.parsed("line.bytes_max", bytes)?,
            line_nan_is_null: read.parsed("line.nan_is_null", yes_no)?,
            line_timestamp_unit: read.parsed("line.timestamp_type", timestamp_type)?,
            log_level: read.parsed("log.level", log_level)?,
            log_format: read.parsed("log.format", log_format)?,
        };
        if !read.parsed("insecure_bind", yes_no)? {
            config.refuse_open_doors()?;
        }
        Ok(config)
    }

    /// Returns the user and password of the PostgreSQL protocol; `None` if every user is allowed.
    #[must_use]
    pub fn pg_credentials(&self) -> Option<(&str, &str)> {
        let given = self.pg_user.as_ref().or(self.http_user.as_ref());
        given.map(|(user, password)| (user.as_str(), password.as_str()))
    }

    /// Health is no exception: its metrics name nothing of the data, but a server that its owner takes for a local
    /// one should not be found from outside.
    fn refuse_open_doors(&self) -> Result<(), SettingError> {
        let http_closed = self.http_user.is_some() || !self.http_tokens.is_empty();
        let pg_closed = self.pg_credentials().is_some();
        let ilp_closed = self.ilp_auth_file.is_some();
        let doors = [
            ("http.listen", &self.http, http_closed, "set http.user and http.password, or http.tokens"),
            ("pg.listen", &self.pg, pg_closed, "set pg.user and pg.password"),
            ("ilp.listen", &self.ilp, ilp_closed, "set ilp.auth_file"),
            ("health.listen", &self.health, http_closed || ilp_closed, "set up authentication for the other ports"),
        ];
        for (key, listen, closed, remedy) in doors {
            let Some(listen) = listen else { continue };
            if !closed && listen.addresses.iter().any(|a| !a.ip().is_loopback()) {
                return Err(SettingError(format!(
                    "setting {key:?} is {:?}, which other machines can reach, and nobody would be asked who they are: \
                     {remedy}, listen on 127.0.0.1, or say --insecure-bind if that is meant",
                    listen.text
                )));
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    given: &'a Given,
}

impl Reader<'_> {
    fn text(&self, key: &str) -> &str {
        self.given.get(key).0.trim()
    }

    fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, SettingError> {
        parse(self.text(key)).ok_or_else(|| self.bad(key))
    }

    fn bad(&self, key: &str) -> SettingError {
        let (value, source) = self.given.get(key);
        let setting = find(key);
        let shown = if setting.is_some_and(|s| s.secret) { "…" } else { value };
        let allowed = setting.map_or("", |s| s.allowed);
        SettingError(format!("setting {key:?} is {shown:?} (from {source}); allowed is {allowed}"))
    }

    fn listen(&self, key: &'static str) -> Result<Option<Listen>, SettingError> {
        let text = self.text(key);
        if text == "off" {
            return Ok(None);
        }
        let addresses: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| self.bad(key))?.collect();
        let flag = find(key).map_or("", |s| s.flag);
        Ok(Some(Listen { addresses, text: text.to_owned(), flag }))
    }

    fn user(&self) -> Result<Option<(String, String)>, SettingError> {
        let (user, password) = (self.text("http.user"), self.given.get("http.password").0);
        match (user.is_empty(), password.is_empty()) {
            (true, true) => Ok(None),
            (false, false) if user.contains(':') => Err(self.bad("http.user")),
            (false, false) => Ok(Some((user.to_owned(), password.to_owned()))),
            (false, true) => Err(SettingError("setting \"http.user\" is set and \"http.password\" is not".to_owned())),
            (true, false) => Err(SettingError("setting \"http.password\" is set and \"http.user\" is not".to_owned())),
        }
    }

    /// A user and its password: both or none.
    fn pair(&self, user: &str, password: &str) -> Result<Option<(String, String)>, SettingError> {
        let (name, secret) = (self.text(user), self.given.get(password).0);
        let missing =
            |there: &str, missing: &str| Err(SettingError(format!("setting {there:?} is set and {missing:?} is not")));
        match (name.is_empty(), secret.is_empty()) {
            (true, true) => Ok(None),
            (false, false) => Ok(Some((name.to_owned(), secret.to_owned()))),
            (false, true) => missing(user, password),
            (true, false) => missing(password, user),
        }
    }

    /// Returns true if a port encrypts, which requires a certificate.
    fn tls(&self, key: &str, has_certificate: bool) -> Result<bool, SettingError> {
        match self.text(key) {
            "auto" => Ok(has_certificate),
            text => match yes_no(text) {
                Some(true) if !has_certificate => {
                    Err(SettingError(format!("setting {key:?} is {text:?} and \"tls.certificate\" is not set")))
                }
                Some(is_on) => Ok(is_on),
                None => Err(self.bad(key)),
            },
        }
    }

    /// Roots are resolved at each use, so that a root may be created after the start.
    fn file_access(&self) -> Result<FileAccess, SettingError> {
        let list = |key: &str| self.text(key).split(',').map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
        let roots: Vec<PathBuf> = list("files.roots").map(PathBuf::from).collect();
        let hosts: Vec<String> = list("files.hosts").collect();
        if roots.iter().any(|root| !root.is_absolute()) {
            return Err(self.bad("files.roots"));
        }
        let private_addresses = self.parsed("files.private_addresses", yes_no)?;
        FileAccess::confined(roots, &hosts, private_addresses).map_err(|_| self.bad("files.hosts"))
    }

    /// Host names in lower case, without ports.
    fn names(&self, key: &str) -> Result<Vec<String>, SettingError> {
        let names = self.text(key).split(',').map(|name| name.trim().to_ascii_lowercase());
        let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        let is_name = |name: &String| {
            let name = name.strip_prefix('*').unwrap_or(name);
            name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        };
        if names.iter().all(is_name) { Ok(names) } else { Err(self.bad(key)) }
    }

    fn tokens(&self) -> Result<Vec<String>, SettingError> {
        let text = self.text("http.tokens");
        let tokens: Vec<String> = text.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect();
        if tokens.iter().any(|t| t.contains(char::is_whitespace)) {
            return Err(self.bad("http.tokens"));
        }
        Ok(tokens)
    }
}

fn sync_delay(given: &Given) -> Result<Duration, SettingError> {
    let Some(text) = &given.sync_delay_ms else { return Ok(Duration::ZERO) };
    let ms = text.trim().parse();
    ms.map(Duration::from_millis).map_err(|_| SettingError(format!("{ENV_SYNC_DELAY} is {text:?}, not a number")))
}

fn count(text: &str) -> Option<usize> {
    text.replace('_', "").parse().ok().filter(|n| *n > 0)
}

/// As [`count`], or 0.
fn count_or_none(text: &str) -> Option<usize> {
    if text == "0" { Some(0) } else { count(text) }
}

fn auto(text: &str, default: usize) -> Option<usize> {
    if text == "auto" { Some(default) } else { count(text) }
}

fn auto_bytes(text: &str, default: usize) -> Option<usize> {
    if text == "auto" { Some(default) } else { bytes(text) }
}

fn yes_no(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The number at the front and the unit behind it.
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    Some((text[..end].replace('_', "").parse().ok()?, text[end..].trim()))
}

pub(super) fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = number_and_unit(text)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    usize::try_from(number.checked_mul(1 << shift)?).ok().filter(|n| *n > 0)
}

/// A number with a unit, or a bare 0.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    Some(match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" | "min" => Duration::from_secs(number.checked_mul(60)?),
        "h" => Duration::from_secs(number.checked_mul(3600)?),
        "" if number == 0 => Duration::ZERO,
        _ => return None,
    })
}

fn durability(text: &str) -> Option<Durability> {
    match text {
        "sync" => Some(Durability::Sync),
        "os" => Some(Durability::Os),
        _ => duration(text).filter(|d| !d.is_zero()).map(Durability::Interval),
    }
}

fn timestamp_type(text: &str) -> Option<Option<TimeUnit>> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Some(None),
        "timestamp" => Some(Some(TimeUnit::Micros)),
        "timestamp_ns" => Some(Some(TimeUnit::Nanos)),
        _ => None,
    }
}

fn log_level(text: &str) -> Option<String> {
    tracing_subscriber::EnvFilter::try_new(text).is_ok().then(|| text.to_owned())
}

fn on_sync_failure(text: &str) -> Option<OnSyncFailure> {
    match text {
        "restart" => Some(OnSyncFailure::Restart),
        "exit" => Some(OnSyncFailure::Exit),
        "refuse" => Some(OnSyncFailure::Refuse),
        _ => None,
    }
}

fn log_format(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}
