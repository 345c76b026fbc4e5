//! Aggregates over frames of windows that leave rows out: EXCLUDE CURRENT ROW, GROUP and TIES.
//!
//! In: the keys that rows are in order of, as a struct, or NULL where all rows are peers; the condition of FILTER; whether
//! it is DISTINCT; then the aggregate's arguments. Each row's frame is aggregated anew, so that a partition takes time with
//! the product of its rows and those of frames: a query that has one knows how to be told to stop.

use crate::CancelToken;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{filter, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    AggregateUDF, LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

const KINDS: [(&str, Left); 3] = [("current_row", Left::CurrentRow), ("group", Left::Group), ("ties", Left::Ties)];

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Left {
    CurrentRow,
    /// The row and its peers.
    Group,
    /// Its peers.
    Ties,
}

/// Arguments before those of the aggregate.
const OWN: usize = 3;
/// Rows that are aggregated between two looks at whether to stop.
const ROWS_BETWEEN_LOOKS: usize = 1 << 16;

/// Whether the text of a statement may have such a frame.
pub(crate) fn may_be_in(sql: &str) -> bool {
    sql.as_bytes().windows(7).any(|word| word.eq_ignore_ascii_case(b"exclude"))
}

/// Makes those of a statement stop when it is cancelled.
pub(crate) fn register(state: &mut SessionState, cancel: &CancelToken) -> Result<()> {
    let aggregates: Vec<_> = state.aggregate_functions().iter().map(|(n, of)| (n.clone(), of.clone())).collect();
    for (name, of) in aggregates {
        for function in functions_of(&name, &of, Some(cancel)) {
            datafusion::execution::FunctionRegistry::register_udwf(state, Arc::new(function))?;
        }
    }
    Ok(())
}

/// What an aggregate is called that leaves `what` out.
pub(crate) fn name(what: &str, aggregate: &str) -> String {
    format!("__without_{what}_{aggregate}")
}

/// One for each aggregate, by the name that it goes by, and each of what can be left out.
pub(crate) fn functions(name_of: &str, of: &Arc<AggregateUDF>) -> Vec<WindowUDF> {
    functions_of(name_of, of, None)
}

fn functions_of(name_of: &str, of: &Arc<AggregateUDF>, cancel: Option<&CancelToken>) -> Vec<WindowUDF> {
    let one = |(what, left)| Excluding {
        name: name(what, name_of),
        left,
        of: of.clone(),
        signature: Signature::user_defined(Volatility::Immutable),
        cancel: cancel.cloned().unwrap_or_default(),
    };
    KINDS.into_iter().map(one).map(WindowUDF::new_from_impl).collect()
}

#[derive(Debug)]
struct Excluding {
    name: String,
    left: Left,
    of: Arc<AggregateUDF>,
    signature: Signature,
    cancel: CancelToken,
}

/// Names are unique.
impl PartialEq for Excluding {
    fn eq(&self, other: &Excluding) -> bool {
        self.name == other.name
    }
}

impl Eq for Excluding {}

impl Hash for Excluding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl WindowUDFImpl for Excluding {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Some((own, arguments)) = types.split_at_checked(OWN) else { return Err(nothing()) };
        let fields = arguments.iter().map(|t| Arc::new(Field::new("", t.clone(), true)) as FieldRef);
        let fields = fields_with_udf(&fields.collect::<Vec<_>>(), self.of.as_ref())?;
        let own = [own[0].clone(), DataType::Boolean, DataType::Boolean];
        Ok(own.into_iter().chain(fields.iter().map(|f| f.data_type().clone())).collect())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let arguments = args.input_fields().get(OWN..).unwrap_or_default();
        let field = self.of.return_field(arguments)?;
        Ok(Arc::new(field.as_ref().clone().with_name(args.name()).with_nullable(true)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields().get(OWN..).unwrap_or_default().to_vec();
        let is_distinct = args.input_exprs().get(OWN - 1).and_then(|expr| expr.downcast_ref::<Literal>());
        let is_distinct = is_distinct.is_some_and(|l| *l.value() == ScalarValue::Boolean(Some(true)));
        Ok(Box::new(Evaluator {
            of: self.of.clone(),
            left: self.left,
            result: self.of.return_field(&fields)?,
            schema: Schema::new(fields.clone()),
            fields,
            exprs: args.input_exprs().get(OWN..).unwrap_or_default().to_vec(),
            is_distinct,
            ignores_nulls: args.ignore_nulls(),
            keys: None,
            row: 0,
            cancel: self.cancel.clone(),
            rows_since_look: 0,
        }))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }
}

fn nothing() -> datafusion::common::DataFusionError {
    crate::Error::internal("a frame without its keys").into()
}

/// Of one partition, whose rows are asked for in their order.
#[derive(Debug)]
struct Evaluator {
    of: Arc<AggregateUDF>,
    left: Left,
    result: FieldRef,
    schema: Schema,
    fields: Vec<FieldRef>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    ignores_nulls: bool,
    is_distinct: bool,
    /// The keys of all rows, as bytes; none where all rows are peers.
    keys: Option<Rows>,
    row: usize,
    cancel: CancelToken,
    rows_since_look: usize,
}

impl Evaluator {
    /// The rows with the same keys.
    fn peers(&mut self, column: &ArrayRef) -> Result<Range<usize>> {
        if column.data_type() == &DataType::Null {
            return Ok(0..column.len());
        }
        if self.keys.is_none() {
            let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())])?;
            self.keys = Some(converter.convert_columns(std::slice::from_ref(column))?);
        }
        let Some(keys) = &self.keys else { return Ok(self.row..self.row + 1) };
        let own = keys.row(self.row);
        let first = (0..self.row).rev().take_while(|row| keys.row(*row) == own).last().unwrap_or(self.row);
        let last = (self.row..keys.num_rows()).take_while(|row| keys.row(*row) == own).last().unwrap_or(self.row);
        Ok(first..last + 1)
    }
}

impl PartitionEvaluator for Evaluator {
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let Some((before, arguments)) = values.split_at_checked(OWN) else { return Err(nothing()) };
        let (keys, condition) = (&before[0], before[1].as_boolean());
        self.rows_since_look += frame.len() + 1;
        if self.rows_since_look > ROWS_BETWEEN_LOOKS {
            self.cancel.check()?;
            self.rows_since_look = 0;
        }
        let (row, own) = (self.row, self.row..self.row + 1);
        let (out, kept) = match self.left {
            Left::CurrentRow => (own, row..row),
            Left::Group => (self.peers(keys)?, row..row),
            Left::Ties => (self.peers(keys)?, own),
        };
        self.row += 1;
        let mut accumulator = self.of.accumulator(AccumulatorArgs {
            return_field: self.result.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignores_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.of.name(),
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        let before = frame.start..frame.end.min(out.start);
        let between = kept.start.max(frame.start)..kept.end.min(frame.end);
        let after = frame.start.max(out.end)..frame.end;
        for rows in [before, between, after] {
            if rows.start < rows.end {
                let mut slices: Vec<ArrayRef> = arguments.iter().map(|a| a.slice(rows.start, rows.len())).collect();
                let asked = condition.slice(rows.start, rows.len());
                if asked.true_count() < asked.len() {
                    let asked = if asked.null_count() > 0 { prep_null_mask_filter(&asked) } else { asked };
                    slices = slices.iter().map(|s| filter(s, &asked)).collect::<std::result::Result<_, _>>()?;
                }
                accumulator.update_batch(&slices)?;
            }
        }
        accumulator.evaluate()
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
