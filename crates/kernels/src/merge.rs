//! Merges two or more sorted runs.
//!
//! Input: sorted slices of timestamps. Output: stretches of alternating sides, or spans of many parts. Late rows are
//! mostly close together, so stretches are long and columns are copied by ranges.
//!
//! Invariant: equal timestamps from the left come first. The left side holds existing rows, the right side rows that
//! arrived later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tidalite_types::{Bitmap, Column, Values, Views};

/// Adjacent rows of one side. A merge alternates between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub is_right: bool,
    pub from: u32,
    pub count: u32,
}

/// Merges two sorted slices.
///
/// # Panics
/// Panics if a side has more rows than `u32` can number.
#[must_use]
pub fn merge(left: &[i64], right: &[i64]) -> Vec<Stretch> {
    assert!(left.len() <= crate::sort::ROWS_MAX && right.len() <= crate::sort::ROWS_MAX, "too many rows to merge");
    let mut stretches = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() && r < right.len() {
        let until = gallop(left, l, |key| key <= right[r]);
        push(&mut stretches, false, l, until);
        l = until;
        if l < left.len() {
            let until = gallop(right, r, |key| key < left[l]);
            push(&mut stretches, true, r, until);
            r = until;
        }
    }
    push(&mut stretches, false, l, left.len());
    push(&mut stretches, true, r, right.len());
    stretches
}

fn push(stretches: &mut Vec<Stretch>, is_right: bool, from: usize, until: usize) {
    if from < until {
        stretches.push(Stretch { is_right, from: from as u32, count: (until - from) as u32 });
    }
}

/// Adjacent rows of one of many parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub part: u32,
    pub from: usize,
    pub count: usize,
}

/// Smallest average span, in rows, for which copying spans is faster.
const SPAN_ROWS_MIN: usize = 32;
/// Number of spans that are collected before the average is checked.
const SPANS_MIN: usize = 256;

/// Returns the rows of many sorted parts in order, or `None` if parts interleave finely.
///
/// Rows with equal timestamps are ordered by part.
#[must_use]
pub fn merge_many(parts: &[&[i64]]) -> Option<Vec<Span>> {
    let first = |(part, keys): (usize, &&[i64])| Some(Reverse((*keys.first()?, part, 0)));
    let mut heads: BinaryHeap<Reverse<(i64, usize, usize)>> = parts.iter().enumerate().filter_map(first).collect();
    let (mut spans, mut rows) = (Vec::new(), 0);
    while let Some(Reverse((_, part, from))) = heads.pop() {
        let keys = parts[part];
        let until = match heads.peek() {
            None => keys.len(),
            Some(Reverse((next, other, _))) if *other < part => gallop(keys, from, |key| key < *next),
            Some(Reverse((next, ..))) => gallop(keys, from, |key| key <= *next),
        };
        spans.push(Span { part: part as u32, from, count: until - from });
        rows += until - from;
        if spans.len() > SPANS_MIN && rows < SPAN_ROWS_MIN * spans.len() {
            return None;
        }
        if let Some(key) = keys.get(until) {
            heads.push(Reverse((*key, part, until)));
        }
    }
    Some(spans)
}

/// Returns the first row from `from` on that is not `taken`. `taken` is true before this row and false after it.
#[inline]
fn gallop(keys: &[i64], from: usize, taken: impl Fn(i64) -> bool) -> usize {
    // A linear search of 8 rows is fastest for rows that interleave finely.
    let near = keys.len().min(from + 8);
    if let Some(at) = keys[from..near].iter().position(|key| !taken(*key)) {
        return from + at;
    }
    let mut step = 8;
    let mut lo = near;
    while lo + step < keys.len() && taken(keys[lo + step]) {
        lo += step;
        step *= 2;
    }
    let hi = keys.len().min(lo + step);
    lo + keys[lo..hi].partition_point(|key| taken(*key))
}

/// Reference implementation of [`merge`], row by row.
#[must_use]
pub fn merge_plain(left: &[i64], right: &[i64]) -> Vec<(bool, u32)> {
    let mut rows: Vec<(i64, bool, u32)> = left.iter().enumerate().map(|(row, key)| (*key, false, row as u32)).collect();
    rows.extend(right.iter().enumerate().map(|(row, key)| (*key, true, row as u32)));
    rows.sort_by_key(|(key, is_right, _)| (*key, *is_right));
    rows.into_iter().map(|(_, is_right, row)| (is_right, row)).collect()
}

/// Merges the rows of both columns in the order of `stretches`.
///
/// # Panics
/// Panics if the columns have different physical types or too few rows, or the text exceeds 2 GiB.
#[must_use]
pub fn merge_columns(left: &Column, right: &Column, stretches: &[Stretch]) -> Column {
    let validity = (left.validity.is_some() || right.validity.is_some())
        .then(|| merge_bits(&valid_bits(left), &valid_bits(right), stretches));
    Column { values: merge_values(&left.values, &right.values, stretches), validity }
}

fn valid_bits(column: &Column) -> Bitmap {
    column.validity.clone().unwrap_or_else(|| Bitmap::filled(column.len(), true))
}

