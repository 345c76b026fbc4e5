//! Table functions about the database: `tables()`, `table_columns('t')`, `table_partitions('t')`,
//! `show_create_table('t')`, `wal_tables()`, `query_activity()`, `statement_statistics()`, `functions()`. Names of columns
//! are QuestDB's.

use super::{administration, partitions, storage, views};
use crate::{Catalog, Error, Result, StatementStatistics, door};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result as DFResult, ScalarValue};
use datafusion::logical_expr::Expr;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tidalite_storage::TableSnapshot;
use tidalite_types::{ColumnType, PartitionBy, TableSchema, TimeUnit};

pub(super) type Columns = Vec<(&'static str, ArrayRef)>;
type Make = fn(&dyn Catalog, &[String]) -> Result<Columns>;

pub(crate) const FUNCTIONS: &[(&str, Make)] = &[
    ("tables", tables),
    ("table_columns", table_columns),
    ("table_partitions", table_partitions),
    ("show_create_table", show_create_table),
    ("wal_tables", wal_tables),
    ("query_activity", query_activity),
    ("statement_statistics", statement_statistics),
    ("table_metrics", storage::table_metrics),
    ("table_storage", storage::table_storage),
    ("storage", storage::storage),
    ("views", views::views),
    ("materialized_views", views::materialized_views),
    ("functions", super::meta::functions),
    ("memory_metrics", administration::memory_metrics),
    ("reader_pool", administration::reader_pool),
    ("writer_pool", administration::writer_pool),
    ("checkpoint_status", administration::checkpoint_status),
    ("keywords", administration::keywords),
    ("files", administration::files),
    ("glob", administration::glob),
    ("pg_get_keywords", postgres_keywords),
];

/// Lists keywords of PostgreSQL's grammar, by which drivers decide to quote names.
fn postgres_keywords(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let all = crate::pg_catalog::keywords();
    let category = |of: &str| match of {
        "U" => "unreserved",
        "C" => "unreserved (cannot be function or type name)",
        "T" => "reserved (can be function or type name)",
        _ => "reserved",
    };
    let label = |is_bare: bool| if is_bare { "can be bare label" } else { "requires AS" };
    Ok(vec![
        ("word", text(all.iter().map(|k| k.word))),
        ("catcode", text(all.iter().map(|k| k.category))),
        ("barelabel", flag(all.iter().map(|k| k.is_bare_label))),
        ("catdesc", text(all.iter().map(|k| category(k.category)))),
        ("baredesc", text(all.iter().map(|k| label(k.is_bare_label)))),
    ])
}

#[derive(Debug)]
pub(crate) struct SystemTable {
    pub name: &'static str,
    pub catalog: Arc<dyn Catalog>,
    pub make: Make,
}

impl TableFunctionImpl for SystemTable {
    fn call_with_args(&self, args: TableFunctionArgs) -> DFResult<Arc<dyn TableProvider>> {
        let arguments = args.exprs().iter().map(|e| self.text(e)).collect::<Result<Vec<_>>>()?;
        let columns = (self.make)(self.catalog.as_ref(), &arguments)?;
        let fields =
            columns.iter().map(|(name, array)| door::named(&Field::new("", array.data_type().clone(), true), name));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect())?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
    }
}

impl SystemTable {
    /// A table is named by a string or, as a bare word, by a name.
    fn text(&self, expr: &Expr) -> Result<String> {
        match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => Ok(text.clone()),
            Expr::Column(column) => Ok(column.name.clone()),
            _ => Err(Error::invalid(format!("{}() takes the name of a table", self.name))),
        }
    }
}

pub(super) fn text<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

pub(super) fn optional_text<S: AsRef<str>>(values: impl IntoIterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringViewArray>())
}

