//! Aggregates over window frames: they stop when their statement is cancelled or exceeds its memory, and all of them
//! support moving frames.
//!
//! The window operators evaluate a batch without a pause. An aggregate with a large result, such as `array_agg` over all
//! preceding rows, takes gigabytes and minutes for the rows of one batch; the statement is checked before each row. An
//! aggregate of numbers is checked every [`ROWS_BETWEEN_CHECKS`] rows, more often if its state is large. An aggregate
//! that cannot remove a row from its state is computed anew for each frame ([`RecomputingAccumulator`]).

use super::accumulators::AccumulatorFactory;
use super::recomputed::RecomputingAccumulator;
use crate::engine::check_current;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, LogicalPlan, ReversedUDAF, SetMonotonicity, Signature,
    WindowFunctionDefinition,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Rows that an aggregate with results of a fixed size adds or evaluates between two checks of the statement.
const ROWS_BETWEEN_CHECKS: usize = 1 << 10;
/// Bytes of state that the rows between two checks may read: `median` sorts its state for each result.
const BYTES_BETWEEN_CHECKS: usize = 1 << 20;

/// Replaces the aggregates of window functions by stoppable ones. The rule is the last: other rules know aggregates by
/// their type.
#[derive(Debug)]
pub(crate) struct StopWindowAggregates;

impl OptimizerRule for StopWindowAggregates {
    fn name(&self) -> &'static str {
        "stop_window_aggregates"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Window(mut window) = plan else { return Ok(Transformed::no(plan)) };
        let mut is_changed = false;
        for expr in &mut window.window_expr {
            let stoppable = std::mem::take(expr).transform_down(|expr| Ok(stoppable(expr)))?;
            is_changed |= stoppable.transformed;
            *expr = stoppable.data;
        }
        // The names and types do not change, and so neither does the schema.
        let plan = LogicalPlan::Window(window);
        Ok(if is_changed { Transformed::yes(plan) } else { Transformed::no(plan) })
    }
}

fn stoppable(mut expr: Expr) -> Transformed<Expr> {
    if let Expr::WindowFunction(call) = &mut expr
        && let WindowFunctionDefinition::AggregateUDF(function) = &mut call.fun
        && function.inner().downcast_ref::<Stoppable>().is_none()
    {
        *function = Stoppable::of(function.clone());
        return Transformed::yes(expr);
    }
    Transformed::no(expr)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Stoppable(Arc<AggregateUDF>);

impl Stoppable {
    fn of(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::new_from_impl(Stoppable(function)))
    }

    fn inner(&self) -> &dyn AggregateUDFImpl {
        self.0.inner().as_ref()
    }
}

impl AggregateUDFImpl for Stoppable {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner().return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner().return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner().is_nullable()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_display_name(params)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let has_large_results = has_large_results(&args);
        Ok(Box::new(Checked::new(self.inner().accumulator(args)?, has_large_results)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let factory = AccumulatorFactory::new(self.0.clone(), &args);
        let has_large_results = has_large_results(&args);
        let sliding: Box<dyn Accumulator> = match self.inner().create_sliding_accumulator(args) {
            Ok(sliding) if sliding.supports_retract_batch() => sliding,
            _ => Box::new(RecomputingAccumulator::try_new(factory)?),
        };
        Ok(Box::new(Checked::new(sliding, has_large_results)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner().state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner().order_sensitivity()
    }

    /// Workaround for DataFusion 55 (DF-73): `array_agg` is its own reverse, also where the rows come in the order of the
    /// window and not in an order of the call. To try without: the two windows in opposite orders in `moving_frames.slt`.
    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner().reverse_expr() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner().is_descending()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner().default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner().supports_null_handling_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner().set_monotonicity(data_type)
    }
}

/// Returns true if results grow with the number of rows: texts, arrays, bytes.
fn has_large_results(args: &AccumulatorArgs) -> bool {
    !args.return_field.data_type().is_primitive() && *args.return_field.data_type() != DataType::Boolean
}

/// The state of a stoppable aggregate.
#[derive(Debug)]
struct Checked {
    inner: Box<dyn Accumulator>,
    has_large_results: bool,
    /// Rows until the next check.
    rows_left: usize,
}

impl Checked {
    fn new(inner: Box<dyn Accumulator>, has_large_results: bool) -> Checked {
        // The first row is checked.
        Checked { inner, has_large_results, rows_left: 0 }
    }

    /// Checks the statement before `rows` rows are added or evaluated, if it is time.
    #[inline]
    fn check(&mut self, rows: usize) -> Result<()> {
        match self.rows_left.checked_sub(rows) {
            Some(left) => self.rows_left = left,
            None => {
                check_current()?;
                if !self.has_large_results {
                    let rows = BYTES_BETWEEN_CHECKS / self.inner.size().max(1);
                    self.rows_left = rows.min(ROWS_BETWEEN_CHECKS);
                }
            }
        }
        Ok(())
    }
}

impl Accumulator for Checked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.check(values.first().map_or(1, |column| column.len()))?;
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.check(1)?;
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}
