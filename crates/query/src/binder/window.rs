//! Window functions: OVER, named windows, frames.

use super::functions::{Arguments, is_interval, null_treatment, unknown_function};
use super::literals::interval_value;
use super::names::folded;
use super::scope::{Env, Place};
use super::select::empty_scope;
use super::{Binder, Parameters, Result};
use crate::dialect::WITHOUT_FRAME;
use crate::functions::{excluding as exclusions, nested, shifts};
use crate::{Error, plan};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Dependency, ScalarValue};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::planner::{PlannerResult, RawWindowExpr};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Expr, ExprSchemable, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit, when,
};
use tidalite_sql::Span;
use tidalite_sql::ast::{
    self, Duration, DurationUnit, ExprKind, FrameBound, FrameExclusion, FrameOffset, FrameUnits, FunctionCall, Ident,
    Literal, OrderItem, Over, WindowSpec,
};
use tidalite_types::{Interval, SqlState};

/// Functions that are both aggregates and window functions.
const BY_POSITION: &[&str] = &["first_value", "last_value", "nth_value"];

/// A window with the clauses of the windows that it extends.
struct Window<'w> {
    partition_by: &'w [ast::Expr],
    order_by: &'w [OrderItem],
    frame: Option<&'w ast::WindowFrame>,
}

/// The distance of the bound of a frame from the current row.
enum Distance {
    Number(String),
    Interval(Interval),
}

impl Distance {
    fn is_negative(&self) -> bool {
        match self {
            Distance::Number(number) => number.starts_with('-'),
            Distance::Interval(interval) => interval.total_nanos() < 0,
        }
    }

    /// Returns a number of rows; `None` for other distances.
    fn rows(&self) -> Option<u64> {
        match self {
            Distance::Number(number) => number.parse().ok(),
            Distance::Interval(_) => None,
        }
    }

    fn text(self) -> String {
        match self {
            Distance::Number(number) => number,
            Distance::Interval(Interval { months, days, nanos }) => {
                format!("{months} months {days} days {nanos} nanoseconds")
            }
        }
    }
}

