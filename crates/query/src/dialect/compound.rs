//! Statements that consist of several: queries whose WITH changes rows, and MERGE.
//!
//! Input: the tokens of a statement. Output: statements of one kind each, which run one after another on the same
//! snapshot and commit together. Every part keeps its tokens and so the positions of its errors.
//!
//! MERGE is an UPDATE … FROM, a DELETE … USING or an INSERT … SELECT for each of its clauses: a clause acts where its own
//! condition holds and those of the clauses before it do not.

use super::clauses::is_word;
use crate::names::Words;
use crate::statement::{Compound, Statement, Step};
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;

type Tokens = [TokenWithSpan];

/// Splits a statement into steps; `None` if the statement is a single one.
pub(super) fn compound(tokens: &Tokens, words: &Arc<Words>) -> Result<Option<Statement>> {
    let Some(first) = tokens.iter().find(|t| !matches!(t.token, Token::Whitespace(_) | Token::SemiColon)) else {
        return Ok(None);
    };
    let (is_with, is_merge) = (is_word(&first.token, "with"), is_word(&first.token, "merge"));
    if !(is_with || is_merge) {
        return Ok(None);
    }
    let is_end = |t: &TokenWithSpan| matches!(t.token, Token::SemiColon | Token::EOF | Token::Whitespace(_));
    let end = tokens.iter().rposition(|t| !is_end(t)).map_or(0, |last| last + 1);
    let mut cut = Cut { tokens: &tokens[..end], at: 0, words };
    while cut.take_symbol(&Token::SemiColon) {}
    if is_merge { merge(cut).map(Some) } else { with_changes(cut) }
}

/// A cursor that takes tokens from the front.
#[derive(Clone, Copy)]
struct Cut<'a> {
    tokens: &'a Tokens,
    at: usize,
    words: &'a Arc<Words>,
}

impl<'a> Cut<'a> {
    /// Returns the next token that is not whitespace.
    fn peek(&mut self) -> &'a Token {
        while self.tokens.get(self.at).is_some_and(|t| matches!(t.token, Token::Whitespace(_))) {
            self.at += 1;
        }
        self.tokens.get(self.at).map_or(&Token::EOF, |t| &t.token)
    }

    fn next(&mut self) -> Option<&'a TokenWithSpan> {
        self.peek();
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn sees(&mut self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.sees(word);
        self.at += usize::from(found);
        found
    }

    fn take_symbol(&mut self, symbol: &Token) -> bool {
        let found = self.peek() == symbol;
        self.at += usize::from(found);
        found
    }

    fn expected(&mut self, what: &str) -> Error {
        let found = match self.peek() {
            Token::EOF => "end of statement".to_owned(),
            token => token.to_string(),
        };
        let error = Error::invalid(format!("syntax error: expected {what}, found {found}"));
        match self.tokens.get(self.at).and_then(|t| self.words.offset(t.span.start)) {
            Some(place) => error.at(place),
            None => error.at(self.words.sql.len()),
        }
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.expected(&word.to_uppercase())) }
    }

    fn name(&mut self, what: &str) -> Result<&'a TokenWithSpan> {
        match self.peek() {
            Token::Word(_) => self.next().ok_or_else(|| Error::internal("a token that was seen is gone")),
            _ => Err(self.expected(what)),
        }
    }

    /// Takes the tokens inside the parentheses that begin at the cursor.
    fn parenthesized(&mut self, what: &str) -> Result<&'a Tokens> {
        if !self.take_symbol(&Token::LParen) {
            return Err(self.expected(what));
        }
        let (from, mut depth) = (self.at, 1);
        while let Some(token) = self.tokens.get(self.at) {
            depth += i32::from(token.token == Token::LParen) - i32::from(token.token == Token::RParen);
            self.at += 1;
            if depth == 0 {
                return Ok(&self.tokens[from..self.at - 1]);
            }
        }
        Err(self.expected(")"))
    }

    /// Takes the tokens before one of these words, outside of parentheses and CASE.
    fn until(&mut self, ends: &[&str]) -> &'a Tokens {
        let (from, mut depth) = (self.at, 0);
        while let Some(token) = self.tokens.get(self.at) {
            let token = &token.token;
            if depth == 0 && ends.iter().any(|end| is_word(token, end)) {
                break;
            }
            let opens = matches!(token, Token::LParen | Token::LBracket) || is_word(token, "case");
            let closes = matches!(token, Token::RParen | Token::RBracket) || is_word(token, "end");
            depth += i32::from(opens) - i32::from(closes);
            self.at += 1;
        }
        &self.tokens[from..self.at]
    }
}

