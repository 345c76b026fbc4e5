use super::*;
use crate::segment::encoding::tests::{TYPES, random_column, shapes};
use crate::segment::{Effort, encode};
use tidalite_types::ColumnType;

fn is_in(values: &Values, row: usize, set: &ValueSet) -> bool {
    match values {
        Values::Bit(v) => set.has_int(v.get(row).into()),
        Values::I8(v) => set.has_int(v[row].into()),
        Values::I16(v) => set.has_int(v[row].into()),
        Values::I32(v) => set.has_int(v[row].into()),
        Values::I64(v) => set.has_int(v[row].into()),
        Values::I128(v) => set.has_int(v[row]),
        Values::U32(v) => set.has_int(v[row].into()),
        Values::F32(v) => set.has_float(v[row].into()),
        Values::F64(v) => set.has_float(v[row]),
        Values::Views(v) => set.has_text(v.get(row)),
        Values::B16(_) => *set == ValueSet::All,
    }
}

/// Returns sets with values of the column, adjacent values and extremes, one range or many, and complements.
fn random_sets(rng: &mut fastrand::Rng, column: &Column) -> Vec<ValueSet> {
    let mut sets = vec![ValueSet::All, ValueSet::Nothing];
    for count in [1, 1, 2, 3, 9, 40] {
        let mut rows = || rng.usize(..column.len());
        let set = match &column.values {
            Values::B16(_) => return sets,
            Values::Views(views) => {
                let mut texts: Vec<Vec<u8>> = (0..count).map(|_| views.get(rows()).to_vec()).collect();
                sets.extend(texts.iter().flat_map(|text| patterns(text)));
                texts.push(b"nowhere".to_vec());
                ValueSet::texts(texts)
            }
            Values::F32(v) => {
                ValueSet::floats((0..count).map(|_| (f64::from(v[rows()]), f64::from(v[rows()]))).collect())
            }
            Values::F64(v) => ValueSet::floats((0..count).map(|_| (v[rows()], v[rows()])).collect()),
            values => {
                let mut int = || {
                    let row = rows();
                    match values {
                        Values::Bit(v) => i128::from(v.get(row)),
                        Values::I8(v) => v[row].into(),
                        Values::I16(v) => v[row].into(),
                        Values::I32(v) => v[row].into(),
                        Values::I64(v) => v[row].into(),
                        Values::I128(v) => v[row],
                        Values::U32(v) => v[row].into(),
                        _ => unreachable!(),
                    }
                };
                let (a, b) = (int(), int());
                let mut ranges: Vec<(i128, i128)> = (0..count).map(|_| int()).map(|v| (v, v)).collect();
                ranges.push((a.min(b), a.max(b)));
                if count == 1 {
                    ranges.truncate(1);
                }
                ValueSet::ints(ranges)
            }
        };
        sets.push(set.complement());
        sets.push(set);
    }
    sets
}

/// Returns patterns for the text, its middle and its ends, and their negations.
fn patterns(text: &[u8]) -> Vec<ValueSet> {
    let text = String::from_utf8_lossy(text);
    let (start, middle): (String, String) = (text.chars().take(2).collect(), text.chars().skip(1).take(3).collect());
    let patterns = [format!("{start}%"), format!("%{middle}%"), format!("%{middle}"), format!("{start}%{middle}%")];
    let of = |pattern: &String| {
        let set = ValueSet::Like { pattern: TextPattern::of_like(pattern)?, is_matching: true };
        Some([set.complement(), set])
    };
    patterns.iter().filter_map(of).flatten().collect()
}

fn check(rng: &mut fastrand::Rng, column_type: ColumnType, column: &Column, effort: Effort) {
    let block = encode(column_type, column, 0, column.len(), effort);
    let decoded = to_column(&block.decode().unwrap());
    for set in random_sets(rng, column) {
        let with_null = rng.bool();
        let mut wanted = Bitmap::filled(column.len(), true).words().to_vec();
        match rng.u32(..3) {
            0 => {}
            1 => wanted
                .iter_mut()
                .enumerate()
                .for_each(|(i, word)| *word &= if i / 20 % 2 == 0 { rng.u64(..) } else { 0 }),
            // So few rows that they are read one by one.
            _ => wanted.iter_mut().for_each(|word| *word &= u64::from(rng.u32(..8) == 0) << rng.u32(..64)),
        }
        let mut expected = wanted.clone();
        for row in 0..column.len() {
            let is_kept = if decoded.is_valid(row) { is_in(&decoded.values, row, &set) } else { with_null };
            if !is_kept {
                expected[row / 64] &= !(1 << (row % 64));
            }
        }
        let mut mask = wanted.clone();
        block.retain(&set, with_null, &mut mask).unwrap();
        assert!(mask == expected, "{column_type} {:?} {set:?} {with_null}", block.entry.encoding);
        // The second half of the column in memory, from a vector on.
        let from = column.len() / 2 / VECTOR_ROWS * VECTOR_ROWS;
        let mut mask = wanted[from / 64..].to_vec();
        retain_rows(column, from, column.len() - from, &set, with_null, &mut mask);
        assert!(mask == expected[from / 64..], "{column_type} in memory, {set:?} {with_null}");
    }
}

#[test]
fn rows_are_those_of_decoding_first() {
    let mut rng = fastrand::Rng::with_seed(1);
    let sizes = [1, 2, 63, 64, 65, 1023, 1024, 1025, 3_000, 10_000];
    for round in 0..40 {
        let effort = if round % 2 == 0 { Effort::Fresh } else { Effort::Sealed };
        for column_type in TYPES {
            let column = random_column(&mut rng, column_type, sizes[round % sizes.len()]);
            check(&mut rng, column_type, &column, effort);
        }
    }
    for (rows, effort) in [(5_000, Effort::Fresh), (30_000, Effort::Sealed)] {
        for (_, column_type, column) in shapes(&mut rng, rows) {
            check(&mut rng, column_type, &column, effort);
        }
    }
}

#[test]
fn a_set_of_another_kind_is_refused() {
    let column = Column::new(Values::I64(vec![1, 2, 3]));
    let block = encode(ColumnType::Long, &column, 0, 3, Effort::Fresh);
    assert!(block.retain(&ValueSet::floats(vec![(1.0, 2.0)]), false, &mut [7]).is_err());
    assert!(block.retain(&ValueSet::texts(vec![b"1".to_vec()]), false, &mut [7]).is_err());
}
