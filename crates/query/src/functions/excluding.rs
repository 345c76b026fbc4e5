//! Aggregates over frames of windows that leave rows out: EXCLUDE CURRENT ROW, GROUP and TIES.
//!
//! In: the keys that rows are in order of, as a struct, or NULL where all rows are peers; then the aggregate's arguments.
//! Each row's frame is aggregated anew, so that a partition takes time with the product of its rows and those of frames.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    AggregateUDF, LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
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

/// What an aggregate is called that leaves `what` out.
pub(crate) fn name(what: &str, aggregate: &str) -> String {
    format!("__without_{what}_{aggregate}")
}

/// One for each aggregate, by the name that it goes by, and each of what can be left out.
pub(crate) fn functions(name_of: &str, of: &Arc<AggregateUDF>) -> Vec<WindowUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let one =
        |(what, left)| Excluding { name: name(what, name_of), left, of: of.clone(), signature: signature.clone() };
    KINDS.into_iter().map(one).map(WindowUDF::new_from_impl).collect()
}

#[derive(Debug)]
struct Excluding {
    name: String,
    left: Left,
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
        let Some((keys, arguments)) = types.split_first() else {
            return Err(crate::Error::internal("a frame without its keys").into());
        };
        let fields = arguments.iter().map(|t| Arc::new(Field::new("", t.clone(), true)) as FieldRef);
        let fields = fields_with_udf(&fields.collect::<Vec<_>>(), self.of.as_ref())?;
        Ok([keys.clone()].into_iter().chain(fields.iter().map(|f| f.data_type().clone())).collect())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let arguments = args.input_fields().get(1..).unwrap_or_default();
        let field = self.of.return_field(arguments)?;
        Ok(Arc::new(field.as_ref().clone().with_name(args.name()).with_nullable(true)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields().get(1..).unwrap_or_default().to_vec();
        Ok(Box::new(Evaluator {
            of: self.of.clone(),
            left: self.left,
            result: self.of.return_field(&fields)?,
            schema: Schema::new(fields.clone()),
            fields,
            exprs: args.input_exprs().get(1..).unwrap_or_default().to_vec(),
            ignores_nulls: args.ignore_nulls(),
            keys: None,
            row: 0,
        }))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }
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
    /// The keys of all rows, as bytes; none where all rows are peers.
    keys: Option<Rows>,
    row: usize,
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
        let Some((keys, arguments)) = values.split_first() else {
            return Err(crate::Error::internal("a frame without its keys").into());
        };
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
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        let before = frame.start..frame.end.min(out.start);
        let between = kept.start.max(frame.start)..kept.end.min(frame.end);
        let after = frame.start.max(out.end)..frame.end;
        for rows in [before, between, after] {
            if rows.start < rows.end {
                let slices: Vec<ArrayRef> = arguments.iter().map(|a| a.slice(rows.start, rows.len())).collect();
                accumulator.update_batch(&slices)?;
            }
        }
        accumulator.evaluate()
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
