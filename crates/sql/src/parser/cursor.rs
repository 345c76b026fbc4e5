//! Cursors.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{Cursor, FetchDirection};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses DECLARE CURSOR, FETCH, MOVE, CLOSE.
    pub(super) fn cursor(&mut self) -> Result<Cursor> {
        let word = self.keyword(0);
        self.bump();
        match word {
            Some(K::Declare) => self.declare_cursor(),
            Some(K::Close) => {
                let is_all = self.eat(K::All);
                Ok(Cursor::Close(if is_all { None } else { Some(self.cursor_name()?) }))
            }
            _ => {
                let direction = self.fetch_direction()?;
                self.eat_any(&[K::From, K::In]);
                Ok(Cursor::Fetch { is_move: word == Some(K::Move), direction, name: self.cursor_name()? })
            }
        }
    }

    fn cursor_name(&mut self) -> Result<crate::ast::Ident> {
        self.name(NameKind::Other, "a cursor")
    }

    /// Parses `name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR query`.
    fn declare_cursor(&mut self) -> Result<Cursor> {
        let is_variable = self.is_symbol(0, Symbol::At);
        if is_variable || !self.is_name(0) {
            return Err(self.expected("@name"));
        }
        let name = self.name(NameKind::New, "@name")?;
        let (mut binary, mut scroll) = (false, None);
        loop {
            if self.eat(K::Binary) {
                binary = true;
            } else if self.eat_all(&[K::No, K::Scroll]) {
                scroll = Some(false);
            } else if self.eat(K::Scroll) {
                scroll = Some(true);
            } else if self.eat_any(&[K::Insensitive, K::Asensitive]).is_none() {
                break;
            }
        }
        self.expect(K::Cursor)?;
        let hold = self.eat_all(&[K::With, K::Hold]);
        if !hold {
            self.eat_all(&[K::Without, K::Hold]);
        }
        self.expect(K::For)?;
        Ok(Cursor::Declare { name, binary, scroll, hold, query: Box::new(self.query()?) })
    }

    /// Parses the direction before the cursor name: `NEXT`, `10`, `ALL`, `FORWARD 10`, ….
    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        // In `FETCH next` without a following name, `next` is the cursor name.
        if matches!(self.kind(1), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon)) {
            return Ok(FetchDirection::Next);
        }
        if self.kind(0) == TokenKind::Number || self.is_symbol(0, Symbol::Minus) {
            return Ok(FetchDirection::Forward(Some(self.signed_number("a number of rows")?)));
        }
        const WORDS: &[Keyword] =
            &[K::Next, K::Prior, K::First, K::Last, K::Absolute, K::Relative, K::All, K::Forward, K::Backward];
        Ok(match self.eat_any(WORDS) {
            Some(K::Prior) => FetchDirection::Prior,
            Some(K::First) => FetchDirection::First,
            Some(K::Last) => FetchDirection::Last,
            Some(K::Absolute) => FetchDirection::Absolute(self.signed_number("a number of rows")?),
            Some(K::Relative) => FetchDirection::Relative(self.signed_number("a number of rows")?),
            Some(K::All) => FetchDirection::Forward(None),
            Some(K::Forward) => FetchDirection::Forward(self.fetch_count()?),
            Some(K::Backward) => FetchDirection::Backward(self.fetch_count()?),
            _ => FetchDirection::Next,
        })
    }

    /// Parses a row count: a number, ALL, or nothing for one.
    fn fetch_count(&mut self) -> Result<Option<String>> {
        if self.eat(K::All) {
            return Ok(None);
        }
        if self.kind(0) == TokenKind::Number || self.is_symbol(0, Symbol::Minus) {
            return self.signed_number("a number of rows").map(Some);
        }
        Ok(Some("1".to_owned()))
    }
}
