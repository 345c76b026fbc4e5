//! Numeric expressions of a filter program, with the types and overflow rules of SQL.
//!
//! Integers and times outside of their type are errors. Integer operators are unchecked, because they fit for all
//! values of their columns; the calls that replace the others ([`checked`]) are checked.
//!
//! Expressions whose errors depend on values in other ways, such as a cast to a narrower type, are not supported.

use super::is_of_nans;
use crate::door::arrow_type;
use crate::functions::checked;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator};
use tidalite_kernels::program::{self, Arithmetic, Change, Guarded, Kind, Program};
use tidalite_types::column_type::Physical;
use tidalite_types::{ColumnId, TableSchema};

const DAY_NANOS: i64 = 86_400_000_000_000;

/// A number for each row, in plain values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Column(ColumnId, Kind),
    Int(i64),
    Float(f64),
    Calculated(Arithmetic, Box<Number>, Box<Number>),
    Guarded(Guarded, Box<Number>, Box<Number>),
    Changed(Change, Box<Number>),
    /// Of integers of so many bits.
    Magnitude(u32, Box<Number>),
    AsFloat(Box<Number>),
}

/// With the type that it has in the query.
pub(super) struct Typed {
    number: Number,
    data_type: DataType,
    /// Of an interval that is always as long, in nanoseconds; it is not compared.
    length: Option<i64>,
}

/// Two numbers as they are compared; `None` where their types are not.
pub(super) fn comparable(a: Typed, b: Typed) -> Option<(Number, Number)> {
    let is_float = |t: &DataType| matches!(t, DataType::Float32 | DataType::Float64);
    let is_int = |t: &DataType| t.is_signed_integer();
    if a.length.is_some() || b.length.is_some() {
        return None;
    }
    let is_comparable = a.data_type == b.data_type
        || (is_float(&a.data_type) && is_float(&b.data_type))
        || (is_int(&a.data_type) && is_int(&b.data_type));
    is_comparable.then_some((a.number, b.number))
}

