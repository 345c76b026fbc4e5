//! Packs columns of keys into one or two words per row, and unpacks them.
//!
//! Each column has its own bits in the word. Narrow integers count from 1, so that 0 is NULL. Integers of 64 bits use
//! the smallest integer for NULL; a batch that contains this value aborts the packing ([`Overflow`]). Floating point is
//! packed as integers of the same order. Strings are replaced by codes, see [`super::texts`].

use super::overflow::Overflow;
use super::texts::{Sealed, TEXT_BITS, TextNumbers, Texts, prefix};
use super::times::{TIME_BITS, TimeNumbers, Times};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, StringViewArray, UInt32Array, UInt64Array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type,
};
use arrow::error::ArrowError;
use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;
use tidalite_kernels::{GroupKey, float_of_order, order_of_float};

/// Packing of a key column.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyKind {
    data_type: DataType,
    is_nullable: bool,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Plain,
    /// Integers that are indexes into these strings.
    Codes(StringViewArray),
    /// Timestamps with few distinct values that occur many times each.
    Times,
}

/// A thread's state for a column whose values are replaced by codes.
pub(super) enum Numbers {
    Texts(TextNumbers),
    Times(TimeNumbers),
}

/// The shared state for a column whose values are replaced by codes.
#[derive(Clone)]
pub(super) enum Numbered {
    Texts(Arc<Texts>),
    Times(Arc<Times>),
}

/// Decoder of a column's codes.
pub(super) enum KeyForm<'a> {
    Integer(fn(u64) -> Option<i64>),
    Time(&'a [i64]),
    Text(&'a Sealed),
    Code(&'a StringViewArray),
}

impl KeyForm<'_> {
    /// Returns the value, or the index of the string, from 0.
    #[inline]
    pub fn value(&self, code: u64) -> Option<i64> {
        match self {
            KeyForm::Integer(of) => of(code),
            KeyForm::Time(times) => times.get((code as usize).checked_sub(1)?).copied(),
            KeyForm::Text(_) | KeyForm::Code(_) => code.checked_sub(1).map(u64::cast_signed),
        }
    }

    pub fn compare(&self, a: i64, b: i64) -> Ordering {
        match self {
            KeyForm::Text(texts) => texts.compare(a as usize, b as usize),
            KeyForm::Code(dictionary) => dictionary.value(a as usize).cmp(dictionary.value(b as usize)),
            KeyForm::Integer(_) | KeyForm::Time(_) => a.cmp(&b),
        }
    }

    /// Returns a number that is not below the number of any value that sorts before this one.
    #[inline]
    pub fn about(&self, value: i64) -> i64 {
        match self {
            KeyForm::Text(texts) => i64::from(prefix(texts.view(value as usize))),
            KeyForm::Code(dictionary) => i64::from(prefix(dictionary.views()[value as usize])),
            KeyForm::Integer(_) | KeyForm::Time(_) => value,
        }
    }
}

impl Numbered {
    /// Returns the allocated bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Numbered::Texts(texts) => texts.bytes(),
            Numbered::Times(times) => times.bytes(),
        }
    }

    pub fn numbers(&self) -> Numbers {
        match self {
            Numbered::Texts(texts) => Numbers::Texts(TextNumbers::new(texts.clone())),
            Numbered::Times(times) => Numbers::Times(TimeNumbers::new(times.clone())),
        }
    }
}

/// A packed key of one or two words.
pub(super) trait Word: GroupKey + Hash + Default {
    fn put(&mut self, code: u64, shift: u32);
    fn take(self, shift: u32, bits: u32) -> u64;
}

impl Word for u64 {
    #[inline]
    fn put(&mut self, code: u64, shift: u32) {
        *self |= code << shift;
    }

    #[inline]
    fn take(self, shift: u32, bits: u32) -> u64 {
        self >> shift & (u64::MAX >> (64 - bits))
    }
}

