//! Operands of expressions: constants, columns, parentheses, CASE, casts, arrays, intervals, and calls.

use super::expected::{Expected, NameKind};
use super::precedence;
use super::{Parser, Result};
use crate::ast::{
    CastKind, Expr, ExprKind, Interval, IntervalField, Literal, ObjectName, Subscript, TypeName, WhenThen,
};
use crate::{Category, Keyword, Span, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses an operand without prefix and postfix operators.
    pub(super) fn primary(&mut self) -> Result<Expr> {
        self.note(0, Expected::Name(NameKind::Expression));
        let start = self.start();
        if let Some(literal) = self.literal()? {
            return Ok(literal);
        }
        let kind = match self.kind(0) {
            TokenKind::Parameter => return Ok(self.parameter()),
            TokenKind::Symbol(Symbol::LeftParen) => {
                if self.is_symbol(1, Symbol::RightParen) {
                    self.at += 2;
                    return Ok(Expr { kind: ExprKind::Row(Vec::new()), span: self.since(start) });
                }
                let parens = self.parens_in_expr()?;
                return Ok(self.parens_value(parens, start));
            }
            TokenKind::Symbol(Symbol::LeftBracket) => ExprKind::Array(self.array_items()?),
            TokenKind::Symbol(Symbol::LeftBrace) => self.dictionary(false)?,
            TokenKind::Variable => ExprKind::Variable(self.any_name()),
            TokenKind::Word(None) if self.is_typed_text() => self.typed_text()?,
            TokenKind::Word(Some(keyword)) => match self.keyword_operand(keyword)? {
                Some(kind) => kind,
                None => self.column_or_call()?,
            },
            _ if self.is_name(0) => self.column_or_call()?,
            _ => return Err(self.expected("an expression")),
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Parses the operand that `keyword` begins; returns `None` if the keyword is a name at this position.
    #[inline(never)]
    fn keyword_operand(&mut self, keyword: Keyword) -> Result<Option<ExprKind>> {
        let calls = self.is_symbol(1, Symbol::LeftParen);
        Ok(Some(match keyword {
            K::Null => self.constant(Literal::Null),
            K::True => self.constant(Literal::Boolean(true)),
            K::False => self.constant(Literal::Boolean(false)),
            K::Default if !self.begins_operand(1) => {
                self.bump();
                ExprKind::Default
            }
            K::Case if self.begins_operand(1) || self.keyword(1) == Some(K::When) => self.case()?,
            K::Cast if calls => self.cast(CastKind::Cast)?,
            K::TryCast | K::SafeCast if calls => self.cast(CastKind::TryCast)?,
            K::Exists if calls => {
                self.bump();
                ExprKind::Exists(self.query_in_parens()?)
            }
            K::Array if calls => {
                self.bump();
                ExprKind::ArrayQuery(self.query_in_parens()?)
            }
            K::Array if self.is_symbol(1, Symbol::LeftBracket) => {
                self.bump();
                ExprKind::Array(self.array_items()?)
            }
            K::Map if self.is_symbol(1, Symbol::LeftBrace) => {
                self.bump();
                self.dictionary(true)?
            }
            K::Row if calls => {
                self.bump();
                ExprKind::Row(self.optional_list()?)
            }
            K::Interval => match self.interval()? {
                Some(interval) => interval,
                None => return Ok(None),
            },
            _ if self.is_typed_text() => self.typed_text()?,
            _ => match self.special(keyword)? {
                Some(kind) => kind,
                None if self.can_be_column() => return Ok(None),
                None => return Err(self.expected("an expression")),
            },
        }))
    }

    fn constant(&mut self, literal: Literal) -> ExprKind {
        self.bump();
        ExprKind::Literal(literal)
    }

    /// Returns true if the next keyword names a column or a function.
    ///
    /// A reserved word is a name if the next tokens do not continue its own syntax. The keywords that start the
    /// clauses of a query are never names.
    fn can_be_column(&self) -> bool {
        match self.keyword(0) {
            Some(K::Select | K::From | K::Where | K::As | K::And | K::Or | K::Not | K::In) => false,
            Some(K::Union | K::Except | K::Intersect) => false,
            Some(K::When | K::Then | K::Else | K::On | K::Using | K::With | K::Into) => !self.begins_operand(1),
            Some(K::Group | K::Order) => self.keyword(1) != Some(K::By) && !self.begins_operand(1),
            Some(K::Case | K::Having | K::Limit | K::Offset | K::Fetch | K::Window | K::Distinct | K::For) => {
                !self.begins_operand(1) && self.kind(1) != TokenKind::End
            }
            Some(K::Returning | K::End) => self.kind(1) != TokenKind::End,
            _ => true,
        }
    }

    /// Returns true if an operand may begin with the token `n` after the next token.
    pub(super) fn begins_operand(&self, n: usize) -> bool {
        match self.kind(n) {
            TokenKind::Symbol(symbol) => matches!(
                symbol,
                Symbol::LeftParen
                    | Symbol::LeftBracket
                    | Symbol::LeftBrace
                    | Symbol::Minus
                    | Symbol::Plus
                    | Symbol::Tilde
                    | Symbol::At
                    | Symbol::SquareRoot
                    | Symbol::CubeRoot
            ),
            TokenKind::End => false,
            TokenKind::Word(Some(keyword)) => match keyword.category() {
                Category::Unreserved | Category::ColumnName => true,
                Category::TypeOrFunctionName => self.is_symbol(n + 1, Symbol::LeftParen),
                Category::Reserved => matches!(
                    keyword,
                    K::Not
                        | K::Case
                        | K::Cast
                        | K::Null
                        | K::True
                        | K::False
                        | K::Array
                        | K::Any
                        | K::All
                        | K::Some
                        | K::Default
                        | K::Symmetric
                        | K::Asymmetric
                        | K::User
                        | K::CurrentDate
                        | K::CurrentTime
                        | K::CurrentTimestamp
                        | K::CurrentUser
                        | K::CurrentRole
                        | K::CurrentCatalog
                        | K::SessionUser
                        | K::Localtime
                        | K::Localtimestamp
                ),
            },
            _ => true,
        }
    }

    /// Parses `a`, `t.a`, `f(…)`.
    #[inline(never)]
    fn column_or_call(&mut self) -> Result<ExprKind> {
        let start = self.start();
        let mut parts = vec![self.any_name()];
        while self.is_symbol(0, Symbol::Period) && self.is_name(1) {
            self.bump();
            parts.push(self.any_name());
        }
        let name = ObjectName { parts, span: self.since(start) };
        if self.is_symbol(0, Symbol::LeftParen) {
            return self.call(name);
        }
        Ok(ExprKind::Column(name))
    }

    /// Parses `DATE '2024-01-01'`, `TIMESTAMP WITH TIME ZONE '…'`.
    #[inline(never)]
    fn typed_text(&mut self) -> Result<ExprKind> {
        let data_type: TypeName = self.type_name()?;
        let text = self.text("a text")?.value;
        Ok(ExprKind::Typed { data_type, text })
    }

    #[inline(never)]
    fn case(&mut self) -> Result<ExprKind> {
        self.bump();
        let operand = if self.sees(K::When) { None } else { Some(Box::new(self.expr()?)) };
        let mut branches = Vec::new();
        while branches.is_empty() || self.sees(K::When) {
            self.expect(K::When)?;
            let when = self.expr()?;
            self.expect(K::Then)?;
            branches.push(WhenThen { when, then: self.expr()? });
        }
        let otherwise = if self.eat(K::Else) { Some(Box::new(self.expr()?)) } else { None };
        self.expect(K::End)?;
        Ok(ExprKind::Case { operand, branches, otherwise })
    }

    /// Parses `CAST(x AS type)`; the trailing `FORMAT` of DuckDB is ignored.
    #[inline(never)]
    fn cast(&mut self, kind: CastKind) -> Result<ExprKind> {
        self.bump();
        self.expect_symbol(Symbol::LeftParen)?;
        let operand = Box::new(self.expr()?);
        self.expect(K::As)?;
        let data_type = self.type_name()?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(ExprKind::Cast { kind, operand, data_type })
    }

    /// Parses `[a, b]`; the list may be empty.
    #[inline(never)]
    fn array_items(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol(Symbol::LeftBracket)?;
        if self.eat_symbol(Symbol::RightBracket) {
            return Ok(Vec::new());
        }
        let items = self.list(Self::expr)?;
        self.expect_symbol(Symbol::RightBracket)?;
        Ok(items)
    }

    /// Parses `(a, b)`; the list may be empty.
    pub(super) fn optional_list(&mut self) -> Result<Vec<Expr>> {
        if self.is_symbol(0, Symbol::LeftParen) && self.is_symbol(1, Symbol::RightParen) {
            self.at += 2;
            return Ok(Vec::new());
        }
        self.in_parens(Self::expr)
    }

    /// Parses `{'a': 1, 'b': 2}`.
    #[inline(never)]
    fn dictionary(&mut self, is_map: bool) -> Result<ExprKind> {
        self.expect_symbol(Symbol::LeftBrace)?;
        let mut entries = Vec::new();
        while !self.is_symbol(0, Symbol::RightBrace) {
            let key = self.expr()?;
            self.expect_symbol(Symbol::Colon)?;
            entries.push((key, self.expr()?));
            if !self.eat_symbol(Symbol::Comma) {
                break;
            }
        }
        self.expect_symbol(Symbol::RightBrace)?;
        Ok(ExprKind::Dictionary { is_map, entries })
    }

    /// Parses the content of brackets: `1`, `1:2`, `:2`, `1:`, `1:9:2`.
    #[inline(never)]
    pub(super) fn subscript(&mut self) -> Result<Subscript> {
        let part = |parser: &mut Self| {
            let is_left_out =
                [Symbol::Colon, Symbol::Comma, Symbol::RightBracket].iter().any(|s| parser.is_symbol(0, *s));
            if is_left_out { Ok(None) } else { parser.expr().map(|expr| Some(Box::new(expr))) }
        };
        let lower = part(self)?;
        if !self.is_symbol(0, Symbol::Colon) {
            return match lower {
                Some(index) => Ok(Subscript::Index(*index)),
                None => Err(self.expected("an expression")),
            };
        }
        self.bump();
        let upper = part(self)?;
        let stride = if self.is_symbol(0, Symbol::Colon) {
            self.bump();
            part(self)?
        } else {
            None
        };
        Ok(Subscript::Slice { lower, upper, stride })
    }

    /// Parses `INTERVAL '1 day'`, `INTERVAL '1' DAY TO SECOND`, `INTERVAL 5 MINUTE` or `INTERVAL (x) DAY`.
    /// Returns `None` if `interval` is a name, as in `interval(lo, hi)`.
    #[inline(never)]
    fn interval(&mut self) -> Result<Option<ExprKind>> {
        let is_signed = self.is_symbol(1, Symbol::Minus) || self.is_symbol(1, Symbol::Plus);
        let first = 1 + usize::from(is_signed);
        let is_number = matches!(self.kind(first), TokenKind::Number);
        let is_operand = matches!(self.kind(first), TokenKind::Word(_) | TokenKind::Parameter | TokenKind::Variable)
            && self.is_interval_field(first + 1);
        let is_product = self.is_unit_behind_parens(first);
        if !(is_number || self.is_text(first) || is_operand || is_product) {
            return Ok(None);
        }
        self.bump();
        // Only a number may be multiplied before the unit: `INTERVAL 2 * 30 MINUTE`.
        let value = self.climb(if is_number { precedence::SUM + 1 } else { precedence::COLLATE + 1 })?;
        let field = self.interval_field()?;
        let to = if field.is_some() && self.eat(K::To) { self.interval_field()? } else { None };
        Ok(Some(ExprKind::Interval(Box::new(Interval { value, field, to }))))
    }

    fn is_interval_field(&self, n: usize) -> bool {
        matches!(self.kind(n), TokenKind::Word(_)) && self.written(n).len() > 1 && self.unit_at(n).is_some()
    }

    /// Returns true if `(x) unit` follows, and not two values in parentheses.
    fn is_unit_behind_parens(&self, n: usize) -> bool {
        if !self.is_symbol(n, Symbol::LeftParen) {
            return false;
        }
        // Limit of the lookahead in `INTERVAL (n * 2) DAY`.
        const TOKENS_MAX: usize = 16;
        let closes = (n + 1..n + TOKENS_MAX).find(|at| self.is_symbol(*at, Symbol::RightParen));
        closes.is_some_and(|at| {
            self.is_interval_field(at + 1) && !(n..at).any(|inner| self.is_symbol(inner, Symbol::Comma))
        })
    }

    fn interval_field(&mut self) -> Result<Option<IntervalField>> {
        if !self.is_interval_field(0) {
            return Ok(None);
        }
        let unit = self.any_name();
        let mut precision = None;
        if self.is_symbol(0, Symbol::LeftParen) && self.kind(1) == TokenKind::Number {
            self.bump();
            precision = Some(self.number("a number")?);
            self.expect_symbol(Symbol::RightParen)?;
        }
        Ok(Some(IntervalField { unit, precision }))
    }

    /// Creates an expression that spans from `start` to the last consumed token.
    pub(super) fn spanned(&self, kind: ExprKind, start: Span) -> Expr {
        Expr { kind, span: self.since(start) }
    }
}
