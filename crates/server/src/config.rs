//! Settings: the table they are documented from, what was given, what it means.
//!
//! In: a file, the environment and flags, later ones overriding earlier ones. Out: [`Config`], in which every value
//! has its type and has been checked, or a [`SettingError`] that names the setting, the value and what is allowed.
//!
//! Always: `--help`, `tidalite config` and `docs/configuration.md` come from [`SETTINGS`] and nowhere else.

mod given;
mod meaning;
mod page;

pub use given::{Given, Source};
pub use meaning::{Config, Listen, LogFormat, OnSyncFailure, SettingError, duration};
pub use page::{effective, markdown};

/// One thing that can be set. Its environment variable is `TIDALITE_` and the key in capitals with `_` for `.`.
pub struct Setting {
    /// As in the file: `table.name`.
    pub key: &'static str,
    /// Long flag, without dashes.
    pub flag: &'static str,
    pub value_name: &'static str,
    /// In the words one would write it in; empty when there is none.
    pub default: &'static str,
    pub allowed: &'static str,
    pub help: &'static str,
    /// Not shown when settings are printed.
    pub secret: bool,
}

impl Setting {
    #[must_use]
    pub fn env(&self) -> String {
        format!("{ENV_PREFIX}{}", self.key.to_ascii_uppercase().replace('.', "_"))
    }
}

pub const ENV_PREFIX: &str = "TIDALITE_";

/// The settings file; named by `--config` or this variable.
pub const ENV_CONFIG: &str = "TIDALITE_CONFIG";

/// Variables of `tidalite sql`.
const SHELL_ENV: [&str; 4] = ["TIDALITE_URL", "TIDALITE_USER", "TIDALITE_TOKEN", "TIDALITE_CA_FILE"];

/// How often the process began again after a failed sync, and when first; set by the process itself.
pub const ENV_RESTARTS: &str = "TIDALITE_RESTARTS";

/// For tests of slow disks; not documented to users.
pub const ENV_SYNC_DELAY: &str = "TIDALITE_SYNC_DELAY_MS";

const fn setting(
    key: &'static str,
    flag: &'static str,
    value_name: &'static str,
    default: &'static str,
    allowed: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key, flag, value_name, default, allowed, help, secret: false }
}

const fn secret(
    key: &'static str,
    flag: &'static str,
    value_name: &'static str,
    allowed: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key, flag, value_name, default: "", allowed, help, secret: true }
}

const ADDRESS: &str = "an address and a port such as 127.0.0.1:9000, [::1]:9000 or localhost:9000; or off";
const BYTES: &str = "a number of bytes, plain or with KiB, MiB or GiB";
const COUNT: &str = "a whole number of at least 1";
const DURATION: &str = "a time such as 500us, 10ms, 30s, 5min or 1h; 0 for never";
const TLS: &str = "auto (when there is a tls.certificate), true or false";
const YES_NO: &str = "true or false";
const NAMES: &str =
    "names separated by commas (in the file: a list), such as db.example.com; *.example.com for all below, * for any";

