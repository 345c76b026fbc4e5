use super::pass::partners_plain;
use super::*;
use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringViewArray, UInt32Array};
use arrow::datatypes::DataType;
use std::sync::Arc;

struct Side {
    times: Vec<i64>,
    keys: Vec<u32>,
}

fn side(random: &mut fastrand::Rng, rows: usize, span: i64, keys: u32) -> Side {
    let mut times: Vec<i64> = (0..rows).map(|_| random.i64(0..span)).collect();
    times.sort_unstable();
    let key = |random: &mut fastrand::Rng| if random.u32(0..10) == 0 { NONE } else { random.u32(0..keys) };
    Side { times, keys: (0..rows).map(|_| key(random)).collect() }
}

#[test]
fn partners_are_those_of_the_plain_pass() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..400 {
        let (left_rows, right_rows) = (random.usize(0..60), random.usize(0..[5, 60, 2_000][round % 3]));
        let (span, key_count) = (random.i64(1..[4, 50, 1_000_000][round % 3]), random.u32(1..8));
        let left = side(&mut random, left_rows, span, key_count);
        let right = side(&mut random, right_rows, span, key_count);
        for (is_strict, has_keys) in [(false, true), (true, true), (false, false), (true, false)] {
            let rows = |side: &'_ Side| (side.times.clone(), has_keys.then(|| side.keys.clone()));
            let (own_left, own_right) = (rows(&left), rows(&right));
            let left = Rows { times: &own_left.0, keys: own_left.1.as_deref() };
            let right = Rows { times: &own_right.0, keys: own_right.1.as_deref() };
            let (mut last, mut found) = (vec![NONE; key_count as usize], Vec::new());
            let (mut last_plain, mut found_plain) = (last.clone(), Vec::new());
            partners(left, right, is_strict, &mut last, &mut found);
            partners_plain(left, right, is_strict, &mut last_plain, &mut found_plain);
            assert_eq!((found, last), (found_plain, last_plain), "round {round}, strict {is_strict}, keys {has_keys}");
        }
    }
}

#[test]
fn partners_that_are_too_old_are_none() {
    let mut found = [0, NONE, 1, 2];
    no_older(&mut found, &[i64::MAX, 50, 100, 106], 10, &[i64::MIN, 95], &[95]);
    assert_eq!(found, [NONE, NONE, 1, NONE]);
}

#[test]
fn rows_without_a_partner_get_that_of_their_key_before() {
    let mut found = [5, NONE, NONE, NONE, NONE];
    let keys = [0, 1, 0, NONE, 7];
    assert_eq!(missing(&found, &keys), [1, 0, 7]);
    resolve(&mut found, Some(&keys), &[3, NONE], 10);
    assert_eq!(found, [5, NONE, 13, NONE, NONE]);
    resolve(&mut found, None, &[2], 20);
    assert_eq!(found, [5, 22, 13, 22, 22]);
}

#[test]
fn sources_are_woven_by_time_and_then_by_source() {
    assert_eq!(woven(&[&[1, 3, 3], &[2, 3]]), [0, 3, 1, 2, 4]);
    assert_eq!(woven(&[&[5], &[], &[4, 5], &[5]]), [1, 0, 2, 3]);
    assert_eq!(woven(&[&[1, 2]]), [0, 1]);
    assert!(woven(&[]).is_empty());
    assert_eq!((times_in_order(&[7, 8], &[1, 0]), keys_in_order(&[7, 8], &[1, 1])), (vec![8, 7], vec![8, 8]));
    let mut places = [1, NONE, 3];
    as_rows(&mut places, &[4, 5, 6]);
    assert_eq!(places, [5, NONE, 3]);
}

