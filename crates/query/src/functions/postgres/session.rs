//! Session information: user, addresses and settings.

use super::{Function, function};
use crate::Error;
use crate::pg_catalog::{Objects, PG_CATALOG, Value, settings};
use crate::tables::{CATALOG, SCHEMA};
use datafusion::logical_expr::Volatility;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_types::ErrorKind;
use tidalite_types::pg_type;

/// Start time of the server process, in microseconds since 1970.
static STARTED: LazyLock<i64> = LazyLock::new(now);

/// Returns the current time in microseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    i64::try_from(since).unwrap_or(i64::MAX)
}

pub(super) const FUNCTIONS: &[Function] = &[
    function("version", (0, 0), pg_type::TEXT, |_, _| {
        Ok(format!("PostgreSQL {}, Tidalite {}", pg_type::SERVER_VERSION, env!("CARGO_PKG_VERSION")).into())
    }),
    function("current_database", (0, 0), pg_type::NAME, |_, _| Ok(CATALOG.into())),
    function("current_catalog", (0, 0), pg_type::NAME, |_, _| Ok(CATALOG.into())),
    function("current_schema", (0, 0), pg_type::NAME, |_, _| Ok(SCHEMA.into())),
    function("current_schemas", (1, 1), pg_type::NAMES, |_, arguments| {
        let path = [PG_CATALOG, SCHEMA].into_iter().skip(usize::from(arguments.flag(0) != Some(true)));
        Ok(path.map(str::to_owned).collect::<Vec<_>>().into())
    }),
    function("current_user", (0, 0), pg_type::NAME, |objects, _| Ok(objects.session.user.clone().into())),
    function("current_role", (0, 0), pg_type::NAME, |objects, _| Ok(objects.session.user.clone().into())),
    function("session_user", (0, 0), pg_type::NAME, |objects, _| Ok(objects.session.user.clone().into())),
    function("user", (0, 0), pg_type::NAME, |objects, _| Ok(objects.session.user.clone().into())),
    function("current_setting", (1, 2), pg_type::TEXT, |objects, arguments| {
        let name = arguments.text(0).unwrap_or_default();
        match setting(objects, name) {
            Some(value) => Ok(value.into()),
            None if arguments.flag(1) == Some(true) => Ok(Value::Null),
            None => Err(unknown(name).into()),
        }
    }),
    Function {
        volatility: Volatility::Volatile,
        is_strict: false,
        ..function("set_config", (3, 3), pg_type::TEXT, |objects, arguments| {
            let Some(name) = arguments.text(0) else { return Ok(Value::Null) };
            let value = arguments.text(1).unwrap_or_default();
            objects.session.set(name, value, arguments.flag(2) == Some(true));
            Ok(value.to_owned().into())
        })
    },
    function("pg_backend_pid", (0, 0), pg_type::INT4, |objects, _| Ok(objects.session.process.into())),
    function("pg_is_in_recovery", (0, 0), pg_type::BOOL, |_, _| Ok(false.into())),
    function("pg_postmaster_start_time", (0, 0), pg_type::TIMESTAMPTZ, |_, _| Ok((*STARTED).into())),
    function("pg_conf_load_time", (0, 0), pg_type::TIMESTAMPTZ, |_, _| Ok((*STARTED).into())),
    function("inet_client_addr", (0, 0), pg_type::INET, |_, _| Ok(Value::Null)),
    function("inet_client_port", (0, 0), pg_type::INT4, |_, _| Ok(Value::Null)),
    function("inet_server_addr", (0, 0), pg_type::INET, |_, _| Ok(Value::Null)),
    function("inet_server_port", (0, 0), pg_type::INT4, |_, _| Ok(Value::Null)),
    function("pg_my_temp_schema", (0, 0), pg_type::OID, |_, _| Ok(0.into())),
    function("pg_is_other_temp_schema", (1, 1), pg_type::BOOL, |_, _| Ok(false.into())),
    function("pg_client_encoding", (0, 0), pg_type::NAME, |_, _| Ok("UTF8".into())),
    function("getdatabaseencoding", (0, 0), pg_type::NAME, |_, _| Ok("UTF8".into())),
    function("pg_advisory_unlock_all", (0, 0), pg_type::VOID, |_, _| Ok("".into())),
    function("pg_last_wal_replay_lsn", (0, 0), pg_type::PG_LSN, |_, _| Ok(Value::Null)),
    function("pg_last_wal_receive_lsn", (0, 0), pg_type::PG_LSN, |_, _| Ok(Value::Null)),
    function("pg_last_xact_replay_timestamp", (0, 0), pg_type::TIMESTAMPTZ, |_, _| Ok(Value::Null)),
    function("pg_is_wal_replay_paused", (0, 0), pg_type::BOOL, |_, _| Ok(false.into())),
    function("pg_jit_available", (0, 0), pg_type::BOOL, |_, _| Ok(false.into())),
];

fn setting(objects: &Objects, name: &str) -> Option<String> {
    let default = settings().iter().find(|setting| setting.name.eq_ignore_ascii_case(name));
    objects.session.setting(name).or_else(|| default.map(|setting| setting.default.to_owned()))
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("unrecognized configuration parameter \"{name}\""))
}
