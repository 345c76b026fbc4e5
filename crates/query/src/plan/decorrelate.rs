//! Sub-queries as joins and as values, for expressions in any position.
//!
//! - `EXISTS`, `IN`, `ANY` and `ALL` among the conditions of WHERE are left to the stock rules where these are correct
//!   ([`simple`], [`predicates`]): semi and anti joins.
//! - In all other positions each predicate becomes a column of three values, true, false or NULL ([`marks`]). A mark
//!   join computes that column, so the outer rows are never multiplied.
//! - Correlated sub-queries that the stock rules cannot handle (an inequality, LIMIT, UNION, values computed from the
//!   outer row) are evaluated for all outer rows at once, after Neumann and Kemper, "Unnesting Arbitrary Queries". The
//!   *domain* is the set of distinct values of the outer columns that the sub-query references. A cross join of the
//!   domain with the sub-query's tables ([`push`]) gives each domain value its own rows: groups, row numbers and
//!   windows are those of one value. The result is joined to the outer rows by the value.

mod by_time;
mod join_on;
mod marks;
mod order;
mod predicates;
mod push;
mod references;
mod scalars;
mod simple;
mod unmarked;

pub(crate) use unmarked::Unmarked;

use crate::functions::one_row;
use crate::{Error, Result};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, ExprSchema, JoinType, Result as DFResult, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::count::count;
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort, Subquery,
    SubqueryAlias, lit,
};
use predicates::{Node, Place};
use references::free;
use std::sync::Arc;

