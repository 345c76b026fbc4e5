//! Tables, views, columns, indexes and keys.

use super::Source;
use super::definitions::{self, ColumnDefinition};
use super::objects::{Key, Kind, OWNER_OID, Objects, Relation, schema_oid, table_oid};
use super::rows::{Filled, fill};
use crate::functions::OWNER;
use crate::names::quoted;
use tidalite_storage::TableSnapshot;
use tidalite_types::{ColumnType, pg_type};

pub(super) const SOURCES: &[(&str, Source)] = &[
    ("pg_namespace", namespaces),
    ("pg_class", classes),
    ("pg_attribute", attributes),
    ("pg_index", indexes),
    ("pg_constraint", constraints),
    ("pg_tables", tables),
    ("pg_views", |objects| views(objects, "v")),
    ("pg_matviews", |objects| views(objects, "m")),
    ("pg_rewrite", rules),
    ("pg_indexes", index_list),
    ("pg_depend", depends),
    ("pg_stat_user_tables", |objects| statistics(objects, false)),
    ("pg_stat_all_tables", |objects| statistics(objects, true)),
    ("pg_statio_user_tables", |objects| io_statistics(objects, false)),
    ("pg_statio_all_tables", |objects| io_statistics(objects, true)),
    ("pg_stat_user_indexes", index_statistics),
    ("pg_stat_all_indexes", index_statistics),
];

/// Access methods of `pg_am`: for tables, and for the index that represents a key.
pub(super) const HEAP_OID: i64 = 2;
pub(super) const BTREE_OID: i64 = 403;

fn namespaces(objects: &Objects) -> Filled {
    fill(
        &objects.schemas(),
        &[("oid", |s| s.0.into()), ("nspname", |s| s.1.clone().into()), ("nspowner", |_| OWNER_OID.into())],
    )
}

fn classes(objects: &Objects) -> Filled {
    let relations: Vec<&Relation> = objects.relations().iter().collect();
    fill(
        &relations,
        &[
            ("oid", |r| r.oid.into()),
            ("relname", |r| r.name.clone().into()),
            ("relnamespace", |r| r.schema_oid().into()),
            ("relowner", |_| OWNER_OID.into()),
            ("relam", |r| {
                match r.letter() {
                    "i" => BTREE_OID,
                    "v" => 0,
                    _ => HEAP_OID,
                }
                .into()
            }),
            ("relfilenode", |r| if r.letter() == "v" { 0 } else { r.oid }.into()),
            // Some clients read a table page by page with row addresses, which do not exist here: 0 pages.
            ("reltuples", |r| r.table().map_or(0.0, |t| t.row_count() as f64).into()),
            ("relhasindex", |r| r.table().is_some_and(|t| !t.schema.dedup.is_empty()).into()),
            ("relpersistence", |_| "p".into()),
            ("relkind", |r| r.letter().into()),
            ("relnatts", |r| columns(r).len().into()),
            ("relhasrules", |r| (r.letter() == "v").into()),
            ("relispopulated", |_| true.into()),
            ("relreplident", |r| if r.letter() == "r" && !r.is_system() { "d" } else { "n" }.into()),
        ],
    )
}

/// Returns the bytes of a table's segments.
pub(crate) fn bytes(table: &TableSnapshot) -> u64 {
    crate::functions::partitions(table).values().map(|partition| partition.bytes).sum()
}

/// A column of a relation as in `pg_attribute`.
struct Attribute {
    relation: i64,
    name: String,
    number: i64,
    of: pg_type::PgType,
    dims: i64,
    modifier: i64,
    is_not_null: bool,
}

