use super::*;
use crate::wal::log::Group;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::manifest::Change;
use tidalite_types::{
    Column, ColumnSchema, ColumnType, ErrorKind, PartitionBy, SegmentId, TableSchema, TimeUnit, Values,
};

const TABLE: TableId = TableId(1);

fn schema() -> TableSchema {
    let column = |(id, column_type)| ColumnSchema { id: ColumnId(id), name: format!("c{id}"), column_type };
    TableSchema {
        name: "t".to_owned(),
        columns: [(0, ColumnType::Timestamp(TimeUnit::Micros)), (1, ColumnType::Double)].map(column).into(),
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(3),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    }
}

fn times(rows: usize) -> (u32, Column) {
    (0, Column::new(Values::I64((0..rows as i64).collect())))
}

/// Recovers a folder whose log has one commit with these columns, and returns the rows of its table.
fn recovered(rows: usize, columns: Vec<(u32, Column)>) -> Result<usize> {
    let fs: Arc<dyn Fs> = Arc::new(SimFs::new(1));
    let (mut manifest, _) = Manifest::open(fs.clone())?;
    manifest.edit(&[
        Change::NextIds { table: TableId(2), segment: SegmentId(1) },
        Change::Schema { table: TABLE, schema: schema(), schema_txn: Txn(1) },
    ])?;
    let store = SegmentStore::new(fs.clone(), 0);
    let mut log = recover(&fs, &store, &manifest, 4096)?.log;
    let columns = columns.into_iter().map(|(id, column)| (ColumnId(id), Arc::new(column))).collect();
    let time_range = (0, rows as i64 - 1);
    let run = Run { rows, txns: (Txn(1), Txn(1)), time_range, is_sorted: true, columns, dead: None };
    let mut group = Group::default();
    group.push(Txn(1), &[Op::Rows { table: TABLE, run }]);
    log.reserve(group.byte_count() as u64)?;
    log.append(&mut group)?;
    log.sync()?;
    drop(log);
    let versions = recover(&fs, &store, &manifest, 4096)?.versions;
    Ok(versions.all().map(|table| table.row_count() as usize).sum())
}

/// Few rows are gathered with those of other commits, many are a run of their own.
const COUNTS: [usize; 2] = [3, 2_000];

#[test]
fn rows_with_their_columns_are_recovered() {
    for rows in COUNTS {
        let doubles = Column::new(Values::F64(vec![0.5; rows]));
        assert_eq!(recovered(rows, vec![times(rows)]).unwrap(), rows, "other columns are NULL");
        assert_eq!(recovered(rows, vec![(1, doubles.clone()), times(rows)]).unwrap(), rows);
        assert_eq!(recovered(rows, vec![times(rows), (2, doubles)]).unwrap(), rows, "a dropped column");
    }
}

#[test]
fn rows_without_designated_timestamps_are_damage() {
    for rows in COUNTS {
        let doubles = || Column::new(Values::F64(vec![0.5; rows]));
        let (_, mut with_null) = times(rows - 1);
        with_null.extend_null(1);
        for columns in [vec![], vec![(1, doubles())], vec![(0, with_null), (1, doubles())]] {
            let error = recovered(rows, columns).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let text = "rows of commits 1 to 1 of table \"t\" have no designated timestamp";
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}

#[test]
fn columns_of_another_type_are_damage() {
    for rows in COUNTS {
        let integers = Column::new(Values::I64(vec![7; rows]));
        let doubles = Column::new(Values::F64(vec![0.5; rows]));
        for (columns, name) in [(vec![times(rows), (1, integers)], "c1"), (vec![(0, doubles)], "c0")] {
            let error = recovered(rows, columns).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(&format!("values in column \"{name}\"")), "{error}");
        }
    }
}
