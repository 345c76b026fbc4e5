//! Joins USING and NATURAL joins whose column is asked for by itself.
//!
//! In `a LEFT JOIN b USING (c)` SQL has one `c`, that of the rows that are kept, besides `a.c` and `b.c`. The stock planner
//! knows the columns of the sides only. Where a SELECT names `c` alone, or everything, its joins become relations that we
//! plan ([`crate::plan`]): they have `c` once, under the name of the left side. What the SELECT names of the sides then gets
//! a name of its own, `b.c` becomes `b."c·of·b"`, and the join is told of it:
//!
//! `USING (c)` is `USING (__merged, c, b.c)`, NATURAL is `USING (__natural, b.c)`.

use super::relations::{called, factors, hide, relations_mut};
use super::rewrite::{computed_name, selects_mut};
use crate::names::name_of_side;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Visitor, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

const MERGED: &str = "__merged";
const NATURAL: &str = "__natural";

/// Columns by the name of their side and their own.
type OfSides = BTreeSet<(String, String)>;

/// A join that we plan.
pub(crate) struct MergedJoin {
    /// `None`: all that both sides have.
    pub columns: Option<Vec<String>>,
    /// Columns of sides that are asked for, too.
    pub of_sides: Vec<(String, String)>,
}

/// How a join that is ours was written.
pub(crate) fn merged_join(join: &Join) -> Option<MergedJoin> {
    let JoinConstraint::Using(names) = constraint(join)? else { return None };
    let parts = |name: &ObjectName| -> Vec<String> {
        name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.clone()).collect()
    };
    let mut names = names.iter().map(parts);
    let is_natural = match names.next()?.as_slice() {
        [mark] if mark == MERGED => false,
        [mark] if mark == NATURAL => true,
        _ => return None,
    };
    let (mut columns, mut of_sides) = (Vec::new(), Vec::new());
    for name in names {
        match <[String; 2]>::try_from(name) {
            Ok([side, column]) => of_sides.push((side, column)),
            Err(name) => columns.extend(name),
        }
    }
    Some(MergedJoin { columns: (!is_natural).then_some(columns), of_sides })
}

/// The operators of joins that have columns of both sides, as a pattern.
macro_rules! of_both_sides {
    ($on:ident) => {
        JoinOperator::Join($on)
            | JoinOperator::Inner($on)
            | JoinOperator::Left($on)
            | JoinOperator::LeftOuter($on)
            | JoinOperator::Right($on)
            | JoinOperator::RightOuter($on)
            | JoinOperator::FullOuter($on)
    };
}

fn constraint(join: &Join) -> Option<&JoinConstraint> {
    if let of_both_sides!(on) = &join.join_operator { Some(on) } else { None }
}

fn constraint_mut(join: &mut Join) -> Option<&mut JoinConstraint> {
    if let of_both_sides!(on) = &mut join.join_operator { Some(on) } else { None }
}

/// Marks the joins of a query's own SELECTs.
pub(super) fn marked(query: &mut Query) -> Result<()> {
    if let SetExpr::Select(select) = query.body.as_mut() {
        return mark(select, query.order_by.as_mut());
    }
    selects_mut(&mut query.body).into_iter().try_for_each(|select| mark(select, None))
}

fn mark(select: &mut Select, mut order: Option<&mut OrderBy>) -> Result<()> {
    let mut joins = Joins::default();
    select.from.iter().for_each(|table| drop(joins.add(table)));
    if !joins.is_any {
        return Ok(());
    }
    let mut asked = Asked { joins: &joins, hidden: Vec::new(), within: 0, alone: None, of_sides: OfSides::new() };
    let _ = super::visit(select, &mut asked);
    if let Some(order) = order.as_deref() {
        let _ = super::visit(order, &mut asked);
    }
    let Asked { alone, of_sides, .. } = asked;
    let has_all = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
    if alone.is_none() && !has_all && !joins.is_called {
        return Ok(());
    }
    if joins.is_lateral || select.projection.iter().any(|item| joins.changes_all_of(item)) {
        // The stock planner takes the left column for one that is named, which is right but of RIGHT and FULL joins, and any
        // for `*`. In WHERE it has to be told.
        if joins.keeps_right || joins.has_outer && has_all {
            return Err(refused(alone.or_else(|| joins.columns.first().cloned()), joins.is_lateral));
        }
        if let Some(condition) = &mut select.selection {
            super::visit::change_own(condition, &mut |expr| joins.qualify(expr));
        }
        return Ok(());
    }
    if !of_sides.is_empty() {
        let mut renamer = Renamer { of_sides: &of_sides, hidden: Vec::new(), joined: None, found: false };
        for item in &mut select.projection {
            renamer.item(item);
        }
        let mut from = std::mem::take(&mut select.from);
        let _ = super::visit_mut(select, &mut renamer);
        renamer.joined = Some(HashSet::new());
        from.iter_mut().for_each(|table| drop(renamer.joins(table)));
        renamer.joined = None;
        select.from = from;
        if let Some(order) = order.as_mut() {
            let _ = super::visit_mut(*order, &mut renamer);
        }
        hide(select, of_sides.iter().map(|(side, column)| quoted(name_of_side(column, side))).collect());
    }
    select.from.iter_mut().for_each(|table| mark_joins(table, &of_sides));
    Ok(())
}

