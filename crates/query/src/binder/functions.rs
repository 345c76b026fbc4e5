//! Calls of scalar functions and aggregates.

use super::arrays::{document_list, with_document_type};
use super::names::{folded, folded_parts, synonym, table_reference};
use super::operators::text;
use super::order::sort_key;
use super::ordered_sets::HYPOTHETICAL_SETS;
use super::scope::Place;
use super::{BindError, Binder, Result};
use crate::dialect::{RANGE, set_returning};
use crate::error::no_function;
use crate::functions::{identifiers, lengths, value_texts};
use crate::plan::{CHOOSING, chosen_texts_alike};
use crate::{Error, door, pg_catalog};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::arguments::{ArgumentName, resolve_function_arguments};
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, ScalarFunction, Unnest};
use datafusion::logical_expr::planner::{PlannerResult, RawAggregateExpr};
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, Signature, SortExpr, cast, lit, when};
use std::sync::Arc;
use tidalite_sql::ast::{self, BinaryOperator, FunctionArg, FunctionCall, Ident, OrderItem, SpecialCall, TrimSide};
use tidalite_sql::{Span, ast::ObjectName};
use tidalite_types::{ColumnType, SqlState};

/// Aggregates that take their value from WITHIN GROUP.
const ORDERED_SETS: &[&str] =
    &["percentile_cont", "quantile_cont", "approx_percentile_cont", "approx_percentile_cont_with_weight"];