/// Generated text of a step: keywords of this module and tokens of the statement.
struct Text<'a> {
    tokens: Vec<TokenWithSpan>,
    near: &'a TokenWithSpan,
}

impl<'a> Text<'a> {
    /// Creates an empty text. `near` gives generated words their position in errors.
    fn new(near: &'a TokenWithSpan) -> Text<'a> {
        Text { tokens: Vec::new(), near }
    }

    fn push(mut self, token: Token) -> Self {
        self.tokens.push(TokenWithSpan { token, span: self.near.span });
        self
    }

    fn words(self, words: &[&str]) -> Self {
        words.iter().fold(self, |text, word| text.push(Token::make_keyword(word)))
    }

    fn tokens(mut self, tokens: &Tokens) -> Self {
        self.tokens.extend_from_slice(tokens);
        self
    }

    /// Appends a group in parentheses.
    fn group(self, inner: impl FnOnce(Self) -> Self) -> Self {
        inner(self.push(Token::LParen)).push(Token::RParen)
    }

    fn parsed(self, words: &Arc<Words>) -> Result<Statement> {
        super::statement(self.tokens, words.clone())
    }
}

/// A common table expression of WITH.
struct Expression<'a> {
    name: &'a TokenWithSpan,
    columns: Vec<String>,
    /// All tokens of the expression, its name first.
    whole: &'a Tokens,
    body: &'a Tokens,
    changes: bool,
}

/// Splits a WITH statement; `None` if no expression of WITH changes rows.
fn with_changes(mut cut: Cut<'_>) -> Result<Option<Statement>> {
    let Some(with) = cut.next() else { return Ok(None) };
    let is_recursive = cut.take("recursive");
    let mut expressions = Vec::new();
    loop {
        // The query parser reports syntax errors.
        let Ok(expression) = expression(&mut cut) else { return Ok(None) };
        expressions.push(expression);
        if !cut.take_symbol(&Token::Comma) {
            break;
        }
    }
    if !expressions.iter().any(|e| e.changes) {
        return Ok(None);
    }
    let mut steps = Vec::with_capacity(expressions.len() + 1);
    for expression in &expressions {
        let text = Text::new(with);
        let text = match expression.changes {
            true => text.tokens(expression.body),
            false => {
                let text = text.words(if is_recursive { &["with", "recursive"] } else { &["with"] });
                let text = text.tokens(expression.whole).words(&["select"]).push(Token::Mul).words(&["from"]);
                text.tokens(std::slice::from_ref(expression.name))
            }
        };
        let statement = Box::new(text.parsed(cut.words)?);
        // The expression of a query already carries its column list.
        let columns = if expression.changes { expression.columns.clone() } else { Vec::new() };
        steps.push(Step::Named { name: word_of(expression.name), columns, statement });
    }
    let rest = Text::new(with).tokens(&cut.tokens[cut.at..]).parsed(cut.words)?;
    let tag = match &rest {
        Statement::Insert(_) => "INSERT",
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        _ => "SELECT",
    };
    steps.push(Step::Answer(Box::new(rest)));
    Ok(Some(Statement::Compound(Compound { tag, steps })))
}