fn refused(name: Option<String>, is_lateral: bool) -> Error {
    let beside = if is_lateral { "a LATERAL side" } else { "all columns of one side" };
    let column = name.as_ref().map_or_else(|| "the column".to_owned(), |name| format!("\"{name}\""));
    let error = Error::invalid(format!("{column} of an outer join USING is asked for beside {beside}"))
        .with_hint("name the columns of that side, or join ON an equality");
    match name {
        Some(name) => error.about(name),
        None => error,
    }
}

fn quoted(name: String) -> Ident {
    Ident::with_quote('"', name)
}

/// The joins USING of a SELECT.
#[derive(Default)]
struct Joins {
    is_any: bool,
    is_natural: bool,
    /// Whether one stands in parentheses that have a name, under which there is room for one `c` only.
    is_called: bool,
    /// Whether a right side looks at the left one, so that it cannot be planned by itself.
    is_lateral: bool,
    has_outer: bool,
    /// Whether one is RIGHT or FULL.
    keeps_right: bool,
    columns: BTreeSet<String>,
    /// A table that has the column of the join, where no join keeps rows of the right side only.
    owners: BTreeMap<String, String>,
    tables: HashSet<String>,
    /// Tables that do not have their own columns afterwards.
    changed: HashSet<String>,
}

impl Joins {
    /// Gives the names of the tables.
    fn add(&mut self, of: &TableWithJoins) -> Vec<String> {
        let mut left = self.names_in(&of.relation);
        for join in &of.joins {
            let right = self.names_in(&join.relation);
            let names: Option<&[ObjectName]> = match constraint(join) {
                Some(JoinConstraint::Using(names)) => Some(names),
                Some(JoinConstraint::Natural) => Some(&[]),
                _ => None,
            };
            if let Some(names) = names {
                self.is_any = true;
                self.is_lateral |= is_lateral(&join.relation);
                self.is_natural |= names.is_empty();
                let is_inner = matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
                self.has_outer |= !is_inner;
                self.keeps_right |= keeps_right(join);
                for name in names.iter().filter_map(|name| name.0.last()?.as_ident()) {
                    let is_first = self.columns.insert(name.value.clone());
                    if let ([owner], _, true) | (_, ([owner], true), true) =
                        (left.as_slice(), (right.as_slice(), is_inner), is_first)
                    {
                        self.owners.insert(name.value.clone(), owner.clone());
                    }
                }
                self.tables.extend(left.iter().chain(&right).cloned());
                self.changed.extend(right.iter().cloned());
                if keeps_right(join) {
                    self.changed.extend(left.iter().cloned());
                }
            }
            left.extend(right);
        }
        left
    }

    fn names_in(&mut self, factor: &TableFactor) -> Vec<String> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.add(table_with_joins),
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } => {
                let mut within = Joins::default();
                within.add(table_with_joins);
                self.is_called |= within.is_any;
                self.is_any |= within.is_any;
                self.is_lateral |= within.is_lateral;
                self.has_outer |= within.has_outer;
                self.keeps_right |= within.keeps_right;
                self.columns.extend(within.columns);
                vec![alias.name.value.clone()]
            }
            _ => called(factor).map(|name| name.value).into_iter().collect(),
        }
    }

    fn qualify(&self, expr: &mut Expr) {
        if let Expr::Identifier(name) = &*expr
            && let Some(table) = self.owners.get(&name.value)
        {
            *expr = Expr::CompoundIdentifier(vec![quoted(table.clone()), name.clone()]);
        }
    }

    /// Whether a `t.*` would miss a column of its table.
    fn changes_all_of(&self, item: &SelectItem) -> bool {
        match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let table = name.0.last().and_then(|part| part.as_ident());
                table.is_some_and(|table| self.changed.contains(&table.value))
            }
            _ => false,
        }
    }
}

fn keeps_right(join: &Join) -> bool {
    matches!(join.join_operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_))
}

fn is_lateral(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Derived { lateral, .. } | TableFactor::Function { lateral, .. } => *lateral,
        TableFactor::UNNEST { .. } => true,
        _ => false,
    }
}

fn is_apart(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: false, .. })
}

/// What tables of a sub-query are called, which hide those around it.
fn tables_of(query: &Query) -> HashSet<String> {
    let (mut names, mut bodies) = (HashSet::new(), vec![query.body.as_ref()]);
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => names.extend(factors(select).into_iter().filter_map(called).map(|n| n.value)),
            SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_ref(), right.as_ref()]),
            _ => {}
        }
    }
    names
}