/// Before anything is optimised; sub-queries within others come after those around them.
pub(crate) fn decorrelated(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_asked = false;
    plan.apply_with_subqueries(|node| {
        is_asked |= node.contains_outer_reference();
        node.apply_expressions(|expr| {
            is_asked |= predicates::has_subquery(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(if is_asked { Decorrelator::default().walk(plan)? } else { plan })
}

/// The different values of the columns that a sub-query looks at.
struct Domain {
    /// A plan with one column for each of `outer`.
    plan: LogicalPlan,
    outer: Vec<Column>,
}

/// A sub-query's rows for every value of the domain, and the columns that are the value.
struct Pushed {
    plan: LogicalPlan,
    value: Vec<Column>,
}

/// Maximum number of copied plan nodes in all: nested sub-queries would multiply them.
const NODES_MAX: usize = 5_000;

#[derive(Default)]
struct Decorrelator {
    names: usize,
    nodes: usize,
}

/// The rows that sub-queries are asked for: as they came, which the domains are taken of, and with the answers.
struct Asked {
    rows: LogicalPlan,
    answered: LogicalPlan,
}

impl Decorrelator {
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Counts a plan that is put in once more.
    fn copied(&mut self, plan: &LogicalPlan) -> DFResult<()> {
        plan.apply_with_subqueries(|_| {
            self.nodes += 1;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if self.nodes > NODES_MAX {
            let message = "the statement is too large: its sub-queries are within each other too often";
            return Err(Error::invalid(message).into());
        }
        Ok(())
    }

    fn walk(&mut self, plan: LogicalPlan) -> DFResult<LogicalPlan> {
        let plan = scalars::with_nulls(plan)?;
        let plan = match plan {
            LogicalPlan::Join(join) => match self.lateral(join)? {
                Ok(done) => return Ok(done),
                Err(join) => LogicalPlan::Join(join),
            },
            LogicalPlan::Values(values) if values.values.iter().flatten().any(predicates::has_predicate) => {
                push::rows_of(&values)?
            }
            other => other,
        };
        let plan = plan.map_children(|child| Ok(Transformed::yes(self.walk(child)?)))?.data;
        let plan = match plan {
            LogicalPlan::Filter(filter) => self.filter(filter)?,
            LogicalPlan::Projection(projection) => self.projection(projection)?,
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate)?,
            LogicalPlan::Sort(sort) => self.sort(sort)?,
            LogicalPlan::Join(join) => self.join_on(join)?,
            LogicalPlan::Window(_) | LogicalPlan::Distinct(_) => self.expressions(plan)?,
            other => other,
        };
        self.nested(plan)
    }

    /// What is nested in sub-queries that stay such.
    fn nested(&mut self, plan: LogicalPlan) -> DFResult<LogicalPlan> {
        let done = plan.map_subqueries(|subquery| {
            let LogicalPlan::Subquery(of) = subquery else { return Ok(Transformed::no(subquery)) };
            let subquery = Arc::new(self.walk(of.subquery.as_ref().clone())?);
            Ok(Transformed::yes(LogicalPlan::Subquery(Subquery { subquery, ..of })))
        })?;
        Ok(done.data)
    }

    fn filter(&mut self, filter: Filter) -> DFResult<LogicalPlan> {
        let schema = filter.input.schema().clone();
        let (mut ours, mut stock, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for part in split_conjunction_owned(predicates::normalized(filter.predicate)?) {
            let part = predicates::conjunct(part, &schema)?;
            if predicates::is_ours(&part, &schema, Place::CONJUNCT)? {
                ours.push(part);
            } else if predicates::has_predicate(&part) || part.contains_outer() {
                stock.push(part);
            } else {
                others.push(part);
            }
        }
        if ours.is_empty() {
            let Some(predicate) = conjunction(others.into_iter().chain(stock)) else {
                return Ok(Arc::unwrap_or_clone(filter.input));
            };
            return Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?));
        }
        // Conditions without sub-queries come first and leave fewer rows. A reference to a row further out stays above
        // the joins, where the stock rules find it.
        let mut input = Arc::unwrap_or_clone(filter.input);
        let (below, above): (Vec<_>, Vec<_>) = stock.into_iter().partition(|part| !part.contains_outer());
        if let Some(rest) = conjunction(others.into_iter().chain(below)) {
            input = self.nested(LogicalPlan::Filter(Filter::try_new(rest, Arc::new(input))?))?;
        }
        let found = self.answered(ours, &mut input, Place::CONJUNCT)?;
        if let Some(rest) = conjunction(found.into_iter().chain(above)) {
            input = self.nested(LogicalPlan::Filter(Filter::try_new(rest, Arc::new(input))?))?;
        }
        LogicalPlanBuilder::from(input).project(schema.columns().into_iter().map(Expr::Column))?.build()
    }

    fn projection(&mut self, projection: Projection) -> DFResult<LogicalPlan> {
        let place = Place::value(Node::Projection);
        let whole = LogicalPlan::Projection(projection);
        let LogicalPlan::Projection(projection) = &whole else { return Ok(whole) };
        if !predicates::any_is_ours(&projection.expr, projection.input.schema(), place)? {
            return Ok(whole);
        }
        let names = NamePreserver::new(&whole);
        // Rows that are in order stay so when they are sorted after the join.
        let (mut input, order) = match projection.input.as_ref() {
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (input.as_ref().clone(), Some(expr.clone())),
            other => (other.clone(), None),
        };
        let kept: Vec<_> = projection.expr.iter().map(|expr| names.save(expr)).collect();
        let found = self.answered(projection.expr.clone(), &mut input, place)?;
        let found = found.into_iter().zip(kept).map(|(expr, name)| name.restore(expr)).collect();
        if let Some(order) = order {
            input = LogicalPlanBuilder::from(input).sort(order)?.build()?;
        }
        Ok(LogicalPlan::Projection(Projection::try_new(found, Arc::new(input))?))
    }

    fn aggregate(&mut self, aggregate: Aggregate) -> DFResult<LogicalPlan> {
        let (schema, place) = (aggregate.input.schema(), Place::value(Node::Other));
        if !predicates::any_is_ours(&aggregate.group_expr, schema, place)?
            && !predicates::any_is_ours(&aggregate.aggr_expr, schema, place)?
        {
            return Ok(LogicalPlan::Aggregate(aggregate));
        }
        let groups = aggregate.group_expr.len();
        let exprs: Vec<Expr> = aggregate.group_expr.into_iter().chain(aggregate.aggr_expr).collect();
        let mut input = aggregate.input.as_ref().clone();
        let mut found = self.answered_with_names(exprs, &mut input, place)?;
        let values = found.split_off(groups);
        Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), found, values)?))
    }

    /// Handles a node of one input whose expressions carry its column names.
    fn expressions(&mut self, plan: LogicalPlan) -> DFResult<LogicalPlan> {
        let (exprs, place) = (plan.expressions(), Place::value(Node::Other));
        let [input] = plan.inputs()[..] else { return Ok(plan) };
        if !predicates::any_is_ours(&exprs, input.schema(), place)? {
            return Ok(plan);
        }
        let mut input = input.clone();
        let columns = plan.schema().columns();
        if let LogicalPlan::Window(_) = &plan {
            // The stock planner accepts one alias on a window expression, so a projection restores the names.
            let (count, found) = (exprs.len(), self.answered(exprs, &mut input, place)?);
            let plan = self.nested(plan.with_new_exprs(found, vec![input])?)?;
            let windows = plan.schema().columns().split_off(plan.schema().fields().len() - count);
            let (own, named) = columns.split_at(columns.len() - count);
            let named = windows
                .into_iter()
                .zip(named)
                .map(|(window, name)| Expr::Column(window).alias_qualified(name.relation.clone(), name.name.clone()));
            let all: Vec<Expr> = own.iter().cloned().map(Expr::Column).chain(named).collect();
            return LogicalPlanBuilder::from(plan).project(all)?.build();
        }
        if let LogicalPlan::Distinct(Distinct::On(on)) = plan {
            let distinct = self.distinct_on(on, &mut input, place)?;
            let plan = self.nested(distinct)?;
            return LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build();
        }
        let found = self.answered_with_names(exprs, &mut input, place)?;
        let plan = self.nested(plan.with_new_exprs(found, vec![input])?)?;
        LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
    }

    fn distinct_on(&mut self, on: DistinctOn, input: &mut LogicalPlan, place: Place) -> DFResult<LogicalPlan> {
        let DistinctOn { on_expr, select_expr, sort_expr, .. } = on;
        let keys = self.answered(on_expr, input, place)?;
        let selected = self.answered_with_names(select_expr, input, place)?;
        let sort = sort_expr.unwrap_or_default();
        let orders = self.answered(sort.iter().map(|key| key.expr.clone()).collect(), input, place)?;
        let sort: Vec<_> = sort.into_iter().zip(orders).map(|(key, expr)| key.with_expr(expr)).collect();
        let sort = (!sort.is_empty()).then_some(sort);
        let on = DistinctOn::try_new(keys, selected, sort, Arc::new(input.clone()))?;
        Ok(LogicalPlan::Distinct(Distinct::On(on)))
    }

    fn sort(&mut self, sort: Sort) -> DFResult<LogicalPlan> {
        let place = Place::value(Node::Other);
        let columns = sort.input.schema().columns();
        let sort = order::with_looked_at(sort)?;
        let keys: Vec<Expr> = sort.expr.iter().map(|key| key.expr.clone()).collect();
        if !predicates::any_is_ours(&keys, sort.input.schema(), place)? {
            return Ok(LogicalPlan::Sort(sort));
        }
        let mut input = sort.input.as_ref().clone();
        let found = self.answered(keys, &mut input, place)?;
        // Keys become columns: a merge of sorted rows compares existing columns.
        let names: Vec<String> = found.iter().map(|_| self.name("__order")).collect();
        let all: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let all = all.into_iter().chain(found.into_iter().zip(&names).map(|(key, name)| key.alias(name)));
        let input = self.nested(LogicalPlanBuilder::from(input).project(all)?.build()?)?;
        let keys = names.into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
        let expr = sort.expr.into_iter().zip(keys).map(|(key, expr)| key.with_expr(expr)).collect();
        let sorted = LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: sort.fetch });
        LogicalPlanBuilder::from(sorted).project(columns.into_iter().map(Expr::Column))?.build()
    }

    /// The expressions with columns in the place of our sub-queries; `input` gets those columns.
    fn answered(&mut self, exprs: Vec<Expr>, input: &mut LogicalPlan, place: Place) -> DFResult<Vec<Expr>> {
        let mut out = Vec::with_capacity(exprs.len());
        let mut asked = Asked { rows: input.clone(), answered: input.clone() };
        for expr in exprs {
            out.push(self.answer(predicates::normalized(expr)?, place, &mut asked)?);
        }
        *input = asked.answered;
        Ok(out)
    }

    /// Same as [`Self::answered`], and keeps the names of the expressions.
    fn answered_with_names(&mut self, exprs: Vec<Expr>, input: &mut LogicalPlan, place: Place) -> DFResult<Vec<Expr>> {
        let named: Vec<String> = exprs.iter().map(|expr| expr.schema_name().to_string()).collect();
        let found = self.answered(exprs.clone(), input, place)?;
        let with_name =
            |((found, old), name): ((Expr, Expr), String)| if found == old { found } else { found.alias(name) };
        Ok(found.into_iter().zip(exprs).zip(named).map(with_name).collect())
    }

    /// A column of `input` with the one value of a sub-query, NULL where it has no row.
    fn scalar(&mut self, subquery: &LogicalPlan, input: &mut Asked) -> DFResult<Expr> {
        let value = first_column(subquery)?;
        let (domain, pushed) = self.pushed(subquery, &input.rows, true)?;
        let pushed = if at_most_one(subquery) { pushed } else { one_of_each(pushed, &value)? };
        self.joined(input, &domain, pushed, Expr::Column(value))
    }

    fn pushed(
        &mut self,
        subquery: &LogicalPlan,
        input: &LogicalPlan,
        may_lose_empty: bool,
    ) -> DFResult<(Domain, Pushed)> {
        let domain = domain(subquery, input)?;
        let Some(pushed) = self.push(subquery, &domain, may_lose_empty)? else {
            return Err(refused(subquery, &domain));
        };
        // Sub-queries within it now look at what is in it only.
        let plan = self.walk(pushed.plan)?;
        Ok((domain, Pushed { plan, value: pushed.value }))
    }

    /// Joins what was found for each value to the rows with that value; gives the column of `answer`.
    fn joined(&mut self, input: &mut Asked, domain: &Domain, found: Pushed, answer: Expr) -> DFResult<Expr> {
        let mut found = self.joined_all(input, domain, found, &[answer])?;
        found.pop().ok_or_else(|| Error::internal("a join of a sub-query has lost its column").into())
    }

    /// Same as [`Self::joined`], for several columns.
    ///
    /// `found` has at most one row for each value; without a domain, one row.
    fn joined_all(
        &mut self,
        input: &mut Asked,
        domain: &Domain,
        found: Pushed,
        answers: &[Expr],
    ) -> DFResult<Vec<Expr>> {
        let alias = self.name("__found");
        let names: Vec<String> = (0..found.value.len()).map(|n| format!("__key{n}")).collect();
        let given: Vec<String> = (0..answers.len()).map(|n| format!("__answer{n}")).collect();
        let keys = found.value.iter().zip(&names).map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let answers = answers.iter().zip(&given).map(|(answer, name)| answer.clone().alias(name));
        let right = LogicalPlanBuilder::from(found.plan).project(keys.chain(answers))?.alias(&alias)?.build()?;
        let rows = input.answered.clone();
        input.answered = if names.is_empty() {
            LogicalPlanBuilder::from(right).cross_join(rows)?.build()?
        } else {
            let keys = names.iter().map(|name| Column::new(Some(alias.as_str()), name));
            let on = same_values(domain, keys, input.rows.schema())?;
            LogicalPlanBuilder::from(rows).join_on(right, JoinType::Left, on)?.build()?
        };
        Ok(given.iter().map(|name| Expr::Column(Column::new(Some(alias.as_str()), name))).collect())
    }

    /// A join whose right side looks at the left one; the join as it was if it is none of ours.
    fn lateral(&mut self, join: Join) -> DFResult<std::result::Result<LogicalPlan, Join>> {
        let is_asked =
            references::is_lateral(&join.right) && matches!(join.join_type, JoinType::Inner | JoinType::Left);
        if !is_asked || !looks_at(&join.right, join.left.schema())? || simple::is_lateral_for_stock(&join)? {
            return Ok(Err(join));
        }
        let left = self.walk(join.left.as_ref().clone())?;
        let inner = without_marker(&join.right)?;
        let columns: Vec<Column> = join.schema.columns();
        let (domain, pushed) = self.pushed(&inner, &left, false)?;
        let same = same_values(&domain, pushed.value.iter().cloned(), left.schema())?;
        let mut on: Vec<Expr> = join.on.into_iter().map(|(l, r)| l.eq(r)).chain(join.filter).collect();
        let mut joined = LogicalPlanBuilder::from(left);
        if join.join_type == JoinType::Left {
            on.splice(0..0, same);
            joined = joined.join_on(pushed.plan, JoinType::Left, on)?;
        } else {
            joined = joined.join_on(pushed.plan, JoinType::Inner, same)?;
            if let Some(on) = conjunction(on) {
                joined = joined.filter(on)?;
            }
        }
        Ok(Ok(joined.project(columns.into_iter().map(Expr::Column))?.build()?))
    }
}

