//! `FROM long_sequence(n, seed1, seed2)`: random values get the seeds and the number of the row, and
//! `timestamp_sequence(start, step)` becomes the start and the steps up to the row.

use super::operators::text;
use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use crate::functions::{random, sequence, series};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};
use std::cell::Cell;
use tidalite_sql::Span;
use tidalite_sql::ast::{BinaryOperator, FunctionArg, RelationKind, Select};

/// The call of `long_sequence` in FROM.
pub(super) struct Sequence {
    /// The column with the number of the row.
    x: Expr,
    seeds: Option<[Expr; 2]>,
    /// The number of random values so far.
    calls: Cell<usize>,
}

impl Binder<'_> {
    /// Returns the first `long_sequence` of FROM.
    pub(super) fn sequence(&self, select: &Select, place: Place) -> Result<Option<Sequence>> {
        let relations = select
            .from
            .iter()
            .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
        for relation in relations {
            let RelationKind::Function { call, .. } = &relation.kind else { continue };
            if super::names::folded_parts(&call.name) != [series::LONG_SEQUENCE] {
                continue;
            }
            let alias = relation.alias.as_ref().map(|alias| super::names::folded(&alias.name));
            let table = alias.unwrap_or_else(|| series::LONG_SEQUENCE.to_owned());
            let own = |column: &&super::scope::ScopeColumn| {
                column.name == "x" && column.relation.as_ref().is_some_and(|relation| relation.table() == table)
            };
            let Some(x) = place.scope.columns.iter().find(own).map(|column| column.value.clone()) else { continue };
            let seeds = call.args.iter().skip(1).filter_map(|arg| match arg {
                FunctionArg::Expr(expr) => Some(self.expr(expr, place)),
                _ => None,
            });
            let seeds = <[Expr; 2]>::try_from(seeds.collect::<Result<Vec<_>>>()?).ok();
            return Ok(Some(Sequence { x, seeds, calls: Cell::new(0) }));
        }
        Ok(None)
    }

    /// Returns the value of a random function or a sequence of timestamps that belongs to a `long_sequence`.
    pub(super) fn of_sequence(&self, name: &str, args: &[Expr], place: Place, span: Span) -> Result<Option<Expr>> {
        let Some(own) = place.sequence else { return Ok(None) };
        if random::NAMES.contains(&name) {
            let Some([first, second]) = own.seeds.clone() else { return Ok(None) };
            own.calls.set(own.calls.get() + 1);
            let number = lit(i64::try_from(own.calls.get()).unwrap_or(i64::MAX));
            let seeded = [first, second, number, own.x.clone(), text(name)];
            return self
                .scalar_call(random::SEEDED, seeded.into_iter().chain(args.iter().cloned()).collect())
                .map(Some);
        }
        let [start, step] = args else { return Ok(None) };
        if !sequence::NAMES.contains(&name) {
            return Ok(None);
        }
        let after = if name.ends_with("_ns") { format!("{}_ns", sequence::AFTER) } else { sequence::AFTER.to_owned() };
        let steps = self.steps(step, &own.x, place, span)?;
        self.scalar_call(&after, vec![start.clone(), steps]).map(Some)
    }

    /// Returns the sum of the steps before row `x`.
    fn steps(&self, step: &Expr, x: &Expr, place: Place, span: Span) -> Result<Expr> {
        let mut differs = false;
        step.apply(|expr| {
            differs |= matches!(expr, Expr::ScalarFunction(_) | Expr::Column(_));
            Ok(TreeNodeRecursion::Continue)
        })?;
        let schema = &place.scope.schema;
        if !differs {
            let before = self.operator(BinaryOperator::Subtract, x.clone(), lit(1_i64), schema, span)?;
            return self.operator(BinaryOperator::Multiply, before, step.clone(), schema, span);
        }
        let Some(sum) = self.state.aggregate_functions().get("sum").cloned() else {
            return Err(Error::internal("aggregate sum is not registered").into());
        };
        let frame = WindowFrame::new_bounds(
            WindowFrameUnits::Rows,
            WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            WindowFrameBound::Preceding(ScalarValue::UInt64(Some(1))),
        );
        let params = WindowFunctionParams {
            args: vec![step.clone()],
            partition_by: Vec::new(),
            order_by: vec![SortExpr::new(x.clone(), true, false)],
            window_frame: frame,
            filter: None,
            null_treatment: None,
            distinct: false,
        };
        let fun = WindowFunctionDefinition::AggregateUDF(sum);
        let before = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
        self.scalar_call("coalesce", vec![before, lit(0_i64)])
    }
}
