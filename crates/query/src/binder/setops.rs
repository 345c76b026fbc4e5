//! UNION, INTERSECT and EXCEPT.

use super::number_types::typed_members;
use super::scope::Env;
use super::{Binder, Result};
use crate::Error;
use crate::dialect::halves;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use tidalite_sql::ast::{Body, SetOperator, SetQuantifier, SetTerm};
use tidalite_types::SqlState;

/// A chain of more UNIONs becomes a balanced tree: the time to plan grows with its height.
const CHAIN_MAX: usize = 16;

impl Binder<'_> {
    pub(super) fn set_operations(&self, first: &Body, rest: &[SetTerm], env: &Env) -> Result<LogicalPlan> {
        if rest.len() > CHAIN_MAX && is_chain(rest) {
            let mut plans: Vec<Result<LogicalPlan>> = vec![Ok(self.body(first, env)?)];
            for term in rest {
                plans.push(Ok(self.body(&term.body, env)?));
            }
            let join = |left: Result<LogicalPlan>, right: Result<LogicalPlan>| -> Result<LogicalPlan> {
                combined(left?, right?, &rest[0])
            };
            return halves(plans, &join).unwrap_or_else(|| Err(Error::internal("a UNION without queries").into()));
        }
        let mut left = self.body(first, env)?;
        for term in rest {
            left = combined(left, self.body(&term.body, env)?, term)?;
        }
        Ok(left)
    }
}

/// Returns true if the terms are UNIONs of one kind, in which the order of evaluation does not matter.
fn is_chain(rest: &[SetTerm]) -> bool {
    let is_all = |term: &SetTerm| term.quantifier == Some(SetQuantifier::All);
    rest.iter().all(|term| term.op == SetOperator::Union && !term.by_name && is_all(term) == is_all(&rest[0]))
}

/// Combines two plans by the operator of a term.
pub(super) fn combined(left: LogicalPlan, right: LogicalPlan, term: &SetTerm) -> Result<LogicalPlan> {
    let is_all = term.quantifier == Some(SetQuantifier::All);
    if !term.by_name && left.schema().fields().len() != right.schema().fields().len() {
        let name = match term.op {
            SetOperator::Union => "UNION",
            SetOperator::Except => "EXCEPT",
            SetOperator::Intersect => "INTERSECT",
        };
        let error = Error::invalid(format!("each {name} query must have the same number of columns"));
        return Err(error.about(name.to_lowercase()).with_code(SqlState::SYNTAX_ERROR).into());
    }
    let (left, right) = typed_members(left, right, term.by_name)?;
    Ok(match (term.op, term.by_name) {
        (SetOperator::Union, false) if is_all => LogicalPlanBuilder::from(left).union(right)?.build()?,
        (SetOperator::Union, false) => LogicalPlanBuilder::from(left).union_distinct(right)?.build()?,
        (SetOperator::Union, true) if is_all => LogicalPlanBuilder::from(left).union_by_name(right)?.build()?,
        (SetOperator::Union, true) => LogicalPlanBuilder::from(left).union_by_name_distinct(right)?.build()?,
        (SetOperator::Intersect, false) => LogicalPlanBuilder::intersect(left, right, is_all)?,
        (SetOperator::Except, false) => LogicalPlanBuilder::except(left, right, is_all)?,
        (_, true) => return Err(Error::invalid("BY NAME is allowed only with UNION").into()),
    })
}
