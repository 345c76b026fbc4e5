//! What can go wrong between a statement's text and its rows.

mod reworded;
mod types;

use crate::engine::spill;
use crate::names::without_side;
use datafusion::common::{DataFusionError, SchemaError};
use parquet::errors::ParquetError;
use std::sync::Arc;
use tidalite_types::{ErrorKind, SqlState};

/// The words before the name of a setting in the errors of a statement's memory pool.
pub(crate) const SETTING: &str = ", the setting ";

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Texts are as in PostgreSQL: lower case, no full stop, the object named.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// Byte offset into the statement, counted from 0, of the offending character.
    pub position: Option<usize>,
    pub hint: Option<String>,
    /// The SQLSTATE, where it differs from the one derived from the kind and text of the error.
    pub code: Option<SqlState>,
    /// The name the error is about, folded: its place in the text is the position when no better one is known.
    pub(crate) subject: Option<String>,
    /// True if a 64-bit sum of integers may have overflowed on its way; wider sums decide.
    pub(crate) is_of_sum: bool,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { kind, message, position: None, hint: None, code: None, subject: None, is_of_sum: false }
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// Creates the error for a text that is no value of a type of integers: out of range if it is an integer.
    pub(crate) fn invalid_integer(type_name: &str, text: &str) -> Error {
        if !is_integer(text) {
            return Error::invalid_text(type_name, text);
        }
        let error = Error::invalid(format!("value \"{text}\" is out of range for type {type_name}"));
        error.about(format!("'{text}'")).with_code(SqlState::NUMERIC_VALUE_OUT_OF_RANGE)
    }

    /// Creates the error for a text that is no value of a type.
    pub(crate) fn invalid_text(type_name: &str, text: &str) -> Error {
        let error = Error::invalid(format!("invalid input for type {type_name}: \"{text}\""));
        error.about(format!("'{text}")).with_code(SqlState::INVALID_TEXT_REPRESENTATION)
    }

    /// Creates the error for a text that is no value of a type of dates or times.
    ///
    /// A date with a month or day that does not exist has PostgreSQL's code for it.
    pub(crate) fn invalid_time(type_name: &str, text: &str) -> Error {
        let trimmed = text.trim();
        if ["infinity", "-infinity"].contains(&trimmed.to_ascii_lowercase().as_str()) {
            let error = Error::invalid(format!("\"{trimmed}\" is not supported as a value of type {type_name}"));
            return error.about(format!("'{text}'")).with_code(SqlState::FEATURE_NOT_SUPPORTED);
        }
        let error = Error::invalid_text(type_name, text);
        if is_date_shaped(trimmed) { error.with_code(SqlState::DATETIME_FIELD_OVERFLOW) } else { error }
    }

    /// Creates the error for a sum of integers that may exceed 64 bits.
    pub(crate) fn sum_past_end() -> Error {
        Error { is_of_sum: true, ..Error::invalid("value out of range: the sum does not fit LONG") }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// What a statement is told that was stopped.
    #[must_use]
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Unavailable, "canceling statement due to user request")
    }

    pub(crate) fn table_not_found(table: &str) -> Error {
        let error = Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist"));
        Error { subject: Some(tidalite_types::schema::fold_name(table)), ..error }
    }

    /// Creates the error for a column that is not among `known`.
    pub(crate) fn column_not_found<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
        const SYSTEM_COLUMNS: &[&str] = &["tableoid", "xmin", "xmax", "cmin", "cmax"];
        let error = Error::new(ErrorKind::NotFound, format!("column \"{name}\" does not exist"));
        let error = error.about(name).with_code(SqlState::UNDEFINED_COLUMN);
        if name == "ctid" {
            return error
                .with_hint("rows have no addresses; in DuckDB, SET pg_use_ctid_scan = false reads without them");
        }
        match crate::names::nearest(name, known) {
            Some(name) => error.with_hint(format!("perhaps you meant \"{name}\"")),
            None if SYSTEM_COLUMNS.contains(&name) => error.with_hint("tables have no system columns"),
            None => error,
        }
    }

    #[must_use]
    pub fn at(mut self, position: usize) -> Error {
        self.position.get_or_insert(position);
        self
    }

    /// What it is about, by its folded name.
    #[must_use]
    pub(crate) fn about(mut self, subject: impl Into<String>) -> Error {
        self.subject = Some(subject.into());
        self
    }

    #[must_use]
    pub fn with_code(mut self, code: SqlState) -> Error {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Completes the error of a missing column whose name is in double quotes, as text constants are elsewhere.
    #[must_use]
    pub(crate) fn of_quoted_column(mut self, written: &str) -> Error {
        if self.code == Some(SqlState::UNDEFINED_COLUMN) && self.hint.is_none() {
            self.message = format!("column \"{written}\" does not exist");
            self.hint = Some(format!("text constants are in single quotes: '{written}'"));
        }
        self
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Returns true for an integer of any size.
pub(crate) fn is_integer(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns true for a year, a month and a day in digits, optionally followed by other text.
fn is_date_shaped(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.next().is_some_and(|year| year.len() >= 4 && is_number(year))
        && parts.next().is_some_and(is_number)
        && parts.next().is_some_and(|rest| rest.bytes().next().is_some_and(|b| b.is_ascii_digit()))
}

impl From<tidalite_storage::Error> for Error {
    fn from(error: tidalite_storage::Error) -> Error {
        Error::new(error.kind(), error.to_string())
    }
}

/// Our own errors travel through DataFusion's operators as external ones and come out as they went in.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        from_datafusion(&error)
    }
}

fn from_datafusion(error: &DataFusionError) -> Error {
    if let DataFusionError::Plan(text)
    | DataFusionError::Execution(text)
    | DataFusionError::NotImplemented(text)
    | DataFusionError::Internal(text) = error
        && let Some(known) = reworded::reworded(text)
    {
        return known;
    }
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(theirs) => from_datafusion(theirs),
                None if inner.is::<ParquetError>() => Error::invalid(worded(&inner.to_string())),
                None => unknown(&inner.to_string()),
            },
        },
        DataFusionError::ArrowError(arrow, _) => from_arrow(arrow),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(inner),
        DataFusionError::Shared(inner) => from_datafusion(Arc::as_ref(inner)),
        DataFusionError::Collection(errors) if !errors.is_empty() => from_datafusion(&errors[0]),
        // What a file of the user holds.
        DataFusionError::ParquetError(error) => Error::invalid(worded(&error.to_string())),
        DataFusionError::SchemaError(error, _) => from_schema(error),
        DataFusionError::SQL(error, _) => Error::invalid(worded(&error.to_string())),
        DataFusionError::Plan(message) => from_plan(message),
        DataFusionError::Execution(message) | DataFusionError::Configuration(message) => {
            Error::invalid(worded(message))
        }
        DataFusionError::NotImplemented(message) => Error::invalid(format!("not supported: {}", worded(message))),
        DataFusionError::ResourcesExhausted(message) => out_of_memory(message),
        DataFusionError::ObjectStore(error) => from_store(error),
        DataFusionError::IoError(error) if spill::ours(error).is_some() => {
            spill::ours(error).cloned().unwrap_or_else(|| Error::internal(error.to_string()))
        }
        DataFusionError::IoError(error) => Error::new(ErrorKind::Unavailable, worded(&error.to_string())),
        other => unknown(&other.strip_backtrace()),
    }
}

