//! As [`super::walk`], with nodes that the visitor may change.

use super::{
    Alignment, Body, CteBody, Distinct, Expr, ExprKind, FillValue, FrameBound, FrameOffset, FunctionArg, FunctionCall,
    GroupBy, GroupItem, HorizonGrid, IsTest, JoinCondition, JoinKind, Limit, Offset, OrderBy, OrderItem, Over, Pivot,
    PivotValues, Projection, QuantifiedSet, Query, Relation, RelationKind, SampleBy, Select, SelectItem, SpecialCall,
    Subscript, TableRef, WildcardChange, WindowBound, WindowFrame, WindowSpec,
};

/// Receives the nodes of a tree, outer nodes first, and may change them.
pub trait VisitorMut {
    /// Receives a query before its nodes.
    fn query(&mut self, _query: &mut Query) {}

    /// Receives a query after its nodes.
    fn leave_query(&mut self, _query: &mut Query) {}

    /// Receives a relation of FROM.
    fn relation(&mut self, _relation: &mut Relation) {}

    /// Receives an expression; returns false to skip its operands.
    fn expr(&mut self, _expr: &mut Expr) -> bool {
        true
    }
}

/// Walks over a query. WITH queries that change rows are skipped.
pub fn query(query: &mut Query, visitor: &mut dyn VisitorMut) {
    visitor.query(query);
    for declaration in &mut query.declare {
        expr(&mut declaration.value, visitor);
    }
    for cte in query.with.iter_mut().flat_map(|with| &mut with.ctes) {
        if let CteBody::Query(inner) = &mut cte.body {
            self::query(inner, visitor);
        }
    }
    body(&mut query.body, visitor);
    if let Some(OrderBy::Items(items)) = &mut query.order_by {
        order(items, visitor);
    }
    match query.limit.as_deref_mut() {
        Some(Limit::Count { count, offset } | Limit::Fetch { count, offset, .. }) => {
            exprs(count.iter_mut().chain(offset), visitor);
        }
        Some(Limit::Range { lo, hi }) => exprs([lo, hi], visitor),
        None => {}
    }
    visitor.leave_query(query);
}

fn body(body: &mut Body, visitor: &mut dyn VisitorMut) {
    match body {
        Body::Select(inner) => select(inner, visitor),
        Body::Values(rows) => rows.iter_mut().for_each(|row| exprs(row, visitor)),
        Body::Query(inner) => query(inner, visitor),
        Body::Set { first, rest } => {
            self::body(first, visitor);
            rest.iter_mut().for_each(|term| self::body(&mut term.body, visitor));
        }
    }
}

fn select(select: &mut Select, visitor: &mut dyn VisitorMut) {
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        exprs(keys, visitor);
    }
    select.from.iter_mut().for_each(|table| table_ref(table, visitor));
    if let Projection::Items(items) = &mut select.projection {
        items.iter_mut().for_each(|item| select_item(item, visitor));
    }
    exprs(&mut select.selection, visitor);
    if let Some(sample) = &mut select.sample_by {
        sample_by(sample, visitor);
    }
    if let Some(latest) = &mut select.latest_on {
        exprs(latest.timestamp.iter_mut().chain(&mut latest.keys), visitor);
    }
    if let Some(GroupBy::Items(items)) = &mut select.group_by {
        items.iter_mut().for_each(|item| group_item(item, visitor));
    }
    if let Some(clause) = &mut select.pivot {
        pivot(clause, visitor);
    }
    exprs(&mut select.having, visitor);
    select.windows.iter_mut().for_each(|named| window(&mut named.spec, visitor));
    exprs(&mut select.qualify, visitor);
}

fn select_item(item: &mut SelectItem, visitor: &mut dyn VisitorMut) {
    match item {
        SelectItem::Expr { expr: value, .. } => expr(value, visitor),
        SelectItem::Wildcard(wildcard) => {
            for change in &mut wildcard.changes {
                if let WildcardChange::Replace(items) = change {
                    exprs(items.iter_mut().map(|(value, _)| value), visitor);
                }
            }
        }
    }
}

