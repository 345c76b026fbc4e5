//! A walk over the relations and expressions of a query, with those of its sub-queries.

use super::{
    Alignment, Body, CteBody, Distinct, Expr, ExprKind, FillValue, FrameBound, FrameOffset, FunctionArg, FunctionCall,
    GroupBy, GroupItem, HorizonGrid, IsTest, JoinCondition, JoinKind, Limit, Offset, OrderBy, OrderItem, Over, Pivot,
    PivotValues, Projection, QuantifiedSet, Query, Relation, RelationKind, SampleBy, Select, SelectItem, SpecialCall,
    Subscript, TableRef, WildcardChange, WindowBound, WindowFrame, WindowSpec,
};

/// Receives the nodes of a tree, outer nodes first.
pub trait Visitor {
    /// Receives a relation of FROM.
    fn relation(&mut self, _relation: &Relation) {}

    /// Receives an expression; returns false to skip its operands.
    fn expr(&mut self, _expr: &Expr) -> bool {
        true
    }

    /// Receives an expression after its operands.
    fn leave_expr(&mut self, _expr: &Expr) {}

    /// Receives a query.
    fn query(&mut self, _query: &Query) {}

    /// Receives a query after its parts.
    fn leave_query(&mut self, _query: &Query) {}

    /// Receives a SELECT.
    fn select(&mut self, _select: &Select) {}

    /// Receives a SELECT after its clauses.
    fn leave_select(&mut self, _select: &Select) {}
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

/// Walks over a query. WITH queries that change rows are skipped.
pub fn query(query: &Query, visitor: &mut dyn Visitor) {
    visitor.query(query);
    for declaration in &query.declare {
        expr(&declaration.value, visitor);
    }
    for cte in query.with.iter().flat_map(|with| &with.ctes) {
        if let CteBody::Query(inner) = &cte.body {
            self::query(inner, visitor);
        }
    }
    body(&query.body, visitor);
    if let Some(OrderBy::Items(items)) = &query.order_by {
        order(items, visitor);
    }
    match query.limit.as_deref() {
        Some(Limit::Count { count, offset } | Limit::Fetch { count, offset, .. }) => {
            exprs(count.iter().chain(offset), visitor);
        }
        Some(Limit::Range { lo, hi }) => exprs([lo, hi], visitor),
        None => {}
    }
    visitor.leave_query(query);
}

fn body(body: &Body, visitor: &mut dyn Visitor) {
    match body {
        Body::Select(inner) => select(inner, visitor),
        Body::Values(rows) => rows.iter().for_each(|row| exprs(row, visitor)),
        Body::Query(inner) => query(inner, visitor),
        Body::Set { first, rest } => {
            self::body(first, visitor);
            rest.iter().for_each(|term| self::body(&term.body, visitor));
        }
    }
}

fn select(select: &Select, visitor: &mut dyn Visitor) {
    visitor.select(select);
    if let Some(Distinct::On(keys)) = &select.distinct {
        exprs(keys, visitor);
    }
    select.from.iter().for_each(|table| table_ref(table, visitor));
    if let Projection::Items(items) = &select.projection {
        items.iter().for_each(|item| select_item(item, visitor));
    }
    exprs(&select.selection, visitor);
    if let Some(sample) = &select.sample_by {
        sample_by(sample, visitor);
    }
    if let Some(latest) = &select.latest_on {
        exprs(latest.timestamp.iter().chain(&latest.keys), visitor);
    }
    if let Some(GroupBy::Items(items)) = &select.group_by {
        items.iter().for_each(|item| group_item(item, visitor));
    }
    if let Some(clause) = &select.pivot {
        pivot(clause, visitor);
    }
    exprs(&select.having, visitor);
    select.windows.iter().for_each(|named| window(&named.spec, visitor));
    exprs(&select.qualify, visitor);
    visitor.leave_select(select);
}

fn select_item(item: &SelectItem, visitor: &mut dyn Visitor) {
    match item {
        SelectItem::Expr { expr: value, .. } => expr(value, visitor),
        SelectItem::Wildcard(wildcard) => {
            for change in &wildcard.changes {
                if let WildcardChange::Replace(items) = change {
                    exprs(items.iter().map(|(value, _)| value), visitor);
                }
            }
        }
    }
}

fn table_ref(table: &TableRef, visitor: &mut dyn Visitor) {
    relation(&table.relation, visitor);
    for join in &table.joins {
        match &join.kind {
            JoinKind::Window(window) => {
                for bound in [&window.lower, &window.upper] {
                    if let WindowBound::Preceding(length) | WindowBound::Following(length) = bound {
                        offset(length, visitor);
                    }
                }
            }
            JoinKind::Horizon(horizon) => match &horizon.grid {
                Some(HorizonGrid::Range { from, to, step }) => {
                    [from, to, step].into_iter().for_each(|length| offset(length, visitor));
                }
                Some(HorizonGrid::List(lengths)) => lengths.iter().for_each(|length| offset(length, visitor)),
                None => {}
            },
            _ => {}
        }
        relation(&join.relation, visitor);
        if let JoinCondition::On(condition) = &join.condition {
            expr(condition, visitor);
        }
    }
}

fn relation(relation: &Relation, visitor: &mut dyn Visitor) {
    visitor.relation(relation);
    match &relation.kind {
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
            exprs(unpivot.columns.iter().map(|column| &column.expr), visitor);
        }
    }
}

