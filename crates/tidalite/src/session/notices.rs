//! Notices of commands that are skipped because of IF EXISTS or IF NOT EXISTS, as PostgreSQL sends them.

use super::Session;
use tidalite_query::Notice;
use tidalite_types::Command;
use tidalite_types::schema::same_name;

/// The codes of PostgreSQL.
const SUCCESSFUL_COMPLETION: &str = "00000";
const DUPLICATE_COLUMN: &str = "42701";
const DUPLICATE_TABLE: &str = "42P07";

/// Returns the notice for an object that IF EXISTS does not find.
pub(super) fn missing(kind: &str, name: &str) -> Notice {
    Notice { code: SUCCESSFUL_COMPLETION, message: format!("{kind} \"{name}\" does not exist, skipping") }
}

/// Returns the notice for a table or view that IF NOT EXISTS finds.
pub(super) fn present(name: &str) -> Notice {
    Notice { code: DUPLICATE_TABLE, message: format!("relation \"{name}\" already exists, skipping") }
}

/// Returns the notice of a command that will have no effect.
pub(super) fn skipped(session: &Session, command: &Command) -> Option<Notice> {
    let find = |name: &str| session.host.snapshots(&[name]).pop().flatten();
    match command {
        Command::DropTable { table, if_exists: true } if find(table).is_none() => Some(missing("table", table)),
        Command::DropView { view, is_materialized, if_exists: true } if find(view).is_none() => {
            Some(missing(if *is_materialized { "materialized view" } else { "view" }, view))
        }
        Command::CreateTable(create) if create.if_not_exists && find(&create.name).is_some() => {
            Some(present(&create.name))
        }
        Command::AddColumn { table, column, if_not_exists: true, .. } => {
            let found = find(table)?;
            let is_present = found.schema.columns.iter().any(|known| same_name(&known.name, column));
            let message = format!("column \"{column}\" of relation \"{table}\" already exists, skipping");
            is_present.then_some(Notice { code: DUPLICATE_COLUMN, message })
        }
        Command::DropColumn { table, column, if_exists: true } => {
            let found = find(table)?;
            let is_missing = !found.schema.columns.iter().any(|known| same_name(&known.name, column));
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist, skipping");
            is_missing.then_some(Notice { code: SUCCESSFUL_COMPLETION, message })
        }
        _ => None,
    }
}
