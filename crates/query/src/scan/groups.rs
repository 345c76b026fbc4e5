//! What the wanted rows of pieces come to by groups, where keys are symbols and a bucket of time, if any: a row for each group
//! of a stretch of rows, with a column for each fold. Whoever wants groups of all rows joins them.
//!
//! In: pieces, one after the other, of one thread. Codes of symbols together are the place of a group in
//! [`GroupPlanes`], so that no key is looked up; where the bucket changes, the groups so far go out. Blocks are unpacked
//! vector by vector, and what is unpacked is added at once. Where rows come otherwise, because some are not wanted or
//! because they are staged, their columns are read first; where buckets change too often, each row goes out as a group.

mod buckets;
mod inputs;
mod numbers;

use super::filters::Wanted;
use super::prune::Piece;
use super::read::Reader;
use crate::{Error, Result};
use buckets::Buckets;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt32Type};
use inputs::{Few, OfInput, Opened};
use numbers::PlaceNumbers;
use std::ops::Range;
use std::sync::Arc;
use tidalite_kernels::{Fold, FoldInput, Folds, GroupPlanes, add_codes, float_of_order, run_ends};
use tidalite_operators::group::{Values, magnitude, present};
use tidalite_storage::Bounds;
use tidalite_storage::segment::format::Footer;
use tidalite_storage::segment::{OpenBlock, Selection};
use tidalite_types::{ErrorKind, VECTOR_ROWS};

/// Groups are collected up to about so many before they go out.
const OUT_GROUPS: usize = 8_192;
/// Where a bucket ends all places are looked at, so many for each of its rows at most.
const PLACES_A_ROW: usize = 4;

/// More places are not numbered.
const NUMBERED_PLACES_MAX: usize = 1 << 22;

/// The groups of a scan, in values. Columns are places among those of the scan.
#[derive(Clone, Debug)]
pub(crate) struct GroupSpec {
    keys: Vec<Key>,
    inputs: Vec<GroupInput>,
    folds: Vec<Fold>,
    /// Whether inputs are only added up or counted.
    is_added_up: bool,
    places: usize,
    /// Whether places are numbered as they are met.
    is_numbered: bool,
    schema: SchemaRef,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    /// A symbol, which comes as a code below `count`.
    Codes { column: usize, count: usize },
    /// What [`Form::Rising`] makes of times. There is at most one.
    Bucket { column: usize },
}

/// A column that is folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupInput {
    pub column: usize,
    /// Whether as floating point or as integers; `None` where only its having a value is asked.
    pub is_float: Option<bool>,
}

impl GroupSpec {
    /// `scan` has the columns. `None` of more places than `u32` has numbers.
    pub fn new(scan: &Schema, keys: Vec<Key>, inputs: Vec<GroupInput>, folds: Vec<Fold>) -> Option<GroupSpec> {
        let places = keys.iter().try_fold(1_u32, |places, key| match key {
            Key::Codes { count, .. } => places.checked_mul(u32::try_from(*count).ok()?.checked_add(1)?),
            Key::Bucket { .. } => Some(places),
        })?;
        let of_key = |key: &Key| match *key {
            Key::Codes { column, .. } | Key::Bucket { column } => scan.field(column).clone(),
        };
        let of_fold = |(at, fold): (usize, &Fold)| {
            let data_type = if is_float(*fold) { DataType::Float64 } else { DataType::Int64 };
            Field::new(format!("fold {at}"), data_type, true)
        };
        let fields: Vec<Field> = keys.iter().map(of_key).chain(folds.iter().enumerate().map(of_fold)).collect();
        let is_added =
            |fold: &Fold| matches!(fold, Fold::Rows | Fold::Present(_) | Fold::SumInt(_) | Fold::SumFloat(_));
        let is_added_up = folds.iter().all(is_added);
        let schema = Arc::new(Schema::new(fields));
        Some(GroupSpec { keys, inputs, folds, is_added_up, places: places as usize, is_numbered: false, schema })
    }

    /// Its keys, then a column for each fold.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same with places that are numbered as they are met; `None` where that changes nothing, or they are too many.
    pub fn numbered(self) -> Option<GroupSpec> {
        let is_of_several = self.codes().count() > 1;
        (is_of_several && self.places <= NUMBERED_PLACES_MAX).then_some(GroupSpec { is_numbered: true, ..self })
    }

