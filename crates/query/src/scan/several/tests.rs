use super::*;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{cast, col, lit};
use tidalite_kernels::program::Kind;
use tidalite_storage::Bounds;
use tidalite_types::{ColumnSchema, ColumnType, PartitionBy, TimeUnit};

fn schema() -> TableSchema {
    let types = [
        ("i", ColumnType::Int),
        ("l", ColumnType::Long),
        ("f", ColumnType::Float),
        ("d", ColumnType::Double),
        ("e", ColumnType::Double),
        ("s", ColumnType::Symbol),
        ("ts", ColumnType::Timestamp(TimeUnit::Micros)),
        ("at", ColumnType::Timestamp(TimeUnit::Micros)),
        ("u", ColumnType::Uuid),
        ("k", ColumnType::Byte),
    ];
    let columns = types.iter().enumerate().map(|(i, (name, column_type))| ColumnSchema {
        id: ColumnId(i as u32),
        name: (*name).to_owned(),
        column_type: *column_type,
    });
    TableSchema {
        name: "t".to_owned(),
        columns: columns.collect(),
        designated: Some(ColumnId(6)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(10),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    }
}

fn of(expr: Expr) -> Option<Asked> {
    Several::of(&expr, &schema()).map(|several| several.asked)
}

#[test]
fn what_may_fail_in_other_ways_is_left_to_others() {
    for understood in [
        col("d").gt(lit(2.0) * col("e")),
        (col("l") + lit(1_i64)).eq(cast(col("i"), DataType::Int64)),
        (col("ts") - col("at")).gt(Expr::Literal(ScalarValue::DurationMicrosecond(Some(5)), None)),
        (cast(col("l"), DataType::Float64) / col("d")).lt_eq(lit(0.5)),
        (col("l") / col("l")).eq(lit(1_i64)),
        col("d").gt(lit(90.0)).or(col("l").lt(lit(5_i64))),
        col("s").eq(lit("a")).or(col("d").is_null()),
        (col("d") + col("e")).is_null(),
        (col("k") + col("k")).gt(lit(3_i8)),
    ] {
        assert!(of(understood.clone()).is_some(), "{understood}");
    }
    for left in [
        cast(col("d"), DataType::Int64).eq(col("l")),
        cast(col("l"), DataType::Int32).eq(col("i")),
        // Rounded twice, as a double between.
        cast(col("l"), DataType::Float32).eq(col("f")),
        col("s").lt(lit("a")).or(col("d").gt(col("e"))),
        col("u").eq(col("u")),
        (col("d") + Expr::Literal(ScalarValue::Float64(None), None)).gt(col("e")),
    ] {
        assert_eq!(of(left.clone()), None, "{left}");
    }
    let long = (0..200).map(|n| (col("d") + lit(f64::from(n))).gt(col("e"))).reduce(Expr::or).unwrap();
    assert_eq!(of(long), None);
}

#[test]
fn not_is_carried_to_the_comparisons() {
    let number = |at: u32| Number::Column(ColumnId(at), Kind::Float);
    let less = |comparison| Asked::Compared(comparison, number(3), number(4));
    let expr = !(col("d").lt(col("e")).and(col("d").eq(col("e"))));
    assert_eq!(of(expr), Some(Asked::Any(vec![less(Comparison::AtLeast), less(Comparison::NotEqual)])));
    let expr = Expr::IsNotTrue(Box::new(col("d").lt(col("e"))));
    assert_eq!(of(expr), Some(Asked::Not(Box::new(less(Comparison::Less)))));
}

#[test]
fn comparisons_that_share_a_column_are_computed_together() {
    let asked = |expr: Expr| of(expr).unwrap();
    let shared = vec![asked((col("d") + col("e")).gt(lit(1.0))), asked((col("d") - col("e")).lt(lit(2.0)))];
    assert!(matches!(joined(shared).as_slice(), [Joined::Computed(_)]));
    let apart = vec![asked((col("d") + col("e")).gt(lit(1.0))), asked((col("l") + lit(1_i64)).gt(col("i")))];
    assert_eq!(joined(apart).len(), 2);
    // Only AND skips rows that others reject, and so the second comparison is not computed for them.
    let fails = || asked((col("l") / col("l")).gt(lit(1_i64)));
    let shared = || asked((col("l") % lit(7_i64)).eq(lit(3_i64)));
    assert!(matches!(joined(vec![fails(), shared()]).as_slice(), [Joined::Computed(_)]));
    let either = Asked::Any(vec![fails(), shared()]);
    assert!(matches!(joined(vec![either]).as_slice(), [Joined::Any(list)] if list.len() == 2));
    let mixed = asked(col("d").gt(lit(90.0)).or((col("d") + col("e")).lt(lit(5.0))));
    assert!(matches!(joined(vec![mixed]).as_slice(), [Joined::Any(list)] if list.len() == 2));
}

#[test]
fn blocks_are_left_out_by_what_their_bounds_come_to() {
    let zone = |column: ColumnId| {
        let bounds = match column.0 {
            1 => Bounds::Int(10, 20),
            0 => Bounds::Int(-3, 4),
            3 => Bounds::Float(1.0, 2.0),
            4 => Bounds::Float(-1.0, f64::NAN),
            5 => return Ok::<_, ()>(None),
            _ => Bounds::Int(i64::MIN, i64::MAX),
        };
        Ok(Some(Zone { null_count: 0, bounds }))
    };
    let long = |name: &str| cast(col(name), DataType::Int64);
    for (expr, kept) in [
        ((col("l") + long("i")).gt(lit(24_i64)), false),
        ((col("l") + long("i")).gt(lit(23_i64)), true),
        ((col("l") * long("i")).lt(lit(-60_i64)), false),
        ((col("l") * long("i")).lt(lit(-59_i64)), true),
        (col("l").lt(long("i")), false),
        ((cast(col("l"), DataType::Float64) / col("d")).lt(lit(5.0)), false),
        ((cast(col("l"), DataType::Float64) / col("d")).lt_eq(lit(5.0)), true),
        // Without bounds, and outside of the type.
        ((col("d") + col("e")).gt(lit(100.0)), true),
        ((cast(col("ts"), DataType::Int64) + col("l")).lt(lit(0_i64)), true),
        (col("l").lt(lit(5_i64)).or(col("d").gt(lit(2.5))), false),
        (col("l").lt(lit(5_i64)).or(col("d").gt(lit(1.5))), true),
    ] {
        let asked = of(expr.clone()).unwrap();
        assert_eq!(asked.may_match(&zone, 100), Ok(kept), "{expr}");
    }
}