fn table_ref(table: &mut TableRef, visitor: &mut dyn VisitorMut) {
    relation(&mut table.relation, visitor);
    for join in &mut table.joins {
        match &mut join.kind {
            JoinKind::Window(window) => {
                for bound in [&mut window.lower, &mut window.upper] {
                    if let WindowBound::Preceding(length) | WindowBound::Following(length) = bound {
                        offset(length, visitor);
                    }
                }
            }
            JoinKind::Horizon(horizon) => match &mut horizon.grid {
                Some(HorizonGrid::Range { from, to, step }) => {
                    [from, to, step].into_iter().for_each(|length| offset(length, visitor));
                }
                Some(HorizonGrid::List(lengths)) => lengths.iter_mut().for_each(|length| offset(length, visitor)),
                None => {}
            },
            _ => {}
        }
        relation(&mut join.relation, visitor);
        if let JoinCondition::On(condition) = &mut join.condition {
            expr(condition, visitor);
        }
    }
}

fn relation(relation: &mut Relation, visitor: &mut dyn VisitorMut) {
    visitor.relation(relation);
    match &mut relation.kind {
        RelationKind::Table { .. } | RelationKind::Variable(_) => {}
        RelationKind::Function { call, .. } => function(call, visitor),
        RelationKind::Query { query: inner, .. } => query(inner, visitor),
        RelationKind::Nested(inner) => table_ref(inner, visitor),
        RelationKind::Pivot { relation: inner, pivot: clause } => {
            self::relation(inner, visitor);
            pivot(clause, visitor);
        }
        RelationKind::Unpivot { relation: inner, unpivot } => {
            self::relation(inner, visitor);
            exprs(unpivot.columns.iter_mut().map(|column| &mut column.expr), visitor);
        }
    }
}

fn pivot(pivot: &mut Pivot, visitor: &mut dyn VisitorMut) {
    exprs(pivot.aggregates.iter_mut().map(|value| &mut value.expr), visitor);
    for column in &mut pivot.columns {
        expr(&mut column.column, visitor);
        match &mut column.values {
            PivotValues::All => {}
            PivotValues::List(values) => exprs(values.iter_mut().map(|value| &mut value.expr), visitor),
            PivotValues::Query(inner) => query(inner, visitor),
        }
    }
    exprs(pivot.group_by.iter_mut().flatten(), visitor);
}

fn sample_by(sample: &mut SampleBy, visitor: &mut dyn VisitorMut) {
    offset(&mut sample.stride, visitor);
    exprs(sample.from.iter_mut().chain(&mut sample.to), visitor);
    for value in sample.fill.iter_mut().flat_map(|fill| &mut fill.values) {
        if let FillValue::Constant(value) = value {
            expr(value, visitor);
        }
    }
    if let Some(Alignment::Calendar { zone, offset }) = &mut sample.align {
        exprs(zone.iter_mut().chain(offset), visitor);
    }
}

fn offset(offset: &mut Offset, visitor: &mut dyn VisitorMut) {
    if let Offset::Expr { expr: value, .. } = offset {
        expr(value, visitor);
    }
}

fn group_item(item: &mut GroupItem, visitor: &mut dyn VisitorMut) {
    match item {
        GroupItem::Expr(key) => expr(key, visitor),
        GroupItem::Empty => {}
        GroupItem::Rollup(sets) | GroupItem::Cube(sets) => sets.iter_mut().for_each(|set| exprs(set, visitor)),
        GroupItem::Sets(items) => items.iter_mut().for_each(|item| group_item(item, visitor)),
        GroupItem::Set(keys) => exprs(keys, visitor),
    }
}

fn order(items: &mut [OrderItem], visitor: &mut dyn VisitorMut) {
    exprs(items.iter_mut().map(|item| &mut item.expr), visitor);
}

fn exprs<'a>(list: impl IntoIterator<Item = &'a mut Expr>, visitor: &mut dyn VisitorMut) {
    list.into_iter().for_each(|value| expr(value, visitor));
}

/// Walks over an expression.
pub fn expr(value: &mut Expr, visitor: &mut dyn VisitorMut) {
    if visitor.expr(value) {
        operands(value, visitor);
    }
}

