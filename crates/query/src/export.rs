//! Record batches into files: CSV and Parquet.
//!
//! In: batches of one query, one after the other. Out: bytes to a writer, a row group or a batch at a time. CSV is what
//! `COPY … FROM`, `read_csv` and PostgreSQL read: a field that would be misread stands in quotes, NULL is a text without.

use crate::door;
use crate::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fmt::Write as _;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tidalite_types::{ColumnType, ErrorKind};

/// Rows of a row group, which is held in memory until it is whole.
const GROUP_ROWS: usize = 128 << 10;

/// How text of CSV is written.
#[derive(Clone, Debug)]
pub struct CsvStyle {
    pub has_header: bool,
    pub delimiter: u8,
    pub null: String,
}

/// A file that is being written.
pub struct FileWriter<W: Write + Send>(Kind<W>);

enum Kind<W: Write + Send> {
    Csv(W, CsvStyle),
    Parquet(Box<ArrowWriter<W>>, SchemaRef),
}

impl<W: Write + Send> FileWriter<W> {
    /// # Errors
    /// When it cannot be written.
    pub fn csv(mut out: W, schema: &Schema, style: CsvStyle) -> Result<FileWriter<W>> {
        if style.has_header {
            let mut line = String::new();
            for (n, field) in schema.fields().iter().enumerate() {
                if n > 0 {
                    line.push(char::from(style.delimiter));
                }
                push_text(&mut line, field.name(), &style);
            }
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(|e| unwritten(&e))?;
        }
        Ok(FileWriter(Kind::Csv(out, style)))
    }

    /// # Errors
    /// When it cannot be written, or a column is of a type that Parquet has not.
    pub fn parquet(out: W, schema: &SchemaRef) -> Result<FileWriter<W>> {
        let fields = schema.fields().iter().map(|field| match is_ipv4(field) {
            true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            false => field.clone(),
        });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(|e| refused(&e))?;
        Ok(FileWriter(Kind::Parquet(Box::new(writer), schema)))
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.0 {
            Kind::Csv(out, style) => out.write_all(csv(batch, style)?.as_bytes()).map_err(|e| unwritten(&e)),
            Kind::Parquet(writer, schema) => {
                let of_batch = batch.schema();
                let columns =
                    batch.columns().iter().zip(of_batch.fields()).map(|(column, field)| match is_ipv4(field) {
                        true => addresses(column),
                        false => column.clone(),
                    });
                let batch = RecordBatch::try_new(schema.clone(), columns.collect());
                let batch = batch.map_err(|e| Error::internal(e.to_string()))?;
                writer.write(&batch).map_err(|e| refused(&e))
            }
        }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<W> {
        match self.0 {
            Kind::Csv(mut out, _) => out.flush().map(|()| out).map_err(|e| unwritten(&e)),
            Kind::Parquet(writer, _) => writer.into_inner().map_err(|e| refused(&e)),
        }
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("could not be written: {error}"))
}

fn refused(error: &parquet::errors::ParquetError) -> Error {
    Error::new(ErrorKind::Unavailable, format!("could not be written as Parquet: {error}"))
}

fn is_ipv4(field: &Field) -> bool {
    door::column_type(field) == Some(ColumnType::Ipv4) && *field.data_type() == DataType::UInt32
}

fn addresses(column: &ArrayRef) -> ArrayRef {
    let numbers = column.as_primitive::<UInt32Type>();
    Arc::new(numbers.iter().map(|n| n.map(|n| Ipv4Addr::from(n).to_string())).collect::<StringArray>())
}

fn csv(batch: &RecordBatch, style: &CsvStyle) -> Result<String> {
    let schema = batch.schema();
    let options = FormatOptions::default();
    let texts = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let formatter =
            ArrayFormatter::try_new(column.as_ref(), &options).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Texts { column, formatter, as_ours: door::column_type(field) })
    });
    let texts: Vec<Texts> = texts.collect::<Result<_>>()?;
    let (mut out, mut cell) = (String::new(), String::new());
    for row in 0..batch.num_rows() {
        for (n, texts) in texts.iter().enumerate() {
            if n > 0 {
                out.push(char::from(style.delimiter));
            }
            if texts.column.is_null(row) {
                out.push_str(&style.null);
                continue;
            }
            cell.clear();
            texts.push(row, &mut cell)?;
            push_text(&mut out, &cell, style);
        }
        out.push('\n');
    }
    Ok(out)
}

