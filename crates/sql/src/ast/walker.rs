//! The walk over a query, for visitors that read nodes and for visitors that change nodes.

/// Defines a visitor trait, and the functions that walk over the relations and expressions of a query.
///
/// `$m` is `mut` for a visitor that changes nodes; `$iter` and `$as_deref` are the matching methods.
macro_rules! walker {
    ($(#[$doc:meta])* $visitor:ident, $iter:ident, $as_deref:ident $(, $m:tt)?) => {
        use $crate::ast::{
            Alignment, Body, CteBody, Distinct, Expr, ExprKind, FillValue, FrameBound, FrameOffset, FunctionArg,
            FunctionCall, GroupBy, GroupItem, HorizonGrid, IsTest, JoinCondition, JoinKind, Limit, Offset, OrderBy,
            OrderItem, Over, Pivot, PivotValues, Projection, QuantifiedSet, Query, Relation, RelationKind, SampleBy,
            Select, SelectItem, SpecialCall, Subscript, TableRef, WildcardChange, WindowBound, WindowFrame, WindowSpec,
        };

        $(#[$doc])*
        pub trait $visitor {
            /// Receives a query.
            fn query(&mut self, _query: &$($m)? Query) {}

            /// Receives a query after its parts.
            fn leave_query(&mut self, _query: &$($m)? Query) {}

            /// Receives a SELECT.
            fn select(&mut self, _select: &$($m)? Select) {}

            /// Receives a SELECT after its clauses.
            fn leave_select(&mut self, _select: &$($m)? Select) {}

            /// Receives a relation of FROM.
            fn relation(&mut self, _relation: &$($m)? Relation) {}

            /// Receives an expression; returns false to skip its operands.
            fn expr(&mut self, _expr: &$($m)? Expr) -> bool {
                true
            }

            /// Receives an expression after its operands.
            fn leave_expr(&mut self, _expr: &$($m)? Expr) {}
        }

        /// Walks over a query. WITH queries that change rows are skipped.
        pub fn query(query: &$($m)? Query, visitor: &mut dyn $visitor) {
            visitor.query(query);
            for declaration in &$($m)? query.declare {
                expr(&$($m)? declaration.value, visitor);
            }
            for cte in query.with.$iter().flat_map(|with| &$($m)? with.ctes) {
                if let CteBody::Query(inner) = &$($m)? cte.body {
                    self::query(inner, visitor);
                }
            }
            body(&$($m)? query.body, visitor);
            if let Some(OrderBy::Items(items)) = &$($m)? query.order_by {
                order(items, visitor);
            }
            match query.limit.$as_deref() {
                Some(Limit::Count { count, offset } | Limit::Fetch { count, offset, .. }) => {
                    exprs(count.$iter().chain(offset), visitor);
                }
                Some(Limit::Range { lo, hi }) => exprs([lo, hi], visitor),
                None => {}
            }
            visitor.leave_query(query);
        }

        fn body(body: &$($m)? Body, visitor: &mut dyn $visitor) {
            match body {
                Body::Select(inner) => select(inner, visitor),
                Body::Values(rows) => rows.$iter().for_each(|row| exprs(row, visitor)),
                Body::Query(inner) => query(inner, visitor),
                Body::Set { first, rest } => {
                    self::body(first, visitor);
                    rest.$iter().for_each(|term| self::body(&$($m)? term.body, visitor));
                }
            }
        }

        fn select(select: &$($m)? Select, visitor: &mut dyn $visitor) {
            visitor.select(select);
            if let Some(Distinct::On(keys)) = &$($m)? select.distinct {
                exprs(keys, visitor);
            }
            select.from.$iter().for_each(|table| table_ref(table, visitor));
            if let Projection::Items(items) = &$($m)? select.projection {
                items.$iter().for_each(|item| select_item(item, visitor));
            }
            exprs(&$($m)? select.selection, visitor);
            if let Some(sample) = &$($m)? select.sample_by {
                sample_by(sample, visitor);
            }
            if let Some(latest) = &$($m)? select.latest_on {
                exprs(latest.timestamp.$iter().chain(&$($m)? latest.keys), visitor);
            }
            if let Some(GroupBy::Items(items)) = &$($m)? select.group_by {
                items.$iter().for_each(|item| group_item(item, visitor));
            }
            if let Some(clause) = &$($m)? select.pivot {
                pivot(clause, visitor);
            }
            exprs(&$($m)? select.having, visitor);
            select.windows.$iter().for_each(|named| window(&$($m)? named.spec, visitor));
            exprs(&$($m)? select.qualify, visitor);
            visitor.leave_select(select);
        }

        fn select_item(item: &$($m)? SelectItem, visitor: &mut dyn $visitor) {
            match item {
                SelectItem::Expr { expr: value, .. } => expr(value, visitor),
                SelectItem::Wildcard(wildcard) => {
                    for change in &$($m)? wildcard.changes {
                        if let WildcardChange::Replace(items) = change {
                            exprs(items.$iter().map(|(value, _)| value), visitor);
                        }
                    }
                }
            }
        }

        fn table_ref(table: &$($m)? TableRef, visitor: &mut dyn $visitor) {
            relation(&$($m)? table.relation, visitor);
            for join in &$($m)? table.joins {
                match &$($m)? join.kind {
                    JoinKind::Window(window) => {
                        for bound in [&$($m)? window.lower, &$($m)? window.upper] {
                            if let WindowBound::Preceding(length) | WindowBound::Following(length) = bound {
                                offset(length, visitor);
                            }
                        }
                    }
                    JoinKind::Horizon(horizon) => match &$($m)? horizon.grid {
                        Some(HorizonGrid::Range { from, to, step }) => {
                            [from, to, step].into_iter().for_each(|length| offset(length, visitor));
                        }
                        Some(HorizonGrid::List(lengths)) => lengths.$iter().for_each(|length| offset(length, visitor)),
                        None => {}
                    },
                    _ => {}
                }
                relation(&$($m)? join.relation, visitor);
                if let JoinCondition::On(condition) = &$($m)? join.condition {
                    expr(condition, visitor);
                }
            }
        }

        fn relation(relation: &$($m)? Relation, visitor: &mut dyn $visitor) {
            visitor.relation(relation);
            match &$($m)? relation.kind {
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
                    exprs(unpivot.columns.$iter().map(|column| &$($m)? column.expr), visitor);
                }
            }
        }

        fn pivot(pivot: &$($m)? Pivot, visitor: &mut dyn $visitor) {
            exprs(pivot.aggregates.$iter().map(|value| &$($m)? value.expr), visitor);
            for column in &$($m)? pivot.columns {
                expr(&$($m)? column.column, visitor);
                match &$($m)? column.values {
                    PivotValues::All => {}
                    PivotValues::List(values) => exprs(values.$iter().map(|value| &$($m)? value.expr), visitor),
                    PivotValues::Query(inner) => query(inner, visitor),
                }
            }
            exprs(pivot.group_by.$iter().flatten(), visitor);
        }

        fn sample_by(sample: &$($m)? SampleBy, visitor: &mut dyn $visitor) {
            offset(&$($m)? sample.stride, visitor);
            exprs(sample.from.$iter().chain(&$($m)? sample.to), visitor);
            for value in sample.fill.$iter().flat_map(|fill| &$($m)? fill.values) {
                if let FillValue::Constant(value) = value {
                    expr(value, visitor);
                }
            }
            if let Some(Alignment::Calendar { zone, offset }) = &$($m)? sample.align {
                exprs(zone.$iter().chain(offset), visitor);
            }
        }

        fn offset(offset: &$($m)? Offset, visitor: &mut dyn $visitor) {
            if let Offset::Expr { expr: value, .. } = offset {
                expr(value, visitor);
            }
        }

        fn group_item(item: &$($m)? GroupItem, visitor: &mut dyn $visitor) {
            match item {
                GroupItem::Expr(key) => expr(key, visitor),
                GroupItem::Empty => {}
                GroupItem::Rollup(sets) | GroupItem::Cube(sets) => sets.$iter().for_each(|set| exprs(set, visitor)),
                GroupItem::Sets(items) => items.$iter().for_each(|item| group_item(item, visitor)),
                GroupItem::Set(keys) => exprs(keys, visitor),
            }
        }

        fn order(items: &$($m)? [OrderItem], visitor: &mut dyn $visitor) {
            exprs(items.$iter().map(|item| &$($m)? item.expr), visitor);
        }

        fn exprs<'a>(list: impl IntoIterator<Item = &'a $($m)? Expr>, visitor: &mut dyn $visitor) {
            list.into_iter().for_each(|value| expr(value, visitor));
        }

        /// Walks over an expression.
        pub fn expr(value: &$($m)? Expr, visitor: &mut dyn $visitor) {
            if visitor.expr(value) {
                operands(value, visitor);
            }
            visitor.leave_expr(value);
        }

        fn operands(value: &$($m)? Expr, visitor: &mut dyn $visitor) {
            match &$($m)? value.kind {
                ExprKind::Column(_)
                | ExprKind::Literal(_)
                | ExprKind::Parameter(_)
                | ExprKind::Variable(_)
                | ExprKind::Typed { .. }
                | ExprKind::Default => {}
                ExprKind::Interval(interval) => expr(&$($m)? interval.value, visitor),
                ExprKind::Unary { operand, .. }
                | ExprKind::Cast { operand, .. }
                | ExprKind::Collate { operand, .. }
                | ExprKind::Field { operand, .. } => expr(operand, visitor),
                ExprKind::Binary { left, right, .. } => exprs([&$($m)? **left, &$($m)? **right], visitor),
                ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Array(list) | ExprKind::Row(list) => {
                    exprs(list, visitor);
                }
                ExprKind::Between { operand, low, high, .. } => {
                    exprs([&$($m)? **operand, &$($m)? **low, &$($m)? **high], visitor);
                }
                ExprKind::InList { operand, list, .. } => {
                    exprs(std::iter::once(&$($m)? **operand).chain(list), visitor);
                }
                ExprKind::InValue { operand, set, .. } => exprs([&$($m)? **operand, &$($m)? **set], visitor),
                ExprKind::InQuery { operand, query: inner, .. } => {
                    expr(operand, visitor);
                    query(inner, visitor);
                }
                ExprKind::Like { operand, pattern, escape, .. } => {
                    exprs([&$($m)? **operand, &$($m)? **pattern].into_iter().chain(escape.$as_deref()), visitor);
                }
                ExprKind::Is { operand, test, .. } => {
                    expr(operand, visitor);
                    if let IsTest::DistinctFrom(other) = test {
                        expr(other, visitor);
                    }
                }
                ExprKind::Quantified { left, set, .. } => {
                    expr(left, visitor);
                    match &$($m)? **set {
                        QuantifiedSet::Query(inner) => query(inner, visitor),
                        QuantifiedSet::Values(list) => exprs(list, visitor),
                    }
                }
                ExprKind::Case { operand, branches, otherwise } => {
                    exprs(operand.$as_deref(), visitor);
                    exprs(branches.$iter().flat_map(|branch| [&$($m)? branch.when, &$($m)? branch.then]), visitor);
                    exprs(otherwise.$as_deref(), visitor);
                }
                ExprKind::AtTimeZone { operand, zone } => {
                    exprs(std::iter::once(&$($m)? **operand).chain(zone.$as_deref()), visitor);
                }
                ExprKind::Function(call) => function(call, visitor),
                ExprKind::Special(call) => special(call, visitor),
                ExprKind::Exists(inner) | ExprKind::Subquery(inner) | ExprKind::ArrayQuery(inner) => {
                    query(inner, visitor);
                }
                ExprKind::Dictionary { entries, .. } => {
                    exprs(entries.$iter().flat_map(|(key, value)| [key, value]), visitor);
                }
                ExprKind::Subscript { operand, subscripts } => {
                    expr(operand, visitor);
                    subscripts.$iter().for_each(|subscript| self::subscript(subscript, visitor));
                }
            }
        }

        fn subscript(subscript: &$($m)? Subscript, visitor: &mut dyn $visitor) {
            match subscript {
                Subscript::Index(index) => expr(index, visitor),
                Subscript::Slice { lower, upper, stride } => {
                    exprs([lower, upper, stride].into_iter().filter_map(|bound| bound.$as_deref()), visitor);
                }
            }
        }

        fn function(call: &$($m)? FunctionCall, visitor: &mut dyn $visitor) {
            for arg in &$($m)? call.args {
                match arg {
                    FunctionArg::Expr(value) | FunctionArg::Named { value, .. } => expr(value, visitor),
                    FunctionArg::Wildcard(_) => {}
                    FunctionArg::Query(inner) => query(inner, visitor),
                }
            }
            order(&$($m)? call.order_by, visitor);
            order(&$($m)? call.within_group, visitor);
            exprs(call.limit.$iter().chain(&$($m)? call.filter), visitor);
            if let Some(Over::Spec(spec)) = &$($m)? call.over {
                window(spec, visitor);
            }
        }

        fn window(spec: &$($m)? WindowSpec, visitor: &mut dyn $visitor) {
            exprs(&$($m)? spec.partition_by, visitor);
            order(&$($m)? spec.order_by, visitor);
            if let Some(WindowFrame { start, end, .. }) = &$($m)? spec.frame {
                for bound in std::iter::once(start).chain(end) {
                    if let FrameBound::Preceding(Some(length)) | FrameBound::Following(Some(length)) = bound
                        && let FrameOffset::Expr(value) = &$($m)? **length
                    {
                        expr(value, visitor);
                    }
                }
            }
        }

        fn special(call: &$($m)? SpecialCall, visitor: &mut dyn $visitor) {
            match call {
                SpecialCall::Extract { operand, .. } | SpecialCall::Round { operand, .. } => expr(operand, visitor),
                SpecialCall::Position { part, operand } => exprs([part, operand], visitor),
                SpecialCall::Substring { operand, from, length } => {
                    exprs(std::iter::once(operand).chain(from).chain(length), visitor);
                }
                SpecialCall::Overlay { operand, part, from, length } => {
                    exprs([operand, part, from].into_iter().chain(length), visitor);
                }
                SpecialCall::Trim { chars, operand, .. } => exprs(chars.$iter().chain([operand]), visitor),
                SpecialCall::Keyword(_) => {}
            }
        }
    };
}

pub(super) use walker;
