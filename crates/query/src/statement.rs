//! A statement as the parser understood it: what is to be done, nothing of how.

use crate::binder::Tree;
use crate::names::Words;
use crate::pg_catalog::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::tables::{CATALOG, SCHEMA};
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;
use tidalite_types::schema::fold_name;
use tidalite_types::{ColumnType, Command, PartitionBy, Ttl};

pub use crate::dialect::RefreshAsked;

#[derive(Clone, Debug)]
pub enum Statement {
    Query(Query),
    Explain {
        query: Query,
        is_analyze: bool,
    },
    /// Changes of schema or content that need no query. One statement can ask for several, in this order.
    Commands {
        tag: &'static str,
        commands: Vec<Command>,
    },
    CreateTableAs(CreateTableAs),
    CreateView(CreateView),
    SetRefresh {
        view: Name,
        refresh: RefreshAsked,
    },
    RefreshView {
        view: Name,
        scope: RefreshScope,
    },
    /// Lets a view that could not be refreshed try again, all of it.
    ResumeView {
        view: Name,
    },
    Insert(Insert),
    Copy(Copy),
    Delete(Delete),
    Update(Update),
    DropPartitions {
        table: String,
        which: Partitions,
    },
    /// Writes a table's partitions again for size.
    Seal {
        table: String,
    },
    CancelQuery(u64),
    /// Verifies what is stored of one table, or of all.
    Check {
        table: Option<Name>,
    },
    /// Copies the database to a folder or a URL.
    Backup {
        to: Name,
    },
    /// All tables and views in it have to go first, or with it.
    DropSchema {
        schema: Name,
        if_exists: bool,
        cascades: bool,
    },
    /// Several statements on the same snapshot, committed together.
    Compound(Compound),
    /// Indexes that IF EXISTS does not find: there are none.
    DropIndexes {
        names: Vec<String>,
    },
    /// Accepted and without effect: `BEGIN`, `SET`, …
    Nothing {
        tag: &'static str,
    },
}

impl Statement {
    /// Returns the name of a statement that writes to the database or to files; `None` for others.
    #[must_use]
    pub fn writes(&self) -> Option<&'static str> {
        match self {
            Statement::Commands { tag, .. } => Some(tag),
            Statement::CreateTableAs(_) => Some("CREATE TABLE AS"),
            Statement::CreateView(create) if create.materialized.is_none() => Some("CREATE VIEW"),
            Statement::CreateView(_) => Some("CREATE MATERIALIZED VIEW"),
            Statement::SetRefresh { .. } | Statement::ResumeView { .. } => Some("ALTER MATERIALIZED VIEW"),
            Statement::RefreshView { .. } => Some("REFRESH MATERIALIZED VIEW"),
            Statement::Insert(_) => Some("INSERT"),
            Statement::Copy(copy) if copy.is_from => Some("COPY FROM"),
            Statement::Copy(Copy { place: CopyPlace::File(_), .. }) => Some("COPY TO"),
            Statement::Delete(_) => Some("DELETE"),
            Statement::Update(_) => Some("UPDATE"),
            Statement::DropPartitions { .. } | Statement::Seal { .. } => Some("ALTER TABLE"),
            Statement::Backup { .. } => Some("BACKUP"),
            Statement::DropSchema { .. } => Some("DROP SCHEMA"),
            Statement::Compound(compound) if compound.tag == "MERGE" => Some("MERGE"),
            Statement::Compound(compound) => compound.statements().find_map(Statement::writes),
            Statement::Query(_)
            | Statement::Explain { .. }
            | Statement::Copy(_)
            | Statement::CancelQuery(_)
            | Statement::Check { .. }
            | Statement::DropIndexes { .. }
            | Statement::Nothing { .. } => None,
        }
    }

    /// Returns the name of a statement that cannot run in a transaction.
    ///
    /// Such a statement works on files or commits in steps.
    #[must_use]
    pub fn commits_itself(&self) -> Option<&'static str> {
        match self {
            Statement::CreateView(create) if create.materialized.is_some() => Some("CREATE MATERIALIZED VIEW"),
            Statement::SetRefresh { .. } | Statement::ResumeView { .. } => Some("ALTER MATERIALIZED VIEW"),
            Statement::RefreshView { .. } => Some("REFRESH MATERIALIZED VIEW"),
            Statement::DropPartitions { .. } => Some("ALTER TABLE DROP PARTITION"),
            Statement::Seal { .. } => Some("ALTER TABLE SEAL"),
            Statement::Backup { .. } => Some("BACKUP"),
            _ => None,
        }
    }
}

