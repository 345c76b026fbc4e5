//! CREATE TABLE and ALTER TABLE.

use super::{Duration, Expr, Ident, ObjectName, Query, TypeName};

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// True if OR REPLACE is given.
    pub or_replace: bool,
    /// True if TEMPORARY is given.
    pub temporary: bool,
    /// True if IF NOT EXISTS is given.
    pub if_not_exists: bool,
    /// The name.
    pub name: ObjectName,
    /// Its columns.
    pub source: TableSource,
    /// Storage clauses.
    pub storage: TableStorage,
}

/// Source of the columns of a new table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableSource {
    /// A list.
    Elements(Vec<TableElement>),
    /// AS query.
    Query(Box<Query>),
    /// LIKE another table.
    Like(ObjectName),
}

/// An element of the list of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    /// A column.
    Column(ColumnDef),
    /// `[CONSTRAINT name] PRIMARY KEY (a, b)` and other constraints of the whole table.
    Constraint {
        /// The name.
        name: Option<Ident>,
        /// The constraint.
        option: ColumnOption,
        /// The columns.
        columns: Vec<Ident>,
    },
    /// `LIKE table`.
    Like(ObjectName),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// The name.
    pub name: Ident,
    /// The type.
    pub data_type: TypeName,
    /// Column options.
    pub options: Vec<ColumnOption>,
}

/// An option of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnOption {
    /// CAPACITY n.
    Capacity(String),
    /// CACHE.
    Cache,
    /// NOCACHE.
    NoCache,
    /// INDEX [CAPACITY n].
    Index(Option<String>),
    /// NULL.
    Null,
    /// NOT NULL.
    NotNull,
    /// DEFAULT value.
    Default(Expr),
    /// PRIMARY KEY.
    PrimaryKey,
    /// UNIQUE.
    Unique,
    /// CHECK (condition).
    Check(Expr),
    /// REFERENCES table (columns).
    References {
        /// The table.
        table: ObjectName,
        /// Its columns.
        columns: Vec<Ident>,
    },
    /// COLLATE name.
    Collate(ObjectName),
    /// GENERATED … AS IDENTITY, GENERATED ALWAYS AS (expression).
    Generated(Option<Expr>),
}

/// Storage clauses, which follow the columns or the query of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStorage {
    /// TIMESTAMP(column).
    pub timestamp: Option<Ident>,
    /// PARTITION BY unit.
    pub partition_by: Option<Ident>,
    /// TTL.
    pub ttl: Option<TimeToLive>,
    /// DEDUP UPSERT KEYS(columns).
    pub dedup: Vec<Ident>,
    /// `CAST(column AS type)` after a query.
    pub casts: Vec<ColumnDef>,
    /// `INDEX(column CAPACITY n)`.
    pub indexes: Vec<Ident>,
    /// WITH name = value, ….
    pub settings: Vec<StorageSetting>,
    /// WAL or BYPASS WAL.
    pub wal: Option<bool>,
    /// IN VOLUME name.
    pub volume: Option<Ident>,
    /// OWNED BY name.
    pub owner: Option<Ident>,
}

/// Time to live of rows: `30 DAYS`, `4w`, `0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeToLive {
    /// Number of units.
    pub count: String,
    /// Unit, a letter or a word; `None` after 0.
    pub unit: Option<Ident>,
}

/// `name = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageSetting {
    /// The name.
    pub name: Ident,
    /// The value.
    pub value: SettingValue,
}

/// The value of a setting of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// `10s`.
    Duration(Duration),
    /// A number followed by any unit, such as `500ms`.
    Number {
        /// The digits.
        digits: String,
        /// The unit.
        unit: Option<Ident>,
    },
    /// A string.
    Text(String),
    /// A word, such as DEFAULT.
    Word(Ident),
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// True if IF EXISTS is given.
    pub if_exists: bool,
    /// The table.
    pub table: ObjectName,
    /// Action.
    pub action: AlterAction,
}

/// Action of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumns {
        /// True if IF NOT EXISTS is given.
        if_not_exists: bool,
        /// The columns.
        columns: Vec<ColumnDef>,
    },
    /// ADD CONSTRAINT, ADD PRIMARY KEY and the other table constraints.
    AddConstraint(TableElement),
    /// DROP COLUMN.
    DropColumns {
        /// True if IF EXISTS is given.
        if_exists: bool,
        /// The columns.
        columns: Vec<Ident>,
    },
    /// DROP CONSTRAINT.
    DropConstraint(Ident),
    /// RENAME COLUMN.
    RenameColumns(Vec<(Ident, Ident)>),
    /// RENAME TO.
    RenameTo(ObjectName),
    /// ALTER COLUMN … TYPE.
    ColumnType {
        /// The column.
        column: Ident,
        /// The type.
        data_type: TypeName,
        /// Column options.
        options: Vec<ColumnOption>,
        /// USING.
        using: Option<Expr>,
    },
    /// ALTER COLUMN … SET DEFAULT; `None` for DROP DEFAULT.
    ColumnDefault {
        /// The column.
        column: Ident,
        /// The value.
        value: Option<Expr>,
    },
    /// ALTER COLUMN … SET NOT NULL or DROP NOT NULL.
    ColumnNotNull {
        /// The column.
        column: Ident,
        /// True for SET, false for DROP.
        is_set: bool,
    },
    /// ALTER COLUMN … ADD INDEX, DROP INDEX, CACHE, NOCACHE, SYMBOL CAPACITY n (QuestDB).
    ColumnStorage {
        /// The column.
        column: Ident,
        /// The words, in upper case.
        change: String,
    },
    /// SET TTL.
    SetTtl(TimeToLive),
    /// SET PARAM name = value, ….
    SetParam(Vec<StorageSetting>),
    /// SET TYPE name.
    SetType(Ident),
    /// DEDUP ENABLE UPSERT KEYS(columns); empty for DEDUP DISABLE.
    Dedup(Vec<Ident>),
    /// DROP PARTITION.
    DropPartitions(Partitions),
    /// ATTACH, DETACH, CONVERT or FORCE DROP PARTITION.
    Partitions {
        /// ATTACH, DETACH, CONVERT or FORCE DROP.
        verb: String,
        /// Partitions to change.
        which: Partitions,
        /// Format of CONVERT … TO.
        format: Option<Ident>,
    },
    /// SQUASH PARTITIONS.
    SquashPartitions,
    /// SEAL.
    Seal,
    /// SUSPEND WAL or RESUME WAL, with the rest of the clause.
    Wal(String),
    /// OWNER TO name.
    OwnerTo(Ident),
    /// SET SCHEMA name.
    SetSchema(Ident),
}

/// Selection of partitions.
#[derive(Clone, Debug, PartialEq)]
pub enum Partitions {
    /// LIST 'a', 'b'.
    List(Vec<Expr>),
    /// WHERE condition.
    Where(Expr),
}
