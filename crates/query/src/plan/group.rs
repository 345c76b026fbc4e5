//! GROUP BY, DISTINCT and aggregates without keys, where our own operator understands them: see [`crate::exec::group`].
//!
//! Works on the optimised plan. Whatever is not understood stays with DataFusion, and so does what it answers without
//! reading: counts and bounds of a whole table, and DISTINCT with a LIMIT.

mod asked;

use crate::door;
use crate::exec::group::{By, Generic, GroupExec, Input, Wanted};
use crate::functions::{checked, pick};
use crate::{Error, Result};
use asked::Asked;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, Result as DFResult, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, Extension, LogicalPlan, Operator, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::LoweredAggregateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use datafusion::physical_planner::PhysicalPlanner;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use tidalite_kernels::{Fold, Pick};
use tidalite_operators::group::{KeyKind, Output, OutputKind};
use tidalite_types::ColumnType;

/// An aggregation that is understood.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct GroupNode {
    aggregate: Aggregate,
    wanted: Wanted,
}

impl PartialOrd for GroupNode {
    fn partial_cmp(&self, _: &GroupNode) -> Option<Ordering> {
        None
    }
}

/// What is folded, and what the words of a group say.
struct Spec {
    keys: Vec<KeyKind>,
    /// The only argument of which distinct values are counted, which is a key, too.
    counted: Option<Expr>,
    inputs: Vec<LogicalInput>,
    folds: Vec<Fold>,
    outputs: Vec<Output>,
}

/// An argument and the condition that rows have to satisfy, which aggregates may share.
#[derive(PartialEq)]
struct LogicalInput {
    /// `None` asks for no value.
    argument: Option<Expr>,
    filter: Option<Expr>,
    /// Whether its values are folded as floating point; `None` where only their being there is.
    is_float: Option<bool>,
}

/// Stands for the word behind those of all folds, until it is known how many these are.
const COUNTED: usize = usize::MAX;

/// What a symbol is expected to take of a key; where it takes more, keys are too wide when it comes to it.
const CODE_BITS: u32 = 16;

pub(crate) fn grouped(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(rewritten(plan, &Asked::All).data()?)
}

