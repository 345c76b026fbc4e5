//! Time joins: ASOF, LT, SPLICE, WINDOW and HORIZON JOIN.

use super::expected::NameKind;
use super::precedence;
use super::{Parser, Result};
use crate::ast::{
    AsofJoin, AsofKind, Duration, DurationUnit, HorizonGrid, HorizonJoin, Join, JoinKind, Offset, WindowBound,
    WindowJoin,
};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

/// Description of a window bound in error messages.
const BOUND: &str = "a length of time and PRECEDING or FOLLOWING";

impl Parser<'_> {
    /// Returns the kind of the join if ASOF, LT or SPLICE JOIN follows.
    pub(super) fn asof_kind(&self) -> Option<AsofKind> {
        let kinds = [(K::Asof, AsofKind::Asof), (K::Lt, AsofKind::Lt), (K::Splice, AsofKind::Splice)];
        let (word, kind) = kinds.into_iter().find(|(word, _)| self.sees(*word))?;
        self.begins_own_clause(word).then_some(kind)
    }

    /// Parses `ASOF [LEFT | INNER] JOIN t [ON …] [TOLERANCE 5m]`.
    #[inline(never)]
    pub(super) fn asof_join(&mut self, kind: AsofKind) -> Result<Join> {
        self.bump();
        let keeps_left = self.eat_any(&[K::Left, K::Inner]).map(|word| word == K::Left);
        if keeps_left == Some(true) {
            self.eat(K::Outer);
        }
        self.expect(K::Join)?;
        let relation = self.relation()?;
        let condition = self.join_condition()?;
        let tolerance = if self.eat(K::Tolerance) { Some(self.duration("a length of time such as 5m")?) } else { None };
        Ok(Join { kind: JoinKind::Asof(AsofJoin { kind, keeps_left, tolerance }), relation, condition })
    }

    /// Parses `t [ON …] RANGE BETWEEN lower AND upper [INCLUDE | EXCLUDE PREVAILING]`, after WINDOW JOIN.
    #[inline(never)]
    pub(super) fn window_join(&mut self) -> Result<Join> {
        let relation = self.relation()?;
        let condition = self.join_condition()?;
        self.expect_all(&[K::Range, K::Between])?;
        let lower = self.window_bound()?;
        self.expect(K::And)?;
        let upper = self.window_bound()?;
        let includes_prevailing = if self.eat_all(&[K::Include, K::Prevailing]) {
            Some(true)
        } else if self.eat_all(&[K::Exclude, K::Prevailing]) {
            Some(false)
        } else {
            None
        };
        let join = WindowJoin { lower, upper, includes_prevailing };
        Ok(Join { kind: JoinKind::Window(Box::new(join)), relation, condition })
    }

    fn window_bound(&mut self) -> Result<WindowBound> {
        if self.eat_all(&[K::Current, K::Row]) {
            return Ok(WindowBound::CurrentRow);
        }
        if self.keyword(0) == Some(K::Unbounded) && matches!(self.keyword(1), Some(K::Preceding | K::Following)) {
            return Err(self.expected(BOUND));
        }
        let offset = self.offset()?;
        match self.eat_any(&[K::Preceding, K::Following]) {
            Some(K::Preceding) => Ok(WindowBound::Preceding(offset)),
            Some(_) => Ok(WindowBound::Following(offset)),
            None => Err(self.expected(BOUND)),
        }
    }

    /// Parses an offset: `5 seconds`, `15m`, `-3m`, `t.lookback minutes`, or an expression.
    pub(super) fn offset(&mut self) -> Result<Offset> {
        let sign = usize::from(self.is_symbol(0, Symbol::Minus));
        if let Some(unit) = self.length_ahead(sign) {
            return Ok(Offset::Duration(self.signed_length(unit)?));
        }
        let expr = Box::new(self.operand(precedence::RANGE + 1)?);
        let unit: Option<DurationUnit> = self.unit_at(0);
        if unit.is_some() {
            self.bump();
        }
        Ok(Offset::Expr { expr, unit })
    }

    /// Parses a number with an optional sign and a unit word; the caller has checked the unit.
    fn signed_length(&mut self, unit: DurationUnit) -> Result<Duration> {
        let start = self.start();
        let count = self.signed_number("a number")?;
        self.bump();
        Ok(Duration { count, unit, span: self.since(start) })
    }

    /// Parses `t [ON …] [RANGE FROM a TO b STEP c | LIST (a, …)] [AS h]`, after HORIZON JOIN.
    #[inline(never)]
    pub(super) fn horizon_join(&mut self) -> Result<Join> {
        let relation = self.relation()?;
        let condition = self.join_condition()?;
        let mut join = HorizonJoin { grid: None, alias: None };
        if self.eat_all(&[K::Range, K::From]) {
            let from = self.offset()?;
            self.expect(K::To)?;
            let to = self.offset()?;
            self.expect(K::Step)?;
            join.grid = Some(HorizonGrid::Range { from, to, step: self.offset()? });
        } else if self.eat(K::List) {
            join.grid = Some(HorizonGrid::List(self.in_parens(Self::offset)?));
        }
        if join.grid.is_some() && (self.eat(K::As) || matches!(self.kind(0), TokenKind::Word(None))) {
            join.alias = Some(self.name(NameKind::New, "an alias")?);
        }
        Ok(Join { kind: JoinKind::Horizon(Box::new(join)), relation, condition })
    }
}
