//! A growing column of a batch.
//!
//! A column may lag behind its table: rows after its last value are NULL and are filled in when the next value arrives
//! or the batch is taken. The cost of a row therefore depends on its values, not on the width of the table.

use super::field_value::{DECIMAL_DIGITS_MAX, Decimal, Missing, Value};
use super::outcome::{Parsed, bad, shown};
use super::scan::tag_of;
use super::symbol::SymbolTable;
use tidalite_types::{BatchColumn, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

/// The values so far, in the type of the first value or a wider type.
#[derive(Clone, Debug, Default)]
pub(super) enum Data {
    /// The current batch has no value of this column yet.
    #[default]
    None,
    Symbol(Vec<u32>),
    Varchar(Views),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Boolean(Bitmap),
    Timestamp(TimeUnit, Vec<i64>),
    Decimal(u8, Vec<i128>),
    Array(u8, Views),
}

impl Data {
    fn of(value: &Value<'_>, rows: usize) -> Data {
        match *value {
            Value::Null | Value::Missing(_) => Data::None,
            Value::Symbol(_) => Data::Symbol(Vec::with_capacity(rows)),
            Value::Varchar(_) => Data::Varchar(Views::with_capacity(rows)),
            Value::Long(_) => Data::Long(Vec::with_capacity(rows)),
            Value::Double(_) => Data::Double(Vec::with_capacity(rows)),
            Value::Boolean(_) => Data::Boolean(Bitmap::new()),
            Value::Timestamp(unit, _) => Data::Timestamp(unit, Vec::with_capacity(rows)),
            Value::Decimal(decimal) => Data::Decimal(decimal.scale, Vec::with_capacity(rows)),
            Value::Array { dims, .. } => Data::Array(dims, Views::with_capacity(rows)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Data::None => 0,
            Data::Symbol(v) => v.len(),
            Data::Long(v) | Data::Timestamp(_, v) => v.len(),
            Data::Double(v) => v.len(),
            Data::Boolean(v) => v.len(),
            Data::Decimal(_, v) => v.len(),
            Data::Varchar(v) | Data::Array(_, v) => v.len(),
        }
    }

    fn extend_default(&mut self, count: usize) {
        match self {
            Data::None => {}
            Data::Symbol(v) => v.resize(v.len() + count, 0),
            Data::Long(v) | Data::Timestamp(_, v) => v.resize(v.len() + count, 0),
            Data::Double(v) => v.resize(v.len() + count, 0.0),
            Data::Boolean(v) => v.extend_filled(count, false),
            Data::Decimal(_, v) => v.resize(v.len() + count, 0),
            Data::Varchar(v) | Data::Array(_, v) => v.push_empty(count),
        }
    }

    fn truncate(&mut self, rows: usize) {
        match self {
            Data::None => {}
            Data::Symbol(v) => v.truncate(rows),
            Data::Long(v) | Data::Timestamp(_, v) => v.truncate(rows),
            Data::Double(v) => v.truncate(rows),
            Data::Boolean(v) => v.truncate(rows),
            Data::Decimal(_, v) => v.truncate(rows),
            Data::Varchar(v) | Data::Array(_, v) => v.truncate(rows),
        }
    }

    /// Returns the memory of the values after `rows` rows are filled in.
    fn byte_count(&self, rows: usize) -> usize {
        match self {
            Data::None => 0,
            Data::Symbol(_) => rows * 4,
            Data::Long(_) | Data::Timestamp(..) | Data::Double(_) => rows * 8,
            Data::Boolean(_) => rows / 8,
            Data::Decimal(..) => rows * 16,
            Data::Varchar(v) | Data::Array(_, v) => rows * 16 + v.data().len(),
        }
    }

    fn column_type(&self) -> ColumnType {
        match *self {
            Data::None | Data::Varchar(_) => ColumnType::Varchar,
            Data::Symbol(_) => ColumnType::Symbol,
            Data::Long(_) => ColumnType::Long,
            Data::Double(_) => ColumnType::Double,
            Data::Boolean(_) => ColumnType::Boolean,
            Data::Timestamp(unit, _) => ColumnType::Timestamp(unit),
            Data::Decimal(scale, _) => ColumnType::Decimal { precision: DECIMAL_DIGITS_MAX, scale },
            Data::Array(dims, _) => ColumnType::DoubleArray { dims },
        }
    }

    fn into_values(self) -> Values {
        match self {
            Data::None => Values::Views(Views::new()),
            Data::Symbol(v) => Values::U32(v),
            Data::Varchar(v) | Data::Array(_, v) => Values::Views(v),
            Data::Long(v) | Data::Timestamp(_, v) => Values::I64(v),
            Data::Double(v) => Values::F64(v),
            Data::Boolean(v) => Values::Bit(v),
            Data::Decimal(_, v) => Values::I128(v),
        }
    }

    /// Returns true if `value` has a different type than these values; strings and tags count as equal.
    fn differs(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Data::Symbol(_) | Data::Varchar(_), Value::Symbol(_) | Value::Varchar(_))
            | (Data::Long(_), Value::Long(_))
            | (Data::Double(_), Value::Double(_))
            | (Data::Boolean(_), Value::Boolean(_)) => false,
            (Data::Timestamp(unit, _), Value::Timestamp(given, _)) => unit != given,
            (Data::Decimal(scale, _), Value::Decimal(given)) => given.scale > *scale,
            (Data::Array(dims, _), Value::Array { dims: given, .. }) => dims != given,
            _ => true,
        }
    }

    /// Returns these values in a type that also holds `value`; `None` if they are already, or cannot be.
    /// The inner `None` means that a value does not fit that type.
    fn widened(&self, value: &Value<'_>) -> Option<Option<Data>> {
        Some(match (self, value) {
            (Data::Long(v), Value::Double(_)) => Some(Data::Double(v.iter().map(|&x| x as f64).collect())),
            (Data::Long(v), Value::Decimal(d)) => rescale(v.iter().map(|&x| i128::from(x)), 0, d.scale),
            (Data::Decimal(scale, v), Value::Decimal(d)) if d.scale > *scale => {
                rescale(v.iter().copied(), *scale, d.scale)
            }
            (Data::Timestamp(TimeUnit::Micros, v), Value::Timestamp(TimeUnit::Nanos, _)) => {
                let nanos: Option<Vec<i64>> = v.iter().map(|&x| x.checked_mul(1_000)).collect();
                nanos.map(|v| Data::Timestamp(TimeUnit::Nanos, v))
            }
            _ => return None,
        })
    }
}