pub(super) fn long(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn flag(values: impl IntoIterator<Item = bool>) -> ArrayRef {
    Arc::new(values.into_iter().map(Some).collect::<BooleanArray>())
}

pub(super) fn all(catalog: &dyn Catalog) -> Vec<Arc<TableSnapshot>> {
    let mut names = catalog.table_names();
    names.sort_by_key(|name| name.to_lowercase());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    catalog.snapshots(&names).into_iter().flatten().collect()
}

pub(super) fn one(catalog: &dyn Catalog, arguments: &[String]) -> Result<Arc<TableSnapshot>> {
    let [name] = arguments else { return Err(Error::invalid("one table has to be named")) };
    let found = catalog.snapshots(&[name]).pop().flatten();
    found.ok_or_else(|| Error::table_not_found(name))
}

fn designated(schema: &TableSchema) -> Option<&str> {
    schema.timestamp().map(|(column, _)| column.name.as_str())
}

fn tables(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let tables = all(catalog);
    Ok(vec![
        ("id", Arc::new(Int32Array::from_iter_values(tables.iter().map(|t| t.id.0 as i32)))),
        ("table_name", text(tables.iter().map(|t| t.schema.name.as_str()))),
        ("designatedTimestamp", optional_text(tables.iter().map(|t| designated(&t.schema)))),
        ("partitionBy", text(tables.iter().map(|t| t.schema.partition_by.to_string()))),
        ("walEnabled", flag(tables.iter().map(|_| true))),
        ("dedup", flag(tables.iter().map(|t| !t.schema.dedup.is_empty()))),
        ("ttlValue", Arc::new(Int32Array::from_iter_values(tables.iter().map(|t| ttl(t).0)))),
        ("ttlUnit", text(tables.iter().map(|t| ttl(t).1))),
        ("o3MaxLag", Arc::new(tables.iter().map(|t| t.schema.lag_us.map(|lag| lag as i64)).collect::<Int64Array>())),
        ("rowCount", long(tables.iter().map(|t| t.row_count() as i64))),
        ("matView", flag(tables.iter().map(|t| t.schema.materialized().is_some()))),
        ("table_type", text(tables.iter().map(|t| kind(&t.schema)))),
    ])
}

/// As QuestDB: a table, a view, a materialized view.
fn kind(schema: &TableSchema) -> &'static str {
    match &schema.view {
        None => "T",
        Some(view) if view.materialized.is_some() => "M",
        Some(_) => "V",
    }
}

/// As QuestDB: 0 hours for none.
fn ttl(table: &TableSnapshot) -> (i32, &'static str) {
    table.schema.ttl.map_or((0, "HOUR"), |ttl| {
        let (count, unit) = ttl.in_units();
        (count as i32, unit)
    })
}

fn wal_tables(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let tables = all(catalog);
    // A commit is visible when it is acknowledged: the writer is never behind.
    let txns = || long(tables.iter().map(|t| t.txn.0 as i64));
    Ok(vec![
        ("name", text(tables.iter().map(|t| t.schema.name.as_str()))),
        ("suspended", flag(tables.iter().map(|_| false))),
        ("writerTxn", txns()),
        ("bufferedTxnSize", long(tables.iter().map(|_| 0))),
        ("sequencerTxn", txns()),
        ("errorTag", text(tables.iter().map(|_| ""))),
        ("errorMessage", text(tables.iter().map(|_| ""))),
        ("memoryPressure", long(tables.iter().map(|_| 0))),
    ])
}

fn table_columns(catalog: &dyn Catalog, arguments: &[String]) -> Result<Columns> {
    let table = one(catalog, arguments)?;
    let columns = &table.schema.columns;
    let symbols = |id| table.symbols.get(&id).map_or(0, |map| map.len() as i64);
    Ok(vec![
        ("column", text(columns.iter().map(|c| c.name.as_str()))),
        ("type", text(columns.iter().map(|c| c.column_type.to_string()))),
        ("indexed", flag(columns.iter().map(|_| false))),
        ("indexBlockCapacity", long(columns.iter().map(|_| 0))),
        ("symbolCached", flag(columns.iter().map(|c| c.column_type == ColumnType::Symbol))),
        ("symbolCapacity", long(columns.iter().map(|c| symbols(c.id)))),
        ("designated", flag(columns.iter().map(|c| Some(c.id) == table.schema.designated))),
        ("upsertKey", flag(columns.iter().map(|c| table.schema.dedup.contains(&c.id)))),
    ])
}

fn table_partitions(catalog: &dyn Catalog, arguments: &[String]) -> Result<Columns> {
    let table = one(catalog, arguments)?;
    let unit = table.schema.timestamp().map_or(TimeUnit::Micros, |(_, unit)| unit);
    let by = table.schema.partition_by;
    let found: Vec<_> = partitions(&table).into_iter().collect();
    let times =
        |pick: fn((i64, i64)) -> i64| timestamps(unit, found.iter().map(|(_, p)| p.time_range.map(pick)).collect());
    Ok(vec![
        ("index", Arc::new(Int32Array::from_iter_values(0..found.len() as i32)) as ArrayRef),
        ("partitionBy", text(found.iter().map(|_| by.to_string()))),
        ("name", text(found.iter().map(|(lo, _)| by.name(*lo, unit)))),
        ("minTimestamp", times(|r| r.0)),
        ("maxTimestamp", times(|r| r.1)),
        ("numRows", long(found.iter().map(|(_, p)| p.rows as i64))),
        ("diskSize", long(found.iter().map(|(_, p)| p.bytes as i64))),
        ("diskSizeHuman", text(found.iter().map(|(_, p)| human(p.bytes)))),
        ("readOnly", flag(found.iter().map(|_| false))),
        ("active", flag((0..found.len()).map(|i| i + 1 == found.len()))),
        ("attached", flag(found.iter().map(|_| true))),
        ("segments", long(found.iter().map(|(_, p)| p.segments as i64))),
        ("stagedRows", long(found.iter().map(|(_, p)| p.staged_rows as i64))),
    ])
}

