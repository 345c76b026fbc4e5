//! Patterns of LIKE: strings that must occur in sequence.

use memchr::memmem::Finder;
use std::ops::Range;
use tidalite_types::ViewsRef;
use tidalite_types::views::INLINE_BYTES;

/// A pattern of LIKE whose only wildcard is `%`. Strings are compared byte by byte, as LIKE does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    first: Vec<u8>,
    /// Strings that must occur between the first and the last, in this order; none is empty.
    parts: Vec<Vec<u8>>,
    last: Vec<u8>,
}

/// A pattern prepared for matching many strings.
pub struct TextMatcher<'a> {
    pattern: &'a TextPattern,
    parts: Vec<Finder<'a>>,
    /// The longest required string: a text without it does not match.
    longest: Finder<'a>,
    /// Shorter texts do not match.
    min_bytes: usize,
}

/// The next position of a literal in data, as far as it was searched.
struct Ahead<'a> {
    data: &'a [u8],
    /// No occurrence starts before the end of this range; its end is an occurrence or the end of the data.
    free: Range<usize>,
}

impl TextPattern {
    /// Parses a pattern; `None` if it has another wildcard, escapes, or no wildcard.
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
        let literals = || [&self.first, &self.last].into_iter().chain(&self.parts);
        let longest = literals().max_by_key(|literal| literal.len()).map_or(&[][..], |literal| literal);
        TextMatcher {
            pattern: self,
            parts: self.parts.iter().map(Finder::new).collect(),
            longest: Finder::new(longest),
            min_bytes: literals().map(Vec::len).sum(),
        }
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

    /// Returns the texts with a bit in `wanted` that match; the result for other texts is unspecified.
    ///
    /// If most texts are wanted, their data is searched as one text, because the fixed cost of a search exceeds the
    /// cost of skipping a text.
    ///
    /// # Panics
    /// Panics if `wanted` is shorter than the texts.
    #[must_use]
    pub fn matching(&self, texts: ViewsRef<'_>, wanted: &[u64]) -> Vec<u64> {
        let rows = texts.views.len();
        let is_dense = 2 * tidalite_kernels::count_picked(wanted) >= rows && !self.longest.needle().is_empty();
        let mut ahead = Ahead { data: texts.data, free: 0..0 };
        let mut matches = |row: usize| {
            let view = texts.views[row];
            let bytes = view as u32 as usize;
            if bytes < self.min_bytes {
                return false;
            }
            if is_dense && bytes > INLINE_BYTES {
                let from = (view >> 96) as usize;
                if ahead.next(&self.longest, from) + self.longest.needle().len() > from + bytes {
                    return false;
                }
            }
            self.matches(texts.get(row))
        };
        let words = wanted[..rows.div_ceil(64)].iter().enumerate();
        words
            .map(|(at, word)| {
                let (mut left, mut hits) = (*word, 0);
                if rows - at * 64 < 64 {
                    left &= (1 << (rows % 64)) - 1;
                }
                while left != 0 {
                    let bit = left.trailing_zeros();
                    hits |= u64::from(matches(at * 64 + bit as usize)) << bit;
                    left &= left - 1;
                }
                hits
            })
            .collect()
    }
}

impl Ahead<'_> {
    /// Returns the first start of the literal at or after `from`, or the end.
    fn next(&mut self, literal: &Finder<'_>, from: usize) -> usize {
        if from < self.free.start || from > self.free.end {
            let found = literal.find(&self.data[from..]);
            self.free = from..found.map_or(self.data.len(), |at| from + at);
        }
        self.free.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::Views;

    /// Reference implementation by the standard's definition, one character after the other.
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

    #[test]
    fn texts_that_lie_together_match_as_each_does() {
        let mut rng = fastrand::Rng::with_seed(2);
        let mut matched = 0;
        for round in 0..300 {
            let mut texts = Views::new();
            for _ in 0..rng.usize(1..200) {
                let text: Vec<u8> = (0..rng.usize(..40)).map(|_| b"abc"[rng.usize(..3)]).collect();
                texts.push(&text);
            }
            if round % 3 == 0 {
                let mut order: Vec<u32> = (0..texts.len() as u32).collect();
                rng.shuffle(&mut order);
                texts = texts.reordered(&order);
            }
            let literal = |rng: &mut fastrand::Rng| -> String {
                (0..rng.usize(..5)).map(|_| b"abc"[rng.usize(..3)] as char).collect()
            };
            let pattern = format!("{}%{}%{}", literal(&mut rng), literal(&mut rng), literal(&mut rng));
            let pattern = TextPattern::of_like(&pattern).expect("it has wildcards");
            let matcher = pattern.matcher();
            let wanted: Vec<u64> = (0..texts.len().div_ceil(64))
                .map(|_| if round % 2 == 0 { u64::MAX } else { rng.u64(..) & rng.u64(..) })
                .collect();
            let hits = matcher.matching(texts.as_ref(), &wanted);
            for row in (0..texts.len()).filter(|row| wanted[row / 64] >> (row % 64) & 1 == 1) {
                let is_hit = hits[row / 64] >> (row % 64) & 1 == 1;
                assert_eq!(is_hit, matcher.matches(texts.get(row)), "{pattern:?} {:?}", texts.get(row));
                matched += usize::from(is_hit);
            }
        }
        assert!(matched > 500, "{matched}");
    }
}
