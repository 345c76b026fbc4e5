//! What one thread does with a batch: keys into words, and rows with them into groups ([`super::grouper`]).
//!
//! Where any few groups will do, rows of others are dropped as soon as it is known which: see [`super::chosen`]. Where the
//! last key is only counted, rows are folded into the groups of the other keys, beside: see [`super::counted`].

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
use tidalite_kernels::{Fold, FoldInput, FoldValues, Folds, GroupTable};

/// What the threads of one query share.
pub(super) struct Shared<W> {
    pub(super) folds: Folds,
    pub(super) kinds: Vec<KeyKind>,
    /// Of the columns whose values are numbered.
    pub(super) numbered: Vec<Option<Numbered>>,
    /// By number of input: whether its values are floating point; `None` if it has none.
    pub(super) inputs: Vec<Option<bool>>,
    pub(super) seed: u64,
    /// If not all groups are asked for.
    chosen: Option<Chosen<W>>,
    /// Where groups are the texts that there are, and nothing is folded: whether some row has none.
    has_null: AtomicBool,
    /// Once groups are many.
    pub(super) parts: Parts<W>,
    /// Where the last key is only counted: the groups of the others, into which rows are folded, if they are.
    pub(super) others: Option<Arc<Shared<W>>>,
}

/// A batch's values of one input.
pub struct Values {
    /// Of 64 bits; as integers or as floating point, as the input says.
    pub array: Option<ArrayRef>,
    pub present: Option<Vec<u8>>,
}

pub(super) struct Worker<W> {
    shared: Arc<Shared<W>>,
    numbers: Vec<Option<Numbers>>,
    grouper: Grouper<W>,
    /// Of the groups without the last key, and the bits of their keys.
    others: Option<(Grouper<W>, W)>,
    /// Once it is known that not all groups are.
    asked: Option<AskedTwice<W>>,
    words: Vec<W>,
}

/// Some groups.
pub(super) struct Groups<W> {
    pub lazy: Lazy<W>,
    /// Whether they are without the last key, where that is only counted.
    pub is_of_others: bool,
}

impl<W> From<GroupTable<W>> for Groups<W> {
    fn from(table: GroupTable<W>) -> Groups<W> {
        Groups { lazy: table.into(), is_of_others: false }
    }
}

/// The groups that are asked for, and their part that is no number of a text or time.
type AskedTwice<W> = (Arc<Asked<W>>, Arc<Asked<W>>);

impl<W: Word> Shared<W> {
    /// Rows that are kept until they are grouped may take `row_bytes_max`.
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

    /// Of which the last key is only counted.
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

    /// Of which any `groups` will do.
    pub fn limited(self, groups: usize) -> Shared<W> {
        let chosen = if self.kinds.is_empty() { None } else { Chosen::new(groups, self.seed) };
        Shared { chosen, ..self }
    }

    /// The texts of the only key, where their numbers are all that is asked for.
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

    /// Memory of its groups at most, when all rows are among them.
    pub fn bytes_as_groups(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.parts.bytes_as_groups());
        self.numbered_bytes() + self.parts.bytes_as_groups() + others
    }

    fn numbered_bytes(&self) -> usize {
        self.numbered.iter().flatten().map(Numbered::bytes).sum()
    }

    /// All groups, with those that threads had for themselves.
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

    /// Without groups.
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

    /// Memory that is the thread's own.
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
        // Numbers are looked up for the few rows whose other keys are asked for.
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

    /// Makes the words of rows; without the keys that are numbered, if `with_numbers` is not said.
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

    /// The bits of keys that are not numbered.
    fn plain_bits(&self) -> W {
        bits_of(&self.shared.kinds, |at| self.numbers[at].is_none())
    }

    /// Adds the rows whose groups are asked for.
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

    /// The thread's own groups, those that stayed few.
    pub fn finish(self) -> Vec<Groups<W>> {
        let groups = |is_of_others| move |table: GroupTable<W>| Groups { lazy: table.into(), is_of_others };
        let others = self.others.and_then(|(others, _)| others.finish()).map(groups(true));
        self.grouper.finish().map(groups(false)).into_iter().chain(others).collect()
    }
}

/// All bits of some of the keys.
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

/// Returns an upper bound of the magnitudes of a slice: all bits that any of its integers has.
#[must_use]
pub fn magnitude(values: &[i64]) -> u64 {
    let bits = values.iter().fold(0, |bits, value| bits | (value ^ (value >> 63)));
    // The magnitude of the smallest integer exceeds that of the largest by one.
    if bits == 0 { u64::from(!values.is_empty()) } else { (u64::MAX >> bits.leading_zeros()) + 1 }
}

/// 1 where there is a value; `None` where there is one everywhere.
#[must_use]
pub fn present(array: &ArrayRef) -> Option<Vec<u8>> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().map(u8::from).collect())
}

fn wide(array: ArrayRef, is_float: bool) -> Result<ArrayRef, ArrowError> {
    let array = match array.data_type() {
        // Days have no way to 64 bits but through 32.
        DataType::Date32 => cast(&array, &DataType::Int32)?,
        _ => array,
    };
    let wanted = if is_float { DataType::Float64 } else { DataType::Int64 };
    if *array.data_type() == wanted { Ok(array) } else { cast(&array, &wanted) }
}

impl Values {
    /// Of an input's array, whatever its numbers are; `is_float` as the input says.
    ///
    /// # Errors
    /// When the array is none of numbers, and they are folded.
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

    /// As kernels fold them.
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

    /// Of some rows only.
    fn taken(&self, rows: &UInt32Array) -> Result<Values, Overflow> {
        let array = self.array.as_ref().map(|array| take(array, rows, None)).transpose();
        let present = self.present.as_ref();
        let present = present.map(|bytes| rows.values().iter().map(|row| bytes[*row as usize]).collect());
        Ok(Values { array: array.map_err(|_| Overflow)?, present })
    }
}
