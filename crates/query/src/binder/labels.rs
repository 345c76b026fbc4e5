//! Names of columns that have none: the name of the function, or the text of the expression.
//!
//! The text is taken from the statement by the span of the expression, with keywords in upper case, names folded, and
//! one space between operators and operands.

use super::Binder;
use super::names::folded;
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
    "all", "and", "any", "array", "as", "asc", "at", "between", "by", "case", "cast", "collate", "current", "desc",
    "distinct", "else", "end", "escape", "exists", "filter", "following", "for", "from", "group", "groups", "ilike", "in",
    "interval", "is", "like", "not", "null", "or", "order", "over", "partition", "placing", "preceding", "range", "row",
    "rows", "select", "similar", "some", "symmetric", "then", "time", "to", "try_cast", "unbounded", "unknown", "when",
    "where", "within", "xor", "zone",
];

/// Keywords that are followed by parentheses without a space.
const CALLED: &[&str] = &["array", "cast", "try_cast"];

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
                ExprKind::Literal(_) | ExprKind::Parameter(_) => self.written(data_type.span).to_lowercase(),
                _ => self.label(operand),
            },
            ExprKind::Case { .. } => "case".to_owned(),
            ExprKind::Exists(_) => "exists".to_owned(),
            ExprKind::Unary { op: UnaryOperator::Not, operand } if matches!(operand.kind, ExprKind::Exists(_)) => {
                "exists".to_owned()
            }
            ExprKind::Subquery(_) => OTHER.to_owned(),
            _ => self.short_text(expr.span),
        }
    }

    fn short_text(&self, span: Span) -> String {
        let text = self.written(span);
        if text.len() <= NAME_BYTES_MAX { text } else { OTHER.to_owned() }
    }

    /// Returns the text of a span in the usual spacing.
    pub(super) fn written(&self, span: Span) -> String {
        let slice = span.slice(self.text);
        let Ok(tokens) = lexer::tokens(slice) else { return slice.to_owned() };
        let mut out = String::with_capacity(slice.len() + 8);
        let mut last = Last::Start;
        let mut types_follow = false;
        for (at, token) in tokens.iter().enumerate() {
            let is_type = types_follow || next_is_text(&tokens, at);
            let (text, kind) = self.piece(*token, slice, last, is_type);
            if kind == Last::End {
                break;
            }
            if needs_space(last, kind, &text) {
                out.push(' ');
            }
            out.push_str(&text);
            types_follow = text == "AS" || text == "::" || types_follow && kind == Last::Word;
            last = kind;
        }
        out
    }

    fn piece(&self, token: Token, slice: &str, last: Last, is_type: bool) -> (String, Last) {
        let written = token.span.slice(slice);
        match token.kind {
            TokenKind::End => (String::new(), Last::End),
            TokenKind::Word(_) => {
                let name = fold_name(written);
                if KEYWORDS.contains(&name.as_str()) && last != Last::Glue {
                    let kind = if CALLED.contains(&name.as_str()) { Last::Word } else { Last::Keyword };
                    return (name.to_uppercase(), kind);
                }
                (if is_type { name.to_uppercase() } else { name }, Last::Word)
            }
            TokenKind::QuotedName | TokenKind::BacktickName | TokenKind::UnicodeName => {
                (fold_name(written), Last::Word)
            }
            TokenKind::Parameter => (self.parameter_text(written), Last::Value),
            TokenKind::Symbol(symbol) => match symbol {
                Symbol::LeftParen | Symbol::LeftBracket | Symbol::LeftBrace => (written.to_owned(), Last::Open),
                Symbol::RightParen | Symbol::RightBracket | Symbol::RightBrace => (written.to_owned(), Last::Close),
                Symbol::Comma => (written.to_owned(), Last::Comma),
                Symbol::Period | Symbol::DoubleColon | Symbol::Colon => (written.to_owned(), Last::Glue),
                Symbol::NotEqualC => ("<>".to_owned(), Last::Operator),
                _ if last.begins_operand() => (written.to_owned(), Last::Prefix),
                _ => (written.to_owned(), Last::Operator),
            },
            _ => (written.to_owned(), Last::Value),
        }
    }

    /// Returns the constant that stands for `$1`.
    fn parameter_text(&self, written: &str) -> String {
        let number: Option<usize> = written[1..].parse().ok();
        match number.and_then(|number| self.values.get(number.checked_sub(1)?)) {
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

/// The kind of the last token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
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
    End,
}

impl Last {
    fn begins_operand(self) -> bool {
        matches!(self, Last::Start | Last::Open | Last::Comma | Last::Operator | Last::Prefix | Last::Keyword)
    }
}

fn next_is_text(tokens: &[Token], at: usize) -> bool {
    matches!(tokens.get(at + 1).map(|token| token.kind), Some(TokenKind::String))
}

fn needs_space(last: Last, kind: Last, text: &str) -> bool {
    match (last, kind) {
        (Last::Start | Last::Open | Last::Glue | Last::Prefix, _) => false,
        (_, Last::Close | Last::Comma | Last::Glue) => false,
        (Last::Word, Last::Open) => false,
        (Last::Close | Last::Value, Last::Open) => text != "[",
        _ => true,
    }
}
