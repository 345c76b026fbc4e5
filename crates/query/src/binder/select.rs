//! SELECT: the expressions of its clauses are bound over the columns of FROM, and planned in the order of evaluation.

use super::aggregate::{Rebase, grouped};
use super::scope::{Aliases, Env, Place, Scope, Source};
use super::window_join::has_window_join;
use super::window_names::named_apart;
use super::{Binder, Result};
use crate::Error;
use datafusion::common::DFSchema;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::utils::{find_aggregate_exprs, find_window_exprs};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, SortExpr, lit};
use std::sync::Arc;
use tidalite_sql::ast::{self, Distinct, OrderBy, Projection, Select, SelectItem};
use tidalite_types::SqlState;

/// The expressions of the clauses of a SELECT, over the columns of FROM.
pub(super) struct Clauses {
    /// The SELECT list, each with its name.
    pub items: Vec<Expr>,
    /// GROUP BY; `None` if there is no such clause.
    pub groups: Option<Vec<Expr>>,
    pub having: Option<Expr>,
    pub qualify: Option<Expr>,
    pub order: Vec<SortExpr>,
    /// DISTINCT ON.
    pub on: Vec<Expr>,
}

impl Clauses {
    /// Returns all expressions but those of GROUP BY.
    pub fn all(&self) -> impl Iterator<Item = &Expr> {
        let order = self.order.iter().map(|key| &key.expr);
        self.items.iter().chain(&self.having).chain(&self.qualify).chain(order).chain(&self.on)
    }

    /// Replaces expressions by the columns that compute them.
    pub fn rebased(self, rebase: &Rebase) -> Result<Clauses> {
        let all = |exprs: Vec<Expr>| exprs.into_iter().map(|expr| rebase.apply(expr)).collect::<Result<Vec<_>>>();
        let one = |expr: Option<Expr>| expr.map(|expr| rebase.apply(expr)).transpose();
        let order = self.order.into_iter().map(|key| Ok(key.with_expr(rebase.apply(key.expr.clone())?)));
        Ok(Clauses {
            items: all(self.items)?,
            groups: self.groups,
            having: one(self.having)?,
            qualify: one(self.qualify)?,
            order: order.collect::<Result<Vec<_>>>()?,
            on: all(self.on)?,
        })
    }
}

impl Binder<'_> {
    pub(super) fn select(&self, select: &Select, order: Option<&OrderBy>, env: &Env) -> Result<LogicalPlan> {
        if has_window_join(select) && select.pivot.is_none() {
            return self.window_joins(select, order, env);
        }
        let source = match &select.pivot {
            Some(pivot) => self.pivoted_select(select, pivot, env)?,
            None => self.from(&select.from, env)?,
        };
        let scope = source.scope(env.outer);
        let place = Place { windows: &select.windows, ..Place::new(&scope, env) };
        let sequence = self.sequence(select, place)?;
        let place = Place { sequence: sequence.as_ref(), ..place };
        // Random values are numbered in the list first.
        let items = match select.sample_by {
            None => Some(self.items(select, place)?),
            Some(_) => None,
        };
        let input = match &select.pivot {
            // WHERE and LATEST ON choose the rows of PIVOT.
            Some(_) => source.plan,
            None => self.chosen_rows(source.plan, select, place)?,
        };
        if let (Some(clause), None) = (&select.sample_by, &items) {
            let source = Source { plan: input, columns: scope.columns };
            return self.sampled(select, clause, source, order, env);
        }
        let clauses = self.clauses(select, items.unwrap_or_default(), order, place)?;
        computed(input, clauses, select.distinct.as_ref())
    }

    /// Binds WHERE and LATEST ON.
    pub(super) fn chosen_rows(&self, plan: LogicalPlan, select: &Select, place: Place) -> Result<LogicalPlan> {
        let plan = match &select.selection {
            Some(condition) => self.filtered(plan, condition, place)?,
            None => plan,
        };
        match &select.latest_on {
            Some(clause) => self.latest_on(plan, clause, place),
            None => Ok(plan),
        }
    }

    /// Binds WHERE.
    fn filtered(&self, plan: LogicalPlan, condition: &ast::Expr, place: Place) -> Result<LogicalPlan> {
        let bound = self.condition(condition, place)?;
        if !find_aggregate_exprs(std::iter::once(&bound)).is_empty() {
            let error = Error::invalid("aggregate functions are not allowed in WHERE").with_hint("use HAVING");
            let error = error.with_code(SqlState::GROUPING_ERROR);
            return Err(error.at(condition.span.start as usize).into());
        }
        check_no_window(&bound, "WHERE", condition)?;
        Ok(LogicalPlan::Filter(Filter::try_new(bound, Arc::new(plan))?))
    }

    fn clauses(&self, select: &Select, items: Vec<Expr>, order: Option<&OrderBy>, place: Place) -> Result<Clauses> {
        let own = aliases(&items);
        let with_aliases = |come_first| Place { aliases: Aliases { list: &own, come_first }, ..place };
        let groups = match &select.group_by {
            Some(clause) => Some(self.groups(clause, &items, with_aliases(false))?),
            None => implied_groups(select, &items),
        };
        let having = select.having.as_ref().map(|having| self.expr(having, with_aliases(true))).transpose()?;
        if let (Some(bound), Some(clause)) = (&having, &select.having) {
            check_no_window(bound, "HAVING", clause)?;
        }
        let qualify = select.qualify.as_ref().map(|qualify| self.expr(qualify, with_aliases(true))).transpose()?;
        let on = self.distinct_on(select.distinct.as_ref(), &items, place)?;
        let order = self.select_order(order, &items, place)?;
        Ok(Clauses { items, groups, having, qualify, order, on })
    }

    /// Binds ORDER BY over the SELECT list and the columns of FROM.
    fn select_order(&self, order: Option<&OrderBy>, items: &[Expr], place: Place) -> Result<Vec<SortExpr>> {
        let output = aliases(items);
        let place = Place { aliases: Aliases { list: &output, come_first: false }, ..place };
        order.map_or_else(|| Ok(Vec::new()), |order| self.order_keys(order, items, place))
    }
}

