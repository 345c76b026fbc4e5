//! Infix operators and their precedence.
//!
//! The precedence follows PostgreSQL with three exceptions: `->` and `->>` have higher precedence than `*`, comparisons
//! may be chained, and `<<`, `&`, `^` (exclusive or), `|` have decreasing precedence, as in QuestDB.

use super::{Parser, Result, precedence};
use crate::ast::{BinaryOperator, Expr, ExprKind, IsTest, LikeKind, QuantifiedSet, Quantifier};
use crate::{Keyword, Span, Symbol, TokenKind};
use BinaryOperator as B;
use Keyword as K;

/// An infix operator at the current position.
#[derive(Clone, Copy)]
pub(super) enum Infix {
    /// An operator with its precedence and its number of tokens.
    Binary(BinaryOperator, u8, usize),
    And,
    Or,
    Is,
    IsNull,
    NotNull,
    /// `NOT NULL`, a synonym of IS NOT NULL.
    NotNullWords,
    /// The flag of `Between`, `In` and `Like` is true if NOT precedes the operator.
    Between(bool),
    In(bool),
    Like(LikeKind, bool),
    At,
    Collate,
}

impl Infix {
    pub(super) fn precedence(self) -> u8 {
        match self {
            Infix::Binary(_, precedence, _) => precedence,
            Infix::And => precedence::AND,
            Infix::Or => precedence::OR,
            Infix::Is | Infix::IsNull | Infix::NotNull | Infix::NotNullWords => precedence::IS,
            Infix::Between(_) | Infix::In(_) | Infix::Like(..) => precedence::RANGE,
            Infix::At => precedence::AT,
            Infix::Collate => precedence::COLLATE,
        }
    }
}

/// Keywords that continue an expression, for completion.
const WORDS: &[Keyword] = &[
    K::And,
    K::Or,
    K::Is,
    K::Not,
    K::Between,
    K::In,
    K::Like,
    K::Ilike,
    K::Similar,
    K::Isnull,
    K::Notnull,
    K::At,
    K::Collate,
];

