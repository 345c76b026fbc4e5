//! The query of a materialized view: one SELECT … SAMPLE BY of one table, or of joins that keep the rows of the table.

use super::Bucketing;
use crate::binder::{is_immutable, sampling};
use crate::statement::Query;
use crate::{Error, Result, plan};
use datafusion::execution::context::SessionState;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{
    Alignment, AsofKind, Body, Expr, ExprKind, FillValue, Join, JoinKind, ObjectName, Relation, RelationKind, SampleBy,
    SpecialCall, TableRef,
};
use tidalite_types::TimeUnit;
use tidalite_types::schema::fold_name;

fn refused(why: &str) -> Error {
    Error::invalid(format!("the query of a materialized view {why}"))
}

/// Returns the table that a query samples, and the clause.
pub(super) fn sampled<'q>(state: &SessionState, query: &'q Query) -> Result<(String, &'q SampleBy)> {
    let tree = query.tree.as_deref().ok_or_else(|| Error::internal("the query of a view has no tree"))?;
    if tree.query.with.is_some() || tree.query.limit.is_some() {
        return Err(refused("is one SELECT, without WITH and LIMIT"));
    }
    let Body::Select(select) = &tree.query.body else { return Err(refused("is one SELECT … SAMPLE BY …")) };
    let Some(clause) = &select.sample_by else { return Err(refused("has to SAMPLE BY")) };
    let [from] = select.from.as_slice() else { return Err(refused("reads one table, or joins of it")) };
    let base = first_table(from)?;
    let mut facts = Facts { state, base: &base, mentions: 0, changing: None };
    walk::query(&tree.query, &mut facts);
    if facts.mentions != 1 {
        return Err(refused(&format!("may name its base \"{base}\" only once")));
    }
    if let Some(function) = facts.changing {
        return Err(refused(&format!("cannot use {function}(), which gives something else each time")));
    }
    Ok((base, clause))
}

fn last_part(name: &ObjectName) -> String {
    name.parts.last().map(|part| fold_name(&part.value)).unwrap_or_default()
}

/// Returns the table whose rows are sampled: the first one, of which joins lose and add none.
fn first_table(from: &TableRef) -> Result<String> {
    if !from.joins.iter().all(keeps_rows) {
        return Err(Error::invalid(
            "a materialized view joins by INNER, LEFT, CROSS, ASOF or LT JOIN, its base on the left",
        ));
    }
    let Relation { kind, timestamp, alias, .. } = &from.relation;
    match kind {
        RelationKind::Table { name }
            if timestamp.is_none() && alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
        {
            Ok(last_part(name))
        }
        RelationKind::Nested(inner) => first_table(inner),
        _ => Err(Error::invalid("a materialized view samples a table by its designated timestamp, not a sub-query")),
    }
}

fn keeps_rows(join: &Join) -> bool {
    match &join.kind {
        JoinKind::Inner | JoinKind::Left | JoinKind::Cross => true,
        JoinKind::Asof(by_time) => by_time.kind != AsofKind::Splice,
        _ => false,
    }
}

struct Facts<'b> {
    state: &'b SessionState,
    base: &'b str,
    /// How often the base is named.
    mentions: usize,
    /// The first function that does not always return the same value.
    changing: Option<String>,
}

impl Visitor for Facts<'_> {
    fn relation(&mut self, relation: &Relation) {
        if let RelationKind::Table { name } = &relation.kind {
            self.mentions += usize::from(last_part(name) == self.base);
        }
    }

    fn expr(&mut self, expr: &Expr) -> bool {
        let name = match &expr.kind {
            ExprKind::Function(call) => last_part(&call.name),
            ExprKind::Special(call) => match &**call {
                SpecialCall::Keyword(name) => fold_name(&name.value),
                _ => return true,
            },
            _ => return true,
        };
        if !is_immutable(self.state, &name) {
            self.changing.get_or_insert(name);
        }
        true
    }
}

/// Returns the buckets of a clause whose rows are groups of rows of their own times.
pub(super) fn bucketing(clause: &SampleBy, unit: TimeUnit) -> Result<Bucketing> {
    let is_first = matches!(clause.align, Some(Alignment::FirstObservation));
    if clause.from.is_some() || clause.to.is_some() || is_first {
        let message = "the SAMPLE BY of a materialized view is aligned to the calendar, without FROM and TO";
        return Err(Error::invalid(message));
    }
    let fills = clause.fill.iter().flat_map(|fill| &fill.values);
    if fills.clone().any(|fill| !matches!(fill, FillValue::None)) {
        let message = "the SAMPLE BY of a materialized view cannot FILL: fill when you select from it";
        return Err(Error::invalid(message));
    }
    let (stride, zone, offset) = sampling(clause)?;
    plan::fixed_buckets(&stride, zone.as_deref(), offset.as_deref(), unit).map(Bucketing::new)
}
