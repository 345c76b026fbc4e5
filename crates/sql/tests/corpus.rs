//! The parser accepts every statement of the repository's tests, documents and benchmarks.

mod common;

use common::corpus;
use tidalite_sql::parse;

#[test]
fn statements_of_the_repository_parse() {
    let statements = corpus::statements();
    assert!(statements.len() > 1_500, "only {} statements were found", statements.len());
    let mut refused = Vec::new();
    for (place, sql) in &statements {
        if let Err(error) = parse(sql) {
            let rest: String = sql.get(error.position..).unwrap_or("(no boundary)").chars().take(60).collect();
            refused.push(format!("{place}: {error}\n  at: {rest}\n  in: {}", sql.replace('\n', " ")));
        }
    }
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}
