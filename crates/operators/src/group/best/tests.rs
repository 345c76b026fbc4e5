use super::{Best, By};
use crate::group::tests::KEPT;
use crate::group::{Grouping, KeyKind, Output, OutputKind, Part, Sought, Values, Worker};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int8Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::{SortColumn, SortOptions, concat_batches, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite_kernels::Fold;

/// Key columns, their packing, and the types of the output columns.
type Keys = (Vec<ArrayRef>, Vec<KeyKind>, Vec<DataType>);

/// For each group: rows, the sum and the mean of integers and of floating point, the minimum and the maximum.
fn outputs() -> (Vec<Fold>, Vec<Output>) {
    let folds = vec![
        Fold::Rows,
        Fold::SumInt(0),
        Fold::Present(0),
        Fold::SumFloat(1),
        Fold::Present(1),
        Fold::MinInt(0),
        Fold::MaxFloat(1),
    ];
    let output = |kind, data_type| Output { kind, data_type };
    let outputs = vec![
        output(OutputKind::Count(0), DataType::Int64),
        output(OutputKind::Sum { sum: 1, present: 2, plus: 3 }, DataType::Int64),
        output(OutputKind::SumOfFloats { sum: 3, present: 4, is_mean: false }, DataType::Float64),
        output(OutputKind::SumOfFloats { sum: 3, present: 4, is_mean: true }, DataType::Float64),
        output(OutputKind::Bound { bound: 5, present: 2, is_float: false }, DataType::Int64),
        output(OutputKind::Bound { bound: 6, present: 4, is_float: true }, DataType::Float64),
    ];
    (folds, outputs)
}

/// Returns all groups or the top groups, added by two workers in batches of 1,000 rows.
fn grouped(keys: &Keys, ints: &Int64Array, floats: &Float64Array, best: Option<&Best>) -> RecordBatch {
    let (columns, kinds, types) = keys;
    let (folds, outputs) = outputs();
    let grouping = Grouping::new(folds, kinds.clone(), vec![Some(false), Some(true)], Sought::All, 5, KEPT);
    let mut workers = [grouping.worker(), grouping.worker()];
    for (number, from) in (0..ints.len()).step_by(1_000).enumerate() {
        let rows = 1_000.min(ints.len() - from);
        let batch: Vec<ArrayRef> = columns.iter().map(|column| column.slice(from, rows)).collect();
        let values = [values(&ints.slice(from, rows)), values(&floats.slice(from, rows))];
        workers[number % 2].add(&batch, &values, rows).expect("keys can be packed");
    }
    let mut parts: Vec<Part> = grouping.parts(workers.into_iter().flat_map(Worker::finish).collect());
    if let Some(best) = best {
        // Like the threads of a query: the top groups of some parts each, then the top groups of the results.
        let rest = parts.split_off(parts.len() / 3);
        let found = [parts, rest].map(|parts| grouping.best(&mut parts.into_iter(), &outputs, best));
        parts = vec![grouping.best(&mut found.into_iter(), &outputs, best)];
    }
    let names = types.iter().chain(outputs.iter().map(|output| &output.data_type));
    let fields = names.enumerate().map(|(n, of)| Field::new(format!("c{n}"), of.clone(), true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batches = parts.into_iter().flat_map(|part| grouping.batches(part, &outputs, &schema));
    concat_batches(&schema, &batches.map(|batch| batch.expect("columns fit")).collect::<Vec<_>>()).expect("one schema")
}

fn values(array: &dyn Array) -> Values {
    let present = array.nulls().map(|nulls| nulls.iter().map(u8::from).collect());
    Values { array: Some(array.slice(0, array.len())), present }
}

fn sorted(batch: &RecordBatch, by: &[By]) -> Vec<String> {
    let column = |by: &By| SortColumn {
        values: batch.column(by.column).clone(),
        options: Some(SortOptions { descending: by.is_descending, nulls_first: by.nulls_first }),
    };
    let order = lexsort_to_indices(&by.iter().map(column).collect::<Vec<_>>(), None).expect("columns have an order");
    let columns: Vec<ArrayRef> =
        by.iter().map(|by| take(batch.column(by.column), &order, None).expect("places of rows")).collect();
    (0..batch.num_rows()).map(|row| text(&columns, row)).collect()
}

fn text(columns: &[ArrayRef], row: usize) -> String {
    let value = |column: &ArrayRef| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => arrow::util::display::array_value_to_string(column, row).expect("every type has a text"),
    };
    columns.iter().map(value).collect::<Vec<_>>().join("|")
}

/// Compares with a sort of all groups; ties may be broken in any way.
fn check(keys: &Keys, ints: &Int64Array, floats: &Float64Array, best: &Best) {
    let (all, found) = (grouped(keys, ints, floats, None), grouped(keys, ints, floats, Some(best)));
    let mut expected = sorted(&all, &best.by);
    expected.truncate(best.groups);
    assert_eq!(sorted(&found, &best.by), expected, "{best:?}");
    let rows = |batch: &RecordBatch| (0..batch.num_rows()).map(|row| text(batch.columns(), row)).collect::<Vec<_>>();
    let known: HashSet<String> = rows(&all).into_iter().collect();
    let of_best: HashSet<String> = rows(&found).into_iter().collect();
    assert_eq!(of_best.len(), found.num_rows(), "each group once");
    assert!(of_best.is_subset(&known), "{best:?}");
}

#[test]
fn the_groups_that_come_first_in_any_order() {
    let mut random = fastrand::Rng::with_seed(11);
    for (rows, range) in [(0, 1), (1, 1), (3_000, 5), (3_000, 700), (60_000, 40_000)] {
        let mut some = |share: u32, range: i64| -> Vec<Option<i64>> {
            (0..rows).map(|_| (random.u32(0..100) < share).then(|| random.i64(-range..range))).collect()
        };
        let ints = Int64Array::from(some(70, 3));
        let float = |v: i64| if v == -9 { f64::NAN } else { v as f64 / 4.0 };
        let floats = Float64Array::from(some(70, 10).iter().map(|v| v.map(float)).collect::<Vec<_>>());
        // Strings with equal prefixes of various lengths; some have only the prefix.
        let texts: StringViewArray = (some(95, range).iter())
            .map(|v| v.map(|v| if v % 2 == 0 { format!("abcd{v}") } else { format!("abcd, and more than twelve {v}") }))
            .collect();
        let shorts = Int8Array::from_iter(some(90, 100).iter().map(|v| v.map(|v| v as i8)));
        let wide = Int64Array::from(some(90, range));
        let flags = BooleanArray::from_iter(some(80, 2).iter().map(|v| v.map(|v| v > 0)));
        let days = (0..rows as i64).map(|row| (row % 31 > 0).then_some(row / 700 * 86_400_000_000 - 7));
        let days = TimestampMicrosecondArray::from_iter(days);
        let dictionary: StringViewArray = (0..40).map(|n| Some(format!("symbol {}", n * 7 % 40))).collect();
        let codes = UInt32Array::from_iter(some(90, 20).iter().map(|v| v.map(|v| (v + 20) as u32)));
        let of = |array: &dyn Array| KeyKind::of(array.data_type(), true).expect("a key");
        let kinds =
            [of(&texts), of(&shorts), of(&wide), of(&flags), of(&days).of_few_times(), KeyKind::codes(dictionary)];
        let types = [&texts as &dyn Array, &shorts, &wide, &flags, &days].map(|array| array.data_type().clone());
        let types = [&types[..], &[DataType::Utf8View]].concat();
        let columns: [ArrayRef; 6] =
            [Arc::new(texts), Arc::new(shorts), Arc::new(wide), Arc::new(flags), Arc::new(days), Arc::new(codes)];
        for chosen in [&[0][..], &[1], &[2], &[4], &[5], &[0, 1], &[2, 3], &[3, 4, 5], &[0, 3, 4], &[0, 2]] {
            let some_of = |at: &usize| (columns[*at].clone(), (kinds[*at].clone(), types[*at].clone()));
            let (of_rows, (of_words, of_schema)): (Vec<_>, (Vec<_>, Vec<_>)) = chosen.iter().map(some_of).unzip();
            let keys = (of_rows, of_words, of_schema);
            for groups in [1, 10, 900] {
                let mut by: Vec<By> = (0..chosen.len() + outputs().1.len())
                    .map(|column| By { column, is_descending: random.bool(), nulls_first: random.bool() })
                    .collect();
                random.shuffle(&mut by);
                by.truncate(random.usize(1..4));
                check(&keys, &ints, &floats, &Best { groups, by });
            }
        }
    }
}

#[test]
fn zeros_are_equal_and_nan_is_the_greatest_number() {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 4, 5]));
    let floats = [-0.0, 0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY];
    let (ints, floats) = (Int64Array::from(vec![0; 6]), Float64Array::from(floats.to_vec()));
    let keys = (vec![keys], vec![KeyKind::of(&DataType::Int64, false).expect("a key")], vec![DataType::Int64]);
    // By the sum, the mean, the maximum; then by the key in both directions.
    for (column, expected) in [(3, [3, 2, 1, 5]), (4, [3, 2, 1, 5]), (6, [3, 2, 1, 5])] {
        let by = |is_descending| {
            let first = By { column, is_descending: false, nulls_first: false };
            vec![first, By { column: 0, is_descending, nulls_first: false }]
        };
        let found = |groups, is_descending| -> HashSet<i64> {
            let best = Best { groups, by: by(is_descending) };
            let batch = grouped(&keys, &ints, &floats, Some(&best));
            batch.column(0).as_primitive::<Int64Type>().values().iter().copied().collect()
        };
        for groups in 1..=3 {
            assert_eq!(found(groups, true), HashSet::from_iter(expected[..groups].to_vec()), "column {column}");
        }
        assert_eq!(found(2, false), HashSet::from([3, 1]), "column {column}");
    }
    let by = vec![By { column: 3, is_descending: true, nulls_first: false }];
    let batch = grouped(&keys, &ints, &floats, Some(&Best { groups: 1, by }));
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[4]);
    let sum = batch.column(3).as_primitive::<Float64Type>().value(0);
    assert_eq!(sum.to_bits(), f64::NAN.to_bits(), "the one that is stored");
}
