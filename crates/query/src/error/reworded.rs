//! Texts of the planner and its kernels in PostgreSQL's words: no names of the engine's types, no dump of its tree, and
//! what in the statement they are about.

use super::Error;
use super::types::{is_time, sql_type, sql_types};
use tidalite_types::{ErrorKind, SqlState};

const NO_FUNCTION: &str = "no function of that name takes such arguments; a cast may help";
const NO_OPERATOR: &str = "no operator of that name takes such operands; a cast may help";

/// `None` for what is said well enough.
pub(super) fn reworded(message: &str) -> Option<Error> {
    let message = message.split("\n\nbacktrace:").next().unwrap_or(message).trim();
    GROUPS.iter().find_map(|words| words(message))
}

const GROUPS: &[fn(&str) -> Option<Error>] = &[grouped, positions, casts, calls, operators, clauses, queries, patterns];

fn about(message: String, subject: &str) -> Error {
    let mut error = Error::invalid(message);
    error.subject = Some(subject.to_owned());
    error
}

/// What stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// The last part of a name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name).trim_matches('"')
}

fn grouped(message: &str) -> Option<Error> {
    if message.starts_with("HAVING clause references") {
        let text = "columns in HAVING must appear in the GROUP BY clause or be used in an aggregate function";
        return Some(about(text.to_owned(), "having").with_code(SqlState::GROUPING_ERROR));
    }
    if let Some(inner) = between(message, "calls cannot be nested: '", "(") {
        let error = about("aggregate function calls cannot be nested".to_owned(), inner);
        return Some(error.with_code(SqlState::GROUPING_ERROR));
    }
    if message.contains("must appear in the GROUP BY clause") {
        let column = between(message, "column \"", "\"").or_else(|| between(message, "Column \"", "\""))?;
        let text =
            format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function");
        return Some(about(text, last(column)).with_code(SqlState::GROUPING_ERROR));
    }
    if message.contains("ggregate functions are not allowed in the WHERE clause") {
        let error = about("aggregate functions are not allowed in WHERE".to_owned(), "where");
        return Some(error.with_hint("use HAVING").with_code(SqlState::GROUPING_ERROR));
    }
    None
}

fn positions(message: &str) -> Option<Error> {
    let (clause, number) = if let Some(number) = between(message, "rder by column out of bounds, specified: ", ",") {
        ("ORDER BY", number)
    } else {
        ("GROUP BY", between(message, "annot find column with position ", " in SELECT clause")?)
    };
    let error = about(format!("{clause} position {number} is not in select list"), number);
    Some(error.with_code(SqlState::INVALID_COLUMN_REFERENCE))
}

fn casts(message: &str) -> Option<Error> {
    let cast_text = ["annot cast string '", "annot cast value '"].iter().find_map(|start| message.split_once(start));
    if let Some((_, rest)) = cast_text {
        let (text, rest) = rest.split_once("' to value of ")?;
        let name = rest.split(" type").next()?;
        let invalid: fn(&str, &str) -> Error = match name {
            _ if is_time(name) => Error::invalid_time,
            "Int8" | "Int16" | "Int32" | "Int64" => Error::invalid_integer,
            _ => Error::invalid_text,
        };
        return Some(invalid(&sql_type(name), text));
    }
    if let Some(text) = between(message, "nvalid input syntax for type interval: \"", "\"") {
        return Some(Error::invalid_text("INTERVAL", text));
    }
    if let Some(rest) = message.split_once("an't cast value ").map(|(_, rest)| rest) {
        let (value, name) = rest.split_once(" to type ")?;
        let error = about(format!("value {value} is out of range for type {}", sql_type(name)), value);
        return Some(error.with_code(SqlState::NUMERIC_VALUE_OUT_OF_RANGE));
    }
    if let Some(name) = message.split_once("nsupported SQL type ").map(|(_, name)| name) {
        let folded = name.split(['(', ' ']).next().unwrap_or(name).to_lowercase();
        let mut error = about(format!("type \"{}\" does not exist", name.to_lowercase()), &folded);
        error.kind = ErrorKind::NotFound;
        return Some(error);
    }
    if let Some(rest) = message.split_once("nsupported CAST from ").map(|(_, rest)| rest) {
        let (from, to) = rest.split_once(" to ")?;
        let message = format!("cannot cast type {} to {}", sql_type(from), sql_type(to));
        return Some(Error::invalid(message).with_code(SqlState::CANNOT_COERCE));
    }
    if let Some(what) = message.split_once("verflow happened on: ").map(|(_, rest)| rest) {
        return Some(Error::invalid(format!("value out of range: {what}")));
    }
    let name = message.split_once(" overflow on ").map(|(_, rest)| rest.split('(').next().unwrap_or(rest));
    if name.is_some() || (message.contains("verflow") && message.contains("Array")) {
        return Some(Error::invalid("value out of range").with_code(SqlState::NUMERIC_VALUE_OUT_OF_RANGE));
    }
    None
}

