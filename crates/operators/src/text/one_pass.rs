//! Matches patterns of `regexp_replace` in one pass without backtracking, for example the host of a URL,
//! `^https?://(?:www\.)?([^/]+)/.*$`, whose match is replaced by `\1`.
//!
//! A pattern is supported if it is anchored at both ends and consists of characters, `x?`, `(?:text)?`, one group of
//! `[…]+` or `[^…]+` with ASCII characters, and `.*` at the end. Each part matches greedily, as a regular expression
//! does first. If the match then fails although a shorter match of a part might succeed, the result is
//! [`Found::Unknown`], and the caller uses the regular expression.

use arrow::array::{Array, StringViewArray, StringViewBuilder};
use memchr::memchr;

/// A compiled pattern.
#[derive(Debug, PartialEq)]
pub struct OnePass {
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(Literal),
    /// An optional literal; true if the following part could begin with the same byte.
    Maybe(Literal, bool),
    /// The group: one or more characters of the set.
    Group(Set),
    /// The rest of the text without line breaks.
    Rest,
    /// The rest of the text including line breaks: `.*` of a pattern that begins with `(?s)`.
    RestOfLines,
}

/// A literal, whose first eight bytes are also stored as one number.
#[derive(Debug, PartialEq)]
struct Literal {
    bytes: Vec<u8>,
    first: u64,
    mask: u64,
}

/// A set of characters: ASCII characters with a set bit, and all other characters if `beyond` is true.
#[derive(Debug, PartialEq)]
struct Set {
    ascii: u128,
    beyond: bool,
    /// Set if the set contains all characters but this one.
    end: Option<u8>,
}

/// The match of a pattern in a text.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// Start and end of the group.
    Group(usize, usize),
    Nothing,
    Unknown,
}

impl OnePass {
    /// Compiles a pattern; `None` if it is not supported.
    #[must_use]
    pub fn of(pattern: &str) -> Option<OnePass> {
        let has_lines = pattern.strip_prefix("(?s)");
        let mut rest = has_lines.unwrap_or(pattern).strip_prefix('^')?.strip_suffix('$')?;
        let mut parts: Vec<Part> = Vec::new();
        while !rest.is_empty() {
            if rest == ".*" {
                parts.push(if has_lines.is_some() { Part::RestOfLines } else { Part::Rest });
                break;
            }
            let (part, after) = next(rest)?;
            match (parts.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => {
                    *text = Literal::new([&*text.bytes, &more.bytes].concat())
                }
                (_, part) => parts.push(part),
            }
            rest = after;
        }
        let groups = parts.iter().filter(|part| matches!(part, Part::Group(_))).count();
        for at in 0..parts.len() {
            let (before, after) = parts.split_at_mut(at + 1);
            match (&mut before[at], after.first()) {
                (Part::Maybe(text, is_doubtful), next) => {
                    *is_doubtful = next.is_some_and(|next| next.may_begin(text.bytes[0]));
                }
                // The group never has to give back a character if the following part cannot begin in it.
                (Part::Group(set), Some(Part::Text(text))) if set.has(text.bytes[0]) => return None,
                (Part::Group(_), Some(Part::Text(_)) | None) => {}
                (Part::Group(_), Some(_)) => return None,
                _ => {}
            }
        }
        (groups == 1).then_some(OnePass { parts })
    }

    #[must_use]
    pub fn find(&self, text: &[u8]) -> Found {
        let (mut at, mut group, mut is_doubtful) = (0, (0, 0), false);
        for part in &self.parts {
            let rest = &text[at..];
            let taken = match part {
                Part::Text(text) => text.begins(rest).then_some(text.bytes.len()),
                Part::Maybe(text, doubt) if text.begins(rest) => {
                    is_doubtful |= doubt;
                    Some(text.bytes.len())
                }
                Part::Maybe(..) => Some(0),
                Part::Group(set) => {
                    let taken = set.first_of(rest);
                    group = (at, at + taken);
                    (taken > 0).then_some(taken)
                }
                Part::Rest => memchr(b'\n', rest).is_none().then_some(rest.len()),
                Part::RestOfLines => Some(rest.len()),
            };
            match taken {
                Some(taken) => at += taken,
                None => return if is_doubtful { Found::Unknown } else { Found::Nothing },
            }
        }
        match (at == text.len(), is_doubtful) {
            (true, _) => Found::Group(group.0, group.1),
            (false, true) => Found::Unknown,
            (false, false) => Found::Nothing,
        }
    }
}

impl OnePass {
    /// Returns the groups of the texts (the text itself if it does not match), and the rows with unknown matches.
    #[must_use]
    pub fn groups(&self, texts: &StringViewArray) -> (StringViewArray, Vec<u32>) {
        let mut unknown = Vec::new();
        let mut out = StringViewBuilder::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            out.append_option(text.map(|text| match self.find(text.as_bytes()) {
                Found::Group(from, to) => &text[from..to],
                Found::Nothing => text,
                Found::Unknown => {
                    unknown.push(row as u32);
                    text
                }
            }));
        }
        (out.finish(), unknown)
    }
}

