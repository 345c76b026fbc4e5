//! Parsing time is linear and recursion is bounded, for any input.

mod common;

use std::time::{Duration, Instant};
use tidalite_sql::{CHAIN_MAX, Code, DEPTH_MAX, ErrorKind, NESTED_JOINS_MAX, parse};

/// Repeats an opening token.
///
/// The text is 1 MB long for inputs that took the stock parser 2ⁿ time, shorter for the others.
fn repeated(start: &str, opening: &str) -> String {
    const WORST: &[&str] = &["NOT(", "CAST(", "CASE WHEN x THEN ", "ARRAY[", "(((("];
    let bytes = if WORST.contains(&opening) { 1_000_000 } else { 100_000 };
    format!("{start}{}", opening.repeat(bytes / opening.len()))
}

/// Time limit for the rejection of such a text on a busy machine; an idle machine needs milliseconds.
const TIME_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

#[test]
fn nested_bad_input_is_refused_at_once() {
    on_a_stack(refuse_nested_bad_input);
}

fn refuse_nested_bad_input() {
    for opening in [
        "NOT(",
        "CAST(",
        "CASE WHEN x THEN ",
        "CASE ",
        "ARRAY[",
        "(",
        "((((",
        "f(",
        "-(",
        "NOT - ",
        "NOT NOT -",
        "x IN (",
        "x[",
        "{'a': ",
        "(SELECT ",
        "EXISTS (SELECT ",
        "EXISTS(",
        "ARRAY(SELECT ",
        "INTERVAL (",
        "x::int[](",
        "coalesce(x, ",
        "x BETWEEN ",
        "x = ANY (",
        "EXTRACT(hour FROM ",
        "TRIM(BOTH ",
        "sum(x) OVER (ORDER BY ",
        "x LIKE ",
        "MAP {1: ",
        "ROW(",
        "a AND (",
        "a OR NOT (",
        "(a, (",
        "(VALUES (",
        "CASE x WHEN ",
        "x::STRUCT(a ",
        "(x UNION ",
    ] {
        let text = repeated("SELECT ", opening);
        let start = Instant::now();
        let error = parse(&text).expect_err(opening);
        assert!(start.elapsed() < TIME_MAX, "{opening}: {:?}", start.elapsed());
        assert!(error.position <= text.len(), "{opening}: {error:?}");
    }
    for opening in [
        "(",
        "SELECT * FROM (",
        "((SELECT 1) UNION ",
        "WITH a AS (",
        "SELECT * FROM a JOIN (",
        "EXPLAIN ",
        "PREPARE p AS ",
        "PIVOT (",
        "SELECT * FROM LATERAL (",
        "INSERT INTO t (SELECT * FROM ",
        "CREATE TABLE t AS (",
        "DECLARE @a := (",
        "GROUP BY GROUPING SETS (",
    ] {
        let text = repeated("", opening);
        let start = Instant::now();
        parse(&text).expect_err(opening);
        assert!(start.elapsed() < TIME_MAX, "{opening}: {:?}", start.elapsed());
    }
}

/// The position of the error is the token that exceeds the limit.
#[test]
fn nesting_has_a_limit() {
    on_a_stack(refuse_deep_nesting);
}

fn refuse_deep_nesting() {
    let nested = |levels: usize| format!("SELECT {}1{}", "(".repeat(levels), ")".repeat(levels));
    parse(&nested(DEPTH_MAX / 2 - 5)).unwrap();
    let error = parse(&nested(DEPTH_MAX * 2)).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::TooDeep(DEPTH_MAX), Code::TooComplex));
    assert!(error.position > DEPTH_MAX / 3 && error.position < DEPTH_MAX + 10, "{}", error.position);
}

#[test]
fn joins_in_parentheses_have_a_limit() {
    let joins = |levels: usize| format!("SELECT * FROM {}t{}", "(".repeat(levels), " JOIN u ON true)".repeat(levels));
    parse(&joins(NESTED_JOINS_MAX)).unwrap();
    let error = parse(&joins(NESTED_JOINS_MAX + 1)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooDeep(NESTED_JOINS_MAX));
    parse(&format!("SELECT * FROM {}", vec!["(t)"; 100].join(", "))).unwrap();
    parse(&format!("SELECT * FROM {}SELECT 1{} x", "(".repeat(50), ")".repeat(50))).unwrap();
}

#[test]
fn chains_have_a_limit_and_lists_have_none() {
    on_a_stack(refuse_long_chains);
}

