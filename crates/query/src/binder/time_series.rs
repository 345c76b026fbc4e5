//! SAMPLE BY, LATEST ON and joins by time.

use super::from::scope_of_both;
use super::names::folded;
use super::order::{output_column, sort_key, with_outputs};
use super::scope::{Aliases, Env, Found, Place, Scope, Source};
use super::select::aliases;
use super::{Binder, Result};
use crate::plan::{self, FillValue, Keys, Kind, Sampling, TimeJoin};
use crate::{Error, Parameter};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use tidalite_sql::Span;
use tidalite_sql::ast::{
    self, Alignment, AsofJoin, AsofKind, Duration, DurationUnit, ExprKind, Fill, JoinCondition, LatestOn, Literal,
    Offset, OrderBy, OrderItem, Projection, SampleBy, Select, SelectItem, UnaryOperator,
};

impl Binder<'_> {
    /// Binds LATEST ON over the rows of FROM and WHERE.
    pub(super) fn latest_on(&self, input: LogicalPlan, clause: &LatestOn, place: Place) -> Result<LogicalPlan> {
        let column = |expr: &ast::Expr| match self.expr(expr, place)? {
            Expr::Column(column) => Ok(column),
            _ => Err(Error::invalid("LATEST ON and its PARTITION BY take columns")
                .with_hint("compute other keys in a sub-query: SELECT * FROM (SELECT …) LATEST ON …")
                .at(expr.span.start as usize)
                .into()),
        };
        let time = clause.timestamp.as_ref().map(column).transpose()?;
        let keys = clause.keys.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(plan::latest_on(input, time, keys)?)
    }

    /// Binds a SELECT with SAMPLE BY; `source` are its rows, filtered.
    pub(super) fn sampled(
        &self,
        select: &Select,
        clause: &SampleBy,
        source: Source,
        order: Option<&OrderBy>,
        env: &Env,
    ) -> Result<LogicalPlan> {
        check(select, clause)?;
        let now = self.state.execution_props().query_execution_start_time.unwrap_or_default();
        let sampling = Sampling::try_new(source.plan, self.clause(clause, env)?, now)?;
        let scope = Scope { schema: sampling.rows().schema().clone(), columns: source.columns, outer: env.outer };
        let place = Place { windows: &select.windows, ..Place::new(&scope, env) };
        let mut items = self.items(select, place)?;
        let width = items.len();
        items.extend(self.hidden_time(order, &items, sampling.time(), place)?);
        let own = aliases(&items);
        let place = Place { aliases: Aliases { list: &own, come_first: true }, ..place };
        let having = select.having.as_ref().map(|having| self.expr(having, place)).transpose()?;
        let plan = sampling.grouped(with_outputs(items), having)?;
        let plan = self.sampled_order(plan, select, order, env)?;
        let mut columns = plan.schema().columns();
        if columns.len() == width {
            return Ok(plan);
        }
        columns.truncate(width);
        let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
        Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
    }

    /// Returns the time as an item for ORDER BY, if the time is a key and not selected.
    fn hidden_time(
        &self,
        order: Option<&OrderBy>,
        items: &[Expr],
        time: &Column,
        place: Place,
    ) -> Result<Option<Expr>> {
        let Some(OrderBy::Items(keys)) = order else { return Ok(None) };
        for key in keys {
            let ExprKind::Column(name) = &key.expr.kind else { continue };
            let [only] = name.parts.as_slice() else { continue };
            let is_selected = items.iter().any(|item| item.qualified_name().1 == folded(only));
            let found = place.scope.find(&folded(only));
            let is_time = matches!(found, Found::One(column) if column.value == Expr::Column(time.clone()));
            if !is_selected && is_time {
                return Ok(Some(Expr::Column(time.clone()).alias(folded(only))));
            }
        }
        Ok(None)
    }

    /// Sorts the groups of SAMPLE BY: by their columns, or by expressions that are selected.
    pub(super) fn sampled_order(
        &self,
        plan: LogicalPlan,
        select: &Select,
        order: Option<&OrderBy>,
        env: &Env,
    ) -> Result<LogicalPlan> {
        let Some(order) = order else { return Ok(plan) };
        let keys = {
            let scope = Scope::of_plan(&plan, env.outer);
            let output: Vec<Expr> = scope.columns.iter().map(|column| column.value.clone()).collect();
            let place = Place::new(&scope, env);
            let key = |item: &OrderItem| match self.selected_at(&item.expr, select).and_then(|at| output.get(at)) {
                Some(column) => Ok(sort_key(item, output_column(column))),
                None => {
                    let mut keys = self.sort_keys(std::slice::from_ref(item), &output, place)?;
                    keys.pop().ok_or_else(|| Error::internal("a key of ORDER BY is missing").into())
                }
            };
            match order {
                OrderBy::Items(keys) => keys.iter().map(key).collect::<Result<Vec<SortExpr>>>()?,
                OrderBy::All { .. } => self.order_keys(order, &output, place)?,
            }
        };
        Ok(LogicalPlanBuilder::from(plan).sort(keys)?.build()?)
    }

    /// Returns the position of the selected call that is the same as `expr`.
    fn selected_at(&self, expr: &ast::Expr, select: &Select) -> Option<usize> {
        let Projection::Items(items) = &select.projection else { return None };
        if !matches!(expr.kind, ExprKind::Function(_)) {
            return None;
        }
        let written = self.written(expr.span);
        items.iter().position(|item| match item {
            SelectItem::Expr { expr, .. } => self.written(expr.span) == written,
            SelectItem::Wildcard(_) => false,
        })
    }

    fn clause(&self, clause: &SampleBy, env: &Env) -> Result<plan::SampleBy> {
        let scope = super::select::empty_scope(None);
        let bound = |expr: &Option<ast::Expr>| -> Result<Option<Expr>> {
            let Some(expr) = expr else { return Ok(None) };
            let value = self.expr(expr, Place::new(&scope, env))?;
            Ok(Some(value).filter(|value| !matches!(value, Expr::Literal(value, _) if value.is_null())))
        };
        let (zone, offset) = match &clause.align {
            Some(Alignment::Calendar { zone, offset }) => (self.constant_text(zone)?, self.constant_text(offset)?),
            _ => (None, None),
        };
        let fills = match &clause.fill {
            Some(Fill { values }) => values.iter().map(|value| self.fill(value)).collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        Ok(plan::SampleBy {
            stride: stride(&clause.stride)?,
            from: bound(&clause.from)?,
            to: bound(&clause.to)?,
            is_first: clause.align == Some(Alignment::FirstObservation),
            zone,
            offset,
            fills,
        })
    }

    /// Returns a constant string.
    fn constant_text(&self, expr: &Option<ast::Expr>) -> Result<Option<String>> {
        let Some(expr) = expr else { return Ok(None) };
        match &expr.kind {
            ExprKind::Literal(Literal::Text(text)) => Ok(Some(text.clone())),
            ExprKind::Parameter(number) => match self.value_of(*number, expr.span)? {
                Parameter::Text(text) => Ok(Some(text.clone())),
                _ => Err(not_constant(expr).into()),
            },
            _ => Err(not_constant(expr).into()),
        }
    }

    fn fill(&self, value: &ast::FillValue) -> Result<FillValue> {
        Ok(match value {
            ast::FillValue::None => FillValue::None,
            ast::FillValue::Null => FillValue::Null,
            ast::FillValue::Prev(of) => FillValue::Prev(of.as_ref().map(folded)),
            ast::FillValue::Linear => FillValue::Linear,
            ast::FillValue::Constant(expr) => match constant(expr) {
                Some(text) => FillValue::Constant(text),
                None => FillValue::Other(self.written(expr.span)),
            },
        })
    }

    /// Joins by time: ASOF, LT and SPLICE JOIN.
    pub(super) fn joined_by_time(
        &self,
        left: Source,
        right: Source,
        join: &AsofJoin,
        condition: &JoinCondition,
        env: &Env,
        span: Span,
    ) -> Result<Source> {
        let is_inner = join.keeps_left == Some(false);
        let kind = match join.kind {
            AsofKind::Asof => Kind::Asof,
            AsofKind::Lt => Kind::Lt,
            AsofKind::Splice if join.keeps_left.is_none() => Kind::Splice,
            AsofKind::Splice => {
                let error = Error::invalid("SPLICE JOIN keeps the rows of both sides: leave LEFT or INNER out");
                return Err(error.at(span.start as usize).into());
            }
        };
        let tolerance = join.tolerance.as_ref().map(duration_text).unwrap_or_default();
        let scope = scope_of_both(&left, &right, env)?;
        let columns = scope.columns.clone();
        let join = TimeJoin::try_new(left.plan, right.plan, kind, &tolerance)?;
        let place = Place::new(&scope, env);
        let keys = self.time_keys(condition, &join.left, &join.right, &kind.name(), place, span)?;
        let time = Expr::Column(join.right_time());
        let plan = join.on(keys)?;
        let plan = if is_inner { LogicalPlanBuilder::from(plan).filter(time.is_not_null())?.build()? } else { plan };
        Ok(Source { plan, columns })
    }

    /// Returns the keys of a join by time or window.
    ///
    /// `name` is the join in error texts.
    pub(super) fn time_keys(
        &self,
        condition: &JoinCondition,
        left: &LogicalPlan,
        right: &LogicalPlan,
        name: &str,
        place: Place,
        span: Span,
    ) -> Result<Keys> {
        let keys = match condition {
            JoinCondition::None => Keys::default(),
            JoinCondition::Natural => {
                let error = Error::invalid(format!("NATURAL {name} is not supported"));
                return Err(error.at(span.start as usize).into());
            }
            JoinCondition::Using(names) => {
                let key = |name| plan::key_named(&folded(name), left, right);
                Keys { equal: names.iter().map(key).collect::<crate::Result<Vec<_>>>()?, ..Keys::default() }
            }
            JoinCondition::On(condition) => {
                let bound = self.expr(condition, place)?;
                plan::keys_of_condition(&bound, left, right, name)?
            }
        };
        keys.check(left, right)?;
        Ok(keys)
    }
}

