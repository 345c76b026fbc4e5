//! Comparisons of a column with constants, to tell blocks that cannot hold a wanted row from their zone maps.
//!
//! They only ever prune: the exact filter runs after the scan. What is not understood prunes nothing.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use tidalite_storage::{Bounds, Zone};
use tidalite_types::{ColumnId, ColumnSchema, ColumnType, TableSchema};

/// Values of an IN list that are compared one by one; a longer list is pruned by its smallest and greatest.
const IN_LIST_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Predicate {
    pub column: ColumnId,
    pub test: Test,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// At least one of the ranges, bounds included, holds the value.
    Ints(Vec<(i64, i64)>),
    /// The same of doubles; an upper NaN is above every number.
    Floats(Vec<(f64, f64)>),
    /// One of these strings; for symbols.
    Strings(Vec<String>),
    IsNull,
    IsNotNull,
}

impl Predicate {
    /// What a filter expression says of one column; `None` when it is of no use for pruning.
    pub fn of(expr: &Expr, schema: &TableSchema) -> Option<Predicate> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => comparison(left, *op, right, schema),
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let column = column(expr, schema)?;
                let test = Test::between(column.column_type, constant(low)?, constant(high)?)?;
                Some(Predicate { column: column.id, test })
            }
            Expr::InList(InList { expr, list, negated: false }) => {
                let column = column(expr, schema)?;
                let tests = list.iter().map(|e| Test::compared(column.column_type, Operator::Eq, constant(e)?));
                let test = tests.collect::<Option<Vec<_>>>()?.into_iter().reduce(Test::or)?;
                Some(Predicate { column: column.id, test: test.bounded() })
            }
            Expr::IsNull(expr) => Some(Predicate { column: column(expr, schema)?.id, test: Test::IsNull }),
            Expr::IsNotNull(expr) => Some(Predicate { column: column(expr, schema)?.id, test: Test::IsNotNull }),
            Expr::Alias(alias) => Predicate::of(&alias.expr, schema),
            _ => None,
        }
    }

    /// Whether rows of a block can satisfy it. `zone` is `None` when every row is NULL.
    pub fn may_match(&self, zone: Option<&Zone>, rows: usize) -> bool {
        let Some(zone) = zone else { return self.test == Test::IsNull };
        let all_null = zone.null_count as usize == rows;
        match (&self.test, zone.bounds) {
            (Test::IsNull, _) => zone.null_count > 0,
            _ if all_null => false,
            (Test::Ints(ranges), Bounds::Int(min, max)) => ranges.iter().any(|(lo, hi)| min <= *hi && *lo <= max),
            (Test::Floats(ranges), Bounds::Float(min, max)) => {
                ranges.iter().any(|(lo, hi)| at_most(min, *hi) && at_most(*lo, max))
            }
            _ => true,
        }
    }

    /// Whether rows with designated timestamps in `[min, max]` can satisfy it.
    pub fn may_match_times(&self, min: i64, max: i64) -> bool {
        self.may_match(Some(&Zone { null_count: 0, bounds: Bounds::Int(min, max) }), 1)
    }
}

/// PostgreSQL's order of doubles: NaN is equal to itself and above every number.
fn at_most(a: f64, b: f64) -> bool {
    b.is_nan() || a <= b
}

impl Test {
    fn compared(column_type: ColumnType, op: Operator, value: &ScalarValue) -> Option<Test> {
        if let Some(text) = string(value) {
            let is_symbol = column_type == ColumnType::Symbol && op == Operator::Eq;
            return is_symbol.then(|| Test::Strings(vec![text.to_owned()]));
        }
        if matches!(column_type, ColumnType::Float | ColumnType::Double) {
            let v = float(value)?;
            return Some(Test::Floats(vec![match op {
                Operator::Eq => (v, v),
                Operator::Lt | Operator::LtEq => (f64::NEG_INFINITY, v),
                Operator::Gt | Operator::GtEq => (v, f64::NAN),
                _ => return None,
            }]));
        }
        let v = integer(value, column_type)?;
        // An empty range for "less than the least".
        Some(Test::Ints(match op {
            Operator::Eq => vec![(v, v)],
            Operator::Lt => v.checked_sub(1).map(|hi| (i64::MIN, hi)).into_iter().collect(),
            Operator::LtEq => vec![(i64::MIN, v)],
            Operator::Gt => v.checked_add(1).map(|lo| (lo, i64::MAX)).into_iter().collect(),
            Operator::GtEq => vec![(v, i64::MAX)],
            _ => return None,
        }))
    }

    fn between(column_type: ColumnType, low: &ScalarValue, high: &ScalarValue) -> Option<Test> {
        if matches!(column_type, ColumnType::Float | ColumnType::Double) {
            return Some(Test::Floats(vec![(float(low)?, float(high)?)]));
        }
        Some(Test::Ints(vec![(integer(low, column_type)?, integer(high, column_type)?)]))
    }

    /// Either; mixed kinds do not occur, as both are of one column.
    fn or(self, other: Test) -> Test {
        match (self, other) {
            (Test::Ints(mut a), Test::Ints(b)) => {
                a.extend(b);
                Test::Ints(a)
            }
            (Test::Floats(mut a), Test::Floats(b)) => {
                a.extend(b);
                Test::Floats(a)
            }
            (Test::Strings(mut a), Test::Strings(b)) => {
                a.extend(b);
                Test::Strings(a)
            }
            (a, _) => a,
        }
    }

