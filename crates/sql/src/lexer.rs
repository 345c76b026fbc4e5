//! The lexer: splits a text into tokens in one pass.
//!
//! The lexical rules are those of PostgreSQL, with four additions: names in backticks, `@name` variables, `#u33d`
//! geohashes, and `#`, `$` and `@` within words.

use crate::error::ErrorKind;
use crate::{Error, Keyword, Span, Symbol, Token, TokenKind};

/// Returns the tokens of a text, without white space and comments, and a final [`TokenKind::End`].
///
/// # Errors
/// An unterminated string, quoted name or comment; a character that starts no token; a text of 4 GiB or more.
pub fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::new(ErrorKind::TooLong, 0));
    }
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0 };
    // Statements have about one token per five bytes.
    let mut tokens = Vec::with_capacity(text.len() / 5 + 2);
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        let kind = lexer.token()?;
        tokens.push(Token { kind, span: Span { start: start as u32, end: lexer.at as u32 } });
        if kind == TokenKind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    fn byte(&self, n: usize) -> u8 {
        self.bytes.get(self.at + n).copied().unwrap_or(0)
    }

    fn next_char(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    /// Skips white space and comments; comments nest.
    fn skip_blank(&mut self) -> Result<(), Error> {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'-' if self.byte(1) == b'-' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                }
                b'/' if self.byte(1) == b'*' => self.skip_comment()?,
                0x80.. => match self.next_char() {
                    Some(c) if c.is_whitespace() => self.at += c.len_utf8(),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => {
                    (depth, self.at) = (depth - 1, self.at + 2);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
        Err(Error::new(ErrorKind::Unterminated("comment"), start))
    }

    fn token(&mut self) -> Result<TokenKind, Error> {
        if self.at >= self.bytes.len() {
            return Ok(TokenKind::End);
        }
        match self.byte(0) {
            b'\'' => self.string(TokenKind::String, 0, false),
            b'"' => self.quoted_name(TokenKind::QuotedName, 0, b'"'),
            b'`' => self.quoted_name(TokenKind::BacktickName, 0, b'`'),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.byte(1).is_ascii_digit() && !self.follows_name() => Ok(self.number()),
            b'$' => self.dollar(),
            b'@' if is_word_start(self.byte(1)) => Ok(self.marked(TokenKind::Variable)),
            b'#' if self.byte(1) == b'#' || is_word_part(self.byte(1)) => Ok(self.marked(TokenKind::Geohash)),
            b if is_word_start(b) => self.word(),
            _ => self.symbol(),
        }
    }

    /// Returns true if a name or closing bracket directly precedes, so that a period is a separator.
    fn follows_name(&self) -> bool {
        let before = self.at.checked_sub(1).map_or(0, |at| self.bytes[at]);
        is_word_part(before) || matches!(before, b')' | b']' | b'"' | b'`')
    }

    /// Reads a word, or a string with a letter prefix.
    fn word(&mut self) -> Result<TokenKind, Error> {
        match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'e' | b'E', b'\'', _) => return self.string(TokenKind::EscapeString, 1, true),
            (b'x' | b'X', b'\'', _) => return self.string(TokenKind::HexString, 1, false),
            (b'b' | b'B', b'\'', _) => return self.string(TokenKind::BitString, 1, false),
            (b'n' | b'N', b'\'', _) => return self.string(TokenKind::NationalString, 1, false),
            (b'u' | b'U', b'&', b'\'') => return self.string(TokenKind::UnicodeString, 2, false),
            (b'u' | b'U', b'&', b'"') => return self.quoted_name(TokenKind::UnicodeName, 2, b'"'),
            _ => {}
        }
        let start = self.at;
        self.skip_word();
        if self.at == start {
            return self.unknown();
        }
        Ok(TokenKind::Word(Keyword::find(&self.text[start..self.at])))
    }

    fn skip_word(&mut self) {
        loop {
            match self.byte(0) {
                b if b < 0x80 && is_word_part(b) => self.at += 1,
                0x80.. => match self.next_char() {
                    Some(c) if c.is_alphanumeric() => self.at += c.len_utf8(),
                    _ => return,
                },
                _ => return,
            }
        }
    }

    fn marked(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        self.skip_word();
        // `#u33d/10`: the first bits of a geohash.
        if kind == TokenKind::Geohash && self.byte(0) == b'/' && self.byte(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
        }
        kind
    }

    /// Reads a string that starts `prefix` bytes after the current byte.
    fn string(&mut self, kind: TokenKind, prefix: usize, has_escapes: bool) -> Result<TokenKind, Error> {
        let start = self.at;
        self.at += prefix + 1;
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b'\\' if has_escapes => self.at += 2,
                b'\'' if self.byte(1) == b'\'' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    return Ok(kind);
                }
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
        Err(Error::new(ErrorKind::Unterminated("string literal"), start))
    }

    fn quoted_name(&mut self, kind: TokenKind, prefix: usize, quote: u8) -> Result<TokenKind, Error> {
        let start = self.at;
        self.at += prefix + 1;
        while self.at < self.bytes.len() {
            if self.byte(0) != quote {
                self.at += 1;
            } else if self.byte(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(kind);
            }
        }
        Err(Error::new(ErrorKind::Unterminated("quoted name"), start))
    }

    /// Reads `$1`, `$$text$$` or `$tag$text$tag$`.
    fn dollar(&mut self) -> Result<TokenKind, Error> {
        let start = self.at;
        if self.byte(1).is_ascii_digit() {
            self.at += 1;
            while self.byte(0).is_ascii_digit() {
                self.at += 1;
            }
            return Ok(TokenKind::Parameter);
        }
        let tag_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        let tag = self.bytes[self.at + 1..].iter().position(|b| !tag_part(*b)).unwrap_or(self.bytes.len());
        if self.byte(tag + 1) != b'$' {
            return self.unknown();
        }
        let delimiter = &self.text[start..start + tag + 2];
        let body = start + delimiter.len();
        match self.text[body..].find(delimiter) {
            Some(length) => {
                self.at = body + length + delimiter.len();
                Ok(TokenKind::DollarString)
            }
            None => Err(Error::new(ErrorKind::Unterminated("string literal"), start)),
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') && self.byte(2).is_ascii_hexdigit() {
            self.at += 2;
            while self.byte(0).is_ascii_hexdigit() || self.byte(0) == b'_' {
                self.at += 1;
            }
            return TokenKind::HexNumber;
        }
        self.digits();
        // `1..2` is a range of two numbers, not a decimal point.
        if self.byte(0) == b'.' && self.byte(1) != b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        TokenKind::Number
    }

    /// Skips digits and the underscores between digits.
    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() || (self.byte(0) == b'_' && self.byte(1).is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn symbol(&mut self) -> Result<TokenKind, Error> {
        let rest = &self.bytes[self.at..];
        match Symbol::ALL.iter().find(|(text, _)| rest.starts_with(text.as_bytes())) {
            Some((text, symbol)) => {
                self.at += text.len();
                Ok(TokenKind::Symbol(*symbol))
            }
            None => self.unknown(),
        }
    }

    fn unknown(&self) -> Result<TokenKind, Error> {
        let found = self.next_char().map_or_else(String::new, |c| c.escape_debug().to_string());
        Err(Error::new(ErrorKind::Invalid(format!("unexpected character '{found}'")), self.at))
    }
}

