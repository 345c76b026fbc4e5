//! A sub-query's plan for every value of the domain at once: what it computes of rows, it computes of those of one value.
//!
//! Downwards until a part looks at no outer column: there the domain stands beside the rows. Upwards from there, each
//! node keeps the columns of the value, and groups, numbers and windows by them.

use super::references::{Renames, free, is_lateral, relabelled, resolved};
use super::{Decorrelator, Domain, Pushed, same_values};
use crate::functions::own_field;
use datafusion::common::{Column, DFSchemaRef, JoinType, Result, ScalarValue};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, ExprSchemable, FetchType, Filter, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Projection, SkipType, Sort, SortExpr, SubqueryAlias, Union, Unnest, Values, Window, lit, when,
};
use std::sync::Arc;

impl Decorrelator {
    /// `None` when the plan looks at outer columns where it cannot be helped. With `may_lose_empty`, a value for which
    /// all would be NULL may have no row.
    pub(super) fn push(&mut self, plan: &LogicalPlan, domain: &Domain, may_lose_empty: bool) -> Result<Option<Pushed>> {
        if !looks_at(plan, domain)? {
            return self.beside(plan, domain).map(Some);
        }
        match plan {
            LogicalPlan::Projection(of) => self.push_projection(plan, of, domain, may_lose_empty),
            LogicalPlan::Filter(of) => {
                let Some(input) = self.push(&of.input, domain, false)? else { return Ok(None) };
                let predicate = resolved(of.predicate.clone(), &renames(domain, &input), of.input.schema())?;
                let plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input.plan))?);
                Ok(Some(Pushed { plan, value: input.value }))
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let Some(input) = self.push(input, domain, may_lose_empty)? else { return Ok(None) };
                let plan = SubqueryAlias::try_new(Arc::new(input.plan), alias.clone())?;
                let value = input.value.into_iter().map(|c| Column::new(Some(alias.clone()), c.name)).collect();
                Ok(Some(Pushed { plan: LogicalPlan::SubqueryAlias(plan), value }))
            }
            // In which order its rows come matters to LIMIT only, which asks for it.
            LogicalPlan::Sort(Sort { input, fetch: None, .. }) => self.push(input, domain, may_lose_empty),
            LogicalPlan::Limit(of) => self.push_limit(of, domain),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(input) = self.push(input, domain, false)? else { return Ok(None) };
                let plan = LogicalPlanBuilder::from(input.plan).distinct()?.build()?;
                Ok(Some(Pushed { plan, value: input.value }))
            }
            LogicalPlan::Distinct(Distinct::On(of)) => self.push_distinct_on(of, domain),
            LogicalPlan::Aggregate(of) => self.push_aggregate(of, domain, may_lose_empty),
            LogicalPlan::Window(of) => self.push_window(of, domain),
            LogicalPlan::Join(of) => self.push_join(of, domain),
            LogicalPlan::Union(of) => self.push_union(of, domain),
            LogicalPlan::Values(of) => self.push(&rows_of(of)?, domain, false),
            LogicalPlan::Subquery(of) => self.push(&of.subquery, domain, may_lose_empty),
            LogicalPlan::Unnest(Unnest { input, exec_columns, options, .. }) => {
                let Some(input) = self.push(input, domain, false)? else { return Ok(None) };
                let unnested = LogicalPlanBuilder::from(input.plan)
                    .unnest_columns_with_options(exec_columns.clone(), options.clone())?;
                Ok(Some(Pushed { plan: unnested.build()?, value: input.value }))
            }
            LogicalPlan::Extension(of) => self.push_by_time(of, domain),
            _ => Ok(None),
        }
    }

    /// The domain under names that nothing else has.
    fn instance(&mut self, domain: &Domain) -> Result<Pushed> {
        self.copied(&domain.plan)?;
        let alias = self.name("__domain");
        let columns = domain.plan.schema().columns().into_iter().enumerate();
        // The columns become computed values: the stock rules would treat columns unique in the domain as unique in
        // groups by more columns, too.
        let columns = columns.map(|(n, c)| Ok(own_field::call(Expr::Column(c))?.alias(format!("{alias}_{n}"))));
        let columns = columns.collect::<Result<Vec<Expr>>>()?;
        let plan = LogicalPlanBuilder::from(domain.plan.clone()).project(columns)?.alias(&alias)?.build()?;
        Ok(Pushed { value: plan.schema().columns(), plan })
    }

    /// Every row of the plan for every value.
    fn beside(&mut self, plan: &LogicalPlan, domain: &Domain) -> Result<Pushed> {
        let Pushed { plan: values, value } = self.instance(domain)?;
        Ok(match plan {
            LogicalPlan::EmptyRelation(of) if of.produce_one_row => Pushed { plan: values, value },
            other => Pushed { plan: LogicalPlanBuilder::from(other.clone()).cross_join(values)?.build()?, value },
        })
    }

    fn push_projection(
        &mut self,
        plan: &LogicalPlan,
        of: &Projection,
        domain: &Domain,
        may_lose_empty: bool,
    ) -> Result<Option<Pushed>> {
        let are_columns = of.expr.iter().all(|e| matches!(e.clone().unalias(), Expr::Column(_)));
        let Some(input) = self.push(&of.input, domain, may_lose_empty && are_columns)? else { return Ok(None) };
        let exprs = named(plan, &of.expr, &renames(domain, &input), of.input.schema())?;
        // A renamed domain value becomes a computed value: sort orders would otherwise use the new name, but windows by
        // the domain value look for the original one.
        let apart = exprs.into_iter().map(|expr| match expr.clone().unalias() {
            Expr::Column(column) if input.value.contains(&column) => {
                let (relation, name) = expr.qualified_name();
                Ok(own_field::call(Expr::Column(column))?.alias_qualified(relation, name))
            }
            _ => Ok(expr),
        });
        let exprs = apart.chain(columns(&input.value).map(Ok)).collect::<Result<Vec<Expr>>>()?;
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input.plan))?);
        Ok(Some(Pushed { plan, value: input.value }))
    }

    fn push_limit(&mut self, of: &Limit, domain: &Domain) -> Result<Option<Pushed>> {
        let Limit { skip, fetch, input } = of;
        let limited = |input: &Arc<LogicalPlan>| {
            let (skip, fetch, input) = (skip.clone(), fetch.clone(), input.clone());
            Arc::new(LogicalPlan::Limit(Limit { skip, fetch, input }))
        };
        // Below what leaves rows as they are, to where they are sorted.
        match input.as_ref() {
            LogicalPlan::Projection(of) => {
                let below = Projection::try_new(of.expr.clone(), limited(&of.input))?;
                return self.push(&LogicalPlan::Projection(below), domain, false);
            }
            LogicalPlan::SubqueryAlias(of) => {
                let below = SubqueryAlias::try_new(limited(&of.input), of.alias.clone())?;
                return self.push(&LogicalPlan::SubqueryAlias(below), domain, false);
            }
            _ => {}
        }
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (of.get_skip_type()?, of.get_fetch_type()?) else {
            return Ok(None);
        };
        let (base, order) = match input.as_ref() {
            LogicalPlan::Sort(sort) => (&sort.input, sort.expr.clone()),
            other => (input, by_time(other)),
        };
        let Some(pushed) = self.push(base, domain, false)? else { return Ok(None) };
        let renames = renames(domain, &pushed);
        let order =
            order.into_iter().map(|key| Ok(key.with_expr(resolved(key.expr.clone(), &renames, base.schema())?)));
        let mut order = order.collect::<Result<Vec<SortExpr>>>()?;
        // The domain value is constant within its rows, so sort keys do not need it.
        order.retain(|key| !is_of_value(&key.expr, &pushed));
        let number = row_number().partition_by(columns(&pushed.value).collect());
        let number = if order.is_empty() { number.build()? } else { number.order_by(order).build()? };
        let nth = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
        let kept = pushed.plan.schema().columns().into_iter().map(Expr::Column);
        let row = |n: usize| lit(ScalarValue::UInt64(u64::try_from(n).ok()));
        let mut numbered = LogicalPlanBuilder::from(pushed.plan.clone()).window([number])?;
        if skip > 0 {
            numbered = numbered.filter(nth.clone().gt(row(skip)))?;
        }
        if let Some(fetch) = fetch {
            numbered = numbered.filter(nth.lt_eq(row(skip.saturating_add(fetch))))?;
        }
        Ok(Some(Pushed { plan: numbered.project(kept)?.build()?, value: pushed.value }))
    }

    fn push_distinct_on(&mut self, of: &DistinctOn, domain: &Domain) -> Result<Option<Pushed>> {
        let Some(input) = self.push(&of.input, domain, false)? else { return Ok(None) };
        let renames = renames(domain, &input);
        let resolve = |expr: &Expr| resolved(expr.clone(), &renames, of.input.schema());
        let on = columns(&input.value).map(Ok).chain(of.on_expr.iter().map(resolve)).collect::<Result<_>>()?;
        let whole = LogicalPlan::Distinct(Distinct::On(of.clone()));
        let selected = named(&whole, &of.select_expr, &renames, of.input.schema())?;
        let selected = selected.into_iter().chain(columns(&input.value)).collect();
        let order = match &of.sort_expr {
            None => None,
            Some(keys) => {
                let own = keys.iter().map(|key| Ok(key.with_expr(resolve(&key.expr)?)));
                Some(columns(&input.value).map(|c| Ok(c.sort(true, false))).chain(own).collect::<Result<_>>()?)
            }
        };
        let plan = DistinctOn::try_new(on, selected, order, Arc::new(input.plan))?;
        Ok(Some(Pushed { plan: LogicalPlan::Distinct(Distinct::On(plan)), value: input.value }))
    }

    fn push_aggregate(&mut self, of: &Aggregate, domain: &Domain, may_lose_empty: bool) -> Result<Option<Pushed>> {
        if of.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) {
            return Ok(None);
        }
        let Some(input) = self.push(&of.input, domain, false)? else { return Ok(None) };
        let renames = renames(domain, &input);
        let resolve = |expr: &Expr| -> Result<Expr> {
            let done = resolved(expr.clone(), &renames, of.input.schema())?;
            let name = expr.schema_name().to_string();
            Ok(if done.schema_name().to_string() == name { done } else { done.alias(name) })
        };
        let groups = columns(&input.value).map(Ok).chain(of.group_expr.iter().map(resolve)).collect::<Result<_>>()?;
        let values = of.aggr_expr.iter().map(resolve).collect::<Result<_>>()?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input.plan), groups, values)?);
        let pushed = Pushed { plan, value: input.value };
        if !of.group_expr.is_empty() {
            return Ok(Some(pushed));
        }
        let empty = of.aggr_expr.iter().map(|expr| of_no_rows(expr, of.input.schema())).collect::<Result<Vec<_>>>()?;
        if may_lose_empty && empty.iter().all(ScalarValue::is_null) {
            return Ok(Some(pushed));
        }
        self.with_empty(pushed, domain, &empty).map(Some)
    }

    /// An aggregate of all rows has one row where there are none, too.
    fn with_empty(&mut self, groups: Pushed, domain: &Domain, empty: &[ScalarValue]) -> Result<Pushed> {
        let all = self.instance(domain)?;
        let found = groups.plan.schema().columns().split_off(groups.value.len());
        let each = Domain { plan: all.plan.clone(), outer: all.value.clone() };
        let same = same_values(&each, groups.value.into_iter(), all.plan.schema())?;
        let joined = LogicalPlanBuilder::from(all.plan).join_on(groups.plan, JoinType::Left, same)?;
        let filled = found.into_iter().zip(empty).map(|(column, empty)| {
            let value = Expr::Column(column.clone());
            if empty.is_null() {
                return Ok(value);
            }
            let filled = when(value.clone().is_null(), lit(empty.clone())).otherwise(value)?;
            Ok(filled.alias_qualified(column.relation, column.name))
        });
        let exprs = filled.chain(columns(&all.value).map(Ok)).collect::<Result<Vec<_>>>()?;
        Ok(Pushed { plan: joined.project(exprs)?.build()?, value: all.value })
    }

    fn push_window(&mut self, of: &Window, domain: &Domain) -> Result<Option<Pushed>> {
        let Some(input) = self.push(&of.input, domain, false)? else { return Ok(None) };
        let renames = renames(domain, &input);
        let (mut exprs, mut selected) = (Vec::new(), columns(&input.plan.schema().columns()).collect::<Vec<_>>());
        for expr in &of.window_expr {
            let name = expr.schema_name().to_string();
            let Expr::WindowFunction(mut function) = resolved(expr.clone().unalias(), &renames, of.input.schema())?
            else {
                return Ok(None);
            };
            function.params.partition_by.extend(columns(&input.value));
            let expr = Expr::WindowFunction(function);
            selected.push(Expr::Column(Column::new_unqualified(expr.schema_name().to_string())).alias(name));
            exprs.push(expr);
        }
        let windowed = Window::try_new(exprs, Arc::new(input.plan))?;
        let plan = LogicalPlanBuilder::from(LogicalPlan::Window(windowed)).project(selected)?.build()?;
        Ok(Some(Pushed { plan, value: input.value }))
    }

    fn push_join(&mut self, of: &Join, domain: &Domain) -> Result<Option<Pushed>> {
        let is_lateral = is_lateral(&of.right);
        let right_looks = looks_at(&of.right, domain)?;
        let needs_right = match of.join_type {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                right_looks && !is_lateral
            }
            // Rows of the right side come for each value, whatever the left one has.
            JoinType::Right => true,
            _ => return Ok(None),
        };
        // The domain is on one side when the other is the same for all values.
        let keeps_left =
            matches!(of.join_type, JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark);
        let looks_left = looks_at(&of.left, domain)? || is_lateral || !needs_right || keeps_left;
        let left = if looks_left { self.push(&of.left, domain, false)? } else { None };
        if looks_left && left.is_none() {
            return Ok(None);
        }
        let right = if needs_right { self.push(&of.right, domain, false)? } else { None };
        if needs_right && right.is_none() {
            return Ok(None);
        }
        let value = match (&left, &right, of.join_type) {
            (_, Some(right), JoinType::Right) | (None, Some(right), _) => right.value.clone(),
            (Some(left), _, _) => left.value.clone(),
            (None, None, _) => return Ok(None),
        };
        let renames: Vec<_> = domain.outer.iter().cloned().zip(value.iter().cloned()).collect();
        let both = match (&left, &right) {
            (Some(left), Some(right)) => {
                let each = Domain { plan: left.plan.clone(), outer: left.value.clone() };
                same_values(&each, right.value.iter().cloned(), left.plan.schema())?
            }
            _ => Vec::new(),
        };
        let right_plan = match right {
            Some(right) => right.plan,
            None if is_lateral => relabelled(&of.right, &renames, of.left.schema())?,
            None => of.right.as_ref().clone(),
        };
        let left_plan = left.map_or_else(|| of.left.as_ref().clone(), |left| left.plan);
        let filter = of.filter.clone().map(|filter| resolved(filter, &renames, &of.schema)).transpose()?;
        let on = of.on.iter().map(|(l, r)| {
            Ok((resolved(l.clone(), &renames, of.left.schema())?, resolved(r.clone(), &renames, of.right.schema())?))
        });
        let (left, right) = (Arc::new(left_plan), Arc::new(right_plan));
        let filter = filter.into_iter().chain(both).reduce(Expr::and);
        let (kind, using) = (of.join_type, of.join_constraint);
        let on = on.collect::<Result<Vec<_>>>()?;
        let joined = Join::try_new(left, right, on, filter, kind, using, of.null_equality, of.null_aware)?;
        Ok(Some(Pushed { plan: LogicalPlan::Join(joined), value }))
    }

    fn push_union(&mut self, of: &Union, domain: &Domain) -> Result<Option<Pushed>> {
        let prefix = self.name("__of");
        let value: Vec<Column> =
            (0..domain.outer.len()).map(|n| Column::new_unqualified(format!("{prefix}_{n}"))).collect();
        let mut inputs = Vec::with_capacity(of.inputs.len());
        for input in &of.inputs {
            let Some(pushed) = self.push(input, domain, false)? else { return Ok(None) };
            let keys = columns(&pushed.value).zip(&value).map(|(key, name)| key.alias(&name.name));
            let exprs: Vec<Expr> = columns(&input.schema().columns()).chain(keys).collect();
            inputs.push(Arc::new(LogicalPlanBuilder::from(pushed.plan).project(exprs)?.build()?));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        Ok(Some(Pushed { plan, value }))
    }
}

