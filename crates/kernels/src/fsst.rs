//! Compresses text to codes of one byte, each for a symbol of 1 to 8 bytes (FSST).
//!
//! Input: a sample of a block's strings, then the strings. Output: a table of at most 255 symbols, and the codes of
//! each string. Code 255 marks the next byte as a literal. A string has the same codes for a given table, independent
//! of other strings, and concatenated codes of strings are the codes of the concatenated strings.
//!
//! Reading order: [`train`] finds the symbols, [`compress`] converts text to codes, [`decompress`] converts codes to
//! text.

pub mod compress;
pub mod decompress;
mod train;

pub use compress::Compressor;
pub use decompress::Decompressor;
pub use train::{SAMPLE_BYTES, train};

/// Largest number of symbols of a table.
pub const SYMBOLS_MAX: usize = 255;
/// Largest size of a symbol in bytes.
pub const SYMBOL_BYTES_MAX: usize = 8;
/// Code before a literal byte.
pub const ESCAPE: u8 = 255;

/// Up to 8 bytes, the first byte lowest; unused bytes are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    bytes: u64,
    len: u8,
}

impl Symbol {
    fn byte(byte: u8) -> Symbol {
        Symbol { bytes: u64::from(byte), len: 1 }
    }

    /// # Panics
    /// Panics if `bytes` is empty or longer than 8 bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Symbol {
        assert!((1..=SYMBOL_BYTES_MAX).contains(&bytes.len()), "a symbol of {} bytes", bytes.len());
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Symbol { bytes: u64::from_le_bytes(word), len: bytes.len() as u8 }
    }

    /// Returns the number of bytes, never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        usize::from(self.len)
    }

    fn first(self) -> u8 {
        self.bytes as u8
    }

    /// Concatenates two symbols and truncates the result to 8 bytes.
    fn then(self, next: Symbol) -> Symbol {
        if self.len() == SYMBOL_BYTES_MAX {
            return self;
        }
        let bytes = self.bytes | next.bytes << (8 * self.len);
        Symbol { bytes, len: (self.len + next.len).min(SYMBOL_BYTES_MAX as u8) }
    }
}

/// The symbols of codes 0, 1, 2 …
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolTable {
    symbols: Vec<Symbol>,
}

impl SymbolTable {
    /// Returns the lengths of the symbols, one byte each, followed by their bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let lens = self.symbols.iter().map(|s| s.len);
        let bytes = self.symbols.iter().flat_map(|s| s.bytes.to_le_bytes().into_iter().take(s.len()));
        lens.chain(bytes).collect()
    }

    /// Reads a table of `count` symbols from [`SymbolTable::to_bytes`], and the bytes read; `None` if the bytes are
    /// invalid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], count: usize) -> Option<(SymbolTable, usize)> {
        let (lens, mut rest) = bytes.split_at_checked(count).filter(|_| count <= SYMBOLS_MAX)?;
        let mut symbols = Vec::with_capacity(count);
        for len in lens {
            let (symbol, after) = rest.split_at_checked(usize::from(*len))?;
            if !(1..=SYMBOL_BYTES_MAX).contains(&symbol.len()) {
                return None;
            }
            symbols.push(Symbol::new(symbol));
            rest = after;
        }
        Some((SymbolTable { symbols }, bytes.len() - rest.len()))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }
}

#[cfg(test)]
mod tests;