fn looks_at(plan: &LogicalPlan, schema: &DFSchemaRef) -> DFResult<bool> {
    Ok(free(plan)?.iter().any(|column| schema.has_column(column)))
}

/// The different values that the columns of `input` have which the sub-query looks at.
fn domain(subquery: &LogicalPlan, input: &LogicalPlan) -> DFResult<Domain> {
    let mut outer: Vec<Column> = Vec::new();
    for column in free(subquery)? {
        if input.schema().has_column(&column) && !outer.contains(&column) {
            outer.push(column);
        }
    }
    let mut is_volatile = false;
    input.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            is_volatile |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if is_volatile {
        let message = "a sub-query cannot look at rows that are made by chance";
        return Err(Error::invalid(message).with_hint("create a table of these rows first").into());
    }
    let columns = outer.iter().enumerate().map(|(n, column)| Expr::Column(column.clone()).alias(format!("__key{n}")));
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(input.clone()).project(columns)?.distinct()?.build()?;
    Ok(Domain { plan, outer })
}

fn refused(subquery: &LogicalPlan, domain: &Domain) -> datafusion::common::DataFusionError {
    let name = domain.outer.first().map_or("", |column| column.name.as_str());
    let (mut is_recursive, mut is_splice) = (false, false);
    let walked = subquery.apply(|node| {
        is_recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
        is_splice |= matches!(node, LogicalPlan::Extension(of) if by_time::is_splice(of));
        Ok(TreeNodeRecursion::Continue)
    });
    let what = match (walked.is_ok(), is_recursive, is_splice) {
        (true, true, _) => "a recursive query",
        (true, _, true) => "a SPLICE JOIN",
        _ => "this sub-query",
    };
    let mut error = Error::invalid(format!("{what} cannot look at \"{name}\" of the query around it"));
    error.subject = Some(name.to_owned());
    error.with_hint("make its rows for all values in a sub-query in FROM, and join that").into()
}