fn is_word_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn is_word_part(b: u8) -> bool {
    is_word_start(b) || b.is_ascii_digit() || matches!(b, b'$' | b'#' | b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        let all = tokens(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        all.iter().filter(|t| t.kind != TokenKind::End).map(|t| (t.kind, t.span.slice(text))).collect()
    }

    fn one(text: &str) -> TokenKind {
        match kinds(text)[..] {
            [(kind, written)] if written == text => kind,
            ref other => panic!("{text} is {other:?}"),
        }
    }

    #[test]
    fn literals_of_all_kinds() {
        for (text, kind) in [
            ("'it''s'", TokenKind::String),
            ("'back\\slash'", TokenKind::String),
            (r"E'it\'s'", TokenKind::EscapeString),
            ("N'x'", TokenKind::NationalString),
            ("U&'\\0041'", TokenKind::UnicodeString),
            ("U&\"\\0041\"", TokenKind::UnicodeName),
            ("x'1F'", TokenKind::HexString),
            ("B'101'", TokenKind::BitString),
            ("$$it's$$", TokenKind::DollarString),
            ("$tag$ $$ $other$ $tag$", TokenKind::DollarString),
            ("$12", TokenKind::Parameter),
            ("@lo", TokenKind::Variable),
            ("#u33d/10", TokenKind::Geohash),
            ("##1101", TokenKind::Geohash),
            ("\"a \"\"b\"\"\"", TokenKind::QuotedName),
            ("`a`", TokenKind::BacktickName),
            ("1_000", TokenKind::Number),
            (".5", TokenKind::Number),
            ("1e-5", TokenKind::Number),
            ("12.", TokenKind::Number),
            ("0xFF", TokenKind::HexNumber),
            ("größe", TokenKind::Word(None)),
            ("a$b#c@d", TokenKind::Word(None)),
            ("sElEcT", TokenKind::Word(Some(Keyword::Select))),
        ] {
            assert_eq!(one(text), kind, "{text}");
        }
    }

    #[test]
    fn every_symbol_is_one_token() {
        for (text, symbol) in Symbol::ALL {
            assert_eq!(one(text), TokenKind::Symbol(*symbol), "{text}");
        }
    }

    #[test]
    fn neighbours_stay_apart() {
        let texts = |text| kinds(text).into_iter().map(|(_, t)| t).collect::<Vec<_>>();
        assert_eq!(texts("1h"), ["1", "h"]);
        assert_eq!(texts("10.5m"), ["10.5", "m"]);
        assert_eq!(texts("1e"), ["1", "e"]);
        assert_eq!(texts("t.a.5"), ["t", ".", "a", ".", "5"]);
        assert_eq!(texts("a--b\n+c"), ["a", "+", "c"]);
        assert_eq!(texts("a/* x /* y */ z */b"), ["a", "b"]);
        assert_eq!(texts("a\u{a0}b"), ["a", "b"]);
        assert_eq!(texts("a->>'b'::int"), ["a", "->>", "'b'", "::", "int"]);
    }

    #[test]
    fn what_does_not_end_is_refused_where_it_begins() {
        for (text, message, position) in [
            ("SELECT 'abc", "syntax error: unterminated string literal", 7),
            ("SELECT E'abc\\'", "syntax error: unterminated string literal", 7),
            ("SELECT $x$abc$$", "syntax error: unterminated string literal", 7),
            ("SELECT \"abc", "syntax error: unterminated quoted name", 7),
            ("SELECT /* a /* b */", "syntax error: unterminated comment", 7),
            ("SELECT é, \u{1}", "syntax error: unexpected character '\\u{1}'", 11),
            ("SELECT \\", "syntax error: unexpected character '\\\\'", 7),
        ] {
            let error = tokens(text).expect_err(text);
            assert_eq!((error.to_string().as_str(), error.position), (message, position));
        }
    }
}
