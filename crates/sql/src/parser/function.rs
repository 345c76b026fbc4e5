//! Function calls.

use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, FunctionArg, FunctionCall, NullTreatment, ObjectName, Over, SpecialCall};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses the arguments of a function and the clauses after the closing parenthesis.
    #[inline(never)]
    pub(super) fn call(&mut self, name: ObjectName) -> Result<ExprKind> {
        let mut call = self.call_parens(name)?;
        if let Some(kind) = self.rounded(&mut call)? {
            return Ok(kind);
        }
        self.call_tail(&mut call)?;
        Ok(ExprKind::Function(Box::new(call)))
    }

    /// Parses the arguments of a function, in parentheses.
    pub(super) fn call_parens(&mut self, name: ObjectName) -> Result<FunctionCall> {
        self.expect_symbol(Symbol::LeftParen)?;
        let open = std::mem::replace(&mut self.storage_follows, false);
        let call = self.call_within(name)?;
        self.storage_follows = open;
        if !self.is_rounded(&call) {
            self.expect_symbol(Symbol::RightParen)?;
        }
        Ok(call)
    }

    #[inline(never)]
    fn call_within(&mut self, name: ObjectName) -> Result<FunctionCall> {
        let mut call = FunctionCall::new(name);
        call.distinct = self.eat(K::Distinct);
        if !call.distinct && self.keyword(0) == Some(K::All) && !self.is_symbol(1, Symbol::LeftParen) {
            self.bump();
        }
        if call.distinct || !self.is_symbol(0, Symbol::RightParen) {
            call.args = self.list(Self::argument)?;
        }
        if self.eat_all(&[K::Order, K::By]) {
            call.order_by = self.list(Self::order_item)?;
        }
        if self.eat(K::Limit) {
            call.limit = Some(self.expr()?);
        }
        call.nulls = self.null_treatment();
        Ok(call)
    }

    #[inline(never)]
    fn argument(&mut self) -> Result<FunctionArg> {
        if self.begins_query(0) {
            return Ok(FunctionArg::Query(Box::new(self.query()?)));
        }
        if self.eat_symbol(Symbol::Star) {
            return Ok(FunctionArg::Wildcard(None));
        }
        if let Some(tokens) = self.wildcard_ahead() {
            let name = self.object_before_star(tokens);
            return Ok(FunctionArg::Wildcard(Some(name)));
        }
        let is_named = self.is_symbol(1, Symbol::FatArrow) || self.is_symbol(1, Symbol::Assign);
        if self.is_name(0) && is_named {
            let name = self.any_name();
            self.bump();
            return Ok(FunctionArg::Named { name, value: self.expr()? });
        }
        Ok(FunctionArg::Expr(self.expr()?))
    }

    fn null_treatment(&mut self) -> Option<NullTreatment> {
        if self.eat_all(&[K::Ignore, K::Nulls]) {
            Some(NullTreatment::Ignore)
        } else if self.eat_all(&[K::Respect, K::Nulls]) {
            Some(NullTreatment::Respect)
        } else {
            None
        }
    }

    /// Parses WITHIN GROUP, FILTER, IGNORE NULLS and OVER, in this order.
    #[inline(never)]
    pub(super) fn call_tail(&mut self, call: &mut FunctionCall) -> Result<()> {
        if self.eat_all(&[K::Within, K::Group]) {
            self.expect_symbol(Symbol::LeftParen)?;
            self.expect_all(&[K::Order, K::By])?;
            call.within_group = self.list(Self::order_item)?;
            self.expect_symbol(Symbol::RightParen)?;
        }
        if self.keyword(0) == Some(K::Filter) && self.is_symbol(1, Symbol::LeftParen) {
            self.at += 2;
            self.expect(K::Where)?;
            call.filter = Some(self.expr()?);
            self.expect_symbol(Symbol::RightParen)?;
        }
        call.nulls = call.nulls.or(self.null_treatment());
        if self.keyword(0) == Some(K::Over) && (self.is_symbol(1, Symbol::LeftParen) || self.is_name(1)) {
            self.bump();
            call.over = Some(match self.is_symbol(0, Symbol::LeftParen) {
                true => Over::Spec(self.window_spec()?),
                false => Over::Name(self.any_name()),
            });
        }
        Ok(())
    }

    /// Returns true if `TO unit` follows the only argument of CEIL or FLOOR.
    fn is_rounded(&self, call: &FunctionCall) -> bool {
        self.keyword(0) == Some(K::To) && call.args.len() == 1 && call.name.parts.len() == 1
    }

    /// Parses the rest of `CEIL(x TO unit)`, starting at TO.
    fn rounded(&mut self, call: &mut FunctionCall) -> Result<Option<ExprKind>> {
        if !self.is_rounded(call) {
            return Ok(None);
        }
        let (Some(FunctionArg::Expr(operand)), Some(name)) = (call.args.pop(), call.name.parts.pop()) else {
            return Err(self.expected(")"));
        };
        self.bump();
        let unit = self.name(super::expected::NameKind::Other, "a unit")?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(Some(ExprKind::Special(Box::new(SpecialCall::Round { name, operand, unit }))))
    }
}

impl FunctionCall {
    /// Creates a call with positional arguments.
    pub(super) fn with_args(name: ObjectName, args: Vec<Expr>) -> FunctionCall {
        FunctionCall { args: args.into_iter().map(FunctionArg::Expr).collect(), ..FunctionCall::new(name) }
    }
}
