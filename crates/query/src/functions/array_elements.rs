//! `array_elem_min`, `array_elem_max`, `array_elem_sum`, `array_elem_avg`: element by element over several arrays.
//!
//! Defined by QuestDB: with one argument an aggregate over the rows of a group, with more a function of one row. NULL
//! arrays and NULL elements are skipped; the result is as long as the longest array in each dimension. Sums are
//! compensated. The functions have the names of the aggregates; [`crate::plan::calls`] tells them apart.

use super::element_wise::dimensions;
use super::guarded::too_large;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar, doubles, udf};
use super::shapes::{ELEMENTS_MAX, Shaped, column_of, count, positions, shaped};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fold {
    Least,
    Greatest,
    Sum,
    Mean,
}

const FOLDS: [(&str, Fold); 4] = [
    ("array_elem_min", Fold::Least),
    ("array_elem_max", Fold::Greatest),
    ("array_elem_sum", Fold::Sum),
    ("array_elem_avg", Fold::Mean),
];

const fn of_row(name: &'static str) -> Scalar {
    Scalar {
        name,
        takes: "arrays of the same number of dimensions",
        kinds: &[Kind::Array],
        is_variadic: true,
        gives: Gives::Deeper,
        call: folded,
        ..PLAIN
    }
}

const OF_ROW: [Scalar; 4] = [of_row(FOLDS[0].0), of_row(FOLDS[1].0), of_row(FOLDS[2].0), of_row(FOLDS[3].0)];

/// Returns the function of the arrays of one row; `None` for other names.
pub(crate) fn of_rows(name: &str) -> Option<Arc<ScalarUDF>> {
    static SCALARS: &[Scalar] = &OF_ROW;
    static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> =
        LazyLock::new(|| SCALARS.iter().map(|of| Arc::new(udf(of))).collect());
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

fn fold_named(name: &str) -> Result<Fold> {
    let found = FOLDS.iter().find(|(known, _)| *known == name).map(|(_, fold)| *fold);
    found.ok_or_else(|| Error::internal(format!("{name} folds no arrays")).into())
}

fn folded(call: &Call) -> Result<ArrayRef> {
    let fold = fold_named(call.name)?;
    let dims = dimensions(call.data_type);
    let is_other = |column: &&ArrayRef| column.null_count() < column.len() && dimensions(column.data_type()) != dims;
    if call.columns.iter().find(is_other).is_some() {
        let text = format!("{} takes arrays of the same number of dimensions", call.name);
        return Err(Error::invalid(text).about(call.name).into());
    }
    let mut elements = 0_usize;
    let one = |row: usize| -> Result<Option<Shaped>> {
        let mut cells = Cells::new(fold, call.name);
        for column in call.columns.iter().filter(|column| column.is_valid(row)) {
            if let Some(array) = shaped(column, row, call.name)? {
                cells.add(&array)?;
            }
        }
        elements = elements.saturating_add(cells.cells.len());
        if elements > ELEMENTS_MAX {
            return Err(too_large(call.name).into());
        }
        Ok(cells.value())
    };
    column_of((0..call.rows).map(one).collect::<Result<Vec<_>>>()?, dims)
}

/// The values of one position so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    count: f64,
    /// The sum, or the least or greatest value.
    value: f64,
    /// The rounding error of the sum.
    lost: f64,
}

/// The cells of all positions, in row-major order.
#[derive(Debug)]
struct Cells {
    fold: Fold,
    name: &'static str,
    /// `None` before the first array.
    lengths: Option<Vec<usize>>,
    cells: Vec<Cell>,
}

impl Cells {
    fn new(fold: Fold, name: &'static str) -> Cells {
        Cells { fold, name, lengths: None, cells: Vec::new() }
    }

