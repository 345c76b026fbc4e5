//! The database, its roles, settings, running statements, and small fixed tables.

use super::Source;
use super::objects::{DATABASE_OID, OWNER_OID, Objects, PG_CATALOG_OID};
use super::relations::{BTREE_OID, HEAP_OID};
use super::rows::{Filled, Value, fill};
use crate::functions::OWNER;
use crate::tables::CATALOG;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const SOURCES: &[(&str, Source)] = &[
    ("pg_database", databases),
    ("pg_roles", roles),
    ("pg_authid", roles),
    ("pg_user", users),
    ("pg_shadow", users),
    ("pg_tablespace", tablespaces),
    ("pg_am", access_methods),
    ("pg_opclass", operator_classes),
    ("pg_opfamily", operator_families),
    ("pg_language", languages),
    ("pg_collation", collations),
    ("pg_settings", setting_rows),
    ("pg_stat_activity", activity),
    ("pg_stat_database", database_statistics),
    ("pg_timezone_names", time_zones),
];

const TABLESPACE_OID: i64 = 1663;
const GLOBAL_TABLESPACE_OID: i64 = 1664;
const UTF8: i64 = 6;

fn databases(_: &Objects) -> Filled {
    fill(
        &[()],
        &[
            ("oid", |()| DATABASE_OID.into()),
            ("datname", |()| CATALOG.into()),
            ("datdba", |()| OWNER_OID.into()),
            ("encoding", |()| UTF8.into()),
            ("datlocprovider", |()| "c".into()),
            ("datallowconn", |()| true.into()),
            ("datconnlimit", |()| (-1).into()),
            ("dattablespace", |()| TABLESPACE_OID.into()),
            ("datcollate", |()| "C".into()),
            ("datctype", |()| "C".into()),
        ],
    )
}

fn roles(objects: &Objects) -> Filled {
    fill(
        &objects.roles(),
        &[
            ("rolname", |r| r.name.clone().into()),
            ("rolsuper", |_| true.into()),
            ("rolinherit", |_| true.into()),
            ("rolcreaterole", |_| false.into()),
            ("rolcreatedb", |_| false.into()),
            ("rolcanlogin", |_| true.into()),
            ("rolreplication", |_| false.into()),
            ("rolconnlimit", |_| (-1).into()),
            ("rolbypassrls", |_| true.into()),
            ("oid", |r| r.oid.into()),
        ],
    )
}

fn users(objects: &Objects) -> Filled {
    fill(
        &objects.roles(),
        &[
            ("usename", |r| r.name.clone().into()),
            ("usesysid", |r| r.oid.into()),
            ("usecreatedb", |_| false.into()),
            ("usesuper", |_| true.into()),
            ("userepl", |_| false.into()),
            ("usebypassrls", |_| true.into()),
        ],
    )
}

fn tablespaces(_: &Objects) -> Filled {
    fill(
        &[(TABLESPACE_OID, "pg_default"), (GLOBAL_TABLESPACE_OID, "pg_global")],
        &[("oid", |t| t.0.into()), ("spcname", |t| t.1.into()), ("spcowner", |_| OWNER_OID.into())],
    )
}

fn access_methods(_: &Objects) -> Filled {
    fill(
        &[(HEAP_OID, "heap", "t"), (BTREE_OID, "btree", "i")],
        &[("oid", |m| m.0.into()), ("amname", |m| m.1.into()), ("amtype", |m| m.2.into())],
    )
}

/// Operator classes of keys: number, name, family, type.
const OPERATOR_CLASSES: &[(i64, &str, i64, i64)] = &[
    (10_003, "bool_ops", 424, 16),
    (10_006, "bytea_ops", 428, 17),
    (3_122, "date_ops", 434, 1082),
    (10_012, "float4_ops", 1970, 700),
    (3_123, "float8_ops", 1970, 701),
    (1_979, "int2_ops", 1976, 21),
    (1_978, "int4_ops", 1976, 23),
    (3_124, "int8_ops", 1976, 20),
    (3_125, "numeric_ops", 1988, 1700),
    (3_126, "text_ops", 1994, 25),
    (3_128, "timestamp_ops", 434, 1114),
    (10_065, "uuid_ops", 2968, 2950),
];

/// Returns the operator class that compares keys of a type; 0 for none.
pub(super) fn operator_class(type_oid: i64) -> i64 {
    OPERATOR_CLASSES.iter().find(|(.., of)| *of == type_oid).map_or(0, |(oid, ..)| *oid)
}

fn operator_classes(_: &Objects) -> Filled {
    fill(
        OPERATOR_CLASSES,
        &[
            ("oid", |c| c.0.into()),
            ("opcmethod", |_| BTREE_OID.into()),
            ("opcname", |c| c.1.into()),
            ("opcnamespace", |_| PG_CATALOG_OID.into()),
            ("opcowner", |_| OWNER_OID.into()),
            ("opcfamily", |c| c.2.into()),
            ("opcintype", |c| c.3.into()),
            ("opcdefault", |_| true.into()),
        ],
    )
}

fn operator_families(_: &Objects) -> Filled {
    const FAMILIES: &[(i64, &str)] = &[
        (424, "bool_ops"),
        (428, "bytea_ops"),
        (434, "datetime_ops"),
        (1970, "float_ops"),
        (1976, "integer_ops"),
        (1988, "numeric_ops"),
        (1994, "text_ops"),
        (2968, "uuid_ops"),
    ];
    fill(
        FAMILIES,
        &[
            ("oid", |f| f.0.into()),
            ("opfmethod", |_| BTREE_OID.into()),
            ("opfname", |f| f.1.into()),
            ("opfnamespace", |_| PG_CATALOG_OID.into()),
            ("opfowner", |_| OWNER_OID.into()),
        ],
    )
}

