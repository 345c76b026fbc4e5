//! Arrow's names of types in messages, and the names that SQL has for them.

/// Types in a row, by commas that are not within one.
pub(super) fn sql_types(names: &str) -> String {
    let (mut depth, mut from, mut out) = (0_i32, 0, Vec::new());
    for (at, c) in names.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(sql_type(&names[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < names.len() {
        out.push(sql_type(&names[from..]));
    }
    out.join(", ")
}

/// A type as the engine shows it by its name in SQL.
pub(super) fn sql_type(name: &str) -> String {
    let name = name.trim().trim_end_matches('.');
    let known = match name.split(['(', '<']).next().unwrap_or(name) {
        "Utf8" | "Utf8View" | "LargeUtf8" | "String" => "VARCHAR",
        "Boolean" => "BOOLEAN",
        "Int8" => "BYTE",
        "Int16" => "SHORT",
        "Int32" => "INT",
        "Int64" | "UInt64" => "LONG",
        "UInt32" => "IPV4",
        "Float32" => "FLOAT",
        "Float64" => "DOUBLE",
        "Timestamp" if name.contains("ns") => "TIMESTAMP_NS",
        "Timestamp" => "TIMESTAMP",
        "Date32" | "Date64" => "DATE",
        "Time32" | "Time64" => "TIME",
        "Interval" | "Duration" => "INTERVAL",
        "List" | "LargeList" | "FixedSizeList" => "ARRAY",
        "Decimal128" | "Decimal256" => "DECIMAL",
        "FixedSizeBinary" => "UUID",
        "Binary" | "BinaryView" | "LargeBinary" => "BINARY",
        "Struct" => "RECORD",
        "Null" => "NULL",
        _ => return name.to_owned(),
    };
    known.to_owned()
}

/// Returns true for Arrow's names of dates, times of day and timestamps.
pub(super) fn is_time(name: &str) -> bool {
    let name = name.trim();
    matches!(name.split('(').next().unwrap_or(name), "Timestamp" | "Date32" | "Date64" | "Time32" | "Time64")
}

/// Names of types that no English word shares.
const PLAIN: &[&str] = &[
    "Utf8",
    "Utf8View",
    "LargeUtf8",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Decimal128",
    "Decimal256",
    "Date32",
    "Date64",
    "Time32",
    "Time64",
    "BinaryView",
    "LargeBinary",
    "FixedSizeBinary",
    "LargeList",
    "FixedSizeList",
    "IntervalMonthDayNano",
];

/// Names that are types only before an opening parenthesis.
const WITH_PARENTHESES: &[&str] = &["Timestamp", "List", "Struct", "Interval", "Duration", "Boolean"];

/// Returns a message with SQL's names of types, and constants without their type: `Int64(1)` is `1`.
pub(super) fn in_sql(message: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(from) = rest.find(is_part) {
        out.push_str(&rest[..from]);
        rest = &rest[from..];
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        rest = &rest[word.len()..];
        let inner = parenthesized(rest);
        match inner {
            Some(inner) if PLAIN.contains(&word) || WITH_PARENTHESES.contains(&word) => {
                rest = &rest[inner.len() + 2..];
                out.push_str(&with_argument(word, inner));
            }
            None if PLAIN.contains(&word) => out.push_str(&sql_type(word)),
            _ => out.push_str(word),
        }
    }
    out + rest
}

/// Returns the text within the parentheses that a text begins with.
fn parenthesized(text: &str) -> Option<&str> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { None } else { Some(&text[1..at]) };
        }
    }
    None
}

/// Returns a constant, or a type with its arguments.
fn with_argument(word: &str, inner: &str) -> String {
    let is_value = word.starts_with("Int") && word != "Interval" && !word.starts_with("IntervalM")
        || ["UInt", "Float", "Utf8", "LargeUtf8", "Boolean"].iter().any(|start| word.starts_with(start));
    match word {
        _ if is_value => match inner.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => format!("'{text}'"),
            None => inner.to_owned(),
        },
        "Decimal128" | "Decimal256" if inner.split(',').count() == 2 => {
            format!("DECIMAL({})", inner.replace(' ', ""))
        }
        _ => sql_type(&format!("{word}({inner})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_sql() {
        assert_eq!(sql_types("Utf8, Decimal128(3, 2), List(Float64)"), "VARCHAR, DECIMAL, ARRAY");
        assert_eq!(sql_type("Timestamp(µs)"), "TIMESTAMP");
    }

    #[test]
    fn messages_have_no_internal_names() {
        for (message, expected) in [
            ("arrays_zip expects array arguments, got Utf8", "arrays_zip expects array arguments, got VARCHAR"),
            (
                "casting from FixedSizeBinary(16) to Utf8View not supported",
                "casting from UUID to VARCHAR not supported",
            ),
            ("type Decimal128(12, 2) is not Struct", "type DECIMAL(12,2) is not Struct"),
            ("price > Int64(1) AND s = Utf8(\"a b\")", "price > 1 AND s = 'a b'"),
            ("Timestamp(ns) or List(Int64), a List", "TIMESTAMP_NS or ARRAY, a List"),
            ("Boolean(true) is Int64(", "true is LONG("),
        ] {
            assert_eq!(in_sql(message), expected);
        }
    }
}
