//! Windows: `(PARTITION BY … ORDER BY … ROWS BETWEEN … AND … EXCLUDE …)`.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::function::FrameOffset;
use crate::ast::{Duration, FrameBound, FrameExclusion, FrameUnits, NamedWindow, WindowFrame, WindowSpec};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `name AS (…)`, after WINDOW.
    pub(super) fn named_window(&mut self) -> Result<NamedWindow> {
        let name = self.name(NameKind::New, "the name of a window")?;
        self.expect(K::As)?;
        Ok(NamedWindow { name, spec: self.window_spec()? })
    }

    /// Parses the content of the parentheses of a window.
    #[inline(never)]
    pub(super) fn window_spec(&mut self) -> Result<WindowSpec> {
        let start = self.start();
        self.expect_symbol(Symbol::LeftParen)?;
        let mut spec = self.window_within()?;
        self.expect_symbol(Symbol::RightParen)?;
        spec.span = self.since(start);
        Ok(spec)
    }

    #[inline(never)]
    fn window_within(&mut self) -> Result<WindowSpec> {
        let begins_clause = self.keyword(0) == Some(K::Order)
            || (self.keyword(0), self.keyword(1)) == (Some(K::Partition), Some(K::By))
            || self.frame_units().is_some();
        let base = if self.is_column_name(0) && !begins_clause { Some(self.any_name()) } else { None };
        let mut spec =
            WindowSpec { base, partition_by: Vec::new(), order_by: Vec::new(), frame: None, span: self.start() };
        if self.eat_all(&[K::Partition, K::By]) {
            spec.partition_by = self.list(Self::expr)?;
        }
        if self.eat(K::Order) {
            self.expect(K::By)?;
            spec.order_by = self.list(Self::order_item)?;
        }
        if let Some(units) = self.frame_units() {
            self.bump();
            spec.frame = Some(self.frame(units)?);
        }
        Ok(spec)
    }

    fn frame_units(&self) -> Option<FrameUnits> {
        let words = [
            (K::Rows, FrameUnits::Rows),
            (K::Range, FrameUnits::Range),
            (K::Groups, FrameUnits::Groups),
            (K::Cumulative, FrameUnits::Cumulative),
        ];
        words.into_iter().find(|(word, _)| self.sees(*word)).map(|(_, units)| units)
    }

    #[inline(never)]
    fn frame(&mut self, units: FrameUnits) -> Result<WindowFrame> {
        if units == FrameUnits::Cumulative {
            return Ok(WindowFrame { units, start: FrameBound::Preceding(None), end: None, exclusion: None });
        }
        let (start, end) = if self.eat(K::Between) {
            let start = self.frame_bound()?;
            self.expect(K::And)?;
            (start, Some(self.frame_bound()?))
        } else {
            (self.frame_bound()?, None)
        };
        if end.is_none() && self.sees(K::And) {
            let error = self.expected("EXCLUDE or )");
            return Err(Box::new(error.with_hint("a frame with two bounds is written BETWEEN … AND …")));
        }
        let exclusion = if self.eat(K::Exclude) { Some(self.frame_exclusion()?) } else { None };
        Ok(WindowFrame { units, start, end, exclusion })
    }

    fn frame_exclusion(&mut self) -> Result<FrameExclusion> {
        if self.eat_all(&[K::No, K::Others]) {
            Ok(FrameExclusion::NoOthers)
        } else if self.eat_all(&[K::Current, K::Row]) {
            Ok(FrameExclusion::CurrentRow)
        } else if self.eat(K::Group) {
            Ok(FrameExclusion::Group)
        } else if self.eat(K::Ties) {
            Ok(FrameExclusion::Ties)
        } else {
            Err(self.expected("CURRENT ROW, GROUP, TIES or NO OTHERS"))
        }
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.eat_all(&[K::Current, K::Row]) {
            return Ok(FrameBound::CurrentRow);
        }
        let offset = if self.eat(K::Unbounded) { None } else { Some(Box::new(self.frame_offset()?)) };
        match self.eat_any(&[K::Preceding, K::Following]) {
            Some(K::Preceding) => Ok(FrameBound::Preceding(offset)),
            Some(_) => Ok(FrameBound::Following(offset)),
            None => Err(self.expected("PRECEDING or FOLLOWING")),
        }
    }

    fn frame_offset(&mut self) -> Result<FrameOffset> {
        match self.length_ahead(0) {
            Some(unit) => {
                let start = self.start();
                let count = self.number("a number")?;
                self.bump();
                Ok(FrameOffset::Duration(Duration { count, unit, span: self.since(start) }))
            }
            None => Ok(FrameOffset::Expr(self.expr()?)),
        }
    }
}
