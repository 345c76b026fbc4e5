//! Conditions on one column that the scan answers itself, exactly as SQL means them.
//!
//! A condition is true for the values of a set and, for NULL, true, false or unknown. Everything that is understood
//! here is understood completely: no filter runs again after the scan. What is not stays with DataFusion.
//!
//! Floating point is compared as PostgreSQL does, which every filter here agrees with: NaN equals NaN, whatever its
//! sign, and is greater than every number, and −0 equals 0.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Like, Operator};
use tidalite_storage::{TextPattern, ValueSet, Zone};
use tidalite_types::{ColumnId, ColumnSchema, ColumnType, TableSchema, TimeUnit};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Predicate {
    pub column: ColumnId,
    /// The values it is true for. Those of symbols are texts.
    pub values: ValueSet,
    /// What it says of NULL; `None` for unknown, which is not true.
    pub null: Option<bool>,
    /// As the query has it, for EXPLAIN.
    pub text: String,
}

impl Predicate {
    /// What a filter expression says of one column; `None` when it is not understood.
    pub fn of(expr: &Expr, schema: &TableSchema) -> Option<Predicate> {
        let (column, condition) = Condition::of(expr, schema)?;
        let Condition { values, null } = condition;
        Some(Predicate { column, values, null, text: shown(expr) })
    }

    /// The same rows asked for with one predicate a column, where they can be combined.
    pub fn joined(predicates: impl Iterator<Item = Predicate>) -> Vec<Predicate> {
        let mut joined: Vec<Predicate> = Vec::new();
        for predicate in predicates {
            let same = joined.iter_mut().find(|known| known.column == predicate.column);
            match same.and_then(|known| Some((known.values.intersection(&predicate.values)?, known))) {
                Some((values, known)) => {
                    known.values = values;
                    known.null = both(known.null, predicate.null);
                    known.text = format!("{} AND {}", known.text, predicate.text);
                }
                None => joined.push(predicate),
            }
        }
        joined
    }

    pub fn is_true_of_null(&self) -> bool {
        self.null == Some(true)
    }

    /// Whether rows of a block can satisfy it. `zone` is `None` when every row is NULL.
    pub fn may_match(&self, zone: Option<&Zone>, rows: usize) -> bool {
        let Some(zone) = zone else { return self.is_true_of_null() };
        let null_count = zone.null_count as usize;
        let has_values = null_count < rows && self.values.decide(zone.bounds) != Some(false);
        has_values || null_count > 0 && self.is_true_of_null()
    }

    /// Whether rows with designated timestamps in `[min, max]` can satisfy it.
    pub fn may_match_times(&self, min: i64, max: i64) -> bool {
        self.may_match(Some(&Zone { null_count: 0, bounds: tidalite_storage::Bounds::Int(min, max) }), 1)
    }
}

/// As EXPLAIN shows it among others that hold, too.
pub(super) fn shown(expr: &Expr) -> String {
    let shown = with_times(expr);
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => format!("({})", shown.human_display()),
        _ => shown.human_display().to_string(),
    }
}

/// With timestamps as they are written.
fn with_times(expr: &Expr) -> Expr {
    let shown = expr.clone().transform(|e| {
        let text = match &e {
            Expr::Literal(
                value @ (ScalarValue::TimestampMillisecond(Some(_), _)
                | ScalarValue::TimestampMicrosecond(Some(_), _)
                | ScalarValue::TimestampNanosecond(Some(_), _)),
                _,
            ) => value.cast_to(&DataType::Utf8).ok(),
            _ => None,
        };
        Ok(match text {
            Some(text) => Transformed::yes(Expr::Literal(text, None)),
            None => Transformed::no(e),
        })
    });
    shown.map_or_else(|_| expr.clone(), |shown| shown.data)
}

/// Unknown unless one is false or both are true.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    both(a.map(|a| !a), b.map(|b| !b)).map(|neither| !neither)
}

struct Condition {
    values: ValueSet,
    null: Option<bool>,
}

