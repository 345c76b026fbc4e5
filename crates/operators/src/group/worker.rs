//! What one thread does: rows into groups, its own while they are few, else into those that all threads share.
//!
//! Groups that stay few stay in a table of the thread's own. When they get many, the table is emptied into shared ones,
//! each for a part of the keys by their hash, small enough to stay near the processor. From then on rows are collected
//! for each of the parts, and a part is added to when it has enough to be worth fetching its table.
//!
//! Where any few groups will do, rows of others are dropped as soon as it is known which: see [`super::chosen`].

use super::chosen::{Asked, Chosen};
use super::keys::{KeyKind, Numbered, Numbers, Overflow, Word};
use super::texts::Texts;
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::{Fold, FoldInput, FoldValues, Folds, GroupTable, by_partition};

/// Groups that a thread keeps for itself.
const OWN_GROUPS_MAX: usize = 1 << 14;
const PART_BITS: u32 = 8;
/// Rows collected for a part before they are added.
const PART_ROWS: usize = 1 << 12;

/// What the threads of one query share.
pub(super) struct Shared<W> {
    pub(super) folds: Folds,
    pub(super) kinds: Vec<KeyKind>,
    /// Of the columns whose values are numbered.
    pub(super) numbered: Vec<Option<Numbered>>,
    /// By number of input: whether its values are floating point; `None` if it has none.
    inputs: Vec<Option<bool>>,
    seed: u64,
    /// If not all groups are asked for.
    chosen: Option<Chosen<W>>,
    /// Where groups are the texts that there are, and nothing is folded: whether some row has none.
    has_null: AtomicBool,
    parts: Vec<Mutex<GroupTable<W>>>,
    /// Memory that the parts take.
    part_bytes: AtomicUsize,
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
    own: GroupTable<W>,
    /// Once it is known that not all groups are.
    asked: Option<AskedTwice<W>>,
    /// Once groups are many.
    collected: Option<Vec<Collected<W>>>,
    words: Vec<W>,
    groups: Vec<u32>,
    order: Vec<u32>,
    starts: Vec<u32>,
}

/// The groups that are asked for, and their part that is no number of a text or time.
type AskedTwice<W> = (Arc<Asked<W>>, Arc<Asked<W>>);

/// Rows of one part.
struct Collected<W> {
    keys: Vec<W>,
    /// For each input the bits of its values, and whether they are there.
    values: Vec<(Vec<i64>, Vec<f64>, Vec<u8>)>,
}

impl<W: Word> Shared<W> {
    pub fn new(folds: Vec<Fold>, kinds: Vec<KeyKind>, inputs: Vec<Option<bool>>, seed: u64) -> Shared<W> {
        let folds = Folds::new(folds);
        let numbered = kinds.iter().map(KeyKind::numbered).collect();
        let parts = (0..1 << PART_BITS).map(|_| Mutex::new(GroupTable::new(folds.clone(), seed))).collect();
        Shared {
            folds,
            kinds,
            numbered,
            inputs,
            seed,
            chosen: None,
            has_null: AtomicBool::new(false),
            parts,
            part_bytes: AtomicUsize::new(0),
        }
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
        let table = |numbers: Vec<u64>| {
            let mut table = self.table();
            table.add(&numbers.into_iter().map(word).collect::<Vec<_>>(), &[], &mut Vec::new());
            table.settle();
            table
        };
        parts.map(table).collect()
    }

    pub fn bytes(&self) -> usize {
        let numbered: usize = self.numbered.iter().flatten().map(Numbered::bytes).sum();
        self.part_bytes.load(Ordering::Relaxed) + numbered
    }

    /// All groups, with those that threads had for themselves.
    pub fn parts_with(&self, mut few: Vec<GroupTable<W>>) -> Vec<GroupTable<W>> {
        if let Some(texts) = self.only_texts() {
            return self.groups_of_texts(texts);
        }
        if self.part_bytes.load(Ordering::Relaxed) > 0 {
            few.iter().for_each(|own| self.give(own));
            return self.take_parts();
        }
        let Some(mut all) = few.pop() else { return Vec::new() };
        let mut scratch = Vec::new();
        few.iter().for_each(|own| all.join(own, &mut scratch));
        vec![all]
    }