fn refuse_long_chains() {
    let sum = |operators: usize| format!("SELECT 1{}", " + 1".repeat(operators));
    parse(&sum(CHAIN_MAX)).unwrap();
    let error = parse(&sum(CHAIN_MAX + 2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooManyOperators(CHAIN_MAX));
    for item in [" AND x = 1", " OR (x = 1 AND y)", ", 1 + 1 + 1", " UNION ALL SELECT 1"] {
        parse(&format!("SELECT 1{}", item.repeat(5_000))).unwrap_or_else(|e| panic!("{item}: {e}"));
    }
    for operator in ["::int", "[1]", " IS NULL", " = 1", "->'a'", " COLLATE c", " AT TIME ZONE 'x'", " BETWEEN 1 AND 2"]
    {
        let error = parse(&format!("SELECT x{}", operator.repeat(100_000))).expect_err(operator);
        assert_eq!(error.code, Code::TooComplex, "{operator}: {error}");
    }
    // Runs of these operators are shortened.
    for operator in ["NOT ", "- ", "+ ", "~ ", "@ "] {
        parse(&format!("SELECT {}x", operator.repeat(100_000))).unwrap_or_else(|e| panic!("{operator}: {e}"));
    }
    parse(&format!("SELECT {}x", "|/ ".repeat(CHAIN_MAX))).unwrap();
    parse(&format!("SELECT {}x", "|/ ".repeat(100_000))).unwrap_err();
    parse(&format!("SELECT (x){}", ".a".repeat(100_000))).unwrap_err();
    // Chains within operands of chains count as levels: the depth of the tree stays within the limit.
    let within = (0..100).fold("x".to_owned(), |inner, _| format!("({inner}{})", " + 1".repeat(100)));
    assert_eq!(parse(&format!("SELECT {within}")).unwrap_err().code, Code::TooComplex);
    parse(&format!("SELECT * FROM t {}", "PIVOT (sum(a) FOR b IN (1)) ".repeat(1_000))).unwrap_err();
}

/// A 16 times longer statement takes about 16 times as long, not 256 times.
#[test]
fn time_is_linear() {
    for item in [
        "1, ",
        "(1, 'a', now()), ",
        "a + b * c, ",
        "f(x, y => 1), ",
        "(a), ",
        "((a, b)), ",
        "CASE WHEN a THEN b END, ",
        "x AS y, ",
        "t.*, ",
        "interval '1 day', ",
        "a IN (1, 2), ",
    ] {
        let of = |count: usize| format!("SELECT {}1", item.repeat(count));
        let time = |text: &str| {
            let best = (0..3).map(|_| {
                let start = Instant::now();
                drop(parse(text));
                start.elapsed()
            });
            best.min().unwrap_or_default()
        };
        let (short, long) = (time(&of(500)), time(&of(8_000)));
        assert!(long < short * 64 + Duration::from_millis(50), "{item}: {short:?}, {long:?}");
    }
}

/// Stack frames are several times larger in a build without optimization.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 32 << 20 } else { 2 << 20 };

fn on_a_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).expect("a thread");
    thread.join().expect("the test ends well");
}

/// A thread with 2 MB of stack, as in tests and servers, parses and drops any tree within the limits.
#[test]
fn limits_fit_a_stack() {
    on_a_stack(parse_at_the_limits);
}

fn parse_at_the_limits() {
    let levels_of = |opening: &str, inner: &str, closing: &str| {
        let parses = |levels: &usize| {
            parse(&format!("SELECT {}{inner}{}", opening.repeat(*levels), closing.repeat(*levels))).is_ok()
        };
        (1..=DEPTH_MAX).rev().find(parses).unwrap_or_default()
    };
    for (opening, inner, closing) in [
        ("(", "1", ")"),
        ("NOT(", "1", ")"),
        ("CAST(", "1", " AS int)"),
        ("CASE WHEN x THEN ", "1", " END"),
        ("ARRAY[", "1", "]"),
        ("(SELECT ", "1", ")"),
        ("EXISTS (SELECT * FROM t WHERE ", "x", ")"),
        ("(SELECT 1 UNION SELECT ", "1", ")"),
        ("f(x, ", "1", ")"),
        ("x IN (1, ", "1", ")"),
        ("(SELECT * FROM (SELECT ", "1", "))"),
    ] {
        let levels = levels_of(opening, inner, closing);
        // Parentheses in FROM count twice: their frames are the largest.
        let least = if opening.contains("FROM (") { 45 } else { 60 };
        assert!(levels >= least, "{opening}: only {levels} levels");
    }
    parse(&format!("SELECT 1{}", " + (1)".repeat(CHAIN_MAX - 2))).unwrap();
}