fn no_function(name: &str, types: &str) -> Error {
    let message = format!("function {name}({types}) does not exist");
    let mut error = about(message, &name.to_lowercase()).with_hint(NO_FUNCTION);
    error.kind = ErrorKind::NotFound;
    error
}

fn calls(message: &str) -> Option<Error> {
    // What our own functions say of themselves.
    if let Some(said) = between(message, "coercion failed with: External error: ", " No function matches") {
        let name = between(message, "unction '", "'").unwrap_or_default();
        return Some(about(said.trim_end_matches('.').to_owned(), &name.to_lowercase()));
    }
    if let Some(call) = between(message, "the given name and argument types '", "'. ") {
        let (name, types) = call.split_once('(')?;
        return Some(no_function(name, &sql_types(types.strip_suffix(')').unwrap_or(types))));
    }
    if message.contains("failed to match any signature") {
        let name = between(message, "unction '", "'")?;
        return Some(no_function(name, &sql_type(between(message, "(DataType: ", ").")?)));
    }
    if message.contains("ailed to coerce arguments to satisfy a call to '") {
        let name = between(message, "a call to '", "'")?;
        let types = between(message, "coercion from ", " to the signature")?;
        return Some(no_function(name, &sql_types(types)));
    }
    if message.contains("ubstring without for/from is not valid") {
        return Some(about("substring takes where to begin, and how many characters".to_owned(), "substring"));
    }
    if let Some(name) = between(message, "ariable [\"", "\"]") {
        let hint = format!("declare it: DECLARE {name} := 1 SELECT …");
        return Some(about(format!("variable {name} is not declared"), name).with_hint(hint));
    }
    None
}

fn operators(message: &str) -> Option<Error> {
    let no_operator = |(left, sign, right): (String, &str, String)| {
        let error = about(format!("operator does not exist: {left} {sign} {right}"), &sign.to_lowercase());
        Some(error.with_hint(NO_OPERATOR).with_code(SqlState::UNDEFINED_FUNCTION))
    };
    if let Some(rest) = message.split_once("annot coerce arithmetic expression ").map(|(_, rest)| rest) {
        let (expr, _) = rest.split_once(" to valid types")?;
        return no_operator(operands(expr)?);
    }
    if let Some(rest) = message.split_once("annot get result type for temporal operation ").map(|(_, rest)| rest) {
        let (expr, _) = rest.split_once(": ")?;
        return no_operator(operands(expr)?);
    }
    for kind in ["comparison", "regex"] {
        if let Some((_, rest)) = message.split_once(&format!("annot infer common argument type for {kind} operation "))
        {
            return no_operator(operands(rest)?);
        }
    }
    if let Some(pair) = between(message, "common type to coerce ", " in LIKE expression") {
        let (left, right) = pair.split_once(" and ")?;
        return no_operator((sql_type(left), "LIKE", sql_type(right)));
    }
    if message.contains("annot create filter with non-boolean predicate") {
        let (_, name) = message.rsplit_once(" returning ")?;
        let error = about(format!("argument of WHERE must be of type BOOLEAN, not {}", sql_type(name)), "where");
        return Some(error.with_code(SqlState::DATATYPE_MISMATCH));
    }
    None
}

/// Splits `Float64 + Utf8View` into `DOUBLE`, `+` and `VARCHAR`.
fn operands(expr: &str) -> Option<(String, &'static str, String)> {
    const SIGNS: &[&str] = &[
        " IS DISTINCT FROM ",
        " IS NOT DISTINCT FROM ",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " = ",
        " != ",
        " < ",
        " <= ",
        " > ",
        " >= ",
        " || ",
        " & ",
        " | ",
        " ~ ",
        " ~* ",
        " !~ ",
        " !~* ",
        " ~~ ",
        " ~~* ",
        " !~~ ",
        " !~~* ",
    ];
    let sign = SIGNS.iter().find(|sign| expr.contains(**sign))?;
    let (left, right) = expr.split_once(sign)?;
    Some((sql_type(left), sign.trim(), sql_type(right)))
}