    /// Extends the cells to arrays of a shape, and returns the positions of the elements of such an array.
    fn extended(&mut self, lengths: &[usize]) -> Result<Vec<usize>> {
        let own = self.lengths.clone().unwrap_or_else(|| vec![0; lengths.len()]);
        let both: Vec<usize> = own.iter().zip(lengths).map(|(a, b)| *a.max(b)).collect();
        if both != own || self.lengths.is_none() {
            let mut cells = vec![Cell::default(); count(&both, self.name)?];
            for (at, cell) in positions(&own, &both).into_iter().zip(&self.cells) {
                cells[at] = *cell;
            }
            self.cells = cells;
        }
        let found = positions(lengths, &both);
        self.lengths = Some(both);
        Ok(found)
    }

    fn add(&mut self, array: &Shaped) -> Result<()> {
        // Arrays usually have the same shape, in which the position of an element is its number.
        let is_known = self.lengths.as_ref() == Some(&array.lengths);
        let moved = if is_known { None } else { Some(self.extended(&array.lengths)?) };
        for (n, value) in array.values.iter().enumerate() {
            if let Some(value) = value {
                let at = moved.as_ref().map_or(n, |moved| moved[n]);
                self.merge(at, Cell { count: 1.0, value: *value, lost: 0.0 });
            }
        }
        Ok(())
    }

    fn merge(&mut self, at: usize, other: Cell) {
        let own = &mut self.cells[at];
        match self.fold {
            _ if other.count == 0.0 => return,
            _ if own.count == 0.0 => *own = Cell { count: 0.0, ..other },
            Fold::Least if other.value < own.value || own.value.is_nan() => own.value = other.value,
            Fold::Greatest if other.value > own.value || other.value.is_nan() => own.value = other.value,
            Fold::Least | Fold::Greatest => {}
            Fold::Sum | Fold::Mean => {
                own.add(other.value);
                own.add(other.lost);
            }
        }
        own.count += other.count;
    }

    /// Returns the array of results; `None` if there was no array.
    fn value(&self) -> Option<Shaped> {
        let value = |cell: &Cell| match self.fold {
            _ if cell.count == 0.0 => None,
            Fold::Least | Fold::Greatest => Some(cell.value),
            Fold::Sum => Some(cell.value + cell.lost),
            Fold::Mean => Some((cell.value + cell.lost) / cell.count),
        };
        Some(Shaped { lengths: self.lengths.clone()?, values: self.cells.iter().map(value).collect() })
    }
}

impl Cell {
    /// Adds with Neumaier's compensation.
    fn add(&mut self, value: f64) {
        let sum = self.value + value;
        if sum.is_finite() {
            let is_larger = self.value.abs() >= value.abs();
            self.lost += if is_larger { (self.value - sum) + value } else { (value - sum) + self.value };
        } else {
            self.lost = 0.0;
        }
        self.value = sum;
    }
}

/// The aggregate over the arrays of a group.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Elements {
    name: &'static str,
    fold: Fold,
    signature: Signature,
}