/// Returns the operation of an operator in the words of SQL; `None` for other operators.
pub(crate) fn operation(operator: &str) -> Option<&'static str> {
    const OPERATIONS: &[(&str, &str)] = &[
        ("Join", "join"),
        ("Sort", "sort"),
        ("TopK", "sort"),
        ("Aggregate", "aggregation"),
        ("Group", "aggregation"),
        ("Window", "window"),
        ("window", "window"),
        ("SMJ", "join"),
        ("Recursive", "recursive query"),
        ("Repartition", "distribution of rows"),
        ("Latest", "LATEST ON"),
        ("Scan", "scan"),
        ("InOrder", "scan"),
        ("Rows", "scan"),
        ("Buffer", "scan"),
    ];
    OPERATIONS.iter().find(|(part, _)| operator.contains(part)).map(|(_, operation)| *operation)
}

fn out_of_memory(message: &str) -> Error {
    // The texts of the pool of a statement name the setting; others name operators and settings of DataFusion.
    let text = match message.contains(SETTING) {
        true => format!("out of memory for this query: {}", worded(message)),
        false => "out of memory for this query".to_owned(),
    };
    Error::new(ErrorKind::Unavailable, text)
        .with_code(SqlState::OUT_OF_MEMORY)
        .with_hint("raise query.memory_bytes or memory.bytes, or ask for less at a time")
}