/// That the outer columns have the values of `keys`. As plain equalities, by which rows are hashed, that hold for NULL,
/// too: no other condition of the join is then taken for one that does.
fn same_values(domain: &Domain, keys: impl Iterator<Item = Column>, schema: &DFSchemaRef) -> DFResult<Vec<Expr>> {
    let mut out = Vec::new();
    for (outer, key) in domain.outer.iter().zip(keys) {
        let field = schema.field_from_column(outer)?;
        let (left, right) = (Expr::Column(outer.clone()), Expr::Column(key));
        if !field.is_nullable() {
            out.push(left.eq(right));
            continue;
        }
        match ScalarValue::new_default(field.data_type()) {
            Ok(default) if !field.data_type().is_nested() => {
                let known = |side: &Expr| coalesce(vec![side.clone(), lit(default.clone())]);
                out.push(known(&left).eq(known(&right)));
                out.push(left.is_null().eq(right.is_null()));
            }
            _ => out.push(datafusion::logical_expr::binary_expr(
                left,
                datafusion::logical_expr::Operator::IsNotDistinctFrom,
                right,
            )),
        }
    }
    Ok(out)
}

fn first_column(plan: &LogicalPlan) -> DFResult<Column> {
    let Some(column) = plan.schema().columns().into_iter().next() else {
        return Err(Error::invalid("a sub-query has to give a column here").into());
    };
    match plan.schema().fields().len() {
        1 => Ok(column),
        count => Err(Error::invalid(format!("subquery must return only one column, not {count}")).into()),
    }
}

