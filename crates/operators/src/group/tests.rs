use super::*;
use arrow::array::{
    Array, AsArray, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int16Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// Counts and sums by key columns, with two workers and batches of 1,000 rows. Returns keys as text, rows, sum.
fn grouped(keys: &[ArrayRef], values: &[i64]) -> Result<HashMap<String, (i64, i64)>, Overflow> {
    let kinds = keys.iter().map(|k| KeyKind::of(k.data_type(), k.null_count() > 0).expect("a key")).collect();
    let types: Vec<DataType> = keys.iter().map(|k| k.data_type().clone()).collect();
    grouped_as(keys, (kinds, &types), values)
}

/// `types` are the types of the output keys.
fn grouped_as(
    keys: &[ArrayRef],
    kinds: (Vec<KeyKind>, &[DataType]),
    values: &[i64],
) -> Result<HashMap<String, (i64, i64)>, Overflow> {
    grouped_of(keys, kinds, values, None)
}

/// Returns any `limit` of the groups.
fn grouped_of(
    keys: &[ArrayRef],
    (kinds, types): (Vec<KeyKind>, &[DataType]),
    values: &[i64],
    limit: Option<usize>,
) -> Result<HashMap<String, (i64, i64)>, Overflow> {
    let found = |kept| -> Result<HashMap<String, (i64, i64)>, Overflow> {
        let sought = limit.map_or(Sought::All, Sought::Any);
        let (grouping, parts) = parts_of(keys, kinds.clone(), values, sought, kept)?;
        let found = told(&grouping, parts, types, &ROWS_AND_SUM);
        Ok(found.into_iter().map(|(key, numbers)| (key, (numbers[0], numbers[1]))).collect())
    };
    let all = found(KEPT)?;
    if limit.is_none() {
        // Rows are grouped on arrival, in several steps, or at the end.
        for kept in [0, 300_000] {
            assert_eq!(found(kept)?, all, "of rows, {kept} bytes kept");
        }
    }
    Ok(all)
}

/// Returns the number of distinct values of the last key per combination of the others, with rows and sums.
fn counted(keys: &[ArrayRef], values: &[i64]) -> HashMap<String, Vec<i64>> {
    let kinds = keys.iter().map(|k| KeyKind::of(k.data_type(), k.null_count() > 0).expect("a key")).collect();
    let (all, parts) = parts_of(keys, kinds, values, Sought::CountsOfLast, KEPT).expect("keys can be packed");
    counted_last(&all, parts, keys, &[&ROWS_AND_SUM[..], &[OutputKind::Count(3)]].concat())
}

fn counted_last(
    all: &Grouping,
    parts: Vec<Part>,
    keys: &[ArrayRef],
    outputs: &[OutputKind],
) -> HashMap<String, Vec<i64>> {
    let fewer = all.without_last();
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().expect("no thread panicked").next();
    let few = std::thread::scope(|scope| {
        let count = || all.count_last(&mut std::iter::from_fn(next), &fewer);
        let threads = [scope.spawn(count), scope.spawn(count)];
        threads.into_iter().filter_map(|thread| thread.join().expect("no thread panicked")).collect()
    });
    let types: Vec<DataType> = keys[..keys.len() - 1].iter().map(|k| k.data_type().clone()).collect();
    told(&fewer, fewer.parts(few), &types, outputs)
}

/// Memory limit, in bytes, that buffers all rows until they are grouped.
pub(super) const KEPT: usize = 1 << 30;

const ROWS_AND_SUM: [OutputKind; 2] = [OutputKind::Count(0), OutputKind::Sum { sum: 1, present: 2, plus: 0 }];

fn parts_of(
    keys: &[ArrayRef],
    kinds: Vec<KeyKind>,
    values: &[i64],
    sought: Sought,
    kept: usize,
) -> Result<(Grouping, Vec<Part>), Overflow> {
    let folds = vec![Fold::Rows, Fold::SumInt(0), Fold::Present(0)];
    let grouping = Grouping::new(folds, kinds, vec![Some(false)], sought, 5, kept);
    let mut workers = [grouping.worker(), grouping.worker()];
    for (number, from) in (0..values.len()).step_by(1_000).enumerate() {
        let rows = 1_000.min(values.len() - from);
        let keys: Vec<ArrayRef> = keys.iter().map(|k| k.slice(from, rows)).collect();
        let array: ArrayRef = Arc::new(Int64Array::from(values[from..from + rows].to_vec()));
        workers[number % 2].add(&keys, &[Values { array: Some(array), present: None }], rows)?;
    }
    let parts = grouping.parts(workers.into_iter().flat_map(Worker::finish).collect());
    Ok((grouping, parts))
}

/// Returns the groups by their keys as text.
fn told(
    grouping: &Grouping,
    parts: Vec<Part>,
    types: &[DataType],
    outputs: &[OutputKind],
) -> HashMap<String, Vec<i64>> {
    let names = (0..types.len()).map(|n| Field::new(format!("k{n}"), types[n].clone(), true));
    let numbers = (0..outputs.len()).map(|n| Field::new(format!("n{n}"), DataType::Int64, true));
    let schema: SchemaRef = Arc::new(Schema::new(names.chain(numbers).collect::<Vec<_>>()));
    let outputs = outputs.iter().map(|kind| Output { kind: kind.clone(), data_type: DataType::Int64 });
    let outputs: Vec<Output> = outputs.collect();
    let batches = parts.into_iter().flat_map(|part| grouping.batches(part, &outputs, &schema));
    let batches: Vec<RecordBatch> = batches.map(|batch| batch.expect("columns fit their schema")).collect();
    let all = concat_batches(&schema, &batches).expect("batches of one schema");
    let (keys, numbers) = all.columns().split_at(types.len());
    let of_row = |row: usize| {
        let numbers = numbers.iter().map(|column| column.as_primitive::<Int64Type>().value(row)).collect();
        (text(keys, row), numbers)
    };
    let found: HashMap<String, Vec<i64>> = (0..all.num_rows()).map(of_row).collect();
    assert_eq!(found.len(), all.num_rows(), "each key once");
    found
}

fn text(columns: &[ArrayRef], row: usize) -> String {
    let value = |c: &ArrayRef| match c.is_null(row) {
        true => "NULL".to_owned(),
        false => arrow::util::display::array_value_to_string(c, row).expect("every type has a text"),
    };
    columns.iter().map(value).collect::<Vec<_>>().join("|")
}

fn check(keys: &[ArrayRef]) {
    let rows = keys[0].len();
    let values: Vec<i64> = (0..rows as i64).map(|v| v * 7 % 1_009 - 500).collect();
    let mut expected: HashMap<String, (i64, i64)> = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        let own = expected.entry(text(keys, row)).or_default();
        *own = (own.0 + 1, own.1 + value);
    }
    assert_eq!(grouped(keys, &values).expect("keys can be packed"), expected);
    let (last, others) = keys.split_last().expect("a key");
    let mut seen: HashMap<String, HashSet<String>> = HashMap::new();
    let mut expected: HashMap<String, Vec<i64>> = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        let key = text(others, row);
        let is_new =
            last.is_valid(row) && seen.entry(key.clone()).or_default().insert(text(std::slice::from_ref(last), row));
        let own = expected.entry(key).or_insert_with(|| vec![0; 3]);
        own.iter_mut().zip([1, *value, i64::from(is_new)]).for_each(|(sum, more)| *sum += more);
    }
    assert_eq!(counted(keys, &values), expected);
}

