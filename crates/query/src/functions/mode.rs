//! `mode(x)`: the value that comes most often, the least of those that come equally often. NULL does not count.

use super::floats::key_values;
use super::time_casts::{interval, of_interval};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Mode {
    signature: Signature,
}

impl Mode {
    pub fn new() -> Mode {
        Mode { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Arc::new(Field::new_list(format!("{}[{name}]", args.name), Field::new_list_field(item, true), true))
        };
        Ok(vec![list("values", args.input_fields[0].data_type().clone()), list("counts", DataType::Int64)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.name(), args.is_distinct)?;
        let data_type = args.expr_fields[0].data_type().clone();
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type.clone(), options)])?;
        Ok(Box::new(Counts { data_type, converter, counts: HashMap::new(), bytes: 0 }))
    }
}

#[derive(Debug)]
struct Counts {
    data_type: DataType,
    converter: RowConverter,
    /// By the bytes of a value, which compare as values do.
    counts: HashMap<Box<[u8]>, i64>,
    bytes: usize,
}

impl Counts {
    fn add(&mut self, values: &ArrayRef, count: impl Fn(usize) -> i64) -> Result<()> {
        let rows = self.converter.convert_columns(&[key_values(values)])?;
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            let key = rows.row(row);
            let key = key.as_ref();
            match self.counts.get_mut(key) {
                Some(known) => *known += count(row),
                None => {
                    self.bytes += key.len() + 64;
                    self.counts.insert(key.into(), count(row));
                }
            }
        }
        Ok(())
    }

    fn values<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let rows: Vec<_> = keys.map(|key| parser.parse(key)).collect();
        if rows.is_empty() {
            return Ok(new_empty_array(&self.data_type));
        }
        Ok(self.converter.convert_rows(rows)?.swap_remove(0))
    }
}

impl Counts {
    /// Returns the most frequent interval; intervals of one length are equal, and the shortest is the least.
    ///
    /// The interval with the fewest months and then the fewest days represents all equal intervals.
    fn most_frequent_length(&self) -> Result<ScalarValue> {
        let mut counts: Vec<(&[u8], i64)> = self.counts.iter().map(|(key, count)| (key.as_ref(), *count)).collect();
        counts.sort_unstable();
        let values = self.values(counts.iter().map(|(key, _)| *key))?;
        let lengths = of_interval(&values)?;
        let mut of_length: BTreeMap<i128, (i64, usize)> = BTreeMap::new();
        for (at, (_, count)) in counts.iter().enumerate() {
            of_length.entry(interval(lengths.value(at)).total_nanos()).or_insert((0, at)).0 += count;
        }
        let most = of_length.values().rev().max_by_key(|(count, _)| *count);
        match most {
            Some((_, at)) => ScalarValue::try_from_array(&values, *at),
            None => ScalarValue::try_from(&self.data_type),
        }
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(&columns[0], |_| 1)
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(&columns[0], |_| -1)?;
        self.counts.retain(|_, count| *count != 0);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for row in 0..values.len() {
            let counts = counts.value(row);
            let counts = counts.as_primitive::<Int64Type>();
            self.add(&values.value(row), |at| counts.value(at))?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (keys, counts): (Vec<&[u8]>, Vec<i64>) =
            self.counts.iter().map(|(key, count)| (key.as_ref(), *count)).unzip();
        let values = self.values(keys.into_iter())?;
        let counts: ArrayRef = Arc::new(datafusion::arrow::array::Int64Array::from(counts));
        Ok([values, counts].map(|list| SingleRowListArrayBuilder::new(list).build_list_scalar()).to_vec())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if let DataType::Interval(_) = self.data_type {
            return self.most_frequent_length();
        }
        let most = self.counts.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let Some((key, _)) = most else { return ScalarValue::try_from(&self.data_type) };
        let value = self.values(std::iter::once(key.as_ref()))?;
        let value = take(&value, &datafusion::arrow::array::UInt32Array::from(vec![0]), None)?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
