//! SAMPLE BY: rows by buckets of time, as an aggregation that any engine can run, and [`super::fill`] behind it.
//!
//! In: the query as it was written and the clause's arguments. Out: rows in order of time, within a bucket in order of
//! the keys. The bucket is `timestamp_floor` of the time, so that a faster operator finds the pattern
//! Aggregate(timestamp_floor(…, ts), keys) and can take its place.

use super::fill::{Fill, FillNode, FillSpec};
use super::intervals::folded;
use super::literals::typed_text;
use super::output_name;
use super::relations::{derived, time_of};
use crate::calendar::{Buckets, Zone};
use crate::dialect::{all_columns, empty_select, query_of, text};
use crate::functions::timestamp_floor::{TimestampFloor, offset_seconds, stride, time_zone};
use crate::{Error, Result, door};
use chrono::{DateTime, Utc};
use datafusion::arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::utils::{find_aggregate_exprs, find_window_exprs};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Subquery, lit};
use datafusion::sql::sqlparser::ast::{self, Select, SelectItem};
use std::sync::Arc;
use tidalite_types::TimeUnit;

const BUCKET: &str = "__bucket";

/// What a selected expression is to the groups.
enum Item {
    /// The same for all of a bucket: its time, or a constant.
    OfBucket(Expr),
    Key(usize),
    Value(usize),
}

/// The clause, understood.
struct Clause {
    buckets: Buckets,
    /// Buckets begin with the first row there is.
    is_first: bool,
    from: Option<i64>,
    to: Option<i64>,
    texts: [Option<String>; 3],
    fills: Vec<FillValue>,
}

/// The clause as written in the statement, with bound constants.
pub(crate) struct SampleBy {
    /// Such as `15m`.
    pub stride: String,
    pub from: Option<Expr>,
    pub to: Option<Expr>,
    /// True for ALIGN TO FIRST OBSERVATION.
    pub is_first: bool,
    pub zone: Option<String>,
    pub offset: Option<String>,
    pub fills: Vec<FillValue>,
}

/// The value of an aggregate in an empty bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FillValue {
    None,
    Null,
    /// The value before, also of another aggregate.
    Prev(Option<String>),
    Linear,
    /// The text of a constant.
    Constant(String),
    /// Anything else, as it is written.
    Other(String),
}

/// The input of SAMPLE BY with a column for the bucket of each row, before grouping.
pub(crate) struct Sampling {
    bucketed: LogicalPlan,
    time: Column,
    clause: Clause,
}

impl Sampling {
    pub fn try_new(input: LogicalPlan, written: SampleBy, now: DateTime<Utc>) -> Result<Sampling> {
        let time = time_of(&input, "SAMPLE BY")?;
        let clause = Clause::try_new(written, &input, &time, now)?;
        let input = clause.bounded(input, &time)?;
        let bucketed = clause.bucketed(input, &time)?;
        Ok(Sampling { bucketed, time, clause })
    }

    /// The rows that selected expressions are over.
    pub fn rows(&self) -> &LogicalPlan {
        &self.bucketed
    }

    /// The column of the time.
    pub fn time(&self) -> &Column {
        &self.time
    }

    /// Returns the plan of the groups; `items` are the selected expressions with their output columns.
    pub fn grouped(self, items: Vec<(Expr, Column)>, having: Option<Expr>) -> Result<LogicalPlan> {
        let (items, names): (Vec<Expr>, Vec<Column>) = items.into_iter().unzip();
        let of_bucket = |expr: Expr| of_bucket(expr, &self.time);
        let items = items.into_iter().map(of_bucket).collect::<Result<Vec<_>>>()?;
        let having = having.map(of_bucket).transpose()?;
        if !find_window_exprs(items.iter().chain(&having)).is_empty() {
            return Err(Error::invalid("window functions go around SAMPLE BY: SELECT … OVER () FROM (… SAMPLE BY …)"));
        }
        grouped(self.bucketed, &items, names, having, &self.clause)
    }
}