pub(super) fn looks_at(plan: &LogicalPlan, domain: &Domain) -> Result<bool> {
    Ok(free(plan)?.iter().any(|column| domain.outer.contains(column)))
}

fn renames(domain: &Domain, pushed: &Pushed) -> Vec<(Column, Column)> {
    domain.outer.iter().cloned().zip(pushed.value.iter().cloned()).collect()
}

pub(super) fn columns(of: &[Column]) -> impl Iterator<Item = Expr> {
    of.iter().cloned().map(Expr::Column)
}

/// The expressions of a node, under the names they had.
fn named(plan: &LogicalPlan, exprs: &[Expr], renames: &Renames, inputs: &DFSchemaRef) -> Result<Vec<Expr>> {
    let names = NamePreserver::new(plan);
    let named = exprs.iter().map(|expr| {
        let name = names.save(expr);
        Ok(name.restore(resolved(expr.clone(), renames, inputs)?))
    });
    named.collect()
}

/// Returns true if an expression is the same for all rows of a domain value.
fn is_of_value(expr: &Expr, pushed: &Pushed) -> bool {
    let is_computed = |column: &Column| match &pushed.plan {
        LogicalPlan::Projection(of) => {
            of.schema.maybe_index_of_column(column).and_then(|at| of.expr.get(at)).is_some_and(|expr| {
                !expr.is_volatile() && expr.column_refs().into_iter().all(|column| pushed.value.contains(column))
            })
        }
        _ => false,
    };
    let is_same = |column: &Column| pushed.value.contains(column) || is_computed(column);
    !expr.is_volatile() && expr.column_refs().into_iter().all(is_same)
}

