//! The size of a query that only the binder plans, as [`super::size`] measures it.

use super::{Counter, Size, address};
use std::collections::HashMap;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{CteBody, Expr, ExprKind, GroupBy, GroupItem, Query, Relation, RelationKind, Select};
use tidalite_types::schema::fold_name;

/// Returns the size of a query; `views` has the sizes of the views that it may name, by folded name.
pub(crate) fn size_of_tree(query: &Query, views: &HashMap<String, Size>) -> Size {
    let mut counter = Counter::new(views);
    walk::query(query, &mut counter);
    counter.size()
}

impl Visitor for Counter<'_> {
    fn query(&mut self, query: &Query) {
        let mut named = HashMap::new();
        for cte in query.with.iter().flat_map(|with| &with.ctes) {
            if let CteBody::Query(inner) = &cte.body {
                named.insert(address(&**inner), fold_name(&cte.name.value));
            }
        }
        self.begin_query(named);
    }

    fn leave_query(&mut self, query: &Query) {
        self.end_query(address(query));
    }

    fn select(&mut self, select: &Select) {
        self.begin_select();
        if let Some(GroupBy::Items(items)) = &select.group_by {
            items.iter().for_each(|item| self.count_cubes(item));
        }
    }

    fn leave_select(&mut self, _: &Select) {
        self.end_select();
    }

    fn relation(&mut self, relation: &Relation) {
        match &relation.kind {
            RelationKind::Table { name } => {
                let parts: Vec<String> = name.parts.iter().map(|part| fold_name(&part.value)).collect();
                self.count_relation(self.named(&parts));
            }
            RelationKind::Function { .. } => self.count_relation(Size::parts(1)),
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr) -> bool {
        self.begin_expr(matches!(expr.kind, ExprKind::Function(_)));
        true
    }

    fn leave_expr(&mut self, _: &Expr) {
        self.end_expr();
    }
}

impl Counter<'_> {
    /// Counts the sets of each CUBE of a GROUP BY item.
    fn count_cubes(&mut self, item: &GroupItem) {
        match item {
            GroupItem::Cube(columns) => self.count_cube(columns.len()),
            GroupItem::Sets(items) => items.iter().for_each(|item| self.count_cubes(item)),
            _ => {}
        }
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
        let parsed = query.stock_ast().expect("the stock parser reads it");
        assert_eq!(size_of_tree(&tree, views), super::super::size(parsed, views), "{sql}");
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
