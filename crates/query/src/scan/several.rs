//! Conditions that the scan answers itself and that no [`Predicate`] covers: on several columns, and on what is computed
//! of columns, exactly as SQL means them.
//!
//! In: a filter. Out: what is asked of each row, in plain values: predicates on one column, comparisons of numbers, and
//! AND, OR and NOT of these. Whoever asks wants the rows of which a filter is true, so that unknown and false are one in
//! the end: NOT is carried down to the comparisons, of which the opposite is asked.
//!
//! A condition is understood completely or not at all. [`numbers`] says of which expressions that is so, [`rows`] asks
//! pieces of a table, [`joined`] decides which comparisons are computed together, [`tier`] which become machine code.

pub(super) mod bounds;
mod joined;
mod numbers;
mod rows;
mod tier;

pub(super) use joined::{Joined, joined};
pub(super) use rows::Computed;
pub(crate) use tier::Compiles;

use super::predicate::{Predicate, shown};
use crate::functions::{checked, floats};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use numbers::{Number, comparable};
use tidalite_kernels::program::Comparison;
use tidalite_storage::Zone;
use tidalite_types::{ColumnId, TableSchema};

/// More conditions on one column, or steps of calculation, in one filter are left to others.
const PARTS_MAX: usize = 64;
/// A longer expression is not looked into.
const NODES_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Several {
    pub asked: Asked,
    /// As the query has it, for EXPLAIN.
    pub text: String,
}

/// What is true of a row or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    /// Of one column.
    One(Predicate),
    /// Both are there and compare so.
    Compared(Comparison, Number, Number),
    /// Whether a number is there.
    Present(Number),
    All(Vec<Asked>),
    Any(Vec<Asked>),
    Not(Box<Asked>),
}

impl Several {
    /// What a filter says; `None` when it is not understood.
    pub fn of(expr: &Expr, schema: &TableSchema) -> Option<Several> {
        if is_long(expr) {
            return None;
        }
        let asked = Asked::of(expr, true, schema).filter(|asked| asked.parts() <= PARTS_MAX)?;
        let text = shown(&plain(expr));
        Some(Several { asked, text })
    }

    /// Whether it is answered on encoded blocks alone.
    pub fn is_encoded(&self) -> bool {
        self.asked.is_encoded()
    }
}

impl Asked {
    /// The rows of which an expression is true, or (`is`) false.
    fn of(expr: &Expr, is: bool, schema: &TableSchema) -> Option<Asked> {
        let of = |expr: &Expr, is: bool| Asked::of(expr, is, schema);
        let not = |asked: Asked| Asked::Not(Box::new(asked));
        let unless = |is: bool, asked: Asked| if is { asked } else { not(asked) };
        let known = if is { Predicate::of(expr, schema) } else { Predicate::of(&!expr.clone(), schema) };
        if let Some(predicate) = known {
            return Some(Asked::One(predicate));
        }
        Some(match expr {
            Expr::Alias(alias) => of(&alias.expr, is)?,
            Expr::Literal(ScalarValue::Boolean(value), _) if *value == Some(is) => Asked::All(Vec::new()),
            Expr::Literal(ScalarValue::Boolean(_) | ScalarValue::Null, _) => Asked::Any(Vec::new()),
            Expr::Not(inner) => of(inner, !is)?,
            Expr::IsTrue(inner) => unless(is, of(inner, true)?),
            Expr::IsNotTrue(inner) => unless(!is, of(inner, true)?),
            Expr::IsFalse(inner) => unless(is, of(inner, false)?),
            Expr::IsNotFalse(inner) => unless(!is, of(inner, false)?),
            Expr::IsUnknown(inner) => unless(!is, Asked::Any(vec![of(inner, true)?, of(inner, false)?])),
            Expr::IsNotUnknown(inner) => unless(is, Asked::Any(vec![of(inner, true)?, of(inner, false)?])),
            Expr::IsNull(inner) => unless(!is, Asked::there(inner, schema)?),
            Expr::IsNotNull(inner) => unless(is, Asked::there(inner, schema)?),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let both = vec![of(left, is)?, of(right, is)?];
                if (*op == Operator::And) == is { Asked::All(flat(both, true)) } else { Asked::Any(flat(both, false)) }
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => Asked::comparison(left, *op, right, is, schema)?,
            Expr::Between(Between { expr, negated, low, high }) => {
                let (from, to) = (Operator::GtEq, Operator::LtEq);
                let is = is != *negated;
                let both = vec![
                    Asked::comparison(expr, from, low, is, schema)?,
                    Asked::comparison(expr, to, high, is, schema)?,
                ];
                if is { Asked::All(both) } else { Asked::Any(both) }
            }
            Expr::InList(InList { expr, list, negated }) if list.len() <= PARTS_MAX => {
                let is = is != *negated;
                let equal = list.iter().map(|item| Asked::comparison(expr, Operator::Eq, item, is, schema));
                let each = equal.collect::<Option<Vec<_>>>()?;
                if is { Asked::Any(each) } else { Asked::All(each) }
            }
            _ => return None,
        })
    }