/// The time of the rows, which are in its order when nothing else is asked for.
fn by_time(plan: &LogicalPlan) -> Vec<SortExpr> {
    let time = plan.schema().iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from);
    time.into_iter().map(|time| Expr::Column(time).sort(true, false)).collect()
}

/// What an aggregate gives when there are no rows.
fn of_no_rows(expr: &Expr, schema: &DFSchemaRef) -> Result<ScalarValue> {
    let data_type = expr.get_type(schema.as_ref())?;
    match expr.clone().unalias() {
        Expr::AggregateFunction(aggregate) => aggregate.func.default_value(&data_type),
        _ => ScalarValue::try_from(&data_type),
    }
}

/// A list of values as queries without tables.
pub(super) fn rows_of(values: &Values) -> Result<LogicalPlan> {
    let names = values.schema.columns();
    let rows = values.values.iter().map(|row| {
        let exprs = row.iter().zip(&names).map(|(expr, column)| expr.clone().alias(&column.name));
        Ok(Arc::new(LogicalPlanBuilder::empty(true).project(exprs.collect::<Vec<_>>())?.build()?))
    });
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(match rows.pop() {
        Some(only) if rows.is_empty() => Arc::unwrap_or_clone(only),
        last => LogicalPlan::Union(Union::try_new_with_loose_types(rows.into_iter().chain(last).collect())?),
    })
}
