//! LATEST ON: of each key the row that is latest, the one that came last among those of the same time.

use super::relations::{derived, time_named, time_of};
use super::time_order::scans_in_time_order;
use crate::dialect::call;
use crate::{Error, Result};
use datafusion::common::{Column, DFSchemaRef, Result as DFResult};
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::sql::sqlparser::ast;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Rows of the input, in order of time.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct LatestOnNode {
    input: LogicalPlan,
    pub time: Column,
    pub keys: Vec<Column>,
}

pub(super) fn plan(
    rows: ast::Query,
    arguments: Vec<ast::Expr>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let input = context.plan(derived(rows))?;
    let mut columns = Vec::new();
    for argument in &arguments {
        let is_none = matches!(argument, ast::Expr::Value(_)) || call(argument).is_some();
        let expr = context.sql_to_expr(argument.clone(), input.schema())?;
        match normalize_col(expr, &input)? {
            Expr::Column(column) => columns.push(column),
            Expr::Literal(value, _) if value.is_null() && columns.is_empty() && is_none => {
                columns.push(time_of(&input, "LATEST BY")?);
            }
            _ => {
                return Err(Error::invalid("LATEST ON and its PARTITION BY take columns")
                    .with_hint("compute other keys in a sub-query: SELECT * FROM (SELECT …) LATEST ON …"));
            }
        }
    }
    if columns.is_empty() {
        return Err(Error::invalid("LATEST ON takes a timestamp and then PARTITION BY columns"));
    }
    let time = columns.remove(0);
    latest_on(input, Some(time), columns)
}

/// Returns the plan of LATEST ON; without a time the rows are in the order of their designated timestamp.
pub(crate) fn latest_on(input: LogicalPlan, time: Option<Column>, keys: Vec<Column>) -> Result<LogicalPlan> {
    let time = match time {
        Some(time) => {
            time_named(&input, &time.name)?;
            time
        }
        None => time_of(&input, "LATEST BY")?,
    };
    let node = LatestOnNode { input: scans_in_time_order(input)?, time, keys };
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

impl LatestOnNode {
    /// The same over other rows, with more keys.
    pub(super) fn with_keys(&self, input: LogicalPlan, more: &[Column]) -> LatestOnNode {
        LatestOnNode { input, time: self.time.clone(), keys: self.keys.iter().chain(more).cloned().collect() }
    }
}

impl fmt::Debug for LatestOnNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for LatestOnNode {
    fn partial_cmp(&self, _: &LatestOnNode) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for LatestOnNode {
    fn name(&self) -> &'static str {
        "LatestOn"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        std::iter::once(&self.time).chain(&self.keys).cloned().map(Expr::Column).collect()
    }

    /// A filter on the keys takes whole groups away; one on anything else would make another row the latest.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let is_key = |name: &str| self.keys.iter().any(|key| key.name == name);
        let is_ambiguous = |name: &str| self.schema().columns_with_unqualified_name(name).len() > 1;
        let names = self.schema().fields().iter().map(|f| f.name().clone());
        names.filter(|name| !is_key(name) || is_ambiguous(name)).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|k| k.flat_name()).collect();
        write!(f, "LatestOn: time={}, keys=[{}]", self.time.flat_name(), keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<LatestOnNode> {
        let mut columns = super::columns_of(exprs)?;
        let time = columns.remove(0);
        Ok(LatestOnNode { input: inputs.swap_remove(0), time, keys: columns })
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let own = std::iter::once(&self.time).chain(&self.keys);
        let mut needed: Vec<usize> = own.map(|c| self.schema().maybe_index_of_column(c)).collect::<Option<_>>()?;
        needed.extend(output);
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}