fn columns(relation: &Relation) -> Vec<Attribute> {
    let of_user = |table: &TableSnapshot, at: usize| {
        let column = &table.schema.columns[at];
        Attribute {
            relation: relation.oid,
            name: column.name.clone(),
            number: at as i64 + 1,
            of: pg_type::of(column.column_type),
            dims: match column.column_type {
                ColumnType::DoubleArray { dims } => i64::from(dims),
                _ => 0,
            },
            modifier: definitions::modifier(column.column_type),
            is_not_null: Some(column.id) == table.schema.designated && table.schema.view.is_none(),
        }
    };
    match &relation.kind {
        Kind::System(definition) => {
            let of_system = |(column, number): (&ColumnDefinition, i64)| Attribute {
                relation: relation.oid,
                name: column.name.to_owned(),
                number,
                of: column.pg_type,
                dims: i64::from(column.pg_type.element != 0),
                modifier: -1,
                is_not_null: !column.is_nullable,
            };
            definition.columns.iter().zip(1..).map(of_system).collect()
        }
        Kind::Table(table) => (0..table.schema.columns.len()).map(|at| of_user(table, at)).collect(),
        Kind::Index(key) => {
            let of_index = |(number, (at, _)): (i64, (i64, _))| {
                let at = usize::try_from(at - 1).unwrap_or_default();
                Attribute { relation: relation.oid, number, is_not_null: false, ..of_user(&key.table, at) }
            };
            (1..).zip(key.columns()).map(of_index).collect()
        }
    }
}

fn attributes(objects: &Objects) -> Filled {
    let all: Vec<Attribute> = objects.relations().iter().flat_map(columns).collect();
    fill(
        &all,
        &[
            ("attrelid", |a| a.relation.into()),
            ("attname", |a| a.name.clone().into()),
            ("atttypid", |a| a.of.oid.into()),
            ("attstattarget", |_| (-1).into()),
            ("attlen", |a| i64::from(a.of.len).into()),
            ("attnum", |a| a.number.into()),
            ("attndims", |a| a.dims.into()),
            ("attcacheoff", |_| (-1).into()),
            ("atttypmod", |a| a.modifier.into()),
            ("attbyval", |a| definitions::builtin_type(i64::from(a.of.oid)).is_some_and(|t| t.by_value).into()),
            ("attalign", |a| definitions::builtin_type(i64::from(a.of.oid)).map_or("i", |t| t.alignment).into()),
            ("attstorage", |a| definitions::builtin_type(i64::from(a.of.oid)).map_or("p", |t| t.storage).into()),
            ("attnotnull", |a| a.is_not_null.into()),
            ("attislocal", |_| true.into()),
            ("attcollation", |a| definitions::builtin_type(i64::from(a.of.oid)).map_or(0, |t| t.collation).into()),
        ],
    )
}

fn indexes(objects: &Objects) -> Filled {
    fill(
        &objects.keys(),
        &[
            ("indexrelid", |k| k.index_oid().into()),
            ("indrelid", |k| table_oid(k.table.id).into()),
            ("indnatts", |k| k.columns().len().into()),
            ("indnkeyatts", |k| k.columns().len().into()),
            ("indisunique", |_| true.into()),
            ("indisprimary", |_| true.into()),
            ("indimmediate", |_| true.into()),
            ("indisvalid", |_| true.into()),
            ("indisready", |_| true.into()),
            ("indislive", |_| true.into()),
            ("indkey", |k| numbers(k).into()),
            ("indcollation", |k| {
                let of =
                    |c: ColumnType| definitions::builtin_type(i64::from(pg_type::of(c).oid)).map_or(0, |t| t.collation);
                k.columns().iter().map(|(_, column)| of(column.column_type)).collect::<Vec<_>>().into()
            }),
            ("indclass", |k| {
                let of = |c: ColumnType| super::server::operator_class(i64::from(pg_type::of(c).oid));
                k.columns().iter().map(|(_, column)| of(column.column_type)).collect::<Vec<_>>().into()
            }),
            ("indoption", |k| vec![0_i64; k.columns().len()].into()),
        ],
    )
}

fn numbers(key: &Key) -> Vec<i64> {
    key.columns().iter().map(|(number, _)| *number).collect()
}