#[test]
fn keys_of_all_kinds_few_and_many() {
    let mut random = fastrand::Rng::with_seed(3);
    for (rows, range) in [(1, 1), (5_000, 20), (60_000, 50_000)] {
        let mut some = |share: u32| -> Vec<Option<i64>> {
            (0..rows).map(|_| (random.u32(0..100) < share).then(|| random.i64(-range..range))).collect()
        };
        let ints: ArrayRef = Arc::new(Int64Array::from(some(90)));
        let full: ArrayRef = Arc::new(Int64Array::from(some(100)));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(some(95)));
        let shorts: ArrayRef = Arc::new(some(90).iter().map(|v| v.map(|v| v as i16)).collect::<Int16Array>());
        let unsigned: ArrayRef = Arc::new(some(90).iter().map(|v| v.map(|v| v as u32)).collect::<UInt32Array>());
        let days: ArrayRef = Arc::new(some(90).iter().map(|v| v.map(|v| v as i32)).collect::<Date32Array>());
        let flags: ArrayRef = Arc::new(some(60).iter().map(|v| v.map(|v| v > 0)).collect::<BooleanArray>());
        let texts = some(90);
        let texts = texts.iter().map(|v| {
            v.map(|v| if v % 2 == 0 { format!("t{v}") } else { format!("a text that is longer than twelve bytes {v}") })
        });
        let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
        for key in [&ints, &full, &times, &shorts, &unsigned, &days, &flags, &texts] {
            check(std::slice::from_ref(key));
        }
        check(&[texts.clone(), flags.clone(), shorts.clone()]);
        check(&[ints.clone(), texts.clone()]);
        check(&[full, times]);
    }
}

