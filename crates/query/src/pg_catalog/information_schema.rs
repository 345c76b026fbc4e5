//! `information_schema`: the catalog objects by the names of the SQL standard, as PostgreSQL shows them.

use super::definitions;
use super::objects::{Key, Kind, Objects, Relation};
use super::relations::view_definition;
use super::rows::{Filled, fill};
use super::{PG_CATALOG, Source};
use crate::functions::OWNER;
use crate::tables::CATALOG;
use tidalite_types::pg_type::{self, PgType};

pub(super) const SOURCES: &[(&str, Source)] = &[
    ("information_schema_catalog_name", |_| fill(&[()], &[("catalog_name", |()| CATALOG.into())])),
    ("schemata", schemata),
    ("tables", tables),
    ("columns", columns),
    ("views", views),
    ("element_types", element_types),
    ("table_constraints", table_constraints),
    ("key_column_usage", key_columns),
    ("constraint_column_usage", constraint_columns),
    ("constraint_table_usage", constraint_tables),
    ("check_constraints", check_constraints),
    ("table_privileges", table_privileges),
    ("role_table_grants", table_privileges),
    ("column_privileges", column_privileges),
    ("role_column_grants", column_privileges),
    ("enabled_roles", |objects| fill(&objects.roles(), &[("role_name", |r| r.name.clone().into())])),
    ("character_sets", character_sets),
    ("collations", collations),
];

fn schemata(objects: &Objects) -> Filled {
    fill(
        &objects.schemas(),
        &[
            ("catalog_name", |_| CATALOG.into()),
            ("schema_name", |(_, name)| name.clone().into()),
            ("schema_owner", |_| OWNER.into()),
        ],
    )
}

/// Returns tables and views.
///
/// Materialized views, which the standard does not define, are listed as tables: some clients know no other kind.
fn listed(objects: &Objects) -> Vec<&Relation> {
    objects.relations().iter().filter(|r| !matches!(r.kind, Kind::Index(_))).collect()
}

fn can_change(relation: &Relation) -> &'static str {
    yes_or_no(match &relation.kind {
        Kind::Table(table) => table.schema.view.is_none(),
        _ => relation.letter() == "r",
    })
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

fn tables(objects: &Objects) -> Filled {
    fill(
        &listed(objects),
        &[
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |r| r.schema.clone().into()),
            ("table_name", |r| r.name.clone().into()),
            ("table_type", |r| if r.letter() == "v" { "VIEW" } else { "BASE TABLE" }.into()),
            ("is_insertable_into", |r| can_change(r).into()),
            ("is_typed", |_| "NO".into()),
        ],
    )
}

fn views(objects: &Objects) -> Filled {
    let views: Vec<&Relation> = objects.relations().iter().filter(|r| r.letter() == "v").collect();
    fill(
        &views,
        &[
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |r| r.schema.clone().into()),
            ("table_name", |r| r.name.clone().into()),
            ("view_definition", |r| r.table().and_then(|t| view_definition(t)).into()),
            ("check_option", |_| "NONE".into()),
            ("is_updatable", |_| "NO".into()),
            ("is_insertable_into", |_| "NO".into()),
            ("is_trigger_updatable", |_| "NO".into()),
            ("is_trigger_deletable", |_| "NO".into()),
            ("is_trigger_insertable_into", |_| "NO".into()),
        ],
    )
}

struct Column {
    schema: String,
    table: String,
    name: String,
    number: usize,
    of: PgType,
    modifier: i64,
    is_nullable: bool,
    can_change: &'static str,
}