    fn comparison(left: &Expr, op: Operator, right: &Expr, is: bool, schema: &TableSchema) -> Option<Asked> {
        let (Some(a), Some(b)) = (Number::of(left, schema), Number::of(right, schema)) else {
            return Asked::of_truths(left, op, right, is, schema);
        };
        let (a, b) = comparable(a, b)?;
        let comparison = match op {
            Operator::Eq | Operator::IsNotDistinctFrom => Comparison::Equal,
            Operator::NotEq | Operator::IsDistinctFrom => Comparison::NotEqual,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::AtMost,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::AtLeast,
            _ => return None,
        };
        let is_same = match op {
            Operator::IsNotDistinctFrom => is,
            Operator::IsDistinctFrom => !is,
            _ => return Some(Asked::Compared(if is { comparison } else { comparison.opposite() }, a, b)),
        };
        let is_there = |number: &Number| Asked::Present(number.clone());
        let none = Asked::Not(Box::new(Asked::Any(vec![is_there(&a), is_there(&b)])));
        let same = Asked::Any(vec![Asked::Compared(Comparison::Equal, a, b), none]);
        Some(if is_same { same } else { Asked::Not(Box::new(same)) })
    }

    /// Two conditions compared.
    fn of_truths(left: &Expr, op: Operator, right: &Expr, is: bool, schema: &TableSchema) -> Option<Asked> {
        let is_same = match op {
            Operator::Eq => is,
            Operator::NotEq => !is,
            _ => return None,
        };
        let each = |l: bool, r: bool| Some(Asked::All(vec![Asked::of(left, l, schema)?, Asked::of(right, r, schema)?]));
        Some(Asked::Any(vec![each(true, is_same)?, each(false, !is_same)?]))
    }

    /// Whether an expression has a value.
    fn there(expr: &Expr, schema: &TableSchema) -> Option<Asked> {
        match Number::of(expr, schema) {
            Some(of) => Some(Asked::Present(of.number())),
            None => Some(Asked::Any(vec![Asked::of(expr, true, schema)?, Asked::of(expr, false, schema)?])),
        }
    }

    fn parts(&self) -> usize {
        match self {
            Asked::One(_) => 1,
            Asked::Compared(_, a, b) => a.steps() + b.steps() + 1,
            Asked::Present(a) => a.steps(),
            Asked::All(list) | Asked::Any(list) => list.iter().map(Asked::parts).sum(),
            Asked::Not(inner) => inner.parts(),
        }
    }

    fn is_encoded(&self) -> bool {
        match self {
            Asked::One(_) => true,
            Asked::Compared(..) | Asked::Present(_) => false,
            Asked::All(list) | Asked::Any(list) => list.iter().all(Asked::is_encoded),
            Asked::Not(inner) => inner.is_encoded(),
        }
    }

    /// Whether rows of a block can satisfy it. `zone` gives that of a column, `None` when every row is NULL there.
    pub fn may_match<E>(&self, zone: &impl Fn(ColumnId) -> Result<Option<Zone>, E>, rows: usize) -> Result<bool, E> {
        let each = |list: &[Asked], ends: bool| {
            for asked in list {
                if asked.may_match(zone, rows)? == ends {
                    return Ok(ends);
                }
            }
            Ok(!ends)
        };
        match self {
            Asked::One(predicate) => Ok(predicate.may_match(zone(predicate.column)?.as_ref(), rows)),
            Asked::Compared(comparison, a, b) => bounds::may_compare(*comparison, a, b, zone, rows),
            Asked::All(list) => each(list, false),
            Asked::Any(list) => each(list, true),
            Asked::Present(_) | Asked::Not(_) => Ok(true),
        }
    }

    /// Whether rows with designated timestamps in a range can satisfy it.
    pub fn may_match_times(&self, designated: Option<ColumnId>, range: (i64, i64)) -> bool {
        match self {
            Asked::One(predicate) => {
                Some(predicate.column) != designated || predicate.may_match_times(range.0, range.1)
            }
            Asked::All(list) => list.iter().all(|asked| asked.may_match_times(designated, range)),
            Asked::Any(list) => list.iter().any(|asked| asked.may_match_times(designated, range)),
            Asked::Compared(..) | Asked::Present(_) | Asked::Not(_) => true,
        }
    }
}

fn is_long(expr: &Expr) -> bool {
    let mut nodes = 0;
    let walked = expr.apply(|_| {
        nodes += 1;
        Ok(if nodes > NODES_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_err() || nodes > NODES_MAX
}

/// Without lists in lists of the same kind.
fn flat(list: Vec<Asked>, is_all: bool) -> Vec<Asked> {
    let inner = |asked: Asked| match asked {
        Asked::All(list) if is_all => list,
        Asked::Any(list) if !is_all => list,
        other => vec![other],
    };
    list.into_iter().flat_map(inner).collect()
}

/// Without what only makes NaNs alike, which all comparisons here hold for equal.
fn plain(expr: &Expr) -> Expr {
    let done = expr.clone().transform_up(|e| match e {
        Expr::ScalarFunction(function) if is_of_nans(&function) => {
            Ok(Transformed::yes(function.args.into_iter().next().unwrap_or_default()))
        }
        Expr::ScalarFunction(function) => Ok(match checked::operands(&function) {
            Some((left, op, right)) => {
                let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            None => Transformed::no(Expr::ScalarFunction(function)),
        }),
        other => Ok(Transformed::no(other)),
    });
    done.map_or_else(|_| expr.clone(), |done| done.data)
}

fn is_of_nans(function: &ScalarFunction) -> bool {
    matches!(function.name(), floats::ONE_NAN | floats::KEY) && function.args.len() == 1
}

#[cfg(test)]
mod tests;
