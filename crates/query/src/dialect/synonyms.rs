//! Functions that are other functions by another name: `count_distinct(x)`, `variance(x)`, `to_timestamp(text, pattern)`, …
//!
//! They are put into their place after columns have got their names, which stay those that were written.

use crate::Parameter;
use crate::decimal::Decimal;
use crate::functions::zones::AT_TIME_ZONE;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, DuplicateTreatment, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query, UnaryOperator, Value, ValueWithSpan,
    VisitorMut,
};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Digits that every double keeps, and the maximum digits of a DECIMAL.
const DOUBLE_DIGITS: usize = 15;
const DECIMAL_DIGITS: usize = 38;

/// Aggregates that the engine does not know by these names.
pub(crate) const AGGREGATE_NAMES: &[&str] = &[
    "count_distinct",
    "approx_count_distinct",
    "approx_percentile",
    "percentile_disc",
    "string_distinct_agg",
    "variance",
    "every",
    "min_by",
    "max_by",
];

pub(super) fn replaced(query: &mut Query) {
    let _ = super::visit::visit_mut(query, &mut Replacer);
}

struct Replacer;

impl VisitorMut for Replacer {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        loosened(expr);
        match expr {
            Expr::Function(function) => match super::templates::expression(function) {
                Some(written) => *expr = written,
                None => {
                    named(function);
                    super::exclusions::applied(function);
                }
            },
            Expr::Value(value) => {
                if let Some(exact) = long_number(value) {
                    *expr = exact;
                }
            }
            Expr::CompoundFieldAccess { .. } => super::subscripts::replaced(expr),
            Expr::Cast { data_type: DataType::Custom(..), .. } => super::geohashes::cast(expr),
            Expr::Cast { .. } => shortened(expr),
            Expr::Between { .. } => super::symmetric::replaced(expr),
            Expr::AnyOp { .. } | Expr::AllOp { .. } => listed(expr),
            // The planner would negate only the first part of an interval.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if matches!(**inner, Expr::Interval(_)) => {
                let interval = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
                **inner = Expr::Nested(Box::new(interval));
            }
            Expr::UnaryOp { .. } | Expr::BinaryOp { .. } => super::operators::replaced(expr),
            Expr::AtTimeZone { timestamp, time_zone } => {
                let [zone, time] =
                    [time_zone, timestamp].map(|e| *std::mem::replace(e, Box::new(Expr::Value(Value::Null.into()))));
                *expr = super::sequences::call(AT_TIME_ZONE, vec![zone, time]);
            }
            Expr::Interval(interval) => super::intervals::canonical(interval),
            Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
                let escape = match escape_char.as_ref().map(|value| &value.value) {
                    Some(Value::SingleQuotedString(text)) => text.chars().next(),
                    _ => Some('\\'),
                };
                let Some(regex) = super::text(pattern).map(|pattern| similar_to(&pattern, escape)) else {
                    return ControlFlow::Continue(());
                };
                let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
                let left = std::mem::replace(text, Box::new(Expr::Value(Value::Null.into())));
                let right = Box::new(Expr::Value(Value::SingleQuotedString(regex).into()));
                *expr = Expr::BinaryOp { left, op, right };
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                escaped(pattern, escape_char);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// `CAST(x AS varchar(3))` is the first three characters of `x`, as in PostgreSQL.
fn shortened(expr: &mut Expr) {
    let Expr::Cast { data_type, .. } = expr else { return };
    let (DataType::Varchar(length)
    | DataType::Char(length)
    | DataType::Character(length)
    | DataType::CharVarying(length)
    | DataType::CharacterVarying(length)) = data_type
    else {
        return;
    };
    let length = length.take();
    *data_type = DataType::Varchar(None);
    if let Some(CharacterLength::IntegerLength { length, .. }) = length {
        let cast = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        let length = Expr::Value(Value::Number(length.to_string(), false).into());
        *expr = super::sequences::call("left", vec![cast, length]);
    }
}

/// `LIKE 'a!_%' ESCAPE '!'` is `LIKE 'a\_%'`: the engine knows the backslash only.
fn escaped(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) {
    let Some(Value::SingleQuotedString(by)) = escape.as_ref().map(|value| &value.value) else { return };
    let mut by = by.chars();
    let (Some(text), by, None) = (super::text(pattern), by.next(), by.next()) else { return };
    if by != Some('\\') {
        *pattern = Expr::Value(Value::SingleQuotedString(with_backslashes(&text, by)).into());
    }
    *escape = None;
}

/// Returns a pattern of LIKE whose escape character is the backslash; `None` for a pattern without one.
pub(crate) fn with_backslashes(pattern: &str, escape: Option<char>) -> String {
    let mut plain = String::with_capacity(pattern.len() + 4);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => match chars.next() {
                Some(next @ ('%' | '_' | '\\')) => plain.extend(['\\', next]),
                Some(next) => plain.push(next),
                // An escape with nothing behind it: as it is.
                None => plain.push(c),
            },
            '\\' => plain.push_str("\\\\"),
            c => plain.push(c),
        }
    }
    plain
}