#[test]
fn rows_that_share_texts_are_in_the_groups_of_their_texts() {
    let mut random = fastrand::Rng::with_seed(7);
    for (rows, count) in [(1, 1), (10_000, 7), (10_000, 9_000), (40_000, 40_000)] {
        // Some strings occur twice, and some occur in no row.
        let texts: StringViewArray = (0..count).map(|n| Some(format!("a text of some length {}", n / 2))).collect();
        let places = (0..rows).map(|_| (random.u32(0..9) > 0).then(|| random.u32(0..count as u32)));
        let places: UInt32Array = places.collect();
        let said: ArrayRef = arrow::compute::take(&texts, &places, None).expect("places among the texts");
        let shared: ArrayRef = Arc::new(DictionaryArray::new(places, Arc::new(texts)));
        let values: Vec<i64> = (0..rows as i64).collect();
        let kinds = || vec![KeyKind::of(&DataType::Utf8View, true).expect("a key")];
        let found = grouped_as(&[shared], (kinds(), &[DataType::Utf8View]), &values).expect("few texts");
        assert_eq!(found, grouped(&[said], &values).expect("few texts"));
    }
}

#[test]
fn distinct_texts_come_once() {
    for has_null in [false, true] {
        let text = |row: usize| (!has_null || !row.is_multiple_of(50)).then(|| format!("text {}", row * row % 977));
        let texts: ArrayRef = Arc::new((0..5_000).map(text).collect::<StringViewArray>());
        let kinds = vec![KeyKind::of(&DataType::Utf8View, true).expect("a key")];
        let grouping = Grouping::new(Vec::new(), kinds, Vec::new(), Sought::All, 5, KEPT);
        let mut workers = [grouping.worker(), grouping.worker()];
        for (number, from) in (0..5_000).step_by(500).enumerate() {
            workers[number % 2].add(&[texts.slice(from, 500)], &[], 500).expect("few texts");
        }
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8View, true)]));
        let parts = grouping.parts(workers.into_iter().flat_map(Worker::finish).collect());
        let batches = parts.into_iter().flat_map(|part| grouping.batches(part, &[], &schema));
        let found: Vec<String> = batches
            .flat_map(|batch| {
                let batch = batch.expect("columns fit their schema");
                (0..batch.num_rows()).map(|row| self::text(batch.columns(), row)).collect::<Vec<_>>()
            })
            .collect();
        let mut expected: Vec<String> = (0..5_000).map(|row| text(row).unwrap_or("NULL".to_owned())).collect();
        expected.sort();
        expected.dedup();
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(sorted, expected);
    }
}

#[test]
fn of_some_groups_all_rows_are_counted() {
    let mut random = fastrand::Rng::with_seed(8);
    for limit in [1, 10, 900] {
        let ints: ArrayRef = Arc::new((0..30_000).map(|_| Some(random.i64(0..300))).collect::<Int64Array>());
        let texts: ArrayRef =
            Arc::new((0..30_000).map(|_| Some(format!("t{}", random.u32(0..4)))).collect::<StringViewArray>());
        for keys in [vec![ints.clone()], vec![ints.clone(), texts.clone()], vec![texts.clone()]] {
            let values: Vec<i64> = (0..30_000).collect();
            let all = grouped(&keys, &values).expect("keys can be packed");
            let kinds = keys.iter().map(|k| KeyKind::of(k.data_type(), false).expect("a key")).collect();
            let types: Vec<DataType> = keys.iter().map(|k| k.data_type().clone()).collect();
            let some = grouped_of(&keys, (kinds, &types), &values, Some(limit)).expect("keys can be packed");
            assert_eq!(some.len(), limit.min(all.len()));
            assert!(some.iter().all(|(key, sums)| all[key] == *sums));
        }
    }
}