pub(super) fn plan(
    select: Select,
    arguments: Vec<ast::Expr>,
    now: DateTime<Utc>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    if select.from.is_empty() {
        return Err(Error::invalid("SAMPLE BY needs a table to sample"));
    }
    if select.distinct.is_some() || select.qualify.is_some() {
        return Err(Error::invalid("DISTINCT and QUALIFY go around SAMPLE BY: SELECT DISTINCT … FROM (… SAMPLE BY …)"));
    }
    let rows = Select {
        projection: vec![all_columns()],
        from: select.from.clone(),
        selection: select.selection.clone(),
        ..empty_select(&select)
    };
    let input = context.plan(derived(query_of(rows)))?;
    let sampling = Sampling::try_new(input, written(&arguments, context)?, now)?;
    let items = items(select.projection, sampling.rows(), context)?;
    let having = match select.having {
        Some(having) => Some(normalize_col(context.sql_to_expr(having, sampling.rows().schema())?, sampling.rows())?),
        None => None,
    };
    sampling.grouped(items, having)
}

/// The clause from the arguments of the call that the dialect makes of it.
fn written(arguments: &[ast::Expr], context: &mut dyn RelationPlannerContext) -> Result<SampleBy> {
    let [length, from, to, kind, zone, offset, fills @ ..] = arguments else {
        return Err(malformed());
    };
    let mut bound = |expr: &ast::Expr| match is_null(expr) {
        true => Ok(None),
        false => context.sql_to_expr(expr.clone(), &DFSchema::empty()).map(Some),
    };
    Ok(SampleBy {
        stride: text(length).unwrap_or_default(),
        from: bound(from)?,
        to: bound(to)?,
        is_first: text(kind).as_deref() == Some("first"),
        zone: text(zone),
        offset: text(offset),
        fills: fills.iter().map(fill_value).collect(),
    })
}

fn fill_value(expr: &ast::Expr) -> FillValue {
    if is_null(expr) {
        return FillValue::Null;
    }
    match word(expr).as_deref() {
        Some("none") => return FillValue::None,
        Some("prev") => return FillValue::Prev(None),
        Some("linear") => return FillValue::Linear,
        _ => {}
    }
    if let Some((_, arguments)) = crate::dialect::call(expr).filter(|(name, _)| name == "prev") {
        return FillValue::Prev(Some(arguments.first().and_then(word).unwrap_or_default()));
    }
    constant_text(expr).map_or_else(|| FillValue::Other(expr.to_string()), FillValue::Constant)
}

/// The clause is written as a call of a function that only the dialect knows; users can write one, too.
fn malformed() -> Error {
    Error::invalid("SAMPLE BY takes a length, such as 1h, and then FROM … TO, FILL or ALIGN TO")
}

/// Returns the buckets of SAMPLE BY in a materialized view: aligned to the calendar, none filled.
pub(crate) fn fixed_buckets(length: &str, zone: Option<&str>, offset: Option<&str>, unit: TimeUnit) -> Result<Buckets> {
    Ok(Buckets {
        stride: stride(length)?,
        zone: zone.map_or(Ok(Zone::UTC), time_zone)?,
        offset_s: offset.map_or(Ok(0), offset_seconds)?,
        origin: None,
        unit,
    })
}