/// A statement of several steps: a query whose WITH changes rows, MERGE, or commands on several objects.
#[derive(Clone, Debug)]
pub struct Compound {
    /// PostgreSQL's command tag.
    pub tag: &'static str,
    pub steps: Vec<Step>,
}

impl Compound {
    /// Returns the statements of all steps.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.steps.iter().filter_map(|step| match step {
            Step::Named { statement, .. } | Step::Counted(statement) | Step::Answer(statement) => Some(&**statement),
            Step::OnceEach(_) => None,
        })
    }
}

/// A part of a [`Compound`].
#[derive(Clone, Debug)]
pub enum Step {
    /// The rows become a table of later steps; `columns` rename its columns.
    Named { name: String, columns: Vec<String>, statement: Box<Statement> },
    /// Fails if a row occurs twice.
    OnceEach(Delete),
    /// The changed rows are counted.
    Counted(Box<Statement>),
    /// The result is that of the whole statement.
    Answer(Box<Statement>),
}

/// The syntax trees of a query, with the words of the statement. At least one of the trees is present.
#[derive(Clone, Debug)]
pub struct Query {
    /// The tree of the stock parser, for the rewrites; `None` for a query that only the binder plans.
    pub(crate) ast: Option<Box<ast::Query>>,
    /// Only the last rows are wanted, so many.
    pub(crate) tail: Option<u64>,
    pub(crate) words: Arc<Words>,
    /// The tree of the whole statement's query, for the binder; `None` for a part of another statement.
    pub(crate) tree: Option<Arc<Tree>>,
}

impl Query {
    /// Creates a query that only the binder plans.
    pub(crate) fn from_tree(words: Arc<Words>, tree: Tree) -> Query {
        Query { ast: None, tail: None, words, tree: Some(Arc::new(tree)) }
    }

    /// Returns the tree of the stock parser.
    ///
    /// # Errors
    /// Only the binder plans the query.
    pub(crate) fn stock_ast(&self) -> Result<&ast::Query> {
        self.ast.as_deref().ok_or_else(|| Error::internal("only the binder plans the query"))
    }

    /// Returns the tree of a query that only the binder plans.
    pub(crate) fn only_tree(&self) -> Option<&Tree> {
        self.tree.as_deref().filter(|_| self.ast.is_none())
    }

    /// Returns true for VALUES.
    pub(crate) fn is_values(&self) -> bool {
        let is_values = |tree: &Tree| matches!(tree.query.body, tidalite_sql::ast::Body::Values(_));
        self.only_tree().is_some_and(is_values)
    }

    /// Returns the rows of VALUES that are constants; `types` are the types of the columns that the rows are for.
    #[must_use]
    pub fn constant_rows(&self, types: &[ColumnType]) -> Option<RecordBatch> {
        crate::binder::dml::constants::constant_rows(self.only_tree()?, types)
    }
}

#[derive(Clone, Debug)]
pub struct CreateTableAs {
    pub table: String,
    pub if_not_exists: bool,
    pub query: Query,
    /// `CAST(column AS type)` after the query: the type a column gets instead of the query's.
    pub casts: Vec<(String, ColumnType)>,
    pub designated: Option<String>,
    pub partition_by: PartitionBy,
    pub ttl: Option<Ttl>,
    pub lag_us: Option<u64>,
    pub dedup: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct CreateView {
    pub name: Name,
    pub or_replace: bool,
    pub if_not_exists: bool,
    /// The query as it was written, and where it begins.
    pub sql: String,
    pub query: Query,
    pub query_position: usize,
    pub materialized: Option<NewMaterialized>,
}

#[derive(Clone, Debug)]
pub struct NewMaterialized {
    /// The table it follows; `None` for the first of the query.
    pub base: Option<Name>,
    pub refresh: RefreshAsked,
    /// Whether it is left empty at first.
    pub is_deferred: bool,
    pub timestamp: Option<Name>,
    pub partition_by: Option<PartitionBy>,
    pub ttl: Option<Ttl>,
}

/// What of a materialized view is computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshScope {
    /// What changed.
    Incremental,
    Full,
    /// From and to, in microseconds since 1970.
    Range(i64, i64),
}