impl Condition {
    fn of(expr: &Expr, schema: &TableSchema) -> Option<(ColumnId, Condition)> {
        let inner = |expr: &Expr| Condition::of(expr, schema);
        Some(match expr {
            Expr::Alias(alias) => inner(&alias.expr)?,
            Expr::Column(_) => {
                let column = Operand::of(expr, schema)?;
                let is_true = ValueSet::ints(vec![(1, 1)]);
                (column.id, Condition::of_values(Some(is_true).filter(|_| column.is_boolean)?))
            }
            Expr::Not(expr) => {
                let (column, condition) = inner(expr)?;
                (column, condition.negated())
            }
            Expr::IsNull(expr) => (any_column(expr, schema)?, Condition::of_null(true)),
            Expr::IsNotNull(expr) => (any_column(expr, schema)?, Condition::of_null(false)),
            Expr::IsTrue(expr) => certain(inner(expr)?, Condition::is_true),
            Expr::IsNotTrue(expr) => certain(inner(expr)?, |c| c.is_true().negated()),
            Expr::IsFalse(expr) => certain(inner(expr)?, |c| c.negated().is_true()),
            Expr::IsNotFalse(expr) => certain(inner(expr)?, |c| c.negated().is_true().negated()),
            Expr::IsUnknown(expr) => certain(inner(expr)?, Condition::is_unknown),
            Expr::IsNotUnknown(expr) => certain(inner(expr)?, |c| c.is_unknown().negated()),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And | Operator::Or => {
                    let ((column, a), (other, b)) = (inner(left)?, inner(right)?);
                    (column, a.combined(&b, *op).filter(|_| column == other)?)
                }
                _ => comparison(left, *op, right, schema)?,
            },
            Expr::Between(Between { expr, negated, low, high }) => {
                let column = Operand::of(expr, schema)?;
                let from = column.compared(Operator::GtEq, constant(low)?)?;
                let values = from.intersection(&column.compared(Operator::LtEq, constant(high)?)?)?;
                let condition = Condition::of_values(values);
                (column.id, if *negated { condition.negated() } else { condition })
            }
            Expr::Like(Like { negated, expr, pattern, escape_char: None, case_insensitive: false }) => {
                let column = Operand::of(expr, schema).filter(|column| column.kind == Kind::Texts)?;
                let pattern = TextPattern::of_like(string(constant(pattern)?)?)?;
                (column.id, Condition::of_values(ValueSet::Like { pattern, is_matching: !negated }))
            }
            Expr::InList(InList { expr, list, negated }) => {
                let column = Operand::of(expr, schema)?;
                let condition = Condition::of_values(column.one_of(list)?);
                (column.id, if *negated { condition.negated() } else { condition })
            }
            _ => return None,
        })
    }

    /// Unknown of NULL, as comparisons are.
    fn of_values(values: ValueSet) -> Condition {
        Condition { values, null: None }
    }

    /// Whether a value is there says whether it is true.
    fn of_null(is_true_of_null: bool) -> Condition {
        let values = if is_true_of_null { ValueSet::Nothing } else { ValueSet::All };
        Condition { values, null: Some(is_true_of_null) }
    }

    fn negated(&self) -> Condition {
        Condition { values: self.values.complement(), null: self.null.map(|null| !null) }
    }

    fn is_true(&self) -> Condition {
        Condition { values: self.values.clone(), null: Some(self.null == Some(true)) }
    }

    /// Returns the condition that is true where this one is unknown: for NULL only, or never.
    fn is_unknown(&self) -> Condition {
        Condition { values: ValueSet::Nothing, null: Some(self.null.is_none()) }
    }

    fn combined(&self, other: &Condition, op: Operator) -> Option<Condition> {
        Some(match op {
            Operator::And => {
                Condition { values: self.values.intersection(&other.values)?, null: both(self.null, other.null) }
            }
            _ => Condition { values: self.values.union(&other.values)?, null: either(self.null, other.null) },
        })
    }
}

fn certain(of: (ColumnId, Condition), change: impl Fn(&Condition) -> Condition) -> (ColumnId, Condition) {
    (of.0, change(&of.1))
}

