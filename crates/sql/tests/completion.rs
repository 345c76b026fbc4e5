//! Completion: tokens that are allowed at a position of a text.

use tidalite_sql::{Expected, Keyword, NameKind, Symbol, expected_at};

/// Returns the completions at the position marked with `|`.
fn at(marked: &str) -> Vec<Expected> {
    let position = marked.find('|').expect("a mark");
    expected_at(&marked.replace('|', ""), position)
}

#[track_caller]
fn has(marked: &str, expected: &[Expected]) {
    let found = at(marked);
    for one in expected {
        assert!(found.contains(one), "{marked}: {one:?} is not among {found:?}");
    }
}

#[track_caller]
fn has_not(marked: &str, unexpected: &[Expected]) {
    let found = at(marked);
    for one in unexpected {
        assert!(!found.contains(one), "{marked}: {one:?} is among {found:?}");
    }
}

const fn word(keyword: Keyword) -> Expected {
    Expected::Keyword(keyword)
}

#[test]
fn statements_begin() {
    has("|", &[word(Keyword::Select), word(Keyword::Insert), word(Keyword::Create), word(Keyword::Show)]);
    has("SEL|", &[word(Keyword::Select)]);
    has("SELECT 1; |", &[word(Keyword::Select), word(Keyword::Drop)]);
    has("CREATE |", &[word(Keyword::Table), word(Keyword::Materialized), word(Keyword::View)]);
    has("EXPLAIN |", &[word(Keyword::Analyze), word(Keyword::Select)]);
}

#[test]
fn clauses_of_a_query() {
    has("SELECT |", &[Expected::Name(NameKind::Expression), Expected::Symbol(Symbol::Star), word(Keyword::Distinct)]);
    has("SELECT a |", &[word(Keyword::From), word(Keyword::As), Expected::Symbol(Symbol::Comma)]);
    has("SELECT a FROM |", &[Expected::Name(NameKind::Table)]);
    has(
        "SELECT a FROM t |",
        &[
            word(Keyword::Where),
            word(Keyword::Sample),
            word(Keyword::Latest),
            word(Keyword::Asof),
            word(Keyword::Join),
            word(Keyword::Order),
            word(Keyword::Limit),
            word(Keyword::Union),
            Expected::Name(NameKind::New),
        ],
    );
    has("SELECT a FROM t WHERE |", &[Expected::Name(NameKind::Expression)]);
    has_not("SELECT a FROM t WHERE |", &[word(Keyword::Sample), word(Keyword::Where)]);
    has(
        "SELECT a FROM t WHERE a |",
        &[word(Keyword::And), word(Keyword::Is), word(Keyword::Group), word(Keyword::Sample)],
    );
    has_not("SELECT a FROM t WHERE a |", &[word(Keyword::Where), word(Keyword::From)]);
    has("SELECT a FROM t SAMPLE BY 1h |", &[word(Keyword::Fill), word(Keyword::Align), word(Keyword::From)]);
    has("SELECT a FROM t SAMPLE BY 1h FILL(|", &[word(Keyword::Prev), word(Keyword::Linear)]);
    has("SELECT a FROM t SAMPLE BY 1h ALIGN TO |", &[word(Keyword::First), word(Keyword::Calendar)]);
    has("SELECT a FROM t LATEST ON ts |", &[word(Keyword::Partition)]);
    has("SELECT a FROM t ASOF JOIN u |", &[word(Keyword::On), word(Keyword::Tolerance)]);
    has("SELECT a FROM t ORDER BY a |", &[word(Keyword::Desc), word(Keyword::Nulls), word(Keyword::Limit)]);
    has("SELECT sum(a) OVER (|", &[word(Keyword::Partition), word(Keyword::Order), word(Keyword::Rows)]);
}

#[test]
fn other_statements() {
    has("INSERT INTO |", &[Expected::Name(NameKind::Table)]);
    has("INSERT INTO t (|", &[Expected::Name(NameKind::Column)]);
    has("INSERT INTO t |", &[word(Keyword::Values), word(Keyword::Select)]);
    has("UPDATE t |", &[word(Keyword::Set)]);
    has("DELETE FROM t |", &[word(Keyword::Where), word(Keyword::Using), word(Keyword::Returning)]);
    has("CREATE TABLE t (a |", &[Expected::Name(NameKind::Type)]);
    has("CREATE TABLE t (a INT) |", &[word(Keyword::Timestamp), word(Keyword::Partition), word(Keyword::Ttl)]);
    has("ALTER TABLE t |", &[word(Keyword::Add), word(Keyword::Drop), word(Keyword::Rename), word(Keyword::Set)]);
    has("SHOW |", &[word(Keyword::Tables), word(Keyword::Columns), word(Keyword::Create)]);
}

#[test]
fn nothing_within_strings_and_behind_errors() {
    assert_eq!(at("SELECT 'abc|"), []);
    assert_eq!(at("SELECT a FROM t WHERE WHERE |"), []);
    assert_eq!(expected_at("SELECT é", 8), [], "not on a character boundary");
}