impl Literal {
    fn new(bytes: Vec<u8>) -> Literal {
        let mut first = [0; 8];
        let length = bytes.len().min(8);
        first[..length].copy_from_slice(&bytes[..length]);
        Literal { bytes, first: u64::from_le_bytes(first), mask: u64::MAX >> (64 - 8 * length.max(1)) }
    }

    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        match text.first_chunk() {
            Some(first) if u64::from_le_bytes(*first) & self.mask != self.first => false,
            Some(_) if self.bytes.len() <= 8 => true,
            _ => text.starts_with(&self.bytes),
        }
    }
}

impl Set {
    fn has(&self, byte: u8) -> bool {
        if byte < 128 { self.ascii >> byte & 1 == 1 } else { self.beyond }
    }

    /// Returns the number of leading bytes of the text that are in the set.
    #[inline]
    fn first_of(&self, text: &[u8]) -> usize {
        match self.end {
            Some(end) => memchr(end, text).unwrap_or(text.len()),
            None => text.iter().take_while(|byte| self.has(**byte)).count(),
        }
    }
}

impl Part {
    fn may_begin(&self, byte: u8) -> bool {
        match self {
            Part::Text(text) => text.bytes[0] == byte,
            // The part after an optional part is not examined.
            Part::Maybe(..) | Part::Rest | Part::RestOfLines => true,
            Part::Group(set) => set.has(byte),
        }
    }
}

/// Returns the first non-empty part of a pattern and the remaining pattern.
fn next(pattern: &str) -> Option<(Part, &str)> {
    if let Some(inside) = pattern.strip_prefix("(?:") {
        let (text, after) = inside.split_once(")?")?;
        let text = literal(text)?;
        return (!text.is_empty() && !after.starts_with(['?', '+', '*', '{']))
            .then_some((Part::Maybe(Literal::new(text), true), after));
    }
    if let Some(inside) = pattern.strip_prefix("([") {
        let (set, after) = inside.split_once("]+)")?;
        if after.starts_with(['?', '+', '*', '{']) {
            return None;
        }
        let (set, is_negated) = set.strip_prefix('^').map_or((set, false), |set| (set, true));
        // Ranges, classes and characters with a special meaning are not supported.
        if set.is_empty() || !set.bytes().all(|b| b.is_ascii_alphanumeric() || b"/:.?#@_=,;%!".contains(&b)) {
            return None;
        }
        let listed = set.bytes().fold(0_u128, |bits, byte| bits | 1 << byte);
        let ascii = if is_negated { !listed } else { listed };
        let end = set.bytes().next().filter(|_| is_negated && set.len() == 1);
        return Some((Part::Group(Set { ascii, beyond: is_negated, end }), after));
    }
    let escaped = usize::from(pattern.starts_with('\\'));
    let end = escaped + pattern[escaped..].chars().next()?.len_utf8();
    let (text, after) = (literal(&pattern[..end])?, &pattern[end..]);
    match after.strip_prefix('?') {
        Some(after) if text.len() == 1 && !after.starts_with(['?', '+', '*', '{']) => {
            Some((Part::Maybe(Literal::new(text), true), after))
        }
        None if !after.starts_with(['+', '*', '{']) => Some((Part::Text(Literal::new(text)), after)),
        _ => None,
    }
}

/// Returns the characters that are literals.
fn literal(pattern: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            // Before a letter, a backslash has another meaning.
            b'\\' => out.push(bytes.next().filter(u8::is_ascii_punctuation)?),
            b'.' | b'^' | b'$' | b'*' | b'+' | b'?' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'|' => return None,
            byte => out.push(byte),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    const HOST: &str = r"^https?://(?:www\.)?([^/]+)/.*$";

    #[test]
    fn the_host_of_a_url_is_found() {
        let host = OnePass::of(HOST).expect("it is understood");
        let found = |text: &str| match host.find(text.as_bytes()) {
            Found::Group(from, to) => Some(text[from..to].to_owned()),
            Found::Nothing => None,
            Found::Unknown => Some("?".to_owned()),
        };
        for (text, expected) in [
            ("http://example.com/", Some("example.com")),
            ("https://www.пример.рф/a/b?c", Some("пример.рф")),
            ("http://wwww/x", Some("wwww")),
            ("http://example.com", None),
            ("ftp://example.com/", None),
            ("http://example.com/a\nb", None),
            ("", None),
            // Here `www.` is the host.
            ("http://www./x", Some("?")),
        ] {
            assert_eq!(found(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_goes_back_is_not_understood() {
        for pattern in [
            "",
            "^$",
            "^a$",
            "a([b]+)",
            r"^([^b]+)[b]$",
            r"^([^b]+)a.*$",
            r"^(\w+)$",
            "^([a-z]+)$",
            "^(a|b)$",
            "^a+([b]+)$",
            "^a??([b]+)$",
            r"^\d([b]+)$",
            "^(?:a|b)?([c]+)$",
            "^([a]+)([b]+)$",
        ] {
            assert_eq!(OnePass::of(pattern), None, "{pattern}");
        }
    }
}
