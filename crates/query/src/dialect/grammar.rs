//! What the tokenizer and the stock query parser accept.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::any::TypeId;
use std::cell::Cell;

/// Below that of a cast, above that of a product.
const ARROW_PRECEDENCE: u8 = 45;
/// Below that of a sum, above that of a comparison.
const CONCATENATION_PRECEDENCE: u8 = 25;

/// The stock generic dialect, which DataFusion itself is tested with, and what QuestDB's users write besides.
#[derive(Debug)]
pub(crate) struct TidaliteDialect;

/// Operands that the stock parser may begin: for each token, and for a short statement.
///
/// The stock parser begins some operands several times, and takes 2ⁿ time for n nested expressions that contain a
/// syntax error; at this limit it stops.
const STEPS_PER_TOKEN: usize = 64;
const STEPS_MIN: usize = 10_000;

thread_local! {
    /// Operands that the stock parser may still begin on this thread.
    ///
    /// The parser's hook gets only the dialect, which is one static value.
    static STEPS: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A guard during whose lifetime the stock parser stops after a number of steps.
pub(super) struct StepLimit {
    before: usize,
}

impl StepLimit {
    pub(super) fn new(tokens: usize) -> StepLimit {
        StepLimit { before: STEPS.replace(STEPS_MIN + STEPS_PER_TOKEN * tokens) }
    }
}

impl Drop for StepLimit {
    fn drop(&mut self) {
        STEPS.set(self.before);
    }
}

macro_rules! supported {
    ($($method:ident)*) => { $(fn $method(&self) -> bool { true })* };
}

impl Dialect for TidaliteDialect {
    /// Grammar that the parser grants to dialects by name is granted as to the generic one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"' || c == '`'
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_' || c == '#' || c == '@'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@')
    }

    /// Counts a step and parses nothing.
    ///
    /// At the limit the result is the error that the parser passes on at once.
    fn parse_prefix(&self, _: &mut Parser) -> Option<std::result::Result<Expr, ParserError>> {
        let left = STEPS.get();
        STEPS.set(left.saturating_sub(1));
        (left == 0).then_some(Err(ParserError::RecursionLimitExceeded))
    }

    /// As in PostgreSQL: `document ->> 'a' = 'b'` compares what is in the document, `'a' || 1 + 2` is `a3`.
    fn get_next_precedence(&self, parser: &Parser) -> Option<std::result::Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Arrow | Token::LongArrow => Some(Ok(ARROW_PRECEDENCE)),
            Token::StringConcat => Some(Ok(CONCATENATION_PRECEDENCE)),
            _ => None,
        }
    }

    /// Without AS, a column cannot be named by the first word of a clause that follows the rows of an INSERT.
    fn is_column_alias(&self, keyword: &Keyword, _: &mut Parser) -> bool {
        !RESERVED_FOR_COLUMN_ALIAS.contains(keyword) && !matches!(keyword, Keyword::ON | Keyword::RETURNING)
    }

    supported! {
        supports_unicode_string_literal supports_group_by_expr supports_group_by_with_modifier
        supports_left_associative_joins_without_parens supports_window_function_null_treatment_arg
        supports_dictionary_syntax supports_window_clause_named_window_reference supports_select_wildcard_except
        support_map_literal_syntax allow_extract_custom allow_extract_single_quotes supports_extract_comma_syntax
        supports_parens_around_table_factor supports_values_as_table_factor supports_limit_comma
        supports_from_first_select supports_projection_trailing_commas supports_try_convert
        supports_bitwise_shift_operators supports_named_fn_args_with_assignment_operator supports_nested_comments
        supports_string_escape_constant supports_array_typedef_with_brackets supports_filter_during_aggregation
        supports_select_wildcard_exclude supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_interval_options supports_numeric_literal_underscores supports_in_empty_list
        supports_order_by_all supports_subquery_as_function_arg supports_notnull_operator
    }
}

/// A query that begins with FROM and has no SELECT gets one: `FROM t WHERE …` is `SELECT * FROM t WHERE …`.
/// The stock parser knows the short form only without clauses after it. `TABLE t` is `SELECT * FROM t`.
pub(super) fn with_select(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let Some(at) = bare(&tokens) else { return selected(&tokens) };
    let select = [Token::make_keyword("select"), Token::Mul, Token::make_keyword("from")];
    let select = select.map(|token| TokenWithSpan::new(token, tokens[at].span));
    [tokens[..at].to_vec(), select.to_vec(), selected(&tokens[at..])].concat()
}

