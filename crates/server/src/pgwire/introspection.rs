//! Replaces the recursive query that asyncpg sends for unknown types by a simpler query with the same columns.

/// Maximum length of the asyncpg query.
const BYTES_MAX: usize = 16 << 10;

/// Returns true for the query of asyncpg for unknown types; its only parameter is a list of type OIDs.
#[must_use]
pub fn asks_types(sql: &str) -> bool {
    sql.len() <= BYTES_MAX && sql.contains("typeinfo_tree") && sql.contains("$1::oid[]")
}

/// Returns the replacement if `sql` is the asyncpg query for unknown types.
#[must_use]
pub fn plainer(sql: &str) -> Option<String> {
    asks_types(sql).then(|| {
        "SELECT t.oid, 'pg_catalog' AS ns, t.typname AS name, 'b' AS kind, NULL AS basetype, \
         CASE WHEN t.typelem = 0 THEN NULL ELSE t.typelem END AS elemtype, t.typdelim AS elemdelim, \
         NULL AS range_subtype, NULL AS attrtypoids, NULL AS attrnames, \
         CASE WHEN t.oid = ANY($1::oid[]) THEN 0 ELSE 1 END AS depth, NULL AS basetype_name, \
         e.typname AS elemtype_name, NULL AS range_subtype_name \
         FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem \
         WHERE t.typtype = 'b' AND (t.oid = ANY($1::oid[]) \
         OR t.oid IN (SELECT a.typelem FROM pg_catalog.pg_type a WHERE a.oid = ANY($1::oid[]))) ORDER BY depth DESC"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_queries_stay() {
        assert_eq!(plainer("select 1"), None);
        assert_eq!(plainer("select * from pg_catalog.pg_class where oid = any($1::oid[])"), None);
        assert!(plainer("WITH RECURSIVE typeinfo_tree(oid) AS (SELECT 1) SELECT $1::oid[]").is_some());
    }
}
