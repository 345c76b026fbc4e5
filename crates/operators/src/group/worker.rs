//! Processes a batch in one thread: packs keys into words and adds rows to groups ([`super::grouper`]).
//!
//! If any `n` groups are sufficient, rows of other groups are dropped once the groups are selected: see
//! [`super::chosen`]. If the last key is only counted, values are accumulated in separate groups by the other keys: see
//! [`super::counted`].

use super::chosen::Asked;
use super::grouper::Grouper;
use super::keys::{Numbered, Numbers, Word};
use super::overflow::Overflow;
use super::shared::{Groups, Shared, bits_of};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite_kernels::{FoldInput, FoldValues, GroupTable, dispatch};

/// The values of one input in a batch.
pub struct Values {
    /// 64-bit integers or floating point, according to the input.
    pub array: Option<ArrayRef>,
    pub present: Option<Vec<u8>>,
}

pub(super) struct Worker<W> {
    shared: Arc<Shared<W>>,
    numbers: Vec<Option<Numbers>>,
    grouper: Grouper<W>,
    /// The groups without the last key, and the bits of their keys.
    others: Option<(Grouper<W>, W)>,
    /// Set when the selection of groups is complete.
    asked: Option<AskedTwice<W>>,
    words: Vec<W>,
}

/// The selected groups, and the selection reduced to the keys that have no codes.
type AskedTwice<W> = (Arc<Asked<W>>, Arc<Asked<W>>);

impl<W: Word> Worker<W> {
    pub fn new(shared: Arc<Shared<W>>) -> Worker<W> {
        let numbers = shared.numbered.iter().map(|column| column.as_ref().map(Numbered::numbers)).collect();
        let others =
            shared.others.as_ref().map(|others| (Grouper::new(others.clone()), bits_of(&others.kinds, |_| true)));
        let grouper = Grouper::new(shared.clone());
        Worker { shared, numbers, grouper, others, asked: None, words: Vec::new() }
    }

    /// Returns the memory of the thread.
    pub fn bytes(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |(others, _)| others.bytes());
        self.grouper.bytes() + others + self.words.capacity() * size_of::<W>()
    }

    pub fn add(&mut self, keys: &[ArrayRef], inputs: &[Values], rows: usize) -> Result<(), Overflow> {
        if keys.is_empty() {
            self.grouper.add_all(rows, &folded(inputs));
            return Ok(());
        }
        if self.shared.only_texts().is_some() {
            let has_null = keys.iter().any(|key| key.null_count() > 0);
            self.shared.has_null.fetch_or(has_null, Ordering::Relaxed);
            self.pack(keys, rows, true)?;
            self.fold_others(inputs);
            return Ok(());
        }
        let Some((asked, plain)) = self.asked.clone() else {
            self.pack(keys, rows, true)?;
            return match self.shared.chosen.as_ref().and_then(|chosen| chosen.choose(&self.words)) {
                None => {
                    self.grouper.add(&self.words, &folded(inputs));
                    self.fold_others(inputs);
                    Ok(())
                }
                Some(asked) => {
                    let plain = Arc::new(asked.masked(self.plain_bits()));
                    self.fold_asked(&asked, inputs)?;
                    self.asked = Some((asked, plain));
                    Ok(())
                }
            };
        };
        // Codes are looked up only for the few rows whose other keys are selected.
        self.pack(keys, rows, false)?;
        let some = UInt32Array::from(plain.rows(&self.words));
        if some.is_empty() {
            return Ok(());
        }
        let keys = keys.iter().map(|key| take(key, &some, None)).collect::<Result<Vec<_>, _>>();
        let inputs = inputs.iter().map(|input| input.taken(&some)).collect::<Result<Vec<_>, _>>()?;
        self.pack(&keys.map_err(|_| Overflow)?, some.len(), true)?;
        self.fold_asked(&asked, &inputs)
    }

    /// Packs the words of rows. Keys that need codes are omitted if `with_numbers` is false.
    fn pack(&mut self, keys: &[ArrayRef], rows: usize, with_numbers: bool) -> Result<(), Overflow> {
        self.words.clear();
        self.words.resize(rows, W::default());
        let mut shift = 0;
        for ((column, kind), numbers) in keys.iter().zip(&self.shared.kinds).zip(&mut self.numbers) {
            if with_numbers || numbers.is_none() {
                kind.pack(column, shift, numbers.as_mut(), &mut self.words)?;
            }
            shift += kind.bits();
        }
        Ok(())
    }

    /// Returns the bits of the keys that have no codes.
    fn plain_bits(&self) -> W {
        bits_of(&self.shared.kinds, |at| self.numbers[at].is_none())
    }

    /// Adds the rows of the selected groups.
    fn fold_asked(&mut self, asked: &Asked<W>, inputs: &[Values]) -> Result<(), Overflow> {
        let rows = asked.rows(&self.words);
        self.words = rows.iter().map(|row| self.words[*row as usize]).collect();
        let rows = UInt32Array::from(rows);
        let inputs = inputs.iter().map(|input| input.taken(&rows)).collect::<Result<Vec<_>, _>>()?;
        self.grouper.add(&self.words, &folded(&inputs));
        Ok(())
    }

    /// Adds rows to the groups without the last key.
    fn fold_others(&mut self, inputs: &[Values]) {
        if let Some((others, bits)) = &mut self.others {
            self.words.iter_mut().for_each(|word| *word = *word & *bits);
            others.add(&self.words, &folded(inputs));
        }
    }

    /// Returns the thread's own groups if they stayed few.
    pub fn finish(self) -> Vec<Groups<W>> {
        let groups = |is_of_others| move |table: GroupTable<W>| Groups { lazy: table.into(), is_of_others };
        let others = self.others.and_then(|(others, _)| others.finish()).map(groups(true));
        self.grouper.finish().map(groups(false)).into_iter().chain(others).collect()
    }
}