fn constraints(objects: &Objects) -> Filled {
    fill(
        &objects.keys(),
        &[
            ("oid", |k| k.constraint_oid().into()),
            ("conname", |k| k.name().into()),
            ("connamespace", |k| schema_oid(k.schema()).into()),
            ("contype", |_| "p".into()),
            ("convalidated", |_| true.into()),
            ("conrelid", |k| table_oid(k.table.id).into()),
            ("conindid", |k| k.index_oid().into()),
            ("confupdtype", |_| " ".into()),
            ("confdeltype", |_| " ".into()),
            ("confmatchtype", |_| " ".into()),
            ("conislocal", |_| true.into()),
            ("connoinherit", |_| true.into()),
            ("conkey", |k| numbers(k).into()),
        ],
    )
}

fn column_list(key: &Key) -> String {
    key.columns().iter().map(|(_, column)| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// Returns the text of `pg_get_constraintdef` for a key.
pub(crate) fn constraint_definition(objects: &Objects, oid: i64) -> Option<String> {
    let key = objects.keys().into_iter().find(|key| key.constraint_oid() == oid)?;
    Some(format!("PRIMARY KEY ({})", column_list(&key)))
}

/// Returns the text of `pg_get_indexdef` for an index, or for one of its columns, from 1.
pub(crate) fn index_definition(objects: &Objects, oid: i64, column: i64) -> Option<String> {
    let key = objects.keys().into_iter().find(|key| key.index_oid() == oid)?;
    if column > 0 {
        let at = usize::try_from(column - 1).ok()?;
        return Some(key.columns().get(at).map_or_else(String::new, |(_, column)| quoted(&column.name)));
    }
    Some(written_index(&key))
}

fn written_index(key: &Key) -> String {
    let (name, schema, table) = (quoted(&key.name()), quoted(key.schema()), quoted(key.table_name()));
    format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({})", column_list(key))
}

fn index_list(objects: &Objects) -> Filled {
    fill(
        &objects.keys(),
        &[
            ("schemaname", |k| k.schema().to_owned().into()),
            ("tablename", |k| k.table_name().to_owned().into()),
            ("indexname", |k| k.name().into()),
            ("indexdef", |k| written_index(k).into()),
        ],
    )
}

fn tables(objects: &Objects) -> Filled {
    let tables: Vec<&Relation> = objects.relations().iter().filter(|r| r.letter() == "r").collect();
    fill(
        &tables,
        &[
            ("schemaname", |r| r.schema.clone().into()),
            ("tablename", |r| r.name.clone().into()),
            ("tableowner", |_| OWNER.into()),
            ("hasindexes", |r| r.table().is_some_and(|t| !t.schema.dedup.is_empty()).into()),
            ("hasrules", |_| false.into()),
            ("hastriggers", |_| false.into()),
            ("rowsecurity", |_| false.into()),
        ],
    )
}

/// Returns the query of a view for `pg_get_viewdef`.
pub(crate) fn view_definition(table: &TableSnapshot) -> Option<String> {
    let sql = table.schema.view.as_ref()?.sql.trim();
    Some(format!(" {};", sql.trim_end_matches(';')))
}

fn views(objects: &Objects, kind: &str) -> Filled {
    let found: Vec<&Relation> = objects.relations().iter().filter(|r| r.letter() == kind).collect();
    if kind == "m" {
        return fill(
            &found,
            &[
                ("schemaname", |r| r.schema.clone().into()),
                ("matviewname", |r| r.name.clone().into()),
                ("matviewowner", |_| OWNER.into()),
                ("hasindexes", |_| false.into()),
                ("ispopulated", |_| true.into()),
                ("definition", |r| r.table().and_then(|t| view_definition(t)).into()),
            ],
        );
    }
    fill(
        &found,
        &[
            ("schemaname", |r| r.schema.clone().into()),
            ("viewname", |r| r.name.clone().into()),
            ("viewowner", |_| OWNER.into()),
            ("definition", |r| r.table().and_then(|t| view_definition(t)).into()),
        ],
    )
}

/// Returns views as rules, as in PostgreSQL.
fn rules(objects: &Objects) -> Filled {
    let views: Vec<&Relation> =
        objects.relations().iter().filter(|r| matches!(r.letter(), "v" | "m") && !r.is_system()).collect();
    fill(
        &views,
        &[
            ("oid", |r| (r.oid + 0x2000_0000).into()),
            ("rulename", |_| "_RETURN".into()),
            ("ev_class", |r| r.oid.into()),
            ("ev_type", |_| "1".into()),
            ("ev_enabled", |_| "O".into()),
            ("is_instead", |_| true.into()),
            ("ev_qual", |_| "<>".into()),
            ("ev_action", |_| "<>".into()),
        ],
    )
}

/// Returns dependencies: an index on its constraint, a constraint on the columns of its table.
fn depends(objects: &Objects) -> Filled {
    const CLASS: i64 = 1259;
    const CONSTRAINT: i64 = 2606;
    let of_key = |key: Key| {
        let table = table_oid(key.table.id);
        let columns = key.columns().into_iter().map(move |(n, _)| [CONSTRAINT, 0, 0, CLASS, table, n]);
        let (constraint, index) = (key.constraint_oid(), key.index_oid());
        let mut rows: Vec<([i64; 6], &'static str)> = columns
            .map(|mut row| {
                row[1] = constraint;
                (row, "a")
            })
            .collect();
        rows.push(([CLASS, index, 0, CONSTRAINT, constraint, 0], "i"));
        rows
    };
    let rows: Vec<_> = objects.keys().into_iter().flat_map(of_key).collect();
    fill(
        &rows,
        &[
            ("classid", |r| r.0[0].into()),
            ("objid", |r| r.0[1].into()),
            ("objsubid", |r| r.0[2].into()),
            ("refclassid", |r| r.0[3].into()),
            ("refobjid", |r| r.0[4].into()),
            ("refobjsubid", |r| r.0[5].into()),
            ("deptype", |r| r.1.into()),
        ],
    )
}

fn counted(objects: &Objects, all: bool) -> Vec<&Relation> {
    let is_counted = |r: &&Relation| matches!(r.letter(), "r" | "m") && (all || !r.is_system());
    objects.relations().iter().filter(is_counted).collect()
}

fn statistics(objects: &Objects, all: bool) -> Filled {
    fill(
        &counted(objects, all),
        &[
            ("relid", |r| r.oid.into()),
            ("schemaname", |r| r.schema.clone().into()),
            ("relname", |r| r.name.clone().into()),
            ("seq_scan", |_| 0.into()),
            ("seq_tup_read", |_| 0.into()),
            ("n_tup_ins", |_| 0.into()),
            ("n_tup_upd", |_| 0.into()),
            ("n_tup_del", |_| 0.into()),
            ("n_tup_hot_upd", |_| 0.into()),
            ("n_live_tup", |r| r.table().map_or(0, |t| t.row_count() as i64).into()),
            ("n_dead_tup", |_| 0.into()),
            ("n_mod_since_analyze", |_| 0.into()),
            ("n_ins_since_vacuum", |_| 0.into()),
            ("vacuum_count", |_| 0.into()),
            ("autovacuum_count", |_| 0.into()),
            ("analyze_count", |_| 0.into()),
            ("autoanalyze_count", |_| 0.into()),
        ],
    )
}

fn io_statistics(objects: &Objects, all: bool) -> Filled {
    fill(
        &counted(objects, all),
        &[
            ("relid", |r| r.oid.into()),
            ("schemaname", |r| r.schema.clone().into()),
            ("relname", |r| r.name.clone().into()),
            ("heap_blks_read", |_| 0.into()),
            ("heap_blks_hit", |_| 0.into()),
        ],
    )
}

fn index_statistics(objects: &Objects) -> Filled {
    fill(
        &objects.keys(),
        &[
            ("relid", |k| table_oid(k.table.id).into()),
            ("indexrelid", |k| k.index_oid().into()),
            ("schemaname", |k| k.schema().to_owned().into()),
            ("relname", |k| k.table_name().to_owned().into()),
            ("indexrelname", |k| k.name().into()),
            ("idx_scan", |_| 0.into()),
            ("idx_tup_read", |_| 0.into()),
            ("idx_tup_fetch", |_| 0.into()),
        ],
    )
}
