//! Settings: the table they are documented from, what was given, what it means.
//!
//! In: a file, the environment and flags, later ones overriding earlier ones. Out: [`Config`], in which every value
//! has its type and has been checked, or a [`SettingError`] that names the setting, the value and what is allowed.
//!
//! Always: `--help`, `tidalite config` and `docs/configuration.md` come from [`SETTINGS`] and nowhere else.

mod error;
mod given;
mod meaning;
mod page;

pub use given::{Given, Source};
pub use meaning::{Config, Listen, LogFormat, OnSyncFailure, duration};
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

/// Number and first time of restarts after a failed sync; set by the process itself.
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
        "Refuses all changes of data: statements (SQLSTATE 25006, over HTTP 403), line protocol, imports and COPY. Rows \
         of the log are still merged. TTLs drop no partitions, and materialized views are not refreshed.",
    ),
    setting(
        "on_sync_failure",
        "on-sync-failure",
        "WHAT",
        "restart",
        "restart, exit or refuse",
        "The action after a failed write or sync of the log. No commit is acknowledged until the log has been read again. \
         `restart`: the server closes its connections and restarts with the same process id, up to five times in ten \
         minutes; `exit`: the server ends with exit code 3, for a supervisor that starts the server again; `refuse`: the \
         server answers queries and refuses writes.",
    ),
    setting(
        "http.listen",
        "http",
        "HOST:PORT",
        "127.0.0.1:9000",
        ADDRESS,
        "Address of HTTP: queries, line protocol, the web console.",
    ),
    setting(
        "pg.listen",
        "pg",
        "HOST:PORT",
        "127.0.0.1:8812",
        ADDRESS,
        "Address of the PostgreSQL protocol: psql, psycopg, asyncpg, JDBC.",
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
        "Maximum number of concurrent connections of the PostgreSQL protocol. Further connections are refused (SQLSTATE \
         53300), except cancel requests and up to 16 connections from this machine that log in with credentials.",
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
    setting("ilp.listen", "ilp", "HOST:PORT", "127.0.0.1:9009", ADDRESS, "Address of line protocol over TCP."),
    setting(
        "health.listen",
        "health",
        "HOST:PORT",
        "127.0.0.1:9003",
        ADDRESS,
        "Address of health and Prometheus metrics, which a thread of their own serves.",
    ),
    setting(
        "health.watchdog_interval",
        "health-watchdog-interval",
        "TIME",
        "5s",
        DURATION,
        "Interval of the watchdog, which checks that commits are answered and, after statements of clients, that \
         statements are answered.",
    ),
    setting(
        "health.watchdog_deadline",
        "health-watchdog-deadline",
        "TIME",
        "20s",
        "a time such as 500us, 10ms, 30s, 5min or 1h",
        "If a probe of the watchdog is not answered within this time, the server reports that statements are not answered \
         (not ready) or that commits are not (not writable).",
    ),
    setting(
        "handshake_timeout",
        "handshake-timeout",
        "TIME",
        "10s",
        DURATION,
        "Maximum time for the head of an HTTP request, for the TLS handshake, and for the login; slower clients are \
         disconnected.",
    ),
    setting(
        "write_timeout",
        "write-timeout",
        "TIME",
        "60s",
        DURATION,
        "A client that takes no byte of its answer for this time is disconnected, and its statement ends. Time in which \
         the server has nothing to send does not count. 0 is no limit.",
    ),
    setting(
        "results.bytes_max",
        "results-bytes-max",
        "BYTES",
        "512MiB",
        BYTES,
        "Memory limit for rows that clients of HTTP and of the PostgreSQL protocol have not taken yet, including those of \
         suspended portals and cursors. Beyond the limit, clients that have taken no byte for two seconds are \
         disconnected, those with the largest results first; if that makes no room, a result is refused (SQLSTATE 53200, \
         over HTTP 503).",
    ),
    setting(
        "connections.per_address_max",
        "connections-per-address-max",
        "N",
        "auto",
        "auto (three quarters of the connections of the port) or a whole number of at least 1",
        "Maximum number of concurrent connections from one address to one port. Further connections are refused like \
         connections beyond the limit of the port.",
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
        "Additional host names for requests from browsers. IP addresses, names without a dot and names that end in \
         .localhost, .local, .internal or .home.arpa are always allowed. The owner of any other name could point the name \
         to this server and read data from a page under that name (DNS rebinding). Without credentials, the names are \
         also checked for programs.",
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
        "Minimum mean rate of request bodies, after the first ten seconds; slower requests are refused with 408.",
    ),
    setting(
        "http.bodies_bytes_max",
        "http-bodies-bytes-max",
        "BYTES",
        "1GiB",
        BYTES,
        "Memory limit for the bodies of all requests, at least `http.body_bytes_max`. A body beyond the limit is refused \
         with 503 and can be sent again. Bodies that have stalled for two seconds are dropped first, with 408.",
    ),
    setting(
        "http.connections_max",
        "http-connections-max",
        "N",
        "1024",
        COUNT,
        "Maximum number of concurrent HTTP connections. At the limit, connections without a request are closed first. \
         Further connections are answered 503, except requests for `/ping`, `/health` and `/status`.",
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
        "memory.bytes",
        "memory-bytes",
        "BYTES",
        "auto",
        "auto (three quarters of the memory of the machine or its container) or a number of bytes, plain or with KiB, MiB or GiB",
        "Memory limit of the server in bytes of live allocations. Above 90 % of it the block cache shrinks and queries \
         spill; above it the statement with the most memory is stopped with SQLSTATE 53200.",
    ),
    setting(
        "query.running_max",
        "query-running-max",
        "N",
        "auto",
        "auto (two for each thread of query.threads, at least 8) or a whole number of at least 1",
        "Heavy queries that run at the same time. The others wait in the order of their arrival, and query_activity() shows \
         them as queued. Small queries, the system catalog and statements about the database never wait.",
    ),
    setting(
        "query.queued_max",
        "query-queued-max",
        "N",
        "1000",
        "a whole number; 0 for no queue",
        "Heavy queries that wait for others to end; a query beyond that is refused with SQLSTATE 53300 (HTTP 503).",
    ),
    setting(
        "query.memory_bytes",
        "query-memory-bytes",
        "BYTES",
        "2GiB",
        BYTES,
        "Memory limit of one statement, planning included; at most half of `memory.bytes` is used. Operators that can \
         spill do so before it; any other statement that needs more fails with SQLSTATE 53200. A margin of an eighth, at \
         least 32 MiB, is for batches in flight.",
    ),
    setting(
        "spill.folder",
        "spill-folder",
        "DIR",
        "",
        "a folder",
        "The folder for spilled data of queries that exceed their memory; the default is `spill` in the data folder. The \
         next start removes the spill files of a killed server, and no other files.",
    ),
    setting(
        "spill.bytes_max",
        "spill-bytes-max",
        "BYTES",
        "100GiB",
        BYTES,
        "Size limit for the spill files of all queries; a query beyond the limit fails with SQLSTATE 53100.",
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
        "Permits read_csv, read_parquet and COPY … FROM to read files of this machine in files.roots and URLs of \
         files.hosts, with the permissions of the database's user.",
    ),
    setting(
        "query.writes_files",
        "query-writes-files",
        "BOOL",
        "false",
        YES_NO,
        "Permits COPY … TO to write files of this machine in files.roots, with the permissions of the database's user.",
    ),
    setting(
        "files.roots",
        "files-roots",
        "DIR,…",
        "",
        "absolute paths of folders, separated by commas (in the file: a list)",
        "Folders that read_csv, read_parquet, COPY and BACKUP may use; none by default. Symbolic links and .. are \
         resolved first. / allows every file that the database's user may access.",
    ),
    setting(
        "files.hosts",
        "files-hosts",
        "HOST,…",
        "",
        "hosts such as example.com, *.example.com or example.com:8443, buckets such as s3://bucket/prefix, or * for all, \
         separated by commas (in the file: a list)",
        "Hosts and buckets that read_csv, read_parquet, COPY and BACKUP may access; none by default.",
    ),
    setting(
        "files.private_addresses",
        "files-private-addresses",
        "BOOL",
        "false",
        YES_NO,
        "Permits http:// and https:// URLs in SQL that lead to addresses of private networks and of this machine. \
         Addresses are checked at each connection, including redirects.",
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
        "Delay before a TTL drops partitions if the newest row of the table is far later than all other rows, with empty \
         partitions between: the row may come from a wrong clock. 0 drops the partitions immediately.",
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
        "Statements that take at least this time, from arrival to the last row, are logged with text, rows and bytes.",
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
