//! Keywords are contextual: every word that PostgreSQL allows as a name is accepted as a name.

use tidalite_sql::ast::{Expr, ExprKind, RelationKind, SelectItem, Statement, TableSource};
use tidalite_sql::{Keyword, parse};

fn query(sql: &str) -> tidalite_sql::ast::Select {
    let statement = parse(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    match statement {
        Statement::Query(query) => match query.body {
            tidalite_sql::ast::Body::Select(select) => *select,
            other => panic!("{sql}: {other:?}"),
        },
        other => panic!("{sql}: {other:?}"),
    }
}

fn items(sql: &str) -> Vec<(Expr, Option<String>)> {
    let tidalite_sql::ast::Projection::Items(items) = query(sql).projection else { panic!("{sql}") };
    let one = |item| match item {
        SelectItem::Expr { expr, alias } => (expr, alias.map(|alias| alias.value)),
        SelectItem::Wildcard(_) => panic!("{sql}"),
    };
    items.into_iter().map(one).collect()
}

/// Returns the keywords that PostgreSQL 15 allows as column and table names.
///
/// Source: `pg_get_keywords()`, categories U and C.
fn names() -> impl Iterator<Item = Keyword> {
    Keyword::all().filter(|keyword| keyword.is_column_name())
}

#[test]
fn columns() {
    for word in names().map(Keyword::text) {
        let sql = format!(
            "SELECT {word}, t.{word}, {word} + 1, ({word}), f({word}), {word} AS x FROM t WHERE {word} = 1 GROUP BY {word} ORDER BY {word}"
        );
        for (expr, _) in items(&sql).into_iter().take(2) {
            assert!(matches!(expr.kind, ExprKind::Column(_)), "{sql}: {:?}", expr.kind);
        }
        for sql in [
            format!("UPDATE t SET {word} = 1"),
            format!("INSERT INTO t ({word}) VALUES (1)"),
            format!("CREATE TABLE t ({word} INT)"),
            format!("ALTER TABLE t ADD COLUMN {word} INT"),
            format!("SELECT a FROM t LATEST ON {word} PARTITION BY {word}"),
        ] {
            parse(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }
}

#[test]
fn tables() {
    for word in names().map(Keyword::text) {
        let sql = format!("SELECT * FROM {word}");
        let relation = &query(&sql).from[0].relation;
        assert!(matches!(&relation.kind, RelationKind::Table { .. }), "{sql}: {relation:?}");
        for sql in [
            format!("SELECT {word}.a FROM {word}"),
            format!("SELECT * FROM {word} JOIN {word} AS b ON true WHERE x"),
            format!("SELECT * FROM a, {word} SAMPLE BY 1h"),
            format!("INSERT INTO {word} VALUES (1)"),
            format!("UPDATE {word} SET a = 1"),
            format!("DELETE FROM {word} WHERE a = 1"),
            format!("CREATE TABLE {word} (a INT)"),
            format!("DROP TABLE {word}"),
            format!("WITH {word} AS (SELECT 1) SELECT * FROM {word}"),
        ] {
            parse(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }
}

#[test]
fn aliases() {
    for keyword in names() {
        let word = keyword.text();
        for sql in [
            format!("SELECT a AS {word} FROM t"),
            format!("SELECT a FROM t AS {word}"),
            format!("SELECT {word}.a FROM t AS {word}"),
        ] {
            parse(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        let sql = format!("SELECT a FROM t {word}");
        assert_eq!(query(&sql).from[0].relation.alias.as_ref().map(|a| a.name.value.as_str()), Some(word), "{sql}");
        let sql = format!("SELECT a FROM t {word} WHERE {word}.a = 1");
        assert_eq!(query(&sql).from[0].relation.alias.as_ref().map(|a| a.name.value.as_str()), Some(word), "{sql}");
        let sql = format!("SELECT a FROM t {word} JOIN u ON {word}.a = u.a");
        let is_join = ["asof", "lt", "splice", "horizon", "semi", "anti"].contains(&word);
        assert!(is_join || query(&sql).from[0].relation.alias.is_some(), "{sql}");
    }
}

/// After an expression PostgreSQL accepts most words as an alias (`barelabel` of `pg_get_keywords()`).
#[test]
fn labels_without_as() {
    // Infix operators of PostgreSQL or Tidalite: after an expression these words are operators.
    let operators =
        ["and", "or", "in", "is", "like", "ilike", "similar", "collate", "overlaps", "isnull", "notnull", "not"];
    for keyword in Keyword::all().filter(|k| k.is_bare_label() && !operators.contains(&k.text())) {
        let word = keyword.text();
        let sql = format!("SELECT a {word} FROM t");
        assert_eq!(items(&sql)[0].1.as_deref(), Some(word), "{sql}");
    }
}

/// Any word is a name after AS, in a column list and in a table definition.
#[test]
fn names_where_only_names_stand() {
    for word in Keyword::all().map(Keyword::text) {
        for sql in [
            format!("SELECT a AS {word} FROM t"),
            format!("SELECT t.{word} FROM t"),
            format!("INSERT INTO t (a, {word}) VALUES (1)"),
            format!("ALTER TABLE t RENAME COLUMN {word} TO b"),
            format!("COPY t ({word}) TO STDOUT"),
        ] {
            parse(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        let sql = format!("CREATE TABLE t (a INT, {word} INT)");
        let Ok(Statement::CreateTable(table)) = parse(&sql) else { continue };
        assert!(matches!(table.source, TableSource::Elements(elements) if elements.len() == 2), "{sql}");
    }
}

/// Accepts unquoted names for which PostgreSQL requires quotes.
///
/// Files and devices have such column names, and no other token is allowed at these positions.
#[test]
fn reserved_words_where_nothing_of_theirs_can_follow() {
    for word in ["when", "then", "end", "desc", "user", "to", "check", "limit", "offset", "group", "order", "using"] {
        let sql = format!("SELECT sum(x) FROM t WHERE {word} >= '2024-01-02' AND x < 5");
        parse(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

#[test]
fn clauses_of_ours_and_names_beside_each_other() {
    for sql in [
        "SELECT sample FROM sample sample SAMPLE BY 1h",
        "SELECT latest.latest FROM latest latest LATEST ON latest PARTITION BY latest",
        "SELECT asof.lt FROM asof asof ASOF JOIN lt lt ON (lt) LT JOIN splice splice TOLERANCE 1h",
        "SELECT pivot FROM pivot pivot PIVOT (sum(pivot) FOR pivot IN (1))",
        "SELECT top, format, sort, view, interval FROM top AS format, sort view",
        "SELECT qualify FROM qualify AS qualify QUALIFY qualify = 1",
        "SELECT tolerance FROM a tolerance JOIN b range ON true JOIN c list ON true",
        "SELECT horizon FROM a horizon HORIZON JOIN b list LIST (1s) AS h",
        "CREATE TABLE ttl (ttl INT, dedup INT, wal INT, timestamp TIMESTAMP) TIMESTAMP(timestamp) TTL 3d DEDUP UPSERT KEYS(ttl)",
        "SELECT fill, align, partition FROM t partition ORDER BY fill",
        "SELECT values FROM values WHERE values IN (1)",
    ] {
        parse(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}
