//! Text to [`Statement`]: DataFusion's SQL for queries, our own grammar for everything else.
//!
//! Input: one statement, of any size and content. Output: a statement or an error with its position; never a panic.
//! Words are folded to lower case ([`crate::names`]).
//!
//! Reading order:
//!
//! - [`syntax`] rejects syntax errors; [`grammar`] limits the tokenizer and the query parser.
//! - Token rewrites before the query parser: [`postgres`], [`clauses`], [`joins`], [`timed`],
//!   [`exclusions`], [`geohashes`], [`subscripts`], [`symmetric`].
//! - [`statements`] dispatches by kind: [`create`] and [`alter`] of tables with [`columns`], [`view`], [`mod@copy`];
//!   [`types`] has type names. Statements that change rows are trees of [`crate::binder::dml`].
//! - [`rewrite`] changes queries before planning, with [`balanced`], [`laterals`], [`group_by`], [`row_values`],
//!   [`windows`], [`using`], [`relations`], [`sequences`], [`set_returning`], [`templates`], [`operators`], [`casts`]
//!   and [`synonyms`].

mod alter;
mod balanced;
mod casts;
mod clauses;
mod columns;
mod copy;
mod create;
mod exclusions;
mod geohashes;
mod grammar;
mod group_by;
mod intervals;
mod joins;
mod laterals;
mod operators;
pub(crate) mod own_names;
mod postgres;
mod prefix_runs;
mod relations;
mod rewrite;
mod row_values;
mod sequences;
pub(crate) mod set_returning;
pub(crate) mod starred;
mod statements;
mod subscripts;
mod symmetric;
mod synonyms;
mod syntax;
mod templates;
mod timed;
mod types;
mod using;
mod values;
mod view;
mod visit;
mod windows;

pub(crate) use balanced::halves;
pub(crate) use clauses::{INTERVAL, RANGE};
pub(crate) use exclusions::WITHOUT_FRAME;
pub(crate) use geohashes::{error_of as geohash_error, text_of as geohash_text};
pub(crate) use grammar::TidaliteDialect;
pub(crate) use group_by::prepare;
pub(crate) use relations::{
    Relation, all_columns, call, empty as empty_select, nest, query as query_of, relation, text, time_join, window_join,
};
pub(crate) use synonyms::{AGGREGATE_NAMES, decimal_digits, similar_to, with_backslashes};
pub use syntax::validate;
pub(crate) use timed::TIMED;
pub(crate) use types::SqlTypes;
pub(crate) use using::{MergedJoin, merged_join};
pub use view::RefreshAsked;
pub(crate) use visit::{visit, visit_mut};