fn check(select: &Select, clause: &SampleBy) -> Result<()> {
    let refused = |message: &str| Err(Error::invalid(message).at(clause.span.start as usize).into());
    if select.from.is_empty() {
        return refused("SAMPLE BY needs a table to sample");
    }
    if select.group_by.is_some() {
        return refused("SAMPLE BY groups by every column selected: leave GROUP BY out");
    }
    if select.distinct.is_some() || select.qualify.is_some() {
        return refused("DISTINCT and QUALIFY go around SAMPLE BY: SELECT DISTINCT … FROM (… SAMPLE BY …)");
    }
    let has_star = match &select.projection {
        Projection::Items(items) => items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))),
        Projection::Implicit => true,
    };
    if has_star {
        return Err(plan::starred().at(clause.span.start as usize).into());
    }
    Ok(())
}

fn not_constant(expr: &ast::Expr) -> Error {
    Error::invalid("ALIGN TO CALENDAR takes strings: a time zone and an offset").at(expr.span.start as usize)
}

/// Returns the length, the time zone and the offset of the buckets of a clause with constants.
pub(crate) fn sampling(clause: &SampleBy) -> crate::Result<(String, Option<String>, Option<String>)> {
    let text = |expr: &Option<ast::Expr>| match expr {
        None => Ok(None),
        Some(ast::Expr { kind: ExprKind::Literal(Literal::Text(text)), .. }) => Ok(Some(text.clone())),
        Some(other) => Err(not_constant(other)),
    };
    let (zone, offset) = match &clause.align {
        Some(Alignment::Calendar { zone, offset }) => (text(zone)?, text(offset)?),
        _ => (None, None),
    };
    Ok((stride(&clause.stride)?, zone, offset))
}

