//! Privilege functions: the role of a session has every privilege on existing objects.

use super::{Arguments, Function, function};
use crate::Error;
use crate::pg_catalog::{Objects, Value};
use datafusion::common::Result;
use tidalite_types::ErrorKind;
use tidalite_types::pg_type;

/// Returns the position of the object argument: after the optional role, before the privilege.
fn object(arguments: &Arguments, behind: usize) -> usize {
    arguments.len().saturating_sub(behind)
}

/// Returns true for an existing table, NULL for an unknown number, an error for an unknown name.
fn table(objects: &Objects, arguments: &Arguments, behind: usize) -> Result<Value> {
    let at = object(arguments, behind);
    if let Some(oid) = arguments.int(at) {
        return Ok(objects.relation(oid).map(|_| true).into());
    }
    let name = arguments.text(at).unwrap_or_default();
    match objects.relation_named(name) {
        Some(_) => Ok(true.into()),
        None => Err(Error::new(ErrorKind::NotFound, format!("relation \"{name}\" does not exist")).into()),
    }
}

fn schema(objects: &Objects, arguments: &Arguments) -> Result<Value> {
    let at = object(arguments, 2);
    let schemas = objects.schemas();
    if let Some(oid) = arguments.int(at) {
        return Ok(schemas.iter().find(|(known, _)| *known == oid).map(|_| true).into());
    }
    let name = arguments.text(at).unwrap_or_default();
    if schemas.iter().any(|(_, known)| known == name) {
        return Ok(true.into());
    }
    Err(Error::new(ErrorKind::NotFound, format!("schema \"{name}\" does not exist")).into())
}

fn yes(_: &Objects, _: &Arguments) -> Result<Value> {
    Ok(true.into())
}

pub(super) const FUNCTIONS: &[Function] = &[
    function("has_table_privilege", (2, 3), pg_type::BOOL, |o, a| table(o, a, 2)),
    function("has_any_column_privilege", (2, 3), pg_type::BOOL, |o, a| table(o, a, 2)),
    function("has_column_privilege", (3, 4), pg_type::BOOL, |o, a| table(o, a, 3)),
    function("has_schema_privilege", (2, 3), pg_type::BOOL, schema),
    function("has_database_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_function_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_language_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_sequence_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_tablespace_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_type_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_foreign_data_wrapper_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_server_privilege", (2, 3), pg_type::BOOL, yes),
    function("has_parameter_privilege", (2, 3), pg_type::BOOL, yes),
    function("pg_has_role", (2, 3), pg_type::BOOL, yes),
    function("row_security_active", (1, 1), pg_type::BOOL, |_, _| Ok(false.into())),
];