fn merge_values(left: &Values, right: &Values, stretches: &[Stretch]) -> Values {
    match (left, right) {
        (Values::Bit(a), Values::Bit(b)) => Values::Bit(merge_bits(a, b, stretches)),
        (Values::I8(a), Values::I8(b)) => Values::I8(merge_slices(a, b, stretches)),
        (Values::I16(a), Values::I16(b)) => Values::I16(merge_slices(a, b, stretches)),
        (Values::I32(a), Values::I32(b)) => Values::I32(merge_slices(a, b, stretches)),
        (Values::I64(a), Values::I64(b)) => Values::I64(merge_slices(a, b, stretches)),
        (Values::I128(a), Values::I128(b)) => Values::I128(merge_slices(a, b, stretches)),
        (Values::F32(a), Values::F32(b)) => Values::F32(merge_slices(a, b, stretches)),
        (Values::F64(a), Values::F64(b)) => Values::F64(merge_slices(a, b, stretches)),
        (Values::U32(a), Values::U32(b)) => Values::U32(merge_slices(a, b, stretches)),
        (Values::B16(a), Values::B16(b)) => Values::B16(merge_slices(a, b, stretches)),
        (Values::Views(a), Values::Views(b)) => Values::Views(merge_views(a, b, stretches)),
        (a, b) => unreachable!("{:?} merged with {:?}", a.physical(), b.physical()),
    }
}

fn row_count(stretches: &[Stretch]) -> usize {
    stretches.iter().map(|s| s.count as usize).sum()
}

/// Merges slices of fixed-width values like [`merge_columns`].
#[must_use]
pub fn merge_slices<T: Copy>(left: &[T], right: &[T], stretches: &[Stretch]) -> Vec<T> {
    let mut out = Vec::with_capacity(row_count(stretches));
    for stretch in stretches {
        let side = if stretch.is_right { right } else { left };
        let rows = &side[stretch.from as usize..][..stretch.count as usize];
        match rows {
            [row] => out.push(*row),
            rows => out.extend_from_slice(rows),
        }
    }
    out
}

fn merge_bits(left: &Bitmap, right: &Bitmap, stretches: &[Stretch]) -> Bitmap {
    let mut out = Bitmap::new();
    for stretch in stretches {
        let side = if stretch.is_right { right } else { left };
        out.extend_from_range(side, stretch.from as usize, stretch.count as usize);
    }
    out
}

fn merge_views(left: &Views, right: &Views, stretches: &[Stretch]) -> Views {
    let mut out = Views::with_capacity(row_count(stretches));
    for stretch in stretches {
        let side = if stretch.is_right { right } else { left };
        out.extend_from_range(side.as_ref(), stretch.from as usize, stretch.count as usize);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(stretches: &[Stretch]) -> Vec<(bool, u32)> {
        stretches.iter().flat_map(|s| (s.from..s.from + s.count).map(|row| (s.is_right, row))).collect()
    }

    #[test]
    fn stretches_are_those_of_the_plain_twin() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..1000 {
            let range = [1, 5, 100, 10_000][round % 4];
            let mut side = |most: usize| {
                let offset = rng.i64(-100..100);
                let mut keys: Vec<i64> = (0..rng.usize(..=most)).map(|_| offset + rng.i64(0..range)).collect();
                keys.sort_unstable();
                keys
            };
            let (left, right) = (side([0, 3, 300, 1000][round / 4 % 4]), side([0, 3, 300, 1000][round / 16 % 4]));
            let stretches = merge(&left, &right);
            assert_eq!(rows(&stretches), merge_plain(&left, &right));
            assert!(stretches.windows(2).all(|s| s[0].is_right != s[1].is_right), "as long as can be");
            let merged = merge_slices(&left, &right, &stretches);
            assert!(merged.is_sorted() && merged.len() == left.len() + right.len());
        }
    }

    #[test]
    fn many_parts_are_woven_as_a_stable_sort_would_or_not_at_all() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut woven = [0; 2];
        for round in 0..600 {
            // From consecutive parts to parts that interleave row by row.
            let (step, most) = ([5_000, 500, 20, 1, 0][round % 5], [0, 1, 40, 3_000][round / 5 % 4]);
            let parts: Vec<Vec<i64>> = (0..rng.i64(0..9))
                .map(|part| {
                    let mut keys: Vec<i64> = (0..rng.usize(..=most)).map(|_| part * step + rng.i64(0..1_000)).collect();
                    keys.sort_unstable();
                    keys
                })
                .collect();
            let slices: Vec<&[i64]> = parts.iter().map(Vec::as_slice).collect();
            let spans = merge_many(&slices);
            woven[usize::from(spans.is_some())] += 1;
            let Some(spans) = spans else { continue };
            let rows = spans.iter().flat_map(|s| (s.from..s.from + s.count).map(|row| (s.part as usize, row)));
            let mut plain: Vec<(usize, usize)> =
                parts.iter().enumerate().flat_map(|(part, keys)| (0..keys.len()).map(move |row| (part, row))).collect();
            plain.sort_by_key(|(part, row)| parts[*part][*row]);
            assert!(rows.eq(plain));
        }
        assert!(woven[0] > 20 && woven[1] > 20, "{woven:?}");
    }

    #[test]
    fn rows_that_follow_each_other_are_two_stretches() {
        let (left, right) = ((0..1000).collect::<Vec<_>>(), (999..2000).collect::<Vec<_>>());
        let stretch = |is_right, count| Stretch { is_right, from: 0, count };
        assert_eq!(merge(&left, &right), [stretch(false, 1000), stretch(true, 1001)]);
        assert_eq!(merge(&right[1..], &left).len(), 2);
    }
}
