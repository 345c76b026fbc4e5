//! `information_schema` as PostgreSQL has it: schemas, tables, columns and views, with its names of types. What else the
//! planner knows by that name, it answers itself.

use crate::Catalog;
use crate::pg_catalog::{Columns, Make, all, long, made, no_text, text};
use crate::tables::{CATALOG, QueryTables, SCHEMA as PUBLIC};
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::Result;
use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnType, TimeUnit};

pub(crate) const SCHEMA: &str = "information_schema";

const TABLES: &[(&str, Make)] = &[("schemata", schemata), ("tables", tables), ("columns", columns), ("views", views)];

#[derive(Debug)]
pub(crate) struct InformationSchema {
    catalog: Arc<dyn Catalog>,
    stock: InformationSchemaProvider,
}

impl InformationSchema {
    pub fn new(tables: &QueryTables) -> InformationSchema {
        let stock = InformationSchemaProvider::new(Arc::new(tables.clone()));
        InformationSchema { catalog: tables.catalog().clone(), stock }
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        self.stock.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some((_, make)) = TABLES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) else {
            return self.stock.table(name).await;
        };
        Ok(Some(made(&self.catalog, *make)?))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.stock.table_exist(name)
    }
}

/// The schema of a table and its name there.
fn name(table: &TableSnapshot) -> (&str, &str) {
    table.schema.name.split_once('.').unwrap_or((PUBLIC, &table.schema.name))
}

fn schemata(tables: &[Arc<TableSnapshot>]) -> Columns {
    let own = [PUBLIC, SCHEMA, crate::pg_catalog::SCHEMA];
    let names: BTreeSet<&str> = tables.iter().map(|t| name(t).0).chain(own).collect();
    let n = names.len();
    vec![
        ("catalog_name", text(all(n, CATALOG))),
        ("schema_name", text(&names)),
        ("schema_owner", text(all(n, crate::functions::OWNER))),
        ("default_character_set_catalog", no_text(n)),
        ("default_character_set_schema", no_text(n)),
        ("default_character_set_name", no_text(n)),
        ("sql_path", no_text(n)),
    ]
}

fn tables(tables: &[Arc<TableSnapshot>]) -> Columns {
    let n = tables.len();
    let kind = |t: &Arc<TableSnapshot>| if t.schema.is_plain_view() { "VIEW" } else { "BASE TABLE" };
    let can_insert = |t: &Arc<TableSnapshot>| if t.schema.view.is_some() { "NO" } else { "YES" };
    vec![
        ("table_catalog", text(all(n, CATALOG))),
        ("table_schema", text(tables.iter().map(|t| name(t).0))),
        ("table_name", text(tables.iter().map(|t| name(t).1))),
        ("table_type", text(tables.iter().map(kind))),
        ("is_insertable_into", text(tables.iter().map(can_insert))),
    ]
}

fn views(tables: &[Arc<TableSnapshot>]) -> Columns {
    let found: Vec<_> = tables.iter().filter(|t| t.schema.is_plain_view()).collect();
    let n = found.len();
    let sql = |t: &&Arc<TableSnapshot>| t.schema.view.as_ref().map(|view| view.sql.clone()).unwrap_or_default();
    vec![
        ("table_catalog", text(all(n, CATALOG))),
        ("table_schema", text(found.iter().map(|t| name(t).0))),
        ("table_name", text(found.iter().map(|t| name(t).1))),
        ("view_definition", text(found.iter().map(sql))),
        ("check_option", text(all(n, "NONE"))),
        ("is_updatable", text(all(n, "NO"))),
    ]
}

struct Described<'a> {
    table: &'a TableSnapshot,
    column: &'a str,
    number: i64,
    column_type: ColumnType,
    of: PgType,
    is_time: bool,
}

fn described(table: &TableSnapshot) -> impl Iterator<Item = Described<'_>> {
    let schema = &table.schema;
    schema.columns.iter().zip(1..).map(move |(column, number)| Described {
        table,
        column: &column.name,
        number,
        column_type: column.column_type,
        of: pg_type::of(column.column_type),
        is_time: Some(column.id) == schema.designated,
    })
}

fn columns(tables: &[Arc<TableSnapshot>]) -> Columns {
    let rows: Vec<Described> = tables.iter().flat_map(|table| described(table)).collect();
    let n = rows.len();
    let number =
        |of: fn(&Described) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Int64Array>()) };
    let shown = |d: &Described| if d.of.element == 0 { d.of.sql_name } else { "ARRAY" };
    let radix = |d: &Described| precision(d.column_type).map(|(_, radix)| radix);
    let own: Arc<StringViewArray> = Arc::new(rows.iter().map(|d| Some(if d.is_time { "NO" } else { "YES" })).collect());
    vec![
        ("table_catalog", text(all(n, CATALOG))),
        ("table_schema", text(rows.iter().map(|d| name(d.table).0))),
        ("table_name", text(rows.iter().map(|d| name(d.table).1))),
        ("column_name", text(rows.iter().map(|d| d.column))),
        ("ordinal_position", long(rows.iter().map(|d| d.number))),
        ("column_default", no_text(n)),
        ("is_nullable", own),
        ("data_type", text(rows.iter().map(shown))),
        ("character_maximum_length", number(|_| None)),
        ("character_octet_length", number(|_| None)),
        ("numeric_precision", number(|d| precision(d.column_type).map(|(digits, _)| digits))),
        ("numeric_precision_radix", Arc::new(rows.iter().map(radix).collect::<Int64Array>())),
        ("numeric_scale", number(|d| scale(d.column_type))),
        ("datetime_precision", number(|d| fraction(d.column_type))),
        ("udt_catalog", text(all(n, CATALOG))),
        ("udt_schema", text(all(n, crate::pg_catalog::SCHEMA))),
        ("udt_name", text(rows.iter().map(|d| d.of.name))),
        ("is_identity", text(all(n, "NO"))),
        ("is_generated", text(all(n, "NEVER"))),
        ("is_updatable", text(all(n, "YES"))),
    ]
}

/// Digits, and in which base.
fn precision(of: ColumnType) -> Option<(i64, i64)> {
    Some(match of {
        ColumnType::Byte | ColumnType::Short => (16, 2),
        ColumnType::Int => (32, 2),
        ColumnType::Long => (64, 2),
        ColumnType::Float => (24, 2),
        ColumnType::Double => (53, 2),
        ColumnType::Decimal { precision, .. } => (i64::from(precision), 10),
        _ => return None,
    })
}

fn scale(of: ColumnType) -> Option<i64> {
    match of {
        ColumnType::Byte | ColumnType::Short | ColumnType::Int | ColumnType::Long => Some(0),
        ColumnType::Decimal { scale, .. } => Some(i64::from(scale)),
        _ => None,
    }
}

/// Digits of a second.
fn fraction(of: ColumnType) -> Option<i64> {
    match of {
        ColumnType::Timestamp(TimeUnit::Millis) => Some(3),
        ColumnType::Timestamp(TimeUnit::Micros) => Some(6),
        ColumnType::Timestamp(TimeUnit::Nanos) => Some(9),
        _ => None,
    }
}
