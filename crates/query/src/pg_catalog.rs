//! The tables of PostgreSQL's catalog that its clients read: schemas, tables, columns, types, and empty ones for what
//! there is none of.
//!
//! Always: of one instant for one table; the number of an object is the same in all of them, and of a table of ours for
//! as long as it lives.

use crate::functions::OWNER;
use crate::tables::{CATALOG, SCHEMA as PUBLIC};
use crate::{Catalog, door};
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int16Array, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::pg_type::{self, PgType, TYPES};

pub(crate) const SCHEMA: &str = "pg_catalog";

/// Numbers of what is always there; below what PostgreSQL gives to users' objects.
const PG_CATALOG_OID: i64 = 11;
const PUBLIC_OID: i64 = 2200;
const OWNER_OID: i64 = 10;
const DATABASE_OID: i64 = 5;
const HEAP_OID: i64 = 2;
/// Where the numbers of users' tables begin.
const TABLES_OID: i64 = 16_384;

pub(crate) type Columns = Vec<(&'static str, ArrayRef)>;
pub(crate) type Make = fn(&[Arc<TableSnapshot>]) -> Columns;

/// Each with its number.
const TABLES: &[(&str, i64, Make)] = &[
    ("pg_namespace", 2615, namespaces),
    ("pg_class", 1259, classes),
    ("pg_attribute", 1249, attributes),
    ("pg_type", 1247, types),
    ("pg_database", 1262, databases),
    ("pg_roles", 12_001, roles),
    ("pg_user", 12_002, users),
    ("pg_tables", 12_003, tables),
    ("pg_am", 2601, access_methods),
    ("pg_settings", 12_004, |_| none(&["name", "setting", "short_desc"], &[])),
    ("pg_description", 2609, |_| none(&["description"], &["objoid", "classoid", "objsubid"])),
    ("pg_attrdef", 2604, |_| none(&["adbin"], &["oid", "adrelid", "adnum"])),
    ("pg_index", 2610, |_| {
        none(
            &["indkey", "indpred"],
            &["indexrelid", "indrelid", "indnatts", "indisunique", "indisprimary", "indisvalid"],
        )
    }),
    ("pg_indexes", 12_005, |_| none(&["schemaname", "tablename", "indexname", "indexdef"], &[])),
    ("pg_constraint", 2606, |_| {
        none(
            &["conname", "contype", "conkey", "confkey"],
            &["oid", "conrelid", "confrelid", "connamespace", "conindid"],
        )
    }),
    ("pg_inherits", 2611, |_| none(&[], &["inhrelid", "inhparent", "inhseqno"])),
    ("pg_proc", 1255, |_| none(&["proname"], &["oid", "pronamespace", "prorettype"])),
    ("pg_views", 12_006, |tables| views(tables, false)),
    ("pg_matviews", 12_007, |tables| views(tables, true)),
    ("pg_enum", 3501, |_| none(&["enumlabel"], &["oid", "enumtypid", "enumsortorder"])),
    ("pg_range", 3541, |_| none(&[], &["rngtypid", "rngsubtype"])),
    ("pg_collation", 3456, |_| none(&["collname"], &["oid", "collnamespace"])),
    ("pg_extension", 3079, |_| none(&["extname", "extversion"], &["oid", "extnamespace"])),
    ("pg_trigger", 2620, |_| none(&["tgname"], &["oid", "tgrelid"])),
    ("pg_tablespace", 1213, |_| none(&["spcname"], &["oid", "spcowner"])),
];

pub(crate) fn has(name: &str) -> bool {
    oid(name).is_some()
}

/// The number of a table of the catalog.
pub(crate) fn oid(name: &str) -> Option<i64> {
    TABLES.iter().find(|(n, ..)| n.eq_ignore_ascii_case(name)).map(|(_, oid, _)| *oid)
}

#[derive(Debug)]
pub(crate) struct PgCatalog {
    catalog: Arc<dyn Catalog>,
}

impl PgCatalog {
    pub fn new(catalog: Arc<dyn Catalog>) -> PgCatalog {
        PgCatalog { catalog }
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|(name, ..)| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some((_, _, make)) = TABLES.iter().find(|(n, ..)| n.eq_ignore_ascii_case(name)) else { return Ok(None) };
        Ok(Some(made(&self.catalog, *make)?))
    }

    fn table_exist(&self, name: &str) -> bool {
        has(name)
    }
}

/// The table that `make` makes of all tables of now, in the order of their names.
pub(crate) fn made(catalog: &Arc<dyn Catalog>, make: Make) -> Result<Arc<dyn TableProvider>> {
    let mut names = catalog.table_names();
    names.sort_by_key(|name| name.to_lowercase());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns = make(&catalog.snapshots(&names).into_iter().flatten().collect::<Vec<_>>());
    let fields =
        columns.iter().map(|(name, array)| door::named(&Field::new("", array.data_type().clone(), true), name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect())?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

pub(crate) fn long(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn short(values: impl IntoIterator<Item = i16>) -> ArrayRef {
    Arc::new(Int16Array::from_iter_values(values))
}

pub(crate) fn text<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

pub(crate) fn no_text(rows: usize) -> ArrayRef {
    Arc::new(StringViewArray::new_null(rows))
}

fn flag(values: impl IntoIterator<Item = bool>) -> ArrayRef {
    Arc::new(values.into_iter().map(Some).collect::<BooleanArray>())
}

/// The same in every row.
pub(crate) fn all<T: Clone>(rows: usize, value: T) -> impl Iterator<Item = T> {
    std::iter::repeat_n(value, rows)
}

/// A table that has no rows, of columns of text and of numbers.
fn none(texts: &[&'static str], numbers: &[&'static str]) -> Columns {
    let texts = texts.iter().map(|name| (*name, no_text(0)));
    texts.chain(numbers.iter().map(|name| (*name, long([])))).collect()
}

fn namespaces(_: &[Arc<TableSnapshot>]) -> Columns {
    vec![
        ("oid", long([PG_CATALOG_OID, PUBLIC_OID])),
        ("nspname", text([SCHEMA, PUBLIC])),
        ("nspowner", long([OWNER_OID; 2])),
        ("nspacl", no_text(2)),
    ]
}

/// A table of the catalog, or of a user.
struct Class {
    oid: i64,
    name: String,
    namespace: i64,
    columns: usize,
    rows: i64,
    kind: &'static str,
}

fn table_oid(table: &TableSnapshot) -> i64 {
    TABLES_OID + i64::from(table.id.0)
}

fn classes(tables: &[Arc<TableSnapshot>]) -> Columns {
    let own = TABLES.iter().map(|(name, oid, _)| Class {
        oid: *oid,
        name: (*name).to_owned(),
        namespace: PG_CATALOG_OID,
        columns: 0,
        rows: 0,
        kind: "r",
    });
    let users = tables.iter().map(|table| Class {
        oid: table_oid(table),
        name: table.schema.name.clone(),
        namespace: PUBLIC_OID,
        columns: table.schema.columns.len(),
        rows: table.row_count() as i64,
        kind: match &table.schema.view {
            None => "r",
            Some(view) if view.materialized.is_some() => "m",
            Some(_) => "v",
        },
    });
    let classes: Vec<Class> = own.chain(users).collect();
    let n = classes.len();
    let zero = || long(all(n, 0));
    let no = || flag(all(n, false));
    vec![
        ("oid", long(classes.iter().map(|c| c.oid))),
        ("relname", text(classes.iter().map(|c| c.name.as_str()))),
        ("relnamespace", long(classes.iter().map(|c| c.namespace))),
        ("reltype", zero()),
        ("reloftype", zero()),
        ("relowner", long(all(n, OWNER_OID))),
        ("relam", long(all(n, HEAP_OID))),
        ("relfilenode", zero()),
        ("reltablespace", zero()),
        ("relpages", zero()),
        ("reltuples", long(classes.iter().map(|c| c.rows))),
        ("reltoastrelid", zero()),
        ("relhasindex", no()),
        ("relisshared", no()),
        ("relpersistence", text(all(n, "p"))),
        ("relkind", text(classes.iter().map(|c| c.kind))),
        ("relnatts", short(classes.iter().map(|c| c.columns as i16))),
        ("relchecks", short(all(n, 0))),
        ("relhasrules", no()),
        ("relhastriggers", no()),
        ("relrowsecurity", no()),
        ("relforcerowsecurity", no()),
        ("relispartition", no()),
        ("relreplident", text(all(n, "d"))),
        ("relpartbound", no_text(n)),
        ("relacl", no_text(n)),
        ("reloptions", no_text(n)),
    ]
}

fn attributes(tables: &[Arc<TableSnapshot>]) -> Columns {
    struct Attribute {
        table: i64,
        name: String,
        number: i16,
        of: PgType,
        dims: i16,
        modifier: i64,
        not_null: bool,
    }
    let of_table = |table: &Arc<TableSnapshot>| {
        let (oid, schema) = (table_oid(table), table.schema.clone());
        let columns = schema.columns.iter().enumerate().map(|(i, column)| Attribute {
            table: oid,
            name: column.name.clone(),
            number: i as i16 + 1,
            of: pg_type::of(column.column_type),
            dims: match column.column_type {
                tidalite_types::ColumnType::DoubleArray { dims } => i16::from(dims),
                _ => 0,
            },
            modifier: match column.column_type {
                // As PostgreSQL packs them.
                tidalite_types::ColumnType::Decimal { precision, scale } => {
                    ((i64::from(precision) << 16) | i64::from(scale)) + 4
                }
                _ => -1,
            },
            not_null: Some(column.id) == schema.designated,
        });
        columns.collect::<Vec<_>>()
    };
    let rows: Vec<Attribute> = tables.iter().flat_map(of_table).collect();
    let n = rows.len();
    vec![
        ("attrelid", long(rows.iter().map(|a| a.table))),
        ("attname", text(rows.iter().map(|a| a.name.as_str()))),
        ("atttypid", long(rows.iter().map(|a| i64::from(a.of.oid)))),
        ("attlen", short(rows.iter().map(|a| a.of.len))),
        ("attnum", short(rows.iter().map(|a| a.number))),
        ("attndims", short(rows.iter().map(|a| a.dims))),
        ("atttypmod", long(rows.iter().map(|a| a.modifier))),
        ("attnotnull", flag(rows.iter().map(|a| a.not_null))),
        ("atthasdef", flag(all(n, false))),
        ("attidentity", text(all(n, ""))),
        ("attgenerated", text(all(n, ""))),
        ("attisdropped", flag(all(n, false))),
        ("attcollation", long(all(n, 0))),
        ("attstattarget", long(all(n, -1))),
        ("attstorage", text(all(n, "p"))),
        ("attcompression", text(all(n, ""))),
        ("attislocal", flag(all(n, true))),
    ]
}

fn types(_: &[Arc<TableSnapshot>]) -> Columns {
    let n = TYPES.len();
    vec![
        ("oid", long(TYPES.iter().map(|t| i64::from(t.oid)))),
        ("typname", text(TYPES.iter().map(|t| t.name))),
        ("typnamespace", long(all(n, PG_CATALOG_OID))),
        ("typowner", long(all(n, OWNER_OID))),
        ("typlen", short(TYPES.iter().map(|t| t.len))),
        ("typbyval", flag(TYPES.iter().map(|t| (1..=8).contains(&t.len)))),
        ("typtype", text(all(n, "b"))),
        ("typcategory", text(TYPES.iter().map(|t| t.category.to_string()))),
        ("typisdefined", flag(all(n, true))),
        ("typdelim", text(all(n, ","))),
        ("typrelid", long(all(n, 0))),
        ("typelem", long(TYPES.iter().map(|t| i64::from(t.element)))),
        ("typarray", long(TYPES.iter().map(|t| i64::from(t.array)))),
        (
            "typinput",
            text(TYPES.iter().map(|t| if t.element == 0 { format!("{}in", t.name) } else { "array_in".to_owned() })),
        ),
        ("typnotnull", flag(all(n, false))),
        ("typbasetype", long(all(n, 0))),
        ("typtypmod", long(all(n, -1))),
        ("typndims", long(all(n, 0))),
        ("typcollation", long(all(n, 0))),
        ("typdefault", no_text(n)),
    ]
}

fn databases(_: &[Arc<TableSnapshot>]) -> Columns {
    vec![
        ("oid", long([DATABASE_OID])),
        ("datname", text([CATALOG])),
        ("datdba", long([OWNER_OID])),
        ("encoding", long([6])),
        ("datcollate", text(["C"])),
        ("datctype", text(["C"])),
        ("datistemplate", flag([false])),
        ("datallowconn", flag([true])),
        ("datconnlimit", long([-1])),
        ("dattablespace", long([0])),
        ("datacl", no_text(1)),
    ]
}

fn roles(_: &[Arc<TableSnapshot>]) -> Columns {
    vec![
        ("oid", long([OWNER_OID])),
        ("rolname", text([OWNER])),
        ("rolsuper", flag([true])),
        ("rolinherit", flag([true])),
        ("rolcreaterole", flag([false])),
        ("rolcreatedb", flag([false])),
        ("rolcanlogin", flag([true])),
        ("rolreplication", flag([false])),
        ("rolconnlimit", long([-1])),
    ]
}

fn users(_: &[Arc<TableSnapshot>]) -> Columns {
    vec![("usename", text([OWNER])), ("usesysid", long([OWNER_OID])), ("usesuper", flag([true]))]
}

/// Views, or materialized ones.
fn views(tables: &[Arc<TableSnapshot>], is_materialized: bool) -> Columns {
    let of = |table: &Arc<TableSnapshot>| {
        let view = table.schema.view.as_ref().filter(|view| view.materialized.is_some() == is_materialized)?;
        Some((table.schema.name.clone(), view.sql.clone()))
    };
    let found: Vec<_> = tables.iter().filter_map(of).collect();
    let (name, owner) = match is_materialized {
        true => ("matviewname", "matviewowner"),
        false => ("viewname", "viewowner"),
    };
    vec![
        ("schemaname", text(all(found.len(), PUBLIC))),
        (name, text(found.iter().map(|(name, _)| name.as_str()))),
        (owner, text(all(found.len(), OWNER))),
        ("definition", text(found.iter().map(|(_, sql)| sql.as_str()))),
    ]
}

fn tables(tables: &[Arc<TableSnapshot>]) -> Columns {
    let tables: Vec<_> = tables.iter().filter(|t| t.schema.view.is_none()).collect();
    let n = tables.len();
    vec![
        ("schemaname", text(all(n, PUBLIC))),
        ("tablename", text(tables.iter().map(|t| t.schema.name.as_str()))),
        ("tableowner", text(all(n, OWNER))),
        ("tablespace", no_text(n)),
        ("hasindexes", flag(all(n, false))),
        ("hasrules", flag(all(n, false))),
        ("hastriggers", flag(all(n, false))),
        ("rowsecurity", flag(all(n, false))),
    ]
}

fn access_methods(_: &[Arc<TableSnapshot>]) -> Columns {
    vec![("oid", long([HEAP_OID])), ("amname", text(["tidalite"])), ("amtype", text(["t"]))]
}
