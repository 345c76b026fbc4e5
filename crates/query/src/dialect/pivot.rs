//! PIVOT and UNPIVOT as tokens that the stock grammar takes.
//!
//! | written | becomes |
//! |---|---|
//! | `t PIVOT (sum(x) FOR a IN ('p', 'q') b IN ('r') GROUP BY g)` | `t PIVOT (sum(x) FOR (a, b) IN (__for(), 'p', 'q', __for(), 'r', __group(g)))` |
//! | `PIVOT t ON a USING sum(x) GROUP BY g` | `SELECT * FROM t PIVOT (sum(x) FOR (a) IN (__for(), (SELECT DISTINCT a FROM t …), __group(g)))` |
//! | `UNPIVOT t ON a, b INTO NAME n VALUE v` | `SELECT * FROM t UNPIVOT (v FOR n IN (a, b))` |
//!
//! Without GROUP BY the first form has one row, as in QuestDB, and the second groups by all that is left, as in DuckDB.

use super::clauses::{Mover, is_one_of};
use crate::Result;
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

/// Begins the values of the next column.
pub(crate) const FOR: &str = "__for";
/// The columns to group by.
pub(crate) const GROUP: &str = "__group";
/// Groups by every column that is named nowhere else.
pub(crate) const GROUP_BY_REST: &str = "__group_by_rest";

/// Words that may follow the statement's own clauses.
const ENDS: &[&str] = &["order", "limit", "union", "except", "intersect", "offset", "fetch"];

type Range = (usize, usize);

/// A column whose values become columns, and where they stand.
struct Dimension {
    column: Range,
    values: Option<Range>,
}