fn comparison(left: &Expr, op: Operator, right: &Expr, schema: &TableSchema) -> Option<(ColumnId, Condition)> {
    let (column, op, value) = match (Operand::of(left, schema), constant(right)) {
        (Some(column), Some(value)) => (column, op, value),
        _ => (Operand::of(right, schema)?, op.swap()?, constant(left)?),
    };
    let condition = match op {
        Operator::IsNotDistinctFrom => Condition::of_values(column.compared(Operator::Eq, value)?).is_true(),
        Operator::IsDistinctFrom => Condition::of_values(column.compared(Operator::Eq, value)?).is_true().negated(),
        op => Condition::of_values(column.compared(op, value)?),
    };
    Some((column.id, condition))
}

fn any_column(expr: &Expr, schema: &TableSchema) -> Option<ColumnId> {
    match expr {
        Expr::Column(column) => schema.column(&column.name).map(|column| column.id),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        _ => None,
    }
}

/// A column as a comparison has it: as it is, or converted in a way that does not change the order of its values.
struct Operand {
    id: ColumnId,
    column_type: ColumnType,
    kind: Kind,
    is_boolean: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Ints,
    Floats,
    /// Integers that are converted to doubles, which rounds those that are large.
    IntsAsFloats,
    Texts,
}

impl Operand {
    fn of(expr: &Expr, schema: &TableSchema) -> Option<Operand> {
        let (column, converted) = match expr {
            Expr::Column(column) => (schema.column(&column.name)?, None),
            Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
                Expr::Column(column) => (schema.column(&column.name)?, Some(field.data_type())),
                _ => return None,
            },
            _ => return None,
        };
        let kind = match converted {
            None => kind(column)?,
            Some(data_type) => converted_kind(column, data_type)?,
        };
        let is_boolean = column.column_type == ColumnType::Boolean && converted.is_none();
        Some(Operand { id: column.id, column_type: column.column_type, kind, is_boolean })
    }

    fn compared(&self, op: Operator, value: &ScalarValue) -> Option<ValueSet> {
        match self.kind {
            Kind::Texts => {
                let equal = ValueSet::texts(vec![string(value)?.as_bytes().to_vec()]);
                match op {
                    Operator::Eq => Some(equal),
                    Operator::NotEq => Some(equal.complement()),
                    _ => None,
                }
            }
            Kind::Ints => {
                let v = integer(value, self.column_type)?;
                ordered(op, |lo, hi| ValueSet::ints(vec![(lo.unwrap_or(i128::MIN), hi.unwrap_or(i128::MAX))]), v)
            }
            Kind::Floats => floats(op, float(value)?),
            Kind::IntsAsFloats => match floats(op, float(value)?)? {
                ValueSet::Floats(ranges) => {
                    Some(ValueSet::ints(ranges.into_iter().map(|(lo, hi)| integers_between(lo, hi)).collect()))
                }
                other => Some(other),
            },
        }
    }

    fn one_of(&self, list: &[Expr]) -> Option<ValueSet> {
        let sets = list.iter().map(|expr| self.compared(Operator::Eq, constant(expr)?)).collect::<Option<Vec<_>>>()?;
        let (mut ints, mut doubles, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for set in sets {
            match set {
                ValueSet::Ints(ranges) => ints.extend(ranges),
                ValueSet::Floats(ranges) => doubles.extend(ranges),
                ValueSet::Texts { texts: listed, .. } => texts.extend(listed),
                ValueSet::Like { .. } | ValueSet::Nothing | ValueSet::All => return None,
            }
        }
        Some(match self.kind {
            Kind::Ints | Kind::IntsAsFloats => ValueSet::ints(ints),
            Kind::Floats => ValueSet::floats(doubles),
            Kind::Texts => ValueSet::texts(texts),
        })
    }
}

fn floats(op: Operator, v: f64) -> Option<ValueSet> {
    ordered(op, |lo, hi| ValueSet::floats(vec![(lo.unwrap_or(f64::NEG_INFINITY), hi.unwrap_or(f64::NAN))]), v)
}

