use super::*;
use std::sync::Arc;
use tidalite_types::{
    Column, ColumnSchema, ColumnType, Materialized, PartitionBy, Refresh, TableSchema, Values, View, ViewState,
};

const MINUTE: i64 = 60_000_000;
const BASE: TableId = TableId(0);

fn schema(name: &str, follows: Option<TableId>) -> Arc<TableSchema> {
    let time = ColumnType::Timestamp(TimeUnit::Micros);
    let view = follows.map(|base| {
        let state = ViewState { base, ..ViewState::default() };
        let materialized = Materialized {
            base: "b".to_owned(),
            schedule: Refresh::Immediate.into(),
            limit: None,
            lost_before: i64::MIN,
            state,
        };
        Arc::new(View { sql: String::new(), materialized: Some(materialized) })
    });
    Arc::new(TableSchema {
        name: name.to_owned(),
        columns: vec![ColumnSchema { id: ColumnId(0), name: "ts".to_owned(), column_type: time }],
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(1),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view,
    })
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.put(BASE, schema("b", None));
    catalog.put(TableId(1), schema("v", Some(BASE)));
    catalog
}

fn rows(times: &[i64]) -> Op {
    let range = (times.iter().copied().min().unwrap(), times.iter().copied().max().unwrap());
    let run = Run {
        rows: times.len(),
        txns: (Txn(1), Txn(1)),
        time_range: range,
        is_sorted: times.is_sorted(),
        columns: vec![(ColumnId(0), Arc::new(Column::new(Values::I64(times.to_vec()))))],
        dead: None,
    };
    Op::Rows { table: BASE, run }
}

fn ranges(changes: &[TimeChange]) -> Vec<(i64, i64)> {
    changes.iter().map(|c| (c.lo, c.hi)).collect()
}

#[test]
fn a_late_row_is_a_range_of_its_own() {
    let (catalog, mut times) = (catalog(), ChangedTimes::default());
    assert!(times.note(&catalog, Txn(5), &[rows(&[1000 * MINUTE, 1000 * MINUTE + 7, 3, 1000 * MINUTE + 9])]));
    let found = times.after(BASE, Txn(5)).expect("followed since then");
    assert_eq!(found, [], "commit 5 is seen");
    assert_eq!(times.after(BASE, Txn(4)), None, "before it nothing was noted");
    times.note(&catalog, Txn(6), &[rows(&[1000 * MINUTE, 1000 * MINUTE + 7, 3, 1000 * MINUTE + 9])]);
    assert_eq!(ranges(&times.after(BASE, Txn(5)).unwrap()), [(3, 4), (1000 * MINUTE, 1000 * MINUTE + 10)]);
    assert_eq!(times.commits_after(BASE, Txn(5)), 1);
}

#[test]
fn of_many_times_every_one_is_in_a_range_and_ranges_are_few() {
    let (catalog, mut times) = (catalog(), ChangedTimes::default());
    times.follow(BASE, Txn(0));
    let all: Vec<i64> = (0..20_000).map(|i| (i * 7919 % 20_000) * 10 * MINUTE).collect();
    for (i, some) in all.chunks(50).enumerate() {
        times.note(&catalog, Txn(i as u64 + 1), &[rows(some)]);
    }
    let found = ranges(&times.after(BASE, Txn(0)).unwrap());
    assert!(found.len() <= RANGES_MAX, "{} ranges", found.len());
    assert!(all.iter().all(|ts| found.iter().any(|(lo, hi)| lo <= ts && ts < hi)));
    let last = ranges(&times.after(BASE, Txn(399)).unwrap());
    assert!(all[19_950..].iter().all(|ts| last.iter().any(|(lo, hi)| lo <= ts && ts < hi)), "also of the last commit");
}

#[test]
fn what_every_view_has_is_forgotten() {
    let (catalog, mut times) = (catalog(), ChangedTimes::default());
    times.follow(BASE, Txn(0));
    times.note(&catalog, Txn(1), &[rows(&[5])]);
    times.note(&catalog, Txn(2), &[Op::Truncate { table: BASE }]);
    times.forget(|table| (table == BASE).then_some(Txn(1)));
    assert_eq!(times.after(BASE, Txn(0)), None);
    let left = times.after(BASE, Txn(1)).unwrap();
    assert_eq!(left, [TimeChange { txn: Txn(2), lo: i64::MIN, hi: i64::MAX, kind: TimeChangeKind::Truncated }]);
    let Some(Op::Times { since, changes, .. }) = times.op(BASE) else { panic!("nothing to keep") };
    assert_eq!((since, changes), (Txn(1), left));
    times.forget(|_| None);
    assert!(times.op(BASE).is_none());
}

#[test]
fn tables_that_no_view_follows_cost_nothing() {
    let mut catalog = Catalog::default();
    catalog.put(BASE, schema("b", None));
    let mut times = ChangedTimes::default();
    assert!(!times.note(&catalog, Txn(1), &[rows(&[5])]));
    assert!(times.op(BASE).is_none());
}