const MAKE_INTERVAL: &[&str] = &["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// Arguments with their names, if they are named.
pub(super) struct Arguments {
    pub values: Vec<Expr>,
    pub names: Vec<Option<ArgumentName>>,
}

impl Arguments {
    /// Returns arguments without names.
    pub fn positional(values: Vec<Expr>) -> Arguments {
        let names = values.iter().map(|_| None).collect();
        Arguments { values, names }
    }

    /// Returns the arguments in the order of the parameters.
    pub fn resolved(self, name: &str, signature: &Signature) -> Result<Vec<Expr>> {
        if self.names.iter().all(Option::is_none) {
            return Ok(self.values);
        }
        match &signature.parameter_names {
            Some(parameters) => Ok(resolve_function_arguments(parameters, self.values, self.names)?),
            None => Err(Error::invalid(format!("function {name} does not take named arguments")).about(name).into()),
        }
    }
}

impl Binder<'_> {
    /// Binds a call.
    pub(super) fn function(&self, call: &FunctionCall, place: Place, span: Span) -> Result<Expr> {
        let parts = folded_parts(&call.name);
        let name = match parts.as_slice() {
            [name] => name.as_str(),
            [schema, name] if schema == pg_catalog::PG_CATALOG => name.as_str(),
            [schema, name] if schema == pg_catalog::INFORMATION_SCHEMA && name == "_pg_expandarray" => name.as_str(),
            parts => return Err(unknown_function(&parts.join("."), call.name.span)),
        };
        if let Some(limit) = &call.limit {
            let error = Error::invalid("LIMIT in the arguments of a function is not supported");
            return Err(error.at(limit.span.start as usize).into());
        }
        if let Some(rows) = self.rows_of_call(name, call, place, span)? {
            return Ok(rows);
        }
        if let Some(expr) = self.rewritten(name, call, place, span)? {
            return Ok(expr);
        }
        self.named_function(name, call, place, span)
    }

    /// Binds calls that return a row for each element of an array.
    fn rows_of_call(&self, name: &str, call: &FunctionCall, place: Place, span: Span) -> Result<Option<Expr>> {
        let inner = match name {
            "unnest" => None,
            "generate_subscripts" => Some(set_returning::SUBSCRIPTS),
            "_pg_expandarray" => Some(set_returning::EXPANDED),
            _ => return Ok(None),
        };
        let args = self.arguments(&call.args, place)?.values;
        let list = match (inner, <[Expr; 1]>::try_from(args)) {
            (Some(inner), Ok([one])) => self.scalar_call(inner, vec![one])?,
            (Some(inner), Err(args)) => self.scalar_call(inner, args)?,
            (None, Ok([one])) => one,
            (None, Err(_)) => {
                let error = Error::invalid("unnest of several arrays is allowed only in FROM");
                return Err(error.about("unnest").at(span.start as usize).into());
            }
        };
        match list.get_type(&place.scope.schema)? {
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                Ok(Some(Expr::Unnest(Unnest::new(list))))
            }
            _ => {
                let of = door::type_name(&list.to_field(&place.scope.schema)?.1);
                let error = Error::invalid(format!("unnest takes an array, not {of}")).about("unnest");
                Err(error.at(span.start as usize).into())
            }
        }
    }

    /// Binds calls that stand for other expressions.
    fn rewritten(&self, name: &str, call: &FunctionCall, place: Place, span: Span) -> Result<Option<Expr>> {
        if call.over.is_some() {
            return Ok(None);
        }
        Ok(match (name, call.args.as_slice()) {
            ("mod", [FunctionArg::Expr(left), FunctionArg::Expr(right)]) => {
                let (left, right) = (self.expr(left, place)?, self.expr(right, place)?);
                Some(self.operator(BinaryOperator::Modulo, left, right, &place.scope.schema, span)?)
            }
            ("percentile_disc", [FunctionArg::Expr(_)]) if call.within_group.len() == 1 => {
                Some(self.percentile(call, place, span)?)
            }
            (name, _) if HYPOTHETICAL_SETS.contains(&name) && !call.within_group.is_empty() => {
                Some(self.rank_within(name, call, place, span)?)
            }
            ("substring" | "substr", [_]) => {
                let error = Error::invalid("substring takes where to begin, and how many characters");
                return Err(error.at(span.start as usize).into());
            }
            ("age", [FunctionArg::Expr(time)]) => {
                let now = self.scalar_call("now", Vec::new())?;
                let today = self.scalar_call("date_trunc", vec![text("day"), now])?;
                Some(self.scalar_call("age", vec![today, self.expr(time, place)?])?)
            }
            ("make_interval", args) if args.iter().any(|arg| matches!(arg, FunctionArg::Named { .. })) => {
                Some(self.make_interval(args, place, span)?)
            }
            ("mode", []) if call.within_group.len() == 1 => {
                let inner = place.within_call();
                let value = self.expr(&call.within_group[0].expr, inner)?;
                let filter = call.filter.as_ref().map(|filter| self.expr(filter, inner)).transpose()?;
                Some(self.aggregate_of("mode", vec![value], filter, Vec::new())?)
            }
            _ => None,
        })
    }

    /// Binds a call of a function that has the name.
    pub(super) fn named_function(&self, name: &str, call: &FunctionCall, place: Place, span: Span) -> Result<Expr> {
        // The third argument of QuestDB is a precision.
        let is_shortened = name == "approx_percentile" && call.args.len() > 2;
        let shortened = is_shortened.then(|| FunctionCall { args: call.args[..2].to_vec(), ..call.clone() });
        let call = shortened.as_ref().unwrap_or(call);
        let (name, is_distinct) = synonym(name, call.distinct);
        if let "map" | "make_map" = name {
            return self.map_call(name, call, place, span);
        }
        if let Some(function) = self.state.scalar_functions().get(name).filter(|_| !is_internal(name) || name == RANGE)
        {
            let arguments = self.arguments(&call.args, place)?;
            let mut args = arguments.resolved(name, function.signature())?;
            if CHOOSING.contains(&name) {
                chosen_texts_alike(args.iter_mut().collect(), &place.scope.schema)?;
            }
            if let Some(value) = self.of_sequence(name, &args, place, span)? {
                return Ok(value);
            }
            let args = match name {
                "concat" | "concat_ws" => {
                    args.into_iter().map(|arg| self.as_text(arg, place)).collect::<Result<_>>()?
                }
                _ => args,
            };
            return Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), args)));
        }
        if let Some(over) = &call.over {
            return self.window(name, is_distinct, call, over, place, span);
        }
        match self.state.aggregate_functions().get(name) {
            Some(function) => self.aggregate(name, function.clone(), is_distinct, call, place, span),
            None => Err(unknown_function(name, call.name.span)),
        }
    }

    /// Converts a value that `concat` does not take, or of which it has another text than a cast, to text.
    fn as_text(&self, value: Expr, place: Place) -> Result<Expr> {
        let field = value.to_field(&place.scope.schema)?.1;
        let of_identifier = match door::column_type(&field) {
            Some(ColumnType::Uuid) => Some(identifiers::UUID_TO_TEXT),
            Some(ColumnType::Ipv4) => Some(identifiers::IPV4_TO_TEXT),
            _ => None,
        };
        match of_identifier.or_else(|| value_texts::cast_function(field.data_type(), &DataType::Utf8View)) {
            Some(name) => self.scalar_call(name, vec![value]),
            None if matches!(field.data_type(), DataType::Interval(_) | DataType::Duration(_)) => {
                Ok(cast(value, DataType::Utf8View))
            }
            None => Ok(value),
        }
    }

    pub(super) fn arguments(&self, args: &[FunctionArg], place: Place) -> Result<Arguments> {
        let mut arguments = Arguments { values: Vec::with_capacity(args.len()), names: Vec::with_capacity(args.len()) };
        for arg in args {
            let (value, name) = match arg {
                FunctionArg::Expr(expr) => (self.expr(expr, place)?, None),
                FunctionArg::Named { name, value } => (self.expr(value, place)?, Some(argument_name(name))),
                FunctionArg::Wildcard(of) => (all_columns(of.as_ref(), place)?, None),
                FunctionArg::Query(query) => (self.scalar_query(query, place)?, None),
            };
            arguments.values.push(value);
            arguments.names.push(name);
        }
        Ok(arguments)
    }

    fn aggregate(
        &self,
        name: &str,
        function: Arc<AggregateUDF>,
        distinct: bool,
        call: &FunctionCall,
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        let null_treatment = null_treatment(call.nulls);
        if null_treatment.is_some() && !function.supports_null_handling_clause() {
            let error = Error::invalid(format!("{name} does not take IGNORE NULLS or RESPECT NULLS"));
            return Err(error.about(name).at(span.start as usize).into());
        }
        let inner = place.within_call();
        let mut arguments = self.arguments(&call.args, inner)?;
        let is_set = function.supports_within_group_clause() || ORDERED_SETS.contains(&name);
        let mut keys = call.order_by.as_slice();
        if !call.within_group.is_empty() {
            if !is_set {
                let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
                return Err(Error::invalid(message).about(name).at(span.start as usize).into());
            }
            keys = &call.within_group;
        } else if is_set && !keys.is_empty() && arguments.values.len() >= 2 {
            // `quantile_cont(x, 0.5 ORDER BY x)`.
            arguments.values.remove(0);
            arguments.names.remove(0);
        }
        let mut order_by = self.inner_order(keys, inner)?;
        if name == "percentile_cont" {
            order_by.iter_mut().try_for_each(|key| widen_real(&mut key.expr, &place.scope.schema))?;
        }
        if is_set && let Some(key) = order_by.first() {
            if order_by.len() > 1 {
                let message = format!("{name} takes one key in WITHIN GROUP");
                return Err(Error::invalid(message).about(name).at(span.start as usize).into());
            }
            arguments.values.insert(0, key.expr.clone());
            arguments.names.insert(0, None);
        }
        let filter = call.filter.as_ref().map(|filter| self.expr(filter, inner)).transpose()?.map(Box::new);
        let args = arguments.resolved(name, function.signature())?;
        let documents = match args.as_slice() {
            [value] if name == "array_agg" => document_list(&value.to_field(&place.scope.schema)?.1),
            _ => None,
        };
        let raw = RawAggregateExpr { func: function, args, distinct, filter, order_by, null_treatment };
        let planned = match &raw.args[..] {
            [value] if name == "avg" && is_interval(value, &place.scope.schema) => self.mean_of_intervals(raw)?,
            [value] if name == "array_agg" && distinct && is_interval(value, &place.scope.schema) => {
                self.distinct_intervals(raw)?
            }
            _ => self.planned_aggregate(raw)?,
        };
        check_level(&planned, name, span)?;
        Ok(with_document_type(planned, documents))
    }

    /// Binds an aggregate of plain arguments.
    pub(super) fn aggregate_of(
        &self,
        name: &str,
        args: Vec<Expr>,
        filter: Option<Expr>,
        order_by: Vec<SortExpr>,
    ) -> Result<Expr> {
        let func = self.aggregate_named(name)?;
        let filter = filter.map(Box::new);
        let raw = RawAggregateExpr { func, args, distinct: false, filter, order_by, null_treatment: None };
        self.planned_aggregate(raw)
    }

    /// Binds `avg` of intervals: their sum divided by their number.
    fn mean_of_intervals(&self, raw: RawAggregateExpr) -> Result<Expr> {
        let [sum, count] = ["sum", "count"].map(|name| {
            let func = self.aggregate_named(name)?;
            self.planned_aggregate(RawAggregateExpr { func, ..raw.clone() })
        });
        self.mean(sum?, count?)
    }

    /// Binds `array_agg(DISTINCT x ORDER BY x)` of intervals: the stock aggregate does not order them by their length.
    fn distinct_intervals(&self, mut raw: RawAggregateExpr) -> Result<Expr> {
        let keys = std::mem::take(&mut raw.order_by);
        let key = match keys.as_slice() {
            [key] if raw.args.contains(&key.expr) => key.clone(),
            _ => return self.planned_aggregate(RawAggregateExpr { order_by: keys, ..raw }),
        };
        let values = self.planned_aggregate(raw)?;
        self.scalar_call(lengths::ORDERED, vec![values, lit(key.asc), lit(key.nulls_first)])
    }

    /// Binds the mean of intervals; NULL without values.
    pub(super) fn mean(&self, sum: Expr, count: Expr) -> Result<Expr> {
        let count = when(count.clone().gt(lit(0_i64)), count).end()?;
        self.scalar_call(lengths::DIVIDED, vec![sum, count])
    }

    /// Binds `count(DISTINCT value)`.
    pub(super) fn distinct_count(&self, value: Expr, filter: Option<Expr>) -> Result<Expr> {
        let (func, args, filter) = (self.aggregate_named("count")?, vec![value], filter.map(Box::new));
        let order_by = Vec::new();
        self.planned_aggregate(RawAggregateExpr { func, args, distinct: true, filter, order_by, null_treatment: None })
    }

    fn aggregate_named(&self, name: &str) -> Result<Arc<AggregateUDF>> {
        let function = self.state.aggregate_functions().get(name).cloned();
        function.ok_or_else(|| Error::internal(format!("aggregate {name} is not registered")).into())
    }

    fn planned_aggregate(&self, raw: RawAggregateExpr) -> Result<Expr> {
        let mut raw = raw;
        for planner in self.state.expr_planners() {
            match planner.plan_aggregate(raw)? {
                PlannerResult::Planned(expr) => return Ok(expr.unalias_nested().data),
                PlannerResult::Original(original) => raw = original,
            }
        }
        let RawAggregateExpr { func, args, distinct, filter, order_by, null_treatment } = raw;
        Ok(Expr::AggregateFunction(AggregateFunction::new_udf(func, args, distinct, filter, order_by, null_treatment)))
    }

    /// Binds ORDER BY within a call or a window, where a number is a constant.
    pub(super) fn inner_order(&self, items: &[OrderItem], place: Place) -> Result<Vec<SortExpr>> {
        items.iter().map(|item| Ok(sort_key(item, self.expr(&item.expr, place)?))).collect()
    }

    /// Binds `make_interval(days => 1)`; parameters that are left out are 0.
    fn make_interval(&self, args: &[FunctionArg], place: Place, span: Span) -> Result<Expr> {
        let mut values: Vec<Option<Expr>> = vec![None; MAKE_INTERVAL.len()];
        for (at, arg) in args.iter().enumerate() {
            let (found, value) = match arg {
                FunctionArg::Named { name, value } => {
                    (MAKE_INTERVAL.iter().position(|own| folded(name) == *own), value)
                }
                FunctionArg::Expr(value) => (Some(at), value),
                _ => return Err(wrong_part(span).into()),
            };
            let value = self.expr(value, place)?;
            match found.and_then(|found| values.get_mut(found)) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                _ => return Err(wrong_part(span).into()),
            }
        }
        let values = values.into_iter().map(|value| value.unwrap_or_else(|| lit(0_i64))).collect();
        self.scalar_call("make_interval", values)
    }

    /// Binds a call whose arguments are separated by keywords.
    pub(super) fn special(&self, call: &SpecialCall, place: Place, span: Span) -> Result<Expr> {
        let bind = |expr: &ast::Expr| self.expr(expr, place);
        match call {
            SpecialCall::Extract { field, operand } => {
                self.scalar_call("date_part", vec![text(folded(field)), bind(operand)?])
            }
            SpecialCall::Position { part, operand } => {
                let args = vec![bind(operand)?, bind(part)?];
                self.by_planners(args, span, |planner, args| planner.plan_position(args))
            }
            SpecialCall::Substring { operand, from, length } => {
                let from = from.as_ref().map_or_else(|| Ok(lit(1_i64)), bind)?;
                let length = length.as_ref().map(bind).transpose()?;
                let args = [bind(operand)?, from].into_iter().chain(length).collect();
                self.by_planners(args, span, |planner, args| planner.plan_substring(args))
            }
            SpecialCall::Overlay { operand, part, from, length } => {
                let args = [bind(operand)?, bind(part)?, bind(from)?];
                let args = args.into_iter().chain(length.as_ref().map(bind).transpose()?).collect();
                self.by_planners(args, span, |planner, args| planner.plan_overlay(args))
            }
            SpecialCall::Trim { side, chars, operand } => {
                let name = match side {
                    TrimSide::Both => "btrim",
                    TrimSide::Leading => "ltrim",
                    TrimSide::Trailing => "rtrim",
                };
                let args = std::iter::once(bind(operand)?).chain(chars.as_ref().map(bind).transpose()?).collect();
                self.scalar_call(name, args)
            }
            SpecialCall::Round { .. } => {
                let error = Error::invalid("floor and ceil of a time are not supported");
                Err(error.with_hint("use date_trunc('day', ts)").at(span.start as usize).into())
            }
            SpecialCall::Keyword(name) => {
                let call = FunctionCall::new(ObjectName { parts: vec![name.clone()], span: name.span });
                self.named_function(&folded(name), &call, place, span)
            }
        }
    }

    fn by_planners(
        &self,
        args: Vec<Expr>,
        span: Span,
        plan: impl Fn(
            &dyn datafusion::logical_expr::planner::ExprPlanner,
            Vec<Expr>,
        ) -> datafusion::common::Result<PlannerResult<Vec<Expr>>>,
    ) -> Result<Expr> {
        let mut args = args;
        for planner in self.state.expr_planners() {
            match plan(planner.as_ref(), args)? {
                PlannerResult::Planned(expr) => return Ok(expr),
                PlannerResult::Original(original) => args = original,
            }
        }
        Err(Error::internal("a call with keywords was not planned").at(span.start as usize).into())
    }
}

