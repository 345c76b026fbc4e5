//! Keys of both sides as numbers of one space.
//!
//! Symbols come as codes: a left code becomes the right one of the same text, and codes of several keys are digits of one
//! number. Other keys are looked up column by column, and pairs of numbers in turn; threads number them together, and
//! mostly only read.

use crate::exec::keys::{Keys, NONE};
use crate::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::common::DataFusionError;
use std::sync::{Arc, PoisonError, RwLock};
use tidalite_operators::time_join::{IntNumbers, TextNumbers, as_one, coded, pairs};
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
    LookedUp(LookedUp),
}

/// A table for each key, and one for all keys but the first: of pairs of numbers, of those before it and its own.
pub(super) struct LookedUp {
    columns: Vec<(DataType, RwLock<Numbers>)>,
    pairs: Vec<RwLock<Numbers>>,
}

enum Numbers {
    /// Of what fits an integer of 64 bits.
    Ints(IntNumbers),
    Texts(TextNumbers),
    /// Of any type.
    Any(Box<Keys>),
}

impl KeyNumbers {
    pub fn new(types: Vec<DataType>, codes: Option<&[CodePair]>) -> Result<KeyNumbers> {
        Ok(match codes {
            _ if types.is_empty() => KeyNumbers::Without,
            Some(pairs) => KeyNumbers::Codes(pairs.to_vec()),
            None => KeyNumbers::LookedUp(LookedUp::new(types)?),
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
            KeyNumbers::LookedUp(keys) => keys.count(),
        }
    }

    /// Of rows of one side; `None` without keys. A row with a NULL among its keys, or with one that the other side cannot
    /// have, has the number [`NONE`].
    pub fn of(&self, columns: &[ArrayRef], rows: usize, is_left: bool) -> Result<Option<ScalarBuffer<u32>>> {
        match self {
            KeyNumbers::Without => Ok(None),
            KeyNumbers::Codes(pairs) => codes(pairs, columns, is_left).map(Some),
            KeyNumbers::LookedUp(keys) => keys.of(columns, rows).map(Some),
        }
    }
}

fn codes(pairs: &[CodePair], columns: &[ArrayRef], is_left: bool) -> Result<ScalarBuffer<u32>> {
    let mut numbers: Option<ScalarBuffer<u32>> = None;
    for (pair, column) in pairs.iter().zip(columns) {
        let column = column
            .as_primitive_opt::<UInt32Type>()
            .ok_or_else(|| Error::internal("a symbol that does not come as its code"))?;
        let others = pair.of_left.as_deref().filter(|_| is_left);
        let own = coded(column, pair.count, others)
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, "a row has a symbol that no dictionary has"))?;
        numbers = Some(match numbers {
            None => own,
            // Their product is at most `CODES_MAX`.
            Some(before) => as_one(&before, &own, pair.count as u32).into(),
        });
    }
    numbers.ok_or_else(|| Error::internal("codes of no keys"))
}

impl LookedUp {
    fn new(types: Vec<DataType>) -> Result<LookedUp> {
        let pairs = types.iter().skip(1).map(|_| RwLock::new(Numbers::Ints(IntNumbers::default()))).collect();
        let column = |own: DataType| {
            let (own, numbers) = Numbers::of(own)?;
            Ok((own, RwLock::new(numbers)))
        };
        Ok(LookedUp { columns: types.into_iter().map(column).collect::<Result<_>>()?, pairs })
    }

    /// Of whole keys, and the memory that all tables take.
    fn count(&self) -> (usize, usize) {
        let of = |numbers: &RwLock<Numbers>| numbers.read().unwrap_or_else(PoisonError::into_inner).count();
        let tables = self.columns.iter().map(|(_, numbers)| numbers).chain(&self.pairs).map(of);
        tables.fold((0, 0), |(_, bytes), (count, own)| (count, bytes + own))
    }

    fn of(&self, columns: &[ArrayRef], rows: usize) -> Result<ScalarBuffer<u32>> {
        let mut whole: Option<Vec<u32>> = None;
        for (at, (column, (data_type, numbers))) in columns.iter().zip(&self.columns).enumerate() {
            let column = cast(column, data_type).map_err(DataFusionError::from)?;
            let own = looked_up(numbers, &column, rows)?;
            whole = Some(match whole {
                None => own,
                Some(before) => {
                    let both: ArrayRef = Arc::new(pairs(&before, &own));
                    looked_up(&self.pairs[at - 1], &both, rows)?
                }
            });
        }
        Ok(whole.unwrap_or_default().into())
    }
}

impl Numbers {
    /// Of values of a type, and the type that they are looked up as.
    fn of(data_type: DataType) -> Result<(DataType, Numbers)> {
        use DataType::{
            Date32, Int8, Int16, Int32, Int64, LargeUtf8, Timestamp, UInt8, UInt16, UInt32, Utf8, Utf8View,
        };
        Ok(match data_type {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => (Int64, Numbers::Ints(IntNumbers::default())),
            Date32 | Timestamp(_, None) => (data_type, Numbers::Ints(IntNumbers::default())),
            Utf8 | LargeUtf8 | Utf8View => (Utf8View, Numbers::Texts(TextNumbers::default())),
            other => (other.clone(), Numbers::Any(Box::new(Keys::new(vec![other])?))),
        })
    }

    fn count(&self) -> (usize, usize) {
        match self {
            Numbers::Ints(numbers) => (numbers.count(), numbers.bytes()),
            Numbers::Texts(numbers) => (numbers.count(), numbers.bytes()),
            Numbers::Any(keys) => (keys.count(), keys.size()),
        }
    }
}

/// Reads first: that threads can do side by side.
fn looked_up(numbers: &RwLock<Numbers>, column: &ArrayRef, rows: usize) -> Result<Vec<u32>> {
    let of_ints = || cast(column, &DataType::Int64).map_err(DataFusionError::from);
    let found = match &*numbers.read().unwrap_or_else(PoisonError::into_inner) {
        Numbers::Ints(numbers) => numbers.found(of_ints()?.as_primitive::<Int64Type>()),
        Numbers::Texts(numbers) => numbers.found(column.as_string_view()),
        Numbers::Any(keys) => {
            let found = keys.found(std::slice::from_ref(column), rows)?;
            let is_whole = found.iter().enumerate().all(|(row, number)| *number != NONE || column.is_null(row));
            is_whole.then_some(found)
        }
    };
    if let Some(found) = found {
        return Ok(found);
    }
    Ok(match &mut *numbers.write().unwrap_or_else(PoisonError::into_inner) {
        Numbers::Ints(numbers) => numbers.numbered(of_ints()?.as_primitive::<Int64Type>()),
        Numbers::Texts(numbers) => numbers.numbered(column.as_string_view()),
        Numbers::Any(keys) => keys.numbered_without_null(std::slice::from_ref(column), rows)?,
    })
}
