//! Statements: the one place where the read side and the write side meet.

use crate::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Stops the statement; `None` takes the database's setting.
    pub timeout: Option<Duration>,
    /// Who asks, for [`Activity`]: a user, an address.
    pub client: String,
}

/// What a statement answers.
pub enum Response {
    Rows(Rows),
    /// A statement without rows: `tag` is its name as PostgreSQL's command tags ("CREATE TABLE", "INSERT", …),
    /// `rows` how many rows it wrote or removed.
    Done { tag: &'static str, rows: u64 },
}

/// The rows of a query. Dropping them stops it.
pub struct Rows {
    pub columns: Vec<OutputColumn>,
    pub schema: SchemaRef,
    /// Which column is the designated timestamp the rows come from, when one is selected as it is.
    pub timestamp: Option<usize>,
    /// Time spent before the first row could be computed: parse, plan, optimise.
    pub compile_time: Duration,
    pub stream: BoxStream<'static, Result<RecordBatch>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    pub name: String,
    /// SQL name of the type, as `SHOW COLUMNS` has it.
    pub type_name: String,
}

/// A statement under way.
#[derive(Clone, Debug)]
pub struct Activity {
    pub id: u64,
    pub client: String,
    pub sql: String,
    pub started: SystemTime,
}
