//! What a scan reads, in values that could be sent to another machine.

use super::predicate::Predicate;
use super::several::Several;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;
use tidalite_types::{ColumnId, SegmentId, TableId, Txn};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScanSpec {
    pub table: TableId,
    pub txn: Txn,
    /// The segments that can hold wanted rows; rows of staging are those up to `txn` that no segment has.
    pub segments: Vec<SegmentId>,
    /// Columns in the order they come out.
    pub projection: Vec<ColumnId>,
    /// Only rows that satisfy all of these come out; one a column, but for those that are not combined.
    pub predicates: Vec<Predicate>,
    /// And all of these.
    pub several: Vec<Several>,
    /// Whether these may become machine code.
    pub compiles: bool,
    /// Rows after these need not come out.
    pub limit: Option<usize>,
    pub order: Order,
}

impl ScanSpec {
    /// Whether rows of the pieces that are read may stay away.
    pub fn is_filtered(&self) -> bool {
        !self.predicates.is_empty() || !self.several.is_empty()
    }
}

/// The order of rows within each partition of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Any: whoever is free takes the next piece.
    #[default]
    Free,
    /// By the designated timestamp; in a table without one in order of arrival.
    Ascending,
    /// By the designated timestamp, latest first.
    Descending,
}

/// What comes out of a column.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Its values.
    Values,
    /// Of a symbol its code, a number of 32 bits.
    Codes,
    /// Of text a dictionary, in which rows may share a text.
    Texts,
    /// As these; where nothing else comes out, rows may be left out that have the text of another.
    TextsOnce,
    /// What is computed of it: an expression over column 0 that never falls while the column rises.
    Rising(Arc<dyn PhysicalExpr>),
}

/// What a column's numbers come to, instead of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Total {
    /// The place of the column among those of the scan.
    pub column: usize,
    /// Whether the sum is one of floating point, else it is one modulo 2⁶⁴.
    pub is_float: bool,
}
