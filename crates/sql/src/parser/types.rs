//! Type names.

use super::expected::NameKind;
use super::names::joined;
use super::{Parser, Result};
use crate::ast::{ObjectName, TypeArg, TypeName};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

/// Units that are allowed after INTERVAL, as in `INTERVAL DAY TO SECOND`.
const INTERVAL_FIELDS: &[Keyword] = &[K::Year, K::Month, K::Day, K::Hour, K::Minute, K::Second];

impl Parser<'_> {
    /// Parses a type, such as `DECIMAL(18, 3)`, `TIMESTAMP WITH TIME ZONE`, `DOUBLE[]`.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        self.nested(Self::type_name_within)
    }

    #[inline(never)]
    fn type_name_within(&mut self) -> Result<TypeName> {
        let start = self.start();
        let first = self.keyword(0);
        let mut name = self.object_name(NameKind::Type, "a type")?;
        self.second_words(first, &mut name);
        let mut args = Vec::new();
        if self.is_symbol(0, Symbol::LeftParen) {
            args = self.in_parens(Self::type_arg)?;
        } else if first == Some(K::Array) && self.is_symbol(0, Symbol::Less) {
            self.bump();
            args = self.list(Self::type_arg)?;
            self.expect_symbol(Symbol::Greater)?;
        }
        let mut with_time_zone = None;
        for (word, is_with) in [(K::With, true), (K::Without, false)] {
            if matches!(first, Some(K::Timestamp | K::Time)) && self.eat_all(&[word, K::Time, K::Zone]) {
                with_time_zone = Some(is_with);
            }
        }
        let dimensions = self.dimensions();
        Ok(TypeName { name, args, with_time_zone, dimensions, span: self.since(start) })
    }

    /// Appends the further words of a multi-word type to `name`.
    fn second_words(&mut self, first: Option<Keyword>, name: &mut ObjectName) {
        let start = name.span;
        let from = self.at;
        match first {
            Some(K::Double) => drop(self.eat(K::Precision)),
            Some(K::National) => {
                self.eat_any(&[K::Character, K::Char]);
                self.eat(K::Varying);
            }
            Some(K::Character | K::Char | K::Nchar | K::Bit) => drop(self.eat(K::Varying)),
            Some(K::Interval) => drop(self.interval_fields()),
            _ if self.written(0).eq_ignore_ascii_case("unsigned") => drop(self.bump()),
            _ => {}
        }
        if self.at > from {
            let words = self.tokens[from..self.at].iter().map(|t| t.span.slice(self.text));
            let value = std::iter::once(start.slice(self.text)).chain(words).collect::<Vec<_>>().join(" ");
            name.span = self.since(start);
            name.parts = vec![joined(value, name.span)];
        }
    }

    /// Parses `DAY TO SECOND`, if present.
    fn interval_fields(&mut self) -> Option<Keyword> {
        let first = self.eat_any(INTERVAL_FIELDS)?;
        if self.eat(K::To) { self.eat_any(INTERVAL_FIELDS) } else { Some(first) }
    }

    fn type_arg(&mut self) -> Result<TypeArg> {
        if self.is_text(0) {
            return Ok(TypeArg::Text(self.text("a text")?.value));
        }
        if self.kind(0) == TokenKind::Number || self.is_symbol(0, Symbol::Minus) {
            let digits = self.signed_number("a number")?;
            let has_unit = matches!(self.kind(0), TokenKind::Word(_));
            let unit = if has_unit { Some(self.any_name()) } else { None };
            return Ok(TypeArg::Number { digits, unit });
        }
        let has_name = self.is_name(0) && self.is_name(1);
        let name = if has_name { Some(self.any_name()) } else { None };
        Ok(TypeArg::Type { name, data_type: self.type_name()? })
    }

    /// Parses `[]`, `[3]`, `ARRAY`, `ARRAY[3]`.
    fn dimensions(&mut self) -> Vec<Option<String>> {
        let mut dimensions = Vec::new();
        let has_word = self.keyword(0) == Some(K::Array);
        if has_word {
            self.bump();
        }
        while self.is_symbol(0, Symbol::LeftBracket) {
            if self.is_symbol(1, Symbol::RightBracket) {
                self.at += 2;
                dimensions.push(None);
            } else if self.kind(1) == TokenKind::Number && self.is_symbol(2, Symbol::RightBracket) {
                dimensions.push(Some(self.written(1).to_owned()));
                self.at += 3;
            } else {
                break;
            }
        }
        if has_word && dimensions.is_empty() {
            dimensions.push(None);
        }
        dimensions
    }

    /// Returns true if a type and a string follow, as in `DATE '2024-01-01'`.
    pub(super) fn is_typed_text(&self) -> bool {
        let is_type = match self.keyword(0) {
            Some(
                K::Bigint
                | K::Boolean
                | K::Char
                | K::Character
                | K::Dec
                | K::Decimal
                | K::Float
                | K::Int
                | K::Integer
                | K::Numeric
                | K::Real
                | K::Smallint
                | K::Time
                | K::Timestamp
                | K::Varchar
                | K::Xml,
            ) => true,
            Some(_) => false,
            None => TYPES.iter().any(|name| self.written(0).eq_ignore_ascii_case(name)),
        };
        is_type && (self.is_text(1) || (self.zone_behind(1) && self.is_text(4)))
    }

    /// Returns true if WITH or WITHOUT TIME ZONE begins at token `n`.
    fn zone_behind(&self, n: usize) -> bool {
        matches!(self.keyword(n), Some(K::With | K::Without))
            && self.keyword(n + 1) == Some(K::Time)
            && self.keyword(n + 2) == Some(K::Zone)
    }
}

/// Non-keyword types that may precede a string; after any other name a string is an alias.
const TYPES: &[&str] = &[
    "bool",
    "bytea",
    "date",
    "datetime",
    "double",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "inet",
    "ipv4",
    "json",
    "jsonb",
    "long",
    "symbol",
    "text",
    "timestamp_ms",
    "timestamp_ns",
    "timestamptz",
    "timetz",
    "uuid",
];
