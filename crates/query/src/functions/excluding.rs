//! Aggregates over frames of windows that exclude rows: EXCLUDE CURRENT ROW, GROUP and TIES.
//!
//! Arguments: the condition of FILTER, DISTINCT as a constant, then the arguments of the aggregate. The operator appends
//! the keys of ORDER BY to the columns. Each frame is aggregated anew, in time proportional to the number of rows times
//! the frame size; the statement is checked in between.

use super::accumulators::AccumulatorFactory;
use super::floats::key_values;
use crate::Error;
use crate::engine::check_current;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue};
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

const EXCLUSIONS: [(&str, Exclusion); 3] =
    [("current_row", Exclusion::CurrentRow), ("group", Exclusion::Group), ("ties", Exclusion::Ties)];

/// The rows that a frame excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exclusion {
    CurrentRow,
    /// The row and its peers.
    Group,
    /// The peers of the row.
    Ties,
}

/// The arguments before those of the aggregate: the condition, and DISTINCT.
const OWN: usize = 2;
/// Rows that are aggregated between two checks of the statement.
const ROWS_BETWEEN_CHECKS: usize = 1 << 16;

/// Returns the name of an aggregate that excludes `what`.
pub(crate) fn name(what: &str, aggregate: &str) -> String {
    format!("__without_{what}_{aggregate}")
}

/// Returns the window functions of one aggregate under one of its names, one for each exclusion.
pub(crate) fn functions(aggregate: &str, of: &Arc<AggregateUDF>) -> Vec<WindowUDF> {
    let one = |(what, exclusion)| Excluding {
        name: name(what, aggregate),
        exclusion,
        of: of.clone(),
        signature: Signature::user_defined(Volatility::Immutable),
    };
    EXCLUSIONS.into_iter().map(one).map(WindowUDF::new_from_impl).collect()
}