/// Whether a sub-query has one row at most whatever is in its tables.
fn at_most_one(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Filter(Filter { input, .. }) => at_most_one(input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(_) => plan.max_rows().is_some_and(|rows| rows <= 1),
        _ => false,
    }
}

/// The only row of each domain value, an error if there are more.
fn one_of_each(pushed: Pushed, value: &Column) -> DFResult<Pushed> {
    let keys = pushed.value.iter().cloned().map(Expr::Column);
    let (first, rows) = (first_value(Expr::Column(value.clone()), Vec::new()), count(lit(1)));
    let found = LogicalPlanBuilder::from(pushed.plan)
        .aggregate(keys.clone(), [first.alias("__first"), rows.alias("__rows")])?
        .build()?;
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let one = one_row::call(column("__first"), column("__rows"))?.alias_qualified(value.relation.clone(), &value.name);
    let plan = LogicalPlanBuilder::from(found).project(keys.chain([one]))?.build()?;
    Ok(Pushed { plan, value: pushed.value })
}

/// The plan of a lateral table without the node that says so.
fn without_marker(plan: &LogicalPlan) -> DFResult<LogicalPlan> {
    let done = plan.clone().transform_down(|node| match node {
        LogicalPlan::Subquery(of) => Ok(Transformed::new(of.subquery.as_ref().clone(), true, TreeNodeRecursion::Jump)),
        LogicalPlan::SubqueryAlias(_) => Ok(Transformed::no(node)),
        other => Ok(Transformed::new(other, false, TreeNodeRecursion::Jump)),
    })?;
    Ok(done.data)
}
