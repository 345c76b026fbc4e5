//! Constants.

use super::expected::Expected;
use super::{Parser, Result};
use crate::ast::{Duration, DurationUnit, Expr, ExprKind, Ident, Literal, Quote};
use crate::{Symbol, TokenKind};

impl Parser<'_> {
    /// Returns true if the token `n` after the next token is a string.
    pub(super) fn is_text(&self, n: usize) -> bool {
        matches!(
            self.kind(n),
            TokenKind::String
                | TokenKind::EscapeString
                | TokenKind::NationalString
                | TokenKind::UnicodeString
                | TokenKind::DollarString
        )
    }

    /// Consumes a string and resolves its escapes.
    pub(super) fn text(&mut self, what: &'static str) -> Result<Ident> {
        self.note(0, Expected::Text(what));
        if !self.is_text(0) {
            return Err(self.expected(what));
        }
        let token = self.bump();
        let written = token.span.slice(self.text);
        let value = match token.kind {
            TokenKind::EscapeString => unescaped(&unquoted(&written[1..], '\'')),
            TokenKind::NationalString => unquoted(&written[1..], '\''),
            TokenKind::UnicodeString => unicode(&unquoted(&written[2..], '\'')),
            TokenKind::DollarString => {
                let tag = written[1..].find('$').map_or(0, |at| at + 2);
                written.get(tag..written.len() - tag).unwrap_or_default().to_owned()
            }
            _ => unquoted(written, '\''),
        };
        Ok(Ident { value, quote: Some(Quote::Single), span: token.span })
    }

    /// Parses a constant, if present: one token, or two for a decimal with its letter.
    #[inline(never)]
    pub(super) fn literal(&mut self) -> Result<Option<Expr>> {
        let token = self.token(0);
        let written = token.span.slice(self.text);
        let inner = |prefix: usize| written[prefix..written.len() - 1].to_owned();
        let literal = match token.kind {
            TokenKind::Number => return self.number_literal().map(Some),
            TokenKind::HexNumber => Literal::Number(written.replace('_', "")),
            TokenKind::HexString => Literal::Hex(inner(2)),
            TokenKind::BitString => Literal::Bits(inner(2)),
            TokenKind::Geohash => Literal::Geohash(written.to_owned()),
            _ if self.is_text(0) => {
                let text = self.text("a text")?;
                return Ok(Some(Expr { kind: ExprKind::Literal(Literal::Text(text.value)), span: text.span }));
            }
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(Expr { kind: ExprKind::Literal(literal), span: token.span }))
    }

    /// Parses `12`, `1_000`, `10.5m`, `10L`.
    fn number_literal(&mut self) -> Result<Expr> {
        let start = self.start();
        let has_letter = self.is_adjacent(0);
        let digits = self.bump().span.slice(self.text).replace('_', "");
        let literal = match self.written(0) {
            "m" | "M" if has_letter => {
                self.bump();
                Literal::Decimal(digits)
            }
            "l" | "L" if has_letter => {
                self.bump();
                Literal::Number(digits)
            }
            _ => Literal::Number(digits),
        };
        Ok(Expr { kind: ExprKind::Literal(literal), span: self.since(start) })
    }

    /// Parses an unsigned number.
    pub(super) fn number(&mut self, what: &'static str) -> Result<String> {
        self.note(0, Expected::Text(what));
        match self.kind(0) {
            TokenKind::Number => Ok(self.bump().span.slice(self.text).replace('_', "")),
            _ => Err(self.expected(what)),
        }
    }

    /// Parses a number with an optional sign.
    pub(super) fn signed_number(&mut self, what: &'static str) -> Result<String> {
        let sign = if self.eat_symbol(Symbol::Minus) { "-" } else { "" };
        self.eat_symbol(Symbol::Plus);
        Ok(format!("{sign}{}", self.number(what)?))
    }

    /// Parses a number and a unit letter: `15m`, `-3s`, `h`.
    pub(super) fn duration(&mut self, what: &'static str) -> Result<Duration> {
        self.note(0, Expected::Text(what));
        let start = self.start();
        let sign = usize::from(self.is_symbol(0, Symbol::Minus));
        let has_count = usize::from(self.kind(sign) == TokenKind::Number);
        let unit = match self.kind(sign + has_count) {
            TokenKind::Word(_) => unit_letter(self.written(sign + has_count)),
            _ => None,
        };
        let Some(unit) = unit else { return Err(self.expected(what)) };
        let count = match has_count {
            0 => "1".to_owned(),
            _ => self.written(sign).replace('_', ""),
        };
        self.at += sign + has_count + 1;
        let count = if sign > 0 { format!("-{count}") } else { count };
        Ok(Duration { count, unit, span: self.since(start) })
    }

    /// Returns the unit if token `n` is a number with a unit: a letter, or a word such as `minutes`.
    pub(super) fn length_ahead(&self, n: usize) -> Option<DurationUnit> {
        let is_number = self.kind(n) == TokenKind::Number;
        if is_number && matches!(self.kind(n + 1), TokenKind::Word(_)) { self.unit_at(n + 1) } else { None }
    }

    /// Returns the unit that the token `n` after the next token spells.
    pub(super) fn unit_at(&self, n: usize) -> Option<DurationUnit> {
        match self.kind(n) {
            TokenKind::Word(_) => unit_letter(self.written(n)).or_else(|| unit_word(self.written(n))),
            _ => None,
        }
    }

    /// Parses `$12`, without a check that the parameter exists.
    pub(super) fn parameter(&mut self) -> Expr {
        let token = self.bump();
        let number = token.span.slice(self.text)[1..].parse().unwrap_or(u32::MAX);
        Expr { kind: ExprKind::Parameter(number), span: token.span }
    }
}

