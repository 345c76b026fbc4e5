//! GROUP BY.

use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, GroupBy, GroupItem};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses the keys, after GROUP BY.
    #[inline(never)]
    pub(super) fn group_by(&mut self) -> Result<GroupBy> {
        if self.keyword(0) == Some(K::All) && !self.is_symbol(1, Symbol::LeftParen) {
            self.bump();
            return Ok(GroupBy::All);
        }
        self.eat(K::Distinct);
        Ok(GroupBy::Items(self.list(Self::group_item)?))
    }

    fn group_item(&mut self) -> Result<GroupItem> {
        let opens = self.is_symbol(1, Symbol::LeftParen);
        if opens && self.eat(K::Rollup) {
            return Ok(GroupItem::Rollup(self.in_parens(Self::group_set)?));
        }
        if opens && self.eat(K::Cube) {
            return Ok(GroupItem::Cube(self.in_parens(Self::group_set)?));
        }
        if self.sees_all(&[K::Grouping, K::Sets]) {
            self.at += 2;
            let sets = self.nested(|parser| parser.in_parens(Self::grouping_set))?;
            return Ok(GroupItem::Sets(sets));
        }
        if self.is_symbol(0, Symbol::LeftParen) && self.is_symbol(1, Symbol::RightParen) {
            self.at += 2;
            return Ok(GroupItem::Empty);
        }
        Ok(GroupItem::Expr(self.expr()?))
    }

    /// Parses a member of GROUPING SETS: `a`, `(a, b)`, `()`, or a nested ROLLUP, CUBE or GROUPING SETS.
    fn grouping_set(&mut self) -> Result<GroupItem> {
        Ok(match self.group_item()? {
            GroupItem::Expr(expr) => GroupItem::Set(members(expr)),
            other => other,
        })
    }

    /// Parses a member of ROLLUP or CUBE: `a`, `(a, b)`.
    fn group_set(&mut self) -> Result<Vec<Expr>> {
        Ok(members(self.expr()?))
    }
}

/// Returns the members of a row, or the expression itself if it is not a row.
fn members(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::Row(members) => members,
        kind => vec![Expr { kind, span: expr.span }],
    }
}