impl Elements {
    pub fn all() -> [Elements; 4] {
        FOLDS.map(|(name, fold)| Elements { name, fold, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

impl AggregateUDFImpl for Elements {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let found = match types {
            [of] => doubles(of),
            _ => None,
        };
        let refused = || Error::invalid(format!("{} takes an array, or several", self.name)).about(self.name);
        Ok(vec![found.ok_or_else(refused)?])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| Error::internal("an aggregate of no arrays").into())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            Arc::new(Field::new_list(format!("{}[{name}]", args.name), Field::new_list_field(item, true), true))
        };
        let double = DataType::Float64;
        Ok(vec![
            list("lengths", DataType::Int64),
            list("counts", double.clone()),
            list("values", double.clone()),
            list("lost", double),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        super::refuse_distinct(self.name, args.is_distinct)?;
        let dims = dimensions(args.return_field.data_type());
        Ok(Box::new(Accumulated { cells: Cells::new(self.fold, self.name), dims }))
    }
}

#[derive(Debug)]
struct Accumulated {
    cells: Cells,
    dims: usize,
}

impl Accumulator for Accumulated {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for row in 0..columns[0].len() {
            if let Some(array) = shaped(&columns[0], row, self.cells.name)? {
                self.cells.add(&array)?;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists: Vec<_> = states.iter().map(|state| state.as_list::<i32>()).collect();
        for row in (0..lists[0].len()).filter(|row| lists[0].is_valid(*row)) {
            let lengths = lists[0].value(row);
            let lengths: Vec<usize> =
                lengths.as_primitive::<Int64Type>().values().iter().map(|length| *length as usize).collect();
            // An empty list is the state of no arrays.
            if lengths.is_empty() {
                continue;
            }
            let parts = [1, 2, 3].map(|n| lists[n].value(row));
            let [counts, values, lost] = parts.each_ref().map(|part| part.as_primitive::<Float64Type>());
            for (n, at) in self.cells.extended(&lengths)?.into_iter().enumerate() {
                self.cells.merge(at, Cell { count: counts.value(n), value: values.value(n), lost: lost.value(n) });
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let lengths = self.cells.lengths.iter().flatten().map(|length| *length as i64);
        let numbers = |part: fn(&Cell) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(self.cells.cells.iter().map(part)))
        };
        let columns: [ArrayRef; 4] = [
            Arc::new(Int64Array::from_iter_values(lengths)),
            numbers(|cell| cell.count),
            numbers(|cell| cell.value),
            numbers(|cell| cell.lost),
        ];
        Ok(columns.map(|list| SingleRowListArrayBuilder::new(list).build_list_scalar()).to_vec())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&column_of(vec![self.cells.value()], self.dims)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.cells.cells.capacity() * size_of::<Cell>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: &[Option<f64>]) -> Shaped {
        Shaped { lengths: vec![values.len()], values: values.to_vec() }
    }

    fn folded(fold: Fold, arrays: &[Shaped]) -> Option<Shaped> {
        let mut cells = Cells::new(fold, "f");
        arrays.iter().for_each(|array| cells.add(array).expect("small arrays"));
        cells.value()
    }

    #[test]
    fn elements_that_are_not_there_are_skipped() {
        let arrays = [array(&[Some(100.0), None, Some(7.0)]), array(&[Some(1.0), Some(200.0)]), array(&[])];
        let expected = |values: [f64; 3]| Some(array(&values.map(Some)));
        assert_eq!(folded(Fold::Least, &arrays), expected([1.0, 200.0, 7.0]));
        assert_eq!(folded(Fold::Greatest, &arrays), expected([100.0, 200.0, 7.0]));
        assert_eq!(folded(Fold::Sum, &arrays), expected([101.0, 200.0, 7.0]));
        assert_eq!(folded(Fold::Mean, &arrays), expected([50.5, 200.0, 7.0]));
        assert_eq!(folded(Fold::Sum, &[]), None);
        assert_eq!(folded(Fold::Sum, &[array(&[None])]), Some(array(&[None])));
    }

    #[test]
    fn the_result_is_as_long_as_the_longest_in_each_dimension() {
        let square = |lengths: [usize; 2], values: &[f64]| Shaped {
            lengths: lengths.to_vec(),
            values: values.iter().copied().map(Some).collect(),
        };
        let sum = folded(Fold::Sum, &[square([1, 2], &[1.0, 2.0]), square([2, 1], &[10.0, 20.0])]);
        let values = vec![Some(11.0), Some(2.0), Some(20.0), None];
        assert_eq!(sum, Some(Shaped { lengths: vec![2, 2], values }));
    }

    #[test]
    fn sums_are_compensated() {
        let tiny = array(&[Some(1e-16)]);
        let arrays: Vec<Shaped> = std::iter::once(array(&[Some(1.0)])).chain(vec![tiny; 10_000]).collect();
        let sum = folded(Fold::Sum, &arrays).and_then(|sum| sum.values[0]).expect("a sum");
        assert!((sum - (1.0 + 1e-12)).abs() <= f64::EPSILON);
    }
}