    fn bounded(self) -> Test {
        match self {
            Test::Ints(ranges) if ranges.len() > IN_LIST_MAX => {
                Test::Ints(ranges.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).into_iter().collect())
            }
            Test::Floats(ranges) if ranges.len() > IN_LIST_MAX => {
                let wider = |a: (f64, f64), b: (f64, f64)| {
                    (if at_most(a.0, b.0) { a.0 } else { b.0 }, if at_most(a.1, b.1) { b.1 } else { a.1 })
                };
                Test::Floats(ranges.into_iter().reduce(wider).into_iter().collect())
            }
            other => other,
        }
    }
}

fn comparison(left: &Expr, op: Operator, right: &Expr, schema: &TableSchema) -> Option<Predicate> {
    if op == Operator::Or {
        let (left, right) = (Predicate::of(left, schema)?, Predicate::of(right, schema)?);
        let mixed = std::mem::discriminant(&left.test) != std::mem::discriminant(&right.test);
        let combinable = left.column == right.column && !mixed && !matches!(left.test, Test::IsNull | Test::IsNotNull);
        return combinable.then(|| Predicate { column: left.column, test: left.test.or(right.test) });
    }
    let (column, op, value) = match (column(left, schema), constant(right)) {
        (Some(column), Some(value)) => (column, op, value),
        _ => (column(right, schema)?, op.swap()?, constant(left)?),
    };
    Some(Predicate { column: column.id, test: Test::compared(column.column_type, op, value)? })
}

fn column<'a>(expr: &Expr, schema: &'a TableSchema) -> Option<&'a ColumnSchema> {
    match expr {
        Expr::Column(column) => schema.column(&column.name),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        _ => None,
    }
}

fn string(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            Some(text)
        }
        _ => None,
    }
}

fn float(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float64(v) => *v,
        ScalarValue::Float32(v) => v.map(f64::from),
        _ => None,
    }
}

/// A constant as the integers that zone maps of the column's type hold.
fn integer(value: &ScalarValue, column_type: ColumnType) -> Option<i64> {
    match (column_type, value) {
        (ColumnType::Timestamp(tidalite_types::TimeUnit::Millis), ScalarValue::TimestampMillisecond(v, _))
        | (ColumnType::Timestamp(tidalite_types::TimeUnit::Micros), ScalarValue::TimestampMicrosecond(v, _))
        | (ColumnType::Timestamp(tidalite_types::TimeUnit::Nanos), ScalarValue::TimestampNanosecond(v, _)) => *v,
        (ColumnType::Date, ScalarValue::Date32(v)) => v.map(i64::from),
        (ColumnType::Decimal { scale, .. }, ScalarValue::Decimal128(v, _, s)) if i16::from(scale) == i16::from(*s) => {
            i64::try_from((*v)?).ok()
        }
        (ColumnType::Byte | ColumnType::Short | ColumnType::Int | ColumnType::Long | ColumnType::Ipv4, value) => {
            match value {
                ScalarValue::Int8(v) => v.map(i64::from),
                ScalarValue::Int16(v) => v.map(i64::from),
                ScalarValue::Int32(v) => v.map(i64::from),
                ScalarValue::Int64(v) => *v,
                ScalarValue::UInt32(v) => v.map(i64::from),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(test: Test, bounds: Bounds, null_count: u32) -> bool {
        Predicate { column: ColumnId(0), test }.may_match(Some(&Zone { null_count, bounds }), 10)
    }

    #[test]
    fn a_block_is_kept_when_a_value_between_its_bounds_would_match() {
        let bounds = Bounds::Int(10, 20);
        for (op, value, kept) in [
            (Operator::Eq, 10, true),
            (Operator::Eq, 21, false),
            (Operator::Lt, 10, false),
            (Operator::LtEq, 10, true),
            (Operator::Gt, 20, false),
            (Operator::GtEq, 20, true),
        ] {
            let test = Test::compared(ColumnType::Long, op, &ScalarValue::Int64(Some(value))).expect("understood");
            assert_eq!(matches(test, bounds, 0), kept, "{op} {value}");
        }
        let least =
            Test::compared(ColumnType::Long, Operator::Lt, &ScalarValue::Int64(Some(i64::MIN))).expect("understood");
        assert!(!matches(least, bounds, 0), "nothing is less than the least");
    }

    #[test]
    fn nan_is_the_greatest_double() {
        let with_nan = Bounds::Float(1.0, f64::NAN);
        let above = |v: f64| {
            Test::compared(ColumnType::Double, Operator::Gt, &ScalarValue::Float64(Some(v))).expect("understood")
        };
        let equal = |v: f64| {
            Test::compared(ColumnType::Double, Operator::Eq, &ScalarValue::Float64(Some(v))).expect("understood")
        };
        assert!(matches(above(1e300), with_nan, 0));
        assert!(!matches(above(2.0), Bounds::Float(1.0, 1.5), 0));
        assert!(matches(equal(f64::NAN), with_nan, 0));
        assert!(!matches(equal(f64::NAN), Bounds::Float(1.0, 2.0), 0));
        assert!(!matches(equal(0.5), with_nan, 0));
    }

    #[test]
    fn nulls_satisfy_only_is_null() {
        assert!(!matches(Test::Ints(vec![(i64::MIN, i64::MAX)]), Bounds::None, 10));
        assert!(matches(Test::Ints(vec![(i64::MIN, i64::MAX)]), Bounds::None, 9), "bounds not known");
        assert!(matches(Test::IsNull, Bounds::Int(1, 2), 1));
        assert!(!matches(Test::IsNull, Bounds::Int(1, 2), 0));
        assert!(!matches(Test::IsNotNull, Bounds::None, 10));
    }
}
