//! Corpus statements with tokens and characters dropped, doubled or swapped: no panic, and each error has a position.

mod common;

use common::corpus;
use std::time::{Duration, Instant};
use tidalite_sql::{TokenKind, expected_at, lexer, parse};

/// Pseudo-random numbers with a fixed seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn check(text: &str) {
    let start = Instant::now();
    if let Err(error) = parse(text) {
        assert!(text.is_char_boundary(error.position), "{text:?}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
    let limit = Duration::from_millis(500) + Duration::from_micros(20) * text.len() as u32;
    assert!(start.elapsed() < limit, "{:?}: {text}", start.elapsed());
}

#[test]
fn mutated_statements() {
    let statements = corpus::statements();
    let mut chance = Chance(0x2545_F491_4F6C_DD1D);
    for (_, sql) in &statements {
        let Ok(tokens) = lexer::tokens(sql) else { continue };
        let words: Vec<&str> = tokens.iter().filter(|t| t.kind != TokenKind::End).map(|t| t.span.slice(sql)).collect();
        for _ in 0..6 {
            let mut words = words.clone();
            for _ in 0..chance.below(3) + 1 {
                let (from, to) = (chance.below(words.len()), chance.below(words.len()));
                match chance.below(4) {
                    0 => drop(words.remove(from)),
                    1 => words.insert(to, words[from]),
                    2 => words.swap(from, to),
                    _ => words.truncate(from),
                }
                if words.is_empty() {
                    break;
                }
            }
            check(&words.join(" "));
        }
        // Replace one character, and cut the text in the middle of a token.
        let mut chars: Vec<char> = sql.chars().collect();
        let at = chance.below(chars.len());
        chars[at] = ['\'', '"', '(', ')', ';', '\0', 'é', ',', '-', '/', '$', '@', '#', '\\', '`'][chance.below(15)];
        check(&chars.iter().collect::<String>());
        chars.truncate(chance.below(chars.len()));
        let cut: String = chars.iter().collect();
        check(&cut);
        drop(expected_at(sql, cut.len()));
    }
}