/// Errors of LIMIT, OFFSET and WINDOW.
fn clauses(message: &str) -> Option<Error> {
    for clause in ["LIMIT", "OFFSET"] {
        if let Some(found) = message.strip_prefix(&format!("Expected {clause} to be an integer or null, but got ")) {
            let text = format!("argument of {clause} must be of type LONG, not {}", sql_type(found));
            return Some(about(text, &clause.to_lowercase()).with_code(SqlState::DATATYPE_MISMATCH));
        }
    }
    if message.starts_with("OFFSET must be >=0") {
        return Some(about("OFFSET must not be negative".to_owned(), "offset"));
    }
    if let Some(name) = between(message, "he window ", " is not defined!") {
        let error = about(format!("window \"{name}\" does not exist"), name);
        return Some(error.with_code(SqlState::UNDEFINED_OBJECT));
    }
    if let Some(found) = message.strip_prefix("Unary operator 'NOT' requires a boolean expression, got ") {
        let error = about(format!("argument of NOT must be of type BOOLEAN, not {}", sql_type(found)), "not");
        return Some(error.with_code(SqlState::DATATYPE_MISMATCH));
    }
    if message.starts_with("Invalid escape character in LIKE expression") {
        let error = about("invalid escape string".to_owned(), "escape");
        return Some(error.with_hint("an escape string is empty or one character"));
    }
    None
}

fn queries(message: &str) -> Option<Error> {
    if message.contains("queries have different number of columns") {
        let what = message.split_whitespace().next().unwrap_or("UNION");
        let text = format!("each {what} query must have the same number of columns");
        return Some(about(text, &what.to_lowercase()).with_code(SqlState::SYNTAX_ERROR));
    }
    if message.contains("he subquery should only return one column")
        || (message.contains("ource table contains") && message.contains("given as column alias"))
    {
        return Some(Error::invalid("subquery must return only one column").with_code(SqlState::SYNTAX_ERROR));
    }
    if message.contains("orrelated scalar subquery can only be used in") {
        let what = "a sub-query in ORDER BY can look only at outer columns that are selected";
        return Some(about(what.to_owned(), "order").with_hint("select the sub-query under a name, and order by that"));
    }
    if let Some(name) = message.strip_prefix("Invalid qualifier ").or(message.strip_prefix("invalid qualifier ")) {
        let error = about(format!("missing FROM-clause entry for table \"{name}\""), last(name));
        return Some(error.with_code(SqlState::UNDEFINED_TABLE));
    }
    if let Some(kind) = between(message, "nsupported JOIN operator ", "(") {
        let kind = kind.to_uppercase();
        let error = about(format!("{kind} JOIN is not supported"), &kind.to_lowercase());
        return Some(match kind.as_str() {
            "SEMI" => error.with_hint("write LEFT SEMI JOIN … ON, or WHERE EXISTS (…)"),
            "ANTI" => error.with_hint("write LEFT ANTI JOIN … ON, or WHERE NOT EXISTS (…)"),
            _ => error,
        });
    }
    None
}

fn patterns(message: &str) -> Option<Error> {
    if message.contains("CompiledTooBig") || message.contains("ompiled regex exceeds size limit") {
        let error = Error::invalid("invalid regular expression: regular expression is too complex");
        return Some(error.with_code(SqlState::INVALID_REGULAR_EXPRESSION));
    }
    if message.contains("egex parse error:") {
        let why = message.rsplit_once("error: ").map_or("it cannot be read", |(_, why)| why.trim());
        // The pattern stands on the lines between, moved to the right.
        let pattern = message.lines().nth(1).map(str::trim).unwrap_or_default();
        let pattern = pattern.strip_prefix("(?s)").unwrap_or(pattern);
        let error = about(format!("invalid regular expression: {why}"), &format!("'{pattern}"));
        return Some(error.with_code(SqlState::INVALID_REGULAR_EXPRESSION));
    }
    if let Some(part) = between(message, "ate part '", "' not supported") {
        return Some(about(format!("unit \"{part}\" not recognized for a timestamp"), &part.to_lowercase()));
    }
    if let Some(part) = between(message, "nsupported date_trunc granularity: '", "'") {
        let hint = message.split_once("Supported values are: ").map_or("", |(_, units)| units);
        let error = about(format!("unit \"{part}\" not recognized for a timestamp"), &format!("'{part}"));
        return Some(error.with_hint(format!("units are {}", hint.trim_end_matches('.'))));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> (String, Option<String>) {
        let error = reworded(message).expect("it is known");
        (error.to_string(), error.subject)
    }

    #[test]
    fn texts_name_what_they_are_about() {
        let (text, subject) = said("Cannot cast string 'abc' to value of Int32 type");
        assert_eq!((text.as_str(), subject.as_deref()), ("invalid input for type INT: \"abc\"", Some("'abc")));
        let (text, subject) = said(
            "Function 'sum' failed to match any signature, errors: Error during planning: Function 'sum' requires \
             Decimal, but received String (DataType: Utf8View).,",
        );
        assert_eq!((text.as_str(), subject.as_deref()), ("function sum(VARCHAR) does not exist", Some("sum")));
        let (text, _) = said("Cannot coerce arithmetic expression Float64 + Utf8View to valid types");
        assert_eq!(text, "operator does not exist: DOUBLE + VARCHAR");
        let (text, _) = said("Regular expression did not compile: CompiledTooBig(10485760)");
        assert_eq!(text, "invalid regular expression: regular expression is too complex");
    }
}