/// Every setting, in the order of the documentation.
pub const SETTINGS: &[Setting] = &[
    setting(
        "data",
        "data",
        "DIR",
        "./tidalite-data",
        "a folder",
        "The data folder. It is created when absent, and locked while a server uses it.",
    ),
    setting(
        "read_only",
        "read-only",
        "BOOL",
        "false",
        YES_NO,
        "Whether everything that would change data is refused, whoever asks: statements (SQLSTATE 25006, over HTTP 403), line protocol, \
         imports, COPY. Rows of the log are still merged; nothing is dropped by a TTL, and materialized views are not refreshed.",
    ),
    setting(
        "on_sync_failure",
        "on-sync-failure",
        "WHAT",
        "restart",
        "restart, exit or refuse",
        "What happens when the log cannot be written or synced, after which nothing is acknowledged until the log has been read again. \
         `restart`: connections are closed, and the process begins again under its process id, up to five times in ten minutes; \
         `exit`: it ends with exit code 3, for a supervisor that starts it again; `refuse`: it stays, answers queries and refuses writes.",
    ),
    setting(
        "http.listen",
        "http",
        "HOST:PORT",
        "127.0.0.1:9000",
        ADDRESS,
        "Where HTTP is served: queries, line protocol, the start page.",
    ),
    setting(
        "pg.listen",
        "pg",
        "HOST:PORT",
        "127.0.0.1:8812",
        ADDRESS,
        "Where the PostgreSQL protocol is served: psql, psycopg, asyncpg, JDBC.",
    ),
    setting(
        "pg.user",
        "pg-user",
        "NAME",
        "",
        "a name",
        "With pg.password: clients of the PostgreSQL protocol must authenticate (SCRAM-SHA-256). Without it http.user and http.password hold for them as well.",
    ),
    secret(
        "pg.password",
        "pg-password",
        "TEXT",
        "any text",
        "The password of pg.user. Prefer the file or the environment: flags can be seen by other users of the machine.",
    ),
    setting(
        "pg.connections_max",
        "pg-connections-max",
        "N",
        "1024",
        COUNT,
        "Connections of the PostgreSQL protocol served at the same time; more are refused (SQLSTATE 53300), but for cancel requests and \
         a few users of this machine who log in.",
    ),
    setting(
        "pg.message_bytes_max",
        "pg-message-bytes-max",
        "BYTES",
        "64MiB",
        BYTES,
        "The longest message of a PostgreSQL client: a statement, or the values bound to one. A longer one ends its connection.",
    ),
    setting(
        "pg.messages_bytes_max",
        "pg-messages-bytes-max",
        "BYTES",
        "1GiB",
        BYTES,
        "What long messages, prepared statements and bound values of all PostgreSQL clients may take together, at least \
         `pg.message_bytes_max`; what does not fit is refused.",
    ),
    setting("ilp.listen", "ilp", "HOST:PORT", "127.0.0.1:9009", ADDRESS, "Where line protocol over TCP is served."),
    setting(
        "health.listen",
        "health",
        "HOST:PORT",
        "127.0.0.1:9003",
        ADDRESS,
        "Where health and Prometheus metrics are served, by a thread of their own.",
    ),
    setting(
        "health.watchdog_interval",
        "health-watchdog-interval",
        "TIME",
        "5s",
        DURATION,
        "How often the server asks itself whether commits and, after others did, statements are answered.",
    ),
    setting(
        "health.watchdog_deadline",
        "health-watchdog-deadline",
        "TIME",
        "20s",
        "a time such as 500us, 10ms, 30s, 5min or 1h",
        "A server whose own small statement or request for a commit is not answered within this time says that it is not ready.",
    ),
    setting(
        "handshake_timeout",
        "handshake-timeout",
        "TIME",
        "10s",
        DURATION,
        "A client that takes longer for the head of an HTTP request, for TLS, or to log in is disconnected.",
    ),
    setting(
        "connections.per_address_max",
        "connections-per-address-max",
        "N",
        "auto",
        "auto (three quarters of what the port may have) or a whole number of at least 1",
        "Connections of one address to one port at the same time; more are refused as those beyond the limit of the port are.",
    ),
    setting(
        "tls.certificate",
        "tls-certificate",
        "FILE",
        "",
        "a PEM file: the certificate, then those between it and its authority",
        "With tls.key: HTTP, the PostgreSQL protocol and line protocol over TCP are encrypted. SIGHUP reads both files again.",
    ),
    setting(
        "tls.key",
        "tls-key",
        "FILE",
        "",
        "a PEM file",
        "The private key of tls.certificate, without a passphrase.",
    ),
    setting(
        "http.tls",
        "http-tls",
        "BOOL",
        "auto",
        TLS,
        "Whether HTTP is encrypted (https). Then requests without TLS are refused.",
    ),
    setting(
        "pg.tls",
        "pg-tls",
        "BOOL",
        "auto",
        TLS,
        "Whether the PostgreSQL protocol is encrypted. Then clients have to ask for it (`sslmode=require`) or begin with it \
         (`sslnegotiation=direct`).",
    ),
    setting(
        "ilp.tls",
        "ilp-tls",
        "BOOL",
        "auto",
        TLS,
        "Whether line protocol over TCP is encrypted (`tcps`). Then connections without TLS are closed.",
    ),
    setting(
        "insecure_bind",
        "insecure-bind",
        "BOOL",
        "false",
        YES_NO,
        "Allows listening beyond this machine without authentication.",
    ),
    setting(
        "http.user",
        "http-user",
        "NAME",
        "",
        "a name without a colon",
        "With http.password: clients must authenticate (HTTP basic).",
    ),
    secret(
        "http.password",
        "http-password",
        "TEXT",
        "any text",
        "The password of http.user. Prefer the file or the environment: flags can be seen by other users of the machine.",
    ),
    secret(
        "http.tokens",
        "http-tokens",
        "TEXT,…",
        "tokens without spaces, separated by commas (in the file: a list)",
        "Clients may instead send one of these as a bearer token.",
    ),
    setting(
        "http.allowed_hosts",
        "http-allowed-hosts",
        "NAME,…",
        "",
        NAMES,
        "Names by which browsers may reach the server, beside IP addresses, names without a dot and those that end in .localhost, \
         .local, .internal or .home.arpa: whoever owns another name could have it point to this server, and read data by a page under \
         that name. Where no credentials are needed, programs may use no other names either.",
    ),
    setting(
        "http.body_bytes_max",
        "http-body-bytes-max",
        "BYTES",
        "256MiB",
        BYTES,
        "The largest body of a request, after decompression; a larger one is refused with 413.",
    ),
    setting(
        "http.body_timeout",
        "http-body-timeout",
        "TIME",
        "60s",
        DURATION,
        "A request of whose body nothing comes for this long is refused with 408: nothing of it is kept.",
    ),
    setting(
        "http.body_rate_min",
        "http-body-rate-min",
        "BYTES",
        "256",
        "a number of bytes a second, plain or with KiB, MiB or GiB; 0 for any",
        "A request whose body comes at less than this in the mean, ten seconds aside, is refused with 408.",
    ),
    setting(
        "http.bodies_bytes_max",
        "http-bodies-bytes-max",
        "BYTES",
        "1GiB",
        BYTES,
        "What the bodies of all requests may take together, at least `http.body_bytes_max`; what does not fit is refused \
         with 503 and can be sent again. Bodies whose rest has not come for two seconds give way first, with 408.",
    ),
    setting(
        "http.connections_max",
        "http-connections-max",
        "N",
        "1024",
        COUNT,
        "Connections served at the same time. More are answered 503, but for `/ping`, `/health` and `/status`; connections without a \
         request make room first.",
    ),
    setting(
        "ilp.connections_max",
        "ilp-connections-max",
        "N",
        "1024",
        COUNT,
        "Line protocol connections served at the same time; more are closed at once.",
    ),
    setting(
        "ilp.auth_file",
        "ilp-auth-file",
        "FILE",
        "",
        "a file with a line `name ec-p-256-sha256 x y` per key",
        "Line protocol over TCP asks for a signature by one of these keys.",
    ),
    setting(
        "ilp.commit_interval",
        "ilp-commit-interval",
        "TIME",
        "10ms",
        DURATION,
        "How long rows of a busy TCP connection may wait for others to be committed together with them.",
    ),
    setting(
        "ilp.batch_rows_max",
        "ilp-batch-rows-max",
        "N",
        "32768",
        COUNT,
        "Rows of a TCP connection that are committed together at most.",
    ),
    setting("line.bytes_max", "line-bytes-max", "BYTES", "8MiB", BYTES, "The longest line of line protocol."),
    setting(
        "line.nan_is_null",
        "line-nan-is-null",
        "BOOL",
        "true",
        YES_NO,
        "Whether a NaN in line protocol is stored as NULL, which is what its senders mean by it.",
    ),
    setting(
        "line.timestamp_type",
        "line-timestamp-type",
        "TYPE",
        "auto",
        "auto (TIMESTAMP, or TIMESTAMP_NS where a suffix or precision= says nanoseconds), TIMESTAMP or TIMESTAMP_NS",
        "The type of the designated timestamp of tables that line protocol creates.",
    ),
    setting(
        "durability",
        "durability",
        "WHEN",
        "sync",
        "sync, os, or a time such as 200ms",
        "When a write is acknowledged: once it is synced to the disk (sync), or once written, with a sync at least every so often (a time) or whenever the operating system likes (os).",
    ),
    setting(
        "query.threads",
        "query-threads",
        "N",
        "auto",
        "auto (one for each core) or a whole number of at least 1",
        "Threads that run queries.",
    ),
    setting(
        "query.memory_bytes",
        "query-memory-bytes",
        "BYTES",
        "2GiB",
        BYTES,
        "Memory for the operators of one query.",
    ),
    setting(
        "spill.folder",
        "spill-folder",
        "DIR",
        "",
        "a folder",
        "Where queries write what their memory has no room for; `spill` in the data folder when nothing is given. Files that \
         a killed server left there are removed at the next start, and no others.",
    ),
    setting(
        "spill.bytes_max",
        "spill-bytes-max",
        "BYTES",
        "100GiB",
        BYTES,
        "What these files of all queries may take together; a query that wants more fails with 53100.",
    ),
    setting(
        "transaction.bytes_max",
        "transaction-bytes-max",
        "BYTES",
        "512MiB",
        BYTES,
        "Memory for what open transactions have written and not committed yet, all of them together; a statement that does \
         not fit fails, and its transaction with it.",
    ),
    setting("query.timeout", "query-timeout", "TIME", "0", DURATION, "A query that runs longer is stopped."),
    setting(
        "query.reads_files",
        "query-reads-files",
        "BOOL",
        "true",
        YES_NO,
        "Whether read_csv, read_parquet and COPY … FROM may read files of this machine in files.roots and URLs of files.hosts, as the user the database runs as.",
    ),
    setting(
        "query.writes_files",
        "query-writes-files",
        "BOOL",
        "false",
        YES_NO,
        "Whether COPY … TO may write files of this machine in files.roots, as the user the database runs as.",
    ),
    setting(
        "files.roots",
        "files-roots",
        "DIR,…",
        "",
        "absolute paths of folders, separated by commas (in the file: a list)",
        "Folders that read_csv, read_parquet, COPY and BACKUP may use; none when nothing is given. Symbolic links and .. are \
         resolved first. / allows every file that the user may use whom the database runs as.",
    ),
    setting(
        "files.hosts",
        "files-hosts",
        "HOST,…",
        "",
        "hosts such as example.com, *.example.com or example.com:8443, buckets such as s3://bucket/prefix, or * for all, \
         separated by commas (in the file: a list)",
        "Hosts and buckets that read_csv, read_parquet, COPY and BACKUP may reach; none when nothing is given.",
    ),
    setting(
        "files.private_addresses",
        "files-private-addresses",
        "BOOL",
        "false",
        YES_NO,
        "Whether http:// and https:// URLs in SQL may lead to addresses of private networks and of this machine. Addresses \
         are compared when a connection is made, those of redirects as well.",
    ),
    setting(
        "query.fast_operators",
        "query-fast-operators",
        "BOOL",
        "true",
        YES_NO,
        "Whether operators of Tidalite take the place of the general ones where they can. Answers are the same; off to compare.",
    ),
    setting(
        "query.compiles",
        "query-compiles",
        "BOOL",
        "true",
        YES_NO,
        "Whether a long condition on several columns becomes machine code once a query has asked it of a million rows. Answers are the same; off to compare.",
    ),
    setting(
        "query.use_materialized_views",
        "query-use-materialized-views",
        "BOOL",
        "false",
        YES_NO,
        "Whether queries on a table are answered from a materialized view of it where that gives the same answer. A statement can say it itself: /*+ use_materialized_views */ or /*+ no_materialized_views */.",
    ),
    setting(
        "merge.threads",
        "merge-threads",
        "N",
        "auto",
        "auto (one for every core) or a whole number of at least 1",
        "Threads that merge new rows into partitions. They give way to commits and queries.",
    ),
    setting(
        "merge.lag_max",
        "merge-lag-max",
        "TIME",
        "10min",
        DURATION,
        "Rows that are late by at most this make their table keep its newest rows, as far back as rows were late, in \
         segments of their own, so that the next late ones rewrite only these. 0 turns it off.",
    ),
    setting(
        "seal.after",
        "seal-after",
        "TIME",
        "10min",
        DURATION,
        "A partition without new rows for this long is written again for size. 0 turns it off.",
    ),
    setting(
        "ttl.jump_wait",
        "ttl-jump-wait",
        "TIME",
        "24h",
        DURATION,
        "Where the newest row of a table is far behind all others, with partitions without rows between, what its TTL \
         condemns is dropped only after this long: the row may have the time of a wrong clock. 0 drops it at once.",
    ),
    setting(
        "cache.bytes",
        "cache-bytes",
        "BYTES",
        "auto",
        "auto (a quarter of the memory of the machine or its container) or a number of bytes, plain or with KiB, MiB or GiB",
        "Memory for blocks read from the disk; what is compressed there is kept opened.",
    ),
    setting(
        "staging.bytes",
        "staging-bytes",
        "BYTES",
        "256MiB",
        BYTES,
        "Memory for committed rows not merged yet; past it writers wait.",
    ),
    setting(
        "wal.bytes",
        "wal-bytes",
        "BYTES",
        "512MiB",
        BYTES,
        "Write-ahead log written between two checkpoints: bounds the time of a recovery.",
    ),
    setting(
        "log.slow_statement",
        "log-slow-statement",
        "TIME",
        "10s",
        DURATION,
        "A statement that takes this long, from its arrival to the end of its rows, is logged with its text, rows and bytes.",
    ),
    setting(
        "log.level",
        "log-level",
        "LEVEL",
        "info",
        "error, warn, info, debug, trace, or a filter such as info,tidalite=debug",
        "What is logged.",
    ),
    setting(
        "log.format",
        "log-format",
        "FORMAT",
        "text",
        "text or json",
        "How log lines look. They go to standard error.",
    ),
];

/// The setting of this key.
#[must_use]
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.key == key)
}

#[cfg(test)]
mod tests;