/// The values that compare so with `v`; `between` takes bounds that are included, `None` where there is no bound.
fn ordered<T: Copy>(op: Operator, between: impl Fn(Option<T>, Option<T>) -> ValueSet, v: T) -> Option<ValueSet> {
    Some(match op {
        Operator::Eq => between(Some(v), Some(v)),
        Operator::NotEq => between(Some(v), Some(v)).complement(),
        Operator::LtEq => between(None, Some(v)),
        Operator::Gt => between(None, Some(v)).complement(),
        Operator::GtEq => between(Some(v), None),
        Operator::Lt => between(Some(v), None).complement(),
        _ => return None,
    })
}

/// The integers that are from `lo` to `hi` once they are converted to doubles. Conversion rounds, but never turns the
/// order of two integers round.
fn integers_between(lo: f64, hi: f64) -> (i128, i128) {
    let at_most = |a: f64, b: f64| b.is_nan() || a <= b;
    let first = |is_reached: &dyn Fn(f64) -> bool| {
        let (mut from, mut to) = (i128::from(i64::MIN), i128::from(i64::MAX) + 1);
        while from < to {
            let middle = (from + to).div_euclid(2);
            if is_reached(middle as f64) { to = middle } else { from = middle + 1 }
        }
        from
    };
    (first(&|v| at_most(lo, v)), first(&|v| !at_most(v, hi)) - 1)
}

fn kind(column: &ColumnSchema) -> Option<Kind> {
    match column.column_type {
        ColumnType::Float | ColumnType::Double => Some(Kind::Floats),
        ColumnType::Symbol | ColumnType::Varchar | ColumnType::Json | ColumnType::Jsonb => Some(Kind::Texts),
        ColumnType::Binary | ColumnType::Uuid | ColumnType::DoubleArray { .. } => None,
        _ => Some(Kind::Ints),
    }
}

/// Of a column that a comparison converts to another type first.
fn converted_kind(column: &ColumnSchema, data_type: &DataType) -> Option<Kind> {
    let bits = match column.column_type {
        ColumnType::Byte => 8,
        ColumnType::Short => 16,
        ColumnType::Int => 32,
        ColumnType::Ipv4 => 33,
        ColumnType::Long => 64,
        ColumnType::Float => return (*data_type == DataType::Float64).then_some(Kind::Floats),
        ColumnType::Symbol | ColumnType::Varchar | ColumnType::Json | ColumnType::Jsonb => {
            let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            return is_text.then_some(Kind::Texts);
        }
        _ => return None,
    };
    match data_type {
        DataType::Float64 => Some(Kind::IntsAsFloats),
        DataType::Int16 if bits <= 16 => Some(Kind::Ints),
        DataType::Int32 if bits <= 32 => Some(Kind::Ints),
        DataType::Int64 => Some(Kind::Ints),
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

/// A constant as the integers that blocks of the column's type hold.
fn integer(value: &ScalarValue, column_type: ColumnType) -> Option<i128> {
    match (column_type, value) {
        (ColumnType::Timestamp(TimeUnit::Millis), ScalarValue::TimestampMillisecond(v, _))
        | (ColumnType::Timestamp(TimeUnit::Micros), ScalarValue::TimestampMicrosecond(v, _))
        | (ColumnType::Timestamp(TimeUnit::Nanos), ScalarValue::TimestampNanosecond(v, _)) => v.map(i128::from),
        (ColumnType::Date, ScalarValue::Date32(v)) => v.map(i128::from),
        (ColumnType::Boolean, ScalarValue::Boolean(v)) => v.map(i128::from),
        (ColumnType::Decimal { scale, .. }, ScalarValue::Decimal128(v, _, s)) if i16::from(scale) == i16::from(*s) => {
            *v
        }
        (ColumnType::Byte | ColumnType::Short | ColumnType::Int | ColumnType::Long | ColumnType::Ipv4, value) => {
            match value {
                ScalarValue::Int8(v) => v.map(i128::from),
                ScalarValue::Int16(v) => v.map(i128::from),
                ScalarValue::Int32(v) => v.map(i128::from),
                ScalarValue::Int64(v) => v.map(i128::from),
                ScalarValue::UInt32(v) => v.map(i128::from),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
