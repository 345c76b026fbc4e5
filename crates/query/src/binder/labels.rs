//! Names of columns that have none: the name of the function, or the text of the expression.
//!
//! The text is taken from the statement by the span of the expression, with keywords in upper case, names folded, and
//! one space between operators and operands.

use super::names::folded;
use super::{Binder, Parameters};
use crate::Parameter;
use tidalite_sql::ast::{Expr, ExprKind, SpecialCall, UnaryOperator};
use tidalite_sql::{Span, Symbol, Token, TokenKind, lexer};
use tidalite_types::schema::fold_name;

/// The maximum length of a name that is the text of an expression.
const NAME_BYTES_MAX: usize = 64;
/// The name of an expression with a longer text.
const OTHER: &str = "column";

/// Words that are printed in upper case.
const KEYWORDS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "at",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "current",
    "desc",
    "distinct",
    "else",
    "end",
    "escape",
    "exists",
    "filter",
    "following",
    "for",
    "from",
    "group",
    "groups",
    "ilike",
    "in",
    "interval",
    "is",
    "like",
    "not",
    "null",
    "or",
    "order",
    "over",
    "partition",
    "placing",
    "preceding",
    "range",
    "row",
    "rows",
    "select",
    "similar",
    "some",
    "symmetric",
    "then",
    "time",
    "to",
    "try_cast",
    "unbounded",
    "unknown",
    "when",
    "where",
    "within",
    "xor",
    "zone",
];

/// The comma between two subscripts, as it is printed.
const NEXT_DIMENSION: &str = "][";

/// Keywords that are followed by parentheses without a space.
const CALLED: &[&str] = &["all", "any", "array", "cast", "some", "try_cast"];

/// Type names that are printed in upper case.
const TYPES: &[&str] = &[
    "bigint",
    "binary",
    "bool",
    "boolean",
    "bytea",
    "char",
    "date",
    "decimal",
    "double",
    "float",
    "float4",
    "float8",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "numeric",
    "precision",
    "real",
    "regclass",
    "smallint",
    "string",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "tinyint",
    "uuid",
    "varchar",
    "with",
    "without",
    "zone",
];

/// Units after an interval, which are printed in upper case.
const UNITS: &[&str] = &["year", "month", "day", "hour", "minute", "second", "to"];

impl Binder<'_> {
    /// Returns the name of a computed column.
    pub(super) fn label(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Function(call) => {
                let name = call.name.parts.last().map(folded).unwrap_or_default();
                if name == "substr" { "substring".to_owned() } else { name }
            }
            ExprKind::Special(call) => match &**call {
                SpecialCall::Extract { .. } => "extract".to_owned(),
                SpecialCall::Position { .. } => "position".to_owned(),
                SpecialCall::Substring { .. } => "substring".to_owned(),
                SpecialCall::Trim { .. } => "trim".to_owned(),
                SpecialCall::Round { name, .. } | SpecialCall::Keyword(name) => folded(name),
                SpecialCall::Overlay { .. } => self.short_text(expr.span),
            },
            ExprKind::Column(name) => name.parts.last().map(folded).unwrap_or_default(),
            ExprKind::Cast { operand, data_type, .. } => match operand.kind {
                ExprKind::Literal(_) | ExprKind::Parameter(_) => self.type_text(data_type.span).to_lowercase(),
                _ => self.label(operand),
            },
            ExprKind::Case { .. } => "case".to_owned(),
            ExprKind::ArrayQuery(_) => "array".to_owned(),
            ExprKind::Exists(_) => "exists".to_owned(),
            ExprKind::Unary { op: UnaryOperator::Not, operand } if matches!(operand.kind, ExprKind::Exists(_)) => {
                "exists".to_owned()
            }
            ExprKind::Subquery(_) => OTHER.to_owned(),
            ExprKind::Row(_) => self.short_text(expr.span),
            _ => self.short_text(without_parentheses(self.text, expr.span)),
        }
    }

    fn short_text(&self, span: Span) -> String {
        let text = self.written(span);
        if text.len() <= NAME_BYTES_MAX { text } else { OTHER.to_owned() }
    }

    /// Returns the text of a span in the usual spacing.
    pub(super) fn written(&self, span: Span) -> String {
        self.text_by(Writer::default(), span)
    }

    fn type_text(&self, span: Span) -> String {
        self.text_by(Writer { is_type: true, ..Writer::default() }, span)
    }

    fn text_by(&self, mut writer: Writer, span: Span) -> String {
        let slice = span.slice(self.text);
        let Ok(tokens) = lexer::tokens(slice) else { return slice.to_owned() };
        for at in 0..tokens.len().saturating_sub(1) {
            let is_typed_text = matches!(tokens[at + 1].kind, TokenKind::String);
            writer.token(tokens[at], tokens[at].span.slice(slice), is_typed_text, self);
        }
        writer.out
    }

    /// Returns the constant that stands for `$1`.
    fn parameter_text(&self, written: &str) -> String {
        let number: Option<usize> = written[1..].parse().ok();
        let Parameters::Values(values) = self.parameters else { return written.to_owned() };
        match number.and_then(|number| values.get(number.checked_sub(1)?)) {
            Some(Parameter::Null) => "NULL".to_owned(),
            Some(Parameter::Boolean(value)) => value.to_string(),
            Some(Parameter::Long(value)) => value.to_string(),
            Some(Parameter::Double(value)) => format!("{value:?}"),
            Some(Parameter::Decimal(value)) => value.clone(),
            Some(Parameter::Text(value)) => format!("'{}'", value.replace('\'', "''")),
            _ => written.to_owned(),
        }
    }
}