/// The values of a column as text.
struct Texts<'a> {
    column: &'a ArrayRef,
    formatter: ArrayFormatter<'a>,
    as_ours: Option<ColumnType>,
}

impl Texts<'_> {
    fn push(&self, row: usize, out: &mut String) -> Result<()> {
        let written = match (self.as_ours, self.column.data_type()) {
            (Some(ColumnType::Ipv4), DataType::UInt32) => {
                write!(out, "{}", Ipv4Addr::from(self.column.as_primitive::<UInt32Type>().value(row)))
            }
            (_, DataType::FixedSizeBinary(16)) => {
                let bytes = self.column.as_fixed_size_binary().value(row);
                bytes.iter().enumerate().try_for_each(|(n, byte)| {
                    let dash = if matches!(n, 4 | 6 | 8 | 10) { "-" } else { "" };
                    write!(out, "{dash}{byte:02x}")
                })
            }
            _ => write!(out, "{}", self.formatter.value(row)),
        };
        written.map_err(|_| Error::invalid("a value has no text"))
    }
}

/// In quotes when it would be misread without.
fn push_text(out: &mut String, text: &str, style: &CsvStyle) {
    let delimiter = char::from(style.delimiter);
    let is_plain = !text.is_empty() && text != style.null && !text.contains([delimiter, '"', '\n', '\r']);
    if is_plain {
        return out.push_str(text);
    }
    out.push('"');
    text.chars().for_each(|c| {
        if c == '"' {
            out.push('"');
        }
        out.push(c);
    });
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int64Array};

    fn batch() -> RecordBatch {
        let texts = StringArray::from(vec![Some("a,b"), None, Some(""), Some("say \"x\"\n")]);
        let numbers = Int64Array::from(vec![Some(1), None, Some(-3), Some(4)]);
        let doubles = Float64Array::from(vec![0.5, f64::NAN, -0.0, 1e300]);
        RecordBatch::try_from_iter([
            ("t", Arc::new(texts) as ArrayRef),
            ("n", Arc::new(numbers) as ArrayRef),
            ("d", Arc::new(doubles) as ArrayRef),
        ])
        .expect("a batch")
    }

    #[test]
    fn csv_tells_null_from_the_empty_text() {
        let style = CsvStyle { has_header: true, delimiter: b',', null: String::new() };
        let mut writer = FileWriter::csv(Vec::new(), &batch().schema(), style).expect("it begins");
        writer.write(&batch()).expect("it is written");
        let text = String::from_utf8(writer.finish().expect("it ends")).expect("text");
        assert_eq!(text, "t,n,d\n\"a,b\",1,0.5\n,,NaN\n\"\",-3,-0.0\n\"say \"\"x\"\"\n\",4,1e300\n");
        let style = CsvStyle { has_header: false, delimiter: b';', null: "1".to_owned() };
        let mut writer = FileWriter::csv(Vec::new(), &batch().schema(), style).expect("it begins");
        writer.write(&batch().slice(0, 2)).expect("it is written");
        let text = String::from_utf8(writer.finish().expect("it ends")).expect("text");
        assert_eq!(text, "a,b;\"1\";0.5\n1;1;NaN\n");
    }

    #[test]
    fn parquet_is_read_again() {
        let mut writer = FileWriter::parquet(Vec::new(), &batch().schema()).expect("it begins");
        writer.write(&batch()).expect("it is written");
        let file = bytes::Bytes::from(writer.finish().expect("it ends"));
        let mut read = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 100).expect("a file");
        let rows = read.next().expect("rows").expect("they are read");
        assert_eq!(rows.columns()[..2], batch().columns()[..2]);
    }
}
