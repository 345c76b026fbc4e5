//! Texts of arrays, `{1,2.5,NULL}` as PostgreSQL writes them or `[1,2.5]`, as lists of doubles.

use super::item;
use crate::Parameter;
use crate::functions::json::is_deeper;
use datafusion::arrow::array::{ArrayRef, Float64Array, ListArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::DataType;
use std::sync::Arc;

/// A row whose text is none of an array with so many dimensions.
pub(crate) struct Malformed {
    pub row: usize,
    pub message: String,
}

/// How many lists are within each other, around doubles.
pub(crate) fn dims(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::List(inner) if *inner.data_type() == DataType::Float64 => Some(1),
        DataType::List(inner) => Some(dims(inner.data_type())? + 1),
        _ => None,
    }
}

pub(crate) fn of_texts<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    dims: usize,
) -> std::result::Result<ArrayRef, Malformed> {
    let mut lists = Lists { offsets: vec![vec![0]; dims], numbers: Vec::new() };
    let mut are_known = Vec::new();
    for (row, text) in texts.enumerate() {
        are_known.push(text.is_some());
        let read = match text {
            None => lists.close(0, 0),
            Some(text) => read(text).and_then(|list| lists.push(list, 0)),
        };
        if read.is_none() {
            let text = text.unwrap_or_default();
            let is_deep = is_deeper(text, Parameter::DIMS_MAX as usize);
            let message = match is_deep {
                true => format!("an array has at most {} dimensions", Parameter::DIMS_MAX),
                false => format!("malformed array literal: \"{text}\""),
            };
            return Err(Malformed { row, message });
        }
    }
    let failed = |_| Malformed { row: 0, message: "arrays of more numbers than can be counted".to_owned() };
    let mut array: ArrayRef = Arc::new(Float64Array::from(lists.numbers));
    for (level, offsets) in lists.offsets.into_iter().enumerate().rev() {
        let nulls = (level == 0).then(|| NullBuffer::from(are_known.as_slice()));
        let field = item(array.data_type().clone());
        array = Arc::new(ListArray::try_new(field, OffsetBuffer::new(offsets.into()), array, nulls).map_err(failed)?);
    }
    Ok(array)
}

fn read(text: &str) -> Option<Parameter> {
    let number = |word: &str| word.trim().parse().ok().map(Parameter::Double);
    match text.trim() {
        braces if braces.starts_with('{') => Parameter::list_of_text(braces, &number),
        brackets => Parameter::list_of_text(&brackets.replace('[', "{").replace(']', "}"), &number),
    }
}

struct Lists {
    /// Of each level, where its lists begin and end in the next one.
    offsets: Vec<Vec<i32>>,
    numbers: Vec<Option<f64>>,
}

impl Lists {
    fn push(&mut self, list: Parameter, level: usize) -> Option<()> {
        let Parameter::List(items) = list else { return None };
        self.close(level, items.len())?;
        for item in items {
            if level + 1 < self.offsets.len() {
                self.push(item, level + 1)?;
                continue;
            }
            self.numbers.push(match item {
                Parameter::Double(number) => Some(number),
                Parameter::Null => None,
                _ => return None,
            });
        }
        Some(())
    }

    /// A list of so many items that come next.
    fn close(&mut self, level: usize, items: usize) -> Option<()> {
        let offsets = &mut self.offsets[level];
        let end = offsets.last()?.checked_add(i32::try_from(items).ok()?)?;
        offsets.push(end);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, AsArray};

    #[test]
    fn lists_are_read_at_every_level() {
        let rows = [Some("{{1,2},{3,NULL}}"), None, Some("[[-0.5]]"), Some("{}")];
        let Ok(array) = of_texts(rows.into_iter(), 2) else { panic!("they are arrays") };
        assert_eq!(dims(array.data_type()), Some(2));
        let lists = array.as_list::<i32>();
        let lengths: Vec<usize> = (0..4).map(|row| lists.value(row).len()).collect();
        assert_eq!(lengths, [2, 0, 1, 0]);
        assert!(lists.is_null(1) && !lists.is_null(3));
        let first = lists.value(0);
        let second = first.as_list::<i32>().value(1);
        assert_eq!(second.as_ref(), &Float64Array::from(vec![Some(3.0), None]) as &dyn Array);
    }

    #[test]
    fn other_texts_are_malformed() {
        for text in ["", "1", "{1", "{a}", "{1}}", "{{1},2}", "{1,{2}}"] {
            assert!(of_texts([None, Some(text)].into_iter(), 1).is_err_and(|e| e.row == 1), "{text}");
        }
        assert!(of_texts([Some("{1}")].into_iter(), 2).is_err());
    }
}
