//! Finds the symbols of a sample in five rounds, starting without symbols.
//!
//! Each round compresses the sample with the current symbols. The symbols and pairs of adjacent symbols that covered
//! the most bytes become the next table.

use super::compress::Compressor;
use super::{ESCAPE, SYMBOL_BYTES_MAX, SYMBOLS_MAX, Symbol, SymbolTable};

/// Approximate size of a sufficient sample, in bytes.
pub const SAMPLE_BYTES: usize = 16 << 10;
/// Share of the sample that each round reads, in 1/128: early rounds only need a rough table.
const ROUNDS: [usize; 5] = [8, 38, 68, 98, 128];
/// Weight of a symbol of one byte, because it avoids an escape, which takes two bytes.
const BYTE_BONUS: u64 = 8;
/// Number of nodes: 256 literal bytes, then the symbols.
const NODES: usize = 512;

/// Returns the symbols for strings similar to the sample.
#[must_use]
pub fn train(sample: &[&[u8]]) -> SymbolTable {
    let mut text: Vec<u8> = sample.concat();
    let mut end = 0;
    let end_of = |string: &&[u8]| {
        end += string.len();
        end
    };
    let ends: Vec<usize> = sample.iter().map(end_of).collect();
    text.extend([0; SYMBOL_BYTES_MAX]);
    let mut table = SymbolTable::default();
    let mut compressor = Compressor::new(&table);
    let mut counts = Counts::new();
    for round in ROUNDS {
        let used = (ends.len() * round).div_ceil(128);
        counts.clear();
        counts.of(&compressor, &table, &text, &ends[..used]);
        table = counts.best(&table, round);
        compressor.reset(&table);
    }
    table
}

/// Counts of nodes and of pairs of adjacent nodes.
struct Counts {
    single: [u32; NODES],
    pairs: Vec<u32>,
    /// The pairs with a count above zero.
    seen: Vec<u32>,
}

impl Counts {
    fn new() -> Counts {
        Counts { single: [0; NODES], pairs: vec![0; NODES * NODES], seen: Vec::new() }
    }

    fn clear(&mut self) {
        self.single = [0; NODES];
        self.seen.iter().for_each(|pair| self.pairs[*pair as usize] = 0);
        self.seen.clear();
    }

    fn of(&mut self, compressor: &Compressor, table: &SymbolTable, text: &[u8], ends: &[usize]) {
        let mut at = 0;
        for end in ends {
            let mut before = None;
            while at < *end {
                let word = u64::from_le_bytes(text[at..at + 8].try_into().expect("eight bytes"));
                let found = compressor.at(word, end - at);
                let byte = usize::from(word as u8);
                let node = if found.code == ESCAPE { byte } else { 256 + usize::from(found.code) };
                self.add(before, node);
                // The first byte alone may combine better with the previous node.
                if node >= 256 && table.symbols[node - 256].len > 1 {
                    self.add(before, byte);
                }
                before = Some(node);
                at += usize::from(found.len);
            }
        }
    }

    fn add(&mut self, before: Option<usize>, node: usize) {
        self.single[node] += 1;
        if let Some(before) = before {
            let pair = before * NODES + node;
            if self.pairs[pair] == 0 {
                self.seen.push(pair as u32);
            }
            self.pairs[pair] += 1;
        }
    }

    /// Returns the table of the symbols with the largest gain.
    fn best(&self, table: &SymbolTable, round: usize) -> SymbolTable {
        let symbol = |node: usize| if node < 256 { Symbol::byte(node as u8) } else { table.symbols[node - 256] };
        let enough = (5 * round as u32).div_ceil(128);
        let gain = |symbol: Symbol, count: u32| {
            u64::from(count) * u64::from(symbol.len) * if symbol.len == 1 { BYTE_BONUS } else { 1 }
        };
        let singles = (0..256 + table.len()).map(|node| (symbol(node), self.single[node]));
        // The last round only removes symbols.
        let is_last = round == 128;
        let pairs = self.seen.iter().filter(|_| !is_last).map(|pair| {
            let (a, b) = (*pair as usize / NODES, *pair as usize % NODES);
            (symbol(a).then(symbol(b)), self.pairs[*pair as usize])
        });
        let useful = singles.chain(pairs).filter(|(_, count)| *count >= enough);
        let mut candidates: Vec<(Symbol, u64)> = useful.map(|(s, count)| (s, gain(s, count))).collect();
        candidates.sort_unstable();
        candidates.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        candidates.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        SymbolTable { symbols: one_a_slot(candidates.into_iter().map(|(s, _)| s)) }
    }
}

/// Returns the first candidates, except those whose slot in the compressor is taken: they would never match.
fn one_a_slot(candidates: impl Iterator<Item = Symbol>) -> Vec<Symbol> {
    let mut taken = std::collections::HashSet::new();
    candidates.filter(|s| Compressor::slot(*s).is_none_or(|slot| taken.insert(slot))).take(SYMBOLS_MAX).collect()
}
