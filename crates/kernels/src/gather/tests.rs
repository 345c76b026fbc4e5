use super::*;
use crate::{merge, merge_columns};

/// Returns one column of each kind of value, with and without NULLs.
fn columns(rng: &mut fastrand::Rng, rows: usize) -> Vec<Column> {
    let mut text = Views::new();
    (0..rows)
        .for_each(|i| text.push("long enough to be outside of its view"[..rng.usize(..30)].repeat(i % 2).as_bytes()));
    let mut numbers = || (0..rows).map(|_| rng.i64(..)).collect::<Vec<_>>();
    let values = vec![
        Values::Bit(numbers().iter().map(|v| v & 1 == 1).collect()),
        Values::I8(numbers().iter().map(|v| *v as i8).collect()),
        Values::I16(numbers().iter().map(|v| *v as i16).collect()),
        Values::I32(numbers().iter().map(|v| *v as i32).collect()),
        Values::I64(numbers()),
        Values::I128(numbers().iter().map(|v| i128::from(*v) << 60).collect()),
        Values::F32(numbers().iter().map(|v| *v as f32).collect()),
        Values::F64(numbers().iter().map(|v| *v as f64).collect()),
        Values::U32(numbers().iter().map(|v| *v as u32).collect()),
        Values::B16(numbers().iter().map(|v| i128::from(*v).to_le_bytes()).collect()),
        Values::Views(text),
    ];
    let with_nulls =
        |(i, values)| Column { values, validity: (i % 2 == 0).then(|| numbers().iter().map(|v| v % 3 == 0).collect()) };
    values.iter().cloned().chain(values.iter().cloned().rev()).enumerate().map(with_nulls).collect()
}

fn assert_same(a: &Column, b: &Column) {
    assert_eq!(a.validity, b.validity);
    match (&a.values, &b.values) {
        (Values::Views(a), Values::Views(b)) => assert!(a.iter().eq(b.iter())),
        (a, b) => assert_eq!(a, b),
    }
}

#[test]
fn every_kind_of_value_is_gathered_as_the_plain_twin_does() {
    let mut rng = fastrand::Rng::with_seed(1);
    for rows in [1, 63, 64, 65, 300] {
        for column in columns(&mut rng, rows) {
            for picks in [0, 1, 64, 65, 500] {
                let picks: Vec<u32> = (0..picks).map(|_| rng.u32(..rows as u32)).collect();
                assert_same(&gather(&column, &picks), &gather_plain(&column, &picks));
            }
        }
    }
}

#[test]
fn every_kind_of_value_is_merged_as_its_rows_are() {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut keys = |rows: usize| {
        let mut keys: Vec<i64> = (0..rows).map(|_| rng.i64(0..200)).collect();
        keys.sort_unstable();
        keys
    };
    let (left, right) = (keys(100), keys(150));
    let stretches = merge(&left, &right);
    let mut rng = fastrand::Rng::with_seed(3);
    for (a, b) in columns(&mut rng, 100).iter().zip(&columns(&mut rng, 150)) {
        let mut both = a.clone();
        both.extend_from_range(b, 0, 150);
        let rows: Vec<u32> = crate::merge::merge_plain(&left, &right)
            .iter()
            .map(|(is_right, row)| row + u32::from(*is_right) * 100)
            .collect();
        assert_same(&merge_columns(a, b, &stretches), &gather_plain(&both, &rows));
    }
}

#[test]
fn set_bits_are_rows() {
    let bits: Bitmap = (0..200).map(|i| i % 7 == 0).collect();
    assert_eq!(rows_set(&bits), (0..200).step_by(7).collect::<Vec<u32>>());
}

#[test]
fn rows_are_dealt_as_they_are_gathered() {
    let mut rng = fastrand::Rng::with_seed(5);
    let (a, b) = (columns(&mut rng, 150_000), columns(&mut rng, 100_000));
    let mut all: Vec<Place> = (0..150_000).map(|row| Place { run: 0, row }).collect();
    all.extend((0..100_000).map(|row| Place { run: 1, row }));
    // A few of the rows, most of the rows, all rows.
    for count in [0, 1, 5_000, 70_000, 200_000, 250_000] {
        rng.shuffle(&mut all);
        let places = &all[..count];
        let deal = Deal::new(places);
        for (a, b) in a.iter().zip(&b).filter(|(a, _)| !matches!(a.values, Values::Bit(_) | Values::Views(_))) {
            for runs in [[Some(a), Some(b)], [Some(a), None]] {
                let mut expected = Column::with_capacity(a.values.physical(), 0);
                gather_places(&runs, places, &mut expected.values);
                let is_valid = |p: &Place| runs[p.run as usize].is_some_and(|c| c.is_valid(p.row as usize));
                let has_nulls = runs.iter().any(|run| run.is_none_or(|c| c.validity.is_some()));
                expected.validity = has_nulls.then(|| places.iter().map(is_valid).collect());
                let mut found = Column::with_capacity(a.values.physical(), 0);
                // The scratch memory is longer or shorter than the column.
                let mut dealt = Column::with_capacity(a.values.physical(), 0).values;
                dealt.extend_default(rng.usize(..100_000));
                deal.gather(&runs, &mut dealt, &mut found);
                assert_same(&found, &expected);
            }
        }
    }
}

#[test]
fn rows_are_scattered_as_they_are_gathered() {
    let mut rng = fastrand::Rng::with_seed(4);
    for count in [0, 1, 100, 5_000] {
        let (a, b) = (columns(&mut rng, 300), columns(&mut rng, 200));
        for (a, b) in a.iter().zip(&b).filter(|(a, _)| !matches!(a.values, Values::Bit(_) | Values::Views(_))) {
            for runs in [[Some(a), Some(b)], [Some(a), None]] {
                let run = |rng: &mut fastrand::Rng| rng.u32(..2);
                let place = |rng: &mut fastrand::Rng| match run(rng) {
                    0 => Place { run: 0, row: rng.u32(..300) },
                    _ => Place { run: 1, row: rng.u32(..200) },
                };
                let places: Vec<Place> = (0..count).map(|_| place(&mut rng)).collect();
                let mut to: Vec<u16> = (0..count as u16).collect();
                to.sort_by_key(|row| (places[usize::from(*row)].run, places[usize::from(*row)].row));
                let sorted: Vec<Place> = to.iter().map(|row| places[usize::from(*row)]).collect();
                let mut expected = Column::with_capacity(a.values.physical(), 0).values;
                expected.extend_default(3);
                let mut found = expected.clone();
                gather_places(&runs, &places, &mut expected);
                scatter_places(&runs, &sorted, &to, &mut found);
                assert_eq!(found, expected);
            }
        }
    }
}