fn rescale(values: impl Iterator<Item = i128>, from: u8, to: u8) -> Option<Data> {
    let values: Option<Vec<i128>> =
        values.map(|unscaled| Decimal { unscaled, scale: from }.rescaled(to).map(|d| d.unscaled)).collect();
    values.map(|v| Data::Decimal(to, v))
}

/// Invariant: `data` has at most one row more than the table has finished rows, if the current row has a value.
#[derive(Debug)]
pub(super) struct ColumnBuilder {
    pub name: String,
    pub data: Data,
    /// The type of a NaN that preceded any other value of the batch.
    missing: Option<Missing>,
    pub validity: Option<Bitmap>,
    /// The values before the first value that widened the column.
    pub narrower: Option<Data>,
    /// The strings of a symbol column, by the ids in `data`.
    pub dictionary: Views,
    /// All strings of this column, including earlier batches.
    pub symbols: SymbolTable,
}

/// A change of a row other than appended values, to be undone if the row fails.
#[derive(Debug)]
pub(super) enum Undo {
    /// The column got its first value of the batch.
    Started { column: u32 },
    /// The column got its first NaN of the batch.
    Missing { column: u32 },
    /// The column was widened from `data`.
    Widened { column: u32, data: Data },
    /// The dictionary got a new last entry.
    Symbol { column: u32, entry: u32 },
}

/// Parameters of setting a value.
pub(super) struct SetContext<'a> {
    pub column: u32,
    /// Number of finished rows of the table.
    pub rows: usize,
    /// Expected number of rows of the batch.
    pub rows_hint: usize,
    /// See [`super::LineOptions::widens`].
    pub widens: bool,
    pub epoch: u32,
    pub seed: u64,
    pub undo: &'a mut Vec<Undo>,
    pub cache_bytes: &'a mut usize,
}

impl ColumnBuilder {
    pub(super) fn new(name: String) -> ColumnBuilder {
        ColumnBuilder {
            name,
            data: Data::None,
            missing: None,
            validity: None,
            narrower: None,
            dictionary: Views::new(),
            symbols: SymbolTable::default(),
        }
    }

