//! ASOF, LT and SPLICE JOIN: rows of two tables by time.
//!
//! ASOF gives each left row the latest right row of its key that is not later, LT the latest that is earlier; left rows
//! without one keep NULLs. SPLICE also gives each right row the latest left row. The node says what DataFusion's own ASOF
//! join of later releases says: two inputs, pairs of keys, one comparison of times.

use super::relations::{left_of, time_of};
use super::time_order::scans_in_time_order;
use crate::calendar::Stride;
use crate::dialect::time_join as written_join;
use crate::{Error, Result, door};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, DFSchemaRef, ExprSchema, Result as DFResult, ScalarValue, TableReference};
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Extension, Filter, LogicalPlan, LogicalPlanBuilder, Operator, UserDefinedLogicalNodeCore, when,
};
use datafusion::sql::sqlparser::ast::{JoinConstraint, JoinOperator, TableWithJoins};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Asof,
    Lt,
    Splice,
}

/// What the operator has to know besides its columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeJoinSpec {
    pub kind: Kind,
    /// How much older the right row may be.
    pub tolerance: Option<Stride>,
}

/// The columns' places in the two inputs.
#[derive(Clone, Debug)]
pub(crate) struct TimeJoinColumns {
    pub times: (usize, usize),
    pub keys: Vec<(usize, usize)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TimeJoinNode {
    left: LogicalPlan,
    right: LogicalPlan,
    times: (Column, Column),
    keys: Vec<(Column, Column)>,
    pub spec: TimeJoinSpec,
    schema: DFSchemaRef,
}

pub(super) fn plan(mut joins: TableWithJoins, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let Some(join) = joins.joins.pop() else { return Err(Error::internal("a join by time without its right side")) };
    let JoinOperator::AsOf { match_condition, constraint } = join.join_operator else {
        return Err(Error::internal("a join by time of another kind"));
    };
    let Some((kind, tolerance)) = written_join(&match_condition) else {
        return Err(Error::invalid("ASOF JOIN … MATCH_CONDITION is not supported")
            .with_hint("times are compared by themselves: t ASOF JOIN u ON (key)"));
    };
    let kind = match kind.as_str() {
        "lt" => Kind::Lt,
        "splice" => Kind::Splice,
        _ => Kind::Asof,
    };
    let left = left_of(joins, context)?;
    let right = context.plan(join.relation)?;
    let join = TimeJoin::try_new(left, right, kind, &tolerance)?;
    let keys = keys(constraint, &join.left, &join.right, &kind.name(), context)?;
    join.on(keys)
}

impl Kind {
    /// Returns the name of the join in SQL.
    pub(crate) fn name(self) -> String {
        format!("{self:?} JOIN").to_uppercase()
    }
}

/// A join by time whose keys are not known yet.
pub(crate) struct TimeJoin {
    pub left: LogicalPlan,
    pub right: LogicalPlan,
    times: (Column, Column),
    spec: TimeJoinSpec,
}

impl TimeJoin {
    /// `tolerance` is empty if there is none.
    pub fn try_new(left: LogicalPlan, right: LogicalPlan, kind: Kind, tolerance: &str) -> Result<TimeJoin> {
        let spec = TimeJoinSpec { kind, tolerance: tolerance_of(tolerance, kind)? };
        let name = kind.name();
        let of_left = time_of(&left, &format!("the left side of {name}"))?;
        let of_right = time_of(&right, &format!("the right side of {name}"))?;
        Ok(TimeJoin { left, right, times: (of_left, of_right), spec })
    }

    /// Returns an ASOF JOIN by a column of the left side.
    pub fn by(left: LogicalPlan, right: LogicalPlan, of_left: Column, name: &str) -> Result<TimeJoin> {
        let of_right = time_of(&right, &format!("the right side of {name}"))?;
        let spec = TimeJoinSpec { kind: Kind::Asof, tolerance: None };
        Ok(TimeJoin { left, right, times: (of_left, of_right), spec })
    }

    /// Returns the time of the right rows, which is NULL where a left row has none.
    pub fn right_time(&self) -> Column {
        self.times.1.clone()
    }

