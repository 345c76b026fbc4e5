//! The size of a query, by which queries are rejected whose planning would take too long.
//!
//! A plan contains each query of WITH and each view as often as it is named: 40 of them that each name the one before
//! twice are 10¹² tables. The planner formats the name of each expression once for each enclosing expression, so the
//! time grows with the third power of the levels; the time of joins grows with the third power of the number of tables.
//! All numbers are counted in the syntax tree, in time proportional to the size of the tree.
//!
//! The same counter walks over the trees of both parsers.

mod tree;

pub(crate) use tree::size_of_tree;

use crate::dialect;
use crate::tables::{CATALOG, SCHEMA};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, Select, Visitor};
use std::collections::HashMap;
use std::ops::ControlFlow;
use tidalite_types::schema::fold_name;

/// The maximum number of queries and tables, each query of WITH and each view as often as it is named: planned in about
/// a second.
const PARTS_MAX: u64 = 20_000;
/// The maximum sum over all expressions of the square of their level, divided by [`LEVELS_UNIT`]: some 200 additions in
/// a row, which take about a second, or thousands of expressions that are not nested.
const LEVELS_MAX: u64 = 750_000;
const LEVELS_UNIT: u64 = 8;
const TIMES_OF_CALL: u64 = 5;

/// The maximum sum over all SELECTs of the third power of the number of joined tables: 100 tables of one SELECT, about a
/// second.
const JOINS_MAX: u64 = 1_200_000;
/// A sub-query in an expression becomes a join, which costs as much as two tables.
const TABLES_OF_SUB_QUERY: u64 = 2;

/// The cost of planning a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    parts: u64,
    levels: u64,
    joins: u64,
    /// The number of tables of the SELECT that joins the most, with the tables of queries in FROM.
    tables: u64,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.parts = self.parts.saturating_add(other.parts);
        self.levels = self.levels.saturating_add(other.levels);
        self.joins = self.joins.saturating_add(other.joins);
        self.tables = self.tables.max(other.tables);
    }

    fn parts(parts: u64) -> Size {
        Size { parts, ..Size::default() }
    }

    /// Returns the size if a query of this size can be planned in bearable time.
    ///
    /// # Errors
    /// The size is above a limit.
    pub fn bearable(self) -> Result<Size> {
        if self.parts > PARTS_MAX {
            let message = format!("the statement is too large: it names more than {PARTS_MAX} queries and tables");
            return Err(Error::invalid(message)
                .with_hint("queries of WITH and views count with all that is in them, as often as they are named"));
        }
        if self.joins > JOINS_MAX {
            return Err(Error::invalid("the statement is too large: it joins too many tables")
                .with_hint("about 100 tables can be joined, or 50 sub-queries stand in expressions of one SELECT"));
        }
        if self.levels > LEVELS_MAX {
            return Err(Error::invalid("the statement is too large: its expressions have too many levels")
                .with_hint("about 200 operators in a row can be planned, of AND, OR and UNION thousands"));
        }
        Ok(self)
    }
}

/// Returns the size of a query of the stock parser; `views` has the sizes of the views that it may name, by folded name.
pub(crate) fn size(query: &ast::Query, views: &HashMap<String, Size>) -> Size {
    let mut counter = Counter::new(views);
    let _ = dialect::visit(query, &mut counter);
    counter.size()
}

/// The sizes along a walk over a syntax tree.
struct Counter<'a> {
    views: &'a HashMap<String, Size>,
    /// The queries that enclose the current node, outermost first; the first element receives the result.
    open: Vec<QuerySize>,
    /// The number of tables of each SELECT that encloses the current node.
    selects: Vec<u64>,
    /// The number of expressions of the innermost query that enclose the current node.
    level: u64,
}

#[derive(Default)]
struct QuerySize {
    size: Size,
    /// The folded names of the queries of WITH, by their addresses in the tree.
    named: HashMap<usize, String>,
    with: HashMap<String, Size>,
    level_outside: u64,
}

fn address<T>(query: &T) -> usize {
    std::ptr::from_ref(query).addr()
}