fn columns_of(relation: &Relation) -> Vec<Column> {
    let column = |number, name: &str, of, modifier, is_nullable| Column {
        schema: relation.schema.clone(),
        table: relation.name.clone(),
        name: name.to_owned(),
        number,
        of,
        modifier,
        is_nullable,
        can_change: can_change(relation),
    };
    match &relation.kind {
        Kind::System(definition) => {
            let columns = definition.columns.iter().zip(1..);
            columns.map(|(c, number)| column(number, c.name, c.pg_type, -1, c.is_nullable)).collect()
        }
        Kind::Table(table) => {
            let is_nullable = |id| Some(id) != table.schema.designated || table.schema.view.is_some();
            let columns = table.schema.columns.iter().zip(1..);
            columns
                .map(|(c, number)| {
                    let modifier = definitions::modifier(c.column_type);
                    column(number, &c.name, pg_type::of(c.column_type), modifier, is_nullable(c.id))
                })
                .collect()
        }
        Kind::Index(_) => Vec::new(),
    }
}

fn columns(objects: &Objects) -> Filled {
    let all: Vec<Column> = listed(objects).into_iter().flat_map(columns_of).collect();
    fill(
        &all,
        &[
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |c| c.schema.clone().into()),
            ("table_name", |c| c.table.clone().into()),
            ("column_name", |c| c.name.clone().into()),
            ("ordinal_position", |c| c.number.into()),
            ("is_nullable", |c| yes_or_no(c.is_nullable).into()),
            ("data_type", |c| if c.of.category == 'A' { "ARRAY" } else { c.of.sql_name }.into()),
            ("character_octet_length", |c| (c.of == pg_type::TEXT).then_some(1_073_741_824).into()),
            ("numeric_precision", |c| precision(c).map(|(digits, _)| digits).into()),
            ("numeric_precision_radix", |c| precision(c).map(|(_, radix)| radix).into()),
            ("numeric_scale", |c| scale(c).into()),
            ("datetime_precision", |c| second_digits(c.of).into()),
            ("udt_catalog", |_| CATALOG.into()),
            ("udt_schema", |_| PG_CATALOG.into()),
            ("udt_name", |c| c.of.name.into()),
            ("dtd_identifier", |c| c.number.to_string().into()),
            ("is_self_referencing", |_| "NO".into()),
            ("is_identity", |_| "NO".into()),
            ("identity_cycle", |_| "NO".into()),
            ("is_generated", |_| "NEVER".into()),
            ("is_updatable", |c| c.can_change.into()),
        ],
    )
}

/// Returns the number of digits and their base.
fn precision(column: &Column) -> Option<(i64, i64)> {
    Some(match column.of {
        pg_type::INT2 => (16, 2),
        pg_type::INT4 => (32, 2),
        pg_type::INT8 => (64, 2),
        pg_type::FLOAT4 => (24, 2),
        pg_type::FLOAT8 => (53, 2),
        pg_type::NUMERIC if column.modifier >= 4 => ((column.modifier - 4) >> 16, 10),
        _ => return None,
    })
}

fn scale(column: &Column) -> Option<i64> {
    match column.of {
        pg_type::INT2 | pg_type::INT4 | pg_type::INT8 => Some(0),
        pg_type::NUMERIC if column.modifier >= 4 => Some((column.modifier - 4) & 0xffff),
        _ => None,
    }
}

/// Returns the fractional digits of a second of a PostgreSQL type.
fn second_digits(of: PgType) -> Option<i64> {
    match of {
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ | pg_type::TIME | pg_type::INTERVAL => Some(6),
        pg_type::DATE => Some(0),
        _ => None,
    }
}

/// Returns the rows of `element_types`, the item types of arrays.
fn element_types(objects: &Objects) -> Filled {
    let of_array = |column: &Column| pg_type::by_oid(column.of.element).filter(|_| column.of.category == 'A');
    let columns = listed(objects).into_iter().flat_map(columns_of);
    let arrays: Vec<(Column, PgType)> = columns.filter_map(|c| of_array(&c).map(|of| (c, of))).collect();
    fill(
        &arrays,
        &[
            ("object_catalog", |_| CATALOG.into()),
            ("object_schema", |(c, _)| c.schema.clone().into()),
            ("object_name", |(c, _)| c.table.clone().into()),
            ("object_type", |_| "TABLE".into()),
            ("collection_type_identifier", |(c, _)| c.number.to_string().into()),
            ("data_type", |(_, of)| of.sql_name.into()),
            ("udt_catalog", |_| CATALOG.into()),
            ("udt_schema", |_| PG_CATALOG.into()),
            ("udt_name", |(_, of)| of.name.into()),
            ("dtd_identifier", |(c, _)| format!("a{}", c.number).into()),
        ],
    )
}