use crate::binder::{self, Parameters, Tree, dml};
use crate::names::Words;
use crate::parameters::{self, Parameter};
use crate::statement::{CreateTableAs, Name, Query, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::sync::Arc;
use tidalite_types::ColumnType;
use tidalite_types::pg_type::PgType;

/// Operators in a row, as in `a OR b OR …`. Each is a level of the syntax tree, which is walked and dropped by
/// recursion; and planning takes time with the square of their number, seconds at this one.
const CHAIN_MAX: usize = 2_000;
/// Levels of parentheses and sub-queries.
const DEPTH_MAX: usize = 200;

/// Understands one statement; a semicolon may end it.
pub fn parse(sql: &str) -> Result<Statement> {
    parsed(sql, Parameters::Values(Vec::new()), |tokens, _| Ok(tokens))
}

/// Understands a query of our own, which the caller changes before it is planned.
pub(crate) fn parse_template(sql: &str) -> Result<Query> {
    let (tokens, words) = folded(sql)?;
    match statement(tokens, words)? {
        Statement::Query(query) => Ok(query),
        _ => Err(Error::internal("a query of our own did not parse as one")),
    }
}

/// As [`parse`], with values for `$1`, `$2`, …
pub fn parse_bound(sql: &str, values: &[Parameter]) -> Result<Statement> {
    let parameters = Parameters::Values(values.to_vec());
    parsed(sql, parameters, |tokens, words| parameters::bind(tokens, values, |token| words.offset(token.span.start)))
}

/// Understands one statement; `bound` puts the parameters into the tokens.
fn parsed(
    sql: &str,
    parameters: Parameters,
    bound: impl FnOnce(Vec<TokenWithSpan>, &Words) -> Result<Vec<TokenWithSpan>>,
) -> Result<Statement> {
    let tree = syntax::tree(sql)?;
    if dml::changes_rows(&tree) {
        return change(sql, tree, parameters);
    }
    let (tokens, words) = folded(sql)?;
    let tokens = bound(tokens, &words)?;
    with_tree(tokens, words, tree, parameters)
}

/// Returns the statement of a tree that changes rows.
fn change(sql: &str, tree: tidalite_sql::ast::Statement, parameters: Parameters) -> Result<Statement> {
    dml::statement(tree, &dml::Context { words: Arc::new(Words::read(sql)), parameters })
}

/// Returns the statement of tokens with the tree of its query, if it has one.
///
/// A query that the stock parser rejects is planned by the binder alone.
fn with_tree(
    tokens: Vec<TokenWithSpan>,
    words: Arc<Words>,
    tree: tidalite_sql::ast::Statement,
    parameters: Parameters,
) -> Result<Statement> {
    let Some((mut query, form)) = query_in(tree) else { return statement(tokens, words) };
    binder::declare::resolve(&mut query)?;
    let (tail, span) = (binder::last_rows(&query), query.span);
    let tree = Tree { query, parameters };
    let others = match form {
        QueryForm::CreateTableAs => without_query(&tokens, span, &words),
        _ => Vec::new(),
    };
    let error = match statement(tokens, words.clone()) {
        Ok(parsed) => return Ok(with_tree_of_query(parsed, tree)),
        Err(error) => error,
    };
    let query = Query { tail, ..Query::from_tree(words.clone(), tree) };
    match form {
        QueryForm::Query => Ok(Statement::Query(query)),
        QueryForm::Explain { is_analyze } => Ok(Statement::Explain { query, is_analyze }),
        QueryForm::CreateTableAs => match statement(others, words) {
            Ok(Statement::CreateTableAs(create)) => Ok(Statement::CreateTableAs(CreateTableAs { query, ..create })),
            _ => Err(error),
        },
    }
}

/// Adds the tree to the query of a statement.
fn with_tree_of_query(statement: Statement, tree: Tree) -> Statement {
    let tree = Some(Arc::new(tree));
    match statement {
        Statement::Query(query) => Statement::Query(Query { tree, ..query }),
        Statement::Explain { query, is_analyze } => Statement::Explain { query: Query { tree, ..query }, is_analyze },
        Statement::CreateTableAs(create) => {
            Statement::CreateTableAs(CreateTableAs { query: Query { tree, ..create.query }, ..create })
        }
        other => other,
    }
}

/// The statements whose query the binder alone may plan.
enum QueryForm {
    Query,
    Explain {
        is_analyze: bool,
    },
    /// CREATE TABLE AS, whose other clauses are read without the query.
    CreateTableAs,
}

/// Returns tokens with `SELECT 1` in place of the query at `span`.
fn without_query(tokens: &[TokenWithSpan], span: tidalite_sql::Span, words: &Words) -> Vec<TokenWithSpan> {
    let place = |token: &TokenWithSpan| words.offset(token.span.start).unwrap_or(usize::MAX);
    let is_within = |token: &TokenWithSpan| (span.start as usize..span.end as usize).contains(&place(token));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut is_replaced = false;
    for token in tokens {
        if !is_within(token) {
            out.push(token.clone());
        } else if !is_replaced {
            is_replaced = true;
            out.push(TokenWithSpan::new(Token::make_keyword("select"), token.span));
            out.push(TokenWithSpan::new(Token::Number("1".to_owned(), false), token.span));
        }
    }
    out
}

/// Returns the query whose rows a statement returns, explains or stores.
fn query_in(tree: tidalite_sql::ast::Statement) -> Option<(tidalite_sql::ast::Query, QueryForm)> {
    use tidalite_sql::ast::{Statement as Parsed, TableSource};
    match tree {
        Parsed::Query(query) => Some((*query, QueryForm::Query)),
        Parsed::Explain(explain) => {
            let is_analyze = explain.analyze;
            match explain.statement {
                Parsed::Query(query) => Some((*query, QueryForm::Explain { is_analyze })),
                _ => None,
            }
        }
        Parsed::CreateTable(create) => match create.source {
            TableSource::Query(query) => Some((*query, QueryForm::CreateTableAs)),
            _ => None,
        },
        _ => None,
    }
}

/// Parses a statement without parameter values: once untyped, once with typed NULLs.
///
/// The list is made as long as the statement has parameters. `given` are types that no column has.
pub(crate) fn parse_unbound(
    sql: &str,
    types: &mut Vec<Option<ColumnType>>,
    given: &[Option<PgType>],
) -> Result<(Statement, Statement)> {
    let tree = syntax::tree(sql)?;
    if dml::changes_rows(&tree) {
        return change_unbound(sql, tree, types, given);
    }
    let (tokens, words) = folded(sql)?;
    let count = parameters::count(sql)?;
    types.resize(count.max(types.len()), None);
    let parameters = Parameters::Types(parameters::fields(types, given));
    let typed = parameters::bind_types(tokens.clone(), types, given);
    let typed = with_tree(typed, words.clone(), tree.clone(), parameters)?;
    // Without a tree, so that a plan for all values is one of the rewrites.
    let untyped = match statement(tokens.clone(), words.clone()) {
        Ok(untyped) => untyped,
        Err(_) => with_tree(tokens, words, tree, Parameters::Types(Vec::new()))?,
    };
    Ok((untyped, typed))
}

/// As [`parse_unbound`] for a statement that changes rows.
fn change_unbound(
    sql: &str,
    tree: tidalite_sql::ast::Statement,
    types: &mut Vec<Option<ColumnType>>,
    given: &[Option<PgType>],
) -> Result<(Statement, Statement)> {
    types.resize(parameters::count(sql)?.max(types.len()), None);
    let typed = change(sql, tree.clone(), Parameters::Types(parameters::fields(types, given)))?;
    let untyped = change(sql, tree, Parameters::Types(Vec::new()))?;
    Ok((untyped, typed))
}

/// Splits a text into tokens with folded words.
fn folded(sql: &str) -> Result<(Vec<TokenWithSpan>, Arc<Words>)> {
    let mut tokens = tokenize(sql)?;
    let words = Arc::new(Words::fold(sql, &mut tokens));
    Ok((postgres::plain(tokens), words))
}

fn statement(tokens: Vec<TokenWithSpan>, words: Arc<Words>) -> Result<Statement> {
    if let Some(statement) = view::create_view(&tokens, &words)? {
        return Ok(statement);
    }
    if let Some(statement) = copy::copy(&tokens, &words)? {
        return Ok(statement);
    }
    let tokens = clauses::moved(tokens, &words)?;
    let tokens = symmetric::marked(subscripts::separated(geohashes::literals(tokens, &words)?));
    let tokens = grammar::with_select(prefix_runs::shortened(tokens));
    check_operators(&tokens)?;
    let _limit = grammar::StepLimit::new(tokens.len());
    Input::new(&TidaliteDialect, tokens, words).statement()
}

fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(&TidaliteDialect, sql).tokenize_with_location().map_err(|error| {
        let mut words = Vec::new();
        let words = Words::fold(sql, &mut words);
        let message = error.message.trim_end_matches('.');
        let mut chars = message.chars();
        let message = chars.next().map(|c| c.to_lowercase().collect::<String>() + chars.as_str()).unwrap_or_default();
        let mut refused = Error::invalid(format!("syntax error: {message}"));
        refused.position = words.offset(error.location);
        refused
    })
}