#[test]
fn codes_and_few_times_are_what_they_stand_for() {
    let mut random = fastrand::Rng::with_seed(6);
    for (rows, texts, times) in [(1, 1, 1), (20_000, 5, 3), (20_000, 0, 40), (50_000, 3_000, 200)] {
        let dictionary: StringViewArray = (0..texts).map(|n| Some(format!("the text of number {n}"))).collect();
        let is_null: Vec<bool> = (0..rows).map(|_| texts == 0 || random.u32(0..10) == 0).collect();
        // Codes of NULL rows are undefined.
        let codes = is_null.iter().map(|none| if *none { u32::MAX } else { random.u32(0..texts as u32) });
        let codes =
            UInt32Array::new(codes.collect(), Some(is_null.iter().map(|none| !none).collect::<Vec<_>>().into()));
        let said: StringViewArray = codes.iter().map(|c| c.map(|c| dictionary.value(c as usize).to_owned())).collect();
        // In order of time, except for some rows.
        let hour = |row: usize| (row * times / rows + usize::from(row % 911 == 5)) as i64 * 3_600_000_000 - 7;
        let hours: TimestampMicrosecondArray = (0..rows).map(|row| (row % 977 != 3).then(|| hour(row))).collect();
        let plain = KeyKind::of(hours.data_type(), true).expect("a key");
        let (codes, hours, said): (ArrayRef, ArrayRef, ArrayRef) = (Arc::new(codes), Arc::new(hours), Arc::new(said));
        let values: Vec<i64> = (0..rows as i64).collect();
        let expected = grouped(&[hours.clone(), said.clone()], &values).expect("keys can be packed");
        for time in [plain.clone(), plain.of_few_times()] {
            let kinds = vec![time, KeyKind::codes(dictionary.clone())];
            let types = [hours.data_type().clone(), DataType::Utf8View];
            let found = grouped_as(&[hours.clone(), codes.clone()], (kinds, &types), &values);
            assert_eq!(found.expect("codes of the dictionary"), expected);
        }
    }
    let beyond: ArrayRef = Arc::new(UInt32Array::from(vec![0, 1]));
    let kinds = vec![KeyKind::codes(StringViewArray::from(vec!["only"]))];
    assert!(grouped_as(&[beyond], (kinds, &[DataType::Utf8View]), &[1, 2]).is_err(), "a code that stands for nothing");
}

#[test]
fn the_smallest_integer_beside_null_is_given_up() {
    let both: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(1)]));
    assert!(grouped(&[both], &[1, 2, 3]).is_err());
    check(&[Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX, i64::MIN]))]);
}

#[test]
fn floating_point_is_a_key() {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MIN_POSITIVE, f64::MAX, -1.5];
    let keys: Float64Array = (0..5_000).map(|n| (n % 11 != 3).then(|| special[n % 7] * (1 + n % 3) as f64)).collect();
    let narrow: Float32Array = keys.iter().map(|v| v.map(|v| v as f32)).collect();
    let whole: Float64Array = (0..5_000).map(|n| special[n % 6]).map(Some).collect();
    check(&[Arc::new(keys)]);
    check(&[Arc::new(narrow), Arc::new(whole.clone())]);
    check(&[Arc::new(whole)]);
    let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0]));
    assert_eq!(grouped(&[zeros], &[1, 2]).expect("a key"), HashMap::from([("0.0".to_owned(), (2, 3))]));
}

