//! Keys of both sides as numbers of one space.
//!
//! Symbols come as codes: a left code becomes the right one of the same text, and codes of several keys are digits of one
//! number. Other keys are looked up; threads number them together, and mostly only read.

use crate::exec::keys::{Keys, NONE};
use crate::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::datatypes::{DataType, UInt32Type};
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_storage::symbol::SymbolMap;
use tidalite_types::ErrorKind;

/// More codes, and more combinations of them, are not counted on.
const CODES_MAX: usize = 1 << 20;

/// A pair of symbols.
#[derive(Clone, Debug)]
pub(crate) struct CodePair {
    /// How many the right side has.
    count: usize,
    /// For each left code the right one; `None` where they are the same.
    of_left: Option<Arc<[u32]>>,
}

impl CodePair {
    /// `None` where there are too many.
    pub fn new(left: &Arc<SymbolMap>, right: &Arc<SymbolMap>) -> Option<CodePair> {
        let count = right.len();
        if count > CODES_MAX || left.len() > CODES_MAX {
            return None;
        }
        // Dictionaries grow; what came since is in no row that is joined.
        let code = |text: &[u8]| right.id_of(text).map(|id| id.0).filter(|id| (*id as usize) < count).unwrap_or(NONE);
        let of_left = (!Arc::ptr_eq(left, right)).then(|| left.strings().iter().map(code).collect());
        Some(CodePair { count, of_left })
    }

    /// Whether their combinations can be counted on.
    pub fn are_few(pairs: &[CodePair]) -> bool {
        let count = pairs.iter().try_fold(1_usize, |count, pair| count.checked_mul(pair.count));
        count.is_some_and(|count| count <= CODES_MAX)
    }
}

pub(super) enum KeyNumbers {
    /// All rows have the number 0.
    Without,
    Codes(Vec<CodePair>),
    LookedUp(RwLock<Keys>),
}

impl KeyNumbers {
    pub fn new(types: Vec<DataType>, codes: Option<&[CodePair]>) -> Result<KeyNumbers> {
        Ok(match codes {
            _ if types.is_empty() => KeyNumbers::Without,
            Some(pairs) => KeyNumbers::Codes(pairs.to_vec()),
            None => KeyNumbers::LookedUp(RwLock::new(Keys::new(types)?)),
        })
    }

    pub fn are_there(&self) -> bool {
        !matches!(self, KeyNumbers::Without)
    }

    pub fn is_one_symbol(&self) -> bool {
        matches!(self, KeyNumbers::Codes(pairs) if pairs.len() == 1)
    }

    /// Numbers so far, and the memory that they take.
    pub fn count(&self) -> (usize, usize) {
        match self {
            KeyNumbers::Without => (1, 0),
            KeyNumbers::Codes(pairs) => (pairs.iter().map(|pair| pair.count).product(), 0),
            KeyNumbers::LookedUp(keys) => {
                let keys = keys.read().unwrap_or_else(PoisonError::into_inner);
                (keys.count(), keys.size())
            }
        }
    }

    /// Of rows of one side; `None` without keys. A row with a NULL among its keys, or with one that the other side cannot
    /// have, has the number [`NONE`].
    pub fn of(&self, columns: &[ArrayRef], rows: usize, is_left: bool) -> Result<Option<ScalarBuffer<u32>>> {
        match self {
            KeyNumbers::Without => Ok(None),
            KeyNumbers::Codes(pairs) => codes(pairs, columns, is_left).map(Some),
            KeyNumbers::LookedUp(keys) => looked_up(keys, columns, rows).map(Some),
        }
    }
}

fn codes(pairs: &[CodePair], columns: &[ArrayRef], is_left: bool) -> Result<ScalarBuffer<u32>> {
    let mut numbers: Option<ScalarBuffer<u32>> = None;
    for (pair, column) in pairs.iter().zip(columns) {
        let own = codes_of(pair, column, is_left)?;
        let digit = |(number, code): (&u32, &u32)| match (*number, *code) {
            (NONE, _) | (_, NONE) => NONE,
            // Their product is at most `CODES_MAX`.
            (number, code) => number * pair.count as u32 + code,
        };
        numbers = Some(match numbers {
            None => own,
            Some(before) => before.iter().zip(own.iter()).map(digit).collect::<Vec<u32>>().into(),
        });
    }
    numbers.ok_or_else(|| Error::internal("codes of no keys"))
}

fn codes_of(pair: &CodePair, column: &ArrayRef, is_left: bool) -> Result<ScalarBuffer<u32>> {
    let column = column
        .as_primitive_opt::<UInt32Type>()
        .ok_or_else(|| Error::internal("a symbol that does not come as its code"))?;
    let of_left = pair.of_left.as_deref().filter(|_| is_left);
    let count = of_left.map_or(pair.count, <[u32]>::len);
    let is_known = match column.null_count() {
        0 => column.values().iter().fold(0, |max, code| max.max(*code)) < count.max(1) as u32,
        _ => column.iter().flatten().all(|code| (code as usize) < count),
    };
    if !is_known || (count == 0 && column.null_count() < column.len()) {
        return Err(Error::new(ErrorKind::Corrupt, "a row has a symbol that no dictionary has"));
    }
    let code = |code: u32| of_left.map_or(code, |codes| codes[code as usize]);
    Ok(match (column.null_count(), of_left) {
        (0, None) => column.values().clone(),
        (0, Some(codes)) => column.values().iter().map(|code| codes[*code as usize]).collect::<Vec<u32>>().into(),
        _ => column.iter().map(|own| own.map_or(NONE, code)).collect::<Vec<u32>>().into(),
    })
}

fn looked_up(keys: &RwLock<Keys>, columns: &[ArrayRef], rows: usize) -> Result<ScalarBuffer<u32>> {
    let found = keys.read().unwrap_or_else(PoisonError::into_inner).found(columns, rows)?;
    let is_null = |row: usize| columns.iter().any(|column| column.is_null(row));
    if found.iter().enumerate().all(|(row, number)| *number != NONE || is_null(row)) {
        return Ok(found.into());
    }
    let mut keys = keys.write().unwrap_or_else(PoisonError::into_inner);
    Ok(keys.numbered_without_null(columns, rows)?.into())
}