/// Returns the names that the list gives, each with its expression.
pub(super) fn aliases(items: &[Expr]) -> Vec<(String, Expr)> {
    let alias = |item: &Expr| match item {
        Expr::Alias(alias) => Some((alias.name.clone(), (*alias.expr).clone())),
        _ => None,
    };
    items.iter().filter_map(alias).collect()
}

/// Groups by every selected expression that has a column and no aggregate, if another has an aggregate.
fn implied_groups(select: &Select, items: &[Expr]) -> Option<Vec<Expr>> {
    let Projection::Items(list) = &select.projection else { return None };
    let has_star = list.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
    if has_star || select.from.is_empty() {
        return None;
    }
    let has_aggregate = |item: &&Expr| !find_aggregate_exprs(std::iter::once(*item)).is_empty();
    if !items.iter().any(|item| has_aggregate(&item)) {
        return None;
    }
    let is_key = |item: &&Expr| {
        !has_aggregate(item) && find_window_exprs(std::iter::once(*item)).is_empty() && !item.column_refs().is_empty()
    };
    let keys: Vec<Expr> = items.iter().filter(is_key).map(|item| item.clone().unalias()).collect();
    (!keys.is_empty()).then_some(keys)
}

/// Refuses window functions in a clause that is evaluated before them.
pub(super) fn check_no_window(bound: &Expr, clause: &str, condition: &ast::Expr) -> Result<()> {
    if find_window_exprs(std::iter::once(bound)).is_empty() {
        return Ok(());
    }
    let error = Error::invalid(format!("window functions are not allowed in {clause}")).with_hint("use QUALIFY");
    Err(error.with_code(SqlState::WINDOWING_ERROR).at(condition.span.start as usize).into())
}

/// Plans the clauses of a SELECT over its rows.
fn computed(input: LogicalPlan, clauses: Clauses, distinct: Option<&Distinct>) -> Result<LogicalPlan> {
    let aggregates = find_aggregate_exprs(clauses.all());
    let is_grouped = clauses.groups.is_some() || !aggregates.is_empty();
    let (plan, clauses) = match is_grouped {
        true => grouped(input, clauses, aggregates)?,
        // A condition without columns: all rows are one group, and there need not be an aggregate.
        false if clauses.having.as_ref().is_some_and(|having| !having.any_column_refs()) => {
            grouped(input, clauses, vec![count(lit(1_i64))])?
        }
        false if clauses.having.is_some() => {
            let text = "columns in HAVING must appear in the GROUP BY clause or be used in an aggregate function";
            return Err(Error::invalid(text).about("having").with_code(SqlState::GROUPING_ERROR).into());
        }
        false => (input, clauses),
    };
    let plan = match &clauses.having {
        Some(having) => LogicalPlanBuilder::from(plan).having(having.clone())?.build()?,
        None => plan,
    };
    let windows = find_window_exprs(clauses.all());
    let has_windows = !windows.is_empty();
    let (plan, clauses) = if has_windows { windowed(plan, clauses, windows)? } else { (plan, clauses) };
    let plan = match &clauses.qualify {
        Some(_) if !has_windows => {
            let message = "QUALIFY clause requires window functions in the SELECT list or QUALIFY clause";
            return Err(Error::invalid(message).about("qualify").into());
        }
        Some(qualify) => LogicalPlanBuilder::from(plan).filter(qualify.clone())?.build()?,
        None => plan,
    };
    super::distinct::projected(plan, clauses, distinct)
}

/// Plans window functions.
fn windowed(plan: LogicalPlan, clauses: Clauses, windows: Vec<Expr>) -> Result<(LogicalPlan, Clauses)> {
    let (plan, own) = named_apart(plan, &windows)?;
    let plan = LogicalPlanBuilder::window_plan(plan, own.clone())?;
    let rebase = Rebase::new(windows.into_iter().zip(own), &plan)?;
    let clauses = clauses.rebased(&rebase)?;
    Ok((plan, clauses))
}

/// Returns a scope without columns.
pub(super) fn empty_scope<'p>(outer: Option<&'p Scope<'p>>) -> Scope<'p> {
    Scope { schema: Arc::new(DFSchema::empty()), columns: Vec::new(), outer }
}