/// Returns the unit of a letter; `m` is minutes and `M` is months.
fn unit_letter(letter: &str) -> Option<DurationUnit> {
    Some(match letter {
        "n" => DurationUnit::Nanosecond,
        "U" | "u" => DurationUnit::Microsecond,
        "T" => DurationUnit::Millisecond,
        "s" => DurationUnit::Second,
        "m" => DurationUnit::Minute,
        "h" | "H" => DurationUnit::Hour,
        "d" | "D" => DurationUnit::Day,
        "w" | "W" => DurationUnit::Week,
        "M" => DurationUnit::Month,
        "y" | "Y" => DurationUnit::Year,
        _ => return None,
    })
}

/// Returns the unit of a word, singular or plural.
fn unit_word(word: &str) -> Option<DurationUnit> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.strip_suffix('s').unwrap_or(&lower) {
        "nanosecond" => DurationUnit::Nanosecond,
        "microsecond" => DurationUnit::Microsecond,
        "millisecond" => DurationUnit::Millisecond,
        "second" => DurationUnit::Second,
        "minute" => DurationUnit::Minute,
        "hour" => DurationUnit::Hour,
        "day" => DurationUnit::Day,
        "week" => DurationUnit::Week,
        "month" => DurationUnit::Month,
        "year" => DurationUnit::Year,
        _ => return None,
    })
}

/// Returns the text between the quotes, with doubled quotes replaced by single ones.
pub(super) fn unquoted(written: &str, quote: char) -> String {
    let inner = written.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)).unwrap_or(written);
    let doubled: String = [quote, quote].iter().collect();
    inner.replace(&doubled, quote.encode_utf8(&mut [0; 4]))
}

/// Resolves the escapes of `E'…'`: `
/// `, `\x41`, `\101`, `\u0041`, `\U00000041`; any other character is itself.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        let Some(c) = chars.next() else {
            rest = "";
            break;
        };
        let after = chars.as_str();
        let code = |digits: usize, radix: u32, text: &str| {
            let length = text.bytes().take(digits).take_while(|b| char::from(*b).is_digit(radix)).count();
            let value = u32::from_str_radix(&text[..length], radix).ok()?;
            Some((char::from_u32(value)?, length))
        };
        let found = match c {
            'b' => Some(('\u{8}', 0)),
            'f' => Some(('\u{c}', 0)),
            'n' => Some(('\n', 0)),
            'r' => Some(('\r', 0)),
            't' => Some(('\t', 0)),
            'x' => code(2, 16, after),
            'u' => code(4, 16, after),
            'U' => code(8, 16, after),
            _ => None,
        };
        if let Some((c, length)) = found {
            out.push(c);
            rest = &after[length..];
        } else if let Some((value, length)) = code(3, 8, &rest[before.len() + 1..]).filter(|_| c.is_digit(8)) {
            out.push(value);
            rest = &rest[before.len() + 1 + length..];
        } else {
            out.push(c);
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Resolves the escapes of `U&'…'`: `\0041`, `\+000041`, `\\`.
pub(super) fn unicode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (digits, from) = if after.starts_with('+') { (6, 1) } else { (4, 0) };
        let value = after.get(from..from + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match value.and_then(char::from_u32) {
            Some(c) => {
                out.push(c);
                rest = &after[from + digits..];
            }
            None => {
                out.push('\\');
                rest = after.strip_prefix('\\').unwrap_or(after);
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (written, text) in [
            (r"it\'s", "it's"),
            (r"a\n\t\\b", "a\n\t\\b"),
            (r"\x41\101\u0042\U00000043", "AABC"),
            (r"\q\", "q"),
            ("\\é", "é"),
        ] {
            assert_eq!(unescaped(written), text);
        }
        for (written, text) in [(r"\0041\+000042\\", "AB\\"), (r"d\zz", r"d\zz"), ("é\\00e9", "éé")] {
            assert_eq!(unicode(written), text);
        }
        assert_eq!(unquoted("'it''s'", '\''), "it's");
    }
}
