//! Types of parameters from the values they stand among: of `coalesce(x, $1)`, of the results of a CASE, of what those are
//! compared with. What stands beside a parameter itself is found by the planner.

use super::bound::parameter_of;
use super::written::fill;
use crate::door;
use crate::functions::shifts;
use crate::plan::CHOOSING;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use tidalite_types::ColumnType;

type Types = Vec<Option<ColumnType>>;

/// Fills in types that are not known; whether there were any.
pub(super) fn types(plan: &LogicalPlan, types: &mut Types) -> bool {
    let before = types.iter().flatten().count();
    let walked = plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                of_parts(e, &schema, types);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && types.iter().flatten().count() > before
}

/// What the parts of an expression say of each other.
fn of_parts(expr: &Expr, schema: &DFSchema, types: &mut Types) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.is_numerical_operators() || op.supports_propagation() =>
        {
            alike(&[left.as_ref(), right.as_ref()], schema, types);
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            alike(&[expr.as_ref(), low.as_ref(), high.as_ref()], schema, types);
        }
        Expr::InList(InList { expr, list, .. }) => {
            alike(&std::iter::once(expr.as_ref()).chain(list).collect::<Vec<_>>(), schema, types);
        }
        Expr::Case(case) => {
            if let Some(of) = &case.expr {
                let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
                alike(&std::iter::once(of.as_ref()).chain(whens).collect::<Vec<_>>(), schema, types);
            }
            alike(&results(case), schema, types);
        }
        Expr::ScalarFunction(function) if CHOOSING.contains(&function.name()) => {
            alike(&function.args.iter().collect::<Vec<_>>(), schema, types);
        }
        // A row that is not there has the last argument's value.
        Expr::WindowFunction(function) if shifts::is_shift(&function.fun) => {
            alike(&function.params.args.iter().step_by(2).collect::<Vec<_>>(), schema, types);
        }
        // As PostgreSQL has it where nothing says more.
        Expr::Negative(of) => expect(of, ColumnType::Double, types),
        _ => {}
    }
}

fn results(case: &Case) -> Vec<&Expr> {
    let results = case.when_then_expr.iter().map(|(_, then)| then);
    results.chain(&case.else_expr).map(AsRef::as_ref).collect()
}

/// The first whose type is known gives it to the others.
fn alike(parts: &[&Expr], schema: &DFSchema, types: &mut Types) {
    let known = parts.iter().find_map(|part| {
        let (_, field) = part.to_field(schema).ok()?;
        door::column_type(&field)
    });
    if let Some(known) = known {
        parts.iter().for_each(|part| expect(part, known, types));
    }
}

/// Parameters that are the value of an expression, or one it is chosen from, have its type.
fn expect(expr: &Expr, column_type: ColumnType, types: &mut Types) {
    match expr {
        Expr::Placeholder(_) => {
            if let Some(n) = parameter_of(expr) {
                fill(types, n + 1, Some(column_type));
            }
        }
        Expr::Alias(alias) => expect(&alias.expr, column_type, types),
        Expr::Negative(of) => expect(of, column_type, types),
        Expr::Case(case) => results(case).into_iter().for_each(|part| expect(part, column_type, types)),
        Expr::ScalarFunction(function) if CHOOSING.contains(&function.name()) => {
            function.args.iter().for_each(|part| expect(part, column_type, types));
        }
        _ => {}
    }
}
