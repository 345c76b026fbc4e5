//! Encodes integers, strings and schemas for the manifest, the log and the symbol files.
//!
//! Little-endian, fixed widths; strings and byte strings are preceded by a u32 length. A [`Decoder`] never panics:
//! input that ends early or has an invalid length returns [`Malformed`].

use std::sync::Arc;
use tidalite_types::{
    ColumnId, ColumnSchema, ColumnType, Materialized, PartitionBy, Period, Refresh, TableId, TableSchema, TimeUnit,
    Ttl, Txn, View, ViewState,
};

/// Flag in the byte of the partitions: options follow the columns of a schema.
const HAS_OPTIONS: u8 = 0x80;
/// Flag in the same byte: a view follows.
const HAS_VIEW: u8 = 0x40;
/// Flag in the same byte: a lag follows, before the view.
const HAS_LAG: u8 = 0x20;
/// Tag after the text of a view: its rows are stored. With `MATERIALIZED_WITH_MORE`, settings follow the progress.
const MATERIALIZED: u8 = 1;
const MATERIALIZED_WITH_MORE: u8 = 2;

/// The bytes do not have the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub struct Malformed(pub &'static str);

#[derive(Debug, Default)]
pub struct Encoder {
    pub bytes: Vec<u8>,
}

impl Encoder {
    #[must_use]
    pub fn new() -> Encoder {
        Encoder::default()
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// # Panics
    /// Panics if `value` is longer than 4 GiB.
    pub fn bytes(&mut self, value: &[u8]) {
        self.u32(u32::try_from(value.len()).expect("no string or list passes 4 GiB"));
        self.bytes.extend_from_slice(value);
    }

    pub fn str(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// Writes a tag and two bytes of parameters.
    pub fn column_type(&mut self, column_type: ColumnType) {
        let (tag, a, b) = match column_type {
            ColumnType::Boolean => (1, 0, 0),
            ColumnType::Byte => (2, 0, 0),
            ColumnType::Short => (3, 0, 0),
            ColumnType::Int => (4, 0, 0),
            ColumnType::Long => (5, 0, 0),
            ColumnType::Float => (6, 0, 0),
            ColumnType::Double => (7, 0, 0),
            ColumnType::Decimal { precision, scale } => (8, precision, scale),
            ColumnType::Timestamp(TimeUnit::Millis) => (9, 3, 0),
            ColumnType::Timestamp(TimeUnit::Micros) => (9, 6, 0),
            ColumnType::Timestamp(TimeUnit::Nanos) => (9, 9, 0),
            ColumnType::Date => (10, 0, 0),
            ColumnType::Symbol => (11, 0, 0),
            ColumnType::Varchar => (12, 0, 0),
            ColumnType::Binary => (13, 0, 0),
            ColumnType::Uuid => (14, 0, 0),
            ColumnType::Ipv4 => (15, 0, 0),
            ColumnType::DoubleArray { dims } => (16, dims, 0),
            ColumnType::Json => (17, 0, 0),
            // Earlier versions ignore the parameter, and read JSON.
            ColumnType::Jsonb => (17, 1, 0),
        };
        self.bytes.extend_from_slice(&[tag, a, b]);
    }

    pub fn schema(&mut self, schema: &TableSchema) {
        self.str(&schema.name);
        let has_options = schema.ttl.is_some() || !schema.dedup.is_empty();
        let partitions = match schema.partition_by {
            PartitionBy::None => 0,
            PartitionBy::Hour => 1,
            PartitionBy::Day => 2,
            PartitionBy::Week => 3,
            PartitionBy::Month => 4,
            PartitionBy::Year => 5,
        };
        let mut flags = if has_options { HAS_OPTIONS } else { 0 } | if schema.view.is_some() { HAS_VIEW } else { 0 };
        flags |= if schema.lag_us.is_some() { HAS_LAG } else { 0 };
        self.u8(partitions | flags);
        // Column ids start at 0, so no id has all bits set.
        self.u32(schema.designated.map_or(u32::MAX, |id| id.0));
        self.u32(schema.next_column.0);
        self.u32(schema.columns.len() as u32);
        for column in &schema.columns {
            self.u32(column.id.0);
            self.str(&column.name);
            self.column_type(column.column_type);
        }
        if has_options {
            self.ttl(schema.ttl);
            self.u32(schema.dedup.len() as u32);
            schema.dedup.iter().for_each(|id| self.u32(id.0));
        }
        if let Some(lag) = schema.lag_us {
            self.u64(lag);
        }
        if let Some(view) = &schema.view {
            self.view(view);
        }
    }

    fn view(&mut self, view: &View) {
        self.str(&view.sql);
        let Some(kept) = &view.materialized else { return self.u8(0) };
        let Materialized { base, schedule, limit, lost_before, state } = kept;
        let has_more =
            schedule.zone.is_some() || schedule.period.is_some() || limit.is_some() || *lost_before != i64::MIN;
        self.u8(if has_more { MATERIALIZED_WITH_MORE } else { MATERIALIZED });
        self.str(base);
        let (tag, seconds, start) = match schedule.refresh {
            Refresh::Manual => (0, 0, 0),
            Refresh::Immediate => (1, 0, 0),
            Refresh::Every { seconds, start } => (2, seconds, start),
        };
        self.u8(tag);
        self.u64(seconds);
        self.i64(start);
        self.view_state(state);
        if has_more {
            self.text(schedule.zone.as_deref());
            self.u8(u8::from(schedule.period.is_some()));
            if let Some(Period { length, zone, delay_s }) = &schedule.period {
                self.text(length.as_deref());
                self.text(zone.as_deref());
                self.u64(*delay_s);
            }
            self.ttl(*limit);
            self.i64(*lost_before);
        }
    }

    /// Writes an optional string; `None` is the empty string.
    fn text(&mut self, text: Option<&str>) {
        self.str(text.unwrap_or_default());
    }

    fn ttl(&mut self, ttl: Option<Ttl>) {
        let (unit, count) = match ttl {
            None => (0, 0),
            Some(Ttl::Hours(hours)) => (1, hours),
            Some(Ttl::Months(months)) => (2, months),
        };
        self.u8(unit);
        self.u32(count);
    }

    fn view_state(&mut self, state: &ViewState) {
        self.u32(state.base.0);
        self.u64(state.seen.0);
        self.ranges(&state.pending);
        self.ranges(&state.frozen);
        self.i64(state.refreshed);
        self.u8(u8::from(state.invalid.is_some()));
        self.str(state.invalid.as_deref().unwrap_or_default());
    }

    fn ranges(&mut self, ranges: &[(i64, i64)]) {
        self.u32(ranges.len() as u32);
        for (lo, hi) in ranges {
            self.i64(*lo);
            self.i64(*hi);
        }
    }
}

/// Reads values written by an [`Encoder`], from the front.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    pub rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed("length"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed("length"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    pub fn str(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("text"))
    }

