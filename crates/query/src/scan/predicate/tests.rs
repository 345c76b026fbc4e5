use super::*;
use datafusion::logical_expr::{col, lit};
use tidalite_storage::Bounds;
use tidalite_types::PartitionBy;

fn schema() -> TableSchema {
    let types = [
        ("i", ColumnType::Int),
        ("l", ColumnType::Long),
        ("f", ColumnType::Float),
        ("d", ColumnType::Double),
        ("b", ColumnType::Boolean),
        ("s", ColumnType::Symbol),
        ("u", ColumnType::Uuid),
    ];
    let columns = types.iter().enumerate().map(|(i, (name, column_type))| ColumnSchema {
        id: ColumnId(i as u32),
        name: (*name).to_owned(),
        column_type: *column_type,
    });
    TableSchema {
        name: "t".to_owned(),
        columns: columns.collect(),
        designated: None,
        partition_by: PartitionBy::None,
        next_column: ColumnId(7),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    }
}

fn of(expr: &Expr) -> Predicate {
    Predicate::of(expr, &schema()).unwrap_or_else(|| panic!("{expr} is understood"))
}

#[test]
fn a_block_is_kept_when_a_value_between_its_bounds_would_match() {
    let zone = Zone { null_count: 0, bounds: Bounds::Int(10, 20) };
    for (expr, kept) in [
        (col("l").eq(lit(10_i64)), true),
        (col("l").eq(lit(21_i64)), false),
        (col("l").lt(lit(10_i64)), false),
        (col("l").lt_eq(lit(10_i64)), true),
        (col("l").gt(lit(20_i64)), false),
        (lit(20_i64).lt_eq(col("l")), true),
        (col("l").not_eq(lit(15_i64)), true),
        (col("l").lt(lit(i64::MIN)), false),
        (col("l").in_list(vec![lit(1_i64), lit(9_i64), lit(30_i64)], false), false),
        (col("l").between(lit(12_i64), lit(11_i64)), false),
        (col("l").eq(lit(5_i64)).or(col("l").gt_eq(lit(20_i64))), true),
    ] {
        assert_eq!(of(&expr).may_match(Some(&zone), 10), kept, "{expr}");
    }
}

#[test]
fn nan_is_the_greatest_double() {
    let (with_nan, without) = (Bounds::Float(1.0, f64::NAN), Bounds::Float(1.0, 2.0));
    for (expr, bounds, kept) in [
        (col("d").gt(lit(1e300)), with_nan, true),
        (col("d").gt(lit(2.0)), without, false),
        (col("d").eq(lit(f64::NAN)), with_nan, true),
        (col("d").eq(lit(f64::NAN)), without, false),
        (col("d").eq(lit(0.5)), with_nan, false),
        (col("d").gt(lit(f64::NAN)), with_nan, false),
        (col("d").lt_eq(lit(f64::NAN)), without, true),
    ] {
        assert_eq!(of(&expr).may_match(Some(&Zone { null_count: 0, bounds }), 10), kept, "{expr}");
    }
    assert!(of(&col("d").eq(lit(0.0))).values.has_float(-0.0));
    assert!(!of(&col("d").lt(lit(0.0))).values.has_float(-0.0));
}

#[test]
fn null_is_three_valued() {
    let five = || col("l").eq(lit(5_i64));
    for (expr, null, has_five, has_six) in [
        (five(), None, true, false),
        (Expr::Not(Box::new(five())), None, false, true),
        (col("l").is_null(), Some(true), false, false),
        (col("l").is_not_null(), Some(false), true, true),
        (five().or(col("l").is_null()), Some(true), true, false),
        (Expr::Not(Box::new(five().or(col("l").is_null()))), Some(false), false, true),
        (five().and(col("l").is_null()), None, false, false),
        (five().is_true(), Some(false), true, false),
        (five().is_not_true(), Some(true), false, true),
        (five().is_unknown(), Some(true), false, false),
        (five().is_not_false(), Some(true), true, false),
    ] {
        let predicate = of(&expr);
        let found = (predicate.null, predicate.values.has_int(5), predicate.values.has_int(6));
        assert_eq!(found, (null, has_five, has_six), "{expr}");
    }
    let all = Zone { null_count: 10, bounds: Bounds::None };
    assert!(!of(&five()).may_match(Some(&all), 10));
    assert!(of(&five()).may_match(Some(&all), 11), "bounds not known");
    assert!(of(&col("l").is_null()).may_match(Some(&all), 10));
    assert!(of(&col("l").is_null()).may_match(None, 10), "a column that is not there");
    assert!(!of(&col("l").is_not_null()).may_match(None, 10));
}

#[test]
fn integers_compare_with_doubles_as_they_would_be_converted() {
    let cast = |name: &str| datafusion::logical_expr::cast(col(name), DataType::Float64);
    let edges = [0.0, -0.5, 1.5, 9_007_199_254_740_993.0, i64::MAX as f64, i64::MIN as f64, f64::NAN, -1e300];
    let values = [0, 1, 2, -1, i64::MAX, i64::MAX - 600, i64::MIN, 1 << 53, (1 << 53) + 1, (1 << 53) + 2];
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    for edge in edges {
        let sets =
            [cast("l").lt(lit(edge)), cast("l").eq(lit(edge)), cast("l").gt_eq(lit(edge))].map(|e| of(&e).values);
        for value in values {
            let order = order(value as f64, edge);
            let expected = [order.is_lt(), order.is_eq(), order.is_ge()];
            assert_eq!(sets.each_ref().map(|set| set.has_int(value.into())), expected, "{value} {edge}");
        }
    }
}

#[test]
fn what_is_not_understood_stays_with_the_filter() {
    let schema = schema();
    for expr in [
        col("l").eq(col("i")),
        col("l").eq(lit(5_i64)).or(col("i").eq(lit(5_i32))),
        col("s").lt(lit("a")),
        (col("l") + lit(1_i64)).eq(lit(2_i64)),
        col("l").eq(lit(ScalarValue::Int64(None))),
        col("l").in_list(vec![lit(1_i64), lit(ScalarValue::Int64(None))], true),
        col("u").eq(lit(ScalarValue::FixedSizeBinary(16, Some(vec![0; 16])))),
        datafusion::logical_expr::cast(col("l"), DataType::Int32).eq(lit(1_i32)),
    ] {
        assert_eq!(Predicate::of(&expr, &schema), None, "{expr}");
    }
}

#[test]
fn one_predicate_a_column_is_left() {
    let parts = [col("d").gt(lit(1.0)), col("b"), col("d").lt(lit(2.0)), col("s").not_eq(lit("x"))];
    let joined = Predicate::joined(parts.iter().map(of));
    assert_eq!(joined.len(), 3);
    assert_eq!(joined[0].values, ValueSet::floats(vec![(1.0_f64.next_up(), 2.0_f64.next_down())]));
    assert_eq!(joined[1].values, ValueSet::ints(vec![(1, 1)]));
}
