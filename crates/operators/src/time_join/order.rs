//! Merges the sources of one side: rows in time order; rows with equal times in the order of the sources.

use tidalite_kernels::{merge, sort_permutation};

/// Returns the row at each position of the merged order. Rows are counted over all sources, each of which is sorted.
#[must_use]
pub fn woven(sources: &[&[i64]]) -> Vec<u32> {
    match sources {
        [] => Vec::new(),
        [one] => (0..one.len() as u32).collect(),
        [first, second] => {
            let mut order = Vec::with_capacity(first.len() + second.len());
            for stretch in merge(first, second) {
                let from = stretch.from + if stretch.is_right { first.len() as u32 } else { 0 };
                order.extend(from..from + stretch.count);
            }
            order
        }
        many => sort_permutation(&many.concat()),
    }
}

/// Returns the times in the given order.
#[must_use]
pub fn times_in_order(times: &[i64], order: &[u32]) -> Vec<i64> {
    order.iter().map(|row| times[*row as usize]).collect()
}

/// Returns the key codes in the given order.
#[must_use]
pub fn keys_in_order(keys: &[u32], order: &[u32]) -> Vec<u32> {
    order.iter().map(|row| keys[*row as usize]).collect()
}

/// Replaces positions in an order by row numbers. Positions past the end are unchanged.
pub fn as_rows(places: &mut [u32], order: &[u32]) {
    for place in places {
        *place = order.get(*place as usize).copied().unwrap_or(*place);
    }
}