    /// Returns the plan of the join.
    pub fn on(self, keys: Keys) -> Result<LogicalPlan> {
        let Keys { equal, equal_or_null, of_right } = keys;
        let right = filtered(self.right, of_right)?;
        let columns: Vec<_> = self.left.schema().columns().into_iter().chain(right.schema().columns()).collect();
        let (left, left_keys) = with_null_keys(self.left, equal_or_null.iter().map(|(l, _)| l), "left")?;
        let (right, right_keys) = with_null_keys(right, equal_or_null.iter().map(|(_, r)| r), "right")?;
        let keys = equal.into_iter().chain(left_keys.into_iter().zip(right_keys)).collect();
        let (left, right) = (scans_in_time_order(left)?, scans_in_time_order(right)?);
        let node = TimeJoinNode::new(left, right, self.times, keys, self.spec)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        if equal_or_null.is_empty() {
            return Ok(plan);
        }
        Ok(LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()?)
    }
}

/// Adds two columns for each key that may be NULL: whether it is, and its value or one that stands for NULL. Rows whose
/// keys are equal or both NULL agree in both.
fn with_null_keys<'k>(
    plan: LogicalPlan,
    keys: impl Iterator<Item = &'k Column>,
    side: &str,
) -> Result<(LogicalPlan, Vec<Column>)> {
    let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let mut added = Vec::new();
    for (number, key) in keys.enumerate() {
        let none = ScalarValue::new_default(plan.schema().field_from_column(key)?.data_type())?;
        let key = || Expr::Column(key.clone());
        let value = when(key().is_null(), Expr::Literal(none, None)).otherwise(key())?;
        for (kind, expr) in [("null", key().is_null()), ("value", value)] {
            let name = format!("__{side}_{kind}{number}");
            columns.push(expr.alias(&name));
            added.push(Column::new_unqualified(name));
        }
    }
    if added.is_empty() {
        return Ok((plan, added));
    }
    Ok((LogicalPlanBuilder::from(plan).project(columns)?.build()?, added))
}

fn tolerance_of(text: &str, kind: Kind) -> Result<Option<Stride>> {
    if text.is_empty() {
        return Ok(None);
    }
    if kind == Kind::Splice {
        return Err(Error::invalid("SPLICE JOIN has no TOLERANCE"));
    }
    match Stride::parse(text) {
        Some(stride) if stride.count >= 0 && stride.unit.nanos().is_some() => Ok(Some(stride)),
        _ => Err(Error::invalid(format!("invalid TOLERANCE {text}"))
            .with_hint("a tolerance is at least zero, in n, U, T, s, m, h, d or w")),
    }
}

/// Pairs of columns, one of each side.
pub(crate) type Pairs = Vec<(Column, Column)>;

/// The condition of a join by time or window.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Columns that are equal.
    pub equal: Pairs,
    /// Columns that are equal or both NULL: `IS NOT DISTINCT FROM`.
    pub equal_or_null: Pairs,
    /// A condition of the right rows alone.
    pub of_right: Option<Expr>,
}

impl Keys {
    /// Returns an error if a pair of columns cannot be compared.
    pub fn check(&self, left: &LogicalPlan, right: &LogicalPlan) -> Result<()> {
        let mut pairs = self.equal.iter().chain(&self.equal_or_null);
        pairs.try_for_each(|(l, r)| check_comparable((l, left), (r, right)))
    }

    /// Returns the equal columns and the condition of the right rows, for joins that find no NULL.
    pub fn without_null(self, name: &str) -> Result<(Pairs, Option<Expr>)> {
        if self.equal_or_null.is_empty() {
            return Ok((self.equal, self.of_right));
        }
        Err(Error::invalid(format!("{name} ON does not take IS NOT DISTINCT FROM")))
    }
}

/// Returns the keys that a condition has, which can be compared.
pub(super) fn keys(
    constraint: JoinConstraint,
    left: &LogicalPlan,
    right: &LogicalPlan,
    name: &str,
    context: &mut dyn RelationPlannerContext,
) -> Result<Keys> {
    let keys = written_keys(constraint, left, right, name, context)?;
    keys.check(left, right)?;
    Ok(keys)
}

/// Refuses two columns whose types have nothing in common.
pub(super) fn check_comparable((l, left): (&Column, &LogicalPlan), (r, right): (&Column, &LogicalPlan)) -> Result<()> {
    let types = (left.schema().field_from_column(l)?.data_type(), right.schema().field_from_column(r)?.data_type());
    match comparison_coercion(types.0, types.1) {
        Some(_) => Ok(()),
        None => Err(Error::invalid(format!("\"{}\" and \"{}\" cannot be compared", l.flat_name(), r.flat_name()))),
    }
}

pub(super) fn filtered(right: LogicalPlan, condition: Option<Expr>) -> Result<LogicalPlan> {
    Ok(match condition {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(right))?),
        None => right,
    })
}