impl<'a> Counter<'a> {
    fn new(views: &'a HashMap<String, Size>) -> Counter<'a> {
        Counter { views, open: vec![QuerySize::default()], selects: Vec::new(), level: 0 }
    }

    /// Returns the size of everything that was counted.
    fn size(mut self) -> Size {
        self.open.pop().map(|open| open.size).unwrap_or_default()
    }

    fn count(&mut self, size: Size) {
        if let Some(open) = self.open.last_mut() {
            open.size.add(size);
        }
    }

    fn count_joined(&mut self, tables: u64) {
        if let Some(select) = self.selects.last_mut() {
            *select = select.saturating_add(tables.max(1));
        }
    }

    /// Begins a query; `named` has the folded names of the queries of its WITH, by their addresses.
    fn begin_query(&mut self, named: HashMap<usize, String>) {
        let level_outside = std::mem::take(&mut self.level);
        self.open.push(QuerySize { size: Size::parts(1), named, with: HashMap::new(), level_outside });
    }

    /// Ends the query at `address`.
    fn end_query(&mut self, address: usize) {
        let Some(mut done) = self.open.pop() else { return };
        self.level = done.level_outside;
        let Some(outer) = self.open.last_mut() else { return };
        if let Some(name) = outer.named.get(&address) {
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
        self.count_joined(if is_in_expression { TABLES_OF_SUB_QUERY } else { done.size.tables });
    }

    fn begin_select(&mut self) {
        self.count(Size::parts(1));
        self.selects.push(0);
    }

    fn end_select(&mut self) {
        let tables = self.selects.pop().unwrap_or_default();
        let joins = if tables > 1 { tables.saturating_mul(tables).saturating_mul(tables) } else { 0 };
        self.count(Size { joins, tables, ..Size::default() });
    }

    /// Counts the columns of CUBE, which is grouped by each set of them.
    fn count_cube(&mut self, columns: usize) {
        self.count(Size::parts(1_u64.checked_shl(columns as u32).unwrap_or(u64::MAX)));
    }

    /// Counts a relation of FROM.
    fn count_relation(&mut self, size: Size) {
        self.count(Size { tables: 0, ..size });
        self.count_joined(size.tables);
    }

    /// Returns the size of the query or table with a name, given by its folded parts.
    fn named(&self, parts: &[String]) -> Size {
        if let [name] = parts
            && let Some(size) = self.open.iter().rev().find_map(|open| open.with.get(name))
        {
            return *size;
        }
        let own = match parts {
            [schema, rest @ ..] if !rest.is_empty() && [CATALOG, SCHEMA].contains(&schema.as_str()) => rest,
            all => all,
        };
        self.views.get(&own.join(".")).copied().unwrap_or(Size::parts(1))
    }

    fn begin_expr(&mut self, is_call: bool) {
        self.level += 1;
        // The types of a call are computed more often than the types of an operator.
        let times = if is_call { TIMES_OF_CALL } else { 1 };
        let levels = self.level.saturating_mul(self.level).saturating_mul(times) / LEVELS_UNIT;
        self.count(Size { levels, ..Size::default() });
    }

    fn end_expr(&mut self) {
        self.level = self.level.saturating_sub(1);
    }
}

impl Visitor for Counter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.begin_query(tables.map(|table| (address(&*table.query), fold_name(&table.alias.name.value))).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.end_query(address(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.begin_select();
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.end_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let parts: Vec<String> = name.0.iter().filter_map(|part| Some(fold_name(&part.as_ident()?.value))).collect();
        self.count_relation(self.named(&parts));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.begin_expr(matches!(expr, Expr::Function(_)));
        if let Expr::Cube(columns) = expr {
            self.count_cube(columns.len());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.end_expr();
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statement;

    fn of(sql: &str, views: &HashMap<String, Size>) -> Size {
        let Ok(Statement::Query(query)) = dialect::parse(sql) else { panic!("no query: {sql}") };
        size(query.stock_ast().expect("the stock parser reads it"), views)
    }

    fn doubled(times: usize, body: impl Fn(&str) -> String) -> String {
        let mut sql = "WITH c0 AS (SELECT 1 x)".to_owned();
        (1..=times).for_each(|n| sql += &format!(", c{n} AS ({})", body(&format!("c{}", n - 1))));
        sql + &format!(" SELECT * FROM c{times}")
    }

    #[test]
    fn queries_of_with_count_as_often_as_they_are_named() {
        let none = HashMap::new();
        // The query, its SELECT, two tables.
        assert_eq!(of("SELECT * FROM t a, t b", &none).parts, 4);
        assert_eq!(of("WITH a AS (SELECT 1 x) SELECT * FROM a, a b", &none).parts, 2 + 2 * 2);
        // Twice the one before, its query and its SELECT.
        let join = |of: &str| format!("SELECT a.x FROM {of} a, {of} b");
        assert_eq!(of(&doubled(3, join), &none).parts, ((2 * 2 + 2) * 2 + 2) * 2 + 2 + 2);
        for times in [40, 200] {
            let union = |of: &str| format!("SELECT x FROM {of} UNION ALL SELECT x FROM {of}");
            assert!(of(&doubled(times, join), &none).bearable().is_err());
            assert!(of(&doubled(times, union), &none).bearable().is_err());
        }
        assert!(of(&doubled(5, join), &none).bearable().is_ok());
        assert!(
            of(&doubled(10, |of| format!("SELECT x FROM {of} UNION ALL SELECT x FROM {of}")), &none).bearable().is_ok()
        );
    }

    #[test]
    fn tables_that_are_joined_count_with_those_of_queries_in_their_place() {
        let none = HashMap::new();
        let joins = |sql: &str| of(sql, &none).joins;
        assert_eq!(joins("SELECT * FROM t"), 0);
        assert_eq!(joins("SELECT * FROM t a, t b JOIN t c USING (x)"), 27);
        assert_eq!(joins("SELECT * FROM (SELECT * FROM t a, t b) c, t d"), 8 + 27);
        assert_eq!(joins("SELECT * FROM t a, t b UNION ALL SELECT * FROM t c, t d"), 16);
        assert_eq!(joins("SELECT (SELECT max(x) FROM t u WHERE u.y = t.y) FROM t"), 27);
        assert_eq!(joins("WITH a AS (SELECT * FROM t b, t c) SELECT * FROM a, a d"), 8 + 8 + 64);
        let chain = |n: usize| {
            let mut sql = "WITH c0 AS (SELECT * FROM t)".to_owned();
            (1..=n).for_each(|n| sql += &format!(", c{n} AS (SELECT c.* FROM c{} c JOIN t USING (x))", n - 1));
            sql + &format!(" SELECT * FROM c{n}")
        };
        assert!(of(&chain(30), &none).bearable().is_ok());
        assert!(of(&chain(200), &none).bearable().is_err());
        let nested = |n: usize| format!("{}SELECT 1{} GROUP BY 1", "SELECT (".repeat(n), " GROUP BY 1)".repeat(n));
        assert!(of(&nested(8), &none).bearable().is_ok());
        assert!(of(&nested(30), &none).bearable().is_err());
        let cube = |n: usize| format!("SELECT count() FROM t GROUP BY CUBE({})", vec!["x"; n].join(", "));
        assert!(of(&cube(12), &none).bearable().is_ok());
        assert!(of(&cube(20), &none).bearable().is_err());
        assert!(of(&cube(100), &none).bearable().is_err());
    }

    #[test]
    fn a_name_is_that_of_the_nearest_with_and_then_a_views() {
        let views = HashMap::from([("v".to_owned(), Size { parts: 100, levels: 7, joins: 5, tables: 3 })]);
        let twice = Size { parts: 202, levels: 14, joins: 10 + 6 * 6 * 6, tables: 6 };
        assert_eq!(of("SELECT * FROM v, public.V", &views), twice);
        assert_eq!(of("WITH v AS (SELECT 1) SELECT * FROM v", &views).parts, 4);
        assert_eq!(of("SELECT * FROM (WITH v AS (SELECT 1) SELECT * FROM v) a, v", &views).parts, 2 + 4 + 100);
        // The view within, by a query of its own name.
        assert_eq!(of("WITH v AS (SELECT * FROM v) SELECT * FROM v", &views).parts, 2 + 102);
    }

    #[test]
    fn levels_count_and_lists_do_not() {
        let none = HashMap::new();
        let row = |n: usize, operator: &str| vec!["x"; n].join(operator);
        assert!(of(&format!("SELECT {} FROM t", row(1_900, " + ")), &none).bearable().is_err());
        assert!(of(&format!("SELECT {} FROM t", row(150, " + ")), &none).bearable().is_ok());
        // Many shorter ones are as much.
        let many = vec![row(100, " + "); 100].join(", ");
        assert!(of(&format!("SELECT {many} FROM t"), &none).bearable().is_err());
        let calls = |n: usize| format!("SELECT {}x{} FROM t", "abs(".repeat(n), ")".repeat(n));
        assert!(of(&calls(100), &none).bearable().is_ok());
        assert!(of(&calls(190), &none).bearable().is_err());
        let numbers = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        assert!(of(&format!("SELECT * FROM t WHERE x IN ({numbers})"), &none).bearable().is_ok());
        // These stand side by side in a plan.
        let alternatives = (0..900).map(|n| format!("x = {n}")).collect::<Vec<_>>();
        for operator in [" OR ", " AND "] {
            assert!(of(&format!("SELECT * FROM t WHERE {}", alternatives.join(operator)), &none).bearable().is_ok());
        }
    }
}
