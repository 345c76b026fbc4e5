//! `lag` and `lead`: the stock functions with IGNORE NULLS corrected.
//!
//! The stock functions miscount rows over several NULLs when they process a partition in parts. They also tell a LIMIT
//! above them that `offset` rows are enough, which is wrong with IGNORE NULLS and for a `lag` with a negative offset.

use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowFunctionDefinition, WindowUDF,
    WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shift {
    stock: Arc<WindowUDF>,
    is_lead: bool,
    skips_null: bool,
}

static SHIFTS: LazyLock<[Arc<WindowUDF>; 4]> = LazyLock::new(|| {
    [(false, false), (false, true), (true, false), (true, true)].map(|(is_lead, skips_null)| {
        let stock = if is_lead { lead_udwf() } else { lag_udwf() };
        Arc::new(WindowUDF::new_from_impl(Shift { stock, is_lead, skips_null }))
    })
});

fn shift(is_lead: bool, skips_null: bool) -> Arc<WindowUDF> {
    SHIFTS[2 * usize::from(is_lead) + usize::from(skips_null)].clone()
}

/// Returns both functions as they are registered.
pub(crate) fn functions() -> [Arc<WindowUDF>; 2] {
    [shift(false, false), shift(true, false)]
}

/// Returns the variant of a function that skips NULL; `None` for other functions.
pub(crate) fn skipping_null(of: &WindowUDF) -> Option<Arc<WindowUDF>> {
    let known = of.inner().downcast_ref::<Shift>()?;
    (!known.skips_null).then(|| shift(known.is_lead, true))
}

/// Returns true for `lag` and `lead`.
pub(crate) fn is_shift(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::WindowUDF(of) if of.inner().is::<Shift>())
}

impl Shift {
    fn inner(&self) -> &dyn WindowUDFImpl {
        self.stock.inner().as_ref()
    }
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner().expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let skips_null = self.skips_null || args.ignore_nulls();
        let constant = |at: usize| args.input_exprs().get(at).and_then(|expr| expr.downcast_ref::<Literal>());
        if constant(1).is_some_and(|offset| offset.value().is_null()) {
            return Ok(Box::new(OfNoRow));
        }
        if let (Some(default), Some(field)) = (constant(2), args.input_fields().first()) {
            check_default(self.name(), default.value(), field.data_type())?;
        }
        let evaluator = self.inner().partition_evaluator(args)?;
        Ok(if skips_null { Box::new(OfWholePartition(evaluator)) } else { evaluator })
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.inner().field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(shift(self.is_lead, self.skips_null))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        let offset = match args.get(1).map(|expr| expr.downcast_ref::<Literal>().map(Literal::value)) {
            None => 1,
            Some(Some(ScalarValue::Int64(Some(offset)))) => *offset,
            Some(_) => return LimitEffect::Unknown,
        };
        let ahead = if self.is_lead { offset } else { offset.saturating_neg() };
        match usize::try_from(ahead) {
            _ if self.skips_null => LimitEffect::Unknown,
            Ok(0) | Err(_) => LimitEffect::None,
            Ok(rows) => LimitEffect::Relative(rows),
        }
    }
}

/// Checks that a numeric default of another type converts to the row type without loss.
fn check_default(name: &str, default: &ScalarValue, to: &DataType) -> Result<()> {
    let kept = || default.cast_to(to).ok()?.cast_to(&default.data_type()).ok();
    if !default.data_type().is_numeric() || default.is_null() || !to.is_numeric() || kept().as_ref() == Some(default) {
        return Ok(());
    }
    let own = door::type_of(to).map_or_else(|| to.to_string(), |own| own.to_string());
    Err(Error::invalid(format!("the default {default} of {name} is out of range for type {own}")).into())
}

/// The evaluator for a NULL offset.
#[derive(Debug)]
struct OfNoRow;

impl PartitionEvaluator for OfNoRow {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(new_null_array(values[0].data_type(), rows))
    }

    fn get_range(&self, _: usize, rows: usize) -> Result<Range<usize>> {
        Ok(0..rows)
    }
}

/// An evaluator that processes whole partitions only.
#[derive(Debug)]
struct OfWholePartition(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for OfWholePartition {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn get_range(&self, _: usize, rows: usize) -> Result<Range<usize>> {
        Ok(0..rows)
    }
}