/// Whose column this is, and which, unless a sub-query has another table of the name.
fn of_side<'a>(expr: &'a Expr, hidden: &[HashSet<String>]) -> Option<(&'a Ident, &'a Ident)> {
    let Expr::CompoundIdentifier(parts) = expr else { return None };
    let [side, column] = parts.as_slice() else { return None };
    (!hidden.iter().any(|tables| tables.contains(&side.value))).then_some((side, column))
}

/// What a SELECT asks for of its joins.
struct Asked<'a> {
    joins: &'a Joins,
    /// Tables of the sub-queries that are open.
    hidden: Vec<HashSet<String>>,
    /// Open ones in FROM, which cannot ask for anything.
    within: usize,
    /// A column without its table.
    alone: Option<String>,
    of_sides: OfSides,
}

impl Visitor for Asked<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.hidden.push(tables_of(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.within += usize::from(is_apart(factor));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.within -= usize::from(is_apart(factor));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.within > 0 {
            return ControlFlow::Continue(());
        }
        let is_joined = |name: &Ident| self.joins.is_natural || self.joins.columns.contains(&name.value);
        match expr {
            Expr::Identifier(name) if is_joined(name) => self.alone = Some(name.value.clone()),
            expr => {
                if let Some((side, column)) = of_side(expr, &self.hidden)
                    && self.joins.tables.contains(&side.value)
                    && is_joined(column)
                {
                    self.of_sides.insert((side.value.clone(), column.value.clone()));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

struct Renamer<'a> {
    of_sides: &'a OfSides,
    hidden: Vec<HashSet<String>>,
    /// Within FROM: tables that a join USING stands behind already. Before it, their columns are their own.
    joined: Option<HashSet<String>>,
    found: bool,
}

impl Renamer<'_> {
    /// A column that is selected keeps its name.
    fn item(&mut self, item: &mut SelectItem) {
        let SelectItem::UnnamedExpr(expr) = item else { return };
        let name = computed_name(expr);
        self.found = false;
        let _ = super::visit_mut(expr, self);
        if self.found {
            let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *item = SelectItem::ExprWithAlias { expr, alias: quoted(name) };
        }
    }

    /// Conditions of joins, and tables that look at others; gives the names of the tables.
    fn joins(&mut self, of: &mut TableWithJoins) -> Vec<String> {
        let mut tables = self.factor(&mut of.relation);
        for join in &mut of.joins {
            tables.extend(self.factor(&mut join.relation));
            let _ = super::visit_mut(&mut join.join_operator, self);
            if let (Some(JoinConstraint::Using(_) | JoinConstraint::Natural), Some(joined)) =
                (constraint(join), &mut self.joined)
            {
                joined.extend(tables.iter().cloned());
            }
        }
        tables
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Vec<String> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            return self.joins(table_with_joins);
        }
        let _ = super::visit_mut(factor, self);
        called(factor).map(|name| name.value).into_iter().collect()
    }
}

impl VisitorMut for Renamer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.hidden.push(tables_of(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((side, column)) = of_side(expr, &self.hidden) else { return ControlFlow::Continue(()) };
        let named = (side.value.clone(), column.value.clone());
        let is_joined = self.joined.as_ref().is_none_or(|joined| joined.contains(&side.value));
        if is_joined && self.of_sides.contains(&named) {
            let own = Ident { value: name_of_side(&named.1, &named.0), quote_style: Some('"'), span: column.span };
            *expr = Expr::CompoundIdentifier(vec![side.clone(), own]);
            self.found = true;
        }
        ControlFlow::Continue(())
    }
}

fn mark_joins(of: &mut TableWithJoins, of_sides: &OfSides) {
    for relation in relations_mut(of) {
        if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
            mark_joins(table_with_joins, of_sides);
        }
    }
    for join in of.joins.iter_mut().filter_map(constraint_mut) {
        let (mark, columns) = match join {
            JoinConstraint::Natural => (NATURAL, Vec::new()),
            JoinConstraint::Using(names) => (MERGED, std::mem::take(names)),
            _ => continue,
        };
        let own = of_sides.iter().map(|(side, column)| [side, column].map(|name| quoted(name.clone())).to_vec());
        let names = std::iter::once(ObjectName::from(vec![Ident::new(mark)]));
        *join = JoinConstraint::Using(names.chain(columns).chain(own.map(ObjectName::from)).collect());
    }
}

/// Tables go by other names in what the joins are told.
pub(super) fn rename_sides(of: &mut TableWithJoins, named: &dyn Fn(&Ident) -> Option<Ident>) {
    for join in of.joins.iter_mut().filter(|join| merged_join(join).is_some()).filter_map(constraint_mut) {
        let JoinConstraint::Using(names) = join else { continue };
        for name in names {
            if let [side, column] = name.0.as_slice()
                && let (Some(side), Some(column)) = (side.as_ident().and_then(named), column.as_ident())
            {
                *name = ObjectName::from(vec![side, column.clone()]);
            }
        }
    }
}