#[test]
fn columns_are_gathered_from_all_arrays() {
    let floats = |values: &[Option<f64>]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let parts = [floats(&[Some(0.0), None]), floats(&[]), floats(&[Some(2.0), Some(-0.0)]).slice(1, 1)];
    let rows = [2, NONE, 0, 1];
    let expected = floats(&[Some(-0.0), None, Some(0.0), None]);
    assert_eq!(&gathered(&parts, &rows, &DataType::Float64).expect("numbers"), &expected);
    assert_eq!(&gathered(&parts[..1], &rows[1..], &DataType::Float64).expect("numbers"), &expected.slice(1, 3));
    let two = [parts[0].clone(), parts[2].clone()];
    assert_eq!(&gathered(&two, &rows, &DataType::Float64).expect("numbers"), &expected);
    assert_eq!(gathered(&[], &[NONE, NONE], &DataType::Float64).expect("none").null_count(), 2);
    let texts = |values: &[Option<&str>]| -> ArrayRef { Arc::new(StringViewArray::from(values.to_vec())) };
    let parts = [texts(&[Some("a"), None]), texts(&[Some("a text that lies elsewhere")])];
    let expected = texts(&[Some("a text that lies elsewhere"), None, Some("a"), None]);
    assert_eq!(&gathered(&parts, &rows, &DataType::Utf8View).expect("texts"), &expected);
    assert!(gathered(&parts, &[3], &DataType::Utf8View).is_err(), "a row that is not there");
    assert!(gathered(&parts, &[0], &DataType::Float64).is_err(), "another type");
}

#[test]
fn equal_keys_have_one_number() {
    let ints = Int64Array::from(vec![Some(7), None, Some(-1), Some(7)]);
    let mut numbers = IntNumbers::default();
    assert_eq!(numbers.found(&ints), None);
    assert_eq!(numbers.numbered(&ints), [0, NONE, 1, 0]);
    assert_eq!((numbers.found(&ints), numbers.count()), (Some(vec![0, NONE, 1, 0]), 2));
    assert_eq!(numbers.found(&Int64Array::from(vec![-1, 7])), Some(vec![1, 0]));
    let texts = StringViewArray::from(vec![Some("b"), None, Some(""), Some("b"), Some("a text that lies elsewhere")]);
    let mut numbers = TextNumbers::default();
    assert_eq!(numbers.found(&texts), None);
    assert_eq!(numbers.numbered(&texts), [0, NONE, 1, 0, 2]);
    assert_eq!((numbers.found(&texts), numbers.count()), (Some(vec![0, NONE, 1, 0, 2]), 3));
    assert!(numbers.bytes() > 0);
}

#[test]
fn codes_are_numbers_of_the_other_side() {
    let codes = UInt32Array::from(vec![2, 0, 1]);
    assert_eq!(coded(&codes, 3, None).as_deref(), Some(&[2, 0, 1][..]));
    assert_eq!(coded(&codes, 9, Some(&[4, NONE, 5])).as_deref(), Some(&[5, 4, NONE][..]));
    assert_eq!((coded(&codes, 2, None), coded(&codes, 9, Some(&[1, 1]))), (None, None), "codes that are not there");
    let codes = UInt32Array::from(vec![Some(1), None]);
    assert_eq!(coded(&codes, 2, None).as_deref(), Some(&[1, NONE][..]));
    assert_eq!(coded(&codes, 2, Some(&[0, 7])).as_deref(), Some(&[7, NONE][..]));
    assert_eq!(coded(&codes, 1, None), None);
    assert_eq!(coded(&UInt32Array::from(vec![None, None]), 0, None).as_deref(), Some(&[NONE, NONE][..]));
    assert_eq!(as_one(&[1, NONE, 2], &[3, 1, NONE], 10), [13, NONE, NONE]);
    assert_eq!(pairs(&[1, NONE], &[2, 0]), Int64Array::from(vec![Some((1 << 32) + 2), None]));
}

