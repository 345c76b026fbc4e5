//! Which symbols of a column a segment may have in wanted rows, by conditions on other columns of symbols.
//!
//! A condition on the fleet says which trucks rows may have, where a segment knows which of them stand beside which
//! fleet ([`CodesBeside`](tidalite_storage::segment::CodesBeside)).

use crate::scan::read::Reader;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_storage::segment::CodesBeside;
use tidalite_types::ColumnId;

/// Of a query.
pub(super) struct SymbolsBeside<'a> {
    reader: &'a Reader,
    column: ColumnId,
    /// How many symbols the column has.
    count: usize,
    others: Vec<Other>,
    /// By segment, as bits.
    known: HashMap<usize, Option<Arc<[u64]>>>,
}

/// A column that a condition is on.
struct Other {
    column: ColumnId,
    count: usize,
    /// What wanted rows may have of it.
    symbols: Vec<u64>,
    or_null: bool,
}

impl<'a> SymbolsBeside<'a> {
    /// Of a column of so many symbols.
    pub fn new(reader: &'a Reader, column: ColumnId, count: usize) -> SymbolsBeside<'a> {
        let (filters, snapshot) = (reader.filters(), &reader.snapshot);
        let of = |other: ColumnId| {
            let count = snapshot.symbols.get(&other)?.len();
            let (symbols, or_null) = filters.symbols_of(other, count);
            Some(Other { column: other, count, symbols, or_null })
        };
        let others = filters.other_symbols(snapshot, column).into_iter().filter_map(of).collect();
        SymbolsBeside { reader, column, count, others, known: HashMap::new() }
    }

    /// The symbols as bits; `None` where conditions say nothing of them, or where it is not known and is not to be
    /// `found_out`, which takes reading the segment's columns.
    pub fn of_segment(&mut self, index: usize, found_out: bool) -> Result<Option<Arc<[u64]>>> {
        if self.others.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.known.get(&index) {
            return Ok(known.clone());
        }
        let segment = &self.reader.snapshot.segments[index];
        let mut symbols: Option<Vec<u64>> = None;
        for other in &self.others {
            let beside = match segment.known_codes_beside(self.column, other.column) {
                None if !found_out => return Ok(None),
                None => segment.codes_beside(self.column, other.column, (self.count, other.count)),
                Some(known) => Ok(known),
            };
            let beside: CodesBeside = beside.map_err(|e| Error::from(self.reader.snapshot.named(e)))?;
            let mut own = vec![0; self.count.div_ceil(64)];
            if beside.add_to(&other.symbols, other.or_null, &mut own) {
                match &mut symbols {
                    None => symbols = Some(own),
                    Some(symbols) => symbols.iter_mut().zip(own).for_each(|(word, own)| *word &= own),
                }
            }
        }
        let symbols: Option<Arc<[u64]>> = symbols.map(Into::into);
        self.known.insert(index, symbols.clone());
        Ok(symbols)
    }
}