/// `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`: the stock parser takes all that comes for the right
/// side. What stands in parentheses is nested, so that nothing else is meant by an AND there, or below a NOT.
fn loosened(expr: &mut Expr) {
    let null = || Box::new(Expr::Value(Value::Null.into()));
    let loose = |e: &Expr, and_too: bool| {
        matches!(e, Expr::BinaryOp { op: BinaryOperator::Or, .. })
            || and_too && matches!(e, Expr::BinaryOp { op: BinaryOperator::And, .. })
    };
    let inner = match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if loose(right, true) => right,
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } if loose(inner, true) => inner,
        Expr::BinaryOp { op: BinaryOperator::And, right, .. } if loose(right, false) => right,
        _ => return,
    };
    let Expr::BinaryOp { left, op, right } = *std::mem::replace(inner, null()) else { return };
    *inner = left;
    loosened(expr);
    let left = Box::new(std::mem::replace(expr, *null()));
    *expr = Expr::BinaryOp { left, op, right };
}

/// `x = ANY (ARRAY[…])` is `x IN (…)`, `x <> ALL (ARRAY[…])` its contrary: so text finds the type of what it stands beside.
/// The array may be PostgreSQL's text of one, as which clients send lists.
fn listed(expr: &mut Expr) {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return,
    };
    let mut inner = right.as_mut();
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let list = match inner {
        Expr::Array(array) => std::mem::take(&mut array.elem),
        other => match super::text(other).and_then(|text| array_of_text(&text)) {
            Some(list) => list,
            None => return,
        },
    };
    let left = std::mem::replace(left, Box::new(Expr::Value(Value::Null.into())));
    *expr = if list.is_empty() {
        // Nothing is equal to one of none.
        Expr::Value(Value::Boolean(negated).into())
    } else {
        Expr::InList { expr: left, list, negated }
    };
}

fn array_of_text(text: &str) -> Option<Vec<Expr>> {
    let Parameter::List(items) = Parameter::list_of_text(text, &|text| Some(Parameter::Text(text.to_owned())))? else {
        return None;
    };
    let value = |item| match item {
        Parameter::Text(text) => Some(Value::SingleQuotedString(text)),
        Parameter::Null => Some(Value::Null),
        _ => None,
    };
    items.into_iter().map(|item| Some(Expr::Value(value(item)?.into()))).collect()
}

