//! The objects of the catalog with their numbers: relations, keys, schemas, roles.

use super::definitions::{self, Definition};
use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::catalog::SessionContext;
use crate::functions::OWNER;
use crate::tables::SCHEMA as PUBLIC;
use crate::{Catalog, names};
use std::sync::{Arc, OnceLock};
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::{fold_name, same_name};
use tidalite_types::{ColumnSchema, TableId};

pub(crate) const PG_CATALOG_OID: i64 = 11;
pub(crate) const PUBLIC_OID: i64 = 2_200;
const INFORMATION_SCHEMA_OID: i64 = 13_207;
pub(crate) const DATABASE_OID: i64 = 5;
pub(crate) const OWNER_OID: i64 = 10;
/// The role of a session whose user is not the owner.
const USER_OID: i64 = 16_383;
/// First number of user tables, as in PostgreSQL, and the distance of the numbers of their parts.
const TABLES_OID: i64 = 16_384;
const INDEXES_OID: i64 = 0x4000_0000;
const CONSTRAINTS_OID: i64 = 0x5000_0000;
/// Base of schema numbers: a schema has no id, so its number is derived from its name.
const SCHEMAS_OID: i64 = 0x3000_0000;
const SCHEMAS: u64 = 0x0fff_ffff;

/// Returns the number of a user table.
pub(crate) fn table_oid(id: TableId) -> i64 {
    TABLES_OID + i64::from(id.0)
}

/// Splits a table name into schema and name: `s.t` is `t` in `s`.
pub(crate) fn schema_and_name(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((PUBLIC, name))
}

pub(crate) fn schema_oid(name: &str) -> i64 {
    match name {
        PG_CATALOG => PG_CATALOG_OID,
        PUBLIC => PUBLIC_OID,
        INFORMATION_SCHEMA => INFORMATION_SCHEMA_OID,
        other => {
            // The hash is FNV-1a.
            let hash = fold_name(other)
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            SCHEMAS_OID + i64::try_from((hash ^ (hash >> 32)) & SCHEMAS).unwrap_or(0)
        }
    }
}

pub(crate) enum Kind {
    System(&'static Definition),
    Table(Arc<TableSnapshot>),
    /// The index that represents upsert keys.
    Index(Key),
}

/// A table, a view or an index.
pub(crate) struct Relation {
    pub oid: i64,
    pub schema: String,
    pub name: String,
    pub kind: Kind,
}

impl Relation {
    /// Returns the `relkind` letter of `pg_class`.
    pub fn letter(&self) -> &'static str {
        match &self.kind {
            Kind::System(definition) => definition.kind,
            Kind::Index(_) => "i",
            Kind::Table(table) => match &table.schema.view {
                None => "r",
                Some(view) if view.materialized.is_some() => "m",
                Some(_) => "v",
            },
        }
    }

    pub fn schema_oid(&self) -> i64 {
        schema_oid(&self.schema)
    }

