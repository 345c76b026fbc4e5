use super::*;
use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// A structure of the compact protocol: fields of 64-bit integers, structures and lists of structures.
#[derive(Clone)]
enum Value {
    Int(i64),
    Struct(Vec<(u8, Value)>),
    List(u32, Vec<Value>),
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(number) => varint(out, (number << 1 ^ number >> 63) as u64),
        Value::Struct(fields) => {
            for (id, value) in fields {
                out.push(match value {
                    Value::Int(_) => 6,
                    Value::List(..) => 9,
                    Value::Struct(_) => 12,
                });
                varint(out, u64::from(*id) << 1);
                write(out, value);
            }
            out.push(0);
        }
        Value::List(count, values) => {
            out.push(0xfc);
            varint(out, u64::from(*count));
            values.iter().for_each(|value| write(out, value));
        }
    }
}

fn structure(fields: Vec<(u8, Value)>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &Value::Struct(fields));
    out
}

fn element(children: i64) -> Value {
    Value::Struct(if children == 0 { vec![(1, Value::Int(1))] } else { vec![(5, Value::Int(children))] })
}

fn footer_of(columns: Vec<Value>, groups: Value) -> Vec<u8> {
    structure(vec![(1, Value::Int(2)), (2, Value::List(columns.len() as u32, columns)), (4, groups)])
}

#[test]
fn footers_claim_no_more_than_they_have() {
    let no_group = || Value::List(0, Vec::new());
    assert_eq!(footer(&footer_of(vec![element(2), element(0), element(0)], no_group())), Ok(()));
    let damaged = Err("its footer is damaged".to_owned());
    assert_eq!(footer(&footer_of(vec![element(1)], Value::List(i32::MAX as u32, Vec::new()))), damaged);
    assert_eq!(footer(&footer_of(vec![element(1), element(0)], Value::List(i32::MAX as u32, Vec::new()))), damaged);
    let many = Value::List(40_000, vec![Value::Struct(Vec::new()); 40_000]);
    assert!(footer(&footer_of(vec![element(1), element(0)], many)).unwrap_err().contains("40000 row groups"));
    for columns in [vec![element(i64::from(i32::MAX)), element(0)], vec![element(-1)], vec![element(0), element(0)]] {
        assert_eq!(footer(&footer_of(columns, no_group())), damaged, "the columns are no tree");
    }
    assert_eq!(footer(&[]), damaged);
}

#[test]
fn nesting_of_columns_is_bounded() {
    let nested = |levels| {
        let mut columns = vec![element(1); levels];
        columns.push(element(0));
        footer(&footer_of(columns, Value::List(0, Vec::new())))
    };
    assert_eq!(nested(100), Ok(()));
    assert_eq!(nested(101), Err("its columns are nested in more than 100 levels".to_owned()));
    assert_eq!(nested(1_000_000), Err("its columns are nested in more than 100 levels".to_owned()));
}

fn page(kind: u8, uncompressed: i64, compressed: i64, values: i64) -> Vec<u8> {
    let head = (if kind == 2 { 7 } else { 5 }, Value::Struct(vec![(1, Value::Int(values))]));
    let fields =
        vec![(1, Value::Int(i64::from(kind))), (2, Value::Int(uncompressed)), (3, Value::Int(compressed)), head];
    let mut bytes = structure(fields);
    bytes.resize(bytes.len() + usize::try_from(compressed.clamp(0, 1 << 20)).unwrap(), 7);
    bytes
}

fn checked(bytes: &[u8]) -> Result<(), Refusal> {
    Pages::default().check(bytes, true, None)
}