/// Writes tokens with the usual spacing.
#[derive(Default)]
struct Writer {
    out: String,
    last: Last,
    /// A type name follows, as after `::`.
    is_type: bool,
    /// Open parentheses of a type, such as those of `DECIMAL(10,2)`.
    type_depth: usize,
    /// The unit of an interval may follow.
    is_interval: bool,
    /// Open brackets: true for a subscript whose current dimension is a slice.
    brackets: Vec<Option<bool>>,
}

impl Writer {
    fn token(&mut self, token: Token, written: &str, is_typed_text: bool, binder: &Binder) {
        let (text, kind) = match token.kind {
            TokenKind::Word(_) => self.word(written, is_typed_text),
            TokenKind::QuotedName | TokenKind::BacktickName | TokenKind::UnicodeName => {
                (fold_name(written), Last::Word)
            }
            TokenKind::Parameter => (binder.parameter_text(written), Last::Value),
            TokenKind::Symbol(symbol) => self.symbol(symbol, written),
            _ => (written.to_owned(), Last::Value),
        };
        let is_within_type = self.type_depth > 0 || self.is_type && kind == Last::Open;
        if !is_within_type && needs_space(self.last, kind, &text) {
            self.out.push(' ');
        }
        self.out.push_str(&text);
        match kind {
            Last::Open if is_within_type => self.type_depth += 1,
            Last::Close if self.type_depth > 0 => self.type_depth -= 1,
            _ => {}
        }
        self.is_type = text == "AS" || text == "::" || self.is_type && (kind == Last::Word || self.type_depth > 0);
        self.is_interval = text == "INTERVAL" || self.is_interval && kind != Last::Operator && kind != Last::Comma;
        self.last = kind;
    }

    fn word(&self, written: &str, is_typed_text: bool) -> (String, Last) {
        let name = fold_name(written);
        if self.is_interval && self.last != Last::Keyword && UNITS.contains(&name.as_str()) {
            return (name.to_uppercase(), Last::Word);
        }
        if KEYWORDS.contains(&name.as_str()) && self.last != Last::Glue {
            let kind = if CALLED.contains(&name.as_str()) { Last::Word } else { Last::Keyword };
            return (name.to_uppercase(), kind);
        }
        let is_type = (self.is_type || is_typed_text) && TYPES.contains(&name.as_str());
        (if is_type { name.to_uppercase() } else { name }, Last::Word)
    }

    fn symbol(&mut self, symbol: Symbol, written: &str) -> (String, Last) {
        let plain = |kind| (written.to_owned(), kind);
        match symbol {
            Symbol::LeftBracket => {
                let is_subscript = matches!(self.last, Last::Word | Last::Close) && !self.out.ends_with("ARRAY");
                self.brackets.push(is_subscript.then_some(false));
                plain(Last::Open)
            }
            Symbol::LeftParen | Symbol::LeftBrace => {
                self.brackets.push(None);
                plain(Last::Open)
            }
            Symbol::RightParen | Symbol::RightBracket | Symbol::RightBrace => {
                self.brackets.pop();
                plain(Last::Close)
            }
            Symbol::Comma => {
                let was_slice = self.brackets.last_mut().and_then(Option::as_mut).map(std::mem::take);
                // The next dimension of an element is a subscript of its own.
                if was_slice == Some(false) { (NEXT_DIMENSION.to_owned(), Last::Open) } else { plain(Last::Comma) }
            }
            Symbol::Colon => {
                if let Some(Some(is_slice)) = self.brackets.last_mut() {
                    *is_slice = true;
                }
                plain(Last::Glue)
            }
            Symbol::Period | Symbol::DoubleColon => plain(Last::Glue),
            Symbol::NotEqualC => ("<>".to_owned(), Last::Operator),
            _ if self.last.begins_operand() => plain(Last::Prefix),
            _ => plain(Last::Operator),
        }
    }
}

/// The kind of the last token.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Start,
    Open,
    Close,
    Comma,
    /// A period or a colon, which no space separates.
    Glue,
    Operator,
    /// An operator before its operand.
    Prefix,
    Keyword,
    Word,
    Value,
}

impl Last {
    fn begins_operand(self) -> bool {
        matches!(self, Last::Start | Last::Open | Last::Comma | Last::Operator | Last::Prefix | Last::Keyword)
    }
}

fn needs_space(last: Last, kind: Last, text: &str) -> bool {
    match (last, kind) {
        (Last::Start | Last::Open | Last::Glue | Last::Prefix, _) => false,
        (_, Last::Close | Last::Comma | Last::Glue) => false,
        (Last::Word, Last::Open) => false,
        (Last::Close | Last::Value, Last::Open) => text != "[" && text != NEXT_DIMENSION,
        _ => true,
    }
}

/// Returns the span without parentheses around all of it.
fn without_parentheses(text: &str, span: Span) -> Span {
    let mut span = span;
    loop {
        let slice = span.slice(text);
        let Ok(tokens) = lexer::tokens(slice) else { return span };
        let [first, .., last, _] = tokens.as_slice() else { return span };
        let mut depth = 0_i32;
        let closes = tokens.iter().position(|token| {
            match token.kind {
                TokenKind::Symbol(Symbol::LeftParen) => depth += 1,
                TokenKind::Symbol(Symbol::RightParen) => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let is_around = first.kind == TokenKind::Symbol(Symbol::LeftParen) && closes == Some(tokens.len() - 2);
        if !is_around || tokens.len() < 4 {
            return span;
        }
        span = Span { start: span.start + first.span.end, end: span.start + last.span.start };
    }
}
