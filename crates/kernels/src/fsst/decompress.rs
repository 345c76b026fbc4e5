//! Converts codes to text: each symbol is written as 8 bytes, and the next symbol overwrites the unused bytes.

use super::{ESCAPE, SYMBOL_BYTES_MAX, SymbolTable};

/// Bytes that the output needs after the end of the text.
pub const SLACK_BYTES: usize = 64;

pub struct Decompressor {
    symbols: [u64; 256],
    /// 0 for codes without a symbol.
    lens: [u8; 256],
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Decompressor {
    #[must_use]
    pub fn new(table: &SymbolTable) -> Decompressor {
        let mut own = Decompressor { symbols: [0; 256], lens: [0; 256] };
        for (code, symbol) in table.symbols.iter().enumerate() {
            (own.symbols[code], own.lens[code]) = (symbol.bytes, symbol.len);
        }
        own
    }

    /// Returns the size of the text of `codes`, or `None` if a code has no symbol or the byte after an escape is
    /// missing.
    #[must_use]
    pub fn text_bytes(&self, codes: &[u8]) -> Option<usize> {
        let mut codes = codes.iter();
        let mut bytes = 0;
        while let Some(code) = codes.next() {
            bytes += match (*code, self.lens[usize::from(*code)]) {
                (ESCAPE, _) => {
                    codes.next()?;
                    1
                }
                (_, 0) => return None,
                (_, len) => usize::from(len),
            };
        }
        Some(bytes)
    }

    /// Writes the text of `codes` to the beginning of `text` and returns its length. Bytes after the text are
    /// overwritten.
    ///
    /// Stops if fewer than 8 bytes are left for a symbol. The text is complete if `text` has [`SLACK_BYTES`] more bytes
    /// than required.
    pub fn decompress(&self, codes: &[u8], text: &mut [u8]) -> usize {
        let (mut at, mut end) = self.decompress_lines(codes, text);
        while let Some(code) = codes.get(at) {
            let Some(out) = text[end..].first_chunk_mut::<SYMBOL_BYTES_MAX>() else { return end };
            if *code == ESCAPE {
                let Some(byte) = codes.get(at + 1) else { return end };
                out[0] = *byte;
                (at, end) = (at + 2, end + 1);
            } else {
                *out = self.symbols[usize::from(*code)].to_le_bytes();
                (at, end) = (at + 1, end + usize::from(self.lens[usize::from(*code)]));
            }
        }
        end
    }

    /// Decodes eight codes at a time while `text` has space; returns the codes read and the bytes written.
    #[inline]
    fn decompress_lines(&self, codes: &[u8], text: &mut [u8]) -> (usize, usize) {
        let (mut at, mut end) = (0, 0);
        while at + 9 <= codes.len() && end + 8 * SYMBOL_BYTES_MAX <= text.len() {
            let line: [u8; 8] = codes[at..at + 8].try_into().expect("eight codes");
            let escapes = escapes_in(u64::from_le_bytes(line));
            let symbols = (escapes.trailing_zeros() / 8) as usize;
            if escapes == 0 {
                line.into_iter().for_each(|code| end = self.put(code, text, end));
                at += 8;
            } else {
                line[..symbols].iter().for_each(|code| end = self.put(*code, text, end));
                // At least one code follows the line.
                text[end] = codes[at + symbols + 1];
                (at, end) = (at + symbols + 2, end + 1);
            }
        }
        (at, end)
    }

    /// Writes the symbol of `code` at `end` and returns the end of the symbol.
    ///
    /// # Panics
    /// Panics if fewer than 8 bytes are left.
    #[inline(always)]
    fn put(&self, code: u8, text: &mut [u8], end: usize) -> usize {
        text[end..end + SYMBOL_BYTES_MAX].copy_from_slice(&self.symbols[usize::from(code)].to_le_bytes());
        end + usize::from(self.lens[usize::from(code)])
    }
}

/// Returns the highest bit of each byte that is [`ESCAPE`].
#[inline(always)]
fn escapes_in(line: u64) -> u64 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let is_seven_ones = (line & !HIGH) + 0x0101_0101_0101_0101;
    line & is_seven_ones & HIGH
}