/// Returns NOT NULL columns, which PostgreSQL lists as checks: schema, table, column number, column.
fn not_null(objects: &Objects) -> Vec<(Column, String)> {
    let own = objects.relations().iter().filter(|r| matches!(r.kind, Kind::Table(_)));
    let name = |relation: &Relation, column: &Column| {
        format!("{}_{}_{}_not_null", relation.schema_oid(), relation.oid, column.number)
    };
    let of_table = |relation: &Relation| {
        let columns = columns_of(relation).into_iter().filter(|column| !column.is_nullable);
        columns.map(|column| (name(relation, &column), column)).map(|(name, column)| (column, name)).collect::<Vec<_>>()
    };
    own.flat_map(of_table).collect()
}

fn table_constraints(objects: &Objects) -> Filled {
    let keys = objects.keys();
    let keys = keys.iter().map(|k| (k.schema().to_owned(), k.table_name().to_owned(), k.name(), "PRIMARY KEY"));
    let checks = not_null(objects).into_iter().map(|(c, name)| (c.schema, c.table, name, "CHECK"));
    let all: Vec<(String, String, String, &'static str)> = keys.chain(checks).collect();
    fill(
        &all,
        &[
            ("constraint_catalog", |_| CATALOG.into()),
            ("constraint_schema", |c| c.0.clone().into()),
            ("constraint_name", |c| c.2.clone().into()),
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |c| c.0.clone().into()),
            ("table_name", |c| c.1.clone().into()),
            ("constraint_type", |c| c.3.into()),
            ("is_deferrable", |_| "NO".into()),
            ("initially_deferred", |_| "NO".into()),
            ("enforced", |_| "YES".into()),
        ],
    )
}

fn check_constraints(objects: &Objects) -> Filled {
    fill(
        &not_null(objects),
        &[
            ("constraint_catalog", |_| CATALOG.into()),
            ("constraint_schema", |(c, _)| c.schema.clone().into()),
            ("constraint_name", |(_, name)| name.clone().into()),
            ("check_clause", |(c, _)| format!("{} IS NOT NULL", c.name).into()),
        ],
    )
}

/// Returns the columns of keys with their positions.
fn columns_of_keys(objects: &Objects) -> Vec<(Key, String, i64)> {
    let of_key = |key: Key| {
        let columns: Vec<String> = key.columns().iter().map(|(_, column)| column.name.clone()).collect();
        columns.into_iter().zip(1..).map(move |(name, at)| (key.clone(), name, at)).collect::<Vec<_>>()
    };
    objects.keys().into_iter().flat_map(of_key).collect()
}

fn key_columns(objects: &Objects) -> Filled {
    fill(
        &columns_of_keys(objects),
        &[
            ("constraint_catalog", |_| CATALOG.into()),
            ("constraint_schema", |(k, ..)| k.schema().to_owned().into()),
            ("constraint_name", |(k, ..)| k.name().into()),
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |(k, ..)| k.schema().to_owned().into()),
            ("table_name", |(k, ..)| k.table_name().to_owned().into()),
            ("column_name", |(_, name, _)| name.clone().into()),
            ("ordinal_position", |(.., at)| (*at).into()),
        ],
    )
}