fn written_keys(
    constraint: JoinConstraint,
    left: &LogicalPlan,
    right: &LogicalPlan,
    name: &str,
    context: &mut dyn RelationPlannerContext,
) -> Result<Keys> {
    match constraint {
        JoinConstraint::None => Ok(Keys::default()),
        JoinConstraint::Natural => Err(Error::invalid(format!("NATURAL {name} is not supported"))),
        JoinConstraint::Using(names) => names
            .iter()
            .map(|name| {
                let name = name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.clone()).unwrap_or_default();
                key_named(&name, left, right)
            })
            .collect::<Result<Pairs>>()
            .map(|equal| Keys { equal, ..Keys::default() }),
        JoinConstraint::On(condition) => {
            let both = left.schema().join(right.schema())?;
            let condition = context.sql_to_expr(condition, &both)?;
            keys_of_condition(&condition, left, right, name)
        }
    }
}

/// Returns the column with a name of each side.
pub(crate) fn key_named(name: &str, left: &LogicalPlan, right: &LogicalPlan) -> Result<(Column, Column)> {
    let find = |plan: &LogicalPlan| plan.schema().columns_with_unqualified_name(name).first().cloned();
    match (find(left), find(right)) {
        (Some(l), Some(r)) => Ok((l, r)),
        _ => {
            let mut error = Error::new(
                tidalite_types::ErrorKind::NotFound,
                format!("column \"{name}\" specified in ON clause does not exist on both sides"),
            );
            error.subject = Some(name.to_owned());
            Err(error)
        }
    }
}

/// Splits a condition into pairs of columns and the condition of the right rows alone.
pub(crate) fn keys_of_condition(condition: &Expr, left: &LogicalPlan, right: &LogicalPlan, name: &str) -> Result<Keys> {
    let refused = || {
        Error::invalid(format!("{name} ON takes equalities of columns of its two sides"))
            .with_hint("write ON (key) or ON (t.a = u.a AND t.b = u.b), and conditions of the right side alone")
    };
    let (mut keys, mut of_right) = (Keys::default(), Vec::new());
    for part in split_conjunction(condition) {
        if is_of_right(part, left, right) {
            of_right.push(part.clone());
            continue;
        }
        let (a, pairs, b) = match part {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => (left, &mut keys.equal, right),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsNotDistinctFrom, right }) => {
                (left, &mut keys.equal_or_null, right)
            }
            _ => return Err(refused()),
        };
        let on = |expr: &Expr, plan: &LogicalPlan| match normalize_col(expr.clone(), plan) {
            Ok(Expr::Column(column)) if plan.schema().maybe_index_of_column(&column).is_some() => Some(column),
            _ => None,
        };
        let pair = match (on(a, left), on(b, right)) {
            (Some(l), Some(r)) => Some((l, r)),
            _ => on(b, left).zip(on(a, right)),
        };
        pairs.push(pair.ok_or_else(refused)?);
    }
    keys.of_right = of_right.into_iter().reduce(Expr::and);
    Ok(keys)
}

fn is_of_right(part: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> bool {
    let refs = part.column_refs();
    let has_subquery =
        part.exists(|e| Ok(matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_))));
    let is_right = |column: &&Column| {
        right.schema().maybe_index_of_column(column).is_some() && left.schema().maybe_index_of_column(column).is_none()
    };
    !refs.is_empty() && refs.iter().all(is_right) && !has_subquery.unwrap_or(true)
}

impl TimeJoinNode {
    fn new(
        left: LogicalPlan,
        right: LogicalPlan,
        times: (Column, Column),
        keys: Vec<(Column, Column)>,
        spec: TimeJoinSpec,
    ) -> DFResult<TimeJoinNode> {
        let is_splice = spec.kind == Kind::Splice;
        let of = |schema: &DFSchema, is_optional: bool, keeps_time: bool| -> Vec<_> {
            let fields = schema.iter().map(|(qualifier, field)| {
                let field =
                    if is_optional { field.as_ref().clone().with_nullable(true) } else { field.as_ref().clone() };
                let field = if keeps_time { field } else { door::undesignated(field) };
                (qualifier.cloned(), Arc::new(field))
            });
            fields.collect::<Vec<(Option<TableReference>, _)>>()
        };
        let mut fields = of(left.schema(), is_splice, !is_splice);
        fields.extend(of(right.schema(), true, false));
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok(TimeJoinNode { left, right, times, keys, spec, schema })
    }

    pub(super) fn is_splice(&self) -> bool {
        self.spec.kind == Kind::Splice
    }