fn from_store(error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    match error {
        Store::InvalidPath { source } => Error::invalid(format!("invalid path: {}", worded(&source.to_string()))),
        Store::NotFound { path, .. } => Error::new(ErrorKind::NotFound, format!("no file at '{path}'")),
        Store::Generic { source, .. } => Error::new(ErrorKind::Unavailable, worded(&source.to_string())),
        other => Error::new(ErrorKind::Unavailable, worded(&other.to_string())),
    }
}

/// What comes from below the planner: of a kind that is known by its text, or a bug.
fn unknown(text: &str) -> Error {
    reworded::reworded(text).unwrap_or_else(|| Error::internal(worded(text)))
}

fn from_arrow(error: &arrow::error::ArrowError) -> Error {
    use arrow::error::ArrowError;
    if let ArrowError::CastError(text)
    | ArrowError::ParseError(text)
    | ArrowError::ComputeError(text)
    | ArrowError::InvalidArgumentError(text)
    | ArrowError::ArithmeticOverflow(text) = error
        && let Some(known) = reworded::reworded(text)
    {
        return known;
    }
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(theirs) => from_datafusion(theirs),
            None => unknown(&inner.to_string()),
        },
        ArrowError::IoError(_, error) if spill::ours(error).is_some() => {
            spill::ours(error).cloned().unwrap_or_else(|| Error::internal(error.to_string()))
        }
        ArrowError::DivideByZero => Error::invalid("division by zero").with_code(SqlState::DIVISION_BY_ZERO),
        ArrowError::CastError(m)
        | ArrowError::ParseError(m)
        | ArrowError::ComputeError(m)
        | ArrowError::ArithmeticOverflow(m) => Error::invalid(worded(m)),
        other => {
            let text = other.to_string();
            reworded::reworded(&text).unwrap_or_else(|| Error::invalid(worded(&text)))
        }
    }
}

fn from_schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let name = without_side(&field.name);
            // The column of a table that is not there.
            if let Some(table) = &field.relation
                && valid_fields.iter().any(|known| known.name == name)
                && !valid_fields.iter().any(|known| known.relation.as_ref().is_some_and(|r| r.table() == table.table()))
            {
                let message = format!("missing FROM-clause entry for table \"{}\"", table.table());
                let mut error = Error::new(ErrorKind::NotFound, message);
                error.subject = Some(table.table().to_owned());
                return error.with_code(SqlState::UNDEFINED_TABLE);
            }
            Error::column_not_found(name, valid_fields.iter().map(|c| without_side(&c.name)))
        }
        SchemaError::AmbiguousReference { field } => {
            let mut error = Error::invalid(format!("column reference \"{}\" is ambiguous", field.name));
            error.subject = Some(field.name.clone());
            error
        }
        other => Error::invalid(worded(&other.to_string())),
    }
}