impl Clause {
    fn try_new(written: SampleBy, input: &LogicalPlan, time: &Column, now: DateTime<Utc>) -> Result<Clause> {
        let field = input.schema().field_from_column(time)?;
        let unit = match field.data_type() {
            DataType::Timestamp(ArrowUnit::Millisecond, None) => TimeUnit::Millis,
            DataType::Timestamp(ArrowUnit::Microsecond, None) => TimeUnit::Micros,
            DataType::Timestamp(ArrowUnit::Nanosecond, None) => TimeUnit::Nanos,
            other => return Err(Error::invalid(format!("SAMPLE BY takes a timestamp, not {other}"))),
        };
        let texts = [Some(written.stride), written.offset, written.zone];
        let zone = texts[2].as_deref().map_or(Ok(Zone::UTC), time_zone)?;
        let at = |expr: Option<Expr>| -> Result<Option<i64>> {
            let Some(expr) = expr else { return Ok(None) };
            let expr = folded(typed_text(&Expr::Column(time.clone()), expr, input.schema())?, now);
            let Expr::Literal(value, _) = &expr else {
                return Err(Error::invalid("FROM and TO of SAMPLE BY have to be constants"));
            };
            let Ok(ScalarValue::Int64(Some(local))) =
                value.cast_to(field.data_type()).and_then(|v| v.cast_to(&DataType::Int64))
            else {
                return Err(Error::invalid("FROM and TO of SAMPLE BY have to be timestamps"));
            };
            let per_second = unit.per_second();
            let seconds = zone.to_utc(local.div_euclid(per_second));
            Ok(seconds.checked_mul(per_second).and_then(|s| s.checked_add(local.rem_euclid(per_second))))
        };
        let (from, to) = (at(written.from)?, at(written.to)?);
        let is_first = written.is_first;
        if is_first && (from.is_some() || to.is_some()) {
            return Err(Error::invalid("SAMPLE BY FROM and TO go with ALIGN TO CALENDAR only"));
        }
        let buckets = Buckets {
            stride: stride(texts[0].as_deref().unwrap_or_default())?,
            zone,
            offset_s: texts[1].as_deref().map_or(Ok(0), offset_seconds)?,
            origin: from,
            unit,
        };
        Ok(Clause { buckets, is_first, from, to, texts, fills: written.fills })
    }

    /// The rows of FROM … TO: what is outside is not read.
    fn bounded(&self, input: LogicalPlan, time: &Column) -> Result<LogicalPlan> {
        let value = |ts: i64| lit(super::intervals::scalar(ts, self.buckets.unit));
        let time = || Expr::Column(time.clone());
        let bounds = self.from.map(|ts| time().gt_eq(value(ts))).into_iter();
        let bounds = bounds.chain(self.to.map(|ts| time().lt(value(ts))));
        match bounds.reduce(Expr::and) {
            Some(bounds) => Ok(LogicalPlanBuilder::from(input).filter(bounds)?.build()?),
            None => Ok(input),
        }
    }

    /// The rows with one more column, the start of their bucket.
    fn bucketed(&self, input: LogicalPlan, time: &Column) -> Result<LogicalPlan> {
        let data_type = DataType::Timestamp(door::arrow_unit(self.buckets.unit), None);
        let [length, offset, zone] = &self.texts;
        let mut args = vec![lit(length.clone().unwrap_or_default()), Expr::Column(time.clone())];
        let origin = if self.is_first {
            let earliest = LogicalPlanBuilder::from(input.clone())
                .aggregate(Vec::<Expr>::new(), vec![min(Expr::Column(time.clone()))])?;
            let subquery = Arc::new(earliest.build()?);
            Some(Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns: Vec::new(), spans: Spans::new() }))
        } else {
            self.from.map(|ts| lit(super::intervals::scalar(ts, self.buckets.unit)))
        };
        if origin.is_some() || offset.is_some() || zone.is_some() {
            args.push(origin.unwrap_or_else(|| {
                Expr::Literal(ScalarValue::try_from(&data_type).unwrap_or(ScalarValue::Null), None)
            }));
        }
        if offset.is_some() || zone.is_some() {
            let text = |t: &Option<String>| Expr::Literal(ScalarValue::Utf8(t.clone()), None);
            args.extend([text(offset), text(zone)]);
        }
        let floor = Arc::new(ScalarUDF::new_from_impl(TimestampFloor::new(false)));
        let bucket = Expr::ScalarFunction(ScalarFunction::new_udf(floor, args)).alias(BUCKET);
        let columns = input.schema().columns().into_iter().map(Expr::Column).chain([bucket]);
        let columns: Vec<Expr> = columns.collect();
        Ok(LogicalPlanBuilder::from(input).project(columns)?.build()?)
    }
}

fn is_null(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(value) if value.value == ast::Value::Null)
        || matches!(expr, ast::Expr::Identifier(ident) if ident.value == "null" && ident.quote_style.is_none())
}

fn bucket() -> Expr {
    Expr::Column(Column::new_unqualified(BUCKET))
}

/// The selected expressions over rows with their bucket, and the names they go by.
fn items(
    projection: Vec<SelectItem>,
    bucketed: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<(Expr, Column)>> {
    let mut items = Vec::new();
    for item in projection {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value)),
            _ => return Err(starred()),
        };
        let expr = normalize_col(context.sql_to_expr(expr, bucketed.schema())?, bucketed)?;
        let name = output_name(&expr, alias);
        items.push((expr, name));
    }
    Ok(items)
}