fn languages(_: &Objects) -> Filled {
    fill(
        &[(12, "internal", false), (13, "c", false), (14, "sql", true)],
        &[
            ("oid", |l| l.0.into()),
            ("lanname", |l| l.1.into()),
            ("lanowner", |_| OWNER_OID.into()),
            ("lanpltrusted", |l| l.2.into()),
        ],
    )
}

fn collations(_: &Objects) -> Filled {
    fill(
        &[(100, "default", "d", None), (950, "C", "c", Some("C")), (951, "POSIX", "c", Some("POSIX"))],
        &[
            ("oid", |c| c.0.into()),
            ("collname", |c| c.1.into()),
            ("collnamespace", |_| PG_CATALOG_OID.into()),
            ("collowner", |_| OWNER_OID.into()),
            ("collprovider", |c| c.2.into()),
            ("collisdeterministic", |_| true.into()),
            ("collencoding", |_| (-1).into()),
            ("collcollate", |c| c.3.into()),
            ("collctype", |c| c.3.into()),
        ],
    )
}

/// A setting that sessions can show, with PostgreSQL's description.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    unit: &'static str,
    category: &'static str,
    context: &'static str,
    kind: &'static str,
    description: &'static str,
}

/// Lines of `name|default|unit|category|context|kind|description`.
static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let setting = |line: &'static str| {
        let mut parts = line.splitn(7, '|');
        Some(Setting {
            name: parts.next()?,
            default: parts.next()?,
            unit: parts.next()?,
            category: parts.next()?,
            context: parts.next()?,
            kind: parts.next()?,
            description: parts.next()?,
        })
    };
    include_str!("settings.txt").lines().filter_map(setting).collect()
});

/// Returns the settings that every session has, by name.
pub fn settings() -> &'static [Setting] {
    &SETTINGS
}

/// Returns settings with their values in the session.
fn setting_rows(objects: &Objects) -> Filled {
    let of = |setting: &'static Setting| {
        let value = objects.session.setting(setting.name).unwrap_or_else(|| setting.default.to_owned());
        (setting, value)
    };
    let rows: Vec<(&Setting, String)> = settings().iter().map(of).collect();
    fill(
        &rows,
        &[
            ("name", |(s, _)| s.name.into()),
            ("setting", |(_, value)| value.clone().into()),
            ("unit", |(s, _)| Some(s.unit).filter(|unit| !unit.is_empty()).into()),
            ("category", |(s, _)| s.category.into()),
            ("short_desc", |(s, _)| s.description.into()),
            ("context", |(s, _)| s.context.into()),
            ("vartype", |(s, _)| s.kind.into()),
            ("source", |(s, value)| if s.default == value { "default" } else { "session" }.into()),
            ("boot_val", |(s, _)| s.default.into()),
            ("reset_val", |(s, _)| s.default.into()),
            ("pending_restart", |_| false.into()),
        ],
    )
}

fn micros(time: SystemTime) -> Value {
    let since = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    i64::try_from(since).unwrap_or(i64::MAX).into()
}

/// Returns running statements, each as a session of its own; idle sessions are not listed.
fn activity(objects: &Objects) -> Filled {
    fill(
        &objects.catalog.activity(),
        &[
            ("datid", |_| DATABASE_OID.into()),
            ("datname", |_| CATALOG.into()),
            ("pid", |a| i64::try_from(a.id).unwrap_or(0).into()),
            ("usesysid", |_| OWNER_OID.into()),
            ("usename", |_| OWNER.into()),
            ("application_name", |a| a.client.clone().into()),
            ("backend_start", |a| micros(a.started)),
            ("xact_start", |a| micros(a.started)),
            ("query_start", |a| micros(a.started)),
            ("state_change", |a| micros(a.started)),
            ("state", |_| "active".into()),
            // PostgreSQL has no state of this name; its tools show what a statement waits for.
            ("wait_event_type", |a| a.is_queued.then(|| "Extension".to_owned()).into()),
            ("wait_event", |a| a.is_queued.then(|| "Queue".to_owned()).into()),
            ("query", |a| a.sql.clone().into()),
            ("backend_type", |_| "client backend".into()),
        ],
    )
}

fn database_statistics(objects: &Objects) -> Filled {
    let running = objects.catalog.activity().len();
    fill(
        &[running],
        &[
            ("datid", |_| DATABASE_OID.into()),
            ("datname", |_| CATALOG.into()),
            ("numbackends", |running| (*running).into()),
            ("xact_commit", |_| 0.into()),
            ("xact_rollback", |_| 0.into()),
            ("blks_read", |_| 0.into()),
            ("blks_hit", |_| 0.into()),
            ("tup_returned", |_| 0.into()),
            ("tup_fetched", |_| 0.into()),
            ("tup_inserted", |_| 0.into()),
            ("tup_updated", |_| 0.into()),
            ("tup_deleted", |_| 0.into()),
            ("conflicts", |_| 0.into()),
            ("temp_files", |_| 0.into()),
            ("temp_bytes", |_| 0.into()),
            ("deadlocks", |_| 0.into()),
        ],
    )
}

fn time_zones(_: &Objects) -> Filled {
    let zones: Vec<&str> = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()).collect();
    fill(&zones, &[("name", |zone| (*zone).into())])
}
