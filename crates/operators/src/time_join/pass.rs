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

/// Where one side has this many times the rows of the other, the ends of its stretches are looked for; else every row of
/// either side is one step without a branch.
const STRETCHED: usize = 4;
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
    let (lefts, rights) = ((left.times, left_keys), (right.times, right_keys));
    let from = found.len();
    found.resize(from + left.times.len(), NONE);
    let found = &mut found[from..];
    if right.times.len() / STRETCHED > left.times.len() || left.times.len() / STRETCHED > right.times.len() {
        stretches::<STRICT>(lefts, rights, last, found);
    } else {
        steps::<STRICT>(lefts, rights, last, found);
    }
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

/// Of either side the next row: which one it is decides what changes, not what is done.
fn steps<const STRICT: bool>(left: (&[i64], &[u32]), right: (&[i64], &[u32]), last: &mut [u32], found: &mut [u32]) {
    let (mut l, mut r) = (0, 0);
    // Ends of a side are where its times end: the keys are as many.
    while let (Some(time), Some(key), Some(right_time), Some(right_key), Some(found)) =
        (left.0.get(l), left.1.get(l), right.0.get(r), right.1.get(r), found.get_mut(l))
    {
        let is_right = is_before::<STRICT>(*right_time, *time);
        if let Some(last) = last.get_mut(*right_key as usize) {
            *last = if is_right { r as u32 } else { *last };
        }
        *found = last.get(*key as usize).copied().unwrap_or(NONE);
        r += usize::from(is_right);
        l += usize::from(!is_right);
    }
    note(&right.1[r..], r, last);
    for (found, key) in found[l..].iter_mut().zip(&left.1[l..]) {
        *found = last.get(*key as usize).copied().unwrap_or(NONE);
    }
}

/// The end of what is before a left row is found first, so that what is noted is a loop without a doubt.
fn stretches<const STRICT: bool>(left: (&[i64], &[u32]), right: (&[i64], &[u32]), last: &mut [u32], found: &mut [u32]) {
    let (times, keys) = right;
    let step = times.len() / left.0.len().max(1) / WINDOW;
    let mut at = 0;
    for ((time, key), found) in left.0.iter().zip(left.1).zip(found) {
        let end = at + end_of::<STRICT>(&times[at..], *time, step);
        note(&keys[at..end], at, last);
        at = end;
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

/// Partners that are older than `tolerance` become none. `time_of` tells the time of a right row, which is not later than
/// that of its left one.
pub fn no_older(found: &mut [u32], left: &[i64], tolerance: u64, time_of: impl Fn(u32) -> i64) {
    for (found, time) in found.iter_mut().zip(left) {
        if *found != NONE && time.wrapping_sub(time_of(*found)) as u64 > tolerance {
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