/// Returns the error for `*` beside SAMPLE BY.
pub(crate) fn starred() -> Error {
    Error::invalid("SAMPLE BY needs its columns named: * would group by all of them")
}

/// Outside of aggregates the time of a row is that of its bucket.
fn of_bucket(expr: Expr, time: &Column) -> Result<Expr> {
    let done = expr.transform_down(|e| {
        Ok(match e {
            Expr::AggregateFunction(_) => Transformed::new(e, false, TreeNodeRecursion::Jump),
            Expr::Column(ref column) if column == time => Transformed::yes(bucket()),
            other => Transformed::no(other),
        })
    });
    Ok(done.data()?)
}

fn grouped(
    bucketed: LogicalPlan,
    selected: &[Expr],
    names: Vec<Column>,
    having: Option<Expr>,
    clause: &Clause,
) -> Result<LogicalPlan> {
    let aggregates = find_aggregate_exprs(selected.iter().chain(&having));
    let (mut items, mut keys, mut values) = (Vec::new(), Vec::<Expr>::new(), Vec::<Expr>::new());
    for expr in selected {
        let has_aggregate = !find_aggregate_exprs([expr]).is_empty();
        let is_of_bucket = expr.column_refs().iter().all(|c| c.relation.is_none() && c.name == BUCKET);
        items.push(if has_aggregate {
            values.push(expr.clone());
            Item::Value(values.len() - 1)
        } else if is_of_bucket {
            Item::OfBucket(expr.clone())
        } else {
            let known = keys.iter().position(|key| key == expr);
            Item::Key(known.unwrap_or_else(|| {
                keys.push(expr.clone());
                keys.len() - 1
            }))
        });
    }
    let groups: Vec<Expr> = std::iter::once(bucket()).chain(keys.iter().cloned()).collect();
    let mut plan = LogicalPlanBuilder::from(bucketed).aggregate(groups.clone(), aggregates.clone())?.build()?;
    let known: Vec<Expr> = groups.iter().chain(&aggregates).cloned().collect();
    let over = |expr: &Expr, plan: &LogicalPlan| over_groups(expr, &known, plan);
    if let Some(having) = having {
        let having = over(&having, &plan)?;
        plan = LogicalPlanBuilder::from(plan).filter(having)?.build()?;
    }
    let mut columns = vec![bucket()];
    for (i, key) in keys.iter().enumerate() {
        columns.push(over(key, &plan)?.alias(key_name(i)));
    }
    for (i, value) in values.iter().enumerate() {
        columns.push(over(value, &plan)?.alias(value_name(i)));
    }
    let order = std::iter::once(bucket()).chain((0..keys.len()).map(|i| unqualified(&key_name(i))));
    let order: Vec<_> = order.map(|e| e.sort(true, false)).collect();
    let mut plan = LogicalPlanBuilder::from(plan).project(columns)?.sort(order.clone())?.build()?;
    if let Some(fills) = fills(clause, &plan, keys.len(), values.len(), &items, &names)? {
        let (buckets, is_first, from, to) = (clause.buckets, clause.is_first, clause.from, clause.to);
        let node = FillNode::new(plan, FillSpec { keys: keys.len(), fills, buckets, is_first, from, to })?;
        plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        plan = LogicalPlanBuilder::from(plan).sort([bucket().sort(true, false)])?.build()?;
    }
    let outputs: Vec<Expr> = items.iter().zip(names).map(|(item, name)| output(item, name)).collect();
    Ok(LogicalPlanBuilder::from(plan).project(outputs)?.build()?)
}

fn key_name(i: usize) -> String {
    format!("__key{i}")
}

fn value_name(i: usize) -> String {
    format!("__value{i}")
}

