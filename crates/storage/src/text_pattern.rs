//! What LIKE says of texts: which parts they have, one after the other.

use memchr::memmem::Finder;

/// A pattern of LIKE whose only wildcard is `%`. Texts are compared byte by byte, as LIKE does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    first: Vec<u8>,
    /// Somewhere between the first and the last, in this order; none is empty.
    parts: Vec<Vec<u8>>,
    last: Vec<u8>,
}

/// A pattern made ready to look at many texts.
pub struct TextMatcher<'a> {
    pattern: &'a TextPattern,
    parts: Vec<Finder<'a>>,
}

impl TextPattern {
    /// `None` when the pattern has another wildcard, escapes, or none at all: then it is another question.
    #[must_use]
    pub fn of_like(pattern: &str) -> Option<TextPattern> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let (first, rest) = pattern.split_once('%')?;
        let (middle, last) = rest.rsplit_once('%').unwrap_or(("", rest));
        let parts = middle.split('%').filter(|part| !part.is_empty()).map(|part| part.as_bytes().to_vec());
        Some(TextPattern { first: first.into(), parts: parts.collect(), last: last.into() })
    }

    #[must_use]
    pub fn matcher(&self) -> TextMatcher<'_> {
        TextMatcher { pattern: self, parts: self.parts.iter().map(|part| Finder::new(part)).collect() }
    }
}

impl TextMatcher<'_> {
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let TextPattern { first, last, .. } = self.pattern;
        let rest = text.strip_prefix(first.as_slice()).and_then(|rest| rest.strip_suffix(last.as_slice()));
        let Some(mut rest) = rest else { return false };
        for part in &self.parts {
            match part.find(rest) {
                Some(at) => rest = &rest[at + part.needle().len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the standard defines it, one character after the other.
    fn like(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'%', rest)) => (0..=text.len()).any(|at| like(rest, &text[at..])),
            Some((c, rest)) => text.first() == Some(c) && like(rest, &text[1..]),
        }
    }

    #[test]
    fn texts_match_as_the_standard_says() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut word = |chars: &[u8], max: usize| -> String {
            (0..rng.usize(..=max)).map(|_| chars[rng.usize(..chars.len())] as char).collect()
        };
        let (mut matched, mut seen) = (0, 0);
        for _ in 0..20_000 {
            let (pattern, text) = (word(b"ab%", 7), word(b"ab", 9));
            let Some(compiled) = TextPattern::of_like(&pattern) else {
                assert!(!pattern.contains('%'));
                continue;
            };
            let expected = like(pattern.as_bytes(), text.as_bytes());
            assert_eq!(compiled.matcher().matches(text.as_bytes()), expected, "{text} LIKE {pattern}");
            (matched, seen) = (matched + usize::from(expected), seen + 1);
        }
        assert!(matched > seen / 10 && matched < seen);
        assert_eq!(TextPattern::of_like("a_%"), None);
        assert_eq!(TextPattern::of_like(r"100\%%"), None);
    }
}