fn from_plan(message: &str) -> Error {
    if let Some(name) = message.strip_prefix("table '").and_then(|m| m.strip_suffix("' not found")) {
        let parts: Vec<&str> = name.splitn(3, '.').collect();
        return match parts[..] {
            [_, schema, _]
                if schema != crate::tables::SCHEMA
                    && schema != crate::pg_catalog::INFORMATION_SCHEMA
                    && schema != crate::pg_catalog::PG_CATALOG =>
            {
                let mut error = Error::new(ErrorKind::NotFound, format!("schema \"{schema}\" does not exist"));
                error.subject = Some(schema.to_owned());
                error
            }
            _ => Error::table_not_found(parts.last().unwrap_or(&name)),
        };
    }
    if let Some(name) = message.strip_prefix("table function '").and_then(|m| m.strip_suffix("' not found")) {
        let mut error = Error::new(ErrorKind::NotFound, format!("table function {name} does not exist"));
        error.subject = Some(name.to_owned());
        if let Some(near) = crate::names::nearest(name, crate::functions::meta::table_names()) {
            error.hint = Some(format!("perhaps you meant {near}"));
        }
        return error;
    }
    if let Some(rest) = message.strip_prefix("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return no_function(name);
    }
    Error::invalid(worded(message))
}

/// Names of functions in other databases, and their names here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("average", "avg"),
    ("mean", "avg"),
    ("std", "stddev"),
    ("stdev", "stddev"),
    ("len", "length"),
    ("ifnull", "coalesce"),
    ("isnull", "coalesce"),
    ("getdate", "now"),
    ("date_add", "dateadd"),
    ("date_diff", "datediff"),
    ("datepart", "date_part"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("charindex", "strpos"),
    ("group_concat", "string_agg"),
    ("listagg", "string_agg"),
    ("argmax", "arg_max"),
    ("argmin", "arg_min"),
];

/// Returns the error for a function that does not exist, or is a window function without OVER.
pub(crate) fn no_function(name: &str) -> Error {
    let folded = name.to_lowercase();
    if crate::functions::meta::all().any(|(known, kind)| known == folded && kind == "window") {
        let error = Error::invalid(format!("window function {folded} requires an OVER clause")).about(folded);
        return error.with_code(SqlState::WRONG_OBJECT_TYPE);
    }
    let error = Error::new(ErrorKind::NotFound, format!("function {name} does not exist")).about(folded.clone());
    let names = || crate::functions::meta::names();
    let other = crate::names::nearest(&folded, OTHER_NAMES.iter().map(|(other, _)| *other));
    let other = OTHER_NAMES.iter().find(|(known, _)| other == Some(*known)).map(|(_, own)| *own);
    let is_other = OTHER_NAMES.iter().any(|(known, _)| *known == folded);
    let near = if is_other { other } else { crate::names::nearest(&folded, names()).or(other) };
    match near.filter(|near| names().any(|known| known == *near)) {
        Some(near) => error.with_hint(format!("perhaps you meant {near}")),
        None => error,
    }
}

/// A message in the house's wording: one line, no prefix that names a library's stage, lower case, no full stop.
fn worded(message: &str) -> String {
    let mut text = message.split("\n\nbacktrace:").next().unwrap_or_default().trim();
    const PREFIXES: &[&str] = &[
        "Error during planning: ",
        "Execution error: ",
        "Optimizer rule ",
        "Arrow error: ",
        "Cast error: ",
        "Parser error: ",
        "External error: ",
        "sql parser error: ",
        "Internal error: ",
        "This feature is not implemented: ",
    ];
    while let Some(rest) = PREFIXES.iter().find_map(|p| text.strip_prefix(p)) {
        text = rest;
    }
    let text = text.split("\nThis issue was likely caused by").next().unwrap_or_default();
    let text = text.trim_end_matches(|c: char| c == '.' || c.is_whitespace());
    let text = types::in_sql(text);
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        // An abbreviation such as SQL stays as it is.
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text,
    }
}