impl Mover<'_> {
    /// Whether it was one.
    pub(super) fn pivot(&mut self) -> Result<bool> {
        let begins = self.at == 0
            || self.tokens[self.at - 1].token == Token::LParen
            || is_one_of(&self.tokens[self.at - 1].token, &["explain", "analyze", "verbose", "as", "union", "all"])
            || self.follows_with();
        let is_unpivot = self.sees(0, "unpivot");
        if begins
            && !matches!(self.token(1), Token::EOF | Token::RParen | Token::Comma | Token::Period | Token::SemiColon)
        {
            if is_unpivot {
                self.unpivot_statement()?
            } else {
                self.pivot_statement()?
            }
            return Ok(true);
        }
        if begins || is_unpivot || *self.token(1) != Token::LParen {
            return Ok(false);
        }
        self.pivot_clause()?;
        Ok(true)
    }

    /// Whether the queries of a WITH end here, and what they are for begins.
    fn follows_with(&self) -> bool {
        let mut depth = 0_usize;
        for token in self.tokens[..self.at].iter().rev() {
            match &token.token {
                Token::RParen => depth += 1,
                Token::LParen if depth == 0 => return false,
                Token::LParen => depth -= 1,
                word if depth > 0 || !matches!(word, Token::Word(_)) => {}
                word if is_one_of(word, &["select", "from", "values", "table", "pivot", "unpivot", "join"]) => {
                    return false;
                }
                word if is_one_of(word, &["with"]) => return self.tokens[self.at - 1].token == Token::RParen,
                _ => {}
            }
        }
        false
    }

    /// `PIVOT (aggregates FOR a IN (…) … [GROUP BY …])`.
    fn pivot_clause(&mut self) -> Result<()> {
        let span = self.span(0);
        self.at += 2;
        let aggregates = (self.at, self.end_of(self.at, &["for"]));
        self.at = aggregates.1;
        let mut dimensions = Vec::new();
        while *self.token(0) != Token::RParen && !self.sees(0, "group") {
            self.take(&["for"]);
            let column = (self.at, self.end_of(self.at, &["in"]));
            self.at = column.1;
            if column.0 == column.1 || !self.take(&["in"]) {
                return self.refused("IN");
            }
            dimensions.push(Dimension { column, values: Some(self.inside()?) });
        }
        let group = if self.take(&["group", "by"]) { Some((self.at, self.end_of(self.at, &[]))) } else { None };
        self.at = group.map_or(self.at, |group| group.1);
        if *self.token(0) != Token::RParen {
            return self.refused(")");
        }
        self.at += 1;
        self.give_out(Some(aggregates), &dimensions, group, None, span)
    }

    /// `PIVOT t ON a [IN (…)], … [USING aggregates] [GROUP BY …]`.
    fn pivot_statement(&mut self) -> Result<()> {
        let span = self.span(0);
        self.at += 1;
        let source = (self.at, self.end_of(self.at, &["on"]));
        self.at = source.1;
        if !self.take(&["on"]) {
            return self.refused("ON");
        }
        let clauses = [&["using", "group"], ENDS].concat();
        let mut dimensions = Vec::new();
        loop {
            let end = self.end_of_item(&[&["in"], &clauses[..]].concat());
            let column = (self.at, end);
            self.at = end;
            if column.0 == column.1 {
                return self.refused("a column");
            }
            let values = if self.take(&["in"]) { Some(self.inside()?) } else { None };
            dimensions.push(Dimension { column, values });
            if *self.token(0) != Token::Comma {
                break;
            }
            self.at += 1;
        }
        let mut list = |word: &[&str], ends: &[&str]| {
            if !self.take(word) {
                return None;
            }
            let range = (self.at, self.end_of(self.at, ends));
            self.at = range.1;
            Some(range)
        };
        let aggregates = list(&["using"], &clauses);
        let group = list(&["group", "by"], ENDS);
        self.word("select", span);
        self.symbol(Token::Mul, span);
        self.word("from", span);
        self.copy_range(source)?;
        self.give_out(aggregates, &dimensions, group, Some(source), span)
    }

    /// `UNPIVOT t ON a, b [INTO NAME n VALUE v]`.
    fn unpivot_statement(&mut self) -> Result<()> {
        let span = self.span(0);
        self.at += 1;
        let source = (self.at, self.end_of(self.at, &["on", "include"]));
        self.at = source.1;
        let keeps_nulls = self.take(&["include", "nulls"]);
        if !self.take(&["on"]) {
            return self.refused("ON");
        }
        let columns = (self.at, self.end_of(self.at, &[&["into"], ENDS].concat()));
        self.at = columns.1;
        let (mut name, mut value) = (None, None);
        if self.take(&["into"]) {
            if !self.take(&["name"]) {
                return self.refused("NAME");
            }
            name = Some(self.name()?);
            if !self.take(&["value"]) {
                return self.refused("VALUE");
            }
            value = Some(self.name()?);
        }
        self.word("select", span);
        self.symbol(Token::Mul, span);
        self.word("from", span);
        self.copy_range(source)?;
        self.word("unpivot", span);
        if keeps_nulls {
            self.word("include", span);
            self.word("nulls", span);
        }
        self.symbol(Token::LParen, span);
        self.range_or(value, "value", span)?;
        self.word("for", span);
        self.range_or(name, "name", span)?;
        self.word("in", span);
        self.symbol(Token::LParen, span);
        self.copy_range(columns)?;
        self.symbol(Token::RParen, span);
        self.symbol(Token::RParen, span);
        Ok(())
    }

    /// The name that comes.
    fn name(&mut self) -> Result<Range> {
        if !matches!(self.token(0), Token::Word(_)) {
            return self.refused("a name");
        }
        self.at += 1;
        Ok((self.at - 1, self.at))
    }

    fn range_or(&mut self, range: Option<Range>, word: &str, span: Span) -> Result<()> {
        match range {
            Some(range) => self.copy_range(range),
            None => {
                self.word(word, span);
                Ok(())
            }
        }
    }

    /// What is between the parentheses that come.
    fn inside(&mut self) -> Result<Range> {
        if *self.token(0) != Token::LParen {
            return self.refused("(");
        }
        let from = self.at + 1;
        let to = self.end_of(from, &[]);
        self.at = to;
        if *self.token(0) != Token::RParen || from == to {
            return self.refused("values and )");
        }
        self.at = to + 1;
        Ok((from, to))
    }

    /// Where one of a list ends: at a comma, or at one of the words.
    fn end_of_item(&self, ends: &[&str]) -> usize {
        let end = self.end_of(self.at, ends);
        let mut depth = 0_usize;
        for at in self.at..end {
            match &self.tokens[at].token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                Token::Comma if depth == 0 => return at,
                _ => {}
            }
        }
        end
    }

    fn give_out(
        &mut self,
        aggregates: Option<Range>,
        dimensions: &[Dimension],
        group: Option<Range>,
        source: Option<Range>,
        span: Span,
    ) -> Result<()> {
        self.word("pivot", span);
        self.symbol(Token::LParen, span);
        match aggregates {
            Some(aggregates) => self.copy_range(aggregates)?,
            None => {
                self.word("count", span);
                self.symbol(Token::LParen, span);
                self.symbol(Token::Mul, span);
                self.symbol(Token::RParen, span);
            }
        }
        self.word("for", span);
        self.symbol(Token::LParen, span);
        for (n, dimension) in dimensions.iter().enumerate() {
            if n > 0 {
                self.symbol(Token::Comma, span);
            }
            self.copy_range(dimension.column)?;
        }
        self.symbol(Token::RParen, span);
        self.word("in", span);
        self.symbol(Token::LParen, span);
        for dimension in dimensions {
            self.marker(FOR, None, span)?;
            self.symbol(Token::Comma, span);
            match (dimension.values, source) {
                (Some(values), _) if !is_one_of(&self.tokens[values.0].token, &["select", "with", "from"]) => {
                    self.copy_range(values)?;
                }
                (Some(query), _) => {
                    self.symbol(Token::LParen, span);
                    self.copy_range(query)?;
                    self.symbol(Token::RParen, span);
                }
                (None, Some(source)) => self.distinct_values(dimension.column, source, span)?,
                (None, None) => return self.refused("IN"),
            }
            self.symbol(Token::Comma, span);
        }
        match (group, source) {
            (Some(group), _) => self.marker(GROUP, Some(group), span)?,
            (None, Some(_)) => self.marker(GROUP_BY_REST, None, span)?,
            (None, None) => self.marker(GROUP, None, span)?,
        }
        self.symbol(Token::RParen, span);
        self.symbol(Token::RParen, span);
        Ok(())
    }

    fn marker(&mut self, name: &str, inside: Option<Range>, span: Span) -> Result<()> {
        self.word(name, span);
        self.symbol(Token::LParen, span);
        if let Some(inside) = inside {
            self.copy_range(inside)?;
        }
        self.symbol(Token::RParen, span);
        Ok(())
    }

    /// `(SELECT DISTINCT column FROM source WHERE column IS NOT NULL ORDER BY 1)`.
    fn distinct_values(&mut self, column: Range, source: Range, span: Span) -> Result<()> {
        self.symbol(Token::LParen, span);
        self.word("select", span);
        self.word("distinct", span);
        self.copy_range(column)?;
        self.word("from", span);
        self.copy_range(source)?;
        self.word("where", span);
        self.copy_range(column)?;
        for word in ["is", "not", "null", "order", "by"] {
            self.word(word, span);
        }
        self.symbol(Token::Number("1".to_owned(), false), span);
        self.symbol(Token::RParen, span);
        Ok(())
    }
}