#[test]
fn pages_claim_what_their_bytes_may_hold() {
    let good = [page(2, 4000, 100, 1000), page(0, 1 << 20, 30, 131_072), page(0, 64 << 20, 1, 1)].concat();
    assert_eq!(checked(&good), Ok(()));
    assert_eq!(checked(&page(0, 1000 << 20, 1 << 20, 9)), Ok(()), "1,000 to 1 of a megabyte");
    assert_eq!(Pages::default().check(&page(0, i64::from(i32::MAX), 100, 9), false, None), Ok(()), "not used");
    assert!(checked(&page(0, i64::from(i32::MAX), 100, 9)).unwrap_err().contains("100 bytes claims 2147483647"));
    assert!(checked(&page(2, 4000, 4000, i64::from(i32::MAX))).unwrap_err().contains("claims 2147483647 entries"));
    assert!(checked(&page(2, 4000, 4000, -1)).unwrap_err().contains("entries"));
    for (uncompressed, compressed) in [(-1, 10), (10, -1), (10, 1 << 21)] {
        assert_eq!(checked(&page(0, uncompressed, compressed, 1)), Err("a page header is damaged".to_owned()));
    }
    assert_eq!(checked(&good[..good.len() - 1]), Err("a page header is damaged".to_owned()), "cut");
    let starts = [0, page(2, 4000, 100, 1000).len()];
    assert_eq!(Pages::default().check(&good, true, Some(&starts)), Ok(()));
    let one = page(2, 4000, 100, 1000);
    assert!(Pages::default().check(&one, true, Some(&[one.len() - 60])).is_err(), "no page begins there");
}

#[test]
fn pages_of_all_columns_count_together() {
    let mut pages = Pages::default();
    let column = page(0, 60 << 20, 10, 1);
    let refused = (0..20).find(|_| pages.check(&column, true, None).is_err());
    assert_eq!(refused, Some(8), "nine pages of 60 MiB are more than 512 MiB");
}

/// A file of three kinds of columns and two row groups.
fn file() -> Bytes {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..100).map(|n| (n % 7 != 0).then_some(n))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|n| format!("t{}", n % 9))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..100).map(|n| (n % 5 != 0).then(|| (0..n % 4).map(Some))),
    ));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts), ("l", lists)]).unwrap();
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_max_row_group_row_count(Some(60)).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out.into()
}

#[test]
fn files_of_a_writer_pass() {
    let file = file();
    let footer_at = file.len() - 8 - u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize;
    let bytes = &file[footer_at..file.len() - 8];
    assert_eq!(footer(bytes), Ok(()));
    let read = ParquetMetaDataReader::decode_metadata(bytes).unwrap();
    assert_eq!(read.num_row_groups(), 2);
    assert_eq!(metadata(&read, file.len() as u64), Ok(()));
    assert!(metadata(&read, 100).unwrap_err().contains("outside of the file"));
    let mut pages = Pages::default();
    for chunk in read.row_groups().iter().flat_map(|group| group.columns()) {
        let range = chunk_range(chunk).unwrap();
        assert_eq!(pages.check(&file[range.start as usize..range.end as usize], true, None), Ok(()));
    }
}

#[test]
fn rows_and_places_of_columns_are_checked() {
    let read = ParquetMetaDataReader::new().parse_and_finish(&file()).unwrap();
    let changed = |change: &dyn Fn(ColumnChunkMetaData) -> ColumnChunkMetaData| {
        let mut builder = read.clone().into_builder();
        let group = builder.take_row_groups().swap_remove(0);
        let mut columns = group.columns().to_vec();
        columns[1] = change(columns[1].clone());
        let group = group.into_builder().set_column_metadata(columns).build().unwrap();
        metadata(&builder.set_row_groups(vec![group]).build(), 1 << 40)
    };
    assert_eq!(changed(&|chunk| chunk), Ok(()));
    let more = changed(&|chunk| chunk.into_builder().set_num_values(1 << 40).build().unwrap());
    assert_eq!(more, Err("column \"t\" claims 1099511627776 values in a group of 60 rows".to_owned()));
    let large = changed(&|chunk| chunk.into_builder().set_total_compressed_size(1 << 30).build().unwrap());
    assert_eq!(large, Err("columns overlap".to_owned()));
    let negative = changed(&|chunk| chunk.into_builder().set_total_compressed_size(-1).build().unwrap());
    assert_eq!(negative, Err("column \"t\" lies outside of the file".to_owned()));
}