    pub fn table(&self) -> Option<&Arc<TableSnapshot>> {
        match &self.kind {
            Kind::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn is_system(&self) -> bool {
        matches!(self.kind, Kind::System(_))
    }
}

/// The upsert keys of a table, which are its primary key.
#[derive(Clone)]
pub(crate) struct Key {
    pub table: Arc<TableSnapshot>,
}

impl Key {
    /// Returns the key of a table; `None` when its rows may repeat.
    pub fn of(table: &Arc<TableSnapshot>) -> Option<Key> {
        (!table.schema.dedup.is_empty()).then(|| Key { table: table.clone() })
    }

    pub fn name(&self) -> String {
        format!("{}_pkey", self.table_name())
    }

    pub fn schema(&self) -> &str {
        schema_and_name(&self.table.schema.name).0
    }

    pub fn table_name(&self) -> &str {
        schema_and_name(&self.table.schema.name).1
    }

    pub fn index_oid(&self) -> i64 {
        INDEXES_OID + i64::from(self.table.id.0)
    }

    pub fn constraint_oid(&self) -> i64 {
        CONSTRAINTS_OID + i64::from(self.table.id.0)
    }

    /// Returns the key columns with their numbers in the table, from 1.
    pub fn columns(&self) -> Vec<(i64, &ColumnSchema)> {
        let all = &self.table.schema.columns;
        let place = |id| all.iter().zip(1..).find(|(column, _)| column.id == id).map(|(column, at)| (at, column));
        self.table.schema.dedup.iter().filter_map(|id| place(*id)).collect()
    }
}

pub(crate) struct Role {
    pub oid: i64,
    pub name: String,
}

/// The objects of the database at one instant.
pub(crate) struct Objects {
    pub catalog: Arc<dyn Catalog>,
    pub session: Arc<SessionContext>,
    relations: OnceLock<Vec<Relation>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Objects {
    pub fn new(catalog: Arc<dyn Catalog>) -> Objects {
        let session = catalog.session();
        Objects { catalog, session, relations: OnceLock::new() }
    }

    /// Returns system relations first, then user relations by name, then indexes.
    pub fn relations(&self) -> &[Relation] {
        self.relations.get_or_init(|| {
            let mut names = self.catalog.table_names();
            names.sort_by_key(|name| fold_name(name));
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let tables: Vec<_> = self.catalog.snapshots(&names).into_iter().flatten().collect();
            let system = definitions::tables().iter().map(|definition| Relation {
                oid: i64::from(definition.oid),
                schema: definition.schema.to_owned(),
                name: definition.name.to_owned(),
                kind: Kind::System(definition),
            });
            let own = tables.iter().map(|table| {
                let (schema, name) = schema_and_name(&table.schema.name);
                let kind = Kind::Table(table.clone());
                Relation { oid: table_oid(table.id), schema: schema.to_owned(), name: name.to_owned(), kind }
            });
            let indexes = tables.iter().filter_map(Key::of).map(|key| Relation {
                oid: key.index_oid(),
                schema: key.schema().to_owned(),
                name: key.name(),
                kind: Kind::Index(key),
            });
            system.chain(own).chain(indexes).collect()
        })
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.relations().iter().filter_map(Relation::table)
    }

    pub fn keys(&self) -> Vec<Key> {
        self.tables().filter_map(Key::of).collect()
    }

    pub fn relation(&self, oid: i64) -> Option<&Relation> {
        self.relations().iter().find(|relation| relation.oid == oid)
    }

    /// Returns a relation by the words of its name, which are folded unless quoted.
    pub fn relation_named(&self, name: &str) -> Option<&Relation> {
        let words = names::identifiers(name)?;
        let (schema, name) = match &words[..] {
            [name] => (None, name),
            [schema, name] | [_, schema, name] => (Some(schema), name),
            _ => return None,
        };
        let found = |wanted: &str| {
            let is_it = |r: &&Relation| same_name(&r.schema, wanted) && same_name(&r.name, name);
            self.relations().iter().find(is_it)
        };
        match schema {
            Some(schema) => found(schema),
            None => found(PG_CATALOG).or_else(|| found(PUBLIC)),
        }
    }

    /// Returns the name of a relation, qualified and quoted as needed.
    pub fn written(&self, relation: &Relation) -> String {
        let name = names::quoted(&relation.name);
        match relation.schema.as_str() {
            PUBLIC | PG_CATALOG => name,
            schema => format!("{}.{name}", names::quoted(schema)),
        }
    }

    /// Returns numbers and names of the schemas, by name.
    pub fn schemas(&self) -> Vec<(i64, String)> {
        let mut all: Vec<String> = self.relations().iter().map(|relation| relation.schema.clone()).collect();
        all.extend([PUBLIC, PG_CATALOG, INFORMATION_SCHEMA].map(str::to_owned));
        all.sort();
        all.dedup_by(|a, b| same_name(a, b));
        all.into_iter().map(|name| (schema_oid(&name), name)).collect()
    }

    /// Returns the owner role, and the role of the session if it is another one.
    pub fn roles(&self) -> Vec<Role> {
        let mut all = vec![Role { oid: OWNER_OID, name: OWNER.to_owned() }];
        if self.session.user != OWNER {
            all.push(Role { oid: USER_OID, name: self.session.user.clone() });
        }
        all
    }
}