/// Returns the length of a bucket as text, such as `15m`.
fn stride(stride: &Offset) -> crate::Result<String> {
    let duration = match stride {
        Offset::Duration(duration) => duration,
        // The value of a variable.
        Offset::Expr { expr, .. } => {
            let ExprKind::Literal(Literal::Text(text)) = &expr.kind else {
                let error = Error::invalid("the length of SAMPLE BY is a constant such as 15m or '15m'");
                return Err(error.at(expr.span.start as usize));
            };
            return Ok(text.clone());
        }
    };
    if duration.count.parse::<i64>().is_ok_and(|count| count < 1) {
        let error = Error::invalid("SAMPLE BY takes a length of at least one unit");
        return Err(error.at(duration.span.start as usize));
    }
    Ok(duration_text(duration))
}

/// Returns a length as a count and the letter of a unit.
pub(super) fn duration_text(duration: &Duration) -> String {
    format!("{}{}", duration.count, unit_letter(duration.unit))
}

/// Returns the letter of a unit.
pub(super) fn unit_letter(unit: DurationUnit) -> char {
    match unit {
        DurationUnit::Nanosecond => 'n',
        DurationUnit::Microsecond => 'U',
        DurationUnit::Millisecond => 'T',
        DurationUnit::Second => 's',
        DurationUnit::Minute => 'm',
        DurationUnit::Hour => 'h',
        DurationUnit::Day => 'd',
        DurationUnit::Week => 'w',
        DurationUnit::Month => 'M',
        DurationUnit::Year => 'y',
    }
}

/// Returns the text of a number, a string or a boolean.
fn constant(expr: &ast::Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Unary { op: UnaryOperator::Minus, operand } => match &operand.kind {
            ExprKind::Literal(Literal::Number(digits)) => Some(format!("-{digits}")),
            _ => None,
        },
        ExprKind::Literal(Literal::Number(digits)) => Some(digits.clone()),
        ExprKind::Literal(Literal::Text(text)) => Some(text.clone()),
        ExprKind::Literal(Literal::Boolean(value)) => Some(value.to_string()),
        _ => None,
    }
}