fn expression<'a>(cut: &mut Cut<'a>) -> Result<Expression<'a>> {
    let name = cut.name("a name")?;
    let from = cut.at - 1;
    let columns = match cut.peek() {
        Token::LParen => {
            let listed = cut.parenthesized("columns")?;
            listed.iter().filter(|t| matches!(t.token, Token::Word(_))).map(word_of).collect()
        }
        _ => Vec::new(),
    };
    cut.expect("as")?;
    cut.take("not");
    cut.take("materialized");
    let body = cut.parenthesized("(")?;
    let first = body.iter().find(|t| !matches!(t.token, Token::Whitespace(_)));
    let changes = first.is_some_and(|t| ["insert", "update", "delete"].iter().any(|w| is_word(&t.token, w)));
    Ok(Expression { name, columns, whole: &cut.tokens[from..cut.at], body, changes })
}

fn word_of(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    }
}

/// The tables of a MERGE.
struct Merge<'a> {
    near: &'a TokenWithSpan,
    /// The target table with its alias.
    target: &'a Tokens,
    /// The target table without its alias.
    table: &'a Tokens,
    source: Vec<TokenWithSpan>,
    on: &'a Tokens,
}

/// A clause of MERGE.
struct Clause<'a> {
    is_matched: bool,
    condition: Option<&'a Tokens>,
    action: Action<'a>,
}

enum Action<'a> {
    Nothing,
    Delete,
    /// The assignments after SET.
    Update(&'a Tokens),
    /// The columns in parentheses, and the expressions of VALUES.
    Insert(&'a Tokens, &'a Tokens),
}

fn merge(mut cut: Cut<'_>) -> Result<Statement> {
    let near = cut.name("MERGE")?;
    cut.expect("into")?;
    cut.peek();
    let target = cut.until(&["using"]);
    let mut named = Cut { tokens: target, at: 0, words: cut.words };
    named.name("a table name")?;
    while named.take_symbol(&Token::Period) {
        named.name("a table name")?;
    }
    let table = &target[..named.at];
    cut.expect("using")?;
    let (mut steps, mut source) = (Vec::new(), Vec::new());
    if *cut.peek() == Token::LParen {
        let from = cut.at;
        cut.parenthesized("a table")?;
        cut.take("as");
        let name = cut.name("an alias")?;
        if *cut.peek() == Token::LParen {
            cut.parenthesized("columns")?;
        }
        // The source rows are computed once.
        let text = Text::new(near).words(&["select"]).push(Token::Mul).words(&["from"]);
        let statement = Box::new(text.tokens(&cut.tokens[from..cut.at]).parsed(cut.words)?);
        steps.push(Step::Named { name: word_of(name), columns: Vec::new(), statement });
        source.push(name.clone());
    } else {
        source.extend_from_slice(cut.until(&["on"]));
    }
    cut.expect("on")?;
    let on = cut.until(&["when"]);
    let merge = Merge { near, target, table, source, on };
    let mut clauses: Vec<Clause> = Vec::new();
    while cut.sees("when") {
        clauses.push(clause(&mut cut)?);
    }
    if clauses.is_empty() || *cut.peek() != Token::EOF {
        return Err(cut.expected("WHEN"));
    }
    let acts = |clause: &&Clause| clause.is_matched && !matches!(clause.action, Action::Nothing);
    if clauses.iter().any(|clause| acts(&clause)) {
        steps.push(merge.once_each(&clauses, cut.words)?);
    }
    for at in 0..clauses.len() {
        if let Some(text) = merge.step(&clauses, at) {
            steps.push(Step::Counted(Box::new(text.parsed(cut.words)?)));
        }
    }
    Ok(Statement::Compound(Compound { tag: "MERGE", steps }))
}

