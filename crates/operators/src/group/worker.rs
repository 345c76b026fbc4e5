//! Processes a batch in one thread: packs keys into words and adds rows to groups ([`super::grouper`]).
//!
//! If any `n` groups are sufficient, rows of other groups are dropped once the groups are selected: see
//! [`super::chosen`]. If the last key is only counted, values are accumulated in separate groups by the other keys: see
//! [`super::counted`].

use super::chosen::{Asked, Chosen};
use super::grouper::Grouper;
use super::keys::{KeyKind, Numbered, Numbers, Overflow, Word};
use super::parts::{Lazy, Parts};
use super::texts::Texts;
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite_kernels::{Fold, FoldInput, FoldValues, Folds, GroupTable, dispatch};

/// State shared by the threads of one query.
pub(super) struct Shared<W> {
    pub(super) folds: Folds,
    pub(super) kinds: Vec<KeyKind>,
    /// State of the columns whose values are replaced by codes.
    pub(super) numbered: Vec<Option<Numbered>>,
    /// Indexed by input: true for floating point; `None` if the input has no values.
    pub(super) inputs: Vec<Option<bool>>,
    pub(super) seed: u64,
    /// Set if not all groups are requested.
    chosen: Option<Chosen<W>>,
    /// True if a row has a NULL key; used if the groups are only the strings of the key and nothing is accumulated.
    has_null: AtomicBool,
    /// Used once groups are many.
    pub(super) parts: Parts<W>,
    /// If the last key is only counted and values are accumulated: the groups by the other keys.
    pub(super) others: Option<Arc<Shared<W>>>,
}

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

/// A part of the groups.
pub(super) struct Groups<W> {
    pub lazy: Lazy<W>,
    /// True for groups without the last key, if that key is only counted.
    pub is_of_others: bool,
}

impl<W> From<GroupTable<W>> for Groups<W> {
    fn from(table: GroupTable<W>) -> Groups<W> {
        Groups { lazy: table.into(), is_of_others: false }
    }
}

/// The selected groups, and the selection reduced to the keys that have no codes.
type AskedTwice<W> = (Arc<Asked<W>>, Arc<Asked<W>>);

impl<W: Word> Shared<W> {
    /// Creates the shared state. Buffered rows may take `row_bytes_max` bytes.
    pub fn new(
        folds: Vec<Fold>,
        kinds: Vec<KeyKind>,
        inputs: Vec<Option<bool>>,
        seed: u64,
        row_bytes_max: usize,
    ) -> Shared<W> {
        let folds = Folds::new(folds);
        let numbered = kinds.iter().map(KeyKind::numbered).collect();
        let parts = Parts::new(folds.clone(), seed, row_bytes_max);
        Shared {
            folds,
            kinds,
            numbered,
            inputs,
            seed,
            chosen: None,
            has_null: AtomicBool::new(false),
            parts,
            others: None,
        }
    }

    /// Counts only the distinct values of the last key.
    pub fn counting_last(self) -> Shared<W> {
        let Shared { folds, kinds, inputs, seed, parts, .. } = self;
        let tables = if folds.words() == 0 { 1 } else { 2 };
        let row_bytes_max = parts.row_bytes_max / tables;
        let all = Shared::new(Vec::new(), kinds.clone(), Vec::new(), seed, row_bytes_max);
        if tables == 1 {
            return all;
        }
        let keys = kinds.len().saturating_sub(1);
        let folds = folds.as_slice().to_vec();
        let mut others = Shared::new(folds, kinds[..keys].to_vec(), inputs, seed, row_bytes_max);
        others.numbered = all.numbered[..keys].to_vec();
        Shared { others: Some(Arc::new(others)), ..all }
    }

    /// Limits the result to any `groups` groups.
    pub fn limited(self, groups: usize) -> Shared<W> {
        let chosen = if self.kinds.is_empty() { None } else { Chosen::new(groups, self.seed) };
        Shared { chosen, ..self }
    }

    /// Returns the strings of the only key, if only the set of strings is requested.
    fn only_texts(&self) -> Option<&Texts> {
        match self.numbered.as_slice() {
            [Some(Numbered::Texts(texts))] if self.folds.words() == 0 && self.chosen.is_none() => Some(texts),
            _ => None,
        }
    }

    fn groups_of_texts(&self, texts: &Texts) -> Vec<GroupTable<W>> {
        let word = |code: u64| {
            let mut word = W::default();
            word.put(code, 0);
            word
        };
        let null = self.has_null.load(Ordering::Relaxed).then(|| vec![0]);
        let parts = texts.numbers().chain(null).filter(|numbers| !numbers.is_empty());
        let seed = self.seed;
        parts.map(|numbers| GroupTable::of_keys(numbers.into_iter().map(word).collect(), seed)).collect()
    }

    pub fn bytes(&self) -> usize {
        self.numbered_bytes() + self.parts.bytes() + self.others.as_ref().map_or(0, |others| others.parts.bytes())
    }

    /// Returns an upper bound of the memory of the groups after all rows are grouped.
    pub fn bytes_as_groups(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.parts.bytes_as_groups());
        self.numbered_bytes() + self.parts.bytes_as_groups() + others
    }

    fn numbered_bytes(&self) -> usize {
        self.numbered.iter().flatten().map(Numbered::bytes).sum()
    }

    /// Returns all groups, including the threads' own groups.
    pub fn parts_with(&self, few: Vec<Groups<W>>) -> Vec<Groups<W>> {
        let (of_others, own): (Vec<_>, Vec<_>) = few.into_iter().partition(|groups| groups.is_of_others);
        let tables = |few: Vec<Groups<W>>| few.into_iter().map(|few| few.lazy.table()).collect();
        let groups = |is_of_others| move |lazy| Groups { lazy, is_of_others };
        let others = self.others.as_ref().map(|others| others.groups_with(tables(of_others)));
        let others = others.into_iter().flatten().map(groups(true));
        self.groups_with(tables(own)).into_iter().map(groups(false)).chain(others).collect()
    }

    fn groups_with(&self, mut few: Vec<GroupTable<W>>) -> Vec<Lazy<W>> {
        if let Some(texts) = self.only_texts() {
            return self.groups_of_texts(texts).into_iter().map(Lazy::from).collect();
        }
        if !self.parts.are_empty() {
            few.iter().for_each(|own| self.parts.give(own.keys(), own.states()));
            return self.parts.take();
        }
        let Some(mut all) = few.pop() else { return Vec::new() };
        let mut scratch = Vec::new();
        few.iter().for_each(|own| all.join(own, &mut scratch));
        vec![all.into()]
    }

    /// Returns an empty table.
    pub fn table(&self) -> GroupTable<W> {
        GroupTable::new(self.folds.clone(), self.seed)
    }
}

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

/// Returns all bits of the selected keys.
pub(super) fn bits_of<W: Word>(kinds: &[KeyKind], is_wanted: impl Fn(usize) -> bool) -> W {
    let (mut bits, mut shift) = (W::default(), 0);
    for (at, kind) in kinds.iter().enumerate() {
        if is_wanted(at) {
            bits.put(u64::MAX >> (u64::BITS - kind.bits()), shift);
        }
        shift += kind.bits();
    }
    bits
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