fn named(function: &mut Function) {
    match function.name.to_string().as_str() {
        "count_distinct" => distinct(function, "count"),
        "string_distinct_agg" => distinct(function, "string_agg"),
        "approx_count_distinct" => rename(function, "approx_distinct"),
        "variance" => rename(function, "var_samp"),
        "every" => rename(function, "bool_and"),
        "approx_percentile" => {
            rename(function, "approx_percentile_cont");
            // QuestDB's third argument is its precision in digits, ours is what it takes.
            if let FunctionArguments::List(list) = &mut function.args {
                list.args.truncate(2);
            }
        }
        // `mode() WITHIN GROUP (ORDER BY x)`, as PostgreSQL has it.
        "mode" => {
            if let [key] = &function.within_group[..]
                && let FunctionArguments::List(list) = &mut function.args
                && list.args.is_empty()
            {
                list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(key.expr.clone()))];
                function.within_group.clear();
            }
        }
        "to_lowercase" => rename(function, "lower"),
        "to_uppercase" => rename(function, "upper"),
        "ceiling" => rename(function, "ceil"),
        "clock_timestamp" | "statement_timestamp" | "transaction_timestamp" => rename(function, "now"),
        "gen_random_uuid" => rename(function, "uuid"),
        "regexp_matches" => rename(function, "regexp_match"),
        "min_by" => rename(function, "arg_min"),
        "max_by" => rename(function, "arg_max"),
        "localtimestamp" => rename(function, "now"),
        // `age` with one argument counts from the start of the current day.
        "age" => {
            if let FunctionArguments::List(list) = &mut function.args
                && list.args.len() == 1
            {
                let day = Expr::Value(Value::SingleQuotedString("day".to_owned()).into());
                let now = super::sequences::call("now", Vec::new());
                let today = super::sequences::call("date_trunc", vec![day, now]);
                list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(today)));
            }
        }
        "make_interval" => positional(function, &["years", "months", "weeks", "days", "hours", "mins", "secs"]),
        _ => {}
    }
}

/// Rewrites a number with more digits than a double keeps to a cast of its text to a decimal.
fn long_number(value: &ValueWithSpan) -> Option<Expr> {
    let Value::Number(digits, _) = &value.value else { return None };
    let (precision, scale) = decimal_digits(digits)?;
    let data_type = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision.into(), scale.into()));
    let text = ValueWithSpan { value: Value::SingleQuotedString(digits.clone()), span: value.span };
    let expr = Box::new(Expr::Value(text));
    Some(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None })
}

/// Returns precision and scale of a number with more digits than a double keeps; `None` for other numbers.
pub(crate) fn decimal_digits(digits: &str) -> Option<(u8, i8)> {
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let count = whole.len() + fraction.len();
    let is_plain = [whole, fraction].iter().all(|part| part.bytes().all(|digit| digit.is_ascii_digit()));
    if !is_plain || count <= DOUBLE_DIGITS || count > DECIMAL_DIGITS || unsigned.parse::<u64>().is_ok() {
        return None;
    }
    let number: f64 = digits.parse().ok()?;
    let is_kept = Decimal::from_double(number)?.compare(Decimal::parse(digits)?) == Some(Ordering::Equal);
    let (precision, scale) = (u8::try_from(count).ok()?, i8::try_from(fraction.len()).ok()?);
    (!is_kept).then_some((precision, scale))
}

/// The pattern of SIMILAR TO as a regular expression of all of a text.
pub(crate) fn similar_to(pattern: &str, escape: Option<char>) -> String {
    let mut regex = "(?s)^(?:".to_owned();
    let mut in_brackets = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => {
                regex.push('\\');
                regex.extend(chars.next());
            }
            '[' | ']' => {
                in_brackets = c == '[';
                regex.push(c);
            }
            c if in_brackets => regex.push(c),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '.' | '^' | '$' | '\\' => regex.extend(['\\', c]),
            c => regex.push(c),
        }
    }
    regex + ")$"
}

/// Replaces named arguments by positional ones, with 0 for omitted parameters.
fn positional(function: &mut Function, parameters: &[&str]) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if !list.args.iter().any(|arg| matches!(arg, FunctionArg::Named { .. })) {
        return;
    }
    let zero = || Expr::Value(Value::Number("0".to_owned(), false).into());
    let mut places: Vec<Option<Expr>> = vec![None; parameters.len()];
    for (at, arg) in list.args.iter().enumerate() {
        let (place, value) = match arg {
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (parameters.iter().position(|own| name.value.eq_ignore_ascii_case(own)), value)
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
            _ => return,
        };
        // An unknown or repeated name stays and is rejected later.
        match place.and_then(|place| places.get_mut(place)) {
            Some(slot) if slot.is_none() => *slot = Some(value.clone()),
            _ => return,
        }
    }
    let args = places.into_iter().map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value.unwrap_or_else(zero))));
    list.args = args.collect();
}

fn distinct(function: &mut Function, name: &str) {
    rename(function, name);
    if let FunctionArguments::List(list) = &mut function.args {
        list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
    }
}

fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}