    /// Sets the value of the current row; a second value for the same row is ignored, as in QuestDB.
    /// `at` is the position of the value in the input.
    pub(super) fn set(&mut self, value: Value<'_>, at: usize, context: &mut SetContext<'_>) -> Parsed<()> {
        let rows = context.rows;
        if self.data.len() > rows {
            return Ok(());
        }
        // NULL is stored as the lag of the column behind its table.
        match value {
            Value::Null => return Ok(()),
            Value::Missing(missing) => {
                if !self.is_live() {
                    self.missing = Some(missing);
                    context.undo.push(Undo::Missing { column: context.column });
                }
                return Ok(());
            }
            _ => {}
        }
        if matches!(self.data, Data::None) {
            self.data = Data::of(&value, context.rows_hint.max(rows + 1));
            context.undo.push(Undo::Started { column: context.column });
        }
        self.fill(rows);
        if !context.widens && self.data.differs(&value) {
            return bad(at, self.mismatch(&value));
        }
        if let Some(widened) = self.data.widened(&value) {
            let Some(data) = widened else {
                return bad(at, format!("{}, and earlier values do not fit its precision", self.mismatch(&value)));
            };
            let data = std::mem::replace(&mut self.data, data);
            self.narrower.get_or_insert_with(|| data.clone());
            context.undo.push(Undo::Widened { column: context.column, data });
        }
        self.push(value, at, context)?;
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
        Ok(())
    }

    /// Returns true if the batch has the column.
    pub(super) fn is_live(&self) -> bool {
        self.missing.is_some() || !matches!(self.data, Data::None)
    }

    /// Sets a symbol to an entry of the symbol table and returns its id.
    ///
    /// Returns `None` for cases that only [`ColumnBuilder::set`] handles.
    pub(super) fn set_entry(
        &mut self,
        column: u32,
        entry: u32,
        rows: usize,
        epoch: u32,
        undo: &mut Vec<Undo>,
    ) -> Option<u32> {
        if self.lags(rows) {
            self.fill(rows);
        }
        let Data::Symbol(ids) = &self.data else { return None };
        if ids.len() != rows {
            return None;
        }
        let id = self.entry_id(column, entry, epoch, undo)?;
        if let Data::Symbol(ids) = &mut self.data {
            ids.push(id);
        }
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
        Some(id)
    }

    /// Returns the id of a symbol table entry in the current dictionary; `None` if its text exceeds the limit.
    #[inline(always)]
    pub(super) fn entry_id(&mut self, column: u32, entry: u32, epoch: u32, undo: &mut Vec<Undo>) -> Option<u32> {
        if let Some(id) = self.symbols.id(entry, epoch) {
            return Some(id);
        }
        let id = self.symbols.revive(entry, epoch, &mut self.dictionary)?;
        undo.push(Undo::Symbol { column, entry });
        Some(id)
    }

    /// Returns the symbol table entry of the last of `rows` rows, if the row has a symbol.
    pub(super) fn last_entry(&self, rows: usize, seed: u64) -> Option<u32> {
        match &self.data {
            Data::Symbol(ids) if ids.len() == rows => {
                let id = *ids.last()?;
                self.symbols.entry(&tag_of(self.dictionary.get(id as usize), seed))
            }
            _ => None,
        }
    }

    fn push(&mut self, value: Value<'_>, at: usize, context: &mut SetContext<'_>) -> Parsed<()> {
        match (&mut self.data, value) {
            (Data::Symbol(_), Value::Symbol(text) | Value::Varchar(text)) => {
                return self.push_symbol(text, at, context);
            }
            (Data::Varchar(v), Value::Varchar(text) | Value::Symbol(text)) => {
                check_text(text, at)?;
                check_room(v, text.len(), at)?;
                v.push(text);
            }
            (Data::Long(v), Value::Long(x)) => v.push(x),
            (Data::Double(v), Value::Double(x)) => v.push(x),
            (Data::Double(v), Value::Long(x)) => v.push(x as f64),
            (Data::Boolean(v), Value::Boolean(x)) => v.push(x),
            (Data::Timestamp(unit, v), Value::Timestamp(from, x)) => match from.convert(x, *unit) {
                Some(x) => v.push(x),
                None => {
                    return bad(at, "timestamp is out of range for nanoseconds, the unit of earlier values");
                }
            },
            (Data::Decimal(scale, v), Value::Decimal(_) | Value::Long(_)) => {
                let decimal = match value {
                    Value::Decimal(decimal) => decimal,
                    Value::Long(x) => Decimal { unscaled: i128::from(x), scale: 0 },
                    _ => return Ok(()),
                };
                match decimal.rescaled(*scale) {
                    Some(decimal) => v.push(decimal.unscaled),
                    None => {
                        let digits = DECIMAL_DIGITS_MAX;
                        return bad(at, format!("value has more than {digits} digits at the scale of {scale}"));
                    }
                }
            }
            (Data::Array(dims, v), Value::Array { dims: given, bytes }) if *dims == given => {
                check_room(v, bytes.len(), at)?;
                v.push(bytes);
            }
            _ => return bad(at, self.mismatch(&value)),
        }
        Ok(())
    }

