//! `rnd_double_array(dims [, null_rate [, greatest_length]])` and `rnd_double_array(dims, null_rate, 0, length, …)`.

use super::{Arguments, Dice};
use crate::functions::guarded::too_large;
use crate::functions::shapes::{ELEMENTS_MAX, Shaped, column_of, count};
use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

/// Maximum dimensions of a column of arrays.
const DIMS_MAX: i64 = 32;
const LENGTH_MAX: i64 = 65_536;
const LENGTH_DEFAULT: i64 = 16;
const TAKES: &str =
    "a number of dimensions, how often NULL, and a greatest length, or 0 and the length of each dimension";

/// Returns the number of dimensions that a call asks for.
pub(super) fn dims(name: &str, asked: Option<i64>) -> Result<u8> {
    match asked {
        Some(dims @ 1..=DIMS_MAX) => Ok(dims as u8),
        _ => Arguments { name, values: Vec::new() }.refused(TAKES),
    }
}

/// Lengths of the dimensions: the greatest of each, or exact ones.
struct Lengths {
    most: Vec<i64>,
    is_exact: bool,
}

fn lengths(args: &Arguments) -> Result<(Lengths, i64)> {
    let numbers = args.integers()?;
    let dims = usize::from(dims(args.name, numbers.first().copied())?);
    let same = |length: i64| Lengths { most: vec![length; dims], is_exact: false };
    let found = match numbers[1..] {
        [] => (same(LENGTH_DEFAULT), 0),
        [rate] => (same(LENGTH_DEFAULT), rate),
        [rate, most @ 1..=LENGTH_MAX] => (same(most), rate),
        [rate, 0, ref exact @ ..] if exact.len() == dims && exact.iter().all(|l| (1..=LENGTH_MAX).contains(l)) => {
            (Lengths { most: exact.to_vec(), is_exact: true }, rate)
        }
        _ => return args.refused(TAKES),
    };
    Ok(found)
}

pub(super) fn made(args: &Arguments, dice: impl Iterator<Item = Dice>) -> Result<ArrayRef> {
    let (lengths, rate) = lengths(args)?;
    let mut elements = 0_usize;
    let array = |mut dice: Dice| {
        let length = |most: &i64| if lengths.is_exact { *most } else { dice.between(1, *most) };
        let lengths: Vec<usize> = lengths.most.iter().map(length).map(|length| length as usize).collect();
        let own = count(&lengths, args.name)?;
        elements = elements.saturating_add(own);
        if elements > ELEMENTS_MAX {
            return Err(too_large(args.name).into());
        }
        let values = (0..own).map(|_| (!dice.is_null(rate)).then(|| dice.part())).collect();
        Ok(Some(Shaped { lengths, values }))
    };
    column_of(dice.map(array).collect::<Result<Vec<_>>>()?, lengths.most.len())
}
