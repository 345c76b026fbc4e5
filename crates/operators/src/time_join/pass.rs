//! One ordered pass over both sides.
//!
//! In: rows of a stretch of time, and for each key the latest right row so far. Out: a partner for each left row, and the
//! latest rows as they are behind the stretch. A key that `last` has no place for equals none.

use super::NONE;

/// Times, ascending, and the numbers of keys; without keys all rows have the one number 0.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub times: &'a [i64],
    pub keys: Option<&'a [u32]>,
}

/// Times compared at once where a stretch may end.
const WINDOW: usize = 16;

/// Appends to `found` the partner of each left row: the latest right row of its key that is not later (`is_strict`:
/// that is earlier), by its number here; one that `last` had; or [`NONE`].
pub fn partners(left: Rows<'_>, right: Rows<'_>, is_strict: bool, last: &mut [u32], found: &mut Vec<u32>) {
    if is_strict { pass::<true>(left, right, last, found) } else { pass::<false>(left, right, last, found) }
}

fn pass<const STRICT: bool>(left: Rows<'_>, right: Rows<'_>, last: &mut [u32], found: &mut Vec<u32>) {
    let (Some(left_keys), Some(right_keys)) = (left.keys, right.keys) else {
        return without_keys::<STRICT>(left.times, right.times, last, found);
    };
    let from = found.len();
    found.resize(from + left.times.len(), NONE);
    row_by_row::<STRICT>((left.times, left_keys), (right.times, right_keys), last, &mut found[from..]);
}

#[inline(always)]
fn is_before<const STRICT: bool>(right: i64, left: i64) -> bool {
    if STRICT { right < left } else { right <= left }
}

#[inline(always)]
fn note(keys: &[u32], first: usize, last: &mut [u32]) {
    for (at, key) in keys.iter().enumerate() {
        if let Some(last) = last.get_mut(*key as usize) {
            *last = (first + at) as u32;
        }
    }
}

/// For each of so many keys the latest of right rows, if it has one.
#[must_use]
pub fn latest(rows: Rows<'_>, keys: usize) -> Vec<u32> {
    let mut last = vec![NONE; keys];
    match (rows.keys, last.first_mut(), rows.times.len().checked_sub(1)) {
        (Some(keys), ..) => note(&keys[..rows.times.len()], 0, &mut last),
        (None, Some(last), Some(row)) => *last = row as u32,
        _ => {}
    }
    last
}

/// Steps without a branch, of which each takes a row of either side, were measured slower: 5.1 ns a row where this takes
/// 4.0, with as many rows on either side in no order of theirs. So was looking for the end of what is before a left row
/// first: up to 100 right rows a left one.
fn row_by_row<const STRICT: bool>(
    left: (&[i64], &[u32]),
    right: (&[i64], &[u32]),
    last: &mut [u32],
    found: &mut [u32],
) {
    let (times, keys) = (right.0, &right.1[..right.0.len()]);
    let mut at = 0;
    for ((time, key), found) in left.0.iter().zip(left.1).zip(found) {
        while at < times.len() && is_before::<STRICT>(times[at], *time) {
            if let Some(last) = last.get_mut(keys[at] as usize) {
                *last = at as u32;
            }
            at += 1;
        }
        *found = last.get(*key as usize).copied().unwrap_or(NONE);
    }
    note(&keys[at..], at, last);
}

/// How many of the first are before a left row; about `step` windows are expected.
fn end_of<const STRICT: bool>(times: &[i64], time: i64, step: usize) -> usize {
    if times.first().is_none_or(|right| !is_before::<STRICT>(*right, time)) {
        return 0;
    }
    let (mut from, mut step) = (0, step * WINDOW);
    // In steps that double, and then back into the last one.
    while step > WINDOW && times.get(from + step).is_some_and(|right| is_before::<STRICT>(*right, time)) {
        from += step;
        step *= 2;
    }
    let to = times.len().min(from + step);
    if step > WINDOW {
        from += times[from..to].partition_point(|right| is_before::<STRICT>(*right, time));
        return from;
    }
    loop {
        let window = &times[from..times.len().min(from + WINDOW)];
        let count = window.iter().map(|right| usize::from(is_before::<STRICT>(*right, time))).sum::<usize>();
        from += count;
        if count < WINDOW {
            return from;
        }
    }
}

fn without_keys<const STRICT: bool>(left: &[i64], right: &[i64], last: &mut [u32], found: &mut Vec<u32>) {
    let Some(last) = last.first_mut() else { return found.resize(found.len() + left.len(), NONE) };
    let step = right.len() / left.len().max(1) / WINDOW;
    let mut at = 0;
    let partner = |time: &i64| {
        at += end_of::<STRICT>(&right[at..], *time, step);
        if at == 0 { *last } else { at as u32 - 1 }
    };
    found.extend(left.iter().map(partner));
    if let Some(row) = right.len().checked_sub(1) {
        *last = row as u32;
    }
}

/// Rows without a partner get that of their key in `before`, counted from `first`; without keys all have the key 0.
pub fn resolve(found: &mut [u32], keys: Option<&[u32]>, before: &[u32], first: u32) {
    let place = |key: u32| match before.get(key as usize) {
        Some(place) if *place != NONE => first + place,
        _ => NONE,
    };
    match keys {
        Some(keys) => {
            found.iter_mut().zip(keys).filter(|(found, _)| **found == NONE).for_each(|(f, key)| *f = place(*key))
        }
        None => found.iter_mut().filter(|found| **found == NONE).for_each(|found| *found = place(0)),
    }
}

/// The keys of rows without a partner.
#[must_use]
pub fn missing(found: &[u32], keys: &[u32]) -> Vec<u32> {
    let keys = found.iter().zip(keys).filter(|(found, key)| **found == NONE && **key != NONE);
    keys.map(|(_, key)| *key).collect()
}

/// Partners that are older than `tolerance` become none. The times of right rows are those of `right` and, counted behind
/// them, of `before`; none is later than that of its left row.
pub fn no_older(found: &mut [u32], left: &[i64], tolerance: u64, right: &[i64], before: &[i64]) {
    for (found, time) in found.iter_mut().zip(left) {
        if *found == NONE {
            continue;
        }
        let partner = match right.get(*found as usize) {
            Some(partner) => *partner,
            None => before.get(*found as usize - right.len()).copied().unwrap_or(*time),
        };
        if time.wrapping_sub(partner) as u64 > tolerance {
            *found = NONE;
        }
    }
}

/// What defines [`partners`].
#[cfg(test)]
pub(super) fn partners_plain(left: Rows<'_>, right: Rows<'_>, is_strict: bool, last: &mut [u32], found: &mut Vec<u32>) {
    let key = |rows: &Rows<'_>, row: usize| rows.keys.map_or(0, |keys| keys[row]) as usize;
    let mut at = 0;
    for (row, time) in left.times.iter().enumerate() {
        while at < right.times.len() && (right.times[at] < *time || (!is_strict && right.times[at] == *time)) {
            if let Some(last) = last.get_mut(key(&right, at)) {
                *last = at as u32;
            }
            at += 1;
        }
        found.push(last.get(key(&left, row)).copied().unwrap_or(NONE));
    }
    for at in at..right.times.len() {
        if let Some(last) = last.get_mut(key(&right, at)) {
            *last = at as u32;
        }
    }
}
