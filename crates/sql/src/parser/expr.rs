//! Expressions: precedence climbing over the operators of [`super::infix`].

use super::infix::Infix;
use super::precedence;
use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, UnaryOperator};
use crate::{Keyword, Span, Symbol, TokenKind};

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        // Fast path: most tokens of long statements are constants in a list.
        let is_whole = matches!(self.kind(1), TokenKind::Symbol(Symbol::Comma | Symbol::RightParen));
        if is_whole && let Some(literal) = self.literal()? {
            self.tallest = self.tallest.max(1);
            return Ok(literal);
        }
        self.operand(precedence::OR)
    }

    /// Parses an operand of the current expression, with operators of precedence `min` or higher.
    #[inline(never)]
    pub(super) fn operand(&mut self, min: u8) -> Result<Expr> {
        self.nested(|parser| parser.climb(min))
    }

    /// Parses operators of precedence `min` or higher, from left to right.
    #[inline(never)]
    pub(super) fn climb(&mut self, min: u8) -> Result<Expr> {
        let start = self.start();
        let first = self.prefix()?;
        self.climb_from(first, start, min)
    }

    /// Continues [`Self::climb`] after the operand `first`, which begins at `start`.
    pub(super) fn climb_from(&mut self, first: Expr, start: Span, min: u8) -> Result<Expr> {
        let mut left = first;
        let mut levels = self.height;
        while let Some(infix) = self.infix() {
            if infix.precedence() < min {
                break;
            }
            (left, levels) = self.level(levels, |parser| match infix {
                Infix::And => parser.logical(left, start, Keyword::And, precedence::AND),
                Infix::Or => parser.logical(left, start, Keyword::Or, precedence::OR),
                infix => parser.infix_tail(left, start, infix),
            })?;
        }
        self.height = levels;
        self.tallest = self.tallest.max(levels);
        Ok(left)
    }

    /// Parses `a AND b AND …` or `a OR b OR …` from the first operator, into one node for all operands.
    #[inline(never)]
    fn logical(&mut self, first: Expr, start: Span, word: Keyword, of: u8) -> Result<Expr> {
        let mut operands = vec![first];
        while self.eat(word) {
            operands.push(self.climb(of + 1)?);
        }
        let kind = if word == Keyword::And { ExprKind::And(operands) } else { ExprKind::Or(operands) };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Parses prefix operators and the operand.
    ///
    /// A loop reads the operators, so that a long run needs no recursion.
    #[inline(never)]
    fn prefix(&mut self) -> Result<Expr> {
        if self.keyword(0) == Some(Keyword::Not) {
            return self.negated();
        }
        let mut operators = Vec::new();
        while let Some(op) = self.prefix_operator() {
            operators.push((op, self.bump().span));
        }
        let operand = if operators.is_empty() || self.keyword(0) != Some(Keyword::Not) {
            self.postfixed()?
        } else {
            self.nested(Self::prefix)?
        };
        self.wrapped(operand, operators)
    }

    fn prefix_operator(&self) -> Option<UnaryOperator> {
        let TokenKind::Symbol(symbol) = self.kind(0) else { return None };
        Some(match symbol {
            Symbol::Minus => UnaryOperator::Minus,
            Symbol::Plus => UnaryOperator::Plus,
            Symbol::Tilde => UnaryOperator::BitNot,
            Symbol::SquareRoot => UnaryOperator::SquareRoot,
            Symbol::CubeRoot => UnaryOperator::CubeRoot,
            Symbol::At => UnaryOperator::Abs,
            _ => return None,
        })
    }

    /// Parses `NOT x`, and `NOT NOT x`.
    #[inline(never)]
    fn negated(&mut self) -> Result<Expr> {
        let mut operators = Vec::new();
        while self.keyword(0) == Some(Keyword::Not) {
            operators.push((UnaryOperator::Not, self.bump().span));
        }
        let operand = self.climb(precedence::NOT)?;
        self.wrapped(operand, operators)
    }

    /// Wraps `operand` in its prefix operators; each operator is one level of the tree.
    ///
    /// Each operator is its own inverse, or repeating it changes nothing. So at most two of a run are kept, and a run may
    /// have any length.
    #[inline(never)]
    fn wrapped(&mut self, operand: Expr, operators: Vec<(UnaryOperator, Span)>) -> Result<Expr> {
        let operators = shortened_runs(operators);
        if !operators.is_empty() {
            self.height = self.above(self.height + operators.len() - 1)?;
        }
        Ok(operators.into_iter().rev().fold(operand, |operand, (op, start)| {
            let span = start.to(operand.span);
            Expr { kind: ExprKind::Unary { op, operand: Box::new(operand) }, span }
        }))
    }

    /// Parses an operand and its postfix operators: `.name`, `[1]`, `::type`.
    #[inline(never)]
    fn postfixed(&mut self) -> Result<Expr> {
        let start = self.start();
        let (operand, levels) = self.level(0, Self::primary)?;
        self.height = levels;
        self.postfixed_from(operand, start)
    }

    /// Continues [`Self::postfixed`] after `operand`.
    pub(super) fn postfixed_from(&mut self, mut operand: Expr, start: Span) -> Result<Expr> {
        while let Some(next) = self.postfix_ahead() {
            let (kind, levels) = self.level(self.height, |parser| parser.postfix(operand, next))?;
            self.height = levels;
            operand = Expr { kind, span: self.since(start) };
        }
        Ok(operand)
    }

    fn postfix_ahead(&self) -> Option<Symbol> {
        match self.kind(0) {
            TokenKind::Symbol(symbol @ (Symbol::LeftBracket | Symbol::DoubleColon)) => Some(symbol),
            TokenKind::Symbol(Symbol::Period) if !self.is_symbol(1, Symbol::Star) => Some(Symbol::Period),
            _ => None,
        }
    }

    #[inline(never)]
    fn postfix(&mut self, operand: Expr, next: Symbol) -> Result<ExprKind> {
        let operand = Box::new(operand);
        self.bump();
        Ok(match next {
            Symbol::DoubleColon => {
                ExprKind::Cast { kind: crate::ast::CastKind::DoubleColon, operand, data_type: self.type_name()? }
            }
            Symbol::LeftBracket => {
                let subscripts = self.list(Self::subscript)?;
                self.expect_symbol(Symbol::RightBracket)?;
                ExprKind::Subscript { operand, subscripts }
            }
            _ => ExprKind::Field { operand, name: self.column_name()? },
        })
    }
}

/// Shortens each run of an operator to one or two, with the same result: an even run to two, an odd run to one.
#[inline(never)]
fn shortened_runs(operators: Vec<(UnaryOperator, Span)>) -> Vec<(UnaryOperator, Span)> {
    let is_root = |op| matches!(op, UnaryOperator::SquareRoot | UnaryOperator::CubeRoot);
    let mut out: Vec<(UnaryOperator, Span)> = Vec::new();
    for (op, span) in operators {
        let ends_in_two = matches!(out.as_slice(), [.., (first, _), (second, _)] if *first == op && *second == op);
        if ends_in_two && !is_root(op) {
            out.pop();
        } else {
            out.push((op, span));
        }
    }
    out
}
