//! Queries that `psql` makes for its `\d` commands and asyncpg for types, and that need more of PostgreSQL than its
//! tables: they are answered by plainer ones with the same columns. Only these texts are known here; the rest of the
//! catalog is tables.

/// Lists of what a table can have and none of ours has.
const EMPTY: &[&str] = &[
    "FROM pg_catalog.pg_policy pol",
    "FROM pg_catalog.pg_statistic_ext",
    "FROM pg_catalog.pg_publication",
    "pg_catalog.pg_inherits i",
    "FROM pg_catalog.pg_foreign_table",
    "FROM pg_catalog.pg_trigger t",
];

/// None of theirs is longer.
const BYTES_MAX: usize = 16 << 10;

/// The query asyncpg asks of types it does not know, arrays among them; its one parameter is a list of numbers.
#[must_use]
pub fn asks_types(sql: &str) -> bool {
    sql.len() <= BYTES_MAX && sql.contains("typeinfo_tree") && sql.contains("$1::oid[]")
}

/// What to run instead of the text, when it is one of theirs.
#[must_use]
pub fn plainer(sql: &str) -> Option<String> {
    // Nearly every statement is none of theirs, and is not looked through more than this.
    if sql.len() > BYTES_MAX || !(sql.contains("pg_catalog.") || sql.contains("set_config(")) {
        return None;
    }
    if asks_types(sql) {
        return Some(
            "SELECT t.oid, 'pg_catalog' AS ns, t.typname AS name, 'b' AS kind, NULL AS basetype, \
             CASE WHEN t.typelem = 0 THEN NULL ELSE t.typelem END AS elemtype, t.typdelim AS elemdelim, \
             NULL AS range_subtype, NULL AS attrtypoids, NULL AS attrnames, 0 AS depth, NULL AS basetype_name, \
             e.typname AS elemtype_name, NULL AS range_subtype_name \
             FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem \
             WHERE $1 IS NOT NULL ORDER BY t.oid"
                .to_owned(),
        );
    }
    // asyncpg turns the compiler of queries off while it asks; there is none.
    if sql.contains("set_config('jit', 'off', false)") {
        return Some("SELECT 'off' AS cur, 'off' AS new".to_owned());
    }
    if EMPTY.iter().any(|part| sql.contains(part)) {
        return Some("SELECT 1 WHERE false".to_owned());
    }
    let is_columns = sql.contains("pg_catalog.format_type(a.atttypid, a.atttypmod)")
        && sql.contains("FROM pg_catalog.pg_attribute a")
        && sql.contains("AS attcollation");
    let table = sql.split("a.attrelid = '").nth(1).and_then(|rest| rest.split('\'').next());
    let table = table.filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
    is_columns.then(|| {
        format!(
            "SELECT attname, format_type(atttypid, atttypmod) AS format_type, attgenerated AS adbin, attnotnull, \
             attgenerated AS attcollation, attidentity, attgenerated, attstorage, attcompression, attstattarget, \
             attgenerated AS description FROM pg_catalog.pg_attribute \
             WHERE attrelid = {table} AND attnum > 0 ORDER BY attnum"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_queries_stay() {
        assert_eq!(plainer("select 1"), None);
        assert_eq!(plainer("select * from pg_catalog.pg_class"), None);
        assert_eq!(plainer("SELECT a.attrelid = '1; drop' FROM pg_catalog.pg_attribute a"), None);
        assert!(plainer("SELECT pol.polname FROM pg_catalog.pg_policy pol WHERE x").is_some());
    }
}