fn rewritten(plan: LogicalPlan, asked: &Asked) -> DFResult<Transformed<LogicalPlan>> {
    let asked_below = asked.below(&plan)?;
    plan.map_children(|input| rewritten(input, &asked_below))?.transform_parent(|plan| match plan {
        LogicalPlan::Aggregate(aggregate)
            if (!asked.is_of_any() || !aggregate.aggr_expr.is_empty())
                && !is_answered_without_reading(&aggregate)
                && Spec::of(&aggregate, &asked.wanted()).is_some() =>
        {
            let wanted = asked.wanted();
            // Which groups there will be is not known before the counted key is left out.
            let wanted =
                if counted(&aggregate).is_some() && matches!(wanted, Wanted::Any(_)) { Wanted::All } else { wanted };
            let node = Arc::new(GroupNode { aggregate, wanted });
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// From a whole table's statistics.
pub(super) fn is_answered_without_reading(aggregate: &Aggregate) -> bool {
    fn is_whole_table(plan: &LogicalPlan) -> bool {
        match plan {
            LogicalPlan::TableScan(scan) => scan.filters.is_empty() && scan.fetch.is_none(),
            LogicalPlan::Projection(projection) => is_whole_table(&projection.input),
            LogicalPlan::SubqueryAlias(alias) => is_whole_table(&alias.input),
            _ => false,
        }
    }
    let is_known = |expr: &Expr| {
        function(expr).is_some_and(|f| {
            ["count", "min", "max"].contains(&f.func.name())
                && f.params.filter.is_none()
                && !f.params.distinct
                && f.params.args.iter().all(|a| matches!(a, Expr::Column(_) | Expr::Literal(..)))
        })
    };
    aggregate.group_expr.is_empty() && aggregate.aggr_expr.iter().all(is_known) && is_whole_table(&aggregate.input)
}

pub(super) fn function(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(function) => Some(function),
        Expr::Alias(alias) => function(&alias.expr),
        _ => None,
    }
}

/// Whether our operator counts the distinct values that an aggregation asks for.
pub(crate) fn counts_distinct(aggregate: &Aggregate) -> bool {
    counted(aggregate).is_some() && Spec::of(aggregate, &Wanted::All).is_some()
}

/// The first argument of which distinct values are counted.
fn counted(aggregate: &Aggregate) -> Option<&Expr> {
    aggregate.aggr_expr.iter().filter_map(function).find_map(counted_by)
}

/// The argument, if an aggregate is the number of its distinct values.
pub(super) fn counted_by(function: &AggregateFunction) -> Option<&Expr> {
    let params = &function.params;
    match params.args.as_slice() {
        [argument] if params.distinct && function.func.name() == "count" && params.filter.is_none() => Some(argument),
        _ => None,
    }
}

impl Spec {
    fn of(aggregate: &Aggregate, wanted: &Wanted) -> Option<Spec> {
        let schema = aggregate.input.schema();
        let key = |expr: &Expr| {
            let nullable = expr.nullable(schema).ok()?;
            KeyKind::of(&expr.get_type(schema).ok()?, nullable)
        };
        let counted = counted(aggregate).cloned();
        let own = || aggregate.group_expr.iter().chain(&counted);
        let keys: Vec<KeyKind> = own().map(key).collect::<Option<_>>()?;
        // Symbols come as codes, which are no text, from where [`super::coded_keys`] can see their table.
        let is_symbol = |expr: &Expr| {
            expr.to_field(schema).is_ok_and(|(_, field)| door::column_type(&field) == Some(ColumnType::Symbol))
        };
        let symbols = keys.iter().zip(own()).map(|(key, expr)| key.is_text() && is_symbol(expr));
        let symbols: Vec<bool> = symbols.collect();
        let has_text = keys.iter().zip(&symbols).any(|(key, is_symbol)| key.is_text() && !is_symbol);
        let bits = keys.iter().zip(&symbols).map(|(key, is_symbol)| if *is_symbol { CODE_BITS } else { key.bits() });
        let (bits, text_bits): (u32, u32) = (bits.sum(), keys.iter().map(KeyKind::bits).sum());
        // All groups of wide keys with text were measured slower than with the general operators, some are faster:
        // bench/results/2026-11-22-groups.md, -texts.md.
        let come_out = *wanted == Wanted::All && counted.is_none();
        if bits > u128::BITS || (text_bits > u64::BITS && has_text && come_out) {
            return None;
        }
        let mut spec = Spec { keys, counted, inputs: Vec::new(), folds: Vec::new(), outputs: Vec::new() };
        for expr in &aggregate.aggr_expr {
            let output = spec.output(function(expr)?, schema)?;
            spec.outputs.push(output);
        }
        // Groups that become one have no order among their rows.
        if spec.counted.is_some() && spec.folds.iter().any(|fold| matches!(fold, Fold::PickedTime(_))) {
            return None;
        }
        let behind = spec.folds.len();
        for output in &mut spec.outputs {
            if let OutputKind::Count(word @ COUNTED) = &mut output.kind {
                *word = behind;
            }
        }
        Some(spec)
    }

    fn output(&mut self, function: &AggregateFunction, schema: &DFSchema) -> Option<Output> {
        let params = &function.params;
        if let Some(argument) = counted_by(function) {
            let is_the_same = self.counted.as_ref() == Some(argument);
            return is_the_same.then_some(Output { kind: OutputKind::Count(COUNTED), data_type: DataType::Int64 });
        }
        if params.distinct
            || !params.order_by.is_empty()
            || matches!(params.null_treatment, Some(NullTreatment::IgnoreNulls))
        {
            return None;
        }
        let filter = params.filter.as_deref().cloned();
        if let [value, time] = params.args.as_slice() {
            let rule = function.func.inner().downcast_ref::<pick::Pick>()?.by_time()?;
            return self.picked(rule, value, time, filter, schema);
        }
        let [argument] = params.args.as_slice() else { return None };
        let data_type = argument.get_type(schema).ok()?;
        let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
        let is_int = is_int(&data_type);
        let output = |kind, data_type: &DataType| Some(Output { kind, data_type: data_type.clone() });
        match function.func.name() {
            "count" if matches!(argument, Expr::Literal(value, _) if !value.is_null()) => {
                let rows = match filter {
                    None => self.fold(Fold::Rows),
                    Some(_) => self.present(None, filter),
                };
                output(OutputKind::Count(rows), &DataType::Int64)
            }
            "count" => {
                let rows = self.present(Some(argument.clone()), filter);
                output(OutputKind::Count(rows), &DataType::Int64)
            }
            "sum" if data_type == DataType::Int64 => {
                let (argument, plus) = constant_part(argument);
                let input = self.input(Some(argument), filter, Some(false));
                let kind = OutputKind::Sum {
                    sum: self.fold(Fold::SumInt(input)),
                    present: self.fold(Fold::Present(input)),
                    plus,
                };
                output(kind, &DataType::Int64)
            }
            "sum" | "avg" if data_type == DataType::Float64 => {
                let input = self.input(Some(argument.clone()), filter, Some(true));
                let (sum, present) = (self.fold(Fold::SumFloat(input)), self.fold(Fold::Present(input)));
                let is_mean = function.func.name() == "avg";
                output(OutputKind::SumOfFloats { sum, present, is_mean }, &DataType::Float64)
            }
            name @ ("min" | "max") if is_float || is_int => {
                let input = self.input(Some(argument.clone()), filter, Some(is_float));
                let fold = match (name, is_float) {
                    ("min", true) => Fold::MinFloat(input),
                    ("min", false) => Fold::MinInt(input),
                    (_, true) => Fold::MaxFloat(input),
                    (_, false) => Fold::MaxInt(input),
                };
                let (bound, present) = (self.fold(fold), self.fold(Fold::Present(input)));
                output(OutputKind::Bound { bound, present, is_float }, &data_type)
            }
            _ => None,
        }
    }

    /// `first(x)` and its like, which were given the time of the rows.
    fn picked(
        &mut self,
        (is_latest, skips_null): (bool, bool),
        value: &Expr,
        time: &Expr,
        filter: Option<Expr>,
        schema: &DFSchema,
    ) -> Option<Output> {
        let (data_type, of_time) = (value.get_type(schema).ok()?, time.get_type(schema).ok()?);
        let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
        // A row that a condition leaves out and a row without a value look the same.
        let is_told = skips_null || filter.is_none();
        if !is_told || !(is_float || is_int(&data_type)) || !matches!(of_time, DataType::Timestamp(..)) {
            return None;
        }
        let value = self.input(Some(value.clone()), filter, Some(is_float));
        let time = self.input(Some(time.clone()), None, Some(false));
        let pick = Pick { value, time, is_latest, skips_null };
        let at = self.folds.iter().position(|known| *known == Fold::PickedTime(pick)).unwrap_or_else(|| {
            self.folds.extend(pick.folds());
            self.folds.len() - pick.folds().len()
        });
        Some(Output { kind: OutputKind::Picked { value: at + 1, present: at + 2, is_float }, data_type })
    }

    /// Counts the rows that have the value, through an input that reads it, too, where there is one.
    fn present(&mut self, argument: Option<Expr>, filter: Option<Expr>) -> usize {
        let same = |i: &LogicalInput| argument.is_some() && i.argument == argument && i.filter == filter;
        let input = self.inputs.iter().position(same).unwrap_or_else(|| self.input(argument, filter, None));
        self.fold(Fold::Present(input))
    }

    fn input(&mut self, argument: Option<Expr>, filter: Option<Expr>, is_float: Option<bool>) -> usize {
        let input = LogicalInput { argument, filter, is_float };
        self.inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        })
    }

    fn fold(&mut self, fold: Fold) -> usize {
        self.folds.iter().position(|known| *known == fold).unwrap_or_else(|| {
            self.folds.push(fold);
            self.folds.len() - 1
        })
    }
}

/// Types whose values are integers of at most 64 bits, in their order.
fn is_int(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::Date32
            | DataType::Timestamp(..)
    )
}

