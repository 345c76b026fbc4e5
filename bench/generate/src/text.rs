//! Rows as text: line protocol, and the pairs of lines that the loaders of TimescaleDB and ClickHouse read.

use crate::devops::{self, Host, Value};
use crate::iot::{self, MEASUREMENTS, Point, TEXT_TAGS, Truck};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Lines,
    Pairs,
}

pub fn push_int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that reads back as the number, without an exponent.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.fract() == 0.0 && value.abs() < 1e15 && (value != 0.0 || value.is_sign_positive()) {
        push_int(out, value as i64);
        return;
    }
    let mut text = String::new();
    let _ = write!(text, "{value}");
    out.extend_from_slice(text.as_bytes());
}

fn push_value(out: &mut Vec<u8>, value: Value, suffix: &[u8]) {
    match value {
        Value::Int(value) => {
            push_int(out, value);
            out.extend_from_slice(suffix);
        }
        Value::Float(value) => push_float(out, value),
    }
}

/// A measurement of a host; `head` is its beginning, which is always the same.
pub fn host_row(out: &mut Vec<u8>, format: Format, head: &[u8], names: &[Vec<u8>], values: &[Value], ts_ns: i64) {
    out.extend_from_slice(head);
    if format == Format::Pairs {
        push_int(out, ts_ns);
        for value in values {
            out.push(b',');
            push_value(out, *value, b"");
        }
        out.push(b'\n');
        return;
    }
    for (name, value) in names.iter().zip(values) {
        out.extend_from_slice(name);
        push_value(out, *value, b"i");
    }
    out.push(b' ');
    push_int(out, ts_ns);
    out.push(b'\n');
}

/// What every row of a host's measurement begins with.
#[must_use]
pub fn host_head(host: &Host, measurement: &devops::Measurement, format: Format) -> Vec<u8> {
    let mut tags = String::new();
    let extra = measurement.extra_tags.iter().map(|(n, v)| (*n, v.as_str()));
    for (name, value) in devops::TAGS.iter().zip(&host.tags).map(|(n, v)| (*n, v.as_str())).chain(extra) {
        let _ = write!(tags, ",{name}={value}");
    }
    let name = measurement.kind.name();
    match format {
        Format::Lines => format!("{name}{tags}"),
        Format::Pairs => format!("tags{tags}\n{name},"),
    }
    .into_bytes()
}

/// ` usage_user=`, `,usage_system=` …
#[must_use]
pub fn field_names(names: &[&str]) -> Vec<Vec<u8>> {
    let one = |(i, name): (usize, &&str)| format!("{}{name}=", if i == 0 { ' ' } else { ',' }).into_bytes();
    names.iter().enumerate().map(one).collect()
}

/// The lines before the first pair: tags and measurements with their columns.
#[must_use]
pub fn pairs_header(tags: &[(&str, &str)], measurements: &[(&str, &[&str])]) -> Vec<u8> {
    let mut text = "tags".to_owned();
    for (name, kind) in tags {
        let _ = write!(text, ",{name} {kind}");
    }
    text.push('\n');
    let mut measurements = measurements.to_vec();
    measurements.sort_unstable();
    for (name, fields) in measurements {
        let _ = writeln!(text, "{name},{}", fields.join(","));
    }
    text.push('\n');
    text.into_bytes()
}

/// What is missing is left out; in pairs it is empty.
pub fn truck_row(out: &mut Vec<u8>, format: Format, truck: &Truck, point: &Point) {
    let (name, names) = MEASUREMENTS[usize::from(point.measurement)];
    let has_tag = |i: usize| point.no_tags >> i & 1 == 0;
    let value = |out: &mut Vec<u8>, i: usize| match (point.measurement, i) {
        (1, 2) => {
            push_int(out, point.fields[i] as i64);
            if format == Format::Lines {
                out.push(b'i');
            }
        }
        _ => push_float(out, point.fields[i]),
    };
    if format == Format::Pairs {
        out.extend_from_slice(b"tags");
        for (i, tag) in iot::TAGS.iter().enumerate() {
            let value = if has_tag(i) { truck.tags[i].as_bytes() } else { b"" };
            [b",", tag.as_bytes(), b"=", value].iter().for_each(|p| out.extend_from_slice(p));
        }
        [b"\n", name.as_bytes(), b","].iter().for_each(|p| out.extend_from_slice(p));
        push_int(out, point.ts_ns);
        for i in 0..names.len() {
            out.push(b',');
            if point.no_fields >> i & 1 == 0 {
                value(out, i);
            }
        }
        out.push(b'\n');
        return;
    }
    out.extend_from_slice(name.as_bytes());
    for i in (0..TEXT_TAGS).filter(|i| has_tag(*i)) {
        [b",", iot::TAGS[i].as_bytes(), b"=", truck.tags[i].as_bytes()].iter().for_each(|p| out.extend_from_slice(p));
    }
    let mut before = b' ';
    for i in (TEXT_TAGS..8).filter(|i| has_tag(*i)) {
        out.push(before);
        before = b',';
        [iot::TAGS[i].as_bytes(), b"=", truck.tags[i].as_bytes()].iter().for_each(|p| out.extend_from_slice(p));
    }
    for (i, field) in names.iter().enumerate().filter(|(i, _)| point.no_fields >> i & 1 == 0) {
        out.push(before);
        before = b',';
        out.extend_from_slice(field.as_bytes());
        out.push(b'=');
        value(out, i);
    }
    out.push(b' ');
    push_int(out, point.ts_ns);
    out.push(b'\n');
}
