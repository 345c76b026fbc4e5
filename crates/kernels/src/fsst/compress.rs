//! Converts text to codes: the longest matching symbol at each position, with one candidate per hash slot.

use super::{ESCAPE, SYMBOL_BYTES_MAX, Symbol, SymbolTable};

/// Number of slots for symbols of three or more bytes.
const SLOTS: usize = 2048;

/// A symbol of three or more bytes. A free slot matches nothing.
#[derive(Clone, Copy)]
struct Slot {
    bytes: u64,
    /// Mask of the bytes that are compared.
    mask: u64,
    code: u8,
    len: u8,
}

const FREE: Slot = Slot { bytes: 1, mask: 0, code: 0, len: 0 };

/// The symbol that matches at a position of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// [`ESCAPE`] if no symbol matches.
    pub code: u8,
    pub len: u8,
}

pub struct Compressor {
    slots: Vec<Slot>,
    /// Indexed by two bytes: the symbol of both bytes, or of the first byte.
    pairs: Vec<Match>,
    bytes: [Match; 256],
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

const NO_SYMBOL: Match = Match { code: ESCAPE, len: 1 };

impl Compressor {
    #[must_use]
    pub fn new(table: &SymbolTable) -> Compressor {
        let mut own = Compressor { slots: vec![FREE; SLOTS], pairs: vec![NO_SYMBOL; 1 << 16], bytes: [NO_SYMBOL; 256] };
        own.fill(table);
        own
    }

    /// Replaces the table.
    pub(super) fn reset(&mut self, table: &SymbolTable) {
        self.slots.fill(FREE);
        self.pairs.fill(NO_SYMBOL);
        self.bytes = [NO_SYMBOL; 256];
        self.fill(table);
    }

    fn fill(&mut self, table: &SymbolTable) {
        let codes = || table.symbols.iter().zip(0u8..);
        for (symbol, code) in codes().filter(|(s, _)| s.len == 1) {
            self.bytes[usize::from(symbol.first())] = Match { code, len: 1 };
            self.pairs
                .iter_mut()
                .skip(usize::from(symbol.first()))
                .step_by(256)
                .for_each(|p| *p = Match { code, len: 1 });
        }
        for (symbol, code) in codes().filter(|(s, _)| s.len == 2) {
            self.pairs[symbol.bytes as usize] = Match { code, len: 2 };
        }
        for (symbol, code) in codes().filter(|(s, _)| s.len > 2) {
            let slot = &mut self.slots[slot_of(symbol.bytes)];
            if slot.len == 0 {
                *slot = Slot { bytes: symbol.bytes, mask: mask_of(*symbol), code, len: symbol.len };
            }
        }
    }

    /// Returns the slot of a symbol; `None` for symbols of one or two bytes, which need no slot.
    pub(super) fn slot(symbol: Symbol) -> Option<usize> {
        (symbol.len > 2).then(|| slot_of(symbol.bytes))
    }

    /// Returns the longest match at the start of `word`, of which `left` ≥ 1 bytes are text.
    #[inline(always)]
    pub(super) fn at(&self, word: u64, left: usize) -> Match {
        let slot = &self.slots[slot_of(word)];
        if word & slot.mask == slot.bytes && usize::from(slot.len) <= left {
            return Match { code: slot.code, len: slot.len };
        }
        if left > 1 { self.pairs[word as u16 as usize] } else { self.bytes[usize::from(word as u8)] }
    }

    /// Appends the codes of the string `text[from..from + len]`.
    ///
    /// # Panics
    /// Panics if fewer than 8 bytes of text follow the string.
    #[inline]
    pub fn compress(&self, text: &[u8], from: usize, len: usize, codes: &mut Vec<u8>) {
        let end = from + len;
        assert!(end + SYMBOL_BYTES_MAX <= text.len(), "a string at the end of its text");
        let before = codes.len();
        // At most two bytes per byte of text.
        codes.resize(before + 2 * len, 0);
        let out = &mut codes[before..];
        let (mut at, mut written) = (from, 0);
        while at < end {
            let word = u64::from_le_bytes(text[at..at + 8].try_into().expect("eight bytes"));
            let found = self.at(word, end - at);
            out[written] = found.code;
            written += 1;
            if found.code == ESCAPE {
                out[written] = word as u8;
                written += 1;
            }
            at += usize::from(found.len);
        }
        codes.truncate(before + written);
    }
}

fn mask_of(symbol: Symbol) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(symbol.len))
}

/// Hashes the first three bytes.
#[inline(always)]
fn slot_of(word: u64) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    ((word & 0xff_ffff).wrapping_mul(SPREAD) >> (64 - SLOTS.trailing_zeros())) as usize
}