fn pivot(pivot: &Pivot, visitor: &mut dyn Visitor) {
    exprs(pivot.aggregates.iter().map(|value| &value.expr), visitor);
    for column in &pivot.columns {
        expr(&column.column, visitor);
        match &column.values {
            PivotValues::All => {}
            PivotValues::List(values) => exprs(values.iter().map(|value| &value.expr), visitor),
            PivotValues::Query(inner) => query(inner, visitor),
        }
    }
    exprs(pivot.group_by.iter().flatten(), visitor);
}

fn sample_by(sample: &SampleBy, visitor: &mut dyn Visitor) {
    offset(&sample.stride, visitor);
    exprs(sample.from.iter().chain(&sample.to), visitor);
    for value in sample.fill.iter().flat_map(|fill| &fill.values) {
        if let FillValue::Constant(value) = value {
            expr(value, visitor);
        }
    }
    if let Some(Alignment::Calendar { zone, offset }) = &sample.align {
        exprs(zone.iter().chain(offset), visitor);
    }
}

fn offset(offset: &Offset, visitor: &mut dyn Visitor) {
    if let Offset::Expr { expr: value, .. } = offset {
        expr(value, visitor);
    }
}

fn group_item(item: &GroupItem, visitor: &mut dyn Visitor) {
    match item {
        GroupItem::Expr(key) => expr(key, visitor),
        GroupItem::Empty => {}
        GroupItem::Rollup(sets) | GroupItem::Cube(sets) => sets.iter().for_each(|set| exprs(set, visitor)),
        GroupItem::Sets(items) => items.iter().for_each(|item| group_item(item, visitor)),
        GroupItem::Set(keys) => exprs(keys, visitor),
    }
}

fn order(items: &[OrderItem], visitor: &mut dyn Visitor) {
    exprs(items.iter().map(|item| &item.expr), visitor);
}

fn exprs<'a>(list: impl IntoIterator<Item = &'a Expr>, visitor: &mut dyn Visitor) {
    list.into_iter().for_each(|value| expr(value, visitor));
}

/// Walks over an expression.
pub fn expr(value: &Expr, visitor: &mut dyn Visitor) {
    if visitor.expr(value) {
        operands(value, visitor);
    }
    visitor.leave_expr(value);
}