fn constraint_columns(objects: &Objects) -> Filled {
    fill(
        &columns_of_keys(objects),
        &[
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |(k, ..)| k.schema().to_owned().into()),
            ("table_name", |(k, ..)| k.table_name().to_owned().into()),
            ("column_name", |(_, name, _)| name.clone().into()),
            ("constraint_catalog", |_| CATALOG.into()),
            ("constraint_schema", |(k, ..)| k.schema().to_owned().into()),
            ("constraint_name", |(k, ..)| k.name().into()),
        ],
    )
}

fn constraint_tables(objects: &Objects) -> Filled {
    fill(
        &objects.keys(),
        &[
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |k| k.schema().to_owned().into()),
            ("table_name", |k| k.table_name().to_owned().into()),
            ("constraint_catalog", |_| CATALOG.into()),
            ("constraint_schema", |k| k.schema().to_owned().into()),
            ("constraint_name", |k| k.name().into()),
        ],
    )
}

/// Returns table privileges: the role of a session has all of them.
fn grants(objects: &Objects) -> Vec<(String, &Relation, &'static str)> {
    const CHANGES: &[&str] = &["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE"];
    let grantee = objects.session.user.clone();
    let of_relation = move |relation: &'_ Relation| {
        let all = if can_change(relation) == "YES" { CHANGES } else { &CHANGES[1..2] };
        all.to_vec()
    };
    let own = objects.relations().iter().filter(|r| matches!(r.kind, Kind::Table(_)));
    own.flat_map(|r| of_relation(r).into_iter().map(|p| (grantee.clone(), r, p)).collect::<Vec<_>>()).collect()
}

fn table_privileges(objects: &Objects) -> Filled {
    fill(
        &grants(objects),
        &[
            ("grantor", |(user, ..)| user.clone().into()),
            ("grantee", |(user, ..)| user.clone().into()),
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |(_, r, _)| r.schema.clone().into()),
            ("table_name", |(_, r, _)| r.name.clone().into()),
            ("privilege_type", |(.., privilege)| (*privilege).into()),
            ("is_grantable", |_| "YES".into()),
            ("with_hierarchy", |(.., privilege)| yes_or_no(*privilege == "SELECT").into()),
        ],
    )
}

fn column_privileges(objects: &Objects) -> Filled {
    let of_columns = |(user, relation, privilege): (String, &Relation, &'static str)| {
        let is_of_columns = matches!(privilege, "INSERT" | "SELECT" | "UPDATE");
        let columns = columns_of(relation).into_iter().filter(move |_| is_of_columns);
        columns.map(move |column| (user.clone(), column, privilege)).collect::<Vec<_>>()
    };
    let all: Vec<_> = grants(objects).into_iter().flat_map(of_columns).collect();
    fill(
        &all,
        &[
            ("grantor", |(user, ..)| user.clone().into()),
            ("grantee", |(user, ..)| user.clone().into()),
            ("table_catalog", |_| CATALOG.into()),
            ("table_schema", |(_, c, _)| c.schema.clone().into()),
            ("table_name", |(_, c, _)| c.table.clone().into()),
            ("column_name", |(_, c, _)| c.name.clone().into()),
            ("privilege_type", |(.., privilege)| (*privilege).into()),
            ("is_grantable", |_| "YES".into()),
        ],
    )
}

fn character_sets(_: &Objects) -> Filled {
    fill(
        &[()],
        &[
            ("character_set_name", |()| "UTF8".into()),
            ("character_repertoire", |()| "UCS".into()),
            ("form_of_use", |()| "UTF8".into()),
            ("default_collate_catalog", |()| CATALOG.into()),
            ("default_collate_schema", |()| PG_CATALOG.into()),
            ("default_collate_name", |()| "ucs_basic".into()),
        ],
    )
}

fn collations(_: &Objects) -> Filled {
    fill(
        &["default", "C", "POSIX"],
        &[
            ("collation_catalog", |_| CATALOG.into()),
            ("collation_schema", |_| PG_CATALOG.into()),
            ("collation_name", |name| (*name).into()),
            ("pad_attribute", |_| "NO PAD".into()),
        ],
    )
}
