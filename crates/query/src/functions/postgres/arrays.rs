//! Array bounds and lengths.

use super::{Arguments, Function, immutable};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use tidalite_types::pg_type;

pub(super) const FUNCTIONS: &[Function] = &[
    immutable("array_lower", (2, 2), pg_type::INT4, |_, arguments| Ok(length(arguments).map(|_| 1).into())),
    immutable("array_upper", (2, 2), pg_type::INT4, |_, arguments| Ok(length(arguments).into())),
    immutable("array_ndims", (1, 1), pg_type::INT4, |_, arguments| {
        let list = arguments.list(0).filter(|list| !list.is_empty());
        Ok(list.map(|list| dimensions(&list)).into())
    }),
    immutable("cardinality", (1, 1), pg_type::INT4, |_, arguments| {
        Ok(arguments.list(0).map(|list| items(&list)).into())
    }),
    // PostgreSQL counts catalog vectors from 0 and writes them without braces.
    immutable("__vector_out", (1, 1), pg_type::TEXT, |_, arguments| {
        Ok(arguments.list(0).map(|list| vector(&list)).into())
    }),
    immutable("__vector_lower", (2, 2), pg_type::INT4, |_, arguments| Ok(length(arguments).map(|_| 0).into())),
    immutable("__vector_upper", (2, 2), pg_type::INT4, |_, arguments| Ok(length(arguments).map(|n| n - 1).into())),
];

/// Returns the length of a dimension, counted from 1.
///
/// `None` for a missing dimension, as in an empty array.
fn length(arguments: &Arguments) -> Option<usize> {
    let mut list = arguments.list(0)?;
    for _ in 1..usize::try_from(arguments.int(1)?).ok().filter(|dimension| *dimension > 0)? {
        list = inner(&list)?;
    }
    Some(list.len()).filter(|length| *length > 0)
}

fn inner(list: &ArrayRef) -> Option<ArrayRef> {
    let lists = list.as_list_opt::<i32>()?;
    (0..lists.len()).find(|row| !lists.is_null(*row)).map(|row| lists.value(row))
}

fn dimensions(list: &ArrayRef) -> i64 {
    1 + inner(list).map_or(0, |inner| dimensions(&inner))
}

/// Returns the number of items of all dimensions.
fn items(list: &ArrayRef) -> usize {
    match list.as_list_opt::<i32>() {
        Some(lists) => (0..lists.len()).filter(|row| !lists.is_null(*row)).map(|row| items(&lists.value(row))).sum(),
        None => list.len(),
    }
}

fn vector(list: &ArrayRef) -> String {
    let text = |row: usize| datafusion::arrow::util::display::array_value_to_string(list, row).unwrap_or_default();
    (0..list.len()).map(text).collect::<Vec<_>>().join(" ")
}
