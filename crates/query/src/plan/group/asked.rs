//! Which rows of a plan are asked for by what is above it.
//!
//! ORDER BY with a LIMIT asks for the first rows in an order. It reaches the groups only through what neither drops a row
//! nor makes one, and by columns that pass as they are; what orders them stays above.

use crate::exec::group::Wanted;
use crate::functions::floats;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, Projection, SkipType, Sort};
use tidalite_operators::group::{Best, By};

/// More are not worth keeping apart from the others.
const BEST_MAX: usize = 1 << 16;

#[derive(Clone)]
pub(super) enum Asked {
    All,
    /// Not all of them.
    Some,
    /// Any so many.
    Any(usize),
    /// Those that come first in an order of columns.
    Best(Best),
}

impl Asked {
    /// What `plan`, of which this is asked, asks of the one below it.
    pub fn below(&self, plan: &LogicalPlan) -> Result<Asked> {
        Ok(match (plan, self) {
            (LogicalPlan::Limit(limit), _) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
                (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) => Asked::Any(skip.saturating_add(fetch)),
                _ => Asked::Some,
            },
            (LogicalPlan::Sort(sort), _) => first_of(sort).map_or(Asked::All, Asked::Best),
            (LogicalPlan::Projection(projection), Asked::Best(best)) => {
                best_below(best, projection).map_or(Asked::All, Asked::Best)
            }
            (LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_), _) => self.clone(),
            _ => Asked::All,
        })
    }

    /// Whether it does not matter which rows come.
    pub fn is_of_any(&self) -> bool {
        matches!(self, Asked::Some | Asked::Any(_))
    }

    /// Of groups.
    pub fn wanted(&self) -> Wanted {
        match self {
            Asked::All | Asked::Some => Wanted::All,
            Asked::Any(groups) => Wanted::Any(*groups),
            Asked::Best(best) => Wanted::Best(best.clone()),
        }
    }
}

fn first_of(sort: &Sort) -> Option<Best> {
    let groups = sort.fetch.filter(|rows| (1..=BEST_MAX).contains(rows))?;
    let schema = sort.input.schema();
    let mut by = Vec::new();
    for key in &sort.expr {
        if let Passed::Column(column) = passed(&key.expr, schema)? {
            by.push(By { column, is_descending: !key.asc, nulls_first: key.nulls_first });
        }
    }
    Some(Best { groups, by })
}

/// The same order, of the input of a projection.
fn best_below(best: &Best, projection: &Projection) -> Option<Best> {
    let mut by = Vec::new();
    for key in &best.by {
        match passed(projection.expr.get(key.column)?, projection.input.schema())? {
            Passed::Column(column) => by.push(By { column, ..key.clone() }),
            Passed::Constant => {}
        }
    }
    Some(Best { groups: best.groups, by })
}

enum Passed {
    Column(usize),
    /// No two rows differ in it.
    Constant,
}

/// What an expression is that changes no order.
fn passed(expr: &Expr, schema: &DFSchema) -> Option<Passed> {
    match expr {
        Expr::Column(column) => schema.index_of_column(column).ok().map(Passed::Column),
        Expr::Literal(..) => Some(Passed::Constant),
        Expr::Alias(alias) => passed(&alias.expr, schema),
        // Groups are compared by floating point as it says.
        Expr::ScalarFunction(function) if function.name() == floats::KEY => passed(function.args.first()?, schema),
        _ => None,
    }
}