#[test]
fn values_are_counted_where_nothing_is_folded() {
    let rows = 200_000_i64;
    for groups in [7, 40_000] {
        let key = |row: i64| row * 7_919 % groups;
        let value = |row: i64| (row % 5 != 0 && row % groups != 3).then_some(row % 13);
        let keys: Vec<ArrayRef> = vec![
            Arc::new((0..rows).map(key).map(Some).collect::<Int64Array>()),
            Arc::new((0..rows).map(value).collect::<Int64Array>()),
        ];
        let mut expected: HashMap<String, HashSet<i64>> = HashMap::new();
        for row in 0..rows {
            expected.entry(key(row).to_string()).or_default().extend(value(row));
        }
        let expected: HashMap<String, Vec<i64>> =
            expected.into_iter().map(|(key, values)| (key, vec![values.len() as i64])).collect();
        for kept in [0, KEPT] {
            let kinds = vec![KeyKind::of(&DataType::Int64, true).expect("a key"); 2];
            let all = Grouping::new(Vec::new(), kinds, Vec::new(), Sought::CountsOfLast, 5, kept);
            let mut worker = all.worker();
            for from in (0..rows as usize).step_by(10_000) {
                let keys: Vec<ArrayRef> = keys.iter().map(|key| key.slice(from, 10_000)).collect();
                worker.add(&keys, &[], 10_000).expect("integers can be packed");
            }
            let parts = all.parts(worker.finish());
            assert_eq!(counted_last(&all, parts, &keys, &[OutputKind::Count(0)]), expected);
        }
    }
}

#[test]
fn texts_are_numbered_however_many_and_wherever_they_lie() {
    let text = |n: usize| {
        if n.is_multiple_of(3) { format!("{n}") } else { format!("a text longer than twelve bytes, number {n}") }
    };
    let texts: StringViewArray = (0..200_000).map(|n| (n % 1_000 != 7).then(|| text(n * 7_919 % 90_001))).collect();
    check(&[Arc::new(texts)]);
    // Equal in length, in the first bytes, and in their positions in separate buffers.
    let alike = |last: char| StringViewArray::from(vec![format!("begins alike, ends in {last}"); 2]);
    let kinds = vec![KeyKind::of(&DataType::Utf8View, false).expect("a key")];
    let grouping = Grouping::new(vec![Fold::Rows], kinds, Vec::new(), Sought::All, 5, KEPT);
    let mut worker = grouping.worker();
    for last in ['a', 'b', 'a', 'c'] {
        worker.add(&[Arc::new(alike(last))], &[], 2).expect("texts are numbered");
    }
    let names = [Field::new("k", DataType::Utf8View, false), Field::new("n", DataType::Int64, false)];
    let schema: SchemaRef = Arc::new(Schema::new(names.to_vec()));
    let outputs = [Output { kind: OutputKind::Count(0), data_type: DataType::Int64 }];
    let mut parts = grouping.parts(worker.finish());
    let batch = grouping.batches(parts.remove(0), &outputs, &schema).remove(0).expect("two columns");
    let (keys, counts) = (batch.column(0).as_string_view(), batch.column(1).as_primitive::<Int64Type>());
    let mut found: Vec<_> = keys.iter().flatten().zip(counts.values().iter().copied()).collect();
    found.sort_unstable();
    assert_eq!(found, [("begins alike, ends in a", 4), ("begins alike, ends in b", 2), ("begins alike, ends in c", 2)]);
}

#[test]
fn without_keys_there_is_one_group_also_of_no_rows() {
    let found = grouped(&[], &[]).expect("nothing to pack");
    assert_eq!(found, HashMap::from([(String::new(), (0, 0))]));
    let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    assert_eq!(counted(&[none], &[]), HashMap::from([(String::new(), vec![0, 0, 0])]));
    let grouping =
        Grouping::new(vec![Fold::Rows, Fold::SumFloat(0)], Vec::new(), vec![Some(true)], Sought::All, 5, KEPT);
    let mut worker = grouping.worker();
    let array: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 100.0, 2.0]));
    worker.add(&[], &[Values { array: Some(array), present: Some(vec![1, 0, 1]) }], 3).expect("nothing to pack");
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("s", DataType::Float64, true)]));
    let kind = OutputKind::SumOfFloats { sum: 1, present: 0, is_mean: false };
    let mut parts = grouping.parts(worker.finish());
    let batches = grouping.batches(parts.remove(0), &[Output { kind, data_type: DataType::Float64 }], &schema);
    let batch = batches[0].as_ref().expect("one column");
    assert_eq!(batch.column(0).as_primitive::<arrow::datatypes::Float64Type>().values(), &[3.5]);
}