impl Number {
    /// `None` of what is no number, or not understood.
    pub(super) fn of(expr: &Expr, schema: &TableSchema) -> Option<Typed> {
        match expr {
            Expr::Alias(alias) => Number::of(&alias.expr, schema),
            Expr::Column(column) => {
                let column = schema.column(&column.name)?;
                let kind = match column.column_type.physical() {
                    Physical::F32 | Physical::F64 => Kind::Float,
                    Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => Kind::Int,
                    Physical::U32 if arrow_type(column.column_type) == DataType::UInt32 => Kind::Int,
                    _ => return None,
                };
                let data_type = arrow_type(column.column_type);
                Some(Typed::new(Number::Column(column.id, kind), data_type))
            }
            Expr::Literal(value, _) => constant(value),
            Expr::Cast(Cast { expr, field }) => Number::of(expr, schema)?.cast(field.data_type()),
            Expr::Negative(inner) => Number::of(inner, schema)?.negated(),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                calculated(*op, Number::of(left, schema)?, Number::of(right, schema)?)
            }
            Expr::ScalarFunction(function) => {
                if let Some((left, op, right)) = checked::operands(function) {
                    return guarded(op, Number::of(left, schema)?, Number::of(right, schema)?);
                }
                let [argument] = function.args.as_slice() else { return None };
                let of = Number::of(argument, schema)?;
                match function.name() {
                    "abs" => of.magnitude(),
                    "floor" if of.is_float() => Some(of.changed(Change::Floor)),
                    "ceil" if of.is_float() => Some(of.changed(Change::Ceiling)),
                    _ if is_of_nans(function) && of.is_float() => Some(of),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Steps that it takes.
    pub(super) fn steps(&self) -> usize {
        match self {
            Number::Column(..) | Number::Int(_) | Number::Float(_) => 0,
            Number::Calculated(_, a, b) | Number::Guarded(_, a, b) => 1 + a.steps() + b.steps(),
            Number::Changed(_, a) | Number::Magnitude(_, a) | Number::AsFloat(a) => 1 + a.steps(),
        }
    }

    /// Whether it may be an error of a row.
    pub(super) fn may_fail(&self) -> bool {
        match self {
            Number::Column(..) | Number::Int(_) | Number::Float(_) => false,
            Number::Calculated(_, a, b) => a.may_fail() || b.may_fail(),
            Number::Guarded(..) | Number::Magnitude(..) => true,
            Number::Changed(_, a) | Number::AsFloat(a) => a.may_fail(),
        }
    }

    /// The columns that it is made of, some of them several times.
    pub(super) fn columns(&self, out: &mut Vec<ColumnId>) {
        match self {
            Number::Column(column, _) => out.push(*column),
            Number::Int(_) | Number::Float(_) => {}
            Number::Calculated(_, a, b) | Number::Guarded(_, a, b) => {
                a.columns(out);
                b.columns(out);
            }
            Number::Changed(_, a) | Number::Magnitude(_, a) | Number::AsFloat(a) => a.columns(out),
        }
    }

    /// As steps of a program, whose columns are listed in `columns`.
    pub(super) fn build(
        &self,
        program: &mut Program,
        columns: &mut Vec<(ColumnId, program::Number)>,
    ) -> program::Number {
        let mut both = |a: &Number, b: &Number, program: &mut Program| {
            let a = a.build(program, columns);
            (a, b.build(program, columns))
        };
        match self {
            Number::Column(column, kind) => match columns.iter().find(|(known, _)| known == column) {
                Some((_, number)) => *number,
                None => {
                    let number = program.column(*kind);
                    columns.push((*column, number));
                    number
                }
            },
            Number::Int(value) => program::Number::Int(*value),
            Number::Float(value) => program::Number::Float(*value),
            Number::Calculated(with, a, b) => {
                let (a, b) = both(a, b, program);
                program.calculated(*with, a, b)
            }
            Number::Guarded(with, a, b) => {
                let (a, b) = both(a, b, program);
                program.guarded(*with, a, b)
            }
            Number::Changed(change, a) => {
                let a = a.build(program, columns);
                program.changed(*change, a)
            }
            Number::Magnitude(bits, a) => {
                let a = a.build(program, columns);
                program.magnitude(*bits, a)
            }
            Number::AsFloat(a) => {
                let a = a.build(program, columns);
                program.float(a)
            }
        }
    }
}

impl Typed {
    fn new(number: Number, data_type: DataType) -> Typed {
        Typed { number, data_type, length: None }
    }

    pub fn number(self) -> Number {
        self.number
    }

    fn is_float(&self) -> bool {
        matches!(self.data_type, DataType::Float32 | DataType::Float64)
    }

    fn changed(self, change: Change) -> Typed {
        Typed::new(Number::Changed(change, Box::new(self.number)), self.data_type)
    }

    /// As its type holds it, after a calculation in 64 bits.
    fn fitted(self) -> Typed {
        match (&self.data_type, bits(&self.data_type)) {
            (DataType::Float32, _) => self.changed(Change::Single),
            (_, Some(bits @ ..64)) => self.changed(Change::Wrapped(bits)),
            _ => self,
        }
    }

    fn negated(self) -> Option<Typed> {
        let is_known = self.is_float() || bits(&self.data_type).is_some();
        is_known.then(|| self.changed(Change::Negated).fitted())
    }

    fn magnitude(self) -> Option<Typed> {
        if self.is_float() {
            return Some(self.changed(Change::Magnitude));
        }
        let bits = bits(&self.data_type)?;
        Some(Typed::new(Number::Magnitude(bits, Box::new(self.number)), self.data_type))
    }

    /// Where no value is outside of the other type.
    fn cast(self, to: &DataType) -> Option<Typed> {
        if self.data_type == *to {
            return Some(self);
        }
        let as_float = |number: Number| match number {
            Number::Int(value) => Number::Float(value as f64),
            number => Number::AsFloat(Box::new(number)),
        };
        let number = match (&self.data_type, to) {
            (DataType::Float32, DataType::Float64) => self.number,
            (DataType::Float64, DataType::Float32) => Number::Changed(Change::Single, Box::new(self.number)),
            (DataType::Int64, DataType::Timestamp(_, None)) | (DataType::Timestamp(_, None), DataType::Int64) => {
                self.number
            }
            (DataType::Date32, DataType::Int32) | (DataType::Int32, DataType::Date32) => self.number,
            (from, DataType::Float64) if bits(from).is_some() => as_float(self.number),
            // Not of 64 bits, which would be rounded twice.
            (from, DataType::Float32) if bits(from)? < 64 => {
                Number::Changed(Change::Single, Box::new(as_float(self.number)))
            }
            (from, to) if bits(from)? <= bits(to)? => self.number,
            _ => return None,
        };
        Some(Typed::new(number, to.clone()))
    }
}

/// Of signed integers.
fn bits(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Int8 => Some(8),
        DataType::Int16 => Some(16),
        DataType::Int32 => Some(32),
        DataType::Int64 => Some(64),
        _ => None,
    }
}

fn constant(value: &ScalarValue) -> Option<Typed> {
    if let ScalarValue::IntervalMonthDayNano(Some(interval)) = value {
        // Times are UTC, where every day is as long.
        let days = i64::from(interval.days).checked_mul(DAY_NANOS)?;
        let length = days.checked_add(interval.nanoseconds).filter(|_| interval.months == 0)?;
        return Some(Typed { length: Some(length), ..Typed::new(Number::Int(length), value.data_type()) });
    }
    let number = match value {
        ScalarValue::Int8(v) => Number::Int((*v)?.into()),
        ScalarValue::Int16(v) => Number::Int((*v)?.into()),
        ScalarValue::Int32(v) | ScalarValue::Date32(v) => Number::Int((*v)?.into()),
        ScalarValue::UInt32(v) => Number::Int((*v)?.into()),
        ScalarValue::Int64(v)
        | ScalarValue::TimestampMillisecond(v, None)
        | ScalarValue::TimestampMicrosecond(v, None)
        | ScalarValue::TimestampNanosecond(v, None)
        | ScalarValue::DurationMillisecond(v)
        | ScalarValue::DurationMicrosecond(v)
        | ScalarValue::DurationNanosecond(v) => Number::Int((*v)?),
        ScalarValue::Float32(v) => Number::Float((*v)?.into()),
        ScalarValue::Float64(v) => Number::Float((*v)?),
        _ => return None,
    };
    Some(Typed::new(number, value.data_type()))
}

fn calculated(op: Operator, a: Typed, b: Typed) -> Option<Typed> {
    let with = match op {
        Operator::Plus => Arithmetic::Plus,
        Operator::Minus => Arithmetic::Minus,
        Operator::Multiply => Arithmetic::Times,
        Operator::Divide => Arithmetic::Over,
        Operator::Modulo => Arithmetic::Modulo,
        _ => return None,
    };
    if let (DataType::Timestamp(unit, None), Some(length)) = (&a.data_type, b.length) {
        return moved(a.number, *unit, if with == Arithmetic::Minus { length.checked_neg()? } else { length }, with);
    }
    if let (Some(length), DataType::Timestamp(unit, None), Arithmetic::Plus) = (a.length, &b.data_type, with) {
        return moved(b.number, *unit, length, with);
    }
    if with == Arithmetic::Minus && a.data_type == DataType::Date32 && b.data_type == DataType::Date32 {
        let number = Number::Calculated(with, Box::new(a.number), Box::new(b.number));
        return Some(Typed::new(number, DataType::Int64));
    }
    if let Some((guarded, data_type)) = of_times(with, &a.data_type, &b.data_type) {
        let number = Number::Guarded(guarded, Box::new(a.number), Box::new(b.number));
        return Some(Typed::new(number, data_type));
    }
    if a.data_type != b.data_type {
        return None;
    }
    let data_type = a.data_type.clone();
    let (of_ints, is_float) = (bits(&data_type), a.is_float());
    let (left, right) = (Box::new(a.number), Box::new(b.number));
    let number = match (with, of_ints) {
        (Arithmetic::Over | Arithmetic::Modulo, Some(bits)) => match *right {
            // Which any integer may be divided by.
            Number::Int(divisor) if divisor != 0 && divisor != -1 => Number::Calculated(with, left, right),
            _ if with == Arithmetic::Over => Number::Guarded(Guarded::Over(bits), left, right),
            _ => Number::Guarded(Guarded::Modulo, left, right),
        },
        (_, Some(_)) => Number::Calculated(with, left, right),
        (_, None) if is_float => Number::Calculated(with, left, right),
        _ => return None,
    };
    Some(Typed::new(number, data_type).fitted())
}

/// Builds an integer operation that may overflow.
fn guarded(op: Operator, a: Typed, b: Typed) -> Option<Typed> {
    if a.data_type != b.data_type {
        return None;
    }
    let (with, wide) = match op {
        Operator::Plus => (Arithmetic::Plus, Guarded::Plus),
        Operator::Minus => (Arithmetic::Minus, Guarded::Minus),
        Operator::Multiply => (Arithmetic::Times, Guarded::Times),
        _ => return None,
    };
    let guarded = match bits(&a.data_type)? {
        64 => wide,
        bits => Guarded::Narrow(with, bits),
    };
    let number = Number::Guarded(guarded, Box::new(a.number), Box::new(b.number));
    Some(Typed::new(number, a.data_type))
}

/// A time moved by nanoseconds; `None` where its unit is too coarse for them. Bounds are those of the calendar.
fn moved(time: Number, unit: TimeUnit, nanos: i64, with: Arithmetic) -> Option<Typed> {
    if !matches!(with, Arithmetic::Plus | Arithmetic::Minus) {
        return None;
    }
    let (of_unit, least, most) = match unit {
        TimeUnit::Millisecond => (1_000_000, -8_334_601_228_800_000, 8_210_266_876_799_999),
        TimeUnit::Microsecond => (1_000, -8_334_601_228_800_000_000, 8_210_266_876_799_999_999),
        TimeUnit::Nanosecond => (1, i64::MIN, i64::MAX),
        TimeUnit::Second => return None,
    };
    if nanos % of_unit != 0 {
        return None;
    }
    let number = Number::Guarded(Guarded::Moved(least, most), Box::new(time), Box::new(Number::Int(nanos / of_unit)));
    Some(Typed::new(number, DataType::Timestamp(unit, None)))
}

/// What times and durations of one unit come to.
fn of_times(with: Arithmetic, a: &DataType, b: &DataType) -> Option<(Guarded, DataType)> {
    let unit = |t: &DataType| match t {
        DataType::Timestamp(unit, None) | DataType::Duration(unit) if *unit != TimeUnit::Second => Some(*unit),
        _ => None,
    };
    let unit = unit(a).filter(|of_a| unit(b) == Some(*of_a))?;
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..));
    match (with, is_time(a), is_time(b)) {
        (Arithmetic::Minus, true, true) => Some((Guarded::Minus, DataType::Duration(unit))),
        (Arithmetic::Minus, true, false) => Some((Guarded::Minus, DataType::Timestamp(unit, None))),
        (Arithmetic::Plus, true, false) => Some((Guarded::Plus, DataType::Timestamp(unit, None))),
        _ => None,
    }
}