    /// Groups that one bucket is expected to have, at most: where symbols belong together, as many as one of them has.
    pub fn places_expected(&self) -> usize {
        match self.is_numbered {
            true => self.codes().map(|(_, count, _)| count + 1).max().unwrap_or(1),
            false => self.places,
        }
    }

    /// Memory that a thread takes, about.
    pub fn bytes(&self) -> usize {
        // Of numbers there may be more than are expected.
        let (numbers, places) = match self.is_numbered {
            true => (self.places * size_of::<u32>(), self.places.min(numbers::NUMBERS_MAX)),
            false => (0, self.places),
        };
        numbers + (places + OUT_GROUPS) * (self.folds.len() + self.inputs.len() + 1) * size_of::<u64>()
    }

    pub fn bucket(&self) -> Option<usize> {
        self.keys.iter().find_map(|key| if let Key::Bucket { column } = key { Some(*column) } else { None })
    }

    /// The columns of codes: how many codes there are, and what a place rises by from one to the next.
    fn codes(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        let mut stride = 1;
        self.keys.iter().filter_map(move |key| match *key {
            Key::Codes { column, count } => {
                let own = stride;
                stride *= count as u32 + 1;
                Some((column, count, own))
            }
            Key::Bucket { .. } => None,
        })
    }
}

/// Whether the column of a fold is one of floating point.
pub(crate) fn is_float(fold: Fold) -> bool {
    matches!(fold, Fold::SumFloat(_) | Fold::MinFloat(_) | Fold::MaxFloat(_))
}

/// The start of a bucket; all rows are in one of `None` where there are none.
type Bucket = Option<i64>;

/// One thread's groups.
pub(super) struct Groups {
    spec: Arc<GroupSpec>,
    planes: GroupPlanes,
    /// Of the places in `planes`, if they are numbers.
    numbers: Option<PlaceNumbers>,
    /// Of the rows in `planes`.
    bucket: Bucket,
    /// An upper bound of the integer sums: while it fits 64 bits, so does each sum.
    mass: u64,
    /// Of the segment that rows were read of last, by number.
    footer: Option<(usize, Footer)>,
    /// Groups that are complete.
    out_places: Vec<u32>,
    out_buckets: Vec<Bucket>,
    out_states: Vec<u64>,
    /// Scratch; all 0 where no key is a symbol.
    places: Vec<u32>,
    ends: Vec<usize>,
}

impl Groups {
    pub fn new(spec: &GroupSpec) -> Groups {
        // Of its own: threads that count who holds one wait for one another.
        let spec = Arc::new(spec.clone());
        Groups {
            planes: GroupPlanes::new(Folds::new(spec.folds.clone()), spec.places_expected()),
            numbers: spec.is_numbered.then(|| PlaceNumbers::new(spec.places)),
            spec,
            bucket: None,
            mass: 0,
            footer: None,
            out_places: Vec::new(),
            out_buckets: Vec::new(),
            out_states: Vec::new(),
            places: vec![0; VECTOR_ROWS],
            ends: Vec::new(),
        }
    }

    /// Adds the wanted rows of a piece, gives how many they are, and groups that are complete, often none.
    pub fn add(&mut self, reader: &Reader, piece: Piece) -> Result<(Option<RecordBatch>, usize)> {
        let (some, rows) = match piece {
            Piece::Run { .. } => {
                let batch = reader.read(piece)?;
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                (batch, rows)
            }
            Piece::Block { segment, block } => match self.weighed(reader, piece)? {
                Wanted::All => {
                    let is_added = self.add_block(reader, segment, block)?;
                    (if is_added { None } else { reader.read(piece)? }, reader.rows_of(piece))
                }
                Wanted::Some(some) if some.rows() == 0 => (None, 0),
                Wanted::Some(some) if self.spec.keys.is_empty() && self.spec.inputs.is_empty() => {
                    self.planes.add_all(0, some.rows(), &[]);
                    (None, some.rows())
                }
                Wanted::Some(some) => {
                    let is_added = self.add_few(reader, segment, block, &some)?;
                    (if is_added { None } else { Some(reader.some_of_block(segment, block, &some)?) }, some.rows())
                }
            },
        };
        if let Some(batch) = some {
            self.weigh_batch(&batch)?;
            self.add_batch(&batch)?;
        }
        let is_much = self.out_places.len() >= OUT_GROUPS;
        Ok((if is_much { Some(self.out()?) } else { None }, rows))
    }

