//! Sources of one side as one: rows in order of time, equal times in the order of the sources.

use tidalite_kernels::{merge, sort_permutation};

/// For each place in the order the row that has it, rows being counted over all sources, each of which ascends.
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

/// Times in an order.
#[must_use]
pub fn times_in_order(times: &[i64], order: &[u32]) -> Vec<i64> {
    order.iter().map(|row| times[*row as usize]).collect()
}

/// Numbers of keys in an order.
#[must_use]
pub fn keys_in_order(keys: &[u32], order: &[u32]) -> Vec<u32> {
    order.iter().map(|row| keys[*row as usize]).collect()
}

/// Places in an order as the rows that have them; what is behind the order stays.
pub fn as_rows(places: &mut [u32], order: &[u32]) {
    for place in places {
        *place = order.get(*place as usize).copied().unwrap_or(*place);
    }
}
