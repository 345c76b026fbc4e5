//! GROUP BY and aggregates.

use super::names::folded;
use super::order::{out_of_list, position};
use super::scope::Place;
use super::select::{Clauses, aliases};
use super::{Binder, Result};
use crate::Error;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::{expr_as_column_expr, find_aggregate_exprs};
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder, LogicalPlanBuilderOptions};
use std::collections::HashMap;
use tidalite_sql::ast::{self, ExprKind, GroupBy, GroupItem};
use tidalite_types::SqlState;

/// The maximum number of members of CUBE, each of which doubles the number of sets.
const CUBE_MAX: usize = 12;

impl Binder<'_> {
    /// Binds GROUP BY; `items` is the SELECT list.
    pub(super) fn groups(&self, clause: &GroupBy, items: &[Expr], place: Place) -> Result<Vec<Expr>> {
        match clause {
            GroupBy::All => {
                let is_key = |item: &&Expr| find_aggregate_exprs(std::iter::once(*item)).is_empty();
                Ok(items.iter().filter(is_key).map(|item| item.clone().unalias()).collect())
            }
            GroupBy::Items(keys) => {
                let groups = keys.iter().map(|key| self.group(key, items, place)).collect::<Result<Vec<_>>>()?;
                Ok(groups.into_iter().flatten().collect())
            }
        }
    }

    fn group(&self, item: &GroupItem, items: &[Expr], place: Place) -> Result<Vec<Expr>> {
        let own = |set: GroupingSet| Ok(vec![Expr::GroupingSet(set)]);
        match item {
            GroupItem::Expr(key) => Ok(vec![self.group_key(key, items, place)?]),
            GroupItem::Empty => Ok(Vec::new()),
            GroupItem::Set(keys) => self.group_keys(keys, items, place),
            GroupItem::Rollup(sets) if are_single(sets) => {
                own(GroupingSet::Rollup(self.group_keys(sets.iter().flatten(), items, place)?))
            }
            GroupItem::Cube(sets) if are_single(sets) => {
                own(GroupingSet::Cube(self.group_keys(sets.iter().flatten(), items, place)?))
            }
            sets => own(GroupingSet::GroupingSets(self.grouping_sets(sets, items, place)?)),
        }
    }

    fn group_keys<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k ast::Expr>,
        items: &[Expr],
        place: Place,
    ) -> Result<Vec<Expr>> {
        keys.into_iter().map(|key| self.group_key(key, items, place)).collect()
    }

    /// Returns the sets that an item of GROUPING SETS stands for.
    fn grouping_sets(&self, item: &GroupItem, items: &[Expr], place: Place) -> Result<Vec<Vec<Expr>>> {
        let parts = |sets: &[Vec<ast::Expr>]| {
            sets.iter().map(|set| self.group_keys(set, items, place)).collect::<Result<Vec<_>>>()
        };
        let together = |sets: &mut dyn Iterator<Item = &Vec<Expr>>| sets.flatten().cloned().collect::<Vec<Expr>>();
        Ok(match item {
            GroupItem::Empty => vec![Vec::new()],
            GroupItem::Expr(key) => vec![vec![self.group_key(key, items, place)?]],
            GroupItem::Set(keys) => vec![self.group_keys(keys, items, place)?],
            GroupItem::Rollup(sets) => {
                let parts = parts(sets)?;
                (0..=parts.len()).rev().map(|count| together(&mut parts[..count].iter())).collect()
            }
            GroupItem::Cube(sets) => {
                let parts = parts(sets)?;
                if parts.len() > CUBE_MAX {
                    return Err(Error::invalid(format!("CUBE takes at most {CUBE_MAX} columns")).into());
                }
                let is_in = |set: usize, at: usize| set >> (parts.len() - 1 - at) & 1 == 1;
                let of = |set: usize| {
                    together(&mut parts.iter().enumerate().filter(|(at, _)| is_in(set, *at)).map(|(_, part)| part))
                };
                (0..1_usize << parts.len()).rev().map(of).collect()
            }
            GroupItem::Sets(sets) => {
                let sets = sets.iter().map(|set| self.grouping_sets(set, items, place)).collect::<Result<Vec<_>>>()?;
                sets.into_iter().flatten().collect()
            }
        })
    }

    /// Binds a key: a position of the SELECT list, a column, a SELECT alias, or an expression.
    fn group_key(&self, key: &ast::Expr, items: &[Expr], place: Place) -> Result<Expr> {
        match item_at(key, items, "GROUP BY")? {
            Some(item) => Ok(item),
            None => self.expr(key, place),
        }
    }

    /// Binds the keys of DISTINCT ON, where a number is a position and a bare name is a SELECT alias first.
    pub(super) fn distinct_on(
        &self,
        distinct: Option<&ast::Distinct>,
        items: &[Expr],
        place: Place,
    ) -> Result<Vec<Expr>> {
        let Some(ast::Distinct::On(keys)) = distinct else { return Ok(Vec::new()) };
        let aliases = aliases(items);
        let key = |key: &ast::Expr| -> Result<Expr> {
            if let Some(item) = item_at(key, items, "SELECT DISTINCT ON")? {
                return Ok(item);
            }
            if let ExprKind::Column(name) = &key.kind
                && let [only] = name.parts.as_slice()
                && let Some((_, value)) = aliases.iter().find(|(alias, _)| *alias == folded(only))
            {
                return Ok(value.clone());
            }
            self.expr(key, place)
        };
        keys.iter().map(key).collect()
    }
}

