use crate::statement::{Insert, Statement, Step};
use crate::{Parameter, dialect};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use tidalite_sql::ast::{Body, Query};
use tidalite_types::ColumnType;

fn statement(sql: &str) -> Statement {
    dialect::parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn insert(sql: &str, values: &[Parameter]) -> Insert {
    match dialect::parse_bound(sql, values) {
        Ok(Statement::Insert(insert)) => insert,
        other => panic!("{sql}: {other:?}"),
    }
}

fn rows(sql: &str, values: &[Parameter], types: &[ColumnType]) -> Option<RecordBatch> {
    insert(sql, values).query.constant_rows(types)
}

#[test]
fn names_have_their_spelling_and_positions() {
    let sql = "INSERT INTO Public.s.T (a, \"B c\") VALUES (1, 2) ON CONFLICT (A) DO UPDATE SET x = Excluded.X";
    let insert = insert(sql, &[]);
    assert_eq!((insert.table.as_str(), insert.table_position, insert.alias.as_str()), ("s.T", 21, "T"));
    let columns: Vec<_> = insert.columns.iter().map(|name| (name.text.as_str(), name.position)).collect();
    assert_eq!(columns, [("a", 24), ("B c", 27)]);
    let conflict = insert.conflict.expect("there is a clause");
    assert_eq!(conflict.position, sql.find("ON CONFLICT").expect("it is there"));
    assert!(conflict.update.expect("rows change").is_plain);
}

/// The WITH before INSERT was dropped if VALUES had its own.
#[test]
fn values_see_both_with_clauses() {
    let sql = "WITH a AS (SELECT 1 x) INSERT INTO t WITH b AS (SELECT 2 x) VALUES ((SELECT x FROM a))";
    let tree = insert(sql, &[]).query.tree.expect("the binder plans it");
    let Body::Query(values) = &tree.query.body else { panic!("{:?}", tree.query) };
    let names = |query: &Query| -> Vec<String> {
        query.with.iter().flat_map(|with| &with.ctes).map(|cte| cte.name.value.clone()).collect()
    };
    assert_eq!((names(&tree.query), names(values)), (vec!["a".to_owned()], vec!["b".to_owned()]));
}

#[test]
fn assignments_other_than_from_excluded_are_not_plain() {
    for set in ["x = excluded.y", "x = excluded.x + 1", "x = excluded.x WHERE t.x > 1", "(x, y) = (excluded.y, 1)"] {
        let insert = insert(&format!("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET {set}"), &[]);
        assert!(!insert.conflict.and_then(|conflict| conflict.update).expect("rows change").is_plain, "{set}");
    }
}

#[test]
fn constants_and_parameters_are_rows_without_a_plan() {
    let values = [Parameter::Long(-5), Parameter::Typed("x".to_owned(), ColumnType::Date), Parameter::Double(0.5)];
    let sql = "INSERT INTO t VALUES ($1, $2, $3, DEFAULT), (- 7, 'y', 1, NULL)";
    let types = [ColumnType::Long, ColumnType::Varchar, ColumnType::Double, ColumnType::Boolean];
    let rows = rows(sql, &values, &types).expect("all are constants");
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[-5, -7]);
    assert_eq!(rows.column(1).as_string_view().iter().flatten().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(rows.column(2).as_primitive::<Float64Type>().values(), &[0.5, 1.0]);
    assert_eq!((rows.column(3).data_type(), rows.num_rows()), (&DataType::Null, 2));
}

#[test]
fn numbers_for_decimals_keep_their_digits() {
    let digits = "12345678901234567.89";
    let decimal = ColumnType::Decimal { precision: 38, scale: 2 };
    let rows = rows(&format!("INSERT INTO t VALUES (-{digits})"), &[], &[decimal]).expect("it is a constant");
    assert_eq!(rows.column(0).as_string_view().value(0), format!("-{digits}"));
}

#[test]
fn casts_to_the_type_of_the_column_change_nothing() {
    let is_constant = |cell: &str, of| rows(&format!("INSERT INTO t VALUES ({cell})"), &[], &[of]).is_some();
    assert!(is_constant("5::INTEGER", ColumnType::Int) && is_constant("CAST('a' AS text)", ColumnType::Symbol));
    assert!(!is_constant("5.5::INTEGER", ColumnType::Int) && !is_constant("5::INTEGER", ColumnType::Long));
    assert!(!is_constant("'5'::varchar(1)", ColumnType::Varchar) && !is_constant("now()", ColumnType::Varchar));
}

#[test]
fn merge_is_a_statement_for_each_clause() {
    let sql = "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED AND t.x > 1 THEN DELETE \
               WHEN MATCHED THEN UPDATE SET x = 2 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k) \
               WHEN NOT MATCHED BY SOURCE THEN DO NOTHING";
    let Statement::Compound(compound) = statement(sql) else { panic!("{sql}") };
    let kinds = compound.steps.iter().map(|step| match step {
        Step::Named { name, .. } => name.as_str(),
        Step::OnceEach(_) => "once each",
        Step::Counted(statement) => statement.writes().unwrap_or_default(),
        Step::Answer(_) => "answer",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["s", "once each", "DELETE", "UPDATE", "INSERT"]);
}

#[test]
fn errors_have_positions() {
    // ^ marks the position.
    for (marked, message) in [
        ("UPDATE t SET ^u.x = 1", "\"u\" is not the table that is updated"),
        ("UPDATE t SET (a, b) = ^(1, 2, 3)", "2 columns are assigned from another number of values"),
        ("DELETE FROM ^pg_catalog.pg_class", "schema \"pg_catalog\" cannot be changed"),
        (
            "INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT ^k DO NOTHING",
            "ON CONSTRAINT is not supported: name the upsert keys in parentheses",
        ),
        (
            "MERGE INTO t USING s ON true WHEN MATCHED THEN ^INSERT VALUES (1)",
            "syntax error: expected UPDATE, DELETE or DO NOTHING, found INSERT",
        ),
        (
            "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN ^DELETE",
            "syntax error: expected INSERT or DO NOTHING, found DELETE",
        ),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING ^x", "RETURNING is not supported in MERGE"),
    ] {
        let error = dialect::parse(&marked.replace('^', "")).expect_err(marked);
        assert_eq!((error.to_string().as_str(), error.position), (message, marked.find('^')), "{marked}");
    }
}
