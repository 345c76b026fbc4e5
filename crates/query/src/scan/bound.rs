//! What can still be among the first rows of an order: a condition that gets narrower while the query runs.
//!
//! Whoever keeps the first n rows (`TopK`) knows, once it has n, that rows behind the last of them are not wanted, and says
//! so as an expression over the keys of the order. Out comes what that says of the first key alone, as a [`Predicate`]:
//! it is true of every row that can still be wanted, and of others. Blocks without such a row are not looked at, of
//! others only the rows that have it are read.

use super::filters::Filter;
use super::predicate::Predicate;
use super::prune::Piece;
use super::read::Reader;
use crate::Result;
use crate::functions::floats::KEY;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Column as Named;
use datafusion::logical_expr::{BinaryExpr as Binary, Expr, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::ColumnSchema;

#[derive(Clone, Debug)]
pub(crate) struct Bound {
    condition: Arc<DynamicFilterPhysicalExpr>,
    /// The first key, and its place in what the condition is over.
    key: ColumnSchema,
    at: usize,
}

impl Bound {
    pub fn new(condition: Arc<DynamicFilterPhysicalExpr>, key: ColumnSchema, at: usize) -> Bound {
        Bound { condition, key, at }
    }

    /// The column that it bounds.
    pub fn key(&self) -> &str {
        &self.key.name
    }

    fn predicate(&self, snapshot: &TableSnapshot) -> Option<Predicate> {
        let said = self.of_key(&self.condition.current().ok()?)?;
        Predicate::of(&said, &snapshot.schema)
    }

    /// What an expression says of the key; `None` where that is nothing.
    fn of_key(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        if is_column(expr, self.at) {
            return Some(Expr::Column(Named::new_unqualified(&self.key.name)));
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return Some(Expr::Literal(literal.value().clone(), None));
        }
        if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
            return Some(self.of_key(is_null.arg())?.is_null());
        }
        if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
            return Some(self.of_key(is_not_null.arg())?.is_not_null());
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (self.of_key(binary.left()), self.of_key(binary.right()));
        let both = |left, right| Expr::BinaryExpr(Binary::new(Box::new(left), *binary.op(), Box::new(right)));
        match (binary.op(), left, right) {
            (_, Some(left), Some(right)) => Some(both(left, right)),
            // A row that satisfies both satisfies the one that is understood.
            (Operator::And, Some(said), None) | (Operator::And, None, Some(said)) => Some(said),
            _ => None,
        }
    }
}

/// Whether it is that column, as it is or as floating point is ordered.
pub(crate) fn is_column(expr: &Arc<dyn PhysicalExpr>, at: usize) -> bool {
    if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return function.name() == KEY && matches!(function.args(), [arg] if is_column(arg, at));
    }
    expr.downcast_ref::<Column>().is_some_and(|column| column.index() == at)
}

/// A bound as one thread knows it.
pub(super) struct Within {
    bound: Bound,
    /// Changes whenever the condition does.
    generation: u64,
    known: Option<(Predicate, Filter)>,
}

impl Within {
    pub fn new(bound: Bound) -> Within {
        Within { bound, generation: 0, known: None }
    }

    /// The rows of a piece that can still be wanted; `None` where there are none.
    pub fn read(&mut self, reader: &Reader, piece: Piece) -> Result<Option<RecordBatch>> {
        let generation = self.bound.condition.snapshot_generation();
        if generation != self.generation {
            self.generation = generation;
            let predicate = self.bound.predicate(&reader.snapshot);
            self.known = predicate.map(|predicate| {
                let filter = Filter::of_values(&reader.snapshot, &predicate);
                (predicate, filter)
            });
        }
        let Some((predicate, filter)) = &self.known else { return reader.read(piece) };
        if let Piece::Block { segment, block } = piece {
            let segment = &reader.snapshot.segments[segment];
            let zone = segment.zone(predicate.column, block).map_err(|e| reader.snapshot.named(e))?;
            if !predicate.may_match(zone.as_ref(), segment.block_rows(block)) {
                return Ok(None);
            }
        }
        reader.read_within(piece, filter)
    }
}