impl Binder<'_> {
    pub(super) fn window(
        &self,
        name: &str,
        distinct: bool,
        call: &FunctionCall,
        over: &Over,
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        if !call.order_by.is_empty() || !call.within_group.is_empty() {
            let error = Error::invalid("ORDER BY in the arguments of a window function is not supported").about(name);
            return Err(error.with_hint("order the window: OVER (ORDER BY …)").at(span.start as usize).into());
        }
        let window = window_of(over, place)?;
        let inner = place.within_call();
        let is_key = |key: &&ast::Expr| !matches!(key.kind, ExprKind::Literal(_));
        let keys = window.partition_by.iter().filter(is_key);
        let mut partition_by = keys.map(|key| self.expr(key, inner)).collect::<Result<Vec<_>>>()?;
        // A constant partitions nothing. Workaround for DataFusion 55 (DF-75): its planner fails for some constants.
        partition_by.retain(|key| !is_constant(key));
        let mut order_by = self.inner_order(window.order_by, inner)?;
        let frame = self.frame(window.frame, &mut order_by, place)?;
        let mut args = self.arguments(&call.args, inner)?;
        let mut filter = call.filter.as_ref().map(|filter| self.expr(filter, inner)).transpose()?.map(Box::new);
        let (mut name, mut distinct) = (name.to_owned(), distinct);
        if plan::needs_time(&name, args.values.len())
            && let Some(key) = order_by.first()
        {
            args.values.push(key.expr.clone());
            args.names.push(None);
        }
        // `avg(x, kind, n)` is an exponential average.
        let has_frame = !WITHOUT_FRAME.contains(&name.as_str()) && !(name == "avg" && args.values.len() > 2);
        if let Some(what) = window.frame.and_then(excluded).filter(|_| has_frame) {
            let Some(of) = self.state.aggregate_functions().get(&name) else {
                return Err(unknown_function(&name, call.name.span));
            };
            let values = plain_values(&name, args.values);
            // Here an error names the aggregate.
            let fields = values.iter().map(|value| Ok(value.to_field(&place.scope.schema)?.1));
            fields_with_udf(&fields.collect::<Result<Vec<_>>>()?, of.as_ref())?;
            args = Arguments::positional(excluding(values, filter.take(), distinct));
            name = exclusions::name(what, &name);
            distinct = false;
        }
        let Some(func_def) = self.window_function(&name) else {
            return Err(unknown_function(&name, call.name.span));
        };
        let signature = match &func_def {
            WindowFunctionDefinition::AggregateUDF(function) => function.signature(),
            WindowFunctionDefinition::WindowUDF(function) => function.signature(),
        };
        let args = args.resolved(&name, signature)?;
        let null_treatment = null_treatment(call.nulls);
        let raw = RawWindowExpr {
            func_def,
            args,
            partition_by,
            order_by,
            window_frame: frame,
            filter,
            null_treatment,
            distinct,
        };
        if let ("avg", [value]) = (name.as_str(), &raw.args[..])
            && is_interval(value, &place.scope.schema)
        {
            return self.mean_of_window(raw);
        }
        if !shifts::is_shift(&raw.func_def) {
            return self.planned_window(raw);
        }
        if matches!(&raw.args[..], [_, _, default] if !matches!(default, Expr::Literal(..))) {
            return self.neighbour_or_default(raw);
        }
        self.planned_window(RawWindowExpr { args: with_typed_default(raw.args, &place.scope.schema)?, ..raw })
    }

    /// Binds `avg` of intervals over a window: their sum divided by their number.
    fn mean_of_window(&self, raw: RawWindowExpr) -> Result<Expr> {
        let [sum, count] = ["sum", "count"].map(|name| {
            let missing = || Error::internal(format!("aggregate {name} is not registered"));
            let func_def = self.window_function(name).ok_or_else(missing)?;
            self.planned_window(RawWindowExpr { func_def, ..raw.clone() })
        });
        self.mean(sum?, count?)
    }

    /// Binds `lag` or `lead` with a default that is not a constant: a value of the current row.
    fn neighbour_or_default(&self, mut raw: RawWindowExpr) -> Result<Expr> {
        let Some(default) = raw.args.pop() else { return self.planned_window(raw) };
        let value = self.planned_window(raw.clone())?;
        if raw.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return self.scalar_call("coalesce", vec![value, default]);
        }
        raw.args[0] = lit(true);
        let has_row = self.planned_window(raw)?;
        Ok(when(has_row.is_true(), value).otherwise(default)?)
    }

    fn planned_window(&self, raw: RawWindowExpr) -> Result<Expr> {
        let mut raw = raw;
        for planner in self.state.expr_planners() {
            match planner.plan_window(raw)? {
                PlannerResult::Planned(expr) => return Ok(expr.unalias_nested().data),
                PlannerResult::Original(original) => raw = original,
            }
        }
        let RawWindowExpr { func_def, args, partition_by, order_by, window_frame, filter, null_treatment, distinct } =
            raw;
        let params =
            WindowFunctionParams { args, partition_by, order_by, window_frame, filter, null_treatment, distinct };
        Ok(Expr::WindowFunction(Box::new(WindowFunction { fun: func_def, params })))
    }

    /// Returns the aggregate or window function of a name.
    fn window_function(&self, name: &str) -> Option<WindowFunctionDefinition> {
        let aggregate = self.state.aggregate_functions().get(name);
        if let Some(function) = aggregate.filter(|function| !BY_POSITION.contains(&function.name())) {
            return Some(WindowFunctionDefinition::AggregateUDF(function.clone()));
        }
        self.state.window_functions().get(name).cloned().map(WindowFunctionDefinition::WindowUDF)
    }

    fn frame(
        &self,
        written: Option<&ast::WindowFrame>,
        order_by: &mut Vec<SortExpr>,
        place: Place,
    ) -> Result<WindowFrame> {
        let is_by_row = || {
            let key = order_by.first().map(|key| key.expr.get_type(&place.scope.schema));
            matches!(key, Some(Ok(data_type)) if is_row(&data_type))
        };
        let Some(written) = written else {
            let mut frame = WindowFrame::new(is_strict(order_by, place));
            if frame.units == WindowFrameUnits::Range && is_by_row() {
                frame.units = WindowFrameUnits::Groups;
            }
            return Ok(frame);
        };
        let has_distance = [Some(&written.start), written.end.as_ref()].into_iter().flatten().any(is_distance);
        let units = match written.units {
            // The frame begins with the first row, as in QuestDB.
            FrameUnits::Rows | FrameUnits::Cumulative => WindowFrameUnits::Rows,
            // DataFusion has no RANGE for rows and arrays of arrays; without a distance GROUPS is the same.
            FrameUnits::Range if !has_distance && is_by_row() => WindowFrameUnits::Groups,
            FrameUnits::Range => WindowFrameUnits::Range,
            FrameUnits::Groups => WindowFrameUnits::Groups,
        };
        let start = self.bound(&written.start, units)?;
        let end = match &written.end {
            _ if ends_before_current(written) => WindowFrameBound::Preceding(ScalarValue::UInt64(Some(1))),
            None => WindowFrameBound::CurrentRow,
            Some(end) => self.bound(end, units)?,
        };
        let starts_last = matches!(&start, WindowFrameBound::Following(value) if value.is_null());
        if starts_last || matches!(&end, WindowFrameBound::Preceding(value) if value.is_null()) {
            let error = Error::invalid("a frame starts with UNBOUNDED FOLLOWING, or ends with UNBOUNDED PRECEDING");
            return Err(error.with_code(SqlState::WINDOWING_ERROR).into());
        }
        let frame = WindowFrame::new_bounds(units, start, end);
        frame.regularize_order_bys(order_by)?;
        Ok(frame)
    }

    fn bound(&self, bound: &FrameBound, units: WindowFrameUnits) -> Result<WindowFrameBound> {
        let unbounded = ScalarValue::UInt64(None);
        Ok(match bound {
            FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            FrameBound::Preceding(None) => WindowFrameBound::Preceding(unbounded),
            FrameBound::Following(None) => WindowFrameBound::Following(unbounded),
            FrameBound::Preceding(Some(offset)) => WindowFrameBound::Preceding(self.distance(offset, units)?),
            FrameBound::Following(Some(offset)) => WindowFrameBound::Following(self.distance(offset, units)?),
        })
    }

    fn distance(&self, offset: &FrameOffset, units: WindowFrameUnits) -> Result<ScalarValue> {
        let (span, computed) = match offset {
            FrameOffset::Expr(expr) => (expr.span, self.computed_distance(expr)?),
            FrameOffset::Duration(duration) => (duration.span, None),
        };
        let refused = |message: &str| Error::invalid(message).at(span.start as usize);
        let distance = written_distance(offset).or(computed);
        let distance = distance.ok_or_else(|| refused("the distance of a frame is a constant number or interval"))?;
        if units == WindowFrameUnits::Range {
            return match distance.is_negative() {
                true => Err(refused("invalid preceding or following size in window function").into()),
                false => Ok(ScalarValue::Utf8(Some(distance.text()))),
            };
        }
        let rows = distance.rows();
        let rows = rows.ok_or_else(|| refused("the distance of a frame is a number of rows that is not negative"))?;
        Ok(ScalarValue::UInt64(Some(rows)))
    }

    /// Returns the distance of a computed constant.
    fn computed_distance(&self, expr: &ast::Expr) -> Result<Option<Distance>> {
        if matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Interval(_)) {
            return Ok(None);
        }
        let (scope, env) = (empty_scope(None), Env::default());
        let value = self.simplified(vec![self.expr(expr, Place::new(&scope, &env))?])?.pop();
        Ok(match value {
            Some(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(of)), _)) => {
                Some(Distance::Interval(Interval { months: of.months, days: of.days, nanos: of.nanoseconds }))
            }
            Some(Expr::Literal(value, _)) if !value.is_null() => Some(Distance::Number(value.to_string())),
            // A parameter without a value.
            _ if matches!(self.parameters, Parameters::Types(_)) => Some(Distance::Number("1".to_owned())),
            _ => None,
        })
    }
}

