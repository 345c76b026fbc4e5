//! SAMPLE BY.

use super::expected::{Expected, NameKind};
use super::precedence;
use super::{Parser, Result};
use crate::ast::{Alignment, Expr, ExprKind, Fill, FillValue, Offset, SampleBy};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `SAMPLE BY stride [FROM lo] [TO hi] [FILL (…)] [ALIGN TO …]`.
    #[inline(never)]
    pub(super) fn sample_by(&mut self) -> Result<SampleBy> {
        let start = self.start();
        self.expect_all(&[K::Sample, K::By])?;
        let stride = self.stride("a length of time such as 15m (n U T s m h d w M y)")?;
        let from = if self.eat(K::From) { Some(self.expr()?) } else { None };
        let to = if self.eat(K::To) { Some(self.expr()?) } else { None };
        let fill = if self.eat(K::Fill) { Some(self.fill()?) } else { None };
        let align = if self.eat(K::Align) { Some(self.alignment()?) } else { None };
        Ok(SampleBy { stride, from, to, fill, align, span: self.since(start) })
    }

    /// Parses a duration such as `15m`, or a variable.
    fn stride(&mut self, what: &'static str) -> Result<Offset> {
        if self.kind(0) == TokenKind::Variable {
            let start = self.start();
            let kind = ExprKind::Variable(self.any_name());
            return Ok(Offset::Expr { expr: Box::new(self.spanned(kind, start)), unit: None });
        }
        Ok(Offset::Duration(self.duration(what)?))
    }

    fn fill(&mut self) -> Result<Fill> {
        Ok(Fill { values: self.in_parens(Self::fill_value)? })
    }

    fn fill_value(&mut self) -> Result<FillValue> {
        let ends =
            |parser: &Self, n: usize| parser.is_symbol(n, Symbol::Comma) || parser.is_symbol(n, Symbol::RightParen);
        let word = self.keyword(0).filter(|_| ends(self, 1));
        self.may_be(&[K::None, K::Null, K::Prev, K::Linear]);
        let value = match word {
            Some(K::None) => FillValue::None,
            Some(K::Null) => FillValue::Null,
            Some(K::Prev) => FillValue::Prev(None),
            Some(K::Linear) => FillValue::Linear,
            _ if self.keyword(0) == Some(K::Prev) && self.is_symbol(1, Symbol::LeftParen) => {
                self.at += 2;
                let name = self.name(NameKind::Column, "a column name")?;
                self.expect_symbol(Symbol::RightParen)?;
                return Ok(FillValue::Prev(Some(name)));
            }
            _ => return Ok(FillValue::Constant(self.expr()?)),
        };
        self.bump();
        Ok(value)
    }

    fn alignment(&mut self) -> Result<Alignment> {
        if self.eat_all(&[K::To, K::First, K::Observation]) {
            return Ok(Alignment::FirstObservation);
        }
        if !self.eat_all(&[K::To, K::Calendar]) {
            return Err(self.expected("TO CALENDAR or TO FIRST OBSERVATION"));
        }
        let zone = if self.eat_all(&[K::Time, K::Zone]) {
            Some(self.constant_text("a time zone in single quotes")?)
        } else {
            None
        };
        let offset = if self.eat_all(&[K::With, K::Offset]) {
            Some(self.constant_text("an offset such as '+01:30'")?)
        } else {
            None
        };
        Ok(Alignment::Calendar { zone, offset })
    }

    /// Parses a string, a parameter or a variable.
    pub(super) fn constant_text(&mut self, what: &'static str) -> Result<Expr> {
        self.note(0, Expected::Text(what));
        match self.kind(0) {
            TokenKind::Parameter | TokenKind::Variable => self.operand(precedence::COLLATE + 1),
            _ if self.is_text(0) => self.operand(precedence::COLLATE + 1),
            _ => Err(self.expected(what)),
        }
    }
}