#[derive(Debug)]
struct Excluding {
    name: String,
    exclusion: Exclusion,
    of: Arc<AggregateUDF>,
    signature: Signature,
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
        let Some((_, arguments)) = types.split_at_checked(OWN) else { return Err(missing()) };
        let fields = arguments.iter().map(|t| Arc::new(Field::new("", t.clone(), true)) as FieldRef);
        let fields = fields_with_udf(&fields.collect::<Vec<_>>(), self.of.as_ref())?;
        let own = [DataType::Boolean, DataType::Boolean];
        Ok(own.into_iter().chain(fields.iter().map(|f| f.data_type().clone())).collect())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let arguments = args.input_fields().get(OWN..).unwrap_or_default();
        let field = self.of.return_field(arguments)?;
        Ok(Arc::new(field.as_ref().clone().with_name(args.name()).with_nullable(true)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields().get(OWN..).unwrap_or_default();
        let exprs = args.input_exprs().get(OWN..).unwrap_or_default();
        let is_distinct = args.input_exprs().get(OWN - 1).and_then(|expr| expr.downcast_ref::<Literal>());
        let is_distinct = is_distinct.is_some_and(|l| *l.value() == ScalarValue::Boolean(Some(true)));
        let factory = AccumulatorFactory::new(
            self.of.clone(),
            &AccumulatorArgs {
                return_field: self.of.return_field(fields)?,
                schema: &Schema::new(fields.to_vec()),
                ignore_nulls: args.ignore_nulls(),
                order_bys: &[],
                is_reversed: false,
                name: self.of.name(),
                is_distinct,
                exprs,
                expr_fields: fields,
            },
        );
        // The planner creates an evaluator to report unsupported arguments.
        factory.accumulator()?;
        Ok(Box::new(Evaluator {
            factory,
            exclusion: self.exclusion,
            arguments: exprs.len(),
            is_distinct,
            ignores_nulls: args.ignore_nulls(),
            partition: None,
            row: 0,
            peers: 0..0,
            rows_since_check: 0,
        }))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }
}

fn missing() -> datafusion::common::DataFusionError {
    Error::internal("a frame that excludes rows without its condition").into()
}

/// The evaluator of one partition, whose rows are evaluated in their order.
#[derive(Debug)]
struct Evaluator {
    factory: AccumulatorFactory,
    exclusion: Exclusion,
    /// The number of arguments of the aggregate.
    arguments: usize,
    is_distinct: bool,
    ignores_nulls: bool,
    partition: Option<WindowPartition>,
    row: usize,
    /// The peers of the last row.
    peers: Range<usize>,
    rows_since_check: usize,
}

/// The columns of a partition.
#[derive(Debug)]
struct WindowPartition {
    arguments: Vec<ArrayRef>,
    /// True for rows that the aggregate takes; `None` for all rows.
    taken: Option<BooleanArray>,
    /// The keys of ORDER BY; `None` if all rows are peers.
    keys: Option<Rows>,
}

impl Evaluator {
    fn partition(&self, values: &[ArrayRef]) -> Result<WindowPartition> {
        let (Some(own), Some(keys)) = (values.get(..OWN + self.arguments), values.get(OWN + self.arguments..)) else {
            return Err(missing());
        };
        let one_zero = |column: &ArrayRef| if self.is_distinct { key_values(column) } else { column.clone() };
        let arguments: Vec<ArrayRef> = own[OWN..].iter().map(one_zero).collect();
        let condition = own[0].as_boolean();
        let mut taken = condition.values().clone();
        if let Some(nulls) = condition.nulls() {
            taken = &taken & nulls.inner();
        }
        if self.ignores_nulls
            && let Some(nulls) = arguments.first().and_then(|argument| argument.logical_nulls())
        {
            taken = &taken & nulls.inner();
        }
        let taken = if taken.count_set_bits() < taken.len() { Some(BooleanArray::new(taken, None)) } else { None };
        let keys = match keys.is_empty() {
            true => None,
            false => {
                let fields = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
                Some(RowConverter::new(fields)?.convert_columns(keys)?)
            }
        };
        Ok(WindowPartition { arguments, taken, keys })
    }
}

impl WindowPartition {
    /// Returns the first row after `start` with other keys.
    fn peers_end(&self, start: usize, rows: usize) -> usize {
        let Some(keys) = &self.keys else { return rows };
        (start + 1..rows).find(|row| keys.row(*row) != keys.row(start)).unwrap_or(rows)
    }

    fn arguments(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>> {
        let slices: Vec<ArrayRef> = self.arguments.iter().map(|a| a.slice(rows.start, rows.len())).collect();
        let Some(taken) = &self.taken else { return Ok(slices) };
        let taken = taken.slice(rows.start, rows.len());
        Ok(slices.iter().map(|column| filter(column, &taken)).collect::<std::result::Result<_, _>>()?)
    }
}

impl PartitionEvaluator for Evaluator {
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        self.rows_since_check += frame.len() + 1;
        if self.row == 0 || self.rows_since_check > ROWS_BETWEEN_CHECKS {
            check_current()?;
            self.rows_since_check = 0;
        }
        let partition = match self.partition.take() {
            Some(partition) => partition,
            None => self.partition(values)?,
        };
        let partition = self.partition.insert(partition);
        let (row, own) = (self.row, self.row..self.row + 1);
        if row >= self.peers.end {
            self.peers = row..partition.peers_end(row, values[0].len());
        }
        self.row += 1;
        let (excluded, kept) = match self.exclusion {
            Exclusion::CurrentRow => (own, row..row),
            Exclusion::Group => (self.peers.clone(), row..row),
            Exclusion::Ties => (self.peers.clone(), own),
        };
        let mut accumulator = self.factory.accumulator()?;
        let before = frame.start..frame.end.min(excluded.start);
        let between = kept.start.max(frame.start)..kept.end.min(frame.end);
        let after = frame.start.max(excluded.end)..frame.end;
        for rows in [before, between, after] {
            if rows.start < rows.end {
                accumulator.update_batch(&partition.arguments(rows)?)?;
            }
        }
        accumulator.evaluate()
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