/// Returns the arguments of an aggregate with 1 for `*` and for no argument.
fn plain_values(name: &str, args: Vec<Expr>) -> Vec<Expr> {
    #[expect(deprecated, reason = "`*` is an argument in this form")]
    let plain = |arg| if matches!(arg, Expr::Wildcard { .. }) { lit(1_i64) } else { arg };
    let mut args: Vec<Expr> = args.into_iter().map(plain).collect();
    if args.is_empty() && name == "count" {
        args.push(lit(1_i64));
    }
    args
}

/// Returns the arguments of a function over frames that exclude rows: the filter, DISTINCT, and the arguments of the
/// aggregate.
fn excluding(args: Vec<Expr>, filter: Option<Box<Expr>>, distinct: bool) -> Vec<Expr> {
    let condition = filter.map_or_else(|| lit(true), |filter| *filter);
    [condition, lit(distinct)].into_iter().chain(args).collect()
}

/// Returns the window of a call, with what it takes from the windows that it names.
fn window_of<'p>(over: &'p Over, place: Place<'p>) -> Result<Window<'p>> {
    let mut spec = match over {
        Over::Name(name) => named(name, place)?,
        Over::Spec(spec) => spec,
    };
    let mut window = Window { partition_by: &spec.partition_by, order_by: &spec.order_by, frame: spec.frame.as_ref() };
    // A window that extends itself is visited as often as there are windows.
    for _ in 0..place.windows.len() {
        let Some(base) = &spec.base else { break };
        spec = named(base, place)?;
        if window.partition_by.is_empty() {
            window.partition_by = &spec.partition_by;
        }
        if window.order_by.is_empty() {
            window.order_by = &spec.order_by;
        }
        window.frame = window.frame.or(spec.frame.as_ref());
    }
    Ok(window)
}