fn operands(value: &Expr, visitor: &mut dyn Visitor) {
    match &value.kind {
        ExprKind::Column(_)
        | ExprKind::Literal(_)
        | ExprKind::Parameter(_)
        | ExprKind::Variable(_)
        | ExprKind::Typed { .. }
        | ExprKind::Default => {}
        ExprKind::Interval(interval) => expr(&interval.value, visitor),
        ExprKind::Unary { operand, .. }
        | ExprKind::Cast { operand, .. }
        | ExprKind::Collate { operand, .. }
        | ExprKind::Field { operand, .. } => expr(operand, visitor),
        ExprKind::Binary { left, right, .. } => exprs([&**left, &**right], visitor),
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Array(list) | ExprKind::Row(list) => {
            exprs(list, visitor);
        }
        ExprKind::Between { operand, low, high, .. } => exprs([&**operand, &**low, &**high], visitor),
        ExprKind::InList { operand, list, .. } => exprs(std::iter::once(&**operand).chain(list), visitor),
        ExprKind::InValue { operand, set, .. } => exprs([&**operand, &**set], visitor),
        ExprKind::InQuery { operand, query: inner, .. } => {
            expr(operand, visitor);
            query(inner, visitor);
        }
        ExprKind::Like { operand, pattern, escape, .. } => {
            exprs([&**operand, &**pattern].into_iter().chain(escape.as_deref()), visitor);
        }
        ExprKind::Is { operand, test, .. } => {
            expr(operand, visitor);
            if let IsTest::DistinctFrom(other) = test {
                expr(other, visitor);
            }
        }
        ExprKind::Quantified { left, set, .. } => {
            expr(left, visitor);
            match &**set {
                QuantifiedSet::Query(inner) => query(inner, visitor),
                QuantifiedSet::Values(list) => exprs(list, visitor),
            }
        }
        ExprKind::Case { operand, branches, otherwise } => {
            exprs(operand.as_deref(), visitor);
            exprs(branches.iter().flat_map(|branch| [&branch.when, &branch.then]), visitor);
            exprs(otherwise.as_deref(), visitor);
        }
        ExprKind::AtTimeZone { operand, zone } => {
            exprs(std::iter::once(&**operand).chain(zone.as_deref()), visitor);
        }
        ExprKind::Function(call) => function(call, visitor),
        ExprKind::Special(call) => special(call, visitor),
        ExprKind::Exists(inner) | ExprKind::Subquery(inner) | ExprKind::ArrayQuery(inner) => query(inner, visitor),
        ExprKind::Dictionary { entries, .. } => {
            exprs(entries.iter().flat_map(|(key, value)| [key, value]), visitor);
        }
        ExprKind::Subscript { operand, subscripts } => {
            expr(operand, visitor);
            subscripts.iter().for_each(|subscript| self::subscript(subscript, visitor));
        }
    }
}

fn subscript(subscript: &Subscript, visitor: &mut dyn Visitor) {
    match subscript {
        Subscript::Index(index) => expr(index, visitor),
        Subscript::Slice { lower, upper, stride } => {
            exprs([lower, upper, stride].into_iter().filter_map(|bound| bound.as_deref()), visitor);
        }
    }
}

fn function(call: &FunctionCall, visitor: &mut dyn Visitor) {
    for arg in &call.args {
        match arg {
            FunctionArg::Expr(value) | FunctionArg::Named { value, .. } => expr(value, visitor),
            FunctionArg::Wildcard(_) => {}
            FunctionArg::Query(inner) => query(inner, visitor),
        }
    }
    order(&call.order_by, visitor);
    order(&call.within_group, visitor);
    exprs(call.limit.iter().chain(&call.filter), visitor);
    if let Some(Over::Spec(spec)) = &call.over {
        window(spec, visitor);
    }
}

fn window(spec: &WindowSpec, visitor: &mut dyn Visitor) {
    exprs(&spec.partition_by, visitor);
    order(&spec.order_by, visitor);
    if let Some(WindowFrame { start, end, .. }) = &spec.frame {
        for bound in std::iter::once(start).chain(end) {
            if let FrameBound::Preceding(Some(length)) | FrameBound::Following(Some(length)) = bound
                && let FrameOffset::Expr(value) = &**length
            {
                expr(value, visitor);
            }
        }
    }
}

fn special(call: &SpecialCall, visitor: &mut dyn Visitor) {
    match call {
        SpecialCall::Extract { operand, .. } | SpecialCall::Round { operand, .. } => expr(operand, visitor),
        SpecialCall::Position { part, operand } => exprs([part, operand], visitor),
        SpecialCall::Substring { operand, from, length } => {
            exprs(std::iter::once(operand).chain(from).chain(length), visitor);
        }
        SpecialCall::Overlay { operand, part, from, length } => {
            exprs([operand, part, from].into_iter().chain(length), visitor);
        }
        SpecialCall::Trim { chars, operand, .. } => exprs(chars.iter().chain([operand]), visitor),
        SpecialCall::Keyword(_) => {}
    }
}