fn operands(value: &mut Expr, visitor: &mut dyn VisitorMut) {
    match &mut value.kind {
        ExprKind::Column(_)
        | ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Variable(_)
        | ExprKind::Typed { .. }
        | ExprKind::Default => {}
        ExprKind::Interval(interval) => expr(&mut interval.value, visitor),
        ExprKind::Unary { operand, .. }
        | ExprKind::Cast { operand, .. }
        | ExprKind::Collate { operand, .. }
        | ExprKind::Field { operand, .. } => expr(operand, visitor),
        ExprKind::Binary { left, right, .. } => exprs([&mut **left, &mut **right], visitor),
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Array(list) | ExprKind::Row(list) => {
            exprs(list, visitor);
        }
        ExprKind::Between { operand, low, high, .. } => exprs([&mut **operand, &mut **low, &mut **high], visitor),
        ExprKind::InList { operand, list, .. } => exprs(std::iter::once(&mut **operand).chain(list), visitor),
        ExprKind::InValue { operand, set, .. } => exprs([&mut **operand, &mut **set], visitor),
        ExprKind::InQuery { operand, query: inner, .. } => {
            expr(operand, visitor);
            query(inner, visitor);
        }
        ExprKind::Like { operand, pattern, escape, .. } => {
            exprs([&mut **operand, &mut **pattern].into_iter().chain(escape.as_deref_mut()), visitor);
        }
        ExprKind::Is { operand, test, .. } => {
            expr(operand, visitor);
            if let IsTest::DistinctFrom(other) = test {
                expr(other, visitor);
            }
        }
        ExprKind::Quantified { left, set, .. } => {
            expr(left, visitor);
            match &mut **set {
                QuantifiedSet::Query(inner) => query(inner, visitor),
                QuantifiedSet::Values(list) => exprs(list, visitor),
            }
        }
        ExprKind::Case { operand, branches, otherwise } => {
            exprs(operand.as_deref_mut(), visitor);
            exprs(branches.iter_mut().flat_map(|branch| [&mut branch.when, &mut branch.then]), visitor);
            exprs(otherwise.as_deref_mut(), visitor);
        }
        ExprKind::AtTimeZone { operand, zone } => {
            exprs(std::iter::once(&mut **operand).chain(zone.as_deref_mut()), visitor);
        }
        ExprKind::Function(call) => function(call, visitor),
        ExprKind::Special(call) => special(call, visitor),
        ExprKind::Exists(inner) | ExprKind::Subquery(inner) | ExprKind::ArrayQuery(inner) => query(inner, visitor),
        ExprKind::Dictionary { entries, .. } => {
            exprs(entries.iter_mut().flat_map(|(key, value)| [key, value]), visitor);
        }
        ExprKind::Subscript { operand, subscripts } => {
            expr(operand, visitor);
            subscripts.iter_mut().for_each(|subscript| self::subscript(subscript, visitor));
        }
    }
}

fn subscript(subscript: &mut Subscript, visitor: &mut dyn VisitorMut) {
    match subscript {
        Subscript::Index(index) => expr(index, visitor),
        Subscript::Slice { lower, upper, stride } => {
            exprs([lower, upper, stride].into_iter().filter_map(|bound| bound.as_deref_mut()), visitor);
        }
    }
}

fn function(call: &mut FunctionCall, visitor: &mut dyn VisitorMut) {
    for arg in &mut call.args {
        match arg {
            FunctionArg::Expr(value) | FunctionArg::Named { value, .. } => expr(value, visitor),
            FunctionArg::Wildcard(_) => {}
            FunctionArg::Query(inner) => query(inner, visitor),
        }
    }
    order(&mut call.order_by, visitor);
    order(&mut call.within_group, visitor);
    exprs(call.limit.iter_mut().chain(&mut call.filter), visitor);
    if let Some(Over::Spec(spec)) = &mut call.over {
        window(spec, visitor);
    }
}

fn window(spec: &mut WindowSpec, visitor: &mut dyn VisitorMut) {
    exprs(&mut spec.partition_by, visitor);
    order(&mut spec.order_by, visitor);
    if let Some(WindowFrame { start, end, .. }) = &mut spec.frame {
        for bound in std::iter::once(start).chain(end) {
            if let FrameBound::Preceding(Some(length)) | FrameBound::Following(Some(length)) = bound
                && let FrameOffset::Expr(value) = &mut **length
            {
                expr(value, visitor);
            }
        }
    }
}

fn special(call: &mut SpecialCall, visitor: &mut dyn VisitorMut) {
    match call {
        SpecialCall::Extract { operand, .. } | SpecialCall::Round { operand, .. } => expr(operand, visitor),
        SpecialCall::Position { part, operand } => exprs([part, operand], visitor),
        SpecialCall::Substring { operand, from, length } => {
            exprs(std::iter::once(operand).chain(from).chain(length), visitor);
        }
        SpecialCall::Overlay { operand, part, from, length } => {
            exprs([operand, part, from].into_iter().chain(length), visitor);
        }
        SpecialCall::Trim { chars, operand, .. } => exprs(chars.iter_mut().chain([operand]), visitor),
        SpecialCall::Keyword(_) => {}
    }
}
