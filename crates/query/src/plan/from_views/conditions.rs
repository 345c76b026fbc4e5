//! What is asked of rows, asked of buckets and keys.

use super::definition::{Definition, column};
use crate::calendar::{Buckets, Stride, Zone};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use tidalite_types::TimeUnit;

/// Expressions over the base, over the rows of the view.
pub(super) struct OverView<'a>(&'a Definition);

impl<'a> OverView<'a> {
    pub fn new(definition: &'a Definition) -> OverView<'a> {
        OverView(definition)
    }

    /// `None` when rows of one bucket with the same keys may differ in it.
    pub fn expr(&self, expr: &Expr) -> Option<Expr> {
        let mut is_known = true;
        let done = expr.clone().transform_down(|e| {
            if let Some(known) = self.known(&e) {
                return Ok(Transformed::new(known, true, TreeNodeRecursion::Jump));
            }
            is_known &= !matches!(e, Expr::Column(_));
            Ok(Transformed::no(e))
        });
        done.ok().map(|done| done.data).filter(|_| is_known)
    }

    fn known(&self, expr: &Expr) -> Option<Expr> {
        let definition = self.0;
        if let Some((_, name)) = definition.keys.iter().find(|(key, _)| key == expr) {
            return Some(column(name));
        }
        if let Some(bound) = Bound::of(expr, &definition.time, definition.buckets.unit) {
            return bound.over(definition);
        }
        let buckets = definition.bucket_of(expr)?;
        if buckets == definition.buckets {
            return Some(definition.bucket_column());
        }
        if !definition.buckets.is_within(&buckets) {
            return None;
        }
        // The same bucket of the bucket's start.
        let time = Expr::Column(datafusion::common::Column::new_unqualified(&definition.time));
        let done = expr.clone().transform_up(|e| {
            Ok(if e == time { Transformed::yes(definition.bucket_column()) } else { Transformed::no(e) })
        });
        done.ok().map(|done| done.data)
    }
}

/// A comparison of the time with a constant, as one of two.
struct Bound {
    /// From the constant on, or before it.
    is_from: bool,
    ts: i64,
}

impl Bound {
    fn of(expr: &Expr, time: &str, unit: TimeUnit) -> Option<Bound> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
        let is_time = |e: &Expr| matches!(e, Expr::Column(column) if column.name == time);
        let (op, constant) = match (left.as_ref(), right.as_ref()) {
            (column, constant) if is_time(column) => (*op, constant),
            (constant, column) if is_time(column) => (op.swap()?, constant),
            _ => return None,
        };
        let ts = ticks(constant, unit)?;
        let (is_from, ts) = match op {
            Operator::GtEq => (true, ts),
            Operator::Gt => (true, ts.checked_add(1)?),
            Operator::Lt => (false, ts),
            Operator::LtEq => (false, ts.checked_add(1)?),
            _ => return None,
        };
        Some(Bound { is_from, ts })
    }

    /// The same of the bucket, when it is one of its bounds. Where clocks change, buckets may begin out of order.
    fn over(&self, definition: &Definition) -> Option<Expr> {
        let buckets = &definition.buckets;
        if !matches!(buckets.zone, Zone::Fixed(_)) || buckets.range(self.ts).0 != self.ts {
            return None;
        }
        let constant = Expr::Literal(crate::plan::intervals::scalar(self.ts, buckets.unit), None);
        let bucket = definition.bucket_column();
        Some(if self.is_from { bucket.gt_eq(constant) } else { bucket.lt(constant) })
    }
}

fn ticks(constant: &Expr, unit: TimeUnit) -> Option<i64> {
    let Expr::Literal(value, _) = constant else { return None };
    match (value, unit) {
        (ScalarValue::TimestampMillisecond(Some(ts), None), TimeUnit::Millis)
        | (ScalarValue::TimestampMicrosecond(Some(ts), None), TimeUnit::Micros)
        | (ScalarValue::TimestampNanosecond(Some(ts), None), TimeUnit::Nanos) => Some(*ts),
        _ => None,
    }
}

/// The times that conditions leave, from and to.
pub(super) fn asked_times(conditions: &[Expr], definition: &Definition) -> (i64, i64) {
    let bounds = conditions.iter().filter_map(|c| Bound::of(c, &definition.time, definition.buckets.unit));
    bounds.fold((i64::MIN, i64::MAX), |(lo, hi), bound| match bound.is_from {
        true => (lo.max(bound.ts), hi),
        false => (lo, hi.min(bound.ts)),
    })
}

/// What a condition leaves one value of.
pub(super) fn pinned(condition: &Expr) -> Option<&Expr> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (pinned, Expr::Literal(..)) | (Expr::Literal(..), pinned) => Some(pinned),
            _ => None,
        },
        Expr::IsNull(pinned) => Some(pinned),
        _ => None,
    }
}

/// The buckets that an expression makes of a column of times.
pub(super) fn buckets(expr: &Expr, time: &str, unit: TimeUnit) -> Option<Buckets> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let text = |n: usize| match call.args.get(n) {
        None => Some(None),
        Some(Expr::Literal(value, _)) if value.is_null() => Some(None),
        Some(Expr::Literal(value, _)) => value.try_as_str().flatten().map(Some),
        Some(_) => None,
    };
    if !matches!(call.args.get(1), Some(Expr::Column(column)) if column.name == time) {
        return None;
    }
    let first = text(0)??;
    let plain = Buckets { stride: Stride::parse("1s")?, zone: Zone::UTC, offset_s: 0, origin: None, unit };
    match call.name() {
        "timestamp_floor" => Some(Buckets {
            stride: Stride::parse(first).filter(|s| s.count > 0)?,
            zone: text(4)?.map_or(Some(Zone::UTC), Zone::parse)?,
            offset_s: text(3)?.map_or(Some(0), |t| crate::calendar::zone::offset_seconds(t.trim()))?,
            origin: match call.args.get(2) {
                None => None,
                Some(Expr::Literal(value, _)) if value.is_null() => None,
                Some(origin) => Some(ticks(origin, unit)?),
            },
            ..plain
        }),
        "date_trunc" if call.args.len() == 2 => {
            let stride = match first.to_ascii_lowercase().as_str() {
                "second" => "1s",
                "minute" => "1m",
                "hour" => "1h",
                "day" => "1d",
                "week" => "1w",
                "month" => "1M",
                "quarter" => "3M",
                "year" => "1y",
                _ => return None,
            };
            Some(Buckets { stride: Stride::parse(stride)?, ..plain })
        }
        _ => None,
    }
}
