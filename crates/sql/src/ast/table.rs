//! CREATE TABLE and ALTER TABLE.

use super::{Duration, Expr, Ident, ObjectName, Query, TypeName};

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// Whether OR REPLACE is said.
    pub or_replace: bool,
    /// Whether TEMPORARY is said.
    pub temporary: bool,
    /// Whether an existing table is left alone.
    pub if_not_exists: bool,
    /// The name.
    pub name: ObjectName,
    /// Its columns.
    pub source: TableSource,
    /// What stands behind them.
    pub storage: TableStorage,
}

/// Where the columns of a new table come from.
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
        /// What it asks.
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
    /// What stands behind it.
    pub options: Vec<ColumnOption>,
}

/// What may stand behind a column.
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

/// What stands behind the columns or the query of a table.
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
    /// `CAST(column AS type)` behind a query.
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

/// How long rows are kept: `30 DAYS`, `4w`, `0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeToLive {
    /// How many.
    pub count: String,
    /// The unit, a letter or a word; `None` behind 0.
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
    /// A number with any unit behind it, such as `500ms`.
    Number {
        /// The digits.
        digits: String,
        /// The unit.
        unit: Option<Ident>,
    },
    /// A text.
    Text(String),
    /// A word, such as DEFAULT.
    Word(Ident),
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// Whether a missing table is passed over.
    pub if_exists: bool,
    /// The table.
    pub table: ObjectName,
    /// What is done.
    pub action: AlterAction,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumns {
        /// Whether existing ones are left alone.
        if_not_exists: bool,
        /// The columns.
        columns: Vec<ColumnDef>,
    },
    /// ADD CONSTRAINT, ADD PRIMARY KEY and their like.
    AddConstraint(TableElement),
    /// DROP COLUMN.
    DropColumns {
        /// Whether missing ones are passed over.
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
        /// What stands behind it.
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
        /// Whether it is set.
        is_set: bool,
    },
    /// ALTER COLUMN … ADD INDEX, DROP INDEX, CACHE, NOCACHE, SYMBOL CAPACITY n, as QuestDB has them.
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
    /// SET TYPE WAL and its like.
    SetType(Ident),
    /// DEDUP ENABLE UPSERT KEYS(columns); empty for DEDUP DISABLE.
    Dedup(Vec<Ident>),
    /// DROP PARTITION.
    DropPartitions(Partitions),
    /// ATTACH, DETACH, CONVERT PARTITION, with the words behind it.
    Partitions {
        /// ATTACH, DETACH, CONVERT or FORCE DROP.
        verb: String,
        /// Which.
        which: Partitions,
        /// The format behind CONVERT … TO.
        format: Option<Ident>,
    },
    /// SQUASH PARTITIONS.
    SquashPartitions,
    /// SEAL.
    Seal,
    /// SUSPEND WAL, RESUME WAL, with what stands behind it.
    Wal(String),
    /// OWNER TO name.
    OwnerTo(Ident),
    /// SET SCHEMA name.
    SetSchema(Ident),
}

/// Which partitions.
#[derive(Clone, Debug, PartialEq)]
pub enum Partitions {
    /// LIST 'a', 'b'.
    List(Vec<Expr>),
    /// WHERE condition.
    Where(Expr),
}