fn check_operators(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_operator = |token: &Token| match token {
        Token::Word(word) => {
            matches!(word.keyword, Keyword::AND | Keyword::OR | Keyword::NOT | Keyword::UNION | Keyword::JOIN)
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::EOF | Token::Period => false,
        _ => true,
    };
    // The chain of every level of parentheses that is open.
    let mut chains = vec![0];
    for token in tokens.iter().map(|t| &t.token) {
        match token {
            Token::Whitespace(_) => {}
            Token::LParen => chains.push(0),
            Token::RParen => drop(chains.pop()),
            Token::Comma | Token::SemiColon => chains.last_mut().into_iter().for_each(|chain| *chain = 0),
            token => chains.last_mut().into_iter().for_each(|chain| *chain += usize::from(is_operator(token))),
        }
        if chains.last().is_some_and(|chain| *chain > CHAIN_MAX) {
            return Err(Error::invalid(format!("an expression has more than {CHAIN_MAX} operators in a row")));
        }
    }
    Ok(())
}

/// The statement being read: the stock parser, with our words and errors around it.
struct Input<'a> {
    parser: Parser<'a>,
    words: Arc<Words>,
}

impl<'a> Input<'a> {
    fn new(dialect: &'a TidaliteDialect, tokens: Vec<TokenWithSpan>, words: Arc<Words>) -> Input<'a> {
        let parser = Parser::new(dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
        Input { parser, words }
    }

    /// Takes the next token if it is this word, unquoted. Words are folded, so `word` is in lower case.
    fn take(&mut self, word: &str) -> bool {
        let found = self.sees(word);
        if found {
            self.parser.next_token();
        }
        found
    }

    fn sees(&self, word: &str) -> bool {
        self.sees_at(0, word)
    }

    fn sees_at(&self, n: usize, word: &str) -> bool {
        matches!(&self.parser.peek_nth_token_ref(n).token, Token::Word(w) if w.quote_style.is_none() && w.value == word)
    }

    /// Takes all of `words` or none.
    fn take_all(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(n, word)| self.sees_at(n, word));
        if found {
            words.iter().for_each(|_| drop(self.parser.next_token()));
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.expected(&word.to_uppercase())) }
    }

