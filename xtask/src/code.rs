//! Tokens of a Rust source, with and without its tests.
//!
//! Input: the text of a file. Output: words, `::`, `->`, `=>` and single characters of punctuation, each with its line.
//! Comments and literals are skipped, so a brace in a string is no token.

/// A word or punctuation and the number of its line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let skipped = skipped_len(rest, source[..at].chars().next_back());
        let taken = if skipped > 0 { skipped } else { token_len(rest) };
        let text = &rest[..taken];
        if skipped == 0 && !text.trim().is_empty() {
            out.push(Token { text, line });
        }
        line += text.matches('\n').count();
        at += taken;
    }
    out
}

/// Tokens of `tokens` that are part of no item below `#[cfg(test)]`.
pub fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at += item_len(&tokens[at..]);
        } else {
            out.push(tokens[at]);
            at += 1;
        }
    }
    out
}

pub fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let starts_with =
        |words: &[&str]| tokens.len() >= words.len() && tokens.iter().zip(words).all(|(t, w)| t.text == *w);
    starts_with(&["#", "[", "cfg", "(", "test", ")"]) || starts_with(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Number of tokens of the item at the start of `tokens`, with its attributes, up to its `;`, `,` or closing brace.
pub fn item_len(tokens: &[Token<'_>]) -> usize {
    let (mut depth, mut angles) = (0_i32, 0_i32);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "<" => angles += 1,
            ">" => angles -= 1,
            _ => {}
        }
        let is_end = match token.text {
            "}" | ";" => depth == 0,
            "," => depth == 0 && angles <= 0,
            _ => false,
        };
        if is_end {
            return at + 1;
        }
        if depth < 0 {
            return at;
        }
    }
    tokens.len()
}

/// Position of the token that closes the bracket at `open`.
pub fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// Length of the comment or literal at the start of `code`, which follows `before`; 0 for other text.
pub fn skipped_len(code: &str, before: Option<char>) -> usize {
    if code.starts_with("//") {
        return code.find('\n').unwrap_or(code.len());
    }
    if code.starts_with("/*") {
        return block_comment_len(code);
    }
    literal_len(code, before)
}

fn block_comment_len(code: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < code.len() {
        let rest = &code[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

/// Length of the string or character at the start of `code`, 0 for other text. A lifetime is no character.
fn literal_len(code: &str, before: Option<char>) -> usize {
    let is_word_start = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if is_word_start {
        let raw = code.strip_prefix("br").or(code.strip_prefix('r'));
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        if let Some(text) = raw.and_then(|raw| raw[hashes..].strip_prefix('"')) {
            let start = code.len() - text.len();
            let end = format!("\"{}", "#".repeat(hashes));
            return text.find(&end).map_or(code.len(), |found| start + found + end.len());
        }
    }
    match code.chars().next() {
        Some('"') => quoted_len(code, '"'),
        // A character, not a lifetime: escaped, or closed after one character.
        Some('\'') if code[1..].starts_with('\\') || code[1..].chars().nth(1) == Some('\'') => quoted_len(code, '\''),
        _ => 0,
    }
}

fn quoted_len(code: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn token_len(code: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = code.find(|c| !is_word(c)).unwrap_or(code.len());
    if word > 0 {
        return word;
    }
    if ["::", "->", "=>"].iter().any(|p| code.starts_with(p)) {
        return 2;
    }
    code.chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|t| t.text).collect()
    }

    #[test]
    fn literals_and_comments_are_no_tokens() {
        assert_eq!(
            texts("a(\"}\\\"{\", '{', '\\'', r#\"{\" \"#); // }\n/* { /* { */ } */ b"),
            ["a", "(", ",", ",", ",", ")", ";", "b"]
        );
        assert_eq!(texts("fn f<'a>(x: &'a str) -> a::B {}").len(), 20);
        assert_eq!(tokens("a\n\n/* b\n */ c")[1], Token { text: "c", line: 4 });
    }

    #[test]
    fn items_of_tests_are_left_out() {
        let source = "use a; #[cfg(test)] use b::{c, d}; #[cfg(test)] #[x] fn e<F, G>(h: [u8; 2]) { i(); } j(k, #[cfg(test)] l, m)";
        let all = tokens(source);
        let left: Vec<&str> = without_tests(&all).iter().map(|t| t.text).filter(|t| *t != ";").collect();
        assert_eq!(left, ["use", "a", "j", "(", "k", ",", "m", ")"]);
    }
}