impl Parser<'_> {
    /// Returns the infix operator at the current position.
    pub(super) fn infix(&self) -> Option<Infix> {
        let found = match self.kind(0) {
            TokenKind::Symbol(symbol) => binary(symbol).map(|(op, precedence)| Infix::Binary(op, precedence, 1)),
            TokenKind::Word(Some(keyword)) => self.infix_word(keyword),
            _ => None,
        };
        if found.is_none() {
            self.may_be(WORDS);
        }
        found
    }

    fn infix_word(&self, keyword: Keyword) -> Option<Infix> {
        Some(match keyword {
            K::And => Infix::And,
            K::Or => Infix::Or,
            K::Is => Infix::Is,
            K::Isnull => Infix::IsNull,
            K::Notnull => Infix::NotNull,
            K::Collate => Infix::Collate,
            K::At if matches!(self.keyword(1), Some(K::Time | K::Local)) => Infix::At,
            K::Not if self.keyword(1) == Some(K::Null) => Infix::NotNullWords,
            K::Not => self.range_word(1, true)?,
            K::Overlaps => Infix::Binary(B::Overlaps, precedence::OTHER, 1),
            K::Div if self.begins_operand(1) => Infix::Binary(B::IntegerDivide, precedence::PRODUCT, 1),
            K::Xor if self.begins_operand(1) => Infix::Binary(B::Xor, precedence::AND, 1),
            K::Operator if self.is_symbol(1, Symbol::LeftParen) => self.named_operator()?,
            _ => self.range_word(0, false)?,
        })
    }

    /// Returns BETWEEN, IN, LIKE or another keyword operator at token `n`.
    fn range_word(&self, n: usize, negated: bool) -> Option<Infix> {
        Some(match self.keyword(n)? {
            K::Between if self.begins_operand(n + 1) => Infix::Between(negated),
            K::In => Infix::In(negated),
            K::Like => Infix::Like(LikeKind::Like, negated),
            K::Ilike => Infix::Like(LikeKind::Ilike, negated),
            K::Similar if self.keyword(n + 1) == Some(K::To) => Infix::Like(LikeKind::Similar, negated),
            K::Rlike | K::Regexp if self.begins_operand(n + 1) => Infix::Like(LikeKind::Regexp, negated),
            _ => return None,
        })
    }

    /// Returns the operator of `OPERATOR(pg_catalog.~)`.
    fn named_operator(&self) -> Option<Infix> {
        let has_schema = self.is_symbol(3, Symbol::Period);
        let at = if has_schema { 4 } else { 2 };
        let TokenKind::Symbol(symbol) = self.kind(at) else { return None };
        let (op, _) = binary(symbol)?;
        self.is_symbol(at + 1, Symbol::RightParen).then_some(Infix::Binary(op, precedence::OTHER, at + 2))
    }

    /// Consumes an operator and its right side.
    #[inline(never)]
    pub(super) fn infix_tail(&mut self, left: Expr, start: Span, infix: Infix) -> Result<Expr> {
        let operand = Box::new(left);
        let kind = match infix {
            Infix::Binary(op, precedence, tokens) => {
                self.at += tokens;
                return self.binary_tail(operand, start, op, precedence);
            }
            Infix::And | Infix::Or => return Ok(*operand),
            Infix::Is => self.is_test(operand)?,
            Infix::IsNull | Infix::NotNull => {
                self.bump();
                ExprKind::Is { operand, negated: matches!(infix, Infix::NotNull), test: IsTest::Null }
            }
            Infix::NotNullWords => {
                self.at += 2;
                ExprKind::Is { operand, negated: true, test: IsTest::Null }
            }
            Infix::Between(negated) => {
                self.at += 1 + usize::from(negated);
                self.between(operand, negated)?
            }
            Infix::In(negated) => {
                self.at += 1 + usize::from(negated);
                self.in_tail(operand, negated)?
            }
            Infix::Like(kind, negated) => {
                self.at += 1 + usize::from(negated) + usize::from(kind == LikeKind::Similar);
                self.like(operand, negated, kind)?
            }
            Infix::At => {
                self.bump();
                let zone = if self.eat(K::Local) {
                    None
                } else {
                    self.expect_all(&[K::Time, K::Zone])?;
                    Some(Box::new(self.climb(precedence::AT + 1)?))
                };
                ExprKind::AtTimeZone { operand, zone }
            }
            Infix::Collate => {
                self.bump();
                let collation = self.object_name(super::expected::NameKind::Other, "a collation")?;
                ExprKind::Collate { operand, collation }
            }
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Parses the right side of a consumed operator: an operand, or ANY or ALL of a set.
    #[inline(never)]
    fn binary_tail(&mut self, left: Box<Expr>, start: Span, op: BinaryOperator, precedence: u8) -> Result<Expr> {
        let quantifier = self.quantifier();
        let kind = match quantifier {
            Some(quantifier) => {
                let set = Box::new(self.quantified_set()?);
                ExprKind::Quantified { left, op, quantifier, set }
            }
            None => ExprKind::Binary { left, op, right: Box::new(self.climb(precedence + 1)?) },
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Consumes ANY, SOME or ALL before parentheses.
    fn quantifier(&mut self) -> Option<Quantifier> {
        let quantifier = match self.keyword(0)? {
            K::Any | K::Some => Quantifier::Any,
            K::All => Quantifier::All,
            _ => return None,
        };
        if !self.is_symbol(1, Symbol::LeftParen) {
            return None;
        }
        self.bump();
        Some(quantifier)
    }

    /// Parses `(SELECT …)`, `(array)`.
    #[inline(never)]
    fn quantified_set(&mut self) -> Result<QuantifiedSet> {
        Ok(match self.parens_in_expr()? {
            super::parens::ExprParens::Query(query) => QuantifiedSet::Query(query),
            super::parens::ExprParens::Values(values) => QuantifiedSet::Values(values),
        })
    }

    #[inline(never)]
    fn is_test(&mut self, operand: Box<Expr>) -> Result<ExprKind> {
        self.bump();
        let negated = self.eat(K::Not);
        let test = if self.eat_all(&[K::Distinct, K::From]) {
            IsTest::DistinctFrom(Box::new(self.climb(precedence::IS + 1)?))
        } else {
            match self.eat_any(&[K::Null, K::True, K::False, K::Unknown, K::Normalized]) {
                Some(K::Null) => IsTest::Null,
                Some(K::True) => IsTest::True,
                Some(K::False) => IsTest::False,
                Some(K::Unknown) => IsTest::Unknown,
                Some(_) => IsTest::Normalized,
                None if self.written(0).eq_ignore_ascii_case("json") => {
                    self.bump();
                    IsTest::Json
                }
                None if self.eat_any(&[K::Nfc, K::Nfd, K::Nfkc, K::Nfkd]).is_some() => {
                    self.expect(K::Normalized)?;
                    IsTest::Normalized
                }
                None => return Err(self.expected("NULL, NOT NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")),
            }
        };
        Ok(ExprKind::Is { operand, negated, test })
    }

    #[inline(never)]
    fn between(&mut self, operand: Box<Expr>, negated: bool) -> Result<ExprKind> {
        let symmetric = self.eat_any(&[K::Symmetric, K::Asymmetric]) == Some(K::Symmetric);
        let low = Box::new(self.climb(precedence::RANGE + 1)?);
        self.expect(K::And)?;
        let high = Box::new(self.climb(precedence::RANGE + 1)?);
        Ok(ExprKind::Between { operand, negated, symmetric, low, high })
    }

    /// Parses the right side of IN: a list, a query, or one value (a time interval or an array).
    #[inline(never)]
    fn in_tail(&mut self, operand: Box<Expr>, negated: bool) -> Result<ExprKind> {
        if !self.sees_symbol(Symbol::LeftParen) {
            let set = Box::new(self.climb(precedence::RANGE + 1)?);
            return Ok(ExprKind::InValue { operand, negated, set });
        }
        if self.is_symbol(1, Symbol::RightParen) {
            self.at += 2;
            return Ok(ExprKind::InList { operand, negated, list: Vec::new() });
        }
        Ok(match self.parens_in_expr()? {
            super::parens::ExprParens::Query(query) => ExprKind::InQuery { operand, negated, query },
            super::parens::ExprParens::Values(list) => ExprKind::InList { operand, negated, list },
        })
    }

    #[inline(never)]
    fn like(&mut self, operand: Box<Expr>, negated: bool, kind: LikeKind) -> Result<ExprKind> {
        let quantifier = self.quantifier();
        let pattern = Box::new(self.climb(precedence::RANGE + 1)?);
        let escape = match self.eat(K::Escape) {
            true => Some(Box::new(self.climb(precedence::RANGE + 1)?)),
            false => None,
        };
        Ok(ExprKind::Like { operand, negated, kind, quantifier, pattern, escape })
    }
}

/// Returns the operator of a symbol and its precedence.
fn binary(symbol: Symbol) -> Option<(BinaryOperator, u8)> {
    use precedence::{ARROW, BIT_AND, BIT_XOR, COMPARISON, OTHER, POWER, PRODUCT, SHIFT, SUM};
    Some(match symbol {
        Symbol::Plus => (B::Add, SUM),
        Symbol::Minus => (B::Subtract, SUM),
        Symbol::Star => (B::Multiply, PRODUCT),
        Symbol::Slash => (B::Divide, PRODUCT),
        Symbol::DoubleSlash => (B::IntegerDivide, PRODUCT),
        Symbol::Percent => (B::Modulo, PRODUCT),
        Symbol::DoubleStar => (B::Power, POWER),
        Symbol::Equal | Symbol::DoubleEqual => (B::Equal, COMPARISON),
        Symbol::NotEqual | Symbol::NotEqualC => (B::NotEqual, COMPARISON),
        Symbol::Less => (B::Less, COMPARISON),
        Symbol::LessEqual => (B::LessEqual, COMPARISON),
        Symbol::Greater => (B::Greater, COMPARISON),
        Symbol::GreaterEqual => (B::GreaterEqual, COMPARISON),
        Symbol::NullSafeEqual => (B::NullSafeEqual, COMPARISON),
        Symbol::Concat => (B::Concat, OTHER),
        Symbol::Ampersand => (B::BitAnd, BIT_AND),
        Symbol::Pipe => (B::BitOr, OTHER),
        Symbol::Caret | Symbol::Hash => (B::BitXor, BIT_XOR),
        Symbol::ShiftLeft => (B::ShiftLeft, SHIFT),
        Symbol::ShiftRight => (B::ShiftRight, SHIFT),
        Symbol::Arrow => (B::Arrow, ARROW),
        Symbol::LongArrow => (B::LongArrow, ARROW),
        Symbol::PathArrow => (B::PathArrow, ARROW),
        Symbol::PathLongArrow => (B::PathLongArrow, ARROW),
        Symbol::DeletePath => (B::DeletePath, OTHER),
        Symbol::Contains => (B::Contains, OTHER),
        Symbol::ContainedBy => (B::ContainedBy, OTHER),
        Symbol::ContainsEqual => (B::ContainsEqual, OTHER),
        Symbol::ContainedEqual => (B::ContainedEqual, OTHER),
        Symbol::Overlap => (B::Overlap, OTHER),
        Symbol::NotRightOf => (B::NotRightOf, OTHER),
        Symbol::NotLeftOf => (B::NotLeftOf, OTHER),
        Symbol::Distance => (B::Distance, OTHER),
        Symbol::PathExists => (B::PathExists, OTHER),
        Symbol::PathMatch => (B::PathMatch, OTHER),
        Symbol::Question => (B::HasKey, OTHER),
        Symbol::AnyKey => (B::HasAnyKey, OTHER),
        Symbol::AllKeys => (B::HasAllKeys, OTHER),
        Symbol::StartsWith => (B::StartsWith, OTHER),
        Symbol::Tilde => (B::RegexMatch, OTHER),
        Symbol::TildeStar => (B::RegexMatchInsensitive, OTHER),
        Symbol::NotTilde => (B::RegexNotMatch, OTHER),
        Symbol::NotTildeStar => (B::RegexNotMatchInsensitive, OTHER),
        Symbol::TildeTilde => (B::LikeMatch, OTHER),
        Symbol::TildeTildeStar => (B::LikeMatchInsensitive, OTHER),
        Symbol::NotTildeTilde => (B::NotLikeMatch, OTHER),
        Symbol::NotTildeTildeStar => (B::NotLikeMatchInsensitive, OTHER),
        _ => return None,
    })
}