    /// Reads a table id, which must not be the greatest number.
    pub fn table(&mut self) -> Result<TableId, Malformed> {
        match self.u32()? {
            u32::MAX => Err(Malformed("number of a table")),
            number => Ok(TableId(number)),
        }
    }

    pub fn column_type(&mut self) -> Result<ColumnType, Malformed> {
        let [tag, a, b] = self.array()?;
        Ok(match (tag, a, b) {
            (1, ..) => ColumnType::Boolean,
            (2, ..) => ColumnType::Byte,
            (3, ..) => ColumnType::Short,
            (4, ..) => ColumnType::Int,
            (5, ..) => ColumnType::Long,
            (6, ..) => ColumnType::Float,
            (7, ..) => ColumnType::Double,
            (8, precision @ 1..=38, scale) if scale <= precision => ColumnType::Decimal { precision, scale },
            (9, 3, _) => ColumnType::Timestamp(TimeUnit::Millis),
            (9, 6, _) => ColumnType::Timestamp(TimeUnit::Micros),
            (9, 9, _) => ColumnType::Timestamp(TimeUnit::Nanos),
            (10, ..) => ColumnType::Date,
            (11, ..) => ColumnType::Symbol,
            (12, ..) => ColumnType::Varchar,
            (13, ..) => ColumnType::Binary,
            (14, ..) => ColumnType::Uuid,
            (15, ..) => ColumnType::Ipv4,
            (16, dims @ 1..=32, _) => ColumnType::DoubleArray { dims },
            (17, 1, _) => ColumnType::Jsonb,
            (17, ..) => ColumnType::Json,
            _ => return Err(Malformed("column type")),
        })
    }