/// Returns the selected expression at the position that a key states; `None` for a key that is not a position.
fn item_at(key: &ast::Expr, items: &[Expr], clause: &str) -> Result<Option<Expr>> {
    let Some(position) = position(key) else { return Ok(None) };
    match position.checked_sub(1).and_then(|at| items.get(at)) {
        Some(item) => Ok(Some(item.clone().unalias())),
        None => Err(out_of_list(clause, position, key.span).into()),
    }
}

/// Returns true if each member of ROLLUP or CUBE is one key.
fn are_single(sets: &[Vec<ast::Expr>]) -> bool {
    sets.iter().all(|set| set.len() == 1)
}

/// Expressions that a plan has computed, and the columns that hold them.
pub(super) struct Rebase {
    pairs: Vec<(Expr, Expr)>,
}

impl Rebase {
    /// Each pair is an expression and the expression under which `plan` has it as a column.
    pub fn new(pairs: impl Iterator<Item = (Expr, Expr)>, plan: &LogicalPlan) -> Result<Rebase> {
        let pairs = pairs.map(|(expr, own)| Ok((expr, expr_as_column_expr(&own, plan)?)));
        Ok(Rebase { pairs: pairs.collect::<Result<Vec<_>>>()? })
    }

    pub fn apply(&self, expr: Expr) -> Result<Expr> {
        let done = expr.transform_down(|expr| match self.pairs.iter().find(|(known, _)| *known == expr) {
            Some((_, column)) => Ok(Transformed::yes(column.clone())),
            None => Ok(Transformed::no(expr)),
        });
        Ok(done.data()?)
    }

    fn has_column(&self, column: &Column) -> bool {
        self.pairs.iter().any(|(_, own)| matches!(own, Expr::Column(own) if own == column))
    }
}