fn timestamps(unit: TimeUnit, values: Vec<Option<i64>>) -> ArrayRef {
    match unit {
        TimeUnit::Millis => Arc::new(TimestampMillisecondArray::from(values)),
        TimeUnit::Micros => Arc::new(TimestampMicrosecondArray::from(values)),
        TimeUnit::Nanos => Arc::new(TimestampNanosecondArray::from(values)),
    }
}

fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A statement that makes the table anew.
fn show_create_table(catalog: &dyn Catalog, arguments: &[String]) -> Result<Columns> {
    let table = one(catalog, arguments)?;
    let schema = &table.schema;
    if let Some(view) = &schema.view {
        return Ok(vec![("ddl", text([views::ddl(&table, view, word)]))]);
    }
    let columns: Vec<String> =
        schema.columns.iter().map(|c| format!("    {} {}", word(&c.name), c.column_type.sql_name())).collect();
    let mut ddl = format!("CREATE TABLE {} (\n{}\n)", word(&schema.name), columns.join(",\n"));
    if let Some(timestamp) = designated(schema) {
        ddl.push_str(&format!(" TIMESTAMP({})", word(timestamp)));
    }
    if schema.partition_by != PartitionBy::None {
        ddl.push_str(&format!(" PARTITION BY {}", schema.partition_by));
    }
    if let Some(ttl) = schema.ttl {
        ddl.push_str(&format!(" TTL {ttl}"));
    }
    if let Some(lag_us) = schema.lag_us {
        ddl.push_str(&format!(" WITH o3MaxLag = {lag_us}us"));
    }
    if !schema.dedup.is_empty() {
        let keys = schema.dedup.iter().filter_map(|id| schema.column_by_id(*id)).map(|c| word(&c.name));
        ddl.push_str(&format!(" DEDUP UPSERT KEYS({})", keys.collect::<Vec<_>>().join(", ")));
    }
    ddl.push(';');
    Ok(vec![("ddl", text([ddl]))])
}

/// A name as it has to be written: quoted unless it is a plain word.
fn word(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    let is_reserved = datafusion::sql::sqlparser::keywords::ALL_KEYWORDS
        .binary_search(&name.to_uppercase().as_str())
        .is_ok_and(|index| {
            let keyword = &datafusion::sql::sqlparser::keywords::ALL_KEYWORDS_INDEX[index];
            datafusion::sql::sqlparser::keywords::RESERVED_FOR_COLUMN_ALIAS.contains(keyword)
        });
    if is_plain && !is_reserved { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn statement_statistics(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let all = catalog.statement_statistics();
    let count = |pick: fn(&StatementStatistics) -> u64| long(all.iter().map(|s| pick(s) as i64));
    let ms = |pick: fn(&StatementStatistics) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(all.iter().map(|s| pick(s) * 1e3)))
    };
    let micros = |s: &StatementStatistics| s.last.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    Ok(vec![
        ("query", text(all.iter().map(|s| s.query.as_str()))),
        ("calls", count(|s| s.calls)),
        ("errors", count(|s| s.errors)),
        ("total_ms", ms(|s| s.total.as_secs_f64())),
        ("mean_ms", ms(|s| s.total.as_secs_f64() / s.calls as f64)),
        ("max_ms", ms(|s| s.longest.as_secs_f64())),
        ("rows", count(|s| s.rows)),
        ("bytes", count(|s| s.bytes)),
        ("last_call", Arc::new(TimestampMicrosecondArray::from_iter_values(all.iter().map(micros)))),
    ])
}

fn query_activity(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let running = catalog.activity();
    // Of what scans nothing, or has not begun to.
    let of = |rows: (u64, u64), part: fn((u64, u64)) -> u64| (rows.1 > 0).then(|| part(rows) as i64);
    let rows = |part| Arc::new(running.iter().map(|a| of(a.rows, part)).collect::<Int64Array>()) as ArrayRef;
    let micros = |t: std::time::SystemTime| t.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    Ok(vec![
        ("query_id", long(running.iter().map(|a| a.id as i64))),
        ("username", text(running.iter().map(|a| a.client.as_str()))),
        (
            "query_start",
            Arc::new(TimestampMicrosecondArray::from_iter_values(running.iter().map(|a| micros(a.started)))),
        ),
        ("state", text(running.iter().map(|a| if a.is_queued { "queued" } else { "active" }))),
        ("query", text(running.iter().map(|a| a.sql.as_str()))),
        ("rows_read", rows(|(read, _)| read)),
        ("rows_total", rows(|(_, total)| total)),
    ])
}
