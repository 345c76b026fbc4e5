//! The size of a query that only the binder plans, as [`super::size`] measures it.

use super::{LEVELS_UNIT, Size, TABLES_OF_SUB_QUERY, TIMES_OF_CALL};
use std::collections::HashMap;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{
    CteBody, Expr, ExprKind, GroupBy, GroupItem, ObjectName, Query, Relation, RelationKind, Select,
};
use tidalite_types::schema::fold_name;

/// Returns the size of a query; `views` has the sizes of the views that it may name, by folded name.
pub(crate) fn size_of_tree(query: &Query, views: &HashMap<String, Size>) -> Size {
    let mut counter = TreeCounter { views, open: vec![OpenTree::default()], selects: Vec::new(), level: 0 };
    walk::query(query, &mut counter);
    counter.open.pop().map(|open| open.size).unwrap_or_default()
}

struct TreeCounter<'a> {
    views: &'a HashMap<String, Size>,
    /// The queries that enclose the current node, outermost first; the first element receives the result.
    open: Vec<OpenTree>,
    /// The number of tables of each SELECT that encloses the current node.
    selects: Vec<u64>,
    /// The number of expressions of the innermost query that enclose the current node.
    level: u64,
}

#[derive(Default)]
struct OpenTree {
    size: Size,
    /// The names of the queries of WITH, by their addresses in the tree.
    named: HashMap<usize, String>,
    with: HashMap<String, Size>,
    level_outside: u64,
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl TreeCounter<'_> {
    fn count(&mut self, size: Size) {
        if let Some(open) = self.open.last_mut() {
            open.size.add(size);
        }
    }

    fn joined(&mut self, tables: u64) {
        if let Some(select) = self.selects.last_mut() {
            *select = select.saturating_add(tables.max(1));
        }
    }

    fn named(&self, name: &ObjectName) -> Size {
        let words: Vec<String> = name.parts.iter().map(|part| fold_name(&part.value)).collect();
        if let [word] = words.as_slice()
            && let Some(size) = self.open.iter().rev().find_map(|open| open.with.get(word))
        {
            return *size;
        }
        let own = match words.as_slice() {
            [schema, rest @ ..] if !rest.is_empty() && ["tidalite", "public"].contains(&schema.as_str()) => rest,
            all => all,
        };
        self.views.get(&own.join(".")).copied().unwrap_or(Size::parts(1))
    }
}

impl Visitor for TreeCounter<'_> {
    fn query(&mut self, query: &Query) {
        let mut named = HashMap::new();
        for cte in query.with.iter().flat_map(|with| &with.ctes) {
            if let CteBody::Query(inner) = &cte.body {
                named.insert(address(inner), fold_name(&cte.name.value));
            }
        }
        let level_outside = std::mem::take(&mut self.level);
        self.open.push(OpenTree { size: Size::parts(1), named, with: HashMap::new(), level_outside });
    }

    fn leave_query(&mut self, query: &Query) {
        let Some(mut done) = self.open.pop() else { return };
        self.level = done.level_outside;
        let Some(outer) = self.open.last_mut() else { return };
        if let Some(name) = outer.named.get(&address(query)) {
            outer.with.insert(name.clone(), done.size);
            return;
        }
        let is_in_expression = self.level > 0;
        if is_in_expression {
            // A sub-query occurs a second time in the plan where it is grouped or ordered by.
            let twice = done.size;
            done.size.add(twice);
        }
        outer.size.add(done.size);
        self.joined(if is_in_expression { TABLES_OF_SUB_QUERY } else { done.size.tables });
    }

    fn select(&mut self, select: &Select) {
        let sets = match &select.group_by {
            Some(GroupBy::Items(items)) => items.iter().map(sets).fold(0, u64::saturating_add),
            _ => 0,
        };
        self.count(Size::parts(sets.saturating_add(1)));
        self.selects.push(0);
    }

    fn leave_select(&mut self, _: &Select) {
        let tables = self.selects.pop().unwrap_or_default();
        let joins = if tables > 1 { tables.saturating_mul(tables).saturating_mul(tables) } else { 0 };
        self.count(Size { joins, tables, ..Size::default() });
    }

    fn relation(&mut self, relation: &Relation) {
        let size = match &relation.kind {
            RelationKind::Table { name } => self.named(name),
            RelationKind::Function { .. } => Size::parts(1),
            _ => return,
        };
        self.count(Size { tables: 0, ..size });
        self.joined(size.tables);
    }

    fn expr(&mut self, expr: &Expr) -> bool {
        self.level += 1;
        // The types of a call are computed more often than the types of an operator.
        let times = if matches!(expr.kind, ExprKind::Function(_)) { TIMES_OF_CALL } else { 1 };
        let levels = self.level.saturating_mul(self.level).saturating_mul(times) / LEVELS_UNIT;
        self.count(Size { levels, ..Size::default() });
        true
    }

    fn leave_expr(&mut self, _: &Expr) {
        self.level = self.level.saturating_sub(1);
    }
}