/// Plans groups and aggregates, and rebases the other clauses on them.
pub(super) fn grouped(input: LogicalPlan, clauses: Clauses, aggregates: Vec<Expr>) -> Result<(LogicalPlan, Clauses)> {
    let groups = clauses.groups.clone().unwrap_or_default();
    // Names of columns are taken.
    let columns = groups.iter().filter(|group| matches!(group, Expr::Column(_)));
    let mut names: HashMap<String, Expr> =
        columns.map(|column| (column.schema_name().to_string(), column.clone())).collect();
    let groups: Vec<Expr> = groups.into_iter().map(|group| named_apart(group, &mut names)).collect();
    let named: Vec<Expr> = aggregates.into_iter().map(|aggregate| named_apart(aggregate, &mut names)).collect();
    let options = LogicalPlanBuilderOptions::new().with_add_implicit_group_by_exprs(true);
    let builder = LogicalPlanBuilder::from(input.clone()).with_options(options);
    let plan = builder.aggregate(groups, named.clone())?.build()?;
    let LogicalPlan::Aggregate(aggregate) = &plan else {
        return Err(Error::internal("an aggregation became another plan").into());
    };
    let mut own: Vec<Expr> = Vec::new();
    aggregate.group_expr.iter().for_each(|group| flatten(group, &mut own));
    own.extend(named);
    let rebase = Rebase::new(own.into_iter().map(|expr| (expr.clone().unalias(), expr)), &input)?;
    let clauses = clauses.rebased(&rebase)?;
    let clauses = with_output_order(clauses);
    check(&rebase, &clauses)?;
    Ok((plan, clauses))
}

/// Gives an expression an alias if another one has the name that it would have as a column: names omit casts.
pub(super) fn named_apart(expr: Expr, names: &mut HashMap<String, Expr>) -> Expr {
    if matches!(expr, Expr::Column(_) | Expr::GroupingSet(_)) {
        return expr;
    }
    let name = expr.schema_name().to_string();
    let mut own = name.clone();
    let mut number = 1;
    while let Some(known) = names.get(&own) {
        if *known == expr {
            break;
        }
        number += 1;
        own = format!("{name} ({number})");
    }
    names.insert(own.clone(), expr.clone());
    if own == name { expr } else { expr.alias(own) }
}

fn flatten(group: &Expr, out: &mut Vec<Expr>) {
    match group {
        Expr::GroupingSet(GroupingSet::Rollup(exprs) | GroupingSet::Cube(exprs)) => out.extend_from_slice(exprs),
        Expr::GroupingSet(GroupingSet::GroupingSets(lists)) => out.extend(lists.iter().flatten().cloned()),
        other => out.push(other.clone()),
    }
}

/// ORDER BY of a selected expression becomes the output column.
fn with_output_order(clauses: Clauses) -> Clauses {
    let items = &clauses.items;
    let output = |expr: &Expr| {
        items.iter().find_map(|item| match item {
            Expr::Alias(alias) if *alias.expr == *expr => {
                Some(Expr::Column(Column::new_unqualified(alias.name.clone())))
            }
            _ => None,
        })
    };
    let order = clauses.order.iter().map(|key| match output(&key.expr) {
        Some(column) => key.with_expr(column),
        None => key.clone(),
    });
    Clauses { order: order.collect(), ..clauses }
}

/// Refuses columns that are neither grouped nor within an aggregate.
fn check(rebase: &Rebase, clauses: &Clauses) -> Result<()> {
    let is_output = |column: &Column| {
        column.relation.is_none()
            && clauses.items.iter().any(|item| matches!(item, Expr::Alias(alias) if alias.name == column.name))
    };
    let order = clauses.order.iter().map(|key| &key.expr);
    let own = clauses.items.iter().chain(&clauses.having).chain(&clauses.qualify).map(|expr| (expr, false));
    for (expr, sees_output) in own.chain(order.chain(&clauses.on).map(|expr| (expr, true))) {
        expr.apply(|expr| {
            if let Expr::Column(column) = expr
                && !rebase.has_column(column)
                && !(sees_output && is_output(column))
            {
                return Err(not_grouped(column).into());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

pub(super) fn not_grouped(column: &Column) -> Error {
    let name = column.flat_name();
    Error::invalid(format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"))
        .about(column.name.clone())
        .with_code(SqlState::GROUPING_ERROR)
}
