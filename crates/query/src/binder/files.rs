//! Files in FROM: `read_csv('…')`, `read_parquet('…')` and `'file.parquet'`.
//!
//! The columns of files must be known before a query is bound: the engine checks access to the files of the calls that
//! [`super::tables::file_calls`] returns, and opens them.

use super::from::aliased;
use super::names::{folded, folded_parts, table_reference};
use super::scope::Source;
use super::{Binder, Parameters, Result};
use crate::functions::FileReader;
use crate::{Error, Parameter};
use datafusion::common::TableReference;
use datafusion::logical_expr::LogicalPlanBuilder;
use tidalite_sql::Span;
use tidalite_sql::ast::{
    Alias, BinaryOperator, Expr, ExprKind, FunctionArg, FunctionCall, Literal, ObjectName, Quote, Relation,
    RelationKind,
};

/// A call of a function that reads files.
#[derive(Clone, Debug)]
pub(crate) struct FileCall {
    pub function: FileReader,
    /// The paths; never empty.
    pub paths: Vec<String>,
    pub options: Vec<(String, FileOption)>,
}

/// The value of an option.
#[derive(Clone, Debug)]
pub(crate) enum FileOption {
    Text(String),
    Flag(bool),
    Number(String),
    /// Another value than a constant of these types.
    Other,
}

/// Returns the call of a relation that names a file or a function that reads files, with its place.
pub(super) fn call(binder: &Binder, relation: &Relation) -> Result<Option<(Span, FileCall)>> {
    match &relation.kind {
        RelationKind::Function { call, .. } => {
            let parts = folded_parts(&call.name);
            let function = match parts.as_slice() {
                [name] => FileReader::named(name),
                _ => None,
            };
            let of_call = |function| binder.file_call(function, call).map(|found| (call.name.span, found));
            function.map(of_call).transpose()
        }
        // A table of the name precedes the file.
        RelationKind::Table { name } => {
            let is_table = table_reference(&folded_parts(name)).is_some_and(|name| binder.tables.get(&name).is_some());
            Ok(named_file(name).filter(|_| !is_table).map(|call| (name.span, call)))
        }
        _ => Ok(None),
    }
}

/// Returns the call for a file that is named in FROM.
fn named_file(name: &ObjectName) -> Option<FileCall> {
    let [only] = name.parts.as_slice() else { return None };
    if only.quote != Some(Quote::Single) {
        return None;
    }
    let function = FileReader::of_path(&only.value)?;
    Some(FileCall { function, paths: vec![only.value.clone()], options: Vec::new() })
}

/// Returns the error for arguments that are not paths and options.
fn usage(function: FileReader, span: Span) -> Error {
    let function = function.name();
    Error::invalid(format!("{function}() takes the path of a file, or a list of them"))
        .with_hint(format!("{function}('data/*.csv'), {function}(['a', 'b'])"))
        .at(span.start as usize)
}

impl Binder<'_> {
    /// Binds a file in FROM; `None` if the place has no file.
    pub(super) fn file(&self, place: Span, name: &str, alias: Option<&Alias>) -> Result<Option<Source>> {
        let Some(table) = self.tables.file(place) else { return Ok(None) };
        let plan = LogicalPlanBuilder::scan(TableReference::bare(name), table.clone(), None)?.build()?;
        Ok(Some(Source::of_plan(aliased(plan, alias)?)))
    }

    fn file_call(&self, function: FileReader, call: &FunctionCall) -> Result<FileCall> {
        let usage = || usage(function, call.name.span);
        let Some((FunctionArg::Expr(paths), options)) = call.args.split_first() else { return Err(usage().into()) };
        let paths = match &paths.kind {
            ExprKind::Array(list) => list.iter().map(|path| self.constant_string(path)).collect(),
            _ => self.constant_string(paths).map(|path| vec![path]),
        };
        let paths = paths.filter(|paths: &Vec<String>| !paths.is_empty()).ok_or_else(usage)?;
        let option = |arg: &FunctionArg| match arg {
            FunctionArg::Named { name, value } => Some((folded(name), self.file_option(value))),
            FunctionArg::Expr(Expr { kind: ExprKind::Binary { left, op: BinaryOperator::Equal, right }, .. }) => {
                match &left.kind {
                    ExprKind::Column(name) if name.parts.len() == 1 => {
                        Some((folded(&name.parts[0]), self.file_option(right)))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let options = options.iter().map(|arg| option(arg).ok_or_else(usage)).collect::<std::result::Result<_, _>>()?;
        Ok(FileCall { function, paths, options })
    }

    /// Returns a constant string; `None` for other expressions.
    fn constant_string(&self, expr: &Expr) -> Option<String> {
        match (&expr.kind, self.parameters) {
            (ExprKind::Literal(Literal::Text(text)), _) => Some(text.clone()),
            (ExprKind::Parameter(number), Parameters::Values(_)) => match self.value_of(*number, expr.span).ok()? {
                Parameter::Text(text) | Parameter::Typed(text, _) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn file_option(&self, value: &Expr) -> FileOption {
        match &value.kind {
            ExprKind::Literal(Literal::Boolean(flag)) => FileOption::Flag(*flag),
            ExprKind::Literal(Literal::Number(digits)) => FileOption::Number(digits.clone()),
            ExprKind::Parameter(number) if matches!(self.parameters, Parameters::Values(_)) => {
                match self.value_of(*number, value.span) {
                    Ok(Parameter::Boolean(flag)) => FileOption::Flag(*flag),
                    Ok(Parameter::Long(number)) => FileOption::Number(number.to_string()),
                    Ok(Parameter::Text(text) | Parameter::Typed(text, _)) => FileOption::Text(text.clone()),
                    _ => FileOption::Other,
                }
            }
            _ => self.constant_string(value).map_or(FileOption::Other, FileOption::Text),
        }
    }
}
