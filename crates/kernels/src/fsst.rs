//! Text as codes of a byte, each standing for a symbol of 1 to 8 bytes (FSST).
//!
//! In: a sample of a block's strings, then the strings. Out: a table of at most 255 symbols, and for each string its
//! codes; code 255 says that the next byte stands for itself. A string always gets the same codes from a table,
//! whatever stands beside it, and codes of strings one after the other are codes of the strings one after the other.
//!
//! Reading order: [`train`] finds the symbols, [`compress`] text to codes, [`decompress`] codes to text.

pub mod compress;
pub mod decompress;
mod train;

pub use compress::Compressor;
pub use decompress::Decompressor;
pub use train::{SAMPLE_BYTES, train};

/// Symbols a table has at most.
pub const SYMBOLS_MAX: usize = 255;
/// Bytes of a symbol at most.
pub const SYMBOL_BYTES_MAX: usize = 8;
/// The code before a byte that stands for itself.
pub const ESCAPE: u8 = 255;

/// Up to 8 bytes, the first one lowest, zeros above.
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
    /// When there are no bytes or more than 8.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Symbol {
        assert!((1..=SYMBOL_BYTES_MAX).contains(&bytes.len()), "a symbol of {} bytes", bytes.len());
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Symbol { bytes: u64::from_le_bytes(word), len: bytes.len() as u8 }
    }

    /// Never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        usize::from(self.len)
    }

    fn first(self) -> u8 {
        self.bytes as u8
    }

    /// Both, one after the other, cut at 8 bytes.
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
    /// Lengths of the symbols, a byte each, then their bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let lens = self.symbols.iter().map(|s| s.len);
        let bytes = self.symbols.iter().flat_map(|s| s.bytes.to_le_bytes().into_iter().take(s.len()));
        lens.chain(bytes).collect()
    }

    /// What [`SymbolTable::to_bytes`] made of `count` symbols, and how many bytes it took; `None` if it cannot have.
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