fn named<'p>(name: &Ident, place: Place<'p>) -> Result<&'p WindowSpec> {
    let own = folded(name);
    let found = place.windows.iter().find(|window| folded(&window.name) == own);
    found.map(|window| &window.spec).ok_or_else(|| {
        let error = Error::invalid(format!("window \"{own}\" does not exist")).about(own);
        error.with_code(SqlState::UNDEFINED_OBJECT).at(name.span.start as usize).into()
    })
}

/// Returns true if no two rows can be peers, false if they can be, `None` without an order.
fn is_strict(order_by: &[SortExpr], place: Place) -> Option<bool> {
    let first = order_by.first()?;
    let Expr::Column(column) = &first.expr else { return Some(false) };
    let Ok(at) = place.scope.schema.index_of_column(column) else { return Some(false) };
    let dependencies = place.scope.schema.functional_dependencies();
    Some(dependencies.iter().any(|of| of.source_indices == vec![at] && of.mode == Dependency::Single))
}

/// Returns the arguments of `lag` or `lead`, whose default is a literal, with a value and a default of one numeric type.
fn with_typed_default(args: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let [value, offset, default] = args.as_slice() else { return Ok(args) };
    let value = plan::exact_expr(value.clone(), schema)?;
    match plan::with_common_fractions([&value, default], schema)?.as_deref() {
        Some([value, default]) => Ok(vec![value.clone(), offset.clone(), default.clone()]),
        _ => Ok(args),
    }
}

/// Returns the rows that a frame excludes.
fn excluded(frame: &ast::WindowFrame) -> Option<&'static str> {
    match frame.exclusion? {
        FrameExclusion::NoOthers => None,
        FrameExclusion::CurrentRow if ends_before_current(frame) => None,
        FrameExclusion::CurrentRow => Some("current_row"),
        FrameExclusion::Group => Some("group"),
        FrameExclusion::Ties => Some("ties"),
    }
}

/// Returns true for `ROWS … PRECEDING … CURRENT ROW EXCLUDE CURRENT ROW`, which ends with the row before.
fn ends_before_current(frame: &ast::WindowFrame) -> bool {
    let starts_before = match &frame.start {
        FrameBound::Preceding(None) => true,
        FrameBound::Preceding(Some(offset)) => {
            written_distance(offset).and_then(|distance| distance.rows()).is_some_and(|rows| rows > 0)
        }
        _ => false,
    };
    starts_before
        && frame.units == FrameUnits::Rows
        && frame.exclusion == Some(FrameExclusion::CurrentRow)
        && matches!(frame.end, None | Some(FrameBound::CurrentRow))
}

/// Returns true for rows, and for arrays of rows or arrays.
fn is_row(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(item) => nested::is_nested(item.data_type()),
        _ => false,
    }
}

fn is_distance(bound: &FrameBound) -> bool {
    matches!(bound, FrameBound::Preceding(Some(_)) | FrameBound::Following(Some(_)))
}

/// Returns the distance of a literal.
fn written_distance(offset: &FrameOffset) -> Option<Distance> {
    match offset {
        FrameOffset::Duration(duration) => interval_of(duration).map(Distance::Interval),
        FrameOffset::Expr(expr) => match &expr.kind {
            ExprKind::Literal(Literal::Number(digits)) => Some(Distance::Number(digits.clone())),
            ExprKind::Interval(interval) => interval_value(interval).map(Distance::Interval),
            _ => None,
        },
    }
}

fn interval_of(duration: &Duration) -> Option<Interval> {
    let unit = match duration.unit {
        DurationUnit::Nanosecond => "nanoseconds",
        DurationUnit::Microsecond => "microseconds",
        DurationUnit::Millisecond => "milliseconds",
        DurationUnit::Second => "seconds",
        DurationUnit::Minute => "minutes",
        DurationUnit::Hour => "hours",
        DurationUnit::Day => "days",
        DurationUnit::Week => "weeks",
        DurationUnit::Month => "months",
        DurationUnit::Year => "years",
    };
    Interval::parse(&format!("{} {unit}", duration.count), None).ok()
}

/// Returns true for an expression of literals and functions that are not volatile.
fn is_constant(expr: &Expr) -> bool {
    let varies = expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::Placeholder(_)
        ))
    });
    !varies.unwrap_or(true) && !expr.is_volatile()
}
