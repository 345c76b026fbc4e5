//! Accesses text and bytes of any layout by row, and converts them to views and symbols.

use crate::room::Room;
use crate::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow::array::{
    FixedSizeBinaryArray, GenericStringArray, LargeStringArray, OffsetSizeTrait, StringArray, StringViewArray,
};
use arrow::datatypes::{DataType, UInt64Type};
use hashbrown::HashTable;
use tidalite_types::{Column, Values, Views};

/// Bytes of a row in any layout. Values of NULL rows are unspecified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Texts<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    Fixed(&'a FixedSizeBinaryArray),
}

impl<'a> Texts<'a> {
    pub fn of(array: &'a ArrayRef) -> Option<Texts<'a>> {
        Some(match array.data_type() {
            DataType::Utf8 => Texts::Utf8(array.as_string()),
            DataType::LargeUtf8 => Texts::LargeUtf8(array.as_string()),
            DataType::Utf8View => Texts::Utf8View(array.as_string_view()),
            DataType::Binary => Texts::Binary(array.as_binary()),
            DataType::LargeBinary => Texts::LargeBinary(array.as_binary()),
            DataType::BinaryView => Texts::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Texts::Fixed(array.as_fixed_size_binary()),
            _ => return None,
        })
    }

    #[inline]
    pub fn get(self, row: usize) -> &'a [u8] {
        match self {
            Texts::Utf8(a) => a.value(row).as_bytes(),
            Texts::LargeUtf8(a) => a.value(row).as_bytes(),
            Texts::Utf8View(a) => a.value(row).as_bytes(),
            Texts::Binary(a) => a.value(row),
            Texts::LargeBinary(a) => a.value(row),
            Texts::BinaryView(a) => a.value(row),
            Texts::Fixed(a) => a.value(row),
        }
    }

    /// Returns the bytes of all rows, if they are contiguous.
    pub fn whole(self) -> Option<&'a [u8]> {
        match self {
            Texts::Utf8(a) => between(a),
            Texts::LargeUtf8(a) => between(a),
            _ => None,
        }
    }
}

fn between<O: OffsetSizeTrait>(texts: &GenericStringArray<O>) -> Option<&[u8]> {
    let offsets = texts.value_offsets();
    texts.value_data().get(offsets.first()?.as_usize()..offsets.last()?.as_usize())
}

pub(crate) fn views(array: &ArrayRef, name: &str, room: &mut Room) -> Result<Views> {
    let Some(texts) = Texts::of(array) else {
        return Err(Error::of_column(name, format!("type {} is no text", array.data_type())));
    };
    let mut out = Views::with_capacity(array.len());
    for row in 0..array.len() {
        if array.is_null(row) {
            out.push_empty(1);
        } else {
            push(&mut out, texts.get(row), name, room)?;
        }
    }
    Ok(out)
}

pub(crate) fn push(out: &mut Views, value: &[u8], name: &str, room: &mut Room) -> Result<()> {
    room.take(value.len())?;
    if !out.has_room(value.len()) {
        return Err(Error::of_column(name, "more than 2 GiB of text in one commit"));
    }
    out.push(value);
    Ok(())
}

/// Returns the codes of a dictionary column, and its distinct strings.
///
/// Arrow's dictionaries may contain a string twice or NULL; Tidalite's may not.
pub(crate) fn dictionary_symbols(array: &ArrayRef, name: &str, room: &mut Room) -> Result<(Column, Views)> {
    let dictionary = array.as_any_dictionary();
    let (strings, strings_are) = (dictionary.values(), dictionary.values().nulls());
    let Some(texts) = Texts::of(strings) else {
        return Err(Error::of_column(name, format!("type {} is no text", strings.data_type())));
    };
    let mut interner = Interner::default();
    let mut codes_of = Vec::with_capacity(strings.len());
    for i in 0..strings.len() {
        let is_null = strings_are.is_some_and(|n| n.is_null(i));
        codes_of.push(if is_null { None } else { Some(interner.code(texts.get(i), name, room)?) });
    }
    let keys = arrow::compute::cast(dictionary.keys(), &DataType::UInt64).map_err(|e| Error::of_column(name, e))?;
    let keys = keys.as_primitive::<UInt64Type>();
    let mut codes = Vec::with_capacity(array.len());
    let mut column = Column::new(Values::U32(Vec::new()));
    let has_nulls = keys.null_count() > 0 || codes_of.iter().any(Option::is_none);
    let mut validity = has_nulls.then(tidalite_types::Bitmap::new);
    for (row, key) in keys.values().iter().enumerate() {
        let code = if keys.is_null(row) { None } else { codes_of.get(*key as usize).copied().flatten() };
        codes.push(code.unwrap_or(0));
        if let Some(validity) = &mut validity {
            validity.push(code.is_some());
        }
    }
    (column.values, column.validity) = (Values::U32(codes), validity);
    Ok((column, interner.strings))
}

/// Returns the codes of a text column, and its distinct strings.
pub(crate) fn symbols(array: &ArrayRef, name: &str, room: &mut Room) -> Result<(Vec<u32>, Views)> {
    let Some(texts) = Texts::of(array) else {
        return Err(Error::of_column(name, format!("type {} is no text", array.data_type())));
    };
    let mut interner = Interner::default();
    let mut codes = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        codes.push(if array.is_null(row) { 0 } else { interner.code(texts.get(row), name, room)? });
    }
    Ok((codes, interner.strings))
}

/// Distinct strings in order of first appearance.
#[derive(Default)]
struct Interner {
    strings: Views,
    codes: HashTable<(u64, u32)>,
}

impl Interner {
    #[inline]
    fn code(&mut self, value: &[u8], name: &str, room: &mut Room) -> Result<u32> {
        let hash = hash(value);
        let strings = &self.strings;
        if let Some((_, code)) = self.codes.find(hash, |(h, code)| *h == hash && strings.get(*code as usize) == value) {
            return Ok(*code);
        }
        let code = self.strings.len() as u32;
        room.take(16)?;
        push(&mut self.strings, value, name, room)?;
        self.codes.insert_unique(hash, (hash, code), |(h, _)| *h);
        Ok(code)
    }
}

/// Hashes eight bytes per step; fast rather than strong. A sender with colliding strings slows down only itself.
#[inline]
fn hash(value: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = value.len() as u64;
    let mut chunks = value.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7]]);
        hash = (hash ^ word).wrapping_mul(K).rotate_left(29);
    }
    let mut word = 0;
    for byte in chunks.remainder() {
        word = word << 8 | u64::from(*byte);
    }
    let mixed = (hash ^ word).wrapping_mul(K);
    mixed ^ mixed >> 32
}