impl Word for u128 {
    #[inline]
    fn put(&mut self, code: u64, shift: u32) {
        *self |= u128::from(code) << shift;
    }

    #[inline]
    fn take(self, shift: u32, bits: u32) -> u64 {
        (self >> shift) as u64 & (u64::MAX >> (64 - bits))
    }
}

impl KeyKind {
    #[must_use]
    pub fn of(data_type: &DataType, is_nullable: bool) -> Option<KeyKind> {
        let kind = KeyKind { data_type: data_type.clone(), is_nullable, form: Form::Plain };
        kind.value_bits().map(|_| kind)
    }

    /// Creates a key of 32-bit indexes into `dictionary`.
    #[must_use]
    pub fn codes(dictionary: StringViewArray) -> KeyKind {
        KeyKind { data_type: DataType::UInt32, is_nullable: true, form: Form::Codes(dictionary) }
    }

    /// Returns the dictionary, if the key is of codes.
    #[must_use]
    pub fn dictionary(&self) -> Option<&StringViewArray> {
        if let Form::Codes(dictionary) = &self.form { Some(dictionary) } else { None }
    }

    /// Returns the same key for timestamps that are few and mostly equal to the previous row's.
    #[must_use]
    pub fn of_few_times(self) -> KeyKind {
        match self.data_type {
            DataType::Timestamp(..) => KeyKind { form: Form::Times, ..self },
            _ => self,
        }
    }

    fn value_bits(&self) -> Option<u32> {
        Some(match &self.data_type {
            DataType::Boolean => 1,
            DataType::Int8 | DataType::UInt8 => 8,
            DataType::Int16 | DataType::UInt16 => 16,
            DataType::Int32 | DataType::UInt32 | DataType::Date32 => 32,
            DataType::Int64 | DataType::Timestamp(..) | DataType::Float32 | DataType::Float64 => 64,
            DataType::Utf8View => TEXT_BITS - 1,
            _ => return None,
        })
    }

    /// Returns the number of bits in the word.
    #[must_use]
    pub fn bits(&self) -> u32 {
        match (&self.form, self.value_bits().unwrap_or(0)) {
            (Form::Codes(dictionary), _) => dictionary.len().max(1).ilog2() + 1,
            (Form::Times, _) => TIME_BITS,
            (Form::Plain, 64) => 64,
            (Form::Plain, bits) => bits + 1,
        }
    }

    /// Returns the code of NULL, if the column may contain NULL.
    pub(super) fn null_code(&self) -> Option<u64> {
        match self.form {
            Form::Plain if self.bits() == u64::BITS => self.is_nullable.then_some(i64::MIN.cast_unsigned()),
            _ => Some(0),
        }
    }

    #[must_use]
    pub fn is_text(&self) -> bool {
        self.data_type == DataType::Utf8View
    }

    /// Returns the shared state, for values that are replaced by codes.
    pub(super) fn numbered(&self) -> Option<Numbered> {
        match self.form {
            Form::Plain if self.is_text() => Some(Numbered::Texts(Arc::default())),
            Form::Times => Some(Numbered::Times(Arc::default())),
            _ => None,
        }
    }

