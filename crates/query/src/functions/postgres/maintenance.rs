//! QuestDB's functions that wait for tables and maintain them. Most have no effect here.

use super::{Arguments, Function, function};
use crate::Error;
use crate::pg_catalog::{Objects, Value};
use datafusion::common::Result;
use datafusion::logical_expr::Volatility;
use tidalite_types::pg_type;
use tidalite_types::schema::same_name;

pub(super) const FUNCTIONS: &[Function] = &[
    // A commit is visible when it is acknowledged.
    Function {
        volatility: Volatility::Volatile,
        ..function("wait_wal_table", (1, 2), pg_type::BOOL, |objects, arguments| exists(objects, arguments, 0))
    },
    // The configuration is read when the server starts.
    Function {
        volatility: Volatility::Volatile,
        ..function("reload_config", (0, 0), pg_type::BOOL, |_, _| Ok(false.into()))
    },
    // Plans are made again when their tables change.
    Function {
        volatility: Volatility::Volatile,
        ..function("flush_query_cache", (0, 0), pg_type::BOOL, |_, _| Ok(true.into()))
    },
    Function {
        volatility: Volatility::Volatile,
        ..function("hydrate_table_metadata", (1, 100), pg_type::BOOL, |objects, arguments| match arguments.text(0) {
            Some("*") => Ok(true.into()),
            _ => (1..arguments.len()).try_fold(exists(objects, arguments, 0)?, |_, n| exists(objects, arguments, n)),
        })
    },
    function("build", (0, 0), pg_type::TEXT, |_, _| {
        Ok(format!("Build Information: Tidalite {}", env!("CARGO_PKG_VERSION")).into())
    }),
];

/// Returns true if the table that argument `n` names exists.
///
/// # Errors
/// Fails if there is no such table.
fn exists(objects: &Objects, arguments: &Arguments, n: usize) -> Result<Value> {
    let name = arguments.text(n).unwrap_or_default();
    match objects.tables().any(|table| same_name(&table.schema.name, name)) {
        true => Ok(true.into()),
        false => Err(Error::table_not_found(name).into()),
    }
}