fn selected(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut begins_query = true;
    // Whether each parenthesis that is open can only hold a query or a table.
    let mut holds_query: Vec<bool> = Vec::new();
    // Behind AS stands a query once, in CREATE … AS; else a name, which may have WHERE behind it.
    let mut names = tokens.first().is_none_or(|t| keyword(&t.token) != Some(Keyword::CREATE));
    let mut is_named = false;
    for (at, token) in tokens.iter().enumerate() {
        let keyword = keyword(&token.token);
        let is_from = keyword == Some(Keyword::FROM) && !has_select(&tokens[at + 1..]);
        let is_table = keyword == Some(Keyword::TABLE);
        // `(t LATEST ON …)`, `(t WHERE …)`.
        let is_name =
            matches!(&token.token, Token::Word(w) if w.quote_style.is_some() || w.keyword == Keyword::NoKeyword);
        let follows = match tokens.get(at + 1).map(|t| &t.token) {
            Some(Token::Word(w)) if w.quote_style.is_none() => w.value.as_str(),
            _ => "",
        };
        // Elsewhere `(w ORDER BY v)` is a window.
        let clauses: &[&str] =
            if holds_query.last() == Some(&true) { &["sort", "where", "order", "limit"] } else { &["sort", "where"] };
        let is_bare = begins_query && !is_named && is_name && at > 0 && clauses.contains(&follows);
        if is_bare {
            out.push(TokenWithSpan::new(Token::make_keyword("select"), token.span));
            out.push(TokenWithSpan::new(Token::Mul, token.span));
            out.push(TokenWithSpan::new(Token::make_keyword("from"), token.span));
        }
        if begins_query && (is_from || is_table) {
            out.push(TokenWithSpan::new(Token::make_keyword("select"), token.span));
            out.push(TokenWithSpan::new(Token::Mul, token.span));
        }
        if begins_query && is_table {
            begins_query = false;
            out.push(TokenWithSpan::new(Token::make_keyword("from"), token.span));
            continue;
        }
        match token.token {
            Token::LParen => holds_query.push(match tokens[..at].last() {
                None => true,
                Some(before) if before.token == Token::LParen => holds_query.last() == Some(&true),
                Some(before) => is_before_query(&before.token),
            }),
            Token::RParen => drop(holds_query.pop()),
            _ => {}
        }
        if !matches!(token.token, Token::Whitespace(_)) {
            is_named = names && keyword == Some(Keyword::AS);
            names |= keyword == Some(Keyword::AS);
            begins_query = matches!(token.token, Token::LParen | Token::SemiColon)
                || matches!(
                    keyword,
                    Some(
                        Keyword::UNION
                            | Keyword::ALL
                            | Keyword::EXCEPT
                            | Keyword::INTERSECT
                            | Keyword::AS
                            | Keyword::EXPLAIN
                            | Keyword::ANALYZE
                    )
                );
        }
        out.push(token.clone());
    }
    out
}

/// Whether parentheses behind it hold a query or a table, nothing else.
fn is_before_query(token: &Token) -> bool {
    use Keyword::{ALL, ANALYZE, EXCEPT, EXPLAIN, FROM, INTERSECT, JOIN, LATERAL, UNION};
    keyword(token).is_some_and(|k| [ALL, ANALYZE, EXCEPT, EXPLAIN, FROM, INTERSECT, JOIN, LATERAL, UNION].contains(&k))
}

/// Where a statement begins that is a table with something behind it: `tables()`, `t WHERE …`, `(SELECT …) PIVOT (…)`.
fn bare(tokens: &[TokenWithSpan]) -> Option<usize> {
    const CLAUSES: &[&str] = &["where", "sort", "order", "limit", "pivot", "unpivot"];
    const STATEMENTS: &[&str] = &[
        "select",
        "with",
        "from",
        "values",
        "table",
        "create",
        "alter",
        "drop",
        "truncate",
        "rename",
        "insert",
        "delete",
        "update",
        "show",
        "explain",
        "cancel",
        "check",
        "backup",
        "begin",
        "start",
        "commit",
        "rollback",
        "abort",
        "end",
        "set",
        "reset",
        "discard",
        "deallocate",
        "close",
        "copy",
        "refresh",
        "analyze",
        "pivot",
        "unpivot",
        "declare",
    ];
    let is_explain = |t: &TokenWithSpan| matches!(&t.token, Token::Word(w) if ["explain", "analyze", "verbose"].contains(&w.value.as_str()));
    let at = tokens.iter().position(|t| !is_explain(t))?;
    let word = |n: usize| match &tokens.get(n)?.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.as_str()),
        _ => None,
    };
    let is_clause = |n: usize| word(n).is_some_and(|w| CLAUSES.contains(&w));
    match &tokens[at].token {
        Token::LParen => {
            let mut depth = 0_usize;
            let closes = tokens[at..].iter().position(|t| {
                match t.token {
                    Token::LParen => depth += 1,
                    Token::RParen => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0
            })?;
            word(at + closes + 1).is_some_and(|w| ["pivot", "unpivot"].contains(&w)).then_some(at)
        }
        Token::Word(name) if name.quote_style.is_none() && STATEMENTS.contains(&name.value.as_str()) => None,
        Token::Word(name) => {
            let is_call = name.quote_style.is_none()
                && tokens.get(at + 1).is_some_and(|t| t.token == Token::LParen)
                && crate::functions::meta::table_names().any(|known| known == name.value);
            (is_call || is_clause(at + 1)).then_some(at)
        }
        _ => None,
    }
}

/// Whether SELECT comes before the query ends.
fn has_select(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0;
    for token in tokens {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            _ if depth > 0 => {}
            ref token => match keyword(token) {
                Some(Keyword::SELECT) => return true,
                Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT) => return false,
                _ => {}
            },
        }
    }
    false
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