    /// The same over other rows, with more keys.
    pub(super) fn with_keys(
        &self,
        left: LogicalPlan,
        right: LogicalPlan,
        more: Vec<(Column, Column)>,
    ) -> DFResult<TimeJoinNode> {
        let keys = self.keys.iter().cloned().chain(more).collect();
        TimeJoinNode::new(left, right, self.times.clone(), keys, self.spec.clone())
    }

    pub fn indexes(&self, left: &DFSchema, right: &DFSchema) -> DFResult<TimeJoinColumns> {
        let keys = self.keys.iter().map(|(l, r)| Ok((left.index_of_column(l)?, right.index_of_column(r)?)));
        Ok(TimeJoinColumns {
            times: (left.index_of_column(&self.times.0)?, right.index_of_column(&self.times.1)?),
            keys: keys.collect::<DFResult<_>>()?,
        })
    }
}

/// What a filter says of the left side of an ASOF or LT JOIN alone is asked there, where it prunes: each left row makes
/// one row, whatever the others are.
pub(crate) fn filters_on_left(plan: LogicalPlan) -> Result<LogicalPlan> {
    use datafusion::common::tree_node::Transformed;
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(filter) = &node else { return Ok(Transformed::no(node)) };
        let LogicalPlan::Extension(extension) = filter.input.as_ref() else { return Ok(Transformed::no(node)) };
        let Some(join) = extension.node.as_any().downcast_ref::<TimeJoinNode>() else {
            return Ok(Transformed::no(node));
        };
        if join.spec.kind == Kind::Splice {
            return Ok(Transformed::no(node));
        }
        let is_of_left = |e: &&Expr| {
            let refs = e.column_refs();
            !refs.is_empty()
                && !e.is_volatile()
                && !e
                    .exists(|e| {
                        Ok(matches!(
                            e,
                            Expr::InSubquery(_)
                                | Expr::Exists(_)
                                | Expr::ScalarSubquery(_)
                                | Expr::SetComparison(_)
                                | Expr::OuterReferenceColumn(..)
                        ))
                    })
                    .unwrap_or(true)
                && refs.iter().all(|c| {
                    join.left.schema().maybe_index_of_column(c).is_some()
                        && join.right.schema().maybe_index_of_column(c).is_none()
                })
        };
        let (left, rest): (Vec<&Expr>, Vec<&Expr>) =
            split_conjunction(&filter.predicate).into_iter().partition(is_of_left);
        let Some(on_left) = left.into_iter().cloned().reduce(Expr::and) else { return Ok(Transformed::no(node)) };
        let filtered = LogicalPlan::Filter(Filter::try_new(on_left, Arc::new(join.left.clone()))?);
        let joined = TimeJoinNode { left: filtered, ..join.clone() };
        let joined = LogicalPlan::Extension(Extension { node: Arc::new(joined) });
        Ok(Transformed::yes(match rest.into_iter().cloned().reduce(Expr::and) {
            Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(joined))?),
            None => joined,
        }))
    })?;
    Ok(done.data)
}

impl fmt::Debug for TimeJoinNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for TimeJoinNode {
    fn partial_cmp(&self, _: &TimeJoinNode) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for TimeJoinNode {
    fn name(&self) -> &'static str {
        "TimeJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// Left and right in turns: the times, then each pair of keys.
    fn expressions(&self) -> Vec<Expr> {
        let pairs = std::iter::once(&self.times).chain(&self.keys);
        pairs.flat_map(|(l, r)| [Expr::Column(l.clone()), Expr::Column(r.clone())]).collect()
    }

    // Filters stay above: the optimizer would push them into both inputs. See `filters_on_left`.

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.keys.iter().map(|(l, r)| format!("{} = {}", l.flat_name(), r.flat_name())).collect();
        write!(f, "TimeJoin: kind={:?}, keys=[{}]", self.spec.kind, keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<TimeJoinNode> {
        let columns = super::columns_of(exprs)?;
        let mut pairs = columns.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let times = pairs.next().ok_or_else(|| Error::internal("a join by time without times"))?;
        let (right, left) = (inputs.pop(), inputs.pop());
        let (Some(left), Some(right)) = (left, right) else {
            return Err(Error::internal("a join by time without its inputs").into());
        };
        TimeJoinNode::new(left, right, times, pairs.collect(), self.spec.clone())
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = self.indexes(self.left.schema(), self.right.schema()).ok()?;
        let split = self.left.schema().fields().len();
        let mut left: Vec<usize> = output.iter().copied().filter(|i| *i < split).collect();
        let mut right: Vec<usize> = output.iter().filter(|i| **i >= split).map(|i| i - split).collect();
        left.push(columns.times.0);
        right.push(columns.times.1);
        Some(super::needed_of_both(left, right, columns.keys))
    }
}