fn folded(inputs: &[Values]) -> Vec<FoldInput<'_>> {
    inputs.iter().map(Values::folded).collect()
}

dispatch! {
    /// Returns an upper bound of the magnitudes of a slice: all bits that any of its integers has.
    #[must_use]
    pub fn magnitude(values: &[i64]) -> u64 {
        let bits = values.iter().fold(0, |bits, value| bits | (value ^ (value >> 63)));
        // The magnitude of the smallest integer exceeds that of the largest by one.
        if bits == 0 { u64::from(!values.is_empty()) } else { (u64::MAX >> bits.leading_zeros()) + 1 }
    }
}

/// Returns 1 for rows with a value and 0 for NULLs; `None` if there is no NULL.
#[must_use]
pub fn present(array: &ArrayRef) -> Option<Vec<u8>> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().map(u8::from).collect())
}

fn wide(array: ArrayRef, is_float: bool) -> Result<ArrayRef, ArrowError> {
    let array = match array.data_type() {
        // Arrow casts days to 64 bits only by way of 32 bits.
        DataType::Date32 => cast(&array, &DataType::Int32)?,
        _ => array,
    };
    let wanted = if is_float { DataType::Float64 } else { DataType::Int64 };
    if *array.data_type() == wanted { Ok(array) } else { cast(&array, &wanted) }
}

impl Values {
    /// Converts the array of an input; `is_float` is the kind of the input.
    ///
    /// # Errors
    /// Fails if the array is not numeric although its values are accumulated.
    pub fn of(array: Option<ArrayRef>, is_float: Option<bool>) -> Result<Values, ArrowError> {
        let present = array.as_ref().and_then(present);
        let array = is_float.zip(array).map(|(is_float, array)| wide(array, is_float)).transpose()?;
        Ok(Values { array, present })
    }

    /// Returns an upper bound of the magnitudes of the integers. NULL slots may count.
    #[must_use]
    pub fn magnitude(&self) -> u64 {
        let integers = self.array.as_ref().and_then(|array| array.as_primitive_opt::<Int64Type>());
        integers.map_or(0, |integers| magnitude(integers.values()))
    }

    /// Returns the values in the form of the kernels.
    #[must_use]
    pub fn folded(&self) -> FoldInput<'_> {
        let values = match &self.array {
            Some(array) => match array.as_primitive_opt::<Float64Type>() {
                Some(floats) => FoldValues::Floats(floats.values()),
                None => {
                    array.as_primitive_opt::<Int64Type>().map_or(FoldValues::Nothing, |v| FoldValues::Ints(v.values()))
                }
            },
            None => FoldValues::Nothing,
        };
        FoldInput { values, present: self.present.as_deref() }
    }

    /// Returns the values of some rows.
    fn taken(&self, rows: &UInt32Array) -> Result<Values, Overflow> {
        let array = self.array.as_ref().map(|array| take(array, rows, None)).transpose();
        let present = self.present.as_ref();
        let present = present.map(|bytes| rows.values().iter().map(|row| bytes[*row as usize]).collect());
        Ok(Values { array: array.map_err(|_| Overflow)?, present })
    }
}