/// Rows from a file or a client into a table, or to one.
#[derive(Clone, Debug)]
pub struct Copy {
    pub is_from: bool,
    pub what: CopyWhat,
    pub place: CopyPlace,
    /// Always there once it is parsed.
    pub format: Option<CopyFormat>,
    pub header: Option<bool>,
    pub delimiter: Option<u8>,
    /// A text that stands for NULL.
    pub null: Option<String>,
    /// For a table that has to be made.
    pub timestamp: Option<Name>,
    pub partition_by: Option<PartitionBy>,
    /// Whether records that are no rows are left out.
    pub skips_bad: bool,
}

#[derive(Clone, Debug)]
pub enum CopyWhat {
    Table {
        table: Name,
        /// Empty for all.
        columns: Vec<Name>,
    },
    /// Those of a query, which stands in this text where it stands in the statement.
    Rows(String),
}

#[derive(Clone, Debug)]
pub enum CopyPlace {
    File(Name),
    /// `STDIN`, `STDOUT`.
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    Csv,
    /// PostgreSQL's: tabs between fields, `\\N` for NULL, backslashes before what would be misread.
    Text,
    Parquet,
    /// PostgreSQL's, from and to clients only.
    Binary,
}

#[derive(Clone, Debug)]
pub struct Insert {
    pub table: String,
    /// Empty for "all columns, in order".
    pub columns: Vec<Name>,
    pub query: Query,
    /// The table's place in the text.
    pub table_position: usize,
    /// The name of the table in expressions.
    pub alias: String,
    pub conflict: Option<OnConflict>,
    /// Gives what is returned of the rows written.
    pub returning: Option<Query>,
    /// Rows of one commit; `None` for all of them.
    pub commit_rows: Option<u64>,
}

/// ON CONFLICT: the action for new rows whose upsert keys exist.
#[derive(Clone, Debug)]
pub struct OnConflict {
    pub position: usize,
    /// The keys, when they are named.
    pub keys: Vec<Name>,
    /// The new values of existing rows; `None` for DO NOTHING.
    pub update: Option<Assigned>,
}

/// `SET column = expression, … [WHERE …]` of ON CONFLICT DO UPDATE.
#[derive(Clone, Debug)]
pub struct Assigned {
    pub columns: Vec<Name>,
    /// True if every column is assigned from the same column of EXCLUDED, without a condition.
    pub is_plain: bool,
    /// Selects the expressions, in the order of `columns`, and has the condition.
    pub query: Query,
}

#[derive(Clone, Debug)]
pub struct Delete {
    pub table: Name,
    /// Gives the addresses of the rows; `None` for all rows.
    pub query: Option<Query>,
    /// Gives what is returned of the rows deleted.
    pub returning: Option<Query>,
}

#[derive(Clone, Debug)]
pub struct Update {
    pub table: Name,
    /// Gives the addresses of the rows, and for each of `columns` what it becomes.
    pub query: Query,
    pub columns: Vec<Name>,
    /// Gives what is returned of the rows as they are then.
    pub returning: Option<Query>,
}

/// A name and its place in the text.
#[derive(Clone, Debug)]
pub struct Name {
    pub text: String,
    pub position: usize,
}

impl Name {
    /// Returns the name of a table of a schema in the database: `schema.table`, or only `table` for the schema and the
    /// catalog that a name may omit.
    ///
    /// # Errors
    /// The schema is a system schema, whose tables no statement changes.
    pub(crate) fn within(self, schema: &Name) -> Result<Name> {
        match fold_name(&schema.text).as_str() {
            SCHEMA | CATALOG => Ok(self),
            PG_CATALOG | INFORMATION_SCHEMA => {
                Err(Error::invalid(format!("schema \"{}\" cannot be changed", schema.text)).at(schema.position))
            }
            _ => Ok(Name { text: format!("{}.{}", schema.text, self.text), ..self }),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Partitions {
    /// By name, as `SHOW PARTITIONS` lists them.
    List(Vec<Name>),
    /// Those whose start satisfies the predicate.
    Where(Box<ast::Expr>, Arc<Words>),
}