    /// Adds the column's bits to the words of the rows.
    pub(super) fn pack<W: Word>(
        &self,
        column: &ArrayRef,
        shift: u32,
        mut numbers: Option<&mut Numbers>,
        words: &mut [W],
    ) -> Result<(), Overflow> {
        if let (Some(Numbers::Texts(texts)), Some(shared)) = (&mut numbers, column.as_dictionary_opt()) {
            return texts.number_shared(shared, |row, code| words[row].put(u64::from(code), shift));
        }
        if *column.data_type() != self.data_type {
            return Err(Overflow);
        }
        match (&self.form, numbers) {
            (Form::Codes(dictionary), _) => return codes(column, dictionary.len(), shift, words),
            (_, Some(Numbers::Times(times))) => {
                let column = cast(column, &DataType::Int64).map_err(|_| Overflow)?;
                return times.number(column.as_primitive(), |rows, number| {
                    words[rows].iter_mut().for_each(|word| word.put(u64::from(number), shift));
                });
            }
            (_, Some(Numbers::Texts(texts))) => {
                return texts.number(column.as_string_view(), |row, code| words[row].put(u64::from(code), shift));
            }
            (_, None) => {}
        }
        match &self.data_type {
            DataType::Boolean => {
                let column = column.as_boolean();
                for (row, word) in words.iter_mut().enumerate() {
                    let code = if column.is_null(row) { 0 } else { u64::from(column.value(row)) + 1 };
                    word.put(code, shift);
                }
                Ok(())
            }
            DataType::Int8 => narrow::<Int8Type, W>(column, shift, words, |v| u64::from(v.cast_unsigned())),
            DataType::UInt8 => narrow::<UInt8Type, W>(column, shift, words, u64::from),
            DataType::Int16 => narrow::<Int16Type, W>(column, shift, words, |v| u64::from(v.cast_unsigned())),
            DataType::UInt16 => narrow::<UInt16Type, W>(column, shift, words, u64::from),
            DataType::Int32 => narrow::<Int32Type, W>(column, shift, words, |v| u64::from(v.cast_unsigned())),
            DataType::UInt32 => narrow::<UInt32Type, W>(column, shift, words, u64::from),
            DataType::Date32 => narrow::<Date32Type, W>(column, shift, words, |v| u64::from(v.cast_unsigned())),
            DataType::Utf8View => Err(Overflow),
            _ => self.pack_wide(column, shift, words),
        }
    }

    fn pack_wide<W: Word>(&self, column: &ArrayRef, shift: u32, words: &mut [W]) -> Result<(), Overflow> {
        let column = if column.data_type().is_floating() { orders(column) } else { cast(column, &DataType::Int64) };
        let Ok(column) = column else { return Err(Overflow) };
        let column = column.as_primitive::<Int64Type>();
        if column.null_count() == 0 {
            if self.is_nullable && column.values().contains(&i64::MIN) {
                return Err(Overflow);
            }
            for (word, value) in words.iter_mut().zip(column.values()) {
                word.put(value.cast_unsigned(), shift);
            }
            return Ok(());
        }
        for (row, (word, value)) in words.iter_mut().zip(column.values()).enumerate() {
            let value = if column.is_null(row) { i64::MIN } else { *value };
            if !self.is_nullable || (value == i64::MIN && column.is_valid(row)) {
                return Err(Overflow);
            }
            word.put(value.cast_unsigned(), shift);
        }
        Ok(())
    }