/// Returns every right row of the key in the window, after the prevailing row if it counts.
fn window_plain(left: (i64, u32), right: &Side, reach: Reach) -> (Vec<u32>, bool) {
    let (time, key) = left;
    let own: Vec<u32> =
        (0..right.times.len() as u32).filter(|row| right.keys[*row as usize] == key && key != NONE).collect();
    let at = |row: &u32| right.times[*row as usize];
    let (lo, hi) = (time.saturating_add(reach.lo), time.saturating_add(reach.hi));
    let mut window: Vec<u32> = own.iter().copied().filter(|row| (lo..=hi).contains(&at(row))).collect();
    let prevails = reach.includes_prevailing && !own.iter().any(|row| at(row) == lo) && key != NONE;
    let before = own.iter().copied().rfind(|row| at(row) < lo).filter(|_| prevails);
    window.splice(0..0, before);
    (window, prevails && before.is_none())
}

#[test]
fn windows_are_those_of_a_look_at_every_row() {
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..400 {
        let (left_rows, right_rows) = (random.usize(0..40), random.usize(0..[5, 60, 500][round % 3]));
        let (span, key_count) = (random.i64(1..[4, 50, 1_000][round % 3]), random.u32(1..6));
        let left = side(&mut random, left_rows, span, key_count);
        let mut right = side(&mut random, right_rows, span, key_count);
        let has_keys = random.bool();
        let mut left_keys = left.keys.clone();
        if !has_keys {
            right.keys.fill(0);
            left_keys.fill(0);
        }
        let lo = random.i64(-span..=span);
        let reach = Reach { lo, hi: lo + random.i64(0..=span), includes_prevailing: random.bool() };
        let keys = |keys: &'_ [u32]| has_keys.then(|| keys.to_vec());
        let (of_left, of_right) = (keys(&left_keys), keys(&right.keys));
        let count = if has_keys { key_count as usize } else { 1 };
        let arranged = Arranged::new(Rows { times: &right.times, keys: of_right.as_deref() }, count);
        let windows = arranged.windows(Rows { times: &left.times, keys: of_left.as_deref() }, reach);
        let before: Vec<u32> = (0..count as u32).map(|key| if key % 2 == 0 { key / 2 } else { NONE }).collect();
        let first = arranged.rows.len() as u32;
        let prevailing = windows.prevailing(of_left.as_deref(), &before, first);
        let (mut expected_lefts, mut expected_rights) = (Vec::new(), Vec::new());
        for (row, time) in left.times.iter().enumerate() {
            let (window, is_open) = window_plain((*time, left_keys[row]), &right, reach);
            let earlier = before.get(left_keys[row] as usize).filter(|place| is_open && **place != NONE);
            let earlier = earlier.map(|place| right_rows as u32 + place);
            for right in earlier.into_iter().chain(window) {
                expected_lefts.push(row);
                expected_rights.push(right);
            }
        }
        let (mut lefts, mut rights, mut next) = (Vec::new(), Vec::new(), Next::default());
        let mut has_more = true;
        while has_more {
            let (had, count) = (lefts.len(), random.usize(1..9));
            has_more = windows.pairs(&prevailing, &mut next, count, (&mut lefts, &mut rights));
            assert!(lefts.len() - had <= count);
        }
        let places = first as usize + before.len();
        let values: Vec<f64> = (0..places).map(|place| place as f64 - 0.3).collect();
        let (mut sums, mut counts) = (vec![0.0; left_rows], vec![0; left_rows]);
        for (left, right) in lefts.iter().zip(&rights) {
            sums[*left] += values[*right as usize];
            counts[*left] += 1;
        }
        assert_eq!((windows.sums(&prevailing, &values), windows.counts(&prevailing)), (sums, counts), "round {round}");
        let row = |place: u32| match arranged.rows.get(place as usize) {
            Some(row) => *row,
            None => right_rows as u32 + place - first,
        };
        let rights: Vec<u32> = rights.into_iter().map(row).collect();
        assert_eq!((lefts, rights), (expected_lefts, expected_rights), "round {round}, {reach:?}, keys {has_keys}");
    }
}