    fn push_symbol(&mut self, text: &[u8], at: usize, context: &mut SetContext<'_>) -> Parsed<()> {
        let tag = tag_of(text, context.seed);
        let id = match self.symbols.find(&tag, context.epoch) {
            Some(id) => id,
            None => {
                check_text(text, at)?;
                check_room(&self.dictionary, text.len(), at)?;
                let id = self.dictionary.len() as u32;
                let (entry, grown) = self.symbols.add(&tag, context.epoch, &mut self.dictionary);
                *context.cache_bytes += grown;
                context.undo.push(Undo::Symbol { column: context.column, entry });
                id
            }
        };
        if let Data::Symbol(ids) = &mut self.data {
            ids.push(id);
        }
        Ok(())
    }

    #[cold]
    fn mismatch(&self, value: &Value<'_>) -> String {
        format!("value is {}, but earlier values of the same batch are {}", value.type_name(), self.data.column_type())
    }

    /// Records that `count` values were appended that are not NULL.
    pub(super) fn extend_valid(&mut self, count: usize) {
        if let Some(validity) = &mut self.validity {
            validity.extend_filled(count, true);
        }
    }

    /// Returns true if the column has values, but none for the last of `rows` rows.
    pub(super) fn lags(&self, rows: usize) -> bool {
        self.data.len() < rows && !matches!(self.data, Data::None)
    }

    /// Appends NULL for the rows by which the column lags.
    pub(super) fn fill(&mut self, rows: usize) {
        let len = self.data.len();
        if len < rows {
            self.validity.get_or_insert_with(|| Bitmap::filled(len, true)).extend_filled(rows - len, false);
            self.data.extend_default(rows - len);
        }
    }

    /// Undoes one change. Changes are undone in reverse order.
    pub(super) fn undo(&mut self, change: Undo) {
        match change {
            Undo::Started { .. } => {
                self.data = Data::None;
                self.validity = None;
            }
            Undo::Missing { .. } => self.missing = None,
            Undo::Widened { data, .. } => {
                // Rows only grow: values of the same length were set aside by this change.
                self.narrower.take_if(|narrower| narrower.len() == data.len());
                self.data = data;
            }
            Undo::Symbol { entry, .. } => {
                self.symbols.forget(entry);
                self.dictionary.truncate(self.dictionary.len() - 1);
            }
        }
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        if self.data.len() > rows {
            self.data.truncate(rows);
        }
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }

    pub(super) fn byte_count(&self, rows: usize) -> usize {
        let validity = if self.validity.is_some() || self.data.len() < rows { rows / 8 } else { 0 };
        let values = if matches!(self.data, Data::None) { rows * 16 } else { self.data.byte_count(rows) };
        values + validity + self.dictionary.len() * 16 + self.dictionary.data().len()
    }

    /// Returns the finished column of `rows` rows and clears the values, and the dictionary unless `keeps_dictionary`.
    pub(super) fn take(&mut self, rows: usize, keeps_dictionary: bool) -> BatchColumn {
        if let (Data::None, Some(missing)) = (&self.data, self.missing.take()) {
            self.data = match missing {
                Missing::Double => Data::Double(Vec::new()),
                Missing::Decimal => Data::Decimal(0, Vec::new()),
            };
        }
        self.missing = None;
        self.fill(rows);
        let data = std::mem::take(&mut self.data);
        let dictionary = match (&data, keeps_dictionary) {
            (Data::Symbol(_), true) => self.dictionary.clone(),
            (Data::Symbol(_), false) => std::mem::take(&mut self.dictionary),
            _ => Views::new(),
        };
        BatchColumn {
            name: self.name.clone(),
            column_type: data.column_type(),
            column: Column { values: data.into_values(), validity: self.validity.take() },
            dictionary,
            narrower: self.narrower.take().map(|data| (data.column_type(), data.into_values())),
        }
    }
}

pub(super) fn check_text(text: &[u8], at: usize) -> Parsed<()> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(e) => bad(at, format!("value {} is not UTF-8 from its byte {} on", shown(text), e.valid_up_to() + 1)),
    }
}

pub(super) fn check_room(views: &Views, bytes: usize, at: usize) -> Parsed<()> {
    if views.has_room(bytes) { Ok(()) } else { bad(at, "more than 2 GiB of text in one column of one batch") }
}