    /// Returns the decoder of codes that are not indexes.
    fn integer(&self) -> fn(u64) -> Option<i64> {
        match &self.data_type {
            DataType::Int8 => |code| code.checked_sub(1).map(|v| i64::from((v as u8).cast_signed())),
            DataType::Int16 => |code| code.checked_sub(1).map(|v| i64::from((v as u16).cast_signed())),
            DataType::Int32 | DataType::Date32 => {
                |code| code.checked_sub(1).map(|v| i64::from((v as u32).cast_signed()))
            }
            DataType::Boolean | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
                |code| code.checked_sub(1).map(u64::cast_signed)
            }
            _ if !self.is_nullable => |code| Some(code.cast_signed()),
            _ => |code| Some(code.cast_signed()).filter(|v| *v != i64::MIN),
        }
    }

    /// Returns the decoder for comparing codes after all rows were packed.
    pub(super) fn form<'a>(&'a self, numbered: Option<&'a Numbered>) -> KeyForm<'a> {
        match (&self.form, numbered) {
            (Form::Codes(dictionary), _) => KeyForm::Code(dictionary),
            (_, Some(Numbered::Texts(texts))) => KeyForm::Text(texts.sealed()),
            (_, Some(Numbered::Times(times))) => KeyForm::Time(times.sealed()),
            (_, None) => KeyForm::Integer(self.integer()),
        }
    }

    /// Unpacks the column. Codes become strings, unless `wanted` is an integer type.
    pub(super) fn unpack<W: Word>(
        &self,
        words: &[W],
        shift: u32,
        numbered: Option<&Numbered>,
        wanted: &DataType,
    ) -> Result<ArrayRef, ArrowError> {
        let bits = self.bits();
        let codes = words.iter().map(|word| word.take(shift, bits));
        match (&self.form, numbered) {
            (Form::Codes(_), _) if *wanted == DataType::UInt32 => {
                return Ok(Arc::new(
                    codes.map(|code| code.checked_sub(1).map(|code| code as u32)).collect::<UInt32Array>(),
                ));
            }
            (Form::Codes(dictionary), _) => {
                let places: UInt64Array = codes.map(|code| code.checked_sub(1)).collect();
                return take(dictionary, &places, None);
            }
            (_, Some(Numbered::Texts(texts))) => return texts.array(codes),
            (_, Some(Numbered::Times(times))) => return cast(&times.array(codes), &self.data_type),
            (_, None) => {}
        }
        let ints: ArrayRef = match &self.data_type {
            DataType::Boolean => {
                return Ok(Arc::new(codes.map(|code| (code > 0).then_some(code == 2)).collect::<BooleanArray>()));
            }
            DataType::Utf8View => return Err(ArrowError::ComputeError("texts without their numbers".to_owned())),
            _ if bits == u64::BITS && !self.is_nullable => {
                Arc::new(codes.map(u64::cast_signed).collect::<Int64Array>())
            }
            _ => Arc::new(codes.map(self.integer()).collect::<Int64Array>()),
        };
        if self.data_type.is_floating() {
            let floats = ints.as_primitive::<Int64Type>().unary::<_, Float64Type>(float_of_order);
            return cast(&floats, &self.data_type);
        }
        if self.data_type == DataType::Date32 {
            return cast(&cast(&ints, &DataType::Int32)?, &DataType::Date32);
        }
        cast(&ints, &self.data_type)
    }
}

/// Converts floating point to integers of the same order, excluding the smallest integer. −0 becomes 0.
fn orders(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let floats = cast(column, &DataType::Float64)?;
    Ok(Arc::new(floats.as_primitive::<Float64Type>().unary::<_, Int64Type>(|v| order_of_float(v + 0.0))))
}

/// Packs codes below `count`, counted from 1.
fn codes<W: Word>(column: &ArrayRef, count: usize, shift: u32, words: &mut [W]) -> Result<(), Overflow> {
    let column = column.as_primitive::<UInt32Type>();
    // Codes of NULL rows are undefined.
    let greatest = match column.null_count() {
        0 => column.values().iter().copied().max(),
        _ => column.iter().flatten().max(),
    };
    if greatest.is_some_and(|code| code as usize >= count) {
        return Err(Overflow);
    }
    narrow_primitive(column, shift, words, u64::from)
}

fn narrow<T: ArrowPrimitiveType, W: Word>(
    column: &ArrayRef,
    shift: u32,
    words: &mut [W],
    code: impl Fn(T::Native) -> u64,
) -> Result<(), Overflow> {
    narrow_primitive::<T, W>(column.as_primitive(), shift, words, code)
}

fn narrow_primitive<T: ArrowPrimitiveType, W: Word>(
    column: &PrimitiveArray<T>,
    shift: u32,
    words: &mut [W],
    code: impl Fn(T::Native) -> u64,
) -> Result<(), Overflow> {
    if column.null_count() == 0 {
        for (word, value) in words.iter_mut().zip(column.values()) {
            word.put(code(*value) + 1, shift);
        }
        return Ok(());
    }
    for (row, (word, value)) in words.iter_mut().zip(column.values()).enumerate() {
        if column.is_valid(row) {
            word.put(code(*value) + 1, shift);
        }
    }
    Ok(())
}
