//! Row numbers and ranks with PostgreSQL's types: the stock functions return unsigned integers, which PostgreSQL's
//! clients have no type for.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::{ntile, rank, row_number};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_plan::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn functions() -> [WindowUDF; 4] {
    let function = |stock: Arc<WindowUDF>, gives| WindowUDF::new_from_impl(Ranked { stock, gives });
    [
        function(row_number::row_number_udwf(), DataType::Int64),
        function(rank::rank_udwf(), DataType::Int64),
        function(rank::dense_rank_udwf(), DataType::Int64),
        function(ntile::ntile_udwf(), DataType::Int32),
    ]
}

/// A stock function with its result cast to another type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Ranked {
    stock: Arc<WindowUDF>,
    gives: DataType,
}

impl WindowUDFImpl for Ranked {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn aliases(&self) -> &[String] {
        self.stock.aliases()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.stock.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let stock = self.stock.partition_evaluator_factory(args)?;
        Ok(Box::new(Evaluator { stock, gives: self.gives.clone() }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let name = args.name().to_owned();
        let stock = self.stock.field(args)?;
        Ok(Arc::new(Field::new(name, self.gives.clone(), stock.is_nullable())))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.stock.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::NotSupported
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.stock.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct Evaluator {
    stock: Box<dyn PartitionEvaluator>,
    gives: DataType,
}

impl PartitionEvaluator for Evaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.stock.memoize(state)
    }

    fn get_range(&self, idx: usize, rows: usize) -> Result<Range<usize>> {
        self.stock.get_range(idx, rows)
    }

    fn is_causal(&self) -> bool {
        self.stock.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.stock.evaluate_all(values, rows)?, &self.gives)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.stock.evaluate(values, range)?.cast_to(&self.gives)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.stock.evaluate_all_with_rank(rows, ranks)?, &self.gives)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.stock.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.stock.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.stock.include_rank()
    }
}