fn wrong_part(span: Span) -> Error {
    let error = Error::invalid("make_interval takes years, months, weeks, days, hours, mins and secs, each once");
    error.about("make_interval").at(span.start as usize)
}

/// Casts a REAL to DOUBLE: a value between two others has more digits.
fn widen_real(value: &mut Expr, schema: &DFSchema) -> Result<()> {
    if value.get_type(schema)? == DataType::Float32 {
        *value = cast(value.clone(), DataType::Float64);
    }
    Ok(())
}

pub(super) fn is_interval(value: &Expr, schema: &DFSchema) -> bool {
    value.get_type(schema).is_ok_and(|data_type| matches!(data_type, DataType::Interval(_)))
}

/// Returns true for a function that no statement can name.
fn is_internal(name: &str) -> bool {
    name.starts_with("__")
}

fn argument_name(name: &Ident) -> ArgumentName {
    ArgumentName { value: folded(name), is_quoted: name.quote.is_some() }
}

/// Returns the argument `*` or `t.*`.
fn all_columns(of: Option<&ObjectName>, place: Place) -> Result<Expr> {
    let qualifier = match of {
        None => None,
        Some(name) => match table_reference(&folded_parts(name)).filter(|table| place.scope.has_table(table)) {
            Some(table) => Some(table),
            None => {
                let table = name.parts.last().map(folded).unwrap_or_default();
                let error = Error::invalid(format!("missing FROM-clause entry for table \"{table}\"")).about(table);
                return Err(error.with_code(SqlState::UNDEFINED_TABLE).at(name.span.start as usize).into());
            }
        },
    };
    #[expect(deprecated, reason = "the aggregate planner of DataFusion takes `*` in this form")]
    Ok(Expr::Wildcard { qualifier, options: Box::default() })
}

pub(super) fn null_treatment(nulls: Option<ast::NullTreatment>) -> Option<NullTreatment> {
    nulls.map(|nulls| match nulls {
        ast::NullTreatment::Ignore => NullTreatment::IgnoreNulls,
        ast::NullTreatment::Respect => NullTreatment::RespectNulls,
    })
}

/// Refuses an aggregate of outer columns alone, which would belong to an outer query.
fn check_level(expr: &Expr, name: &str, span: Span) -> Result<()> {
    let (mut has_own, mut has_outer) = (false, false);
    expr.apply(|expr| {
        has_own |= matches!(expr, Expr::Column(_));
        has_outer |= matches!(expr, Expr::OuterReferenceColumn(..));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if has_own || !has_outer {
        return Ok(());
    }
    let error = Error::invalid("aggregates of outer columns alone are not supported").about(name);
    let error = error.with_hint("compute them in a sub-query in FROM: FROM (SELECT max(n) AS m …) a");
    Err(error.at(span.start as usize).into())
}

pub(super) fn unknown_function(name: &str, span: Span) -> BindError {
    no_function(name).at(span.start as usize).into()
}