fn clause<'a>(cut: &mut Cut<'a>) -> Result<Clause<'a>> {
    cut.expect("when")?;
    let is_matched = !cut.take("not");
    cut.expect("matched")?;
    let condition = cut.take("and").then(|| cut.until(&["then"]));
    cut.expect("then")?;
    let action = if cut.take("do") {
        cut.expect("nothing")?;
        Action::Nothing
    } else if is_matched && cut.take("delete") {
        Action::Delete
    } else if is_matched && cut.take("update") {
        cut.expect("set")?;
        Action::Update(cut.until(&["when"]))
    } else if !is_matched && cut.take("insert") {
        cut.peek();
        let from = cut.at;
        if *cut.peek() == Token::LParen {
            cut.parenthesized("columns")?;
        }
        let columns = &cut.tokens[from..cut.at];
        cut.expect("values")?;
        Action::Insert(columns, cut.parenthesized("the values")?)
    } else {
        return Err(cut.expected(if is_matched { "UPDATE, DELETE or DO NOTHING" } else { "INSERT or DO NOTHING" }));
    };
    Ok(Clause { is_matched, condition, action })
}

impl<'a> Merge<'a> {
    /// Returns the condition under which a clause acts on a pair of rows, or on a source row alone.
    fn condition<'t>(&self, text: Text<'t>, clauses: &[Clause], at: usize) -> Text<'t> {
        let clause = &clauses[at];
        let text = match clause.condition {
            Some(condition) => text.group(|text| text.tokens(condition)),
            None => text.words(&["true"]),
        };
        let before = clauses[..at].iter().filter(|before| before.is_matched == clause.is_matched);
        before.fold(text, |text, before| match before.condition {
            Some(condition) => {
                let text = text.words(&["and"]);
                text.group(|text| text.group(|text| text.tokens(condition)).words(&["is", "not", "true"]))
            }
            None => text.words(&["and", "false"]),
        })
    }

    /// Returns the step that finds a target row matched by several source rows.
    fn once_each(&self, clauses: &[Clause], words: &Arc<Words>) -> Result<Step> {
        let text = Text::new(self.near).words(&["delete", "from"]).tokens(self.target).words(&["using"]);
        let text = text.tokens(&self.source).words(&["where"]).group(|text| text.tokens(self.on));
        let text = text.words(&["and"]).group(|text| {
            let acting = (0..clauses.len())
                .filter(|at| clauses[*at].is_matched && !matches!(clauses[*at].action, Action::Nothing));
            acting.fold(text.words(&["false"]), |text, at| {
                text.words(&["or"]).group(|text| self.condition(text, clauses, at))
            })
        });
        match text.parsed(words)? {
            Statement::Delete(pairs) => Ok(Step::OnceEach(pairs)),
            _ => Err(Error::internal("the pairs of MERGE are no DELETE")),
        }
    }

    /// Returns the statement of a clause; `None` for DO NOTHING.
    fn step(&self, clauses: &[Clause], at: usize) -> Option<Text<'a>> {
        let text = Text::new(self.near);
        let pairs = |text: Text<'a>| {
            let text = text.tokens(&self.source).words(&["where"]).group(|text| text.tokens(self.on)).words(&["and"]);
            self.condition(text, clauses, at)
        };
        Some(match clauses[at].action {
            Action::Nothing => return None,
            Action::Delete => pairs(text.words(&["delete", "from"]).tokens(self.target).words(&["using"])),
            Action::Update(set) => {
                let text = text.words(&["update"]).tokens(self.target).words(&["set"]);
                pairs(text.tokens(set).words(&["from"]))
            }
            Action::Insert(columns, values) => {
                let text = text.words(&["insert", "into"]).tokens(self.table).tokens(columns);
                let text = text.words(&["select"]).tokens(values).words(&["from"]).tokens(&self.source);
                let text = text.words(&["where", "not", "exists"]).group(|text| {
                    let text = text.words(&["select"]).push(Token::Number("1".to_owned(), false));
                    let text = text.words(&["from"]).tokens(self.target).words(&["where"]);
                    text.group(|text| text.tokens(self.on))
                });
                self.condition(text.words(&["and"]), clauses, at)
            }
        })
    }
}