/// Greater constants stay inside the sum: repeated addition could exceed 64 bits.
const PLUS_MAX: u64 = 1 << 31;

/// `x + 3` as `x` and 3, so that sums of many such are one.
fn constant_part(expr: &Expr) -> (Expr, i64) {
    let operands = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => Some((left.as_ref(), *op, right.as_ref())),
        // A sum is checked as a whole; overflow of a single summand is not reported.
        Expr::ScalarFunction(function) => checked::operands(function),
        _ => None,
    };
    match operands {
        Some((left, op @ (Operator::Plus | Operator::Minus), Expr::Literal(ScalarValue::Int64(Some(k)), _)))
            if k.unsigned_abs() < PLUS_MAX =>
        {
            (left.clone(), if op == Operator::Plus { *k } else { -*k })
        }
        _ => (expr.clone(), 0),
    }
}

impl GroupNode {
    /// The operator over an input.
    pub fn operator(
        &self,
        input: Arc<dyn ExecutionPlan>,
        planner: &dyn PhysicalPlanner,
        state: &dyn datafusion::catalog::Session,
        context: &PhysicalPlanningContext,
    ) -> DFResult<GroupExec> {
        let spec = Spec::of(&self.aggregate, &self.wanted)
            .ok_or_else(|| Error::internal("an aggregation that was understood"))?;
        let logical = self.aggregate.input.schema();
        let physical = |expr: &Expr| planner.create_physical_expr(expr, logical, state, context);
        let mut keys: Vec<Arc<dyn PhysicalExpr>> =
            self.aggregate.group_expr.iter().map(physical).collect::<DFResult<_>>()?;
        let inputs = spec.inputs.into_iter().map(|input| {
            Ok(Input {
                argument: input.argument.as_ref().map(physical).transpose()?,
                filter: input.filter.as_ref().map(physical).transpose()?,
                is_float: input.is_float,
            })
        });
        let inputs = inputs.collect::<DFResult<Vec<_>>>()?;
        let schema = Arc::new(self.aggregate.schema.as_arrow().clone());
        let names = schema.fields().iter().map(|field| field.name().clone());
        let by = PhysicalGroupBy::new_single(keys.iter().cloned().zip(names).collect());
        let counted = spec.counted.as_ref().map(physical).transpose()?;
        keys.extend(counted.clone());
        // Not the plan below, which holds its tables.
        let (aggregates, of_input) = (self.aggregate.aggr_expr.clone(), input.schema());
        let logical = logical.clone();
        let (props, context) = (state.execution_props().clone(), context.clone());
        let lowered = move || {
            let lowered = |expr| LoweredAggregateBuilder::new(expr, &logical, &of_input, &props, &context).build();
            let lowered = aggregates.iter().map(|expr| lowered(expr).map(|own| (own.aggregate, own.filter)));
            lowered.collect::<DFResult<_>>()
        };
        let generic = Generic { by, counted, lowered: Arc::new(lowered) };
        let folded = (spec.folds, spec.outputs);
        let by = By { keys, kinds: spec.keys, counts_last: spec.counted.is_some() };
        Ok(GroupExec::new(input, schema, by, inputs, folded, self.wanted.clone(), generic))
    }
}

impl fmt::Debug for GroupNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl UserDefinedLogicalNodeCore for GroupNode {
    fn name(&self) -> &'static str {
        "Group"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.aggregate.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.aggregate.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.aggregate.group_expr.iter().chain(&self.aggregate.aggr_expr).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group: {:?}, {:?}", self.aggregate.group_expr, self.aggregate.aggr_expr)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<GroupNode> {
        let input = inputs.pop().ok_or_else(|| Error::internal("a grouping without its input"))?;
        let aggregates = exprs.split_off(self.aggregate.group_expr.len());
        let schema = self.aggregate.schema.clone();
        let aggregate = Aggregate::try_new_with_schema(Arc::new(input), exprs, aggregates, schema)?;
        Ok(GroupNode { aggregate, wanted: self.wanted.clone() })
    }
}