    pub fn schema(&mut self) -> Result<TableSchema, Malformed> {
        let name = self.str()?.to_owned();
        let partitions = self.u8()?;
        let partition_by = match partitions & !(HAS_OPTIONS | HAS_VIEW | HAS_LAG) {
            0 => PartitionBy::None,
            1 => PartitionBy::Hour,
            2 => PartitionBy::Day,
            3 => PartitionBy::Week,
            4 => PartitionBy::Month,
            5 => PartitionBy::Year,
            _ => return Err(Malformed("partition interval")),
        };
        let designated = Some(self.u32()?).filter(|id| *id != u32::MAX).map(ColumnId);
        let next_column = ColumnId(self.u32()?);
        let mut columns = Vec::new();
        for _ in 0..self.u32()? {
            let (id, name) = (ColumnId(self.u32()?), self.str()?.to_owned());
            columns.push(ColumnSchema { id, name, column_type: self.column_type()? });
        }
        let (mut ttl, mut dedup) = (None, Vec::new());
        if partitions & HAS_OPTIONS != 0 {
            ttl = self.ttl()?;
            for _ in 0..self.u32()? {
                dedup.push(ColumnId(self.u32()?));
            }
        }
        let lag_us = if partitions & HAS_LAG != 0 { Some(self.u64()?) } else { None };
        let view = if partitions & HAS_VIEW != 0 { Some(Arc::new(self.view()?)) } else { None };
        Ok(TableSchema { name, columns, designated, partition_by, next_column, ttl, lag_us, dedup, view })
    }

    fn view(&mut self) -> Result<View, Malformed> {
        let sql = self.str()?.to_owned();
        let has_more = match self.u8()? {
            0 => return Ok(View { sql, materialized: None }),
            MATERIALIZED => false,
            MATERIALIZED_WITH_MORE => true,
            _ => return Err(Malformed("view")),
        };
        let base = self.str()?.to_owned();
        let refresh = match (self.u8()?, self.u64()?, self.i64()?) {
            (0, ..) => Refresh::Manual,
            (1, ..) => Refresh::Immediate,
            (2, seconds, start) => Refresh::Every { seconds, start },
            _ => return Err(Malformed("refresh")),
        };
        let state = ViewState {
            base: self.table()?,
            seen: Txn(self.u64()?),
            pending: self.ranges()?,
            frozen: self.ranges()?,
            refreshed: self.i64()?,
            invalid: {
                let is_invalid = self.u8()? != 0;
                let why = self.str()?;
                is_invalid.then(|| why.to_owned())
            },
        };
        let mut kept = Materialized { base, schedule: refresh.into(), limit: None, lost_before: i64::MIN, state };
        if has_more {
            kept.schedule.zone = self.text()?;
            if self.u8()? != 0 {
                let (length, zone, delay_s) = (self.text()?, self.text()?, self.u64()?);
                kept.schedule.period = Some(Period { length, zone, delay_s });
            }
            kept.limit = self.ttl()?;
            kept.lost_before = self.i64()?;
        }
        Ok(View { sql, materialized: Some(kept) })
    }

    fn text(&mut self) -> Result<Option<String>, Malformed> {
        Ok(Some(self.str()?.to_owned()).filter(|text| !text.is_empty()))
    }

    fn ttl(&mut self) -> Result<Option<Ttl>, Malformed> {
        Ok(match (self.u8()?, self.u32()?) {
            (0, _) => None,
            (1, hours) => Some(Ttl::Hours(hours)),
            (2, months) => Some(Ttl::Months(months)),
            _ => return Err(Malformed("time to live")),
        })
    }