    /// Adds a thread's own groups to the parts.
    fn give(&self, own: &GroupTable<W>) {
        let words = self.folds.words();
        let (mut order, mut starts, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        by_partition(own.keys(), self.seed, PART_BITS, &mut order, &mut starts);
        for (part, range) in starts.windows(2).enumerate() {
            let rows = &order[range[0] as usize..range[1] as usize];
            let keys: Vec<W> = rows.iter().map(|row| own.keys()[*row as usize]).collect();
            let states: Vec<u64> =
                rows.iter().flat_map(|row| &own.states()[*row as usize * words..][..words]).copied().collect();
            self.add_to_part(part, |table| table.join_some(&keys, &states, &mut groups));
        }
    }

    /// The groups of all, which are no longer here then.
    fn take_parts(&self) -> Vec<GroupTable<W>> {
        let take = |part: &Mutex<GroupTable<W>>| {
            let mut table = part.lock().unwrap_or_else(PoisonError::into_inner);
            table.settle();
            std::mem::replace(&mut *table, self.table())
        };
        self.parts.iter().map(take).collect()
    }

    /// Without groups.
    pub fn table(&self) -> GroupTable<W> {
        GroupTable::new(self.folds.clone(), self.seed)
    }

    fn add_to_part(&self, part: usize, add: impl FnOnce(&mut GroupTable<W>)) {
        let mut table = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let before = table.bytes();
        add(&mut table);
        self.part_bytes.fetch_add(table.bytes().saturating_sub(before), Ordering::Relaxed);
    }
}

impl<W: Word> Worker<W> {
    pub fn new(shared: Arc<Shared<W>>) -> Worker<W> {
        let numbers = shared.numbered.iter().map(|column| column.as_ref().map(Numbered::numbers)).collect();
        let mut own = shared.table();
        if shared.kinds.is_empty() {
            // There is a group also of no rows.
            own.add_all(W::default(), 0, &[]);
        }
        Worker {
            shared,
            numbers,
            own,
            asked: None,
            collected: None,
            words: Vec::new(),
            groups: Vec::new(),
            order: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Memory that is the thread's own.
    pub fn bytes(&self) -> usize {
        let collected = self.collected.as_ref().map_or(0, |parts| parts.iter().map(Collected::bytes).sum());
        self.own.bytes() + collected + self.words.capacity() * size_of::<W>() + (2 * self.groups.capacity()) * 4
    }

    pub fn add(&mut self, keys: &[ArrayRef], inputs: &[Values], rows: usize) -> Result<(), Overflow> {
        if keys.is_empty() {
            let folded: Vec<FoldInput<'_>> = inputs.iter().map(Values::folded).collect();
            self.own.add_all(W::default(), rows, &folded);
            return Ok(());
        }
        if self.shared.only_texts().is_some() {
            let has_null = keys.iter().any(|key| key.null_count() > 0);
            self.shared.has_null.fetch_or(has_null, Ordering::Relaxed);
            return self.pack(keys, rows, true);
        }
        let Some((asked, plain)) = self.asked.clone() else {
            self.pack(keys, rows, true)?;
            return match self.shared.chosen.as_ref().and_then(|chosen| chosen.choose(&self.words)) {
                None => {
                    self.fold(inputs);
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
        let (mut bits, mut shift) = (W::default(), 0);
        for (kind, numbers) in self.shared.kinds.iter().zip(&self.numbers) {
            if numbers.is_none() {
                bits.put(u64::MAX >> (u64::BITS - kind.bits()), shift);
            }
            shift += kind.bits();
        }
        bits
    }

    /// Adds the rows whose groups are asked for.
    fn fold_asked(&mut self, asked: &Asked<W>, inputs: &[Values]) -> Result<(), Overflow> {
        let rows = asked.rows(&self.words);
        self.words = rows.iter().map(|row| self.words[*row as usize]).collect();
        let rows = UInt32Array::from(rows);
        let inputs = inputs.iter().map(|input| input.taken(&rows)).collect::<Result<Vec<_>, _>>()?;
        self.fold(&inputs);
        Ok(())
    }

    /// Adds the rows whose words were made.
    fn fold(&mut self, inputs: &[Values]) {
        if self.collected.is_none() {
            let folded: Vec<FoldInput<'_>> = inputs.iter().map(Values::folded).collect();
            self.own.add(&self.words, &folded, &mut self.groups);
            if self.own.len() > OWN_GROUPS_MAX {
                self.give_away();
            }
            return;
        }
        by_partition(&self.words, self.shared.seed, PART_BITS, &mut self.order, &mut self.starts);
        for part in 0..1 << PART_BITS {
            let rows = self.starts[part] as usize..self.starts[part + 1] as usize;
            self.collect(part, rows, inputs);
        }
    }

    fn collect(&mut self, part: usize, rows: std::ops::Range<usize>, inputs: &[Values]) {
        let Some(collected) = self.collected.as_mut().map(|parts| &mut parts[part]) else { return };
        let rows = &self.order[rows];
        let words = &self.words;
        collected.keys.extend(rows.iter().map(|row| words[*row as usize]));
        for (own, input) in collected.values.iter_mut().zip(inputs) {
            match input.folded().values {
                FoldValues::Ints(values) => own.0.extend(rows.iter().map(|row| values[*row as usize])),
                FoldValues::Floats(values) => own.1.extend(rows.iter().map(|row| values[*row as usize])),
                FoldValues::Nothing => {}
            }
            match &input.present {
                Some(present) => own.2.extend(rows.iter().map(|row| present[*row as usize])),
                None => own.2.resize(collected.keys.len(), 1),
            }
        }
        if collected.keys.len() >= PART_ROWS {
            self.pour(part);
        }
    }

    /// Adds what was collected for a part.
    fn pour(&mut self, part: usize) {
        let Some(collected) = self.collected.as_mut().map(|parts| &mut parts[part]) else { return };
        if collected.keys.is_empty() {
            return;
        }
        let groups = &mut self.groups;
        let inputs: Vec<FoldInput<'_>> = collected
            .values
            .iter()
            .zip(&self.shared.inputs)
            .map(|((ints, floats, present), is_float)| FoldInput {
                values: match is_float {
                    Some(false) => FoldValues::Ints(ints),
                    Some(true) => FoldValues::Floats(floats),
                    None => FoldValues::Nothing,
                },
                present: Some(present),
            })
            .collect();
        self.shared.add_to_part(part, |table| table.add(&collected.keys, &inputs, groups));
        collected.keys.clear();
        for (ints, floats, present) in &mut collected.values {
            ints.clear();
            floats.clear();
            present.clear();
        }
    }

    /// Empties the thread's own table into the parts.
    fn give_away(&mut self) {
        let shared = &self.shared;
        self.own.settle();
        shared.give(&self.own);
        self.own = shared.table();
        let inputs = shared.inputs.len();
        let collected = || Collected { keys: Vec::with_capacity(PART_ROWS), values: vec![Default::default(); inputs] };
        self.collected = Some((0..1 << PART_BITS).map(|_| collected()).collect());
    }

    /// The thread's own groups, if they stayed few; else they are with the others' now.
    pub fn finish(mut self) -> Option<GroupTable<W>> {
        if self.collected.is_none() {
            self.own.settle();
            return Some(self.own);
        }
        (0..1 << PART_BITS).for_each(|part| self.pour(part));
        None
    }
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

impl<W> Collected<W> {
    fn bytes(&self) -> usize {
        let values = self.values.iter().map(|(i, f, p)| 8 * (i.capacity() + f.capacity()) + p.capacity());
        self.keys.capacity() * size_of::<W>() + values.sum::<usize>()
    }
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
