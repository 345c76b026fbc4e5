//! Calls whose arguments are separated by keywords. Without the keywords each is an ordinary call.

use super::expected::NameKind;
use super::precedence;
use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, FunctionCall, Ident, ObjectName, SpecialCall, TrimSide};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses the call that `keyword` begins; returns `None` if the keyword begins no such call.
    #[inline(never)]
    pub(super) fn special(&mut self, keyword: Keyword) -> Result<Option<ExprKind>> {
        if !self.is_symbol(1, Symbol::LeftParen) {
            return Ok(self.keyword_function(keyword));
        }
        let special = match keyword {
            K::Extract if self.keyword(3) == Some(K::From) || self.is_symbol(3, Symbol::Comma) => {
                self.at += 2;
                self.extract()?
            }
            K::Position => return self.position().map(Some),
            K::Substring => return self.substring().map(Some),
            K::Overlay => return self.overlay().map(Some),
            K::Trim => return self.trim().map(Some),
            K::CurrentDate | K::CurrentTime | K::CurrentTimestamp | K::Localtime | K::Localtimestamp => {
                let name = self.any_name();
                let args = self.optional_list()?;
                let name = ObjectName { span: name.span, parts: vec![name] };
                return Ok(Some(ExprKind::Function(Box::new(FunctionCall::with_args(name, args)))));
            }
            _ => return Ok(None),
        };
        Ok(Some(ExprKind::Special(Box::new(special))))
    }

    /// Parses a function without parentheses.
    fn keyword_function(&mut self, keyword: Keyword) -> Option<ExprKind> {
        let is_function = matches!(
            keyword,
            K::CurrentCatalog
                | K::CurrentDate
                | K::CurrentRole
                | K::CurrentSchema
                | K::CurrentTime
                | K::CurrentTimestamp
                | K::CurrentUser
                | K::Localtime
                | K::Localtimestamp
                | K::SessionUser
        );
        is_function.then(|| ExprKind::Special(Box::new(SpecialCall::Keyword(self.any_name()))))
    }

    /// Parses the arguments `field FROM x)` of EXTRACT.
    fn extract(&mut self) -> Result<SpecialCall> {
        let field = self.name(NameKind::Other, "a part of a time, such as hour")?;
        if !self.eat(K::From) {
            self.expect_symbol(Symbol::Comma)?;
        }
        let operand = self.expr()?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(SpecialCall::Extract { field, operand })
    }

    fn position(&mut self) -> Result<ExprKind> {
        let name = self.opened();
        let part = self.operand(precedence::RANGE + 1)?;
        if !self.eat(K::In) {
            return self.plain_call(name, part);
        }
        let operand = self.expr()?;
        self.closed(SpecialCall::Position { part, operand })
    }

    fn substring(&mut self) -> Result<ExprKind> {
        let name = self.opened();
        let operand = self.expr()?;
        if !(self.sees(K::From) || self.sees(K::For) || self.sees(K::Similar)) {
            return self.plain_call(name, operand);
        }
        let (mut from, mut length) = (None, None);
        loop {
            if from.is_none() && self.eat_any(&[K::From, K::Similar]).is_some() {
                from = Some(self.expr()?);
            } else if length.is_none() && self.eat_any(&[K::For, K::Escape]).is_some() {
                length = Some(self.expr()?);
            } else {
                return self.closed(SpecialCall::Substring { operand, from, length });
            }
        }
    }

    fn overlay(&mut self) -> Result<ExprKind> {
        let name = self.opened();
        let operand = self.expr()?;
        if !self.eat(K::Placing) {
            return self.plain_call(name, operand);
        }
        let part = self.expr()?;
        self.expect(K::From)?;
        let from = self.expr()?;
        let length = if self.eat(K::For) { Some(self.expr()?) } else { None };
        self.closed(SpecialCall::Overlay { operand, part, from, length })
    }

    /// Parses `TRIM([BOTH | LEADING | TRAILING] [chars] [FROM] x)`.
    fn trim(&mut self) -> Result<ExprKind> {
        let name = self.opened();
        let side = match self.eat_any(&[K::Both, K::Leading, K::Trailing]) {
            None => None,
            Some(K::Leading) => Some(TrimSide::Leading),
            Some(K::Trailing) => Some(TrimSide::Trailing),
            Some(_) => Some(TrimSide::Both),
        };
        if self.eat(K::From) {
            let operand = self.expr()?;
            return self.closed(SpecialCall::Trim { side: side.unwrap_or(TrimSide::Both), chars: None, operand });
        }
        let first = self.expr()?;
        let (chars, operand) = if self.eat(K::From) {
            (Some(first), self.expr()?)
        } else if side.is_none() {
            return self.plain_call(name, first);
        } else if self.eat_symbol(Symbol::Comma) {
            (Some(self.expr()?), first)
        } else {
            (None, first)
        };
        self.closed(SpecialCall::Trim { side: side.unwrap_or(TrimSide::Both), chars, operand })
    }

    /// Consumes the function name and the opening parenthesis.
    fn opened(&mut self) -> Ident {
        let name = self.any_name();
        self.bump();
        name
    }

    fn closed(&mut self, call: SpecialCall) -> Result<ExprKind> {
        self.expect_symbol(Symbol::RightParen)?;
        Ok(ExprKind::Special(Box::new(call)))
    }

    /// Parses an ordinary call, after its first argument.
    fn plain_call(&mut self, name: Ident, first: Expr) -> Result<ExprKind> {
        let mut args = vec![first];
        while self.eat_symbol(Symbol::Comma) {
            args.push(self.expr()?);
        }
        self.expect_symbol(Symbol::RightParen)?;
        let name = ObjectName { span: name.span, parts: vec![name] };
        let mut call = FunctionCall::with_args(name, args);
        self.call_tail(&mut call)?;
        Ok(ExprKind::Function(Box::new(call)))
    }
}