    fn ranges(&mut self) -> Result<Vec<(i64, i64)>, Malformed> {
        let mut ranges = Vec::new();
        for _ in 0..self.u32()? {
            ranges.push((self.i64()?, self.i64()?));
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::Schedule;

    #[test]
    fn a_table_number_that_no_other_can_follow_is_refused() {
        let read = |number: u32| Decoder::new(&number.to_le_bytes()).table();
        assert_eq!(read(u32::MAX - 1), Ok(TableId(u32::MAX - 1)));
        assert!(read(u32::MAX).is_err());
    }

    #[test]
    fn a_schema_comes_back_and_a_cut_one_is_refused() {
        let types = [
            ColumnType::Boolean,
            ColumnType::Byte,
            ColumnType::Short,
            ColumnType::Int,
            ColumnType::Long,
            ColumnType::Float,
            ColumnType::Double,
            ColumnType::Decimal { precision: 38, scale: 4 },
            ColumnType::Timestamp(TimeUnit::Millis),
            ColumnType::Timestamp(TimeUnit::Micros),
            ColumnType::Timestamp(TimeUnit::Nanos),
            ColumnType::Date,
            ColumnType::Symbol,
            ColumnType::Varchar,
            ColumnType::Binary,
            ColumnType::Uuid,
            ColumnType::Ipv4,
            ColumnType::DoubleArray { dims: 3 },
            ColumnType::Json,
            ColumnType::Jsonb,
        ];
        let columns = types.iter().enumerate().map(|(i, &column_type)| ColumnSchema {
            id: ColumnId(i as u32),
            name: format!("c{i} é"),
            column_type,
        });
        let schema = TableSchema {
            name: "t".into(),
            columns: columns.collect(),
            designated: Some(ColumnId(9)),
            partition_by: PartitionBy::Week,
            next_column: ColumnId(99),
            ttl: Some(Ttl::Months(7)),
            lag_us: Some(10_000_000),
            dedup: vec![ColumnId(9), ColumnId(3)],
            view: Some(Arc::new(View {
                sql: "SELECT ts FROM b SAMPLE BY 1h".into(),
                materialized: Some(Materialized {
                    base: "b".into(),
                    schedule: Schedule {
                        refresh: Refresh::Every { seconds: 3_600, start: -5 },
                        zone: Some("Europe/London".into()),
                        period: Some(Period { length: Some("1d".into()), zone: None, delay_s: 7_200 }),
                    },
                    limit: Some(Ttl::Hours(168)),
                    lost_before: 17,
                    state: ViewState {
                        base: TableId(7),
                        seen: Txn(9),
                        pending: vec![(i64::MIN, 5), (7, i64::MAX)],
                        frozen: vec![(5, 7)],
                        refreshed: 1,
                        invalid: Some("why".into()),
                    },
                }),
            })),
        };
        let simple = schema.materialized().map(|kept| Materialized {
            schedule: Refresh::Manual.into(),
            limit: None,
            lost_before: i64::MIN,
            ..kept.clone()
        });
        for materialized in [None, simple] {
            let plain = View { sql: "SELECT 1".into(), materialized };
            let plain = TableSchema {
                view: Some(Arc::new(plain)),
                ttl: None,
                lag_us: None,
                dedup: Vec::new(),
                ..schema.clone()
            };
            let mut encoder = Encoder::new();
            encoder.schema(&plain);
            assert_eq!(Decoder::new(&encoder.bytes).schema(), Ok(plain));
        }
        let mut encoder = Encoder::new();
        encoder.schema(&schema);
        let mut decoder = Decoder::new(&encoder.bytes);
        assert_eq!(decoder.schema(), Ok(schema));
        assert!(decoder.rest.is_empty());
        for cut in 0..encoder.bytes.len() {
            assert!(Decoder::new(&encoder.bytes[..cut]).schema().is_err(), "cut at {cut}");
        }
    }
}
