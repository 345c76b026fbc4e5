//! A walk over the relations and expressions of a query, with those of its sub-queries.

super::walker::walker! {
    /// Receives the nodes of a tree, outer nodes first.
    Visitor, iter, as_deref
}

/// Finds an expression.
pub struct ExprFinder {
    is_wanted: fn(&Expr) -> bool,
    /// True if a walk has reached a wanted expression.
    pub is_found: bool,
}

impl ExprFinder {
    /// Returns a finder of the expressions for which `is_wanted` returns true.
    #[must_use]
    pub fn new(is_wanted: fn(&Expr) -> bool) -> ExprFinder {
        ExprFinder { is_wanted, is_found: false }
    }
}

impl Visitor for ExprFinder {
    fn expr(&mut self, expr: &Expr) -> bool {
        self.is_found |= (self.is_wanted)(expr);
        !self.is_found
    }
}
