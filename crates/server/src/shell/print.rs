//! How answers look: aligned tables for people, CSV and JSON for programs.

use super::target::{Answer, Column};
use crate::cells::push_csv;
use serde_json::value::RawValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Csv,
    Json,
}

impl Format {
    #[must_use]
    pub fn parse(name: &str) -> Option<Format> {
        Some(match name {
            "table" => Format::Table,
            "csv" => Format::Csv,
            "json" => Format::Json,
            _ => return None,
        })
    }
}

pub fn answer(out: &mut Vec<u8>, answer: &Answer, format: Format) {
    match (answer, format) {
        (Answer::Rows { json, .. } | Answer::Done { json, .. }, Format::Json) => {
            out.extend_from_slice(json.as_bytes());
            out.push(b'\n');
        }
        (Answer::Done { text, .. }, Format::Table) => out.extend_from_slice(format!("{text}\n").as_bytes()),
        (Answer::Done { .. }, Format::Csv) => {}
        (Answer::Rows { columns, rows, .. }, Format::Table) => table(out, columns, rows),
        (Answer::Rows { columns, rows, .. }, Format::Csv) => csv(out, columns, rows),
    }
}

/// The value as text; `None` for NULL.
fn cell(value: &RawValue) -> Option<String> {
    let raw = value.get();
    match raw.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => Some(serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())),
        _ => Some(raw.to_owned()),
    }
}

fn csv(out: &mut Vec<u8>, columns: &[Column], rows: &[Vec<Box<RawValue>>]) {
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_csv(out, column.name.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    for row in rows {
        for (i, value) in row.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            let quoted = matches!(value.get().as_bytes().first(), Some(b'"' | b'['));
            match cell(value) {
                Some(text) if quoted => push_csv(out, text.as_bytes()),
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => {}
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn is_number(type_name: &str) -> bool {
    matches!(type_name, "BYTE" | "SHORT" | "INT" | "LONG" | "FLOAT" | "DOUBLE") || type_name.starts_with("DECIMAL")
}

/// A column wider than this does not widen the others' alignment further.
const WIDTH_MAX: usize = 80;

fn table(out: &mut Vec<u8>, columns: &[Column], rows: &[Vec<Box<RawValue>>]) {
    let visible = |text: String| text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|v| cell(v).map_or(String::new(), visible)).collect()).collect();
    let width = |i: usize, name: &str| {
        let widest = cells.iter().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
        widest.min(WIDTH_MAX).max(name.chars().count())
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(i, c)| width(i, &c.name)).collect();
    let right: Vec<bool> = columns.iter().map(|c| is_number(&c.type_name)).collect();
    let header: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
    push_line(out, &header, &widths, &right);
    let rules: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    out.extend_from_slice(rules.join("+").as_bytes());
    out.push(b'\n');
    for row in &cells {
        push_line(out, row, &widths, &right);
    }
}

fn push_line(out: &mut Vec<u8>, cells: &[String], widths: &[usize], right: &[bool]) {
    let mut line = String::new();
    for (i, cell) in cells.iter().enumerate() {
        line.push_str(if i > 0 { " | " } else { " " });
        let pad = " ".repeat(widths[i].saturating_sub(cell.chars().count()));
        let (before, after) = if right[i] { (pad.as_str(), "") } else { ("", pad.as_str()) };
        line.push_str(before);
        line.push_str(cell);
        line.push_str(after);
    }
    out.extend_from_slice(line.trim_end().as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Answer {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        let column = |name: &str, type_name: &str| Column { name: name.to_owned(), type_name: type_name.to_owned() };
        Answer::Rows {
            columns: vec![column("host", "SYMBOL"), column("usage", "DOUBLE")],
            rows: vec![vec![raw("\"a\\nb\""), raw("1.5")], vec![raw("null"), raw("100.25")]],
            json: "{}".to_owned(),
        }
    }

    fn printed(format: Format) -> String {
        let mut out = Vec::new();
        answer(&mut out, &rows(), format);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_are_aligned() {
        assert_eq!(printed(Format::Table), " host |  usage\n------+--------\n a\\nb |    1.5\n      | 100.25\n");
    }

    #[test]
    fn csv_and_json_are_for_programs() {
        assert_eq!(printed(Format::Csv), "\"host\",\"usage\"\r\n\"a\nb\",1.5\r\n,100.25\r\n");
        assert_eq!(printed(Format::Json), "{}\n");
    }
}