/// Returns the number of sets of a key that are grouped by, apart from single columns.
fn sets(item: &GroupItem) -> u64 {
    match item {
        GroupItem::Cube(columns) => 1_u64.checked_shl(columns.len() as u32).unwrap_or(u64::MAX),
        GroupItem::Sets(items) => items.iter().map(sets).fold(0, u64::saturating_add),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statement;
    use tidalite_sql::ast::Statement as Parsed;

    /// Checks that the sizes of a query and of the same query for the rewrites are equal.
    fn check(sql: &str, views: &HashMap<String, Size>) {
        let (Ok(Parsed::Query(tree)), Ok(Statement::Query(query))) =
            (tidalite_sql::parse(sql), crate::dialect::parse(sql))
        else {
            panic!("no query: {sql}")
        };
        assert_eq!(size_of_tree(&tree, views), super::super::size(&query.ast, views), "{sql}");
    }

    #[test]
    fn sizes_of_both_trees_are_equal() {
        let views = HashMap::from([("v".to_owned(), Size { parts: 100, levels: 7, joins: 5, tables: 3 })]);
        for sql in [
            "SELECT * FROM t a, t b",
            "WITH a AS (SELECT 1 x), b AS (SELECT * FROM a, a c) SELECT * FROM b, a d",
            "SELECT * FROM (SELECT * FROM t a, t b) c, t d",
            "SELECT (SELECT max(x) FROM t u WHERE u.y = t.y) FROM t",
            "SELECT * FROM v, public.V",
            "WITH v AS (SELECT * FROM v) SELECT * FROM v",
            "SELECT abs(abs(x + 1 + 2)) FROM t WHERE x IN (1, 2) AND y IN (SELECT z FROM t)",
        ] {
            check(sql, &views);
        }
    }

    #[test]
    fn large_trees_are_rejected() {
        let is_bearable = |sql: String| match tidalite_sql::parse(&sql) {
            Ok(Parsed::Query(tree)) => size_of_tree(&tree, &HashMap::new()).bearable().is_ok(),
            _ => panic!("no query: {sql}"),
        };
        let row = |n: usize, operator: &str| format!("SELECT {} FROM t", vec!["x"; n].join(operator));
        assert!(is_bearable(row(150, " + ")) && !is_bearable(row(1_900, " + ")));
        assert!(is_bearable(format!("SELECT 1 FROM t WHERE {}", vec!["x = 1"; 900].join(" AND "))));
        let cube = |n: usize| format!("SELECT count() FROM t GROUP BY CUBE({})", vec!["x"; n].join(", "));
        assert!(is_bearable(cube(12)) && !is_bearable(cube(20)) && !is_bearable(cube(100)));
        let nested = |n: usize| format!("{}SELECT 1{} GROUP BY 1", "SELECT (".repeat(n), " GROUP BY 1)".repeat(n));
        assert!(is_bearable(nested(8)) && !is_bearable(nested(30)));
    }
}
