//! The syntax tree of each clause, in the compact form of [`common::compact`].

mod common;

use common::compact::compact;
use tidalite_sql::ast::{Body, ExprKind, Projection, Select, SelectItem, Statement};
use tidalite_sql::parse;

fn statement(sql: &str) -> Statement {
    parse(sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn select(sql: &str) -> Select {
    let Statement::Query(query) = statement(sql) else { panic!("{sql}") };
    let Body::Select(select) = query.body else { panic!("{sql}") };
    *select
}

/// Returns the tree of an expression.
#[track_caller]
fn expr(sql: &str, tree: &str) {
    let select = select(&format!("SELECT {sql}"));
    let Projection::Items(items) = select.projection else { panic!("{sql}") };
    let [SelectItem::Expr { expr, alias: None }] = &items[..] else { panic!("{sql}: {items:?}") };
    assert_eq!(compact(expr), tree, "{sql}");
}

/// Returns the tree of a part of a SELECT.
#[track_caller]
fn clause(sql: &str, part: impl Fn(&Select) -> String, tree: &str) {
    assert_eq!(part(&select(sql)), tree, "{sql}");
}

#[track_caller]
fn whole(sql: &str, tree: &str) {
    assert_eq!(compact(&statement(sql)), tree, "{sql}");
}

#[test]
fn precedence() {
    expr(
        "a + b * c",
        "Binary{left: Column(a), op: Add, right: Binary{left: Column(b), op: Multiply, right: Column(c)}}",
    );
    expr(
        "a - b - c",
        "Binary{left: Binary{left: Column(a), op: Subtract, right: Column(b)}, op: Subtract, right: Column(c)}",
    );
    expr(
        "a OR b AND NOT c = d",
        "Or([Column(a), And([Column(b), Unary{op: Not, operand: Binary{left: Column(c), op: Equal, right: Column(d)}}])])",
    );
    expr(
        "-a::int",
        "Unary{op: Minus, operand: Cast{kind: DoubleColon, operand: Column(a), data_type: TypeName{name: int}}}",
    );
    expr(
        "a || b + c = d",
        "Binary{left: Binary{left: Column(a), op: Concat, right: Binary{left: Column(b), op: Add, right: Column(c)}}, op: Equal, right: Column(d)}",
    );
    expr("a IS NULL = b", "Binary{left: Is{operand: Column(a), test: Null}, op: Equal, right: Column(b)}");
    expr(
        "NOT a IN (1) AND b",
        r#"And([Unary{op: Not, operand: InList{operand: Column(a), list: [Literal(Number("1"))]}}, Column(b)])"#,
    );
    expr(
        "a BETWEEN 1 AND 2 AND b",
        r#"And([Between{operand: Column(a), low: Literal(Number("1")), high: Literal(Number("2"))}, Column(b)])"#,
    );
    expr(
        "j -> 'a' ->> 'b' = 'c'",
        r#"Binary{left: Binary{left: Binary{left: Column(j), op: Arrow, right: Literal(Text("a"))}, op: LongArrow, right: Literal(Text("b"))}, op: Equal, right: Literal(Text("c"))}"#,
    );
    expr("a IS DISTINCT FROM b AND c", "And([Is{operand: Column(a), test: DistinctFrom(Column(b))}, Column(c)])");
    expr("a AND b AND c", "And([Column(a), Column(b), Column(c)])");
    expr(
        "ts AT TIME ZONE 'UTC' + b",
        r#"Binary{left: AtTimeZone{operand: Column(ts), zone: Literal(Text("UTC"))}, op: Add, right: Column(b)}"#,
    );
}
#[test]
fn literals() {
    expr("10.5m", r#"Literal(Decimal("10.5"))"#);
    expr("1_000", r#"Literal(Number("1000"))"#);
    expr("E'a\\n'", r#"Literal(Text("a\n"))"#);
    expr(
        "INTERVAL '1' DAY TO SECOND",
        r#"Interval(Interval{value: Literal(Text("1")), field: IntervalField{unit: DAY}, to: IntervalField{unit: SECOND}})"#,
    );
    expr("DATE '2024-01-01'", r#"Typed{data_type: TypeName{name: DATE}, text: "2024-01-01"}"#);
    expr(
        "x::decimal(18, 3)[]",
        r#"Cast{kind: DoubleColon, operand: Column(x), data_type: TypeName{name: decimal, args: [Number{digits: "18"}, Number{digits: "3"}]}}"#,
    );
}
#[test]
fn operands() {
    expr("s.t.a", "Column(s.t.a)");
    expr("(a, b)", "Row([Column(a), Column(b)])");
    expr("a = ANY ($1)", "Quantified{left: Column(a), op: Equal, quantifier: Any, set: Values([Parameter(1)])}");
    expr("ts IN '2024-01'", r#"InValue{operand: Column(ts), set: Literal(Text("2024-01"))}"#);
    expr(
        "x[1:, 2].f",
        r#"Field{operand: Subscript{operand: Column(x), subscripts: [Slice{lower: Literal(Number("1"))}, Index(Literal(Number("2")))]}, name: f}"#,
    );
    expr(
        "CASE a WHEN 1 THEN b ELSE c END",
        r#"Case{operand: Column(a), branches: [WhenThen{when: Literal(Number("1")), then: Column(b)}], otherwise: Column(c)}"#,
    );
    expr(
        "sum(DISTINCT a ORDER BY b DESC) FILTER (WHERE c)",
        "Function(FunctionCall{name: sum, distinct: true, args: [Column(a)], order_by: [OrderItem{expr: Column(b), descending: true}], filter: Column(c)})",
    );
    expr(
        "sum(a) OVER (w PARTITION BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
        r#"Function(FunctionCall{name: sum, args: [Column(a)], over: Spec(WindowSpec{base: w, partition_by: [Column(b)], frame: WindowFrame{units: Rows, start: Preceding(Literal(Number("2"))), end: CurrentRow, exclusion: Ties}})})"#,
    );
    expr(
        "sum(a) OVER (ORDER BY b RANGE 2 hours PRECEDING)",
        r#"Function(FunctionCall{name: sum, args: [Column(a)], over: Spec(WindowSpec{order_by: [OrderItem{expr: Column(b)}], frame: WindowFrame{units: Range, start: Preceding(Duration(Duration{count: "2", unit: Hour}))}})})"#,
    );
    expr("EXTRACT(hour FROM ts)", "Special(Extract{field: hour, operand: Column(ts)})");
    expr(
        "ARRAY(SELECT a FROM t)",
        "ArrayQuery(Select(Select{projection: Items([Column(a)]), from: [Table{name: t}]}))",
    );
}
#[test]
fn time_series() {
    let sample = |s: &Select| compact(&s.sample_by);
    clause(
        "SELECT 1 FROM t SAMPLE BY 15m",
        sample,
        r#"SampleBy{stride: Duration(Duration{count: "15", unit: Minute})}"#,
    );
    clause(
        "SELECT 1 FROM t SAMPLE BY 1h FROM 'a' TO 'b' FILL(PREV(x), NULL, 0) ALIGN TO CALENDAR TIME ZONE 'z' WITH OFFSET '01:00'",
        sample,
        r#"SampleBy{stride: Duration(Duration{count: "1", unit: Hour}), from: Literal(Text("a")), to: Literal(Text("b")), fill: Fill{values: [Prev(x), Null, Constant(Literal(Number("0")))]}, align: Calendar{zone: Literal(Text("z")), offset: Literal(Text("01:00"))}}"#,
    );
    clause(
        "SELECT 1 FROM t SAMPLE BY @s ALIGN TO FIRST OBSERVATION",
        sample,
        "SampleBy{stride: Variable(@s), align: FirstObservation}",
    );
    clause(
        "SELECT 1 FROM t LATEST ON ts PARTITION BY k, l",
        |s| compact(&s.latest_on),
        "LatestOn{timestamp: Column(ts), keys: [Column(k), Column(l)]}",
    );
    let from = |s: &Select| compact(&s.from);
    clause(
        "SELECT 1 FROM a ASOF JOIN b ON (k) TOLERANCE 5m",
        from,
        r#"[TableRef{relation: Table{name: a}, joins: [Join{kind: Asof(AsofJoin{kind: Asof, tolerance: Duration{count: "5", unit: Minute}}), relation: Table{name: b}, condition: Using([k])}]}]"#,
    );
    clause(
        "SELECT 1 FROM a x LT JOIN b y ON x.k = y.k",
        from,
        "[TableRef{relation: Relation{kind: Table{name: a}, alias: Alias{name: x}}, joins: [Join{kind: Asof(AsofJoin{kind: Lt}), relation: Relation{kind: Table{name: b}, alias: Alias{name: y}}, condition: On(Binary{left: Column(x.k), op: Equal, right: Column(y.k)})}]}]",
    );
    clause(
        "SELECT 1 FROM a WINDOW JOIN b RANGE BETWEEN a.n seconds PRECEDING AND CURRENT ROW EXCLUDE PREVAILING",
        from,
        "[TableRef{relation: Table{name: a}, joins: [Join{kind: Window(WindowJoin{lower: Preceding(Expr{expr: Column(a.n), unit: Second}), upper: CurrentRow, includes_prevailing: false}), relation: Table{name: b}}]}]",
    );
    clause(
        "SELECT 1 FROM a HORIZON JOIN b ON (k) RANGE FROM -1m TO 1m STEP 5s AS h",
        from,
        r#"[TableRef{relation: Table{name: a}, joins: [Join{kind: Horizon(HorizonJoin{grid: Range{from: Duration(Duration{count: "-1", unit: Minute}), to: Duration(Duration{count: "1", unit: Minute}), step: Duration(Duration{count: "5", unit: Second})}, alias: h}), relation: Table{name: b}, condition: Using([k])}]}]"#,
    );
    clause(
        "SELECT 1 FROM (SELECT 2) TIMESTAMP(ts) AS x",
        from,
        r#"[Relation{kind: Select(Select{projection: Items([Literal(Number("2"))])}), timestamp: ts, alias: Alias{name: x}}]"#,
    );
    clause(
        "SELECT 1 FROM t PIVOT (sum(a) AS s FOR b IN (1, 2 AS two) GROUP BY c) p",
        from,
        r#"[Relation{kind: Pivot{relation: Table{name: t}, pivot: Pivot{aggregates: [PivotValue{expr: Function(FunctionCall{name: sum, args: [Column(a)]}), alias: s}], columns: [PivotColumn{column: Column(b), values: List([PivotValue{expr: Literal(Number("1"))}, PivotValue{expr: Literal(Number("2")), alias: two}])}], group_by: [Column(c)]}}, alias: Alias{name: p}}]"#,
    );
    clause(
        "UNPIVOT t ON a, b INTO NAME n VALUE v",
        from,
        "[Unpivot{relation: Table{name: t}, unpivot: Unpivot{value: v, name: n, columns: [PivotValue{expr: Column(a)}, PivotValue{expr: Column(b)}]}}]",
    );
    clause("t WHERE a", |s| compact(&s), "Select{projection: Implicit, from: [Table{name: t}], selection: Column(a)}");
}
#[test]
fn queries() {
    whole(
        "DECLARE @a := 1 WITH x (b) AS (SELECT 1) SELECT * EXCLUDE (c) FROM x ORDER BY 1 DESC NULLS LAST LIMIT 2, -1",
        r#"Query(Query{declare: [Declaration{name: @a, value: Literal(Number("1"))}], with: With{ctes: [Cte{name: x, columns: [b], body: Query(Select(Select{projection: Items([Literal(Number("1"))])}))}]}, body: Select(Select{projection: Items([Wildcard(Wildcard{changes: [Exclude([c])]})]), from: [Table{name: x}]}), order_by: Items([OrderItem{expr: Literal(Number("1")), descending: true, nulls_first: false}]), limit: Range{lo: Literal(Number("2")), hi: Unary{op: Minus, operand: Literal(Number("1"))}}})"#,
    );
    whole(
        "SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3",
        r#"Query(Set{first: Select(Select{projection: Items([Literal(Number("1"))])}), rest: [SetTerm{op: Union, quantifier: All, body: Set{first: Select(Select{projection: Items([Literal(Number("2"))])}), rest: [SetTerm{op: Intersect, body: Select(Select{projection: Items([Literal(Number("3"))])})}]}}]})"#,
    );
    whole(
        "SELECT DISTINCT ON (a) a FROM t GROUP BY ROLLUP (a, (b, c)) FETCH FIRST 3 ROWS WITH TIES",
        r#"Query(Query{body: Select(Select{distinct: On([Column(a)]), projection: Items([Column(a)]), from: [Table{name: t}], group_by: Items([Rollup([[Column(a)], [Column(b), Column(c)]])])}), limit: Fetch{count: Literal(Number("3")), with_ties: true}})"#,
    );
    whole(
        "SELECT a FROM t JOIN u USING (k) LEFT JOIN LATERAL (SELECT 1) l ON true",
        r#"Query(Select(Select{projection: Items([Column(a)]), from: [TableRef{relation: Table{name: t}, joins: [Join{kind: Inner, relation: Table{name: u}, condition: Using([k])}, Join{kind: Left, relation: Relation{kind: Query{lateral: true, query: Select(Select{projection: Items([Literal(Number("1"))])})}, alias: Alias{name: l}}, condition: On(Literal(Boolean(true)))}]}]}))"#,
    );
}
#[test]
fn statements() {
    whole(
        "INSERT INTO t (a) VALUES (DEFAULT) ON CONFLICT (k) DO UPDATE SET a = EXCLUDED.a RETURNING a",
        "Insert(Insert{table: t, columns: [a], source: Query(Values([[Default]])), conflict: OnConflict{keys: [k], action: Update{assignments: [Assignment{columns: [a], value: Column(EXCLUDED.a)}]}}, returning: [Column(a)]})",
    );
    whole(
        "UPDATE t x SET a = 1 FROM u WHERE b",
        r#"Update(Update{table: t, alias: Alias{name: x}, assignments: [Assignment{columns: [a], value: Literal(Number("1"))}], from: [Table{name: u}], selection: Column(b)})"#,
    );
    whole("DELETE FROM t USING u WHERE b", "Delete(Delete{table: t, using: [Table{name: u}], selection: Column(b)})");
    whole(
        "MERGE INTO t USING s ON a WHEN MATCHED AND b THEN DELETE WHEN NOT MATCHED THEN INSERT (c) VALUES (1)",
        r#"Merge(Merge{table: t, source: Table{name: s}, on: Column(a), clauses: [MergeClause{matched: true, condition: Column(b), action: Delete}, MergeClause{action: Insert{columns: [c], values: [Literal(Number("1"))]}}]})"#,
    );
    whole(
        "COPY t (a) FROM STDIN (FORMAT csv, HEADER, DELIMITER ';')",
        r#"Copy(Copy{source: Table{table: t, columns: [a]}, direction: From, target: Client, options: [CopyOption{name: FORMAT, value: Column(csv)}, CopyOption{name: HEADER}, CopyOption{name: DELIMITER, value: Literal(Text(";"))}]})"#,
    );
    whole(
        "CREATE TABLE IF NOT EXISTS t (ts TIMESTAMP, k SYMBOL CAPACITY 10 INDEX) TIMESTAMP(ts) PARTITION BY DAY TTL 30 DAYS DEDUP UPSERT KEYS(ts, k)",
        r#"CreateTable(CreateTable{if_not_exists: true, name: t, source: Elements([Column(ColumnDef{name: ts, data_type: TypeName{name: TIMESTAMP}}), Column(ColumnDef{name: k, data_type: TypeName{name: SYMBOL}, options: [Capacity("10"), Index()]})]), storage: TableStorage{timestamp: ts, partition_by: DAY, ttl: TimeToLive{count: "30", unit: DAYS}, dedup: [ts, k]}})"#,
    );
    whole(
        "CREATE TABLE t AS SELECT * FROM u TIMESTAMP(ts) PARTITION BY DAY WITH o3MaxLag = 10s",
        r#"CreateTable(CreateTable{name: t, source: Query(Select(Select{projection: Items([Wildcard(Wildcard{})]), from: [Table{name: u}]})), storage: TableStorage{timestamp: ts, partition_by: DAY, settings: [StorageSetting{name: o3MaxLag, value: Duration(Duration{count: "10", unit: Second})}]}})"#,
    );
    whole(
        "ALTER TABLE t DROP PARTITION LIST '2024'",
        r#"AlterTable(AlterTable{table: t, action: DropPartitions(List([Literal(Text("2024"))]))})"#,
    );
    whole(
        "CREATE MATERIALIZED VIEW v WITH BASE t REFRESH EVERY 10m DEFERRED PERIOD (LENGTH 1d DELAY 2h) AS (t) PARTITION BY DAY",
        r#"CreateView(CreateView{name: v, materialized: Materialized{base: t, refresh: Refresh{mode: Every{interval: Duration(Duration{count: "10", unit: Minute})}, deferred: true, period: Length{length: Duration(Duration{count: "1", unit: Day}), delay: Duration(Duration{count: "2", unit: Hour})}}, storage: TableStorage{partition_by: DAY}}, query: Query(Select(Select{projection: Implicit, from: [Table{name: t}]}))})"#,
    );
    whole(
        "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        r#"Transaction(Begin{read_only: true, isolation: "REPEATABLE READ"})"#,
    );
    whole(
        "SET search_path TO public, \"$user\"",
        r#"Session(Set{name: "search_path", values: [Column(public), Column("$user")]})"#,
    );
    whole(
        "DECLARE c SCROLL CURSOR WITH HOLD FOR t",
        "Cursor(Declare{name: c, scroll: true, hold: true, query: Select(Select{projection: Implicit, from: [Table{name: t}]})})",
    );
    whole(
        "EXPLAIN ANALYZE t",
        "Explain(Explain{analyze: true, statement: Query(Select(Select{projection: Implicit, from: [Table{name: t}]}))})",
    );
    whole("SHOW COLUMNS FROM t", "Show(Columns(t))");
    whole(
        "GRANT SELECT (a) ON t TO x WITH GRANT OPTION",
        r#"Grant(Grant{privileges: [("SELECT", [a])], on: [t], grantees: [x], with_option: true})"#,
    );
}
#[test]
fn places() {
    let sql = "SELECT (a + b) * 2 FROM t";
    let Projection::Items(items) = select(sql).projection else { panic!() };
    let [SelectItem::Expr { expr, .. }] = &items[..] else { panic!() };
    let ExprKind::Binary { left, .. } = &expr.kind else { panic!() };
    assert_eq!((expr.span.slice(sql), left.span.slice(sql)), ("(a + b) * 2", "(a + b)"));
}
