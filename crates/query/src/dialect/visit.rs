//! Walks over the tree of a statement.
//!
//! The tree has hundreds of types, and a walk is compiled for each of them. So that this happens once for reading and
//! once for changing, not for every visitor of ours, a visitor is called through a pointer.

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Shows a tree to a visitor until it breaks off.
pub(crate) fn visit<V: Visitor>(node: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = Kept { visitor, broke_with: None };
    let _ = node.visit(&mut Reading(&mut kept));
    kept.broke_with.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// As [`visit`], for one that changes the tree.
pub(crate) fn visit_mut<V: VisitorMut>(node: &mut impl VisitMut, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = KeptMut { visitor, broke_with: None };
    let _ = node.visit(&mut Changing(&mut kept));
    kept.broke_with.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Changes the expressions of a node, inner ones first; expressions of nested sub-queries stay.
pub(crate) fn change_own(node: &mut impl VisitMut, change: &mut dyn FnMut(&mut Expr)) {
    let _ = visit_mut(node, &mut Own { change, depth: 0 });
}

struct Own<'a> {
    change: &'a mut dyn FnMut(&mut Expr),
    /// Queries that are open.
    depth: usize,
}

impl VisitorMut for Own<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0 {
            (self.change)(expr);
        }
        ControlFlow::Continue(())
    }
}

/// A visitor whose break says nothing, and what it broke with.
struct Kept<'a, V: Visitor> {
    visitor: &'a mut V,
    broke_with: Option<V::Break>,
}

struct KeptMut<'a, V: VisitorMut> {
    visitor: &'a mut V,
    broke_with: Option<V::Break>,
}

struct Reading<'a>(&'a mut dyn Visitor<Break = ()>);

struct Changing<'a>(&'a mut dyn VisitorMut<Break = ()>);

macro_rules! forward {
    ($($hook:ident: $node:ty),* $(,)?) => {
        impl<V: Visitor> Visitor for Kept<'_, V> {
            type Break = ();
            $(fn $hook(&mut self, node: &$node) -> ControlFlow<()> {
                self.visitor.$hook(node).map_break(|b| self.broke_with = Some(b))
            })*
        }

        impl<V: VisitorMut> VisitorMut for KeptMut<'_, V> {
            type Break = ();
            $(fn $hook(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.visitor.$hook(node).map_break(|b| self.broke_with = Some(b))
            })*
        }

        impl Visitor for Reading<'_> {
            type Break = ();
            $(fn $hook(&mut self, node: &$node) -> ControlFlow<()> {
                self.0.$hook(node)
            })*
        }

        impl VisitorMut for Changing<'_> {
            type Break = ();
            $(fn $hook(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.0.$hook(node)
            })*
        }
    };
}

forward! {
    pre_visit_query: Query,
    post_visit_query: Query,
    pre_visit_select: Select,
    post_visit_select: Select,
    pre_visit_relation: ObjectName,
    post_visit_relation: ObjectName,
    pre_visit_table_factor: TableFactor,
    post_visit_table_factor: TableFactor,
    pre_visit_expr: Expr,
    post_visit_expr: Expr,
    pre_visit_statement: Statement,
    post_visit_statement: Statement,
    pre_visit_value: ValueWithSpan,
    post_visit_value: ValueWithSpan,
}