    fn take_symbol(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    fn expect_symbol(&mut self, token: &Token) -> Result<()> {
        if self.take_symbol(token) { Ok(()) } else { Err(self.expected(&token.to_string())) }
    }

    /// Where the next token stands.
    fn position(&self) -> usize {
        let token = self.parser.peek_token_ref();
        if token.token == Token::EOF { self.words.sql.len() } else { self.words.offset(token.span.start).unwrap_or(0) }
    }

    /// The error that something else stands where `what` belongs.
    fn expected(&self, what: &str) -> Error {
        let found = match &self.parser.peek_token_ref().token {
            Token::EOF => "end of statement".to_owned(),
            Token::Word(word) => self.words.written(self.position(), &word.value).unwrap_or(&word.value).to_owned(),
            token => token.to_string(),
        };
        Error::invalid(format!("syntax error: expected {what}, found {found}")).at(self.position())
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::invalid(message).at(self.position()))
    }

    /// The name of a table or a column: a word, quoted or not, or a string (as QuestDB allows), as it was written.
    fn name(&mut self, what: &str) -> Result<Name> {
        let position = self.position();
        let text = match &self.parser.peek_token_ref().token {
            Token::Word(word) => match word.quote_style {
                Some(_) => unquoted_spelling(&self.words.sql, position, &word.value),
                None => self.words.written(position, &word.value).unwrap_or(&word.value).to_owned(),
            },
            Token::SingleQuotedString(text) => text.clone(),
            _ => return Err(self.expected(what)),
        };
        self.parser.next_token();
        Ok(Name { text, position })
    }

    /// Reads the name of a table.
    fn table_name(&mut self) -> Result<Name> {
        let mut name = self.name("a table name")?;
        while self.take_symbol(&Token::Period) {
            name = self.name("a table name")?.within(&name)?;
        }
        Ok(name)
    }

