//! Encodes the columns of a folder and prints their sizes as a table for `bench/results`: `cargo run --release -p
//! tidalite-storage --example sizes FOLDER [NAME]`.
//!
//! `FOLDER/columns.txt` contains the number of rows and then a line for each column: name, type, 1 if rows may be NULL.
//! `name.values` contains the values in sequence, little-endian; booleans take a byte each; strings are stored as their
//! bytes, with a u32 per row in `name.lengths`. `name.valid` contains a byte per row, 0 for NULL. Blocks are encoded
//! for both efforts. `encode` and `decode` are MB/s of logical bytes (rows times the width of the type, or the bytes of
//! strings), in one pass over the column, sealed. The last line is the size of segment files: chunks at multiples of
//! 64, and the footer's entries.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use tidalite_storage::segment::{Effort, EncodedBlock, encode, format};
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

const ENTRY_BYTES: usize = 56;

fn column_type(name: &str) -> ColumnType {
    match name {
        "boolean" => ColumnType::Boolean,
        "byte" => ColumnType::Byte,
        "short" => ColumnType::Short,
        "int" => ColumnType::Int,
        "long" => ColumnType::Long,
        "float" => ColumnType::Float,
        "double" => ColumnType::Double,
        "date" => ColumnType::Date,
        "timestamp" => ColumnType::Timestamp(TimeUnit::Micros),
        "symbol" => ColumnType::Symbol,
        "varchar" => ColumnType::Varchar,
        other => panic!("a column of type {other}"),
    }
}

fn numbers<T: Copy, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|chunk| from(*chunk)).collect()
}

fn read(folder: &Path, name: &str, column_type: ColumnType, has_nulls: bool) -> Column {
    let file = |what: &str| fs::read(folder.join(format!("{name}.{what}"))).expect("a readable file");
    let bytes = file("values");
    let values = match column_type {
        ColumnType::Boolean => Values::Bit(bytes.iter().map(|byte| *byte != 0).collect()),
        ColumnType::Byte => Values::I8(numbers(&bytes, i8::from_le_bytes)),
        ColumnType::Short => Values::I16(numbers(&bytes, i16::from_le_bytes)),
        ColumnType::Int | ColumnType::Date => Values::I32(numbers(&bytes, i32::from_le_bytes)),
        ColumnType::Float => Values::F32(numbers(&bytes, f32::from_le_bytes)),
        ColumnType::Double => Values::F64(numbers(&bytes, f64::from_le_bytes)),
        ColumnType::Symbol => Values::U32(numbers(&bytes, u32::from_le_bytes)),
        ColumnType::Varchar => {
            let (mut views, mut rest) = (Views::new(), bytes.as_slice());
            for len in numbers(&file("lengths"), u32::from_le_bytes) {
                let (text, behind) = rest.split_at(len as usize);
                views.push(text);
                rest = behind;
            }
            Values::Views(views)
        }
        _ => Values::I64(numbers(&bytes, i64::from_le_bytes)),
    };
    let validity: Option<Bitmap> = has_nulls.then(|| file("valid").iter().map(|byte| *byte != 0).collect());
    Column { values, validity }
}

fn logical_bytes(values: &Values, rows: usize) -> usize {
    match values {
        Values::Bit(_) => rows.div_ceil(8),
        Values::Views(views) => views.iter().map(<[u8]>::len).sum(),
        values => rows * values.physical().width().unwrap_or(16),
    }
}

fn blocks(column_type: ColumnType, column: &Column, effort: Effort) -> Vec<EncodedBlock> {
    let rows = column.len();
    let block = |from: usize| encode(column_type, column, from, (rows - from).min(BLOCK_ROWS), effort);
    (0..rows).step_by(BLOCK_ROWS).map(block).collect()
}

fn stored(blocks: &[EncodedBlock]) -> usize {
    blocks.iter().map(|block| format::aligned(block.bytes.len()) + ENTRY_BYTES).sum()
}

/// Returns the encodings and the number of blocks with each.
fn encodings(blocks: &[EncodedBlock]) -> String {
    let mut counts = BTreeMap::new();
    blocks.iter().for_each(|block| *counts.entry(block.encoding_name()).or_insert(0) += 1);
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(arguments.first().expect("a folder"));
    let text = fs::read_to_string(folder.join("columns.txt")).expect("a readable list of columns");
    let (mut fresh_total, mut sealed_total, mut seconds) = (0, 0, 0.0);
    println!("| column | logical | fresh | sealed | encode MB/s | decode MB/s | fresh | sealed |");
    println!("|---|--:|--:|--:|--:|--:|---|---|");
    for line in text.lines().skip(1).filter(|line| arguments.get(1).is_none_or(|name| line.contains(name.as_str()))) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, kind, has_nulls] = words.as_slice() else { panic!("a column {line:?}") };
        let column_type = column_type(kind);
        let column = read(folder, name, column_type, *has_nulls == "1");
        let logical = logical_bytes(&column.values, column.len());
        let fresh = blocks(column_type, &column, Effort::Fresh);
        let start = Instant::now();
        let sealed = blocks(column_type, &column, Effort::Sealed);
        let encoding = start.elapsed().as_secs_f64();
        let start = Instant::now();
        sealed.iter().for_each(|block| drop(black_box(block.decode())));
        let decoding = start.elapsed().as_secs_f64();
        sealed.iter().for_each(|block| block.check().expect("what was encoded"));
        fresh_total += stored(&fresh);
        sealed_total += stored(&sealed);
        seconds += encoding;
        println!(
            "| {name} {kind} | {logical} | {} | {} | {:.0} | {:.0} | {} | {} |",
            stored(&fresh),
            stored(&sealed),
            logical as f64 / encoding / 1e6,
            logical as f64 / decoding / 1e6,
            encodings(&fresh),
            encodings(&sealed),
        );
    }
    println!("total: fresh {fresh_total}, sealed {sealed_total} bytes, sealed in {seconds:.1} s");
}