    /// Returns the summed 64-bit columns.
    fn summed(&self) -> impl Iterator<Item = usize> {
        self.spec.folds.iter().filter_map(|fold| match *fold {
            Fold::SumInt(input) => Some(self.spec.inputs[input].column),
            _ => None,
        })
    }

    /// Returns the wanted rows of a block, after the zone maps show that their sums fit.
    fn weighed(&mut self, reader: &Reader, piece: Piece) -> Result<Wanted> {
        let wanted = reader.wanted(piece)?;
        let Piece::Block { segment, block } = piece else { return Ok(wanted) };
        let rows = match &wanted {
            Wanted::All => reader.rows_of(piece),
            Wanted::Some(some) => some.rows(),
        };
        let segment = &reader.snapshot.segments[segment];
        let mut most = 0;
        for column in self.summed() {
            let zone = segment.zone(reader.column(column).id, block).map_err(|e| reader.snapshot.named(e))?;
            most = most.max(match zone.map(|zone| zone.bounds) {
                Some(Bounds::Int(least, greatest)) => least.unsigned_abs().max(greatest.unsigned_abs()),
                _ => 0,
            });
        }
        self.weigh(most, rows)?;
        Ok(wanted)
    }

    /// Checks that the sums of rows already read fit. The rows of a block count twice.
    fn weigh_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let longs = self.summed().filter_map(|column| batch.column(column).as_primitive_opt::<Int64Type>());
        let most = longs.map(|longs| magnitude(longs.values())).max().unwrap_or(0);
        self.weigh(most, batch.num_rows())
    }

    fn weigh(&mut self, most: u64, rows: usize) -> Result<()> {
        self.mass = self.mass.saturating_add(most.saturating_mul(rows as u64));
        if self.mass > i64::MAX.unsigned_abs() { Err(Error::sum_past_end()) } else { Ok(()) }
    }

    /// The groups that are left.
    pub fn finish(mut self) -> Result<RecordBatch> {
        self.complete();
        self.out()
    }

    /// Whether rows are too few for so many runs of one bucket.
    fn is_few(&self, rows: usize, runs: usize) -> bool {
        let places = self.numbers.as_ref().map_or(self.spec.places, PlaceNumbers::count);
        runs * places > PLACES_A_ROW * rows
    }

    /// The places of a vector's rows are there: as numbers from now on, if they are to be.
    fn number_places(&mut self) {
        let Some(numbers) = &mut self.numbers else { return };
        if !numbers.has_room(self.places.len()) {
            self.complete();
        }
        let Some(numbers) = &mut self.numbers else { return };
        if !numbers.has_room(self.places.len()) {
            numbers.clear();
        }
        numbers.number(&mut self.places);
        if numbers.count() > self.planes.places() {
            self.planes.grow(numbers.count().next_power_of_two());
        }
    }

    /// Puts the places behind numbers again, from this one on.
    fn name_places(&mut self, from: usize) {
        if let Some(numbers) = &self.numbers {
            numbers.name(&mut self.out_places[from..]);
        }
    }

    /// All rows of a block. False where it was not, because what its bucket is cannot be computed this way.
    fn add_block(&mut self, reader: &Reader, index: usize, block: usize) -> Result<bool> {
        let spec = self.spec.clone();
        let segment = &reader.snapshot.segments[index];
        let rows = segment.block_rows(block);
        let named = |e| Error::from(reader.snapshot.named(e));
        let open = |column: usize| segment.open_block(reader.column(column).id, block).map_err(named);
        let Some(buckets) = Buckets::of(&spec, reader, segment, block)? else { return Ok(false) };
        if spec.bucket().is_some() && self.is_few(rows, buckets.runs()) {
            return Ok(false);
        }
        let times = buckets.times.as_ref().map(|(column, times)| times.ints().map(|times| (*column, times)));
        let mut times = times.transpose().map_err(named)?;
        let codes = spec.codes().map(|(column, ..)| open(column)).collect::<Result<Vec<_>>>()?;
        let codes = codes.iter().map(|block| block.as_ref().map(OpenBlock::codes).transpose());
        let mut codes = codes.collect::<Result<Vec<_>, _>>().map_err(named)?;
        let inputs = spec.inputs.iter().map(|input| Opened::of(input, reader, segment, block));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let packed = inputs.iter().map(Opened::packed).take_while(|_| spec.is_added_up);
        let mut packed = packed.collect::<Result<Option<Vec<_>>, _>>().map_err(named)?;
        // From the first vector on that is not taken as it is packed.
        let mut vectors: Option<Vec<OfInput<'_>>> = None;
        for i in 0..rows.div_ceil(VECTOR_ROWS) {
            let count = (rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
            self.places.resize(count, 0);
            for (n, ((column, known, stride), codes)) in spec.codes().zip(&mut codes).enumerate() {
                let Some(codes) = codes else {
                    if n == 0 {
                        self.places.fill(0);
                    }
                    continue;
                };
                let (values, present) = codes.vector(i);
                let greatest = add_codes(values, present, stride, n == 0, &mut self.places);
                check_code(reader, column, greatest, known)?;
            }
            self.number_places();
            let bucket = buckets.of_vectors.get(i).copied().unwrap_or(buckets.all);
            if let Some(bucket) = bucket
                && let Some(digits) = packed.as_mut().and_then(|all| inputs::digits(all, i))
            {
                self.begin(bucket);
                self.planes.add_digits(&self.places, &digits);
                continue;
            }
            let vectors = match &mut vectors {
                Some(vectors) => vectors,
                none => none.insert(inputs.iter().map(Opened::vectors).collect::<Result<_, _>>().map_err(named)?),
            };
            let folded: Vec<FoldInput<'_>> = vectors.iter_mut().map(|input| input.vector(i, count)).collect();
            match (bucket, &mut times) {
                (Some(bucket), _) => self.add_rows(bucket, 0..count, &folded),
                (None, Some((column, times))) => {
                    let made = reader.bucketed(*column, times.vector(i).0.to_vec())?;
                    if self.is_torn(&made) {
                        self.add_singly(&made, &folded);
                    } else {
                        self.add_runs(&made, &folded);
                    }
                }
                (None, None) => return Err(Error::internal("buckets of a block without times")),
            }
        }
        Ok(true)
    }

    /// A few rows of a block. False where they were not, because some column is not to be read that way.
    fn add_few(&mut self, reader: &Reader, index: usize, block: usize, some: &Selection) -> Result<bool> {
        let footer = match self.footer.take() {
            Some((of, footer)) if of == index => footer,
            _ => reader.snapshot.segments[index].footer().map_err(|e| reader.snapshot.named(e))?,
        };
        let is_added = self.add_few_of(reader, (index, &footer), block, some);
        self.footer = Some((index, footer));
        is_added
    }

    fn add_few_of(
        &mut self,
        reader: &Reader,
        (index, footer): (usize, &Footer),
        block: usize,
        some: &Selection,
    ) -> Result<bool> {
        let spec = self.spec.clone();
        let (segment, rows) = (&reader.snapshot.segments[index], some.rows());
        let named = |e| Error::from(reader.snapshot.named(e));
        let Some(few) = segment.few_rows(footer, block, some) else { return Ok(false) };
        let id = |column: usize| reader.column(column).id;
        let bucket = match spec.bucket() {
            None => Ok(None),
            Some(column) if !reader.has_buckets(column) => return Ok(false),
            Some(column) => match reader.bucket_of_block(segment, block, column)? {
                Some(bucket) => Ok(Some(bucket)),
                None => {
                    let mut times = Vec::with_capacity(rows);
                    if !few.ints(id(column), &mut times).map_err(named)? {
                        return Ok(false);
                    }
                    Err(reader.bucketed(column, times)?)
                }
            },
        };
        let mut values = Vec::with_capacity(spec.inputs.len());
        for input in &spec.inputs {
            let Some(own) = Few::of(&few, id(input.column), input.is_float, rows).map_err(named)? else {
                return Ok(false);
            };
            values.push(own);
        }
        self.places.resize(rows, 0);
        let mut codes = Vec::with_capacity(rows);
        for (n, (column, known, stride)) in spec.codes().enumerate() {
            codes.clear();
            if !few.codes(id(column), &mut codes).map_err(named)? {
                return Ok(false);
            }
            let greatest = add_codes(&codes, None, stride, n == 0, &mut self.places);
            check_code(reader, column, greatest, known)?;
        }
        self.number_places();
        let folded: Vec<FoldInput<'_>> = values.iter().map(Few::folded).collect();
        match bucket {
            _ if spec.keys.is_empty() => self.planes.add_all(0, rows, &folded),
            Ok(bucket) => self.add_rows(bucket, 0..rows, &folded),
            Err(buckets) if self.is_torn(&buckets) => self.add_singly(&buckets, &folded),
            Err(buckets) => self.add_runs(&buckets, &folded),
        }
        Ok(true)
    }

    /// Rows whose columns were read.
    fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let spec = self.spec.clone();
        let buckets = spec.bucket().map(|column| as_type(batch.column(column), &DataType::Int64)).transpose()?;
        let buckets = buckets.as_ref().map(|array| array.as_primitive::<Int64Type>());
        let is_torn = buckets.is_some_and(|buckets| self.is_torn(buckets));
        let codes: Vec<(&UInt32Array, Option<Vec<u8>>)> = spec
            .codes()
            .map(|(column, ..)| (batch.column(column).as_primitive::<UInt32Type>(), present(batch.column(column))))
            .collect();
        let values = |input: &GroupInput| Values::of(Some(batch.column(input.column).clone()), input.is_float);
        let inputs = spec.inputs.iter().map(values).collect::<Result<Vec<_>, _>>();
        let inputs = inputs.map_err(|e| Error::internal(e.to_string()))?;
        if spec.keys.is_empty() {
            let folded: Vec<FoldInput<'_>> = inputs.iter().map(Values::folded).collect();
            self.planes.add_all(0, batch.num_rows(), &folded);
            return Ok(());
        }
        for from in (0..batch.num_rows()).step_by(VECTOR_ROWS) {
            let rows = from..batch.num_rows().min(from + VECTOR_ROWS);
            self.places.resize(rows.len(), 0);
            for (n, ((_, known, stride), (codes, present))) in spec.codes().zip(&codes).enumerate() {
                let present = present.as_ref().map(|bytes| &bytes[rows.clone()]);
                let greatest = add_codes(&codes.values()[rows.clone()], present, stride, n == 0, &mut self.places);
                if greatest.is_some_and(|code| code as usize >= known) {
                    return Err(Error::new(ErrorKind::Corrupt, "a row has a symbol that no dictionary has"));
                }
            }
            self.number_places();
            let folded: Vec<FoldInput<'_>> = inputs.iter().map(|values| values.folded().part(rows.clone())).collect();
            match buckets {
                None => self.add_rows(None, 0..rows.len(), &folded),
                Some(buckets) if is_torn => self.add_singly(&buckets.slice(from, rows.len()), &folded),
                Some(buckets) => {
                    let buckets = buckets.slice(from, rows.len());
                    run_ends(buckets.values(), &mut self.ends);
                    self.add_runs(&buckets, &folded);
                }
            }
        }
        Ok(())
    }

    /// Whether buckets change too often, or there are none; `ends` has where they change.
    fn is_torn(&mut self, buckets: &Int64Array) -> bool {
        run_ends(buckets.values(), &mut self.ends);
        buckets.null_count() > 0 || self.is_few(buckets.len(), self.ends.len())
    }

    /// Rows of a vector, a run of one bucket after the other; `ends` has where they end.
    fn add_runs(&mut self, buckets: &Int64Array, inputs: &[FoldInput<'_>]) {
        let mut ends = std::mem::take(&mut self.ends);
        let mut from = 0;
        for to in ends.drain(..) {
            self.add_rows(Some(buckets.value(from)), from..to, inputs);
            from = to;
        }
        self.ends = ends;
    }

    /// Rows of a vector, each as a group that is complete.
    fn add_singly(&mut self, buckets: &Int64Array, inputs: &[FoldInput<'_>]) {
        let from = self.out_places.len();
        let mut rows = GroupPlanes::new(Folds::new(self.spec.folds.clone()), buckets.len());
        rows.add(&(0..buckets.len() as u32).collect::<Vec<_>>(), inputs);
        rows.take(&mut self.out_places, &mut self.out_states);
        self.out_places[from..].copy_from_slice(&self.places);
        self.name_places(from);
        self.out_buckets.extend(buckets);
    }

    /// Rows of one bucket, whose places are there.
    fn add_rows(&mut self, bucket: Bucket, rows: Range<usize>, inputs: &[FoldInput<'_>]) {
        self.begin(bucket);
        if rows.len() == self.places.len() {
            return self.planes.add(&self.places, inputs);
        }
        let own: Vec<FoldInput<'_>> = inputs.iter().map(|input| input.part(rows.clone())).collect();
        self.planes.add(&self.places[rows], &own);
    }

    /// Rows of this bucket come next.
    fn begin(&mut self, bucket: Bucket) {
        if bucket != self.bucket {
            self.complete();
            self.bucket = bucket;
        }
    }

    /// No more rows of this bucket, so far.
    fn complete(&mut self) {
        let from = self.out_places.len();
        self.planes.take(&mut self.out_places, &mut self.out_states);
        self.name_places(from);
        self.out_buckets.resize(self.out_places.len(), self.bucket);
    }

    /// The groups that are complete.
    fn out(&mut self) -> Result<RecordBatch> {
        let spec = &self.spec;
        let count = self.out_places.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.schema.fields().len());
        let mut codes = spec.codes();
        for (key, field) in spec.keys.iter().zip(spec.schema.fields()) {
            columns.push(match key {
                Key::Bucket { .. } => {
                    as_type(&(Arc::new(Int64Array::from(self.out_buckets.clone())) as ArrayRef), field.data_type())?
                }
                Key::Codes { .. } => {
                    let (_, known, stride) = codes.next().ok_or_else(|| Error::internal("a key without codes"))?;
                    let code = |place: &u32| (place / stride % (known as u32 + 1)).checked_sub(1);
                    Arc::new(self.out_places.iter().map(code).collect::<UInt32Array>())
                }
            });
        }
        let words = spec.folds.len();
        for (at, fold) in spec.folds.iter().enumerate() {
            let states = self.out_states.iter().skip(at).step_by(words.max(1)).copied();
            columns.push(column_of(*fold, states));
        }
        let batch = batch_of(spec, columns, count);
        self.out_places.clear();
        self.out_buckets.clear();
        self.out_states.clear();
        batch
    }
}

fn batch_of(spec: &GroupSpec, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(spec.schema.clone(), columns, &options);
    batch.map_err(|e| Error::internal(e.to_string()))
}

/// The words of a fold. Without values there is no least and no greatest.
fn column_of(fold: Fold, states: impl Iterator<Item = u64>) -> ArrayRef {
    let is_bound = matches!(fold, Fold::MinInt(_) | Fold::MaxInt(_) | Fold::MinFloat(_) | Fold::MaxFloat(_));
    let known = states.map(|word| (!is_bound || word != fold.start()).then_some(word));
    match fold {
        Fold::SumFloat(_) => Arc::new(known.map(|word| word.map(f64::from_bits)).collect::<Float64Array>()),
        Fold::MinFloat(_) | Fold::MaxFloat(_) => {
            Arc::new(known.map(|word| word.map(|word| float_of_order(word.cast_signed()))).collect::<Float64Array>())
        }
        _ => Arc::new(known.map(|word| word.map(u64::cast_signed)).collect::<Int64Array>()),
    }
}

fn as_type(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    cast(array, data_type).map_err(|e| Error::internal(e.to_string()))
}

fn check_code(reader: &Reader, column: usize, greatest: Option<u32>, known: usize) -> Result<()> {
    match greatest {
        Some(code) if code as usize >= known => {
            let (table, column) = (&reader.snapshot.schema.name, &reader.column(column).name);
            let message = format!("table \"{table}\", column \"{column}\": a row has symbol {code} of {known}");
            Err(Error::new(ErrorKind::Corrupt, message))
        }
        _ => Ok(()),
    }
}