    fn string(&mut self, what: &str) -> Result<Name> {
        let position = self.position();
        let Token::SingleQuotedString(text) = &self.parser.peek_token_ref().token else {
            return Err(self.expected(what));
        };
        let text = text.clone();
        self.parser.next_token();
        Ok(Name { text, position })
    }

    fn number(&mut self, what: &str) -> Result<u64> {
        let Token::Number(text, _) = &self.parser.peek_token_ref().token else {
            return Err(self.expected(what));
        };
        let Ok(number) = text.parse() else {
            return Err(self.expected(what));
        };
        self.parser.next_token();
        Ok(number)
    }

    fn query(&mut self) -> Result<Query> {
        let mut ast = self.parser.parse_query().map_err(|e| from_parser(&e, &self.words))?;
        let tail = rewrite::rewrite(&mut ast).map_err(|mut error| {
            error.position = error.position.or_else(|| self.words.place_of_error(&error));
            error
        })?;
        Ok(Query { ast: Some(ast), tail, words: self.words.clone(), tree: None })
    }

    fn end(&mut self) -> Result<()> {
        let had_semicolon = self.take_symbol(&Token::SemiColon);
        while self.take_symbol(&Token::SemiColon) {}
        match self.parser.peek_token_ref().token {
            Token::EOF => Ok(()),
            _ if had_semicolon => self.error("only one statement can be run at a time"),
            _ => Err(self.expected("end of statement")),
        }
    }
}

/// A quoted name in its own case: the text after the quote, doubled quotes made one.
fn unquoted_spelling(sql: &str, position: usize, folded: &str) -> String {
    let text = &sql[position..];
    let Some(quote) = text.chars().next() else { return folded.to_owned() };
    let mut out = String::new();
    let mut chars = text[quote.len_utf8()..].chars().peekable();
    while let Some(c) = chars.next() {
        if c == quote && chars.next_if_eq(&quote).is_none() {
            break;
        }
        out.push(c);
    }
    if tidalite_types::schema::fold_name(&out) == folded { out } else { folded.to_owned() }
}

/// The stock parser's error with the place it ends with turned into an offset.
fn from_parser(error: &ParserError, words: &Words) -> Error {
    let text = match error {
        ParserError::RecursionLimitExceeded => {
            return Error::invalid(format!("statement is nested more than {DEPTH_MAX} levels deep"));
        }
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text.as_str(),
    };
    let (text, position) = match text.rsplit_once(" at Line: ") {
        Some((before, place)) => (before, place_in(place, words)),
        None => (text, None),
    };
    let text = as_written(text, position, words);
    let text = text.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1).replacen(
        "found EOF",
        "found end of statement",
        1,
    );
    let mut chars = text.chars();
    let text = chars.next().map(|c| c.to_lowercase().collect::<String>() + chars.as_str()).unwrap_or_default();
    let position = position.or_else(|| text.ends_with("end of statement").then_some(words.sql.len()));
    let mut refused = Error::invalid(format!("syntax error: {}", text.trim_end_matches('.')));
    refused.position = position;
    refused
}

/// The message with the word it ends with, which is folded, as it stands in the text.
fn as_written(text: &str, position: Option<usize>, words: &Words) -> String {
    let written = text.rsplit_once("found: ").zip(position).and_then(|((before, found), place)| {
        let written = words.written(place, found)?;
        Some(format!("{before}found: {written}"))
    });
    written.unwrap_or_else(|| text.to_owned())
}

/// `12, Column: 7` as an offset.
fn place_in(text: &str, words: &Words) -> Option<usize> {
    let (line, column) = text.split_once(", Column: ")?;
    let location = datafusion::sql::sqlparser::tokenizer::Location {
        line: line.trim().parse().ok()?,
        column: column.trim().parse().ok()?,
    };
    words.offset(location)
}

#[cfg(test)]
mod tests;