fn unqualified(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn output(item: &Item, name: Column) -> Expr {
    let (expr, metadata) = match item {
        Item::OfBucket(expr) if *expr == bucket() => (expr.clone(), Some(door::designated_metadata().into())),
        Item::OfBucket(expr) => (expr.clone(), None),
        Item::Key(i) => (unqualified(&key_name(*i)), None),
        Item::Value(i) => (unqualified(&value_name(*i)), None),
    };
    expr.alias_qualified_with_metadata(name.relation, name.name, metadata)
}

/// The expression over the columns of the groups, with nothing left of the rows.
pub(super) fn over_groups(expr: &Expr, known: &[Expr], plan: &LogicalPlan) -> Result<Expr> {
    let done = expr.clone().transform_down(|e| {
        if !known.contains(&e) {
            return Ok(Transformed::no(e));
        }
        let column = match &e {
            Expr::Column(column) => column.clone(),
            other => Column::new_unqualified(other.schema_name().to_string()),
        };
        Ok(Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump))
    });
    let done = done.data()?;
    if let Some(column) = done.column_refs().into_iter().find(|c| plan.schema().maybe_index_of_column(c).is_none()) {
        let mut error = Error::invalid(format!(
            "column \"{}\" must be used in an aggregate function or selected as it is",
            column.name
        ));
        error.subject = Some(column.name.clone());
        return Err(error);
    }
    Ok(done)
}

/// How each value is filled; `None` when nothing is.
fn fills(
    clause: &Clause,
    plan: &LogicalPlan,
    keys: usize,
    values: usize,
    items: &[Item],
    names: &[Column],
) -> Result<Option<Vec<Fill>>> {
    let given = &clause.fills;
    if given.is_empty() || given.iter().all(|value| *value == FillValue::None) {
        return Ok(None);
    }
    if given.len() != 1 && given.len() != values {
        return Err(Error::invalid(format!("FILL has {} values for {values} aggregates", given.len()))
            .with_hint("FILL takes one value, or one for each aggregate in the order they are selected"));
    }
    let value_named = |name: &str| {
        items.iter().zip(names).find_map(|(item, n)| match item {
            Item::Value(i) if n.name == name => Some(*i),
            _ => None,
        })
    };
    let fill = |i: usize| -> Result<Fill> {
        let given = if given.len() == 1 { &given[0] } else { &given[i] };
        let field = plan.schema().field(1 + keys + i);
        Ok(match given {
            FillValue::Null => Fill::Null,
            FillValue::Prev(None) => Fill::Prev(i),
            FillValue::Linear if field.data_type().is_numeric() => Fill::Linear,
            FillValue::Linear => {
                let name = door::type_name(field);
                return Err(Error::invalid(format!("FILL(LINEAR) needs numbers, and {name} are not")));
            }
            FillValue::None => return Err(Error::invalid("FILL(NONE) cannot be among other fills")),
            FillValue::Prev(Some(name)) => {
                let Some(other) = value_named(name) else {
                    return Err(Error::invalid("FILL(prev(…)) takes the name of an aggregate"));
                };
                if plan.schema().field(1 + keys + other).data_type() != field.data_type() {
                    return Err(Error::invalid("FILL(PREV(…)) takes an aggregate of the same type"));
                }
                Fill::Prev(other)
            }
            FillValue::Constant(text) => Fill::Constant(constant(text, field.data_type())?),
            FillValue::Other(written) => {
                let message = format!("FILL takes NONE, NULL, PREV, LINEAR or a constant, not {written}");
                return Err(Error::invalid(message));
            }
        })
    };
    (0..values).map(fill).collect::<Result<Vec<_>>>().map(Some)
}

fn word(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Identifier(ident) => Some(ident.value.clone()),
        _ => None,
    }
}

/// Returns the text of a number, a string or a boolean.
fn constant_text(expr: &ast::Expr) -> Option<String> {
    let (sign, value) = match expr {
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => ("-", expr.as_ref()),
        other => ("", other),
    };
    let ast::Expr::Value(value) = value else { return None };
    match &value.value {
        ast::Value::Number(text, _) => Some(format!("{sign}{text}")),
        ast::Value::SingleQuotedString(text) => Some(text.clone()),
        ast::Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn constant(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    let fits = ScalarValue::Utf8(Some(text.to_owned())).cast_to(data_type);
    fits.ok()
        .filter(|v| !v.is_null())
        .ok_or_else(|| Error::invalid(format!("FILL value {text} does not fit an aggregate of another type")))
}
